"""Finds assertion helpers: functions of the tests that compare their arguments."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from jumar.verify.challenge.constants import Function, NameBindings, Witnesses, find_operands, walk_own
from jumar.verify.challenge.eligibility import read_imported_modules
from jumar.verify.challenge.reachable_statements import find_reachable


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
