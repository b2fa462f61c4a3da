"""Does in the zygote what pytest does in the same way at each start: make a configuration, and look for fixtures.

Both are pytest's own objects, made by its own functions. A version of pytest that is made differently goes the usual
way, which takes longer and comes to the same.
"""

from __future__ import annotations

import builtins
import importlib
import inspect
import re
import sys
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN = (ModuleType, type, str, bytes, int, float, bool, tuple, list, dict, set, frozenset, type(None), re.Pattern,
         BuiltinFunctionType)  # fmt: skip
"""Kinds of values that are no fixture, whatever the version of pytest."""

PARAMETERS = ("args", "plugins", "prog")
MARKS = ("__wrapped__", "_pytestfixturefunction")
"""Attributes of a function that may be, or hide, a fixture."""

_ready: list[Any] = []
_names: dict[int, tuple[object, int, list[str]]] = {}


def prepare() -> None:
    """Make the configuration that the next process begins with, and remember where fixtures may be."""
    module = importlib.import_module("_pytest.config")
    known = tuple(inspect.signature(module.get_config).parameters)
    if known != PARAMETERS[: len(known)] or not hasattr(module.Config, "InvocationParams"):
        return
    config = module.get_config()
    _ready[:] = [config]
    plugins = [plugin for plugin in config.pluginmanager.get_plugins() if isinstance(plugin, ModuleType)]
    for plugin in plugins + [one for name, one in sys.modules.items() if name.startswith("_pytest.")]:
        held = vars(plugin)
        _names[id(plugin)] = (plugin, len(held), [name for name in dir(plugin) if not is_plain(held.get(name, ...))])
    fixtures: Any = importlib.import_module("_pytest.fixtures")
    fixtures.dir = list_fixture_names


def is_plain(value: object) -> bool:
    """Return whether *value* is no fixture, and hides none."""
    if type(value) is FunctionType:
        return not any(mark in vars(value) for mark in MARKS)
    return isinstance(value, PLAIN) and not any(mark in getattr(value, "__dict__", ()) for mark in MARKS)


def list_fixture_names(holder: object) -> list[str]:
    """Return the names in *holder* among which there may be fixtures: `dir`, for what pytest looks at with it."""
    plugin, size, names = _names.get(id(holder), (None, 0, []))
    return names if plugin is holder and len(vars(plugin)) == size else builtins.dir(holder)


def install() -> None:
    """Let the next start of pytest take the configuration that is ready."""
    if not _ready:
        return
    module = importlib.import_module("_pytest.config")
    usual: Callable[..., Any] = module.get_config
    config = _ready.pop()

    def get_ready_config(args: Any = None, plugins: Any = None, *, prog: Any = None) -> Any:
        module.get_config = usual
        config.invocation_params = module.Config.InvocationParams(args=args or (), plugins=plugins, dir=Path.cwd())
        if args:
            config.pluginmanager.consider_preparse(args, exclude_only=True)
        if prog is not None:
            config._parser.prog = prog  # noqa: SLF001  as `Config` does
        return config

    module.get_config = get_ready_config
