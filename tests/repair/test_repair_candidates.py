"""Candidates parse, differ, touch nothing else, come best first, and come the same every time."""

from __future__ import annotations

import ast
from itertools import islice, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.repair.candidates import generate_candidates, generate_pairs
from jumar.repair.suspicion import SuspectTree

SOURCE = '''\
"""A module."""
import re

LIMIT = 10
PATTERN = re.compile(r"^(\\d+)-[a-z]*$")


class Stack:
    """Holds things."""

    size = 3

    def __init__(self, items=()):
        self.items = list(items)

    @property
    def top(self):
        return self.items[-1] if self.items else None

    def push(self, item, *, at=None):
        if len(self.items) >= self.size:
            raise ValueError("full: %d" % self.size)
        for place, other in enumerate(self.items):
            if other == item and place != at:
                return False
        self.items.append(item)
        return True


def parse(text):
    found = PATTERN.match(text)
    while text and not found:
        text = text[1:]
        found = PATTERN.match(text)
    return int(found.group(1)) % LIMIT
'''

LINES = SOURCE.count("\n")


def first(suspects: dict[int, float], seed: int = 0, most: int = 120) -> list[tuple[str, int, float]]:
    tree = SuspectTree({"m.py": SOURCE}, {"m.py": suspects})
    return [(c.text, c.edit.line, c.rank) for c in islice(generate_candidates(tree, seed), most)]


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(
    st.dictionaries(st.integers(1, LINES), st.sampled_from((0.3, 0.7, 1.0)), min_size=1, max_size=3), st.integers(0, 3)
)
def test_candidates_are_sound(suspects: dict[int, float], seed: int) -> None:
    found = first(suspects, seed, 40)

    assert found == first(suspects, seed, 40)
    assert all(a[2] >= b[2] for a, b in pairwise(found))
    for text, _, _ in found:
        assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(SOURCE))
    assert len({ast.dump(ast.parse(text)) for text, _, _ in found}) == len(found)


@pytest.mark.slow
def test_the_rest_of_the_file_is_unchanged() -> None:
    tree = SuspectTree({"m.py": SOURCE}, {"m.py": {23: 1.0}})

    for candidate in islice(generate_candidates(tree), 300):
        unit = candidate.unit
        assert candidate.text.startswith(SOURCE[: unit.start])
        assert candidate.text.endswith(SOURCE[unit.end :])


@pytest.mark.slow
def test_the_most_suspicious_lines_come_first() -> None:
    lines = [line for _, line, _ in first({21: 0.2, 33: 1.0})]

    assert set(lines[:20]) == {33}


@pytest.mark.slow
def test_a_constant_inherits_from_the_lines_that_mention_it() -> None:
    texts = [text for text, _, _ in first({35: 1.0}, most=2000)]

    assert any("LIMIT = 11" in text for text in texts)


@pytest.mark.slow
@pytest.mark.parametrize(("ending", "tail"), [("\n", "\n"), ("\r\n", "\r\n"), ("\n", "")])
def test_line_endings_are_kept(ending: str, tail: str) -> None:
    source = ending.join(["X = 1", "def f(a):", "    a.sort()", "    return a"]) + tail

    texts = [c.text for c in islice(generate_candidates(SuspectTree({"m.py": source}, {})), 400)]

    assert texts
    for text in texts:
        assert ast.parse(text)
        assert "\r\n" not in text.replace(ending, "")
        assert "\n" not in text.replace(ending, "")


def test_pairs_hold_both_changes() -> None:
    source = "def f(a, b):\n    c = a < b\n    return c + 1\n"
    tree = SuspectTree({"m.py": source}, {})
    single = next(c for c in generate_candidates(tree) if "a <= b" in c.text)

    pairs = list(islice(generate_pairs(tree, single), 200))

    assert any("a <= b" in p.text and "return c - 1" in p.text for p in pairs)
    assert all(p.text != source and p.first for p in pairs)
