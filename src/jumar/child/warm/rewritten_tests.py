"""Rewrites the assertions of test files in the zygote, as pytest does when it imports them, so that no fork has to.

pytest keeps what it rewrites beside the test, by the time of the file, and takes an edit within a second for the file
of before. Here the whole source is the key. Only files of the untouched tree are rewritten, and only for first runs.
"""

from __future__ import annotations

import _imp
import contextlib
import importlib
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import CodeType

PLACE = "_rewrite_test"
"""pytest's function that reads a file, rewrites it and compiles it."""

HOOKED = "enable_assertion_pass_hook"
"""Setting of a project with which pytest rewrites otherwise."""

_usual: list[Any] = []
_codes: dict[bytes, tuple[object, CodeType]] = {}
"""Source of a test file -> what pytest's function returns of it."""


def install() -> None:
    """Let pytest ask here first; a version of pytest that works otherwise is left alone."""
    module: Any = importlib.import_module("_pytest.assertion.rewrite")
    if hasattr(module, PLACE):
        _usual[:] = [getattr(module, PLACE)]
        setattr(module, PLACE, rewrite_test)


def prepare(source: bytes) -> None:
    """Rewrite a test file. One that pytest or the compiler warns of, or cannot rewrite, is left to the forks."""
    if not _usual:
        return
    # Whatever is wrong with it is told where it is imported.
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("error")
        handle = os.memfd_create("test")  # nothing stays on disk
        with os.fdopen(handle, "wb", buffering=0) as stream:
            stream.write(source)
            _codes[source] = _usual[0](Path(f"/proc/self/fd/{handle}"), None)


def rewrite_test(path: Path, config: Any) -> tuple[object, CodeType]:
    """Return what pytest's own function does: a mark of the source at *path*, and its code with rewritten assertions.

    The code is handed out once, as it is given the name of its file.
    """
    done = _codes.pop(Path(path).read_bytes(), None) if _codes else None
    if done is None or config.getini(HOOKED):
        usual: tuple[object, CodeType] = _usual[0](path, config)
        return usual
    mark, code = done
    _imp._fix_co_filename(code, str(path))  # type: ignore[attr-defined]  # noqa: SLF001  as importlib does
    return (mark if isinstance(mark, bytes) else Path(path).stat()), code
