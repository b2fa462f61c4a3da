"""Splits sources into those that can be searched and those that cannot, each with its reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from jumar.languages.python_encoding import check_utf8

MARK = "\ufeff"
"""The byte order mark: a text is searched without it and written with it."""

_FAULT = re.compile(r"\b(?:Syntax|Indentation|Tab)Error\b")

NAMED = 3
"""Most unsearchable files that are named in one sentence."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The Python files of a tree that may be edited."""

    texts: Mapping[str, str]
    """Searchable files, without byte order marks."""
    unparsable: Mapping[str, str] = field(default_factory=dict)
    """The reasons of those that do not parse: `m.py does not parse: line 3 (invalid syntax)`."""
    undecodable: Mapping[str, str] = field(default_factory=dict)
    """The reasons of those that are no UTF-8."""
    marked: frozenset[str] = frozenset()
    """Files that begin with a byte order mark."""

    def get_written(self, path: str, text: str) -> str:
        """Return the searched *text* of *path* in the form that is written."""
        return MARK + text if path in self.marked else text

    def list_culprits(self, output: str) -> tuple[str, ...]:
        """Return reasons of the files that do not parse; those that the *output* of the red tests names come first."""
        if not _FAULT.search(output):
            return ()
        there = (re.search(rf"(?<![\w/.-])(?:\./)?{re.escape(path)}\b", output) for path in self.unparsable)
        return tuple(why for why, named in zip(self.unparsable.values(), there, strict=True) if named)

    @property
    def unsearched(self) -> str:
        """The files that cannot be searched, with their reasons; empty if there are none."""
        reasons = [*self.unparsable.values(), *self.undecodable.values()]
        more = f" and {len(reasons) - NAMED} more files" if len(reasons) > NAMED else ""
        return "; ".join(reasons[:NAMED]) + more


def split_sources(files: Mapping[str, bytes]) -> Sources:
    """Return the Python sources among *files*."""
    texts: dict[str, str] = {}
    unparsable: dict[str, str] = {}
    foreign: dict[str, str] = {}
    marked: set[str] = set()
    for path, data in files.items():
        if not path.endswith(".py"):
            continue
        if why := check_utf8(data):
            foreign[path] = f"{path} {why}"
            continue
        text = data.decode()
        if text.startswith(MARK):
            marked.add(path)
            text = text.removeprefix(MARK)
        if why := find_syntax_error(text):
            unparsable[path] = f"{path} does not parse: {why}"
        else:
            texts[path] = text
    return Sources(texts, unparsable, foreign, frozenset(marked))


def find_syntax_error(text: str) -> str:
    """Return the line at which *text* stops being Python, and the parser's message; empty if it parses."""
    try:
        ast.parse(text)
    except SyntaxError as error:
        return f"line {error.lineno or 1} ({error.msg})"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"{error}"
    return ""
