"""Tells whether an object of the code under test may decide what a comparison comes to.

Values of Python's own types say themselves what equals them. An object with an equality, an order or a content of its
own may say anything, and no number of questions tells whether it is right.
"""

from __future__ import annotations

import gc
import math
import sys
import types
import weakref
from collections.abc import Callable
from random import Random
from typing import Any

PLAIN = frozenset(map(id, (
    bool, int, float, complex, str, bytes, bytearray, type(None), type(...), type, types.FunctionType,
    types.BuiltinFunctionType, types.ModuleType, range,
)))  # fmt: skip
"""Types whose objects cannot lie; by identity, since a class can have an equality, too."""

REFERRING = (weakref.ProxyType, weakref.CallableProxyType, weakref.ReferenceType)
"""Types whose objects compare as another object does, which they do not show to hold."""

CONTAINERS = frozenset(map(id, (list, tuple, dict, set, frozenset)))

DECIDING = frozenset({
    "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__contains__", "__iter__", "__getitem__", "__len__",
    "__class__", "__getattr__", "__getattribute__", "__instancecheck__", "__subclasscheck__", "get", "keys", "items",
    "startswith", "endswith",
    *(f"__{how}{name}__" for name in ("sub", "and", "xor", "mod", "truediv", "floordiv") for how in ("", "r", "i")),
})  # fmt: skip
"""Methods by which an object says what it is, hears what is expected, or answers with something else."""

HEAP = 1 << 9
"""Flag of classes that are made while a program runs, as the interpreter has it (`Py_TPFLAGS_HEAPTYPE`)."""

CODE = (types.FunctionType, classmethod, staticmethod, property)
_QUALIFIED: Callable[[type], str] = vars(type)["__qualname__"].__get__

DEEPEST = 20
MOST = 500
"""Objects in an operand that are looked at."""


def measure_plain(value: Any, depth: int = 0) -> int:
    """Return the number of things that *value* is and holds, if all say themselves what equals them.

    Else it is negative, and how many were looked at.
    """
    kind, count = id(type(value)), 1
    if kind in PLAIN:
        return 1
    if kind not in CONTAINERS or depth > DEEPEST:
        return -1
    items = [*value.values(), *value] if type(value) is dict else value
    if PLAIN.issuperset(map(id, map(type, items))):  # at once: a test may look into a large one many thousand times
        return 1 + len(items)
    for item in items:
        inner = measure_plain(item, depth + 1)
        count += abs(inner)
        if inner < 0:
            return -count
    return count


def find_deciding(value: Any, decides: Callable[[type], bool]) -> list[Any]:
    """Return the objects in *value* whose class *decides*; *value* itself where there is too much in it to know."""
    todo, seen, found = [value], {id(value): value}, []
    while todo and len(seen) < MOST:
        at = todo.pop()
        if id(type(at)) in PLAIN:
            continue
        if issubclass(type(at), REFERRING) or decides(type(at)) or _is_array_of_objects(at):
            found.append(at)
            continue
        if _is_alone(type(at)):
            continue
        for one in gc.get_referents(at):
            if id(one) not in seen and not isinstance(one, type):
                seen[id(one)] = one
                todo.append(one)
            if len(seen) > MOST:
                break
    return found or ([value] if todo else [])


def _is_array_of_objects(value: Any) -> bool:
    return getattr(getattr(value, "dtype", None), "hasobject", False) is True


def _is_alone(kind: type) -> bool:
    """Return whether an object of *kind* is equal to itself alone, whatever it holds."""
    made = all(base is object or base.__flags__ & HEAP for base in type.mro(kind))
    return made and kind is not object and not list_deciding(kind)


def list_deciding(kind: type) -> list[type]:
    """Return the bases of a class that have such a method and were made by a statement `class`."""
    bases = type.mro(kind)
    return [base for base in bases if base.__flags__ & HEAP and not DECIDING.isdisjoint(vars(base))]


def is_where_it_says(kind: type) -> bool:
    """Return whether the module of which a class says that it is has it by its name; the code under test may say so.

    So has one without code of its own that is made of such a class, as each mock is.
    """
    at: Any = sys.modules.get(str(vars(kind).get("__module__") or "builtins"))
    for name in _QUALIFIED(kind).split("."):
        at = vars(at).get(name) if isinstance(at, (type, types.ModuleType)) else None
    if at is kind or not kind.__flags__ & HEAP:
        return True
    own = any(isinstance(value, CODE) for value in vars(kind).values())
    return not own and len(kind.__bases__) == 1 and is_where_it_says(kind.__bases__[0])


def holds(question: Callable[[], Any]) -> bool:
    """Return whether the answer to a question is true; one that is refused is not."""
    try:
        return bool(question())
    except BaseException:  # noqa: BLE001  whatever it says, it does not affirm; a time limit rings again
        return False


def affirms_all(operator: str, value: Any, random: Random) -> bool:
    """Return whether *value* says that it is what nothing is equal to, or lies on both sides of everything.

    What is of a built-in type says what it is: it is no other value of that type either, leaves a difference, and has
    nothing else. What stands for an object in another process is not asked: there it decides nothing.
    """
    if any(str(vars(base).get("__module__")).startswith("jumar.") for base in type.mro(type(value))):
        return False
    number = random.randint(10**6, 10**9) * 1.5
    text = "".join(random.choices("aeiorstnlcdmpu", k=12))
    odd: Any = complex(0, number * 1e150)
    if operator[0] in "<>":
        return holds(lambda: (value < -math.inf) is True) and holds(lambda: (value > math.inf) is True)
    known: dict[type, list[Callable[[], Any]]] = {
        str: [lambda: value == text, lambda: text in value, lambda: value.startswith(text)],
        int: [lambda: value == int(number), lambda: value - int(number) == 0],
        float: [lambda: value == number, lambda: value - number == 0],
        object: [],
    }
    if isinstance(value, (dict, list, tuple, set)):
        known[object] = [lambda: odd in value]
    questions = next(asked for base, asked in known.items() if isinstance(value, base))
    first = (lambda: (value != odd) is False) if operator in ("!=", "not in") else (lambda: (value == odd) is True)
    return any(map(holds, (first, *questions)))
