"""The tree that is scored: a folder's, the reference over the task's own files, or that of a run of the same task."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumar.cli.main import call
from jumar.errors import BadInput
from jumar.runs.candidate import describe_ignored, store_candidate
from jumar.runs.setup.assembly import RunPlace, store_tree
from jumar.runs.tree.task_tree import settle_tree
from jumar.task.task import load_task
from jumar.workspace.files.trees import EntryKind, Node
from support.processes.interpreters import PLAIN_PYTHON
from support.worlds.rollout_world import work, write_passing
from support.worlds.run_world import TOTAL

TEST = "from aa import f\nfrom bb import g\n\n\ndef test_both():\n    assert f() + g() == 3\n"


def lay_task(folder: Path) -> Path:
    """A task with two editable files, of which its reference has one."""
    for path, text in {
        "task.toml": '[task]\nreference = "reference"\n[files]\neditable = ["aa.py", "bb.py"]\n',
        "aa.py": "def f():\n    return 1\n",
        "bb.py": "def g():\n    return 1\n",
        "test_both.py": TEST,
        "reference/bb.py": "def g():\n    return 2\n",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def store(task_folder: Path, where: Path, scratch: Path) -> dict[str, str]:
    """The files of the candidate in *where*, as they are scored."""
    task, place = settle_tree(load_task(task_folder), {}), RunPlace.passing(scratch, {})
    tree = store_candidate(task, where, place, store_tree(place.store, task))
    return {path: place.store.get(node.sha256).decode() for path, node in place.store.manifest(tree).items()}


def test_the_task_s_reference_is_laid_over_its_files_and_another_folder_is_a_whole_tree(tmp_path: Path) -> None:
    task = lay_task(tmp_path / "task")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "bb.py").write_text("")

    laid = store(task, task / "reference", tmp_path / "scratch")

    assert (set(laid), laid["bb.py"]) == ({"aa.py", "bb.py", "test_both.py"}, "def g():\n    return 2\n")
    assert set(store(task, tmp_path / "other", tmp_path / "scratch")) == {"bb.py"}


@pytest.mark.slow
def test_a_reference_that_check_finds_green_is_scored_green(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = lay_task(tmp_path / "task")

    assert call(["score", str(task), str(task / "reference"), "--sandbox", "S0", "--python", PLAIN_PYTHON]) == 0
    said = capsys.readouterr()
    assert f"note: {task / 'reference'} is the task's reference: its files are laid over those of the task" in said.err
    assert "warning" not in said.err


def test_a_run_of_another_task_is_refused_and_one_of_a_renamed_task_is_not(tmp_path: Path) -> None:
    task = lay_task(tmp_path / "task")
    run = work(tmp_path / "runs" / "20261124-r", (write_passing(TOTAL),))

    with pytest.raises(BadInput, match=r"is a run of the task 'app' in .*, and .*task is the task 'task', with other"):
        store(task, run, tmp_path / "scratch")
    (task / "task.toml").write_text('[task]\nname = "app"\n')
    assert store(task, run, tmp_path / "scratch")


def test_a_warning_says_which_files_were_not_taken_and_why() -> None:
    def lay(*paths: str) -> dict[str, Node]:
        return {path.rstrip("!"): Node(EntryKind.FILE, path, executable=False) for path in paths}

    own = lay("a.py", "test_a.py", "test_b.py", "1", "2", "3")
    told = tuple(describe_ignored(own, lay("a.py", "test_a.py!", "notes.md"), own))

    assert told == (
        "notes.md is no file of the task and was not taken: it is not editable",
        "test_a.py differs from the task's own and was not taken: it is not editable",
        "not in that tree, so the task's own were used: 1, 2, 3 and 1 more",
    )
    assert tuple(describe_ignored(own, own, own)) == ()
