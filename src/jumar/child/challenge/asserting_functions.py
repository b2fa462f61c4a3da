"""Finds functions of the tests that assert, and those that a test hands out and nobody runs."""

from __future__ import annotations

import dis
import functools
import linecache
import re
import types
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from jumar.child.challenge.syntax import NAME

FAILING = ("AssertionError", "fail", "raises")
"""Names by which a function fails a test, beside those that begin with `assert`."""

RAISING = {(dis.opmap.get("LOAD_ASSERTION_ERROR"), 0), (dis.opmap.get("LOAD_COMMON_CONSTANT"), 0)}
"""Instructions of `assert` that is not rewritten."""

COMPARING = ("COMPARE_OP", "CONTAINS_OP", "IS_OP")
"""Instructions that compare."""

COMPARED = frozenset(("see", "call", "call_false", "look", "see_kind"))
"""Methods of `Questions` that a file which is rewritten calls where it compares."""

LATER = 0x20 | 0x80 | 0x200
"""Flags of the code of generators and coroutines: to call such a function runs nothing of it."""

CALL = re.compile(r"(?<!super\(\))\.(\w+)\s*\(")
"""Call of a method by its name, but for that of a class above."""

UNCALLED = frozenset(("__init__", "__set_name__", "__set__", "__delete__", "__post_init__"))
"""Special methods that the product cannot call."""

DEEPEST = 4
"""Layers of methods, partial functions and mocks around a function."""


class HandedFunctions:
    """Functions of the tests with a comparison in them that the product has, to call: each has to come to one.

    Those that a file hands out while it is loaded, or a fixture of several tests, count in each test that may rely on
    them: *relies_on* tells if those of one file do on another one.
    """

    def __init__(self, relies_on: Callable[[str, str], bool]) -> None:
        self._relies_on = relies_on
        self._called: set[str] = set()
        """Names of methods that the files of the tests call: those are not the product's alone."""
        self._idle: list[tuple[Any, types.FunctionType]] = []
        self._ran: list[tuple[Any, types.FunctionType]] = []
        """The same of those that ran: they may be handed out again, to be removed from where they stand."""
        self._kinds: weakref.WeakKeyDictionary[type, list[types.FunctionType]] = weakref.WeakKeyDictionary()
        """Class -> its methods that assert: it is asked for with each of its objects that crosses."""
        self._methods: dict[types.FunctionType, None] = {}
        """Methods of objects and classes that this test hands out."""
        self._standing: dict[str, dict[types.FunctionType, None]] = {}
        """File -> functions that it hands out for several tests."""

    def read(self, file: str) -> str:
        """Return the text of a *file* of the tests; note which methods it calls by their names."""
        text = "".join(linecache.getlines(file))
        self._called.update(CALL.findall(text))
        return text

    def begin_test(self) -> None:
        """Forget what only one test has."""
        self._idle, self._ran = [], []
        self._methods.clear()

    def note_handed(self, thing: Any, *, lasting: bool) -> None:
        """Note that *thing* is handed out, which may be a function, or call one."""
        function = find_function(thing)
        if function is None or function in self._methods:
            return
        known = any(one is function and _is_same(thing, other) for other, one in (*self._idle, *self._ran))
        if not known and _counts(function):
            self._stand(function) if lasting else self._idle.append((thing, function))

    def note_class(self, kind: type, list_bodies: Callable[[type], Iterable[Any]], *, lasting: bool) -> None:
        """Note *kind*, of which the product has an instance, or itself. Its bodies are listed once."""
        if kind not in self._kinds:
            self._kinds[kind] = [one for body in list_bodies(kind) for one in _list_asserting(body)]
        self._add(self._kinds[kind], lasting=lasting)

    def note_body(self, body: Any, *, lasting: bool) -> None:
        """Note the *body* of a class of the tests that extends one of the product."""
        self._add(_list_asserting(body), lasting=lasting)

    def _add(self, functions: Iterable[types.FunctionType], *, lasting: bool) -> None:
        for function in functions:
            self._stand(function) if lasting else self._methods.setdefault(function)

    def _stand(self, function: types.FunctionType) -> None:
        self._standing.setdefault(str(function.__globals__.get("__file__")), {})[function] = None

    def note_run(self, thing: Any) -> None:
        """Note that the product called *thing*, which came to its end."""
        function = find_function(thing) if self._idle else None
        self._end(lambda other, one: one is function and not one.__code__.co_flags & LATER and _is_same(thing, other))

    def note_stepped(self, thing: Any) -> None:
        """Note that *thing*, a coroutine or generator, which tells its code alone, came to its end."""
        code = getattr(thing, "cr_code", None) or getattr(thing, "gi_code", None)
        self._end(lambda _, one: one.__code__ is code)

    def _end(self, ended: Callable[[Any, types.FunctionType], bool]) -> None:
        self._ran += [pair for pair in self._idle if ended(*pair)]
        self._idle = [pair for pair in self._idle if not ended(*pair)]

    def find_idle(self, file: str, compared: Collection[types.CodeType]) -> str:
        """Return what is wrong in the test of *file* if a function that asserts came to nothing; or "".

        *compared* is the code that compared something in that test.
        """
        if self._idle:
            return f"{self._idle[0][1].__name__}, which asserts, was handed to the product, which did not run it"
        standing = (held for name, held in self._standing.items() if self._relies_on(file, name))
        methods = chain(self._methods, *standing)
        functions = [*(one for _, one in self._ran), *(one for one in methods if one.__name__ not in self._called)]
        name = next((one.__name__ for one in functions if not _came(one, compared)), "")
        return f"{name}, which asserts, is the product's to call, and compared nothing" if name else ""


def _came(function: types.FunctionType, compared: Collection[types.CodeType]) -> bool:
    """Return whether *function* is among what *compared*; nobody knows of one whose file was not rewritten."""
    codes = [code for each in list_codes(function) for code in list_all(each)]
    return any(code in compared for code in codes) or not any(NAME in code.co_names for code in codes)


def _is_same(thing: Any, other: Any) -> bool:
    """Return whether two things that call the same function are told apart by nothing that they hold."""
    if type(thing) is types.MethodType and type(other) is types.MethodType:
        return thing.__self__ is other.__self__
    return thing is other


def find_function(thing: Any) -> Any:
    """Return the function that is run where *thing* is called: of a method, a partial function, an object, a mock."""
    for _ in range(DEEPEST):
        kind = type(thing)
        if kind is types.FunctionType:
            return thing
        if kind is types.MethodType:
            thing = thing.__func__
        elif kind is functools.partial:
            thing = thing.func
        else:
            effect = getattr(thing, "__dict__", {}).get("_mock_side_effect")
            called = (vars(base)["__call__"] for base in kind.__mro__ if "__call__" in vars(base))
            thing = next(called, None) if effect is None else effect
    return None


def list_functions(value: Any) -> list[Any]:
    """Return the functions of *value*, which a class has in its body."""
    if issubclass(type(value), property):
        return [part for part in (value.fget, value.fset, value.fdel) if part]
    return [value.__func__ if issubclass(type(value), (staticmethod, classmethod)) else value]


def _list_asserting(body: Mapping[str, Any]) -> list[types.FunctionType]:
    """Return the methods in *body*, of a class, that assert and that the product can call."""
    members = (value for name, value in body.items() if name[:4] != "test" and name not in UNCALLED)
    functions = (one for value in members for one in list_functions(value) if type(one) is types.FunctionType)
    return list(filter(_counts, functions))


def _counts(function: types.FunctionType) -> bool:
    return asserts(function) and any(map(_compares, list_codes(function)))


def list_all(code: types.CodeType) -> list[types.CodeType]:
    """Return *code*, and that of the functions in it."""
    return [code, *(each for inner in _list_inner(code) for each in list_all(inner))]


def _list_inner(code: types.CodeType) -> list[types.CodeType]:
    return [const for const in code.co_consts if isinstance(const, types.CodeType)]


def asserts(function: types.FunctionType) -> bool:
    """Return whether *function* raises an assertion, or a function of the tests does that it names."""
    return any(map(_asserts, list_codes(function)))


def list_codes(function: types.FunctionType) -> Iterator[types.CodeType]:
    """Yield the code of *function*, and of the functions of files of tests that it names."""
    yield function.__code__
    for name in function.__code__.co_names:
        helper: Any = function.__globals__.get(name)
        held = helper.__globals__ if type(helper) is types.FunctionType else {}
        if NAME in held or held is function.__globals__:
            yield helper.__code__


@functools.lru_cache(maxsize=1000)
def _asserts(code: types.CodeType) -> bool:
    """Return whether *code* raises an assertion, or calls what does so by its name."""
    named = any(name.lower().startswith("assert") or name in FAILING for name in code.co_names)
    steps = zip(code.co_code[::2], code.co_code[1::2])  # noqa: B905  Python 3.8 has no `strict`
    return named or not RAISING.isdisjoint(steps) or any(map(_asserts, _list_inner(code)))


@functools.lru_cache(maxsize=1000)
def _compares(code: types.CodeType) -> bool:
    """Return whether *code* compares, or calls an assertion of `unittest`. Where pytest rewrote it, `in` is its own."""
    if NAME in code.co_names:
        return not COMPARED.isdisjoint(code.co_names)
    known = COMPARING[:1] if "@pytest_ar" in code.co_names else COMPARING
    compared = any(dis.opname[step] in known for step in code.co_code[::2])
    return compared or any(name.startswith("assert") for name in code.co_names)
