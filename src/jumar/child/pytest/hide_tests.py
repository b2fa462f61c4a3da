"""Hides from code under test which test runs, what is loaded of the tests, and in a challenge what their files say.

PYTEST_CURRENT_TEST names no real id. Where the task's own test files read that variable it keeps its value: some name
files after it. Code that abuses it is warned of elsewhere.
"""

from __future__ import annotations

import _imp
import contextlib
import importlib
import importlib.machinery
import os
import sys
import threading
import types
from collections.abc import Callable, Mapping
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


class TestSources:
    """Plug-in that loads test files of other content than what lies in the room: *sources*, path there -> bytes.

    Each is handed out once, and never where code under test, which *foreign* tells by its file, is among the callers:
    it gets the decoy.
    """

    def __init__(self, room: str, sources: Mapping[str, bytes], foreign: Callable[[str], bool]) -> None:
        held = {os.path.join(room, path): data for path, data in sources.items()}  # noqa: PTH118  as asked for

        def forget() -> None:
            held.clear()

        self._forget = forget
        if held:
            _load_from(_build_taker(held, foreign))

    def pytest_collection_finish(self) -> None:
        """Forget what nobody has loaded."""
        self._forget()


HOLDERS = (("_pytest.mark.structures", "MARK_GEN"), ("_pytest.debugging", "pytestPDB"), ("_pytest.assertion.util", ""))
"""Globals of pytest that lead to all tests, and do without once these are known: marks are checked where they are
loaded, nobody sits at a debugger, and the text of a failed assertion has the usual length."""

HELD = ("session", "_config", "_pluginmanager")
"""Attributes by which they do."""


class TestObjects:
    """Plug-in that cuts the ways to what is loaded of the tests: by the importer, and by globals of pytest.

    Where a module of *tests* stood, there is another one, which has nothing itself and asks that; *tell* hears of it if
    code under test asks, which *foreign* tells by its file.
    """

    def __init__(self, tests: frozenset[str], foreign: Callable[[str], bool], tell: Callable[[str], None]) -> None:
        self._tests, self._ask = tests, _build_asker(foreign, tell)
        self._holders = [_find_global(*path) for path in HOLDERS]

    def pytest_collection_finish(self) -> None:
        """Cut the ways: all is loaded, and every test is known."""
        for name, module in list(sys.modules.items()):
            if type(module) is types.ModuleType and vars(module).get("__file__") in self._tests:
                sys.modules[name] = _show_module(module, self._ask)
        for finder in sys.meta_path:
            if {"session", "config"} <= getattr(finder, "__dict__", {}).keys():  # pytest's
                finder.session = None  # type: ignore[attr-defined]  # it is asked while files are collected
                _hide_config(finder, self._ask)
        self._cut()

    def pytest_runtest_setup(self) -> None:
        """Cut the ways that pytest makes before each test."""
        self._cut()

    def _cut(self) -> None:
        for holder in self._holders:
            for name in HELD:
                if getattr(holder, "__dict__", {}).get(name) is not None:
                    setattr(holder, name, None)


def _find_global(module: str, name: str) -> Any:
    held: Any = importlib.import_module(module)
    return getattr(held, name, None) if name else held


def _build_asker(foreign: Callable[[str], bool], tell: Callable[[str], None]) -> Callable[[Any], Any]:
    """Build a function that hands a thing to the caller two frames above, and reports code under test."""
    get_frame: Callable[[int], Any] = sys._getframe  # noqa: SLF001  there is no other way to see who asks

    def ask(thing: Any) -> Any:
        frame = get_frame(2)
        asking = frame.f_code.co_filename
        while frame is not None and frame.f_code.co_filename == asking and not foreign(asking):
            frame = frame.f_back  # a function of a library that hands it out
        if frame is not None and foreign(frame.f_code.co_filename):
            tell("what is loaded of the tests")
        return thing

    return ask


def _show_module(module: types.ModuleType, ask: Callable[[Any], Any]) -> types.ModuleType:
    """Return a module that stands for *module*."""

    class Shown(types.ModuleType):
        def __getattribute__(self, name: str) -> Any:
            return getattr(ask(module), name)

        def __setattr__(self, name: str, value: Any) -> None:
            setattr(ask(module), name, value)

        def __delattr__(self, name: str) -> None:
            delattr(ask(module), name)

        def __dir__(self) -> list[str]:
            return dir(ask(module))

    shown = Shown(module.__name__)
    types.ModuleType.__setattr__(shown, "__file__", module.__file__)  # by which it is told whose its classes are
    return shown


def _hide_config(finder: Any, ask: Callable[[Any], Any]) -> None:
    """Keep the configuration, by which all of pytest is found, out of the attributes of its finder, which needs it."""
    config = finder.__dict__.pop("config")

    class Finder(type(finder)):  # type: ignore[misc]  # known when pytest is
        @property
        def config(self) -> Any:
            return ask(config)

    finder.__class__ = Finder


# What is held stands in closures alone: to look into one is an event, and `FrameWatch` hears of it. Whoever knows the
# loader could read an attribute unheard.


def _build_taker(held: dict[str, bytes], foreign: Callable[[str], bool]) -> Callable[[str], bytes | None]:
    """Build a function that returns the true content of a file; None: it has no decoy, or is not for the caller."""
    thread, get_thread = threading.get_ident(), threading.get_ident
    get_frame: Callable[[int], Any] = sys._getframe  # noqa: SLF001  there is no other way to see who asks

    def take(path: str) -> bytes | None:
        if path not in held or get_thread() != thread:  # who asks stands in its own thread
            return None
        frame = get_frame(1)
        while frame is not None and not foreign(frame.f_code.co_filename):
            frame = frame.f_back
        return held.pop(path) if frame is None else None

    return take


def _load_from(take: Callable[[str], bytes | None]) -> None:
    """Make pytest, and the importer for files that pytest does not rewrite, load the content that *take* returns."""
    rewrite: Any = importlib.import_module("_pytest.assertion.rewrite")
    loader: Any = importlib.machinery.SourceFileLoader
    usual, read = rewrite._rewrite_test, loader.get_data  # noqa: SLF001  pytest has no other way

    def rewrite_test(path: Path, config: Any) -> Any:
        source = take(str(path))
        if source is None:
            return usual(path, config)
        _, code = rewrite_source(usual, source, config)
        _imp._fix_co_filename(code, str(path))  # type: ignore[attr-defined]  # noqa: SLF001  as importlib does
        return path.stat(), code

    rewrite._rewrite_test = rewrite_test  # noqa: SLF001
    loader.get_data = lambda asked, path: take(str(path)) or read(asked, path)


def rewrite_source(rewrite: Callable[[Path, Any], Any], source: bytes, config: Any) -> Any:
    """Return the result of pytest's function *rewrite* for a file with that *source*; nothing stays on disk."""
    handle = os.memfd_create("test")
    with os.fdopen(handle, "wb", buffering=0) as stream:
        stream.write(source)
        return rewrite(Path(f"/proc/self/fd/{handle}"), config)
