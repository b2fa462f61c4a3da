"""What a repository names is shown only if it is what it claims to be, and what is the person's own never."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from jumar.plugins import load
from jumar.ports import Runner
from jumar.runners._programs import find_runner_surroundings
from jumar.sandbox import launch_order, personal_files, program_files
from jumar.sandbox.bwrap import Bubblewrap
from jumar.sandbox.request import Reach
from support.processes.sandboxes import environment_of, s3

PYTHON = Path(sys.executable)


def shown(home: Path, *paths: Path, own: tuple[Path, ...] = (), python: Path = PYTHON) -> set[Path]:
    return set(personal_files.list_shown_files(python, Reach(readable=paths, own=own), (home,))) & set(paths)


@pytest.mark.parametrize(
    "name",
    [
        *("", "..", ".ssh", ".ssh/id_rsa", ".aws/credentials", ".gnupg", ".netrc", ".bash_history", ".config/gh"),
        *(".cargo/credentials.toml", ".cargo", ".npm/_npmrc", ".m2/settings.xml", ".gradle/gradle.properties"),
        *(
            ".local",
            ".local/share",
            ".local/share/keyrings/login",
            ".cache/mozilla",
            ".env",
            ".claude",
            ".gem/credentials",
        ),
        *("led", "led/id_rsa", "work/../.ssh", "deep/../id_rsa", ".gem/credentials"),
    ],
)
def test_what_is_the_person_s_own_is_not_shown(tmp_path: Path, name: str) -> None:
    home = tmp_path / "people" / "me"
    for folder in (".ssh/deep", ".aws", ".cargo", ".config/gh", ".local/share/keyrings", "work"):
        (home / folder).mkdir(parents=True)
    (home / ".cargo" / "credentials.toml").touch()
    (home / ".env").touch()
    (home / "led").symlink_to(".ssh")
    (home / "deep").symlink_to(".ssh/deep")
    assert not shown(home, home / name)
    assert not shown(home, home / name, own=(home, tmp_path)), "a repository that is the home itself changes nothing"


@pytest.mark.parametrize(
    "name",
    [
        *(
            "work",
            "go/pkg",
            "venv/bin",
            ".pyenv/versions/3.12/bin",
            ".rustup",
            ".cargo/bin",
            ".cargo/registry",
            ".npm/_x",
        ),
        *(".local/bin", ".local/lib", ".local/share/uv/python", ".cache/go-build", ".nvm/versions", ".m2/repository/x"),
        *(".miniconda3/lib", ".venvs/one/bin", ".config/yarn/global/node_modules"),
    ],
)
def test_toolchains_and_what_is_no_dot_folder_are_shown(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir(parents=True)
    assert shown(tmp_path, tmp_path / name)


def test_the_task_may_lie_anywhere_and_so_may_what_was_named_to_run(tmp_path: Path) -> None:
    task, key = tmp_path / ".work" / "task", tmp_path / ".work" / "key"
    python = environment_of(tmp_path / ".mine")
    task.mkdir(parents=True)
    key.touch()
    (task / "led").symlink_to(key)
    readable = (task / "node_modules", key, task / "led", python.parent.parent / "lib", tmp_path / ".mine" / "notes")
    assert shown(tmp_path, *readable, own=(task,), python=python) == {readable[0], readable[3]}
    assert shown(tmp_path, key, own=(key,)) == {key}


def test_homes_are_those_of_the_environment_and_of_the_password_database() -> None:
    assert {Path.home(), Path(pwd.getpwuid(os.getuid()).pw_dir)} == set(personal_files.find_homes())


def test_each_tier_shows_by_the_same_rule(tmp_path: Path) -> None:
    room, private = tmp_path / "run" / "room", tmp_path / "run" / "private"
    reach = Reach(readable=(Path.home(), Path("/"), tmp_path / "seen"))
    (tmp_path / "seen").mkdir()
    order = launch_order.build_order((str(PYTHON),), room, private, reach).readable
    argv = Bubblewrap(Path("/bwrap"), b"").wrap((str(PYTHON),), room, private, reach).argv
    for seen in (order, argv[argv.index("--dev") :]):
        assert str(tmp_path / "seen") in seen
        assert str(Path.home()) not in seen
    assert "/" not in order


@pytest.mark.parametrize("crafted", ["home", "chain", "python", "lib", "config", "bin"])
def test_of_a_crafted_environment_only_what_it_claims_to_be_is_seen(tmp_path: Path, crafted: str) -> None:
    private, venv = tmp_path / "private", tmp_path / "task" / ".venv"
    private.mkdir()
    for name in ("id_rsa", "python"):
        (private / name).write_text("SECRET", "utf-8")
    if crafted == "bin":
        (private / "python").chmod(0o755)
    python = environment_of(venv)
    led = {"python": venv / "bin" / "python", "lib": venv / "lib", "config": venv / "pyvenv.cfg", "bin": venv / "bin"}
    if crafted in led:
        if crafted == "bin":
            python.unlink()
        led[crafted].rmdir() if led[crafted].is_dir() else led[crafted].unlink()
        led[crafted].symlink_to(private if crafted in ("lib", "bin") else private / "id_rsa")
    else:
        away = venv / "away"
        away.mkdir()
        (away / "python").symlink_to(private / "id_rsa")
        (venv / "pyvenv.cfg").write_text(f"home = {private if crafted == 'home' else away}\n", "utf-8")

    found = [path for path in program_files.find_interpreter_files(python) if path.exists()]

    assert not [path for path in found if path.resolve().is_relative_to(private)]
    if crafted in ("home", "chain", "lib"):
        assert Path(sys.base_prefix, "lib") in found, "the interpreter is one all the same"


@pytest.mark.parametrize("way", ["home", "link"])
def test_the_environment_of_another_project_is_not_seen_through_one_s_own(tmp_path: Path, way: str) -> None:
    other = environment_of(tmp_path / "other").parent
    own = tmp_path / "own" / "bin"
    own.mkdir(parents=True)
    (own / "python").symlink_to(other / "python" if way == "link" else sys.executable)
    (own.parent / "pyvenv.cfg").write_text(f"home = {other}\n")

    seen = program_files.find_interpreter_files(own / "python")

    assert own in seen
    assert not {path for path in seen if path.is_relative_to(tmp_path / "other")} - {other / "python"}


def test_links_on_a_path_that_leads_into_the_project_are_not_followed(tmp_path: Path) -> None:
    private, task = tmp_path / "private" / "bin" / "run", tmp_path / "task"
    private.parent.mkdir(parents=True)
    private.touch(0o755)
    (task / "tools").mkdir(parents=True)
    (task / "tools" / "run").symlink_to(private)
    (task / "led").symlink_to(private.parent)
    found = program_files.find_path_files(f"{task}/tools:{task}/led", str(tmp_path / "home"), task)
    assert found == (task / "tools",)


def test_the_task_s_own_is_its_repository_and_what_the_environment_names(tmp_path: Path) -> None:
    (tmp_path / "mono" / ".git").mkdir(parents=True)
    (tmp_path / "mono" / "part").mkdir()
    runner: Runner = load("runners", "pytest")  # type: ignore[assignment]
    around = find_runner_surroundings(runner, tmp_path / "mono" / "part", {"JUMAR_NODE_MODULES": "/x/node_modules"})
    assert around.own == (tmp_path / "mono" / "part", tmp_path / "mono", Path("/x/node_modules"))


@pytest.mark.slow
def test_a_key_in_the_home_cannot_be_read_from_a_sandbox_by_links_of_the_repository(tmp_path: Path) -> None:
    s3()
    home, task = tmp_path / "home", tmp_path / "task"
    for folder in (home / ".ssh", task / "node_modules", task / ".venv" / "away"):
        folder.mkdir(parents=True)
    (home / ".ssh" / "id_rsa").write_text("SECRET", "utf-8")
    (home / ".ssh" / "package.json").touch()  # a package by its looks
    (task / "package.json").touch()
    (task / "node_modules" / "led").symlink_to(home / ".ssh")
    command = f"grep -q SECRET {home}/.ssh/id_rsa"
    argv = (PYTHON.with_name("jumar"), "score", "--sandbox", "S3", "--test-command", command, str(task), str(task))
    done = subprocess.run(argv, env={**os.environ, "HOME": str(home)}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout[:3]) == (1, "red"), done.stdout + done.stderr
