"""Expands one word as a shell does: quotes, escapes, variables, braces. Parts known only at run time are holes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

import msgspec

from jumar.commands.downloads import FETCHED, prints_download
from jumar.commands.git_and_files import HOLE
from jumar.commands.wrappers import find_started

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_WORDS = 64
"""Words that braces make of one; more are left as they stand."""

STARTS = 5
"""Programs that start others, one before the other, in front of a download."""

_SUBSTITUTIONS = ("command_substitution", "process_substitution")

LONGEST = 200_000
"""Characters of one word; a longer one is a hole."""

Values = Mapping[str, tuple[str, ...]]
"""Variable -> its value, or the elements of an array; `@` are the positional parameters."""

_ANSI = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_DEFAULT = re.compile(r"\$\{(\w+)(:?[-=+]|[@*:#%/^,]|$|\})")
_HIDDEN = {ord(char): 0xF0000 + ord(char) for char in "{},\\ \t\n"}
"""Mapping of characters of quoted text to a private plane, which hides them from word splitting."""
_SPACES = {char: hidden for char, hidden in _HIDDEN.items() if chr(char).isspace()}
_SEEN = {hidden: chr(char) for char, hidden in _HIDDEN.items()}


class WordPiece(msgspec.Struct, frozen=True):
    """A part of a shell word: plain text, or an expansion."""

    text: str
    quoted: bool = False
    """True if it is taken literally: no spaces in it end the word, no braces mean anything."""
    split: bool = False
    """True if it comes out of a variable: spaces in it end the word."""


def expand_fields(node: Node, values: Values) -> list[str]:
    """Return the words that the word at *node* becomes, given the variables' *values*."""
    if (whole := _get_elements(node, values)) is not None:
        return list(whole)
    text = _join(
        piece.text if piece.split else piece.text.translate(_HIDDEN if piece.quoted else _SPACES)
        for piece in expand_pieces(node, values)
    )
    empty = not text and node.type in ("string", "raw_string", "ansi_c_string", "concatenation")
    return [word.translate(_SEEN) for part in _expand_braces(text) for word in part.split()] or ([""] if empty else [])


def expand_text(node: Node, values: Values) -> str:
    """Return the word at *node* expanded without splitting: on the right of an assignment, in a here-document."""
    return _join(piece.text for piece in expand_pieces(node, values))


def _join(parts: Iterable[str]) -> str:
    """Return *parts* as one text, cut off at a most: a part may double itself again and again."""
    text: list[str] = []
    left = LONGEST
    for part in parts:
        text.append(part)
        if (left := left - len(part)) < 0:
            return HOLE
    return "".join(text)


def expand_pieces(node: Node, values: Values) -> Iterator[WordPiece]:
    """Yield the parts of the word at *node*, in order."""
    said = _get_text(node)
    match node.type:
        case "raw_string":
            yield WordPiece(said[1:-1], quoted=True)
        case "ansi_c_string":
            yield WordPiece(_ANSI.sub(_decode_escape, said[2:-1]), quoted=True)
        case "string":
            yield from _expand_string(node, values)
        case "simple_expansion" | "expansion":
            yield WordPiece(_get_value(node, said, values), split=True)
        case "command_substitution":
            said = _expand_substitution(node, values)
            yield WordPiece(said, split=said != HOLE, quoted=said == HOLE)
        case "process_substitution":
            yield WordPiece(FETCHED if is_download(node, values) else HOLE, quoted=True)
        case "arithmetic_expansion":
            yield WordPiece(HOLE, quoted=True)
        case "concatenation" | "command_name" | "translated_string" | "heredoc_body" | "array":
            yield from _expand_concatenation(node, values)
        case _:
            yield from _split_escapes(said)


def _get_text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _split_escapes(said: str) -> Iterator[WordPiece]:
    """Split unquoted text: a character after a backslash is quoted."""
    for at, part in enumerate(re.split(r"\\(.)", said, flags=re.DOTALL)):
        if at % 2 == 0:
            yield WordPiece(part)
        elif part != "\n":
            yield WordPiece(part, quoted=True)


def _expand_concatenation(node: Node, values: Values) -> Iterator[WordPiece]:
    """Yield the parts of a concatenation, with the text between them."""
    if not node.named_children:
        yield WordPiece(_get_text(node))
    at, whole = node.start_byte, node.text or b""
    for child in node.named_children:
        between = whole[at - node.start_byte : child.start_byte - node.start_byte].decode("utf-8", "replace")
        if between.strip("$"):
            yield WordPiece(between)
        yield from expand_pieces(child, values)
        at = child.end_byte
    yield WordPiece(whole[at - node.start_byte :].decode("utf-8", "replace"))


def _expand_string(node: Node, values: Values) -> Iterator[WordPiece]:
    whole = node.text or b""
    at = node.start_byte + 1
    for child in (*node.named_children, None):
        end = child.start_byte if child else max(node.end_byte - 1, at)
        yield WordPiece(_strip_quotes(whole[at - node.start_byte : end - node.start_byte]), quoted=True)
        if child is None:
            return
        if child.type == "string_content":
            yield WordPiece(_strip_quotes(child.text or b""), quoted=True)
        elif child.type in ("simple_expansion", "expansion"):
            yield WordPiece(_get_value(child, _get_text(child), values), quoted=True)
        elif child.type == "command_substitution":
            yield WordPiece(_expand_substitution(child, values), quoted=True)
        else:
            yield WordPiece(HOLE, quoted=True)
        at = child.end_byte


def predict_output(words: Sequence[str]) -> str:
    """Return the output of the command *words*, if its words determine it; else empty."""
    match words:
        case ("pwd",):
            return "."
        case ("echo", *rest):
            text = " ".join(word for at, word in enumerate(rest) if at or word not in ("-n", "-e", "-ne", "-en"))
            return text.replace("\\n", "\n")
        case ("printf", form, *rest) if len(rest) <= MOST_WORDS:
            for word in rest:
                form = form.replace("%s", word, 1) if "%s" in form else f"{form} {word}"
            return form.replace("\\n", "\n")
    for _ in range(STARTS):
        if prints_download(words):
            return FETCHED
        words = next(iter(find_started(words).commands), ())
    return ""


def is_download(node: Node, values: Values) -> bool:
    """Return whether the output of the command at *node* is a download, or made of one."""
    if node.type == "command":
        named = (child for child in node.named_children if not child.type.endswith(("_redirect", "_assignment")))
        return predict_output([word for child in named for word in expand_fields(child, values)]) == FETCHED
    inner = node.named_children[:1] if node.type in ("pipeline", "redirected_statement") else node.named_children
    through = ("pipeline", "redirected_statement", "list", "subshell", "compound_statement")
    return node.type in (*through, *_SUBSTITUTIONS) and any(is_download(child, values) for child in inner)


def _expand_substitution(node: Node, values: Values) -> str:
    """Return the output of the command in the substitution at *node*, or a hole."""
    inner, said = node.named_children, node.text or b""
    if said.count(b"$(") + said.count(b"`") > 2:  # noqa: PLR2004  nothing in it is run before it
        return HOLE
    if is_download(node, values):
        return FETCHED
    if len(inner) != 1 or inner[0].type != "command" or any(c.type == "variable_assignment" for c in inner[0].children):
        return HOLE
    named = (child for child in inner[0].named_children if not child.type.endswith("_redirect"))
    return predict_output([word for child in named for word in expand_fields(child, values)]).rstrip("\n") or HOLE


def _strip_quotes(said: bytes) -> str:
    return re.sub(r'\\([$`"\\]|\n)', lambda m: "" if m[1] == "\n" else m[1], said.decode("utf-8", "replace"))


def _get_value(node: Node, said: str, values: Values) -> str:
    """Return the value of the variable at *node*, or a hole."""
    name = said[1:] if node.type == "simple_expansion" else ""
    if name:
        return _look_up(name, values)
    found = _DEFAULT.match(said)
    if found is None:
        return HOLE
    known, how = " ".join(values.get(found[1], ())), found[2]
    if how in ("}", ""):
        return _look_up(found[1], values)
    if how.lstrip(":") in ("-", "=", "+"):
        other = expand_text(node.named_children[-1], values) if len(node.named_children) > 1 else ""
        return (other if known else "") if "+" in how else known or other
    return HOLE


def _look_up(name: str, values: Values) -> str:
    if name in ("@", "*"):
        return " ".join(values.get("@", (HOLE,)))
    if name.isdigit() and name != "0":
        given = values.get("@", ())
        return given[int(name) - 1] if 0 < int(name) <= len(given) else ("" if "@" in values else HOLE)
    return values[name][0] if values.get(name) else HOLE


def _get_elements(node: Node, values: Values) -> tuple[str, ...] | None:
    """Return the elements, if the word is exactly one whole array or all parameters."""
    found = re.fullmatch(r'"?\$\{?(?:(\w+)\[[@*]\]\}|([@*])\}?)"?', _get_text(node))
    if found is None:
        return None
    return values.get(found[1] or "@", (HOLE,))


def _decode_escape(found: re.Match[str]) -> str:
    said = found[1]
    if said[0] in "xuU" and len(said) > 1:
        return chr(min(int(said[1:], 16), 0x10FFFF))
    if said[0] in "01234567":
        return chr(int(said, 8) & 0xFF)
    return _LETTERS.get(said, said)


def _expand_braces(text: str) -> list[str]:
    """Return *text* with its first group of braces expanded, and so on from the inside."""
    found = re.search(r"(?<!\$)\{([^{}]*,[^{}]*)\}", text)
    if found is None or text.count("{") * text.count(",") > MOST_WORDS:
        return [text]
    before, after = text[: found.start()], text[found.end() :]
    inner = [before + middle + after for middle in found[1].split(",")]
    return [one for part in product(inner) for one in _expand_braces(part[0])]
