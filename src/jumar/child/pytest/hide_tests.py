"""Hides from code under test which test runs.

PYTEST_CURRENT_TEST names no real id. Where the task's own test files read that variable it keeps its value: some name
files after it. Code that abuses it is warned of elsewhere.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

NAME = "PYTEST_CURRENT_TEST"

SOMEONE = "tests.py::test"
"""Placeholder for a test id. It has the form of one, for code that parses it."""


class HideTestName:
    """Plug-in that hides or keeps the test id; *supports* says whether a file belongs to the task's tests."""

    def __init__(self, room: str, supports: Callable[[str], bool]) -> None:
        self._room = room
        self._supports = supports
        self._named = True
        runner: Any = importlib.import_module("_pytest.runner")
        tell = getattr(runner, "_update_current_test_var", None)
        if tell is None:
            return

        def update_variable(item: pytest.Item, when: str | None) -> None:
            if when and not self._named:
                os.environ[NAME] = f"{SOMEONE} ({when})"
            else:
                tell(item, when)

        runner._update_current_test_var = update_variable  # noqa: SLF001  there is no other way in between

    def pytest_collection_finish(self) -> None:
        """Check whether a test file or conftest reads the variable; all of them are imported by now."""
        files = {str(getattr(module, "__file__", None) or "") for module in list(sys.modules.values())}
        ours = [file for file in files if file.startswith(self._room) and file.endswith(".py")]
        self._named = any(_mentions(file) for file in ours if self._supports(file))


def hide_folder_names() -> None:
    """Name temporary folders without the test: its name would tell which one runs, with what parameters."""
    folders: Any = importlib.import_module("_pytest.tmpdir")
    if hasattr(folders, "_mk_tmp"):
        folders._mk_tmp = lambda _, factory: factory.mktemp("test", numbered=True)  # noqa: SLF001  it has no setting


def _mentions(file: str) -> bool:
    with contextlib.suppress(OSError):
        return NAME.encode() in Path(file).read_bytes()
    return False
