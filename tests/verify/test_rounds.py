"""A round in two processes: a test that costs the process of the code under test costs no other test its proof."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.core.gate.challenge_rounds import Round
from jumar.verify.merge_reports import PART_MS, run_side_by_side, split_ids
from jumar.verify.rounds import GreenCandidate, Seeds, build_challenge, confirm_forged, run_round_apart
from support.judging.real_verifier import Court

PRODUCT = "import os\n\n\ndef leave():\n    os._exit(3)\n\n\ndef add(a, b):\n    return a + b\n"
TESTS = dedent("""\
    import pytest

    import app


    def test_first():
        assert app.add(1, 2) == 3


    def test_leaves():
        app.leave()


    @pytest.mark.parametrize("n", [1, 2])
    def test_later(n):
        assert app.add(n, 0) == n


    def test_wrong():
        assert app.add(1, 1) == 3


    def test_leaves_again():
        app.leave()


    def test_last():
        assert app.add(2, 2) == 4
    """)


def accepted(folder: Path, files: Mapping[str, str]) -> GreenCandidate:
    """The green of *files*, `app.py` and its tests `test_app.py`, which may be falsified."""
    court = Court(folder)
    court.verifier.sources = "app.py".__eq__
    tree = court.tree(files)
    court.verifier.experience.challenge = {"test_app.py": files["test_app.py"].encode()}
    return GreenCandidate(court.verifier, tree, tree, court.collect(tree), {})


@pytest.mark.slow
def test_what_ran_after_the_process_was_gone_runs_again_without_the_test_that_ended_it(tmp_path: Path) -> None:
    court = Court(tmp_path)
    court.verifier.sources = "app.py".__eq__
    tree = court.tree({"app.py": PRODUCT, "test_app.py": TESTS})
    green = GreenCandidate(court.verifier, tree, "", court.collect(tree), {})

    result = anyio.run(run_round_apart, green, Round(challenge=False), Seeds())

    assert {i.partition("::")[2] for i in result.kept} == {"test_first", "test_later[1]", "test_later[2]", "test_last"}
    assert (result.forged, len(green.runs)) == ((), 3)


SIZES = {
    "app.py": """\
import os


def count(folder):  # without a sandbox every process sees all folders
    return len(os.listdir(folder)) if folder.startswith(os.environ["TMPDIR"]) else 0
""",
    "test_app.py": """\
import os
import tempfile

import app


def test_count():
    with tempfile.TemporaryDirectory() as folder:
        for number in range(11):
            open(os.path.join(folder, str(number)), "w").close()
        assert app.count(folder) == 11


def test_nothing():
    assert app.count("nowhere") == 0
""",
}


@pytest.mark.slow
def test_a_falsified_test_that_is_right_because_its_files_are_not_seen_forges_nothing(tmp_path: Path) -> None:
    green = accepted(tmp_path, SIZES)
    step = Round(frozenset({"test_app.py::test_count"}))
    draws = (Seeds(1, number) for number in range(1000))
    draw = next(one for one in draws if b"== 0\n\n\ndef" in build_challenge(green, step, one).files["test_app.py"])

    result = anyio.run(run_round_apart, green, step, draw)

    assert result.forged == ("test_app.py::test_count",), "the folder is in the tests' process alone"
    assert anyio.run(confirm_forged, green, step, draw, result.forged) == ((), ())


CASES = {
    "app.py": "def halve(n):\n    if n % 2:\n        raise ValueError(n)\n    return n // 2\n",
    "test_app.py": """\
import pytest

import app


@pytest.mark.parametrize("n", [3, 4])
def test_halve(n):
    try:
        found = app.halve(n)
    except ValueError:
        return
    assert found == 2
""",
}


@pytest.mark.slow
def test_a_case_that_comes_to_no_assertion_forges_nothing(tmp_path: Path) -> None:
    green = accepted(tmp_path, CASES)

    result = anyio.run(run_round_apart, green, Round(frozenset({"test_app.py::test_halve"})), Seeds(1, 1))

    assert (result.forged, set(result.kept)) == ((), {"test_app.py::test_halve[4]"})


QUERIES = {
    "app.py": """\
class Where:
    def __init__(self, key):
        self.key = key

    def __eq__(self, wanted):
        return Test(lambda row: row[self.key] == wanted)

    __hash__ = None


class Test:
    def __init__(self, holds):
        self.holds = holds


def find(rows, test):
    return [row["name"] for row in rows if test.holds(row)]
""",
    "test_app.py": """\
import app

ROWS = [{"name": "a", "size": 1}, {"name": "b", "size": 3}]


def test_find():
    assert app.find(ROWS, app.Where("size") == 3) == ["b"]
""",
}


@pytest.mark.slow
def test_nothing_is_asked_in_a_falsified_round_of_what_stands_for_an_object_there(tmp_path: Path) -> None:
    green = accepted(tmp_path, QUERIES)

    result = anyio.run(run_round_apart, green, Round(frozenset({"test_app.py::test_find"})), Seeds(1, 1))

    assert (result.forged, set(result.kept), green.doubted) == ((), {"test_app.py::test_find"}, {})


UNHEARD = {
    "app.py": "def parse(text):\n    return []\n",
    "test_app.py": """\
import pytest

import app

WANTED = {"a": ["a", "b"]}


def never(_):
    assert False


def test_parts():
    for found, wanted in zip(app.parse("a"), WANTED["a"]):
        assert found == wanted


def test_nothing():
    list(map(never, app.parse("b")))


@pytest.mark.parametrize("count", [0, 1])
def test_more(count):
    for _ in range(count):
        assert app.parse("a") == []


def test_either():
    if app.parse("a"):
        assert app.parse("a") == ["a"]
    else:
        assert app.parse("a") == app.parse("b")


def test_raised():
    with pytest.raises(TypeError):
        app.parse()
    for found in app.parse("a"):
        assert found == "a"
""",
}


@pytest.mark.slow
def test_a_test_that_comes_to_none_of_its_assertions_is_no_evidence(tmp_path: Path) -> None:
    green = accepted(tmp_path, UNHEARD)

    result = anyio.run(run_round_apart, green, Round(), Seeds(1, 1))

    kept = {i.partition("::")[2] for i in result.kept}
    assert kept == {"test_more[1]", "test_either", "test_raised"}, "they came to an assertion"
    assert green.doubted == dict.fromkeys(
        [f"test_app.py::{name}" for name in ("test_parts", "test_nothing", "test_more", "test_more[0]")],
        "it came to none of its assertions",
    )


WORDY = {
    "app.py": "def one():\n    return 1\n",
    "test_app.py": """\
import pytest

import app


def test_words():
    with pytest.raises(AssertionError) as failed:
        assert app.one() == 2
    assert "1 == 2" in str(failed.value)
""",
}


@pytest.mark.slow
def test_words_of_an_assertion_are_made_where_they_are_read_alone(tmp_path: Path) -> None:
    """Not in a challenge in two processes, whatever the order; but where the untouched tree is compared."""
    green = accepted(tmp_path, WORDY)

    results = [anyio.run(run_round_apart, green, Round(challenge=asked), Seeds(None, 1)) for asked in (True, False)]

    assert [bool(result.kept) for result in results] == [False, True]


@given(st.dictionaries(st.tuples(st.sampled_from("abcd"), st.integers(0, 9)), st.integers(0, 2 * PART_MS)))
def test_parts_are_whole_files_and_all_of_them(took: Mapping[tuple[str, int], int]) -> None:
    times = {f"test_{file}.py::test_{number}": took_ms for (file, number), took_ms in took.items()}

    parts = split_ids(tuple(times), times)

    assert sorted(i for part in parts for i in part) == sorted(times)
    files = [{i.partition("::")[0] for i in part} for part in parts]
    assert sum(map(len, files)) == len(set().union(*files)), "a file is in one part"
    if len(parts) > 1:
        assert all(parts)
        assert sum(times.values()) + 3 * len(times) >= PART_MS * len(parts)


def test_what_one_part_raises_ends_the_others() -> None:
    ended: list[str] = []

    async def fail() -> None:
        raise ValueError("broken")

    async def wait() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("wait")

    with pytest.raises(ValueError, match="broken"):
        anyio.run(run_side_by_side, [wait, fail])
    assert ended == ["wait"]
