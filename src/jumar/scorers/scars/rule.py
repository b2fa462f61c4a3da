"""Rules that find scars: read from TOML, and tested on their own examples before use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import msgspec

from jumar.errors import BadInput
from jumar.languages.gitignore_globs import compile_patterns

TESTS = ("tests/", "test/", "__tests__/", "test_*.py", "*_test.py", "*_test.go", "*.test.*", "*.spec.*")
"""Globs of the files that are tests, in any language."""

EXTENSIONS = {"python": "py", "javascript": "js", "typescript": "ts", "tsx": "tsx", "go": "go", "rust": "rs"}
"""Language -> extension of its examples."""


class RuleFiles(StrEnum):
    """Files to which a rule applies."""

    ALL = "all"
    TESTS = "tests"
    SOURCES = "sources"


class RuleText(StrEnum):
    """Part of a file that a regular expression is searched in."""

    CODE = "code"
    """Without comments and the contents of strings."""
    STRINGS = "strings"
    COMMENTS = "comments"


class ScarRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One known fault: how it is found, its points, and examples that test the rule.

    It is found by `query`, a tree-sitter query whose node `@scar` is the finding, or by `regex`. `unless`, `without`
    and `outside` excuse findings of a query; `also` and `joins` ask for something else in the same file.
    """

    id: str
    message: str
    languages: tuple[str, ...]
    points: Annotated[float, msgspec.Meta(gt=0)] = 1
    files: RuleFiles = RuleFiles.ALL
    query: str = ""
    unless: str = ""
    """A query whose `@scar` is the same node excuses it."""
    without: str = ""
    """A query that matches anything within `@scar` excuses it."""
    outside: str = ""
    """A query whose `@place` holds `@scar` excuses it."""
    also: str = ""
    """A query that must match somewhere in the file; its captures are words of `joins`."""
    joins: tuple[str, ...] = ()
    """Texts that `@target` must be, or end with after a dot: of captures, and of `{unit}`, what the file tests."""
    regex: str = ""
    within: RuleText = RuleText.CODE
    matches: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    """Examples in which the rule finds something."""
    clean: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    """Examples in which it finds nothing."""


class RuleFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A TOML file of rules: `[[rule]]` tables."""

    rule: tuple[ScarRule, ...]


def parse_rules(data: bytes, where: str) -> tuple[ScarRule, ...]:
    """Return the rules in *data*, the content of the TOML file *where*, unchecked.

    Raises:
        BadInput: if it is no such file.
    """
    try:
        return msgspec.toml.decode(data, type=RuleFile).rule
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadInput(f"{where} is no file of rules: {error}") from None


@cache
def load_shipped_rules() -> tuple[ScarRule, ...]:
    """Return the rules that come with jumar."""
    folder = files("jumar.scorers.scars") / "rules"
    found = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".toml")), key=lambda entry: entry.name)
    return tuple(rule for entry in found for rule in parse_rules(entry.read_bytes(), entry.name))


def load_rules(paths: Iterable[Path], *, shipped: bool = True) -> tuple[ScarRule, ...]:
    """Return the rules in the files *paths*, after the shipped ones if those are wanted.

    Raises:
        BadInput: if a file cannot be read, or two rules have one id.
    """
    found = [*(load_shipped_rules() if shipped else ())]
    for path in paths:
        try:
            found += parse_rules(path.read_bytes(), str(path))
        except OSError as error:
            raise BadInput(f"cannot read the rules in {path}: {error.strerror}") from None
    seen = set[str]()
    for rule in found:
        if rule.id in seen:
            raise BadInput(f"two scar rules are called {rule.id}; give one of them another id")
        seen.add(rule.id)
    return tuple(found)


@cache
def is_test(path: str) -> bool:
    """Return whether the file *path*, relative to its project, is a test."""
    return compile_patterns(TESTS)(path)


def list_examples(rule: ScarRule) -> Iterator[tuple[str, str, bool]]:
    """Yield the path, the text and the expectation (True: it is found) of each example of *rule*, in each language."""
    for language in rule.languages:
        path = _name_example(language, tests=rule.files is RuleFiles.TESTS)
        yield from ((path, text, True) for text in rule.matches)
        yield from ((path, text, False) for text in rule.clean)


def _name_example(language: str, *, tests: bool) -> str:
    extension = EXTENSIONS[language]
    if not tests:
        return f"unit.{extension}"
    named = {"python": "test_unit.py", "go": "unit_test.go", "rust": "tests/unit.rs"}
    return named.get(language, f"unit.test.{extension}")
