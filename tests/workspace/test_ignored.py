"""What git ignores is a person's own: never read into a tree, never put back, never removed."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.errors import BadInput
from jumar.workspace.files import safe_paths
from jumar.workspace.files.restore_modes import unlock
from jumar.workspace.files.scan import FolderScan
from jumar.workspace.files.trees import EntryKind
from jumar.workspace.git_ignored import Ignored, read_ignored
from jumar.workspace.store.object_store import Store
from jumar.workspace.workspace import Workspace
from support.processes.fake_claude_code import git

LINES = (
    "*.log", "build/", "/out", "a/b", "!keep.log", "**/out/", "a/**", "b/*", "!b/y.py", "x.*", "/a/", "out/*",
    "!out/y.py", "*.py[co]", "\\!x", "a", "!a", "/b", "y.py  ", "[xz]", "?.py", "# no", "",
)  # fmt: skip
NAMES = ("x.log", "y.py", "keep.log", "z")
FOLDERS = ("a", "b", "build", "out")


def grown(root: Path, rng: random.Random) -> Path:
    """A repository with files and rules by chance, some of its files tracked against them."""
    root.mkdir()
    git(root, "init", "-q")
    for _ in range(25):
        folder = root.joinpath(*(rng.choice(FOLDERS) for _ in range(rng.randrange(3))))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / rng.choice(NAMES)).write_text("x")
    folders = [root, *(p for p in sorted(root.rglob("*")) if p.is_dir() and ".git" not in p.parts)]
    for folder in rng.sample(folders, min(len(folders), 2)):
        (folder / ".gitignore").write_text("\n".join(rng.sample(LINES, rng.randrange(1, 5))) + "\n")
    (root / ".git" / "info" / "exclude").write_text(rng.choice(LINES) + "\n")
    there = [p.relative_to(root).as_posix() for p in sorted(root.rglob("*")) if p.is_file() and ".git" not in p.parts]
    git(root, "add", "-f", "--", *rng.sample(there, rng.randrange(4)), ":!nothing")
    return root


@pytest.mark.slow
def test_the_rule_is_git_s_own(tmp_path: Path) -> None:
    for seed in range(40):
        root = grown(tmp_path / str(seed), random.Random(seed))
        listed = git(root, "ls-files", "-z", "-co", "--exclude-standard").split("\0")
        skip = read_ignored(root, {"PATH": os.environ["PATH"]}).build_skip()
        with safe_paths.open_root(root) as top:
            read = FolderScan(1 << 30, skip, lambda _: "").read(top)
            found = {path for path, node in read.items() if node.kind is EntryKind.FILE}
        assert found == set(listed) - {""}, seed


def test_a_folder_without_git_ignores_only_what_hosts_write(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*\n")
    skip = read_ignored(tmp_path, {}).build_skip()
    assert [skip(p) for p in ("a.py", ".claude/settings.json", ".claude/settings.local.json")] == [False, False, True]


def test_the_rule_of_a_run_does_not_follow_what_its_agent_tells_git(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    root.mkdir()
    git(root, "init", "-q")
    (root / "a.py").write_text("1")
    git(root, "add", ".")
    skip = read_ignored(root, {"PATH": os.environ["PATH"]}).build_skip()
    workspace = Workspace(root, Store(tmp_path / "objects"), skip)
    tree = workspace.capture()
    git(root, "rm", "-q", "--cached", "a.py")
    (root / ".git" / "info" / "exclude").write_text("a.py\n")
    (root / "a.py").write_text("2")

    assert workspace.capture() != tree
    workspace.reset(tree)
    assert (root / "a.py").read_text() == "1"


PATHS = ("a.py", "b/c.py", "b/d/e.py", "f.log", "b/g.log", "only/h.log", "build/i", "build/j/k", ".env", "b/.env")
IGNORED = Ignored(("*.log", "build/", ".env"))
Deed = tuple[str, str, bytes]
deeds = st.lists(
    st.tuples(
        st.sampled_from(("write", "delete", "link", "folder", "mode")),
        st.sampled_from(("a.py", "b/c.py", "b/d/e.py", "new.py", "n/o/p.py", "b", "b/d", "only/new.py", "n")),
        st.binary(max_size=3),
    ),
    max_size=8,
)


def done(root: Path, deed: Deed) -> None:
    """What an agent with a shell does to a path; ignored files are not touched by it."""
    what, path, data = deed
    target = root / path
    if any(not parent.is_dir() for parent in target.parents if parent.exists() or parent.is_symlink()):
        return
    if target.is_dir() and not target.is_symlink():
        if what == "mode":
            target.chmod(0o500)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.parent.chmod(0o755)
    if what == "mode":
        if target.is_file() and not target.is_symlink():
            target.chmod(0o777 if data else 0)
        return
    target.unlink(missing_ok=True)
    match what:
        case "write":
            target.write_bytes(data)
        case "link":
            target.symlink_to("/etc/passwd")
        case "folder":
            target.mkdir()
            (target / "in.py").write_bytes(data)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(deeds=deeds)
def test_a_reset_brings_back_the_tree_and_touches_nothing_else(
    deeds: list[Deed], tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = tmp_path_factory.mktemp("reset")
    root = base / "repo"
    for number, path in enumerate(PATHS):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(bytes([number]))
    (root / "a.py").chmod(0o600)
    workspace = Workspace(root, Store(base / "objects"), IGNORED.build_skip())
    tree = workspace.capture()
    first = {path: ((root / path).read_bytes(), os.lstat(root / path)) for path in PATHS}
    for deed in deeds:
        done(root, deed)
    touched = {path for path in PATHS if not same(root / path, first[path][1])}
    workspace.reset(tree)

    assert workspace.capture() == tree
    for path, (data, found) in first.items():
        assert (root / path).read_bytes() == data
        assert path in touched or same(root / path, found), f"{path} was written although it was as it should be"
    assert {p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()} == set(PATHS)


def same(path: Path, found: os.stat_result) -> bool:
    """Whether *path* is the very file it was, never written since."""
    if not os.path.lexists(path):
        return False
    now = os.lstat(path)
    return (now.st_ino, now.st_mtime_ns, now.st_size, now.st_mode) == (
        found.st_ino,
        found.st_mtime_ns,
        found.st_size,
        found.st_mode,
    )


def test_ignored_files_outlive_the_folder_that_was_made_around_them(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    (root / "logs").mkdir(parents=True)
    (root / "logs" / "a.log").write_text("mine")
    workspace = Workspace(root, Store(tmp_path / "objects"), IGNORED.build_skip())
    tree = workspace.capture()
    (root / "logs" / "new.py").write_text("1")
    (root / "fresh").mkdir()
    (root / "fresh" / "b.log").write_text("2")
    (root / "fresh" / "new.py").write_text("3")
    workspace.reset(tree)

    assert sorted(p.relative_to(root).as_posix() for p in root.rglob("*")) == [
        "fresh",
        "fresh/b.log",
        "logs",
        "logs/a.log",
    ]
    assert workspace.capture() == tree


def test_nothing_ignored_is_written(tmp_path: Path) -> None:
    (tmp_path / "repo" / "build").mkdir(parents=True)
    workspace = Workspace(tmp_path / "repo", Store(tmp_path / "objects"), IGNORED.build_skip())
    workspace.capture()
    for path in ("x.log", "build/x.py", ".env", "deep/build/x"):
        with pytest.raises(ValueError, match="what git ignores"):
            workspace.write(path, b"x")
    assert workspace.write("x.py", b"x")


def test_what_its_owner_locked_is_read_all_the_same(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    (root / "b").mkdir(parents=True)
    for path in ("a.py", "b/c.py", "d.log"):
        (root / path).write_text("1")
        (root / path).chmod(0)
    (root / "b").chmod(0o300)

    assert unlock(root, IGNORED.build_skip())
    assert not unlock(root, IGNORED.build_skip())
    assert [(root / p).stat().st_mode & 0o777 for p in ("a.py", "b/c.py", "d.log", "b")] == [0o600, 0o600, 0, 0o700]


def test_what_cannot_be_part_of_a_tree_is_still_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="neither a file"):
        Workspace(tmp_path, Store(tmp_path.parent / f"{tmp_path.name}-objects")).capture()
