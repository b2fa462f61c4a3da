"""Tests in one process, code under test in another, with a narrow protocol between them.

The tests' side imports proxies of the product's modules; built-in values cross by copy, all else by reference. The
product's side never decides a comparison. Standard library, pytest and `jumar.child` only.
"""

from __future__ import annotations

SAY = " has a say in what is compared"
"""End of the reason that an object of the code decides a comparison: it is told before all others."""
