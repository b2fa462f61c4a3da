"""Which pytest a project's environment has is read from its files; the interpreter there is not started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jumar.cli.doctor.pytest_version import find_pytest_version, is_project_python
from jumar.cli.main import call
from support.processes.sandboxes import environment_of

METADATA = "Metadata-Version: 2.4\nName: pytest\nVersion: 8.3.2\n\nVersion: of the text\n"


def installed(place: Path, name: str = "pytest-8.3.2.dist-info/METADATA", text: str = METADATA) -> Path:
    """Lay the record of a package in an environment."""
    file = place / "lib" / "python3.12" / "site-packages" / name
    file.parent.mkdir(parents=True)
    file.write_text(text, "utf-8")
    return file


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ("home = /nowhere\nversion = 3.12.4\n", "8.3.2 with Python 3.12.4"),
        ("home = /nowhere\nversion_info = 3.12.4.final.0\n", "8.3.2 with Python 3.12.4.final.0"),
        ("", "8.3.2 with Python 3.12"),
        ("version = \x1b[31m\n", "8.3.2 with Python 3.12"),
    ],
)
def test_versions_are_read_from_the_environment_s_files(tmp_path: Path, settings: str, found: str) -> None:
    python = environment_of(tmp_path)
    (tmp_path / "pyvenv.cfg").write_text(settings, "utf-8")
    installed(tmp_path)
    assert find_pytest_version(python) == found


def test_an_environment_may_share_packages(tmp_path: Path) -> None:
    python = environment_of(tmp_path / "own")
    installed(tmp_path / "more")
    assert find_pytest_version(python) == ""
    file = installed(tmp_path / "own", "more.pth", f"{tmp_path}/more/lib/python3.12/site-packages\n")
    assert find_pytest_version(python).startswith("8.3.2")
    file.write_text("", "utf-8")
    (tmp_path / "base" / "bin").mkdir(parents=True)
    (tmp_path / "base" / "bin" / "python3").symlink_to(python)
    installed(tmp_path / "base")
    settings = f"home = {tmp_path}/base/bin\ninclude-system-site-packages = true\n"
    (tmp_path / "own" / "pyvenv.cfg").write_text(settings, "utf-8")
    assert find_pytest_version(python).startswith("8.3.2")


@pytest.mark.parametrize("text", ["", "Version: \x1b[31m\n", "Version: " + "1" * 100])
def test_a_record_without_a_version_is_none(tmp_path: Path, text: str) -> None:
    python = environment_of(tmp_path)
    os.mkfifo(installed(tmp_path, text=text).with_name("x.pth"))
    assert find_pytest_version(python) == ""


def test_an_interpreter_comes_with_the_task_by_its_name_or_its_place(tmp_path: Path) -> None:
    python, elsewhere = environment_of(tmp_path / "task" / ".venv"), environment_of(tmp_path / "else")
    (tmp_path / "task" / "led").symlink_to(elsewhere.parent)
    (tmp_path / "led").symlink_to(python.parent)
    task = tmp_path / "task"
    assert is_project_python(python, task)
    assert is_project_python(task / "led" / "python", task)
    assert is_project_python(tmp_path / "led" / "python", task)
    assert not is_project_python(elsewhere, task)


@pytest.mark.slow
def test_doctor_does_not_start_what_the_repository_brings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    python = environment_of(tmp_path / ".venv")
    installed(tmp_path / ".venv")
    python.unlink()
    python.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n", "utf-8")
    python.chmod(0o755)
    (tmp_path / "test_it.py").write_text("def test_it():\n    pass\n", "utf-8")
    call(("doctor", str(tmp_path), "--runs", str(tmp_path / "runs")))
    assert "8.3.2 with Python 3 at" in capsys.readouterr().out
    assert not (tmp_path / "started").exists()
