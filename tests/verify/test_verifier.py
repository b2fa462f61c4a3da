"""The trusted verifier: a fresh room each time, blame where it belongs, and suspicion where red tests went."""

from __future__ import annotations

import shutil
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.cli.main import call
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Cause, Ended, Outcome, Report
from jumar.errors import BadInput
from jumar.ports import Surroundings
from jumar.testing import check_verifier
from jumar.verify.challenge.round_challenge import UNCHALLENGED
from jumar.verify.localisation.localise import IMPORTED, compute_ochiai, rank
from support.judging.real_verifier import Court

GOOD = {
    "app.py": "def double(n):\n    if n < 0:\n        return 0\n    return 2 * n\n",
    "test_app.py": "from app import double\n\n\ndef test_two(): assert double(2) == 4\n\n\n"
    "def test_less(): assert double(-1) == 0\n",
}
BAD = {**GOOD, "app.py": GOOD["app.py"].replace("2 * n", "3 * n")}
HANGING = {**GOOD, "app.py": "import threading\n\n\ndef double(n):\n    return threading.Event().wait()\n"}
LEAVING = {**GOOD, "app.py": "import os\n\n\ndef double(n):\n    os._exit(0)\n"}


@pytest.mark.slow
def test_the_trusted_verifier_keeps_the_contract(tmp_path: Path) -> None:
    court = Court(tmp_path)
    good, bad = court.tree(GOOD), court.tree(BAD)

    anyio.run(check_verifier, court.verifier, court.collect(good), good, bad)


@pytest.mark.slow
def test_a_bad_end_is_the_candidates_doing_where_the_best_tree_ends_well(tmp_path: Path) -> None:
    court = Court(tmp_path)
    best, leaving = court.tree(BAD), court.tree(LEAVING)
    court.collect(best)
    assert court.judge(best).ended is Ended.NORMAL

    done = court.judge(leaving, {}, control=best)

    assert (done.ended, done.executions, done.verdict.void) == (Ended.EXIT, 2, None)
    assert court.outcomes(done) == {"test_two": "error", "test_less": "error"}


@pytest.mark.slow
def test_a_bad_end_is_nobodys_doing_where_the_best_tree_does_not_end_well_any_more(tmp_path: Path) -> None:
    court = Court(tmp_path)
    trap = tmp_path / "trap"
    source = (
        f"import os\n\n\ndef double(n):\n    if os.path.exists({str(trap)!r}):\n        os._exit(0)\n    return 3 * n\n"
    )
    best, leaving = court.tree({**GOOD, "app.py": source}), court.tree(LEAVING)
    court.collect(best)
    assert court.judge(best).ended is Ended.NORMAL
    trap.touch()

    done = court.judge(leaving, {}, control=best)

    assert done.verdict.void is not None
    assert done.verdict.void.cause is Cause.HARNESS
    assert done.executions == 2


@pytest.mark.slow
def test_the_task_itself_may_end_badly_and_is_red(tmp_path: Path) -> None:
    court = Court(tmp_path, Suite(timeout_seconds=3.0))
    base = court.tree(HANGING)
    court.collect(base)

    done = court.judge(base, None, control=base)

    assert (done.ended, done.executions, done.verdict.void) == (Ended.TIMEOUT, 1, None)
    assert court.outcomes(done) == {"test_two": "timeout", "test_less": "error"}


@pytest.mark.slow
def test_a_fresh_run_says_what_fails_and_takes_no_time_to_print_why(tmp_path: Path) -> None:
    court = Court(tmp_path)
    bad = court.tree(BAD)
    ids = court.collect(bad)

    async def run() -> Report:
        return await court.verifier.run_fresh(bad, ids, UNCHALLENGED, None)

    report = anyio.run(run)

    assert [r.outcome for r in report.results] == [Outcome.FAILED, Outcome.PASSED]
    newest = max((tmp_path / "run" / "output").glob("*.txt")).read_text("utf-8")
    assert "assert" not in newest


@pytest.mark.slow
def test_a_skip_is_a_pass_only_where_the_task_itself_skipped(tmp_path: Path) -> None:
    court = Court(tmp_path)
    tests = "import pytest\nimport app\n\n\ndef test_old(): pytest.skip('no')\n\n\n"
    tests += "def test_new():\n    if app.SKIP: pytest.skip('no')\n"
    base, cheat = (
        court.tree({"app.py": "SKIP = 0\n", "test_it.py": tests}),
        court.tree({"app.py": "SKIP = 1\n", "test_it.py": tests}),
    )
    court.collect(base)

    done = court.judge(cheat)

    assert court.outcomes(done) == {"test_old": "skipped", "test_new": "skipped"}
    assert done.verdict.green_ids == {"test_it.py::test_old"}
    assert done.executions == 2, "the base was run to learn what may be skipped"
    assert court.judge(base).verdict.green
    assert court.judge(cheat, {"test_it.py::test_new": Outcome.SKIPPED}).verdict.green_ids == {"test_it.py::test_new"}


@pytest.mark.slow
def test_a_room_never_holds_what_another_run_left(tmp_path: Path) -> None:
    court = Court(tmp_path)
    source = "import pathlib\n\n\ndef test_it():\n    assert not pathlib.Path('left').exists()\n"
    source += "    pathlib.Path('left').touch()\n"
    tree = court.tree({"test_it.py": source + "    pathlib.Path('closed/in').mkdir(parents=True, mode=0)\n"})
    court.collect(tree)

    assert [court.judge(tree).verdict.green for _ in range(2)] == [True, True]
    assert list((tmp_path / "run" / "rooms").iterdir()) == []
    assert [path.name for path in sorted((tmp_path / "run" / "output").iterdir())] == ["001.txt", "002.txt", "003.txt"]


@pytest.mark.slow
def test_a_same_size_edit_within_a_second_is_seen(tmp_path: Path) -> None:
    court = Court(tmp_path)
    trees = [court.tree({**GOOD, "app.py": GOOD["app.py"].replace("2 *", f"{n} *")}) for n in (2, 3, 2, 3)]
    court.collect(trees[0])

    assert [court.judge(tree).verdict.green for tree in trees] == [True, False, True, False]


@pytest.mark.slow
def test_the_line_of_the_fault_is_suspected_first(tmp_path: Path) -> None:
    court = Court(tmp_path)
    court.verifier.sources = lambda path: path == "app.py"

    async def localise(tree: str) -> tuple[tuple[str, int, float], ...]:
        return (await court.verifier.localise(tree, ["test_app.py::test_two"], ["test_app.py::test_less"])).suspects

    assert anyio.run(localise, court.tree(BAD)) == (
        ("app.py", 4, 1.0),
        ("app.py", 2, 0.707107),
        ("app.py", 1, 0.070711),
    )
    hanging = court.tree(
        {**GOOD, "app.py": "def double(n):\n    if n < 0:\n        return 0\n    while n:\n        pass\n"}
    )
    court.verifier.suite = Suite(test_timeout_seconds=0.5)
    assert {line for _, line, score in anyio.run(localise, hanging) if score == 1.0} == {4, 5}


lines = st.lists(st.frozensets(st.tuples(st.sampled_from(["a.py", "b.py"]), st.integers(1, 5))), max_size=5)


@pytest.mark.slow
@given(red=lines, green=lines, imported=st.frozensets(st.tuples(st.just("a.py"), st.integers(1, 9))))
def test_suspicion_is_ordered_and_bounded_and_names_each_line_once(
    red: list[frozenset[tuple[str, int]]], green: list[frozenset[tuple[str, int]]], imported: frozenset[tuple[str, int]]
) -> None:
    suspects = rank(red, green, imported)

    assert [score for *_, score in suspects] == sorted((score for *_, score in suspects), reverse=True)
    assert all(0 < score <= 1 for *_, score in suspects)
    assert len({(path, line) for path, line, _ in suspects}) == len(suspects)
    assert {(path, line) for path, line, _ in suspects} <= {line for test in red for line in test} | imported
    assert rank(red, green, imported) == suspects


def test_ochiai_is_the_cosine_of_failing_and_running() -> None:
    assert compute_ochiai(2, 0, 2) == 1.0
    assert compute_ochiai(0, 3, 2) == 0.0
    assert compute_ochiai(1, 3, 4) == 0.25
    assert rank([[]], [], [("a.py", 1)]) == (("a.py", 1, IMPORTED),), "a test that does not import is red too"


@pytest.mark.parametrize("expected", [(), ("test_app.py::test_two",)])
def test_a_runner_that_cannot_work_here_is_refused_before_anything_is_run(
    tmp_path: Path, expected: tuple[str, ...]
) -> None:
    court = Court(tmp_path)
    tree = court.tree(GOOD)
    court.verifier.around = Surroundings(missing="there is no runner; install one")
    court.verifier.expected = expected

    for ask in (lambda: anyio.run(court.verifier.collect, tree), lambda: court.judge(tree)):
        with pytest.raises(BadInput, match="there is no runner; install one"):
            ask()

    assert not any(path.read_bytes() for path in (tmp_path / "run").glob("output/*.txt"))


@pytest.mark.parametrize("expected", ["", "expected = ['sum.test.js::adds']\n"])
@pytest.mark.parametrize("command", [("run", ".", "--model", "ollama:any"), ("score", ".", ".")])
def test_the_command_line_says_so_in_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: tuple[str, ...],
    expected: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    git = str(shutil.which("git"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    Path("bin").mkdir()
    Path("bin/git").symlink_to(git)
    Path("sum.test.js").write_text("test('adds', () => {})\n")
    Path("sum.js").write_text("export const sum = 1\n")
    Path("task.toml").write_text(f"[task]\nname = 'sum'\n[tests]\nrunner = 'vitest'\n{expected}")

    assert call(command) == 2
    said = capsys.readouterr()
    assert said.err == "jumar: there is no node on PATH, which runs vitest: install Node.js 20 or newer\n"
    assert said.out == ""


NAMED_FOLDER = """
import pytest

from app import double


@pytest.mark.parametrize("n", [21])
def test_doubled_is_42(n, tmp_path):
    assert double(tmp_path.name) == 2 * tmp_path.name
    assert not {"42", "21", "doubled"}.intersection(str(tmp_path).replace("-", "_").split("_"))
"""


@pytest.mark.slow
def test_a_temporary_folder_does_not_tell_which_test_it_is_for(tmp_path: Path) -> None:
    court = Court(tmp_path)
    tree = court.tree({**GOOD, "app.py": "def double(n):\n    return 2 * n\n", "test_app.py": NAMED_FOLDER})
    court.collect(tree)

    assert court.judge(tree).verdict.green
