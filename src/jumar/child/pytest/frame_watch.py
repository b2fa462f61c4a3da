"""Observes whether code under test looks at frames, at all living objects or at test files, or could do so unseen.

What is expected of code stands in the frames of its caller and in the test files, so coins of a challenge are worth
little against code that looks there. The interpreter raises an audit event for each way to a frame or a file (PEP 578);
a hook cannot be taken away again, but it is there in one process and one interpreter only. It changes no outcome:
`["looked", how]` lowers a grade.
"""

from __future__ import annotations

import builtins
import importlib.machinery
import linecache
import os
import resource
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from stat import S_ISDIR
from typing import TYPE_CHECKING, Any

from jumar.child.pytest.data_watch import build_data_watch
from jumar.child.pytest.frames.askers import LOADING, OFF, RUNNING, build_askers
from jumar.child.pytest.frames.exchanged import exchange_unheard

if TYPE_CHECKING:
    Send = Callable[[list[object]], None]
    Foreign = Callable[[str], bool]
    Asks = Callable[[Any, int, tuple[Any, ...]], bool]

# Of our own, whatever becomes of the others.
__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # a module or its names

FRAMES = frozenset(("tb_frame", "__code__", "__closure__", "__defaults__",
                    *(f"{kind}_{part}" for kind in ("gi", "cr", "ag") for part in ("frame", "code"))))  # fmt: skip
"""Attributes that lead to a frame or to what a function holds; reading them is an `object.__getattr__`."""

ROUTES = ("sys._getframe", "sys._current", "sys.settrace", "sys.setprofile", "sys.monitoring", "gc.get", "ctypes.",
          "code.__new__", "marshal.load", "sys.addaudithook")  # fmt: skip
"""Beginnings of the events that show or make frames, objects or code."""

ELSEWHERE = ("os.fork", "os.posix_spawn", "os.exec", "os.system", "os.spawn", "subprocess.Popen", "pty.spawn",
             "cpython.PyInterpreterState_New")  # fmt: skip
"""Beginnings of the events that start a process or an interpreter: nobody watches there, and the test files are."""

READING = frozenset(("open", "os.link", "os.symlink", "os.rename", "sqlite3.connect"))
"""Events by which the content of a file is had, or is there under another name; its path comes first."""


class FrameWatch:
    """Plug-in around the hook. *tests* are the tests' modules, *data* their other files; *foreign* tells others."""

    def __init__(self, tests: frozenset[str], foreign: Foreign, data: Iterable[str], send: Send) -> None:
        self._time, self.tell = [OFF], _build_teller(send)
        is_look = _build_filter(_build_secret_places(tests), foreign)
        sys.addaudithook(
            _build_hook(
                self._time,
                (*build_askers(tests, foreign), _build_is_import(foreign)),
                (is_look, *build_data_watch(data, tests, foreign)),
                self.tell,
            )
        )
        exchange_unheard(tests, foreign, self.tell)
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
        """Watch as before until the next test runs, and report processes that no event was raised for."""
        self._time[0] = LOADING
        if _count_children() != self._children:
            self.tell("a process")


# What the hook needs it has in its closure: names of a module are anybody's to exchange.


def _build_teller(send: Send) -> Callable[[str], None]:
    """Build the function that reports the first event."""
    told: list[str] = []

    def tell(event: str) -> None:
        if not told:
            told.append(event)
            send(["looked", event])

    return tell


def _build_hook(
    time: list[int], asked: tuple[Asks, Asks, Any], seen: tuple[Any, Any, Any], tell: Callable[[str], None]
) -> Callable[[str, tuple[Any, ...]], None]:
    """Build the audit hook; *asked* say who asks for a frame, and for a file, *seen* which events are looked at.

    The last of *asked* are frames of the importer that are nobody's.
    """
    elsewhere, get_frame, get_frames = ELSEWHERE, sys._getframe, sys._current_frames  # noqa: SLF001  who asks is seen there
    main = threading.get_ident()
    (asks_for_frame, asks_for_file, is_import), (is_look, find_data, reads_data), reading = asked, seen, READING

    def watch_event(event: str, arguments: tuple[Any, ...]) -> None:
        now = time[0]
        if not now:
            return
        if not is_look(event, arguments):
            if event in reading and (files := find_data(arguments[0], event != "open" or arguments[1] is None)):
                time[0] = 0
                frame, top = get_frame(1), get_frames().get(main)
                time[0] = now  # what is asked of paths may be code under test
                if reads_data(files, frame, top):
                    tell(event)
            return
        if event.startswith(elsewhere):
            tell(event)
            return
        time[0] = 0  # to ask for a frame is an event, too
        frame = get_frame(1)
        asks = asks_for_file if event == "open" else asks_for_frame
        by_product = not is_import(frame) and asks(frame, now, (event, *arguments))
        time[0] = now
        if by_product:
            tell(event)

    return watch_event


def _build_is_import(foreign: Foreign) -> Callable[[Any], bool]:
    """Build the predicate for frames where the importer reads bytecode of what is installed, outside the room."""
    machinery: Any = importlib.machinery
    loaders = (machinery.SourceFileLoader, machinery.SourcelessFileLoader)
    places = {loader.get_code.__code__: name for loader, name in zip(loaders, ("bytecode_path", "path"))}  # noqa: B905
    folders = (sys.prefix, sys.base_prefix, *sys.path)
    installed = tuple(f"{one}/" for one in folders if one.startswith("/") and not foreign(f"{one}/x.pyc"))

    def is_import(frame: Any) -> bool:
        caller = frame.f_back
        if frame.f_code.co_name != "_compile_bytecode" or caller is None or caller.f_code not in places:
            return False
        held = caller.f_locals
        path = held.get(places[caller.f_code])
        return type(held.get("self")) in loaders and type(path) is str and path.startswith(installed)

    return is_import


def _build_filter(is_secret: Callable[[Any], bool], is_inside: Foreign) -> Callable[[str, Any], bool]:
    """Build the predicate for events that may be a look, or a disguise: code in the name of a file outside."""
    frames, beginnings = FRAMES, (*ROUTES, *ELSEWHERE)

    def is_look(event: str, arguments: Any) -> bool:
        if event == "open":
            return is_secret(arguments[0])
        if event == "object.__getattr__":
            return arguments[1] in frames
        if event == "compile":
            return type(arguments[1]) is str and arguments[1].startswith("/") and not is_inside(arguments[1])
        return event.startswith(beginnings)

    return is_look


def list_tests(room: str, supports: Callable[[str], bool], ending: str) -> Iterator[str]:
    """Yield the paths of the tests' files in *room* whose name has that *ending*."""
    for folder, _, names in os.walk(room):
        paths = (os.path.join(folder, name) for name in names if name.endswith(ending))  # noqa: PTH118  many of them
        yield from filter(supports, paths)


def build_foreign(room: str, tests: frozenset[str]) -> Foreign:
    """Build the predicate for files of the code under test: all files in *room* except *tests*."""
    inside = (room + os.sep, os.path.realpath(room) + os.sep)
    return lambda file: file.startswith(inside) and file not in tests


def _build_secret_places(tests: frozenset[str]) -> Callable[[Any], bool]:
    """Build the predicate for paths, under any name, that lead to *tests*, to memory, or to a folder of those."""
    stat, resolve, is_folder = os.stat, os.path.realpath, S_ISDIR
    known = map(stat, {*tests, *map(os.path.dirname, tests)})
    files = frozenset((one.st_dev, one.st_ino) for one in known)
    processes = stat("/proc").st_dev if os.path.isdir("/proc") else None  # noqa: PTH112  asked with each file

    def is_secret(path: Any) -> bool:
        if not isinstance(path, (str, bytes)):
            return type(path) is not int  # opened before; anything else may say another name each time it is asked
        try:
            found = stat(path)  # the file itself: it has many names
        except (OSError, ValueError):
            return False
        if found.st_dev == processes:
            return is_folder(found.st_mode) or os.fsdecode(resolve(path)).endswith("/mem")
        return (found.st_dev, found.st_ino) in files

    return is_secret


def _count_children() -> tuple[int, int]:
    """Return counters of the processes that this one has started and waited for: they change with each."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_minflt, used.ru_maxrss
