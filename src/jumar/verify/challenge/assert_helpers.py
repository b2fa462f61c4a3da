"""Finds assertion helpers: functions of the tests that compare their arguments, and those that do so leniently."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import PurePosixPath
from typing import NamedTuple

from jumar.verify.challenge.comparison_scan import ComparisonScan
from jumar.verify.challenge.constants import (
    Function,
    NameBindings,
    Witnesses,
    find_operands,
    walk_own,
)
from jumar.verify.challenge.eligibility import read_imported_modules
from jumar.verify.challenge.reachable_statements import find_reachable
from jumar.verify.challenge.source_edits import DrawEdits

PREPARING = frozenset({".setUp", ".asyncSetUp", ".setUpClass", ".setup_method", ".setup_class"})
"""Methods that run before each test of their class."""


class Helper(NamedTuple):
    """A function that is no test."""

    path: str
    function: Function
    method: bool


class HelperIndex:
    """Index of the functions that compare their arguments for equality, and of the files that can call each."""

    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        found = [helper for path, tree in trees.items() for helper in _find_helpers(path, tree)]
        often = Counter(helper.function.name for helper in found)
        self._found = [h for h in found if often[h.function.name] == 1 and _is_plain(h.function)]
        self._imported = {path: read_imported_modules(tree) for path, tree in trees.items()}
        self._places: dict[str, frozenset[int]] = {}
        for _ in range(2):  # those that call others of them, too
            known = {path: self.find_known(path) for path in trees}
            for helper in self._found:
                if places := frozenset(self._find_compared(helper, known[helper.path])):
                    self._places[helper.function.name] = places

    def find_known(self, path: str) -> Witnesses:
        """Return the helpers that the file *path* can call, and the arguments that they compare."""
        known: dict[str, frozenset[int]] = {}
        for helper in self._found:
            places = self._places.get(helper.function.name)
            module = self._imported[path].get(helper.function.name, "").rpartition(".")[2]
            if not places:
                continue
            if helper.method:
                known["." + helper.function.name] = places
            elif helper.path == path or module == PurePosixPath(helper.path).stem:
                known[helper.function.name] = places
        return known

    def _find_compared(self, helper: Helper, known: Witnesses) -> Iterator[int]:
        """Return the arguments that a helper certainly compares and uses for nothing else, counted as a caller does."""
        names = NameBindings(helper.function, {}, frozenset(), known)
        given = [arg.arg for arg in (*helper.function.args.posonlyargs, *helper.function.args.args)]
        for place in find_reachable(names, self._imported[helper.path]):
            for operand in find_operands(place, names.witnesses):
                name = operand.id if isinstance(operand, ast.Name) else ""
                if name in given and names.is_only_compared(name):
                    yield given.index(name) - helper.method


def _is_plain(function: Function) -> bool:
    """Return whether a call of *function* runs it as it is written."""
    yields = any(isinstance(n, ast.Yield | ast.YieldFrom) for n in walk_own(function.body))
    return isinstance(function, ast.FunctionDef) and not function.decorator_list and not yields


def _find_helpers(path: str, tree: ast.Module) -> Iterator[Helper]:
    for node in tree.body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        for member in members:
            if isinstance(member, Function) and not member.name.startswith("test"):
                yield Helper(path, member, method=member is not node)


def list_functions(tree: ast.AST, around: ast.ClassDef | None = None) -> Iterator[tuple[Function, ast.ClassDef | None]]:
    """Yield all functions in *tree* that do not stand in another one, each with the class around it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield node, around
        elif isinstance(node, ast.ClassDef):
            yield from list_functions(node, node)
        elif isinstance(node, ast.stmt | ast.ExceptHandler):
            yield from list_functions(node, around)


def find_early(tree: ast.Module) -> AbstractSet[str]:
    """Return the names of all that a file may call while it is loaded, when what is appended to it is not there yet."""
    functions, todo, named = list[Function](), list[ast.AST](tree.body), set[str]()
    while todo:
        node = todo.pop()
        named.add(node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", ""))
        if isinstance(node, Function):
            functions.append(node)
            todo += [*node.decorator_list, node.args]
        else:  # lambdas, too: `sorted` calls its key at once
            todo += ast.iter_child_nodes(node)
    while early := [function for function in functions if function.name in named]:
        functions = [function for function in functions if function.name not in named]
        inside = [node for function in early for node in ast.walk(function)]
        named |= {node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "") for node in inside}
    return named


class LenienceIndex:
    """Index of the functions of one file, but for its tests, that leave a comparison as it is.

    Args:
        imported: name -> the module that it was imported from.
    """

    def __init__(self, imported: Mapping[str, str]) -> None:
        self.imported = imported
        self.scans: dict[str, list[ComparisonScan]] = {}
        self.lenient: set[str] = set()
        """Functions; methods with a dot before their name."""
        self.stricter: list[DrawEdits] = []
        """Edits that make the other comparisons in them stricter."""

    def add(self, scan: ComparisonScan, *, whole: bool, method: bool) -> None:
        """Add the function of *scan*; *whole* if all its comparisons are made stricter."""
        name = "." * method + scan.names.function.name
        self.scans.setdefault(name, []).append(scan)  # classes of a file may have methods of one name
        self.lenient |= set() if whole else {name}
        self.stricter += scan.edits


def calls_lenient(scan: ComparisonScan, lenient: AbstractSet[str]) -> bool:
    """Return whether the function of *scan* calls one of *lenient*, or hands it on, unless with literals alone."""
    function = scan.names.function
    settled = {id(call.func) for call in ast.walk(function) if isinstance(call, ast.Call) and scan.is_whole_call(call)}
    for node in ast.walk(function):
        name = "." + node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        if name in lenient and id(node) not in settled:
            return True
    method = bool(function.args.args) and function.args.args[0].arg == "self"
    return method and not lenient.isdisjoint(PREPARING) and function.name.startswith("test")


def find_lenient(indexes: Mapping[str, LenienceIndex]) -> Mapping[str, AbstractSet[str]]:
    """Return for each file the functions that it can call and that leave a comparison as it is, or call such."""
    while True:
        known = {path: _find_reached(path, indexes) for path in indexes}
        before = sum(len(index.lenient) for index in indexes.values())
        for path, index in indexes.items():
            index.lenient |= {
                name for name, scans in index.scans.items() if any(calls_lenient(scan, known[path]) for scan in scans)
            }
        if sum(len(index.lenient) for index in indexes.values()) == before:
            return known


def _find_reached(path: str, indexes: Mapping[str, LenienceIndex]) -> AbstractSet[str]:
    """Return the lenient functions that the file *path* may call: its own, imported ones, fixtures, methods."""
    found = set[str]()
    for other, index in indexes.items():
        stem = PurePosixPath(other).stem
        modules = indexes[path].imported
        near = {name for name, module in modules.items() if module.rpartition(".")[2] == stem or name == stem}
        for name in index.lenient:
            fixture = stem == "conftest"
            if other == path or name in near or fixture or (near and name.startswith(".")):
                found.add(name)
            if near and not name.startswith("."):
                found.add("." + name)
    return found
