"""Each operator makes the change it is named for, and only such changes as still parse."""

from __future__ import annotations

import textwrap

import pytest

from jumar.repair.candidates import generate_candidates
from jumar.repair.suspicion import SuspectTree

CASES = {
    "comparison": ("def f(a, b):\n    return a < b\n", "return a <= b"),
    "bound and number": ("def f(a):\n    return a == 0\n", "return a <= 1"),
    "arithmetic": ("def f(a, b):\n    return a ^ b\n", "return a & b"),
    "augmented": ("def f(a, b):\n    a += b\n    return a\n", "a -= b"),
    "operands exchanged": ("def f(a, b):\n    return a - b\n", "return b - a"),
    "operand dropped": ("def f(a, b):\n    return 1 + f(a, b)\n", "return f(a, b)"),
    "and to or": ("def f(a, b):\n    return a and b\n", "return a or b"),
    "negation": ("def f(a):\n    if a:\n        return 1\n    return 2\n", "if not a:"),
    "negation dropped": ("def f(a):\n    if not a:\n        return 1\n    return 2\n", "if a:"),
    "number": ("def f(a):\n    return a[7]\n", "return a[6]"),
    "index by one": ("def f(a, i):\n    return a[i]\n", "return a[i - 1]"),
    "range end by one": ("def f(a):\n    return list(range(a))\n", "range(a + 1)"),
    "slice end": ("def f(a):\n    return a[1:]\n", "return a[1:-1]"),
    "slice added": ("def f(a, k):\n    for x in a:\n        print(x)\n", "for x in a[k:]:"),
    "name": ("def f(a, b):\n    return a\n", "return b"),
    "sibling": ("def f(a):\n    return any(x > 0 for x in a)\n", "return all(x > 0 for x in a)"),
    "attribute": ("def f(a):\n    return a.left or a.right\n", "return a.right or a.right"),
    "method": ("def f(a):\n    return a.lstrip()\n", "return a.rstrip()"),
    "index members": ("def f(a, i, j):\n    return a[i, j]\n", "return a[j, i]"),
    "arguments exchanged": ("def f(a, b):\n    return f(a % b, b)\n", "return f(b, a % b)"),
    "call dropped": ("def f(a):\n    yield f(a)\n", "yield a"),
    "call added": ("def f(a):\n    return a\n", "return list(a)"),
    "clamped": ("def f(a, b):\n    for c in b:\n        a = c + 1\n    return a\n", "a = max(a, c + 1)"),
    "combined": ("def f(a, b):\n    return f(a, b)\n", "return f(a, b - a)"),
    "squared": ("def f(a, b):\n    return abs(a - b)\n", "return abs(a - (b ** 2))"),
    "truth": ("def f(a):\n    return True\n", "return a == 0"),
    "list nested": ("def f(a):\n    return []\n", "return [[]]"),
    "list filled": ("def f(a):\n    return []\n", "return [a]"),
    "condition looser": ("def f(a, b):\n    if a < 0:\n        return 0\n    return b\n", "if a < 0 or not b:"),
    "condition in front": ("def f(a):\n    if a.next:\n        return 0\n    return 1\n", "if a is None or a.next:"),
    "filter": ("def f(a):\n    return [x for x in a]\n", "for x in a if x is not None]"),
    "handler": (
        "def f(a):\n    try:\n        return int(a)\n    except ValueError:\n        return 0\n",
        "except (ValueError, TypeError):",
    ),
    "raise": ("def f(a):\n    raise ValueError(a)\n", "raise TypeError(a)"),
    "dropped": ("def f(a):\n    a.sort()\n    return a\n", "    pass\n    return a"),
    "exchanged": ("def f(a):\n    a.x()\n    a.y()\n", "    a.y()\n    a.x()"),
    "while": ("def f(a):\n    if a:\n        a -= 1\n    return a\n", "while a:"),
    "yield from": ("def f(a):\n    yield a\n", "yield from a"),
    "return added": ("def f(a):\n    sorted(a)\n", "return sorted(a)"),
    "assignment added": ("def f(a, b):\n    while a:\n        b = a\n        a = a.next\n    return b\n", "a = b\n"),
    "collected": ("def f(a, b):\n    for x in a:\n        b.add(a)\n    return b\n", "b.append(x)"),
    "copied": ("def f(a, b):\n    a.append(b)\n    for c in a:\n        b = c\n", "a.append(c)"),
    "moved out": ("def f(a):\n    for c in a:\n        a = c\n        return a\n", "        a = c\n    return a"),
    "only if": ("def f(a):\n    return str(a)\n", "if a is not None:\n        return str(a)"),
    "early return": ("def f(a):\n    return a[0]\n", "if not a:\n        return None\n    return a[0]"),
    "continue": ("def f(a):\n    for b in a:\n        print(b.x)\n", "if b is None:\n            continue\n"),
    "caught": ("def f(a):\n    return int(a)\n", "try:\n        return int(a)\n    except ValueError:\n        pass"),
    "format": ("def f(a):\n    return '%.1f' % a\n", "'%.2f' % a"),
    "pattern set": ("import re\ndef f(a):\n    return re.match(r'[^/?#]+', a)\n", "r'[^?#]+'"),
    "pattern repetition": ("import re\ndef f(a):\n    return re.match(r'\\d+', a)\n", "r'\\d*'"),
    "pattern bound": ("import re\ndef f(a):\n    return re.match(r'0x', a)\n", r"r'\b0x'"),
    "default": ("def f(a=0):\n    return a\n", "def f(a=1):"),
    "class attribute": ("class C:\n    limit = 3\n", "limit = 4"),
    "method body": ("class C:\n    def m(self, a):\n        return a < 3\n", "return a <= 3"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_change_is_among_the_candidates(case: str) -> None:
    source, expected = CASES[case]

    assert any(expected in candidate.text for candidate in generate_candidates(SuspectTree({"m.py": source}, {})))


@pytest.mark.slow
def test_comments_strings_and_odd_spacing_elsewhere_stay() -> None:
    source = textwrap.dedent("""\
        # -*- coding: utf-8 -*-
        X = {'a':1,   'b' : 2}   # kept


        def f( a,b ):   # kept too
            '''Grüße.'''
            return (a
                    <  b)
        """)

    texts = [c.text for c in generate_candidates(SuspectTree({"m.py": source}, {"m.py": {7: 1.0, 8: 1.0}}))]

    assert source.replace("<  b", "<=  b") in texts


def test_a_file_that_does_not_parse_has_no_candidates() -> None:
    assert list(generate_candidates(SuspectTree({"m.py": "def f(:\n"}, {}))) == []
