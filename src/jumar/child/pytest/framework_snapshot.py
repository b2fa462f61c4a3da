"""Snapshots of the tamper check: how a hook is called, and the parts of a collected test.

Loaded by path inside the tested interpreter; standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import builtins
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any, NamedTuple

from jumar.child.pytest.loaded_code import are_identical, unwrap_function
from jumar.child.start import FOLDER

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FunctionType

# Of our own, whatever becomes of the others.
__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # a module or its names


class TestFingerprint(NamedTuple):
    """Parts of a collected test: its function, its code and its parameters."""

    parts: tuple[object, ...]
    """Its function, its code and the values of its parameters."""
    content: int
    """The hash of its code: constants can be overwritten in place."""


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
        """All that must stay what it is."""
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


def snapshot_test(item: Any) -> TestFingerprint:
    """Return the parts of *item*, without making an instance of its class."""
    owner, name = getattr(item.parent, "obj", None), getattr(item, "originalname", None) or item.name
    if isinstance(owner, type):
        held: object = next((vars(base)[name] for base in owner.__mro__ if name in vars(base)), None)
    else:
        held = vars(item).get("_obj")
    code = getattr(unwrap_function(held), "__code__", None)
    params = getattr(getattr(item, "callspec", None), "params", {})
    return TestFingerprint((unwrap_function(held), code, *params.values()), hash(code))
