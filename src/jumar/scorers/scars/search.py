"""Finds scars in source files: parses each once, and lets every rule of its language search the tree."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from jumar.errors import BadInput
from jumar.languages.grammars import load_language
from jumar.languages.syntax import find_language
from jumar.scorers.scars.limits import can_be_searched
from jumar.scorers.scars.matching import Places, find_lines, is_joined
from jumar.scorers.scars.parse_probe import Source, find_unparsable
from jumar.scorers.scars.rule import EXTENSIONS, RuleFiles, RuleText, ScarRule, is_test, list_examples

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Query

LARGEST_BYTES = 1_000_000
"""Larger files are data or generated, and are not searched."""

TEXTS = {
    RuleText.COMMENTS: frozenset(["comment", "line_comment", "block_comment"]),
    RuleText.STRINGS: frozenset({
        "string_content", "string_fragment", "interpreted_string_literal_content", "raw_string_literal_content",
        "char_literal", "rune_literal", "regex_pattern",
    }),
}  # fmt: skip
"""Node types of comments and of the contents of strings, in all grammars."""
UNIT = re.compile(r"^test_|_test$|[._](test|spec)$")


class Finding(msgspec.Struct, frozen=True, order=True):
    """A scar that a rule found."""

    path: str
    line: int
    """Counted from 1."""
    rule: str
    points: float
    message: str
    text: str = ""
    """The line, without its indentation."""


class Searched(NamedTuple):
    """Result of a search."""

    findings: tuple[Finding, ...]
    """Sorted."""
    left_out: tuple[str, ...] = ()
    """Files that would take too long: brackets without end, or nested too deep."""


@dataclass(frozen=True)
class SourceFile:
    """A parsed file."""

    path: str
    data: bytes
    language: str
    root: Node

    def get_line(self, number: int) -> str:
        """Return the line *number*, counted from 1, without its indentation."""
        return self._lines[number - 1].decode("utf-8", "replace").strip() if number <= len(self._lines) else ""

    @cached_property
    def _lines(self) -> list[bytes]:
        return self.data.split(b"\n")

    @cached_property
    def spans(self) -> tuple[tuple[RuleText, int, int], ...]:
        """Comments and contents of strings, with their first byte and the one after the last."""
        from tree_sitter import QueryCursor  # noqa: PLC0415  only those who look for scars load the parser

        found = QueryCursor(_build_text_query(self.language)).captures(self.root)
        return tuple((RuleText(part), n.start_byte, n.end_byte) for part, nodes in found.items() for n in nodes)


class RuleInLanguage:
    """The rule *rule*, compiled for *language*."""

    def __init__(self, rule: ScarRule, language: str) -> None:
        self.rule = rule
        self._language = language
        self._regex = re.compile(rule.regex, re.MULTILINE) if rule.regex else None

    @cached_property
    def _queries(self) -> Mapping[str, Query]:
        named = ("query", "unless", "without", "outside", "also")
        return {name: _build_query(self._language, text) for name in named if (text := getattr(self.rule, name))}

    def search(self, source: SourceFile) -> Iterator[int]:
        """Yield the lines of *source* on which the fault is, counted from 1."""
        if self.rule.files is not RuleFiles.ALL and is_test(source.path) is not (self.rule.files is RuleFiles.TESTS):
            return
        if self._regex is not None:
            text = _select_text(source, self.rule.within)
            yield from find_lines(self._regex, text)
            return
        excused = {_find_span(node) for node in self._list_captures("unless", source.root, "scar")}
        places = Places(self._list_captures("outside", source.root, "place"))
        words = self._list_words(source) if self.rule.joins else ()
        for captured in self._list_matches("query", source.root):
            if not (nodes := captured.get("scar")):
                continue
            node, span = nodes[0], _find_span(nodes[0])
            if span in excused or places.hold(node):
                continue
            if "without" in self._queries and any(self._list_matches("without", node)):
                continue
            if self.rule.joins and not is_joined(_get_text(captured["target"][0]), words):
                continue
            yield node.start_point[0] + 1

    def _list_words(self, source: SourceFile) -> tuple[tuple[str, ...], ...]:
        """Return the texts that `joins` makes of each match of `also`; one of them must be all that `@target` is."""
        unit = UNIT.sub("", PurePosixPath(source.path).stem)
        also = self._list_matches("also", source.root) if "also" in self._queries else iter([{}])
        named = ({name: _get_text(nodes[0]) for name, nodes in words.items()} for words in also)
        made = (tuple(text.format(**{"unit": unit, **words}) for text in self.rule.joins) for words in named)
        return tuple(dict.fromkeys(made))

    def _list_captures(self, name: str, node: Node, capture: str) -> Iterator[Node]:
        if name in self._queries:
            for captured in self._list_matches(name, node):
                yield from captured.get(capture, ())

    def _list_matches(self, name: str, node: Node) -> Iterator[Mapping[str, list[Node]]]:
        from tree_sitter import QueryCursor  # noqa: PLC0415  as above

        yield from (captured for _, captured in QueryCursor(self._queries[name]).matches(node))


class ScarSearch:
    """Searches files by *rules*, all of which pass their examples.

    Raises:
        BadInput: if a rule names no known language, cannot be compiled, or is wrong about one of its examples.
    """

    def __init__(self, rules: Iterable[ScarRule]) -> None:
        self.rules = tuple(rules)
        self._by_language: dict[str, list[RuleInLanguage]] = {}
        for rule in self.rules:
            _check_form(rule)
            for language in rule.languages:
                self._by_language.setdefault(language, []).append(_compile(rule, language))
        for rule in self.rules:
            _try_examples(rule)

    def search(self, files: Mapping[str, bytes]) -> Searched:
        """Return the findings in *files*, path -> content; files without grammar or too large are skipped.

        A rule finds at most one scar on a line.
        """
        found, left_out = set[Finding](), list[str]()
        wanted = {path: language for path in files if (language := self._find_language(path, files[path]))}
        hostile = find_unparsable([Source(language, files[path]) for path, language in wanted.items()])
        for place, (path, language) in enumerate(wanted.items()):
            source = None if place in hostile else parse_source(path, files[path], language)
            if source is None:
                left_out.append(path)
                continue
            rules = self._by_language[language]
            for compiled in rules:
                rule = compiled.rule
                for line in compiled.search(source):
                    text = source.get_line(line)
                    found.add(Finding(path, line, rule.id, rule.points, rule.message, text))
        return Searched(tuple(sorted(found)), tuple(left_out))

    def _find_language(self, path: str, data: bytes) -> str:
        """Return the language of a file that is searched; empty: it is not."""
        language = find_language(path) or ""
        return language if language in self._by_language and len(data) <= LARGEST_BYTES else ""


def parse_source(path: str, data: bytes, language: str) -> SourceFile | None:
    """Return the file *path* parsed by the grammar *language*, or None: its search would take too long.

    The parser skips syntax errors.
    """
    from tree_sitter import Parser  # noqa: PLC0415  as above

    tree = Parser(_load_grammar(language)).parse(data)
    return SourceFile(path, data, language, tree.root_node) if can_be_searched(tree) else None


def subtract_findings(after: Iterable[Finding], before: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return those of *after* that are not in *before*: a line that only moved is found in both."""
    had = Counter((each.path, each.rule, each.text) for each in before)
    new = []
    for finding in after:
        key = (finding.path, finding.rule, finding.text)
        if had[key]:
            had[key] -= 1
        else:
            new.append(finding)
    return tuple(new)


def count_points(findings: Iterable[Finding]) -> float:
    """Return the points that *findings* take: those of each rule once."""
    return sum({finding.rule: finding.points for finding in findings}.values())


@cache
def _load_grammar(language: str) -> Language:
    return load_language(language)


@lru_cache(maxsize=1024)
def _build_query(language: str, text: str) -> Query:
    """Return the query *text*, compiled: that takes ten times as long as searching a file with it."""
    from tree_sitter import Query  # noqa: PLC0415  as above

    return Query(_load_grammar(language), text)


def _compile(rule: ScarRule, language: str) -> RuleInLanguage:
    from tree_sitter import QueryError  # noqa: PLC0415  as above

    try:
        compiled = RuleInLanguage(rule, language)
        _ = compiled._queries  # noqa: SLF001  compiled now, so that a fault is told now
    except (QueryError, re.error, ValueError) as error:
        raise BadInput(f"the scar rule {rule.id} cannot be compiled for {language}: {error}") from None
    return compiled


def _check_form(rule: ScarRule) -> None:
    if bool(rule.query) == bool(rule.regex):
        raise BadInput(f"the scar rule {rule.id} needs either a query or a regex")
    if rule.query and "@scar" not in rule.query:
        raise BadInput(f"the query of the scar rule {rule.id} captures no @scar")
    if rule.joins and "@target" not in rule.query:
        raise BadInput(f"the scar rule {rule.id} joins, and its query captures no @target")
    if unknown := [language for language in rule.languages if language not in EXTENSIONS]:
        known = ", ".join(EXTENSIONS)
        raise BadInput(f"the scar rule {rule.id} is for {unknown[0]}, which has no grammar here; known are {known}")


def _try_examples(rule: ScarRule) -> None:
    compiled = {language: _compile(rule, language) for language in rule.languages}
    for path, text, wanted in list_examples(rule):
        language = find_language(path) or ""
        source = parse_source(path, text.encode(), language)
        found = source is not None and any(compiled[language].search(source))
        if found is not wanted:
            what = "finds nothing in its example" if wanted else "finds something in its clean example"
            raise BadInput(f"the scar rule {rule.id} {what} for {language}: {text.strip()!r}")


def _select_text(source: SourceFile, part: RuleText) -> bytes:
    """Return the content of *source* with all but *part* blanked; line numbers stay the same."""
    keep = bytearray(source.data if part is RuleText.CODE else _blank(source.data))
    for kind, start, end in source.spans:
        here = source.data[start:end]
        keep[start:end] = here if kind is part else _blank(here)
    return bytes(keep)


def _blank(data: bytes) -> bytes:
    return re.sub(rb"[^\n]", b" ", data)


@cache
def _build_text_query(language: str) -> Query:
    """Return the query for the comments and the contents of strings."""
    from tree_sitter import Query  # noqa: PLC0415  as above

    grammar = _load_grammar(language)
    named = ((kind, part) for part, kinds in TEXTS.items() for kind in sorted(kinds))
    known = [f"({kind}) @{part}" for kind, part in named if grammar.id_for_node_kind(kind, True)]  # noqa: FBT003  its API
    return Query(grammar, "\n".join(known))


def _find_span(node: Node) -> tuple[int, int, str]:
    return node.start_byte, node.end_byte, node.type


def _get_text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")
