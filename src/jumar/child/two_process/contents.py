"""Computes special methods of built-in types from the content that crossed: what a subclass answers is no evidence."""

from __future__ import annotations

import collections
import math
import operator
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NoReturn

from jumar.child.two_process import proxies
from jumar.child.two_process.wire import endings, library_values
from jumar.child.two_process.wire.containers.shared_container import CHANGING, get_fact

ARITHMETIC: dict[str, Any] = {
    name: getattr(operator, f"__{name}__")
    for name in ("add", "and", "floordiv", "lshift", "matmul", "mod", "mul", "or", "pow", "rshift", "sub", "truediv",
                 "xor")
}  # fmt: skip

OPERATORS: dict[str, Any] = {
    **{f"__{name}__": make for name, make in ARITHMETIC.items()},
    **{f"__i{name}__": getattr(operator, f"__i{name}__") for name in ARITHMETIC},
    **{f"__r{name}__": lambda one, other, make=make: make(other, one) for name, make in ARITHMETIC.items()},
    "__divmod__": divmod,
    "__rdivmod__": lambda one, other: divmod(other, one),
    **{f"__{name}__": getattr(operator, f"__{name}__") for name in ("abs", "invert", "neg", "pos")},
    **{f"__{name}__": getattr(math, name) for name in ("ceil", "floor", "trunc")},
    "__round__": round,
}
"""Operators of numbers and sets, by which tests measure how far a value is from what they expect."""

HEARING = proxies.COMPARING - {"__contains__"} | OPERATORS.keys()
"""Special methods that tell a value of the tests. `in` is asked of what a test made itself alone."""

READ: dict[str, Any] = {
    **{f"__{kind.__name__}__": kind for kind in (bool, complex, float, int)},
    **{f"__{name}__": getattr(operator, name) for name in ("contains", "getitem", "index")},
    "__hash__": hash,
    "__len__": len,
    "__missing__": operator.getitem,  # of a Counter that is 0, and of a dict nothing
    "__iter__": list,
    "__reversed__": lambda content: list(reversed(content)),
}
"""Special methods that tell of a content: those of a subclass have to come to the same."""

DIRECT = ("__contains__", "__getitem__", "__hash__", "__len__")
"""Methods among them that need no copy of the content."""

WALKS = ("__iter__", "__reversed__")
"""Methods among them that give an iterator."""

SHOWN: dict[str, Any] = {"__str__": str, "__repr__": repr, "__format__": format, "__bytes__": bytes}
"""Special methods by which a subclass may show its content in a way of its own, until it hears a value of the tests."""

CONTENTS: dict[type, Any] = {
    **{
        base: lambda thing, base=base: library_values.get_bare_value(thing, base)
        for base in (int, float, complex, frozenset, str, bytes, tuple)
    },
    collections.Counter: lambda thing: collections.Counter(dict(dict.items(thing))),
    dict: lambda thing: dict(dict.items(thing)),
    **{kind: lambda thing, kind=kind: kind(kind.__iter__(thing)) for kind in (set, list, collections.deque)},
    bytearray: lambda thing: bytearray(memoryview(thing)),
}
"""Types whose content crosses, and how it is had."""

TEXTS = (str, bytes)
"""Types of them whose subclasses may have operators of their own (`Markup` escapes)."""

SEQUENCES = (list, tuple, collections.deque, bytearray)
"""Types of them whose subclasses may have operators of their own among themselves, as vectors have."""

UNORDERED = (set, frozenset, dict)
"""Types among them that may be iterated in any order."""

NUMBERS = (int, float, complex)
"""Types of them whose hashes are the same in each process."""

FAILURES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Exceptions of the methods of built-in types."""

VALUES = (BaseException, *library_values.LASTING, *CHANGING)
"""Types whose instances are true or false by their content."""

NOTHING = object()
"""Stands for what the content of an object does not have."""

COMBINING = frozenset(f"__{name}__" for name in ("and", "invert", "or", "rand", "ror", "rxor", "xor"))
"""Operators that make another query of a query."""

NEUTRAL = frozenset(f"__{name}__" for name in ("call", "hash", "repr", "str", "doc", "name"))
"""Methods and attributes of a query that say nothing of its truth."""

ASKING = COMBINING | {"__call__"}
"""Methods for which a query is there."""

COMPARED = "_jumar_compared"
"""Mark of an object that a comparison of the product came to: a query, as in `where("size") == 3`."""

HEARD = "_jumar_heard"
"""Mark of an object that an operator made of a thing and a value of the tests: the name of the operator."""

OWNER = "_jumar_owner"
"""Mark of what a container gave as an attribute: its number, and whether its built-in type has such a method."""

MUTATING = frozenset(f"__{name}__" for name in ("setitem", "delitem", "missing", *(f"i{one}" for one in ARITHMETIC)))
"""Special methods that change a container by custom."""

TELLING = (READ.keys() | SHOWN.keys()) - MUTATING
"""Special methods that change nothing."""

DIFFERENCES = frozenset(
    f"__{how}{name}__"
    for how in ("", "r", "i")
    for name in ("and", "divmod", "floordiv", "lshift", "matmul", "mod", "rshift", "sub", "truediv", "xor")
)
"""Operators whose result may be nothing, or one, where both operands are the same."""

LAST_DIGIT = 1e-12
"""Relative difference of what arithmetic of libraries comes to."""


def find_base(thing: Any) -> Any:
    """Return the built-in type whose content *thing*, of the product, has, or None."""
    return next((kind for kind in CONTENTS if isinstance(thing, kind)), None)


def compute(thing: Any, name: str, others: tuple[Any, ...]) -> Any:
    """Return what the special method *name* of the content of *thing* comes to, or `NOTHING`."""
    base = find_base(thing)
    make = OPERATORS.get(name) or READ.get(name) or SHOWN.get(name)
    if base is None or make is None:
        return NOTHING
    try:
        if name == "__getitem__" and issubclass(base, dict):
            look_up: Any = dict.get
            return look_up(thing, *others, 0 if base is collections.Counter else NOTHING)
        if name in DIRECT and hasattr(base, name):
            return getattr(base, name)(thing, *others)
        return make(CONTENTS[base](thing), *map(_get_content, others))
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return NOTHING


def _get_content(other: Any) -> Any:
    """Return the content of *other*, another thing of the product, which would be asked itself; a value as it is."""
    return CONTENTS.get(find_base(other), lambda value: value)(other)


def agrees(answer: Any, due: Any) -> bool:
    """Return whether *answer*, of the product, is *due*, but for a last digit, as arithmetic of libraries has it."""
    kind: Any = type(due)
    if answer is due or isinstance(due, proxies.Proxy):
        return answer is due
    if kind is float and isinstance(answer, float):
        return math.isclose(answer, due, rel_tol=LAST_DIGIT) or (math.isnan(answer) and math.isnan(due))
    return isinstance(answer, kind) and kind.__eq__(answer, due) is True


def walk(thing: Any, iterator: Any, due: list[Any]) -> Any:
    """Return an iterator over what *iterator*, of the product's *thing*, gives, or None if that is not *due*."""
    items: list[Any] = []
    while len(items) <= len(due):
        try:
            items.append(next(iterator))
        except StopIteration:
            break
    if isinstance(thing, UNORDERED):
        same = dict.fromkeys(items).keys() == dict.fromkeys(due).keys()
    else:
        same = all(map(agrees, items, due))
    return iter(items) if same and len(items) == len(due) else None


def is_heard(thing: Any, others: tuple[Any, ...]) -> bool:
    """Return whether an operator of *thing*, of the product, tells it anything of the tests, or did so before."""
    told = any(not isinstance(other, (proxies.Proxy, proxies.ProxyClass)) for other in others)
    return told or any(get_fact(part, HEARD) for part in (thing, *others))


def may_answer(answer: Any, name: str, thing: Any, others: tuple[Any, ...], due: Any) -> bool:
    """Return whether *answer* may be what *name* of *thing* came to: what is *due*, or an object that heard a value."""
    base = find_base(thing)
    if not is_heard(thing, others) or (name == "__round__" and not get_fact(thing, HEARD)):
        return answer is NotImplemented or base in (None, *TEXTS, *SEQUENCES) or agrees(answer, due)
    if answer is NotImplemented:  # Python raises an exception then
        return endings.is_operation_awaited()
    if due is not NOTHING:
        return isinstance(answer, TEXTS) if base in TEXTS else agrees(answer, due)
    return isinstance(answer, proxies.Proxy) and not isinstance(answer, VALUES)


def has_own_hash(thing: Any) -> bool:
    """Return whether a class of the product hashes *thing*."""
    owner = next(base for base in type(thing).__mro__ if "__hash__" in vars(base))
    return not proxies.is_library(owner.__module__)


def is_difference(thing: Any, name: str, others: tuple[Any, ...]) -> bool:
    """Return whether *name* tells *thing* a value that it may be the same as; by `/` a text is joined to a path."""
    joins = name == "__truediv__" and type(others[0]) is str
    return name in DIFFERENCES and not joins and is_heard(thing, others)


def may_tell(thing: Any, name: str) -> bool:
    """Return whether *thing*, which has heard a value of the tests, may be asked for its special method *name*.

    That is an operator, a comparison (which comes to a query, if to anything), or what its content tells as well.
    """
    told = find_base(thing) and (name in READ or name in SHOWN)
    return bool(told) or name in OPERATORS or name in proxies.COMPARING - {"__contains__"}


def _note_read(thing: Any, base: Any, name: str, found: Any, give_up: Callable[[str], NoReturn]) -> None:
    """Note whose *found* is, the attribute *name* of *thing*; give up where a number has other data than it is."""
    if isinstance(found, proxies.Proxy):
        object.__setattr__(found, OWNER, (proxies.get_number(thing), hasattr(base, name)))
    data = base in NUMBERS and name[:2] != "__" and not callable(getattr(base, name, len))
    if data and not agrees(found, getattr(CONTENTS[base](thing), name)):
        give_up(f"{name} of a {type(thing).__name__} is not that of its content")


def check_method(thing: Any, name: str, found: Any, give_up: Callable[[str], NoReturn]) -> Any:
    """Return *found*, the attribute *name* of *thing*; a method that its built-in type has, too, has to do the same.

    What `copy`, `items` or `sort` of a subclass gives or changes is compared with what that of the content does: one
    that says another thing says no more of the content. A field of a named tuple may have such a name, too.
    """
    base = find_base(thing)
    if base is not None:
        _note_read(thing, base, name, found, give_up)
    if base is None or name[:2] == "__" or not (callable(getattr(base, name, None)) and callable(found)):
        return found

    def call(*args: Any, **keywords: Any) -> Any:
        args = tuple(list(arg) if isinstance(arg, Iterator) else arg for arg in args)  # both go through it
        content, failure = CONTENTS[base](thing), None
        try:
            due = getattr(content, name)(*args, **keywords)
        except FAILURES as error:
            failure, due = type(error), NOTHING
        try:
            answer = found(*args, **keywords)
        except FAILURES as error:
            if failure is None or not isinstance(error, failure):
                give_up(f"{name} of a {type(thing).__name__} fails, and that of its content does not")
            raise
        if isinstance(due, Iterable) and not isinstance(due, (*CONTENTS, proxies.Proxy)):  # a view or an iterator
            due = list(due)
            answer = answer if isinstance(answer, Collection) else walk(thing, answer, due)
            same = answer is not None and list(answer) == due
        else:
            same = failure is None and agrees(answer, due)
        if not same or CONTENTS[base](thing) != content:
            give_up(f"{name} of a {type(thing).__name__} does something else than that of its content")
        return answer

    if isinstance(found, proxies.Proxy):  # handed to the product, it is that method
        vars(call)[proxies.NUMBER] = proxies.get_number(found)
    return call
