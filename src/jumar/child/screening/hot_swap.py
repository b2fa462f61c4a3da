"""Swaps a change into a live interpreter: new code for existing functions, new text for modules not yet imported."""

from __future__ import annotations
import __future__ as futures

import gc
import importlib.machinery
import os
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class MisfitError(Exception):
    """Raised if the change cannot be swapped into the live module."""


class HotSwap:
    """Live functions of the editable files, by file and first line: methods, closures and decorated ones too."""

    def __init__(self, room: Path, paths: Sequence[str]) -> None:
        places = {os.path.realpath(room / path): path for path in paths}
        self._functions: dict[tuple[str, int], list[types.FunctionType]] = {}
        for thing in gc.get_objects():
            # Not isinstance: it would ask proxies of the program under test for their class.
            if type(thing) is types.FunctionType:
                path = places.get(os.path.realpath(thing.__code__.co_filename))
                if path is not None:
                    self._functions.setdefault((path, thing.__code__.co_firstlineno), []).append(thing)

    def swap(self, job: Mapping[str, Any]) -> None:
        """Give the functions of the changed unit their new code.

        Raises:
            MisfitError: if there are none, or the new code closes over other variables.
        """
        at_line = self._functions.get((job["path"], job["first"]), ())
        found = [function for function in at_line if function.__code__.co_name == job["name"]]
        if not found:
            raise MisfitError
        old = found[0].__code__
        flags = old.co_flags & _collect_future_flags()
        code = _find_code(compile(job["snippet"], old.co_filename, "exec", flags=flags, dont_inherit=True), job["name"])
        if code is None:
            raise MisfitError
        for function in found:
            try:
                function.__code__ = code
            except ValueError:
                raise MisfitError from None


def _collect_future_flags() -> int:
    flags = 0
    for name in futures.all_feature_names:
        flags |= getattr(futures, name).compiler_flag
    return flags


def _find_code(module: types.CodeType, name: str) -> types.CodeType | None:
    """Return the outermost code object called *name* in *module*."""
    level = [module]
    while level:
        level = [c for code in level for c in code.co_consts if isinstance(c, types.CodeType)]
        for code in level:
            if code.co_name == name:
                return code
    return None


def override(room: Path, files: Mapping[str, str]) -> None:
    """Let imports of the given *files* (path -> text) see the new text instead of what is on disk."""
    texts = {os.path.realpath(room / path): text for path, text in files.items()}
    loader: Any = importlib.machinery.SourceFileLoader
    original = loader.get_code

    def get_code(self: Any, fullname: str) -> types.CodeType | None:
        path = self.get_filename(fullname)
        text = texts.get(os.path.realpath(path))
        if text is None:
            code: types.CodeType | None = original(self, fullname)
            return code
        return compile(text.encode(), path, "exec", dont_inherit=True)

    loader.get_code = get_code
