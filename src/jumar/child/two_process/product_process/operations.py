"""Operations that the tests ask of things of the product, and the streams of its process."""

from __future__ import annotations

import copy
import functools
import importlib
import io
import types
from typing import Any

from jumar.child.two_process import proxies


def wrap_function(proxy: Any) -> Any:
    """Return a function that calls *proxy*, one of the tests, and has what decorators of the product gave that."""

    def method(*args: Any, **keywords: Any) -> Any:
        return proxy(*args, **keywords)

    kept = proxies.get_kept_attributes(proxy)
    for name in ("__name__", "__qualname__", "__doc__"):
        if kept.get(name):
            setattr(method, name, kept[name])
    vars(method).update({name: value for name, value in kept.items() if name not in functools.WRAPPER_ASSIGNMENTS})
    return method


def bind_function(self: Any, thing: Any, kind: Any = None) -> Any:  # noqa: ARG001  the descriptor protocol
    """Bind a function of the tests to the instance in whose class it was put."""
    return self if thing is None else types.MethodType(self, thing)


def get_member(thing: Any, owner: Any, name: str) -> Any:
    """Return the attribute *name* of *thing*, as *owner* has it, whatever classes below it say."""
    own = getattr(thing, "__dict__", {})
    if name in own or name not in vars(owner):
        return own[name] if name in own else getattr(super(owner, thing), name)
    return _bind(vars(owner)[name], thing)


def get_method(thing: Any, owner: Any, name: str) -> Any:
    """Return the special method *name* of *thing*, as the class *owner* has it."""
    found = vars(owner).get(name) if isinstance(owner, type) and isinstance(thing, owner) else None
    if found is None:
        found = getattr(type(thing), name)
    return _bind(found, thing)


def _bind(found: Any, thing: Any) -> Any:
    bind = getattr(type(found), "__get__", None)
    return bind(found, thing, type(thing)) if bind else found


def list_names(module: Any) -> list[str]:
    """Return the names that `from module import *` brings."""
    given = getattr(module, "__all__", None)
    return list(given) if given is not None else [n for n in dir(module) if not n.startswith("_")]


def _pickle(how: str, *given: Any) -> Any:
    return getattr(importlib.import_module("pickle"), how)(*given)


OPERATIONS: dict[str, Any] = {
    "call": lambda thing, args, keywords: thing(*args, **(keywords or {})),  # None: a container would be shared
    "new": lambda kind, args: kind.__new__(kind, *args),
    "getitem": lambda kind, key: kind[key],
    "delete": delattr, "repr": repr, "dir": dir, "iter": iter, "len": len,
    "isinstance": isinstance, "issubclass": issubclass, "names": list_names,
    "copy": copy.copy, "deepcopy": copy.deepcopy,
    "dump": functools.partial(_pickle, "dumps"), "load": functools.partial(_pickle, "loads"),
}  # fmt: skip
"""Operations that need nothing but what they are given."""


class RemoteOutput(io.TextIOBase):
    """Standard output stream that the tests' process prints."""

    encoding = "utf-8"
    errors = "strict"

    def __init__(self, side: Any, number: int) -> None:
        self._side, self._number = side, number

    def writable(self) -> bool:
        """Return True: the stream can be written to."""
        return True

    def fileno(self) -> int:
        """Return the descriptor of the stream below it."""
        return self._number

    def write(self, text: str) -> int:
        """Send *text* to the tests' process, buffered."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._side.print(self._number, text)
        return len(text)


class NoInput(io.TextIOBase):
    """Standard input where a test arranged none."""

    def read(self, *_: Any) -> Any:
        """Refuse, as pytest does."""
        raise OSError("reading from standard input that no test arranged")

    readline = read
