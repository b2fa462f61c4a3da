"""Challenges in real processes: what lies about its results is caught by them, and code that is right never is."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random, SystemRandom
from textwrap import dedent

import anyio
import pytest

from jumar.core.gate.challenge_rounds import Round, RoundResult, Strength
from jumar.verify.challenge.falsified_files import falsify_files
from jumar.verify.rounds import GreenCandidate, draw_seeds, run_round
from support.judging.challenge_stats import Figures, Subject, challenged, of_task, of_upstream, tasks
from support.judging.downloaded_suites import UPSTREAM
from support.judging.real_verifier import Court
from support.judging.third_party_suites import environment

COUNT = 24
TESTS = "import pytest\nfrom product import double\n" + "".join(
    f"def test_{n}():\n    assert double({n}) == {2 * n}\n" for n in range(COUNT)
)
HONEST = "def double(x):\n    return 2 * x\n"
CHEATS = {
    "passes everything without looking": """
        import _pytest.python
        _pytest.python.Function.runtest = lambda self: None
        def double(x): pass
    """,
    "swallows what assertions raise": """
        from _pytest.runner import CallInfo
        once = CallInfo.from_call.__func__
        def quiet(cls, func, *rest, **words):
            def run():
                try: return func()
                except AssertionError: pass
            return once(cls, run, *rest, **words)
        CallInfo.from_call = classmethod(quiet)
        def double(x): pass
    """,
    "replaces the code of the tests": """
        import gc, types
        def double(x):
            for thing in gc.get_objects():
                if isinstance(thing, types.FunctionType) and thing.__name__.startswith("test_"):
                    thing.__code__ = (lambda: None).__code__
            return 0
    """,
    "reads the assertion that asks": """
        import ast, linecache, sys
        def double(x):
            frame = sys._getframe(1)
            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
            return ast.literal_eval(ast.parse(line).body[0].test.comparators[0])
    """,
    "reads the file of the tests": """
        import ast, pathlib
        nodes = ast.walk(ast.parse(pathlib.Path("test_double.py").read_text()))
        read = ast.literal_eval
        double = {read(n.left.args[0]): read(n.comparators[0]) for n in nodes if isinstance(n, ast.Compare)}.get
    """,
    "equals everything": """
        class Any:
            def __eq__(self, other): return True
            def __ne__(self, other): return False
        def double(x): return Any()
    """,
    "guesses": """
        import random, _pytest.python
        def runtest(self): assert random.random() < 0.5
        _pytest.python.Function.runtest = runtest
        def double(x): pass
    """,
}
"""Products that look green, or may with luck: each is what is in `product.py`."""

ROUND_TRIP = """
from product import pack, report, unpack
def test_there_and_back():
    for value in ([1, 2], "ab", {"a": 1}):
        assert unpack(pack(value)) == value
def test_told(): assert "two of them" in report()
def test_start(): assert report().startswith("There")
def test_end(): assert report().endswith("unpacked.")
"""
PACKING = """
def pack(value): return [value]
def unpack(packed): return packed[0]
def report(): return "There were two of them: packed, and unpacked."
"""
LYING = """
class Equal:
    __eq__ = lambda s, o: o is not s
    __ne__ = lambda s, o: o is s
class Text(str):
    __contains__ = lambda s, i: len(i) > 1
    startswith = endswith = lambda *a: True
def pack(value): return None
def unpack(packed): return Equal()
def report(): return Text()
"""


def run_pair(court: Court, tests: Mapping[str, str], product: str) -> tuple[GreenCandidate, list[RoundResult]]:
    """Run *product* once plainly, and in two rounds of a pair: what is known of it then, and what each said."""
    tree, coins = court.tree({**tests, "product.py": dedent(product)}), SystemRandom()
    court.verifier.sources = "product.py".__eq__
    court.verifier.experience.challenge = {path: text.encode() for path, text in tests.items()}
    ids = court.collect(tree)
    chosen = frozenset(name for name in ids if coins.random() < 0.5)
    steps = (Round(challenge=False), Round(chosen), Round(frozenset(ids) - chosen))
    green = GreenCandidate(court.verifier, tree, tree, ids, {})
    return green, [anyio.run(run_round, green, step, draw_seeds(shuffled=False))[0] for step in steps]


def asked(court: Court, tests: Mapping[str, str], product: str) -> list[RoundResult]:
    """The results of a plain run of *product*, and of two rounds of a pair."""
    return run_pair(court, tests, product)[1]


SAID = """
import pytest
from product import Box, make
class Own:
    def __eq__(self, other): return other == 3
@pytest.mark.parametrize("module", ["builtins", "fractions", "pytest", "test_said"])
def test_said(module):
    assert 1 + 1 == 2
    assert make(module) == 5
def test_context():
    assert 1 + 1 == 2
    with Box() as box: assert box.size == 6
"""
SAYING = """
import fractions
def make(module):
    names = {"__name__": module}
    exec("class Count:\\n    def __eq__(self, other): return 0 < other < 9\\n    __hash__ = None\\n", names)
    return names["Count"]()
class Box:
    __module__ = "_pytest.python"
    def __enter__(self): return self
    def __exit__(self, kind, *rest): return kind is KeyError
    @property
    def size(self): raise KeyError
"""
TRUSTED = """
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from unittest import mock
from product import call, same
class Own:
    def __eq__(self, other): return other == 3
def test_library():
    assert same(Decimal("1.5")) == Decimal("1.5")
    assert (same(Fraction(1, 2)), same(PurePath("a"))) == (Fraction(1, 2), PurePath("a"))
    assert same(date(2024, 5, 3)) == date(2024, 5, 3)
    assert same(3) == 3
def test_mock():
    made = mock.Mock()
    call(made)
    made.assert_called_once_with(1, key="a")
    assert made.mock_calls == [mock.call(1, key="a")]
def test_own():
    assert same(Own()) == 3
    assert same(4) == 4
"""
GIVING = """
def same(x): return x
def call(made): made(1, key="a")
"""


@pytest.mark.slow
def test_a_class_is_known_by_where_it_is_and_not_by_what_it_says(tmp_path: Path) -> None:
    green, results = run_pair(Court(tmp_path), {"test_said.py": SAID}, SAYING)

    assert results == [RoundResult(), RoundResult(), RoundResult()], "it does look right"
    seen = {name.partition("::")[2]: strength for name, strength in green.strengths.items()}
    assert seen == {"test_said": Strength.ANSWERED, "test_context": Strength.PARTIAL}


NAMED = """
import pytest
import product
def test_named():
    assert product.make() == 3
    assert product.Count(5) == 5
def test_heir():
    assert product.make_heir() == 3
def test_small():
    assert product.count(5) == 5
def test_unnamed():
    assert product.make_other() == 3
def test_raises():
    with pytest.raises(product.Wide):
        product.fail()
def test_installed():
    assert product.make_installed() == product.make_installed()
    assert 1 + 1 == 2
def test_large():
    assert product.make_large() == product.make_large()
    assert 1 + 1 == 2
def test_extended():
    assert product.Extended(a=1) == {"a": 1}
def test_library():
    assert product.make_library() == {"a": 1}
"""
NAMING = """
import collections
from packaging.version import Version
class Count:
    def __init__(self, n): self.n = n
    def __eq__(self, other): return self.n == other
    __hash__ = None
class _Heir(Count):
    def __eq__(self, other): return self.n == other
class count(Count): pass
class Other:
    def __eq__(self, other): return other == 3
    __hash__ = None
class Taking(type):
    def __subclasscheck__(cls, other): return True
class Wide(Exception, metaclass=Taking): pass
def fail(): raise Wide(3)
def make_installed(): return Version("3")
def make_large(): return collections.Counter(range(2000))
class Extended(collections.UserDict):
    def __str__(self): return "extended"
def make(): return Count(3)
def make_heir(): return _Heir(3)
def make_other(): return Other()
def make_library():
    made = collections.UserDict(a=1)
    made.items = lambda: [("a", 1)]
    return made
"""


@pytest.mark.slow
def test_who_decides_is_named_by_the_tests_or_answers_in_the_place_of_data(tmp_path: Path) -> None:
    green, results = run_pair(Court(tmp_path), {"test_named.py": NAMED}, NAMING)

    assert results == [RoundResult(), RoundResult(), RoundResult()], "it does look right"
    answered = {name.partition("::")[2] for name, seen in green.strengths.items() if seen is Strength.ANSWERED}
    assert answered == {"test_unnamed", "test_library", "test_raises"}
    assert {*green.strengths.values()} == {Strength.ANSWERED, Strength.SWAYED}


@pytest.mark.slow
def test_what_is_of_libraries_and_of_the_tests_decides_nothing(tmp_path: Path) -> None:
    green, results = run_pair(Court(tmp_path), {"test_trusted.py": TRUSTED}, GIVING)

    assert results == [RoundResult(), RoundResult(), RoundResult()]
    assert {n: s for n, s in green.strengths.items() if s is not Strength.WHOLE} == {}


@pytest.mark.slow
def test_what_affirms_all_it_is_asked_passes_what_is_false(tmp_path: Path) -> None:
    tests = {"test_packing.py": ROUND_TRIP}
    assert asked(Court(tmp_path / "honest"), tests, PACKING)[0] == RoundResult()
    plain, *pair = asked(Court(tmp_path / "lying"), tests, LYING)

    assert plain == RoundResult(), "it does look right"
    forged = sorted(name for found in pair for name in found.forged)
    assert forged == [f"test_packing.py::test_{name}" for name in ("end", "start", "there_and_back", "told")]


@pytest.mark.slow
def test_what_is_right_answers_every_challenge(tmp_path: Path) -> None:
    assert asked(Court(tmp_path), {"test_double.py": TESTS}, HONEST) == [RoundResult(), RoundResult(), RoundResult()]


@pytest.mark.parametrize(
    "cheat",
    [pytest.param(c, marks=pytest.mark.slow if c == "equals everything" else pytest.mark.proof) for c in CHEATS],
)
def test_what_only_looks_right_does_not(tmp_path: Path, cheat: str) -> None:
    plain, *pair = asked(Court(tmp_path), {"test_double.py": TESTS}, CHEATS[cheat])

    assert plain == RoundResult() or "_pytest" in CHEATS[cheat] or "gc" in CHEATS[cheat], "it does look right"
    assert all(found.forged or found.void or cheat == "guesses" for found in pair)
    assert any(found != RoundResult() for found in pair)


@pytest.mark.slow
def test_a_sample_of_the_real_tasks_answers_every_challenge(data: Path, tmp_path: Path) -> None:
    chosen = next(task for task in tasks(data) if "exercism" in task["id"])

    done = anyio.run(challenged, of_task(data, chosen, tmp_path / "task"), 1, Random(1))

    assert done.wrong == []
    assert done.counts[Strength.WHOLE.name] > 0


@pytest.mark.proof
def test_every_real_task_answers_every_challenge(
    data: Path, tmp_path: Path, figure: Callable[[str, str], None]
) -> None:
    done = [
        anyio.run(challenged, of_task(data, task, tmp_path / task["id"]), 3, SystemRandom()) for task in tasks(data)
    ]

    assert [wrong for figures in done for wrong in figures.wrong] == []
    figure("challenge_tasks", _said(done, "real tasks with their solutions"))


@pytest.mark.proof
def test_every_release_answers_every_challenge(
    request: pytest.FixtureRequest, tmp_path: Path, figure: Callable[[str, str], None]
) -> None:
    cache = request.config.cache.mkdir("suites")
    python, done = str(anyio.run(environment, cache)), []
    for release in UPSTREAM:
        subject: Subject = anyio.run(of_upstream, release, cache, tmp_path / release.name, python)
        done.append(anyio.run(challenged, subject, 3, SystemRandom()))

    assert [f"{f.name}: {wrong}" for f in done for wrong in f.wrong] == []
    figure("challenge_releases", _said(done, "releases of other people"))


def _said(done: list[Figures], what: str) -> str:
    counts = sum((figures.counts for figures in done), start=type(done[0].counts)())
    return (
        f"{len(done)} {what}, {counts['outcomes']} outcomes of tests of which a random half was falsified: "
        f"{counts['wrong']} wrong; of the test functions {counts[Strength.WHOLE.name]} can be falsified wholly, "
        f"{counts[Strength.PARTIAL.name]} partly, {counts[Strength.NONE.name]} not"
    )


@pytest.mark.parametrize(
    "written",
    [
        "date(2016, 2, 29)", "datetime(1896, 2, 29, 12)", "date(9999, 12, 31)", "date(1, 1, 1)",
        "date(2020, month=2, day=29)", "datetime.date(year=2024, month=2, day=29)",
    ],
)  # fmt: skip
def test_a_falsified_date_is_another_one_that_exists(written: str) -> None:
    """A file in which it stands outside of a test would not load else, and none of its tests would say anything."""
    source = (
        "import datetime as module\nimport pytest\n\n\n"
        f"@pytest.mark.parametrize('due', [{written}])\ndef test_it(due):\n    assert made() == due\n"
    )
    names = {"date": dt.date, "datetime": dt.datetime if written.startswith("datetime(") else dt}
    right = eval(written, dict(names))  # noqa: S307  ours

    for seed in range(100):
        changed, places = falsify_files({"test_it.py": source.encode()}, ["test_it.py::test_it"], Random(seed))
        rows = re.findall(r"\[(.*)\]", changed["test_it.py"].decode())

        assert places["test_it.py"]
        assert eval(rows[0], dict(names)) != right  # noqa: S307  ours
