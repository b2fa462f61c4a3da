"""Comparisons and assertions of the tests: which run, who asserts, what is data of one object that the product has."""

from __future__ import annotations

import collections
import contextlib
import dis
import gc
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from jumar.child.challenge.questions import Listener

RECENT = 32
"""Operands before an assertion that are remembered: a test may compare without end and assert nothing."""

CONTAINERS = (dict, list, set, collections.deque, collections.OrderedDict, collections.defaultdict, collections.Counter)
"""Types of what the product could fill with what it hears."""


FAILING = ("AssertionError", "fail", "raises")
"""Names by which a function fails a test, beside those that begin with `assert`."""

RAISING = {(dis.opmap.get("LOAD_ASSERTION_ERROR"), 0), (dis.opmap.get("LOAD_COMMON_CONSTANT"), 0)}
"""Instructions of `assert` that is not rewritten."""


class Assertions:
    """Functions of the tests that assert: methods of doubles, and what a test hands out to be run."""

    def __init__(self) -> None:
        self._methods: set[str] = set()
        self._local: set[str] = set()
        """Of classes in the function of the test that runs."""
        self._idle: dict[types.CodeType, str] = {}
        """Functions with a comparison in them that this test handed out, and that did not run."""

    def note_code(self, code: types.CodeType) -> None:
        """Note *code*, which is run, of a file of the tests."""
        self._methods.update(_list_asserting(code))

    def begin_test(self, codes: Iterable[types.CodeType]) -> None:
        """Forget what only one test has; *codes* are those of the one that begins."""
        self._idle.clear()
        self._local = {name for code in codes for name in _list_asserting(code)}

    def may_assert(self, name: str) -> bool:
        """Return whether a double of the tests has a method *name* that asserts."""
        return name in self._methods or name in self._local

    def note_handed(self, function: Any) -> None:
        """Note that this test hands out *function*."""
        if type(function) is types.FunctionType and _asserts(function.__code__) and _compares(function.__code__):
            self._idle[function.__code__] = function.__name__

    def note_run(self, function: Any) -> None:
        """Note that the product had *function* run."""
        if type(function) is types.FunctionType:
            self._idle.pop(function.__code__, None)

    def find_idle(self) -> str:
        """Return what is wrong if a function that asserts never ran, or ""."""
        idle = next(iter(self._idle.values()), "")
        return f"{idle}, which asserts, was handed to the product, which did not run it" if idle else ""


def _list_inner(code: types.CodeType) -> list[types.CodeType]:
    return [const for const in code.co_consts if isinstance(const, types.CodeType)]


def _list_asserting(code: types.CodeType) -> Iterator[str]:
    """Yield the names of methods that assert, of the classes in *code* that hold no tests: doubles may have them.

    What is in functions of tests is theirs.
    """
    inner = _list_inner(code)
    if "__qualname__" in code.co_names and not any(one.co_name.startswith("test") for one in inner):
        yield from (one.co_name for one in inner if _asserts(one))
    for one in inner:
        if not one.co_name.startswith("test"):
            yield from _list_asserting(one)


def _asserts(code: types.CodeType) -> bool:
    """Return whether *code* raises an assertion, or calls what does so by its name."""
    named = any(name.lower().startswith("assert") or name in FAILING for name in code.co_names)
    steps = zip(code.co_code[::2], code.co_code[1::2])  # noqa: B905  Python 3.8 has no `strict`
    return named or not RAISING.isdisjoint(steps) or any(map(_asserts, _list_inner(code)))


def _compares(code: types.CodeType) -> bool:
    """Return whether *code* compares, or calls an assertion of `unittest`."""
    compared = any(dis.opname[step] == "COMPARE_OP" for step in code.co_code[::2])
    return compared or any(name.startswith("assert") for name in code.co_names)


class Operands(Listener):
    """Notes what is compared up to the next assertion, and objects of the tests that the product has in this test.

    *fault* records why the test is no evidence; *get_fact* reads what was noted of a thing.
    """

    def __init__(self, fault: Callable[[str], None], get_fact: Callable[[Any, str], Any]) -> None:
        self._fault, self._get_fact = fault, get_fact
        self._handed: dict[int, Any] = {}
        """Objects of the tests that the product has, with their data."""
        self._seen: collections.deque[Any] = collections.deque(maxlen=RECENT)

    def begin_test(self) -> None:
        """Forget what only one test has seen."""
        self._handed.clear()
        self._seen.clear()

    def note_handed(self, thing: Any) -> None:
        """Note that the product gets *thing*, an object of the tests."""
        self._handed[id(thing)] = thing

    def call(self, name: str, function: Any) -> None:
        """Doubt the test if *function*, which asserts, is the product's: it says itself what holds."""
        if self._get_fact(function, "_jumar_thing") is not None:
            self._fault(f"{name} is a function of the product, which says itself what holds")

    def see(self, value: Any) -> None:
        """Note that *value* is compared, if it could matter: what is kept here lives longer than the tests know."""
        self._seen.append(value if type(value) in CONTAINERS else None)

    def settle(self) -> None:
        """Look at what was compared, now that an assertion has come of it."""
        seen = list(self._seen)
        self._seen.clear()
        if self._handed and any(map(self._is_of_one_object, seen, seen[1:])):
            self._fault(
                "both operands of a comparison are data of an object that the product has: it may know or set it"
            )

    def _is_of_one_object(self, left: Any, right: Any) -> bool:
        """Return whether *left* and *right* are containers that one object holds which the product has."""
        if left is None or right is None:
            return False
        sides = {id(left), id(right)}
        return any(sides <= set(map(id, _list_held(thing))) for thing in self._handed.values())


def _list_held(thing: Any) -> list[Any]:
    """Return what *thing*, an object of the tests, holds: in slots, too."""
    return gc.get_referents(thing, getattr(thing, "__dict__", None))


class Queries:
    """Objects of the product that comparisons came to: each has to be handed back by the test that made it."""

    def __init__(self) -> None:
        self._own: dict[int, str] = {}
        """Numbers of those that this test has made and not handed back, each with the name of its class."""
        self._shared: dict[int, str] = {}
        """The same of those that a fixture of several tests has made: each of them may use them."""

    def add(self, number: int, name: str, *, lasting: bool) -> None:
        """Note a new one of the class *name*; a *lasting* one is of a fixture of several tests."""
        (self._shared if lasting else self._own)[number] = name

    def find_unasked(self) -> str:
        """Return the class of one that was not handed back (its presence may decide); forget those of this test."""
        unasked = next(iter((*self._own.values(), *self._shared.values())), "")
        self._own.clear()
        return unasked

    def hand_back(self, number: int) -> None:
        """Note that the product hears of its thing *number*."""
        self._own.pop(number, None)
        self._shared.pop(number, None)

    @contextlib.contextmanager
    def keep(self, thing: Any, get_number: Callable[[Any], int]) -> Iterator[None]:
        """Note nothing that is handed back of *thing* in the body."""
        kinds = [held for held in (self._own, self._shared) if held]
        number = get_number(thing) if kinds else 0
        kept = [(held, held[number]) for held in kinds if number in held]
        try:
            yield
        finally:
            for held, name in kept:
                held[number] = name
