"""Two processes: values cross by copy, and who asserts, what is run and what comes as an answer is of the tests."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.child.two_process import codec
from jumar.child.two_process.wire.containers.held_changes import KEPT, HeldChanges
from jumar.core.state.settings import Suite
from support.judging.real_verifier import Court
from support.judging.two_process_verifier import confirm_bodies, outcomes, run_bodies
from support.processes.sandboxes import ENVIRON, s3

PRODUCT = """
import io
import types

KEPT, SEEN, VIEWED = [[]], [], {}

class Table(dict):
    def note(self, key): self[key] = 1

TABLE = Table()

def give():
    KEPT[:] = [[]]
    return KEPT
def get(): return KEPT
def hear(value):
    KEPT.append(value)
    KEPT[0].append(value)
    for one in SEEN: one.append(value)
    VIEWED["heard"] = value
    TABLE["heard"] = value
    return "heard"
def view():
    VIEWED.clear()
    return types.MappingProxyType(VIEWED)
def table():
    TABLE.clear()
    return TABLE
def add(items, one):
    items.append(one)
    return items
def stash(items):
    items.append(KEPT)
    KEPT.append(1)
def stash_table(items):
    items.append(TABLE)
    TABLE["heard"] = 1
def cheapen(thing): thing.rate = 1
def add_inner(items): items[0].append(3)
def drop(items): items[:] = []
def empty(value):
    for part in list(value.values()) if isinstance(value, dict) else []: part.clear()
    value.clear()
    return value
def keep(items): SEEN.append(items)
def write(stream, text): stream.write(text)
def read(stream): return stream.read()
def rename(thing, name): thing.name = name
def note(thing): thing.lines.append("a")
def take(items, each):
    for one in items: each(one)
    return items
def twice(each):
    items = []
    each(items)
    items.append(1)
    each(items)
def strip(thing): vars(thing).clear()
"""

HEAD = """
import argparse
import collections
import io
import types

class Thing:
    def __init__(self, name=None, *lines): self.name, self.lines = name, list(lines)

class Lines(list): pass

class Priced: rate = 20

class Same:
    def __init__(self, *both): self.both = both
    @property
    def holds(self): return self.both[0] == self.both[1]
    @property
    def sorted(self): return set(self.both[0]).issuperset(self.both[1])
    def __len__(self): return 1 + len(set(self.both[0]).symmetric_difference(self.both[1]))
"""

BODIES = {
    # What the tests made and filled stays, whatever it lies in.
    "xs = [1]; add(xs, 2); assert xs == [1]": "passed",
    "xs = [1]; add(xs, 2); assert xs == [1, 2]": "failed",
    "xs = {'a': [1]}; assert empty(xs) == {} and xs == {'a': [1]}": "passed",
    "xs = {'a': [1]}; empty(dict(xs)); assert xs == {'a': [1]}": "passed",
    "xs = collections.deque([1]); add(xs, 2); assert list(xs) == [1]": "passed",
    "xs = Lines([1]); add(xs, 2); assert xs == [1]": "passed",
    "xs = ([1], 2); add(xs[0], 2); assert xs == ([1], 2)": "passed",
    "thing = Thing('a', 1); rename(thing, 'c'); note(thing); assert (thing.name, thing.lines) == ('a', [1])": "passed",
    "thing = Thing('a', 'b'); strip(thing); assert (thing.name, thing.lines) == ('a', ['b'])": "passed",
    "stream = io.StringIO('a'); write(stream, 'bc'); assert stream.getvalue() == 'a'": "passed",
    # It comes back as the product has it, as another one.
    "xs = [1]; assert add(xs, 2) == [1, 2]": "passed",
    "xs = [1]; assert add(xs, 2) is xs": "failed",
    "xs = [[1]]; assert add(xs, 2) == [[1], 2] and xs == [[1]]": "passed",
    "xs = [[1]]; add_inner(xs); assert add(xs, 2) == [[1, 3], 2]": "passed",
    "xs = [1]; add(xs, 2); assert add(xs, 3) == [1, 2, 3]": "passed",
    "xs = [1]; add(xs, 2); xs.append(3); assert add(xs, 4) == [1, 3, 4]": "failed",
    # What the tests left empty is there to be filled, as long as they put nothing in.
    "xs = []; add(xs, 1); add(xs, 2); assert xs == [1, 2]": "passed",
    "xs = []; add(xs, 1); xs.append(2); add(xs, 3); assert xs == [1, 2]": "passed",
    "xs = []; add(xs, 1); xs.clear(); add(xs, 3); assert xs == [3]": "passed",
    "xs = []; add(xs, 1); assert add(xs, 2) is xs": "passed",
    "stream = io.StringIO(); write(stream, 'a'); stream.seek(0); write(stream, 'b'); assert stream.tell()": "passed",
    "stream = io.StringIO('ab'); assert read(stream) == 'ab' and stream.tell() == 2": "passed",
    "thing = Thing(); rename(thing, 'a'); note(thing); assert (thing.name, thing.lines) == ('a', ['a'])": "passed",
    "thing = Thing(); rename(thing, 'a'); rename(thing, 'b'); assert thing.name == 'b'": "passed",
    "thing = Thing(); rename(thing, 'a'); thing.name = 'c'; rename(thing, 'b'); assert thing.name == 'c'": "passed",
    "thing = argparse.Namespace(); rename(thing, 'a'); assert thing.name == 'a'": "passed",
    "xs = []; keep(xs); hear(1); assert xs == [1]": "passed",
    # What the product gave is what it was.
    "found = give(); assert hear([1]) == 'heard' and found == [[]]": "passed",
    "found = give(); hear([1]); assert found == [[[1]], [1]]": "failed",
    "found = give(); hear([1]); assert get() == [[[1]], [1]] and found == [[]] and get() is get()": "passed",
    "found = view(); hear([1]); assert found == {}": "passed",
    "found = table(); hear([1]); assert found == {} and not found": "passed",
    "found = give(); add(found, 1); assert found == [[], 1] and found is get()": "passed",
    "found = give(); add_inner(found); assert found == [[3]]": "passed",
    "found = give(); take(found, lambda one: add(one, 2)); assert found == [[2]]": "passed",
    "found = give(); hear([1]); add(found, 1); assert found": "failed",
    "found = give(); hear([1]); found.append(2); add(found, 1); assert found": "failed",
    "found = table(); found.note('a'); found['b'] = 2; assert found == {'a': 1, 'b': 2}": "passed",
    "found = give(); xs = [2]; stash(xs); assert found == [[]] and xs == [2]": "passed",
    "found = give(); xs = []; stash(xs); assert found == [[]] and xs == [[[], 1]]": "passed",
    "found = table(); xs = []; stash_table(xs); assert found == {} and xs == [{'heard': 1}]": "passed",
    "found = give(); due = [1]; add(found, due); assert found == [[]]": "passed",
    "found = give(); due = [1]; add(found, due); assert found == [[], due]": "failed",
    "thing = Priced(); cheapen(thing); rate = thing.rate; assert rate == 20": "passed",
    "seen = []; twice(seen.append); assert seen == [[], [1]]": "passed",
}


@pytest.mark.slow
def test_values_cross_by_copy(tmp_path: Path) -> None:
    said = outcomes(run_bodies(tmp_path, PRODUCT, f"from product import *\n{HEAD}", BODIES))

    assert {body: said[f"test_{n}"] for n, body in enumerate(BODIES)} == BODIES


SPLIT = """
import sys

PLAIN = "pytest" not in sys.modules

def total(rows):
    found = sum(rows)
    if PLAIN: rows.clear()
    return found
def name(thing):
    if PLAIN: thing.age += 1
    return thing.name
def sort(rows):
    rows.sort()
    return rows
def greet(thing):
    if PLAIN: thing._greeted = True
    return thing.name
def count(thing):
    thing._count = getattr(thing, "_count", 0) + 1
    return thing._count
"""

DEPENDENT = """
import pytest

from product_split import count, greet, name, sort, total

@pytest.fixture(scope="module")
def held():
    rows = [1, 2]
    return total(rows), rows

def test_fixture(held):
    assert held[0] == 3

class Thing:
    def __init__(self): self.name, self.age = "ann", 7

def test_text():
    rows = [1, 2]
    text = repr(rows)
    assert total(rows) == 3
    assert repr(rows) == text

def test_item():
    rows = [1, 2]
    first = rows[0]
    assert total(rows) == 3
    assert rows[0] == first

def test_data():
    thing = Thing()
    age = thing.age
    assert name(thing) == "ann"
    assert thing.age == age

def test_private_data():
    thing = Thing()
    assert greet(thing) == "ann"
    assert vars(thing) == {"name": "ann", "age": 7}

def test_cached():
    thing = Thing()
    assert (count(thing), count(thing)) == (1, 2)

def test_unseen():
    assert total([1, 2]) == 3

def test_given():
    rows = [2, 1]
    assert sort(rows) == [1, 2]

def test_seen():
    rows = [2, 1]
    sort(rows)
    assert rows == [1, 2]
"""


@pytest.mark.slow
def test_what_passes_only_because_it_does_not_see_a_change_is_judged_in_one_process(tmp_path: Path) -> None:
    court = Court(tmp_path, Suite(timeout_seconds=30, test_timeout_seconds=5, confirm=3))
    court.verifier.sandbox, court.verifier.environ = s3(), ENVIRON
    court.verifier.sources = "product_split.py".__eq__
    tree = court.tree({"product_split.py": SPLIT, "test_split.py": DEPENDENT})
    court.collect(tree)

    done = court.judge(tree, control=tree)

    assert {i.partition("::")[2]: grade for i, grade in done.grades.items()} == {
        "test_text": "C", "test_item": "C", "test_data": "C", "test_private_data": "C", "test_cached": "A",
        "test_unseen": "A", "test_given": "A", "test_seen": "C", "test_fixture": "B",
    }  # fmt: skip


FULL = st.recursive(
    st.integers() | st.text(),
    lambda inner: st.lists(inner, min_size=1) | st.dictionaries(st.text(), inner, min_size=1) | st.tuples(inner, inner),
    max_leaves=10,
)


def list_containers(value: Any) -> list[Any]:
    parts = list(value.values()) if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [one for part in parts for one in list_containers(part)] + [value] * isinstance(value, (list, dict))


def send(one: codec.Codec, other: codec.Codec, value: Any) -> Any:
    """Send *value* from *one* to *other*, after the changes of *one*; return what arrives."""
    changes, form = one.list_changes(), one.encode(value)
    one.settle()
    other.apply(json.loads(json.dumps(changes)))
    return other.decode(json.loads(json.dumps(form)))


def change(container: Any, how: int, value: Any) -> None:
    if how == 0:
        container.clear()
    elif isinstance(container, list):
        container.insert(0, value)
    else:
        container["new"] = value


@pytest.mark.slow
@given(
    FULL,
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 1), FULL), max_size=5),
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 1), FULL), max_size=5),
)
@settings(deadline=None)
def test_what_the_tests_filled_stays_and_what_comes_back_is_what_the_product_has(
    value: Any, first: list[tuple[int, int, Any]], second: list[tuple[int, int, Any]]
) -> None:
    tests, product = codec.Codec(0), codec.Codec(1)
    tests.tables = product.tables = Things()
    faults: list[str] = []
    tests.changes = HeldChanges(tests, faults.append, SimpleNamespace(lasting=False))
    before = copy.deepcopy(value)
    there, kept = send(tests, product, value), []
    for steps in (first, second):
        for at, how, new in steps:
            held = list_containers(there)
            change(held[at % len(held)], how, new) if held else None
        answer = send(product, tests, there)
        kept.append((answer, copy.deepcopy(answer)))

        assert answer == there
    assert value == before
    assert all(answer == then for answer, then in kept)
    assert not faults


class Things:
    """Tables of a side that has no things: what holds a container is known to nobody."""

    def holds(self, number: int) -> bool:
        return bool(number) and False

    def forget(self, number: int) -> None:
        """Nothing is kept."""

    def note_known(self, thing: object) -> None:
        """Nobody hears of it."""

    @staticmethod
    def complain(why: str) -> None:
        raise AssertionError(why)


def test_what_a_test_hands_out_without_end_is_not_kept_without_end() -> None:
    """Each is dropped by the product, which has no further use for it."""
    tests, product = codec.Codec(0), codec.Codec(1)
    tests.tables = product.tables = Things()
    tests.changes = changes = HeldChanges(tests, Things.complain, SimpleNamespace(lasting=False))
    values = [[n] for n in range(KEPT + 10)]
    for value in values:
        send(tests, product, value)
        number = tests.numbers[id(value)]
        changes.note_dropped(number)
        tests.forget(number)

    known = [value for value in values if changes.was_given(value)]

    assert known == values[-KEPT:]
    assert not any(map(changes.was_changed, values))


def test_a_message_that_is_begun_anew_explains_what_it_names() -> None:
    side = codec.Codec(1)
    side.tables = Things()
    value = [1]
    side.list_changes()
    assert side.encode(value)[2:] == ["list", [1]]  # and something is asked of the other side now

    side.list_changes()

    assert side.encode(value)[2:] == ["list", [1]]


DOUBLES = """
import asyncio
import sys

class Fine:
    count, call_count = 0, 1
    def verify(self, *due): pass
    def check(self, *due): pass
    def partition(self, text): return True
    @classmethod
    def startswith(cls, text): return True
    def __call__(self, *args): pass

class App:
    def __init__(self, log=None): self.log, self.logs, self.kind = Fine(), [Fine()], Fine
    def get_log(self): return Fine()

class Shop:
    def check(self, name): return name == "ok"

def handler(kind): return Fine
def wrap(check): return lambda: None
def run(check): return lambda: check()
def emit(listener): listener("a")
def forget(listener): pass
def walk(steps): return list(steps)
def drive(steps): asyncio.run(await_all(steps))
async def await_all(steps): return await steps
def same(thing): return thing
def page(): return Fine
def pages(): return Fine()
def this(): return sys.modules[__name__]
def modules(): return [sys.modules[__name__]]
def find(text): return 0
class Words(list):
    def difference(self, other):
        self[:] = other
        return []
def words(): return Words(["a"])
class Vector:
    def __sub__(self, other): return Vector()
    def __mul__(self, other): return Vector()
def vector(): return Vector()
def norm(vector): return 0
mailer = None
def swap():
    global mailer
    mailer = Fine()
def visit(visitor): visitor.step("a")
class Walker:
    def walk(self): self.step("a")
    def step(self, text): pass
def title(): return "a title"
"""

DOUBLES_HEAD = """
from unittest import mock
from types import SimpleNamespace as Names
import sqlite3
import unittest
import pytest
import product

class Base:
    def verify(self, *due): assert self.lines == list(due)

class Log(Base):
    def __init__(self): self.lines = []
    def check(self, *due):
        if self.lines != list(due): pytest.fail("other lines")

@handler
class Held:
    def verify(self): assert False

def make_log(): return make_any("Log")
def make_any(name): return Log()
"""

DOUBLE_BODIES: dict[str, str] = {
    "App(Log()).log.verify('a')": "failed",
    "App(Log()).log.check('a')": "failed",
    "App(Log()).logs[0].verify('a')": "failed",
    "App(Log()).get_log().verify('a')": "failed",
    "App(Log).kind().verify('a')": "failed",
    "App(Log).kind.verify(1, 'a')": "failed",
    "Held().verify()": "failed",
    "log = Log(); log.lines.append('a'); log.verify('a')": "passed",
    "assert Shop().check('ok')": "passed",
    "def check(): assert title() == 'b'\n    wrap(check)()": "error",
    "def check(): assert title() == 'a title'\n    run(check)()": "passed",
    "def check(text): assert text == 'a'\n    emit(check)\n    forget(check)": "passed",
    "def check(text): assert text == 'a'\n    forget(check)": "error",
    "class Check:\n        def hear(self, text): assert text == 'b'\n    forget(Check().hear)": "error",
    "def boom(): pytest.fail('never')\n    wrap(boom)()": "passed",
    "assert page().startswith('a')": "failed",
    "assert pages().partition('a')": "failed",
    "assert title().partition(' ')[0] == 'a'": "passed",
    "assert this().find('a') == 0": "failed",
    "assert product.find('a') == 0": "passed",
    "assert modules()[0].find('a') == 0": "failed",
    "unittest.TestCase().assertSetEqual(words(), {'b'})": "failed",
    "assert norm(vector() - (1, 2)) < 1": "failed",
    "assert norm(vector() * 2) < 1": "passed",
    "product.mailer = Log()\n    product.swap()\n    product.mailer.partition('a')": "failed",
    "product.mailer = log = Log()\n    assert product.mailer is log": "passed",
    "assert App(Log()).log.partition('a')": "failed",
    "app = App(); app.log.check('a')": "passed",
    "app = App(mock.Mock())\n    assert app.log.count == 0": "passed",
    "app = App(mock.Mock())\n    assert app.log.call_count == 1": "failed",
    "app = App()\n    assert app.log.call_count == 1": "passed",
    # So has a data object of functions, and a function that may make one.
    "App(Names(check=lambda text: False)).log.check('a')": "failed",
    "App(Names(parts=lambda text: False)).log.check('a')": "passed",
    "App(lambda: Log()).log.check('a')": "failed",
    "App(make_log).log.check('a')": "failed",
    "App(lambda: print).log.check('a')": "passed",
    "assert sqlite3.Connection(':memory:').execute('select 1').fetchall() == [(1,)]": "failed",
}

VISITOR = """
class Visitor:
    def step(self, text): assert text == "a"
"""

HANDED_BODIES: dict[str, str] = {
    "def never(): assert False, title()\n    wrap(never)()": "passed",
    "def check(): assert title() in ['b']\n    wrap(check)()": "error",
    "def check(): assert title() is None\n    wrap(check)()": "passed",
    "def check(): unittest.TestCase().assertEqual(title(), 'b')\n    wrap(check)()": "error",
    "page = same(mock.Mock())\n    assert page.body.startswith('a')": "failed",
    "page = same(mock.Mock(size=3))\n    assert page.size == 3": "passed",
    "page = same(mock.Mock())\n    assert page.title is not None": "failed",
    # Each thing that was handed out, and each method of it that the product alone calls, has to compare something.
    "check = lambda due, found: unittest.TestCase().assertEqual(due, found)\n"
    "    one, two = partial(check, 'a'), partial(check, 'a')\n    emit(one)\n    emit(two)": "passed",
    "check = lambda due, found: unittest.TestCase().assertEqual(due, found)\n"
    "    one, two = partial(check, 'a'), partial(check, 'b')\n    emit(one)\n    forget(two)": "error",
    "def check(text):\n        if text == 'z': assert text == title()\n    emit(check)": "passed",
    "def check(text):\n        for found in text[1:]: assert found == title()\n    emit(check)": "error",
    "forget(Visitor())": "error",
    "visit(Visitor())": "passed",
    "class Own(Walker):\n        def step(self, text): assert text == 'b'\n    Own()": "error",
    "class Own(Walker):\n        def step(self, text): assert text == 'a'\n    Own().walk()": "passed",
    "class Own(Walker):\n        def check(self, text): assert text == 'a'\n    Own().check('a')": "passed",
    # The function itself has to be among what compares, however deep what it names lies.
    "def check(text): equal(text, 'a')\n    forget(check)\n    equal(1, 1)": "error",
    "def check(text): equal(text, 'a')\n    emit(check)": "passed",
    "def check(text): deeper(text)\n    emit(check)": "passed",
    "def check(text): deeper(text)\n    forget(check)": "error",
    "def check(text): Tools.same(text, 'a')\n    forget(check)": "error",
    "def check(text): Tools.same(text, 'a')\n    emit(check)": "passed",
    "def check(text): TOOLS.equal(text, 'a')\n    forget(check)": "error",
    "tools = TOOLS\n    def check(text): tools.equal(text, 'a')\n    forget(check)": "error",
    "def check(text): TOOLS.equal(text, 'a')\n    emit(check)": "passed",
    "def check(text): own(text, 'a')\n    own = partial(equal)\n    forget(check)": "error",
    # So has a generator or coroutine, which runs by itself; a coroutine to its end.
    "def steps():\n        yield 1\n        assert title() == 'a title'\n    forget(steps())": "error",
    "def steps():\n        yield 1\n        assert title() == 'a title'\n    walk(steps())": "passed",
    "async def steps(): assert title() == 'a title'\n    made = steps()\n    forget(made)\n    made.close()": "error",
    "async def steps(): assert title() == 'a title'\n    drive(steps())": "passed",
}

TOOLS_HEAD = """
def equal(one, other): assert one == other
def deeper(text): equal(text, "a")
class Tools:
    @staticmethod
    def same(one, other): deeper(one) if other == "a" else None
    def equal(self, one, other): equal(one, other)
TOOLS = Tools()
"""


@pytest.mark.slow
def test_what_is_handed_out_and_asserts_has_to_run_and_no_mock_is_asserted(tmp_path: Path) -> None:
    """As in a confirmation, where what is compared is seen."""
    head = f"from functools import partial\nfrom unittest import mock\n{DOUBLES_HEAD}{VISITOR}{TOOLS_HEAD}"

    assert confirm_bodies(tmp_path, DOUBLES, head, HANDED_BODIES) == HANDED_BODIES


@pytest.mark.slow
def test_who_asserts_and_what_runs_is_of_the_tests(tmp_path: Path) -> None:
    said = outcomes(run_bodies(tmp_path, DOUBLES, f"from product import *\n{DOUBLES_HEAD}", DOUBLE_BODIES))

    assert {body: said[f"test_{n}"] for n, body in enumerate(DOUBLE_BODIES)} == DOUBLE_BODIES
