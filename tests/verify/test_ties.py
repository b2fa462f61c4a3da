"""Ties of a test to one process: its own doing, or a step with what the code under test answered instead of data."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.judging.two_process_verifier import reported
from support.processes.sandboxes import s3

PRODUCT = """
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
def method(): return Box().get
def write(path): return 1
def fill(path): open(path, "w").write("a") and None
"""
HEAD = """
import inspect, threading
import product
def back(): return object()
class Fake:
    def charge(self, n): return n
"""
OWN = (
    "assert product.take(object()) == 1",
    "assert product.Box().get('a', object()) == 1",
    "assert product.Box.make(object()) is not None",
    "assert product.Box.make().get('a', object()) == 1",
    "with product.Box() as box: assert box.get('a', object()) == 1",
    "get = product.Box().get; assert get('a', object()) == 1",
    "assert not inspect.isfunction(product.Box) and inspect.isfunction(product.take)",
    "due = tmp_path / 'due'; due.write_text('1'); assert product.take() == int(due.read_text())",
    "assert product.make() and product.take(object()) == 1",
    "made = product.make(); assert eval('1') == product.take()",
    "assert product.make().get('a', object()) == 1 and product.take(object()) == 1",
)
LED = (
    "assert product.make().get('a', object()) == 1",
    "assert product.Box().open().get('a', object()) == 1",
    "assert product.give()['k'][0].get('a', object()) == 1",
    "assert product.give()['class'].make(object())",
    "assert product.method()('a', object()) == 1",
    "assert product.choose()(object()) == 1",
    "assert product.small().get('a', object()) == 1",
    "assert product.call(back) == 1",
    "assert inspect.ismethod(product.method())",
    "product.take(Fake()); assert product.make().charge(1) == 1",
    "due = tmp_path / 'due'; due.write_text('1'); assert product.write(str(due)) == int(due.read_text())",
    "box = product.make(); t = threading.Thread(target=box.open); t.start(); t.join()",
)
NEITHER = (
    "assert product.make().get('a', 1) == 1",
    "assert product.call(lambda: 1) == 1",
    "due = tmp_path / 'due'; product.fill(str(due)); assert due.read_text() == 'a'",
)


@pytest.mark.slow
def test_a_tie_is_the_tests_own_doing_unless_the_code_had_a_part_in_that_step(tmp_path: Path) -> None:
    kinds = {"own": OWN, "led": LED, "neither": NEITHER}
    tests = {f"test_{kind}_{n}": body for kind, bodies in kinds.items() for n, body in enumerate(bodies)}
    text = HEAD + "".join(f"def {name}(tmp_path):\n    {body}\n" for name, body in tests.items())

    report = reported(tmp_path, {"product.py": PRODUCT, "test_product.py": text}, sandbox=s3())

    tied, led = ({i.partition("::")[2] for i in ids} for ids in (report.tied, report.led))
    said = {name: "own" if name in tied else "led" if name in led else "neither" for name in tests}
    assert {tests[name]: kind for name, kind in said.items() if f"_{kind}_" not in name} == {}
