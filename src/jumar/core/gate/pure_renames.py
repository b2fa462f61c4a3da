"""Recognises pure renames: a file changed only in identifiers, each of which is renamed everywhere in it."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Mapping

WORD = re.compile(r"(\w+)")

SPECIAL = ("test", "pytest", "setup", "teardown", "__", "describe", "before", "after")
"""Prefixes of names that have a meaning for runners: a rename to one could switch a test off."""

OF_LANGUAGES = frozenset({
    *dir(builtins), *keyword.kwlist, *keyword.softkwlist,
    "assert", "async", "case", "catch", "const", "default", "delete", "do", "else", "enum", "expect", "export", "fn",
    "for", "func", "function", "if", "impl", "import", "in", "interface", "let", "match", "new", "null", "of",
    "package", "panic", "range", "return", "select", "struct", "switch", "this", "throw", "toBe", "toEqual", "toThrow",
    "trait", "type", "typeof", "undefined", "unwrap", "use", "var", "void", "while", "Array", "JSON", "Math", "Object",
    "Promise",
})  # fmt: skip
"""Names that mean something without any definition: a test that uses one does not speak of the code under test."""

SCRIPTS = frozenset({"js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"})


def find_renames(old: str, new: str) -> dict[str, str] | str:  # noqa: PLR0911  one line per reason
    """Return the renames, old identifier to new one, that turn *old* into *new*; or why there are none."""
    before, after = WORD.split(old), WORD.split(new)
    if len(before) != len(after) or before[::2] != after[::2]:
        return "more than names changes"
    found: dict[str, str] = {}
    for one, other in zip(before[1::2], after[1::2], strict=True):
        if found.setdefault(one, other) != other:
            return f"{one} is renamed in some places only"
    renamed = {one: other for one, other in found.items() if one != other}
    for one, other in renamed.items():
        if not (one.isidentifier() and other.isidentifier()):
            return f"{one} becomes {other}, and they are no identifiers"
        if one in OF_LANGUAGES or other in OF_LANGUAGES:
            return f"{one} becomes {other}, and one of them is a name of the language or of its tests"
        if other in found:
            return f"{other}, which {one} becomes, stands there already"
        if other.casefold().startswith(SPECIAL):
            return f"{other}, which {one} becomes, is a name that runners take for their own"
    values = list(renamed.values())
    return next((f"two names become {v}" for v in values if values.count(v) > 1), "") or renamed


def explain_impure(
    path: str, renamed: Mapping[str, str], first: Mapping[str, str], sides: tuple[Mapping[str, str], Mapping[str, str]]
) -> str:
    """Return why *renamed*, in the test file *path*, is not a rename of the code under test; empty: it is.

    *first* is the code that the run began with, *sides* the code before and after the edit: path -> text.
    """
    before, after = (_select_same_language(path, side) for side in sides)
    for old, new in renamed.items():
        if not _is_defined(old, _select_same_language(path, first)):
            return f"the code that the run began with does not define {old}"
        if any(_is_module(p, new) or re.search(rf"\b{re.escape(new)}\b", text) for p, text in before.items()):
            return f"the code has the name {new} already"
        if _is_defined(old, after):
            return f"the code still defines {old}"
        if not _is_defined(new, after):
            return f"the code does not define {new}"
    return ""


def _select_same_language(path: str, files: Mapping[str, str]) -> dict[str, str]:
    """Return those of *files* that are in the language of *path*."""
    suffixes = SCRIPTS if (own := _get_suffix(path)) in SCRIPTS else {own}
    return {other: text for other, text in files.items() if _get_suffix(other) in suffixes}


def _get_suffix(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[2]


def _is_defined(name: str, files: Mapping[str, str]) -> bool:
    """Return whether one of *files* is a module called *name*, or defines it."""
    opening = (
        r"\b(?:def|class|func|fn|function\*?|struct|enum|trait|interface|type|const|static|let|var|mod|namespace)\s+"
        rf"(?:\([^)\n]*\)\s*)?(?:mut\s+)?{re.escape(name)}\b"
    )
    assigned = rf"^[ \t]*(?:self\.|this\.)?{re.escape(name)}[ \t]*(?::[^=\n]*)?=(?!=)"
    method = (
        rf"^[ \t]*(?:(?:async|static|get|set|public|private|protected)\s+)*{re.escape(name)}[ \t]*\([^;\n]*\)[^;\n]*\{{"
    )
    wanted = re.compile(f"{opening}|{assigned}|{method}", re.MULTILINE)
    return any(_is_module(path, name) or wanted.search(text) for path, text in files.items())


def _is_module(path: str, name: str) -> bool:
    """Return whether *path* is a module, or lies in a package, called *name*."""
    *folders, file = path.split("/")
    return name in (*folders, file.partition(".")[0])


def format_files(paths: Iterable[str]) -> str:
    """Return some of *paths*, and how many more there are."""
    first = list(paths)
    more = f" and {len(first) - 3} more" if len(first) > 3 else ""  # noqa: PLR2004  as many as a sentence names
    return ", ".join(first[:3]) + more
