"""A command for one test: it judges any runner's tests, one process for all of them, and its status is all it says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Blame, Cause, Ended
from jumar.errors import BadInput
from jumar.ports import Verification
from jumar.runners.pytest import PytestRunner
from jumar.verify.naming.single_test_command import wrap_runner
from jumar.verify.verifier import TrustedVerifier
from jumar.workspace.store.object_store import Store

RUNNER = PytestRunner()

SCRIPT = """
import os, sys
name = sys.argv[1].rpartition("::")[2]
if name == "test_killed":
    os.kill(os.getpid(), 11)
while name == "test_hangs":
    pass
print("looked at", sys.argv[1], "x" * 200000 if name == "test_loud" else "")
sys.exit(name != "test_ok")
"""


def _judge(folder: Path, suite: Suite, ids: Sequence[str], files: dict[str, str]) -> tuple[Verification, str]:
    for path, text in files.items():
        (folder / "source").mkdir(exist_ok=True)
        (folder / "source" / path).write_text(text, "utf-8")
    store = Store(folder / "objects")
    tree = store.capture(folder / "source")
    environ = {"PATH": os.environ["PATH"]}
    verifier = TrustedVerifier(store, RUNNER, suite, folder / "run", expected=tuple(ids), environ=environ)
    done = anyio.run(verifier.verify, tree, {})
    return done, (folder / "run" / "output" / done.output).read_text("utf-8")


@pytest.mark.slow
def test_the_exit_status_decides_for_each_test_in_one_process(tmp_path: Path) -> None:
    names = ("test_ok", "test_no", "test_loud", "test_killed", "test_hangs", "test_it[a b; echo $HOME]")
    suite = Suite(command_for="python one.py {test_id}", test_timeout_seconds=1.0, timeout_seconds=30.0)

    done, output = _judge(tmp_path, suite, [f"t.py::{n}" for n in names], {"one.py": SCRIPT, "t.py": ""})

    said = {i[6:]: (str(r.outcome), r.blame) for i, r in done.verdict.results.items()}
    assert said == {
        "test_ok": ("passed", None), "test_no": ("failed", None), "test_loud": ("failed", None),
        "test_killed": ("error", Blame.CODE), "test_hangs": ("timeout", Blame.CODE),
        "test_it[a b; echo $HOME]": ("failed", None),
    }  # fmt: skip
    assert (done.executions, done.ended) == (1, Ended.NORMAL)
    why = {i[6:]: r.excerpt for i, r in done.verdict.results.items()}
    assert why["test_ok"] == ""
    assert why["test_no"] == "looked at t.py::test_no\nthe command left with status 1"
    assert "killed by SIGSEGV" in why["test_killed"]
    assert "longer than 1 s" in why["test_hangs"]
    assert "looked at t.py::test_it[a b; echo $HOME]" in output
    assert len(why["test_loud"]) < 4100
    assert len(output) < 200_000


@pytest.mark.slow
def test_a_program_that_is_not_there_is_no_verdict_and_a_whole_that_is_too_slow_is_red(tmp_path: Path) -> None:
    absent, _ = _judge(tmp_path, Suite(command_for="no-such-program {test_id}"), ["t.py::a"], {"t.py": ""})
    slow = Suite(command_for="python one.py {test_id}", timeout_seconds=1.5)
    late, _ = _judge(tmp_path, slow, ["t.py::test_ok", "t.py::test_hangs", "t.py::test_no"], {"one.py": SCRIPT})

    assert absent.verdict.void is not None
    assert absent.verdict.void.cause is Cause.HARNESS
    assert "cannot run [tests] command_for no-such-program: No such file" in absent.verdict.void.reason
    assert late.ended is Ended.TIMEOUT
    assert [str(r.outcome) for r in late.verdict.results.values()] == ["passed", "timeout", "error"]


@pytest.mark.slow
def test_tests_are_still_found_the_runner_s_own_way_and_annotated_ones_are_run_by_their_native_id(
    tmp_path: Path,
) -> None:
    suite = Suite(command_for="python one.py {test_id}")
    (tmp_path / "source").mkdir()
    source = "# jumar: test-id=fine\ndef test_ok(): pass\n"
    (tmp_path / "source" / "one.py").write_text(SCRIPT)
    (tmp_path / "source" / "test_it.py").write_text(source)
    store = Store(tmp_path / "objects")
    verifier = TrustedVerifier(store, RUNNER, suite, tmp_path / "run", environ={"PATH": os.environ["PATH"]})
    tree = store.capture(tmp_path / "source")

    verifier.expected = anyio.run(verifier.collect, tree).ids
    done = anyio.run(verifier.verify, tree, {})

    assert verifier.expected == ("fine",)
    assert done.verdict.green
    wrapped = wrap_runner(RUNNER, suite)
    assert (wrapped.name, wrapped.grade) == ("pytest", "X")
    assert wrapped.sites("test_it.py", source.encode()) == RUNNER.sites("test_it.py", source.encode())
    assert wrapped.test_files(("test_it.py", "a.py"), ()) == ("test_it.py",)
    assert wrapped.surroundings(tmp_path, {}) == RUNNER.surroundings(tmp_path, {})


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("make 'test {test_id}", "is no command line: No closing quotation"),
        ("make test", "has no {test_id} after the program"),
        ("{test_id}", "has no {test_id} after the program"),
    ],
)
def test_a_command_that_cannot_be_one_is_refused(command: str, sentence: str) -> None:
    with pytest.raises(BadInput) as told:
        wrap_runner(RUNNER, Suite(command_for=command))

    assert sentence in str(told.value)


def test_without_a_command_the_runner_is_itself() -> None:
    assert wrap_runner(RUNNER, Suite()) is RUNNER
