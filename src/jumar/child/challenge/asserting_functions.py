"""Finds functions of the tests that assert, and those that a test hands out and nobody runs."""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Callable, Iterator
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

DEEPEST = 4
"""Layers of methods, partial functions and mocks around a function."""


class HandedFunctions:
    """Functions with a comparison in them that this test handed out, and that did not run."""

    def __init__(self) -> None:
        self.preparing = False
        """True while a fixture is set up: what that hands out need not be reached in each test."""
        self._idle: list[types.FunctionType] = []
        self._ran: list[types.FunctionType] = []
        """Functions of them that ran: they may be handed out again, to be removed from where they stand."""

    def begin_test(self) -> None:
        """Forget what only one test has."""
        self._idle, self._ran = [], []

    def note_handed(self, thing: Any) -> None:
        """Note that this test hands out *thing*, which may be a function, or call one."""
        function = None if self.preparing else find_function(thing)
        known = any(function is one for one in (*self._idle, *self._ran))
        if function is not None and not known and asserts(function) and any(map(_compares, _list_codes(function))):
            self._idle.append(function)

    def note_run(self, thing: Any) -> None:
        """Note that the product called *thing*, which came to its end."""
        function = find_function(thing) if self._idle else None
        self._end(lambda one: one is function and not one.__code__.co_flags & LATER)

    def note_stepped(self, thing: Any) -> None:
        """Note that *thing*, a coroutine or generator, which tells its code alone, came to its end."""
        code = getattr(thing, "cr_code", None) or getattr(thing, "gi_code", None)
        self._end(lambda one: one.__code__ is code)

    def _end(self, ended: Callable[[types.FunctionType], bool]) -> None:
        self._ran += filter(ended, self._idle)
        self._idle = [one for one in self._idle if not ended(one)]

    def find_idle(self) -> str:
        """Return what is wrong if a function that asserts never ran, or ""."""
        name = self._idle[0].__name__ if self._idle else ""
        return f"{name}, which asserts, was handed to the product, which did not run it" if name else ""


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


def _list_inner(code: types.CodeType) -> list[types.CodeType]:
    return [const for const in code.co_consts if isinstance(const, types.CodeType)]


def asserts(function: types.FunctionType) -> bool:
    """Return whether *function* raises an assertion, or a function of the tests does that it names."""
    return any(map(_asserts, _list_codes(function)))


def _list_codes(function: types.FunctionType) -> Iterator[types.CodeType]:
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
