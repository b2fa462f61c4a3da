"""Decides which changes of the product the tests see: what they hold stays as it is, as values cross by copy.

The product may fill what the tests left empty, and change what it made itself while the tests hand it that. Everything
else that it changed comes as a new copy, when it crosses again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from jumar.child.two_process.wire.containers.shared_container import FIELDS

KEPT = 1000
"""Containers that are remembered in a test after the product dropped them: a test may hand out new ones without end."""

PARTED = (tuple, frozenset)
"""Values that may hold containers, and are not shared themselves."""


class ShownChanges:
    """Shows each change of the other side at once, as the product's process does."""

    def ignore(self, *_: Any, **__: Any) -> None:
        """Do nothing: only `HeldChanges` has to know what was handed over, changed or dropped."""

    begin_test = end_call = note_shared = note_dropped = note_handed = note_method = ignore
    note_beside = note_own = note_filled = forget = ignore

    def apply(self, number: int, entry: Any, items: list[Any]) -> list[Any] | None:  # noqa: ARG002  one of the kinds needs them
        """Return what the container *number* is to hold now of *items*; None: they are kept for when it crosses."""
        return items

    def open(self, thing: Any) -> Any:
        """Return *thing*, a container that crosses again, as the other side has it."""
        return thing


class Dropped(NamedTuple):
    """A container of which the product dropped its copy; the tests may have theirs still, and hand it out again."""

    thing: Any
    came: bool
    """True if the product made it."""
    changed: bool
    left: list[Any] | None
    """Parts that the product put into it, where the tests had left it empty."""


class HeldChanges(ShownChanges):
    """Changes of the product that *values*, the codec of the tests' side, did not make in what the tests hold.

    *fault* records why the test is no evidence; *capabilities* know what is more than questions and data.
    """

    def __init__(self, values: Any, fault: Callable[[str], None], capabilities: Any) -> None:
        self._values, self._fault, self._capabilities = values, fault, capabilities
        self.copied = False
        """True if the product changed something in this test that the tests do not see."""
        self._held: dict[int, list[Any]] = {}
        """Number of a container -> what it holds in the product's process."""
        self._within: dict[int, list[Any]] = {}
        """The same of those that the tests see like that, but for copies of containers in them."""
        self._asked: set[int] = set()
        """Numbers of containers that the tests handed to the call that runs, and that lay in those then."""
        self._handed: list[int] = []
        """Numbers that are not among them yet."""
        self._beside = False
        """True if that call was handed something with data of the tests as well: it may fill the one with the other."""
        self._called = self._barred = 0
        """Number of the container that it is a method of: what it does with that is what it is for, or nothing."""
        self._dropped: dict[int, Dropped] = {}
        """The last of those that are not shared any more, by identity."""
        self._changed: set[int] = set()
        """Numbers of containers that the product changed after the tests had them, as those see."""

    def begin_test(self) -> None:
        """Forget what only one test has seen."""
        self.copied = False
        self._dropped.clear()
        self._changed.clear()

    def end_call(self) -> None:
        """Note that the call has ended that containers were handed to."""
        self._asked.clear()
        self._handed, self._beside, self._called, self._barred = [], False, 0, 0

    def note_shared(self, number: int, entry: Any, held: list[Any]) -> None:
        """Note that the container of *entry* is shared, perhaps anew: it is what it was.

        The product may go on to fill what it has filled before, and what it made was not left empty by the tests.
        """
        known = self._dropped.pop(id(entry.thing), None)
        if known is None or known.thing is not entry.thing:
            return
        left = known.left
        filled = left is not None and len(held) == len(left) and all(map(operator.is_, held, left))
        entry.is_open = (entry.is_open or filled) and not known.came
        if known.changed:
            self._changed.add(number)

    def note_dropped(self, number: int) -> None:
        """Note that the product does not refer to the container with *number* any more: the tests may."""
        entry = self._values.shared.get(number)
        if entry is None or entry.kind == FIELDS:
            return
        came = number % 2 == 1
        left = entry.seen if entry.is_open and entry.seen and not came else None
        self._dropped[id(entry.thing)] = Dropped(entry.thing, came, number in self._changed, left)
        if len(self._dropped) > KEPT:
            del self._dropped[next(iter(self._dropped))]

    def was_changed(self, value: Any) -> bool:
        """Return whether *value* is a container that the product changed after the tests had it."""
        known = self._dropped.get(id(value))
        return self._values.numbers.get(id(value)) in self._changed or (known is not None and known.changed)

    def was_given(self, value: Any) -> bool:
        """Return whether *value* is a container of the tests with something in it that the product was handed."""
        known, number = self._dropped.get(id(value)), self._values.numbers.get(id(value), 1)
        entry = self._values.shared.get(number) if number % 2 == 0 else None
        shared = entry is not None and entry.kind != FIELDS and not entry.is_open
        return shared or (known is not None and not known.came and known.left is None)

    def note_handed(self, number: int) -> None:
        """Note that the tests hand over the container with *number*: the product may change it until the call ends."""
        self._handed.append(number)
        entry = self._values.shared.get(number)
        if number % 2 == 0 and not (entry is not None and entry.kind != FIELDS and entry.is_open):
            self._beside = True
        if self._held and number % 2 and self._differs(entry and entry.thing):
            self._fault("a container that the product changed since it gave it away is handed to it again")

    def note_method(self, number: int, known: bool, *, reads: bool) -> None:  # noqa: FBT001  facts
        """Note that a method of the container with *number*, if it is of one, is called next: it may change that.

        A *known* one, which built-in types have, may do so with whatever it is handed: it has to do what theirs do.
        One that *reads* changes nothing.
        """
        self.note_handed(number)
        self._called, self._barred = number if known else 0, number if reads else 0

    def note_beside(self) -> None:
        """Note that the tests hand over a tuple with something in it."""
        self._beside = True

    def note_own(self, number: int) -> None:
        """Note that the tests changed the container with *number*: the product gets what it holds here."""
        self._within.pop(number, None)
        if self._held.pop(number, None) is not None:
            self._fault("the tests and the product both changed a container")

    def forget(self, number: int) -> None:
        """Forget the container with *number*: it is not shared any more."""
        self._held.pop(number, None)
        self._within.pop(number, None)
        self._changed.discard(number)

    def apply(self, number: int, entry: Any, items: list[Any]) -> list[Any] | None:
        """Return what the container *number* is to hold now of *items*; None: they are kept for when it crosses.

        Those that the product made have odd numbers.
        """
        self._ask()
        asked = number in self._asked and (number == self._called or not self._beside)
        if number == self._barred:  # it may be put into another order, as caches are when they are read
            asked = sorted(map(id, items)) == sorted(map(id, entry.get_content()))
        if not (asked if number % 2 else entry.is_open or entry.is_moved(items)):
            self._note_copied()
            return self._keep(number, items)
        self._held.pop(number, None)
        if entry.kind != FIELDS:
            self._changed.add(number)
        if number % 2 or not entry.is_moved(items):
            self._capabilities.conversation.note("the code changes what the test holds")
        return self._show(number, items, {})

    def note_filled(self, entry: Any) -> None:
        """Note if the product has set data of an object that the tests do not take over."""
        if entry.kind == FIELDS and entry.thing.is_withheld:
            self._note_copied()

    def _note_copied(self) -> None:
        """Note that the tests do not see a change. What several tests have may depend on that in each of them."""
        self.copied = True
        if self._capabilities.lasting:
            self._capabilities.conversation.note("the code changes its copy of what the test holds")

    def _keep(self, number: int, items: list[Any]) -> list[Any] | None:
        """Return what the tests see of a change to *items* that is not theirs: nothing, they are kept."""
        self._held[number] = items
        return None

    def open(self, thing: Any) -> Any:
        """Return *thing*, which crosses again: a new copy of what the product has, where that differs."""
        return self._copy(thing, {}) if self._held and self._differs(thing) else thing

    def _ask(self) -> None:
        """Note what lies in what was handed to the call, as the tests have it: it runs, and has changed nothing yet."""
        todo, self._handed = self._handed, []
        while todo:
            number = todo.pop()
            entry = self._values.shared.get(number)
            if entry is not None and number not in self._asked:
                todo += filter(None, (self._values.numbers.get(id(part)) for part in entry.get_content()))
            self._asked.add(number)

    def _differs(self, thing: Any) -> bool:
        """Return whether *thing*, or a container in it, is not what the product has."""
        return any(self._values.numbers.get(id(part)) in self._held for part in self._walk(thing, set()))

    def _walk(self, thing: Any, found: set[int]) -> Iterator[Any]:
        """Yield *thing* and all containers in it that are shared, but for those that were *found* before."""
        todo = [thing]
        while todo:
            at = todo.pop()
            if id(at) in found:
                continue
            found.add(id(at))
            kind: Any = next((kind for kind in PARTED if issubclass(type(at), kind)), None)
            entry = self._find_entry(at)
            if entry is not None:
                yield at
            todo += self._list_parts(entry) if entry is not None else kind.__iter__(at) if kind else ()

    def _find_entry(self, thing: Any) -> Any:
        number = self._values.numbers.get(id(thing))
        return None if number is None else self._values.shared.get(number)

    def _list_parts(self, entry: Any) -> list[Any]:
        """Return what *entry* holds in the product's process."""
        number = self._values.numbers[id(entry.thing)]
        held = self._held.get(number, self._within.get(number))
        return entry.get_content() if held is None else held

    def _copy(self, thing: Any, made: dict[int, tuple[Any, Any]]) -> Any:
        """Return *thing* as the product has it; *made* has copies, by the identity of what each is of."""
        if id(thing) in made:
            return made[id(thing)][1]
        if type(thing) in PARTED:
            return type(thing)(self._copy(part, made) for part in thing)
        entry = self._find_entry(thing)
        number = self._values.numbers.get(id(thing), 0)
        copied = entry.copy() if entry is not None and self._differs(thing) else None
        if copied is None or copied.thing is thing:
            if copied is not None and number % 2:
                self._fault(f"a {type(thing).__name__} crosses again, and the product changed it meanwhile")
            return thing
        made[id(thing)] = thing, copied.thing
        parts = self._list_parts(entry)
        if number % 2:
            self._held.pop(number, None)
            self._values.replace(number, entry, copied.thing, self._show(number, parts, made))
        else:
            copied.fill([self._copy(part, made) for part in parts])
        return copied.thing

    def _show(self, number: int, items: list[Any], made: dict[int, tuple[Any, Any]]) -> list[Any]:
        """Return *items*, of the container *number*, as the tests see them; what is in it stays known."""
        shown = [self._copy(item, made) for item in items] if self._held else items
        if all(map(operator.is_, shown, items)):
            self._within.pop(number, None)
        else:
            self._within[number] = items
        return shown


class InPlaceChanges(HeldChanges):
    """Makes all changes of the product in what the tests hold, as if both were in one process.

    A test that passes with them and without depends on neither.
    """

    def _keep(self, number: int, items: list[Any]) -> list[Any] | None:  # noqa: ARG002  the other way needs it
        return items

    def note_filled(self, entry: Any) -> None:
        """Take over the data of an object, too."""
        super().note_filled(entry)
        if entry.kind == FIELDS and entry.thing.keep():
            self._values.note_content(self._values.numbers[id(entry.thing)], entry, entry.get_content())
