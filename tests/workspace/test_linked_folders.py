"""Folders that a repository brings as links: nothing behind them is removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumar.cli.main import call
from jumar.errors import BadInput, Infra
from jumar.hooks.repository_session import RepositorySession
from jumar.hooks.session_folder import prune
from jumar.runs.archive.find import find_runs
from jumar.workspace.store.lease import SHARED
from jumar.workspace.store.object_store import Store
from jumar.workspace.store.sweep import sweep
from support.processes.fake_claude_code import Host, repository
from support.processes.ticks import wait_for_a_tick


def filled(folder: Path) -> Path:
    """A folder of a person, with more folders in it than a hook keeps."""
    for number in range(14):
        (folder / f"{number:02}").mkdir(parents=True)
    return folder


@pytest.mark.parametrize("name", ["runs", "put-back", "runs/.objects"])
def test_a_hook_refuses_a_link_in_its_folder(tmp_path: Path, name: str) -> None:
    link = tmp_path / "project" / ".jumar" / "hook" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(filled(tmp_path / "many"))
    with pytest.raises(Infra, match="is a link"), RepositorySession(tmp_path / "project", {}).hold_lock():
        pass


def test_a_hook_writes_no_gitignore_through_a_link(tmp_path: Path) -> None:
    (tmp_path / ".jumar" / "hook").mkdir(parents=True)
    (tmp_path / ".jumar" / "hook" / ".gitignore").symlink_to(tmp_path / "elsewhere")
    with RepositorySession(tmp_path, {}).hold_lock():
        assert not (tmp_path / "elsewhere").exists()


def test_prune_removes_only_runs_and_never_through_a_link(tmp_path: Path) -> None:
    many = filled(tmp_path / "many")
    (tmp_path / "link").symlink_to(many)
    assert not prune(many, 1)
    for folder in many.iterdir():
        (folder / "events.jsonl").touch()
    assert not prune(tmp_path / "link", 1)
    assert prune(many, 1)
    assert [path.name for path in many.iterdir()] == ["13"]


def test_prune_removes_old_put_back_folders(tmp_path: Path) -> None:
    for second in range(3):
        (tmp_path / f"20260101-00000{second}-000000000").mkdir()
    assert prune(tmp_path, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["20260101-000002-000000000"]


@pytest.mark.parametrize("linked", [True, False])
def test_a_sweep_removes_only_objects_of_a_store_that_is_no_link(tmp_path: Path, linked: bool) -> None:  # noqa: FBT001  a row
    docs, root = tmp_path / "docs", tmp_path / "runs" / SHARED
    root.parent.mkdir()
    real = docs if linked else root
    thesis = real / "cv" / "thesis.tex"
    thesis.parent.mkdir(parents=True)
    thesis.touch()
    if linked:
        root.symlink_to(docs)
    else:
        (root / "ab").symlink_to(thesis.parent)
        Store(real).put(b"unneeded")
    wait_for_a_tick(tmp_path)
    assert sweep(root, ()).objects == (0 if linked else 1)
    assert thesis.exists()


def test_a_run_that_is_a_link_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "events.jsonl").touch()
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "r").symlink_to(tmp_path / "away")
    assert find_runs(tmp_path / "runs") == ()


COMMANDS = (
    ("run", ".", "--model", "repair"), ("resume", "last"), ("runs",), ("diff",), ("apply",), ("clean", "--all"),
    ("log", "verify", "last"), ("mcp",), ("demo",), ("doctor",),
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("name", [".jumar", ".jumar/runs", ".jumar/runs/.objects", ".jumar/runs/.objects/leases"])
def test_no_command_follows_a_link_that_nobody_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, command: list[str]
) -> None:
    (tmp_path / "here" / name).parent.mkdir(parents=True)
    (tmp_path / "away" / "runs").mkdir(parents=True)
    (tmp_path / "here" / name).symlink_to(tmp_path / "away")
    monkeypatch.chdir(tmp_path / "here")

    code = call(command)

    why = f"{name} is a link to {tmp_path / 'away'}, and no link is followed there; remove it, or name the folder"
    assert (code, capsys.readouterr().err) == (2, f"jumar: {why} of the runs itself\n")
    assert sorted((tmp_path / "away").rglob("*")) == [tmp_path / "away" / "runs"]


def test_a_folder_that_a_person_names_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "away" / "r").mkdir(parents=True)
    (tmp_path / "away" / "r" / "events.jsonl").touch()
    (tmp_path / "runs").symlink_to(tmp_path / "away")
    assert find_runs(tmp_path / "runs") == (tmp_path / "runs" / "r",)


@pytest.mark.slow
def test_a_hook_believes_no_session_that_came_with_the_repository(tmp_path: Path) -> None:
    host = Host(repository(tmp_path / "project"))
    host.prompt()
    (run,) = (tmp_path / "project" / ".jumar" / "hook" / "runs").glob("2*")
    (run / "mark").unlink()

    with pytest.raises(BadInput, match="JUMAR_HOOK_TRUST=1"):
        RepositorySession(host.root, host.environ).read_tree()
    assert RepositorySession(host.root, {**host.environ, "JUMAR_HOOK_TRUST": "1"}).find_run() == run
    assert not host.prompt().blocked
    assert RepositorySession(host.root, host.environ).find_run() != run, "a prompt begins another one"
