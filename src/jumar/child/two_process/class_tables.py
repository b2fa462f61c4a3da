"""Classes of one side that the other knows, and a proxy class for each of the other's."""

from __future__ import annotations

import abc
import collections.abc
import re
from typing import Any

from jumar.child.two_process import codec, proxies
from jumar.child.two_process.object_data import split_body
from jumar.child.two_process.wire.own_instances import TOLD, list_told

CHECKS = (type.__instancecheck__, abc.ABCMeta.__instancecheck__)
"""Python's own ways to tell what an instance is. What was registered for an abstract class is not asked for."""


class ClassTables:
    """The classes of one side; *side* says what may cross."""

    def __init__(self, values: codec.Codec, side: Any) -> None:
        self.peer: Any = None
        self.own: dict[int, Any] = {}
        self._values, self._side = values, side
        self._classes: dict[int, Any] = {}

    def introduce(self, thing: Any) -> int:
        """Return a new number for *thing*, which the message that is being written tells of."""
        self.own[number := self._values.introduce(thing)] = thing
        return number

    def encode_class(self, kind: Any, depth: int) -> Any:
        """Return the form of a class of this side, or of any other that has a name on both."""
        if type(kind) is proxies.ProxyClass:
            return ["y", proxies.get_number(kind)]
        if kind in self._values.names:
            return ["n", self._values.names[kind]]
        if depth > codec.DEPTH:
            raise ValueError("a class that extends too many")
        number = self._values.numbers.get(id(kind))
        if number is not None:
            return ["C", number]
        number = self.introduce(kind)
        bases = [self.encode_class(base, depth + 1) for base in kind.__bases__]
        names = [name for name in vars(kind) if self._side.offers(kind, name)]
        refused = [name for name in names if vars(kind)[name] is None and name in proxies.METHODS]
        metaclass: Any = type(kind)
        checks = metaclass.__instancecheck__ not in CHECKS
        members = self._side.list_members(kind)
        return ["C", number, [*self._side.name_class(kind), bases, names, refused, checks, members]]

    def decode_class(self, form: list[Any], depth: int) -> Any:
        """Return the class of the other side that *form* stands for."""
        return self._classes[form[1]] if len(form) == 2 else self._new_class(form, depth)  # noqa: PLR2004  a known one

    def _new_class(self, form: list[Any], depth: int) -> Any:
        number = self._values.check_theirs(form[1])
        *said, bases, names, refused, checks, members = form[2]
        name, module, qualname = map(self._values.decode, said)
        if type(name) is not str or not all(type(n) is str and n.isidentifier() for n in names):
            raise ValueError("a class without a name")
        name = re.sub(r"\W|^(?=\d)", "_", name)  # it may end up in source that is made of names
        kind = self._side.own_class(module, qualname)
        if kind is None:
            if any(base[0] not in ("n", "C") or str(base[1]).startswith(".") for base in bases):
                self._side.refuse_told("a base with methods that would run here")
            above = tuple(self._values.decode_class(base, depth + 1) for base in bases)
            facts = {**self.build_facts(number, extends=False), "__module__": str(module)}
            facts["__qualname__"] = str(qualname)
            body = proxies.build_class_body(number, names, refused)
            body.update(self._side.build_extras(name, module, members))
            try:
                kind = proxies.build_proxy_class(name, above, body, facts)
            except TypeError:  # bases that do not go together here
                kind = proxies.build_proxy_class(name, (), body, facts)
            name = "Generator" if (name, module) == ("generator", "builtins") else name
            interface = getattr(collections.abc, name, None) if module in ("builtins", "collections.abc") else None
            if interface is not None:
                interface.register(kind)
            type.__setattr__(kind, "_jumar_checks", bool(checks))  # not before: to register a class looks for circles
        self._classes[number] = kind
        return kind

    def build_facts(self, number: int, *, extends: bool) -> dict[str, Any]:
        """Return the attributes that a proxy class holds about itself."""
        facts = {"_jumar_peer": self.peer, proxies.NUMBER: number, "_jumar_extends": extends}
        return {**facts, "_jumar_checks": False, proxies.NAMED: extends or None}

    def extend_class(self, name: str, bases: tuple[type, ...], body: dict[str, Any], keywords: dict[str, Any]) -> Any:
        """Return a class of this side that extends proxy classes; the other side makes one that calls its methods."""
        ours, theirs = split_body(body)
        self._side.note_body(ours)
        number = self._values.check_theirs(self.peer.ask("reserve"))
        facts = {**self.build_facts(number, extends=True), TOLD: list_told(body, ours, bases)}
        kind = proxies.build_proxy_class(name, bases, ours, facts)
        self._classes[number] = kind  # what the product registers the class in may cross before the answer
        made = self.peer.ask("extend", name, tuple(b for b in bases if b is not object), theirs, keywords, number)
        if made != number:  # it crossed while it was being made
            type.__setattr__(kind, proxies.NUMBER, self._values.check_theirs(made))
            self._classes[made] = kind
        return kind
