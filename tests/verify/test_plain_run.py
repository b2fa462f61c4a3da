"""A green says at least what one plain pytest of everything says."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from textwrap import dedent

import anyio
import pytest
from msgspec import structs

from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Cause, Ended
from jumar.ports import Verification
from jumar.process.warm.pool import WarmPool
from jumar.process.warm.starts import WARM, WarmStarts
from jumar.verify.execution import HeldOut
from support.judging.real_verifier import Court
from support.judging.samples import sampled
from support.processes.interpreters import PLAIN_PYTHON
from support.processes.sandboxes import ENVIRON, s3

pytestmark = pytest.mark.slow

SUITE = Suite(timeout_seconds=60, test_timeout_seconds=2, confirm=2, python=PLAIN_PYTHON)


def court_of(folder: Path, base: Mapping[str, str], expected: Sequence[str] = ()) -> Court:
    """A court whose untouched tree is *base*; its tests, or those *expected*, judge."""
    court = Court(folder, SUITE)
    tree = court.tree(base)
    court.collect(tree)
    court.verifier.expected = tuple(expected) or court.verifier.expected
    return court


def judged(court: Court, files: Mapping[str, str]) -> Verification:
    """The verification of *files*."""
    return court.judge(court.tree(files), {}, control=court.verifier.base)


TOTALS = "from calc import total\n\n\ndef test_{0}():\n    assert total([{1}]) == [{1}]\n"
KEPT = "def total(items, seen=[]):\n    seen += items\n    return seen\n"
RIGHT = "def total(items, seen=()):\n    return [*seen, *items]\n"


@pytest.mark.parametrize(
    ("hidden", "code", "accepted"),
    [
        ("test_a.py", KEPT, False),
        ("test_z.py", KEPT, False),
        ("test_z.py", RIGHT, True),
        pytest.param("test_a.py", RIGHT, True, marks=pytest.mark.proof),
    ],
)
def test_held_out_tests_run_in_one_process_with_the_visible_ones(
    tmp_path: Path,
    code: str,
    hidden: str,
    accepted: bool,  # noqa: FBT001
) -> None:
    """A default that is changed passes in each of two processes, for visible tests and for held-out ones."""
    tests = {"test_calc.py": TOTALS.format("one", "1")}
    court = court_of(tmp_path, {"calc.py": "def total(items):\n    return None\n", **tests})
    court.verifier.held_out = HeldOut(court.tree({hidden: TOTALS.format("more", "2")}), (f"{hidden}::test_more",))

    done = judged(court, {"calc.py": code, **tests})

    assert done.verdict.green is accepted
    if hidden == "test_z.py" and not accepted:
        assert done.verdict.void is not None
        assert done.verdict.void.cause is Cause.HELD_OUT
        assert "test_more" not in done.verdict.void.reason


SPYING = """
import pathlib
import random


def total(items):
    beside = sum(1 for path in pathlib.Path(__file__).parent.glob("test_*.py"))
    return items if beside < 2 else [*items, random.random()]
"""


def test_a_visible_test_that_wavers_beside_held_out_ones_is_not_named(tmp_path: Path) -> None:
    """Names of visible tests that waver could tell of held-out ones, bit by bit."""
    tests = {"test_calc.py": TOTALS.format("one", "1")}
    court = court_of(tmp_path, {"calc.py": "def total(items):\n    return None\n", **tests})
    court.verifier.held_out = HeldOut(court.tree({"test_z.py": TOTALS.format("more", "2")}), ("test_z.py::test_more",))

    done = judged(court, {"calc.py": SPYING, **tests})

    assert done.verdict.void is not None
    assert (done.verdict.void.cause, done.verdict.results) == (Cause.HELD_OUT, {})
    assert "test_" not in done.verdict.void.reason


CASES = """
import pytest

import names
from names import *


@pytest.mark.parametrize("name", names.NAMES)
def test_name_is_long(name):
    assert len(name) > 1
"""


@pytest.mark.parametrize(
    ("code", "red", "said"),
    [
        ("NAMES = ['ann', 'bob', 'carl']", (), ""),
        ("NAMES = ['ann', 'bob', 'x']", ("test_names.py::test_name_is_long[ann]",), "test_name_is_long[x], which the"),
        (
            "NAMES = ['ann', 'bob']\ndef test_own():\n    assert not NAMES",
            ("test_names.py::test_name_is_long[ann]",),
            "::test_own, which the untouched tree does not have",
        ),
    ],
)
def test_a_test_that_only_the_code_makes_has_to_pass(
    tmp_path: Path, code: str, red: tuple[str, ...], said: str
) -> None:
    court = court_of(tmp_path, {"names.py": "NAMES = ['ann', 'bob']\n", "test_names.py": CASES})

    done = judged(court, {"names.py": f"{code}\n", "test_names.py": CASES})

    assert done.verdict.void is None
    assert done.verdict.red_ids == red
    assert said in "".join(done.verdict.results[i].excerpt for i in red)


def test_ids_that_change_from_run_to_run_are_those_of_a_function(tmp_path: Path) -> None:
    tests = {"test_names.py": CASES.replace("names.NAMES)", "names.NAMES, ids=names.call)")}
    code = "import itertools, uuid\n\n\ndef call(name):\n    return name if name == 'ann' else uuid.uuid4().hex\n"
    court = court_of(tmp_path, {"names.py": f"{code}\nNAMES = ['ann']\n", **tests})

    wrong, right = (judged(court, {"names.py": f"{code}\nNAMES = {['ann', n]}\n", **tests}) for n in ("x", "bob"))

    assert (wrong.verdict.red_ids, right.verdict.green) == (("test_names.py::test_name_is_long[ann]",), True)


NEW = {
    "inherited": (
        "from checks import Checks\n\n\nclass TestBye(Checks):\n    function = staticmethod(bye)\n",
        "TestBye::test_bye",
    ),
    "imported": ("from checks import *\n", "test_bye"),
    "made in a loop": ("for word in ['ann', 'bob']:\n    exec(f'def test_{word}(): assert bye()')\n", "test_ann"),
    "called otherwise": ("def check_bye():\n    assert bye()\n", "check_bye"),
    "made by the code": ("exec(f'def test_{bye.__name__}(): assert bye()')\n", "test_hi"),
}
CHECKS = "class Checks:\n    def test_bye(self):\n        assert self.function()\n\n\n"
CHECKS += "def test_bye():\n    import words\n    assert words.bye()\n"


@pytest.mark.parametrize("kind", sampled(NEW, "inherited"))
def test_all_tests_of_a_file_that_the_untouched_tree_cannot_load_have_to_pass(tmp_path: Path, kind: str) -> None:
    """Its syntax tree does not show all of them, and placeholders not those that the missing code makes."""
    header = "from words import bye, hi\n\n\ndef test_hi():\n    assert hi()\n\n\n"
    tests = {"test_words.py": header + NEW[kind][0], "checks.py": CHECKS}
    tests["pytest.ini"] = "[pytest]\npython_functions = test_* check_*\n"
    court = court_of(tmp_path, {"words.py": "def hi():\n    return 0\n", **tests})

    wrong, right = (
        judged(court, {"words.py": f"def hi():\n    return 1\n\n\ndef bye():\n    return {n}\n", **tests}).verdict
        for n in (0, 1)
    )

    assert (f"test_words.py::{NEW[kind][1]}" in wrong.red_ids, right.green) == (True, True)


def test_an_id_without_a_case_is_that_of_its_function(tmp_path: Path) -> None:
    """Its list is empty on the untouched tree; each case that the change brings has to pass."""
    tests = {"test_names.py": CASES + "    assert name.islower()\n\n\ndef test_some():\n    assert names.NAMES\n"}
    court = court_of(tmp_path, {"names.py": "NAMES = []\n", **tests})

    wrong, right = (judged(court, {"names.py": f"NAMES = {given}\n", **tests}).verdict for given in (["Ab"], ["ab"]))

    assert court.verifier.expected == ("test_names.py::test_name_is_long", "test_names.py::test_some")
    assert (wrong.red_ids, right.green) == (("test_names.py::test_name_is_long",), True)


LOADED = {
    "a file that skipped itself": ("import pytest\n\nfast = pytest.importorskip('fast')\nfast.run()\n", "test_fast.py"),
    "a conftest file": ("import fast\n", "more/conftest.py"),
}


@pytest.mark.parametrize(
    ("kind", "hidden"),
    [
        ("a file that skipped itself", True),
        pytest.param("a conftest file", False, marks=pytest.mark.proof),
        pytest.param("a file that skipped itself", False, marks=pytest.mark.proof),
        pytest.param("a conftest file", True, marks=pytest.mark.proof),
    ],
)
def test_a_file_without_an_expected_test_must_not_break(tmp_path: Path, kind: str, hidden: bool) -> None:  # noqa: FBT001
    source, path = LOADED[kind]
    source = (
        source
        if "importorskip" in source
        else "try:\n    import fast\nexcept ImportError:\n    pass\nelse:\n    fast.run()\n"
    )
    tests = {"test_calc.py": TOTALS.format("one", "1"), "more/test_none.py": ""}
    more = {"test_zmore.py": TOTALS.format("more", "2")}
    court = court_of(
        tmp_path, {"calc.py": "def total(items):\n    return None\n", **tests, **({} if hidden else {path: source})}
    )
    court.verifier.held_out = HeldOut(
        court.tree({**more, **({path: source} if hidden else {})}), ("test_zmore.py::test_more",)
    )

    wrong, right = (
        judged(court, {"calc.py": RIGHT, "fast.py": fast, **tests, **({} if hidden else {path: source})}).verdict
        for fast in ("", "def run():\n    pass\n")
    )

    assert right.green
    assert wrong.void is not None
    assert "a file did not load; which" in wrong.void.reason, "beside held-out tests not even names are shown"


@pytest.mark.parametrize("path", sampled(["more/conftest.py", "more/test_fast.py"]))
def test_all_files_are_loaded_where_all_tests_are_asked_for(tmp_path: Path, path: str) -> None:
    """Without held-out tests. Not where a part of the tests is asked for: the rest may be large, and of no concern."""
    fast = "try:\n    import fast\nexcept ImportError:\n    pass\nelse:\n    fast.run()\n"
    tests = {"test_calc.py": TOTALS.format("one", "1"), "more/test_none.py": "", path: fast}
    base = {"calc.py": "def total(items):\n    return None\n", **tests}
    court = court_of(tmp_path, base)

    wrong, right = (
        judged(court, {"calc.py": RIGHT, "fast.py": fast, **tests}).verdict for fast in ("", "def run():\n    pass\n")
    )
    more = {"test_more.py": "def test_more():\n    pass\n"}
    part = court_of(tmp_path / "part", {**base, **more}, ["test_calc.py::test_one"])

    assert (wrong.red_ids, right.green) == (("test_calc.py::test_one",), True)
    assert judged(part, {"calc.py": RIGHT, "fast.py": "", **tests, **more}).verdict.green


@pytest.mark.parametrize(("says", "accepted"), [("0", False), pytest.param("1", True, marks=pytest.mark.proof)])
def test_a_held_out_test_that_the_task_skips_must_not_fail(tmp_path: Path, says: str, accepted: bool) -> None:  # noqa: FBT001
    tests = {"test_calc.py": TOTALS.format("one", "1")}
    hidden = "import pytest\nimport calc\n\n\n@pytest.mark.skipif(not hasattr(calc, 'more'), reason='')\n"
    hidden += "def test_more():\n    assert calc.more()\n\n\ndef test_two():\n    assert calc.total([2]) == [2]\n"
    court = court_of(tmp_path, {"calc.py": "total = print\n", **tests})
    court.verifier.held_out = HeldOut(court.tree({"test_z.py": hidden}), ("test_z.py::test_two",))

    done = judged(court, {"calc.py": f"{RIGHT}\n\ndef more():\n    return {says}\n", **tests})

    assert done.verdict.green is accepted


@pytest.mark.proof
def test_a_file_that_breaks_in_the_order_of_pytest_is_not_tried_in_another_one(tmp_path: Path) -> None:
    tests = {"test_m.py": "import pool\n\npool.size(2)\n\n\ndef test_m():\n    assert pool.SIZES\n"}
    hidden = {"test_a.py": "import pool\n\npool.size(1)\n\n\ndef test_a():\n    assert pool.SIZES\n"}
    court = court_of(tmp_path, {"pool.py": "SIZES = []\nsize = print\n", **tests})
    court.verifier.held_out = HeldOut(court.tree(hidden), ("test_a.py::test_a",))
    code = "SIZES = []\n\n\ndef size(n):\n    {}\n    SIZES.append(n)\n"

    wrong, right = (
        judged(court, {"pool.py": code.format(line), **tests}).verdict for line in ("assert SIZES != [1]", "pass")
    )

    assert (wrong.green, right.green) == (False, True)


EXCUSED = """
import pytest

import names


@pytest.mark.parametrize("name", names.NAMES)
def test_name(name):
    if name == "bob":
        pytest.skip("not here")
    if name == "carl":
        pytest.xfail("not yet")
"""


def test_a_further_case_may_be_skipped_as_in_plain_pytest(tmp_path: Path) -> None:
    court = court_of(tmp_path, {"names.py": "NAMES = ['ann']\n", "test_names.py": EXCUSED})

    assert judged(court, {"names.py": "NAMES = ['ann', 'bob', 'carl']\n", "test_names.py": EXCUSED}).verdict.green


NET = """
import pytest

import names


def test_one():
    assert names.NAMES


@pytest.mark.parametrize("name", names.NAMES)
def test_that_needs_a_network(name):
    assert name == "nobody"
"""


def test_a_further_case_of_what_the_task_does_not_ask_for_does_not_count(tmp_path: Path) -> None:
    court = court_of(tmp_path, {"names.py": "NAMES = ['ann']\n", "test_names.py": NET}, ["test_names.py::test_one"])

    assert judged(court, {"names.py": "NAMES = ['ann', 'bob']\n", "test_names.py": NET}).verdict.green


WATCH = {
    "conftest.py": "import app\ndef pytest_sessionfinish(session):\n    session.exitstatus = int(app.DONE != {1, 2})\n",
    "test_one.py": "import app\n\n\ndef test_one():\n    assert app.do(1) == 1\n",
    "test_two.py": "import app\n\n\ndef test_two():\n    assert app.do(2) == 2\n",
}


@pytest.mark.proof
@pytest.mark.parametrize("expected", [(), ("test_one.py::test_one",)])
def test_a_session_of_some_tests_alone_may_end_otherwise(tmp_path: Path, expected: tuple[str, ...]) -> None:
    """A project that looks at its end whether all was tried says nothing of a part of its tests.

    In S3 the rounds run in parts, and held-out tests once by themselves.
    """
    code = "import time\nDONE = set()\n\n\ndef do(n):\n    time.sleep(0.2)\n    DONE.add(n)\n    return n\n"
    court = court_of(tmp_path, {"app.py": code.replace("return n", "return 0"), **WATCH}, expected)
    court.verifier.sandbox, court.verifier.environ, court.verifier.sources = s3(), ENVIRON, "app.py".__eq__
    court.verifier.held_out = HeldOut(court.tree({"test_z.py": WATCH["test_one.py"]}), ("test_z.py::test_one",))

    assert judged(court, {"app.py": code, **WATCH}).verdict.green


@pytest.mark.proof
def test_tests_are_found_in_a_project_that_does_not_end(tmp_path: Path) -> None:
    """A task may be to mend just that."""
    code = "import threading\n\nthreading.Thread(target=threading.Event().wait, daemon={}).start()\n"
    tests = {"test_app.py": "import app\n\n\ndef test_one():\n    assert app.threading\n"}
    court = Court(tmp_path, SUITE)
    base = court.tree({"app.py": code.format("False"), **tests})
    found = anyio.run(court.verifier.collect, base)
    court.verifier.base, court.verifier.expected = base, found.ids

    before, after = (judged(court, {"app.py": code.format(kind), **tests}) for kind in ("False", "True"))

    assert (found.ids, found.anomaly) == (("test_app.py::test_one",), "")
    assert (before.verdict.green, after.verdict.green) == (False, True)


def test_a_file_that_skips_itself_has_no_tests_and_ended_well(tmp_path: Path) -> None:
    tests = {
        "test_app.py": "import app\nimport pytest\n\nif not app.READY:\n    pytest.skip('', allow_module_level=True)\n"
    }
    tests["test_app.py"] += "\n\ndef test_one():\n    assert app.READY\n"
    court = court_of(tmp_path, {"app.py": "READY = 1\n", **tests})

    done = judged(court, {"app.py": "READY = 0\n", **tests})

    assert (done.ended, court.outcomes(done)) == (Ended.NORMAL, {"test_one": "missing"})


@pytest.mark.proof
def test_what_only_a_fork_has_imported_is_missed_by_the_plain_run(tmp_path: Path) -> None:
    """The untouched tree imports the submodule, so zygotes do; the change forgets that."""
    tests = {"test_calc.py": TOTALS.format("one", "1")}
    court = court_of(tmp_path, {"calc.py": "import packaging.licenses\ntotal = print\n", **tests})
    court.verifier.held_out = HeldOut(court.tree({"test_z.py": TOTALS.format("z", "2")}), ("test_z.py::test_z",))
    right = (
        f"import packaging.licenses\n\n\n{RIGHT}    packaging.licenses\n".replace("return", "x =") + "    return x\n"
    )
    with closing(WarmPool(unpaid=0)) as pool:
        starts = court.verifier.warm = WarmStarts(pool)
        for _ in range(2):
            court.judge(court.verifier.base, {})
        done = [judged(court, {"calc.py": code, **tests}) for code in (right, right.replace(".licenses\n", "\n", 1))]

    assert [one.verdict.green for one in done] == [True, False]
    assert starts.counts[WARM] > 1


def test_the_files_come_in_the_order_in_which_pytest_finds_them(tmp_path: Path) -> None:
    """By the folders that the project names for its tests; held-out ones beside them come last."""
    tests = {"pytest.ini": "[pytest]\ntestpaths = b a\n", "b/test_b.py": TOTALS.format("one", "1")}
    court = court_of(tmp_path, {"calc.py": "def total(items):\n    return None\n", **tests})
    hidden = {"a/test_a.py": TOTALS.format("more", "2"), "test_top.py": TOTALS.format("top", "3")}
    court.verifier.held_out = HeldOut(court.tree(hidden), ("a/test_a.py::test_more", "test_top.py::test_top"))

    kept, right = (judged(court, {"calc.py": code, **tests}).verdict for code in (KEPT, RIGHT))

    assert right.green
    assert kept.void is not None
    assert kept.void.cause is Cause.HELD_OUT


def test_a_test_that_nobody_asked_for_and_the_untouched_tree_has_is_not_run(tmp_path: Path) -> None:
    tests = {
        "test_calc.py": "import calc\n\n\ndef test_one():\n    assert calc.ONE\n\n\ndef test_two():\n    assert 0\n"
    }
    court = court_of(tmp_path, {"calc.py": "ONE = 0\n", **tests}, ["test_calc.py::test_one"])

    done = judged(court, {"calc.py": "ONE = 1\n", **tests})

    assert (done.verdict.green, done.executions) == (True, 4)


USUAL = {
    "bytecode": (
        "find(__file__)",
        "def find(file):\n    return {}\n",
        "not [one for one in os.listdir(os.path.dirname(file) + '/__pycache__') if 'test_code' in one]",
        "True",
    ),
    "the name of a test": (
        "find('=')",
        "def find(text):\n    return {}\n",
        "text not in os.environ['PYTEST_CURRENT_TEST']",
        "True",
    ),
    "the name of a folder": (
        "find(str(tmp_path))",
        "def find(path):\n    return {}\n",
        "'_' not in path.rpartition('/')[2]",
        "True",
    ),
    "an alarm": (
        "find() and signal.alarm(0)",
        "def find():\n    {}\n    return True\n",
        "0",
        "signal.signal(signal.SIGALRM, print), signal.alarm(9)",
    ),
    "names of other options": ("find()", "def find():\n    return {}\n", "not FOUND", "True"),
}
"""Kind -> the question of a test, the code, and two ways to fill it: the first is right in jumar's other runs alone."""


def build_code(way: int) -> str:
    """Return code that answers all the questions, each in its *way*: the wrong one, or the right one; -1: in none."""
    answers = ((code, "0" if way < 0 else ways[way]) for _, code, *ways in USUAL.values())
    found = (code.replace("find", f"find_{n}").format(answer) for n, (code, answer) in enumerate(answers))
    return "\n\n".join(("import os, signal\n\nFOUND = []\n", *found))


def test_all_is_as_usual_there(tmp_path: Path) -> None:
    """Bytecode, names, options, alarms and timers: in the other runs they are hidden, or jumar's own."""
    questions = "\n\n".join(
        f"@pytest.mark.parametrize('n', [1], ids=['='])\ndef test_that_is_of_it_{n}(tmp_path, n):\n"
        f"    assert {asked.replace('find', f'code_.find_{n}')}\n"
        for n, (asked, *_) in enumerate(USUAL.values())
    )
    tests = {
        "pytest.ini": "[pytest]\naddopts = -v\n",
        "conftest.py": "import code_\n\n\ndef pytest_report_header():\n    code_.FOUND.append(1)\n",
        "test_code.py": f"import signal\n\nimport pytest\n\nimport code_\n\n\n{questions}",
    }
    court = court_of(tmp_path, {"code_.py": build_code(-1), **tests})

    refused, accepted = (judged(court, {"code_.py": build_code(way), **tests}).verdict for way in (0, 1))

    assert (accepted.green, refused.void) == (True, None), (refused, accepted)
    assert refused.red_ids == court.verifier.expected
    assert len(refused.red_ids) == len(USUAL)
    for red in (refused.results[i].excerpt for i in refused.red_ids):
        assert "did not pass in one plain run of pytest" in red
        assert "assert code_.find_" in red, "the agent is told what it said"


@pytest.mark.proof
def test_tests_are_distributed_as_the_project_says(tmp_path: Path) -> None:
    """By pytest-xdist, beside the run in one process."""
    tests = {
        "pytest.ini": "[pytest]\naddopts = -n 1\n",
        "test_code.py": "import code_\n\n\ndef test_one(worker_id):\n    assert code_.one(worker_id)\n",
    }
    court = Court(tmp_path, structs.replace(SUITE, python=sys.executable))
    court.collect(court.tree({"code_.py": "def one(name):\n    return 0\n", **tests}))

    code = "def one(name):\n    return name in ('master', '{}')\n"
    done = [judged(court, {"code_.py": code.format(worker), **tests}) for worker in ("master", "gw0")]

    assert [(each.verdict.green, each.executions) for each in done] == [(False, 5), (True, 5)]


WORKERS = {
    "a further case": """
NAMES = ["master", "gw0"]

def one(name, worker):
    return name == "master" or {}
""",
    "a second time": """
import pathlib, tempfile
NAMES = ["master"]

def one(name, worker):
    pathlib.Path(tempfile.gettempdir(), name).touch(exist_ok={})
    return True
""",
}
"""Code that is right or wrong in a worker."""


@pytest.mark.parametrize("kind", sampled(WORKERS))
def test_what_happens_in_a_worker_alone_counts(tmp_path: Path, kind: str) -> None:
    """A case that only the candidate has fails there, or what one worker leaves stops the other one."""
    options = "-n 1" if kind == "a further case" else "--dist=each --tx=2*popen"
    tests = {
        "pytest.ini": f"[pytest]\naddopts = {options}\n",
        "test_code.py": "import pytest\n\nimport code_\n\n\n@pytest.mark.parametrize('name', code_.NAMES)\n"
        "def test_one(name, worker_id):\n    assert code_.one(name, worker_id)\n",
    }
    court = Court(tmp_path, structs.replace(SUITE, python=sys.executable))
    court.collect(court.tree({"code_.py": "NAMES = ['master']\n\n\ndef one(*_):\n    return 0\n", **tests}))

    ways = ("worker == 'master'", "True") if kind == "a further case" else ("False", "True")
    done = [judged(court, {"code_.py": WORKERS[kind].format(way), **tests}).verdict.green for way in ways]

    assert done == [False, True]


@pytest.mark.parametrize("way", sampled(["-p no:xdist -p no:cov", "-p no:cacheprovider"], "-p no:xdist -p no:cov"))
def test_a_project_may_do_without_plug_ins_that_are_installed(tmp_path: Path, way: str) -> None:
    env = {} if "xdist" in way else {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    tests = {
        "pytest.ini": f"[pytest]\naddopts = {way}\n",
        "test_code.py": "import code_\n\n\ndef test_one():\n    code_.one()\n",
    }
    court = Court(tmp_path, structs.replace(SUITE, python=sys.executable, env=env))
    court.collect(court.tree({"code_.py": "", **tests}))

    assert judged(court, {"code_.py": "def one(): 0\n", **tests}).verdict.green


def test_a_module_of_the_task_may_have_the_name_of_one_of_pythons(tmp_path: Path) -> None:
    """That of Python is not imported before it."""
    tests = {"tests/test_code.py": "import colorsys\n\n\ndef test_one():\n    assert colorsys.one() == 1\n"}
    tests["tests/colorsys.py"] = "import code_\n\n\ndef one():\n    return code_.ONE\n"
    court = court_of(tmp_path, {"code_.py": "ONE = 0\n", **tests})

    assert judged(court, {"code_.py": "ONE = 1\n", **tests}).verdict.green


VARIABLES = {
    "PYTHONASYNCIODEBUG": "asyncio.new_event_loop().get_debug()",
    "PYTHONHASHSEED": "not sys.flags.hash_randomization",
}


@pytest.mark.proof
def test_the_interpreter_reads_its_variables_beside_held_out_tests(tmp_path: Path) -> None:
    """Code that is wrong only where all of them are read is seen by no other run, and is accepted where one is not."""
    court = Court(tmp_path, structs.replace(SUITE, env={name: "0" if "HASH" in name else "1" for name in VARIABLES}))
    tests = {"test_code.py": "import code_\n\n\ndef test_one():\n    assert code_.one() == 1\n"}
    court.collect(court.tree({"code_.py": "def one():\n    return 0\n", **tests}))
    court.verifier.held_out = HeldOut(court.tree({"test_more.py": tests["test_code.py"]}), ("test_more.py::test_one",))
    code = "import asyncio, sys\n\n\ndef one():\n    return {}\n"
    answers = (f"int(not ({' and '.join(VARIABLES.values())}))", "1")

    done = [judged(court, {"code_.py": code.format(answer), **tests}).verdict.green for answer in answers]

    assert done == [False, True]


ENDING = """
import calc


def pytest_sessionfinish(session):
    session.testsfailed = len(calc.LEFT)
    session.exitstatus = {} * len(calc.LEFT)
"""

ENDS = {
    "a thread that ends soon": ("threading.Timer(0.1, list).start()", {}, ""),
    "a thread that does not": (
        "threading.Thread(target=threading.Event().wait, name='wait').start()",
        {},
        "did not end by itself",
    ),
    "a status at the end that is right": ("atexit.register(os._exit, 0)", {}, ""),
    "descriptors that are closed": ("atexit.register(os.closerange, 3, 256)", {}, ""),
    "a daemon": ("threading.Thread(target=threading.Event().wait, daemon=True).start()", {}, ""),
    "a status at the end": ("atexit.register(os._exit, 3)", {}, "announced status 0 and left with 3"),
    "a timer that leaves": ("threading.Timer(0.1, os._exit, (4,)).start()", {}, "announced status 0 and left with 4"),
    "what is called at the end": ("atexit.register(print)", {}, ""),
    "what hangs at the end": (
        "atexit.register(threading.Event().wait)",
        {},
        "did not end by itself",
    ),
    "errors that cannot be flushed": (
        "atexit.register(setattr, sys, 'stderr', str)",
        {},
        "announced status 0 and left with 120",
    ),
    "output that cannot be flushed": (
        "atexit.register(fill)",
        {},
        "announced status 0 and left with 120",
    ),
    "a session that failed": (
        "LEFT.append(1)",
        {"conftest.py": "import calc\n\ndef pytest_sessionfinish(session):\n    session.exitstatus = len(calc.LEFT)\n"},
        "status 1, although no test failed",
    ),
    "a failure that is no test's": ("LEFT.append(1)", {"conftest.py": ENDING.format(1)}, "status 1, although no test"),
    "a session without tests": (
        "LEFT.append(1)",
        {"conftest.py": ENDING.format(5)},
        "status 5, although no test failed",
    ),
}


@pytest.mark.parametrize(
    "kind",
    sampled(ENDS, "a thread that does not", "errors that cannot be flushed"),
)
def test_a_process_that_does_not_end_as_pytest_does_is_no_green(tmp_path: Path, kind: str) -> None:
    line, more, said = ENDS[kind]
    code = dedent("""\
        import atexit, os, sys, threading

        LEFT = []


        def fill():
            sys.stdout = open("/dev/full", "w")
            sys.stdout.write("for which there is no space")


        def one():
            {}
            return 1
        """)
    tests = {"test_calc.py": "import calc\n\n\ndef test_one():\n    assert calc.one() == 1\n", **more}
    court = court_of(tmp_path, {"calc.py": code.format("return 0"), **tests})

    done = judged(court, {"calc.py": code.format(line), **tests})

    assert done.verdict.green is (said == ""), done.verdict
    assert said in done.verdict.results["test_calc.py::test_one"].excerpt
