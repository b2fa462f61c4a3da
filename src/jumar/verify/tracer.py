"""Which lines each test runs, in a record per test: what was seen before a process is lost is not lost with it.

Loaded by path inside the tested interpreter; standard library and coverage only, Python 3.8 or newer.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    import pytest

    Wrapper = Generator[None, Any, None]

QUIET = ("no-data-collected", "module-not-imported", "module-not-measured", "module-not-python", "already-imported")
"""Coverage's warnings about there being nothing to see: a project may have made warnings errors."""

IMPORTING = ""
"""The name under which lines are reported that ran while the tests were collected."""


class Tracer:
    """A plug-in that measures which lines of some files run around every test."""

    def __init__(self, config: dict[str, Any], room: Path, send: Callable[[list[object]], None]) -> None:
        # At the very end of the path, and alone in its folder: nothing else of jumar's environment can be imported.
        sys.path.append(config["coverage"])
        coverage = importlib.import_module("coverage")
        self._files = {os.path.realpath(room / file): file for file in config["files"]}
        self._send = send
        self._coverage = coverage.Coverage(data_file=None, config_file=False, include=list(self._files), messages=False)
        self._coverage.set_option("run:disable_warnings", list(QUIET))
        # The default core of newer versions switches a line off once it was seen; here it counts for each test.
        # Versions without a choice have the right one.
        with contextlib.suppress(coverage.exceptions.CoverageException):
            self._coverage.set_option("run:core", "ctrace" if _has_c_tracer() else "pytrace")

    def pytest_collection(self) -> Wrapper:
        """Measure the imports."""
        self._coverage.start()
        yield
        self._report(IMPORTING)

    def pytest_runtest_protocol(self, item: pytest.Item) -> Wrapper:
        """Measure one test, its fixtures included."""
        self._coverage.start()
        yield
        self._report(item.nodeid)

    def _report(self, name: str) -> None:
        self._coverage.stop()
        data = self._coverage.get_data()
        for path in data.measured_files():
            if path in self._files:
                self._send(["lines", name, self._files[path], sorted(data.lines(path) or ())])
        self._coverage.erase()


def _has_c_tracer() -> bool:
    """Whether coverage's compiled part was built for this interpreter."""
    try:
        return importlib.util.find_spec("coverage.tracer") is not None and bool(
            importlib.import_module("coverage.tracer")
        )
    except ImportError:
        return False
