"""Imports the product's modules as proxies: found where they would lie, and loaded in the remote process."""

from __future__ import annotations

import builtins
import collections.abc
import dis
import importlib.machinery
import importlib.util
import os
import re
import sys
import types
from collections.abc import Sequence
from typing import Any

from jumar.child.two_process import proxies

STARRED = ("IMPORT_STAR", "CALL_INTRINSIC_1")
"""Instructions of `from module import *`, of Python up to 3.11 and from 3.12 on."""

RUN = re.compile(
    "(?i:test)|pytest_|(setup|teardown)(_(module|function|class|method))?$|(setUp|tearDown)Module$|load_tests$"
)
"""Names that pytest looks for in a file of tests."""


UNPICKLER = "_jumar_unpickle"
"""Name of what makes a thing of the product from its pickle."""


class ModuleFacade(types.ModuleType):
    """Proxy of a module of the product, as the tests import it."""

    def __getattr__(self, name: str) -> Any:
        peer = get_module_dict(self).get("_jumar_peer")
        if peer is not None and name == "__file__" and self.__name__ not in sys.modules:
            spec = importlib.util.find_spec(self.__name__)  # it came as an attribute, and was not imported here
            if spec is not None and type(spec.loader).__name__ == ProductFinder.__name__ and spec.has_location:
                return spec.origin
        if peer is None or (name[:2] == "__" and name not in ("__all__", "__version__", "__author__")):
            raise AttributeError(name)
        if name == "__all__":
            frame, names = sys._getframe(1), peer.ask("names", self)  # noqa: SLF001  nothing else tells who asks
            starred = dis.opname[frame.f_code.co_code[frame.f_lasti]] in STARRED
            return choose_names(peer.side, self, names, frame.f_globals) if starred else names
        return peer.side.get_attribute(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        # The import system puts a module below another one into that: the tests' own stay here.
        below = isinstance(value, types.ModuleType) and value.__name__ == f"{self.__name__}.{name}"
        if name[:2] == "__" or below:
            types.ModuleType.__setattr__(self, name, value)
        else:
            get_module_dict(self)["_jumar_peer"].side.assign(self, name, value)

    def __delattr__(self, name: str) -> None:
        if name in get_module_dict(self):
            types.ModuleType.__delattr__(self, name)
        else:
            get_module_dict(self)["_jumar_peer"].side.remove(self, name)

    def __dir__(self) -> Any:
        if sys._getframe(1).f_globals.get("__name__") == "freezegun.api":  # noqa: SLF001  nothing else tells who asks
            return []  # it looks for clocks in all modules; this one's are stopped in its own process
        return get_module_dict(self)["_jumar_peer"].ask("dir", self)

    @property
    def __dict__(self) -> Any:  # type: ignore[override]  # what patches look into is the other side's
        return ProductNames(self)


def choose_names(side: Any, module: Any, names: list[Any], asking: dict[str, Any]) -> list[Any]:
    """Return those of *names* that an `import *` of *module* brings to the file whose names are *asking*.

    A library's module that is there already stays what it is. Where another name, or one of Python's own, would come to
    mean something of the product's, that may be what the tests compute with; and what pytest calls by its name in a
    file is handed the tests.
    """
    names = [name for name in names if type(name) is str]
    known = vars(builtins).keys() | asking.keys()
    hidden = known & set(names)
    run = {name for name in names if RUN.match(name)}
    same = {name for name in hidden if _is_same_module(asking.get(name), getattr(module, name, None))}
    if taken := (hidden - same) | run:
        side.hide(str(asking.get("__file__")), f"an import of all names brings {min(taken)}")
    return [name for name in names if name not in same]


def _is_same_module(here: Any, there: Any) -> bool:
    named = isinstance(there, types.ModuleType) and isinstance(here, types.ModuleType)
    return named and proxies.is_library(here.__name__) and here.__name__ == there.__name__


def get_module_dict(module: types.ModuleType) -> dict[str, Any]:
    """Return the attributes that a module holds in this process itself."""
    held: dict[str, Any] = vars(types.ModuleType)["__dict__"].__get__(module)
    return held


def get_unpickler() -> Any:
    """Return what a pickle of the tests names for a thing of the product: as if a module of the product had it."""
    held = next(get_module_dict(module) for module in list(sys.modules.values()) if type(module) is ModuleFacade)

    def unpickle(data: Any) -> Any:
        return held["_jumar_peer"].ask("load", data)

    unpickle.__module__, unpickle.__qualname__ = held["__name__"], UNPICKLER
    return held.setdefault(UNPICKLER, unpickle)


class ProductNames(collections.abc.Mapping):  # type: ignore[type-arg]  # no generic class before 3.9
    """Mapping of the names in a module of the product."""

    def __init__(self, module: ModuleFacade) -> None:
        self._module = module

    def __getitem__(self, name: str) -> Any:
        try:
            return getattr(self._module, name)
        except AttributeError:
            raise KeyError(name) from None

    def __iter__(self) -> Any:
        return iter(dir(self._module))

    def __len__(self) -> int:
        return len(dir(self._module))


class ProductFinder:
    """Import finder for the product's modules, at the paths where pytest would find them if they were in the room."""

    def __init__(self, peer: Any, room: str, product: Sequence[str]) -> None:
        self._peer = peer
        self._room = os.path.realpath(room)
        self._files = frozenset(product)
        self._folders = {parent for path in product for parent in _list_parents(path)}
        self._loaded: set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002  the import system's
        """Return the module *name*, if what stands first on the path under that name is the product's."""
        last = name.rpartition(".")[2]
        for entry in list(sys.path if path is None else path):
            inside = self._get_room_path(entry)
            stem = os.path.join(inside, last) if inside not in (None, "") else last  # noqa: PTH118  names in a tree
            if inside is not None:
                here = os.path.join(self._room, stem)  # noqa: PTH118  as above
                for end in ("/__init__.py", ".py"):
                    if stem + end in self._files:
                        return self._build_spec(name, here, end)
                if os.path.exists(here + ".py") or os.path.exists(os.path.join(here, "__init__.py")):  # noqa: PTH110, PTH118  as above
                    return None
                if stem in self._folders:
                    return self._build_spec(name, here, "/")
            elif importlib.machinery.PathFinder.find_spec(name, [entry]) is not None:
                return None
        return None

    def _get_room_path(self, entry: Any) -> str | None:
        """Return *entry* relative to the room, empty for the room itself; None: it lies elsewhere."""
        real = os.path.realpath(entry or os.curdir) if isinstance(entry, str) else ""
        if real == self._room:
            return ""
        return real[len(self._room) + 1 :] if real.startswith(self._room + os.sep) else None

    def _build_spec(self, name: str, here: str, end: str) -> Any:
        """Return the spec of a module at *here* whose file has that *end*: `__file__` says where it would lie."""
        spec = importlib.machinery.ModuleSpec(name, self, is_package=end != ".py")  # type: ignore[arg-type]  # a loader by its methods
        spec.origin, spec.has_location = here + end, end != "/"
        if end != ".py":
            spec.submodule_search_locations = [here]
        return spec

    def create_module(self, spec: Any) -> Any:
        """Return an empty module that stands for one of the other process."""
        return ModuleFacade(spec.name)

    def exec_module(self, module: Any) -> None:
        """Import the module over there, anew if it was imported before."""
        roots = [inside for inside in map(self._get_room_path, sys.path) if inside is not None]
        number = self._peer.ask("import", module.__name__, roots, module.__name__ in self._loaded)
        self._loaded.add(module.__name__)
        get_module_dict(module).update(_jumar_thing=number, _jumar_peer=self._peer)


def _list_parents(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: end + 1]) for end in range(len(parts))]


def note_name(found: Any, name: str) -> None:
    """Note that the tests have *found*, if that is a class of the product, by *name*: one of a class, or not."""
    if type(found) is proxies.ProxyClass:
        capital = name.lstrip("_")[:1].isupper()
        type.__setattr__(found, proxies.NAMED, capital and type.__getattribute__(found, proxies.NAMED) is not False)


def get_number(module: types.ModuleType) -> int:
    """Return the number of a module of the product."""
    number: int = get_module_dict(module)["_jumar_thing"]
    return number


def is_function_or_class(found: Any) -> bool:
    """Return whether *found* is a function or a class of the product."""
    kind = type(found)
    return kind is proxies.ProxyClass or (
        type(kind) is proxies.ProxyClass and (kind.__module__, kind.__name__) == ("builtins", "function")
    )


def is_known(thing: Any) -> bool:
    """Return whether the tests have *thing* by a name of theirs: a class with a capital, a module that they import."""
    if isinstance(thing, types.ModuleType):
        return sys.modules.get(thing.__name__) is thing
    return type(thing) is proxies.ProxyClass and proxies.is_named(thing)


def find_raised(kind: type[BaseException], module: str, name: str) -> Any:
    """Return the class *name* in *module*, if that is one of the product's and extends *kind*; else *kind*.

    One that is another exception as well, as `StopIteration`, would end what the tests do where it is raised.
    """
    there = sys.modules.get(module)
    found: Any = getattr(there, name, None) if type(there) is ModuleFacade and "." not in name else None
    if type(found) is not proxies.ProxyClass or not type.__subclasscheck__(kind, found):
        return kind
    known = [b for b in found.__mro__ if type(b) is not proxies.ProxyClass and issubclass(b, BaseException)]
    return found if all(issubclass(base, Warning) or base in kind.__mro__ for base in known) else kind
