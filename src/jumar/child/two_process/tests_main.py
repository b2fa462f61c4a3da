"""Runs pytest while the product is in another process. Standard library and pytest only, Python 3.8 or newer."""

from __future__ import annotations

from jumar.child.pytest import pytest_main
from jumar.child.two_process.tests_plugin import connect_product


def main() -> None:
    """Run pytest once, with the plug-in that finds the product's modules in the other process."""
    pytest_main.main(connect_product)
