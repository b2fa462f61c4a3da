"""Ties of a test to one process: its own doing, or a step with what the code under test answered instead of data."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.judging.two_process_verifier import reported
from support.processes.sandboxes import s3

PRODUCT = """
import collections, http, re, sys
from pathlib import PosixPath as Clock
class Box:
    held = 1
    def get(self, key, default=None): return 1
    def open(self): return Box()
    def __enter__(self): return self
    def __exit__(self, *error): return None
    @classmethod
    def make(cls, *given): return cls()
    def charge(self, n): return n
class small(Box): pass
def take(*given): return 1
def make(): return Box()
def give(): return {"k": [Box()], "class": Box}
def call(back): return (back(), 1)[1]
def choose(): return take
def module(): return sys.modules[__name__]
def undo(): globals()["fetch"] = print
def pattern(): return re.compile("a")
def place(): return Clock("a")
def numbers(): return range(3)
def counter(): return collections.Counter()
def error(): return ValueError()
def status(): return http.HTTPStatus.OK
def queue(): return collections.deque([1])
def method(): return Box().get
def write(path): return 1
def fill(path): open(path, "w").write("a") and None
"""
HEAD = """
import argparse, inspect, re, threading
import product, pytest
NUMBERS = product.numbers()
def back(): return re.match('a', 'a')
class Fake:
    def charge(self, n): return n
@pytest.fixture(scope="module")
def lent(): assert product.take(re.match('a', 'a')) == 1
"""
OWN = (
    "assert product.take(argparse.ArgumentParser()) == 1",
    "assert product.take(re.match('a', 'a')) == 1",
    "assert product.Box().get('a', re.match('a', 'a')) == 1",
    "assert product.Box.make(re.match('a', 'a')) is not None",
    "with product.Box() as box: assert box.get('a', re.match('a', 'a')) == 1",
    "get = product.Box().get; assert get('a', re.match('a', 'a')) == 1",
    "assert not inspect.isfunction(product.Box) and inspect.isfunction(product.take)",
    "due = tmp_path / 'due'; due.write_text('1'); assert product.take() == int(due.read_text())",
    "assert product.make() and product.take(re.match('a', 'a')) == 1",
    "assert product.take(threading.Event().set) == 1",
    "assert product.take(argparse.ArgumentParser().parse_args) == 1",
    "made = product.make(); assert eval('1') == product.take()",
    "assert product.make().get('a', re.match('a', 'a')) == 1 and product.take(re.match('a', 'a')) == 1",
)
USING = "request.getfixturevalue('lent'); assert product.take() == 1"
AFTER = ("assert product.take() == 1", "assert product.place().name == 'a' and product.numbers()[1] == 1")
LED = (
    "assert product.Box.make().get('a', re.match('a', 'a')) == 1",
    "assert product.module().take(re.match('a', 'a')) == 1",
    "monkeypatch.delattr(product.Clock, 'nothing', False); assert product.take() == 1",
    "product.fetch = back; product.undo(); assert product.fetch() == 1",
    "assert product.make().get('a', re.match('a', 'a')) == 1",
    "assert product.Box().open().get('a', re.match('a', 'a')) == 1",
    "assert product.give()['k'][0].get('a', re.match('a', 'a')) == 1",
    "assert product.give()['class'].make(re.match('a', 'a'))",
    "assert product.method()('a', re.match('a', 'a')) == 1",
    "assert product.choose()(re.match('a', 'a')) == 1",
    "assert product.small().get('a', re.match('a', 'a')) == 1",
    "assert product.call(back) == 1",
    "assert inspect.ismethod(product.method())",
    "product.take(Fake()); assert product.make().charge(1) == 1",
    "due = tmp_path / 'due'; due.write_text('1'); assert product.write(str(due)) == int(due.read_text())",
    "assert product.take(product.pattern().match('a')) == 1",
    "assert product.take(product.place().resolve) == 1",
    "assert product.take(product.numbers().count) == 1",
    "assert product.take(product.counter().update) == 1",
    "assert product.take(product.error().add_note) == 1",
    "assert product.take(product.status().conjugate) == 1",
    "assert product.take(NUMBERS.count) == 1",
    "box = product.make(); t = threading.Thread(target=box.open); t.start(); t.join()",
)
NEITHER = (
    "assert product.take(object(), argparse.Namespace(a=1)) == 1",
    "assert product.make().get('a', object()) == 1",
    "assert product.take(reversed(product.queue())) == 1",
    "assert product.make().get('a', 1) == 1",
    "assert product.call(lambda: 1) == 1",
    "due = tmp_path / 'due'; product.fill(str(due)); assert due.read_text() == 'a'",
)


@pytest.mark.slow
def test_a_tie_is_the_tests_own_doing_unless_the_code_had_a_part_in_that_step(tmp_path: Path) -> None:
    # In this order: what was an answer once may be one again.
    kinds = {"neither": NEITHER, "own": (USING, *OWN), "led": LED, "neither_after": AFTER}
    tests = {f"test_{kind}_{n}": body for kind, bodies in kinds.items() for n, body in enumerate(bodies)}
    text = HEAD + "".join(f"def {name}(tmp_path, monkeypatch, request):\n    {body}\n" for name, body in tests.items())

    report = reported(tmp_path, {"product.py": PRODUCT, "test_product.py": text}, sandbox=s3())

    tied, led = ({i.partition("::")[2] for i in ids} for ids in (report.tied, report.led))
    said = {name: "own" if name in tied else "led" if name in led else "neither" for name in tests}
    assert {tests[name]: kind for name, kind in said.items() if f"_{kind}_" not in name} == {}
