"""Decides what the product may ask of the tests: to call what they handed out, or a method that their files define.

A request names a number that the tests handed out in this test, and one of three operations. There is none that reads
an attribute of anything but a mock, names a module or a path, or reaches a method that Python or a framework wrote:
values cross as data. The contract is `docs/two-processes.md`.
"""

from __future__ import annotations

import functools
import os
import sys
import types
import unittest
from collections.abc import Callable, MappingView
from typing import Any

from jumar.child.challenge.asserting_functions import UNCALLED, HandedFunctions
from jumar.child.challenge.doubles import Doubles
from jumar.child.two_process import proxies
from jumar.child.two_process.object_data import PLAIN, find_in_class, tells_private
from jumar.child.two_process.wire import library_values, mocks
from jumar.child.two_process.wire.conversation import Conversation
from jumar.child.two_process.wire.signatures import DATA, list_wrapped

PARTS = {"call": 3, "invoke": 4, "next": 1}
"""Operation -> parts of its request: number, name of the method for `invoke`, and arguments but for `next`."""

SPECIAL = proxies.METHODS - UNCALLED
"""Special methods of the tests' classes that are the product's to call."""

MOCKED = SPECIAL - proxies.COMPARING - {"__get__", "__hash__"} | {"__contains__", "__class__"}
"""The same of mocks, and their class. Two of them are the same if they are one object."""

CALLED = (types.FunctionType, types.MethodType, types.BuiltinMethodType, functools.partial)
"""Types of what the product may call, and do nothing else with."""


class Capabilities:
    """Numbers that the tests handed out, and what may be asked of them. It performs nothing else."""

    def __init__(self, room: str) -> None:
        self._room = os.path.realpath(room) + os.sep
        self._standing: set[int | str] = set()
        self._lent: set[int | str] = set()
        self._ever: set[int | str] = set()
        """All that was handed out."""
        self.fault: Callable[[str], object] = str
        """Is told why what runs is no evidence."""
        self._files: dict[str, bool] = {}
        self.lasting = True
        """True while what is handed out outlives a test: files are loaded, or a fixture of several tests is set up."""
        self._waiting: dict[Any, Any] = {}
        """Coroutine of the tests that the product steps -> the future that it waits for."""
        self.conversation = Conversation(self.is_own, self.is_own_class, self.is_file)
        self.handed, self.doubles = HandedFunctions(self.conversation.relies_on), Doubles()
        self.performing = 0
        """Number of requests that are being performed, one within another."""

    def begin_test(self) -> None:
        """Lend what is handed out from here on to this test alone."""
        self.handed.begin_test()
        self.doubles.begin_test()
        self.conversation.begin_test()
        self._lent.clear()
        self.lasting = False

    def end_test(self) -> None:
        """Take back what was handed out in this test."""
        self.conversation.end_test()
        self._lent.clear()
        self._waiting.clear()
        self.lasting = True

    def hand_out(self, number: int | str, thing: Any = None) -> None:
        """Let the product ask for *number*, of *thing*, or name a path."""
        (self._standing if self.lasting else self._lent).add(number)
        self._ever.add(number)
        if type(number) is int:
            self.conversation.note_handed(thing)
        kind = thing if isinstance(thing, type) else type(thing)
        self.doubles.note_class(kind, self._list_bodies, lasting=self.lasting)
        self.doubles.note_named(thing, self._list_bodies, lasting=self.lasting)
        held = [name for name, value in getattr(thing, "__dict__", {}).items() if type(value) in CALLED]
        self.doubles.note_names([*held, *(mocks.WITHHELD if mocks.is_mock(kind) else ())], lasting=self.lasting)
        self.handed.note_class(kind, self._list_bodies, lasting=self.lasting)
        self.handed.note_handed(thing, lasting=self.lasting)

    def _list_bodies(self, kind: type) -> list[Any]:
        """Return the bodies of *kind*, if it is a class of the tests without tests, and of those it extends."""
        double = self.is_own_class(kind) and not self.runs_tests(kind)
        return [vars(base) for base in kind.__mro__ if self.is_own_class(base)] if double else []

    def note_put(self, thing: Any, name: str, value: Any) -> None:
        """Note that the tests set *name* of *thing*, of the product, to *value*, or deleted it."""
        self.doubles.note_put(thing, name, value, own=self.knows(value))

    def note_body(self, body: Any) -> None:
        """Note the *body* of a class of the tests that extends one of the product."""
        self.doubles.note_body(body, lasting=self.lasting)
        self.handed.note_body(body, lasting=self.lasting)

    def is_handed_out(self, number: int | str) -> bool:
        """Return whether *number*, or a path, was handed out, and not taken back."""
        return number in self._standing or number in self._lent

    def check_lent(self, number: int, thing: Any) -> None:
        """Report a fault if *thing*, with *number*, comes back and was lent in another test than the one that runs."""
        if number in self._ever and not (self.lasting or self.is_handed_out(number)):
            self.fault(f"the code gives back a {type(thing).__name__} that another test has handed out")

    def take_back(self, number: int) -> None:
        """Let the product not ask for *number* any more."""
        for numbers in (self._standing, self._lent, self._ever):
            numbers.discard(number)

    def check(self, op: str, forms: Any) -> None:
        """Check a request as it came.

        Raises:
            TypeError: if there is no such operation, or if its first part is no number that was handed out.
        """
        if op not in PARTS or type(forms) is not list or len(forms) != PARTS[op]:
            raise TypeError("the tests cannot be asked for that")
        named = forms[0]
        if type(named) is not list or len(named) != 2 or named[0] != "y" or type(named[1]) is not int:  # noqa: PLR2004  the form of a number
            raise TypeError("a request names a number")
        if not self.is_handed_out(named[1]):
            raise TypeError("that was not handed out in this test")

    def perform(self, op: str, forms: Any, values: list[Any]) -> Any:
        """Perform the request *forms*, whose parts are *values*.

        Raises:
            TypeError: if the tests did not hand that out.
        """
        self.check(op, forms)
        if op != "next" and (type(values[-2]) is not tuple or type(values[-1]) is not dict):
            raise TypeError("arguments are a tuple and a dictionary")
        action = self._find(op, values)
        self.conversation.note_asked()
        self.performing += 1
        try:
            answer = action()
        except BaseException as error:
            if isinstance(error, StopIteration):
                self.handed.note_stepped(values[0])
            self.conversation.note_failed(error)
            raise
        finally:
            self.performing -= 1
        self.handed.note_run(values[0])
        return answer

    def _find(self, op: str, values: list[Any]) -> Callable[[], Any]:
        thing = values[0]
        if op == "next":
            return self._find_step(thing)
        if op == "call" and not self._may_call(thing):
            raise TypeError("that is no function of the tests")
        method = thing if op == "call" else self._find_method(thing, values[1])
        return lambda: method(*values[-2], **values[-1])

    def _step(self, coroutine: Any) -> None:
        """Run *coroutine* to its next step. While it waits for a future of the tests' loop, there is none."""
        waited = self._waiting.pop(coroutine, None)
        if waited is not None and not waited.done():
            self._waiting[coroutine] = waited
            return
        given = coroutine.send(None)
        if given is not None:
            given._asyncio_future_blocking = False  # noqa: SLF001  as a task does
            self._waiting[coroutine] = given

    def is_waiting(self) -> bool:
        """Return whether a coroutine of the tests that the product steps waits for something in the tests' loop."""
        return bool(self._waiting)

    def _find_step(self, thing: Any) -> Callable[[], Any]:
        code = getattr(thing, library_values.CODES[type(thing)]) if type(thing) in library_values.CODES else None
        own = code and (
            self.is_file(code.co_filename) or mocks.is_code(code) or library_values.is_of_asyncio(thing, code)
        )
        if not (own or library_values.is_plain_iterator(type(thing))):
            raise TypeError("that is no iterator of the tests")
        return (lambda: next(thing)) if type(thing) is not types.CoroutineType else lambda: self._step(thing)

    def is_bound(self, thing: Any) -> bool:
        """Return whether *thing* is a method of a value or a partial function: it is called where its data is."""
        if type(thing) is types.BuiltinMethodType:
            return type(thing.__self__) in PLAIN
        return type(thing) is functools.partial and self._may_call(thing.func)

    def _may_call(self, thing: Any) -> bool:
        kind = type(thing)
        if self.is_bound(thing):
            return True
        if kind in (types.FunctionType, types.MethodType):
            return self.is_own(thing) or mocks.is_function(thing)
        if issubclass(kind, type):
            return self.is_own_class(thing)
        return mocks.is_callable(kind) or self.is_own(find_in_class(kind, "__call__"))

    def _find_part(self, mock: Any, name: str, found: Any) -> Any:
        """Return what reads the part *name* of *mock*. It is no way to what that wraps, and the product may not ask."""
        kind = mock.__class__
        if name == "__class__" and (type(kind) is proxies.ProxyClass or proxies.is_library_class(kind)):
            return lambda: kind
        wrapped = mocks.get_wrapped(mock)
        if not (wrapped is None or isinstance(wrapped, proxies.Proxy) or type(wrapped) is proxies.ProxyClass):
            self._find_method(wrapped, name)
        return mocks.find_part(mock, name, found)

    def _find_method(self, thing: Any, name: Any) -> Any:
        """Return the method *name* of *thing*: the first that its classes have, if it is of the tests' files.

        That of a mock is what reads its part of that name.
        """
        public = type(name) is str and (not name.startswith("_") or name in SPECIAL)
        of_class = isinstance(thing, type)
        kind = thing if of_class else type(thing)
        found = find_in_class(kind, name) if public else None
        getter = found.fget if isinstance(found, property) and not of_class else None
        if getter is not None and self.is_own(getter):
            return types.MethodType(getter, thing)
        if isinstance(found, (staticmethod, classmethod)) and self.is_own(found.__func__):
            return found.__get__(None if of_class else thing, kind)
        if type(found) is types.FunctionType and self._serves(name, found) and not of_class:
            return types.MethodType(found, thing)
        if mocks.is_mock(kind) and not of_class and type(name) is str and (name[:1] != "_" or name in MOCKED):
            return self._find_part(thing, name, found)
        raise TypeError("the tests' files define no such method")

    def offers(self, kind: type, name: str) -> bool:
        """Return whether instances of *kind* have the special method *name* for the product."""
        if kind in CALLED:
            return name == "__call__"
        if mocks.is_mock(kind) and name in MOCKED and mocks.offers(kind, name):
            return True
        if name not in proxies.METHODS or name in UNCALLED or not self.is_own_class(kind):
            return False
        return vars(kind)[name] is None or self._serves(name, vars(kind)[name])

    def _serves(self, name: str, function: Any) -> bool:
        return self.is_own(function) and not tells_private(name, function)

    def list_members(self, kind: type) -> dict[str, Any]:
        """Return the public attributes of *kind* that cross: each with how it is asked for, or with what it is."""
        if self.is_own_class(kind) and issubclass(kind, unittest.TestCase):
            raise ValueError(f"the class of tests {kind.__name__}")
        if library_values.is_plain_iterator(kind):
            return {"__next__": "next", "__iter__": "self"}
        if kind is types.CoroutineType:
            return {"__await__": "self", "__iter__": "self", "__next__": "next", **library_values.COROUTINE}
        members: dict[str, Any] = {**mocks.list_members(kind)}
        tests = self.runs_tests(kind)
        for name, value in vars(kind).items() if self.is_own_class(kind) else ():
            if name.startswith(("_", *proxies.RESERVED)) or not name.isidentifier():
                continue
            if tests and (type(value) is not types.FunctionType or name.startswith("test")):
                continue
            if isinstance(value, property) and self.is_own(value.fget):
                members[name] = "property"
            elif self.is_own(value.__func__ if type(value) in (staticmethod, classmethod) else value):
                members[name] = "method"
            elif type(value) in DATA:
                members[name] = ["data", value]
        return members

    def runs_tests(self, kind: type) -> bool:
        """Return whether *kind* is a class of the tests that pytest collects: of its data nothing crosses."""
        held = (pair for base in kind.__mro__ for pair in vars(base).items())
        return self.is_own_class(kind) and any(name.startswith("test") and self.is_own(value) for name, value in held)

    def knows(self, thing: Any) -> bool:
        """Return whether the product can do all that there is to do with *thing*, no value: call, step or raise it."""
        kind = type(thing)
        bare = (kind.__module__, kind.__name__) in library_values.BARE
        known = bare or self.is_own_class(kind) or self._may_call(thing) or library_values.is_plain_iterator(kind)
        return known or isinstance(thing, (types.GeneratorType, types.CoroutineType, BaseException, MappingView))

    def is_own(self, function: Any) -> bool:
        """Return whether *function*, or what it wraps, stands in the tests' files."""
        if type(function) is types.MethodType:
            function = function.__func__
        return any(self.is_file(each.__globals__.get("__file__")) for each in list_wrapped(function))

    def is_own_class(self, kind: Any) -> bool:
        """Return whether the tests' files define *kind*."""
        module = sys.modules.get(type.__getattribute__(kind, "__module__"))
        return type(kind) is not proxies.ProxyClass and self.is_file(getattr(module, "__file__", None))

    def is_file(self, name: Any) -> bool:
        """Return whether *name* is the path of one of the tests' files."""
        if type(name) is not str:
            return False
        if name not in self._files:
            self._files[name] = os.path.isabs(name) and os.path.realpath(name).startswith(self._room)  # noqa: PTH117  compared as text
        return self._files[name]
