"""Parses a text in the language of its file, or says in a sentence why it cannot. Nothing of it is run."""

from __future__ import annotations

import ast
import json
import tomllib
import warnings

from jumar.languages import grammars, outline
from jumar.languages.outline import Outline

LANGUAGES = {
    "py": "python", "pyi": "python", "js": "javascript", "jsx": "javascript", "mjs": "javascript",
    "cjs": "javascript", "ts": "typescript", "mts": "typescript", "cts": "typescript", "tsx": "tsx", "go": "go",
    "rs": "rust", "json": "json", "toml": "toml",
}  # fmt: skip
"""By extension; a file of any other is taken on the word of its fence."""
TITLES = {
    "python": "Python", "javascript": "JavaScript", "typescript": "TypeScript", "tsx": "TypeScript", "go": "Go",
    "rust": "Rust", "json": "JSON", "toml": "TOML",
}  # fmt: skip
LABELS = {
    "python": {"python", "python3", "py", "py3", "pyi", "python2"},
    "javascript": {"javascript", "js", "jsx", "mjs", "cjs", "node", "es6", "ecmascript"},
    "typescript": {"typescript", "ts", "mts", "cts"},
    "tsx": {"tsx", "typescript", "ts", "typescriptreact"},
    "go": {"go", "golang"},
    "rust": {"rust", "rs"},
    "json": {"json"},
    "toml": {"toml"},
    "md": {"markdown"}, "yml": {"yaml"}, "yaml": {"yml"}, "txt": {"text"}, "sh": {"bash", "shell", "zsh"},
    "mk": {"make", "makefile"}, "makefile": {"make"}, "cfg": {"ini"}, "cc": {"cpp", "c++"}, "h": {"c", "cpp"},
    "kt": {"kotlin"}, "rb": {"ruby"}, "cs": {"csharp", "c#"}, "htm": {"html"},
}  # fmt: skip
"""Labels allowed on a fence, by language, or by extension where the language is unknown."""
NEUTRAL = frozenset(["", "text", "txt", "plain", "plaintext", "code", "file"])
INVISIBLE = "\u200b\u200c\u2060\ufeff"
"""Zero-width characters that no program needs outside of strings, and that tree-sitter takes for blanks."""


def find_language(path: str) -> str | None:
    """Return the language of the file *path*, or None if there is no parser for it."""
    return LANGUAGES.get(get_extension(path))


def get_extension(path: str) -> str:
    """Return the extension in lower case, without its dot; the whole name where there is none (`Makefile`)."""
    return path.rpartition("/")[2].rpartition(".")[2].lower()


def is_label_of(label: str, path: str) -> bool:
    """Return whether a block with *label* may hold the file *path*; no label fits any."""
    kind = find_language(path) or get_extension(path)
    return label in NEUTRAL or label == kind or label in LABELS.get(kind, ())


def parse_file(path: str, text: str) -> tuple[Outline | None, str]:
    """Return the outline of *text* as the file *path*, and why it cannot be that file ("" if it can).

    There is no outline for a language without a parser, nor for Python that is wrong.
    """
    kind = find_language(path)
    if "\0" in text:
        return None, f"the text of {path} holds a NUL character"
    if kind is None:
        return None, ""
    if kind == "python":
        found, why = _parse_python(path, text)
    elif kind in ("json", "toml"):
        found, why = _parse_data(kind, text)
    else:
        found, line = grammars.parse_outline(kind, text)
        why = f"line {line} is no {TITLES[kind]}" if line else ""
    at = next((n for n, char in enumerate(text) if char in INVISIBLE), None)
    if at is not None and (why or kind not in ("python", "json", "toml")):
        line = text.count("\n", 0, at) + 1
        return found, f"the text of {path} holds an invisible character (U+{ord(text[at]):04X}) in line {line}"
    return found, f"the text of {path} is not {TITLES[kind]}: {why}" if why else ""


def _parse_python(path: str, text: str) -> tuple[Outline | None, str]:
    """Compile a Python file, not only parse it: a `return` outside of a function shows a part of a file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
            if not path.endswith(".pyi"):
                compile(text, path, "exec", dont_inherit=True)
            return outline.build_python_outline(tree, text), ""
    except SyntaxError as error:
        return None, f"{error.msg} (line {error.lineno})"
    except (RecursionError, MemoryError):
        return None, "it is nested too deeply"
    except ValueError as error:
        return None, str(error)


def _parse_data(kind: str, text: str) -> tuple[Outline | None, str]:
    try:
        value = json.loads(text) if kind == "json" else tomllib.loads(text)
    except RecursionError:
        return None, "it is nested too deeply"
    except ValueError as error:
        return None, str(error)
    keys = frozenset(value) if isinstance(value, dict) else frozenset()
    whole = isinstance(value, dict | list) and (kind == "json" or bool(keys))
    return Outline(groups={"": keys}, substance=whole or value is not None, prose=0 if whole else 1), ""
