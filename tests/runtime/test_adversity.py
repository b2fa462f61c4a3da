"""What the world does to a run: a full disk, a second writer, a signal. It ends typed, and the best tree is there."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from jumar.cli.main import call
from jumar.core.run.reducers.transitions import replay
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget
from jumar.core.state.stop import StopReason
from jumar.errors import BadInput, Infra
from jumar.journal.audit import verify
from jumar.journal.writer import Journal, read_journal
from jumar.runs.finish import explain_full_disk
from jumar.runs.lifecycle import resume
from jumar.runs.setup.marks import TrustedRun
from jumar.workspace.files.safe_paths import replace_file
from jumar.workspace.store.object_store import Store
from support.worlds.run_world import TOTAL, Terms, program, world


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one MiB."""
    mount = tmp_path / "disk"
    mount.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(mount)], check=False, capture_output=True
    )
    if done.returncode:
        pytest.skip("only root can mount a small disk")
    yield mount
    subprocess.run(["umount", str(mount)], check=True)


def bulk(passing: int) -> str:
    """A program that weighs 100 KB and does not compress to anything shared."""
    return program(passing, f"{random.Random(passing).getrandbits(400_000):x}")


@pytest.mark.slow
def test_a_full_disk_ends_infra_with_the_best_tree_readable(small_disk: Path) -> None:
    tried = (9, 12, 10, *range(3, 8), 13, 14, 15)
    folder = small_disk / "run"
    made = world(folder, tuple(bulk(n) for n in tried), Terms(budget=Budget(attempts=None)))

    with made.journal:
        end = anyio.run(made.kernel.run)

    assert end.end
    assert end.end.stop is StopReason.INFRA
    assert "No space left" in end.end.why
    state = replay(read_journal(folder))
    assert state.best
    assert state.best.score.passed == 12
    node = Store(folder / "objects").manifest(state.best.tree)["app.py"]
    assert Store(folder / "objects").get(node.sha256).decode() == bulk(12)
    assert not verify(folder)


def test_a_full_disk_names_the_path_and_how_to_go_on(small_disk: Path) -> None:
    (small_disk / "fill").write_bytes(b"x" * ((1 << 20) - 12_000))
    with pytest.raises(OSError, match="No space left") as refused:
        replace_file(small_disk / "result.json", b"x" * 100_000)
    assert refused.value.filename == str(small_disk / "result.json")
    run = small_disk / "my run"
    run.mkdir()
    said = f"cannot write {run}: No space left on device; free some space, then "
    for name, then in (("lock", "start the run again"), ("events.jsonl", f"go on with jumar resume '{run}'")):
        (run / name).touch()
        with pytest.raises(Infra) as explained, explain_full_disk(run):
            raise OSError(errno.ENOSPC, "No space left on device")
        assert str(explained.value) == said + then
    with pytest.raises(FileNotFoundError), explain_full_disk(run):
        (run / "none").read_bytes()


@pytest.mark.slow
def test_a_run_that_cannot_begin_for_want_of_space_names_the_place(
    small_disk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (small_disk / "fill").write_bytes(b"x" * ((1 << 20) - 40_000))
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "app.py").write_text(bulk(9))
    (tmp_path / "task" / "test_app.py").write_text("import app\n\n\ndef test_a():\n    assert app.PASSING == 12\n")
    words = ["run", str(tmp_path / "task"), "--model", "repair", "--runs", str(small_disk / "runs"), "--sandbox", "S0"]

    assert call(words) == 5
    said = capsys.readouterr().err
    assert "No space left on device" in said
    assert f"{small_disk}/runs" in said
    assert "free some space" in said


def test_a_disk_that_is_full_of_other_things_is_infra_and_the_journal_stays_whole(small_disk: Path) -> None:
    folder = small_disk / "run"
    made = world(folder, (program(12), program(13), program(TOTAL)))

    def fill(_: object, effect: object) -> None:
        if type(effect).__name__ == "Reserve" and len(made.events(ev.ModelCall)) == 1:
            other = os.open(small_disk / "other", os.O_WRONLY | os.O_CREAT)
            with contextlib.suppress(OSError):
                while os.write(other, b"x" * 4096):
                    pass
            os.close(other)

    made.kernel.watch = fill
    with made.journal:
        try:
            end = anyio.run(made.kernel.run)
        except Infra as broken:
            assert "space" in str(broken)  # noqa: PT017  either end is right: with room for the last words or without
        else:
            assert end.end
            assert end.end.stop is StopReason.INFRA
    state = replay(read_journal(folder))
    assert state.best
    assert state.best.score.passed == 12
    assert not verify(folder)


def test_a_second_writer_is_refused_with_one_sentence(tmp_path: Path) -> None:
    made = world(tmp_path, (program(TOTAL),))

    with made.journal, pytest.raises(BadInput) as refused:
        Journal.open(tmp_path)

    assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_a_second_process_on_one_run_is_refused(tmp_path: Path) -> None:
    made = world(tmp_path, (program(TOTAL),))
    argv = [sys.executable, "-m", "jumar.cli.main", "resume", str(tmp_path), "-q", "--trust"]

    with made.journal:
        second = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=60)

    assert second.returncode == 2
    assert second.stderr.startswith("jumar: another jumar ")
    assert second.stderr.count("\n") == 1


def test_a_damaged_journal_is_not_resumed(tmp_path: Path) -> None:
    made = world(tmp_path, (program(12), program(TOTAL)))
    with made.journal:
        anyio.run(made.kernel.run)
    lines = (tmp_path / "events.jsonl").read_bytes().splitlines(keepends=True)
    lines[4] = lines[4].replace(b'"pass"', b'"fail"') if b'"pass"' in lines[4] else lines[4].replace(b"fail", b"pass")
    (tmp_path / "events.jsonl").write_bytes(b"".join(lines))

    with pytest.raises(BadInput, match=r"line [56]"):
        anyio.run(lambda: resume(TrustedRun(tmp_path), environ={}))
    assert [f.line for f in verify(tmp_path)] == [5]


SLOW_TASK = {
    "app.py": "PASSING = 8\n",
    "test_app.py": (
        "import os, pathlib, time\n"
        "def test_it():\n"
        "    pathlib.Path(os.environ['TMPDIR'], '../../../started').touch()\n"
        "    time.sleep(600)\n"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.proof), signal.SIGTERM])
def test_a_signal_ends_interrupted_and_the_run_goes_on_later(tmp_path: Path, number: signal.Signals) -> None:
    task = tmp_path / "task"
    task.mkdir()
    for name, text in SLOW_TASK.items():
        (task / name).write_text(text)
    (tmp_path / "s.jsonl").write_text(json.dumps({"content": "PASSING = 9\n"}))
    argv = [
        sys.executable,
        "-m",
        "jumar.cli.main",
        "run",
        "task",
        "--agent",
        "pipeline",
        "--model",
        "script:s.jsonl",
        "--json",
    ]
    process = subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    for line in process.stderr:  # the plain line that says that the tests are running
        if "running the tests" in line:
            break
    process.send_signal(number)
    out, _ = process.communicate(timeout=30)

    result = json.loads(out.splitlines()[-1])
    assert (process.returncode, result["stop"]) == (130, "interrupted")
    folder = Path(result["events"]).parent
    assert not verify(folder)
    left = subprocess.run(["pgrep", "-f", str(folder)], check=False, capture_output=True, text=True)
    assert left.stdout == "", "no process is left"
    assert (folder / "workspace" / "app.py").is_file()
