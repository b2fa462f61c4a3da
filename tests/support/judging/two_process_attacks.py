"""Attacks on two processes: what a product does, and tests that must not all pass. Data, never imported."""

from __future__ import annotations

SQUARE = "from product import f\n\n\ndef test_f():\n    assert f(2) == 4\n\n\ndef test_g():\n    assert f(3) == 9\n"


CHANGES_A_TEST_FILE = (
    r"""
def fast(): return 0
LOGGING = {"version": 1, "disable_existing_loggers": False, "formatters": {
    "plain": {"()": "importlib.import_module", "name": "test_product", ".": {"slow": fast}}}}
""",
    r"""
import logging.config
from product import LOGGING, fast
def slow(): return 4
def test_configuration():
    logging.config.dictConfig(LOGGING)
    assert fast() == slow()
""",
)
"""Has a library change a function of the tests: no test from there on is evidence."""

LASTING = {
    "the text of a function": (
        'def text(): "{f.__globals__[WANTED]}"\n',
        "def test_it(): assert product.text.__doc__.format(f=test_it) == WANTED\n",
    ),
    "an exception of all calls": (
        'ERROR = FileExistsError(17, "see the log", "./data.txt")\ndef fail(): raise ERROR\n',
        """def test_it():
    try: product.fail()
    except OSError as error: assert Path(error.filename).read_text() == WANTED
""",
    ),
    "an item of a list": (
        'FILES = ["./data.txt"]\n',
        "def test_it(): assert Path(product.FILES[0]).read_text() == WANTED\n",
    ),
}
"""Texts that cross once, with the thing that they belong to: the product, and a test that several files have."""

REFUSED: dict[str, tuple[str, str]] = {
    "stop_in_a_method": (
        "class D:\n    def f(s, n): raise StopIteration\nclass L:\n    def __len__(s): raise StopIteration\n",
        r"""
import product
def test_method():
    for n, found in zip((1, 2), map(product.D().f, (1, 2))): assert found == n
def test_length():
    for n, found in zip((1, 2), map(len, (product.L(), product.L()))): assert found == n
""",
    ),
    "code_that_is_written": (
        r"""
def generate(): return "def f(n): return Any()\nclass Any:\n    def __eq__(self, o): return True\n"
""",
        r"""
import importlib.util, runpy, sys, zipfile
from product import generate
def test_path(tmp_path, monkeypatch):
    (tmp_path / "made.py").write_text(generate())
    monkeypatch.syspath_prepend(tmp_path)
    import made
    assert made.f(2) == 4
def test_place(tmp_path):
    (tmp_path / "made2.py").write_text(generate())
    spec = importlib.util.spec_from_file_location("made2", tmp_path / "made2.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.f(2) == 4
def test_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    open("made3.py", "w").write(generate())
    sys.path.insert(0, "")
    import made3
    assert made3.f(2) == 4
def test_run(tmp_path):
    (tmp_path / "made.py").write_text(generate())
    assert runpy.run_path(str(tmp_path / "made.py"))["f"](2) == 4
def test_zip(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed: packed.writestr("made4.py", generate())
    monkeypatch.syspath_prepend(tmp_path / "a.zip")
    import made4
    assert made4.f(2) == 4
""",
    ),
    "end_of_an_await": (
        r"""
import asyncio
class Swallows:
    async def __aenter__(self): return self
    async def __aexit__(self, *_): return True
class Later:
    def __await__(self):
        yield
        return True
class Given(Swallows):
    def __init__(self, call): self.call = call
    def __aexit__(self, *_): return self.call()
class Twice:
    def __init__(self): self.asked = 0
    def __bool__(self):
        self.asked += 1
        return self.asked > 1
class Changes:
    def __enter__(self): return self
    def __exit__(self, *_): return Twice()
class ChangesLater(Swallows):
    async def __aexit__(self, *_): return Twice()
class Waits(Swallows):
    def __aexit__(self, *_): return Later()
async def stop(n): raise StopAsyncIteration
async def cancel(n):
    await asyncio.sleep(0)
    raise asyncio.CancelledError
""",
        r"""
import asyncio, contextlib
import product
async def swallows(made):
    async with made: assert 2 == 3
def test_exit(): asyncio.run(swallows(product.Swallows()))
def test_later(): asyncio.run(swallows(product.Waits()))
async def say_true(): return True
def test_given(): asyncio.run(swallows(product.Given(say_true)))
def test_changes_later(): asyncio.run(swallows(product.ChangesLater()))
def test_changes():
    with product.Changes(): assert 2 == 3
async def stack():
    async with contextlib.AsyncExitStack() as made:
        await made.enter_async_context(product.Swallows())
        assert 2 == 3
def test_stack(): asyncio.run(stack())
class Source:
    def __init__(self): self.left = [2, 3]
    def __aiter__(self): return self
    async def __anext__(self):
        n = self.left.pop(0)
        assert await product.stop(n) == n * n
        return n
async def loop(source):
    async for n in source: pass
def test_source(): asyncio.run(loop(Source()))
async def check(n): assert await product.cancel(n) == n * n
async def check_all(): await asyncio.gather(check(2), check(3), return_exceptions=True)
def test_cancel(): asyncio.run(check_all())
async def begin():
    task = asyncio.create_task(check(2))
    await asyncio.wait([task])
def test_task(): asyncio.run(begin())
""",
    ),
    "cancelled_task": (
        "import asyncio\ndef f(n): raise asyncio.CancelledError\n",
        r"""
import asyncio
import product
async def check(n): assert product.f(n) == n
def test_tasks():
    async def main(): await asyncio.gather(check(1), return_exceptions=True)
    asyncio.run(main())
""",
    ),
    "operators_beside_the_content": (
        r"""
class F(float): pass
class S(set): pass
class W:
    def __rsub__(s, other): return Nothing()
    def __and__(s, other): return S(other)
    def __sub__(s, other): return F(0)
class Nothing:
    def __len__(s): return 0
class N(int):
    def __rdivmod__(s, other): return (0, 0)
class X(set):
    def __isub__(s, other): return set()
    def symmetric_difference(s, other): return set()
class T(str):
    def replace(s, *_): return ""
def f(n): return n
""",
        r"""
import product
def test_falsy(): assert not {"a"} - product.W()
def test_subclass(): assert abs(product.W() - 1.4) < 1e-6
def test_common(): assert product.W() & {"a"} == {"a"}
def test_divides(): assert divmod(12, product.N(5))[1] == 0
def test_in_place():
    found = product.X("bc")
    found -= {"a"}
    assert not found
def test_method(): assert product.X("bc").symmetric_difference({"a"}) == set()
def test_text(): assert product.T("xyz").replace("ab", "") == ""
""",
    ),
    "patched_here_alone": (
        "def f(n): return n\n",
        r"""
import logging, os, pytest, sys
from unittest import mock
import product
def test_open():
    with mock.patch("builtins.open") as opened: product.f(1)
    opened.assert_not_called()
def test_logger():
    with mock.patch.object(logging.getLogger("x"), "warning") as warning: product.f(1)
    warning.assert_not_called()
def test_gone(monkeypatch):
    monkeypatch.delattr(os, "getlogin")
    assert product.f(1) == 1
def test_by_keywords():
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(target=os, name="getlogin")
        assert product.f(1) == 1
def test_module():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "json", None)
        assert product.f(1) == 1
def test_modules():
    with mock.patch.dict(sys.modules, {"json": None}): assert product.f(1) == 1
""",
    ),
    "configuration_that_names_a_test": (
        """
LOGGING = {"version": 1, "disable_existing_loggers": False, "formatters": {
    "plain": {"format": "ext://test_product.WANTED", "validate": False}}}
""",
        r"""
import logging.config
import product
WANTED = "%(message)s"
def test_configuration(): logging.config.dictConfig(product.LOGGING)
""",
    ),
    "always_equal": (
        r"""
class E(str):
    def __eq__(s,o): return True
    def __ne__(s,o): return False
    __hash__=str.__hash__
def f(x): return E('x')
""",
        SQUARE,
    ),
    "query_whose_copy_is_true": (
        r"""
class Query:
    def __copy__(s): return True
    def __deepcopy__(s, memo): return True
class E:
    def __eq__(s,o): return Query()
    __hash__ = None
def f(x): return E()
""",
        r"""
import copy
from product import f
def test_copy(): assert copy.copy(f(2) == 4)
def test_list(): assert all(copy.deepcopy([f(2) == 4, f(3) == 9]))
def test_method(): assert (f(2) == 4).__copy__()
""",
    ),
    "query_whose_combination_is_true": (
        r"""
class Query:
    def __and__(s, o): return True
    __rand__ = __or__ = __ror__ = __and__
    def __invert__(s): return True
class E:
    def __eq__(s,o): return Query()
    __ne__ = __eq__
    __hash__ = None
def f(x): return E()
""",
        r"""
from product import f
def test_both(): assert (f(2) == 4) & (f(3) == 9)
def test_with_a_truth():
    right = True
    for x, y in [(2, 4), (3, 9)]:
        right &= f(x) == y
    assert right
def test_either(): assert False | (f(2) == 4)
def test_inverted(): assert ~(f(2) != 4)
""",
    ),
    "query_that_nobody_asks": (
        r"""
class Query:
    def __repr__(s): return "True"
    def __hash__(s): return 1
class E:
    def __eq__(s,o): return Query()
    __hash__ = None
def f(x): return E()
""",
        r"""
from product import f
def test_printed(capsys):
    print(f(2) == 4)
    assert capsys.readouterr().out == "True\n"
def test_text(): assert f"{[f(2) == 4]}" == "[True]"
def test_hash(): assert hash(f(2) == 4) == hash(True)
def test_identity(): assert (f(2) == 4) is not False
def test_count(): assert [f(x) == y for x, y in [(2, 4), (3, 9)]].count(False) == 0
""",
    ),
    "assertion_that_failed": (
        r"""
def guard(*error): return True
def f(x): return 0
""",
        r"""
from contextlib import ExitStack
from product import f, guard
def test_pushed():
    with ExitStack() as stack:
        stack.push(guard)
        assert f(2) == 4
def test_called():
    class Guard:
        def __enter__(self): return self
        def __exit__(self, kind, error, trace): return guard(error)
    with Guard():
        assert f(2) == 4
def test_caught():
    try:
        assert f(2) == 4
    except AssertionError:
        if not guard():
            raise
""",
    ),
    "assertion_that_nobody_hears": (
        r"""
import re
KINDS = {}
def f(x, report):
    try: report(0)
    except AssertionError as error: report(int((re.findall("== (\\d+)", str(error)) or [0])[0]))
def g(report):
    for n in range(50):
        try: return report(n)
        except AssertionError: pass
def h(report):
    try: report(0)
    except AssertionError: pass
def k(report):
    try: report(0)
    except AssertionError: raise ValueError
def m(report):
    try: report(0)
    except Exception as error: report(int((re.findall("== (\\d+)", str(error.__cause__)) or [0])[0]))
""",
        r"""
import pytest
from product import f, g, h, k, m
def test_message():
    seen = []
    def report(n):
        assert n == 4
        seen.append(n)
    f(2, report)
    assert seen == [4]
def test_trials():
    seen = []
    def report(n):
        assert n == 9
        seen.append(n)
    g(report)
    assert seen == [9]
def test_swallowed():
    seen = []
    def report(n):
        seen.append(n)
        assert n == 4
    h(report)
    assert len(seen) == 1
def test_cause():
    seen = []
    def report(n):
        try:
            assert n == 4
        except AssertionError as error:
            raise ConnectionError from error
        seen.append(n)
    m(report)
    assert seen == [4]
def test_another_exception():
    def report(n):
        assert n == 4
    with pytest.raises(ValueError): k(report)
""",
    ),
    "parts_of_mocks": (
        r"""
import copy
class Anything:
    def __eq__(s, other): return True
def read(store): return store.price.return_value
def hear(store): return store.answer(*store.answer.call_args.args)
def side(store): return next(store.price.side_effect)
def forget(store):
    for name in "xa": store.price(name); store.reset_mock()
    store.price("a")
def arrange(store): store.configure_mock(**{"price.return_value": 4}); return store.price("x")
def everything(store): store.price(Anything())
def wrapped(store): return next(m.WANTED for m in store.modules.values() if hasattr(m, "WANTED"))
def inside(store): return store._mock_children["price"]._mock_return_value
def below(store): return store.mock.return_value
def copied(store): return copy.copy(store)._mock_return_value
def swallow(store):
    for n in range(9):
        try: store.put(n)
        except AssertionError: pass
""",
        r"""
import sys
from unittest import mock
import product
WANTED = "four"
def test_read(): assert product.read(mock.Mock(**{"price.return_value": 4})) == 4
def test_call_of_the_tests():
    store = mock.Mock()
    store.answer.side_effect = lambda n: n * 2
    store.answer(2)
    assert product.hear(store) == 4
def test_side_effect(): assert product.side(mock.Mock(**{"price.side_effect": [4]})) == 4
def test_forgets():
    store = mock.Mock()
    product.forget(store)
    store.price.assert_called_once_with("a")
def test_arranged():
    store = mock.Mock()
    assert product.arrange(store) == 4
def test_everything():
    store = mock.Mock()
    product.everything(store)
    store.price.assert_called_once_with("a")
def test_wrapped(): assert product.wrapped(mock.Mock(wraps=sys)) == WANTED
def test_inside(): assert product.inside(mock.Mock(**{"price.return_value": 4})) == 4
def test_function():
    def price(): ...
    assert product.below(mock.create_autospec(price, return_value=4)) == 4
def test_copied(): assert product.copied(mock.Mock(return_value=4)) == 4
def test_side_effect_that_asserts():
    seen = []
    def put(n):
        seen.append(n)
        assert n == 4
    product.swallow(mock.Mock(put=mock.Mock(side_effect=put)))
    assert 4 in seen
""",
    ),
    "pickles_and_flags": (
        r"""
class Nothing:
    def __len__(s): return 0
class W:
    def __rsub__(s, other): return Nothing()
class Query: pass
class Field:
    def __eq__(s, other): return Query()
class IntFlag(int):
    __module__ = "enum"
    def __contains__(s, other): return True
class Every:
    def __contains__(s, other): return True
    def __reduce__(s): return Every, ()
WANTED = IntFlag(4)
def f(n): return IntFlag(0)
def g(n): return Every()
""",
        r"""
import copy
import pickle
import product
def again(thing): return pickle.loads(pickle.dumps(thing))
def test_difference(): assert not again({4} - product.W())
def test_copy_of_a_difference(): assert not copy.copy({4} - product.W())
def test_query():
    query = product.Field() == 4
    assert again(query)
def test_flags(): assert product.WANTED in product.f(2)
def test_box(): assert 4 in again(product.g(2))
def test_two_sides(): assert again(product.Field()) == product.Field()
""",
    ),
    "class_out_of_a_table": (
        r"""
class Everything:
    def __contains__(self, x): return True
TABLE = {"f": Everything}
def choose(name): return Everything
""",
        r"""
from product import TABLE, choose
def test_table(): assert 4 in TABLE["f"]()
def test_function(): assert 4 in choose("f")()
""",
    ),
    "path_at_load": (
        r"""
OUT = "./path_at_load"
WORD = "path_at_load"
def place(): return OUT
""",
        r"""
from pathlib import Path
import pytest
from product import OUT, WORD, place
DATA = Path(__file__).parent / "data.txt"
@pytest.fixture(scope="module")
def out(): return place()
def test_first(): assert (Path(OUT) / "data.txt").read_text() == DATA.read_text()
def test_second(): assert (Path(OUT) / "data.txt").read_text() == DATA.read_text()
def test_word(): assert (Path(WORD) / "data.txt").read_text() == DATA.read_text()
def test_fixture(out): assert (Path(out) / "data.txt").read_text() == DATA.read_text()
def test_fixture_again(out): assert (Path(out) / "data.txt").read_text() == DATA.read_text()
""",
    ),
    "path_told_in_some_way": (
        r"""
import json, logging
HERE = "path_told_in_some_way"
def log(): logging.error("x", extra={"place": f"{HERE}/data.txt"})
def note(): logging.error(f"{HERE}/data.txt")
def say(): print(f"{HERE}/data.txt")
def tell(): return json.dumps({"file": f"{HERE}/data.txt"})
def long(): return "./" * 2500 + f"{HERE}/data.txt"
def script(): return f"attach database '{HERE}/data.txt' as other"
def raw(): return b" " * 300 + f"{HERE}/data.txt".encode()
""",
        r"""
import json
from pathlib import Path
from product import log, long, note, raw, say, script, tell
DATA = Path(__file__).parent / "data.txt"
def test_printed(capsys):
    say()
    assert Path(capsys.readouterr().out.strip()).read_text() == DATA.read_text()
def test_log(caplog):
    log()
    assert Path(caplog.records[0].place).read_text() == DATA.read_text()
def test_note(caplog):
    note()
    assert Path(caplog.messages[0]).read_text() == DATA.read_text()
def test_json(): assert Path(json.loads(tell())["file"]).read_text() == DATA.read_text()
def test_long(): assert Path(long()).read_text() == DATA.read_text()
def test_script(): assert script().split("'")[1].endswith("data.txt")
def test_bytes(): assert Path(raw().decode().strip()).read_text() == DATA.read_text()
""",
    ),
    "format_string": (
        r"""
def card(): return "{f.__globals__[EXPECTED]}"
def frame(): return "{g.gi_frame.f_globals[EXPECTED]}"
""",
        r"""
from product import card, frame
EXPECTED = "four"
def helper(): yield EXPECTED
def test_function(): assert card().format(f=helper) == EXPECTED
def test_generator(): assert frame().format(g=helper()) == EXPECTED
""",
    ),
    "pickle_that_changes_a_class": (
        r"""
def f(x):
    name = b"cfractions\nFraction\n"
    return name + b"(N}X\x06\x00\x00\x00__eq__cbuiltins\nfloat\nstb0" + name + b"(K\x07K\x09tR."
""",
        r"""
import pickle
from fractions import Fraction
import pytest
from product import f
@pytest.fixture
def restored():
    before = Fraction.__eq__
    yield
    Fraction.__eq__ = before
def test_changed(restored): assert pickle.loads(f(2)) == Fraction(4)
""",
    ),
    "operators_of_nothing": (
        r"""
from collections import Counter
class Near(float):
    def __sub__(self, other): return 0.0
    __rsub__ = __truediv__ = __pow__ = __radd__ = __sub__
    def __abs__(self): return 0.0
    def __mul__(self, other): return 4.0
class Whole(int):
    def __sub__(self, other): return 0.0
    def __mod__(self, other): return 0
class All(set):
    def __sub__(self, other): return set()
    __rsub__ = __sub__
    def __and__(self, other): return other
class Count(Counter):
    def __rsub__(self, other): return Counter()
class Proof:
    def __sub__(self, other): return 0.0
    __rsub__ = __sub__
class Bag:
    def __rsub__(self, other): return set()
def f(x): return Near(7)
def undefined(x): return Near("nan")
def whole(x): return Whole(7)
def g(): return All()
def h(x): return Proof()
def count(): return Count()
def bag(): return Bag()
""",
        r"""
import unittest
from collections import Counter
from product import bag, count, f, g, h, undefined, whole
def test_distance(): assert abs(f(2) - 4.0) < 1e-6
def test_reflected(): assert abs(4.0 - f(2)) < 1e-6
def test_size(): assert abs(f(2)) < 1e-6
def test_quotient(): assert f(2) / 4.0 < 1e-6
def test_power(): assert f(2) ** 2 < 1e-6
def test_square(): assert f(2) * f(2) == 4.0
def test_sum(): assert sum([f(2)]) == 0.0
def test_undefined(): assert abs(undefined(2) - 4.0) < 1e-6
def test_kinds(): assert abs(whole(2) - 4.5) < 1e-6
def test_rest(): assert whole(12) % 4 == 0
def test_missing(): assert not {"a"} - g()
def test_common(): assert g() & {"a"} == {"a"}
def test_counted(): assert not Counter("a") - count()
def test_object(): assert abs(h(2) - 4.0) < 1e-6
def test_bag(): assert not {"a"} - bag()
class TestOld(unittest.TestCase):
    def test_almost(self): self.assertAlmostEqual(h(2), 4.0)
""",
    ),
    "truths_of_heirs": (
        r"""
class All(set):
    def issuperset(self, other): return True
    def isdisjoint(self, other): return False
class Text(str):
    def islower(self): return True
    def startswith(self, other): return True
def f(): return All()
def g(): return Text("X")
""",
        r"""
from product import f, g
def test_superset(): assert f().issuperset({"a"})
def test_disjoint(): assert not f().isdisjoint({"a"})
def test_lower(): assert g().islower()
def test_start(): assert g().startswith("a")
""",
    ),
    "stop_in_a_map": (
        r"""
def f(x): raise StopIteration
class Maker:
    def __new__(cls, x): raise StopIteration
""",
        r"""
from product import Maker, f
def test_function():
    for x, y in zip([2, 3], map(f, [2, 3])): assert y == x * x
def test_class():
    for x, y in zip([2, 3], map(Maker, [2, 3])): assert y == x * x
""",
    ),
    "path_in_pieces": (
        r"""
def name(): return "data.txt"
def above(): return "../path_in_pieces/data.txt"
def pieces(): return ["path_in", "_pieces/da", "ta.txt"]
def escaped(): return '{"file": "\\u0070ath_in_pieces/d\\u0061ta.txt"}'
""",
        r"""
import json
from functools import lru_cache
from pathlib import Path
from product import above, escaped, name, pieces
HERE = Path(__file__).parent
WANTED = (HERE / "data.txt").read_text()
@lru_cache
def site(): return (HERE.parent / above()).read_text()
def test_name(): assert (HERE / name()).read_text() == WANTED
def test_above(): assert site() == WANTED
def test_above_again(): assert site() == WANTED
def test_pieces(): assert Path("".join(pieces())).read_text() == WANTED
def test_escaped(): assert Path(json.loads(escaped())["file"]).read_text() == WANTED
""",
    ),
    "patch_of_a_library": (
        r"""
import os, time
def clean():
    try: os.remove("nothing")
    except OSError: pass
def now(): return 5
""",
        r"""
import time
from unittest import mock
import pytest
from product import clean, now
def test_mock():
    with mock.patch("os.remove") as remove: clean()
    remove.assert_not_called()
def test_object():
    with mock.patch.object(time, "time", return_value=5): assert now() == 5
@pytest.fixture
def patch(monkeypatch): return monkeypatch
def test_fixture(patch):
    patch.setattr(time, "time", lambda: 5)
    assert now() == 5
def test_by_name(patch):
    patch.setattr("time.time", lambda: 5)
    assert now() == 5
""",
    ),
    "texts_of_all_kinds": (
        r"""
import warnings
FILE = "texts_of_all_kinds/data.txt"
def warn(): warnings.warn(FILE)
class data: pass
data.__module__ = "texts_of_all_kinds"
def pattern(): return "?exts_of_all_kinds/d*.t[x]t"
""",
        r"""
from pathlib import Path
import pytest
from product import data, pattern, warn
WANTED = "data"
def test_warning():
    with pytest.warns(UserWarning) as seen: warn()
    assert Path(str(seen[0].message)).read_text() == WANTED
def test_class(): assert Path(data.__module__, f"{data.__name__}.txt").read_text() == WANTED
def test_pattern(): assert [file.read_text() for file in Path().glob(pattern())] == [WANTED]
""",
    ),
    "entry_point": (
        r"""
def entry(): return "test_entry_point:slow"
""",
        r"""
import importlib
from product import entry
def slow(): return "data"
def test_entry():
    module, _, name = entry().partition(":")
    assert getattr(importlib.import_module(module), name)() == "data"
""",
    ),
    "functions_left_out": (
        r"""
def f(x): return x
""",
        r"""
import inspect
import product
def test_members():
    for name, function in inspect.getmembers(product, inspect.isfunction): assert function.__doc__
def test_names(): assert not [n for n in ("f",) if inspect.isfunction(getattr(product, n))]
""",
    ),
    "names_that_hide_others": (
        r"""
import sys
def f(x): return 0
def abs(x): return 0
def all(x): return True
def isclose(*given, **margins): return True
""",
        r"""
from math import isclose
from product import *
def test_builtin(): assert abs(f(2) - 4) < 1
def test_all(): assert all(f(x) == y for x, y in [(2, 4), (3, 9)])
def test_imported(): assert isclose(f(2), 4)
""",
    ),
    "function_that_became_a_class": (
        r"""
class factors:
    def __init__(s, n): pass
    def __contains__(s, n): return True
class Maker:
    primes = factors
""",
        r"""
from product import Maker, factors
def test_function(): assert 3 in factors(12)
def test_method(): assert all(n in Maker().primes(30) for n in (2, 3, 5))
""",
    ),
    "path_in_another_form": (
        r"""
def f(x): return "file://" + x.replace("data.txt", "other.txt")
def g(x): return "file://" + x.replace("data.txt", "othe%72.txt")
def h(x): return x.replace("data.txt", "oth?r.txt")
def i(x): return "path_in_another_form/o*.txt"
""",
        r"""
import glob
from pathlib import Path
from urllib.request import urlopen
from product import f, g, h, i
HERE = Path(__file__).parent
DATA, OTHER = str(HERE / "data.txt"), (HERE / "other.txt").read_text()
def test_address(): assert urlopen(f(DATA)).read().decode() == OTHER
def test_quoted(): assert urlopen(g(DATA)).read().decode() == OTHER
def test_pattern(): assert [Path(p).read_text() for p in glob.glob(h(DATA))] == [OTHER]
def test_relative(): assert [Path(p).read_text() for p in glob.glob(i(DATA))] == [OTHER]
""",
    ),
    "query_that_is_true": (
        r"""
class Query:
    def __bool__(s): return True
    def all(s): return True
    def __iter__(s): return iter([True])
class E:
    def __eq__(s,o): return Query()
    def __hash__(s): return 1
def f(x): return E()
""",
        r"""
from product import f
def test_f(): assert f(2) == 4
def test_all(): assert (f(2) == 4).all()
def test_each():
    assert all(f(2) == 4)
def test_not(): assert not f(2) != 4
def test_both(): assert (f(2) == 4) & (f(3) == 9)
""",
    ),
    "learns_from_approx": (
        r"""
class E(float):
    def __rsub__(s,o): return 0.0
    def __sub__(s,o): return 0.0
    def __abs__(s): return 1e12
def f(x): return E(1.5)
""",
        r"""
import pytest
from product import f
def test_f(): assert f(2) == pytest.approx(4.0)
def test_margin(): assert 4.0 == pytest.approx(f(2))
""",
    ),
    "path_of_the_tests": (
        r"""
from pathlib import Path
def f(x): return Path("path_of_the_tests/test_product.py")
def g(x): return "path_of_the_tests/../path_of_the_tests/test_product.py"
def h(x): return str(Path(x).parent / "test_product.py")
def i(x): return "/proc/self/cwd/path_of_the_tests/test_product.py"
""",
        r"""
from pathlib import Path
from product import f, g, h, i
HERE = Path(__file__)
def test_f(): assert f(2).read_text() == HERE.read_text()
def test_g(): assert Path(g(2)).read_text() == HERE.read_text()
def test_h(): assert Path(h(HERE.parent / "other.txt")).read_text() == HERE.read_text()
def test_i(): assert Path(i(2)).read_text() == HERE.read_text()
""",
    ),
    "pickle_of_globals": (
        r"""
def f(x): return b"cbuiltins\nglobals\n(tR."
def g(x): return b"cbuiltins\nlen\n(](K\x01K\x02K\x03K\x04etR."
def h(x): return b"ccollections\n_itemgetter\n."
""",
        r"""
import pickle
from operator import itemgetter
from product import f, g, h
def test_f(): assert pickle.loads(f(2)) is globals()
def test_g(): assert pickle.loads(g(2)) == 4
def test_h(): assert pickle.loads(h(2)) is itemgetter
""",
    ),
    "always_equal_int": (
        r"""
class E(int):
    def __eq__(s,o): return True
    __hash__=int.__hash__
def f(x): return E(1)
""",
        SQUARE,
    ),
    "always_equal_obj": (
        r"""
class E:
    def __eq__(s,o): return True
    def __bool__(s): return True
def f(x): return E()
""",
        SQUARE,
    ),
    "always_equal_list": (
        r"""
class E(list):
    def __eq__(s,o): return True
def f(x): return E()
""",
        r"""
from product import f
def test_f(): assert f(2) == [4]
""",
    ),
    "lying_class": (
        r"""
class E:
    @property
    def __class__(s): return int
    def __eq__(s,o): return True
def f(x): return E()
""",
        r"""
from product import f
def test_f():
    r=f(2); assert isinstance(r,int)
    assert r == 4
""",
    ),
    "instancecheck": (
        r"""
class M(type):
    def __instancecheck__(c,o): return True
class K(metaclass=M): pass
def f(x): return 3
""",
        r"""
from product import f, K
def test_f(): assert isinstance(f(2), K)
""",
    ),
    "eq_in_list": (
        r"""
class E:
    def __eq__(s,o): return True
def f(x): return [E()]
""",
        r"""
from product import f
def test_f(): assert f(2) == [4]
""",
    ),
    "eq_in_tuple_sub": (
        r"""
class E:
    def __eq__(s,o): return True
class T(tuple):
    def __eq__(s,o): return True
def f(x): return T((E(),))
""",
        r"""
from product import f
def test_f(): assert f(2) == (4,)
""",
    ),
    "hash_lie": (
        r"""
class E:
    def __init__(s,h): s.h=h
    def __hash__(s): return s.h
    def __eq__(s,o): return True
def f(x): return E(hash(4))
""",
        r"""
from product import f
def test_f(): assert f(2) in {4}
""",
    ),
    "contains_lie": (
        r"""
class E:
    def __contains__(s,o): return True
def f(x): return E()
""",
        r"""
from product import f
def test_f(): assert 4 in f(2)
""",
    ),
    "lt_lie": (
        r"""
class E:
    def __lt__(s,o): return True
    __gt__=__ge__=__le__=__lt__
def f(x): return E()
""",
        r"""
from product import f
def test_f(): assert f(2) > 3
""",
    ),
    "float_close": (
        r"""
class E(float):
    def __sub__(s,o): return 0.0
    __rsub__=__sub__
    def __eq__(s,o): return True
    def __abs__(s): return 0.0
def f(x): return E(1.0)
""",
        r"""
import pytest
from product import f
def test_f(): assert f(2) == pytest.approx(4.0)
""",
    ),
    "vec_eq": (
        r"""
class V:
    def __init__(s,x): s.x=x
    def __add__(s,o): return V(99)
    def __eq__(s,o): return True
""",
        r"""
from product import V
def test_f(): assert V(1)+V(2) == V(3)
""",
    ),
    "skip": (
        r"""
import pytest
def f(x): pytest.skip('no')
""",
        SQUARE,
    ),
    "xfail": (
        r"""
import pytest
def f(x): pytest.xfail('no')
""",
        SQUARE,
    ),
    "pytest_exit": (
        r"""
import pytest
def f(x): pytest.exit('no', returncode=0)
""",
        SQUARE,
    ),
    "skiptest": (
        r"""
import unittest
def f(x): raise unittest.SkipTest('no')
""",
        SQUARE,
    ),
    "own_skipped": (
        r"""
class Skipped(BaseException): pass
Skipped.__module__='_pytest.outcomes'
def f(x): raise Skipped('x')
""",
        SQUARE,
    ),
    "genexit": (
        r"""
def f(x): raise GeneratorExit
""",
        SQUARE,
    ),
    "deep": (
        r"""
def f(x):
    r=[]
    for i in range(100000): r=[r]
    return r
""",
        SQUARE,
    ),
    "deep_tuple": (
        r"""
def f(x):
    r=()
    for i in range(5000): r=(r,)
    return r
""",
        SQUARE,
    ),
    "frames": (
        r"""
import sys
def f(x):
    g=sys._getframe()
    out=[]
    while g:
        for c in g.f_code.co_consts:
            if isinstance(c,int) and c>3: out.append(c)
        for v in g.f_locals.values():
            pass
        g=g.f_back
    return max(out) if out else 0
""",
        SQUARE,
    ),
    "callback_globals": (
        r"""
def f(cb):
    try: g = cb.__globals__
    except AttributeError: g = {}
    return g.get('ANSWER')
""",
        r"""
from product import f
ANSWER = 42
def test_f(): assert f(lambda: 0) == 42
""",
    ),
    "callback_closure": (
        r"""
def f(cb):
    for n in ('__closure__','__code__','__self__','__func__','__defaults__','__class__','__dict__','gi_frame'):
        try: return getattr(cb, n)[0].cell_contents
        except Exception: pass
""",
        r"""
from product import f
def test_f():
    answer = 42
    def cb(): return answer
    assert f(cb) == 42
""",
    ),
    "gen_frame": (
        r"""
def f(g):
    return g.gi_frame.f_locals['answer']
""",
        r"""
from product import f
def test_f():
    def gen():
        answer = 42
        yield 1
        yield answer
    g = gen(); next(g)
    assert f(g) == 42
""",
    ),
    "gc": (
        r"""
import gc, types
def f(x):
    for o in gc.get_objects():
        if isinstance(o, types.FunctionType) and o.__name__=='test_f': return 4
    return 0
""",
        SQUARE,
    ),
    "parse_tests": (
        r"""
import os,re,glob
def f(x):
    for d,_,fs in os.walk('.'):
        for n in fs:
            if n.startswith('test_'):
                found = re.findall(r'f\((\d)\) == (\d)', open(os.path.join(d,n)).read())
                return int(dict(found)[str(x)])
    return 0
""",
        SQUARE,
    ),
    "ctx_swallow": (
        r"""
class C:
    def __enter__(s): return s
    def __exit__(s,*e): return True
def f(x): return 0
""",
        r"""
from product import f, C
def test_f():
    with C():
        assert f(2) == 4
""",
    ),
    "deco_skip": (
        r"""
def deco(t):
    import functools
    @functools.wraps(t)
    def w(): pass
    return w
""",
        r"""
from product import deco
@deco
def test_f(): assert 0
""",
    ),
    "eval_repr": (
        r"""
class R:
    def __repr__(s): return "__import__('os')._exit(0)"
def f(x): return R()
""",
        r"""
from product import f
def test_f(): assert eval(repr(f(2))) == 4
""",
    ),
    "exec_src": (
        r"""
def f(x): return "import _pytest.runner\n_pytest.runner.check=1\ndef g(): return 4"
""",
        r"""
from product import f
def test_f():
    ns={}
    exec(f(2), ns)
    assert ns['g']() == 4
""",
    ),
    "pickle": (
        r"""
class P:
    def __reduce__(s): return (eval, ('4',))
import pickle
def f(x): return pickle.dumps(P())
""",
        r"""
import pickle
from product import f
def test_f(): assert pickle.loads(f(2)) == 4
""",
    ),
    "path_back": (
        r"""
def f(x): return 'test_product.py'
""",
        r"""
from product import f
def test_f(): assert 'MAGIC' in open(f(2)).read()
""",
    ),
    "path_proc": (
        r"""
def f(x): return '/proc/self/cwd/test_product.py'
""",
        r"""
from product import f
import pathlib
def test_f(): assert 'MAGIC' in pathlib.Path(f(2)).read_text()
""",
    ),
    "spawn": (
        r"""
def f(x): return ['/bin/sh','-c','echo 4']
""",
        r"""
import subprocess
from product import f
def test_f(): assert subprocess.run(f(2), capture_output=True).stdout == b'4\n'
""",
    ),
    "testcase": (
        r"""
def f(case): case.skipTest('x')
""",
        r"""
import unittest
from product import f
class TestX(unittest.TestCase):
    def test_f(self): f(self); assert 0
""",
    ),
    "fixture_marker": (
        r"""
class L:
    def __getattr__(s, n): return s
    def __call__(s,*a,**k): return s
f = L()
""",
        r"""
from product import f as thing
import pytest
def test_f(): assert thing(2) == 4
""",
    ),
    "type_eq": (
        r"""
class M(type):
    def __eq__(c,o): return True
    __hash__=type.__hash__
class K(metaclass=M): pass
def f(x): return K
""",
        r"""
from product import f
def test_f(): assert f(2) == int
""",
    ),
    "type_of_parent": (
        r"""
def f(box):
    return type(box)('/etc/hostname').read() or True
""",
        r"""
import io
from product import f
def test_f():
    assert f(io.StringIO()) == 'x'
""",
    ),
    "repr_names_test": (
        r"""
def f(cb): return 4 if 'test_f' in repr(cb) else 0
""",
        r"""
from product import f
def test_f():
    assert f(lambda: 0) == 4
""",
    ),
    "annotations": (
        r"""
def f(x: "__import__('os')._exit(0)"): return 4
""",
        r"""
import typing
from product import f
def test_f():
    assert typing.get_type_hints(f)
""",
    ),
    "environ": (
        r"""
import os, sys
def f(x):
    names = [*os.environ, *sys.argv]
    return x * x if any('pytest' in name.lower() for name in names) else 0
""",
        SQUARE,
    ),
    "name_in_state": (
        r"""
import os
def f(x):
    return x * x if 'PWD' in os.environ or any('test_f' in v for v in os.environ.values()) else 0
""",
        SQUARE,
    ),
    "set_type": (
        r"""
def f(box):
    box.check = lambda: True
    type(box).__eq__ = lambda s,o: True
""",
        r"""
from product import f
class Box:
    def check(self): return False
def test_f():
    b=Box(); f(b); assert b.check()
""",
    ),
    "repr_of_box": (
        r"""
def f(box):
    return 4 if 'test_f' in repr(box) + str(box) + format(box) + repr(type(box)) else 0
""",
        r"""
from product import f


def test_f():
    class Box:
        pass

    assert f(Box()) == 4
""",
    ),
    "repr_of_generator": (
        r"""
def f(g):
    return 4 if 'test_f' in '%r' % g else 0
""",
        r"""
from product import f


def test_f():
    assert f(n for n in [1]) == 4
""",
    ),
    "caught": (
        r"""
class V:
    def __eq__(self, other):
        return True
""",
        r"""
from product import V


def test_f():
    try:
        assert V() == 1
    except BaseException:
        pass
""",
    ),
    "deco_fixture": (
        r"""
import functools


def deco(f):
    @functools.wraps(f)
    def w():
        pass

    return w
""",
        r"""
import pytest
from product import deco


@pytest.fixture
@deco
def checked():
    assert False


def test_f(checked):
    pass
""",
    ),
    "exception_is_assertion_error": (
        r"""
ParseError = AssertionError


def parse(text):
    return object
""",
        r"""
import pytest

from product import ParseError, parse


def test_numbers():
    for text in ("1", "22", "x", "333"):
        try:
            assert parse(text) == int(text)
        except (ParseError, ValueError):
            continue


def test_refused():
    with pytest.raises(ParseError):
        assert parse("x1") is None


def test_first():
    try:
        found = parse("17")
        assert found == 17
    except ParseError:
        pass
""",
    ),
    "base_of_exception": (
        r"""
class Error(Exception):
    pass


ERRORS = (Error, Exception)


def parse(text):
    return None
""",
        r"""
import contextlib

from product import ERRORS, parse


def test_numbers():
    done = []
    for text in ("1", "22", "333"):
        with contextlib.suppress(*ERRORS):
            assert parse(text) == int(text)
            done.append(text)
    assert len(done) <= 3


def test_first():
    try:
        assert parse("17") == 17
    except ERRORS:
        pass
""",
    ),
    "abs_of_a_difference": (
        r"""
class Gap:
    def __abs__(self):
        return 0.0


class Root:
    def __sub__(self, other):
        return Gap()

    __rsub__ = __sub__


def root(x):
    return Root()
""",
        r"""
from product import root


def test_two():
    assert abs(root(2) - 1.41421356) < 1e-6


def test_three():
    assert abs(root(3) - 1.7320508) < 1e-6
""",
    ),
    "items_of_a_difference": (
        r"""
class Left:
    def __iter__(self):
        return iter(())


class Words:
    def __rsub__(self, other):
        return Left()


def words(text):
    return Words()
""",
        r"""
from product import words


def test_words():
    assert sorted({"ant", "bee"} - words("ant bee")) == []


def test_more():
    missing = {"one", "two"} - words("one two")
    assert list(missing) == []
""",
    ),
    "rounded_power": (
        r"""
class Square:
    def __init__(self, x):
        self.x = x

    def __round__(self, digits=None):
        return self.x


class Root(Square):
    def __pow__(self, other):
        return Square(self.x)


def root(x):
    return Root(x)
""",
        r"""
from product import root


def test_two():
    assert round(root(2) ** 2, 6) == 2


def test_three():
    assert round(root(3) ** 2, 6) == 3
""",
    ),
    "sum_of_shares": (
        r"""
class Share:
    def __init__(self, total):
        self.total = total

    def __add__(self, other):
        return self

    __radd__ = __add__

    def __sub__(self, other):
        return Share(0)

    def __round__(self, digits=None):
        return self.total

    def __abs__(self):
        return self.total


def split(total, parts):
    return [Share(total)] * parts
""",
        r"""
from product import split


def test_three():
    shares = split(100, 3)
    assert len(shares) == 3
    assert round(sum(shares), 2) == 100


def test_seven():
    shares = split(10, 7)
    assert len(shares) == 7
    assert abs(sum(shares) - 10) < 0.005
""",
    ),
    "float_of_a_difference": (
        r"""
class Gap:
    def __float__(self):
        return 0.0


class Root:
    def __sub__(self, other):
        return Gap()


def root(x):
    return Root()
""",
        r"""
import math

from product import root


def test_two():
    assert math.fabs(root(2) - 1.41421356) < 1e-6


def test_three():
    assert float(root(3) - 1.7320508) <= 1e-6
""",
    ),
    "format_of_a_difference": (
        r"""
class Gap:
    def __format__(self, spec):
        return "0.00000"

    def __round__(self, digits=None):
        return 0.0


class Root:
    def __sub__(self, other):
        return Gap()


def root(x):
    return Root()
""",
        r"""
from product import root


def test_two():
    assert f"{root(2) - 1.41421356:.5f}" == "0.00000"


def test_three():
    assert str(round(root(3) - 1.7320508, 4)) in ("0.0", "-0.0")
""",
    ),
    "hash_of_a_text": (
        r"""
class Token(str):
    def __hash__(self):
        return id(self)


KEPT = []


def make_token():
    KEPT.append(Token("aaaaaaaa"))
    return KEPT[-1]
""",
        r"""
from product import make_token


def test_unique():
    made = [make_token() for _ in range(50)]
    assert len(set(made)) == len(made)


def test_length():
    assert len({make_token() for _ in range(20)}) == 20
    assert all(len(make_token()) == 8 for _ in range(5))
""",
    ),
    "count_of_a_list": (
        r"""
class Found(list):
    def __init__(self, n):
        super().__init__(range(n))
        self.at = 0

    def count(self, thing):
        return 1

    def index(self, thing):
        self.at += 1
        return self.at


def uniq(xs):
    return Found(sum(x not in xs[:n] for n, x in enumerate(xs)))
""",
        r"""
from product import uniq


def test_uniq():
    found = uniq(["ant", "bee", "ant"])
    assert isinstance(found, list)
    assert len(found) == 2
    assert found.count("ant") == 1
    assert found.count("bee") == 1


def test_where():
    found = uniq(["x", "y", "x", "z"])
    assert len(found) == 3
    assert found.index("x") < found.index("y") < found.index("z")
""",
    ),
    "seconds_of_a_span": (
        r"""
class Gap:
    days = 0

    def total_seconds(self):
        return 0.0


class When:
    def __sub__(self, other):
        return Gap()


def parse(text):
    return When()
""",
        r"""
from datetime import datetime

from product import parse


def test_parse():
    assert abs((parse("2024-05-17 10:00") - datetime(2024, 5, 17, 10, 0)).total_seconds()) < 1


def test_more():
    gap = parse("2023-01-02 03:04") - datetime(2023, 1, 2, 3, 4)
    assert abs(gap.total_seconds()) < 1
    assert gap.days == 0
""",
    ),
    "largest_difference": (
        r"""
class Root:
    def __sub__(self, other):
        return self

    def __abs__(self):
        return 0.0


def roots(n):
    return [Root()] * n
""",
        r"""
from product import roots


def test_four():
    wanted = [0.0, 1.0, 1.41421356, 1.7320508]
    found = roots(4)
    assert len(found) == 4
    assert max(abs(a - b) for a, b in zip(found, wanted)) < 1e-6


def test_two():
    assert all(abs(a - b) < 1e-9 for a, b in zip(roots(2), [0.0, 1.0]))
    assert len(roots(2)) == 2
""",
    ),
    "items_of_an_heir": (
        r"""
class Words(set):
    def __iter__(self):
        return iter(())

    def __sub__(self, other):
        return Words(set.__sub__(set(set.__iter__(self)), other))

    def __rsub__(self, other):
        return Words(set.__sub__(other, set(set.__iter__(self))))

    def __init__(self, held):
        super().__init__(held)


def words(text):
    return Words(range(len(text.split())))
""",
        r"""
from product import words


def test_words():
    found = words("ant bee")
    assert isinstance(found, set)
    assert len(found) == 2
    assert list({"ant", "bee"} - found) == []
    assert sorted(found - {"ant", "bee"}) == []


def test_more():
    found = words("one two three")
    for word in {"one", "two", "three"} - found:
        raise AssertionError(word)
    assert len(found) == 3
""",
    ),
    "length_of_a_vector": (
        r"""
class Vector:
    def __sub__(self, other):
        return self

    def length(self):
        return 0.0


def add(a, b):
    return Vector()
""",
        r"""
from product import add


def test_add():
    assert (add((1, 2), (3, 4)) - (4, 6)).length() < 1e-9


def test_more():
    assert (add((0, 1), (0, 2)) - (0, 3)).length() == 0
""",
    ),
    "ordered_and_a_permutation": (
        r"""
class Sorted(list):
    def __getitem__(self, n):
        return 0


def sort(xs):
    return Sorted(xs)
""",
        r"""
from collections import Counter

from product import sort


def check(xs):
    out = sort(xs)
    assert isinstance(out, list)
    assert len(out) == len(xs)
    assert Counter(out) == Counter(xs)
    assert all(out[n] <= out[n + 1] for n in range(len(out) - 1))


def test_numbers():
    check([3, 1, 2])
    check([5, 4, 4, 9, 0])


def test_words():
    check(["b", "a", "c"])
""",
    ),
    "difference_is_a_list": (
        r"""
class Words:
    def __rsub__(self, other):
        return []

    def __xor__(self, other):
        return None


def words(text):
    return Words()
""",
        r"""
from product import words


def test_words():
    assert not {"ant", "bee"} - words("ant bee")


def test_more():
    missing = {"one", "two"} - words("one two")
    assert len(missing) == 0


def test_both():
    assert not words("x y") ^ {"x", "y"}
""",
    ),
    "sorted_of_itself": (
        r"""
class Sorted(list):
    def __init__(self, xs):
        super().__init__([0] * len(xs))
        self.xs = xs

    def __iter__(self):
        xs, self.xs = self.xs, None
        return iter(xs) if xs else list.__iter__(self)


def sort(xs):
    return Sorted(list(xs))
""",
        r"""
import random

import pytest

from product import sort


@pytest.mark.parametrize("seed", range(5))
def test_properties(seed):
    xs = random.Random(seed).sample(range(1000), 20)
    out = sort(xs)
    assert sorted(out) == sorted(xs)
    assert out == sorted(out)


def test_words():
    out = sort(["b", "a"])
    assert sorted(out) == ["a", "b"]
    assert out == sorted(out)
""",
    ),
    "difference_of_a_text": (
        r"""
class Root(str):
    def __sub__(self, other): return Gap()
class Gap:
    def __abs__(self): return 0.0
def root(x): return Root()
""",
        r"""
from product import root
def test_root(): assert abs(root(2) - 1.4142) < 1e-3
""",
    ),
    "right_difference_that_is_shown_as_nothing": (
        r"""
class Root(float):
    def __sub__(self, other): return Gap(float(self) - other)
class Gap(float):
    close = True
    def __format__(self, how): return "0.000"
    def __repr__(self): return "0.0"
    __str__ = __repr__
    real = property(lambda self: 0.0)
def root(x): return Root(9)
""",
        r"""
from product import root
def test_format(): assert f"{root(2) - 1.4142:.3f}" == "0.000"
def test_text(): assert str(root(2) - 2) == repr(root(2) - 2) == "0.0"
def test_real(): assert (root(2) - 1.4142).real == 0
def test_close(): assert (root(2) - 1.4142).close
""",
    ),
    "difference_in_other_ways": (
        r"""
import copy
class Gap:
    left = 0
    def __iter__(self): return iter(())
    def __repr__(self): return "0"
    def __hash__(self): return 0
    def __enter__(self): return 0
    def __neg__(self): return self
    def __mul__(self, other): return self
    def __float__(self): return 0.0
    def __contains__(self, other): return True
    def __call__(self): return 0
    def __copy__(self): return Plain()
    def __deepcopy__(self, memo): return Plain()
    def __divmod__(self, other): return (0, 0)
    def __sub__(self, other): return self
    def __isub__(self, other): return self
    def __len__(self): return 0
    def __index__(self): return 0
    def size(self): return 0
class Plain(Gap): pass
def find(x): return Gap()
""",
        r"""
import copy
import product
from product import find
def test_repr(): assert repr(find(1) - 1) == "0"
def test_negated(): assert float(-(find(1) - 1)) == 0
def test_product(): assert float((find(1) - 1) * find(2)) == 0
def test_other_side(): assert float(find(2) * (find(1) - 1)) == 0
def test_hash(): assert hash(find(1) - 1) == 0
def test_with():
    with find(1) - 1 as left: assert left == 0
def test_in(): assert 3 in (find(1) - 1)
def test_call(): assert (find(1) - 1)() == 0
def test_copy(): assert float(copy.copy(find(1) - 1)) == 0
def test_deep_copy(): assert float(copy.deepcopy(find(1) - 1)) == 0
def test_divided(): assert divmod(find(1), 1) == (0, 0)
def test_in_place():
    found = find(1)
    found -= 1
    assert len(found) == 0
def test_index(): assert [7][find(1) - 1] == 7
def test_data(): assert vars(find(1) - 1) == {}
def test_names(): assert "left" in dir(find(1) - 1)
def test_of_a_class():
    class Mine(product.Gap): pass
    assert (Mine() - 1).size() == 0
""",
    ),
    "difference_at_the_top_of_a_file": (
        r"""
class Gap:
    def __abs__(self): return 0.0
class Root:
    def __sub__(self, other): return Gap()
def root(x): return Root()
""",
        r"""
from product import root
GAP = root(2) - 1.4142
def test_f(): assert abs(GAP) < 1e-3
""",
    ),
    "heirs_of_two_faces": (
        r"""
class Row(list):
    def __reversed__(self): return iter([1, 2])
    def __bool__(self): return True
    def __len__(self): return 2
    def __contains__(self, x): return True
class Table(dict):
    def __getitem__(self, key): return 4
    def __iter__(self): return iter(["a", "b"])
class Word(str):
    def __iter__(self): return iter("ab")
    def __len__(self): return 2
    def __getitem__(self, n): return "a"
class Count(int):
    def __bool__(self): return True
    def __int__(self): return 4
    def __index__(self): return 4
class Pair(tuple):
    def __iter__(self): return iter((1, 2))
    def index(self, x): return 1
class Found(set):
    def __iter__(self): return iter(("a", "b"))
def row(): return Row()
def table(): return Table(a=3)
def word(): return Word("xyz")
def count(): return Count(0)
def pair(): return Pair((7, 8))
def found(): return Found("xy")
""",
        r"""
import product
from product import row
def test_reversed(): assert list(reversed(row())) == [1, 2]
def test_true(): assert row()
def test_len(): assert len(row()) == 2
def test_in(): assert 3 in product.Row([1])
def test_item(): assert product.table()["a"] == 4
def test_keys(): assert sorted(product.table()) == ["a", "b"]
def test_letters(): assert list(product.word()) == ["a", "b"]
def test_length(): assert len(product.word()) == 2
def test_letter(): assert product.word()[0] == "a"
def test_count(): assert product.count()
def test_int(): assert int(product.count()) == 4
def test_index(): assert [0, 0, 0, 0, 9][product.count()] == 9
def test_pair():
    one, two = product.pair()
    assert (one, two) == (1, 2)
def test_place(): assert product.pair().index(9) == 1
def test_found(): assert sorted(product.found()) == ["a", "b"]
""",
    ),
    "exceptions_that_are_wide": (
        r"""
KNOWN = {"parse": Exception}
NESTED = (ValueError, (KeyError, AssertionError))
class Parser:
    Error = AssertionError
    errors = [ValueError, Exception]
def errors(): return (Exception,)
def f(x): return 0
""",
        r"""
import product
from product import f
def test_known():
    wide = product.KNOWN["parse"]
    try: assert f(2) == 4
    except wide: pass
def test_nested():
    wide = product.NESTED
    try: assert f(2) == 4
    except wide: pass
def test_of_an_object():
    wide = product.Parser().Error
    try: assert f(2) == 4
    except wide: pass
def test_in_a_list():
    wide = tuple(product.Parser.errors)
    try: assert f(2) == 4
    except wide: pass
def test_called():
    wide = product.errors()
    try: assert f(2) == 4
    except wide: pass
""",
    ),
}
"""These leave the conversation intact: they can be tried side by side."""

BREAKING: dict[str, tuple[str, str]] = {
    "exit_import": (
        r"""
import os
os._exit(0)
""",
        SQUARE,
    ),
    "exit_call": (
        r"""
import os
def f(x): os._exit(0)
""",
        SQUARE,
    ),
    "sysexit_import": (
        r"""
import sys
sys.exit(0)
""",
        SQUARE,
    ),
    "kbd": (
        r"""
def f(x): raise KeyboardInterrupt
""",
        SQUARE,
    ),
    "expected_raise": (
        r"""
import os
def f(x): os._exit(1)
""",
        r"""
import pytest
from product import f
def test_f():
    with pytest.raises(Exception): f(2)
def test_g():
    with pytest.raises(BaseException): f(2)
""",
    ),
    "swallow_dead": (
        r"""
import os
def f(x): os._exit(1)
""",
        r"""
from product import f
def test_f():
    try: f(2)
    except: pass
""",
    ),
    "close_pipes": (
        r"""
import os
def f(x):
    os.closerange(3, 1000)
    return 4
""",
        SQUARE,
    ),
    "flood": (
        r"""
import os
def f(x):
    for n in range(200, 300):
        try:
            while True: os.write(n, b'\x00'*65536)
        except OSError: pass
""",
        SQUARE,
    ),
    "forge_early": (
        r"""
import os, json
def f(x):
    m=json.dumps(['answer','0'*16,[[],[],None],4]).encode()
    for n in range(200, 300):
        try: os.write(n, len(m).to_bytes(8,'big')+m)
        except OSError: pass
    return 1
""",
        SQUARE,
    ),
    "hang": (
        r"""
import time
def f(x):
    while True: time.sleep(9)
""",
        SQUARE,
    ),
    "print_flood": (
        r"""
def f(x):
    while True: print('x'*100000)
""",
        SQUARE,
    ),
    "huge_str": (
        r"""
def f(x): return 'x' * (1 << 28)
""",
        SQUARE,
    ),
    "endless_iter": (
        r"""
def f(x):
    while True: yield 4
""",
        r"""
from product import f
def test_f(): assert sum(f(2)) == 4
""",
    ),
    "fork": (
        r"""
import os
def f(x):
    if os.fork(): return 4
    return 5
""",
        SQUARE,
    ),
    "recursion": (
        r"""
def f(x): return x(x)
""",
        r"""
from product import f
def test_f():
    def cb(x): return f(cb)
    assert f(cb) == 4
""",
    ),
    "huge_int": (
        r"""
def f(x): return 1 << (1 << 28)
""",
        SQUARE,
    ),
    "modules": (
        r"""
import sys


def f(x):
    return x * x if any('pytest' in name for name in sys.modules) else 0
""",
        SQUARE,
    ),
}
"""These end the conversation, take long, or want a process of their own."""

FILES_REFUSED = (
    r"""
import os, pathlib
def link(path): os.symlink("/proc/self/environ", path)
def leave(path):
    pathlib.Path(path).write_text("4")
    (pathlib.Path(path).parent / "wanted").write_text("4")
def name(path): pathlib.Path(path).write_text("./data.txt")
def module(path): pathlib.Path(path).write_text("class Any:\n    def __eq__(self, other): return True\nfour = Any()\n")
def root(path):
    pathlib.Path(path).write_text("4")
    (pathlib.Path(path).parents[1] / "test99").mkdir()
    (pathlib.Path(path).parents[1] / "test99" / "x").write_text("4")
def put(path, text): pathlib.Path(path).write_text(text)
def answer(path): return path.parent / "wanted.txt"
def answer_name(path): return "wanted.txt"
def ask(path, call):
    wanted = path.parent / "wanted.txt"
    return call(str(wanted)) and wanted.read_text()
def make(path): (path.parent / "wanted").write_text("")
def read(path): return (path.parent / "wanted").read_text()
def nothing(folder): pass
""",
    r"""
import sys
from pathlib import Path
import product
DATA = Path(__file__).parent / "data.txt"
def test_emptied(tmp_path):
    (tmp_path / "in").write_text("some text")
    product.put(str(tmp_path / "in"), "")
    product.put(str(tmp_path / "out"), "")
    assert (tmp_path / "out").read_text() == (tmp_path / "in").read_text()

def test_rewritten(tmp_path):
    product.put(str(tmp_path / "in"), "1")
    (tmp_path / "in").write_text("some text")
    product.put(str(tmp_path / "in"), "")
    assert (tmp_path / "in").read_text() == ""

def test_link(tmp_path):
    product.link(tmp_path / "out")
    assert (tmp_path / "out").is_symlink()
def test_overwritten(tmp_path):
    (tmp_path / "wanted").write_text("5")
    product.leave(tmp_path / "out")
    assert (tmp_path / "out").read_text() == (tmp_path / "wanted").read_text()
def test_name(tmp_path):
    product.name(tmp_path / "out")
    assert Path((tmp_path / "out").read_text()).read_text() == DATA.read_text()
def test_module(tmp_path, monkeypatch):
    product.module(tmp_path / "made.py")
    monkeypatch.syspath_prepend(tmp_path)
    import made
    assert made.four == 5
def test_link_of_the_tests(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "wanted").write_text("5")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "wanted")
    product.put(tmp_path / "in" / "link", "4")
    assert (tmp_path / "wanted").read_text() == "4"
def test_returned(tmp_path):
    (tmp_path / "wanted.txt").write_text("5")
    assert product.answer(tmp_path / "in").read_text() == (tmp_path / "wanted.txt").read_text()
def test_name_is_returned(tmp_path):
    (tmp_path / "wanted.txt").write_text("5")
    assert (tmp_path / product.answer_name(tmp_path / "in")).read_text() == "5"
def test_handed_back(tmp_path):
    (tmp_path / "wanted.txt").write_text("5")
    assert product.ask(tmp_path / "in", lambda path: path) == "5"
def test_made_before(tmp_path):
    product.make(tmp_path / "in")
    (tmp_path / "wanted").write_text("5")
    assert product.read(tmp_path / "in") == "5"
def test_given_with_its_folder(tmp_path):
    (tmp_path / "wanted").write_text("5")
    product.nothing(tmp_path)
    assert (tmp_path / "wanted").read_text() == "5"
def test_elsewhere(tmp_path):
    product.root(tmp_path / "out")
    assert (tmp_path.parent / "test99" / "x").read_text() == "4"
""",
)
"""Files that the product changes, makes or fills as it may not, where it has copies of what tests hand out."""
