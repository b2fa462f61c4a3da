"""Does in the zygote what pytest does in the same way at each start: it makes a configuration, and looks for fixtures.

Both are pytest's own objects, made by its own functions. A version of pytest that is made differently goes the usual
way, which takes longer and comes to the same.
"""

from __future__ import annotations

import builtins
import importlib
import inspect
import sys
from itertools import chain, zip_longest
from operator import is_, lt
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from jumar.child.pytest.code_identity import get_address
from jumar.child.warm import ready_distributions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Names = dict[int, tuple[object, list[list[object]], list[str]]]
    """Address of a module or a class -> it, what it and each of its bases held, and the names that may be fixtures."""

HOLDERS = ("FixtureFunctionDefinition", "classmethod", "staticmethod", "property")
"""Kinds of values that are fixtures, or may hold one."""

PARAMETERS = ("args", "plugins", "prog")
MARKS = ("__wrapped__", "_pytestfixturefunction")
"""Attributes of a function that may be, or hide, a fixture."""

_ready: list[Any] = []


def prepare(classes: Sequence[type]) -> None:
    """Make the configuration that the next process begins with, and look where fixtures may be.

    *classes* are those of jumar's own plug-ins.
    """
    module: Any = importlib.import_module("_pytest.config")
    known = tuple(inspect.signature(module.get_config).parameters)
    if known != PARAMETERS[: len(known)] or not hasattr(module.Config, "InvocationParams"):
        return
    config = module.get_config()
    _ready[:] = [config]
    names: Names = {}
    importlib.import_module("_pytest.fixtures").dir = build_listing(names)  # type: ignore[attr-defined]
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType) and _may_be_plugin(module):
            _remember(module, names)
            for kind in list(vars(module).values()):
                if isinstance(kind, type) and kind.__module__ == module.__name__ and _has_hooks(kind):
                    _remember(kind, names)
    for kind in classes:
        _remember(kind, names)


def _may_be_plugin(module: ModuleType) -> bool:
    return module.__name__.startswith("_pytest.") or _has_hooks(module)


def _has_hooks(holder: Any) -> bool:
    return any(name.startswith("pytest_") for name in vars(holder))


def _remember(holder: Any, known: Names) -> None:
    if vars(type(holder)).get("__dir__", type.__dir__) not in (type.__dir__, ModuleType.__dir__):
        return  # what it shows is its own affair
    tables = _list_tables(holder)
    held = [list(table.values()) for table in tables]
    names = [name for name in dir(holder) if not all(is_plain(table[name]) for table in tables if name in table)]
    known[get_address(holder)] = (holder, held, names)


def _list_tables(holder: Any) -> list[Any]:
    return [vars(holder)] if isinstance(holder, ModuleType) else [vars(one) for one in holder.__mro__]


def build_listing(names: Names) -> Callable[[Any], list[str]]:
    """Return `dir` for what pytest looks at with it: the names among which there may be fixtures.

    *names* are in its closure, which nobody reads unseen: by a global of it the code under test would come from
    `sys.modules` to our plug-ins, and by what those import to the tests.
    """

    def list_fixture_names(thing: Any) -> list[str]:
        # pytest asks the class of an object for them, never the object.
        holder = thing if isinstance(thing, ModuleType) else type(thing)
        known, held, found = names.get(get_address(holder), (None, [], []))
        if known is not holder:
            return builtins.dir(thing)
        tables = _list_tables(holder)
        if len(tables) != len(held) or any(map(lt, map(len, tables), map(len, held))):
            return builtins.dir(thing)
        return sorted({*found, *chain.from_iterable(map(_list_changed, tables, held))})

    return list_fixture_names


def _list_changed(table: Any, before: list[object]) -> list[str]:
    """Return the names in *table*, which held *before*, that plug-ins have added or given another value since."""
    if len(table) == len(before) and all(map(is_, table.values(), before)):
        return []
    return [name for (name, value), old in zip_longest(table.items(), before) if value is not old]


def is_plain(value: Any) -> bool:
    """Return whether *value* is no fixture, and hides none."""
    kind = type(value)
    if kind is FunctionType or isinstance(value, (type, ModuleType)):
        return not any(mark in vars(value) for mark in MARKS)
    if kind.__module__ == "typing":
        return True
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:
        held = {}
    open_ended = any(name in vars(base) for base in kind.__mro__ for name in ("__getattr__", *MARKS))
    return not (kind.__name__ in HOLDERS or open_ended or any(mark in held for mark in MARKS))


def install() -> None:
    """Let the next start of pytest take the configuration that is ready."""
    if not _ready:
        return
    module: Any = importlib.import_module("_pytest.config")
    usual: Callable[..., Any] = module.get_config
    config = _ready.pop()

    def get_ready_config(args: Any = None, plugins: Any = None, *, prog: Any = None) -> Any:
        module.get_config = usual
        config.invocation_params = module.Config.InvocationParams(args=args or (), plugins=plugins, dir=Path.cwd())
        if args:
            config.pluginmanager.consider_preparse(args, exclude_only=True)
        if prog is not None:
            config._parser.prog = prog  # noqa: SLF001  as `Config` does
        ready_distributions.use_in(config, "_mark_plugins_for_rewrite")
        ready_distributions.use_in(config.pluginmanager, "load_setuptools_entrypoints")
        return config

    module.get_config = get_ready_config
