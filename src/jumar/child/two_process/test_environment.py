"""Environment that a test may arrange for the product: working directory, environment variables, argv, input.

Patches of libraries are none of it: they stay in the tests' process, which is found out. The product never hears which
test runs.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import io
import os
import sys
import types
from collections.abc import Callable
from typing import Any

from jumar.child.two_process import proxies

PATCHING = (("unittest.mock", "_patch", "__enter__", "target"), ("_pytest.monkeypatch", "MonkeyPatch", "setattr", ""))
"""Methods that patch: module, class, name, and the attribute that holds the target; empty: the first argument."""

CARRIED = ("sys", "builtins")
"""Modules whose patches are carried over, or fail where they are not."""


class ProductEnvironment:
    """Tracks the changes of the environment since the product was last told."""

    def __init__(self, room: str) -> None:
        self.room = os.path.realpath(room) + os.sep
        self._input = builtins.input
        self.begin()

    def begin(self) -> None:
        """Record the present environment as the one in which nothing was arranged."""
        self._environ, self._argv = _environ(), list(sys.argv)
        self._looked: tuple[Any, ...] = ()
        self._told: tuple[Any, ...] = (self.room, {}, [], None, None)

    def news(self) -> list[Any] | None:
        """Place in the room (None: elsewhere), environment, arguments, `input` and text to read; None: as before.

        Of the environment only what differs from that of the beginning is told; what is gone is None.
        """
        try:
            place = os.getcwd()  # noqa: PTH109  asked with each call
        except OSError:
            place = ""
        argv = sys.argv[1:] if sys.argv != self._argv else []
        raw: Any = getattr(os.environ, "_data", None)  # the same comparison, without decoding all of it each time
        looked = (raw, place, argv, builtins.input, sys.stdin)
        if raw is not None and looked == self._looked:
            return None
        self._looked = (dict(raw or {}), *looked[1:])
        now = _environ()
        changed: dict[str, str | None] = {k: v for k, v in now.items() if self._environ.get(k) != v}
        changed.update(dict.fromkeys(self._environ.keys() - now.keys()))
        stdin = sys.stdin if type(sys.stdin) is io.StringIO else None
        world = (place + os.sep, changed, argv, builtins.input if builtins.input is not self._input else None, stdin)
        if world == self._told:
            return None
        self._told = world
        inside = os.path.relpath(place, self.room) if world[0].startswith(self.room) else None
        return [inside, *world[1:]]


def watch_patches(tell: Callable[[str], None]) -> None:
    """Have *tell* hear of each patch of a library by a test: the product, in its own process, has that unpatched.

    What this environment carries over (`sys`, `input`) reaches it.
    """
    for module, owner, name, place in PATCHING:
        kind = getattr(importlib.import_module(module), owner, None)
        if kind is not None:
            setattr(kind, name, _tell_of(getattr(kind, name), place, tell))


def refuse_configured_names(refuse: Callable[[str], None]) -> None:
    """Have *refuse* hear of names that a configuration of logs, which may be the product's, has of the tests."""
    kind: Any = importlib.import_module("logging.config").BaseConfigurator
    resolve = kind.resolve

    def resolved(self: Any, name: str) -> Any:
        root = str(name).partition(".")[0]
        if type(sys.modules.get(root)) is types.ModuleType and not proxies.is_library(root):
            refuse(f"a configuration of logs names {name}")
        return resolve(self, name)

    kind.resolve = resolved


def _tell_of(patch: Any, place: str, tell: Callable[[str], None]) -> Any:
    """Return the method *patch*, which tells of patches of a library; *place* is where the target is."""

    @functools.wraps(patch)
    def patched(self: Any, *args: Any, **keywords: Any) -> Any:
        made = patch(self, *args, **keywords)
        target = getattr(self, place) if place else args[0] if args else None
        if isinstance(target, str):
            target = sys.modules.get(target.rpartition(".")[0])
        module = target.__name__ if type(target) is types.ModuleType else ""
        if isinstance(target, type) and type(target) is not proxies.ProxyClass:
            module = target.__module__
        if module and module not in CARRIED and proxies.is_library(module):
            tell(f"a test patches {module}, which the product has for itself")
        return made

    return patched


def _environ() -> dict[str, str]:
    """Return the environment, without what tells which test runs."""
    return {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
