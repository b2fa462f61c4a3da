"""Tells for what the result of an expression is used: its truth, its identity, or by the code under test."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from jumar.verify.challenge.constants import Function, list_parameters
from jumar.verify.challenge.reachable_statements import STANDARD
from jumar.verify.challenge.source_edits import get_dotted_name

ASKING = frozenset({"all", "any", "bool", "len", "assertTrue", "assertFalse", "assert_"})
"""Functions that ask for the truth of what they are given, or of its items."""

HOLDING = ast.keyword | ast.List | ast.Tuple | ast.Dict | ast.Starred
"""Expressions that hold another one as it is."""

ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class ResultUses:
    """Uses of the results in one function.

    Args:
        function: the function.
        truths: functions that are asked for the truth of their result.
        own: functions of the tests.
        imported: name -> the module that it was imported from.
    """

    def __init__(
        self, function: Function, truths: AbstractSet[str], own: AbstractSet[str], imported: Mapping[str, str]
    ) -> None:
        self._function, self._truths, self._imported = function, truths, imported
        self._own = {*own, *list_parameters(function)}
        self._parents: dict[int, ast.AST] = {}
        self.nodes: list[ast.AST] = []
        """All nodes of the body, without what is only printed when an assertion fails."""
        todo: list[ast.AST] = [*function.body]
        while todo:
            node = todo.pop()
            self.nodes.append(node)
            parts = [part for part in ast.iter_child_nodes(node) if part is not getattr(node, "msg", None)]
            self._parents.update((id(part), node) for part in parts)
            todo += parts
        self._reads: dict[str, list[ast.AST]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self._reads.setdefault(node.id, []).append(node)
        self._names = {n.id for n in self.nodes if isinstance(n, ast.Name) and self._is_asked(n)}

    def is_asked(self, node: ast.AST) -> bool:
        """Return whether the result of *node* is asked for its truth, here or by a name that it gets."""
        parent = self._parents.get(id(node))
        match parent:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.NamedExpr(target=ast.Name(id=name)):
                return name in self._names
            case ast.Return():
                return self._find_function(parent) in self._truths
            case ast.BoolOp():
                return self.is_asked(parent)
        return self._is_asked(node)

    def _is_asked(self, node: ast.AST) -> bool:
        parent = self._parents.get(id(node))
        match parent:
            case ast.Assert() | ast.UnaryOp(op=ast.Not()):
                return True
            case ast.If() | ast.While() | ast.comprehension():
                return node is not getattr(parent, "iter", None)
            case ast.IfExp():
                return parent.test is node or self._is_asked(parent)
            case ast.BoolOp() | ast.GeneratorExp() | ast.ListComp() | ast.SetComp():
                return self._is_asked(parent)
            case ast.Call(func=function) if function is not node:
                return get_dotted_name(function).rpartition(".")[2] in ASKING
        return False

    def is_asserted(self, node: ast.AST) -> bool:
        """Return whether the test fails if *node* is false."""
        parent = self._parents.get(id(node))
        return isinstance(parent, ast.Assert) or (
            isinstance(parent, ast.BoolOp) and isinstance(parent.op, ast.And) and self.is_asserted(parent)
        )

    def _find_function(self, node: ast.AST) -> str:
        """Return the name of the function that *node* stands in."""
        at: ast.AST | None = node
        while at is not None and not isinstance(at, Function):
            at = self._parents.get(id(at))
        return at.name if isinstance(at, Function) else self._function.name

    def is_what_is_left(self, node: ast.AST) -> bool:
        """Return whether it is asked of the result of *node* if anything, or how much, is left."""
        parent = self._parents.get(id(node))
        if isinstance(parent, ast.Call) and parent.func is not node:
            return self.is_what_is_left(parent)
        if (
            isinstance(parent, ast.Assign)
            and isinstance(parent.targets[0], ast.Name)
            and not isinstance(node, ast.Name)
        ):
            name = parent.targets[0].id
            reads = self._reads.get(name, [])
            self._reads[name] = []  # a name that is made of itself is read once
            left = any(self.is_what_is_left(read) for read in reads)
            self._reads[name] = reads
            return left
        if isinstance(parent, ast.Compare):
            empty = (_is_empty(side) for side in (parent.left, *parent.comparators))
            return any(isinstance(op, ORDERS) for op in parent.ops) or any(empty)
        return self.is_asked(node)

    def is_handed_on(self, node: ast.AST | None, *, called: bool = False) -> bool:
        """Return whether only the code under test uses the result of *node*: no test decides anything by it.

        Args:
            node: an expression.
            called: whether what is handed on is a function, so that a call of it is a use of the result.
        """
        parent = self._parents.get(id(node))
        combining = isinstance(getattr(parent, "op", None), ast.BitAnd | ast.BitOr | ast.Invert)
        if isinstance(parent, HOLDING) or combining:
            return self.is_handed_on(parent, called=called)
        match parent:
            case ast.Lambda():
                return self.is_handed_on(parent, called=True)
            case ast.Call(func=function):
                return not called if function is node else self._is_foreign(function)
            case ast.Assign(targets=[ast.Name(id=name)]):
                return name not in self._names and self._is_each_handed_on(name, called=called)
            case ast.Return() if (name := self._find_function(parent)) != self._function.name:
                return self._is_each_handed_on(name, called=True)
        return False

    def _is_each_handed_on(self, name: str, *, called: bool) -> bool:
        reads = self._reads.get(name, [])
        self._reads[name] = []  # a name that is made of itself is read once
        handed = all(self.is_handed_on(read, called=called) for read in reads)
        self._reads[name] = reads
        return handed

    def _is_foreign(self, function: ast.expr) -> bool:
        """Return whether *function* is of the code under test, as far as can be told."""
        root, *names = get_dotted_name(function).split(".")
        if self._imported.get(root, "").partition(".")[0] in {*STANDARD, "pytest"} or hasattr(builtins, root):
            return False
        return len(names) > 1 or (
            root not in ("self", "cls") and (bool(names) or (root != "" and root not in self._own))
        )

    def is_exact(self, node: ast.AST) -> bool:
        """Return whether only True or False will do as the result of *node*, or nobody uses it."""
        parent = self._parents.get(id(node))
        if isinstance(parent, ast.Compare):
            sides = (parent.left, *parent.comparators)
            known = all(side is node or isinstance(side, ast.Constant) for side in sides)
            return known and all(isinstance(op, ast.Is | ast.IsNot) for op in parent.ops)
        return isinstance(parent, ast.Expr)

    def is_formatted(self, node: ast.AST) -> bool:
        """Return whether *node* stands in a formatted text, where it has no place of its own."""
        at: ast.AST | None = node
        while at is not None and not isinstance(at, ast.JoinedStr):
            at = self._parents.get(id(at))
        return at is not None


def find_truths(functions: Iterable[Function]) -> AbstractSet[str]:
    """Return the functions of which a call, somewhere in *functions*, is asked for its truth."""
    found = set[str]()
    for function in functions:
        uses = ResultUses(function, frozenset(), frozenset(), {})
        calls = (node for node in uses.nodes if isinstance(node, ast.Call))
        found |= {get_dotted_name(call).rpartition(".")[2] for call in calls if uses.is_asked(call)}
    return found


def _is_empty(node: ast.expr) -> bool:
    """Return whether *node* is empty, or zero."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and not (node.args or node.keywords)
    if isinstance(node, ast.List | ast.Tuple | ast.Dict):
        return not getattr(node, "elts", getattr(node, "keys", None))
    return isinstance(node, ast.Constant) and not node.value
