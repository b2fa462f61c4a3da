"""Knows the doubles that tests hand out (fakes, mocks, spies), and tells if something may stand in their place."""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from jumar.child.challenge.asserting_functions import asserts, list_classes, list_functions


class Doubles:
    """Classes of doubles that the product has: for good, or in this test."""

    def __init__(self) -> None:
        self._known: weakref.WeakKeyDictionary[type, tuple[set[str], set[str]]] = weakref.WeakKeyDictionary()
        """Class -> names of methods that assert, and of its public methods."""
        self._standing: set[str] = set()
        self._asserting: set[str] = set()
        """Names of methods that assert: of what was handed out while files were loaded, and in this test."""
        self._methods: set[str] = set()
        self._lasting: set[str] = set()
        """Names of all public methods of what was handed out in this test, and of what was for several."""
        self._late: list[Any] = []
        """Things that were handed out for several tests since the last one: what they name may be defined later."""
        self._put: dict[tuple[int, str], tuple[Any, Any]] = {}
        """Places where the tests put a thing: identity of what has it, and a name -> that, and the thing."""

    def begin_test(self) -> None:
        """Forget what only one test has."""
        late, self._late = self._late, []
        for thing, list_bodies in late:
            self.note_named(thing, list_bodies, lasting=True)
        self._late.clear()
        self._asserting = set(self._standing)
        self._methods = set(self._lasting)
        self._put.clear()

    def note_class(self, kind: type, list_bodies: Callable[[type], Iterable[Any]], *, lasting: bool) -> None:
        """Note *kind*, of which the product has an instance, or itself. Its bodies are listed once: [] of no double."""
        if kind not in self._known:
            self._known[kind] = _list_methods(list_bodies(kind))
        self._add(*self._known[kind], lasting=lasting)

    def note_named(self, thing: Any, list_bodies: Callable[[type], Iterable[Any]], *, lasting: bool) -> None:
        """Note the classes that *thing* names, if it is a function: it may make instances of them for the product."""
        if lasting:
            self._late.append((thing, list_bodies))
        for kind in list_classes(thing):
            self.note_class(kind, list_bodies, lasting=lasting)

    def note_body(self, body: Any, *, lasting: bool) -> None:
        """Note the *body* of a class of the tests that extends one of the product."""
        self._add(*_list_methods([body]), lasting=lasting)

    def _add(self, asserting: set[str], public: set[str], *, lasting: bool) -> None:
        self._asserting |= asserting
        self._methods |= public
        if lasting:
            self._standing |= asserting
            self._lasting |= public

    def note_names(self, names: Iterable[str], *, lasting: bool) -> None:
        """Note *names* of what the product has: of its fields with functions, of what tells how it was called."""
        self._add(set(), {name for name in names if name[:1] != "_"}, lasting=lasting)

    def note_put(self, thing: Any, name: str, value: Any, *, own: bool) -> None:
        """Note that the tests set *name* of *thing*, of the product, to *value*, which may be one of their *own*."""
        self._put.pop((id(thing), name), None)
        if own:
            self._put[id(thing), name] = thing, value

    def find_fault(self, thing: Any, name: str, found: Any, *, known: bool) -> str:
        """Return what is wrong with *found*, which the tests read of *thing*, of the product, by *name*; or "".

        *known*: the tests know that as the product's, by a name of theirs, or as they made it.
        """
        kind = type(thing).__name__
        put = self._put.get((id(thing), name))
        if put is not None and found is not put[1]:
            return f"{name} of a {kind} is not what the test has put there"
        if name in self._asserting and not known:
            return f"{name}, a method that asserts, is asked of a {kind} of the product"
        if name in self._methods and not known:
            return f"{name} is asked of a {kind} that may stand for what the test handed out"
        return ""


def _list_methods(bodies: Iterable[Any]) -> tuple[set[str], set[str]]:
    """Return the names of methods in *bodies* that assert, by themselves or by another one, and of public ones."""
    held = {name: next(iter(list_functions(value)), None) for body in bodies for name, value in body.items()}
    methods = {name: value for name, value in held.items() if type(value) is types.FunctionType}
    names = {name for name, value in methods.items() if asserts(value)}
    names |= {name for name, value in methods.items() if not names.isdisjoint(value.__code__.co_names)}
    return names, {name for name in methods if name[:1] != "_"}
