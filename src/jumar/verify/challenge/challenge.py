"""Builds the challenge of a suite: which tests can be falsified, and test files in which the chosen ones are.

A test is made false where it stands: another literal in an assertion, in a table, in what an assertion names; another
exception or type. Lines, names and shape stay, and what is expected instead could have been expected: a file that tells
what it is about to say does not tell which of its tests are false. A test is falsified in no way at all unless it is
certain to fail for code that is right: a suite that passes is believed, and code that is right is never taken for a
forger's. A comparison that no single literal falsifies is made stricter, in each file of a challenge, whatever the
coins say; one beside it that can be falsified proves nothing of it.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from random import Random

from jumar.core.gate.challenge_rounds import Strength
from jumar.verify.challenge import eligibility
from jumar.verify.challenge.appended_code import Asking, build_helper
from jumar.verify.challenge.assert_helpers import (
    HelperIndex,
    LenienceIndex,
    calls_lenient,
    find_early,
    find_lenient,
    list_functions,
)
from jumar.verify.challenge.assertions import AssertionFalsifier
from jumar.verify.challenge.comparison_scan import ComparisonScan
from jumar.verify.challenge.constants import Function, NameBindings, Witnesses, find_constants
from jumar.verify.challenge.reachable_statements import find_reachable
from jumar.verify.challenge.result_uses import find_truths
from jumar.verify.challenge.source_edits import DrawEdits, ParsedSource, SourceEdit
from jumar.verify.challenge.stricter_comparisons import ASSERTIONS, allows_stricter, has_own_equality, names_no_matcher


@dataclass(frozen=True, slots=True)
class SuiteChallenge:
    """The tests of a suite, and how each can be made false."""

    strengths: Mapping[str, Strength]
    """Test function, `path::Class::name` without parameters -> how it can be falsified."""
    _files: Mapping[str, bytes] = field(repr=False, default_factory=dict)
    _sources: Mapping[str, ParsedSource] = field(repr=False, default_factory=dict)
    _ways: Mapping[str, tuple[DrawEdits, ...]] = field(repr=False, default_factory=dict)
    """Test function -> the ways to make it false."""
    _stricter: Mapping[str, Sequence[DrawEdits]] = field(repr=False, default_factory=dict)
    """Path -> what makes comparisons in that file stricter, in whatever functions they stand."""

    def falsify(self, chosen: Collection[str], rng: Random, asking: Asking = Asking.FAILING) -> Mapping[str, bytes]:
        """Return every test file, by path, in which exactly the tests *chosen* are false.

        Comparisons that no literal falsifies are stricter in all of them: *asking* says what they do beside.

        Raises:
            ValueError: if one of them cannot be falsified.
        """
        if unable := [name for name in chosen if not self._ways.get(name)]:
            raise ValueError(f"{unable[0]} cannot be falsified")
        edits: dict[str, list[SourceEdit]] = {path: [] for path in self._sources}
        helper = build_helper(asking)
        for name in sorted(chosen):
            edits[name.partition("::")[0]] += rng.choice(self._ways[name])(rng)
        for path, ways in self._stricter.items():
            edits[path] += [edit for way in ways for edit in way(rng)]
            edits[path] += [self._sources[path].append_text(helper)] if ways else []
        rewritten = {path: source.apply_edits(edits[path]) for path, source in self._sources.items()}
        return {path: rewritten.get(path, data) for path, data in self._files.items()}


def find_challenge(sources: Mapping[str, bytes], helpers: Mapping[str, bytes] | None = None) -> SuiteChallenge:
    """Find how the tests in *sources* can be falsified.

    Args:
        sources: test files by path, as they were frozen: no candidate's.
        helpers: the other Python files of the tests: what they mention is left alone.
    """
    read = _read(sources)
    every = {**_read(helpers or {}), **read}
    trees = {path: source.tree for path, source in every.items()}
    used, index = eligibility.collect_uses(trees.values()), HelperIndex(trees)
    custom = frozenset(path for path, tree in trees.items() if has_own_equality(tree))
    files: dict[str, _File] = {}
    for path, source in every.items():
        # What is in helpers, fixtures may bring anywhere; what is in tests, those who import it.
        met = path in custom or not custom <= read.keys() or _has_import_of(source.tree, custom)
        starred = PurePosixPath(path).stem in used.starred
        witnesses = index.find_known(path)
        files[path] = _File(source, used, witnesses, starred=starred, no_matchers=path in read and not met)
    lenient = find_lenient({path: file.index for path, file in files.items()})
    strengths: dict[str, Strength] = {}
    ways: dict[str, tuple[DrawEdits, ...]] = {}
    stricter: dict[str, list[DrawEdits]] = {}
    for path in read:
        found = files[path].find_ways(lenient[path])
        for name, (known, _, whole) in found.items():
            test = f"{path}::{name}"
            ways[test] = tuple(known)
            strengths[test] = (Strength.WHOLE if whole else Strength.PARTIAL) if known else Strength.NONE
        inside = [way for _, more, _ in found.values() for way in more]
        stricter[path] = [*inside, *files[path].index.stricter] if found else []
    return SuiteChallenge(strengths, dict(sources), read, ways, stricter)


def _read(files: Mapping[str, bytes]) -> dict[str, ParsedSource]:
    """Return the files that this interpreter can parse."""
    read: dict[str, ParsedSource] = {}
    for path, data in files.items():
        with suppress(SyntaxError, ValueError, LookupError, RecursionError, MemoryError):
            read[path] = ParsedSource(data)
    return read


def _has_import_of(tree: ast.Module, paths: Collection[str]) -> bool:
    """Return whether *tree* imports something of one of *paths*."""
    modules = eligibility.read_imported_modules(tree).items()
    mentioned = {part for pair in modules for name in pair for part in name.split(".")}
    return any(PurePosixPath(path).stem in mentioned for path in paths)


_Found = tuple[list[DrawEdits], list[DrawEdits], bool]
"""Ways to falsify a test, ways to make it stricter, and whether nothing that it compares is left out."""


class _File:
    """Facts that the tests of one file share.

    Args:
        starred: whether somebody imports all of it.
        no_matchers: whether it meets no class of the tests that says itself what is equal, or contained.
    """

    def __init__(
        self, source: ParsedSource, used: eligibility.Uses, witnesses: Witnesses, *, starred: bool, no_matchers: bool
    ) -> None:
        self._source, self._used, self._witnesses, self._starred = source, used, witnesses, starred
        self._excusing = eligibility.find_excusing_marks(source.tree)
        self._modules = eligibility.read_imported_modules(source.tree)
        self._constants = find_constants(source.tree)
        bound = {n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        # Who compares some types in another way may mean another thing by equality.
        own = {"assertEqual"} if used.names["addTypeEqualityFunc"] else set[str]()
        self._bound = frozenset({*bound, *self._modules, *used.defined, *own})
        self._stricter = no_matchers and allows_stricter(source.tree, self._modules)
        functions = list(list_functions(source.tree))
        self._truths = find_truths(function for function, _ in functions)
        self.index, early = LenienceIndex(self._modules), find_early(source.tree)
        for function, around in functions:
            if not function.name.startswith("test"):
                names = NameBindings(function, {}, used.fixtures, witnesses)
                scan = self._scan(names, _get_instance(function, around), (), late=function.name not in early)
                whole = False
                with suppress(RecursionError):  # nested too deeply to be looked at
                    whole = scan.run()
                self.index.add(scan, whole=whole, method=around is not None)

    def find_ways(self, lenient: AbstractSet[str]) -> dict[str, _Found]:
        """Return for each test the ways to falsify it, to make it stricter, and whether that is all it compares."""
        tests = list(eligibility.find_tests(self._source.tree, self._used))
        often = Counter(test.name for test in tests)
        found = dict[str, _Found]()
        for test in tests:
            found[test.name] = ([], [], True)
            with suppress(RecursionError):  # nested too deeply to be looked at
                if often[test.name] == 1 and not self._starred and self._can_be_falsified(test):
                    found[test.name] = self._find(test, lenient)
        return found

    def _can_be_falsified(self, test: eligibility.FalsifiableTest) -> bool:
        return eligibility.can_be_falsified(test, self._used, self._modules, self._excusing)

    def _find(self, test: eligibility.FalsifiableTest, lenient: AbstractSet[str]) -> _Found:
        function = test.function
        within = Counter(n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
        own = {name: value for name, value in self._constants.items() if self._used.names[name] == within[name] > 0}
        names = NameBindings(function, own, self._used.fixtures, self._witnesses)
        instance = _get_instance(function, test.classes[-1] if test.classes else None)
        no_matchers = self._stricter and names_no_matcher(function, self._bound)
        checks = AssertionFalsifier(self._source, names, instance, self._modules, self._bound, no_matchers)
        ways = [way for place in find_reachable(names, self._modules) for way in checks.find_ways(place)]
        scan = self._scan(names, instance, checks.falsified)
        whole = scan.run()
        return ways, scan.edits, whole and not calls_lenient(scan, lenient)

    def _scan(
        self, names: NameBindings, instance: str, falsified: Collection[int], *, late: bool = True
    ) -> ComparisonScan:
        can_be_stricter = late and self._stricter and names_no_matcher(names.function, self._bound)
        unittest = "" if self._bound & {"assertTrue", *ASSERTIONS} else instance
        return ComparisonScan(
            self._source, names, can_be_stricter, self._modules, self._truths, self._used.defined, unittest, falsified
        )


def _get_instance(function: Function, around: ast.ClassDef | None) -> str:
    """Return the name of the `TestCase` instance in *function*; empty if it is a plain one."""
    return function.args.args[0].arg if around and around.bases and function.args.args else ""
