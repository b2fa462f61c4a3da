"""Notes what a test and the code under test had of each other beyond questions and data: such a test is one of grade B.

At grade A the wire is one-way: the tests ask, and data comes back. Nothing that runs in their process was handed out,
and nothing that they hold changed behind their back, so there is nothing to exploit.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import re
import sys
import types
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from jumar.child.challenge.asserting_functions import list_functions
from jumar.child.two_process import SAY
from jumar.child.two_process.wire import endings, library_values, mocks, notices
from jumar.child.two_process.wire.containers.shared_container import get_fact

DATA = frozenset((
    "__init__", "__post_init__", "__repr__", "__setattr__", "__delattr__", "__replace__", "__getstate__",
    "__setstate__",
))  # fmt: skip
"""Methods of a class that only holds data, as a dataclass has them."""

COMPARING = frozenset(("__hash__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"))
"""The same, by which it is compared: they run where the product asks, which is noted."""

PASSIVE = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, types.CodeType,
           types.FrameType, str, bytes, int, float)  # fmt: skip
"""Types of what is not looked into for such a thing."""

MOST = 500
"""Objects in one that are looked at."""

EQUALITIES = COMPARING - {"__hash__"} | {"__contains__"}
"""Methods by which a thing of the tests may say that it is equal to much."""

WORD = re.compile(r"(?:def|class) \w+|\w+")
"""Word of a file, by which it may import another one; what it defines itself is none."""

IMPLICIT = ("conftest.py", "__init__.py")
"""Files that are loaded with others, which do not name them."""

CONSTANT = ("operator", "re", "string", "_struct")
"""Modules of objects that never change, and that are no keys by their value."""

DRAWING = ("random", "numpy.random")
"""Modules of generators of random numbers."""

EXTENDS = "_jumar_extends"
"""Name in the body of a class: true if it is of the tests and extends one of the product, false if it is of that."""


class Conversation:
    """Keeps the first reason that the test that runs is no one-way one.

    *is_own*, *is_own_class* and *is_file* tell functions, classes and paths of the tests' files.
    """

    def __init__(
        self, is_own: Callable[[Any], bool], is_own_class: Callable[[Any], bool], is_file: Callable[[Any], bool]
    ) -> None:
        self._is_own, self._is_own_class, self._is_file = is_own, is_own_class, is_file
        self.why = ""
        self.files: set[str] = set()
        """Files with tests."""
        self._runs = False
        """True while a test runs."""
        self._words: dict[str, set[str]] = {}
        """File of the tests -> words in it."""
        self._extending: weakref.WeakKeyDictionary[type, str] = weakref.WeakKeyDictionary()
        """Class -> a method that it has, if it is of the tests and extends one of the product; or empty."""
        self._handed: weakref.WeakKeyDictionary[type, tuple[bool, str, str]] = weakref.WeakKeyDictionary()
        """Class -> what is to be said of it (`_describe`): it is asked for with each object that crosses."""
        self._equalities: weakref.WeakKeyDictionary[type, str] = weakref.WeakKeyDictionary()
        """Class -> a method by which its objects say themselves what they are equal to; or empty."""
        self._lends_equal = False
        """True if such an object was handed out."""
        self._loaded: dict[str, str] = {}
        """Files of the tests that had one while no test ran, each with it; an empty name: none of them was there."""
        self.asked = 0
        """Number of requests that were performed."""
        self.failed = 0
        """Number of these that failed, of the test that runs."""
        self._fixtures: list[tuple[Any, str]] = []
        """Fixtures of several tests in whose set-up there was one, each with it."""

    def begin_test(self) -> None:
        """Forget what only one test has."""
        self._runs, self.why, self.failed = True, "", 0

    def end_test(self) -> None:
        """Let what comes from here on count for all tests that may rely on it."""
        self._runs = False

    def note(self, why: str) -> None:
        """Note *why* this is no one-way test; while none runs, or a file is loaded, why none is that may rely on it."""
        file, loading = self._find_place() if why else ("", False)  # a test may load a file that others rely on
        if why and (loading or not self._runs):
            self._loaded.setdefault(file, why)
        else:
            self.why = why if why.endswith(SAY) else self.why or why

    def note_asked(self) -> None:
        """Note that a request of the product is performed."""
        self.asked += 1
        self.note("the code calls into the tests")

    def note_failed(self, error: BaseException) -> None:
        """Note that such a request, of the test that runs, ended by *error*."""
        self.failed += not isinstance(error, endings.ENDS)

    def note_handed(self, thing: Any) -> None:
        """Note that *thing* of the tests is handed out; while files are loaded, unless it is a function."""
        of_class = issubclass(type(thing), type)
        kind = thing if of_class else type(thing)
        self._lends_equal = self._lends_equal or bool(self._find_equal(thing)[1])
        if kind not in self._handed:
            self._handed[kind] = self._describe(kind)
        is_double, active, active_object = self._handed[kind]
        why = active if of_class else active_object
        if why and (of_class or is_double or not self._find_place()[1]):
            self.note(f"the test hands the code {why}")

    def note_back(self, thing: Any) -> None:
        """Note that *thing* of the tests comes back, if it says itself what it is equal to, or holds such a one."""
        kind, name = self._find_equal(thing) if self._lends_equal else ("", "")
        if name:
            self.note(f"the code gives back a {kind} of the test, which compares by its own {name}")

    def _find_equal(self, thing: Any) -> tuple[str, str]:
        """Return the class of the first object in *thing*, also that, which says itself what it is equal to, and how.

        Or the first class of such objects.
        """
        todo, seen = [thing], {id(thing)}
        for one in todo:
            of_class = issubclass(type(one), type)
            # A class that extends one of these may have an equality of its own.
            if type(one) in PASSIVE or get_fact(one, "_jumar_peer" if of_class else "_jumar_thing") is not None:
                continue
            kind = one if of_class else type(one)
            if name := self._get_equality(kind):
                return kind.__name__, name
            if of_class:
                continue
            new = [part for part in gc.get_referents(one) if id(part) not in seen][: MOST - len(todo)]
            seen.update(map(id, new))
            todo += new
        return "", ""

    def _get_equality(self, kind: type) -> str:
        if kind not in self._equalities:
            self._equalities[kind] = find_equality(kind)
        return self._equalities[kind]

    def note_copied(self, thing: Any, form: Any) -> str:
        """Note that the product gets a copy of *thing*, a generator of random numbers, as *form* tells.

        Return the name of the class of another object of Python's own library that may change: the test would not see
        that.
        """
        kind: Any = type(thing)
        module = str(kind.__module__)
        copied = form and form[0] == "d" and module not in CONSTANT
        if not copied or kind.__hash__ not in (None, object.__hash__):
            return ""
        if not module.startswith(DRAWING):  # arrays and tables of others are data for most
            known = module.partition(".")[0] in getattr(sys, "stdlib_module_names", ())
            return str(kind.__name__) if known else ""
        self.note(f"the code has a copy of a {kind.__name__} of the test")
        return ""

    def note_seed(self) -> None:
        """Note that a generator that all use is seeded, if the tests do it, also by a library: plug-ins do it, too."""
        if self._find_place()[0]:
            self.note("the code has the generator that the test seeds")

    def note_sent(self, thing: Any) -> None:
        """Note that *thing* of the product is sent: an instance of a class of the tests that extends one, or that."""
        kind = thing if issubclass(type(thing), type) else type(thing)
        if kind not in self._extending:
            extending = (vars(base) for base in type.__getattribute__(kind, "__mro__") if vars(base).get(EXTENDS))
            self._extending[kind] = self._find_method(extending, DATA)
        name = self._extending[kind]
        if name and self._runs and not self._find_place()[1]:  # to hand it out once and for all is as `@shop.route`
            self.note(f"the test hands the code a class that extends one of it, and defines {name} in it")

    def note_output(self, listeners: Iterable[Any]) -> None:
        """Note that *listeners*, which hear what the product prints or logs, are the test's."""
        for one in itertools.filterfalse(notices.is_usual, listeners):
            self.note(f"the code writes into a {type(one).__name__} of the test")

    @contextlib.contextmanager
    def watch(self, fixture: Any) -> Iterator[None]:
        """Let what is noted in the body, the set-up of *fixture*, count for each test that uses it; None: for one."""
        before, self.why = self.why, ""
        try:
            yield
        finally:
            if self.why and fixture is not None:
                self._fixtures.append((fixture, self.why))
            self.why = before or self.why

    def note_text(self, file: str, text: str) -> None:
        """Note the *text* of a *file* of the tests: it may import what stands in it as a word."""
        self._words[file] = set(WORD.findall(text))

    def note_collected(self, file: str) -> None:
        """Note that pytest is about to load *file* for the tests in it, unless another one has loaded it before."""
        if file not in self._loaded:
            self.files.add(file)

    def relies_on(self, file: str, name: str) -> bool:
        """Return whether the tests of *file* may use what the file *name* did while it was loaded.

        That has no tests, or it is named in that file, or in one without tests, or it is loaded without being named.
        """
        base = name.rpartition("/")[2]
        stem = base.partition(".")[0]
        users = (words for user, words in self._words.items() if user == file or user not in self.files)
        lone = name in self.files and base not in IMPLICIT
        return name == file or not lone or any(stem in words for words in users)

    def note_used(self, fixtures: Collection[Any], file: str) -> None:
        """Note that the test of *file* used *fixtures*, and may have used what files did while they were loaded."""
        loaded = (why for name, why in self._loaded.items() if self.relies_on(file, name))
        self.note(next((why for fixture, why in self._fixtures if fixture in fixtures), next(loaded, "")))

    def _find_place(self) -> tuple[str, bool]:
        """Return the file of the tests that is just being loaded, else that whose code runs, and whether it is loaded.

        An empty name: no code of theirs runs.
        """
        frame: Any = sys._getframe(2)  # noqa: SLF001  there is no other way to see who asks
        place = ""
        while frame is not None:
            if self._is_file(file := frame.f_globals.get("__file__")):
                place = str(file)
                if frame.f_code.co_name == "<module>":
                    return place, True
            frame = frame.f_back
        return place, False

    def _describe(self, kind: type) -> tuple[bool, str, str]:
        """Return whether an object of *kind* may be a double, and what is to be said of that and of such an object."""
        bodies = [*self._list_bodies(kind), *self._list_bodies(type(kind))]
        if self._find_method(bodies, DATA | COMPARING):
            return True, f"a class with methods, {kind.__name__}", f"a {kind.__name__}, which has methods"
        if mocks.is_mock(kind):
            return True, f"a {kind.__name__}", f"a {kind.__name__}"
        data = bodies or issubclass(kind, BaseException) or kind.__module__ in library_values.NAMESPACES
        return bool(bodies), "", "" if data or kind is object else f"a {kind.__name__}"

    def _list_bodies(self, kind: type) -> list[dict[str, Any]]:
        return [dict(vars(base)) for base in type.__getattribute__(kind, "__mro__") if self._is_own_class(base)]

    def _find_method(self, bodies: Iterable[Mapping[str, Any]], passive: Collection[str]) -> str:
        """Return the name of a method of the tests in *bodies*, of classes, but for the *passive* ones; or ""."""
        members = (pair for body in bodies for pair in body.items() if pair[0] not in passive)
        return next((name for name, value in members if any(map(self._is_own, list_functions(value)))), "")


def find_equality(kind: type) -> str:
    """Return the name of a method by which objects of *kind* compare that a person wrote, and not for Python; or ""."""
    for base in type.__getattribute__(kind, "__mro__"):
        if vars(base).get(EXTENDS) is False:
            continue
        package = str(base.__module__).partition(".")[0]
        if package in getattr(sys, "stdlib_module_names", ("builtins",)) and package != "unittest":
            continue
        for name in sorted(EQUALITIES.intersection(vars(base))):
            code = getattr(vars(base)[name], "__code__", None)
            if vars(base)[name] is not None and not (code and code.co_filename.startswith("<")):  # as of a dataclass
                return name
    return ""
