"""Globs with gitignore semantics: for editable files, protected files, and files that never enter a tree."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from pathspec import GitIgnoreSpec

from jumar.core.gate.write_rules import Matches
from jumar.errors import BadInput


def compile_patterns(lines: Iterable[str]) -> Matches:
    """Return a predicate: whether *lines* match a path, with gitignore semantics.

    Raises:
        BadInput: if a line is no valid pattern.
    """
    compiled = _compile(tuple(lines))
    return lambda path: bool(compiled.match_file(path))


@lru_cache(maxsize=32)
def _compile(lines: tuple[str, ...]) -> GitIgnoreSpec:
    """Return the patterns of *lines*.

    The same ones are asked for many times in one start, and compiling takes a while.
    """
    try:
        return GitIgnoreSpec.from_lines(lines, backend="simple")
    except ValueError as error:
        raise BadInput(f"one of the globs {', '.join(map(repr, lines))} is not valid: {error}") from error


def escape_path(path: str) -> str:
    """Return the gitignore line that matches the file *path* and no other."""
    # White space goes into brackets: at the end of a line it would be cut off, escaped or not.
    return "/" + re.sub(r"(\s)", r"[\1]", re.sub(r"([\\*?\[\]!#])", r"\\\1", path))
