"""Snapshots that trust the stat of files: equal to a full reading after every change, however it was made."""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.workspace.files import safe_paths, trees
from jumar.workspace.files.scan import FolderScan
from jumar.workspace.files.stat_cache import StatCache, read_clock
from jumar.workspace.files.trees import EntryKind, Node
from jumar.workspace.store.object_store import Store
from jumar.workspace.store.tree_text import TreeText
from jumar.workspace.workspace import Workspace

MEMORY = Path("/dev/shm")  # noqa: S108  the file system that shows no mapped writes


def read_in_full(folder: Path) -> str:
    """The tree of *folder* by a store that knows nothing."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as objects:
        return Store(Path(objects)).capture(folder)


def wait_for_tick(folder: Path) -> None:
    """Return when the clock of the file system has gone on: what was written before is old now."""
    with tempfile.TemporaryFile(dir=folder.parent) as file:
        first = os.fstat(file.fileno()).st_ctime_ns
        while os.fstat(file.fileno()).st_ctime_ns == first:
            file.write(b"x")
            file.flush()


@pytest.fixture
def work(tmp_path: Path) -> Workspace:
    folder = tmp_path / "work"
    (folder / "pkg").mkdir(parents=True)
    for name in ("a.py", "b.py", "pkg/c.py"):
        (folder / name).write_bytes(b"1234")
    return Workspace(folder, Store(tmp_path / "objects"))


@pytest.fixture
def warm(work: Workspace) -> Workspace:
    """The same, where the cache knows all files."""
    work.capture()
    wait_for_tick(work.folder)
    work.capture()
    if not work.cache.files:
        pytest.skip("the file system of the temporary folder shows no mapped writes, or has no leases")
    return work


def count_reads(work: Workspace) -> int:
    """The files that a snapshot of *work* would read now."""
    read: list[bytes] = []

    def put(data: bytes) -> str:
        read.append(data)
        return ""

    with safe_paths.open_root(work.folder) as top:
        FolderScan(1 << 20, lambda _: False, put, work.cache).read(top)
    return len(read)


def test_a_file_is_read_again_only_if_it_changed(warm: Workspace) -> None:
    assert count_reads(warm) == 0
    (warm.folder / "a.py").write_bytes(b"12345")
    assert count_reads(warm) == 1
    assert warm.capture() == read_in_full(warm.folder)


def rewrite(path: Path) -> None:
    path.write_bytes(path.read_bytes()[::-1])


def rewrite_by_another_name(path: Path) -> None:
    other = path.parent.parent / "other"
    os.link(path, other)
    rewrite(other)
    other.unlink()


def exchange(path: Path) -> None:
    new = path.with_name("new")
    shutil.copy2(path, new)
    rewrite(new)
    new.rename(path)


@pytest.mark.slow
@pytest.mark.parametrize("change", [rewrite, rewrite_by_another_name, exchange])
def test_no_change_hides_behind_an_equal_size_and_a_forged_time(
    warm: Workspace, change: Callable[[Path], None]
) -> None:
    path = warm.folder / "a.py"
    for _ in range(50):  # at once: most of them in the same tick of the clock
        known, found = warm.capture(), path.stat()
        change(path)
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
        assert path.stat().st_size == found.st_size
        assert known != warm.capture() == read_in_full(warm.folder)


@contextmanager
def map_file(path: Path) -> Iterator[mmap.mmap]:
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 4) as page:
        yield page


@pytest.mark.parametrize("place", ["disk", "memory"])
def test_no_change_hides_behind_a_mapping(tmp_path: Path, place: str) -> None:
    """A page that is mapped and written already takes more without a new ctime; tmpfs never shows such writes."""
    if place == "memory" and not MEMORY.is_dir():
        pytest.skip(f"no {MEMORY}")
    with tempfile.TemporaryDirectory(dir=MEMORY if place == "memory" else tmp_path) as room:
        folder = Path(room) / "work"
        folder.mkdir()
        (folder / "a.py").write_bytes(b"1234")
        work = Workspace(folder, Store(Path(room) / "objects"))
        with map_file(folder / "a.py") as page:
            for byte in (b"a", b"b", b"c"):
                page[0:1] = byte
                wait_for_tick(folder)
                assert work.capture() == read_in_full(folder), "while somebody has it mapped"
        wait_for_tick(folder)
        work.capture()
        with map_file(folder / "a.py") as page:
            assert page[0:1] == b"c"  # read first: then a write to it needs no fault on tmpfs
            page[0:1] = b"d"
        assert work.capture() == read_in_full(folder), "after it was mapped, written and let go"


def test_take_back_undoes_what_was_written_and_reads_nothing_else(warm: Workspace) -> None:
    base = warm.tree
    warm.write("a.py", b"new")
    warm.write("pkg/c.py", None)
    warm.write("deep/er/d.py", b"d")
    (warm.folder / "b.py").write_bytes(b"theirs")
    warm.take_back(base)
    assert warm.tree == base
    assert (warm.folder / "a.py").read_bytes() == (warm.folder / "pkg" / "c.py").read_bytes() == b"1234"
    assert not (warm.folder / "deep").exists()
    assert (warm.folder / "b.py").read_bytes() == b"theirs"
    warm.reset(base)
    assert read_in_full(warm.folder) == base


def test_take_back_finds_its_way_through_what_was_put_there_meanwhile(warm: Workspace, tmp_path: Path) -> None:
    base = warm.tree
    warm.write("pkg/c.py", b"new")
    shutil.rmtree(warm.folder / "pkg")
    (warm.folder / "pkg").symlink_to(tmp_path)
    warm.take_back(base)
    assert read_in_full(warm.folder) == base


def test_an_environment_and_a_leftover_that_stand_in_the_way_are_found(warm: Workspace) -> None:
    base = warm.tree
    (warm.folder / "pkg" / trees.VENV).write_bytes(b"")
    (warm.folder / ".jumar-1.tmp").write_bytes(b"")
    warm.reset(base)
    assert read_in_full(warm.folder) == base
    assert sorted(os.listdir(warm.folder)) == ["a.py", "b.py", "pkg"]  # noqa: PTH208  names alone


NAMES = st.sampled_from(["a", "b", "c", "a/x", "a/y", "b/x/y"])
BYTES = st.sampled_from([b"", b"1", b"2", b"12"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["write", "outside", "forged", "exchange", "link"]), NAMES, BYTES),
        st.tuples(st.sampled_from(["delete", "remove", "chmod", "mkdir"]), NAMES, st.just(b"")),
        st.tuples(st.sampled_from(["capture", "reset", "take_back"]), st.just(""), st.just(b"")),
    ),
    max_size=14,
)


def change_outside(folder: Path, kind: str, name: str, data: bytes) -> None:
    """Change what is at *name* as no tool of ours does."""
    path = folder / name
    found = path.lstat() if os.path.lexists(path) else None
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "remove" and found is not None:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    elif kind == "mkdir":
        path.mkdir(exist_ok=True)
    elif kind == "link" and found is None:
        path.symlink_to(os.fsdecode(data) or "nowhere")
    elif kind == "chmod" and found is not None and not path.is_symlink():
        path.chmod(0o755 if path.is_dir() else found.st_mode ^ 0o100)
    elif kind in ("outside", "forged", "exchange") and not path.is_symlink() and not path.is_dir():
        target = path.with_name("tmp") if kind == "exchange" else path
        target.write_bytes(data)
        if kind == "forged" and found is not None:
            os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
        target.replace(path)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_whatever_happens_a_snapshot_is_what_a_full_reading_finds(steps: list[tuple[str, str, bytes]]) -> None:
    with tempfile.TemporaryDirectory() as room:
        folder = Path(room) / "work"
        folder.mkdir()
        work = Workspace(folder, Store(Path(room) / "objects"))
        known = [work.capture()]
        for kind, name, data in steps:
            try:
                if kind in ("write", "delete"):
                    work.write(name, data if kind == "write" else None)
                elif kind in ("reset", "take_back"):
                    work.capture()
                    getattr(work, kind)(known[0])
                    assert work.tree == known[0] == read_in_full(folder)
                elif kind == "capture":
                    wait_for_tick(folder)
                else:
                    change_outside(folder, kind, name, data)
            except (ValueError, OSError):
                continue  # a folder where a file was wanted, or the other way round
            known.append(work.capture())
            assert known[-1] == read_in_full(folder)
        for tree in known:
            work.take_back(tree)
            assert read_in_full(folder) == tree


PATHS = st.lists(st.sampled_from(['a"', "a/b", "ä", "\udcff", "b}", "b,", "c/d/e", "z"]), max_size=3).map("/".join)
NODES = st.builds(
    Node, st.sampled_from([EntryKind.FILE, EntryKind.LINK]), st.sampled_from(["0" * 64, "1" * 64]), st.booleans()
)
MANIFESTS = st.dictionaries(PATHS.filter(bool), NODES, max_size=8)


@given(first=MANIFESTS, second=MANIFESTS, third=MANIFESTS)
def test_a_manifest_made_from_another_is_the_same_as_one_made_anew(
    first: dict[str, Node], second: dict[str, Node], third: dict[str, Node]
) -> None:
    changed = trees.find_differences(first, second)
    assert changed == tuple(sorted(p for p in first.keys() | second.keys() if first.get(p) != second.get(p)))
    text = TreeText.build(first).change(second, changed)
    assert (text.data, text.tree) == (trees.encode(second), sha256(trees.encode(second)).hexdigest())
    derived = trees.derive(first, {path: second.get(path) for path in changed})
    assert derived == second
    other = trees.derive(first, {path: third.get(path) for path in trees.find_differences(first, third)})
    assert trees.find_differences(derived, other) == trees.find_differences(second, third)
    assert trees.find_differences(derived, third) == trees.find_differences(second, third)


MANY = st.dictionaries(st.integers(0, 999).map("m{:03}".format), NODES, max_size=150)
"""Trees of several runs of a text, whose changes fill runs, part and empty them."""


@given(steps=st.lists(MANY, min_size=2, max_size=4), stays=st.frozensets(st.integers(0, 999), max_size=150))
def test_a_text_that_follows_a_large_tree_is_the_same_as_one_made_anew(
    steps: list[dict[str, Node]], stays: frozenset[int]
) -> None:
    held = {f"m{n:03}": Node(EntryKind.FILE, "2" * 64) for n in stays}
    manifest = held | steps[0]
    text = TreeText.build(manifest)
    for step in steps[1:]:
        after = held | step
        text = text.change(after, trees.find_differences(manifest, after))
        manifest = after
        assert (text.data, text.tree) == (trees.encode(after), sha256(trees.encode(after)).hexdigest())


def test_nothing_is_remembered_that_no_tree_was_made_of(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"1")
    wait_for_tick(tmp_path)
    cache = StatCache()
    with safe_paths.open_root(tmp_path) as top:
        FolderScan(1 << 20, lambda _: False, lambda _: "0", cache).read(top)
    assert not cache.files
    cache.keep({"a.py": Node(EntryKind.FILE, "1")})
    assert not cache.files


def test_what_was_written_in_the_tick_of_the_reading_is_not_remembered(tmp_path: Path) -> None:
    """A later write in the same tick would leave the same ctime behind."""
    cache, path, node = StatCache(), tmp_path / "a.py", Node(EntryKind.FILE, "1")
    for old in (False, True):
        with safe_paths.open_root(tmp_path) as top:
            path.write_bytes(b"1")
            if old:
                wait_for_tick(tmp_path)
            cache.begin(top)
            if not old:
                path.write_bytes(b"2")
            with safe_paths.open_file(top, "a.py") as fd:
                if not cache.is_held(fd):
                    pytest.skip("the file system shows no mapped writes, or has no leases")
                cache.note("a.py", os.fstat(fd), node)
            cache.keep({"a.py": node})
            assert bool(cache.files) == old


def test_only_file_systems_that_were_looked_at_are_trusted(tmp_path: Path) -> None:
    """An overlay keeps no count of those who mapped a file and closed it."""
    mounts = tmp_path / "mounts"
    with safe_paths.open_root(tmp_path) as top:
        device = os.fstat(top).st_dev
        known = read_clock(top)[1] != 0
        for kind in ("ext4", "overlay", "tmpfs", "fuse.x", "nfs4"):
            mounts.write_text(f"22 1 {os.major(device)}:{os.minor(device)} / / rw - {kind} /dev/x rw\n")
            assert (read_clock(top, mounts)[1] != 0) == (known and kind == "ext4")
