"""Comparisons with objects of the product: it decides none, but how objects compare that a test made itself."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from jumar.child.two_process import contents, object_data, proxies
from jumar.child.two_process.contents import COMPARED
from jumar.child.two_process.environment.ties import Ties
from jumar.child.two_process.test_process.capabilities import Capabilities
from jumar.child.two_process.test_process.line_up import LineUp
from jumar.child.two_process.test_process.other_data import MADE_OF
from jumar.child.two_process.wire import library_values
from jumar.child.two_process.wire.operands import Queries
from jumar.child.two_process.wire.own_instances import OwnInstances


class Comparisons:
    """Comparisons of the tests with things of the product."""

    peer: Any
    capabilities: Capabilities
    running: bool
    own_instances: OwnInstances
    ties: Ties
    give_up: Callable[[str], NoReturn]
    invoke: Callable[..., Any]
    list_fields: Callable[..., Any]
    ask_aside: Callable[..., Any]
    _queries: Queries

    def __init__(self) -> None:
        self.line_up, self._creating = LineUp(self._make_again, self.count_uses), 0

    def count_uses(self) -> int:
        """Return how many messages were sent that made no object out of data."""
        return int(self.peer.written - self._creating)

    def compare(self, name: str, owner: Any, thing: Any, others: tuple[Any, ...]) -> Any:
        """Refuse to let the product decide a comparison, as it would know both sides; only identity is answered here.

        `in` of a container that the test itself made is a method like any other; flags have the values that crossed.
        """
        equal = name == "__eq__"
        itself = name in ("__eq__", "__ne__") and others and others[0] is thing
        if itself and self.ask_aside("method", thing, owner, name, others, None) is equal:
            return equal
        if name in ("__eq__", "__ne__") and (data := library_values.read_namespaces(thing, others, self.list_fields)):
            return (data[0] == data[1]) is equal
        held = object_data.hold_flags(thing, others[0]) if name == "__contains__" else None
        if held is not None and self.peer.ask("method", thing, owner, name, others, None) is held:
            return held
        if name == "__contains__" and not isinstance(thing, type) and self.own_instances.may_contain(thing):
            has = self._look_into(thing, owner, others[0])
            answer = self.invoke(thing, owner, name, others, {})
            if has not in (None, bool(answer)):
                self.give_up(f"a {type(thing).__name__} says once that it has something, and once that it has not")
            return answer
        # Not where a set is just being decoded that the product put them into.
        decoding = str(sys._getframe(2).f_globals.get("__name__")).startswith("jumar.")  # noqa: SLF001  there is no other way to see who asks
        comparable = not decoding and (not isinstance(thing, type) or proxies.is_named(thing))
        decides = isinstance(thing, type) or name == "__contains__"
        before: bool | None = None
        if comparable and not decides and self.own_instances.asks and self.own_instances.is_compared((thing, *others)):
            before = self._line_up_sides(thing, owner, name, others[0])
        with self.ties.keep():
            if not decides and self._mark(answer := self.invoke(thing, owner, name, others, {})):
                return answer
        asked = comparable and self.own_instances.may_ask((thing, *others))
        if asked and name == "__contains__":  # of a class
            before = self._look_into(thing, owner, others[0])
        why = f"{(thing if isinstance(thing, type) else type(thing)).__name__}.{name} would decide a comparison"
        answer = self.peer.ask("method", thing, owner, name, others, None) if asked else self.give_up(why)
        return self.give_up(why) if before not in (None, answer is (name != "__ne__")) else answer

    def _line_up_sides(self, thing: Any, owner: Any, name: str, other: Any) -> bool | None:
        """Return whether *name* holds of *thing* and *other*; give up if it holds of others as well. None: unknown."""

        def ask(one: Any, name: str, other: Any) -> Any:
            return self.peer.ask("method", one, owner, name, (other,), None)

        why, holds = self.line_up.compare(name, thing, other, ask)
        return self.give_up(why) if why else holds

    def _look_into(self, thing: Any, owner: Any, needle: Any) -> bool | None:
        """Return whether *thing*, a container that a test made, has *needle* in it; give up if it has all others, too.

        A copy is asked: the thing itself may count what it is asked for, and shows that later. None: nobody was asked.
        """

        def say(one: Any) -> Callable[[Any], Any]:
            return lambda other: self.peer.ask("method", one, owner, "__contains__", (other,), None)

        def copy() -> Callable[[Any], Any]:
            with contextlib.suppress(Exception), self.own_instances.make(type(thing)):  # it may raise anything
                return say(self.ask_aside("deepcopy", thing))
            return say(thing)

        if contents.find_base(thing) is not None:  # its content says what it has
            return None
        why, has = self.line_up.look_into(thing, needle, say, copy)
        return self.give_up(why) if why else has

    def _make_again(self, kind: Any, args: Any, words: Any) -> Any:
        """Make an instance of *kind* as a test does, for others beside one that it made."""
        before = self.peer.written
        with self.own_instances.make(kind):
            made = self.peer.ask("call", kind, args, words or None)
        self._creating += self.peer.written - before
        if type(made) is kind:
            object.__setattr__(made, MADE_OF, (args, words, self.count_uses()))
        return made

    def _mark(self, answer: Any) -> bool:
        """Mark *answer* as the result of a comparison, if it is an object of the product and no value."""
        marked = isinstance(answer, proxies.Proxy) and not isinstance(answer, contents.VALUES)
        if marked:
            object.__setattr__(answer, COMPARED, True)
            if self.running:  # else it is a constant of a file, such as a parameter of tests
                self._queries.add(proxies.get_number(answer), type(answer).__name__, lasting=self.capabilities.lasting)
        return marked
