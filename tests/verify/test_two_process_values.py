"""Two processes: values cross by copy, so that what the tests hold is not changed behind their back."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.judging.two_process_verifier import outcomes, run_bodies

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
def add_inner(items): items[0].append(3)
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
    "seen = []; twice(seen.append); assert seen == [[], [1]]": "passed",
}


@pytest.mark.slow
def test_values_cross_by_copy(tmp_path: Path) -> None:
    said = outcomes(run_bodies(tmp_path, PRODUCT, f"from product import *\n{HEAD}", BODIES))

    assert {body: said[f"test_{n}"] for n, body in enumerate(BODIES)} == BODIES
