"""Two processes: what an object of the product may do with a value of the tests that an operator tells it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from support.judging.two_process_verifier import confirm_bodies, outcomes, reported, run_bodies

Bodies = Mapping[str, str]
"""Body of a test -> its outcome in two processes."""


def check_bodies(folder: Path, product: str, head: str, bodies: Bodies) -> None:
    """Run tests with these *bodies*, and all of *product* and *head* above them, and compare the outcomes."""
    said = outcomes(run_bodies(folder, product, f"from product import *\n{head}", bodies))

    assert {body: said[f"test_{n}"] for n, body in enumerate(bodies)} == bodies


RAISING = """
class Money:
    def __init__(self, n): self.n = n
    def _raise(self, other):
        if not isinstance(other, Money): raise TypeError("no money")
        return Money(self.n + other.n)
    __lt__ = __eq__ = __add__ = __iadd__ = _raise
    def __sub__(self, other): return NotImplemented

class Spy:
    def __eq__(self, other):
        self.heard = other
        raise KeyError

def spy(done):
    heard = Spy()
    try: done(heard)
    except KeyError: done(heard.heard)
"""

RAISED: Bodies = {
    "with raises(TypeError): Money(1) < 'a'": "passed",
    "with pytest.raises(TypeError, match='money'):\n        Money(1) + -1": "passed",
    "money = Money(1)\n    with raises(TypeError): money += 2": "passed",
    "with unittest.TestCase().assertRaises(TypeError): Money(1) == 1": "passed",
    "with raises(TypeError): _ = Money(1) == 2": "passed",
    "with raises(TypeError): Money(1) - 3": "passed",
    "with raises(TypeError): assert Money(1) == 1": "failed",
    "with raises(TypeError): (Money(1) + 3) < 4": "failed",
    "with raises(TypeError):\n        Money(1) < 3\n        fail()": "failed",
    "try: Money(1) < 3\n    except TypeError: pass": "failed",
    "try: Money(1) - 3\n    except TypeError: pass": "failed",
    "try: sorted([3, Money(1)])\n    except TypeError: pass": "failed",
    "assert (Money(1) + Money(2)).n == 3": "passed",
    "spy(wants_three)": "failed",
}


@pytest.mark.slow
def test_a_comparison_that_raises_has_to_be_what_a_test_awaits(tmp_path: Path) -> None:
    head = (
        "import unittest\nimport pytest\nfrom pytest import raises\n\n"
        "def fail(): assert 1 == 2\ndef wants_three(found): assert found == 3\n"
    )
    check_bodies(tmp_path, RAISING, head, RAISED)


CONTENTS = """
class Number(float):
    def __sub__(self, other): return Number(float(self) - other)
    def __add__(self, other): return Number(float(self) + other)
    def half(self): return self / 2

class Found(set):
    def __rsub__(self, other): return set(other) - set(self)
    def __isub__(self, other): return set.__isub__(self, other)

class Silent(float):
    def __add__(self, other): return None
    def __hash__(self): return 3
    def is_integer(self): return True

class Slug(str):
    def upper(self): return "B"
    def lower(self): return Slug(str.lower(self))
    def startswith(self, text): return True

class Names(set):
    def __or__(self, other): return Names(self)
    def issuperset(self, other): return True

class Tags(list):
    def __add__(self, other): return Tags([*self, *other, "more"])
    def __sub__(self, other): return []

class Markup(str):
    def __add__(self, other): return Markup(str(self) + other.replace("<", "&lt;"))

class Pair(tuple):
    def __add__(self, other): return Pair((self[0] + other[0], self[1] + other[1]))

def root(): return Number(3)
"""

COMPUTED: Bodies = {
    "assert abs(root() - 2.5) < 0.6": "failed",
    "assert {1, 2} - Found([1]) == {2}": "failed",
    "found = Found([1, 2])\n    found -= {1}\n    assert found == {2}": "failed",
    "assert {1, 2} | Found([3]) == {1, 2, 3}": "passed",
    "assert root() + 1 == 4": "passed",
    "assert Silent(3) + 1 == 4": "failed",
    "assert {Silent(1.5): 2}[1.5] == 2": "failed",
    "assert not Silent(1.5).is_integer()": "failed",
    "assert Slug('a').upper() == 'A'": "failed",
    "assert Slug('A').lower() == 'a'": "passed",
    "assert not Slug('a').startswith('b')": "failed",
    "assert Names('a') | {'b'} == {'a', 'b'}": "failed",
    "assert not Names('a').issuperset('b')": "failed",
    "assert (root() - root()).half() == 0": "passed",
    "assert (root() + root()).half() == 3": "passed",
    "assert (root() + 1).half() == 2": "failed",
    "assert Tags('a') + ['b'] == ['a', 'b']": "failed",
    "assert Tags('a') + ['b'] == ['a', 'b', 'more']": "failed",
    "assert Tags('a') - ['a'] == []": "failed",
    "with pytest.raises(TypeError): root() + 'a'": "passed",
    "try: root() + 'a'\n    except TypeError: pass": "failed",
    "assert Markup('a') + '<' == 'a&lt;'": "passed",
    "assert Pair((1, 2)) + Pair((3, 4)) == (4, 6)": "passed",
    "assert Pair((1, 2)) + (3, 4) == (4, 6)": "failed",
    "assert pytest.approx(3.5, abs=1) == root()": "passed",
    "assert sum([root(), root()]) == 6": "passed",
}


@pytest.mark.slow
def test_what_a_class_of_values_defines_is_asked_and_comes_to_what_its_content_does(tmp_path: Path) -> None:
    check_bodies(tmp_path, CONTENTS, "import pytest\n", COMPUTED)


OWN_WORD = """
import enum

class Odd:
    def __init__(self, odd): self.odd = odd
    def __eq__(self, other): return not self.odd
    def __ne__(self, other): return self.odd

class Kind(type):
    def __instancecheck__(cls, thing): return cls.open and type.__instancecheck__(cls, thing)
class Open(metaclass=Kind): open = True
class Shut(metaclass=Kind): open = False
class Both(Open, Shut): pass

class Perm(enum.Flag):
    READ, WRITE, BOTH = 1, 2, 3
class Own(Perm.__base__):
    READ, WRITE, BOTH = 1, 2, 3
    def __contains__(self, other): return other.value & self.value == other.value
class Wrong(Perm.__base__):
    READ, WRITE, BOTH = 1, 2, 3
    def __contains__(self, other): return True
"""

SAID: Bodies = {
    "even = Odd(False); assert even == even and not even != even": "passed",
    "odd = Odd(True); assert odd == odd": "failed",
    "odd = Odd(True); assert not odd != odd": "failed",
    "assert isinstance(Both(), Open)": "passed",
    "assert isinstance(Both(), Shut)": "failed",
    "assert Perm.READ in Perm.BOTH and Perm.READ not in Perm.WRITE": "passed",
    "assert Own.READ in Own.BOTH and Own.READ not in Own.WRITE": "passed",
    "assert Wrong.READ not in Wrong.WRITE": "failed",
}


@pytest.mark.slow
def test_what_a_class_says_itself_is_asked_also_where_the_answer_is_known(tmp_path: Path) -> None:
    check_bodies(tmp_path, OWN_WORD, "", SAID)


TOLD = """
class Visitor:
    depth = 2
    def visit(self, names):
        for name in names: self.enter(name)
    def lift(self): self.seen.extend(self.wanted)

class Page:
    def find(self, word): return 1
    count = index = find

class Table:
    def count(self, query): return 2
    def find(self, key): return Table()
    def remove(self, row): pass

async def each(items, handle):
    for item in items:
        try: await handle(item)
        except BaseException: pass
"""

TOLD_HEAD = """
import asyncio
from decimal import Decimal
class Names(Visitor):
    wanted = ["a", "b"]
    price = Decimal(2)
    count = 0
    def __init__(self): self.seen = []
    def enter(self, name): self.seen.append(self.wanted[0] + name)

async def asserts(found):
    async with asyncio.TaskGroup() as outer:
        async def inner():
            async with asyncio.TaskGroup() as group:
                async def check(): assert found == 4
                group.create_task(check())
        outer.create_task(inner())
"""

TOLD_BODIES: Bodies = {
    "names = Names()\n    names.lift()\n    assert names.seen == names.wanted": "failed",
    "names = Names()\n    names.lift()\n    assert names.seen == Names.wanted": "failed",
    "names = Names()\n    names.visit('bc')\n    assert names.seen == ['ab', 'ac'] and names.depth == 2": "passed",
    "assert Names().price == 2": "failed",
    "names = Names()\n    names.visit('bc')\n    assert names.count == 0": "passed",
    "assert Page().find('a') < 2": "passed",
    "assert Page.find(Page(), 'a') == 1": "passed",
    "assert [Page()].count('a') == 0": "passed",
    "assert Table().count(Table()) == 2": "passed",
    "assert Table().find('a').find('b') is not None": "passed",
    "assert Table().find('a').count(Table()) == 2": "passed",
    "assert Table().find('a').count('b') == 2": "failed",
    "Table().remove('a')": "passed",
    "Table().find('a').remove('a')": "failed",
    "asyncio.run(each([3], asserts))": "failed",
    "asyncio.run(each([4], asserts))": "passed",
}


@pytest.mark.slow
def test_what_the_product_was_told_aside_is_no_evidence(tmp_path: Path) -> None:
    check_bodies(tmp_path, TOLD, TOLD_HEAD, TOLD_BODIES)


FILES = {
    "product.py": (
        "import json, zlib\nTABLE = {1: 'I'}\ndef module(name): return name\n"
        "def pack(name): return zlib.compress(json.dumps({'file': f'wanted/{name}.txt', 'text': 'A'}).encode())\n"
    ),
    "golden.py": "TABLE = {1: 'I'}\n",
    "wanted/a.txt": "A",
    "test_product.py": (
        "import importlib, json, zlib\nfrom pathlib import Path\nimport golden\nfrom product import module, pack\n"
        "def read(name): return json.loads(zlib.decompress(pack(name)))\n"
        "def test_text(): assert read('a')['text'] == Path('wanted/a.txt').read_text()\n"
        "def test_again(): assert [Path('wanted/a.txt').read_text() for _ in module('ab')] == ['A', 'A']\n"
        "def test_file(): assert Path(read('a')['file']).read_text() == Path('wanted/a.txt').read_text()\n"
        "def test_product(): assert importlib.import_module(module('product')).TABLE == golden.TABLE\n"
        "def test_own(): assert importlib.import_module('golden').TABLE == golden.TABLE\n"
        "def test_named(): assert importlib.import_module(module('golden')).TABLE == golden.TABLE\n"
    ),
}


@pytest.mark.slow
def test_a_file_or_module_that_the_product_names_in_disguise_is_not_read(tmp_path: Path) -> None:
    said = outcomes(reported(tmp_path, FILES))

    passed = dict.fromkeys(("test_text", "test_again", "test_product", "test_own"), "passed")
    assert said == {**passed, "test_file": "failed", "test_named": "failed"}


CHANGED = """
import warnings

class Sent:
    def assert_called_once_with(self, *args): pass
    def assert_lines(self, *due): pass
    def write(self, line): return line

class Outbox:
    def __init__(self, log): self.log = log if log.lines else Sent()
    def wrap(self, log): self.log = Sent()

def mark(person): person["seen"] = True
def swallow(done):
    try: done(-1)
    except AssertionError: warnings.warn("old", DeprecationWarning)
def send(text): pass
def tell(log): log.lines.append("a")
class Still:
    @staticmethod
    def assert_any_call(*args): pass
def replace():
    global send
    send = Sent()
def still():
    global send
    send = Still()
def strip(thing):
    for name in list(vars(thing)): delattr(thing, name)
"""

CHANGED_HEAD = """
import dataclasses
import sqlite3
from weakref import ref as watch
from unittest import mock
import pytest
import product

class Log:
    def __init__(self, *lines): self.lines = list(lines)
    def write(self, line): self.lines.append(line)
    def assert_lines(self, *due): assert self.lines == list(due)

@dataclasses.dataclass(frozen=True)
class Frozen:
    n: int

class Pair:
    __slots__ = "due", "lines"
    def __init__(self): self.due, self.lines = ["a"], []

def wants_two(found): assert found == 2
"""

CHANGED_BODIES: Bodies = {
    "product.send = mock.Mock()\n    product.replace()\n    product.send.assert_called_once_with(1)": "failed",
    "product.send = mock.Mock()\n    product.send(1)\n    product.send.assert_called_once_with(1)": "passed",
    "product.send = mock.Mock()\n    product.still()\n    product.send.assert_any_call(1)": "failed",
    "frozen = Frozen(1)\n    strip(frozen)\n    assert frozen.n == 1": "passed",
    "Outbox(Log()).log.assert_lines('a')": "failed",
    "Outbox(Log('a')).log.assert_lines('a')": "passed",
    "assert Outbox(Log()).log.write('a') == 'a'": "failed",
    "ann, bob = {}, {}\n    mark(ann)\n    mark(bob)\n    assert ann == {'seen': 1} and bob == {'seen': 1}": "passed",
    "log = Log()\n    log.due = ['a']\n    tell(log)\n    assert log.lines == log.due": "failed",
    "log = Log()\n    log.due = ['a']\n    tell(log)\n    assert log.lines == ['a']": "passed",
    "pair = Pair()\n    tell(pair)\n    assert pair.lines == pair.due": "failed",
    "base = sqlite3.connect(':memory:')\n    assert base.execute('select 2').fetchone() == (2,)": "failed",
    "log = Log()\n    same, at = log == log, watch(log)\n    del log\n    assert at() is None and same": "passed",
    "with pytest.raises(DeprecationWarning): swallow(wants_two)": "failed",
}


@pytest.mark.slow
def test_what_the_product_puts_in_the_place_of_things_of_the_tests_is_no_evidence(tmp_path: Path) -> None:
    """As in a confirmation, where what is compared is seen; warnings are errors there."""
    assert confirm_bodies(tmp_path, CHANGED, CHANGED_HEAD, CHANGED_BODIES) == CHANGED_BODIES


FAILING = {
    "product.py": "def send(text): pass\ndef guard(*error): return None\ndef excuse(*error): return True\n",
    "test_product.py": """
import contextlib, unittest
from unittest import mock
from product import excuse, guard

@mock.patch("product.send")
def test_patched(send): assert send is None

class Case(unittest.TestCase):
    @mock.patch("product.send")
    def test_case(self, send): self.assertIsNone(send)

def test_stack():
    with contextlib.ExitStack() as stack:
        stack.push(excuse)
        assert 0

def test_caught():
    try: assert 0
    except AssertionError: guard()
    assert 0

def test_another():
    try: assert 0
    except AssertionError:
        guard()
        assert 1 == 2
""",
}


@pytest.mark.slow
def test_a_test_that_ends_with_the_assertion_that_failed_is_excused_by_nobody(tmp_path: Path) -> None:
    """A test that fails must not be doubted: each is falsified once, and `@patch` puts back what it replaced then."""
    report = reported(tmp_path, FAILING)

    assert {str(result.outcome) for result in report.results} == {"failed"}
    assert {i.rpartition("::")[2] for i in report.doubted} == {"test_stack", "test_caught", "test_another"}
