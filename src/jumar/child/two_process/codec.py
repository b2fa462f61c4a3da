"""Encodes values: exact built-in ones by value, mutable containers as one shared thing, all else by reference.

| on the wire | is |
| --- | --- |
| `null`, `true`, `1`, `0.5`, `"a"` | itself |
| `["i", hex]`, `["b", hex]`, `["c", re, im]`, `["k", name]` | a long integer, bytes, a complex number, a constant |
| `["t", items]`, `["z", items]`, `["r", ...]`, `["s", ...]` | a tuple, a frozen set, a range, a slice |
| `["n", name]` | a type or exception that both sides have |
| `["v", name, args]` | a value of the standard library, made from its arguments |
| `["m", number, kind, content]`, `["m", number]` | a container that may change: the first time, and from then on |
| anything else | a thing of one side (`object_tables`) |
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator
from typing import Any

from jumar.child.two_process.wire import library_values
from jumar.child.two_process.wire.containers.batches import Batches
from jumar.child.two_process.wire.containers.held_changes import ShownChanges
from jumar.child.two_process.wire.containers.shared_container import CHANGING, SharedContainer

DEPTH = 60
"""Deepest nesting of a value that can be sent."""

WORD = 1 << 63


class Codec:
    """Values that one side sent and received. The tests' side numbers objects from 0, the product's from 1."""

    def __init__(self, first: int) -> None:
        self.tables: Any = None
        """Encodes and decodes what is no value (`object_tables.ObjectTables`)."""
        self.paths: Any = None
        """Checks texts, in the tests' process alone (`room_paths.RoomPaths`)."""
        self.note_library: Callable[[], object] = int
        """Is told, in the tests' process alone, that a thing of a library comes."""
        self.changes = ShownChanges()
        self.shared: dict[int, Any] = {}
        self.named = {**library_values.NAMED, **{name: kind for kind, name in CHANGING.items()}}
        """Types and exceptions that both sides know by name."""
        self.names = {kind: name for name, kind in self.named.items()}
        self.numbers: dict[int, int] = {}
        """Identity of what is shared -> its number."""
        self._next = first
        self._inside = False
        """True while the content of a container is decoded."""
        self._begun = False
        """True while a message is being encoded."""
        self._new: list[int] = []
        self._told: list[tuple[int, Any, list[Any]]] = []
        self._batches = Batches()

    def number(self) -> int:
        """Return a number that neither side has used: one counts the even ones, the other the odd ones."""
        self._next += 2
        return self._next

    def check_theirs(self, number: Any) -> int:
        """Return *number*, if it is one that the other side gives.

        Raises:
            ValueError: if it is not.
        """
        if type(number) is not int or number < 0 or number % 2 == self._next % 2:
            raise ValueError("a number that the other side cannot give")
        return number

    def share(self, thing: Any, kind: str, number: int, forms: Any = None, depth: int = 0) -> Any:
        """Register *thing* under *number*, so that the other process can refer to it; it is filled with *forms*."""
        self.numbers[id(thing)] = number
        self.shared[number] = entry = SharedContainer(thing, kind)
        self._batches.add(number, entry)
        held = entry.get_content() if forms is None else entry.fill(self._decode_parts(forms, depth))
        entry.note_own(held)
        self.changes.note_shared(number, entry, held)
        self.note_content(number, entry, held)
        return entry

    def replace(self, number: int, entry: SharedContainer, thing: Any, items: list[Any]) -> None:
        """Let *thing*, filled with *items*, be what *entry* shares under *number* from now on."""
        self.numbers.pop(id(entry.thing), None)
        self.numbers[id(thing)], entry.thing = number, thing
        self.note_content(number, entry, entry.fill(items))

    def introduce(self, thing: Any) -> int:
        """Return a new number for *thing*, which the message that is being written explains."""
        number = self.number()
        self.numbers[id(thing)] = number
        self._new.append(number)
        return number

    def forget(self, number: int) -> None:
        """Drop the object with *number*, which the other process no longer refers to."""
        entry = self.shared.pop(number, None)
        if entry is not None:
            self.changes.forget(number)
            self._batches.remove(number, entry)
            self.numbers.pop(id(entry.thing), None)

    def list_changes(self) -> list[Any]:
        """Return the changes of all shared containers, as `[number, items]` each; `settle` or `undo` must follow."""
        if self._begun:  # and asked something of the other side meanwhile: it is begun anew
            self.undo()
        self._new, self._told, self._begun = [], [], True
        found = []
        for number, entry, now in self._batches.find_changed():
            found.append([number, [self.encode(item, 1) for item in now]])
            self._told.append((number, entry, now))
        return found

    def settle(self) -> None:
        """Mark what was encoded since `list_changes` as sent."""
        for number, entry, now in self._told:
            entry.note_own(now)
            self.note_content(number, entry, now)
            self.changes.note_own(number)
        self._new, self._told, self._begun = [], [], False

    def undo(self) -> None:
        """Discard what was encoded since `list_changes`: it will not be sent."""
        for number in self._new:
            self.forget(number)
            self.tables.forget(number)
        self._new, self._told, self._begun = [], [], False

    def apply(self, changes: list[Any]) -> None:
        """Apply the changes of the other side."""
        for number, items in changes:
            entry = self.shared[number]
            with self._keep_decoded():
                parts = self.changes.apply(number, entry, self._decode_parts(items, 0))
            if parts is not None:
                self.note_content(number, entry, entry.fill(parts))
                self.changes.note_filled(entry)

    def _decode_parts(self, forms: list[Any], depth: int) -> list[Any]:
        """Return what is in a container: the very things that both sides know, whatever the tests see of them."""
        before, self._inside = self._inside, True
        try:
            return [self.decode(form, depth + 1) for form in forms]
        finally:
            self._inside = before

    def note_content(self, number: int, entry: SharedContainer, held: list[Any]) -> None:
        """Note that both sides know what *entry* holds."""
        self._batches.remove(number, entry)
        entry.note_seen(held)
        self._batches.add(number, entry)

    def remove_abandoned(self) -> Iterator[int]:
        """Remove shared containers that only this table refers to; yield their numbers.

        What was changed is not forgotten before that was told.
        """
        changed = {number for number, _, _ in self._told}
        for number in self._batches.find_unused():
            if number not in changed and not self.tables.holds(number):
                self.forget(number)
                yield number

    def encode(self, value: Any, depth: int = 0) -> Any:  # noqa: C901, PLR0911  # one line per form
        """Return *value* as JSON.

        Raises:
            ValueError: if it is nested too deeply, or may not leave.
        """
        kind = type(value)
        if value is None or kind is bool or kind is str or kind is float:
            if self.paths is not None and kind is str:
                self.paths.hand_out(value)
            return value
        if kind is int:
            return value if -WORD <= value < WORD else ["i", hex(value)]
        if depth > DEPTH:
            raise ValueError("a value that is nested too deeply")
        if kind is tuple or kind is frozenset:
            if depth and value:  # at the top are arguments
                self.changes.note_beside()
            return ["t" if kind is tuple else "z", [self.encode(item, depth + 1) for item in value]]
        if kind in CHANGING:
            return self._encode_container(value, CHANGING[kind], depth)
        if kind is bytes:
            if self.paths is not None:
                self.paths.hand_out(value.decode("latin-1"))
            return ["b", value.hex()]
        if kind in library_values.MADE_NAMES:
            arguments = library_values.MADE[library_values.MADE_NAMES[kind]][1](value)
            return ["v", library_values.MADE_NAMES[kind], [self.encode(a, depth + 1) for a in arguments]]
        if kind is type and value in self.names:
            return ["n", self.names[value]]
        if kind is type and value in library_values.MADE_NAMES:
            return ["n", "." + library_values.MADE_NAMES[value]]
        return self._encode_rare(value, depth)

    def _encode_rare(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is types.TracebackType:
            return None  # frames stay where they are
        if kind is complex:
            return ["c", value.real, value.imag]
        if kind is range or kind is slice:
            parts = (value.start, value.stop, value.step)
            return ["r" if kind is range else "s", *(self.encode(part, depth + 1) for part in parts)]
        if constant := library_values.find_constant(value):
            return ["k", constant]
        if made := library_values.find_argument(value):
            return ["v", made[0], [self.encode(made[1], depth + 1)]]
        return self.tables.encode(value, depth)

    def _encode_container(self, value: Any, kind: str, depth: int) -> Any:
        number, told = self.numbers.get(id(value)), []
        if number is None:
            number = self.introduce(value)
            told = [kind, *self.describe(value, kind, number, depth)]
        self.changes.note_handed(number)
        return ["m", number, *told]

    def describe(self, thing: Any, kind: str, number: int, depth: int) -> list[Any]:
        """Share *thing* under *number*; return the forms of its content, and of the other arguments that make it."""
        extra = [self.encode(thing.default_factory, depth + 1)] if kind == "defaultdict" else []
        extra += [thing.maxlen] if kind == "deque" else []
        return [[self.encode(item, depth + 1) for item in self.share(thing, kind, number).seen], *extra]

    def decode(self, form: Any, depth: int = 0) -> Any:  # noqa: C901, PLR0911, PLR0912  # one line per form
        """Return the value that *form* stands for. Any exception of its own means that it stands for none."""
        if type(form) is not list:
            if type(form) is dict:
                raise ValueError("an object is no form")
            return "" if self.paths is not None and type(form) is str and self.paths.check(form) else form
        if depth > DEPTH + 4:
            raise ValueError("a form that is nested too deeply")
        tag = form[0]
        if tag in ("t", "z"):
            items = (self.decode(item, depth + 1) for item in form[1])
            return tuple(items) if tag == "t" else frozenset(items)
        if tag == "m":
            if len(form) > 2:  # noqa: PLR2004  a new one
                return self.show(self._new_container(form, depth))
            if (entry := self.shared[form[1]]).kind not in self.named:  # data of an object is no container
                raise ValueError("a container that cannot be")
            self.tables.note_known(entry.thing)
            return self.show(entry.thing)
        if tag in ("v", "r", "s", "k"):
            self.note_library()
        if tag == "v":
            return library_values.make_value(form[1], [self.decode(a, depth + 1) for a in form[2]])
        if tag == "n":
            kind = self.decode_class(form, depth)
            return kind if self.paths is None else self.paths.check_class(kind)
        if tag == "i":
            return int(form[1], 16)
        if tag == "b":
            value = bytes.fromhex(form[1])
            return b"" if self.paths is not None and self.paths.check_bytes(value) else value
        if tag == "c":
            return complex(form[1], form[2])
        if tag in ("r", "s"):
            return (range if tag == "r" else slice)(*(self.decode(part, depth + 1) for part in form[1:4]))
        if tag == "k":
            return library_values.get_constant(form[1])
        with self._keep_decoded():
            return self.tables.decode(form, depth)

    def show(self, thing: Any) -> Any:
        """Return *thing*, which crosses again, as the tests see it from now on; within a container it is as known."""
        return thing if self._inside else self.changes.open(thing)

    def decode_class(self, form: list[Any], depth: int) -> Any:
        """Return the class that *form* stands for, where it is no value: of a thing, or one that another extends."""
        if form[0] == "C" and depth <= DEPTH + 4:
            with self._keep_decoded():
                return self.tables.decode_class(form, depth)
        if form[0] != "n":
            return self.decode(form, depth)
        return library_values.get_made(form[1][1:]) if form[1].startswith(".") else self.named[form[1]]

    def _new_container(self, form: list[Any], depth: int) -> Any:
        number, kind = self.check_theirs(form[1]), form[2]
        if number in self.shared or kind not in CHANGING.values():
            raise ValueError("a container that cannot be")
        make: Any = self.named[kind]
        with self._keep_decoded():
            given = [self.decode(each, depth + 1) for each in form[4:5]]
            thing = make((), *given) if kind == "deque" else make(*given)
            self.share(thing, kind, number, form[3], depth)
        return thing

    def _keep_decoded(self) -> Any:
        """Mark that what is decoded in the body stays: it is not sent again with the thing that it belongs to."""
        return contextlib.nullcontext() if self.paths is None else self.paths.keep()
