"""Tests that compare with literals alone are told from those that compare two things that may be made of one."""

from __future__ import annotations

import pytest

from jumar.verify.challenge.literal_tests import find_literal_tests

HELPER = "def check(one, other):\n    assert one == other\n\n\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def test_a(items):\n    turn(items)\n    assert items == [2, 1] and len(items) == 2\n", True),
        ("def test_a(items, due):\n    turn(items)\n    assert items == due\n", True),
        ("def test_a(self, items):\n    turn(items)\n    self.assertEqual(items, [2, 1])\n", True),
        ("def test_a(items):\n    assert total(items) == sum(items)\n", False),
        ("def test_a(items):\n    assert total(items) == sum(items)\n    assert len(items) == 3\n", False),
        ("def test_a(items):\n    assert total(items) - sum(items) == 0\n", False),
        ("def test_a(items):\n    assert total(items) == sum(items) == 3\n", False),
        ("def test_a(items, due):\n    turn(items, due)\n    assert items == due\n", False),
        ("def test_a(items):\n    assert is_turned(items)\n    assert len(items) == 3\n", False),
        ("def test_a(items):\n    check(total(items), sum(items))\n    assert len(items) == 3\n", False),
        ("def test_a(items):\n    turn(items)\n", False),
        ("def test_a(:\n", False),
    ],
)
def test_each_assertion_has_to_compare_with_a_literal(text: str, *, found: bool) -> None:
    indented = "class TestB:\n" + "".join(f"    {line}\n" for line in text.splitlines())

    assert find_literal_tests({"t.py": (HELPER + text).encode()}) == ({"t.py::test_a"} if found else set())
    assert find_literal_tests({"t.py": (HELPER + indented).encode()}) == ({"t.py::TestB::test_a"} if found else set())
