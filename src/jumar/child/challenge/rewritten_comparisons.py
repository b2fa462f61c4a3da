"""Rewrites what a file of the tests compares: each operand, assertion and end of a test is handed to `Questions`.

One rule for all files, functions and rounds: nothing in them tells what is falsified. Operators stay where they are.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable
from copy import deepcopy
from itertools import count
from typing import Any, NamedTuple

from jumar.child.challenge.failing_branches import fails, list_asserting_handlers, list_passing_cases
from jumar.child.challenge.known_assertions import AFFIXES, ASSERTING, LOOKING, OPERATORS, RAISING
from jumar.child.challenge.own_assertions import OwnAssertion, list_assertions
from jumar.child.challenge.rewritten_blocks import BlockMarker
from jumar.child.challenge.syntax import REACH, build_call, get_dotted_name, get_method, load, walk_own

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

LEAVING = (ast.Sub, ast.BitAnd, ast.BitXor, ast.Mod, ast.Div, ast.FloorDiv)
"""Operators that leave something where the operands differ, or agree."""

COMPARING = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "contains", "countOf", "indexOf", "sub", "and_", "xor"})
"""Functions of `operator` that compare."""

SPECIAL = frozenset({"__eq__", "__ne__", "__contains__", "__gt__", "__ge__", "__lt__", "__le__"})
"""Methods that operators call."""

OPEN = ("pytest.mark.", "mark.", "mock.", "patch", "unittest.mock.", "given", "settings", "example", "seed",
        "hypothesis.", "freeze_time", "freezegun.", "staticmethod")  # fmt: skip
"""Beginnings of the names of decorators that run a test as it is written."""

JUDGING = frozenset({"outcome", "wasxfail"})
"""Attributes of a report that files of the tests may set: then what fails is theirs to say."""


def list_comparisons(nodes: Iterable[ast.AST]) -> list[ast.expr]:
    """Return the comparisons and calls in *nodes*, all those of a tree; their places do not depend on literals."""
    return [node for node in nodes if isinstance(node, (ast.Compare, ast.Call))]


class Rewritten(NamedTuple):
    """Facts about a file as it was."""

    judged: bool
    """True if it has a say itself in what counts as a failure."""
    assertions: dict[int, list[OwnAssertion]]
    """First line of each test function -> what it has to come to."""


def rewrite(tree: ast.Module, false: Collection[int] = (), *, calls: bool = False) -> Rewritten:
    """Rewrite *tree* in place; *false* are the places of the comparisons that cannot hold.

    With *calls*, each call is handed on, not only one that asserts.
    """
    nodes = list(ast.walk(tree))  # a walk takes long: there is one
    compared = list_comparisons(nodes)
    judged = any(isinstance(n, ast.Attribute) and n.attr in JUDGING and isinstance(n.ctx, ast.Store) for n in nodes)
    assertions = list_assertions(nodes)
    ComparisonRewriter(nodes, [compared[place] for place in false], calls=calls).visit(tree)
    if any(isinstance(node, (ast.With, ast.AsyncWith)) for node in nodes):
        BlockMarker().visit(tree)
    ast.fix_missing_locations(tree)
    return Rewritten(judged, assertions)


class ComparisonRewriter(ast.NodeTransformer):
    """Rewriter of one file, which has *nodes*, and comparisons in it that are *false*; see `rewrite`."""

    def __init__(self, nodes: Iterable[ast.AST], false: Iterable[ast.expr], *, calls: bool) -> None:
        self._false = frozenset(map(id, false))
        self._numbers = count(1) if calls else None
        """Numbers of calls: there are several in a line."""
        self._operators: dict[str, str] = {}
        """Names of the module `operator`, and of what is imported from it."""
        self._returns = False
        """True in the body of a test, whose end is handed on as well."""
        self._falsity = self._speaks = ast.Constant(value=False)
        """Literals: whether a comparison in that body is false, and whether something is asserted in it."""
        self._has_tests = False
        """False in other files of the task, whose code may fail by a branch if it is used as it must not be."""
        for node in nodes:
            self._has_tests |= isinstance(node, FUNCTIONS) and node.name.startswith("test")
            if isinstance(node, ast.Import):
                self._operators.update({a.asname or a.name: "" for a in node.names if a.name == "operator"})
            elif isinstance(node, ast.ImportFrom) and node.module == "operator":
                self._operators.update({a.asname or a.name: a.name for a in node.names if a.name in COMPARING})

    def visit_FunctionDef(self, node: Any) -> Any:
        """Rewrite a function; where a test is at its end, that is handed on."""
        outer, inside = self._returns, node.name.startswith("test") and _runs_as_written(node) and not self._returns
        before, self._speaks = self._speaks, ast.Constant(value=False)
        self._returns = inside
        if inside:
            parts = ast.walk(node) if self._false else ()
            self._falsity = ast.Constant(value=any(id(part) in self._false for part in parts))
        node.body = [made for statement in node.body for made in _list(self.visit(statement))]
        for call in (part for decorator in node.decorator_list for part in ast.walk(decorator)):
            if isinstance(call, ast.Call) and get_dotted_name(call.func).rpartition(".")[2] in RAISING:
                call.args = [ast.Constant(get_dotted_name(call.func)), call.func, *call.args]
                call.func = ast.copy_location(get_method("expect"), call)
        self._returns = outer
        if inside:
            given = [self._speaks, self._falsity]
            node.body.append(ast.copy_location(ast.Expr(build_call("finish", given)), node.body[-1]))
        self._speaks = before
        return node

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815  as `ast` calls it

    def visit_Return(self, node: ast.Return) -> Any:
        """Hand on the end of a test."""
        self.generic_visit(node)
        if self._returns:
            given = [self._speaks, self._falsity, *([node.value] if node.value else [])]
            node.value = ast.copy_location(build_call("finish", given), node)
        return node

    def visit_Raise(self, node: Any) -> Any:
        """Note that a test fails: the code under test may swallow that."""
        self.generic_visit(node)
        if not self._has_tests or not fails([node]):
            return node
        return [ast.copy_location(ast.Expr(build_call("confirm", [ast.Constant(value=False)])), node), node]

    visit_Expr = visit_Raise  # noqa: N815  as `ast` calls it

    def visit_Assert(self, node: ast.Assert) -> Any:
        """Rewrite what is asserted; the message stays."""
        self._speaks.value = True
        node.test = self._visit_certain(node.test)
        return node

    def visit_If(self, node: ast.If) -> Any:
        """Rewrite what is asserted by a branch that fails."""
        denied = fails(node.body)
        if denied == fails(node.orelse) or not self._has_tests:
            return self.generic_visit(node)
        self._speaks.value = True
        test, node.test = node.test, ast.Constant(value=True)
        self.generic_visit(node)
        node.test = self._visit_denied(test) if denied else self._visit_certain(test)
        return node

    def visit_Try(self, node: Any) -> Any:
        """Hand on the exceptions without which a block fails."""
        handlers = [*list_asserting_handlers(node)] if self._has_tests else []
        caught = [(handler, deepcopy(handler.type or load("BaseException"))) for handler in handlers]
        self.generic_visit(node)
        for handler, kinds in caught:
            self._begin(handler.body, build_call("caught", [kinds]))
        return node

    visit_TryStar = visit_Try  # noqa: N815  as `ast` calls it

    def visit_Compare(self, node: ast.Compare) -> Any:
        """Hand on what is compared."""
        self.generic_visit(node)
        kinds = [OPERATORS.get(type(op)) for op in node.ops]
        sides = zip([node.left, *node.comparators], [*kinds, kinds[-1]])  # noqa: B905  no `strict` before Python 3.10
        node.left, *node.comparators = [_see(kind, side) if kind else side for side, kind in sides]
        return node

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """Hand on what an operator is used with that leaves something."""
        self.generic_visit(node)
        if isinstance(node.op, LEAVING) and not _is_text(node.left):
            node.left, node.right = _see("-", node.left), _see("-", node.right)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """Do so where the result takes the place of an operand."""
        self.generic_visit(node)
        if not isinstance(node.op, LEAVING) or not isinstance(node.target, ast.Name):
            return node
        node.value = _see("-", node.value)
        return [ast.copy_location(ast.Expr(_see("-", load(node.target.id))), node), node]

    def visit_Call(self, node: ast.Call) -> Any:
        """Hand on what asserts, and what a container or a text compares."""
        name = get_dotted_name(node.func).rpartition(".")[2]
        if name in ("assertTrue", "assert_") and len(node.args) == 1:
            node.args = [self._visit_certain(node.args[0])]
            node.func = self.visit(node.func)
        else:
            self.generic_visit(node)
        if name in RAISING or ASSERTING.match(name):
            self._speaks.value = True
            called = "call_false" if id(node) in self._false else "call"
            kind = "expect" if name in RAISING else called
            given: list[ast.expr] = [ast.Constant(name), node.func, *node.args]
            return ast.copy_location(ast.Call(get_method(kind), given, node.keywords), node)
        if isinstance(node.func, ast.Attribute) and name in LOOKING:
            given = [ast.Constant(name), node.func.value, *node.args]
            return ast.copy_location(ast.Call(get_method("look"), given, node.keywords), node)
        if isinstance(node.func, ast.Attribute) and name in AFFIXES:
            node.func.value = _see("in", node.func.value)
        if self._numbers is not None:
            given = [node.func, ast.Constant(next(self._numbers))]
            node.func = ast.copy_location(build_call(REACH, given), node.func)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """Hand on what compares without an operator."""
        held = isinstance(node.value, ast.Name) and self._operators.get(node.value.id) == ""
        self.generic_visit(node)
        called = node.attr in SPECIAL or (held and node.attr in COMPARING)
        return _doubt(node) if called and isinstance(node.ctx, ast.Load) else node

    def visit_Name(self, node: ast.Name) -> Any:
        """Hand on what compares without an operator, by a name of its own."""
        return _doubt(node) if isinstance(node.ctx, ast.Load) and self._operators.get(node.id) else node

    def visit_Match(self, node: Any) -> Any:
        """Hand on what is matched, and that it is none of the cases that fail."""
        passing = [*list_passing_cases(node)] if self._has_tests else []
        self.generic_visit(node)
        for case in passing:
            self._begin(case.body, build_call("affirm", [ast.Constant(value=True)]))
        node.subject = _see("==", node.subject)
        return node

    def _visit_certain(self, test: ast.expr) -> Any:
        """Rewrite what is true in each test that passes."""
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            test.values = [self._visit_certain(part) for part in test.values]
            return test
        if isinstance(test, ast.Call) and get_dotted_name(test.func) == "isinstance" and len(test.args) == 2:  # noqa: PLR2004  as it takes
            thing = test.args[0]
            test.args[0] = ast.copy_location(build_call("see_kind", [thing]), thing)
        return self._assert(test, lambda: self.visit(test))

    def _visit_denied(self, test: ast.expr) -> Any:
        """Rewrite what is false in each test that passes."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test.operand = self._visit_certain(test.operand)
            return test
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
            test.values = [self._visit_denied(part) for part in test.values]
            return test
        return _deny(self._assert(test, lambda: _deny(self.visit(test))))

    def _assert(self, test: ast.expr, visit: Callable[[], ast.expr]) -> ast.expr:
        """Hand on what an assertion by *test* comes to; *visit* rewrites it."""
        compares = any(isinstance(part, ast.Compare) for part in ast.walk(test))
        kind = "deny" if id(test) in self._false else "affirm" if compares else "confirm"
        return ast.copy_location(build_call(kind, [visit()]), test)

    def _begin(self, body: list[Any], asserted: ast.expr) -> None:
        """Let *body* begin with what is *asserted*."""
        self._speaks.value = True
        body.insert(0, ast.copy_location(ast.Expr(asserted), body[0]))


def _deny(node: ast.expr) -> ast.expr:
    return ast.copy_location(ast.UnaryOp(ast.Not(), node), node)


def _see(kind: str, node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Constant):
        return node
    return ast.copy_location(build_call("see", [ast.Constant(kind), node]), node)


def _doubt(node: ast.expr) -> ast.expr:
    return ast.copy_location(build_call("doubt", [node]), node)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)))


def _list(nodes: Any) -> list[Any]:
    """Return what the visit of a statement came to, one or several."""
    return nodes if isinstance(nodes, list) else [nodes]


def _runs_as_written(function: Any) -> bool:
    """Return whether a call of *function* runs it, as it is written."""
    plain = all(get_dotted_name(decorator).startswith(OPEN) for decorator in function.decorator_list)
    return plain and not any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in walk_own(function.body))
