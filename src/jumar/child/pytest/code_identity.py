"""Identity of code: what lies below a value, where it comes from, and whether hooks and tests are what they were.

Nothing here asks an object under suspicion for anything that it could answer itself: no `==`, no attribute of its own
making.
"""

# ruff: noqa: B905  zip has no `strict` before Python 3.10

from __future__ import annotations

import builtins
import functools
import sys
import types
from collections.abc import Callable, Sequence
from operator import attrgetter, is_
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from jumar.child.start import FOLDER

# Of our own, whatever becomes of the others.
__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # a module or its names

PARTS = (
    FunctionType, type, ModuleType, BuiltinFunctionType, MethodType, classmethod, staticmethod, property,
    type(functools.lru_cache(lambda: None)), types.WrapperDescriptorType, types.MethodDescriptorType,
    types.ClassMethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType,
)  # fmt: skip
"""Kinds of values that are code. Other values are state, which changes."""

FRAMEWORK = ("_pytest", "pytest", "pluggy", "unittest")
"""Packages that decide what became of a test."""

get_address: Callable[[object], int] = vars(object)["__hash__"]
"""A number of an object that no other one has at the same time, whatever its class says of its hash.

In place of `id`, which raises an audit event: where a hook listens, each call costs five times as much.
"""

_CLASS_NAMES = vars(type)["__dict__"].__get__
_BASES = vars(type)["__bases__"].__get__


class HookFingerprint(NamedTuple):
    """The way a hook is called, and its implementations."""

    caller: Any
    called: tuple[object, object]
    implementations: Sequence[Any]
    functions: Sequence[object]
    below: Sequence[FunctionType]
    """The functions, without what binds them."""
    codes: Sequence[object]

    @property
    def parts(self) -> tuple[object, ...]:
        """Return the parts that must stay the same."""
        return (*self.called, *self.functions, *self.codes)


def snapshot_hook(manager: Any, name: str) -> HookFingerprint:
    """Return how the hook *name* is called now, and what implements it."""
    caller = getattr(manager.hook, name, None)
    implementations = caller.get_hookimpls() if caller else []
    functions = [one.function for one in implementations]
    below = [one for one in map(unwrap_function, functions) if one is not None]
    called = (getattr(caller, "_hookexec", None), getattr(manager, "_inner_hookexec", None))
    return HookFingerprint(caller, called, implementations, functions, below, [one.__code__ for one in below])


def is_unchanged(manager: Any, hook: HookFingerprint) -> bool:
    """Return whether a hook is still called and implemented as it was."""
    caller, called = hook.caller, (getattr(hook.caller, "_hookexec", None), getattr(manager, "_inner_hookexec", None))
    if caller is None or not are_identical(hook.called, called):
        return caller is None
    implementations = caller.get_hookimpls()
    return (
        are_identical(hook.implementations, implementations)
        and all(map(is_, map(attrgetter("function"), implementations), hook.functions))
        and all(map(is_, map(attrgetter("__code__"), hook.below), hook.codes))
    )


def contains_identity(one: object, known: Sequence[object]) -> bool:
    """Return whether *one* itself is in *known*."""
    return any(one is other for other in known)


def is_ours(function: object) -> bool:
    """Return whether *function* belongs to a plug-in of jumar."""
    below = unwrap_function(function)
    return below is not None and below.__code__.co_filename.startswith(FOLDER)


def snapshot_test(item: Any) -> tuple[tuple[object, ...], int]:
    """Return function, code and parameters of *item*, and a hash of the code: constants can be overwritten in place.

    No instance of its class is made for that.
    """
    owner, name = getattr(item.parent, "obj", None), getattr(item, "originalname", None) or item.name
    if isinstance(owner, type):
        held: object = next((vars(base)[name] for base in owner.__mro__ if name in vars(base)), None)
    else:
        held = vars(item).get("_obj")
    code = getattr(unwrap_function(held), "__code__", None)
    params = getattr(getattr(item, "callspec", None), "params", {})
    return (unwrap_function(held), code, *params.values()), hash(code)


def get_module_name(thing: Any) -> str:
    """Return the name of the module in which a function or a class says that it was made."""
    if isinstance(thing, FunctionType):
        return str(thing.__module__)
    return str(_CLASS_NAMES(thing).get("__module__") or "builtins")


def is_code(value: object) -> bool:
    """Return whether *value* is code: a function, a class, a descriptor."""
    return isinstance(value, PARTS)


def are_identical(before: Sequence[object], now: Sequence[object]) -> bool:
    """Return whether both hold the very same objects."""
    return len(before) == len(now) and all(map(is_, before, now))


def unwrap_function(value: object) -> FunctionType | None:
    """Return the Python function below *value*, without asking *value* for anything that it could answer itself."""
    for _ in range(4):
        if isinstance(value, FunctionType):
            return value
        if isinstance(value, (classmethod, staticmethod, MethodType)):
            value = value.__func__
        elif isinstance(value, property):
            value = value.fget
        elif type(value).__name__ == "partial" and type(value).__module__ == "functools":
            value = value.func  # type: ignore[attr-defined]
        else:
            break
    return None


def find_places(value: object) -> list[str]:
    """Return the files that *value*, a function, a class or any object, comes from."""
    function = unwrap_function(value)
    if function is not None:
        written, loaded = function.__code__.co_filename, function.__globals__.get("__file__")
        return [place for place in (written, loaded) if isinstance(place, str) and place[:1] != "<"]
    kind = value if isinstance(value, type) else type(value)
    module = sys.modules.get(str(kind.__module__))
    place = getattr(module, "__file__", None)
    return [place] if isinstance(place, str) else []


def is_same_again(before: object, now: object) -> bool:
    """Return whether *now* is what *before* was, made again from the same source: its module was reloaded."""
    if isinstance(before, type) and isinstance(now, type):
        old, new = _CLASS_NAMES(before), _CLASS_NAMES(now)
        pairs = [*zip(_BASES(before), _BASES(now)), *((old.get(name), new.get(name)) for name in {**old, **new})]
        same = len(_BASES(before)) == len(_BASES(now)) and get_module_name(before) == get_module_name(now)
        return same and all(a is b or not (is_code(a) or is_code(b)) or is_same_again(a, b) for a, b in pairs)
    if type(before) is not type(now) or not isinstance(before, PARTS):
        return False
    if isinstance(before, (types.GetSetDescriptorType, types.MemberDescriptorType)):
        return True  # of a class that was made again
    one, other = unwrap_function(before), unwrap_function(now)
    if one is None or other is None:
        return False
    return one.__globals__ is other.__globals__ and _have_same_inside(one, other)


def _have_same_inside(one: FunctionType, other: FunctionType) -> bool:
    given, words = list(zip(one.__defaults__ or (), other.__defaults__ or ())), other.__kwdefaults__ or {}
    given += [(value, words.get(name)) for name, value in (one.__kwdefaults__ or {}).items()]
    plain = all(a is b or (type(a) is type(b) and type(a) in (int, str, float) and a == b) for a, b in given)
    same_count = len(one.__defaults__ or ()) == len(other.__defaults__ or ())
    return plain and one.__code__ == other.__code__ and same_count and not one.__closure__
