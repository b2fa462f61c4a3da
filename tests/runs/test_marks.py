"""Marks of runs: made by this user on this machine, or not there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from jumar.core.state import events as ev
from jumar.core.state.budget import Budget
from jumar.core.state.external_agent import ExternalAgentSettings
from jumar.core.state.settings import Settings, Suite
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.errors import BadInput
from jumar.journal.writer import EVENTS, Journal
from jumar.runs.setup.marks import KEY, MARK, Trust, build_key_ignore_line, find_state_folder, is_own, mark
from jumar.sandbox.program_files import find_path_files
from jumar.sandbox.request import Reach
from sandbox.test_sandbox_tiers import place, python
from support.processes.sandboxes import s3

__all__ = ["place"]

SETTINGS = Settings(
    origin="/home/me",
    suite=Suite(runner="command", command="sh evil.sh"),
    verify="make \x1b[2J all",
    outside=ExternalAgentSettings(argv=("agent", "a b")),
)


def begun(folder: Path, settings: Settings = SETTINGS) -> Path:
    """A run directory with one event and no mark."""
    start = ev.RunStart(
        run="r", task="t", agent="driver", model="m", test_policy=TestPolicy.ON_WRITE, gate=Gate.OFF, budget=Budget(),
        expected=("t.py::test",), tree="", settings=settings,
    )  # fmt: skip
    with Journal.create(folder) as journal:
        journal.append((start,), 0.0)
    return folder


def marked(folder: Path, environ: Mapping[str, str]) -> Path:
    """The same with its mark, as a run of the user with *environ* has it."""
    begun(folder)
    mark(folder, (folder / EVENTS).read_bytes().splitlines()[0], environ)
    return folder


def home(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home")}


def test_a_run_that_was_begun_here_is_own_wherever_it_is_moved(tmp_path: Path) -> None:
    run = marked(tmp_path / "p" / ".jumar" / "runs" / "r", home(tmp_path))
    with Journal.open(run) as journal:
        journal.append((ev.Resume(from_seq=0),), 1.0)
    moved = shutil.move(run, tmp_path / "elsewhere")

    assert is_own(Path(moved), home(tmp_path))
    assert Trust(home(tmp_path)).run(Path(moved)).folder == Path(moved)


def test_the_key_is_private_whole_and_made_once(tmp_path: Path) -> None:
    marked(tmp_path / "r", home(tmp_path))
    key = tmp_path / "home" / ".local" / "state" / "jumar" / KEY
    before = key.read_bytes()
    marked(tmp_path / "s", home(tmp_path))

    assert (len(before), key.stat().st_mode & 0o777, key.parent.stat().st_mode & 0o777) == (32, 0o600, 0o700)
    assert key.read_bytes() == before
    assert list(key.parent.iterdir()) == [key]


def become_a_folder(run: Path, _: Path) -> None:
    (run / MARK).unlink()
    (run / MARK).mkdir()


def change_the_command(run: Path, _: Path) -> None:
    (run / EVENTS).write_bytes((run / EVENTS).read_bytes().replace(b"evil", b"good"))


CHANGES: Mapping[str, Callable[[Path, Path], object]] = {
    "another first line": lambda run, _: (run / EVENTS).write_bytes(
        (run / EVENTS).read_bytes().replace(b"evil", b"good")
    ),
    "no mark": lambda run, _: (run / MARK).unlink(),
    "another mark": lambda run, _: (run / MARK).write_text("0" * 64 + "\n"),
    "an empty mark": lambda run, _: (run / MARK).write_text(""),
    "a mark that is no text": lambda run, _: (run / MARK).write_bytes(b"\xff" * 64),
    "a mark that is a folder": become_a_folder,
    "another key": lambda _, key: key.write_bytes(b"x" * 32),
    "a key that others may read": lambda _, key: key.chmod(0o640),
    "a short key": lambda _, key: key.write_bytes(b"x"),
    "a key that is a link": lambda _, key: key.symlink_to(key.rename(key.with_name("other"))),
    "no key": lambda _, key: key.unlink(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_without_its_mark_and_key_a_run_is_anybody_s(tmp_path: Path, change: Callable[[Path, Path], object]) -> None:
    run = marked(tmp_path / "r", home(tmp_path))
    assert is_own(run, home(tmp_path))

    change(run, tmp_path / "home" / ".local" / "state" / "jumar" / KEY)

    assert not is_own(run, home(tmp_path))
    with pytest.raises(BadInput, match="--trust"):
        Trust(home(tmp_path)).run(run)
    assert Trust(home(tmp_path), anyone=True).run(run).folder == run


def test_the_refusal_names_all_that_would_be_believed(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as refused:
        Trust(home(tmp_path)).run(begun(tmp_path / "r"))

    assert str(refused.value) == (
        f"you did not begin the run in {tmp_path / 'r'} on this machine, or an older jumar did: its journal says to "
        "write to /home/me and to run `sh evil.sh`, `make all`, `agent 'a b'` in sandbox S0; add --trust if that is "
        "what you want"
    )


def test_a_journal_that_begins_with_another_event_is_refused_too(tmp_path: Path) -> None:
    with Journal.create(tmp_path) as journal:
        journal.append((ev.Resume(from_seq=0),), 0.0)
    with pytest.raises(BadInput, match="nothing that can be told"):
        Trust({}).run(tmp_path)


def test_a_run_without_an_event_is_nobody_s_and_a_damaged_one_says_so(tmp_path: Path) -> None:
    (tmp_path / EVENTS).write_bytes(b"")
    assert Trust({}).run(tmp_path).folder == tmp_path
    (tmp_path / EVENTS).write_bytes(b"nonsense\n")
    with pytest.raises(BadInput, match="line 1 of the journal is damaged"):
        Trust({}).run(tmp_path)


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"XDG_STATE_HOME": "/s", "HOME": "/h"}, Path("/s/jumar")),
        ({"XDG_STATE_HOME": "relative", "HOME": "/h"}, Path("/h/.local/state/jumar")),
        ({"HOME": "/h"}, Path("/h/.local/state/jumar")),
        ({"HOME": "relative"}, None),
        ({}, None),
    ],
)
def test_the_key_lies_in_the_state_folder_of_the_person(environ: dict[str, str], folder: Path | None) -> None:
    assert find_state_folder(environ) == folder


@pytest.mark.parametrize("state", ["/dev/null", "/proc/self", "repository"])
def test_where_no_key_can_be_kept_nothing_is_marked_and_nothing_is_said(tmp_path: Path, state: str) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path / state)}  # an absolute one stays as it is
    run = marked(tmp_path / "repository" / ".jumar" / "runs" / "r", environ)

    assert not (run / MARK).exists()
    assert not is_own(run, environ)


def test_a_key_that_comes_with_the_repository_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    environ = {"XDG_STATE_HOME": str(tmp_path / "project" / "state")}
    run = marked(tmp_path / "project" / "r", environ)
    assert is_own(run, environ), "it lies in no .jumar: nobody knows which folder is the repository"

    (tmp_path / "project" / ".jumar").mkdir()
    assert not is_own(run.rename(tmp_path / "project" / ".jumar" / "r"), environ)


@pytest.mark.parametrize("name", ["mark", "events.jsonl"])
def test_a_mark_or_a_journal_that_a_link_borrows_is_none(tmp_path: Path, name: str) -> None:
    environ = home(tmp_path)
    run = marked(tmp_path / "r", environ)
    assert is_own(run, environ)

    (run / name).rename(tmp_path / "away")
    (run / name).symlink_to(tmp_path / "away")

    assert not is_own(run, environ)


def test_the_key_is_part_of_no_tree(tmp_path: Path) -> None:
    environ = home(tmp_path)
    assert build_key_ignore_line(tmp_path, environ) == ("/home/.local/state/jumar/",)
    assert build_key_ignore_line(tmp_path / "project", environ) == ()


@pytest.mark.slow
def test_what_runs_in_a_sandbox_cannot_read_the_key(place: Path) -> None:
    environ = {"HOME": str(place / "home"), "PATH": f"{place}/home/.local/bin:{os.environ['PATH']}"}
    marked(place / "r", environ)
    (place / "home" / ".local" / "bin").mkdir()
    key = place / "home" / ".local" / "state" / "jumar" / KEY

    reach = Reach(readable=find_path_files(environ["PATH"], environ["HOME"], place / "task"))
    said = python(f"open({str(key)!r}, 'rb')", place, s3(), reach)

    assert said.splitlines()[-1].startswith("FileNotFoundError")
