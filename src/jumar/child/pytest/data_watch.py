"""Observes whether code under test opens a data file of the tests that may be a result, as one beside its source."""

from __future__ import annotations

import os
import pathlib
from inspect import CO_VARARGS as VARARGS
from inspect import CO_VARKEYWORDS as KEYWORDS
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

PATHS = (str, bytes, type(pathlib.Path()))
"""Types of paths that are asked for their text: others could answer anything."""


def build_data_watch(data: Iterable[str], tests: frozenset[str], foreign: Callable[[str], bool]) -> tuple[Any, Any]:
    """Build a finder of files of *data* by path, and a predicate: may this foreign reader of one know a result?

    The tests open it as well, and the code under test was not given its path: so are results copied that lie beside
    their sources.
    """
    stat, resolve = os.stat, os.path.realpath
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

    def reads_data(file: tuple[int, int], frame: Any, path: Any) -> bool:
        entered = None
        while frame is not None and frame.f_code.co_filename not in tests:
            entered = frame if foreign(frame.f_code.co_filename) else entered
            frame = frame.f_back
        if entered is None:
            by_tests.add(file)
        elif resolve(os.fsdecode(path)) not in map(resolve, _list_given(entered)):
            by_product.add(file)
        return file in by_tests and file in by_product

    return find_data, reads_data


def _list_given(frame: Any) -> Iterator[str]:
    """Yield the paths that the function of *frame* was given, as they are or in a container."""
    code, held = frame.f_code, frame.f_locals
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & VARARGS) + bool(code.co_flags & KEYWORDS)
    given = [held[name] for name in code.co_varnames[:count] if name in held]
    for one in list(given):
        given += one if type(one) in (list, tuple) else one.values() if type(one) is dict else ()
    yield from (os.fsdecode(one) for one in given if type(one) in PATHS)
