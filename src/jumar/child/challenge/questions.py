"""Sees what the tests compare while they run, and lets a falsified test go on to its end, where it fails.

It passes if something wrong was affirmed: a literal that was changed in the file, or what nothing is equal to.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from jumar.child.challenge.current_test import CurrentTest, ExpectedException
from jumar.child.challenge.deciding import CONTAINERS, PLAIN, affirms_all, holds, is_class, is_where_it_says
from jumar.child.challenge.known_assertions import COMPARING, EXCEPTIONS, HARMLESS, SOLID, is_kin

STANDING = "jumar.child.two_process"
"""Package of what stands for something in another process."""

BOUND = (types.MethodType, types.BuiltinMethodType, types.MethodWrapperType)
"""Types of functions that belong to an object."""


class Listener:
    """Hears what the tests compare, and that an assertion has come of it: nobody, where all is in one process."""

    def see(self, value: Any) -> None:
        """Hear that *value* is compared."""

    def settle(self, held: Any) -> None:
        """Hear that an assertion has come of what was compared, which is true if *held* is."""

    def call(self, name: str, function: Any) -> None:
        """Hear that *function* asserts, which the tests call by *name*."""

    def run(self, frame: Any) -> None:
        """Hear that the code of *frame* compares something."""


class Questions:
    """All that the files of the tests are rewritten to call.

    Args:
        random: draws what is asked.
        is_product: tells whether an object is of the code under test.
        decides: tells whether objects of a class say themselves what they are equal to.
        is_own: tells whether a function is the tests' own, and so rewritten itself.
        is_strange: tells whether a class is neither the tests' own nor one of a library.
    """

    def __init__(
        self,
        random: Random,
        is_product: Callable[[Any], bool],
        decides: Callable[[type], bool],
        is_own: Callable[[Any], bool],
        is_strange: Callable[[type], bool] = lambda _: False,
    ) -> None:
        self._random, self._is_product, self._decides, self._is_own = random, is_product, decides, is_own
        self._is_strange = is_strange
        self.test: CurrentTest | None = None
        self.listener = Listener()
        self._kinds: dict[int, tuple[type, bool]] = {}
        """Number of a class -> the class, and whether it is of the code under test."""

    def see(self, operator: str, value: Any, /) -> Any:
        """Note what is compared, by which *operator*: who decides that himself leaves the test unproved."""
        frame = sys._getframe(1)  # noqa: SLF001  there is no other way to see who compares
        self.listener.run(frame)
        if self.test is not None:
            self.test.comparisons[frame.f_code.co_filename, frame.f_lineno] += 1
            # A text that is looked into has more than is asked for: the line of a record, the name of the program.
            if type(value) is not str or operator not in ("in", "not in"):
                self.test.add_data((frame.f_code.co_filename, frame.f_lineno), value)
        return self._see(operator, value)

    def reach(self, function: Any, number: int, /) -> Any:
        """Note that *function* is called by the call *number* of a file, if it is of the code under test."""
        if self.test is not None and self.test.summed and any(map(self._is_of_product, _list_parts(function))):
            self.test.calls[sys._getframe(1).f_code.co_filename, number] += 1  # noqa: SLF001  as above
        return function

    def _is_of_product(self, thing: Any) -> bool:
        """Return whether *thing* is a function or class of the code under test, or of such a class."""
        if type(thing) is types.FunctionType:
            return str(thing.__module__).startswith(STANDING) or self._is_product(thing)
        kind = thing if issubclass(type(thing), type) else type(thing)
        if id(kind) not in self._kinds:
            self._kinds[id(kind)] = kind, self._is_product(kind)
        return self._kinds[id(kind)][1]

    def _see(self, operator: str, value: Any) -> Any:
        if self.test is None:
            return value
        self.listener.see(value)
        if type(value) is str and "def test" in value:  # it may quote the very test, and so what is falsified in it
            self.test.partial = self.test.doubtful = True
        if id(type(value)) in PLAIN:
            return value
        found = self.test.find_deciding(value, self._decides, self._is_strange)
        self.test.note_deciding(map(type, found))
        self.test.doubtful |= bool(found)
        for one in filter(self._is_product, found if self.test.falsified else ()):
            self.test.answered = True
            self.test.lying |= affirms_all(operator, one, self._random)
        return value

    def look(self, name: str, box: Any, /, *args: Any, **words: Any) -> Any:
        """Have a container look for what it is given."""
        if id(type(box)) in CONTAINERS or type(box).__module__ == "collections":
            self._see("==", (box, args))
        return getattr(box, name)(*args, **words)

    def doubt(self, value: Any, /) -> Any:
        """Note that something is compared without an operator."""
        if self.test is not None:
            self.test.partial = True
        return value

    def confirm(self, held: Any, /) -> bool:
        """Assert; a falsified test goes on, whatever came."""
        if self.test is None:
            return bool(held)
        self.test.came, self.test.doubtful, self.test.answered = True, False, False
        self._note_place(held)
        self.listener.settle(held)
        if self.test.falsified:
            return True
        truth = bool(held)  # asked once, as it is written
        self.test.failed = self.test.failed or not truth
        return truth

    def affirm(self, held: Any, /) -> bool:
        """Assert what is compared."""
        if self.test is not None:
            self.test.compared = True
        return self.confirm(held)

    def deny(self, held: Any, /) -> bool:
        """Assert what is not; the test goes on. Who holds it for true knows of it, if no object has a say."""
        test = self.test
        if test is not None:
            test.asserted = test.came = True
            self._note_place()
            held_for_true = holds(lambda: held)
            test.lying = test.lying or (not test.doubtful and held_for_true)
            test.affirming = test.affirming or (test.answered and held_for_true)
            test.doubtful = test.answered = False
        return True

    def see_kind(self, value: Any, /) -> Any:
        """Note of what the type is asserted: what is of many built-in types is of all."""
        if self.test is not None:
            self.test.asserted = True
            everything = id(type(value)) not in PLAIN and all(isinstance(value, kind) for kind in SOLID)
            self.test.lying = self.test.lying or everything
        return value

    def call(self, name: str, function: Any, /, *args: Any, **words: Any) -> Any:
        """Call what asserts; a falsified test goes on, whatever came."""
        self.listener.run(sys._getframe(1))  # noqa: SLF001  as above
        return self._call(name, partial(function, *args, **words), false=False)

    def call_false(self, name: str, function: Any, /, *args: Any, **words: Any) -> Any:
        """Call what asserts something that is not; the test goes on."""
        self.listener.run(sys._getframe(1))  # noqa: SLF001  as above
        return self._call(name, partial(function, *args, **words), false=True)

    def _call(self, name: str, asserted: Any, *, false: bool) -> Any:
        test, note = self.test, self.deny if false else self.confirm
        receiver = getattr(asserted.func, "__self__", None)
        self._note_place(*asserted.args, *asserted.keywords.values())
        if test is None or self._is_own(asserted.func):
            return asserted()
        test.compared = True
        if name not in HARMLESS:
            calls = [(tuple(c.args), dict(c.kwargs)) for c in getattr(receiver, "call_args_list", None) or ()]
            for value in (*asserted.args, *asserted.keywords.values(), *calls):
                self._see(COMPARING.get(name, "=="), value)
        if not hasattr(receiver, "assertEqual") and id(type(receiver)) not in PLAIN and self._is_product(receiver):
            test.partial = True  # it stands in the place of a mock
        self.listener.call(name, asserted.func)
        try:
            answer = asserted()
        except BaseException as error:
            before = test.failed
            note(False)  # noqa: FBT003  what was asserted does not hold
            test.failed = test.failed if isinstance(error, AssertionError) else before
            if (test.falsified or false) and isinstance(error, AssertionError):  # a test may call another one
                return None
            raise
        note(answer is None or answer)
        return answer

    def expect(self, _: str, function: Any, /, *args: Any, **words: Any) -> Any:
        """Expect an exception: one that is of many classes affirms everything."""
        try:
            made = function(*args, **words)
        except BaseException:
            self.confirm(False)  # noqa: FBT003  none came
            raise
        if not _is_of_framework(made) or not args:
            self._note_asserted()
            return made
        return ExpectedException(made, partial(self.note_raised, args[0]), self.has_failed)

    def caught(self, kinds: Any, /) -> None:
        """Assert that the exception came which is being handled, where one of *kinds* was expected."""
        self.note_raised(kinds, sys.exc_info()[0], held=True, failed=self.has_failed())

    def has_failed(self) -> bool:
        """Return whether an assertion of the test has failed."""
        return self.test is not None and self.test.failed

    def note_raised(self, kinds: Any, raised: Any, *, held: bool, failed: bool) -> None:
        """Note that an exception of the type *raised* came where one of *kinds* was expected, and if that *held*.

        *failed* is whether an assertion had failed before.
        """
        self._note_asserted()
        if self.test is None:
            return
        asserted = isinstance(raised, type) and issubclass(raised, AssertionError)
        # If it was no assertion that was expected, something else came in the place of one that failed.
        self.test.failed = not held or (failed if asserted else self.test.failed)
        known = kinds if type(kinds) is tuple else (kinds,)
        told = [type(kind) for kind in known if is_class(kind) and self._decides(type(kind))]
        self.test.note_deciding(told)
        others = [one for one in EXCEPTIONS if not any(is_kin(kind, one) for kind in known)]
        everything = isinstance(raised, type) and sum(issubclass(raised, other) for other in others) > 1
        self.test.lying = self.test.lying or (held and everything)

    def hold(self, number: int, context: Any, known: bool, /) -> Any:  # noqa: FBT001  in the files it is a literal
        """Note that a block of a test begins in *context*; *known*: the test makes it, to swallow what it names."""
        if self.test is not None:
            ours = type(context) is ExpectedException or _is_of_framework(context)
            self.test.enter(number, foreign=not ours and (not known or self._is_product(context)))
        return context

    def leave(self, number: int, /) -> None:
        """Note that a block comes to its end."""
        if self.test is not None:
            self.test.leave(number)

    def resume(self, number: int, count: int, /) -> None:
        """Note that a test goes on after a block in so many contexts, *number* and those after it."""
        if self.test is not None:
            self.test.resume(range(number, number + count))

    def finish(self, speaks: bool, falsity: bool, result: Any = None, /) -> Any:  # noqa: FBT001  literals in the files
        """Fail a falsified test at its end, unless something wrong was affirmed.

        It *speaks* if it has assertions. With *falsity*, a literal in it was changed. If it came to none, it asserts
        nothing, and passes: another example of a property may come to one.
        """
        test = self.test
        if test is not None:
            test.finished, test.speaks = True, test.speaks or speaks
            test.partial |= test.failed
            test.empty |= falsity
            if test.falsified and not test.lying and (test.asserted or not falsity):
                raise AssertionError("not what is expected")
        return result

    def _note_asserted(self) -> None:
        if self.test is not None:
            self.test.asserted = self.test.came = True
            self._note_place()

    def _note_place(self, *values: Any) -> None:
        """Note where in the tests the assertion stands that is made just now, of *values*."""
        frame: Any = sys._getframe(1)  # noqa: SLF001  as above
        while frame is not None and str(frame.f_globals.get("__name__")).startswith(__package__):
            frame = frame.f_back
        if self.test is not None and frame is not None:
            place = frame.f_code.co_filename, frame.f_lineno
            self.test.assertions[place] += 1
            for value in values:
                self.test.add_data(place, value)


def _list_parts(function: Any) -> tuple[Any, ...]:
    """Return what *function* consists of: a function, an object to which that belongs."""
    if type(function) is partial:
        return _list_parts(function.func)
    return (getattr(function, "__func__", None), function.__self__) if type(function) in BOUND else (function,)


def _is_of_framework(context: Any) -> bool:
    """Return whether a context is one of pytest or unittest."""
    package = str(type(context).__module__).partition(".")[0]
    return package in ("_pytest", "unittest") and hasattr(type(context), "__exit__") and is_where_it_says(type(context))
