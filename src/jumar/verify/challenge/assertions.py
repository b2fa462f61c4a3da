"""Falsifies an assertion by another literal, type or exception."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from jumar.verify.challenge import expected_values as expected
from jumar.verify.challenge.constants import EQUAL, RAISES, NameBindings, find_compared_arguments
from jumar.verify.challenge.reachable_statements import STANDARD, ReachableStatement
from jumar.verify.challenge.source_edits import DrawEdits, ParsedSource, get_dotted_name

WARNS = frozenset({"warns", "assertWarns", "assertWarnsRegex"})
MOCKED = frozenset({"assert_called_with", "assert_called_once_with", "assert_awaited_with", "assert_awaited_once_with"})
TWO = 2
"""Operands of most assertions."""

PLAIN = re.compile(r"[\w ,:;'!-]*([A-Za-z]{4}[\w ,:;'!-]* [\w ,:;'!-]*[A-Za-z]{4}|[A-Za-z]{8})[\w ,:;'!-]*")
"""Patterns that match nothing but themselves, of so many words that no other message has them by chance."""


@dataclass(frozen=True, slots=True)
class AssertionFalsifier:
    """Finds the ways to falsify the assertions of one test function."""

    source: ParsedSource
    names: NameBindings
    unittest: str
    """Name of the `TestCase` instance in it; empty for a plain function."""
    imported: Mapping[str, str]
    """Name -> the module it was imported from."""
    bound: frozenset[str]
    """Names bound in its file or any function: none of them is a built-in's or unittest's."""
    no_matchers: bool
    """True if it handles no matchers: objects of the tests that are equal to much."""
    falsified: set[int] = field(default_factory=set)
    """Ids of the comparisons and calls for which a way was found."""

    def find_ways(self, place: ReachableStatement) -> Iterator[DrawEdits]:
        """Yield all ways to falsify what stands at *place*."""
        match place:
            case ast.Assert(test=test):
                yield from self._falsify_condition(test)
            case ast.Expr(value=ast.Call() as call):
                yield from self._note(call, self._falsify_call(call))
            case ast.With(items=[item, *_]) | ast.AsyncWith(items=[item, *_]):
                # What comes out of the first one, no other can end.
                if isinstance(item.context_expr, ast.Call):
                    yield from self._falsify_raises(item.context_expr)
            case _:
                pass

    def _note(self, node: ast.expr, ways: Iterable[DrawEdits]) -> Iterator[DrawEdits]:
        """Yield *ways* to falsify *node*, and note that it has some."""
        for way in ways:
            self.falsified.add(id(node))
            yield way

    def _falsify_condition(self, test: ast.expr) -> Iterator[DrawEdits]:
        """Yield the ways to falsify *test*, which a passing test certainly evaluates to true."""
        if not expected.can_differ(test):
            return
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            for part in test.values:
                yield from self._falsify_condition(part)
            return
        yield from self._note(test, self._change_expected(test))

    def _change_expected(self, test: ast.expr) -> Iterator[DrawEdits]:
        """Yield the ways to falsify *test* by a change of the value that it expects."""
        if isinstance(test, ast.Compare):
            sides = [test.left, *test.comparators]
            for left, op, right in zip(sides, test.ops, sides[1:], strict=False):
                if isinstance(op, ast.Eq):
                    yield from self._falsify_equality(left, right)
                elif isinstance(op, ast.Is):
                    yield from self._falsify_identity(right)
                elif isinstance(op, ast.In) and expected.is_text(right):
                    yield from self._falsify_containment(left)
        elif isinstance(test, ast.Call) and get_dotted_name(test.func) == "isinstance" and len(test.args) == TWO:
            yield from self._build_way(expected.change_type(self.source, test.args[1], self.bound))
        elif isinstance(test, ast.Call) and expected.is_affix(test) and self.no_matchers and not self._has_mocks:
            yield from self._build_way(expected.change_literals(self.source, test.args[0]))

    @property
    def _has_mocks(self) -> bool:
        """Return whether its file uses mocks, which may equal everything."""
        return any("mock" in name for name in (*self.imported.values(), *self.imported))

    def _falsify_equality(self, left: ast.expr, right: ast.expr) -> Iterator[DrawEdits]:
        for side, other in ((right, left), (left, right)):
            if isinstance(side, ast.Call) and expected.is_approximate(side):
                yield from self._falsify_approximation(side, side.args[:1], ("rel", "abs"))
            elif not expected.is_lenient(other, side, self.names):
                yield from self._change_literal(side)

    def _falsify_approximation(
        self, call: ast.Call, sides: Sequence[ast.expr], margins: Sequence[str]
    ) -> Iterator[DrawEdits]:
        """Yield the ways to change a number in *sides* beyond the tolerance; in *call*, the *margins* follow them."""
        words = {word.arg or "": word.value for word in call.keywords}
        words |= dict(zip(margins, call.args[len(sides) :], strict=False))
        given = {name: node for name, node in words.items() if name not in ("msg", "nan_ok")}
        for side in sides:
            yield from self._build_way(expected.change_number(self.source, side, given))

    def _change_literal(self, node: ast.expr) -> Iterator[DrawEdits]:
        """Yield the way to change *node*, a literal or a name bound to literals."""
        if isinstance(node, ast.Name):
            bound = self.names.get_compared(node.id)
            yield from self._build_way(expected.change_bound_value(self.source, bound)) if bound else ()
        else:
            yield from self._build_way(expected.change_literals(self.source, node))

    def _falsify_identity(self, node: ast.expr) -> Iterator[DrawEdits]:
        """Yield the way to change *node*, a value that is compared by identity: None, True, False, a built-in type."""
        if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool)):
            others = [one for one in ("True", "False") if one != str(node.value)]
            yield from self._build_way(lambda random: (self.source.replace_node(node, random.choice(others)),))
        else:
            yield from self._build_way(expected.change_type(self.source, node, self.bound))

    def _falsify_containment(self, node: ast.expr) -> Iterator[DrawEdits]:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from self._build_way(expected.change_word(self.source, node, node.value))

    def _falsify_call(self, call: ast.Call) -> Iterator[DrawEdits]:
        name = get_dotted_name(call.func)
        receiver, _, last = name.rpartition(".")
        if last in MOCKED and receiver:
            given = [*call.args, *(word.value for word in call.keywords)]
            yield from self._build_way(expected.change_literals(self.source, *given))
        elif last in RAISES | WARNS:
            yield from self._falsify_raises(call)
        elif places := find_compared_arguments(call, self.names.witnesses):
            for place in places:
                if not any(expected.is_lenient(arg, call.args[place], self.names) for arg in call.args):
                    yield from self._change_literal(call.args[place])
        elif receiver == self.unittest != "" and last not in self.bound:
            yield from self._falsify_unittest_call(call, last)

    def _falsify_unittest_call(self, call: ast.Call, name: str) -> Iterator[DrawEdits]:
        """Yield the ways to falsify an assertion of unittest's."""
        args = call.args
        if any(isinstance(arg, ast.Starred) for arg in args) or not any(map(expected.can_differ, args)):
            return
        if name == "assertCountEqual":  # to it, the letters of a text may come in any order
            sides = [arg for arg in args[:TWO] if isinstance(arg, ast.List | ast.Tuple | ast.Set)]
            yield from (way for side in sides for way in self._change_literal(side))
        elif name in EQUAL and len(args) >= TWO:
            yield from self._falsify_equality(*args[:TWO])
        elif name in ("assertAlmostEqual", "assertAlmostEquals") and len(args) >= TWO:
            yield from self._falsify_approximation(call, args[:TWO], ("places", "msg", "delta"))
        elif name in ("assertTrue", "assert_") and args:
            yield from self._note(args[0], self._change_expected(args[0]))
        elif name == "assertIs" and len(args) >= TWO:
            yield from self._falsify_identity(args[1])
        elif name == "assertIn" and len(args) >= TWO and expected.is_text(args[1]):
            yield from self._falsify_containment(args[0])
        elif name == "assertIsInstance" and len(args) >= TWO:
            yield from self._build_way(expected.change_type(self.source, args[1], self.bound))

    def _is_known(self, node: ast.expr) -> bool:
        """Return whether *node* has Python's own meaning: no code under test can rebind it."""
        root, _, rest = get_dotted_name(node).partition(".")
        if self.imported.get(root, "").partition(".")[0] in STANDARD:
            return True
        built_in = isinstance(node, ast.Name) and hasattr(builtins, root) and root not in self.bound
        return isinstance(node, ast.Constant) or (built_in and not rest)

    def _falsify_raises(self, call: ast.Call) -> Iterator[DrawEdits]:
        """Yield the ways to expect another exception or warning."""
        receiver, _, last = get_dotted_name(call.func).rpartition(".")
        ours = self.imported.get(receiver or last) == "pytest" or (receiver == self.unittest != "")
        if not call.args or not ours or last not in RAISES | WARNS:
            return
        wanted = call.args[0]
        known = expected.EXCEPTIONS if last in RAISES else expected.WARNINGS
        pool = [name for name in known if name not in self.bound]
        bound = self.names.get_raised(wanted.id) if isinstance(wanted, ast.Name) else None
        nodes = bound.literals if bound else [wanted]
        classes = [n for node in nodes for n in (node.elts if isinstance(node, ast.Tuple) else [node])]
        if all(map(self._is_known, classes)):  # the code's own exceptions may be one and the same class
            yield from self._build_way(expected.change_classes(self.source, classes, pool))
        words = {word.arg: word.value for word in call.keywords}
        regex = last.endswith("Regex")  # else what is called gets the keywords, if it is named
        patterns = call.args[1:TWO] if regex else [words["match"]] if "match" in words and len(call.args) == 1 else []
        for pattern in patterns:
            if isinstance(pattern, ast.Constant) and isinstance(pattern.value, str) and PLAIN.fullmatch(pattern.value):
                yield from self._build_way(expected.change_word(self.source, pattern, pattern.value))

    def _build_way(self, draw: DrawEdits) -> Iterator[DrawEdits]:
        if draw(Random(0)):  # noqa: S311  whether there is a way, not which
            yield draw
