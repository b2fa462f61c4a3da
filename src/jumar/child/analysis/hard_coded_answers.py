"""Finds hard-coded answers: code under test that holds the input of a test next to its expected output.

One value of the tests in the code is nothing: constants of the matter stand in both. Two that stand together here and
there are an answer; a case made for a value that nobody would meet by chance is one too.
"""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from jumar.child.analysis import test_literals

if TYPE_CHECKING:
    Finding = tuple[str, int, str]
    Asked = list[Any]
    Association = tuple[int, str, Asked, list[Any]]
    """Its line, the kind of it (`case`, `return` or `table`), what is asked and what is answered."""


TABLE = 3
"""So many answers in one table are no coincidence."""

CHAIN = 2
"""So many cases of several numbers each, with the number that a test expects of them, are no coincidence."""

SEQUENCES = (ast.List, ast.Tuple, ast.Set)
"""Their rows may be lines, moves or colours: numbers that belong together, and no answers."""

WRITTEN = 16
"""Characters of a text that may be a table."""

BY_VALUE = "answers a test by its own values"
CASE_BY_CASE = "answers tests by their own values, case by case"
TABLE_OF_ANSWERS = "a table holds answers of the tests"
NOTHING_ELSE = "a table holds nothing but answers of the tests"

WRITTEN_DOWN = (BY_VALUE, CASE_BY_CASE, TABLE_OF_ANSWERS, NOTHING_ELSE)
"""Beginnings of the warnings about code that has what a test asks next to what it expects."""

ANYWHERE = -1
"""The number of the table that is filled entry by entry."""

LOOKUPS = frozenset(["get", "pop", "__getitem__"])

ROWS = 2
"""So many rows for a test say it alone; one is enough where the table is written down in order to be looked up."""


def build_finder(index: dict[str, set[int]]) -> Callable[[ast.Module], Iterator[Finding]]:
    """Build the function that finds hard-coded answers in a tree, given the *index* of the tests' values."""

    def find(tree: ast.Module) -> Iterator[Finding]:
        tables: dict[int, list[Association]] = defaultdict(list)
        chains: dict[int, list[Association]] = defaultdict(list)
        lines = set()
        for number, (scope, node) in enumerate(walk_scopes(tree)):
            for found in _find_associations(node):
                line, kind, asked, answered = found
                if not test_literals.are_together(index, asked, answered):
                    continue
                if kind == "table":
                    tables[ANYWHERE if isinstance(node, ast.Assign) else number].append(found)
                elif is_for_a_test(asked, answered) and line not in lines:
                    lines.add(line)
                    yield f"case {build_key(asked)} {build_key(answered)}", line, _format_warning(kind, asked, answered)
                if line not in lines and is_uncomputed(asked, answered) and not isinstance(node, SEQUENCES):
                    chains[scope].append(found)
        yield from check_chains(chains.values())
        for rows in tables.values():
            rare = [row for row in rows if any(map(test_literals.is_rare, row[2]))]
            if len(rare) >= TABLE:
                line, _, asked, answered = rare[0]
                more = f"{format_pair(asked, answered)} and {len(rare) - 1} more"
                yield f"table {build_key(asked)}", line, f"{TABLE_OF_ANSWERS}: {more}"

    return find


def find_closed_tables(tree: ast.Module, index: test_literals.Index) -> Iterator[Finding]:
    """Yield a finding for each dictionary of which every row is a case of the tests in *index*, with its answer.

    A table elsewhere may have the same texts and numbers. A vocabulary has words and signs for keys, and a record has
    names: neither is looked at.
    """
    looked_up = {id(node) for node in map(_find_table_of_lookup, ast.walk(tree)) if node is not None}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Dict):
            continue
        rows = [(asked, answered) for _, _, asked, answered in read_table_rows(node)]
        if len(rows) < len(node.keys) or not all(test_literals.are_together(index, *row) for row in rows):
            continue
        telling = [row for row in rows if _is_telling(*row)]
        rare = sum(any(map(test_literals.is_rare, asked)) for asked, _ in rows)
        if len(telling) >= (1 if id(node) in looked_up else ROWS) and rare < TABLE:
            more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
            what = f"{NOTHING_ELSE}: {format_pair(*telling[0])}{more}"
            yield f"closed {build_key(telling[0][0])}", node.lineno, what


def _find_table_of_lookup(node: ast.AST) -> ast.Dict | None:
    """Return the dictionary that is written down and looked up in one expression, if *node* is that."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOOKUPS:
        found: ast.expr = node.func.value
    elif isinstance(node, ast.Subscript):
        found = node.value
    else:
        return None
    return found if isinstance(found, ast.Dict) else None


def _is_telling(asked: list[Any], answered: list[Any]) -> bool:
    """Return whether a row is for a test, and its key is neither a name nor a sign."""
    if not is_for_a_test(asked, answered):
        return False
    return not any(_is_name_or_sign(value) for value in asked if isinstance(value, str))


def _is_name_or_sign(text: str) -> bool:
    return bool(test_literals.NAME.fullmatch(text)) or not any(map(str.isalnum, text))


def walk_scopes(tree: ast.Module) -> Iterator[tuple[int, ast.AST]]:
    """Yield all nodes of *tree*, each with the number of the function it stands in; 0 is the module."""
    todo: list[tuple[int, ast.AST]] = [(0, tree)]
    functions = 0
    while todo:
        scope, node = todo.pop()
        yield scope, node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            functions += 1
            scope = functions
        todo += [(scope, child) for child in reversed(list(ast.iter_child_nodes(node)))]


def is_uncomputed(asked: list[Any], answered: list[Any]) -> bool:
    """Return whether *answered* is a number that a program would compute from the numbers *asked*, but does not.

    One number may be a base case; 0 and 1 are truth tables, neighbours and rules.
    """
    numbers, results = flatten(asked), flatten(answered)
    if len(numbers) < 2 or not results or not all(map(_is_number, (*numbers, *results))):  # noqa: PLR2004  as said
        return False
    return any(abs(result) > 1 for result in results)


def flatten(values: Iterable[Any]) -> list[Any]:
    """Return *values*, and in the place of lists and tuples what is in them."""
    return [leaf for value in values for leaf in (value if isinstance(value, (list, tuple)) else (value,))]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def check_chains(chains: Iterable[list[Association]]) -> Iterator[Finding]:
    """Yield a finding for each chain in which several cases give what tests expect of them."""
    for cases in chains:
        rows = {build_key(case[2]): case for case in cases}
        if len(rows) >= CHAIN:
            line, _, asked, answered = next(iter(rows.values()))
            more = f"{format_pair(asked, answered)} and {len(rows) - 1} more"
            yield f"chain {build_key(asked)}", line, f"{CASE_BY_CASE}: {more}"


def is_for_a_test(asked: list[Any], answered: list[Any]) -> bool:
    """Return whether a case is written for a test, not the domain: a table from words to words is a vocabulary."""
    words = all(map(test_literals.is_word, (*asked, *answered)))
    both = any(map(test_literals.is_uncommon, asked)) and any(map(test_literals.is_uncommon, answered))
    return any(map(test_literals.is_rare, asked)) or (both and not words)


def _format_warning(kind: str, asked: list[Any], answered: list[Any]) -> str:
    if kind == "return":
        return f"returns, whatever it is asked, what a test expects: {test_literals.shorten_value(asked[0])}"
    if answered:
        return f"{BY_VALUE}: {format_pair(asked, answered)}"
    return f"makes a case of a value that a test gives: {test_literals.shorten_value(asked[0])}"


def _find_associations(node: ast.AST) -> Iterator[Association]:
    if isinstance(node, (ast.If, ast.IfExp)):
        answered = find_returned_literals(node.body if isinstance(node.body, list) else [node.body])
        for asked in find_compared_literals(node.test) if answered else ():
            yield node.lineno, "case", asked, answered
    elif isinstance(node, ast.Compare):
        yield from ((node.lineno, "case", asked, []) for asked in find_compared_literals(node))
    elif type(node).__name__ == "match_case":
        case: Any = node
        asked = list(test_literals.find_literals(case.pattern))
        yield case.pattern.lineno, "case", asked, find_returned_literals(case.body)
    elif isinstance(node, (ast.FunctionDef, ast.Lambda)):
        yield from find_constant_function(node)
    else:
        yield from read_table_rows(node)


def find_compared_literals(test: ast.expr) -> Iterator[Asked]:
    """Yield the literals that *test* asks for: each alternative apart, all that must hold together at once."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        for value in test.values:
            yield from find_compared_literals(value)
    elif isinstance(test, ast.BoolOp):
        parts: list[Asked] = [next(find_compared_literals(value), []) for value in test.values]
        yield [value for part in parts for value in part]
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, right = test_literals.evaluate_literal(test.left), test_literals.evaluate_literal(test.comparators[0])
        if isinstance(test.ops[0], (ast.Eq, ast.Is)) and left[0] != right[0]:
            yield test_literals.spread_key(left[1] if left[0] else right[1])
        elif isinstance(test.ops[0], ast.In) and right[0] and isinstance(right[1], (list, tuple, set, dict)):
            yield from map(test_literals.spread_key, list(right[1])[: test_literals.VALUES])


def find_returned_literals(body: Iterable[ast.AST]) -> list[Any]:
    """Return the literals that the first statements of a body give."""
    found = []
    for node in list(body)[:3]:
        given = node.value if isinstance(node, (ast.Return, ast.Assign, ast.Expr)) else node
        known, value = test_literals.evaluate_literal(given)
        found += [value] if known else []
    return found


def read_table_rows(node: ast.AST) -> Iterator[Association]:
    """Yield the rows of a table, if *node* is one: written as a literal, as JSON in a text, or entry by entry."""
    if isinstance(node, ast.Dict):
        entries = zip(node.keys, node.values)  # noqa: B905  Python 3.8 has no strict
        yield from (found for key, value in entries for found in _read_table_entry(node.lineno, key, value))
    elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        for row in node.elts:
            value = test_literals.evaluate_literal(row)[1] if isinstance(row, (ast.Tuple, ast.List)) else ()
            if value and len(value) > 1:
                yield row.lineno, "table", [*test_literals.spread_key(value[0]), *value[1:-1]], [value[-1]]
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        for key, value in _read_json_table(node.value):
            yield node.lineno, "table", test_literals.spread_key(key), [value]
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        yield from _read_table_entry(node.lineno, node.targets[0].slice, node.value)


def _read_table_entry(line: int, key: ast.expr | None, value: ast.expr) -> Iterator[Association]:
    asked, answered = test_literals.evaluate_literal(key), test_literals.evaluate_literal(value)
    if asked[0] and answered[0]:
        yield line, "table", test_literals.spread_key(asked[1]), [answered[1]]


def _read_json_table(text: str) -> list[tuple[Any, Any]]:
    if len(text) < WRITTEN or text[:1] not in "[{":
        return []
    try:
        table = json.loads(text)
    except (ValueError, RecursionError):
        return []
    if isinstance(table, dict):
        return list(table.items())
    return [(tuple(row[:-1]), row[-1]) for row in table if isinstance(row, list) and len(row) > 1]


def find_constant_function(node: ast.FunctionDef | ast.Lambda) -> Iterator[Association]:
    """Yield a function that is given something and only returns a literal."""
    if isinstance(node, ast.Lambda):
        returned: ast.expr | None = node.body
    else:
        body = node.body[1:] if ast.get_docstring(node) else node.body
        returned = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None
    known, value = test_literals.evaluate_literal(returned)
    if known and node.args.args:
        yield node.lineno, "return", [value], []


def build_key(values: list[Any]) -> str:
    """Return the key under which equal findings are recognised elsewhere."""
    return ",".join(map(test_literals.name_of, values))[:200]


def format_pair(asked: list[Any], answered: list[Any]) -> str:
    """Return a case of the tests as it is shown to people."""
    before, after = (", ".join(map(test_literals.shorten_value, values)) for values in (asked, answered))
    return f"{before} -> {after}"
