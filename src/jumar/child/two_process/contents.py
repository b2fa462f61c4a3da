"""Operators and truths of built-in types, by the content that crossed: what a subclass says is no evidence."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import fractions
import math
import operator
from typing import Any

from jumar.child.two_process import codec, proxies
from jumar.child.two_process.wire import signatures

ARITHMETIC: dict[str, Any] = {
    name: getattr(operator, f"__{name}__")
    for name in ("add", "and", "floordiv", "lshift", "matmul", "mod", "mul", "or", "pow", "rshift", "sub", "truediv",
                 "xor")
}  # fmt: skip


OPERATORS: dict[str, Any] = {
    **{f"__{how}{name}__": make for how in ("", "i") for name, make in ARITHMETIC.items()},
    **{f"__r{name}__": lambda one, other, make=make: make(other, one) for name, make in ARITHMETIC.items()},
    "__divmod__": divmod,
    "__rdivmod__": lambda one, other: divmod(other, one),
    **{f"__{name}__": getattr(operator, f"__{name}__") for name in ("abs", "invert", "neg", "pos")},
    **{f"__{name}__": getattr(math, name) for name in ("ceil", "floor", "trunc")},
    "__round__": round,
}
"""Operators of numbers and sets, by which tests measure how far a value is from what they expect.

Those that change their object come to what the others come to.
"""

DIFFERENCES = frozenset(f"__{how}{name}__" for name in ("and", "mod", "sub", "xor") for how in ("", "i", "r"))
"""Operators that leave nothing where all is as expected."""

MEASURES = (int, float, complex, decimal.Decimal, fractions.Fraction, dt.timedelta, set, frozenset, dict)
"""Types of what they come to, subclasses included (`Counter`)."""

CONTENTS: dict[type, Any] = {
    **{
        base: lambda thing, base=base: codec.get_bare_value(thing, base)
        for base in (int, float, complex, frozenset, str, bytes)
    },
    collections.Counter: lambda thing: collections.Counter(dict(dict.items(thing))),
    dict: lambda thing: dict(dict.items(thing)),
    set: lambda thing: set(set.__iter__(thing)),
}
"""Types whose content crosses, and how it is had."""

TEXTS = (str, bytes)
"""Types of them whose subclasses may have operators of their own (`Markup` escapes)."""

FIXED = (int, float, complex, frozenset, str, bytes, set)
"""Types of them whose methods are those of the content, whatever their subclasses define."""

CHANGES = frozenset(("add", "clear", "discard", "pop", "remove", "update", "difference_update", "intersection_update",
                     "symmetric_difference_update"))  # fmt: skip
"""Methods of sets that change them."""


def get_flags(thing: Any) -> Any:
    """Return the value of *thing* that crossed with it, if it is a combination of flags; else None."""
    if isinstance(thing, int) and any((k.__module__, k.__name__) == ("enum", "IntFlag") for k in type(thing).__mro__):
        return codec.get_bare_value(thing, int)
    return proxies.get_fact(thing, signatures.FLAGS) if isinstance(thing, proxies.Proxy) else None


LAST_DIGIT = 1e-12
"""Relative difference of what arithmetic of libraries comes to."""


def is_content(answer: Any, name: str, thing: Any, others: tuple[Any, ...]) -> bool:
    """Return whether *answer*, of the product, is what the operator *name* makes of the content of its *thing*.

    But for a last digit, as arithmetic of libraries has it. An object without such a content may answer with another
    object, or one of its kind: no measure of how far it is from a value of the tests.
    """
    base = next((kind for kind in CONTENTS if isinstance(thing, kind)), None)
    if base in TEXTS:
        return True
    if base is None:
        heard = [other for other in others if not isinstance(other, proxies.Proxy)]
        return not heard or name == "__round__" or not isinstance(answer, MEASURES)
    try:
        content: Any = OPERATORS[name](CONTENTS[base](thing), *others)
    except (ArithmeticError, TypeError):
        return answer is NotImplemented
    kind: Any = type(content)
    if kind is float and isinstance(answer, float):
        return math.isclose(answer, content, rel_tol=LAST_DIGIT) or (math.isnan(answer) and math.isnan(content))
    return isinstance(answer, kind) and kind.__eq__(answer, content) is True


def find_method(thing: Any, name: str) -> Any:
    """Return the method *name* of the content of *thing*, if its built-in type has one that changes nothing; else None.

    `issubset`, `find` or `difference` of a subclass could answer anything.
    """
    base = next((kind for kind in FIXED if isinstance(thing, kind)), None)
    known = base is not None and name not in CHANGES and callable(vars(base).get(name))
    return getattr(CONTENTS[base](thing), name) if base and known else None
