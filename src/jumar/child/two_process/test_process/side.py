"""Tests' side of the connection: uses values and classes of the product, and lets it decide no comparison.

A test that needs more than that fails, whatever it does with the exception.
"""

from __future__ import annotations

import enum
import signal
import sys
import types
import unittest
from collections.abc import Callable
from typing import Any, NoReturn

from jumar.child.two_process import object_data, proxies
from jumar.child.two_process.environment.changes import ProductEnvironment
from jumar.child.two_process.test_process import import_hook
from jumar.child.two_process.test_process.capabilities import Capabilities
from jumar.child.two_process.test_process.class_rules import ClassRules
from jumar.child.two_process.test_process.product_things import ProductThings
from jumar.child.two_process.wire import endings, frames, library_values, notices, stand_ins
from jumar.child.two_process.wire.exceptions import CannotRunApart, EndRefused, ProductLost
from jumar.child.two_process.wire.files import shared_files

WITHIN = (types.FrameType, types.TracebackType, types.CodeType, types.ModuleType, unittest.TestCase,
          unittest.TestResult, unittest.TestSuite)  # fmt: skip
"""From these the product could reach the tests themselves."""


class TestsSide(ProductThings, ClassRules):
    """Rights of the product in the tests' process, and checks of what it sends."""

    __test__ = False

    def __init__(self, environment: ProductEnvironment, fatal: tuple[type, ...]) -> None:
        super().__init__()
        outcomes = sys.modules["_pytest.outcomes"]
        self._excusing = (unittest.SkipTest, outcomes.OutcomeException, outcomes.Exit)
        self.failing = (AssertionError, outcomes.Failed)
        self.limits, self.interrupts = (signal.SIGALRM,), tuple(k for k in fatal if k is not frames.ConnectionLost)
        """Limits of the time of a test: signals, and exceptions after which the conversation is taken up again."""
        self.unanswered = (ProductLost, *self._excusing, *fatal)
        """Exceptions of the tests' functions that the product does not get."""
        self.fatal = (KeyboardInterrupt, *self.unanswered)
        self.peer: Any = None
        self.silent = (AssertionError,)
        """Exceptions of which the product hears the class alone: the rest says what is expected."""
        self._unheard: BaseException | None = None
        """Failure of a function of the tests, as the product called it, that they did not hear."""
        self.faults, self.why = 0, ""
        self.facades: dict[int, Any] = {}
        self.hidden: dict[str, str] = {}
        """Files of the tests that are no evidence as they are written, each with why: a name is hidden there, say."""
        self.environment = environment
        self.capabilities = able = Capabilities(environment.room)
        self.take_back, self.list_members, self.offers = able.take_back, able.list_members, able.offers
        self.note_body, self.check_lent, able.fault = able.note_body, able.check_lent, self.fault
        self.follow, environment.note_seed = self.names.follow, able.conversation.note_seed
        self.running = False  # True if the files of the tests are loaded
        self.note_text: Callable[[str], object] = str  # is told what the product prints
        self.find_changed_class: Callable[[], str] = str
        """Returns the name of a class that a pickle has changed; empty: there is none."""
        self.files = shared_files.SharedFiles(self)
        self._said = 0
        self._told: list[Callable[[], Any]] = []
        """Warnings and records of logs that come with the next answer."""

    def fault(self, why: str) -> None:
        """Record that what runs now is no evidence for a pass, and *why*."""
        self.faults += 1
        self.why = why

    def hide(self, file: str, why: str) -> None:
        """Doubt the tests of *file*; the one that runs, if all files are loaded."""
        if self.running:
            self.fault(why)
        self.hidden[file] = why

    def give_up(self, why: str) -> NoReturn:
        """Give the test up: it cannot run like this."""
        self.fault(why)
        raise CannotRunApart(why)

    def refuse_end(self, why: str) -> NoReturn:
        """Give the test up for how the product has answered: by an exception."""
        self.fault(why)
        raise EndRefused(why)

    def note_tie(self, why: str, thing: Any = None) -> None:
        """Record that what the tests do, *why*, with *thing* if that is of the product, needs it in their process."""
        self.ties.note(thing)
        self.fault(why)

    def tie(self, why: str, thing: Any = None) -> NoReturn:
        """Give the test up for what it does, with *thing* if that is of the product."""
        self.note_tie(why, thing)
        raise CannotRunApart(why)

    def raise_lost(self, why: str) -> NoReturn:
        """Give the test up: nobody is there to ask."""
        self.fault(why)
        raise ProductLost(why)

    def note_broken(self, error: BaseException) -> None:
        """Record that the connection broke."""
        self.fault(f"the conversation with the product was cut short: {error or type(error).__name__}")

    tells_defaults = may_thread = False
    protocol_error = ProductLost
    """Exception for a product that does not keep to the rules."""

    def refuse_message(self, why: str) -> NoReturn:
        """Give up a product that asks for what cannot be decoded."""
        raise ProductLost(why)

    def refuse_value(self, why: str) -> Exception:
        """Return the exception for a test that hands out what may not leave."""
        self.fault(f"the tests hand out {why}")
        return TypeError("not for the product")

    def receive_output(self, stream: Any, text: Any) -> None:
        """Print what the product printed, or note what it warned of or wrote into a log."""
        self._said += len(str(text))
        if self._said > notices.MOST_BYTES:
            raise ProductLost("the product prints without end")
        if stream == "folder":
            self.files.active |= text == self.files.top
        elif type(stream) is str:
            try:
                self._told.append(notices.read_notice(stream, text, self.peer.values.decode, import_hook.find_raised))
            except Exception as error:  # what is no form may raise anything
                raise ProductLost("the other process does not keep to the protocol") from error
        else:
            self.note_text(str(text))
            screen = sys.stderr if stream == 2 else sys.stdout  # noqa: PLR2004  the number of the stream
            self.capabilities.conversation.note_output([screen])
            screen.write(str(text))

    def check_answer(self, kind: str, value: Any) -> None:
        """Warn of what the product warned of: with its answer, as a filter can make an exception of a warning.

        No answer may excuse an assertion that has just failed, as that of a function on an `ExitStack` does, and none
        may come in the place of one that failed on the way.
        """
        self.check_state()
        self.check_arrived(value if kind == "error" else None)
        self.ties.note_answer(value, lasting=not self.running)
        error = sys.exc_info()[1]
        if isinstance(error, self.failing) and proxies.NUMBER not in vars(error):
            self.asked_within.note(error)
        while self._told:  # the last: a filter or handler of the tests may raise
            self.capabilities.conversation.note_output(self._told.pop(0)())

    def check_state(self) -> None:
        """Record a fault if a pickle has changed a class, or the product kept a failure, or many errors, to itself."""
        if self._unheard is not None:
            self.fault("a function that the product called failed, and it went on without a word")
        self._unheard = None
        if changed := self.find_changed_class():
            self.fault(f"a pickle changes the class {changed}")

    def report_state(self) -> Any:
        """Return the changes of the environment that a test may have arranged for the product."""
        news = self.environment.find_changes()
        for value in filter(None, news[1].values() if news else ()):
            self.peer.values.paths.hand_out(value)
        return news and [*news[:5], *(self.peer.values.encode(each) for each in news[5:])]

    def encode_special(self, value: Any, depth: int) -> Any:
        """Return the form of what the product's process has itself: what libraries name, and what is made from data."""
        if type(value) is import_hook.ModuleFacade:
            return ["y", import_hook.get_number(value)]
        if issubclass(type(value), types.ModuleType):  # a mock may say that it is one
            return ["q", value.__name__, ""] if proxies.is_library(value.__name__) else None
        if self.capabilities.is_bound(value):
            return None
        form = object_data.encode_made(value, lambda part: self.peer.values.encode(part, depth + 1))
        if copied := self.capabilities.conversation.note_copied(value, form):
            self.ties.note_handed(value)
            self.fault(f"the test would not see what the code changes in its copy of a {copied}")
        return form

    def admit(self, value: Any) -> None:
        """Decide whether *value* of the tests may be sent to the product's process.

        Raises:
            ValueError: if the product could reach the tests through it.
        """
        of_class = issubclass(type(value), type)
        if not self.admits(value):
            self.ties.note_handed(value)
            raise ValueError(f"a {(value if of_class else type(value)).__name__}")
        if not of_class and not self.capabilities.knows(value):
            self.ties.note_handed(value)

    def admits(self, value: Any) -> bool:
        """Return whether *value* may be sent to the product's process."""
        kind = type(value)  # a mock may say that it is of another one
        module = str((value if issubclass(kind, type) else kind).__module__)
        framework = module.partition(".")[0] in proxies.FRAMEWORKS and module != "unittest.mock"
        return not issubclass(kind, WITHIN) and not framework

    def hand_out(self, form: list[Any]) -> None:
        """Let the product ask for the thing that *form* tells of."""
        if form[0] in ("o", "C") and not stand_ins.is_one(self.peer.tables.own.get(form[1])):
            thing = self.peer.tables.own.get(form[1])
            self.capabilities.hand_out(form[1], thing)
            if thing is not None and self.has_fields(thing):
                self.operands.note_handed(thing)
                self.peer.values.changes.note_handed(form[1])

    def hand_back(self, number: int, thing: Any) -> None:
        """Note that the product hears of its *thing* with *number*."""
        self._queries.hand_back(number)
        self.capabilities.conversation.note_sent(thing)

    def list_choices(self, kind: Any) -> list[Any] | None:
        """Return the members of an enumeration of the tests; None: *kind* is none."""
        return list(kind) if isinstance(kind, enum.EnumMeta) and self.capabilities.is_own_class(kind) else None

    def has_fields(self, value: Any) -> bool:
        """Return whether the data of *value* crosses with it."""
        kind = type(value)
        return kind.__module__ in library_values.NAMESPACES or (
            self.capabilities.is_own_class(kind) and not (isinstance(value, type) or self.capabilities.runs_tests(kind))
        )

    def tells_errors(self, kind: type) -> bool:
        """Return whether the plain data of an exception of *kind* crosses."""
        return proxies.is_library(kind.__module__) or self.capabilities.is_own_class(kind)

    def name_class(self, kind: type) -> list[str]:
        """Return the name of a class, without its module, as that names the test."""
        return [kind.__name__, "builtins" if kind.__module__ == "builtins" else "__main__", kind.__name__]

    def resolve(self, form: list[Any]) -> Any:
        """Return a module of the product."""
        if form[0] != "M":
            raise ValueError("no such form")
        number, name = form[1], str(form[2])
        if self.running and not (self.names.asking or proxies.is_library(name)):
            self.fault(f"the module {name} comes as a value, and may answer anything in the place of data")
        module = self._find_module(number, name)
        if not self.names.asking:
            self.ties.note_answered(module)
        return module

    def _find_module(self, number: Any, name: str) -> Any:
        if type(there := sys.modules.get(name)) is import_hook.ModuleFacade:
            return there
        if number not in self.facades:
            self.facades[number] = import_hook.ModuleFacade(name)
            import_hook.get_module_dict(self.facades[number]).update(_jumar_thing=number, _jumar_peer=self.peer)
        return self.facades[number]

    def admit_error(self, kind: type) -> None:
        """Rebuild an exception that the product's process raised.

        Raises:
            ValueError: if it would excuse or end a test instead of failing it.
        """
        if issubclass(kind, self.fatal):
            raise ValueError(f"the exception {kind.__name__}")  # noqa: TRY004  it is what was sent that is wrong
        self.heard_ends.note(kind)

    def accept_raised(self, error: Any) -> Any:
        """Return the exception that the product raised; an assertion of the tests that failed on the way, as it was.

        Raises:
            ProductLost: if it raised something else, or what is not its to raise.
        """
        if not isinstance(error, BaseException) or isinstance(error, self.fatal):
            raise ProductLost("the other process raises what is no exception of the product")
        if self._unheard is not None and (error is self._unheard or isinstance(error, AssertionError)):
            error, self._unheard = self._unheard, None
        return error

    def perform(self, op: str, values: list[Any], forms: Any) -> Any:
        """Perform a request of the product, if the tests handed out what it names. Note what fails."""
        try:
            self.check_arrived()
            return self.capabilities.perform(op, forms, values)
        except BaseException as error:
            if endings.comes_of(error, AssertionError) or self.capabilities.conversation.failed > endings.MOST_FAILURES:
                self._unheard = error
            raise
