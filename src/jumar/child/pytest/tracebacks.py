"""Makes pytest's descriptions of failures cheap: they can take longer than all the tests."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class SyntaxTrees(dict):  # type: ignore[type-arg]  # of Python 3.8
    """Syntax trees of source files by path, each as long as its file stays as it is."""

    def get(self, path: Any, default: Any = None) -> Any:
        """Return the tree of a file, or *default*."""
        state, tree = super().get(path, (None, default))
        return tree if state == _read_state(path) else default

    def __setitem__(self, path: Any, tree: Any) -> None:
        super().__setitem__(path, (_read_state(path), tree))


def _read_state(path: Any) -> tuple[int, int]:
    try:
        at = os.stat(path)  # noqa: PTH116  asked often
    except OSError:
        return 0, 0
    return at.st_size, at.st_mtime_ns


def keep_trees() -> None:
    """Let all failures share the syntax trees of files: pytest parses the whole file of a test for each of them."""
    kind: Any = getattr(importlib.import_module("_pytest._code.code"), "TracebackEntry", None)
    read, trees = getattr(kind, "getsource", None), SyntaxTrees()
    if read is not None and "astcache" in inspect.signature(read).parameters:
        kind.getsource = functools.wraps(read)(lambda entry, _=None: read(entry, trees))


@contextlib.contextmanager
def suppress_frames() -> Iterator[None]:
    """Suppress frames in tracebacks within the body: to look up their lines takes longer than most tests."""
    before = getattr(sys, "tracebacklimit", None)
    sys.tracebacklimit = 0
    try:
        yield
    finally:
        if before is None:
            del sys.tracebacklimit
        else:
            sys.tracebacklimit = before
