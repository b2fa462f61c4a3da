"""Group commit: runs of one process share syncs, and no event counts before the sync it waited for."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Event

import anyio
import pytest

from jumar.core.state import events as ev
from jumar.errors import Infra
from jumar.journal import group_commit
from jumar.journal.group_commit import GroupCommit, can_sync_whole, sync_files_together
from jumar.journal.writer import EVENTS, Journal, read_journal

CLAIM = ev.EditClaim(test_id="t.py::test_a", edit_target="a.py")


def test_whoever_comes_during_a_sync_shares_the_next_one(tmp_path: Path) -> None:
    batches: list[int] = []
    entered, go = Event(), Event()

    def sync(files: Sequence[int]) -> list[OSError | None]:
        batches.append(len(files))
        entered.set()
        assert go.wait(20)
        return [None] * len(files)

    async def main(journals: list[Journal]) -> list[int]:
        commits, believed = GroupCommit(sync), list[int]()

        async def write(journal: Journal) -> None:
            journal.commits = commits
            believed.extend(entry.seq for entry in await journal.commit([CLAIM], 1.0))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write, journals[0])
            await anyio.to_thread.run_sync(entered.wait, 20)
            for journal in journals[1:]:
                tasks.start_soon(write, journal)
            await anyio.wait_all_tasks_blocked()
            assert not believed, "nothing is on the disk yet"
            go.set()
        return believed

    with ExitStack() as held:
        journals = [held.enter_context(Journal.create(tmp_path / str(n))) for n in range(10)]
        assert anyio.run(main, journals) == [0] * 10
    assert batches == [1, 9]
    assert all(len(read_journal(tmp_path / str(n))) == 1 for n in range(10))


def test_only_the_journal_whose_sync_failed_takes_no_more(tmp_path: Path) -> None:
    with Journal.create(tmp_path / "a") as one, Journal.create(tmp_path / "b") as other:

        def sync(files: Sequence[int]) -> list[OSError | None]:
            return [OSError(errno.EIO, "I/O error") if os.fstat(fd).st_ino == bad else None for fd in files]

        bad = (tmp_path / "a" / EVENTS).stat().st_ino

        async def main() -> None:
            one.commits = other.commits = GroupCommit(sync)
            await other.commit([CLAIM], 1.0)
            with pytest.raises(Infra, match="could not be synced"):
                await one.commit([CLAIM], 1.0)
            with pytest.raises(Infra, match="takes no more"):
                await one.commit([CLAIM], 1.0)
            assert (await other.commit([CLAIM], 2.0))[0].seq == 1

        anyio.run(main)
    assert read_journal(tmp_path / "a") == ()
    assert len(read_journal(tmp_path / "b")) == 2


def test_a_cancelled_run_still_learns_that_its_event_is_on_the_disk(tmp_path: Path) -> None:
    entered, go = Event(), Event()

    def sync(files: Sequence[int]) -> list[OSError | None]:
        entered.set()
        assert go.wait(20)
        return [None] * len(files)

    async def main(journal: Journal) -> list[ev.Entry]:
        found: list[ev.Entry] = []

        async def write() -> None:
            journal.commits = GroupCommit(sync)
            found.extend(await journal.commit([CLAIM], 1.0))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            await anyio.to_thread.run_sync(entered.wait, 20)
            tasks.cancel_scope.cancel()
            go.set()
        return found

    with Journal.create(tmp_path / "run") as journal:
        assert tuple(anyio.run(main, journal)) == read_journal(tmp_path / "run")
        assert len(read_journal(tmp_path / "run")) == 1


def test_files_are_synced_one_by_one_where_a_whole_sync_may_not_be_believed(tmp_path: Path) -> None:
    with ExitStack() as held:
        files = [held.enter_context((tmp_path / str(n)).open("wb")) for n in range(group_commit.MANY)]
        assert sync_files_together([file.fileno() for file in files]) == [None] * len(files)
        fd = files[0].fileno()
        device = os.fstat(fd).st_dev
        mounts = tmp_path / "mounts"
        for kind, believed in (("ext4", True), ("xfs", True), ("fuse.x", False), ("overlay", False), ("nfs4", False)):
            mounts.write_text(f"22 1 {os.major(device)}:{os.minor(device)} / / rw shared:1 - {kind} /dev/x rw\n")
            assert can_sync_whole(fd, mounts) == believed
        mounts.write_text("22 1 0:0 / / rw - ext4 /dev/x rw\n")
        assert not can_sync_whole(fd, mounts)
        assert not can_sync_whole(fd, tmp_path / "absent")
    gone = os.open(tmp_path / "0", os.O_RDONLY)
    os.close(gone)
    fault = sync_files_together([gone])[0]
    assert fault is not None
    assert fault.errno == errno.EBADF
