"""Observes whether code under test looks at frames, at all living objects or at test files, or could do so unseen.

What is expected of code stands in the frames of its caller and in the test files, so coins of a challenge are worth
little against code that looks there. The interpreter raises an audit event for each way to a frame or a file (PEP 578);
a hook cannot be taken away again, but it is there in one process and one interpreter only. It changes no outcome:
`["looked", how]` lowers a grade. Standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import builtins
import linecache
import os
import resource
import sys
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Send = Callable[[list[object]], None]
    Foreign = Callable[[str], bool]
    Asks = Callable[[Any, int, tuple[Any, ...]], bool]

# Of our own, whatever becomes of the others.
__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # a module or its names

FRAMES = frozenset(("tb_frame", "gi_frame", "cr_frame", "ag_frame", "__code__", "__closure__", "__defaults__"))
"""Attributes that lead to a frame or to what a function holds; reading them is an `object.__getattr__`."""

ROUTES = ("sys._getframe", "sys._current", "sys.settrace", "sys.setprofile", "sys.monitoring", "gc.get", "ctypes.",
          "code.__new__", "sys.addaudithook")  # fmt: skip
"""Beginnings of the events that show or make frames, objects or code."""

ELSEWHERE = ("os.fork", "os.posix_spawn", "os.exec", "os.system", "os.spawn", "subprocess.Popen", "pty.spawn",
             "cpython.PyInterpreterState_New")  # fmt: skip
"""Beginnings of the events that start a process or an interpreter: nobody watches there, and the test files are."""

KEEPERS = ("logging", "traceback")
"""Modules that make texts of frames, and hand out those of their own direct callers only."""

HANDING = ("inspect", *KEEPERS)
"""Modules that hand frames to whoever asks: those of others keep to the names in them, as `namedtuple` does."""

OFF, LOADING, RUNNING = range(3)
"""Times: nothing of the room was loaded; no test runs, but code under test may; a test runs."""


class FrameWatch:
    """Plug-in around the hook. *foreign* and *supports* say whose a file is; the room is the working directory."""

    def __init__(self, foreign: Foreign, supports: Foreign, send: Send) -> None:
        self._time, self._tell = [OFF], _build_teller(send)
        is_test_file = _build_test_files(os.getcwd(), supports)  # noqa: PTH109  compared as text
        sys.addaudithook(_build_hook(self._time, _build_askers(foreign), is_test_file, self._tell))
        self._children = _count_children()

    def pytest_load_initial_conftests(self) -> Iterator[None]:
        """Watch from here on: what is loaded may keep what it has seen."""
        self._time[0] = LOADING
        yield

    def pytest_runtest_setup(self) -> None:
        """Forget the lines of test files that are kept for tracebacks."""
        linecache.clearcache()

    def pytest_runtest_call(self) -> None:
        """Watch more closely from here on."""
        linecache.clearcache()
        self._time[0] = RUNNING

    def pytest_runtest_logfinish(self) -> None:
        """Watch as before until the next test runs, and tell of processes that no event told of."""
        self._time[0] = LOADING
        if _count_children() != self._children:
            self._tell("a process")


# What the hook needs it has in its closure: names of a module are anybody's to exchange.


def _build_teller(send: Send) -> Callable[[str], None]:
    """Build what tells of the first event."""
    told: list[str] = []

    def tell(event: str) -> None:
        if not told:
            told.append(event)
            send(["looked", event])

    return tell


def _build_hook(
    time: list[int], asked: tuple[Asks, Asks], is_test_file: Callable[[Any], bool], tell: Callable[[str], None]
) -> Callable[[str, tuple[Any, ...]], None]:
    """Build the audit hook; *asked* say who asks for a frame, and for a file."""
    frames, routes, elsewhere = FRAMES, ROUTES, ELSEWHERE
    get_frame = sys._getframe  # noqa: SLF001  there is no other way to see who asks
    asks_for_frame, asks_for_file = asked

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        now, asks = time[0], asks_for_frame
        if not now:
            return
        if event == "open":
            if not is_test_file(arguments[0]):
                return
            asks = asks_for_file
        elif event == "object.__getattr__":
            if arguments[1] not in frames:
                return
        elif event.startswith(elsewhere):
            tell(event)
            return
        elif not event.startswith(routes):
            return
        time[0] = 0  # to ask for a frame is an event, too
        by_product = asks(get_frame(1), now, arguments)
        time[0] = now
        if by_product:
            tell(event)

    return hook


def _build_test_files(room: str, supports: Foreign) -> Callable[[Any], bool]:
    """Build what says whether a path, whatever it is called, leads to a test file of *room* or to a folder of some."""
    files: set[tuple[int, int]] = set()
    stat = os.stat
    for folder, _, names in os.walk(room):
        paths = [os.path.join(folder, name) for name in names if name.endswith(".py")]  # noqa: PTH118  many of them
        own = [path for path in paths if supports(path)]
        for found in map(stat, (*own, *([folder] if own else []))):
            files.add((found.st_dev, found.st_ino))

    def is_test_file(path: Any) -> bool:
        if not isinstance(path, (str, bytes)):
            return type(path) is not int  # opened before; anything else may say another name each time it is asked
        try:
            found = stat(path)  # the file itself: it has many names
        except (OSError, ValueError):
            return False
        return (found.st_dev, found.st_ino) in files

    return is_test_file


def _build_askers(foreign: Foreign) -> tuple[Asks, Asks]:
    """Build what says whether code under test asks for a frame, and for a file."""
    running, keepers, handing, function = RUNNING, KEEPERS, HANDING, FunctionType

    def asks_for_frame(frame: Any, now: int, arguments: tuple[Any, ...]) -> bool:
        """Itself, or through functions of one module that hand the frame out. *arguments* are the event's."""
        module, name = frame.f_code.co_filename, frame.f_globals.get("__name__")
        if now != running:
            own = arguments and type(arguments[0]) is function and arguments[0].__globals__.get("__file__")
            if (type(own) is str and foreign(own)) or not (name in handing or foreign(module)):
                return False
        if foreign(module):
            return True
        frame = frame.f_back
        while name not in keepers and frame is not None and frame.f_code.co_filename == module:
            frame = frame.f_back
        return frame is not None and foreign(frame.f_code.co_filename)

    def asks_for_file(frame: Any, _: int, __: tuple[Any, ...]) -> bool:
        """Itself, or as one of the callers: who opens a file for it hands it the text."""
        while frame is not None and not foreign(frame.f_code.co_filename):
            frame = frame.f_back
        return frame is not None

    return asks_for_frame, asks_for_file


def _count_children() -> tuple[int, int]:
    """Return what is known of processes that this one has started and waited for: it changes with each."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_minflt, used.ru_maxrss
