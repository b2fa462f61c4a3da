"""Observes whether code under test opens a data file of the tests that may be a result, as one beside its source."""

from __future__ import annotations

import builtins
import os
import pathlib
from inspect import CO_VARARGS, CO_VARKEYWORDS
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# Of our own, whatever becomes of the others.
__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # a module or its names

# What the hook needs it has in its closure: names of a module are anybody's to exchange.


def build_data_watch(data: Iterable[str], tests: frozenset[str], foreign: Callable[[str], bool]) -> tuple[Any, Any]:
    """Build what finds a file of *data* by its path, and what says whether a foreign reader of it may know a result.

    The tests open it as well, and the code under test was not given its path: so are results copied that lie beside
    their sources. What a library opens for nobody, as in a thread, may be for the code under test.
    """
    stat, resolve, list_given = os.stat, os.path.realpath, _build_lister()
    files = {(one.st_dev, one.st_ino) for one in map(stat, filter(os.path.exists, data))}
    by_tests: set[Any] = set()
    by_product: set[Any] = set()

    def find_data(path: Any) -> tuple[int, int] | None:
        if not files or type(path) not in (str, bytes):
            return None
        try:
            found = stat(path)
        except (OSError, ValueError):
            return None
        file = (found.st_dev, found.st_ino)
        return file if file in files else None

    def reads_data(file: tuple[int, int], frame: Any, path: str | bytes) -> bool:
        entered = None
        while frame is not None and frame.f_code.co_filename not in tests:
            entered = frame if foreign(frame.f_code.co_filename) else entered
            frame = frame.f_back
        if entered is None and frame is not None:
            by_tests.add(file)
        elif entered is None or resolve(path) not in map(resolve, list_given(entered, type(path))):
            by_product.add(file)
        return file in by_tests and file in by_product

    return find_data, reads_data


def _build_lister() -> Callable[[Any, type], list[Any]]:
    """Build what lists the paths, as texts of one type, that a function was given, as they are or in a container."""
    stars, keywords, encode, decode = CO_VARARGS, CO_VARKEYWORDS, os.fsencode, os.fsdecode
    kinds = (str, bytes, type(pathlib.Path()))  # others could answer anything

    def list_given(frame: Any, kind: type) -> list[Any]:
        code, held = frame.f_code, frame.f_locals
        flags = bool(code.co_flags & stars) + bool(code.co_flags & keywords)
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + flags]
        given = [held[name] for name in names if name in held]
        for one in list(given):
            given += one if type(one) in (list, tuple) else one.values() if type(one) is dict else ()
        convert = decode if kind is str else encode
        return [convert(one) for one in given if type(one) in kinds]

    return list_given
