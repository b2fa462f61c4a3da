"""A run directory that travels in an archive is the same run elsewhere, and never half of one."""

from __future__ import annotations

import fcntl
import io
import json
import tarfile
from pathlib import Path

import pytest

from jumar.cli.main import call
from jumar.errors import Infra
from jumar.executors.archives import COLLECTED, PART, finish_unpacking, pack_run, unpack_run
from jumar.executors.scratch import enter_attempt
from jumar.executors.uploads import upload
from jumar.journal.writer import EVENTS, read_journal
from jumar.runs.setup.marks import is_own, mark
from jumar.workspace.store.lease import open_locked


@pytest.mark.slow
def test_what_is_unpacked_is_the_run_with_all_its_objects(tmp_path: Path) -> None:
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "add.py").write_text("def add(a, b):\n    return a - b\n")
    (tmp_path / "task" / "test_add.py").write_text(
        "from add import add\n\n\ndef test_it():\n    assert add(1, 2) == 3\n"
    )
    reply = {"name": "write_file", "arguments": {"path": "add.py", "text": "def add(a, b):\n    return a + b\n"}}
    (tmp_path / "script.jsonl").write_text(json.dumps({"tool_calls": [reply]}) + "\n")
    words = ["run", str(tmp_path / "task"), "--model", f"script:{tmp_path}/script.jsonl", "--gate", "off", "-q"]
    assert call([*words, "--test-policy", "on_final", "--runs", str(tmp_path / "here")]) == 0
    (run,) = [path for path in (tmp_path / "here").iterdir() if (path / EVENTS).is_file()]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    moved = unpack_run(pack_run(run), elsewhere, run.name)
    run.rename(tmp_path / "gone")
    (tmp_path / "here" / ".objects").rename(tmp_path / "gone-objects")

    assert read_journal(moved) == read_journal(tmp_path / "gone")
    assert [path.name for path in elsewhere.iterdir() if path.name.startswith((PART, COLLECTED))] == []
    environ = {"XDG_STATE_HOME": str(tmp_path / "state")}
    assert not is_own(moved, environ), "a mark is made where it is collected"
    mark(moved, (moved / EVENTS).read_bytes().split(b"\n")[0], environ)
    assert is_own(moved, environ)
    assert call(["apply", str(moved), "--to", str(tmp_path / "best"), "--trust"]) == 0
    assert (tmp_path / "best" / "add.py").read_text() != (tmp_path / "task" / "add.py").read_text()

    again = unpack_run(pack_run(moved), elsewhere, run.name)
    assert (again, read_journal(again)) == (moved, read_journal(tmp_path / "gone")), "it takes the place of the old one"


def test_a_collector_that_was_killed_leaves_the_old_state_or_the_whole_new_one(tmp_path: Path) -> None:
    for name, said in ((f"{PART}1/r", "half"), (f"{COLLECTED}r", "new"), ("r", "old"), ("other", "other")):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "events.jsonl").write_text(said)

    finish_unpacking(tmp_path)

    assert {path.name: (path / "events.jsonl").read_text() for path in tmp_path.iterdir()} == {
        "r": "new",
        "other": "other",
    }


@pytest.mark.parametrize("name", ["r/../../out", "other/events.jsonl", ".objects/aa/../../out", "/out"])
def test_an_archive_with_anything_else_is_refused_and_leaves_nothing(tmp_path: Path, name: str) -> None:
    out, runs = io.BytesIO(), tmp_path / "runs"
    runs.mkdir()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path in ("r/events.jsonl", name):
            archive.addfile(tarfile.TarInfo(path))

    with pytest.raises(Infra, match=r"which is no file of that run|would be extracted"):
        unpack_run(out.getvalue(), runs, "r")
    with pytest.raises(Infra, match="is damaged"):
        unpack_run(out.getvalue()[:20], runs, "r")

    assert [path.name for path in runs.iterdir()] == [".objects"]
    assert not (tmp_path / "out").exists()


def test_the_folder_of_a_dead_attempt_is_removed_and_one_at_work_stays(tmp_path: Path) -> None:
    (tmp_path / "dead").mkdir()
    (tmp_path / "dead.lock").write_text("")
    (tmp_path / "alive").mkdir()
    held = open_locked(tmp_path / "alive.lock", fcntl.LOCK_EX)

    with enter_attempt(tmp_path, "mine") as folder, enter_attempt(tmp_path, "yours"):
        assert folder.is_dir()
        assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["alive", "mine", "yours"]

    assert sorted(path.name for path in tmp_path.iterdir()) == ["alive", "alive.lock"]
    assert held > 0


def test_an_archive_is_stored_under_a_url_whole_or_it_is_said_why_not(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/far/away"

    assert upload(f"{url}/r.tar.gz", b"data", pause=0) == ""
    assert [path.name for path in (tmp_path / "far" / "away").iterdir()] == ["r.tar.gz"]
    assert (tmp_path / "far" / "away" / "r.tar.gz").read_bytes() == b"data"
    (tmp_path / "file").write_text("")
    assert "Error" in upload(f"file://{tmp_path}/file/r.tar.gz", b"data", pause=0)
