"""Writing back what a run changed: three-way where the original moved on, all or nothing, never through a link."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from jumar.errors import BadInput
from jumar.workspace.merge import merge
from jumar.workspace.store.object_store import Store
from jumar.workspace.write_back import Conflicts, apply

TEXT = b"".join(b"line %d\n" % n for n in range(20))
RUNS = TEXT.replace(b"line 3\n", b"line three\n")


class Merging:
    """An original, and a run that began with it."""

    def __init__(self, folder: Path) -> None:
        self.origin, self.work, self.store = folder / "origin", folder / "work", Store(folder / "objects")
        self.origin.mkdir()
        (self.origin / "a.py").write_bytes(TEXT)
        (self.origin / "old.py").write_bytes(b"old\n")
        (self.origin / "data.bin").write_bytes(b"\0one")
        (self.origin / "pkg").mkdir()
        (self.origin / "pkg" / "b.py").write_bytes(b"b\n")
        (self.origin / "link").symlink_to("a.py")
        shutil.copytree(self.origin, self.work, symlinks=True)
        self.base = self.store.capture(self.origin)

    def applied(self, closed: Callable[[str], bool] = lambda _: False) -> tuple[str, ...]:
        return apply(self.store, self.base, self.store.capture(self.work), self.origin, closed)

    def refused(self) -> list[str]:
        """The paths in conflict; nothing was written."""
        before = self.store.capture(self.origin)
        with pytest.raises(Conflicts) as refused:
            self.applied()
        assert self.store.capture(self.origin) == before
        for conflict in refused.value.conflicts:
            assert repr(conflict.path) in conflict.why
            assert conflict.why in str(refused.value)
        return [conflict.path for conflict in refused.value.conflicts]


@pytest.fixture
def merging(tmp_path: Path) -> Merging:
    return Merging(tmp_path)


def test_apply_is_three_way_where_the_tree_moved_on(merging: Merging) -> None:
    (merging.work / "a.py").write_bytes(RUNS)
    (merging.work / "new.py").write_bytes(b"new\n")
    (merging.work / "old.py").unlink()
    (merging.origin / "a.py").write_bytes(TEXT.replace(b"line 17\n", b"mine\n"))
    (merging.origin / "mine.py").write_bytes(b"mine\n")

    assert merging.applied() == ("a.py", "new.py", "old.py")
    assert (merging.origin / "a.py").read_bytes() == RUNS.replace(b"line 17\n", b"mine\n")
    assert sorted(p.name for p in merging.origin.iterdir()) == ["a.py", "data.bin", "link", "mine.py", "new.py", "pkg"]
    assert merging.applied() == (), "applying twice changes nothing"


def test_apply_refuses_with_each_conflict_named_and_writes_nothing(merging: Merging) -> None:
    for path, data in (("a.py", RUNS), ("data.bin", b"\0two"), ("new.py", b"new\n"), ("pkg/b.py", b"c\n")):
        (merging.work / path).write_bytes(data)
    (merging.work / "old.py").unlink()
    (merging.work / "fine.py").write_bytes(b"fine\n")
    (merging.origin / "a.py").write_bytes(TEXT.replace(b"line 3\n", b"mine\n"))
    (merging.origin / "data.bin").write_bytes(b"\0three")
    (merging.origin / "new.py").write_bytes(b"made here\n")
    (merging.origin / "old.py").write_bytes(b"changed here\n")
    shutil.rmtree(merging.origin / "pkg")

    assert merging.refused() == ["a.py", "data.bin", "new.py", "old.py", "pkg/b.py"]


def test_apply_writes_through_no_link(merging: Merging, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b.py").write_bytes(b"b\n")
    shutil.rmtree(merging.origin / "pkg")
    (merging.origin / "pkg").symlink_to(outside)
    (merging.work / "pkg" / "b.py").write_bytes(b"c\n")
    (merging.work / "pkg" / "new.py").write_bytes(b"n\n")
    assert merging.refused() == ["pkg/b.py", "pkg/new.py"]

    (merging.origin / "pkg").unlink()
    shutil.copytree(outside, merging.origin / "pkg")
    (merging.origin / "pkg" / "b.py").unlink()
    os.link(outside / "b.py", merging.origin / "pkg" / "b.py")
    assert merging.applied() == ("pkg/b.py", "pkg/new.py")
    assert (outside / "b.py").read_bytes() == b"b\n"


def test_apply_brings_modes_links_binaries_and_deleted_folders(merging: Merging) -> None:
    (merging.work / "a.py").chmod(0o755)
    (merging.work / "data.bin").write_bytes(b"\0two")
    (merging.work / "link").unlink()
    (merging.work / "link").symlink_to("data.bin")
    shutil.rmtree(merging.work / "pkg")
    (merging.origin / "a.py").write_bytes(TEXT + b"mine\n")

    assert merging.applied() == ("a.py", "data.bin", "link", "pkg", "pkg/b.py")
    assert (merging.origin / "a.py").read_bytes() == TEXT + b"mine\n"
    assert os.access(merging.origin / "a.py", os.X_OK)
    assert (merging.origin / "link").readlink() == Path("data.bin")
    assert not (merging.origin / "pkg").exists()
    assert merging.applied() == ()


def test_apply_never_touches_what_is_closed(merging: Merging) -> None:
    (merging.work / "a.py").write_bytes(RUNS)
    (merging.work / "new.py").write_bytes(b"n\n")
    with pytest.raises(BadInput, match=r"'new\.py' is one of the task's own tests"):
        merging.applied(lambda path: path == "new.py")
    assert (merging.origin / "a.py").read_bytes() == TEXT


def test_a_pipe_in_the_place_of_a_file_is_a_conflict(merging: Merging) -> None:
    (merging.work / "a.py").write_bytes(RUNS)
    (merging.origin / "a.py").unlink()
    os.mkfifo(merging.origin / "a.py")
    with pytest.raises(Conflicts, match=r"'a\.py' was changed"):
        merging.applied()


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "merged"),
    [
        (TEXT, TEXT, RUNS, RUNS),
        (TEXT, RUNS, TEXT, RUNS),
        (TEXT, RUNS, RUNS, RUNS),
        (TEXT, TEXT + b"end\r\n", RUNS, RUNS + b"end\r\n"),
        (b"one", b"one\ntwo", b"zero\none", None),
        (b"\0a", b"\0b", b"\0c", None),
        (b"", b"mine\n", b"theirs\n", None),
        (TEXT, b"\xff" + TEXT, RUNS, b"\xff" + RUNS),
    ],
)
def test_texts_are_merged_as_git_does(base: bytes, mine: bytes, theirs: bytes, merged: bytes | None) -> None:
    assert merge(base, mine, theirs) == merged
