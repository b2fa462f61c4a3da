"""Proxies of remote objects: the class of a proxy is itself a proxy of the remote class.

Built-in operations run here, on the content that crossed; those that a class overrides in Python are asked of the
other process.

| on the wire | is |
| --- | --- |
| `["y", number]` | a thing of the receiver's |
| `["o", number, class, state, fields]`, `["o", number]` | a thing of the sender's: the first time, and then |
| `["C", number, description]`, `["C", number]` | a class of the sender's: likewise |
| `["M", number, name]` | from the product: one of its modules |
| `["E", class, members]` | from the tests: an enumeration of theirs |
| `["q", module, name]` | likewise: a module, function, class or constant of a library |
| `["w", owner, name]`, `["p", function, args, keywords]` | likewise: a method of a value, a partial function |
| `["d", number, *parts]` | likewise: an object of a library, copied as `copy` does |
"""

from __future__ import annotations

import os
import sys
from typing import Any

from jumar.child.two_process.wire.containers.shared_container import get_fact

ATTRIBUTES = frozenset(
    f"__{name}__"
    for name in ("all", "annotations", "args", "author", "bound", "constraints", "dataclass_fields",
                 "defaults", "doc", "file", "func", "kwdefaults", "members", "mro_entries", "name", "origin",
                 "path", "qualname", "self", "slots", "version", "wrapped")
)  # fmt: skip
"""Double-underscored attributes that may be read in the remote process."""

METHODS = frozenset(
    f"__{name}__"
    for name in ("abs", "add", "aenter", "aexit", "aiter", "and", "anext", "await", "bool", "bytes", "call", "ceil",
                 "complex", "contains", "delete", "delitem", "divmod", "enter", "eq", "exit", "float", "floor",
                 "floordiv", "format", "fspath", "ge", "get", "getitem", "gt", "hash", "iadd", "iand", "ifloordiv",
                 "ilshift", "imatmul", "imod", "imul", "index", "init", "int", "invert", "ior", "ipow", "irshift",
                 "isub", "iter", "itruediv", "ixor", "le", "len", "length_hint", "lshift", "lt", "matmul", "missing",
                 "mod", "mul", "ne", "neg", "next", "or", "pos", "post_init", "pow", "radd", "rand", "rdivmod", "repr",
                 "reversed", "rfloordiv", "rlshift", "rmatmul", "rmod", "rmul", "ror", "round", "rpow", "rrshift",
                 "rshift", "rsub", "rtruediv", "rxor", "set", "set_name", "setitem", "str", "sub", "truediv", "trunc",
                 "xor")
)  # fmt: skip
"""Special methods that a class here may leave to one there."""

COMPARING = frozenset(f"__{name}__" for name in ("contains", "eq", "ge", "gt", "le", "lt", "ne"))

RESERVED = ("_jumar", "_pytest", "pytest_", "pytestmark", "_hypothesis", "_mock_")
"""Prefixes of attributes that frameworks look for in objects. No proxy has them."""

NUMBER = "_jumar_number"

NAMED = "_jumar_named"
"""Fact of a proxy class: True if the tests have it by names of a class alone, None if they have it by no name."""

TOLD_FIELDS = "_jumar_fields"
"""Fact of a proxy: the public data that crossed with it."""


def find_peer(kind: type) -> Any:
    """Return the peer that answers for *kind*, a proxy class, and its instances."""
    return type.__getattribute__(kind, "_jumar_peer")


class ProxyClass(type):
    """Metaclass of proxy classes. A local class that extends one gets a proxy in the remote process in turn."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any], **keywords: Any) -> Any:
        """Make a class that extends proxy classes."""
        peer = next(find_peer(base) for base in bases if isinstance(base, ProxyClass))
        return peer.tables.extend_class(name, bases, body, keywords)

    def __init__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any], **_: Any) -> None:
        type.__init__(cls, name, bases, body)

    def __call__(cls, /, *args: Any, **keywords: Any) -> Any:
        """Make an instance over there."""
        return find_peer(cls).side.create(cls, args, keywords)

    def __getattr__(cls, name: str) -> Any:
        return find_peer(cls).side.get_attribute(cls, name)

    def __setattr__(cls, name: str, value: Any) -> None:
        if name in ("__abstractmethods__", "__parameters__"):
            return
        if type(value) is ProxyMember or getattr(value, "_jumar_special", False) is True:
            find_peer(cls).side.remove(cls, name, "restore")  # what was found in the class is put back
        else:
            find_peer(cls).side.assign(cls, name, value)

    def __delattr__(cls, name: str) -> None:
        find_peer(cls).side.remove(cls, name)

    def __dir__(cls) -> Any:
        return find_peer(cls).side.list_names(cls)

    def __iter__(cls) -> Any:
        return find_peer(cls).side.apply_to_class(cls, "iter")

    def __len__(cls) -> int:
        return int(find_peer(cls).side.apply_to_class(cls, "len"))

    def __bool__(cls) -> bool:
        return True

    def __getitem__(cls, key: Any) -> Any:
        return find_peer(cls).side.apply_to_class(cls, "getitem", key)

    def __contains__(cls, item: Any) -> bool:
        return bool(find_peer(cls).side.compare("__contains__", None, cls, (item,)))

    def __instancecheck__(cls, thing: Any) -> bool:
        return bool(find_peer(cls).side.belongs(cls, thing, type.__instancecheck__(cls, thing)))

    def __subclasscheck__(cls, other: type) -> bool:
        return bool(find_peer(cls).side.belongs(cls, other, type.__subclasscheck__(cls, other), "issubclass"))


def get_number(proxy: Any) -> int:
    """Return the number of what *proxy* stands for.

    Raises:
        ValueError: if it stands for nothing: it was made here, past the constructor of its class.
    """
    if type(proxy) is ProxyClass:
        return int(type.__getattribute__(proxy, NUMBER))
    number = get_fact(proxy, "_jumar_thing")
    if number is None:
        raise ValueError("an object that was made without its constructor")
    return int(number)


def is_named(kind: Any) -> bool:
    """Return whether the tests know *kind*, a proxy class, by a name of a class."""
    return bool(type.__getattribute__(kind, NAMED))


def is_readable(name: str) -> bool:
    """Return whether the tests' process asks for an attribute of that name: for none that frameworks look for."""
    return name in (ATTRIBUTES | METHODS) if name[:2] == "__" == name[-2:] else not name.startswith(RESERVED)


class CopyMember:
    """The method `__copy__`: every class has one for `copy`, and an object only if the other side has it there.

    `itertools.tee` looks at the object, and keeps the items of what has none itself.
    """

    def __get__(self, thing: Any, kind: Any) -> Any:
        return _duplicate if thing is None else find_peer(kind).side.find_copier(thing)


def _duplicate(thing: Any) -> Any:
    return find_peer(type(thing)).side.duplicate("copy", thing)


class Proxy:
    """Base of all proxies. It defines nothing that a remote class may define and C would find here first."""

    def __getattr__(self, name: str) -> Any:
        return find_peer(type(self)).side.get_attribute(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name[:2] == "__":
            keep_attribute(self, name, value)
        else:
            find_peer(type(self)).side.assign(self, name, value)

    def __delattr__(self, name: str) -> None:
        if name[:2] == "__":
            object.__delattr__(self, name)
        else:
            find_peer(type(self)).side.remove(self, name)

    def __dir__(self) -> Any:
        return find_peer(type(self)).side.list_names(self)

    def __bool__(self) -> bool:
        find_peer(type(self)).side.check_use(self, "__bool__")
        for name in ("__bool__", "__len__"):
            for base in type(self).__mro__:
                if base is not Proxy and name in vars(base):
                    return bool(vars(base)[name](self))
        return True

    def __repr__(self) -> str:
        return str(find_peer(type(self)).side.describe(self))

    __copy__ = CopyMember()

    def __deepcopy__(self, _: Any) -> Any:
        return find_peer(type(self)).side.duplicate("deepcopy", self)

    def __new__(cls, *args: Any, **_: Any) -> Any:
        """Make an instance over there that no constructor has seen, as `pickle` and `copy` do."""
        return find_peer(cls).ask("new", cls, args)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return find_peer(type(self)).side.reduce(self, protocol)


def keep_attribute(proxy: Any, name: str, value: Any) -> None:
    """Set the attribute *name* on this side alone; *proxy* is not dropped then as long as the other side knows it."""
    object.__setattr__(proxy, "_jumar_kept", True)
    object.__setattr__(proxy, name, value)


def get_kept_attributes(proxy: Any) -> dict[str, Any]:
    """Return the attributes that *proxy* has on this side alone."""
    held = vars(Proxy)["__dict__"].__get__(proxy) if isinstance(proxy, Proxy) else {}
    return {name: value for name, value in held.items() if not name.startswith("_jumar")}


class ProxyMember:
    """An attribute of a proxy class."""

    def __init__(self, owner: int, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, thing: Any, kind: Any = None) -> Any:
        if thing is None:
            return find_peer(kind).side.get_attribute(kind, self._name)
        extends = type.__getattribute__(type(thing), "_jumar_extends")
        return find_peer(type(thing)).side.get_attribute(thing, self._name, self._owner if extends else None)


def get_special_method(owner: int, name: str) -> Any:
    """Return the special method *name* of the class *owner*, as the class over there has it."""

    def method(self: Any, /, *args: Any, **keywords: Any) -> Any:
        side = find_peer(type(self)).side
        if name in COMPARING:
            return side.compare(name, owner, self, args)
        answer = side.invoke(self, owner, name, args, keywords)
        return side.check_exit(answer, args) if name == "__exit__" else answer

    method.__name__ = method.__qualname__ = name
    vars(method)["_jumar_special"] = True
    return method


def build_class_body(owner: int, names: list[str], refused: list[str]) -> dict[str, Any]:
    """Return the body of a proxy class."""
    body: dict[str, Any] = {}
    for name in names:
        if name in METHODS:
            body[name] = None if name in refused else get_special_method(owner, name)
        elif not name.startswith(("__", *RESERVED)):
            body[name] = ProxyMember(owner, name)
    if "__eq__" in body:
        body.setdefault("__hash__", None)
    return body


def build_proxy_class(name: str, bases: tuple[type, ...], body: dict[str, Any], facts: dict[str, Any]) -> Any:
    """Return a proxy class. *facts* are attributes of its own, which the other side cannot name."""
    extends = any(isinstance(base, ProxyClass) for base in bases)
    bases = bases if extends else (Proxy, *(base for base in bases if base is not object))
    kind = type.__new__(ProxyClass, name, bases, {**body, **facts, "__dict__": property(_get_fields)})
    type.__init__(kind, name, bases, body)
    return kind


def _get_fields(self: Any) -> Any:
    return find_peer(type(self)).side.list_fields(self)


FRAMEWORKS = ("_pytest", "pytest", "pluggy", "hypothesis", "unittest", "doctest")
"""Packages whose objects say what becomes of a test."""

NO_LIBRARY = (*FRAMEWORKS, "test", "bdb", "__main__", "jumar")


def is_library(module: str) -> bool:
    """Return whether *module* is loaded here from the standard library or installed beside it: both sides have it."""
    top = module.partition(".")[0]
    origin = getattr(getattr(sys.modules.get(top), "__spec__", None), "origin", None) or ""
    prefixes = (sys.base_prefix + os.sep, sys.prefix + os.sep)
    return top not in NO_LIBRARY and (origin in ("built-in", "frozen") or origin.startswith(prefixes))


def find_library_object(module: str, qualname: str) -> Any:
    """Return the object *qualname* in *module*, if that is loaded here and of a library; else None."""
    thing: Any = sys.modules.get(module) if is_library(module) else None
    for part in qualname.split(".") if qualname else ():
        thing = getattr(thing, part, None)
    return thing


def is_library_class(kind: Any) -> bool:
    """Return whether *kind* is a class that a library has under its name."""
    return isinstance(kind, type) and find_library_object(kind.__module__, kind.__qualname__) is kind
