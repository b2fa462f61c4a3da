"""A tree that is expected to be green: its first run is forked, and its plain run goes on beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import anyio
import msgspec
import pytest

from jumar.ports import Verification
from jumar.process.warm.pool import Family, WarmPool
from jumar.process.warm.starts import WARM, WarmStarts
from jumar.runs.judging.plain_ahead import verify_expected_green
from jumar.verify.rounds import begin_rounds
from support.judging.real_verifier import QUICK, Court
from support.processes.sandboxes import s3

pytestmark = pytest.mark.slow

TASK = {
    "app.py": "def double(n):\n    return 2 * n\n",
    "test_app.py": "from app import double\n\n\ndef test_two(): assert double(2) == 4\n",
}
IN_PLACE = {
    "app.py": "def order(items):\n    items.sort()\n",
    "test_app.py": "from app import order\n\n\n"
    "def test_it():\n    items = [2, 1]\n    order(items)\n    assert items == [1, 2]\n",
}
"""Values cross between two processes by copy: the test is challenged in one."""


PATIENCE = 60.0
"""Seconds after which a verdict that should have been there is not waited for any more."""


@pytest.fixture
def pool() -> Iterator[WarmPool]:
    """Zygotes of one test."""
    made = WarmPool()
    yield made
    made.close()


def begin(tmp_path: Path, files: Mapping[str, str], pool: WarmPool) -> Court:
    """A court that knows the ids of *files*, and whose zygotes for what confirms a green have begun."""
    # A plain run is given up after a part of these limits: on a machine that is at work, too, there is time for it.
    patient = msgspec.structs.replace(QUICK, confirm=3, timeout_seconds=160.0, test_timeout_seconds=40.0)
    court = Court(tmp_path, patient)
    court.verifier.sandbox, court.verifier.sources = s3(), "app.py".__eq__
    court.collect(court.tree(files))
    court.verifier.warm = WarmStarts(pool)
    begin_rounds(court.verifier, ahead=True)
    return court


def judge(court: Court, files: Mapping[str, str], line: str) -> Verification:
    """The verdict on *files* with a *line* more in the code under test."""
    tree = court.tree({**files, "app.py": files["app.py"] + line})

    async def verify() -> Verification:
        with anyio.fail_after(PATIENCE):
            return await verify_expected_green(court.verifier, tree)

    return anyio.run(verify)


def find_tests(pool: WarmPool) -> Family:
    """The family of the processes in which tests run."""
    (family,) = [family for family in pool.families if family.plugins]
    return family


def test_a_green_has_its_plain_run_beside_the_first_one(tmp_path: Path, pool: WarmPool) -> None:
    court = begin(tmp_path, TASK, pool)
    outputs = court.folder / "run" / "output"
    before = len(list(outputs.iterdir()))

    done = judge(court, TASK, "# changed\n")

    assert (done.verdict.green, done.grade, done.executions) == (True, "A", 3)
    assert len(list(outputs.iterdir())) == before + done.executions, "there is one plain run"
    # The first run, both processes of the round, the look at the code. A plain run that begins early is started.
    assert done.starts == {WARM: 4}
    assert list(find_tests(pool).zygotes) == [True], "of first runs there is none"


def test_a_red_tree_ends_the_plain_run(tmp_path: Path, pool: WarmPool) -> None:
    """It would go on for an hour: it hangs where pytest is called as a person calls it."""
    court = begin(tmp_path, TASK, pool)
    limits = {"timeout_seconds": 8 * 3600.0, "test_timeout_seconds": 2 * 3600.0}
    court.verifier.suite = msgspec.structs.replace(court.verifier.suite, **limits)

    done = judge(court, TASK, "double = str\nimport sys\nwhile '-m' in sys.orig_argv: pass\n")

    assert (done.verdict.red_ids, done.executions) == (("test_app.py::test_two",), 1)
    assert not court.survivors()
    assert not list(court.verifier.rooms.iterdir())


def test_a_plain_run_that_takes_much_of_the_time_of_the_tests_comes_later(tmp_path: Path, pool: WarmPool) -> None:
    court = begin(tmp_path, TASK, pool)
    court.verifier.suite = msgspec.structs.replace(court.verifier.suite, timeout_seconds=60, test_timeout_seconds=0.1)
    outputs = court.folder / "run" / "output"
    before = len(list(outputs.iterdir()))

    done = judge(court, TASK, "# changed\n")

    assert (done.verdict.green, done.grade, done.executions) == (True, "A", 3)
    assert len(list(outputs.iterdir())) == before + done.executions + 1


def test_what_the_plain_run_alone_finds_is_red(tmp_path: Path, pool: WarmPool) -> None:
    court = begin(tmp_path, TASK, pool)

    done = judge(court, TASK, "import sys\nif '-m' in sys.orig_argv:\n    double = str\n")

    assert not done.verdict.green
    assert "one plain run of pytest" in str(done.verdict.void) + str(done.verdict.results)


def test_code_runs_again_with_other_hashes_of_strings(tmp_path: Path, pool: WarmPool) -> None:
    """The zygote of the first run is replaced before the tests are challenged in one process, as that run was one."""
    court = begin(tmp_path, IN_PLACE, pool)
    before = find_tests(pool).zygotes[True]

    done = judge(court, IN_PLACE, "# changed\n")

    after = find_tests(pool).zygotes[True]
    assert (done.verdict.green, done.grade) == (True, "C")
    assert (before.was_first, after.was_first, after is before) == (True, False, False)


@pytest.mark.proof
def test_first_runs_that_are_many_have_a_zygote_of_their_own(tmp_path: Path, pool: WarmPool) -> None:
    """The one of confirmations need not be replaced for each of them, where stored runs are judged again."""
    court = begin(tmp_path, IN_PLACE, pool)

    done = [judge(court, IN_PLACE, f"# {number}\n") for number in range(4)]

    assert {(one.verdict.green, one.grade) for one in done} == {(True, "C")}
    zygotes = find_tests(pool).zygotes
    assert (zygotes[False].forks, zygotes[True].was_first) == (2, False)


def test_the_plain_run_waits_where_tests_are_held_out(tmp_path: Path, pool: WarmPool) -> None:
    """One that had begun early would not have them: the green would be none."""
    court = begin(tmp_path, TASK, pool)
    hidden = court.tree({"test_more.py": "from app import double\n\n\ndef test_three(): assert double(3) == 6\n"})
    held_out = type(court.verifier.held_out)(hidden, ("test_more.py::test_three",))
    court.verifier.held_out = held_out

    done = judge(court, TASK, "# changed\n")

    assert (done.verdict.green, done.grade) == (True, "A+H")
