"""Instances of the product's classes that a test made itself: how they compare is under test like any other method.

A test knows such a class by a name with a capital. An instance that the product hands back later may stand where data
was expected, so it is one no more.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from jumar.child.two_process.wire.containers.shared_container import get_fact
from jumar.child.two_process.wire.conversation import find_equality
from jumar.child.two_process.wire.endings import is_unused

MADE = "_jumar_made"
"""Fact of an instance: `OWN`, `DERIVED` (an operator made it), `BY_CLASS`, `ENTERED` or `RETURNED`."""

OWN, DERIVED, RETURNED = "own", "derived", "returned"

BY_CLASS = "by class"
"""A method that a test took from the class made it: it may stand where the data is expected that this gives."""

ENTERED = "entered"
"""A test made it, and its `__enter__` returned it: it may stand where the data is expected that a context gives."""

MINE = (OWN, DERIVED, BY_CLASS, ENTERED)
"""Facts of what a test made, or had made."""

MAKER = "_jumar_maker"
"""Fact of a method that a test took from such a class: the class."""

DECIDES = "_jumar_decides"
"""Fact of a method that hears what is expected of a text, list or set; its object may stand where one was expected."""

DECIDING = frozenset((
    "startswith", "endswith", "count", "find", "rfind", "index", "rindex", "remove",
    "partition", "rpartition", "removeprefix", "removesuffix", "is_relative_to", "samefile",
    "difference", "intersection", "isdisjoint", "issubset", "issuperset", "symmetric_difference", "union",
))  # fmt: skip
"""Methods of texts, paths, lists and sets that compare; assertions of `unittest` call some."""

CONSTANT = "_jumar_constant"
"""Fact of what a test read from its own class, as members of an enumeration are, and of what it combined of such."""

COMBINING = frozenset(("__or__", "__and__", "__xor__", "__invert__"))

CONTENTS = (str, bytes, set, frozenset, list, tuple)
"""Types with such methods: what those of an object of one come to, its content says."""

TOLD = "_jumar_told"
"""Fact of a class of the tests that extends one of the product: its data by name, which the product has."""

PLAIN = frozenset(("builtins", "collections", "datetime", "decimal", "fractions", "pathlib", "uuid"))
"""Modules of the types of constants in it, unless they are empty or nothing: those are to be filled or counted."""

REACHED = "_jumar_reached"
"""Fact of a function or method of the product: the tests found it where they look for one, by a name of theirs."""

SELVES = frozenset((
    "__enter__", "__iter__", "__pos__", "__radd__",
    *(f"__i{name}__" for name in ("add", "and", "floordiv", "lshift", "matmul", "mod", "mul", "or", "pow", "rshift",
                                  "sub", "truediv", "xor")),
))  # fmt: skip
"""Special methods that return their own object by custom: `sum` begins with `0 + one`."""


class OwnInstances:
    """Notes which things of the product the tests made themselves."""

    def __init__(self, note_back: Callable[[Any], None], fault: Callable[[str], None]) -> None:
        self._note_back, self._fault = note_back, fault
        """Hear of a thing of the tests that the product hands back, and of what is no evidence."""
        self._making: Any = None
        """The class of which the tests are making an instance."""
        self._equalities: weakref.WeakKeyDictionary[type, str] = weakref.WeakKeyDictionary()
        """Class -> a method of the tests by which its objects compare; or empty."""
        self._came: list[Any] = []
        self._returned: list[tuple[Any, str]] = []
        """Things that came with the last message though they were known, and what was noted of them before."""
        self._matched = False
        self.asks = False
        """True if the product is asked how such things compare, so that what else a test compares is come to."""

    def may_ask(self, sides: Sequence[Any]) -> bool:
        """Note whether the test compares in *sides* what it made itself; return whether the product may be asked."""
        compared = self.is_compared(sides)
        self._matched |= compared
        return compared and self.asks

    def take_matched(self) -> bool:
        """Return whether a test asked how objects that it made itself compare, or what their operators come to."""
        matched, self._matched = self._matched, False
        return matched

    @contextlib.contextmanager
    def make(self, kind: Any) -> Iterator[None]:
        """Expect an instance of *kind* in the body, which a test makes."""
        before, self._making = self._making, kind
        try:
            yield
        finally:
            self._making = before

    def note_kind(self, kind: Any) -> None:
        """Note that an object of *kind* comes: if the tests extended a class by an equality of theirs, it would decide.

        Unless a test has just made it itself.
        """
        if kind is self._making:
            return
        if kind not in self._equalities:
            self._equalities[kind] = find_equality(kind)
        if name := self._equalities[kind]:
            self._fault(f"{name} of a {kind.__name__} that the code makes or keeps would decide a comparison")

    def note_returned(self, thing: Any) -> None:
        """Note that the product hands back *thing*, which crossed before."""
        if get_fact(thing, "_jumar_thing") is not None:
            self.note_kind(type(thing))
            self._came.append(thing)
        else:
            self._note_back(thing)

    def settle(self) -> None:
        """Begin with a new message: what came with the last one, in whatever part of it, is no test's own any more."""
        self._returned = [(thing, get_fact(thing, MADE)) for thing in self._came]
        self._came = []
        for thing, _ in self._returned:
            object.__setattr__(thing, MADE, RETURNED)
            object.__setattr__(thing, REACHED, False)

    def note_method(self, found: Any, name: str, thing: Any, *, known: bool) -> str:
        """Note that the test took *found* as *name* of *thing*; *known*: that is a class or module it has by a name.

        Return what is wrong: where a text, list or set would compare stands a type, or a function of a library.
        """
        apart = get_fact(found, "_jumar_thing") is not None
        deciding = name in DECIDING and not _has(thing, name) and (not known or isinstance(thing, type))
        if deciding and callable(found) and (isinstance(found, type) or not apart):
            return f"{name} of a {type(thing).__name__} is no method of the product, and would decide a comparison"
        if not apart:
            return ""
        if isinstance(thing, type) and isinstance(found, thing):
            object.__setattr__(found, CONSTANT, True)
        if known and isinstance(thing, type):
            object.__setattr__(found, MAKER, thing)
        elif name in DECIDING and not (known or _has(thing, name)):
            own = get_fact(thing, MADE) in MINE
            object.__setattr__(found, DECIDES, "" if own else f"{type(thing).__name__}.{name}")
        return ""

    def note_made(self, thing: Any) -> None:
        """Note that the test made *thing* itself, unless it has come before."""
        if not get_fact(thing, MADE):
            object.__setattr__(thing, MADE, OWN)

    def note_result(self, answer: Any, name: str, thing: Any, frame: Any) -> str:
        """Note what the special method *name* of *thing* gave, which *frame* called; return what is wrong, or "".

        What returns its own object by custom hands nothing back, nor does what the test does nothing with.
        """
        derived = get_fact(thing, MADE) in MINE and isinstance(answer, type(thing))
        by_class = name == "__call__" and get_fact(thing, MAKER) is type(answer)
        if name in COMBINING and get_fact(thing, CONSTANT) and isinstance(answer, type(thing)):
            object.__setattr__(answer, CONSTANT, True)
        if len(self._returned) == 1 and self._returned[0][0] is answer:
            if (answer is thing and name in SELVES) or is_unused(frame):
                made = self._returned[0][1]
                entered = made == OWN and name == "__enter__" and not is_unused(frame)
                object.__setattr__(answer, MADE, ENTERED if entered else made)
        elif (derived or by_class) and not get_fact(answer, MADE):
            by_class = by_class or get_fact(thing, MADE) == BY_CLASS
            object.__setattr__(answer, MADE, BY_CLASS if by_class else DERIVED)
        plain = name == "__call__" and get_fact(answer, "_jumar_thing") is None
        deciding = get_fact(thing, DECIDES) if plain else ""
        return f"{deciding} would decide what a text, list or set is" if deciding else ""

    def is_own(self, thing: Any) -> bool:
        """Return whether a test made *thing*, or an operator of such a thing did, of the same class."""
        return get_fact(thing, MADE) in (OWN, DERIVED, ENTERED)

    def may_contain(self, thing: Any) -> bool:
        """Return whether *thing* is a test's own, so that its `in` is a method under test like any other."""
        return get_fact(thing, MADE) in (OWN, ENTERED)

    def is_compared(self, sides: Sequence[Any]) -> bool:
        """Return whether the test compares what it made itself, or two things that came of such.

        A class is asked for what it has if that is a thing, too, or if it is an enumeration: another one may stand
        where a container was expected.
        """
        if isinstance(sides[0], type):
            return is_enumeration(sides[0]) or get_fact(sides[1], "_jumar_thing") is not None
        made = [get_fact(side, MADE) for side in sides]
        things = all(get_fact(side, "_jumar_thing") for side in sides)
        return OWN in made or (len(made) > 1 and things and not {DERIVED, ENTERED}.isdisjoint(made))


def is_enumeration(kind: type) -> bool:
    """Return whether *kind* is an enumeration, here or in the product's process."""
    return any((base.__module__, base.__name__) == ("enum", "Enum") for base in kind.__mro__)


def _has(thing: Any, name: str) -> bool:
    """Return whether *thing* is of a built-in type with a method *name*: what it comes to, its content says."""
    return any(isinstance(thing, kind) and hasattr(kind, name) for kind in CONTENTS)


def list_told(body: Mapping[str, Any], kept: Collection[str], bases: Iterable[Any]) -> dict[str, Any]:
    """Return the data in *body*, of a class of the tests, but what is *kept* here, and in its *bases*, by name."""
    told: dict[str, Any] = {}
    for base in reversed(list(bases)):
        told.update(vars(base).get(TOLD, {}))
    return {**told, **{name: value for name, value in body.items() if not (name in kept or hasattr(value, "__get__"))}}


def is_constant(value: Any) -> bool:
    """Return whether *value*, in such a class, may be what is expected: it is not there to be filled, nor guessed."""
    return type(value).__module__ in PLAIN and not isinstance(value, (bool, type)) and bool(value)
