"""Values of the standard library: each crosses as the arguments that it is made from.

Modules of those that few programs have are imported where one crosses.
"""

from __future__ import annotations

import builtins
import datetime as dt
import decimal
import enum
import fractions
import gc
import importlib
import pathlib
import re
import sys
import types
import uuid
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

from jumar.child.two_process.wire.containers.shared_container import CHANGING

MADE: dict[str, tuple[type, Callable[[Any], tuple[Any, ...]]]] = {
    "date": (dt.date, lambda v: (v.year, v.month, v.day)),
    "datetime": (dt.datetime, lambda v: v.__reduce_ex__(4)[1]),
    "time": (dt.time, lambda v: v.__reduce_ex__(4)[1]),
    "timedelta": (dt.timedelta, lambda v: (v.days, v.seconds, v.microseconds)),
    "timezone": (dt.timezone, lambda v: v.__getinitargs__()),
    "Decimal": (decimal.Decimal, lambda v: (str(v),)),
    "Fraction": (fractions.Fraction, lambda v: (int(v.numerator), int(v.denominator))),
    "Path": (type(pathlib.Path()), lambda v: (str(v),)),
    "PurePosixPath": (pathlib.PurePosixPath, lambda v: (str(v),)),
    "UUID": (uuid.UUID, lambda v: (str(v),)),
    "Pattern": (re.Pattern, lambda v: (v.pattern, v.flags)),
}
"""Types of the standard library whose values are made from plain arguments."""

MADE_NAMES = {t: n for n, (t, _) in MADE.items()}

LASTING: tuple[type, ...] = (bool, int, str, float, complex, bytes, tuple, frozenset)
"""Types whose instances, those of subclasses too, are all that they will ever be when they are made."""

NAMED: dict[str, type] = {
    **{t.__name__: t for t in (*LASTING, object, range, slice, type(None), dt.tzinfo)},
    **{n: t for n, t in vars(builtins).items() if isinstance(t, type) and issubclass(t, BaseException)},
}

UNPICKLED = {("copyreg", "_reconstructor"), ("_codecs", "encode")} | {
    (kind.__module__, kind.__qualname__)
    for kind in (*NAMED.values(), *CHANGING, *MADE_NAMES)
    if not issubclass(kind, pathlib.PurePath)
}
"""Names of a pickle beside classes of the task: types whose instances cross as values."""

MODULES = {
    **dict.fromkeys(("IPv4Address", "IPv4Interface", "IPv4Network", "IPv6Address", "IPv6Interface", "IPv6Network"),
                    "ipaddress"),
    "ZoneInfo": "zoneinfo",
}  # fmt: skip
"""Name of a class -> its module. A zone is made from its key, an address from its text."""

VIEWS: dict[type, str] = {
    type({}.keys()): "keys",
    type({}.values()): "values",
    type({}.items()): "items",
    types.MappingProxyType: "mappingproxy",
    type(OrderedDict().keys()): "keys",
    type(OrderedDict().values()): "values",
    type(OrderedDict().items()): "items",
}
"""Views of a dict, which is shared: a view shows what is in it now."""

CODES: dict[type, str] = {types.GeneratorType: "gi_code", types.CoroutineType: "cr_code"}
"""Types that the product may step -> attribute for their code."""

COROUTINE = {"send": "next", "throw": "throw", "close": "close"}
"""Methods by which a task runs a coroutine: what is thrown into one of the tests it does not hear of."""

NAMESPACES = ("argparse", "types")
"""Modules of plain objects, whose data is all that they are."""

BARE = (("builtins", "object"), ("argparse", "Namespace"), ("types", "SimpleNamespace"))
"""Types without methods, so that nothing can be done with a thing of one: module and name."""

DICTS = (dict, OrderedDict, defaultdict, Counter)

ARGUMENTS: dict[str, tuple[tuple[type, ...], ...]] = {
    **dict.fromkeys(("date", "timedelta"), ((int,), (int,), (int,))),
    **dict.fromkeys(("datetime", "time"), ((bytes,), (dt.tzinfo,))),
    "timezone": ((dt.timedelta,), (str,)),
    "Fraction": ((int,), (int,)),
    "Pattern": ((str, bytes), (int,)),
    **dict.fromkeys(VIEWS.values(), (DICTS,)),
}
"""Name of a type -> the types of what it is made from; of others it is one text. What extends one would be asked."""

OPTIONAL = ("datetime", "time", "timezone")
"""Types of which the last argument may be missing."""

CONSTANTS = {
    "builtins": ("Ellipsis", "NotImplemented"),
    "dataclasses": ("MISSING", "KW_ONLY", "_FIELD", "_FIELD_CLASSVAR", "_FIELD_INITVAR"),
}
"""Module -> objects that are told from others by identity: without some of them a dataclass has no fields."""


def get_made(name: str) -> Any:
    """Return the type of values that is made under *name*; where a clock is stopped, those of times are others."""
    kind = MADE[name][0]
    return getattr(dt, name, kind)


def has_members(kind: Any) -> bool:
    """Return whether *kind* is an enumeration of numbers or texts, such as `http.HTTPStatus`."""
    return isinstance(kind, enum.EnumMeta) and len(kind) > 0 and issubclass(kind, (int, str))


def get_member(kind: Any, value: Any) -> Any:
    """Return the member of *kind*, such an enumeration, that has that *value*.

    Raises:
        ValueError: if there is none.
    """
    if not has_members(kind) or type(value) not in (int, str):
        raise ValueError("a thing of a class that has no proxies")
    return kind(value)


def read_namespaces(thing: Any, others: tuple[Any, ...], read: Callable[[Any], Any]) -> list[Any]:
    """Return the data of namespaces of one class, by which they compare; empty: they are none.

    *Thing* is the product's, which *read* reads. The other one is not, or the product had made what is expected.
    """
    kind = type(thing)
    known = getattr(sys.modules.get(kind.__module__), kind.__name__, None) if kind.__module__ in NAMESPACES else None
    held = read(thing) if [type(other) for other in others] == [known] else None
    return [held, *map(vars, others)] if type(held) is dict else []


def find_constant(value: Any) -> str:
    """Return the dotted name of *value*, if it is one of the constants; else an empty text."""
    for module, names in CONSTANTS.items():
        held = vars(sys.modules[module]) if module in sys.modules else {}
        for name in names:
            if held.get(name) is value:
                return f"{module}.{name}"
    return ""


def get_constant(name: str) -> Any:
    """Return the constant of a dotted name.

    Raises:
        ValueError: if there is none.
    """
    module, _, last = name.partition(".")
    if last not in CONSTANTS.get(module, ()):
        raise ValueError("no such constant")
    return getattr(importlib.import_module(module), last)


def find_argument(value: Any) -> tuple[str, Any] | None:
    """Return the name of the type of *value*, and what one is made from; None: it is no such value."""
    kind = type(value)
    if kind in VIEWS:
        shown = [held for held in gc.get_referents(value) if isinstance(held, dict)]
        return (VIEWS[kind], shown[0]) if len(shown) == 1 and type(shown[0]) in DICTS else None
    name = kind.__name__
    if name not in MODULES or kind is not getattr(sys.modules.get(MODULES[name]), name, None):
        return None
    argument = value.key if name == "ZoneInfo" else str(value)
    return (name, argument) if type(argument) is str else None


def make_value(name: str, arguments: list[Any]) -> Any:
    """Return the value of the type *name* that is made from *arguments*, exactly those that it crosses as.

    Raises:
        KeyError, ValueError, TypeError: if there is none.
    """
    kinds = ARGUMENTS.get(name, ((str,),))
    kinds = kinds[: len(arguments)] if name in OPTIONAL and arguments else kinds
    if len(kinds) != len(arguments) or not all(map(_is_exact, arguments, kinds)):
        raise TypeError("a value of other arguments")
    if name in MADE:
        maker: Any = re.compile if name == "Pattern" else get_made(name)
        return maker(*arguments)
    if name == "mappingproxy":
        return types.MappingProxyType(*arguments)
    if name in VIEWS.values():
        return getattr(arguments[0], name)()
    return getattr(importlib.import_module(MODULES[name]), name)(*arguments)


def _is_exact(argument: Any, kinds: tuple[type, ...]) -> bool:
    """Return whether *argument* is of one of *kinds*, and of no class that extends one, but for a time zone."""
    return type(argument) in kinds or (kinds == (dt.tzinfo,) and isinstance(argument, dt.tzinfo))


def get_bare_value(value: Any, base: Any) -> Any:
    """Return *value* as an instance of *base* itself, made by C alone."""
    if base is complex:
        return complex.__pos__(value)
    return frozenset(frozenset.__iter__(value)) if base is frozenset else base.__getnewargs__(value)[0]


def make_lasting(kind: Any, base: Any, value: Any) -> Any:
    """Return an instance of *kind*, which extends *base*, with *value*.

    Raises:
        ValueError: if that is of another type, which would say itself what it comes to.
    """
    if type(value) is not base:
        raise ValueError("the content of another type")
    return base.__new__(kind, value)


def find_lasting(thing: Any, name: str) -> Any:
    """Return the first type of what lasts that *thing* is of and that has *name*, or None."""
    return next((base for base in LASTING if isinstance(thing, base) and hasattr(base, name)), None)


def is_of_asyncio(thing: Any, code: types.CodeType) -> bool:
    """Return whether *thing* is a coroutine of asyncio's, such as a `sleep` that a test hands out, by its *code*."""
    asyncio = sys.modules.get("asyncio")
    place = str(getattr(asyncio, "__file__", None)).rpartition("/")[0]
    return type(thing) is types.CoroutineType and bool(place) and code.co_filename.startswith(f"{place}/")


def is_plain_iterator(kind: type) -> bool:
    """Return whether *kind* is an iterator of Python itself: to step it is all that can be done with it."""
    python = kind.__module__ in ("builtins", "itertools", "_collections")
    return python and "__next__" in vars(kind) and type(kind) is type
