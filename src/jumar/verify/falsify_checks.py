"""An assertion that holds is falsified by another literal where it has one, and else by its contrary."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from jumar.core.acceptance import Strength
from jumar.verify import falsify_expected as expected
from jumar.verify.falsify_names import EQUAL, RAISES, Names, witnessed
from jumar.verify.falsify_operators import CONTRARY, denied, turned
from jumar.verify.falsify_source import Edits, Source, Way, dotted
from jumar.verify.falsify_statements import Reached

MOCKED = frozenset({"assert_called_with", "assert_called_once_with", "assert_awaited_with", "assert_awaited_once_with"})
TWO = 2
"""Operands of most assertions."""


@dataclass(frozen=True, slots=True)
class Checks:
    """Finds the ways to falsify the assertions of one test function."""

    source: Source
    names: Names
    unittest: str
    """What the instance of a `TestCase` is called in it; empty: it is a plain function."""
    imported: Mapping[str, str]
    """Name -> the module it was imported from."""
    bound: frozenset[str]
    """What its file gives a meaning to, or a function of any: no such name is a built-in's or unittest's."""

    def ways(self, place: Reached) -> Iterator[Way]:
        """All ways to falsify what stands at *place*."""
        match place.node:
            case ast.Assert(test=test):
                yield from self._held(test)
            case ast.Expr(value=ast.Call() as call):
                yield from self._called(call)
            case ast.With(items=[item, *_]) | ast.AsyncWith(items=[item, *_]):
                # What comes out of the first one, no other can end.
                if isinstance(item.context_expr, ast.Call):
                    yield from self._raising(item.context_expr)
            case _:
                pass

    def _held(self, test: ast.expr) -> Iterator[Way]:
        """*test* is true, and certainly evaluated."""
        if not _says_something(test):
            return
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            for part in test.values:
                yield from self._held(part)
            return
        yield from self._expecting(test)
        strength = Strength.STRONG if _identity(test) else Strength.WEAK
        yield from self._weak(lambda: denied(self.source, test), strength)

    def _expecting(self, test: ast.expr) -> Iterator[Way]:
        """By what *test* expects."""
        if isinstance(test, ast.Compare):
            sides = [test.left, *test.comparators]
            for left, op, right in zip(sides, test.ops, sides[1:], strict=False):
                if isinstance(op, ast.Eq):
                    yield from self._equal(left, right)
                elif isinstance(op, ast.Is):
                    yield from self._literal(right) if _is_truth(right) else ()
                elif isinstance(op, ast.In) and expected.is_text(right):
                    yield from self._contained(left)
        elif isinstance(test, ast.Call) and dotted(test.func) == "isinstance" and len(test.args) == TWO:
            yield from self._way(expected.other_type(self.source, test.args[1], self.bound))

    def _equal(self, left: ast.expr, right: ast.expr) -> Iterator[Way]:
        for side, other in ((right, left), (left, right)):
            if isinstance(side, ast.Call) and expected.is_approximate(side):
                yield from self._near(side, side.args[:1], ("rel", "abs"))
            elif not expected.is_lenient(other, side, self.names):
                yield from self._literal(side)

    def _near(self, call: ast.Call, sides: Sequence[ast.expr], margins: Sequence[str]) -> Iterator[Way]:
        """By a number that is not near one of *sides*; what follows them in *call* are the *margins*."""
        words = {word.arg or "": word.value for word in call.keywords}
        words |= dict(zip(margins, call.args[len(sides) :], strict=False))
        given = {name: node for name, node in words.items() if name not in ("msg", "nan_ok")}
        for side in sides:
            yield from self._way(expected.far(self.source, side, given))

    def _literal(self, node: ast.expr) -> Iterator[Way]:
        """By another value of *node*, a literal or what stands for some."""
        if isinstance(node, ast.Name):
            bound = self.names.compared(node.id)
            yield from self._way(expected.rebound(self.source, bound)) if bound else ()
        else:
            yield from self._way(expected.changed(self.source, [node], every=True))

    def _contained(self, node: ast.expr) -> Iterator[Way]:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from self._way(expected.other_word(self.source, node, node.value))

    def _called(self, call: ast.Call) -> Iterator[Way]:
        name = dotted(call.func)
        receiver, _, last = name.rpartition(".")
        if last in MOCKED and receiver:
            given = [*call.args, *(word.value for word in call.keywords)]
            yield from self._way(expected.changed(self.source, given, every=False))
        elif last in (*RAISES, "warns", "assertWarns", "assertWarnsRegex"):
            yield from self._raising(call)
        elif places := witnessed(call, self.names.witnesses):
            for place in places:
                if not any(expected.is_lenient(arg, call.args[place], self.names) for arg in call.args):
                    yield from self._literal(call.args[place])
        elif receiver == self.unittest != "" and last not in self.bound:
            yield from self._asserted(call, last)

    def _asserted(self, call: ast.Call, name: str) -> Iterator[Way]:
        """By an assertion of unittest's."""
        args = call.args
        if any(isinstance(arg, ast.Starred) for arg in args) or not any(map(_says_something, args)):
            return
        if name in EQUAL and len(args) >= TWO:
            yield from self._equal(*args[:TWO])
        elif name in ("assertAlmostEqual", "assertAlmostEquals") and len(args) >= TWO:
            yield from self._near(call, args[:TWO], ("places", "msg", "delta"))
        elif name in ("assertTrue", "assert_") and args:
            yield from self._expecting(args[0])
        elif name == "assertIs" and len(args) >= TWO and _is_truth(args[1]):
            yield from self._literal(args[1])
        elif name == "assertIn" and len(args) >= TWO and expected.is_text(args[1]):
            yield from self._contained(args[0])
        elif name == "assertIsInstance" and len(args) >= TWO:
            yield from self._way(expected.other_type(self.source, args[1], self.bound))
        if name in CONTRARY and args:
            strength = Strength.STRONG if name in ("assertIsNone", "assertIs") else Strength.WEAK
            yield from self._weak(lambda: turned(self.source, call), strength)

    def _raising(self, call: ast.Call) -> Iterator[Way]:
        """By an exception or a warning that is expected."""
        receiver, _, last = dotted(call.func).rpartition(".")
        ours = self.imported.get(receiver or last) == "pytest" or (receiver == self.unittest != "")
        if not call.args or not ours or last not in (*RAISES, "warns", "assertWarns", "assertWarnsRegex"):
            return
        wanted = call.args[0]
        known = expected.EXCEPTIONS if last in RAISES else expected.WARNINGS
        pool = [name for name in known if name not in self.bound]
        if isinstance(wanted, ast.Name) and (bound := self.names.raised(wanted.id)):
            yield from self._way(expected.other_classes(self.source, bound.literals, pool))
        else:
            yield from self._way(expected.other_classes(self.source, [wanted], pool))

    def _way(self, edits: Callable[[Random], Edits]) -> Iterator[Way]:
        if edits(Random(0)):  # noqa: S311  whether there is a way, not which
            yield Way(Strength.STRONG, edits)

    def _weak(self, edits: Callable[[], Edits], strength: Strength) -> Iterator[Way]:
        if found := edits():
            yield Way(strength, lambda _: found)


def _says_something(node: ast.expr) -> bool:
    """Whether it could be another on another day: something of the code under test is in it."""
    return any(isinstance(n, ast.Name | ast.Call | ast.Attribute) for n in ast.walk(node))


def _is_truth(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


def _identity(test: ast.expr) -> bool:
    """Whether *test* asks who somebody is: nothing can lie about that."""
    return isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Is)
