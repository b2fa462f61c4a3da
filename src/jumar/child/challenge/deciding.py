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
from collections.abc import Callable, Iterator, Mapping
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

# A metaclass may answer for each of these: what `type` itself knows is asked.
get_bases: Callable[[type], tuple[type, ...]] = vars(type)["__mro__"].__get__
get_names: Callable[[type], Mapping[str, Any]] = vars(type)["__dict__"].__get__
_BASES: Callable[[type], tuple[type, ...]] = vars(type)["__bases__"].__get__
_FLAGS: Callable[[type], int] = vars(type)["__flags__"].__get__
_QUALIFIED: Callable[[type], str] = vars(type)["__qualname__"].__get__

UNASKED = frozenset({
    "__module__", "__qualname__", "__doc__", "__init__", "__post_init__", "__dict__", "__weakref__", "__annotations__",
    "__slots__", "__repr__", "__hash__", "__match_args__", "__firstlineno__", "__static_attributes__",
    "__orig_bases__", "__parameters__", "__abstractmethods__", "_abc_impl",
})  # fmt: skip
"""Names in a class that no comparison comes to."""

IMPLIED = frozenset({
    "__str__", "__format__", "__bool__", "__int__", "__float__", "__index__", "__fspath__", "__bytes__",
})  # fmt: skip
"""Methods that are called without their names."""

MOCKING = "unittest.mock"
"""Module whose objects compare what they were called with, whatever that has."""

DEEPEST = 20
MOST = 500
"""Objects in an operand that are looked at."""

TOO_MUCH = object()
"""Stands for objects that were not looked at: they may say what they equal."""


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


def find_deciding(
    value: Any, decides: Callable[[type], bool], is_strange: Callable[[type], bool] = lambda _: False
) -> list[Any]:
    """Return the objects in *value* that say what they equal; `TOO_MUCH` alone where there is too much to know.

    Their class *decides*, or a method of a library does by what it asks of them: what *is_strange*, of the code under
    test, may stand there.
    """
    todo: list[tuple[Any, frozenset[str]]] = [(value, frozenset())]
    seen, found = {id(value): value}, []
    kinds: dict[int, tuple[bool, frozenset[str], bool]] = {}
    while todo and len(seen) < MOST:
        at, asked = todo.pop()
        kind = type(at)
        if id(kind) in PLAIN:
            continue
        if id(kind) not in kinds:
            kinds[id(kind)] = issubclass(kind, REFERRING) or decides(kind), _list_asked(kind), _is_alone(kind)
        says, own, alone = kinds[id(kind)]
        asked |= own
        if says or _is_array_of_objects(at) or (asked and not is_class(at) and _redirects(at, asked, is_strange)):
            found.append(at)
            continue
        if is_class(at) or (alone and not asked):
            continue
        for one in gc.get_referents(at):
            if id(one) not in seen and one is not kind:
                seen[id(one)] = one
                todo.append((one, asked))
            if len(seen) > MOST:
                break
    return found or ([TOO_MUCH] if todo else [])


def is_class(value: Any) -> bool:
    """Return whether *value* is a class; an object may say so of itself."""
    return issubclass(type(value), type)


def _list_asked(kind: type) -> frozenset[str]:
    """Return the names that a class of Python asks for to say what its objects equal; none, if no Python code does."""
    asked: set[str] = set()
    for base in list_deciding(kind):
        names = get_names(base)
        todo, known = [name for name in names if may_decide(name) or name in IMPLIED], set[str]()
        while todo and names.get("__module__") != MOCKING:
            name = todo.pop()
            function = names[name].fget if type(names.get(name)) is property else names.get(name)
            if name not in known and type(function) is types.FunctionType:
                called = {other for code in walk_code(function.__code__) for other in code.co_names}
                todo += called
                asked |= called
            known.add(name)
    return frozenset(asked - UNASKED)


def _redirects(value: Any, asked: frozenset[str], is_strange: Callable[[type], bool]) -> bool:
    """Return whether code under test stands in *value* where methods of a library ask for *asked*."""
    bases = [base for base in get_bases(type(value)) if is_made_in_python(base)]
    replaced = asked.union(IMPLIED, *(get_names(base) for base in list_deciding(type(value)))) - UNASKED
    if any(name in replaced for base in bases if is_strange(base) for name in get_names(base)):
        return True
    methods = {name for base in bases for name, one in get_names(base).items() if type(one) is types.FunctionType}
    return any(
        type(name) is not str or name in methods or (name in asked and type(one) is types.FunctionType)
        for name, one in _read_own(value, bases).items()
    )


def _read_own(value: Any, bases: list[type]) -> Mapping[Any, Any]:
    """Return what the object *value* itself has by name; its class, of *bases*, may answer otherwise."""
    place = next((one for one in (get_names(base).get("__dict__") for base in bases) if one is not None), None)
    return place.__get__(value) if type(place) is types.GetSetDescriptorType else {}


def walk_code(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield *code*, and all code in it."""
    yield code
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from walk_code(one)


def _is_array_of_objects(value: Any) -> bool:
    return getattr(getattr(value, "dtype", None), "hasobject", False) is True


def _is_alone(kind: type) -> bool:
    """Return whether an object of *kind* is equal to itself alone, whatever it holds."""
    made = all(base is object or is_made_in_python(base) for base in get_bases(kind))
    return made and kind is not object and not list_deciding(kind)


def list_deciding(kind: type) -> list[type]:
    """Return the bases of a class that have such a method and were made by a statement `class`."""
    return [base for base in get_bases(kind) if is_made_in_python(base) and any(map(may_decide, get_names(base)))]


def may_decide(name: str) -> bool:
    """Return whether a method of this *name* decides; a name that is no common text may become any."""
    return type(name) is not str or name in DECIDING


def is_made_in_python(kind: type) -> bool:
    """Return whether a statement `class` made *kind*, or whatever else makes classes while a program runs."""
    return bool(_FLAGS(kind) & HEAP)


def is_where_it_says(kind: type) -> bool:
    """Return whether the module of which a class says that it is has it by its name; the code under test may say so.

    So has one without code of its own that is made of such a class, as each mock is.
    """
    at: Any = sys.modules.get(str(get_names(kind).get("__module__") or "builtins"))
    for name in _QUALIFIED(kind).split("."):
        at = get_names(at).get(name) if is_class(at) else vars(at).get(name) if type(at) is types.ModuleType else None
    if at is kind or not is_made_in_python(kind):
        return True
    own = any(isinstance(value, CODE) for value in get_names(kind).values())
    return not own and len(_BASES(kind)) == 1 and is_where_it_says(_BASES(kind)[0])


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
    if any(str(get_names(base).get("__module__")).startswith("jumar.") for base in get_bases(type(value))):
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
