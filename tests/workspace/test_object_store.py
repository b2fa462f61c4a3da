"""Objects and trees: what was named is on the disk, whole, and nothing outside is ever followed."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import sys
import textwrap
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.errors import BadInput, Infra
from jumar.workspace.files import trees
from jumar.workspace.files.trees import EntryKind, Node
from jumar.workspace.store.object_store import Store


@pytest.fixture(params=[True, False], ids=["lasting", "passing"])
def store(tmp_path: Path, request: pytest.FixtureRequest) -> Store:
    return Store(tmp_path / "objects", lasting=request.param)


@pytest.fixture
def task(tmp_path: Path) -> Path:
    folder = tmp_path / "task"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "a.py").write_bytes(b"a = 1\n")
    return folder


def test_what_was_put_is_got(store: Store) -> None:
    name = store.put(b"\0\xff")
    assert name == sha256(b"\0\xff").hexdigest()
    assert store.get(name) == b"\0\xff"
    assert (store.root / name[:2] / name[2:]).read_bytes() == b"\0\xff"
    assert not list((store.root / "tmp").iterdir())


def test_a_known_object_is_not_written_again(store: Store) -> None:
    name = store.put(b"x")
    path = store.root / name[:2] / name[2:]
    before = path.stat()
    Store(store.root).put(b"x")
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_damage_is_found(store: Store) -> None:
    name = store.put(b"whole")
    path = store.root / name[:2] / name[2:]
    path.chmod(0o644)
    path.write_bytes(b"wh0le")
    with pytest.raises(Infra, match=f"object {name} .* is damaged"):
        store.get(name)
    path.write_bytes(b"wh")
    with pytest.raises(Infra, match="is damaged: it is 2 bytes long, not 5"):
        Store(store.root).put(b"whole")
    path.unlink()
    with pytest.raises(Infra, match="cannot be read"):
        store.get(name)


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "A" * 64, "0" * 63, "0" * 64 + "\n"])
def test_what_is_no_hash_is_refused(store: Store, name: str) -> None:
    with pytest.raises(BadInput, match="is not the hash"):
        store.get(name)


def test_an_object_that_is_no_tree_is_told(store: Store) -> None:
    for data in (b"text", b"{}", b'[{"path":"a"}]', b"\xff"):
        with pytest.raises(Infra, match="is no tree"):
            store.manifest(store.put(data))


def test_a_manifest_names_kinds_modes_and_hashes(store: Store, task: Path) -> None:
    (task / "run.sh").write_bytes(b"")
    (task / "run.sh").chmod(0o755)
    (task / "empty").mkdir()
    (task / "link").symlink_to("/etc/passwd")
    (task / "broken").symlink_to("nowhere")
    raw = os.fsencode(task) + b"/\xff.txt"
    with open(raw, "wb") as file:  # noqa: PTH123  a name that is no text
        file.write(b"latin")
    tree = store.capture(task)
    hashes = {data: sha256(data).hexdigest() for data in (b"", b"a = 1\n", b"/etc/passwd", b"nowhere", b"latin")}
    assert store.manifest(tree) == {
        "broken": Node(EntryKind.LINK, hashes[b"nowhere"]),
        "empty": Node(EntryKind.DIR),
        "link": Node(EntryKind.LINK, hashes[b"/etc/passwd"]),
        "pkg/a.py": Node(EntryKind.FILE, hashes[b"a = 1\n"]),
        "run.sh": Node(EntryKind.FILE, hashes[b""], executable=True),
        "\udcff.txt": Node(EntryKind.FILE, hashes[b"latin"]),
    }
    assert tree == sha256(store.get(tree)).hexdigest() == store.capture(task)


def test_histories_caches_environments_and_runs_are_left_out(store: Store, task: Path) -> None:
    plain = store.capture(task)
    for name in trees.SKIPPED:
        (task / "pkg" / name).mkdir()
        (task / "pkg" / name / "x").write_bytes(b"x")
    (task / "pkg" / "a.pyc").write_bytes(b"x")
    (task / "my env" / "bin").mkdir(parents=True)
    (task / "my env" / "pyvenv.cfg").write_bytes(b"x")
    os.mkfifo(task / "my env" / "pipe")
    assert store.capture(task) == plain
    assert trees.is_ignored("my env/pyvenv.cfg")
    assert not trees.is_ignored("pyvenv.cfg")
    assert trees.is_ignored("a/.git/b")
    assert not trees.is_ignored("gitignore/x.py")


def test_what_would_block_or_cannot_be_kept_is_named(store: Store, task: Path) -> None:
    os.mkfifo(task / "pkg" / "pipe")
    with pytest.raises(BadInput, match="'pkg/pipe' is neither a file"):
        store.capture(task)
    (task / "pkg" / "pipe").unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(task / "socket"))
        with pytest.raises(BadInput, match="'socket' is neither"):
            store.capture(task)
    with pytest.raises(BadInput, match="cannot be opened as a folder"):
        store.capture(task / "absent")
    with pytest.raises(BadInput, match="cannot be opened as a folder"):
        store.capture(task / "pkg" / "a.py")


def test_a_tree_has_a_size_limit(store: Store, task: Path) -> None:
    (task / "sparse").touch()
    os.truncate(task / "sparse", 1 << 40)
    with pytest.raises(BadInput, match="'sparse' takes the task past 1073741824 bytes"):
        store.capture(task)
    os.truncate(task / "sparse", 10)
    with pytest.raises(BadInput, match="'sparse' takes the task past 15 bytes"):
        store.capture(task, limit_bytes=15)
    assert store.capture(task, limit_bytes=16)


@pytest.mark.slow
def test_an_unreadable_file_is_named(task: Path) -> None:
    (task / "pkg" / "a.py").chmod(0o000)
    code = textwrap.dedent("""
        import os, sys
        from pathlib import Path
        from jumar.errors import BadInput
        from jumar.workspace.store.object_store import Store
        if os.getuid() == 0:
            os.setuid(65534)
        try:
            Store(Path("objects")).capture(Path("task"))
        except BadInput as refused:
            print(refused)
    """)
    task.parent.chmod(0o777)
    for folder in (task.parent, *list(task.parent.parents)[:-2]):
        folder.chmod(folder.stat().st_mode | stat.S_IXOTH)
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=task.parent, capture_output=True, text=True, check=True
    ).stdout
    assert said.startswith("'pkg/a.py' cannot be read: Permission denied")


@pytest.mark.parametrize("gone", ["pkg/a.py", "pkg/b.py", "pkg/link", "pkg/sub"])
@pytest.mark.parametrize("first", [True, False], ids=["once the names are listed", "once it was looked at"])
def test_a_file_that_is_deleted_while_the_folder_is_read_is_left_out(
    store: Store, task: Path, gone: str, *, first: bool
) -> None:
    (task / "pkg" / "b.py").write_text("b")
    (task / "pkg" / "link").symlink_to("a.py")
    (task / "pkg" / "sub").mkdir()

    def skip(path: str) -> bool:
        if path.rstrip("/") == ("pkg/a.py" if first else gone):
            (task / gone).rename(task.parent / "away")
        return False

    whole = {"pkg/a.py", "pkg/b.py", "pkg/link", "pkg/sub"}
    assert set(store.manifest(store.capture(task, skip=skip))) == whole - {gone}


def test_a_store_that_cannot_write_is_told_as_such_and_blames_no_file(store: Store, task: Path) -> None:
    def skip(path: str) -> bool:
        if path == "pkg/a.py":
            shutil.rmtree(store.root / "tmp")
        return False

    with pytest.raises(Infra, match=r"cannot write to .*objects"):
        store.capture(task, skip=skip)


def test_a_tree_is_laid_out_in_a_new_folder_only(store: Store, task: Path, tmp_path: Path) -> None:
    tree = store.capture(task)
    store.materialise(tree, tmp_path / "deep" / "room")
    assert store.capture(tmp_path / "deep" / "room") == tree
    with pytest.raises(Infra, match="it is not empty"):
        store.materialise(tree, tmp_path / "deep" / "room")


def test_a_manifest_that_leads_outside_is_not_followed(store: Store, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    evil = {
        "link": Node(EntryKind.LINK, store.put(str(tmp_path / "outside").encode())),
        "link/x": Node(EntryKind.FILE, store.put(b"x")),
    }
    for manifest in (evil, {"../outside/x": evil["link/x"]}, {"/outside": evil["link/x"]}, {"a/./b": evil["link/x"]}):
        with pytest.raises(Infra):
            store.materialise(store.keep(manifest), tmp_path / "room")
    assert not list((tmp_path / "outside").iterdir())


def test_sweeping_removes_what_a_killed_writer_left(store: Store) -> None:
    name = store.put(b"x")
    (store.root / "tmp" / "half").write_bytes(b"ha")
    store.sweep()
    assert not list((store.root / "tmp").iterdir())
    assert store.get(name) == b"x"


NODES = st.sampled_from(
    [
        Node(EntryKind.FILE, "1"),
        Node(EntryKind.FILE, "2", executable=True),
        Node(EntryKind.LINK, "3"),
        Node(EntryKind.DIR),
    ]
)


def consistent(wild: dict[str, Node]) -> dict[str, Node]:
    """*wild* without what lies beneath a node."""
    return {path: node for path, node in wild.items() if not any(folder in wild for folder in trees.list_parents(path))}


PATHS = st.lists(st.sampled_from("ab"), min_size=1, max_size=3).map("/".join)
MANIFESTS = st.dictionaries(PATHS, NODES, max_size=8).map(consistent)


@pytest.mark.slow
@given(base=MANIFESTS, candidate=MANIFESTS, allowed=st.frozensets(PATHS))
def test_an_overlay_never_differs_where_it_may_not(
    base: dict[str, Node], candidate: dict[str, Node], allowed: frozenset[str]
) -> None:
    merged = trees.overlay(base, candidate, allowed.__contains__)
    assert consistent(merged) == merged
    assert trees.decode(trees.encode(merged)) == merged
    spelt = trees.add_folders(merged)
    for path in base.keys() | merged.keys():
        if path not in allowed:
            assert base.get(path) == merged.get(path) or (base[path] == trees.EMPTY == spelt[path])
    for path in allowed & merged.keys():
        assert merged[path] == candidate[path]


@pytest.mark.slow
@given(base=MANIFESTS, candidate=MANIFESTS)
def test_an_overlay_of_all_is_the_candidate_and_of_nothing_the_base(
    base: dict[str, Node], candidate: dict[str, Node]
) -> None:
    assert trees.overlay(base, candidate, lambda _: True) == candidate
    assert trees.overlay(base, candidate, lambda _: False) == base


def test_protected_files_come_from_the_task(store: Store, task: Path) -> None:
    (task / "test_a.py").write_bytes(b"assert a == 2\n")
    base = store.capture(task)
    (task / "test_a.py").write_bytes(b"pass\n")
    (task / "conftest.py").write_bytes(b"cheat\n")
    (task / "pkg" / "a.py").write_bytes(b"a = 2\n")
    (task / "pkg" / "b.py").write_bytes(b"b\n")
    merged = store.manifest(store.overlay(base, store.capture(task), lambda path: path.startswith("pkg/")))
    assert {path: store.get(node.sha256) for path, node in merged.items()} == {
        "pkg/a.py": b"a = 2\n",
        "pkg/b.py": b"b\n",
        "test_a.py": b"assert a == 2\n",
    }


@pytest.mark.parametrize("lasting", [True, False])
def test_what_has_to_outlive_nothing_waits_for_no_disk(tmp_path: Path, *, lasting: bool) -> None:
    called: list[object] = []

    def note(_frame: object, event: str, what: object) -> None:
        called.extend([what] if event == "c_call" and what is os.fsync else [])

    sys.setprofile(note)
    try:
        Store(tmp_path / "objects", lasting=lasting).put(b"one")
    finally:
        sys.setprofile(None)

    assert bool(called) is lasting
