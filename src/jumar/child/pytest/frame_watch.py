"""Observes whether code under test looks at frames, at all living objects or at test files while a test runs.

What is expected of code stands in the frames of its caller, so coins of a challenge are worth little against code that
looks there. The interpreter raises an audit event for each way to a frame (PEP 578); a hook cannot be taken away again.
It changes no outcome: `["looked", how]` lowers a grade. Standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import linecache
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Send = Callable[[list[object]], None]

FRAMES = frozenset(("tb_frame", "gi_frame", "cr_frame", "ag_frame", "__code__", "__closure__", "__defaults__"))
"""Attributes that lead to a frame or to what a function holds; reading them is an `object.__getattr__`."""

ROUTES = ("sys._getframe", "sys._current", "sys.settrace", "sys.setprofile", "sys.monitoring", "gc.get", "ctypes.",
          "code.__new__", "sys.addaudithook")  # fmt: skip
"""Beginnings of the events that show or make frames, objects or code."""

KEEPERS = ("logging", "traceback")
"""Modules that make texts of frames, and hand out those of their own direct callers only."""


class FrameWatch:
    """Plug-in around the hook: it watches while tests run. *foreign* and *supports* say whose a file is."""

    def __init__(self, foreign: Callable[[str], bool], supports: Callable[[str], bool], send: Send) -> None:
        self._state = [False]
        sys.addaudithook(_build_hook(self._state, foreign, supports, send))

    def pytest_runtest_call(self) -> None:
        """Watch from here on, without lines of test files that are kept for tracebacks."""
        linecache.clearcache()
        self._state[0] = True

    def pytest_runtest_logfinish(self) -> None:
        """Watch no more until the next test runs."""
        self._state[0] = False


def _build_hook(
    state: list[bool], foreign: Callable[[str], bool], supports: Callable[[str], bool], send: Send
) -> Callable[[str, tuple[Any, ...]], None]:
    told: list[str] = []
    get_frame = sys._getframe  # noqa: SLF001  there is no other way to see who asks

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if not state[0] or told:
            return
        if event == "object.__getattr__":
            if arguments[1] not in FRAMES:
                return
        elif event == "open":
            if not _is_test_file(arguments[0], supports):
                return
        elif not event.startswith(ROUTES):
            return
        state[0] = False  # to ask for a frame is an event, too
        asks = _is_below if event == "open" else _is_asked_by
        by_product = asks(get_frame(1), foreign)
        state[0] = True
        if by_product:
            told.append(event)
            send(["looked", event])

    return hook


def _is_test_file(path: Any, supports: Callable[[str], bool]) -> bool:
    if type(path) is not str or not path.endswith(".py"):
        return False
    try:
        return supports(os.path.abspath(path))  # noqa: PTH100  asked with each file
    except OSError:  # the working directory is gone, and so are the files
        return False


def _is_asked_by(frame: Any, foreign: Callable[[str], bool]) -> bool:
    """Return whether code under test asked, itself or through functions of one module that may hand the frame out."""
    if foreign(frame.f_code.co_filename):
        return True
    module, name = frame.f_code.co_filename, frame.f_globals.get("__name__")
    frame = frame.f_back
    while name not in KEEPERS and frame is not None and frame.f_code.co_filename == module:
        frame = frame.f_back
    return frame is not None and foreign(frame.f_code.co_filename)


def _is_below(frame: Any, foreign: Callable[[str], bool]) -> bool:
    """Return whether code under test is among the callers of *frame*: who opens a file for it hands it the text."""
    while frame is not None and not foreign(frame.f_code.co_filename):
        frame = frame.f_back
    return frame is not None
