"""Writes a run's journal: one writer, one file. A group of events is on the disk wholly before it counts."""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Self

import msgspec

from jumar.core.state.events import Entry, Event, Final, RunEnd
from jumar.errors import BadInput, Infra
from jumar.journal.group_commit import GroupCommit
from jumar.journal.line_format import JournalEnd, format_group, hash_line
from jumar.journal.lock import take_lock
from jumar.journal.read_groups import TornLine, read_groups
from jumar.workspace.files import safe_paths
from jumar.workspace.files.disk_faults import explain_disk_faults

EVENTS, ANCHOR, BALLAST = "events.jsonl", "head", "ballast"
"""Files in a run's directory: the lines, the newest line's hash, space for the last words."""

BALLAST_BYTES = 256 * 1024

Write = Callable[[int, bytes], int]
"""`os.write`, or what a test puts in its place."""


class Journal:
    """The writer of one run's journal. Make it with `create` or `open`; close it, or use it in a `with`."""

    def __init__(self, folder: Path, lock: int, fd: int, write: Write) -> None:
        self.folder, self.mark = folder, JournalEnd()
        self.entries: tuple[Entry, ...] = ()
        """Entries that the journal held when it was opened."""
        self.recovered: tuple[str, ...] = ()
        """Repairs made when it was opened, one sentence each."""
        self.commits: GroupCommit | None = None
        """Syncs that it shares with other journals of this process."""
        self._lock, self._fd, self._write = lock, fd, write
        self._anchor = os.open(folder / ANCHOR, os.O_RDWR | os.O_CREAT, 0o644)
        self._length = 0
        self._refusal = ""

    @classmethod
    def create(cls, folder: Path, write: Write = os.write) -> Self:
        """Begin a journal in *folder*, which is created if missing.

        Raises:
            BadInput: if it holds a journal already, or another process writes there.
            Infra: if the disk refuses.
        """
        with explain_disk_faults(f"cannot begin a journal in {folder}"):
            fresh = not folder.is_dir()
            folder.mkdir(parents=True, exist_ok=True)
            try:
                journal = cls._open_new(folder, os.O_CREAT | os.O_EXCL, write)
            except FileExistsError:
                raise BadInput(f"{folder} holds a run already; resume it, or name another folder") from None
            if fresh:
                safe_paths.sync(folder.parent)
        return journal

    @classmethod
    def open(cls, folder: Path, write: Write = os.write) -> Self:
        """Open the journal in *folder* to continue. An interrupted write at its end is moved aside and reported.

        Raises:
            BadInput: if there is no journal, another process writes it, or a line of it is damaged.
            Infra: if the disk refuses.
        """
        with explain_disk_faults(f"cannot open the journal in {folder}"):
            if not (folder / EVENTS).is_file():
                raise BadInput(f"{folder} holds no journal (no {EVENTS} in it); name the directory of a run")
            return cls._open_new(folder, 0, write)

    @classmethod
    def _open_new(cls, folder: Path, flags: int, write: Write) -> Self:
        with ExitStack() as undo:
            lock = take_lock(folder)
            undo.callback(os.close, lock)
            fd = os.open(folder / EVENTS, os.O_RDWR | os.O_APPEND | flags, 0o644)
            undo.callback(os.close, fd)
            journal = cls(folder, lock, fd, write)
            undo.callback(os.close, journal._anchor)
            journal._recover()
            journal._prepare()
            undo.pop_all()
        return journal

    def append(self, events: Sequence[Event], ts: float) -> tuple[Entry, ...]:
        """Write *events* as one group, at *ts* seconds: one write, one sync. Return what a reader will get.

        Raises:
            Infra: if the disk refuses; the journal is as it was. After a failed sync it takes no more.
            ValueError: if an event cannot be written so that it reads back.
        """
        if not events:
            return ()
        with self._append_group(events, ts) as entries:
            self._sync()
        return entries

    async def commit(self, events: Sequence[Event], ts: float) -> tuple[Entry, ...]:
        """Write *events* as `append` does; if there are `commits`, with a sync shared with other journals.

        Raises:
            Infra: as `append`.
            ValueError: as `append`.
        """
        if self.commits is None or not events:
            return self.append(events, ts)
        with self._append_group(events, ts) as entries:
            try:
                await self.commits.sync(self._fd)
            except OSError as fault:
                raise self._refuse_unsynced(fault) from fault
        return entries

    @contextmanager
    def _append_group(self, events: Sequence[Event], ts: float) -> Iterator[tuple[Entry, ...]]:
        """Write *events*; within the block they are synced. If that fails, nothing of them stays."""
        if self._refusal:
            raise Infra(self._refusal)
        entries, lines = format_group(events, ts, self.mark)
        data = b"".join(line + b"\n" for line in lines)
        # The ballast is for the last words alone. Spent on an ordinary group, it would be gone when the run, told by
        # this very fault to stop, writes its end; and what the disk got back early, others would eat.
        closing = any(isinstance(event, Final | RunEnd) for event in events)
        try:
            with explain_disk_faults(f"the journal in {self.folder} cannot be written"):
                self._put(data, spare=closing)
            yield entries
        except BaseException:
            # An interrupt too: whatever the reason, nobody was told of this group, so none of it may stay.
            self._cut_back()
            raise
        self._length += len(data)
        self._write_anchor(JournalEnd(entries[-1].seq, hash_line(lines[-1])))

    def close(self) -> None:
        """Close the files and release the lock. The ballast goes too: its space is needed only while a run runs."""
        self._drop_ballast()
        for fd in (self._anchor, self._fd, self._lock):
            if fd >= 0:
                os.close(fd)
        self._anchor = self._fd = self._lock = -1
        self._refusal = "the journal is closed"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _put(self, data: bytes, *, spare: bool) -> None:
        rest = data
        while rest:
            try:
                rest = rest[self._write(self._fd, rest) :]
            except OSError as fault:
                if not (spare and fault.errno == errno.ENOSPC and self._drop_ballast()):
                    raise
                spare = False

    def _sync(self) -> None:
        try:
            os.fsync(self._fd)
        except OSError as fault:
            raise self._refuse_unsynced(fault) from fault

    def _refuse_unsynced(self, fault: OSError) -> Infra:
        # After a failed sync the system may call the pages clean: no later sync could be believed.
        self._refusal = f"the journal in {self.folder} could not be synced ({fault.strerror}); it takes no more"
        return Infra(self._refusal)

    def _cut_back(self) -> None:
        try:
            os.ftruncate(self._fd, self._length)
        except OSError as fault:
            where = f"the journal in {self.folder} could not be cut back"
            self._refusal = self._refusal or f"{where} ({fault.strerror}); resume the run"

    def _write_anchor(self, mark: JournalEnd) -> None:
        self.mark = mark
        try:
            # One write of always the same length: a kill leaves the old mark or the new one.
            os.pwrite(self._anchor, b'{"seq":%19d,"hash":"%s"}\n' % (mark.seq, mark.hash.encode().rjust(64, b"0")), 0)
        except OSError:
            # The anchor only helps `verify`; being one group late it is still right about what it names.
            return

    def _drop_ballast(self) -> bool:
        try:
            (self.folder / BALLAST).unlink()
        except OSError:
            return False
        return True

    def _prepare(self) -> None:
        """Put the ballast in its place and make the names last."""
        fd = os.open(self.folder / BALLAST, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            # Blocks are taken, not written: zeros might be stored in no space at all.
            os.posix_fallocate(fd, 0, BALLAST_BYTES)
        finally:
            os.close(fd)
        self._write_anchor(self.mark)
        safe_paths.sync(self.folder)

    def _recover(self) -> None:
        torn: list[TornLine] = []
        entries: list[Entry] = []
        with (self.folder / EVENTS).open("rb") as lines:
            for group in read_groups(lines, torn.append, str(self.folder)):
                entries += group.entries
                self._length += group.size
                self.mark = group.end
        self.entries = tuple(entries)
        if torn:
            self._set_aside(torn[0])
        self._compare(read_anchor(self.folder))

    def _set_aside(self, torn: TornLine) -> None:
        path = next(p for n in count() if not (p := self.folder / f"events.torn-{n:03d}.jsonl").exists())
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            safe_paths.write_all(fd, torn.data)
            os.fsync(fd)
        finally:
            os.close(fd)
        safe_paths.sync(self.folder)
        os.ftruncate(self._fd, self._length)
        os.fsync(self._fd)
        self.recovered += (f"{torn}; what there is of it was moved to {path.name}",)

    def _compare(self, anchor: JournalEnd | None) -> None:
        if anchor is None or anchor.seq < 0:
            return
        if anchor.seq > self.mark.seq:
            self.recovered += (f"the journal ended at seq {anchor.seq} once, and now ends at seq {self.mark.seq}",)
        elif anchor.seq == self.mark.seq and anchor.hash != self.mark.hash:
            raise BadInput(
                f"line {anchor.seq + 1} of the journal is damaged: it is not the line that was written; "
                f"run `jumar log verify {shlex.quote(str(self.folder))}`"
            )


def read_anchor(folder: Path) -> JournalEnd | None:
    """Read the end of the journal from the anchor beside it; None if there is no readable anchor."""
    try:
        return msgspec.json.decode((folder / ANCHOR).read_bytes(), type=JournalEnd)
    except (OSError, msgspec.DecodeError):
        return None


def read(folder: Path, told: Callable[[str], None] = lambda _: None) -> Iterator[Entry]:
    """Yield the entries of the journal in *folder*, group by group, without a lock; *told* gets an unfinished end.

    Raises:
        BadInput: if there is no journal, or naming the first line of it that is damaged.
    """
    try:
        with (folder / EVENTS).open("rb") as lines:
            for group in read_groups(lines, lambda torn: told(str(torn)), str(folder)):
                yield from group.entries
    except OSError as fault:
        raise BadInput(
            f"the journal in {folder} cannot be read: {fault.strerror}; name the directory of a run"
        ) from fault


def read_journal(folder: Path) -> tuple[Entry, ...]:
    """Return all complete groups of the journal in *folder*; see `read`."""
    return tuple(read(folder))
