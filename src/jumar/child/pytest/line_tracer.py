"""Records the lines that each test runs, one record per test: a lost process does not lose what was seen before.

With the interpreter's own means, so that no package has to be installed for it: `sys.monitoring` where there is one
(Python 3.12), `sys.settrace` elsewhere.
"""

from __future__ import annotations

import dis
import functools
import os
import sys
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

    Wrapper = Generator[None, Any, None]

IMPORTING = ""
"""The name under which lines are reported that ran while the tests were collected."""

TOOLS = (4, 3, 5, 2, 1)
"""Tool numbers of `sys.monitoring`, those that nobody has a claim to first."""


class Tracer:
    """A plug-in that measures which lines of some files run around every test."""

    def __init__(self, files: Sequence[str], room: Path, send: Callable[[list[object]], None]) -> None:
        self._recorder = build_recorder({os.path.realpath(room / file): file for file in files})
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


def build_recorder(files: Mapping[str, str]) -> Any:
    """Return the fastest recorder that this interpreter has; *files*: real path -> the name that is reported."""
    names = functools.lru_cache(None)(lambda filename: files.get(os.path.realpath(filename), ""))
    monitoring = getattr(sys, "monitoring", None)
    free = [tool for tool in TOOLS if monitoring and monitoring.get_tool(tool) is None]
    return Monitored(names, monitoring, free[0]) if free else Traced(names)


class Monitored:
    """Records by `sys.monitoring`: a line costs something the first time it runs in a recording, and nothing after."""

    def __init__(self, names: Callable[[str], str], monitoring: Any, tool: int) -> None:
        self._names, self._monitoring, self._tool = names, monitoring, tool
        self._lines: dict[str, set[int]] = {}
        monitoring.use_tool_id(tool, "jumar")
        events = monitoring.events
        monitoring.register_callback(tool, events.PY_START, self._enter_code)
        monitoring.register_callback(tool, events.LINE, self._record_line)

    def start(self) -> None:
        """Begin to record the lines that a test runs."""
        self._lines = {}
        self._monitoring.set_events(self._tool, self._monitoring.events.PY_START)
        self._monitoring.restart_events()

    def stop(self) -> dict[str, list[int]]:
        """End the recording: the lines that ran, by the name of their file."""
        self._monitoring.set_events(self._tool, 0)
        lines, self._lines = self._lines, {}
        return {name: sorted(numbers) for name, numbers in lines.items()}

    def _enter_code(self, code: CodeType, _offset: int) -> object:
        if self._names(code.co_filename):
            self._monitoring.set_local_events(self._tool, code, self._monitoring.events.LINE)
        return self._monitoring.DISABLE

    def _record_line(self, code: CodeType, line: int) -> object:
        self._lines.setdefault(self._names(code.co_filename), set()).add(line)
        return self._monitoring.DISABLE


class Traced:
    """Records by `sys.settrace`, without tracing frames of other files and code whose lines were all seen."""

    def __init__(self, names: Callable[[str], str]) -> None:
        self._names = names
        self._codes: dict[int, tuple[CodeType, str, frozenset[int]]] = {}
        """By identity (code objects are slow to hash): the object, the name of its file, its lines."""
        self._unseen: dict[int, set[int]] = {}
        """The lines of each entered code object that did not run in this recording."""

    def start(self) -> None:
        """Begin to record the lines that a test runs."""
        self._unseen = {}
        threading.settrace(self._enter_code)
        sys.settrace(self._enter_code)

    def stop(self) -> dict[str, list[int]]:
        """End the recording: the lines that ran, by the name of their file."""
        sys.settrace(None)
        threading.settrace(None)
        lines: dict[str, set[int]] = {}
        for key, unseen in self._unseen.items():
            _, name, numbers = self._codes[key]
            lines.setdefault(name, set()).update(numbers - unseen)
        self._unseen = {}
        return {name: sorted(numbers) for name, numbers in lines.items() if numbers}

    def _enter_code(self, frame: FrameType, _event: str, _arg: object) -> Any:
        code = frame.f_code
        unseen = self._unseen.get(id(code))
        if unseen is None:
            name = self._names(code.co_filename)
            if not name:
                return None
            if id(code) not in self._codes:
                numbers = frozenset(line for _, line in dis.findlinestarts(code) if line)
                self._codes[id(code)] = (code, name, numbers)
            unseen = self._unseen[id(code)] = set(self._codes[id(code)][2])
        return self._build_line_tracer(unseen) if unseen else None

    @staticmethod
    def _build_line_tracer(unseen: set[int]) -> Any:
        """Return a local trace function that takes the lines that run from *unseen*."""

        def trace_line(frame: FrameType, event: str, _arg: object) -> Any:
            if event == "line":
                unseen.discard(frame.f_lineno)
                if not unseen:
                    frame.f_trace_lines = False
            return trace_line

        return trace_line
