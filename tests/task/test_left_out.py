"""What git ignores is left out of a run's tree, unless it is named; what the tests then lack is said."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from jumar.cli.main import call
from jumar.runs.remove_workspace import KEPT_BYTES, leave_workspace
from jumar.runs.setup.assembly import RunPlace, store_tree
from jumar.runs.tree.missing_files import build_advice, find_needed_files
from jumar.runs.tree.task_tree import announce_size, refuse_unmatched, settle_tree
from jumar.task.task import load_task
from jumar.workspace.files.tree_size import TreeSize
from jumar.workspace.git_ignored import Ignored, drop_included, find_left_out
from jumar.workspace.store.object_store import LIMIT_BYTES, Store
from support.processes.fake_claude_code import git
from support.worlds.run_world import program, world

ENVIRON = {"PATH": os.environ["PATH"]}


def repository(root: Path, files: dict[str, str]) -> Path:
    """A repository that holds *files*, of which none is tracked."""
    root.mkdir(parents=True)
    git(root, "init", "-q")
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def tree_in(root: Path, base: Path) -> set[str]:
    """The paths of the tree that a run of *root* begins with."""
    store = Store(base / "objects")
    return set(store.manifest(store_tree(store, settle_tree(load_task(root), ENVIRON))))


PROJECT = {
    ".gitignore": "build/\n*.log\n/data/\n_version.py\n",
    "app.py": "", "test_app.py": "", "new.txt": "untracked", "build/lib/app.py": "", "a.log": "",
    "data/big.bin": "", "data/small/x.json": "", "pkg/_version.py": "",
}  # fmt: skip
PLAIN = {".gitignore", "app.py", "test_app.py", "new.txt"}


def test_what_git_ignores_is_left_out_and_untracked_files_belong_to_the_tree(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", PROJECT)
    assert tree_in(root, tmp_path) == PLAIN
    git(root, "add", "-f", "a.log")
    assert tree_in(root, tmp_path) == {*PLAIN, "a.log"}


@pytest.mark.parametrize(
    ("include", "more"),
    [
        ('["_version.py"]', {"pkg/_version.py"}),
        ('["/pkg/_version.py"]', {"pkg/_version.py"}),
        ('["data/small/"]', {"data/small/x.json"}),
        ('["data/"]', {"data/small/x.json", "data/big.bin"}),
        ('["data/**/*.json"]', {"data/small/x.json"}),
        ('["*.log", "!a.log"]', set()),
    ],
)
def test_what_is_named_in_files_include_belongs_to_the_tree(tmp_path: Path, include: str, more: set[str]) -> None:
    root = repository(tmp_path / "r", PROJECT)
    (root / "jumar.toml").write_text(f"[files]\ninclude = {include}\n")
    assert tree_in(root, tmp_path) == PLAIN | more


def test_a_glob_that_was_typed_and_matches_nothing_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = repository(tmp_path / "r", PROJECT)
    refuse_unmatched(root, ("_version.py", "/data/", "data/small/", "data/**/*.json", "!a.log"))

    words = ["run", str(root), "--model", "repair", "--runs", str(tmp_path / "runs")]
    assert call([*words, "--include", "*.log", "--include", "dta/"]) == 2
    assert f"--include 'dta/' matches no file in {root}; mend the glob, or leave it out" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_files_exclude_leaves_out_what_git_knows(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", PROJECT)
    (root / "jumar.toml").write_text('[files]\nexclude = ["*.txt"]\n')
    assert tree_in(root, tmp_path) == PLAIN - {"new.txt"}


def test_a_file_that_the_task_names_as_editable_or_as_a_test_is_named(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", PROJECT)
    (root / "jumar.toml").write_text('[files]\neditable = ["pkg/_version.py"]\n[tests]\nselect = ["build/lib"]\n')
    assert tree_in(root, tmp_path) == PLAIN | {"pkg/_version.py", "build/lib/app.py"}


def test_a_folder_in_a_repository_has_the_rules_of_the_repository(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {".gitignore": "*.log\n/part/out/\n", "part/.gitignore": "*.tmp\n"})
    for path in ("part/a.py", "part/x.log", "part/y.tmp", "part/out/z", "part/keep.log", "other/x.log"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("")
    git(root, "add", "-f", "part/keep.log")
    assert tree_in(root / "part", tmp_path) == {".gitignore", "a.py", "keep.log"}


def test_a_folder_that_is_ignored_itself_or_has_a_task_file_is_taken_as_it_is(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {".gitignore": "*.log\nbuild/\n", "build/a.log": "", "task/b.log": ""})
    assert tree_in(root / "build", tmp_path) == {"a.log"}
    assert tree_in(root / "task", tmp_path) == set()
    (root / "task" / "task.toml").write_text("")
    assert tree_in(root / "task", tmp_path) == {"b.log"}


def test_without_git_only_caches_and_histories_are_left_out(tmp_path: Path) -> None:
    for path in ("p/.gitignore", "p/a.log", "p/node_modules/m.js", "p/__pycache__/x.pyc"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("*")
    assert tree_in(tmp_path / "p", tmp_path) == {".gitignore", "a.log"}
    assert find_left_out(tmp_path / "p", ENVIRON).tracked == ()


def test_folders_without_the_way_to_a_named_file_are_not_entered() -> None:
    skip = drop_included(Ignored(("data/", "build/")).build_skip(), ("/data/small/x.json",))
    assert [skip(path) for path in ("data/", "data/small/", "data/small/x.json")] == [False] * 3
    assert [skip(path) for path in ("build/", "data/other/", "data/y", "data/small/y")] == [True] * 4


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("ModuleNotFoundError: No module named 'pkg._version'", ("src/pkg/_version.py",)),
        ("ImportError: cannot import name '_version' from 'pkg' (/r/src/pkg/__init__.py)", ("src/pkg/_version.py",)),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/r/rooms/1/data/x.json'", ("data/x.json",)),
        ("Error: Cannot find module './generated/client'", ("web/generated/client.js",)),
        ("No module named 'pkg.gen'", ("src/pkg/gen/__init__.py",)),
        ("No module named 'speed'", ("speed.cpython-311-x86_64-linux-gnu.so",)),
        ("PackageNotFoundError: No package metadata was found for my-pkg", ("src/my_pkg.egg-info/",)),
        ("No module named 'requests'", ()),
        ('File "/r/src/pkg/core.py", line 3, in f', ()),
        ("assert 1 == 2", ()),
    ],
)
def test_the_ignored_files_that_a_failure_names_are_found(text: str, needed: tuple[str, ...]) -> None:
    ignored = (
        "src/pkg/_version.py", "data/x.json", "web/generated/client.js", "src/pkg/gen/__init__.py",
        "src/my_pkg.egg-info/PKG-INFO", "src/my_pkg.egg-info/SOURCES.txt",
        "speed.cpython-311-x86_64-linux-gnu.so", "build/lib/src/pkg/core.py",
    )  # fmt: skip
    assert find_needed_files([text], ignored, ("src/pkg/core.py", "src/pkg/__init__.py")) == needed


def test_the_advice_names_the_key() -> None:
    assert '[files] include = ["/pkg/_version.py"]' in build_advice(("pkg/_version.py",))


def test_a_tree_above_one_gib_is_announced(tmp_path: Path) -> None:
    assert announce_size(TreeSize(9, LIMIT_BYTES), tmp_path) == ""
    line = announce_size(TreeSize(1234, LIMIT_BYTES * 3 // 2), tmp_path)
    assert "1.5 GiB in 1,234 files" in line
    assert ".gitignore" in line
    assert "[files] exclude" in line


@pytest.mark.slow
def test_a_run_whose_tests_need_an_ignored_file_says_which_and_how_to_name_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = repository(tmp_path / "r", {
        ".gitignore": "_version.py\n", "pkg/_version.py": "version = '1'\n", "pkg/__init__.py": "",
        "pkg/core.py": "from pkg._version import version\n",
        "test_pkg.py": "import pkg.core\n\n\ndef test_one(): ...\n",
    })  # fmt: skip
    argv = ["run", str(root), "--model", "repair", "--runs", str(tmp_path / "runs"), "--confirm", "0"]
    assert call(argv) == 2
    assert '[files] include = ["/pkg/_version.py"]' in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
    assert call([*argv, "--include", "_version.py"]) == 0


def test_a_large_workspace_is_not_kept_after_the_end_and_can_be_laid_out_again(tmp_path: Path) -> None:
    story = world(tmp_path, (f"```python\n{program(12)}```",))
    state = anyio.run(story.kernel.run)
    place, start = RunPlace.at(tmp_path, {}), state.run
    leave_workspace(place, state)
    assert (tmp_path / "workspace").is_dir(), "a small one stays"
    weighty = replace(start, settings=replace(start.settings, tree_bytes=KEPT_BYTES + 1))
    leave_workspace(place, replace(state, start=weighty))
    assert not (tmp_path / "workspace").exists()
    place.store.materialise(state.tree, tmp_path / "again")
    assert (tmp_path / "again" / "app.py").read_text() == program(12)
