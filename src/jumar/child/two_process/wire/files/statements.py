"""Watches SQL that the tests run in their own process: it is code, so a text of the product may not be run."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from jumar.child.challenge.asserting_functions import list_all

MODULES = ("_sqlite3", "sqlite3.dbapi2", "sqlite3")
"""Modules that have the names of what runs SQL: the first makes them, the others take them from it when loaded."""

RUNNING = ("execute", "executemany", "executescript")
"""Methods that run a statement."""

FACTORY = 5
"""Arguments of `connect` before the class of what it makes."""


class Statements:
    """Texts that stand in the files of the tests."""

    def __init__(self) -> None:
        self._codes: list[types.CodeType] = []
        self._texts: set[str] = set()

    def note_code(self, code: types.CodeType) -> None:
        """Note *code*, of a file of the tests."""
        self._codes.append(code)

    def has(self, text: str, places: Iterable[str]) -> bool:
        """Return whether *text* stands in a file of the tests, as it is, or is all of one in *places*."""
        while self._codes:
            consts = (const for each in list_all(self._codes.pop()) for const in each.co_consts)
            self._texts.update(const for const in consts if type(const) is str)
        return text in self._texts or any(text == _read(place) for place in places if place.endswith(".sql"))


def _read(place: str) -> str:
    try:
        return Path(place).read_text("utf-8")
    except (OSError, ValueError):
        return ""


def watch_statements(check: Callable[[Any], None]) -> None:
    """Have `sqlite3` call *check* with each statement before it is run, whatever connection or cursor runs it."""
    try:
        module: Any = importlib.import_module(MODULES[0])
    except ImportError:  # this Python was built without it
        return
    usual = module.connect
    cursor = type("Cursor", (module.Cursor,), {name: _watch(getattr(module.Cursor, name), check) for name in RUNNING})
    body = {name: _forward(name) for name in RUNNING}
    make: Any = module.Connection.cursor
    body["cursor"] = lambda self, factory=cursor: make(self, factory)
    connection = type("Connection", (module.Connection,), body)

    def connect(*given: Any, **named: Any) -> Any:
        """Connect to a database, as `sqlite3` does."""
        if len(given) <= FACTORY:
            named.setdefault("factory", connection)
        return usual(*given, **named)

    for made in (cursor, connection, connect):
        made.__module__ = "sqlite3"  # they are found there if handed out
    for name in MODULES:
        if name in sys.modules:
            vars(sys.modules[name]).update(connect=connect, Connection=connection, Cursor=cursor)


def _watch(run: Any, check: Callable[[Any], None]) -> Any:
    def run_checked(self: Any, statement: Any, *given: Any) -> Any:
        check(statement)
        return run(self, statement, *given)

    return run_checked


def _forward(name: str) -> Any:
    """Return the method *name* of a connection: it makes a cursor for it, and returns that."""
    return lambda self, *given: getattr(self.cursor(), name)(*given)
