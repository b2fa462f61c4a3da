"""Notes what a test and the code under test had of each other beyond questions and data: such a test is one of grade B.

At grade A the wire is one-way: the tests ask, and data comes back. Nothing that runs in their process was handed out,
and nothing that they hold changed behind their back, so there is nothing to exploit.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from jumar.child.challenge.asserting_functions import asserts, find_function
from jumar.child.two_process.wire import library_values, mocks

PASSIVE = frozenset((
    "__init__", "__post_init__", "__hash__", "__repr__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__",
))  # fmt: skip
"""Methods of a class that only holds data, as a dataclass has them: they run where the product asks, which is noted."""


class Conversation:
    """Keeps the first reason that the test that runs is no one-way one.

    *is_own* and *is_own_class* tell functions and classes of the tests' files.
    """

    def __init__(self, is_own: Callable[[Any], bool], is_own_class: Callable[[Any], bool]) -> None:
        self._is_own, self._is_own_class = is_own, is_own_class
        self.why = self._lasting = ""
        self._runs = False
        """True if the files of the tests are loaded: what they do before is data for the tests."""
        self.files: set[str] = set()
        """Files with tests."""
        self.asked = 0
        """Number of requests that were performed."""
        self._idle: dict[str, str] = {}
        """Files of the tests that hand out what asserts, while they are loaded or for several tests, each with what."""

    def begin_test(self) -> None:
        """Forget what only one test has."""
        self._runs = True
        self.why = self._lasting

    def note(self, why: str, *, lasting: bool = False) -> None:
        """Note *why* this is no one-way test; nor are those after it, if what did that outlives it."""
        if not self._runs:
            return
        self.why = self.why or why
        self._lasting = self._lasting or (why if lasting else "")

    def note_asked(self) -> None:
        """Note that a request of the product is performed."""
        self.asked += 1
        self.note("the code calls into the tests")

    def note_handed(self, thing: Any, *, lasting: bool) -> None:
        """Note that *thing* of the tests is handed out. Where that outlives a test, only what asserts matters.

        A test that does not hear of its function again lacks what that asserts, and nothing else.
        """
        if not lasting:
            if why := self._find_active(thing):
                self.note(f"the test hands the code {why}")
            return
        kind = thing if isinstance(thing, type) else type(thing)
        called = find_function(thing)
        bodies = [] if called else self._list_bodies(kind)
        self._note_idle([called, *(value for body in bodies for value in body.values())])

    def note_body(self, body: Any, *, lasting: bool) -> None:
        """Note the *body* of a class of the tests that extends one of the product."""
        if lasting:
            self._note_idle(body.values())
        elif name := next((name for name, value in body.items() if self._is_active(name, value)), ""):
            self.note(f"the test extends a class of the code, and defines {name} in it")

    def find_why(self, file: str) -> str:
        """Return why the test that ran, of *file*, is no one-way one; empty: it is.

        What a helper hands out, or a `conftest.py`, may matter to any test.
        """
        idle = (why for name, why in self._idle.items() if name == file or name not in self.files)
        return self.why or next(idle, "")

    def _find_active(self, thing: Any) -> str:
        """Return what *thing* is, if something of the tests may run where the product asks it; or ""."""
        of_class = isinstance(thing, type)
        kind = thing if of_class else type(thing)
        bodies = [*self._list_bodies(kind), *self._list_bodies(type(kind))]
        if any(self._is_active(name, value) for body in bodies for name, value in body.items()):
            return f"a class with methods, {kind.__name__}" if of_class else f"a {kind.__name__}, which has methods"
        data = bodies or of_class or issubclass(kind, BaseException) or kind.__module__ in library_values.NAMESPACES
        return "" if (data or kind is object) and not mocks.is_mock(kind) else f"a {kind.__name__}"

    def _list_bodies(self, kind: type) -> list[dict[str, Any]]:
        return [dict(vars(base)) for base in type.__getattribute__(kind, "__mro__") if self._is_own_class(base)]

    def _is_active(self, name: str, value: Any) -> bool:
        return name not in PASSIVE and any(map(self._is_own, _list_functions(value)))

    def _note_idle(self, values: Any) -> None:
        for function in (function for value in values for function in _list_functions(value)):
            if type(function) is types.FunctionType and self._is_own(function) and asserts(function):
                file = str(function.__globals__.get("__file__"))
                self._idle.setdefault(file, f"{function.__name__}, which asserts, is the code's to call")


def _list_functions(value: Any) -> list[Any]:
    """Return the functions in *value*, of the body of a class."""
    if isinstance(value, property):
        return [part for part in (value.fget, value.fset, value.fdel) if part]
    return [getattr(value, "__func__", value)]
