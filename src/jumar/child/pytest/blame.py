"""Finds what to blame for a failed test, from the exception and never from text: the code, its absence, or the test.

Before 3.10 an exception does not keep the module that lacks an attribute: its absence is then told as a fault of the
code, or of a fixture.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import linecache
import os
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Blamed = tuple[str, str]
    """A `core.verdict.Blame`, and for an absence the module."""

CODE, TEST = ("code", ""), ("test", "")

NAMES = ("conftest.py", "test_*.py", "*_test.py")
"""Files that hold tests and fixtures, whatever the project calls the others."""

FOLDER = "tests"
"""Name of a folder whose files support tests."""

ARRANGING = ("pytest_fixture_setup", "_callSetUp", "_callTearDown", "_callCleanup", "_callClassCleanup")
"""Functions of pytest and unittest that run what a test needs, while they seem to run the test."""

WRAPPED = ("CollectError", "ConftestImportFailure", "PluginImportFailure")
"""Exceptions that pytest raises in place of the original one."""

THEIRS = ("FixtureLookupError", "Skipped", "SkipTest")
"""Raised because of what the test asks for or decides itself. By name, as classes moved between versions of pytest."""


class BlameFinder:
    """Assigns the blame for what kept the tests of one room from passing."""

    def __init__(self, room: str) -> None:
        self._room = os.path.realpath(room) + os.sep
        self._tests: list[str] = []
        self._known: dict[str, str] = {}
        self._folders: dict[str, str] = {}
        """Folder -> where it really lies."""

    def add_test_file(self, path: str) -> None:
        """Take *path*, relative to the room, for a file of tests, whatever its name."""
        self._tests.append(path)

    def is_foreign(self, file: str) -> bool:
        """Return whether *file*, an absolute path, is code under test."""
        inside = self._get_room_path(file)
        return bool(inside) and self._find_owner(inside) == CODE

    def is_test_file(self, file: str) -> bool:
        """Return whether *file*, an absolute path, belongs to the tests."""
        inside = self._get_room_path(file)
        return bool(inside) and self._find_owner(inside) == TEST

    def __call__(self, error: BaseException, *, arranging: bool) -> Blamed:
        """Return who is to blame for *error*; *arranging* if it was raised before or after the test itself."""
        error = unwrap(error)
        kind = type(error).__name__
        if kind == "TestTimeLimit":
            return CODE
        if kind in THEIRS:
            return TEST
        frames = [(frame, self._get_room_path(frame.f_code.co_filename)) for frame in list_frames(error)]
        ours = [(frame, path) for frame, path in frames if path]
        arranging = arranging or any(frame.f_code.co_name in ARRANGING for frame, path in frames if not path)
        if isinstance(error, SyntaxError) and (error.filename is None or self._get_room_path(error.filename)):
            # Without a name it is a source with null bytes; a test with such a source has no frame.
            return CODE if ours and not error.filename else self._find_owner(self._get_room_path(error.filename or ""))
        if not ours:
            # pytest itself fails what it cannot run, such as a coroutine without a plug-in.
            return TEST if arranging or kind == "Failed" else CODE
        frame, path = ours[-1]
        if self._find_owner(path) == CODE:
            return CODE
        return self._find_absence(error, frame) or (TEST if arranging else CODE)

    def _find_absence(self, error: BaseException, frame: FrameType) -> Blamed | None:
        """Return what the line of a test in *frame* misses, if that is why it raised *error*."""
        if isinstance(error, ModuleNotFoundError):
            where = self.locate_module((error.name or "").partition(".")[0])
            return ("absent", error.name) if error.name and where != "elsewhere" else TEST
        if isinstance(error, ImportError):
            return ("absent", error.name) if error.name and self.locate_module(error.name) == "room" else TEST
        if isinstance(error, NameError):
            starred = [name for name in list_star_imports(frame) if self.locate_module(name) == "room"]
            return ("absent", starred[-1]) if starred else TEST
        thing = getattr(error, "obj", None)
        if isinstance(error, AttributeError) and isinstance(thing, ModuleType) and self.is_in_room(thing):
            return "absent", thing.__name__
        if isinstance(error, AttributeError) and self.is_made_by_product(thing):
            return CODE
        return None

    def is_made_by_product(self, thing: object) -> bool:
        """Return whether *thing* is a class of the code under test, or an object of one."""
        kind = thing if isinstance(thing, type) else type(thing)
        module = sys.modules.get(getattr(kind, "__module__", None) or "")
        place = self._get_room_path(str(getattr(module, "__file__", None) or ""))
        return bool(place) and self._find_owner(place) == CODE

    def _find_owner(self, path: str) -> Blamed:
        """Return who is to blame for what is wrong in *path*, relative to the room; empty is the test itself."""
        *folders, name = Path(path).parts or ("",)
        tests = not path or path in self._tests or FOLDER in folders or any(fnmatch(name, n) for n in NAMES)
        return TEST if tests else CODE

    def _get_room_path(self, path: str) -> str:
        """Return *path* relative to the room, or empty if it lies elsewhere."""
        if path not in self._known:  # each failure has forty frames, and links are followed part by part
            self._known[path] = self._resolve_room_path(path)
        return self._known[path]

    def _resolve_room_path(self, path: str) -> str:
        if not os.path.isabs(path):  # noqa: PTH117  names such as <string> and frozen stand here too
            return ""
        folder, name = os.path.split(path)
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder)
        real = os.path.join(self._folders[folder], name)  # noqa: PTH118  some hundred files at each start
        if name in ("", os.curdir, os.pardir) or os.path.islink(real):  # noqa: PTH114  as above
            real = os.path.realpath(real)
        inside = real.startswith(self._room) and "site-packages" not in Path(real[len(self._room) :]).parts
        return real[len(self._room) :] if inside else ""

    def is_in_room(self, module: ModuleType) -> bool:
        """Return whether *module*, or a part of it, lies in the room."""
        places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
        return any(self._get_room_path(str(place)) for place in places if place)

    def locate_module(self, name: str) -> str:
        """Return the place where the module *name* is found: `room`, `elsewhere` or `nowhere`."""
        spec = None
        with contextlib.suppress(ImportError, ValueError, AttributeError):
            spec = importlib.util.find_spec(name)
        if spec is None:
            return "nowhere"
        places = [spec.origin or "", *(spec.submodule_search_locations or ())]
        return "room" if any(self._get_room_path(str(place)) for place in places) else "elsewhere"


def unwrap(error: BaseException) -> BaseException:
    """Return the exception that *error* was raised for, where pytest wraps it in one of its own."""
    while type(error).__name__ in WRAPPED:
        inner = getattr(error, "cause", None) or error.__cause__ or error.__context__
        if inner is None:
            kept = getattr(error, "excinfo", None)
            inner = kept[1] if kept else None
        if inner is None:
            break
        error = inner
    return error


def list_frames(error: BaseException) -> Iterator[FrameType]:
    """Yield the frames of *error*, the innermost last."""
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def list_star_imports(frame: FrameType) -> Iterator[str]:
    """Yield the modules of which the file of *frame* imports everything, by their full names."""
    package = str(frame.f_globals.get("__package__") or "")
    with contextlib.suppress(OSError, SyntaxError, ValueError):
        for node in ast.walk(ast.parse("".join(linecache.getlines(frame.f_code.co_filename)))):
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                with contextlib.suppress(ImportError, ValueError):
                    yield importlib.util.resolve_name("." * node.level + (node.module or ""), package)
