"""Places of a task that no sandbox shows, whoever names them; a folder that holds one is not shown as a whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jumar.cli.doctor.gate import check_path
from jumar.errors import BadInput
from jumar.sandbox import personal_files
from jumar.sandbox.barred_places import explain_left_out, list_barred_places, refuse_barred_in
from jumar.sandbox.program_files import find_path_files
from jumar.sandbox.request import Reach
from jumar.task.task import load_task
from support.processes.sandboxes import s3

PYTHON = Path(sys.executable)

FILES = {
    "work/task/task.toml": '[task]\nreference = "reference"\n[tests]\nhidden = "hidden"\n',
    "work/task/app.py": "",
    "work/task/test_app.py": "def test_app(): pass\n",
    "work/task/hidden/test_h.py": "SECRET",
    "work/task/reference/app.py": "SECRET",
    "work/task/.git/HEAD": "",
    "work/task/.jumar/runs/one/events.jsonl": '{"seq":0,"type":"run_start"}\n',
    "work/task/.venv/bin/tool": "#!/bin/sh\n",
    "work/task/tools/build": "#!/bin/sh\n",
    "work/task/run.sh": "#!/bin/sh\n",
    "work/task/data": "SECRET",
    "work/tool": "#!/bin/sh\n",
    "work/notes": "SECRET",
    "runs/two/events.jsonl": '{"seq":0,"type":"run_start"}\n',
    "runs/show": "#!/bin/sh\n",
    "more/three/events.jsonl": '{"seq":0,"type":"run_start"}\n',
    "bin/tool": "#!/bin/sh\n",
    "bin/events.jsonl": "somebody else's\n",
}
"""Every file may be executed, as on some disks."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A task with all that one may hold, a folder above it, runs elsewhere."""
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
        (tmp_path / path).chmod(0o755)
    (tmp_path / "work" / "task" / "led").symlink_to("reference/app.py")
    (tmp_path / "away").symlink_to("work/task")
    return tmp_path


def reserved(place: Path) -> tuple[Path, ...]:
    task = place / "work" / "task"
    return list_barred_places(task, (str(task / "hidden"), str(task / "reference")))


TOLD = [
    ("work/task", ["work/task/run.sh"]),
    ("away", ["away/run.sh"]),
    ("bin/../work/task", ["bin/../work/task/run.sh"]),
    ("work", ["work/tool"]),
    ("work/task/hidden", []),
    ("work/task/hidden/test_h.py", []),
    ("away/reference", []),
    ("work/task/led", []),
    ("work/task/task.toml", []),
    ("work/task/.git", []),
    ("work/task/.jumar/runs", []),
    ("work/task/tools", ["work/task/tools"]),
    ("work/task/.venv/bin", ["work/task/.venv/bin"]),
    ("work/task/app.py", ["work/task/app.py"]),
    ("bin", ["bin"]),
]
"""A path that somebody names, and what is shown of it."""


@pytest.mark.parametrize(("named", "shown"), TOLD)
@pytest.mark.parametrize("own", [False, True], ids=["found", "named by the person"])
def test_what_a_sandbox_shows_of_a_path(place: Path, named: str, shown: list[str], *, own: bool) -> None:
    path = place / named
    reach = Reach(readable=(path,), own=(path,) if own else (), barred=reserved(place))

    found = personal_files.list_shown_files(Path("/nowhere/python"), reach, homes=())

    assert found == tuple(place / one for one in shown)


@pytest.mark.parametrize(
    ("named", "shown"),
    [("runs", ["runs/show"]), ("more", []), ("runs/two", []), ("work/task/.jumar", []), ("bin", ["bin"])],
)
def test_runs_of_whatever_task_are_not_seen_by_way_of_a_path(place: Path, named: str, shown: list[str]) -> None:
    found = find_path_files(str(place / named), str(place / "home"), place / "task")

    assert found == tuple(place / one for one in shown)


def test_a_person_is_told_which_folders_of_path_are_not_there(place: Path) -> None:
    folders = (
        "/usr/bin",
        "bin",
        "work",
        "work/task/hidden",
        "runs",
        "more",
        "runs/two",
        "home",
        ".",
        "work/task/tools",
        "gone",
    )
    (place / "home").mkdir()
    search = ":".join(str(place / folder) for folder in folders)

    told = [said.removeprefix(str(place)) for said in explain_left_out(search, reserved(place), (place / "home",))]

    single = "on PATH holds the task or runs: a sandbox shows the programs directly in it, and nothing else"
    assert [said.partition(";")[0] for said in told] == [
        f"/work {single}",
        "/work/task/hidden on PATH is what the task keeps for itself, or a run's: no sandbox shows it",
        f"/runs {single}",
        f"/more {single}",
        "/runs/two on PATH is what the task keeps for itself, or a run's: no sandbox shows it",
        "/home on PATH holds your home: no sandbox shows it",
        " on PATH holds your home: no sandbox shows it",
    ]


def test_the_doctor_names_them(place: Path) -> None:
    task = load_task(place / "work" / "task")

    (check,) = check_path(task, {"PATH": f"/usr/bin:{task.root}/reference:{task.root}/tools"})

    assert (check.name, check.ok, check.needed) == ("path", False, False)
    assert check.found.startswith(f"{task.root}/reference on PATH is what the task keeps")


def test_among_the_system_s_programs_nothing_can_be_kept(place: Path) -> None:
    refuse_barred_in((place / "bin", place / "gone"), reserved(place))

    with pytest.raises(BadInput, match=r"sees .*/work, and the task keeps .*/\.git for itself: move it elsewhere"):
        refuse_barred_in((place / "bin", place / "work"), reserved(place))


@pytest.mark.slow
@pytest.mark.parametrize("named", ["work/task", "work", "work/task/reference", "runs"])
def test_code_under_test_cannot_read_them_by_way_of_a_path(place: Path, named: str) -> None:
    s3()
    task = place / "work" / "task"
    shutil.rmtree(task / ".git")  # it is none
    (task / "task.toml").write_text('[task]\nreference = "reference"\n')  # a command can have no held-out tests
    secrets = ("work/task/reference/app.py", "work/task/data", "work/notes", "runs/two/events.jsonl")
    read = " || ".join(f"test -r {place}/{path}" for path in secrets)
    search = f"{os.environ['PATH']}:{place / named}"
    argv = (PYTHON.with_name("jumar"), "score", "--sandbox", "S3", "--test-command", read, str(task), str(task))

    done = subprocess.run(argv, env={**os.environ, "PATH": search}, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout[:3]) == (1, "red"), done.stdout + done.stderr
