"""Names of tests by annotation: a comment `jumar: test-id=<slug>` above a test.

Text that only looks like one is ignored.

It stands on a line of its own, at most three lines above the test with its decorators or attributes. Comments come
from Python's own tokens, or from the syntax tree of JavaScript, TypeScript, Go and Rust.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

from jumar.errors import BadInput
from jumar.languages.syntax import find_language
from jumar.ports import Site

ABOVE = 3
"""Lines above a test within which its annotation stands."""

HINT = b"jumar:"
"""Without these bytes a file holds no annotation and is not parsed."""

MEANT = re.compile(r"jumar\s*:\s*test[-_ ]?id\b", re.IGNORECASE)
ANNOTATION = re.compile(r"jumar: ?test-id=([a-z0-9]+(?:[._-][a-z0-9]+)*)")
LONGEST = 80
FORM = (
    f"write `jumar: test-id=<slug>`, a slug being up to {LONGEST} of a-z and 0-9, with single `.`, `_` or `-` between"
)

LANGUAGES = frozenset(["javascript", "typescript", "tsx", "go", "rust"])
"""Languages that tree-sitter reads."""

MARKS = re.compile(r"^[/*!#\s]+|[*/\s]+$")
"""Characters that mark a line as a comment, in all of these languages."""


def is_slug(test_id: str) -> bool:
    """Return whether *test_id* comes from an annotation: native ids have two colons between a file and a name."""
    return "::" not in test_id.partition("[")[0]


class TestSites(Protocol):
    """Finds the tests in a file: a runner."""

    def sites(self, path: str, source: bytes) -> tuple[Site, ...]:
        """Return the tests in a test file."""
        ...


class AnnotationMark(msgspec.Struct, frozen=True):
    """An annotation and the test that it names."""

    native: str
    slug: str
    line: int


class Aliases(msgspec.Struct, frozen=True):
    """The two names of each annotated test of a tree. Parameters in brackets belong to either."""

    natives: Mapping[str, str] = {}
    """Slug -> native id."""
    slugs: Mapping[str, str] = {}
    """Native id -> slug."""

    def get_native(self, test_id: str) -> str:
        """Return the runner's name of *test_id*; empty if it is a slug of no test."""
        if not is_slug(test_id):
            return test_id
        slug, bracket, parameters = test_id.partition("[")
        native = self.natives.get(slug, "")
        return native and native + bracket + parameters

    def get_known(self, native: str) -> str:
        """Return the name of the test *native* in a run: its slug if it has one."""
        name, bracket, parameters = native.partition("[")
        if native in self.slugs or name not in self.slugs:
            return self.slugs.get(native, native)
        return self.slugs[name] + bracket + parameters


def read_annotations(path: str, source: bytes, sites: Sequence[Site]) -> Mapping[str, str]:
    """Return the native id of each annotated test in the file *path* -> its slug.

    Raises:
        BadInput: if an annotation is malformed, or does not stand above exactly one of the tests at *sites*.
    """
    return {mark.native: mark.slug for mark in _list_marks(path, source, sites)}


def collect_aliases(files: Mapping[str, bytes], runner: TestSites) -> Aliases:
    """Return the names of the annotated tests in *files*, the test files of one tree.

    Raises:
        BadInput: if an annotation is not right, or two tests have the same one; the sentence names both places.
    """
    natives: dict[str, str] = {}
    places: dict[str, str] = {}
    for path, source in files.items():
        for mark in _list_marks(path, source, runner.sites(path, source)) if HINT in source else ():
            place = f"{path}:{mark.line}"
            if mark.slug in natives:
                raise BadInput(
                    f"test-id={mark.slug} stands twice, at {places[mark.slug]} and at {place}; each test needs its own"
                )
            natives[mark.slug], places[mark.slug] = mark.native, place
    return Aliases(natives, {native: slug for slug, native in natives.items()})


def find_known_sites(path: str, source: bytes, runner: TestSites) -> tuple[Site, ...]:
    """Return the tests in a file under the ids that a run knows them by.

    What is annotated wrongly keeps its native id.
    """
    sites = runner.sites(path, source)
    slugs: Mapping[str, str] = {}
    with suppress(BadInput):
        slugs = read_annotations(path, source, sites)
    return tuple(Site(slugs.get(site.id, site.id), site.start, site.end) for site in sites)


def find_test_files(ids: Sequence[str], files: Mapping[str, bytes], runner: TestSites) -> tuple[str, ...]:
    """Return the files that hold the tests *ids*, each once.

    Told by native ids themselves, for slugs found in *files*.

    Raises:
        BadInput: if a slug is asked for and an annotation in *files* is not right.
    """
    names = collect_aliases(files, runner) if any(map(is_slug, ids)) else Aliases()
    return tuple(dict.fromkeys(names.get_native(i).partition("::")[0] for i in ids if names.get_native(i)))


def _list_marks(path: str, source: bytes, sites: Sequence[Site]) -> list[AnnotationMark]:
    # A file that cannot be parsed, or whose tests only the runner can find, has none that could be annotated.
    if HINT not in source or not sites:
        return []
    found: dict[str, AnnotationMark] = {}
    for line, text, alone in _list_comments(path, source):
        body = MARKS.sub("", text)
        if not MEANT.match(body):
            continue
        match = ANNOTATION.fullmatch(body)
        if match is None or len(match[1]) > LONGEST:
            raise BadInput(f"{path}:{line}: {body!r} is no test id; {FORM}")
        if not alone:
            raise BadInput(f"{path}:{line}: test-id={match[1]} stands beside code; give it a line of its own")
        mark = AnnotationMark(_find_below(path, line, match[1], sites), match[1], line)
        if (other := found.setdefault(mark.native, mark)) is not mark:
            raise BadInput(f"{mark.native} has two test-ids, at {path}:{other.line} and at {path}:{line}; keep one")
    return list(found.values())


def _find_below(path: str, line: int, slug: str, sites: Sequence[Site]) -> str:
    """Return the native id of the one test that begins next after *line*."""
    near = [site for site in sites if line < site.start <= line + ABOVE]
    first = {site.id for site in near if site.start == min(s.start for s in near)}
    if len(first) == 1:
        return first.pop()
    if not first:
        raise BadInput(f"{path}:{line}: test-id={slug} stands above no test; put it at most {ABOVE} lines above one")
    raise BadInput(f"{path}:{line}: test-id={slug} stands above a test that is run as {' and '.join(sorted(first))}")


def _list_comments(path: str, source: bytes) -> Iterator[tuple[int, str, bool]]:
    """Yield each line of each comment in *source*: its number, its text, and whether nothing else stands on it."""
    kind = find_language(path)
    if kind == "python":
        with suppress(tokenize.TokenError, SyntaxError, ValueError):
            for token in tokenize.tokenize(io.BytesIO(source).readline):
                if token.type == tokenize.COMMENT:
                    yield token.start[0], token.string, not token.line[: token.start[1]].strip()
    elif kind in LANGUAGES:
        yield from _list_parsed_comments(kind, source)


def _list_parsed_comments(grammar: str, source: bytes) -> Iterator[tuple[int, str, bool]]:
    from tree_sitter import Parser  # noqa: PLC0415  a run in Python alone does not load the grammars

    from jumar.languages import grammars  # noqa: PLC0415  as above

    lines = source.split(b"\n")
    todo = [Parser(grammars.load_language(grammar)).parse(source).root_node]
    while todo:
        node = todo.pop()
        if not node.type.endswith("comment"):
            todo += reversed(node.children)
            continue
        (first, column), (last, end) = node.start_point, node.end_point
        # The doc comments of Rust hold their line's end.
        alone = not lines[first][:column].strip() and not (end and lines[last][end:].strip())
        for number, text in enumerate((node.text or b"").decode("utf-8", "replace").split("\n"), first + 1):
            yield number, text, alone
