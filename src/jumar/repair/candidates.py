"""Generates repair candidates: all operators at all suspect places, most suspicious and usual first, each once."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from heapq import heappop, heappush
from itertools import islice

import libcst as cst

from jumar.repair.operators import boundaries, calls, conditions, constants, expressions, guards, names, statements
from jumar.repair.source.blocks import StatementLines
from jumar.repair.source.blocks import iter_statements as lines_of
from jumar.repair.source.edit_site import EditSite, Operator
from jumar.repair.source.scope import build_scope
from jumar.repair.source.spans import TextEdit
from jumar.repair.source.units import Unit
from jumar.repair.suspicion import SuspectTree

NODE_OPERATORS: tuple[tuple[Operator, float], ...] = (
    (expressions.change_comparisons, 1.0),
    (expressions.change_arithmetic, 0.9),
    (expressions.change_booleans, 0.9),
    (expressions.keep_operand, 0.8),
    (boundaries.change_integers, 0.8),
    (boundaries.change_floats, 0.4),
    (boundaries.shift_counts, 0.8),
    (boundaries.change_slices, 0.6),
    (boundaries.change_indices, 0.4),
    (boundaries.change_ranges, 0.6),
    (names.change_variables, 0.75),
    (names.change_attributes, 0.6),
    (names.take_members, 0.2),
    (names.change_elements, 0.8),
    (names.reuse_expressions, 0.35),
    (calls.change_arguments, 0.8),
    (calls.unwrap_calls, 0.6),
    (calls.wrap_values, 0.35),
    (calls.clamp_values, 0.45),
    (calls.combine_values, 0.35),
    (constants.change_singletons, 0.8),
    (constants.change_containers, 0.5),
    (constants.change_strings, 0.5),
    (conditions.strengthen_conditions, 0.45),
    (conditions.replace_conditions, 0.4),
    (conditions.change_filters, 0.5),
    (guards.change_handlers, 0.5),
)
"""Operators on a node, and the highest prior each gives: an operator is not asked until that counts."""

LINE_OPERATORS: tuple[tuple[Callable[[EditSite, StatementLines], Iterator[TextEdit]], float], ...] = (
    (statements.delete_statements, 0.5),
    (statements.move_statements, 0.55),
    (statements.change_keywords, 0.6),
    (statements.find_returns, 0.35),
    (statements.copy_statements, 0.35),
    (statements.assign_names, 0.3),
    (statements.collect_names, 0.3),
    (statements.end_with_return, 0.4),
    (guards.make_conditional, 0.42),
    (guards.return_early, 0.4),
    (guards.catch_exceptions, 0.25),
)
"""The same at a statement that has its lines to itself."""

AT_ONCE = 16
"""Edits asked of an operator at a time: some have ten thousand for one statement of a large function."""

THINNING = -0.1
"""Rate at which the later alternatives of an operator at one place lose rank against other operators."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A changed unit of a file and the whole new text of that file."""

    path: str
    unit: Unit
    edit: TextEdit
    """In offsets and lines of the file."""
    snippet: str
    """The changed unit in its shell: what a screening compiles."""
    text: str
    """The whole changed file."""
    rank: float
    swappable: bool
    """True if the change lies inside a function, so that it can be swapped into a loaded module."""

    first: str = ""
    """Of a pair: the change that came before this one, in a few words."""

    @property
    def what(self) -> str:
        """The change in a few words."""
        change = f"{self.path}:{self.edit.line}: {self.edit.operator}"
        return f"{self.first}; {change}" if self.first else change


@dataclass(slots=True)
class _Lot:
    """Edits of one operator at one place, generated on demand."""

    path: str
    unit: Unit
    edits: Iterator[TextEdit]
    bound: float
    """No edit of it ranks above this, before thinning."""
    asked: int = 0

    @property
    def rank(self) -> float:
        """The highest rank that is left in the lot."""
        return self.bound * _compute_share(self.asked)


def generate_candidates(tree: SuspectTree, seed: int = 0, least: float = 0.0) -> Iterator[Candidate]:
    """Yield all candidates of *tree* ranked *least* or more, best first. The same arguments give the same order."""
    heap: list[tuple[float, bool, int, int, _Lot | tuple[str, Unit, TextEdit]]] = []
    units = sorted(tree.list_units(), key=lambda entry: -max(entry[2].values()))
    scores = {(path, unit): lines for path, unit, lines in units}
    known = {_hash_shape(tree.files[path][unit.start : unit.end], unit) for path, unit, _ in units}
    count = 0

    def push(rank: float, item: _Lot | tuple[str, Unit, TextEdit]) -> None:
        nonlocal count
        if rank > least:
            count += 1
            heappush(heap, (-rank, isinstance(item, _Lot), _break_tie(seed, count), count, item))

    while heap or units:
        # Nothing ranks above the suspicion of its unit: less suspicious ones are opened when their turn comes.
        while units and (not heap or -heap[0][0] <= max(units[0][2].values())):
            path, unit, lines = units.pop(0)
            for lot in _list_lots(tree, path, unit, lines):
                push(lot.rank, lot)
        if not heap:
            return
        negative, *_, item = heappop(heap)
        if isinstance(item, _Lot):
            _push_next(item, scores[item.path, item.unit], push)
            continue
        path, unit, edit = item
        candidate = _build_candidate(tree.files[path], path, unit, edit, -negative)
        shape = _hash_shape(candidate.snippet[len(unit.shell) :], unit)
        if shape and shape not in known:
            known.add(shape)
            yield candidate


def _push_next(
    lot: _Lot, scores: Mapping[int, float], push: Callable[[float, _Lot | tuple[str, Unit, TextEdit]], None]
) -> None:
    """Push the next edits of *lot*, and the rest of it."""
    before = lot.asked
    for edit in islice(lot.edits, AT_ONCE):
        rank = min(edit.prior * scores.get(edit.line, 0.0), lot.bound) * _compute_share(lot.asked)
        lot.asked += 1
        push(rank, (lot.path, lot.unit, edit))
    if lot.asked == before + AT_ONCE:
        push(lot.rank, lot)


def _compute_share(asked: int) -> float:
    """Return the share that is left of a rank after *asked* others of its lot."""
    return float((asked + 1) ** THINNING)


def generate_pairs(tree: SuspectTree, first: Candidate, seed: int = 0, least: float = 0.3) -> Iterator[Candidate]:
    """Yield pairs: *first* and one more change of the same unit, best first."""
    lines = dict.fromkeys(range(first.unit.first, first.unit.last + 1), 1.0)
    changed = SuspectTree({first.path: first.text}, {first.path: lines})
    for second in generate_candidates(changed, seed, least):
        same = second.unit.first == first.unit.first and second.unit.name == first.unit.name
        if same and second.text != tree.files[first.path]:
            yield replace(second, first=first.what, swappable=first.swappable and second.swappable)


def _break_tie(seed: int, index: int) -> int:
    """Return the order of an edit among those of its rank: as generated under seed 0, shuffled under others."""
    return int.from_bytes(sha256(f"{seed}:{index}".encode()).digest()[:8]) if seed else index


def _build_candidate(source: str, path: str, unit: Unit, edit: TextEdit, rank: float) -> Candidate:
    text = edit.apply(source)
    snippet = unit.shell + text[unit.start : unit.end + len(text) - len(source)]
    return Candidate(path, unit, edit, snippet, text, rank, unit.function and edit.start >= unit.body)


def _hash_shape(body: str, unit: Unit) -> bytes:
    """Return a hash of the unit's syntax tree, or nothing if it does not compile."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # What the compiler warns of here (calling a list, indexing None) is never the mending of a bug.
            warnings.filterwarnings("error", r".*(is not callable|is not subscriptable|indices must be|with a)")
            tree = ast.parse(unit.shell + body)
            compile(tree, unit.name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return b""
    return sha256(f"{unit.first}:{unit.name}:{ast.dump(tree)}".encode()).digest()


def _list_lots(tree: SuspectTree, path: str, unit: Unit, scores: Mapping[int, float]) -> Iterator[_Lot]:
    """Yield the possible edits of all operators in *unit*, place by place."""
    source, found = tree.files[path], tree.outlines[path]
    snippet = unit.shell + source[unit.start : unit.end]
    try:
        site = EditSite(snippet, build_scope(snippet, found.variables, found.callables))
    except (cst.ParserSyntaxError, SyntaxError, RecursionError):
        return
    shift = unit.first - 1 - unit.shell_lines
    places: list[tuple[int, Iterator[TextEdit], float]] = [
        (site.line(node), operator(site, node), most) for node in site.nodes for operator, most in NODE_OPERATORS
    ]
    places += [
        (line.number, operator(site, line), most) for line in lines_of(site) for operator, most in LINE_OPERATORS
    ]
    for line, edits, most in places:
        if score := scores.get(line + shift, 0.0):
            yield _Lot(path, unit, _place(site, unit, edits, shift), most * score)


def _place(site: EditSite, unit: Unit, edits: Iterator[TextEdit], shift: int) -> Iterator[TextEdit]:
    """Yield *edits* in offsets and lines of the file, without those that change nothing or the shell."""
    for edit in edits:
        if edit.start >= len(unit.shell) and site.snippet[edit.start : edit.end] != edit.text:
            yield edit.fit(site.snippet).shift(unit.start - len(unit.shell), shift)
