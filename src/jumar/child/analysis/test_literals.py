"""Index of the values in tests: which literals stand together. Equal values share a key."""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Index = dict[str, set[int]]
    """A value's name -> the groups of values that it stands in."""

GROUPS = 20_000
VALUES = 64
"""In one group: what stands in a larger one stands with everything."""

SMALL = 16
"""Up to this a whole number is likely to be the matter's own, and a list is short."""

DEPTH = 40

LONG = 12
"""Characters of a text that nobody would meet by chance, unless it is a name."""

NAME = re.compile(r"[A-Za-z_][\w.-]*")

ROUND = frozenset([
    *(2**n for n in range(65)), *(2**n - 1 for n in range(65)), *(10**n for n in range(19)),
    24, 26, 30, 31, 36, 48, 60, 90, 180, 360, 365, 366, 400, 3600, 86400,
])  # fmt: skip
"""Numbers that programs have without having seen a test."""

UNREAD = (ValueError, TypeError, SyntaxError, RecursionError, MemoryError)


def index_values(judged: Mapping[str, ast.Module], data: Mapping[str, str]) -> Index:
    """Return the values of all tests, by the statement, row or small function that they stand together in."""
    index: Index = defaultdict(set)
    groups = [group for tree in judged.values() for group in test_groups(tree)]
    groups += [group for text in data.values() for group in read_data_groups(text)]
    for count, group in enumerate(groups[:GROUPS]):
        for name in {name for value in group[:VALUES] for name in list_keys(value)}:
            index[name].add(count)
    return index


def test_groups(tree: ast.Module) -> Iterator[list[Any]]:
    """Yield the literals of a test module that stand together."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test"):
            whole = [value for statement in node.body for value in find_literals(statement)]
            if len(whole) <= SMALL:
                yield whole
        elif isinstance(node, (ast.Assert, ast.Expr)):
            yield list(find_literals(node))
        else:
            yield from read_table_groups(node)


def read_table_groups(node: ast.AST) -> Iterator[list[Any]]:
    """Yield the rows of a table, if *node* is one."""
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        for row in node.elts:
            if isinstance(row, (ast.List, ast.Tuple, ast.Call)):
                yield list(find_literals(row, inside=True))
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values):  # noqa: B905  Python 3.8 has no strict
            if key is not None:
                yield [*find_literals(key), *find_literals(value)]


def read_data_groups(text: str) -> Iterator[list[Any]]:
    """Yield the rows of a file of JSON, or of JSON lines."""
    try:
        whole = [json.loads(text)]
    except (ValueError, RecursionError):
        whole = []
        for line in text.splitlines():
            try:
                whole.append(json.loads(line))
            except (ValueError, RecursionError):
                return
    for entry in whole:
        yield from read_data_rows(entry, 0)


def read_data_rows(entry: Any, depth: int) -> Iterator[list[Any]]:
    """Yield *entry* and the lists and objects in it, as groups."""
    parts = list(entry.values()) if isinstance(entry, dict) else entry if isinstance(entry, list) else []
    if parts and depth < DEPTH:
        yield [*parts, *(v for p in parts if isinstance(p, list) and len(p) <= SMALL for v in p)]
        for part in parts:
            yield from read_data_rows(part, depth + 1)


def find_literals(node: ast.AST, *, inside: bool = False) -> Iterator[Any]:
    """Yield the largest literal values below *node*, in the order of the text; *inside* never *node* itself."""
    todo = list(ast.iter_child_nodes(node))[::-1] if inside else [node]
    while todo:
        node = todo.pop()
        known, value = evaluate_literal(node)
        if known:
            yield value
        else:
            todo += reversed(list(ast.iter_child_nodes(node)))


def evaluate_literal(node: ast.AST | None) -> tuple[bool, Any]:
    """Return whether *node* is a literal, and its value."""
    if not isinstance(node, (ast.Constant, ast.UnaryOp, ast.BinOp, ast.Tuple, ast.List, ast.Set, ast.Dict)):
        return False, None
    try:
        return True, ast.literal_eval(node)
    except UNREAD:
        return False, None


def spread_key(value: Any) -> list[Any]:
    """Return the values that a key stands for: a tuple for several arguments, a text for what it spells."""
    if isinstance(value, str) and value[:1] in "([{'\"-0123456789" and len(value) > 1:
        try:
            value = ast.literal_eval(value)
        except UNREAD:
            return [value]
    return list(value) if isinstance(value, tuple) else [value]


def list_keys(value: Any) -> list[str]:
    """Return the keys of *value* in an index: itself, and the items of a short sequence."""
    inner = list(value) if isinstance(value, (tuple, list, set, frozenset)) and len(value) <= SMALL else []
    return [name_of(value), *map(name_of, inner)]


def name_of(value: Any) -> str:
    """Return a key that is the same for equal values, lists and tuples included."""
    if isinstance(value, (bool, type(None), str, bytes)):
        return repr(value)
    try:
        return json.dumps(value, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return hex(value) if isinstance(value, int) else repr(value)


def are_together(index: Index, asked: list[Any], answered: list[Any]) -> bool:
    """Return whether all values stand together somewhere. A test that expects True or None does not always write it."""
    values = [*asked, *(v for v in answered if not isinstance(v, (bool, type(None))))] if asked else []
    groups = [index.get(name_of(value), set()) for value in values[:VALUES]]
    return bool(groups) and bool(set.intersection(*groups))


def is_uncommon(value: Any) -> bool:
    """Return whether *value* is not one of those that code has for reasons of its own."""
    if isinstance(value, (int, float)):
        return not -SMALL <= value <= SMALL or (value % 1 != 0 and value not in (0.5, -0.5))
    if isinstance(value, (str, bytes, tuple, list, set, frozenset, dict)):
        return len(value) > 1
    return False


def is_rare(value: Any) -> bool:
    """Return whether *value* is too unusual to occur by chance."""
    if isinstance(value, str):
        return len(value) >= LONG and not NAME.fullmatch(value)
    if isinstance(value, (tuple, list, set, frozenset, dict)):
        return len(value) > 2 or any(map(is_rare, value))  # noqa: PLR2004  a pair may be anything
    if isinstance(value, bytes):
        return len(value) >= LONG
    return is_uncommon(value) and value not in ROUND


def is_word(value: Any) -> bool:
    """Return whether *value* is a word: a table from words to words is a vocabulary."""
    return isinstance(value, str) and len(value) < LONG and value.isidentifier()


def shorten_value(value: Any) -> str:
    """Return *value* as it is shown to people."""
    text = hex(value) if isinstance(value, int) and abs(value) >> 256 else repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."  # noqa: PLR2004  a line is for people
