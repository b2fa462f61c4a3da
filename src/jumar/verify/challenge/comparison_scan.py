"""Finds every comparison of a function, makes it stricter where it stands, and tells which cannot be.

A comparison that is neither falsified nor stricter may be decided by an object of the code under test that is equal to
everything. So may one in a function of the tests that is called, and whatever compares without an operator.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial

from jumar.verify.challenge import expected_values as expected
from jumar.verify.challenge import literals
from jumar.verify.challenge import stricter_comparisons as stricter
from jumar.verify.challenge.constants import NameBindings, find_compared_arguments
from jumar.verify.challenge.result_uses import ResultUses
from jumar.verify.challenge.source_edits import DrawEdits, ParsedSource, get_dotted_name

OPERATORS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "contains", "countOf", "indexOf", "sub", "and_", "xor"})
"""Functions of `operator` that compare."""

PLAIN = frozenset(
    {"len", "isinstance", "issubclass", "hasattr", "callable", "ord", "id", "int", "float", "bool", "hash"}
)
"""Built-in functions whose result says itself what equals it."""

PYTHON: Mapping[str, AbstractSet[str]] = {
    "sys": frozenset({"byteorder", "flags", "hexversion", "implementation", "maxsize", "platform", "version_info"}),
    "os": frozenset({"cpu_count", "getcwd", "getpid", "linesep", "name", "sep"}),
    "platform": frozenset({"machine", "python_implementation", "python_version", "python_version_tuple", "system"}),
}
"""Module of Python -> names in it that hand on nothing of the code under test."""

SETS = frozenset({"set", "frozenset"})
LEAVING = (ast.Sub, ast.BitAnd, ast.BitXor)
"""Operators of which something is left where the operands differ, or agree."""

COMPARING = frozenset({
    "assertAlmostEqual", "assertAlmostEquals", "assertNotAlmostEqual", "assertCountEqual", "isclose", "allclose",
})  # fmt: skip
"""Functions that compare, and are no operator; whatever else is called `assert_...` may compare, too."""

HARMLESS = (
    "assertTrue", "assertFalse", "assert_", "assertIs", "assertIsNot", "assertIsNone", "assertIsNotNone",
    "assertIsInstance", "assertNotIsInstance", "assertRaises", "assertRaisesRegex", "assertWarns", "assertWarnsRegex",
    "assertLogs", "assertNoLogs", "assertRegex", "assertNotRegex", "assertHasAttr", "assert_called",
    "assert_called_once", "assert_not_called", "assert_awaited", "assert_awaited_once", "assert_not_awaited",
)  # fmt: skip
"""Assertions that compare nothing."""


@dataclass(frozen=True, slots=True)
class ComparisonScan:
    """Scan of the comparisons of one function."""

    source: ParsedSource
    names: NameBindings
    can_be_stricter: bool
    """True if it handles no matchers, and runs when what is appended to its file is there."""
    imported: Mapping[str, str]
    """Name -> the module that it was imported from."""
    truths: AbstractSet[str]
    """Functions that are asked for the truth of their result."""
    own: AbstractSet[str]
    """Functions of the tests."""
    unittest: str = ""
    """Name of the `TestCase` instance in it, if its methods are unittest's own."""
    falsified: Collection[int] = ()
    """Ids of the comparisons and calls that are falsified."""
    edits: list[DrawEdits] = field(default_factory=list)
    """Edits that make its comparisons stricter."""

    def run(self) -> bool:
        """Collect the edits, and return whether nothing is left that is neither falsified nor stricter."""
        uses = ResultUses(self.names.function, self.truths, self.own, self.imported)
        return not [node for node in uses.nodes if not self._is_settled(node, uses)]  # no `all`: it would stop

    def _is_settled(self, node: ast.AST, uses: ResultUses) -> bool:
        if isinstance(node, ast.Compare):
            return self._settle_comparison(node, uses)
        if isinstance(node, ast.Call):
            return self._settle_call(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, LEAVING):
            return not uses.is_what_is_left(node) or self._is_known(node)
        if isinstance(node, ast.Attribute | ast.Name):
            root, _, last = get_dotted_name(node).rpartition(".")
            if isinstance(node, ast.Attribute) and node.attr in stricter.COMPARISONS:
                return False
            return not (self.imported.get(root or last) == "operator" and last in OPERATORS)
        return not isinstance(node, ast.MatchValue)

    def _settle_comparison(self, node: ast.Compare, uses: ResultUses) -> bool:
        sides = [node.left, *node.comparators]
        if all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops) or all(map(self._is_plain, sides)):
            return True
        falsified = id(node) in self.falsified
        if falsified and len(node.ops) == 1 and any(map(self._is_single, sides)):
            return True
        truth = uses.is_asked(node)
        handed = not truth and uses.is_handed_on(node)
        exact = truth or handed or uses.is_exact(node) or all(isinstance(op, ast.In | ast.NotIn) for op in node.ops)
        # Each operand of a chain is evaluated then; where it is written, the last ones are if the first ones held.
        late = [side for side in sides[2:] if not isinstance(side, ast.Name | ast.Constant)]
        editable = not uses.is_formatted(node) and (not late or uses.is_asserted(node))
        if editable and self._make_stricter(stricter.get_comparison(self.source, node), truth=truth):
            return exact
        return handed or (falsified and any(map(self._is_whole, sides)))

    def _settle_call(self, call: ast.Call) -> bool:
        receiver, _, name = get_dotted_name(call.func).rpartition(".")
        falsified, args = id(call) in self.falsified, call.args
        if name in COMPARING or name not in stricter.ASSERTIONS:
            asserts = re.match("assert(_|[A-Z])", name) and name not in HARMLESS and name not in self.own
            return not (asserts or name in COMPARING) or (falsified and self._is_falsified_throughout(call, name))
        if falsified and any(map(self._is_single, args[:2])):
            return True
        whole = len(args) > 1 and not any(isinstance(arg, ast.Starred) for arg in args)
        pair = stricter.get_assertion_operands(self.source, call) if whole and receiver == self.unittest != "" else None
        return self._make_stricter(pair, truth=True) or (falsified and any(map(self._is_whole, args[:2])))

    def _is_falsified_throughout(self, call: ast.Call, name: str) -> bool:
        """Return whether the only literals that *call*, which is falsified, compares something with are whole."""
        if name in COMPARING:
            return any(map(self._is_whole, call.args[:2]))
        return all(map(self._is_whole, (*call.args, *(word.value for word in call.keywords))))

    def is_whole_call(self, call: ast.Call) -> bool:
        """Return whether *call* hands to a function that compares nothing but literals, which are falsified."""
        places = find_compared_arguments(call, self.names.witnesses)
        return bool(places) and id(call) in self.falsified and any(self._is_whole(call.args[n]) for n in places)

    def _make_stricter(self, pair: stricter.Comparison | None, *, truth: bool) -> bool:
        """Make *pair* stricter: it then fails for an object that affirms everything. Return whether it can be."""
        if pair is None or not self.can_be_stricter or self._has_lenient_side(pair):
            return False
        self.edits.append(partial(stricter.make_stricter, pair, truth=truth))
        return True

    def _has_lenient_side(self, pair: stricter.Comparison) -> bool:
        """Return whether one of the operands may be equal to more objects than its neighbour is."""
        if any(map(expected.is_approximate, pair.operands)):
            return True
        sides = [*zip(pair.operands, pair.operands[1:], strict=False)] if ast.Eq in pair.operators else []
        sides += [(right, left) for left, right in sides]
        return any(literals.is_scalar(a) and expected.is_lenient(b, a, self.names) for a, b in sides)

    def _is_single(self, node: ast.expr) -> bool:
        """Return whether *node* is one literal, or a name of such: no part of it is compared with something alone."""
        if isinstance(node, ast.Name):
            bound = self.names.get_compared(node.id)
            return bound is not None and all(map(self._is_single, bound.literals))
        if isinstance(node, ast.Call) and expected.is_approximate(node):
            return all(map(self._is_single, node.args[:1]))
        return literals.is_scalar(node) or (
            isinstance(node, ast.Call)
            and all(map(literals.is_scalar, node.args))
            and any(True for _ in literals.find_scalars(node))
        )

    def _is_whole(self, node: ast.expr) -> bool:
        """Return whether *node* is a literal all the way down."""
        match node:
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                return all(map(self._is_whole, parts))
            case ast.Dict(keys=keys, values=values):
                return all(key is not None and self._is_whole(key) for key in keys) and all(map(self._is_whole, values))
            case ast.Name(id=name) if bound := self.names.get_compared(name):
                return all(map(self._is_whole, bound.literals))
            case ast.Call():
                return self._is_made_whole(node)
        return literals.is_scalar(node)

    def _is_made_whole(self, call: ast.Call) -> bool:
        """Return whether *call* makes something of literals alone, one of which at least is falsified."""
        if expected.is_approximate(call):
            return all(map(self._is_whole, call.args[:1]))
        parts = (*call.args, *(word.value for word in call.keywords))
        empty = isinstance(call.func, ast.Name) and call.func.id == "set" and not parts
        return empty or (any(True for _ in literals.find_scalars(call)) and all(map(self._is_whole, parts)))

    def _is_known(self, node: ast.BinOp) -> bool:
        """Return whether no operand of *node* says itself what is left: sets of Python's own, numbers, times."""
        sides = (node.left, node.right)
        timed = any(self.imported.get(get_dotted_name(side).partition(".")[0]) == "time" for side in sides)
        return timed or all(self._is_plain(side) or _is_set(side) for side in sides)

    def _is_plain(self, node: ast.expr) -> bool:
        """Return whether *node* certainly is an object of Python's own that says itself what equals it.

        So are constants, what a few functions return, and what a few names of modules of Python's own and parameters of
        fixtures come to.
        """
        if isinstance(node, ast.BinOp):
            return self._is_plain(node.left) and self._is_plain(node.right)
        name = get_dotted_name(node.func) if isinstance(node, ast.Call) else ""
        if name in PLAIN and name not in self.imported and name not in self.own:
            return True
        inner = {id(n.value) for n in ast.walk(node) if isinstance(n, ast.Attribute)}
        outer = [n for n in ast.walk(node) if isinstance(n, ast.Attribute | ast.Name) and id(n) not in inner]
        return all(self._is_of_python(get_dotted_name(n)) for n in outer)

    def _is_of_python(self, dotted: str) -> bool:
        """Return whether the name *dotted* stands for something of Python's own, or for a parameter of a fixture."""
        root, _, rest = dotted.partition(".")
        name, module = rest.partition(".")[0] or root, self.imported.get(root, "").partition(".")[0]
        return (root, name) == ("request", "param") or name in PYTHON.get(module, ())


def _is_set(node: ast.expr) -> bool:
    """Return whether *node* certainly is a set of Python's own."""
    if isinstance(node, ast.BinOp):
        return _is_set(node.left) and _is_set(node.right)
    made = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SETS
    return made or isinstance(node, ast.Set | ast.SetComp)
