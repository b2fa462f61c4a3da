"""Hides from code under test which test runs, and in a challenge what the test files say; not that tests run.

PYTEST_CURRENT_TEST names no real id. Where the task's own test files read that variable it keeps its value: some name
files after it. Code that abuses it is warned of elsewhere.
Loaded by path inside the tested interpreter; standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import _imp
import contextlib
import importlib
import importlib.machinery
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pytest

NAME = "PYTEST_CURRENT_TEST"

SOMEONE = "tests.py::test"
"""Placeholder for a test id. It has the form of one, for code that parses it."""


class HideTestName:
    """Plug-in that hides or keeps the test id.

    *supports* says whether a file below *room* belongs to the task's tests.
    """

    def __init__(self, room: str, supports: Callable[[str], bool]) -> None:
        self._room = room
        self._supports = supports
        self._named = True
        runner: Any = importlib.import_module("_pytest.runner")
        tell = getattr(runner, "_update_current_test_var", None)
        if tell is None:
            return

        def told(item: pytest.Item, when: str | None) -> None:
            if when and not self._named:
                os.environ[NAME] = f"{SOMEONE} ({when})"
            else:
                tell(item, when)

        runner._update_current_test_var = told  # noqa: SLF001  there is no other way in between

    def pytest_collection_finish(self) -> None:
        """Look whether a test file or conftest reads the variable; all of them are imported by now."""
        files = {str(getattr(module, "__file__", None) or "") for module in list(sys.modules.values())}
        ours = [file for file in files if file.startswith(self._room) and file.endswith(".py")]
        self._named = any(_mentions(file) for file in ours if self._supports(file))


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


# What is held stands in closures alone: to look into one is an event, and `FrameWatch` hears of it. Whoever knows the
# loader could read an attribute unheard.


def _build_taker(held: dict[str, bytes], foreign: Callable[[str], bool]) -> Callable[[str], bytes | None]:
    """Build what gives the right content of a file; None: it has no decoy, or is not for whoever asks."""
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
    """Let pytest, and the importer for files in which pytest rewrites nothing, load what *take* gives for a file."""
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
    """Return what pytest's function *rewrite* makes of a file with that *source*; nothing is left on a disk."""
    handle = os.memfd_create("test")
    with os.fdopen(handle, "wb", buffering=0) as stream:
        stream.write(source)
        return rewrite(Path(f"/proc/self/fd/{handle}"), config)
