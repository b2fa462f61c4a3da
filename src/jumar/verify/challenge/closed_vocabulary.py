"""Falsifies tests whose expected values come from a small set: the false value is another member of the set."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple

from jumar.verify.challenge.constants import EQUAL
from jumar.verify.challenge.literals import make_another
from jumar.verify.challenge.source_edits import Edits, ParsedSource, get_dotted_name
from jumar.verify.challenge.type_safe_negation import Comparison

WORDS = re.compile(r"[^\W\d_]+(?:[ '-][^\W\d_]+)*")
"""A text of natural words."""


class ExpectedCall(NamedTuple):
    """Value that a test expects of a call."""

    call: str
    text: str


Vocabulary = Mapping[str, Sequence[ExpectedCall]]
"""Function -> what the tests of a file expect of it."""


def collect_vocabulary(tree: ast.Module) -> Vocabulary:
    """Return the words that are expected in *tree*."""
    found: dict[str, list[ExpectedCall]] = {}
    for node in ast.walk(tree):
        for left, right in _equated(node):
            for call, said in ((left, right), (right, left)):
                name, text = _callee(call), _words(said)
                if name and text:
                    found.setdefault(name, []).append(ExpectedCall(ast.dump(call), text))
    return found


def expect_other_answer(source: ParsedSource, pair: Comparison, known: Vocabulary, random: Random) -> Edits:
    """Expect a text that the same function gives in another case; for other values, one of another letter."""
    for call, said, name in ((pair.left, pair.right, "a"), (pair.right, pair.left, "b")):
        old, asked = _words(said), ast.dump(call)
        if old and isinstance(said, ast.Constant) and "\n" not in source.segment(said):
            others = [o.text for o in known.get(_callee(call), ()) if o.call != asked and _apart(o.text, old)]
            letter = make_another(source, said, random, lambda _: True)
            if others and letter:
                new = f"{random.choice(others)!a} if issubclass(type({name}), str) else {letter.text}"
                return pair.asked(f"a == ({new})" if name == "a" else f"({new}) == b")
    return ()


def _equated(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    match node:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            yield left, right
        case ast.Call(func=ast.Attribute(attr=name), args=[left, right, *_]) if name in EQUAL:
            yield left, right
        case _:
            pass


def _callee(node: ast.expr) -> str:
    """Return the function that makes *node*; empty: none does, or a class."""
    name = get_dotted_name(node.func) if isinstance(node, ast.Call) else ""
    return "" if name.rpartition(".")[2].lstrip("_")[:1].isupper() else name


def _words(node: ast.expr) -> str:
    """Return the text that *node* is, if it is one of natural words; else empty."""
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
    return text if WORDS.fullmatch(text) else ""


def _apart(one: str, other: str) -> bool:
    """Return whether neither is an abbreviation of the other."""
    one, other = one.casefold(), other.casefold()
    return not (one.startswith(other) or other.startswith(one))
