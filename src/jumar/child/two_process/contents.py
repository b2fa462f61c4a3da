"""Operators and truths of built-in types, by the content that crossed: what an heir says otherwise is no evidence."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import fractions
import math
import operator
from typing import Any

from jumar.child.two_process import codec, proxies

ARITHMETIC: dict[str, Any] = {
    name: getattr(operator, f"__{name}__")
    for name in ("add", "and", "floordiv", "mod", "mul", "or", "pow", "sub", "truediv", "xor")
}


TRUTHS = ("is", "startswith", "endswith")
"""Beginnings of the methods of built-in types that say a truth."""

OPERATORS: dict[str, Any] = {
    **{f"__{name}__": make for name, make in ARITHMETIC.items()},
    **{f"__r{name}__": lambda one, other, make=make: make(other, one) for name, make in ARITHMETIC.items()},
    "__divmod__": divmod,
    "__abs__": abs,
    "__neg__": operator.neg,
    "__round__": round,
}
"""Operators of numbers and sets, by which tests measure how far a value is from what they expect."""

MEASURES = (int, float, complex, decimal.Decimal, fractions.Fraction, dt.timedelta, set, frozenset, dict)
"""Types of what they come to, heirs included (`Counter`)."""

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
"""Types of them whose heirs may have operators of their own (`Markup` escapes)."""

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
        measured = isinstance(answer, MEASURES) and not isinstance(answer, proxies.Proxy)
        return not measured or any(isinstance(other, proxies.Proxy) for other in others)
    try:
        content: Any = OPERATORS[name](CONTENTS[base](thing), *others)
    except (ArithmeticError, TypeError):
        return answer is NotImplemented
    kind: Any = type(content)
    if kind is float and isinstance(answer, float):
        return math.isclose(answer, content, rel_tol=LAST_DIGIT) or (math.isnan(answer) and math.isnan(content))
    return isinstance(answer, kind) and kind.__eq__(answer, content) is True


def find_truth(thing: Any, name: str) -> Any:
    """Return the method *name* of the content of *thing*, if it is one that says a truth (`issubset`); else None."""
    if not name.startswith(TRUTHS):
        return None
    base = next((kind for kind in CONTENTS if isinstance(thing, kind) and hasattr(kind, name)), None)
    return getattr(CONTENTS[base](thing), name) if base else None
