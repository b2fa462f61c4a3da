"""Names of modules of the product that the tests know: what a name stands for is asked for once, until one changes.

Two of three messages of a suite asked for a function of a module, to call it with the next one. Functions and classes
alone are known so: other names may be computed each time, or are data.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from typing import Any

LASTING = (types.FunctionType, type)
"""Types of what a name of a module stands for until that is given another value."""

MADE_ANEW = ("method", "builtin_function_or_method", "method-wrapper")
"""Types of what is another object each time that it is asked for."""


class WatchedNames:
    """Names that the tests were told of, in the process of the product: once one is another, all have to be asked for.

    What it reports is the number of such changes, and the names that were asked for since the last message.
    """

    def __init__(self) -> None:
        self._changes = 0
        self._asked: list[list[Any]] = []
        self._clear()

    def _clear(self) -> None:
        self._keys: set[tuple[int | None, str]] = set()
        self._tables: list[dict[str, Any]] = []
        self._names: list[str] = []
        self._values: list[Any] = []

    def note(self, module: Any, number: int | None, name: str, value: Any) -> None:
        """Watch *name* of *module*, which has *number* and is just asked for it, if it holds a lasting *value*."""
        if type(module) is types.ModuleType and isinstance(value, LASTING) and vars(module).get(name) is value:
            self._asked.append([number, name])
            if (number, name) in self._keys:  # the tests ask each time for what a library has
                return
            self._keys.add((number, name))
            self._tables.append(vars(module))
            self._names.append(name)
            self._values.append(value)

    def report(self) -> list[Any] | None:
        """Return the number of changes, and the names that are watched since; None: nothing was asked for."""
        if not all(map(operator.is_, map(dict.get, self._tables, self._names), self._values)):
            self._changes += 1
            self._asked = []
            self._clear()
        asked, self._asked = self._asked, []
        return [self._changes, asked] if asked or self._changes else None


class KnownNames:
    """The same names in the process of the tests, with what they stand for."""

    def __init__(self, lasts: Callable[[Any], bool], fault: Callable[[str], object], things: tuple[Any, ...]) -> None:
        """*lasts* tells a function or class of the product: what else comes has to be checked each time.

        *fault* records why the test is no evidence; *things* are the types of what is the same by identity alone.
        """
        self._lasts, self._fault, self._things = lasts, fault, things
        self._constants: dict[tuple[int, str], Any] = {}
        """Constants of modules, classes and objects, each with the first value that it had."""
        self._changes = 0
        self._watched: set[tuple[int, str]] = set()
        self._known: dict[tuple[int, str], Any] = {}
        self.asking = False
        """True while a name of a module is asked for."""

    def follow(self, told: Any) -> None:
        """Take over what the product reports.

        Raises:
            ValueError: if that is no report.
        """
        if told is None:
            return
        changes, asked = told
        if type(changes) is not int or not all(type(n) is int and type(name) is str for n, name in asked):
            raise ValueError("no report of names")
        if changes != self._changes:
            self._changes = changes
            self._watched.clear()
            self._known.clear()
        self._watched.update((number, name) for number, name in asked)

    def forget(self, name: str) -> None:
        """Forget what *name* was: the tests set it."""
        self._constants = {key: held for key, held in self._constants.items() if key[1] != name}

    def note_first(self, number: int, name: str, value: Any) -> None:
        """Note the first *value* of the constant *name* of the thing with *number*; None: it is not there.

        A method is another object each time, so it is not known before a test asks for it.
        """
        if type(value).__name__ in MADE_ANEW:
            self._constants.pop((number, name), None)
        else:
            self._constants.setdefault((number, name), value)

    def check_constant(self, thing: Any, number: int, name: str, found: Any) -> None:
        """Record a fault if *name*, of *thing* with *number*, is a constant, and not what it was.

        That is a name in capitals, a class in a module, and an object of a class in that class, as enumerations have.
        """
        lasting = isinstance(thing, (type, types.ModuleType))
        member = isinstance(thing, type) and thing in type.mro(type(found))
        if not (name.isupper() or member or (isinstance(thing, types.ModuleType) and isinstance(found, type))):
            return
        if not lasting and type(found).__name__ in MADE_ANEW:
            return
        first = self._constants.setdefault((number, name), found)
        alike = type(first) is type(found) and not isinstance(found, self._things)
        if first is not found and not (alike and first == found):
            self._fault(f"{name}, a constant of the product, is not what it was: it may follow the answers")

    def knows(self, number: int, name: str) -> bool:
        """Return whether *name* of the module with *number* is known, and not to be asked for."""
        return (number, name) in self._known

    def ask(self, number: int, name: str, ask: Callable[[], Any]) -> Any:
        """Return what *name* of the module with *number* stands for: as it is known, or as *ask* tells it."""
        key = number, name
        if key in self._known:
            return self._known[key]
        self.asking = True
        try:
            found = ask()
        finally:
            self.asking = False
        if key in self._watched and self._lasts(found):
            self._known[key] = found
        return found
