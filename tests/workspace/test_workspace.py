"""The workspace: always one known tree, byte for byte, and never a byte outside."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.errors import BadInput
from jumar.workspace.files import trees
from jumar.workspace.files.trees import EntryKind
from jumar.workspace.store.object_store import Store
from jumar.workspace.workspace import OutsideWorkspace, Workspace
from jumar.workspace.write_back import apply


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "objects")


@pytest.fixture
def work(tmp_path: Path, store: Store) -> Workspace:
    folder = tmp_path / "work"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "a.py").write_bytes(b"a = 1\n")
    (folder / "run.sh").write_bytes(b"#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    return Workspace(folder, store)


def sha(store: Store, data: bytes) -> str:
    return store.put(data)


def test_a_write_tells_before_and_after_and_moves_the_tree(work: Workspace, store: Store) -> None:
    base = work.tree
    assert work.write("pkg/a.py", b"a = 2\n") == (sha(store, b"a = 1\n"), sha(store, b"a = 2\n"))
    assert work.write("new/deep/b.py", b"") == ("", sha(store, b""))
    assert work.write("run.sh", b"#!/bin/bash\n")[1] == sha(store, b"#!/bin/bash\n")
    assert os.access(work.folder / "run.sh", os.X_OK)
    assert work.changed(base) == ("new/deep/b.py", "pkg/a.py", "run.sh")
    assert work.write("pkg/a.py", None) == (sha(store, b"a = 2\n"), "")
    assert work.write("pkg/a.py", None) == ("", "")
    assert work.write("absent/x", None) == ("", "")
    assert work.changed(base) == ("new/deep/b.py", "pkg", "pkg/a.py", "run.sh")
    assert work.files(lambda path: path.endswith("h")) == {"run.sh": b"#!/bin/bash\n"}
    known = work.tree
    assert work.capture() == known
    work.reset(base)
    assert work.changed(base) == ()
    assert Workspace(work.folder, store).tree == base
    assert sorted(p.name for p in work.folder.rglob("*")) == ["a.py", "pkg", "run.sh"]


@pytest.mark.parametrize(
    "path",
    ["", "/etc/x", "../x", "a/../../x", "pkg/./a.py", "pkg//a.py", "pkg/", "a\0b", "\ud800", ".git/config", "x.pyc",
     "env/pyvenv.cfg", "pkg", "run.sh/x", "out/x", "file", "venv/x.py"],
)  # fmt: skip
def test_what_leads_outside_or_is_no_file_is_refused(work: Workspace, tmp_path: Path, path: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"theirs")
    (work.folder / "out").symlink_to(outside)
    (work.folder / "file").symlink_to(outside / "file")
    (work.folder / "venv").mkdir()
    (work.folder / "venv" / "pyvenv.cfg").write_bytes(b"")
    tree = work.tree
    with pytest.raises(ValueError, match=r"workspace|disk|tree|link|no file"):
        work.write(path, b"evil")
    assert [p.read_bytes() for p in outside.iterdir()] == [b"theirs"]
    assert work.tree == tree == work.capture()


def test_nothing_is_written_through_a_hard_link(work: Workspace, tmp_path: Path) -> None:
    (tmp_path / "theirs").write_bytes(b"a = 1\n")
    (work.folder / "pkg" / "a.py").unlink()
    os.link(tmp_path / "theirs", work.folder / "pkg" / "a.py")
    base = work.tree
    with pytest.raises(OutsideWorkspace, match="second name"):
        work.write("pkg/a.py", b"a = 2\n")
    (tmp_path / "theirs").chmod(0o755)
    work.reset(base)
    assert (tmp_path / "theirs").read_bytes() == b"a = 1\n"
    assert (tmp_path / "theirs").stat().st_mode & 0o777 == 0o755
    assert work.capture() == base


def test_a_link_can_be_deleted_and_comes_back(work: Workspace) -> None:
    (work.folder / "link").symlink_to("pkg/a.py")
    base = work.tree
    before, after = work.write("link", None)
    assert before
    assert not after
    assert (work.folder / "pkg" / "a.py").exists()
    work.reset(base)
    assert os.readlink(work.folder / "link") == "pkg/a.py"  # noqa: PTH115  the text, not a path


def test_foreign_changes_are_undone_whatever_they_are(work: Workspace, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.py").write_bytes(b"theirs")
    base = work.tree
    shutil.rmtree(work.folder / "pkg")
    (work.folder / "pkg").symlink_to(outside)
    (work.folder / "run.sh").unlink()
    (work.folder / "run.sh").mkdir()
    os.mkfifo(work.folder / "run.sh" / "pipe")
    (work.folder / "locked").mkdir()
    (work.folder / "locked" / "x").write_bytes(b"")
    (work.folder / "locked").chmod(0o000)
    (work.folder / "__pycache__").mkdir()
    (work.folder / "venv").mkdir()
    (work.folder / "venv" / "pyvenv.cfg").write_bytes(b"")
    work.reset(base)
    assert sorted(os.listdir(work.folder)) == ["__pycache__", "pkg", "run.sh", "venv"]  # noqa: PTH208  names alone
    assert (outside / "a.py").read_bytes() == b"theirs"
    assert work.capture() == base


@pytest.mark.slow
def test_locked_folders_are_no_hindrance_for_their_owner(tmp_path: Path) -> None:
    code = textwrap.dedent("""
        import os, sys
        from pathlib import Path
        from jumar.workspace.store.object_store import Store
        from jumar.workspace.workspace import OutsideWorkspace, Workspace
        if os.getuid() == 0:
            os.setuid(65534)
        work = Workspace(Path(sys.argv[1]) / "mine", Store(Path(sys.argv[1]) / "mine-objects"))
        (work.folder / "pkg").mkdir(parents=True)
        (work.folder / "pkg" / "a.py").write_bytes(b"1")
        base = work.tree
        (work.folder / "pkg" / "more" / "most").mkdir(parents=True)
        (work.folder / "pkg" / "more" / "most" / "x").write_bytes(b"1")
        (work.folder / "pkg" / "a.py").chmod(0o000)
        for name in ("pkg/more/most", "pkg/more", "pkg"):
            (work.folder / name).chmod(0o000)
        work.reset(base)
        assert work.capture() == base
        (work.folder / "pkg").chmod(0o555)
        work.write("pkg/b.py", b"2")
        assert sorted(os.listdir(work.folder / "pkg")) == ["a.py", "b.py"]
    """)
    room = tmp_path / "room"
    room.mkdir()
    room.chmod(0o777)
    for folder in list(room.parents)[:-2]:
        folder.chmod(folder.stat().st_mode | 0o011)
    subprocess.run([sys.executable, "-c", code, room], cwd=room, check=True)


MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108  examples come and go; no sync is slow there
NAMES = st.sampled_from(["a", "b", "ä b", "\udcff"])
Leaf = tuple[str, bytes, bool]
Shape = Leaf | dict[str, "Shape"]
Shapes = dict[str, Shape]
LEAF = st.one_of(
    st.tuples(st.just("file"), st.binary(max_size=3), st.booleans()),
    st.tuples(st.just("link"), st.sampled_from([b"a", b"../a", b"/", b"nowhere"]), st.just(value=False)),
)
SHAPES = st.recursive(LEAF, lambda inner: st.dictionaries(NAMES, inner, max_size=3), max_leaves=6)
TREES = st.dictionaries(NAMES, SHAPES, max_size=3)


def make(folder: Path, shape: Shape) -> None:
    """Make *shape* on the disk by other means than those under test."""
    if isinstance(shape, dict):
        folder.mkdir()
        for name, inner in shape.items():
            make(folder / name, inner)
        return
    kind, content, executable = shape
    if kind == "link":
        folder.symlink_to(os.fsdecode(content))
    else:
        folder.write_bytes(content)
        folder.chmod(0o755 if executable else 0o644)


def shape_of(folder: Path) -> Shape:
    """The shape of what lies in *folder*, read by other means than those under test."""
    if folder.is_symlink():
        return ("link", os.fsencode(folder.readlink()), False)
    if folder.is_dir():
        return {path.name: shape_of(path) for path in folder.iterdir()}
    return ("file", folder.read_bytes(), os.access(folder, os.X_OK))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(first=TREES, second=TREES)
def test_any_tree_comes_back_from_any_other(first: Shapes, second: Shapes) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        room = Path(name)
        make(room / "first", first)
        make(room / "second", second)
        store = Store(room / "objects")
        work = Workspace(room / "first", store)
        one, two = work.tree, store.capture(room / "second")
        assert (one == two) == (first == second)
        for tree, shape in ((two, second), (one, first), (two, second)):
            work.reset(tree)
            assert shape_of(work.folder) == shape
            assert work.capture() == tree
        store.materialise(one, room / "room")
        assert shape_of(room / "room") == first


WRITES = st.lists(
    st.tuples(st.lists(NAMES, min_size=1, max_size=3).map("/".join), st.none() | st.binary(max_size=2)), max_size=6
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(shape=TREES, writes=WRITES)
def test_the_tree_after_writes_is_what_a_full_reading_finds(
    shape: Shapes, writes: list[tuple[str, bytes | None]]
) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        make(Path(name) / "work", shape)
        work = Workspace(Path(name) / "work", Store(Path(name) / "objects"))
        base = work.tree
        for path, data in writes:
            try:
                before, after = work.write(path, data)
            except ValueError:
                continue
            assert (after == "") == (data is None)
            assert (before == after) == (work.write(path, data)[0] == before)
        known = work.tree
        assert work.capture() == known
        work.reset(base)
        assert shape_of(work.folder) == shape


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(first=TREES, second=TREES)
def test_what_is_applied_makes_the_origin_equal(first: Shapes, second: Shapes) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        room = Path(name)
        make(room / "origin", first)
        make(room / "work", second)
        store = Store(room / "objects")
        base = store.capture(room / "origin")
        work = Workspace(room / "work", store)
        applied = apply(store, base, work.tree, room / "origin")
        assert shape_of(room / "origin") == second
        assert bool(applied) == (first != second)
        assert apply(store, base, work.tree, room / "origin") == ()


def test_an_origin_that_changed_is_left_alone(work: Workspace, tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    shutil.copytree(work.folder, origin)
    base = work.tree
    work.write("pkg/a.py", b"a = 2\n")
    work.write("pkg/b.py", b"b\n")
    (origin / "pkg" / "b.py").write_bytes(b"mine\n")
    with pytest.raises(BadInput, match=r"nothing was applied: 'pkg/b\.py' was made while the run worked"):
        apply(Store(tmp_path / "objects"), base, work.tree, origin)
    assert (origin / "pkg" / "a.py").read_bytes() == b"a = 1\n"
    (origin / "pkg" / "b.py").unlink()
    (origin / "run.sh").write_bytes(b"my own change elsewhere\n")
    (origin / "pkg" / "a.py").chmod(0o600)
    assert apply(Store(tmp_path / "objects"), base, work.tree, origin) == ("pkg/a.py", "pkg/b.py")
    assert (origin / "pkg" / "a.py").stat().st_mode & 0o777 == 0o600
    assert (origin / "run.sh").read_bytes() == b"my own change elsewhere\n"
    assert not [path for path in origin.rglob("*") if path.name.startswith(".jumar")]


def test_a_folder_that_must_become_a_file_keeps_what_is_unknown(work: Workspace, tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    shutil.copytree(work.folder, origin)
    base = work.tree
    shutil.rmtree(work.folder / "pkg")
    (work.folder / "pkg").write_bytes(b"a file now\n")
    work.capture()
    (origin / "pkg" / "mine").write_bytes(b"")
    with pytest.raises(BadInput, match="'pkg' must become a file, but holds 'mine'"):
        apply(Store(tmp_path / "objects"), base, work.tree, origin)
    (origin / "pkg" / "mine").unlink()
    assert apply(Store(tmp_path / "objects"), base, work.tree, origin) == ("pkg", "pkg/a.py")


def test_a_tree_of_nothing_is_a_tree(store: Store, tmp_path: Path) -> None:
    work = Workspace(tmp_path / "new", store)
    work.reset(store.keep({}))
    assert work.changed(work.tree) == ()
    work.write("a", b"")
    assert work.changed(store.keep({})) == ("a",)
    assert trees.is_ignored(".jumar-0.tmp")
    assert store.manifest(work.tree)["a"].kind is EntryKind.FILE


@pytest.mark.slow
def test_a_nesting_without_end_is_refused_by_name_and_removed_all_the_same(work: Workspace) -> None:
    base = work.tree
    fd = os.open(work.folder, os.O_RDONLY)
    for _ in range(500):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    with pytest.raises(BadInput, match="nested more than 100 folders deep"):
        work.capture()
    work.reset(base)
    assert work.capture() == base


def test_what_a_killed_removal_left_is_swept_by_the_next_reset(work: Workspace) -> None:
    base = work.tree
    (work.folder / ".jumar-0123.tmp").mkdir()
    assert work.capture() == base
    work.reset(base)
    assert not (work.folder / ".jumar-0123.tmp").exists()
