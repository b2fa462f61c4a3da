"""The store that the runs of one folder share: written by many, swept by one, and never short of what a run needs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from jumar.errors import BadInput, Infra
from jumar.process.room import replace_files
from jumar.workspace.files import trees
from jumar.workspace.files.trees import EntryKind, Node
from jumar.workspace.store.deltas import SUFFIX
from jumar.workspace.store.lease import LEASES, PARTS, SHARED, list_held_leases
from jumar.workspace.store.linking import LinkingStore
from jumar.workspace.store.object_store import Store
from jumar.workspace.store.shared import discard, find_objects_folder, share
from jumar.workspace.store.sweep import sweep
from jumar.workspace.workspace import Workspace
from support.judging.real_verifier import Court
from support.processes.sandboxes import s3
from support.processes.ticks import wait_for_a_tick


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "runs" / SHARED


def run_in(root: Path, name: str, *named: str) -> Path:
    """A run directory whose journal names the objects *named*."""
    run = root.parent / name
    run.mkdir(parents=True)
    share(run)
    (run / "events.jsonl").write_text("".join(f'{{"tree":"{digest}"}}\n' for digest in named))
    return run


def objects(root: Path) -> set[str]:
    return {path.parent.name + path.name for path in root.glob("??/*")}


def large(store: Store, changed: bytes) -> str:
    """A tree of many files, one of which is *changed*."""
    (digest, other) = store.put_all([changed, b"the others"])
    files = {f"f{number:03}.py": Node(EntryKind.FILE, other) for number in range(300)}
    return store.keep(files | {"changed.py": Node(EntryKind.FILE, digest)})


def test_two_runs_in_one_folder_store_equal_files_once(root: Path) -> None:
    runs = [run_in(root, name) for name in ("a", "b")]
    for run in runs:
        Store(find_objects_folder(run)).put(b"the same")
    assert len(objects(root)) == 1
    assert Store(find_objects_folder(runs[0])).root == Store(find_objects_folder(runs[1])).root == root


def test_a_run_of_an_earlier_version_keeps_its_own_objects(tmp_path: Path) -> None:
    old = tmp_path / "runs" / "old"
    name = Store(old / "objects").put(b"x")
    assert Store(find_objects_folder(old)).get(name) == b"x"


def test_a_moved_run_finds_its_objects_or_says_where_they_were(root: Path, tmp_path: Path) -> None:
    run = run_in(root, "a")
    name = Store(find_objects_folder(run)).put(b"x")
    moved = Path(shutil.move(run, tmp_path / "elsewhere"))
    assert Store(find_objects_folder(moved)).get(name) == b"x"

    shutil.move(root, tmp_path / "kept")
    with pytest.raises(BadInput, match=f"lie in {root}, which is gone"):
        find_objects_folder(moved)
    shutil.copytree(tmp_path / "kept", tmp_path / SHARED)
    assert Store(find_objects_folder(moved)).get(name) == b"x"


def test_a_folder_of_runs_that_is_moved_as_a_whole_takes_its_store_along(root: Path, tmp_path: Path) -> None:
    name = Store(find_objects_folder(run_in(root, "a"))).put(b"x")
    moved = Path(shutil.move(root.parent, tmp_path / "moved"))
    assert Store(find_objects_folder(moved / "a")).get(name) == b"x"


def test_a_sweep_removes_what_no_journal_needs_and_nothing_else(root: Path) -> None:
    store = Store(root)
    needed = store.keep({"a.py": Node(EntryKind.FILE, store.put(b"kept"))}, b"kept")
    store.keep({"b.py": Node(EntryKind.FILE, store.put(b"gone"))}, b"gone")
    run = run_in(root, "a", needed)
    store.release()
    wait_for_a_tick(root)

    planned = sweep(root, [run], dry=True)
    assert len(objects(root)) == 4
    freed = sweep(root, [run])

    assert (freed.objects, freed) == (2, planned)
    assert Store(root).manifest(needed)["a.py"].sha256 in objects(root)
    assert len(objects(root)) == 2
    assert not list_held_leases(root)


def test_what_a_living_writer_stored_or_found_is_not_swept(root: Path) -> None:
    first = Store(root)
    old = first.put(b"old")
    first.release()
    wait_for_a_tick(root)
    writer = Store(root)
    new = writer.put_all([b"new", b"old"])

    sweep(root, [])

    assert objects(root) == {*new} == {old, new[0]}
    writer.release()
    wait_for_a_tick(root)
    sweep(root, [])
    assert objects(root) == set()


@pytest.mark.slow
def test_a_killed_writer_leaves_no_lease_and_its_parts_go(root: Path) -> None:
    program = f"""
        import os, signal
        from pathlib import Path
        from jumar.workspace.store.object_store import Store
        store = Store(Path({str(root)!r}))
        store.put(b"whole")
        lease = store._written.lease.name
        (store.root / "tmp" / (lease + "-part")).write_bytes(b"half")
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False)
    assert done.returncode == -signal.SIGKILL
    wait_for_a_tick(root)
    living = Store(root)
    living.put(b"of somebody who lives")
    mine = root / PARTS / f"{next(iter(list_held_leases(root)))}-part"
    mine.write_bytes(b"half")

    Store(root).sweep()

    assert list((root / PARTS).iterdir()) == [mine]
    assert len(list((root / LEASES).iterdir())) == 1
    sweep(root, [])
    assert len(objects(root)) == 1, "what the killed one stored is needed by nobody"


def test_an_edit_of_a_large_tree_costs_its_own_lines(root: Path) -> None:
    store = Store(root)
    first = large(store, b"1")
    second = large(store, b"2")

    whole, delta = (root / t[:2] / (t[2:] + end) for t, end in ((first, ""), (second, SUFFIX)))
    assert delta.stat().st_size * 50 < whole.stat().st_size
    assert trees.find_differences(store.manifest(first), Store(root).manifest(second)) == ("changed.py",)
    assert large(Store(root), b"2") == second, "what is kept already is not kept again"


def test_a_difference_keeps_the_tree_that_it_begins_from(root: Path) -> None:
    store = Store(root)
    large(store, b"1")
    second = large(store, b"2")
    run = run_in(root, "a", second)
    store.release()
    wait_for_a_tick(root)

    sweep(root, [run])

    manifest = Store(root).manifest(second)
    assert Store(root).get(manifest["changed.py"].sha256) == b"2"


def test_a_damaged_difference_is_named(root: Path) -> None:
    store = Store(root)
    large(store, b"1")
    second = large(store, b"2")
    path = root / second[:2] / (second[2:] + SUFFIX)
    path.chmod(0o644)
    path.write_bytes(b'{"base":"nothing"}')
    with pytest.raises(Infra, match="is damaged"):
        Store(root).manifest(second)


def test_a_store_is_discarded_only_where_nobody_uses_it(root: Path) -> None:
    writer = Store(root)
    writer.put(b"x")
    discard(root.parent)
    assert objects(root)
    writer.release()
    discard(root.parent)
    assert not root.exists()
    assert Store(root).put(b"x") in objects(root)


@pytest.mark.slow
def test_writers_and_sweeps_at_the_same_moment_lose_nothing(root: Path) -> None:
    program = f"""
        import sys
        from pathlib import Path
        from jumar.workspace.store.object_store import Store
        for turn in range(40):
            store = Store(Path({str(root)!r}))
            names = store.put_all([b"%d" % n for n in range(30)])
            for name in names:
                store.get(name)
            store.release()
    """
    argv = [sys.executable, "-c", textwrap.dedent(program)]
    writers = [subprocess.Popen(argv, env={**os.environ}) for _ in range(2)]
    root.mkdir(parents=True)
    swept = 0
    while any(writer.poll() is None for writer in writers):
        swept += sweep(root, []).objects
    assert [writer.returncode for writer in writers] == [0, 0]
    assert swept + sweep(root, []).objects, "what the last of them released, if it was never its turn before"


@pytest.mark.slow
def test_a_room_of_links_cannot_be_written_by_the_tests_that_run_in_it(tmp_path: Path) -> None:
    box = s3()
    if not box.layered:
        pytest.skip("S3 HAS NO OVERLAY HERE: rooms are copies")
    court = Court(tmp_path, started=True)
    court.verifier.store, court.verifier.sandbox = LinkingStore(court.store.root), box
    tree = court.tree({
        "data.txt": "as it was\n",
        "test_data.py": "import os, pathlib\nHERE = pathlib.Path(__file__).parent / 'data.txt'\n\n\n"
        "def test_write():\n    with HERE.open('a') as file:\n        file.write('more\\n')\n"
        "    HERE.chmod(0o777)\n    os.truncate(HERE, 3)\n"
        "    os.utime(HERE, (1, 1))\n    assert HERE.read_text() == 'as '\n",
    })  # fmt: skip
    court.collect(tree)
    before = {path: (path.stat().st_mode, path.stat().st_size) for path in court.store.root.glob("??/*")}

    assert court.outcomes(court.judge(tree)) == {"test_write": "passed"}
    assert court.outcomes(court.judge(tree)) == {"test_write": "passed"}
    assert {path: (path.stat().st_mode, path.stat().st_size) for path in court.store.root.glob("??/*")} == before
    assert court.store.get(court.store.manifest(tree)["data.txt"].sha256) == b"as it was\n"


def test_what_is_put_into_a_room_of_links_changes_no_object(tmp_path: Path) -> None:
    store = LinkingStore(tmp_path / "objects")
    run, plain = store.put_all([b"#!/bin/sh\n", b"a = 1\n"])
    tree = store.keep({"a.py": Node(EntryKind.FILE, plain), "b.sh": Node(EntryKind.FILE, run, executable=True)})
    store.materialise(tree, tmp_path / "room")
    assert [(tmp_path / "room" / name).stat().st_nlink for name in ("a.py", "b.sh")] == [2, 1]
    assert (tmp_path / "room" / "b.sh").stat().st_mode & 0o100

    replace_files(tmp_path / "room", {"a.py": b"a = 2\n"})

    assert store.get(plain) == b"a = 1\n"
    assert store.capture(tmp_path / "room") != tree


def test_a_workspace_is_never_another_name_of_an_object(tmp_path: Path) -> None:
    store = LinkingStore(tmp_path / "objects")
    tree = store.keep({"a.py": Node(EntryKind.FILE, store.put(b"a = 1\n"))})
    Workspace(tmp_path / "work", store).reset(tree)
    assert (tmp_path / "work" / "a.py").stat().st_nlink == 1
