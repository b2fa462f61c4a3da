"""Records the lines that each test runs, one record per test: a lost process does not lose what was seen before."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

    Wrapper = Generator[None, Any, None]

IMPORTING = ""
"""The name under which lines are reported that ran while the tests were collected."""


class Tracer:
    """A plug-in that measures which lines of some files run around every test."""

    def __init__(
        self,
        files: Sequence[str],
        room: Path,
        recorder: Callable[[Mapping[str, str]], Any],
        send: Callable[[list[object]], None],
    ) -> None:
        self._recorder = recorder({os.path.realpath(room / file): file for file in files})
        self._send = send

    def pytest_collection(self) -> Wrapper:
        """Record the lines that run when test files are imported."""
        self._recorder.start()
        yield
        self._report(IMPORTING)

    def pytest_runtest_protocol(self, item: pytest.Item) -> Wrapper:
        """Measure one test, its fixtures included."""
        self._recorder.start()
        yield
        self._report(item.nodeid)

    def _report(self, name: str) -> None:
        for path, numbers in self._recorder.stop().items():
            self._send(["lines", name, path, numbers])
