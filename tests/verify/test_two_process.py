"""Two processes: what crosses comes back the same, honest projects run there, and rooms are divided."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import ipaddress
import json
import math
import sys
import time
import types
import zoneinfo
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.child.two_process import codec
from jumar.child.two_process.environment import clocks
from jumar.core.state.settings import Suite
from jumar.runners.pytest import plugin
from jumar.verify.two_process import run_two_processes, separate_product
from support.judging.real_verifier import Court
from support.judging.two_process_verifier import SHORT, green, outcomes, reported, run_bodies
from support.processes.sandboxes import s3

PROJECT = Path(__file__).parent / "two_process_project"
"""A small honest project that does what real ones do: the code under test, and its tests."""

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.complex_numbers(allow_nan=False)
    | st.dates()
    | st.datetimes(timezones=st.none() | st.just(dt.UTC))
    | st.timedeltas()
    | st.uuids()
    | st.fractions()
    | st.decimals(allow_nan=False)
    | st.sampled_from([int, dict, ValueError, ..., NotImplemented, dt.date, decimal.Decimal]),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


def sides() -> tuple[Any, Any]:
    """Both ends, without what carries things."""
    one, other = codec.Codec(0), codec.Codec(1)
    one.tables = other.tables = Nothing()
    return one, other


class Nothing:
    """Knows no thing."""

    def holds(self, number: int) -> bool:
        assert number >= 0
        return False

    def note_known(self, thing: object) -> None:
        """Nobody hears of it."""


def crossed(value: object) -> object:
    one, other = sides()
    one.list_changes()
    return other.decode(json.loads(json.dumps(one.encode(value))))


def kinds(value: object) -> object:
    """The types in *value*, so that True is not 1."""
    if isinstance(value, list | tuple):
        return (type(value), [kinds(item) for item in value])
    if isinstance(value, dict):
        return {key: kinds(item) for key, item in value.items()}
    return type(value)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(PLAIN)
def test_values_cross_as_what_they_are(value: object) -> None:
    there = crossed(value)

    assert there == value
    assert kinds(there) == kinds(value)


@pytest.mark.parametrize(
    "value",
    [
        collections.OrderedDict(b=1, a=2),
        collections.Counter("aab"),
        collections.deque([1, 2]),
        collections.defaultdict(list, a=[1]),
        {1, 2},
        frozenset((1, 2)),
        bytearray(b"x"),
        range(1, 9, 2),
        slice(1, None, 2),
        -math.inf,
        -0.0,
        1 << 4000,
        "\ud800",
    ],
    ids=repr,
)
def test_rarer_values_cross_as_well(value: object) -> None:
    there = crossed(value)

    assert there == value
    assert (type(there), repr(there)) == (type(value), repr(value))


@pytest.mark.parametrize(
    "value",
    [
        ipaddress.ip_address("192.0.2.1"),
        ipaddress.ip_network("2001:db8::/32"),
        zoneinfo.ZoneInfo("UTC"),
        dt.datetime(2026, 1, 2, tzinfo=zoneinfo.ZoneInfo("UTC")),
        types.MappingProxyType({"a": 1}),
        {"a": 1}.keys(),
        {"a": 1}.items(),
    ],
    ids=repr,
)
def test_values_of_the_library_cross_as_what_they_are_made_from(value: object) -> None:
    there = crossed(value)

    assert there == value
    assert type(there) is type(value)


def test_a_view_shows_what_is_in_its_dict_later() -> None:
    one, other = sides()
    held = {"a": 1}
    one.list_changes()
    keys = other.decode(one.encode(held.keys()))
    one.settle()
    held["b"] = 2
    other.apply(one.list_changes())

    assert keys == {"a", "b"}


@pytest.mark.parametrize("form", [["keys", [1]], ["mappingproxy", [1]], ["ZoneInfo", ["../passwd"]], ["Popen", ["ls"]]])
def test_what_is_no_value_of_the_library_is_none(form: list[object]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        sides()[0].decode(["v", *form])


def test_a_container_is_one_thing_on_both_sides_and_what_one_changes_the_other_sees() -> None:
    one, other = sides()
    inner: list[object] = [1]
    outer = {"inner": inner, "again": inner}
    one.list_changes()
    there: Any = other.decode(one.encode(outer))
    one.settle()
    assert there["inner"] is there["again"]

    there["inner"].append(there)
    one.apply(other.list_changes())
    other.settle()

    assert inner[1] is outer
    assert other.list_changes() == one.list_changes() == []
    inner.clear()
    other.apply(one.list_changes())
    assert there["inner"] == []


def test_a_container_that_nobody_refers_to_is_forgotten_once_its_changes_were_told() -> None:
    one, other = sides()
    one.list_changes()
    mine: list[int] = []
    there: Any = other.decode(one.encode(mine))
    one.settle()
    there.append(7)
    del there

    changes = other.list_changes()
    assert [*other.remove_abandoned()] == []
    one.apply(changes)
    other.settle()

    assert mine == [7]
    other.list_changes()
    assert len([*other.remove_abandoned()]) == 1
    assert other.shared == {}


@pytest.mark.parametrize(
    "form",
    [
        {},
        [],
        ["?"],
        ["m", 2, "list", []],
        ["m", -1, "list", []],
        ["m", 1, "Exception", []],
        ["m", 1, "list"],
        ["m", 99],
        ["i", "x"],
        ["v", "date", [0, 0, 0]],
        ["v", "system", ["true"]],
        ["n", "eval"],
        ["n", ".eval"],
        ["k", "print"],
        ["z", [["m", 1, "list", []]]],
        ["m", 1, "dict", [["m", 3, "list", []], 1]],
    ],
    ids=str,
)
def test_what_is_no_form_is_no_value(form: object) -> None:
    one, _ = sides()

    with pytest.raises((LookupError, TypeError, ValueError, AttributeError)):
        one.decode(form)


def laid(folder: Path, *paths: str) -> Path:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("")
    return folder


def listed(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_the_product_s_room_has_its_packages_and_nothing_of_the_tests(tmp_path: Path) -> None:
    tests = ("pkg/tests/test_a.py", "pkg/conftest.py", "pkg/tests/expected.json", "tests/test_b.py", "pkg/b_test.py")
    tree = ("pkg/__init__.py", "pkg/a.py", "pkg/b.py", "pkg/data.json", "cases.json", "helper.py", *tests)
    ours, theirs = laid(tmp_path / "ours", *tree), laid(tmp_path / "theirs", *tree)

    paths = separate_product(ours, theirs, lambda path: path == "pkg/a.py", lambda _: True)

    assert paths.product == ["pkg/a.py"]
    assert sorted(paths.shared) == ["pkg/__init__.py", "pkg/b.py", "pkg/data.json"]
    assert listed(theirs) == ["pkg/__init__.py", "pkg/a.py", "pkg/b.py", "pkg/data.json"]
    assert listed(ours) == sorted(set(tree) - {"pkg/a.py"})


def test_a_module_without_a_package_has_a_room_of_its_own(tmp_path: Path) -> None:
    tree = ("app.py", "answers.py", "test_app.py", "answers.json", "notes/app.md")
    ours, theirs = laid(tmp_path / "ours", *tree), laid(tmp_path / "theirs", *tree)

    assert separate_product(ours, theirs, lambda path: path.startswith("app"), lambda _: True) == (["app.py"], [])
    assert listed(theirs) == ["app.py"]


def test_a_module_that_a_candidate_adds_makes_no_folder_its_package(tmp_path: Path) -> None:
    before, added = ("app.py", "cases/a.json", "test_app.py"), ("cases/__init__.py", "new/__init__.py", "new/b.json")
    ours, theirs = laid(tmp_path / "ours", *before, *added), laid(tmp_path / "theirs", *before, *added)
    modules = ("app.py", "cases/__init__.py", "new/__init__.py")

    paths = separate_product(ours, theirs, modules.__contains__, before.__contains__)

    assert paths.shared == ["new/b.json"]
    assert listed(theirs) == ["app.py", "cases/__init__.py", "new/__init__.py", "new/b.json"]


PACKAGE = {
    "pkg/__init__.py": "from .product_core import twice\nfrom . import product_core\nNAME = 'pkg'\n",
    "pkg/product_core.py": "from .plain import ONE\n\n\ndef twice(n):\n    return 2 * n * ONE\n",
    "pkg/plain.py": "ONE = 1\n",
    "pkg/tests/__init__.py": "",
    "click.py": "SENTINEL = object()\n\n\ndef place():\n    return 'room'\n",
    "test_click.py": """
import click

def test_place():
    assert click.place() == "room"
    assert click.SENTINEL is click.SENTINEL and click.SENTINEL != 5
""",
    "pkg/tests/helper.py": "CASES = [(1, 2), (2, 4)]\n",
    "pkg/tests/test_core.py": """
import pytest
import pkg
from pkg import product_core, twice
from pkg.product_core import twice as same
from .helper import CASES

@pytest.mark.parametrize("n, expected", CASES)
def test_twice(n, expected):
    assert twice(n) == expected

def test_same():
    assert twice is same is product_core.twice
    assert pkg.NAME == "pkg"
""",
}


@pytest.mark.slow
def test_an_honest_project_runs_apart_as_it_runs_together(tmp_path: Path) -> None:
    named = {
        "product.py": "product",
        "test_product.py": "tests",
        "product_mocked.py": "mocked",
        "product_kept.py": "kept",
        "test_mocks.py": "mocks",
        "test_pickles.py": "pickles",
    }
    files = {**PACKAGE, **{path: (PROJECT / f"{name}.txt").read_text("utf-8") for path, name in named.items()}}

    report = reported(tmp_path, files)

    assert {name: said for name, said in outcomes(report).items() if said != "passed"} == {}
    assert len(report.results) == 103
    assert green(report, files)


@pytest.mark.slow
def test_what_is_awaited_runs_apart_as_it_runs_together(tmp_path: Path) -> None:
    product, tests = ((PROJECT / f"async_{name}.txt").read_text("utf-8") for name in ("product", "tests"))
    files = {"product.py": product, "test_product.py": tests}

    report = reported(tmp_path, files)

    assert {name: said for name, said in outcomes(report).items() if said != "passed"} == {}
    assert len(report.results) == 13
    assert not report.tied
    assert green(report, files)


@pytest.mark.slow
def test_threads_of_the_product_call_functions_of_the_tests(tmp_path: Path) -> None:
    product, tests = ((PROJECT / f"threads_{name}.txt").read_text("utf-8") for name in ("product", "tests"))
    files = {"product.py": product, "test_product.py": tests}

    report = reported(tmp_path, files)

    assert {name: said for name, said in outcomes(report).items() if said != "passed"} == {}
    assert len(report.results) == 7
    assert green(report, files)


WAITING = """
import threading
from product import double

def test_waits():
    done = threading.Event()

    def work():
        double(2)
        done.set()

    threading.Thread(target=work, daemon=True).start()
    assert done.wait()

def test_after(): assert double(3) == 6
"""


BLOCKING = """
import signal, threading
import product

def test_blocks(): signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
def wait(): threading.Event().wait()
def test_hangs(): product.call(wait)
def test_after(): assert product.call(int) == 0
"""


@pytest.mark.slow
def test_a_time_limit_that_cannot_ring_any_more_rings_in_the_next_test(tmp_path: Path) -> None:
    files = {"product.py": "def call(what): return what()\n", "test_product.py": BLOCKING}

    report = reported(tmp_path, files, suite=msgspec.structs.replace(SHORT, test_timeout_seconds=1.0))

    assert outcomes(report) == {"test_blocks": "passed", "test_hangs": "timeout", "test_after": "passed"}


STUCK = """
import product

def test_stuck(): product.get(9)
def test_after(): assert product.get(0) == 1
"""
GET = """
import threading

def get(seconds):
    threading.Event().wait(seconds)
    return 1
"""


@pytest.mark.slow
def test_code_that_does_not_come_to_an_end_is_gone_for_the_test_that_waited_for_it(tmp_path: Path) -> None:
    suite = msgspec.structs.replace(SHORT, test_timeout_seconds=1.0)

    report = reported(tmp_path, {"product.py": GET, "test_product.py": STUCK}, suite=suite)

    assert report.lost == "test_product.py::test_stuck", "those after it run again"
    assert outcomes(report) == {"test_stuck": "timeout", "test_after": "failed"}, "the second one does not wait"


@pytest.mark.slow
def test_a_test_that_waits_for_a_thread_of_its_own_which_cannot_ask_is_given_up_soon(tmp_path: Path) -> None:
    files = {"product.py": "def double(n): return 2 * n\n", "test_product.py": WAITING}
    suite = Suite(timeout_seconds=100.0, test_timeout_seconds=80.0)

    report = reported(tmp_path, files, suite=suite)

    assert outcomes(report) == {"test_waits": "timeout", "test_after": "passed"}
    assert max(result.duration_ms for result in report.results) < 1000 * suite.test_timeout_seconds / 2


@pytest.mark.slow
def test_what_a_comparison_would_hand_out_is_no_excuse(tmp_path: Path) -> None:
    product = "class Liar:\n    __eq__ = lambda self, other: True\n\ndef root(n): return Liar()\n"
    tests = "import pytest\nfrom product import root\n\ndef test_root(): assert root(9) == pytest.approx(3)\n"

    report = reported(tmp_path, {"product.py": product, "test_product.py": tests})

    assert outcomes(report) == {"test_root": "failed"}
    assert report.tied == ()


CLOCK = """
import datetime
import time
from datetime import date

def today(): return date.today()
def now(): return datetime.datetime.now()
def here(): return datetime.datetime.now(datetime.timezone.utc).astimezone()
def seconds(): return time.time()
def is_now(when): return when == datetime.datetime.now() and type(when) is datetime.datetime
def later(when): return when + datetime.timedelta(days=1)
"""

CLOCK_TESTS = """
import datetime
from freezegun import freeze_time
import product

NEW_YEAR = datetime.datetime(2020, 1, 1)

@freeze_time("2020-01-02")
def test_a_stopped_clock():
    assert product.today() == datetime.date(2020, 1, 2)
    assert product.seconds() == 1577923200.0
    assert product.is_now(datetime.datetime.now())
    assert product.later(datetime.datetime.now()) == datetime.datetime(2020, 1, 3)
    assert product.later(datetime.date.today()) == datetime.date(2020, 1, 3)
    assert type(product.now()) is datetime.datetime

def test_the_next_one():
    assert product.today() == datetime.date.today() > datetime.date(2020, 1, 2)
    assert type(product.later(NEW_YEAR)) is datetime.datetime

def test_a_clock_that_is_moved():
    with freeze_time(NEW_YEAR) as clock:
        assert product.now() == NEW_YEAR
        clock.tick(datetime.timedelta(minutes=1))
        assert product.now() == NEW_YEAR + datetime.timedelta(minutes=1)
        clock.move_to("2021-05-06")
        assert product.today() == datetime.date(2021, 5, 6)
        with freeze_time("1999-12-31 23:30", tz_offset=1):
            assert product.now() == datetime.datetime(2000, 1, 1, 0, 30)
        assert product.today() == datetime.date(2021, 5, 6)
    assert product.now() > datetime.datetime(2026, 1, 1)

@freeze_time("2020-01-02 03:04", tick=True)
def test_a_clock_that_goes_on():
    first = product.now()
    assert datetime.datetime(2020, 1, 2, 3, 4) < first < product.now() < datetime.datetime(2020, 1, 2, 3, 5)

@freeze_time("2020-01-02", auto_tick_seconds=15)
def test_a_clock_that_is_moved_by_looks(): assert product.today() == datetime.date(2020, 1, 2)
"""


@pytest.mark.slow
def test_the_clock_that_a_test_sets_is_that_of_the_product_too(tmp_path: Path) -> None:
    suite = msgspec.structs.replace(SHORT, python=sys.executable)  # it has freezegun

    report = reported(tmp_path, {"product.py": CLOCK, "test_product.py": CLOCK_TESTS}, suite=suite)

    moved = "test_a_clock_that_is_moved_by_looks"
    assert {name: said for name, said in outcomes(report).items() if said != "passed"} == {moved: "failed"}
    assert report.tied == (f"test_product.py::{moved}",)


def test_a_library_that_sets_the_clock_has_not_set_it_while_it_is_imported() -> None:
    """`freezegun` imports dateutil, which may be the code under test, and each message asks for the clock."""
    before = {name: sys.modules.pop(name) for name in (clocks.FREEZEGUN,) if name in sys.modules}
    sys.modules[clocks.FREEZEGUN] = types.ModuleType(clocks.FREEZEGUN)
    try:
        assert clocks.read_clock() == ()
    finally:
        del sys.modules[clocks.FREEZEGUN]
        sys.modules.update(before)


BOX = """
class Box:
    def __init__(self, *items): self.items = items
    def __contains__(self, item): return item in self.items
    def __eq__(self, other): return self.items == getattr(other, "items", other)
    def __hash__(self): return hash(self.items)
    def __add__(self, other): return Box(*self.items, other)
    def __enter__(self): return self
    def __exit__(self, *_): return None
    @classmethod
    def load(cls, item): return cls(item)
    def add(self, item):
        self.items += (item,)
        return self
    def list(self): return self
    def tell(self, hear): hear(self)
    def fill(self, into): into.append(self)

def make(): return Box(1)
"""

BOXES = {
    "assert 1 in Box(1)": "passed",
    "assert 1 in Box.load(1)": "failed",
    "with Box(1) as box: assert 1 in box": "passed",
    "box = Box(1); box.add(2); assert 2 in box": "passed",
    "assert 1 in make()": "failed",
    "assert 1 in Box(1).list()": "failed",
    "box = Box(1); found = box.list(); assert 1 in found": "failed",
    "assert Box(1) == Box(1)": "own",
    "assert Box(1) != 'a'": "own",
    "assert len({Box(1), Box(1)}) == 1": "own",
    "assert (Box(1) + 2).items == (1, 2)": "own",
    "assert Box.load(1) == (1,)": "failed",
    "assert Box.load(1) == Box(1)": "own",
    "assert Box.load(1) == Box.load(1)": "failed",
    "got = []; Box(1).tell(got.append); assert 1 in got[0]": "failed",
    "got = []; Box(1).fill(got); assert 1 in got[0]": "failed",
    "assert make() == (1,)": "failed",
    "assert make() == make()": "failed",
}
"""Body of a test -> its outcome in two processes; own: it failed, and compares what it made itself."""


@pytest.mark.slow
def test_what_a_test_made_itself_is_its_own_until_the_product_hands_it_back(tmp_path: Path) -> None:
    report = run_bodies(tmp_path, BOX, "from product import Box, make", BOXES)

    own = {name.rpartition("::")[2] for name in report.matched}
    said = {
        name: "own" if outcome == "failed" and name in own else outcome for name, outcome in outcomes(report).items()
    }
    assert said == {f"test_{n}": outcome for n, outcome in enumerate(BOXES.values())}


SWALLOWING = """
class Suppress:
    def __init__(self, *kinds): self.kinds = kinds
    def __enter__(self): return self
    def __exit__(self, kind, *_): return kind is not None and issubclass(kind, self.kinds)

def text(): return "x"
def fail(): raise KeyError("x")
"""

SWALLOWED = {
    "with Suppress(KeyError): raise KeyError('k')": "passed",
    "with Suppress(KeyError, ZeroDivisionError): {}['k']": "passed",
    "with Suppress(ValueError): int('x')": "passed",
    "with Suppress(ValueError): int(text())": "failed",
    "with Suppress(TypeError): int = text; int('x')": "failed",
    "with Suppress(ValueError): assert int(text()) == 3": "failed",
    "with Suppress(AssertionError): assert text() == 'y'": "failed",
    "with Suppress(KeyError): assert fail() == 3": "failed",
    "with Suppress(KeyError):\n        if text() != 'y': raise KeyError": "failed",
    "with Suppress(KeyError):\n        if text() != 'y': {}['k']": "failed",
    "with Suppress(KeyError):\n        text()\n        raise KeyError(\n            'k')": "passed",
}
"""Body of a test -> its outcome in two processes."""


@pytest.mark.slow
def test_a_context_may_swallow_what_its_body_raises_and_nothing_else(tmp_path: Path) -> None:
    report = run_bodies(tmp_path, SWALLOWING, "from product import Suppress, fail, text", SWALLOWED)

    assert outcomes(report) == {f"test_{n}": said for n, said in enumerate(SWALLOWED.values())}


@pytest.mark.slow
def test_files_of_the_temporary_folder_are_there_for_both(tmp_path: Path) -> None:
    product, tests = ((PROJECT / f"files_{name}.txt").read_text("utf-8") for name in ("product", "tests"))
    files = {"product.py": product, "test_product.py": tests}

    report = reported(tmp_path, files, sandbox=s3())

    assert {name: said for name, said in outcomes(report).items() if said != "passed"} == {}
    assert len(report.results) == 13
    assert not report.tied
    assert green(report, files)


@pytest.mark.slow
def test_names_that_the_tests_hand_over_and_files_of_the_package_may_be_named(tmp_path: Path) -> None:
    product = '''
def pick(file):
    """Pick what is used, with the table in ``pkg/table.dat``."""
    text = file.read()
    return (text if isinstance(text, str) else text.decode()).partition(" = ")[2]
'''
    test = """
import io, helpers
from pkg import pick

def test_text(): assert pick(io.StringIO("use = helpers:slow")) == "helpers:slow"
def test_bytes(): assert pick(io.BytesIO(b"use = helpers:slow")) == "helpers:slow"
def test_docstring(): assert "pkg/table.dat" in pick.__doc__
def test_another(): assert pick(io.StringIO("use = 1")) == "1"
"""
    files = {
        "pkg/__init__.py": product,
        "pkg/table.dat": "1",
        "helpers.py": "def slow(): return 1\n",
        "test_it.py": test,
    }

    report = reported(tmp_path, files, "pkg/__init__.py".__eq__)

    assert set(outcomes(report).values()) == {"passed"}


@pytest.mark.slow
def test_a_test_that_is_too_slow_costs_itself_alone(tmp_path: Path) -> None:
    product = "def apply(f, n=1):\n    return [f() for _ in range(n)]\n"
    test = """
import product, time

def turn():
    while True:
        product.apply(int, 100)

def test_in_the_tests():
    product.apply(lambda: product.apply(turn))

def test_between_them():
    turn()

def test_at_last():
    assert product.apply(int, 2) == [0, 0]
"""
    files = {"product.py": product, "test_product.py": test}

    report = reported(tmp_path, files, suite=msgspec.structs.replace(SHORT, test_timeout_seconds=1.0))

    assert report.lost == ""
    assert [said for said in outcomes(report).values() if said == "passed"] == ["passed"]
    assert outcomes(report)["test_at_last"] == "passed"


@pytest.mark.slow
def test_times_are_not_compared_by_a_zone_of_the_product(tmp_path: Path) -> None:
    zone = """
import datetime

class Zone(datetime.tzinfo):
    def utcoffset(self, when):
        return datetime.timedelta(hours=when.hour)

def now():
    return datetime.datetime(2020, 1, 1, 7, tzinfo=Zone())
"""
    test = "import datetime, product\n\ndef test_now():\n    assert product.now() {}\n"
    midnight = "datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)"
    bodies = [f"== {midnight}", f".isoformat() == {midnight}.isoformat()", f"in {{{midnight}}}", f">= {midnight}"]
    files = {f"test_{number}.py": test.format(body) for number, body in enumerate(bodies)}

    report = reported(tmp_path, {"product.py": zone, **files})

    assert {str(result.outcome) for result in report.results} == {"failed"}
    assert all("how times compare" in result.excerpt or not result.excerpt for result in report.results)
    assert len(report.results) == len(bodies)


@pytest.mark.proof
def test_the_real_tasks_run_apart(data: Path, tmp_path: Path, figure: Any) -> None:
    tasks = [t for t in json.loads((data / "index.json").read_text())["tasks"] if t["language"] == "python"]
    full: list[str] = []
    seconds = 0.0
    for number, task in enumerate(tasks):
        suite = msgspec.structs.replace(SHORT, timeout_seconds=100.0, test_timeout_seconds=10.0)
        suite = msgspec.structs.replace(suite, env={"PYTHONPATH": "src"} if task.get("env") else {})
        began = time.monotonic()
        passed = _passed(data, task, tmp_path / str(number), suite)
        seconds += time.monotonic() - began
        full += [task["id"]] if {*task["F2P"], *task["P2P"]} <= passed else []

    figure("apart-tasks", f"{len(full)} of {len(tasks)} Python tasks run wholly in two processes ({seconds:.0f} s)")
    assert len(full) >= len(tasks) - 1


def _passed(data: Path, task: Mapping[str, Any], folder: Path, suite: Suite) -> set[str]:
    files = {
        path.relative_to(root).as_posix(): path.read_text("utf-8")
        for root in (data / "tasks" / task["id"], data / "solutions" / task["id"])
        for path in root.rglob("*")
        if path.is_file()
    }
    court = Court(folder, suite)
    ids = (*task["F2P"], *task["P2P"])
    question = court.verifier.build_two_process_trial(court.tree(files), ids)
    question = question._replace(product=lambda path: path in task["editable"])
    records, child = anyio.run(run_two_processes, question)
    return {r.id for r in plugin.report(records, child.ended, child.detail).results if r.outcome == "passed"}
