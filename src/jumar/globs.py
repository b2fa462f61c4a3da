"""Globs have gitignore semantics, everywhere: what may be edited, what is protected, what never enters a tree."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pathspec import GitIgnoreSpec

from jumar.core.guard import Matches
from jumar.errors import BadInput


def spec(lines: Iterable[str]) -> Matches:
    """Whether a path is matched by *lines*, with gitignore semantics.

    Raises:
        BadInput: if a line is no valid pattern.
    """
    kept = tuple(lines)
    try:
        compiled = GitIgnoreSpec.from_lines(kept, backend="simple")
    except ValueError as error:
        raise BadInput(f"one of the globs {', '.join(map(repr, kept))} is not valid: {error}") from error
    return lambda path: bool(compiled.match_file(path))


def literal(path: str) -> str:
    """The gitignore line that matches the file *path* and no other."""
    # White space goes into brackets: at the end of a line it would be cut off, escaped or not.
    return "/" + re.sub(r"(\s)", r"[\1]", re.sub(r"([\\*?\[\]!#])", r"\\\1", path))
