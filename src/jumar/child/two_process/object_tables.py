"""Object tables of one side: its own things that the other knows, and one proxy for each of the other's in use."""

from __future__ import annotations

import contextlib
import sys
import types
from typing import Any

from jumar.child.two_process import codec, proxies
from jumar.child.two_process.class_tables import ClassTables
from jumar.child.two_process.object_data import open_fields
from jumar.child.two_process.wire import exceptions, library_values, signatures, stand_ins
from jumar.child.two_process.wire.containers.shared_container import (
    CHANGING,
    FIELDS,
    CopiedFields,
    begin_container,
    get_fact,
)

SPARE = 32
"""New proxies and copies after which those are looked for again that nothing refers to, or as many as there are."""


class ObjectTables(ClassTables):
    """The tables of one side; *side* says what may cross."""

    def __init__(self, values: codec.Codec, side: Any) -> None:
        super().__init__(values, side)
        self.note_known = side.note_known
        self._known: dict[int, Any] = {}
        self._fields: dict[int, Any] = {}
        self.copies: dict[int, tuple[int, Any]] = {}
        """Identity of a copy of an object of the other side -> the number of that, and the copy."""
        self._enough = SPARE

    def keep(self, thing: Any, reserved: int | None = None) -> int:
        """Return the number of *thing*, which is kept for good: its own, else *reserved*, else a new one."""
        number = self._values.numbers.get(id(thing))
        if number is None:
            number = self._values.numbers[id(thing)] = reserved or self._values.number()
            self.own[number] = thing
        return number

    def holds(self, number: int) -> bool:
        """Return whether *number* is more than a container: its proxy or original is kept here."""
        return number in self._known or number in self.own

    def forget(self, number: int) -> None:
        """Drop the object with *number* from the table."""
        thing = self.own.pop(number, None)
        self._fields.pop(number, None)
        self._side.take_back(number)
        if thing is not None:
            self._values.numbers.pop(id(thing), None)

    def remove_unused(self) -> list[int]:
        """Remove proxies that nothing refers to any more; return their numbers. Most calls do not search."""
        if len(self._known) + len(self.copies) < self._enough:
            return []
        dead = self._remove_unused_copies()
        for number in list(self._known):
            unused = sys.getrefcount(self._known[number]) <= 2 + (number in self._values.shared)
            if unused and not get_fact(self._known[number], "_jumar_kept"):
                del self._known[number]
                self._values.forget(number)
                dead.append(number)
        left = len(self._known) + len(self.copies)
        self._enough = left + max(left, SPARE)
        return dead

    def _remove_unused_copies(self) -> list[int]:
        """Remove copies that nothing refers to any more; return the numbers of which no other copy is left."""
        gone = set()
        for place, (_, copied) in list(self.copies.items()):
            if sys.getrefcount(copied) <= 3:  # noqa: PLR2004  the table, the name here, and the argument
                gone.add(self.copies.pop(place)[0])
        return sorted(gone.difference(number for number, _ in self.copies.values()))

    def encode(self, value: Any, depth: int) -> Any:
        """Return the form of *value*, a thing.

        Raises:
            ValueError: if it may not leave.
        """
        number = self._find_theirs(value)
        if number is not None:
            self._side.hand_back(number, value)
            self._values.changes.note_handed(number)
            return ["y", number]
        form = self._side.encode_special(value, depth)
        if form is not None:
            return ["d", self._get_copy_number(value), *form[1:]] if form[0] == "d" else form
        if issubclass(type(value), type):
            form = self.encode_class(value, depth)
            self._side.hand_out(form)
            members = self._side.list_choices(value)
            return form if members is None else ["E", form, [self._values.encode(each, depth + 1) for each in members]]
        number = self._values.numbers.get(id(value))
        if number is not None:
            self._side.hand_out(["o", number])
            return ["o", number]
        self._side.admit(value)
        number = self.introduce(value)
        self._side.hand_out(["o", number])
        form = ["o", number, self.encode_class(type(value), depth), self._encode_state(value, number, depth)]
        return [*form, self._encode_fields(value, number, depth)]

    def _find_theirs(self, value: Any) -> int | None:
        """Return the number of *value* if it stands for a thing of the other side, else None."""
        if type(value) is proxies.ProxyClass or type(type(value)) is proxies.ProxyClass:
            return proxies.get_number(value)
        if issubclass(type(value), (BaseException, types.FunctionType)) and proxies.NUMBER in vars(value):
            return int(vars(value)[proxies.NUMBER])
        return self.copies[id(value)][0] if id(value) in self.copies else None

    def _get_copy_number(self, value: Any) -> int:
        """Return the number of *value*, by which it is found again when its copy comes back."""
        known = self._values.numbers.get(id(value))
        return self.introduce(value) if known is None else known

    def _encode_state(self, value: Any, number: int, depth: int) -> Any:
        encode = self._values.encode
        if issubclass(type(value), self._side.silent):
            return exceptions.SILENT
        if issubclass(type(value), BaseException):
            held = vars(value) if self._side.tells_errors(type(value)) else {}
            known = None if type(value) in self._values.names else held
            return exceptions.describe_error(value, known, lambda part: encode(part, depth + 1), depth)
        for base in library_values.LASTING:
            if issubclass(type(value), base):
                return encode(library_values.get_bare_value(value, base), depth + 1)
        for base, name in reversed(list(CHANGING.items())):
            if issubclass(type(value), base):
                return self._values.describe(value, name, number, depth)
        return signatures.describe(value, encode if self._side.tells_defaults else None)

    def _encode_fields(self, value: Any, number: int, depth: int) -> Any:
        """Return the form of the public data of *value*, if it is an object of the tests' own classes."""
        if not self._side.has_fields(value):
            return None
        self._fields[number] = fields = open_fields(value, self._side.admits)
        told = self._values.introduce(fields)
        return [told, *self._values.describe(fields, FIELDS, told, depth)]

    def _copy_fields(self, thing: Any, form: list[Any], depth: int) -> None:
        self._side.refuse_told("data of a thing")
        fields = CopiedFields()
        object.__setattr__(thing, proxies.TOLD_FIELDS, fields)
        self._values.share(fields, FIELDS, self._values.check_theirs(form[0]), form[1], depth)

    def decode(self, form: list[Any], depth: int) -> Any:
        """Return the thing that *form* stands for. Any exception of its own means that it stands for none."""
        tag, number = form[0], form[1]
        if tag == "y" or (tag == "o" and len(form) == 2):  # noqa: PLR2004  a known one
            table = self.own if tag == "y" else self._known
            if tag == "y":
                self._side.check_lent(number, table[number])
            thing = self._values.show(stand_ins.unwrap(table[number]))
            if tag == "o":
                table[number] = thing
            self._side.heard_ends.note(type(thing))
            self.note_known(thing)
            return thing
        if tag == "E":
            self._side.refuse_told("an enumeration")
            kind, *members = (self._values.decode(each, depth + 1) for each in (number, *form[2]))
            type.__setattr__(kind, "_jumar_members", {each.name: each for each in members})
            return kind
        if tag == "C":
            self._side.note_class(kind := self.decode_class(form, depth))
            return kind
        if tag == "o":
            return self._new_proxy(form, depth)
        return self._side.resolve(form)

    def _new_proxy(self, form: list[Any], depth: int) -> Any:
        number, kind = self._values.check_theirs(form[1]), self._values.decode_class(form[2], depth + 1)
        state, fields = form[3:]
        if number in self._known or not isinstance(kind, type):
            raise ValueError("a thing that cannot be")
        self._side.note_kind(kind)
        if kind is object:  # a sentinel: its class has no methods, and every proxy class will do
            kind = proxies.build_proxy_class("object", (), {}, self.build_facts(number, extends=False))
        base: Any = next(b for b in kind.__mro__ if type(b) is not proxies.ProxyClass and b is not proxies.Proxy)
        if issubclass(kind, BaseException):
            return self._new_error(kind, number, state, depth)
        if type(kind) is not proxies.ProxyClass:
            return self._known.setdefault(number, library_values.get_member(kind, self._values.decode(state)))
        if issubclass(base, library_values.LASTING):
            thing = library_values.make_lasting(kind, base, self._values.decode(state, depth + 1))
        else:
            maker: Any = base if base in CHANGING else object
            thing = maker.__new__(kind)
        object.__setattr__(thing, "_jumar_thing", number)
        self._known[number] = thing
        if base in CHANGING:
            begin_container(thing, base, [self._values.decode(part, depth + 1) for part in state[1:]])
            self._values.share(thing, CHANGING[base], number, state[0], depth)
            self._known[number] = thing = self._values.show(thing)
        if state is not None and base is object:
            signatures.apply(thing, state, self._values.decode)
        if fields is not None:
            self._copy_fields(thing, fields, depth)
        return thing

    def _new_error(self, kind: Any, number: int, state: Any, depth: int) -> Any:
        decode = self._values.decode
        arguments, extras, cause, context, suppressed = state
        args = tuple(decode(a, depth + 1) for a in arguments)
        self._side.admit_error(kind)
        base = next(b for b in kind.__mro__ if b.__module__ == "builtins" and type(b) is not proxies.ProxyClass)
        error = base.__new__(kind, *args)
        with contextlib.suppress(TypeError, ValueError, AttributeError):
            base.__init__(error, *args)
        exceptions.fill_error(error, base, args, [(name, decode(value)) for name, value in extras])
        for name, value in (("_jumar_thing", number), (proxies.NUMBER, number), ("__suppress_context__", suppressed)):
            object.__setattr__(error, name, value)
        self._known[number] = error
        for name, form in (("__cause__", cause), ("__context__", context)):
            if form is not None:
                drops = self._side.heard_ends.drops(reason := decode(form, depth + 1))
                object.__setattr__(error, name, Exception("left out") if drops else reason)
        return error
