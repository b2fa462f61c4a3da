"""Patches of libraries by tests: they stay in the tests' process, which is found out."""

from __future__ import annotations

import functools
import importlib
import os
import sys
import types
from collections.abc import Callable
from typing import Any

from jumar.child.two_process import proxies

PATCHING = (
    ("unittest.mock", "_patch", "__enter__", ("target", "attribute")),
    ("unittest.mock", "_patch_dict", "_patch_dict", ("in_dict",)),
    *(("_pytest.monkeypatch", "MonkeyPatch", name, ()) for name in ("setattr", "delattr", "setitem", "delitem")),
)
"""Methods that patch: module, class, name, and the attributes that hold the target and the name in it.

None: they are the arguments.
"""

CARRIED = ("sys.argv", "sys.stdin", "sys.stdout", "sys.stderr", "builtins.input")
"""Patches that are carried over, or fail where they are not."""

HARMLESS = ("unittest.mock", "types", "builtins", "_pytest", "threading")
"""Modules of objects that are the tests' own, whatever they are patched to."""


def watch_patches(tell: Callable[[str, Any], None]) -> None:
    """Call *tell* for each patch of a library by a test, and its target: the product has that unpatched.

    What this environment carries over (`sys`, `input`) reaches it.
    """
    for module, owner, name, place in PATCHING:
        kind = getattr(importlib.import_module(module), owner, None)
        if kind is not None:
            setattr(kind, name, _wrap_patch(getattr(kind, name), place, tell))


def refuse_configured_names(refuse: Callable[[str], None]) -> None:
    """Call *refuse* for names of the tests in a configuration of logs, which may be the product's."""
    kind: Any = importlib.import_module("logging.config").BaseConfigurator
    resolve = kind.resolve

    def resolve_checked(self: Any, name: str) -> Any:
        root = str(name).partition(".")[0]
        if type(sys.modules.get(root)) is types.ModuleType and not proxies.is_library(root):
            refuse(f"a configuration of logs names {name}")
        return resolve(self, name)

    kind.resolve = resolve_checked


def _wrap_patch(patch: Any, places: tuple[str, ...], tell: Callable[[str, Any], None]) -> Any:
    """Return the method *patch*, wrapped: it tells of patches of a library; *places* say where the target is."""

    @functools.wraps(patch)
    def patch_and_tell(self: Any, *args: Any, **keywords: Any) -> Any:
        made = patch(self, *args, **keywords)
        given = [getattr(self, place) for place in places] or [*args, *keywords.values()]
        if changed := _find_patched(*given[:2]):
            tell(f"a test patches {changed}, which the product has for itself", given[0])
        return made

    return patch_and_tell


def _find_patched(target: Any = None, name: Any = "") -> str:
    """Return the name of what is patched in *target*, if that belongs to a library and is not carried over."""
    if isinstance(target, str):
        place, _, name = target.rpartition(".")
        target = sys.modules.get(place or target)
    if target is sys.modules:
        return "sys.modules"
    if target is os.environ or isinstance(target, (proxies.Proxy, dict)) or type(target) is proxies.ProxyClass:
        return ""
    kind = target if isinstance(target, type) else type(target)
    module = str(target.__name__ if type(target) is types.ModuleType else kind.__module__)
    whole = f"{module}.{name}"
    harmless = type(target) is not types.ModuleType and module.startswith(HARMLESS)
    return "" if harmless or whole in CARRIED or not proxies.is_library(module) else whole
