"""Operations of the product on objects of the tests: crossed data is read here, methods are asked for."""

from __future__ import annotations

import functools
from typing import Any

from jumar.child.two_process import proxies
from jumar.child.two_process.wire import library_values
from jumar.child.two_process.wire.containers.shared_container import CHANGING, get_fact


class TestsThings:
    """Operations of the product on things of the tests: data is here, and all else is a `call`, `invoke` or `next`."""

    __test__ = False
    peer: Any = None

    def get_attribute(self, thing: Any, name: str) -> Any:
        """Return public data of *thing*, as the tests last told it."""
        fields = get_fields(thing)
        members = get_members(thing)
        if members and (name == "__members__" or name in members):
            return dict(members) if name == "__members__" else members[name]
        if name not in fields:
            raise AttributeError(name)
        return fields[name]

    def apply_to_class(self, kind: Any, op: str, *arguments: Any) -> Any:
        """Iterate over an enumeration of the tests, get its size, or a member of it."""
        members = get_members(kind)
        if not members:
            raise TypeError(f"'{kind.__name__}' is no enumeration")
        if op == "getitem":
            return members[arguments[0]]
        return len(members) if op == "len" else iter(members.values())

    def assign(self, thing: Any, name: str, value: Any) -> None:
        """Set data of *thing*, which the tests hear with the next message; what is not public is kept here, too."""
        if isinstance(thing, type) or name in ("__class__", "__dict__"):
            raise AttributeError(name)
        fields = get_fact(thing, proxies.TOLD_FIELDS)
        if fields is None or name.startswith("_"):
            proxies.keep_attribute(thing, name, value)
        if fields is not None and name[:2] != "__":
            fields[name] = value

    def remove(self, thing: Any, name: str) -> None:
        """Remove public data of *thing*, or what is kept here."""
        if get_fields(thing).pop(name, self) is self or name.startswith("_"):
            object.__delattr__(thing, name)

    def create(self, kind: Any, args: Any, keywords: Any) -> Any:
        """Make an instance of *kind*, a class of the tests."""
        return self.peer.ask("call", kind, args, keywords)

    def invoke(self, thing: Any, owner: Any, name: str, args: Any, keywords: Any) -> Any:  # noqa: ARG002  as it is for the product's things
        """Call the method *name* of *thing*, which the tests' files define."""
        if name == "__call__":
            return self.peer.ask("call", thing, args, keywords)
        return self.peer.ask("invoke", thing, name, args, keywords)

    def compare(self, name: str, owner: Any, thing: Any, others: tuple[Any, ...]) -> Any:
        """Return how a thing of the tests compares."""
        return self.invoke(thing, owner, name, others, {})

    def list_fields(self, thing: Any) -> Any:
        """Return the public data of *thing*, as `assign` changes it."""
        return get_fields(thing)

    def list_names(self, thing: Any) -> Any:
        """Return the names that *thing* has here."""
        kind: Any = type if isinstance(thing, type) else object
        return sorted({*get_fields(thing), *kind.__dir__(thing)})

    def describe(self, thing: Any) -> str:
        """Return a text for *thing*: of its content where it has one; Python's own would name the test."""
        for base in (BaseException, *library_values.LASTING, *CHANGING):
            if isinstance(thing, base):
                own: Any = base
                return str(own.__repr__(thing))
        return f"<{type(thing).__name__}>"

    def duplicate(self, op: str, thing: Any) -> Any:
        """Refuse to copy *thing*."""
        raise TypeError(f"{op}: a {type(thing).__name__} of the tests stays with them")

    def reduce(self, thing: Any, _protocol: Any) -> Any:
        """Refuse to pickle *thing*."""
        return self.duplicate("pickle", thing)

    def find_copier(self, thing: Any) -> Any:
        """Refuse, as `duplicate` does, but in a way that says that *thing* has no such method."""
        raise AttributeError(f"a {type(thing).__name__} of the tests has no __copy__ here")

    def check_exit(self, answer: Any, error: tuple[Any, ...]) -> Any:  # noqa: ARG002  the tests' side looks at it
        """Return what a context manager of the tests said."""
        return answer


def get_members(kind: Any) -> dict[str, Any]:
    """Return the members of *kind* if it is an enumeration of the tests."""
    return vars(kind).get("_jumar_members", {}) if type(kind) is proxies.ProxyClass else {}


def get_fields(thing: Any) -> dict[str, Any]:
    """Return the public data of *thing* that crossed."""
    fields = get_fact(thing, proxies.TOLD_FIELDS)
    return {} if fields is None else fields


class DataMember:
    """Plain data of a class of the tests, unless an instance has its own."""

    def __init__(self, name: str, value: Any) -> None:
        self._name, self._value = name, value

    def __get__(self, thing: Any, kind: Any = None) -> Any:
        return self._value if thing is None else get_fields(thing).get(self._name, self._value)


class MethodMember:
    """A method, or a property, that the tests' files define."""

    def __init__(self, name: str, *, called: bool) -> None:
        self._name, self._called = name, called

    def __get__(self, thing: Any, kind: Any = None) -> Any:
        peer, owner = proxies.find_peer(kind or type(thing)), kind if thing is None else thing
        if self._called:
            return functools.partial(_invoke, peer, owner, self._name)
        return peer.ask("invoke", owner, self._name, (), {})


def _invoke(peer: Any, owner: Any, name: str, /, *args: Any, **keywords: Any) -> Any:
    return peer.ask("invoke", owner, name, args, keywords)


def _step(self: Any, *_: Any) -> Any:
    return proxies.find_peer(type(self)).ask("next", self)


def _get_itself(self: Any) -> Any:
    return self


def _raise(_: Any, error: Any, *more: Any) -> None:
    raise next((given for given in (error, *more) if isinstance(given, BaseException)), error)


def _read_part(self: Any, name: str) -> Any:
    """Return the part *name* of a mock of the tests."""
    if name.startswith("_"):
        raise AttributeError(name)
    return proxies.find_peer(type(self)).ask("invoke", self, name, (), {})


def _get_class(self: Any) -> Any:
    """Return the class that a mock of the tests stands for, as `isinstance` has it."""
    try:
        return proxies.find_peer(type(self)).ask("invoke", self, "__class__", (), {})
    except TypeError:
        return type(self)


ASKING: dict[Any, Any] = {
    "next": _step, "self": _get_itself, "throw": _raise, "close": lambda _: None,
    "child": _read_part, "class": property(_get_class),
}  # fmt: skip
"""Ways to ask for a special attribute -> what a class of proxies has there."""


def build_members(members: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a class for the attributes that the tests told of it."""
    body: dict[str, Any] = {}
    for name, how in members.items():
        if type(how) is str and how in ASKING:
            body[name] = ASKING[how]
        elif how in ("method", "property"):
            body[name] = MethodMember(name, called=how == "method")
        else:
            body[name] = DataMember(name, how[1])
    return body
