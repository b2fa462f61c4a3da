"""Environment that a test may arrange for the product: working directory, environment variables, argv, input.

Patches of libraries do not belong to it: they stay in the tests' process, which is found out. The product never hears
which test runs.
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
from jumar.child.two_process.wire import shared_files

PATCHING = (
    ("unittest.mock", "_patch", "__enter__", ("target", "attribute")),
    ("unittest.mock", "_patch_dict", "_patch_dict", ("in_dict",)),
    *(("_pytest.monkeypatch", "MonkeyPatch", name, ()) for name in ("setattr", "delattr", "setitem", "delitem")),
)
"""Methods that patch: module, class, name, and the attributes that hold the target and the name in it.

None: they are the arguments.
"""

CLOCKS = (("freezegun.api", "_freeze_time"), ("time_machine", "travel"))
"""Classes that stop the clock of their process: module, and name."""

CARRIED = ("sys.argv", "sys.stdin", "sys.stdout", "sys.stderr", "builtins.input")
"""Patches that are carried over, or fail where they are not."""

HARMLESS = ("unittest.mock", "types", "builtins", "_pytest", "threading")
"""Modules of objects that are the tests' own, whatever they are patched to."""


class ProductEnvironment:
    """Tracks the changes of the environment since the product was last told."""

    def __init__(self, room: str) -> None:
        self.room = os.path.realpath(room) + os.sep
        self._input = builtins.input
        self._private = shared_files.find_folder() + os.sep
        self._loop: Any = None
        self._loops = 0
        self.levels: dict[str, int] = {}
        """Levels that tests gave to loggers, by name."""
        self.seeds: dict[str, tuple[Any, ...]] = {}
        """Generators that were seeded, by module (`notices.watch_seeds`)."""
        self.begin()

    def begin(self) -> None:
        """Record the present environment as the one in which nothing was arranged."""
        self._environ, self._argv = _read_environ(), list(sys.argv)
        self._looked: tuple[Any, ...] = ()
        self._told: tuple[Any, ...] = (self.room, {}, [], {}, 0, None, None, ())

    def find_changes(self) -> list[Any] | None:
        """Return directory, environment, arguments, levels, loop, `input`, standard input, seeds; None: no changes.

        The directory is the working one, in the room or below the temporary one (None: elsewhere), the loop is the
        running one, counted from 1 (0: none). Of the environment only what differs from that of the beginning is there;
        what was removed is None.
        """
        try:
            place = os.getcwd()  # noqa: PTH109  asked with each call
        except OSError:
            place = ""
        argv = sys.argv[1:] if sys.argv != self._argv else []
        raw: Any = getattr(os.environ, "_data", None)  # the same comparison, without decoding all of it each time
        seeds = tuple(self.seeds.items())
        looked = (raw, place, argv, self.levels, self._count_loop(), builtins.input, sys.stdin, seeds)
        if raw is not None and looked == self._looked:
            return None
        levels = dict(self.levels)
        self._looked = (dict(raw or {}), place, argv, levels, *looked[4:])
        now = _read_environ()
        changed: dict[str, str | None] = {k: v for k, v in now.items() if self._environ.get(k) != v}
        changed.update(dict.fromkeys(self._environ.keys() - now.keys()))
        stdin = sys.stdin if type(sys.stdin) is io.StringIO else None
        reading = builtins.input if builtins.input is not self._input else None, stdin
        found = (place + os.sep, changed, argv, levels, looked[4], *reading, seeds)
        if found == self._told:
            return None
        self._told = found
        private = place if found[0].startswith(self._private) else None
        return [os.path.relpath(place, self.room) if found[0].startswith(self.room) else private, *found[1:]]

    def _count_loop(self) -> int:
        """Return which event loop runs, counted from 1; 0: none does."""
        events = sys.modules.get("asyncio.events")
        running = events and events._get_running_loop()  # noqa: SLF001  documented for those who write loops
        if running is not None and running is not self._loop:
            self._loop, self._loops = running, self._loops + 1
        return self._loops if running is not None else 0


def watch_patches(tell: Callable[[str], None]) -> None:
    """Call *tell* for each patch of a library by a test: the product, in its own process, has that unpatched.

    What this environment carries over (`sys`, `input`) reaches it.
    """
    for module, owner, name, place in PATCHING:
        kind = getattr(importlib.import_module(module), owner, None)
        if kind is not None:
            setattr(kind, name, _wrap_patch(getattr(kind, name), place, tell))


def refuse_stopped_clocks(refuse: Callable[[str], None]) -> None:
    """Call *refuse* where a test stops the clock of its process: that of the product goes on.

    Before anything is patched: in each module of the product every name would be asked for.
    """
    for module, owner in CLOCKS:
        kind: Any = getattr(sys.modules.get(module), owner, None)
        if kind is not None:
            kind.start = lambda *_: refuse("a test stops the clock, and that of the product goes on")


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


def _wrap_patch(patch: Any, places: tuple[str, ...], tell: Callable[[str], None]) -> Any:
    """Return the method *patch*, wrapped: it tells of patches of a library; *places* say where the target is."""

    @functools.wraps(patch)
    def patch_and_tell(self: Any, *args: Any, **keywords: Any) -> Any:
        made = patch(self, *args, **keywords)
        given = [getattr(self, place) for place in places] or [*args, *keywords.values()]
        if changed := _find_patched(*given[:2]):
            tell(f"a test patches {changed}, which the product has for itself")
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


def _read_environ() -> dict[str, str]:
    """Return the environment, without what tells which test runs."""
    return {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
