"""Resolves names to literals: a name that is bound once and only compared stands for its value."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from jumar.verify.challenge.source_edits import get_dotted_name

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = Function | ast.Lambda | ast.ClassDef
Witnesses = Mapping[str, frozenset[int]]
"""Function, or a dot and a method -> which of its arguments, counted as a caller does, it compares for equality."""

EQUAL = frozenset({
    "assertEqual", "assertEquals", "assertListEqual", "assertTupleEqual", "assertDictEqual", "assertSetEqual",
    "assertSequenceEqual", "assertMultiLineEqual", "assertCountEqual",
})  # fmt: skip
"""Methods of unittest that compare by `==`."""
RAISES = frozenset({"raises", "assertRaises", "assertRaisesRegex"})
ROWED = 2
"""`parametrize` takes names and rows."""


class Binding(NamedTuple):
    """A name that is bound once at the top of a module, and its value."""

    literals: tuple[ast.expr, ...]
    every: bool
    """True if all of them must change to make a test false: the cells of a parametrised column."""


def walk_own(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield all nodes in *nodes*, without the bodies of functions and classes in them, which run later or never."""
    todo = [*nodes][::-1]
    while todo:
        node = todo.pop()
        yield node
        todo += [] if isinstance(node, Scope) else [*ast.iter_child_nodes(node)][::-1]


def list_parameters(function: Function) -> list[str]:
    """Return the names of all its arguments."""
    args = function.args
    extra = [a for a in (args.vararg, args.kwarg) if a]
    return [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs, *extra)]


class NameBindings:
    """Meanings of the names in one test function.

    Args:
        function: the test.
        constants: of its module: bound once there, at its top, to what may be a literal, and used in this test alone.
        shared: names that fixtures take too: their values may decide more than what is expected.
        witnesses: functions that compare what they are given.
    """

    def __init__(
        self, function: Function, constants: Mapping[str, ast.expr], shared: AbstractSet[str], witnesses: Witnesses
    ) -> None:
        self.function, self.witnesses = function, witnesses
        self.body = tuple(walk_own(function.body))
        self._constants, self._shared = constants, shared
        nodes = tuple(ast.walk(function))
        self._reads = Counter(_list_reads(n for statement in function.body for n in ast.walk(statement)))
        self._reads.subtract(_list_reads(_find_printed(nodes)))
        self._stored = Counter(_list_stored(nodes))
        self._stored.subtract(list_parameters(function))
        compared = (n for n in nodes if isinstance(n, ast.Assert | ast.Call))
        self._equated = Counter(_get_name(operand) for n in compared for operand in find_operands(n, witnesses))
        self._expected = Counter(_get_name(operand) for operand in _find_expected_exceptions(nodes))
        self._tables = _find_tables(function, constants)

    def get_compared(self, name: str) -> Binding | None:
        """Return the value of *name*, if it is only compared for equality."""
        return self._get_binding(name) if self.is_only_compared(name) else None

    def is_only_compared(self, name: str) -> bool:
        """Return whether *name* is only compared for equality, or printed."""
        return self._reads[name] == self._equated[name]

    def get_raised(self, name: str) -> Binding | None:
        """Return the value of *name*, if it is only expected as an exception."""
        return self._get_binding(name) if self._reads[name] == self._expected[name] else None

    def list_rows(self, node: ast.expr) -> list[ast.expr]:
        """Return the items that a loop over *node* certainly visits; empty if it may visit none."""
        if isinstance(node, ast.Name):
            known = self._find_assigned(node.id) or self._constants.get(node.id)
            return self.list_rows(known) if known is not None and not isinstance(known, ast.Name) else []
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return [] if any(isinstance(e, ast.Starred) for e in node.elts) else node.elts
        if isinstance(node, ast.Dict) and None not in node.keys:
            return [key for key in node.keys if key]
        if isinstance(node, ast.Call) and not node.keywords:
            return self._list_iterated(node)
        return []

    def _list_iterated(self, call: ast.Call) -> list[ast.expr]:
        name = get_dotted_name(call.func)
        if name == "enumerate" and len(call.args) == 1:
            return self.list_rows(call.args[0])
        if name == "range" and len(call.args) == 1:
            stop = call.args[0]
            return [stop] if isinstance(stop, ast.Constant) and isinstance(stop.value, int) and stop.value > 0 else []
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("items", "keys", "values") and not call.args:
            held = call.func.value
            return self.list_rows(held) if isinstance(held, ast.Dict | ast.Name) else []
        return []

    def _get_binding(self, name: str) -> Binding | None:
        if name in list_parameters(self.function):
            kept = name not in self._shared and not self._stored[name]
            cells = self._tables.get(name, ()) if kept else ()
            return Binding(cells, every=True) if cells else None
        known = self._find_assigned(name) if self._stored[name] else self._constants.get(name)
        if known is not None:
            return Binding((known,), every=True)
        cells = self._find_looped(name) if self._stored[name] == 1 else ()
        return Binding(cells, every=False) if cells else None

    def _find_assigned(self, name: str) -> ast.expr | None:
        """Return the value that a plain assignment binds to *name*, once."""
        if self._stored[name] != 1:
            return None
        for node in self.body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and _get_name(node.targets[0]) == name:
                return node.value
        return None

    def _find_looped(self, name: str) -> tuple[ast.expr, ...]:
        """Return the cells that *name* takes in a loop over a table in the function, which ends where that does."""
        for loop in self.function.body:
            if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Tuple | ast.List):
                continue
            inside = tuple(walk_own(loop.body))
            at = [n for n, part in enumerate(loop.target.elts) if _get_name(part) == name]
            left = any(isinstance(n, ast.Break | ast.Continue) for n in inside)
            if at and not left and not isinstance(loop.iter, ast.Call):
                rows = [r for r in self.list_rows(loop.iter) if isinstance(r, ast.Tuple | ast.List)]
                read = _count_reads(inside, name) - _count_reads(_find_printed(inside), name)
                whole = [row for row in rows if len(row.elts) == len(loop.target.elts)]
                return tuple(row.elts[at[0]] for row in whole) if read == self._reads[name] else ()
        return ()


def _find_tables(function: Function, constants: Mapping[str, ast.expr]) -> Mapping[str, tuple[ast.expr, ...]]:
    """Return for each parameter its literal in each row, if the rows stand in the decorators or in *constants*."""
    found: dict[str, tuple[ast.expr, ...]] = {}
    for decorator in function.decorator_list:
        if get_dotted_name(decorator).endswith("parametrize") and isinstance(decorator, ast.Call):
            found |= _read_columns(decorator, constants)
    return found


def _read_columns(decorator: ast.Call, constants: Mapping[str, ast.expr]) -> dict[str, tuple[ast.expr, ...]]:
    words = {word.arg: word.value for word in decorator.keywords}
    given = [*decorator.args, *(words[w] for w in ("argnames", "argvalues") if w in words)]
    if len(given) != ROWED or "indirect" in words:
        return {}
    names, table = _read_names(given[0]), given[1]
    if isinstance(table, ast.Name):
        table = constants.get(table.id, table)
    if not isinstance(table, ast.List | ast.Tuple):
        return {}
    rows = [_read_cells(row, len(names)) for row in table.elts]
    if not rows or not all(len(row) == len(names) for row in rows):
        return {}
    return {name: tuple(row[n] for row in rows) for n, name in enumerate(names)}


def find_constants(tree: ast.Module) -> Mapping[str, ast.expr]:
    """Return the names that are bound once at the top of *tree*."""
    bound = {
        _get_name(node.targets[0]): node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and len(node.targets) == 1
    }
    stored = Counter(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
    return {name: value for name, value in bound.items() if stored[name] == 1}


def _count_reads(nodes: Iterable[ast.AST], name: str) -> int:
    return sum(read == name for read in _list_reads(nodes))


def _list_reads(nodes: Iterable[ast.AST]) -> Iterator[str]:
    return (n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def _list_stored(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Return the bound names; names declared global or nonlocal count twice."""
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Global | ast.Nonlocal):
            yield from (*node.names, *node.names)


def _get_name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _read_names(node: ast.expr) -> Sequence[str]:
    """Return the names that `parametrize` is given, as a text or a sequence."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [name.strip() for name in node.value.split(",") if name.strip()]
    if isinstance(node, ast.List | ast.Tuple):
        return [str(e.value) for e in node.elts if isinstance(e, ast.Constant)]
    return []


def _read_cells(row: ast.expr, count: int) -> Sequence[ast.expr]:
    if isinstance(row, ast.Call) and get_dotted_name(row.func).endswith("param"):
        return row.args
    if count == 1:
        return [row]
    return row.elts if isinstance(row, ast.Tuple | ast.List) else []


def find_operands(node: ast.AST, witnesses: Witnesses) -> Iterator[ast.expr]:
    """Return the operands of `==` in *node*, a statement or a call that asserts."""
    match node:
        case ast.Assert(test=test):
            yield from _find_equated(test)
        case ast.Expr(value=ast.Call() as call):
            yield from find_operands(call, witnesses)
        case ast.Call(func=ast.Attribute(attr=name), args=args) if name in EQUAL:
            yield from args[:2]
        case ast.Call(func=ast.Attribute(attr="assertTrue" | "assert_"), args=[test, *_]):
            yield from _find_equated(test)
        case ast.Call(args=args):
            yield from (args[place] for place in sorted(find_compared_arguments(node, witnesses)))
        case _:
            pass


def find_compared_arguments(call: ast.Call, witnesses: Witnesses) -> frozenset[int]:
    """Return the arguments of *call* that are compared for equality, if it calls one of the *witnesses*."""
    if any(isinstance(arg, ast.Starred) for arg in call.args):
        return frozenset()
    name = get_dotted_name(call.func)
    key = name if "." not in name else f".{name.rpartition('.')[2]}" if name.startswith(("self.", "cls.")) else ""
    return frozenset(place for place in witnesses.get(key, ()) if place < len(call.args))


def _find_equated(test: ast.expr) -> Iterator[ast.expr]:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for part in test.values:
            yield from _find_equated(part)
    elif isinstance(test, ast.Compare) and all(isinstance(op, ast.Eq) for op in test.ops):
        yield test.left
        yield from test.comparators


def _find_expected_exceptions(nodes: Iterable[ast.AST]) -> Iterator[ast.expr]:
    for node in nodes:
        if isinstance(node, ast.Call) and node.args and get_dotted_name(node.func).rpartition(".")[2] in RAISES:
            yield node.args[0]


def _find_printed(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Return the expressions that are only printed: when an assertion fails, or at all."""
    for node in nodes:
        if isinstance(node, ast.Assert) and node.msg:
            yield from ast.walk(node.msg)
        elif isinstance(node, ast.Call) and get_dotted_name(node.func) in ("print", "self.subTest", "subtests.test"):
            for part in (*node.args, *node.keywords):
                yield from ast.walk(part)
