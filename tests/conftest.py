"""Options of our own suite. Nothing here changes how a test is judged."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--data", type=Path, help="a folder of real tasks with an index.json; without it their tests skip")


@pytest.fixture(scope="session")
def data(request: pytest.FixtureRequest) -> Path:
    """The folder of real tasks."""
    folder: Path | None = request.config.getoption("--data")
    if folder is None:
        pytest.skip("no real tasks: give their folder with --data DIR")
    return folder
