"""Operations of the tests on objects of the product: its process is asked, but never to decide a comparison."""

from __future__ import annotations

import contextlib
import datetime as dt
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from jumar.child.two_process import SAY, contents, proxies
from jumar.child.two_process.contents import ASKING, COMBINING, COMPARED, NEUTRAL
from jumar.child.two_process.environment.module_names import KnownNames
from jumar.child.two_process.environment.ties import Ties
from jumar.child.two_process.test_process import import_hook
from jumar.child.two_process.test_process.capabilities import Capabilities
from jumar.child.two_process.test_process.comparisons import Comparisons
from jumar.child.two_process.test_process.mentioned_names import MentionedNames
from jumar.child.two_process.test_process.other_data import MADE_OF
from jumar.child.two_process.wire import endings, library_values, operands, stand_ins
from jumar.child.two_process.wire.containers.shared_container import get_fact
from jumar.child.two_process.wire.own_instances import TOLD, OwnInstances, is_constant, is_enumeration

THINGS = (proxies.Proxy, proxies.ProxyClass)


class ProductThings(Comparisons):
    """Operations of the tests on things of the product."""

    peer: Any
    capabilities: Capabilities
    running: bool
    give_up: Callable[[str], NoReturn]
    refuse_end: Callable[[str], NoReturn]
    tie: Callable[..., NoReturn]
    fault: Callable[[str], None]
    failing: tuple[type[BaseException], ...]

    def __init__(self) -> None:
        super().__init__()
        self._queries = operands.Queries()
        self.find_unasked = self._queries.find_unasked
        self.names = KnownNames(import_hook.is_function_or_class, self.fault, THINGS)
        self.heard_ends = endings.HeardEnds()
        self.mentioned = MentionedNames(self, self.ask_aside)
        self.own_instances = OwnInstances(
            lambda thing: self.capabilities.conversation.note_back(thing),  # noqa: PLW0108  they come to be later
            self.fault,
        )
        self.ties = Ties(lambda thing: import_hook.is_known(thing) or self.own_instances.is_own(thing))
        self.note_known, self.note_kind = self.own_instances.note_returned, self.own_instances.note_kind
        self.operands = operands.Operands(self.fault)
        self.asked_within = endings.AskedWithin(self.fault)

    def check_arrived(self, error: Any = None) -> None:
        """Refuse an exception that ends what the tests do, and came as a value; *error* is what was raised."""
        self.own_instances.settle()
        if ended := self.heard_ends.take_value(error):
            self.give_up(f"a {ended} of the product comes as a value, and may be raised later")

    def get_attribute(self, thing: Any, name: str, owner: int | None = None) -> Any:
        """Return the attribute *name* of a thing of the product, as the class *owner* has it or as it has it itself."""
        if name == "throw" and self.capabilities.is_waiting():
            self.tie("what the product awaits of the tests would not hear that it is cancelled", thing)
        told = (get_fact(thing, TOLD) or {}).get(name, contents.NOTHING)
        if self.running and not self.capabilities.performing and told is not contents.NOTHING and is_constant(told):
            self.tie(f"a test reads {name}, a constant of its own class that the product knows, too")
        marked = any(get_fact(thing, mark) for mark in (COMPARED, contents.HEARD))
        if (marked and name == "__wrapped__") or not proxies.is_readable(name):  # as pytest asks for it
            raise AttributeError(name)
        self.check_use(thing, name)
        if name == "utcoffset" and self.running and isinstance(thing, dt.tzinfo):
            self.give_up(f"a {type(thing).__name__} of the product would decide how times compare")
        if owner is not None:  # of a class of the tests that extends one of the product
            found = self.peer.ask("member", thing, owner, name)
        elif type(thing) in (import_hook.ModuleFacade, proxies.ProxyClass):
            found = self.mentioned.read(thing, name)
        else:
            found = self.peer.ask("get", thing, name) if name == "__call__" else self.ask_aside("get", thing, name)
        if told is not contents.NOTHING and isinstance(thing, type) and not (found is told or found == told):
            self.give_up(f"{name}, in a class of the tests, is not what they wrote there")
        self.names.check_constant(thing, proxies.get_number(thing), name, found)
        endings.mark_step(found, name, thing, proxies.Proxy)
        known = import_hook.is_known(thing)
        if why := self.own_instances.note_method(found, name, thing, known=known):
            self.give_up(why)
        import_hook.note_name(found, name)
        self.ties.mark(found, thing)
        known = known or self.own_instances.may_contain(thing)
        if owner is None and (why := self.capabilities.doubles.find_fault(thing, name, found, known=known)):
            # Where the tests know the thing, it is not what they put there: that is the product's doing.
            with self.ties.serve() if known else contextlib.nullcontext():
                self.tie(why, thing)
        return found if isinstance(thing, type) else contents.check_method(thing, name, found, self.give_up)

    def assign(self, thing: Any, name: str, value: Any) -> None:
        """Set the attribute *name* of a thing of the product."""
        self.capabilities.note_put(thing, name, value)
        self.names.forget(name)
        self.mentioned.note_put(thing, name)
        self.peer.ask("set", thing, name, value)

    def remove(self, thing: Any, name: str, op: str = "delete") -> None:
        """Delete the attribute *name* of a thing of the product, or `restore` what was found in a class."""
        self.capabilities.note_put(thing, name, None)
        self.names.forget(name)
        self.peer.ask(op, thing, name)

    def list_fields(self, thing: Any, name: str = "__dict__") -> Any:
        """Return what a thing of the product holds, or has under *name*."""
        self.check_use(thing, name)
        return self.peer.ask("get", thing, name)

    def list_names(self, thing: Any) -> Any:
        """Return the names that a thing of the product has."""
        self.check_use(thing, "__dir__")
        return self.peer.ask("dir", thing)

    def describe(self, thing: Any) -> str:
        """Return the text of a thing of the product."""
        self.check_use(thing, "__repr__")
        answer = str(self.ask_aside("repr", thing))
        return str(self._check_reading(answer, "__repr__", thing, ())) if get_fact(thing, contents.HEARD) else answer

    def duplicate(self, op: str, thing: Any) -> Any:
        """Return a copy of a thing of the product; *op* is `copy` or `deepcopy`. That of a query is one, too."""
        if get_fact(thing, contents.HEARD):
            self.give_up(f"a copy of a {type(thing).__name__} that an operator came to would decide it")
        answer = self.ask_aside(op, thing)
        if get_fact(thing, COMPARED) and not self._mark(answer):
            self.give_up(f"a copy of a {type(thing).__name__} that a comparison came to would decide it")
        return answer

    def reduce(self, thing: Any, protocol: Any) -> Any:
        """Return the parts of a pickle of a thing of the product: bytes that its process made and makes it from."""
        self.check_use(thing, "__reduce_ex__")
        return import_hook.get_unpickler(), (self.ask_aside("dump", thing, protocol),)

    def find_copier(self, thing: Any) -> Any:
        """Return the method by which the class of a thing of the product copies it; AttributeError: it has none."""
        return self.list_fields(thing, "__copy__")

    def ask_aside(self, op: str, thing: Any, *arguments: Any) -> Any:
        """Ask *thing* for what says nothing of its truth: a query that is asked so still has to be handed back."""
        with self._queries.keep(thing, proxies.get_number):
            return self.peer.ask(op, thing, *arguments)

    def apply_to_class(self, kind: Any, op: str, *arguments: Any) -> Any:
        """Iterate over a class of the product, get its size, or an item of it."""
        if op == "getitem" and is_enumeration(kind) and self.mentioned.has_listed(kind, arguments[0]):
            return self.mentioned.read(kind, arguments[0])
        return self.peer.ask(op, kind, *arguments)

    def invoke(self, thing: Any, owner: Any, name: str, args: Any, keywords: Any) -> Any:
        """Call the special method *name* of a thing of the product, as the class *owner* has it."""
        self.check_use(thing, name)
        if not self.capabilities.is_file(sys._getframe(2).f_globals.get("__file__")):  # noqa: SLF001  there is no other way to see who asks
            if base := library_values.find_lasting(thing, name):
                return getattr(base, name)(thing, *args, **keywords)
            self._check_library(thing, name, str(sys._getframe(2).f_globals.get("__name__")))  # noqa: SLF001  as above
        self._note_heard(thing, name, args)
        early = name in contents.OPERATORS or name == "__hash__"  # they do not wait for what the product changes
        due = contents.compute(thing, name, args) if early else contents.NOTHING
        if name == "__hash__" and due is not contents.NOTHING and not contents.has_own_hash(thing):
            return due
        owned = get_fact(thing, contents.OWNER) or (proxies.get_number(thing), name in contents.MUTATING)
        self.peer.values.changes.note_method(*owned, reads=name in contents.TELLING)
        ask = self.peer.ask if name in ASKING else self.ask_aside
        answer = ask("method", thing, owner, name, stand_ins.hide(name, args, THINGS), keywords or None)
        if name in contents.OPERATORS:
            self._check_operator(answer, name, thing, args, due)
        elif name in contents.READ or get_fact(thing, contents.HEARD):
            return self._check_reading(answer, name, thing, args)
        self._check_end(answer, name, thing, args)
        combined = name in COMBINING and any(get_fact(part, COMPARED) for part in (thing, *args))
        if combined and answer is not NotImplemented and not self._mark(answer):
            self.give_up(f"what {name} makes of a {type(thing).__name__} that a comparison came to would decide it")
        return answer

    def _note_heard(self, thing: Any, name: str, args: tuple[Any, ...]) -> None:
        """Note that *thing* may hear by an operator what is expected; refuse one that tells how far that is away."""
        if name in ("__contains__", "__get__") or (name in contents.HEARING and contents.is_heard(thing, args)):
            self.capabilities.conversation.note(f"{name} of a {type(thing).__name__}{SAY}")
        if contents.is_difference(thing, name, args) and not endings.is_operation_awaited():
            self.give_up(f"{name} of a {type(thing).__name__} would hear what is expected")

    def _check_library(self, thing: Any, name: str, module: str) -> None:
        """Refuse an operator that a library applies; doubt the file for which pytest asks how its cases are called."""
        if name in contents.OPERATORS and self.running:
            self.give_up(f"a library applies {name} to a {type(thing).__name__}, which would hear what is expected")
        if name == "__call__" and not self.running and module.startswith("_pytest."):
            self.fault("pytest asks a function of the product for names of cases: it hears what they expect")

    def create(self, kind: Any, args: Any, keywords: Any) -> Any:
        """Make an instance of *kind*, a class of the product."""
        before = self.peer.written
        with self.own_instances.make(kind):
            made = self.mentioned.find_member(kind, args, keywords) if is_enumeration(kind) else None
            made = self.peer.ask("call", kind, args, keywords or None) if made is None else made
        if type(made) is kind and proxies.is_named(kind):
            if not any(isinstance(one, THINGS) for one in (*args, *keywords.values())):
                self._creating += self.peer.written - before
            self.own_instances.note_made(made)
            object.__setattr__(made, MADE_OF, self.line_up.note_made(kind, args, keywords))
        if get_fact(kind, "_jumar_extends") and not isinstance(made, kind):
            self.give_up(f"{kind.__name__}, a class of the tests, makes something else")
        return made

    def _check_operator(self, answer: Any, name: str, thing: Any, args: tuple[Any, ...], due: Any) -> None:
        """Refuse what an operator came to, if it is not *due*; note it if it has heard a value of the tests."""
        if not contents.may_answer(answer, name, thing, args, due):
            self.give_up(f"{name} of a {type(thing).__name__} comes to a value that its content does not come to")
        if isinstance(answer, proxies.Proxy) and contents.is_heard(thing, args):
            object.__setattr__(answer, contents.HEARD, name)

    def _check_reading(self, answer: Any, name: str, thing: Any, args: tuple[Any, ...]) -> Any:
        """Return what the special method *name* of a thing tells; refuse it if the content of that tells another."""
        due = contents.compute(thing, name, args)
        if due is contents.NOTHING:
            # Where Python itself raises, as for a list in a set, nothing tells that what a subclass says is so.
            refused = name == "__contains__" and contents.find_base(thing) is not None
            same = not refused and (name in proxies.COMPARING or not get_fact(thing, contents.HEARD))
        elif name in contents.WALKS:
            same = (answer := contents.walk(thing, answer, due)) is not None
        elif name == "__hash__" and contents.find_base(thing) not in contents.NUMBERS:
            return due  # its class was asked, as it may keep that, and what it said is another number in each process
        else:
            same = contents.agrees(answer, due)
        if not same:
            self.give_up(f"{name} of a {type(thing).__name__} comes to something else than its content does")
        return answer

    def _check_end(self, answer: Any, name: str, thing: Any, args: tuple[Any, ...]) -> None:
        """Check what a method of *thing* gave that may end a context or a loop of the tests, or affirm a text."""
        frame = sys._getframe(3)  # noqa: SLF001  there is no other way to see who asks
        self.operands.note_answer(answer, lasting=not self.running)
        if name == "__call__" and endings.is_leaving(frame):
            self.check_exit(answer, sys.exc_info())
        why = self.own_instances.note_result(answer, name, thing, frame)
        if why and not all(isinstance(given, proxies.Proxy) for given in args):
            self.give_up(why)
        if name in endings.GIVING:
            if not isinstance(answer, proxies.Proxy):
                self.give_up(f"{name} of a {type(thing).__name__} gives what is not awaited in the product's process")
            endings.mark_awaited(answer, name, thing, args)

    def check_raised(self, op: str, arguments: tuple[Any, ...], error: BaseException) -> BaseException:
        """Return *error*, of the product; refuse one that ends what the tests do, or hides what a comparison heard."""
        if (why := endings.find_fault(op, arguments, error)) and not endings.is_expected(error):
            self.refuse_end(why)
        told = op == "method" and arguments[2] in contents.HEARING and contents.is_heard(arguments[0], arguments[3])
        if told and not endings.is_operation_awaited():
            self.refuse_end(f"{arguments[2]} of a {type(arguments[0]).__name__} raises, and may know what is expected")
        return error

    def check_use(self, thing: Any, name: str) -> None:
        """Give the test up if *name* of *thing*, a query, would tell its truth, or what *thing* heard of the tests."""
        if name not in (*COMBINING, *NEUTRAL) and get_fact(thing, COMPARED):
            self.give_up(f"a {type(thing).__name__} that a comparison came to would decide it by {name}")
        heard = get_fact(thing, contents.HEARD) and not contents.may_tell(thing, name)
        if heard and not self.own_instances.may_ask((thing, thing)):
            self.give_up(f"a {type(thing).__name__} that an operator came to would decide it by {name}")

    def check_exit(self, answer: Any, error: tuple[Any, ...]) -> Any:
        """Refuse a context manager of the product that swallows an exception, but one that its body raises itself."""
        if endings.swallows(answer, error, self.failing, self.capabilities.is_file):
            self.give_up("a context manager of the product makes an exception disappear")
        return answer
