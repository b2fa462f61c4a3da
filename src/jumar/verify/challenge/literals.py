"""Finds the literals of a test file that stand where something is compared: at the place, or under a name."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache

from jumar.child.challenge.syntax import walk_own

MAKING = frozenset({
    "set", "frozenset", "list", "tuple", "dict", "sorted", "Decimal", "Fraction", "Path", "PurePath", "PurePosixPath",
    "OrderedDict", "deque", "date", "datetime", "timedelta", "dedent", "approx",
})  # fmt: skip
"""Functions that make another value of other literals, by the last part of their name."""

KEYED = frozenset({"dict", "OrderedDict"})
"""Functions of these that use the values of a dictionary, too."""

DATES = frozenset({"date", "datetime", "timedelta"})

EVERYWHERE = (b"callspec", b"getfixturevalue", b"request.module", b"request.cls", b"globals(")
"""In a file with fixtures that read parameters or constants of tests by other ways than by their name."""

ANY = "*"
"""Stands for all names of parameters and constants."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def find_literals(node: ast.expr) -> list[ast.expr]:
    """Return the literals of which *node* is made, so that it is another value if they are; none if it is not."""
    if is_literal(node):
        return [node]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [side for side in (node.left, node.right) if is_literal(side) and not isinstance(side, ast.Dict)][:1]
    if not isinstance(node, ast.Call):
        return []
    name = ast.unparse(node.func).rpartition(".")[2]
    parts = [*node.args, *(word.value for word in node.keywords)]
    whole = name in MAKING and bool(parts) and all(map(is_literal, parts))
    exact = name != "approx" or len(parts) == 1
    keyed = name in KEYED or not any(isinstance(part, ast.Dict) for part in parts)  # others see its keys alone
    return (parts[:1] if name in DATES else parts) if whole and exact and keyed else []


def read_date(node: ast.AST) -> tuple[ast.expr, int, int] | None:
    """Return the year, month and day of a date that *node* writes out, the year as it stands there."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func).rpartition(".")[2] not in DATES - {"timedelta"}:
        return None
    words = {word.arg: word.value for word in node.keywords}
    parts = [*node.args[:3], *(words[name] for name in ("year", "month", "day")[len(node.args) :] if name in words)]
    values = [part.value if isinstance(part, ast.Constant) else None for part in parts]
    match values:
        case [int(), int(month), int(day)]:
            return parts[0], month, day
    return None


def is_literal(node: ast.expr) -> bool:
    """Return whether *node* is a value that is written out."""
    with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ast.literal_eval(node) is not ...
    return False


def list_tests(tree: ast.AST, around: str = "") -> Iterator[tuple[str, Function]]:
    """Yield the test functions in *tree* by their names, with those of the classes *around* them."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function) and node.name.startswith("test"):
            yield around + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from list_tests(node, f"{around}{node.name}::")
        elif isinstance(node, ast.stmt | ast.ExceptHandler):
            yield from list_tests(node, around)


def find_bound(body: Sequence[ast.stmt]) -> dict[str, list[ast.expr]]:
    """Return the names that statements bind once, to what literals make, with these."""
    nodes = list(walk_own(body))
    everywhere = (node for part in body for node in ast.walk(part))  # a function in them may bind it anew
    stored = Counter(n.id for n in everywhere if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
    found = dict[str, list[ast.expr]]()
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name) and stored[target.id] == 1:
            found[target.id] = find_literals(node.value) if len(node.targets) == 1 else []
    return found


def list_assigned(body: Iterable[ast.stmt]) -> Iterator[tuple[ast.Name, ast.expr]]:
    """Yield the names to which statements of *body* assign, each with what is assigned."""
    for node in body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            yield node.targets[0], node.value


def list_taken(files: Iterable[bytes]) -> frozenset[str]:
    """Return the parameters of fixtures: what `parametrize` gives a test by such a name, they get as well."""
    return frozenset(name for data in files if b"fixture" in data for name in _list_fixture_parameters(data))


@lru_cache(maxsize=256)  # the rounds of a challenge ask for the same files
def _list_fixture_parameters(data: bytes) -> frozenset[str]:
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        functions = [node for node in ast.walk(ast.parse(data)) if isinstance(node, Function)]
        fixtures = [f for f in functions if any("fixture" in ast.unparse(one) for one in f.decorator_list)]
        names = {arg.arg for fixture in fixtures for arg in (*fixture.args.args, *fixture.args.kwonlyargs)}
        return frozenset({*names, *([ANY] if any(way in data for way in EVERYWHERE) else [])})
    return frozenset()


def read_tables(function: Function, tables: Mapping[str, ast.expr]) -> dict[str, list[ast.expr]]:
    """Return the parameters that `parametrize` gives a literal in each row, with these."""
    found = dict[str, list[ast.expr]]()
    for decorator in function.decorator_list:
        if not isinstance(decorator, ast.Call) or not ast.unparse(decorator.func).endswith(".parametrize"):
            continue
        table = decorator.args[1] if len(decorator.args) == 2 and not decorator.keywords else None  # noqa: PLR2004  names and rows
        table = tables.get(table.id) if isinstance(table, ast.Name) else table
        rows = table.elts if isinstance(table, ast.List | ast.Tuple) else []
        names = _read_names(decorator.args[0]) if rows else []
        cells = [_read_cells(row, len(names)) for row in rows]
        for place, name in enumerate(names):
            made = [find_literals(row[place]) if len(row) == len(names) else [] for row in cells]
            found[name] = [literal for literals in made for literal in literals] if all(made) else []
    return found


def _read_names(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Constant):
        return [name.strip() for name in str(node.value).split(",") if name.strip()]
    return [str(e.value) for e in getattr(node, "elts", ()) if isinstance(e, ast.Constant)]


def _read_cells(row: ast.expr, count: int) -> Sequence[ast.expr]:
    if isinstance(row, ast.Call) and ast.unparse(row.func).endswith("param"):
        return row.args
    return [row] if count == 1 else row.elts if isinstance(row, ast.Tuple | ast.List) else []


def list_reads(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names that are read in *nodes*, as often as they are."""
    for node in (n for part in nodes for n in ast.walk(part)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
