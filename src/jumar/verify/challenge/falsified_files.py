"""Falsifies tests where they stand: values that are asserted become others, so that who reads them reads wrong ones.

Only what is compared and used for nothing else is changed, wherever the comparison stands: a falsified test goes on
(`child/challenge/questions.py`), so that nothing later misses what it does. A changed comparison is named by its place
among those of its file.
"""

from __future__ import annotations

import ast
import io
import math
import re
import tokenize
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from random import Random
from typing import Any, NamedTuple

from jumar.child.challenge.failing_branches import fails
from jumar.child.challenge.other_values import STEPS, make_other, make_year
from jumar.child.challenge.rewritten_comparisons import list_comparisons
from jumar.child.challenge.syntax import walk_own
from jumar.verify.challenge.literals import (
    ANY,
    Function,
    find_bound,
    find_literals,
    is_literal,
    list_assigned,
    list_reads,
    list_taken,
    list_tests,
    read_date,
    read_tables,
)

UNORDERED = "assertCountEqual"
"""Method of unittest that heeds no order, and of a dictionary the keys alone."""

EQUAL = frozenset({
    "assertEqual", "assertEquals", "assertListEqual", "assertTupleEqual", "assertDictEqual", "assertSetEqual",
    "assertSequenceEqual", "assertMultiLineEqual", UNORDERED, "assertAlmostEqual", "assertIs",
    "assert_called_with", "assert_called_once_with",
})  # fmt: skip
"""Methods of unittest and its mocks for which one other value that they are given is wrong."""

READING_ALL = frozenset({"locals", "vars", "eval", "exec"})
"""Functions by which a test reads names that do not stand there."""

TOLERANCES = frozenset({"places", "delta", "msg", None})
"""Words that such a method is not given to compare."""

WORD = re.compile("[A-Za-z]{4,}")
"""Part of a text that is found nowhere by chance, when it is misspelled."""

ORDERLESS: dict[str, Callable[[Any], object]] = {"set": set, "frozenset": set, "sorted": sorted}
"""Functions for which another order of the same is nothing else."""


class SourceEdit(NamedTuple):
    """Replacement of the bytes from *start* to *end* (of the UTF-8 form) by *text*."""

    start: int
    end: int
    text: str


class Falsity(NamedTuple):
    """Literals of a test that are changed, and the comparison that this makes false."""

    literals: Sequence[ast.expr]
    place: int


class Tables(NamedTuple):
    """Rows that a name of the file stands for, where it is read once, and parameters that fixtures take as well."""

    rows: Mapping[str, ast.expr]
    taken: frozenset[str]


class FalsifiableFile:
    """A file of tests.

    Args:
        data: its bytes.
        taken: parameters of tests that fixtures get as well: their values are not only compared.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: if it is no Python that can be parsed here.
    """

    def __init__(self, data: bytes, taken: frozenset[str] = frozenset()) -> None:
        self._encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(self._encoding)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Python would warn of in it is not ours to say
            self._tree = ast.parse(text)
        self._utf8 = text.encode()
        self._starts = [0, *(found.end() for found in re.finditer(rb"\r\n|\r|\n", self._utf8))]
        places = {id(node): place for place, node in enumerate(list_comparisons(ast.walk(self._tree)))}
        constants, reads = find_bound(self._tree.body), Counter(list_reads([self._tree]))
        tables = Tables({n.id: value for n, value in list_assigned(self._tree.body) if reads[n.id] == 1}, taken)
        self._views = {id(arg): view for arg, view in _list_views(self._tree)}
        dates = filter(None, map(read_date, ast.walk(self._tree)))
        self._years = {id(year): (month, day) for year, month, day in dates}
        self._falsities: dict[str, list[Falsity]] = {}
        for name, function in list_tests(self._tree):
            own = Counter(list_reads([function]))
            known = {n: literals for n, literals in constants.items() if reads[n] == own[n]}
            self._falsities[name] = list(_find_falsities(function, known, tables, places))
        self.names = frozenset(name for name, falsities in self._falsities.items() if falsities)
        """Tests that can be false."""

    def falsify(self, names: Collection[str], random: Random) -> tuple[bytes, list[int]]:
        """Return the file in which the tests *names* are false, and the places of the comparisons that are."""
        chosen = [falsity for name in names for falsity in self._falsities.get(name, ())]
        leaves = (leaf for falsity in chosen for literal in falsity.literals for leaf in self._list_leaves(literal))
        literals = {id(leaf): leaf for leaf in leaves}
        pieces, at = list[bytes](), 0
        for edit in sorted(self._change(literal, random) for literal in literals.values()):
            pieces += [self._utf8[at : edit.start], edit.text.encode()]
            at = edit.end
        new = b"".join((*pieces, self._utf8[at:])).decode().encode(self._encoding)
        return new, sorted(falsity.place for falsity in chosen)

    def _list_leaves(self, node: ast.expr) -> Iterator[ast.expr]:
        """Yield the literals in one: each is changed where it stands, so that all else stays as it is."""
        parts = node.values if isinstance(node, ast.Dict) else getattr(node, "elts", [])
        if isinstance(node, ast.Set) or not parts or id(node) in self._views:
            yield node
        else:
            yield from (leaf for part in parts for leaf in self._list_leaves(part))

    def _change(self, node: ast.expr, random: Random) -> SourceEdit:
        """Return the edit that puts another literal in the place of *node*, on as many lines."""
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        value = ast.literal_eval(node)
        view, day = self._views.get(id(node), ascii), self._years.get(id(node))
        other = make_year(value, *day, random) if day else make_other(value, random)
        while view(other) == view(value):
            other = make_other(value, random)
        text = ascii(other) if value is not None else random.choice(("True", "False"))
        quoted = self._utf8[start:end].lstrip(b"bB")[:1] == b'"' and text[-1:] == "'" and '"' not in text
        text = text.replace("'", '"') if quoted and "\\'" not in text else text
        text = f"set({text})" if isinstance(node, ast.Call) else text  # for `set()`: places count calls
        lines = (node.end_lineno or node.lineno) - node.lineno
        return SourceEdit(start, end, f"({text}{lines * chr(10)})" if lines else text)


_read = lru_cache(maxsize=64)(FalsifiableFile)  # the rounds of a challenge ask for the same files


def falsify_files(
    files: Mapping[str, bytes], chosen: Collection[str], random: Random
) -> tuple[dict[str, bytes], dict[str, list[int]]]:
    """Return those *files* of the tests that have one in *chosen*, falsified, and where their comparisons are false."""
    changed, places, taken = dict[str, bytes](), dict[str, list[int]](), list_taken(files.values())
    for path in sorted({name.partition("::")[0] for name in chosen}.intersection(files)):
        names = sorted(name.partition("::")[2] for name in chosen if name.partition("::")[0] == path)
        with suppress(SyntaxError, ValueError, LookupError, RecursionError, MemoryError):
            changed[path], places[path] = _read(files[path], taken).falsify(names, random)
    return changed, places


def list_falsifiable(files: Mapping[str, bytes], chosen: Collection[str]) -> Iterator[str]:
    """Yield the test functions in those *files* of the tests that are *chosen* with a literal that can be changed."""
    taken = list_taken(files.values())
    for path in files.keys() & chosen:
        with suppress(SyntaxError, ValueError, LookupError, RecursionError, MemoryError):
            yield from (f"{path}::{name}" for name in _read(files[path], taken).names)


def _list_views(tree: ast.AST) -> Iterator[tuple[ast.expr, Callable[[Any], object]]]:
    """Yield the literals of which less is seen than they are, each with a function that returns what is."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(args=[argument]) if is_literal(argument):
                with suppress(KeyError, TypeError):
                    view = ORDERLESS[ast.unparse(node.func)]
                    view(ast.literal_eval(argument))
                    yield argument, view
            case ast.Call(func=ast.Attribute(attr=method), args=arguments) if method == UNORDERED:
                yield from ((one, _count) for one in arguments if is_literal(one) and not isinstance(one, ast.Dict))
            case ast.Compare(left=ast.Constant(value=str(text)), ops=[ast.In() | ast.NotIn()]) if WORD.search(text):
                yield node.left, _count_letters


def _count(value: Any) -> object:
    return sorted(map(repr, value)) if hasattr(value, "__iter__") else value


def _count_letters(text: str) -> object:
    """Return the letters of the words of *text*: one number more may stand there, or an anagram."""
    return sorted("".join(WORD.findall(text)).casefold())


def _find_falsities(
    function: Function,
    constants: Mapping[str, list[ast.expr]],
    tables: Tables,
    places: Mapping[int, int],
) -> Iterator[Falsity]:
    """Yield what of *function* is changed: literals at their place, and those of names that are only compared."""
    compared = list(_list_compared(function))
    operands = Counter(side.id for _, sides in compared for side in sides if isinstance(side, ast.Name))
    reads, given = Counter(list_reads(function.body)), {} if ANY in tables.taken else read_tables(function, tables.rows)
    bound = {name: made for name, made in given.items() if name not in tables.taken} | find_bound(function.body)
    unseen = not READING_ALL.isdisjoint(reads)
    bound, constants = {} if unseen else bound, {} if unseen or ANY in tables.taken else constants
    for node, sides in compared:
        for side in sides:
            literals = find_literals(side)
            if isinstance(side, ast.Name) and reads[side.id] == operands[side.id]:
                literals = bound.get(side.id) or constants.get(side.id) or []
            if literals:
                yield Falsity(literals, places[id(node)])
                break  # if both sides became others, they might be the same


def _list_compared(function: Function) -> Iterator[tuple[ast.expr, Sequence[ast.expr]]]:
    """Yield the comparisons that hold in a test that passes, each with the sides of which one may be changed."""
    for node in walk_own(function.body):
        if isinstance(node, ast.Assert):
            yield from _list_asserted(node.test)
        elif isinstance(node, ast.If) and fails(node.body) != fails(node.orelse):
            yield from (_list_denied if fails(node.body) else _list_asserted)(node.test)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            if name in EQUAL and not any(isinstance(arg, ast.Starred) for arg in call.args) and not _is_loose(call):
                sides = [*call.args[:2], *(word.value for word in call.keywords if word.arg not in TOLERANCES)]
                yield call, [side for side in sides if name != UNORDERED or not isinstance(side, ast.Dict)]
            elif name in ("assertTrue", "assert_") and len(call.args) == 1:
                yield from _list_asserted(call.args[0])


def _is_loose(call: ast.Call) -> bool:
    """Return whether a method of unittest lets a difference pass that a changed number may have."""
    words = {word.arg: word.value for word in call.keywords}
    places = [*call.args[2:3], words.get("places")] if ast.unparse(call.func).endswith("assertAlmostEqual") else []
    told = [getattr(one, "value", None) for one in (*places, words.get("delta")) if one is not None]
    least = 0 if "delta" not in words else -math.inf
    return not all(isinstance(one, int | float) and least <= one < min(STEPS) - 1 for one in told)


def _is_wide(node: ast.expr) -> bool:
    """Return whether *node* is an `approx` with a tolerance of its own."""
    named = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("approx")
    return named and len(getattr(node, "args", ())) + len(getattr(node, "keywords", ())) > 1


def _list_asserted(test: ast.expr) -> Iterator[tuple[ast.expr, Sequence[ast.expr]]]:
    match test:
        case ast.BoolOp(op=ast.And(), values=parts):
            for part in parts:
                yield from _list_asserted(part)
        case ast.Compare(left=left, ops=ops, comparators=rest) if all(isinstance(op, ast.Eq | ast.Is) for op in ops):
            yield test, [] if any(map(_is_wide, (left, *rest))) else [left, *rest]
        case ast.Compare(left=ast.Constant(value=str(text)), ops=[ast.In()]) if WORD.search(text):
            yield test, [test.left]
        case ast.Call(func=ast.Attribute(attr="startswith" | "endswith"), args=[ast.Constant() as affix], keywords=[]):
            yield test, [affix]


def _list_denied(test: ast.expr) -> Iterator[tuple[ast.expr, Sequence[ast.expr]]]:
    match test:
        case ast.BoolOp(op=ast.Or(), values=parts):
            for part in parts:
                yield from _list_denied(part)
        case ast.UnaryOp(op=ast.Not(), operand=held):
            yield from _list_asserted(held)
        case ast.Compare(left=left, ops=[ast.NotEq() | ast.IsNot()], comparators=[right]):
            yield test, [] if any(map(_is_wide, (left, right))) else [left, right]
        case ast.Compare(left=ast.Constant(value=str(text)), ops=[ast.NotIn()]) if WORD.search(text):
            yield test, [test.left]
