"""The journal: groups are whole or absent, one writer, and no line can be changed unnamed."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.core.state import events as ev
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Gate
from jumar.errors import BadInput, Infra
from jumar.journal.audit import verify
from jumar.journal.line_format import JournalEnd, format_group, hash_line
from jumar.journal.writer import ANCHOR, BALLAST, EVENTS, Journal, read, read_journal

CLAIM = ev.EditClaim(test_id="t.py::test_a", edit_target="a.py")
END = ev.RunEnd(stop=StopReason.INFRA, best=None, usd=0.0, tokens=0, test_runs=0, executions=0)


MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108  examples come and go; no sync is slow there


def journal_of(folder: Path, sizes: list[int]) -> list[bytes]:
    """A journal of groups of the given sizes; its lines."""
    with Journal.create(folder) as journal:
        for n, size in enumerate(sizes):
            journal.append(
                [ev.EditClaim(test_id=f"t.py::test_{n}_{i}", edit_target="a.py") for i in range(size)], 1.5 + n
            )
    return (folder / EVENTS).read_bytes().splitlines(keepends=True)


def written(folder: Path, sizes: list[int]) -> list[bytes]:
    """The same, without the price of a sync."""
    mark, lines = JournalEnd(), []
    for n, size in enumerate(sizes):
        claims = [ev.EditClaim(test_id=f"t.py::test_{n}_{i}", edit_target="a.py") for i in range(size)]
        entries, more = format_group(claims, 1.5 + n, mark)
        lines += more
        mark = JournalEnd(entries[-1].seq, hash_line(more[-1]))
    folder.mkdir()
    (folder / ANCHOR).write_bytes(msgspec.json.encode(mark))
    (folder / EVENTS).write_bytes(b"".join(line + b"\n" for line in lines))
    return [line + b"\n" for line in lines]


@contextmanager
def fresh() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder) / "run"


def test_a_line_is_the_documented_envelope(tmp_path: Path) -> None:
    with Journal.create(tmp_path) as journal:
        entries = journal.append([ev.Mode(from_=Gate.STRICT, to=Gate.REFACTOR), CLAIM], 12.5)
    first, second = (tmp_path / EVENTS).read_bytes().splitlines()
    assert first == b'{"seq":0,"ts":12.5,"type":"mode","from":"strict","to":"refactor","more":1,"prev":""}'
    assert list(json.loads(second)) == ["seq", "ts", "type", "test_id", "edit_target", "prev"]
    assert [entry.seq for entry in entries] == [0, 1]
    assert read_journal(tmp_path) == entries


def test_no_event_has_a_field_of_the_envelope() -> None:
    for kind in ev.Event.__args__:
        assert not {"seq", "ts", "more", "prev", "type"} & set(kind.__struct_encode_fields__)


@pytest.mark.parametrize("text", ["\udcff", "\0", "\u2028", '","prev":"', "\n", "ä🙂"])
def test_any_text_reads_back(tmp_path: Path, text: str) -> None:
    with Journal.create(tmp_path) as journal:
        entries = journal.append(
            [ev.Observation(name=text, content={text: [text, 1, None, {"prev": "", "more": 2}]})], 1.0
        )
    assert read_journal(tmp_path) == entries
    assert entries[0].event == ev.Observation(name=text, content={text: [text, 1, None, {"prev": "", "more": 2}]})
    assert not verify(tmp_path)


def test_what_would_not_read_back_is_not_written(tmp_path: Path) -> None:
    with Journal.create(tmp_path) as journal:
        with pytest.raises(ValueError, match="float"):
            journal.append([CLAIM, msgspec.structs.replace(END, usd=float("nan"))], 1.0)
        journal.append([CLAIM], 1.0)
    assert len(read_journal(tmp_path)) == 1


def test_a_second_writer_is_refused_with_one_sentence(tmp_path: Path) -> None:
    with Journal.create(tmp_path), pytest.raises(BadInput, match=f"another jumar .process {os.getpid()}. is writing"):
        Journal.open(tmp_path)
    Journal.open(tmp_path).close()


def test_a_folder_with_a_run_is_not_begun_again(tmp_path: Path) -> None:
    journal_of(tmp_path, [1])
    with pytest.raises(BadInput, match="holds a run already"):
        Journal.create(tmp_path)
    with pytest.raises(BadInput, match="holds no journal"):
        Journal.open(tmp_path / "nothing")
    with pytest.raises(BadInput, match="cannot be read"):
        read_journal(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b'"edit_claim"', b'"edit_clam"', "edit_clam"),
        (b'"edit_target"', b'"edit_targets"', "edit_target"),
        (b'"edit_target":"a.py"', b'"edit_target":3', "Expected `str`"),
        (b"}", b"", "no JSON"),
    ],
)
def test_reading_is_strict_and_names_the_line(tmp_path: Path, old: bytes, new: bytes, why: str) -> None:
    lines = journal_of(tmp_path, [1, 1, 1])
    (tmp_path / EVENTS).write_bytes(lines[0] + lines[1].replace(old, new) + lines[2])
    with pytest.raises(BadInput, match=f"^line 2 of the journal is damaged.*{why}.*jumar log verify .*{tmp_path.name}"):
        read_journal(tmp_path)
    with pytest.raises(BadInput, match=r"^line 2 "):
        Journal.open(tmp_path)
    assert [finding.line for finding in verify(tmp_path)] == [2]


@settings(max_examples=25, deadline=None)
@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=5), cut=st.floats(0, 1))
def test_any_prefix_opens_to_its_complete_groups_and_loses_no_byte(sizes: list[int], cut: float) -> None:
    with fresh() as folder:
        whole = b"".join(written(folder, sizes))
        kept = round(cut * len(whole))
        (folder / EVENTS).write_bytes(whole[:kept])
        ends = [sum(sizes[:n]) for n in range(len(sizes) + 1)]
        expected = max(end for end in ends if end <= whole[:kept].count(b"\n"))
        told: list[str] = []
        assert len(list(read(folder, told.append))) == expected
        with Journal.open(folder) as journal:
            assert len(journal.entries) == expected
            aside = sorted(folder.glob("events.torn-*.jsonl"))
            torn = aside[0].read_bytes() if aside else b""
            assert (folder / EVENTS).read_bytes() + torn == whole[:kept]
            assert bool(torn) == bool(told) == any("moved to events.torn-000" in said for said in journal.recovered)
            journal.append([CLAIM], 99.0)
        assert [entry.seq for entry in read_journal(folder)] == list(range(expected + 1))
        assert not verify(folder)


def edited(lines: list[bytes], at: int, with_: int, _: str) -> list[bytes]:
    fields = [(b"1.5", b"1.7"), (b"t.py", b"u.py"), (b'"seq":', b'"seq":9'), (b'"prev":"', b'"prev":"0'), (b"}", b"")]
    old, new = fields[with_ % len(fields)]
    line = lines[at].replace(old, new, 1)
    return [*lines[:at], lines[at].replace(b"ts", b"t", 1) if line == lines[at] else line, *lines[at + 1 :]]


def deleted(lines: list[bytes], at: int, *_: object) -> list[bytes]:
    return lines[:at] + lines[at + 1 :]


def swapped(lines: list[bytes], at: int, with_: int, _: str) -> list[bytes]:
    other = (at + 1 + with_ % (len(lines) - 1)) % len(lines)
    lines = list(lines)
    lines[at], lines[other] = lines[other], lines[at]
    return lines


def copied(lines: list[bytes], at: int, with_: int, _: str) -> list[bytes]:
    to = with_ % len(lines)
    return [*lines[:to], lines[at], *lines[to:]]


@pytest.mark.slow
@settings(deadline=None)
@given(
    sizes=st.lists(st.integers(1, 3), min_size=2, max_size=6).filter(lambda sizes: sum(sizes) > 2),
    harm=st.sampled_from([edited, deleted, swapped, copied]),
    at=st.integers(0, 100),
    with_=st.integers(0, 100),
)
def test_any_single_harm_is_named(
    sizes: list[int], harm: Callable[[list[bytes], int, int, str], list[bytes]], at: int, with_: int
) -> None:
    with fresh() as folder:
        lines = written(folder, sizes)
        assert verify(folder) == ()
        at %= len(lines)
        harmed = harm(lines, at, with_, "")
        (folder / EVENTS).write_bytes(b"".join(harmed))
        findings = [finding for finding in verify(folder) if "cannot be confirmed" not in finding.what]
        # Where a line went is where the first difference is; lines that only moved up or down are not accused.
        touched = {n for n in range(1, max(len(lines), len(harmed)) + 1) if lines[n - 1 : n] != harmed[n - 1 : n]}
        assert findings
        if harm is copied:
            assert [harmed[finding.line - 1] for finding in findings] == [lines[at]]
        else:
            assert {finding.line for finding in findings} <= touched
        if harm in (edited, deleted):
            assert [finding.line for finding in findings] == [at + 1]


def test_the_last_line_is_held_by_the_anchor_alone(tmp_path: Path) -> None:
    lines = journal_of(tmp_path, [1, 1, 1])
    (tmp_path / EVENTS).write_bytes(b"".join(lines[:2]))
    assert "seq 2 deleted" in verify(tmp_path)[-1].what
    (tmp_path / EVENTS).write_bytes(b"".join(lines[:2]) + lines[2].replace(b"a.py", b"b.py"))
    assert [finding.line for finding in verify(tmp_path)] == [3]
    with pytest.raises(BadInput, match="line 3 of the journal is damaged"):
        Journal.open(tmp_path)
    (tmp_path / ANCHOR).write_bytes(b'{"seq":99999999999999999,"hash":"x"}')
    assert "seq 3 to 99999999999999999 deleted" in verify(tmp_path)[-1].what
    (tmp_path / ANCHOR).unlink()
    assert verify(tmp_path) == ()


def test_two_neighbours_changed_are_both_named(tmp_path: Path) -> None:
    lines = journal_of(tmp_path, [1] * 6)
    lines[2:4] = [line.replace(b"a.py", b"b.py") for line in lines[2:4]]
    (tmp_path / EVENTS).write_bytes(b"".join(lines))
    assert [finding.line for finding in verify(tmp_path)] == [3, 4]


class FullDisk:
    """A write that takes some bytes, then has no space until the ballast is gone."""

    def __init__(self, folder: Path, fault: int, takes: int) -> None:
        self.folder, self.fault, self.takes = folder, fault, takes

    def __call__(self, fd: int, data: bytes) -> int:
        if self.fault == errno.ENOSPC and not (self.folder / BALLAST).exists():
            return os.write(fd, data)
        if not self.takes:
            raise OSError(self.fault, os.strerror(self.fault))
        taken, self.takes = data[: self.takes], max(0, self.takes - len(data))
        return os.write(fd, taken)


@pytest.mark.parametrize("takes", [0, 1, 130, 200])
@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EIO])
def test_a_refused_write_leaves_the_journal_as_it_was(tmp_path: Path, fault: int, takes: int) -> None:
    lines = journal_of(tmp_path, [2])
    with Journal.open(tmp_path, FullDisk(tmp_path, fault, takes)) as journal:
        with pytest.raises(Infra, match="cannot be written"):
            journal.append([CLAIM, CLAIM], 2.0)
        assert (tmp_path / EVENTS).read_bytes() == b"".join(lines)
        if fault == errno.ENOSPC:
            assert (tmp_path / BALLAST).exists()
            assert journal.append([END], 3.0)[0].seq == 2
    assert not verify(tmp_path)


def test_short_writes_are_completed(tmp_path: Path) -> None:
    with Journal.create(tmp_path, lambda fd, data: os.write(fd, data[:7])) as journal:
        entries = journal.append([CLAIM, CLAIM], 1.0)
    assert read_journal(tmp_path) == entries


def test_after_a_failed_sync_nothing_is_taken(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path)
    read_end, write_end = os.pipe()
    os.dup2(write_end, journal._fd)  # noqa: SLF001  a pipe takes writes and refuses fsync, as a dying disk does
    with pytest.raises(Infra, match="takes no more"):
        journal.append([CLAIM], 1.0)
    with pytest.raises(Infra, match="takes no more"):
        journal.append([END], 1.0)
    for fd in (read_end, write_end):
        os.close(fd)
    journal.close()
    assert read_journal(tmp_path) == ()


def test_a_file_size_limit_ends_in_infra_and_a_clean_journal(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Journal.create(tmp_path) as journal:
        journal.append([CLAIM], 1.0)
        resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / EVENTS).stat().st_size + 40, hard))
        try:
            with pytest.raises(Infra, match="File too large"):
                journal.append([CLAIM, CLAIM], 2.0)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        journal.append([CLAIM], 3.0)
    assert len(read_journal(tmp_path)) == 2
    assert not verify(tmp_path)


def fill(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(b"x" * 4096)


def until_refused(journal: Journal) -> None:
    while True:
        journal.append([CLAIM] * 8, 2.0)


@pytest.mark.slow
def test_a_full_disk_still_holds_the_last_words(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("a small tmpfs needs the right to mount")
    try:
        with Journal.create(disk / "run") as journal:
            journal.append([CLAIM], 1.0)
            with pytest.raises(OSError, match="No space"):
                fill(disk)
            with pytest.raises(Infra, match="No space left"):
                until_refused(journal)
            held = len(read_journal(disk / "run"))
            assert journal.append([END], 3.0)[0].seq == held
        assert not verify(disk / "run")
    finally:
        subprocess.run(["umount", disk], check=True)


WRITER = textwrap.dedent("""
    import os, signal, sys
    from pathlib import Path
    from jumar.core.state.events import EditClaim
    from jumar.journal.writer import Journal

    whole = int(sys.argv[2])

    def in_halves(fd, data):
        global whole
        whole -= 1
        done = os.write(fd, data[:max(1, len(data) // 2)])
        if not whole:
            print("half", flush=True)
            signal.pause()
        return done

    folder = Path(sys.argv[1])
    journal = (Journal.open if (folder / "events.jsonl").exists() else Journal.create)(folder, in_halves)
    print(len(journal.entries), flush=True)
    for n in range(len(journal.entries), 10**6):
        journal.append([EditClaim(test_id=f"t.py::test_{n}", edit_target="a.py")] * 3, float(n))
        print(n, flush=True)
""")


@pytest.mark.slow
def test_a_killed_writer_never_loses_or_tears_what_it_reported(tmp_path: Path) -> None:
    folder, random, torn = tmp_path / "run", Random(7), 0
    for half in (0, 0, 1, 0, 2, 9, 0, 30):  # the write that is killed in its middle; 0: whichever it falls into
        child = subprocess.Popen([sys.executable, "-c", WRITER, folder, str(half)], stdout=subprocess.PIPE)
        said = child.stdout
        assert said is not None
        with child, said:
            before = int(said.readline())
            lines = iter(said.readline, b"half\n")
            reported = list(lines) if half else list(islice(lines, random.randrange(1, 30)))
            child.kill()
            reported += said.readlines()
        entries = read_journal(folder)
        assert len(entries) % 3 == 0
        assert len(entries) >= before + 3 * len([line for line in reported if line.endswith(b"\n")])
        with Journal.open(folder) as journal:
            assert journal.entries == entries
            torn += bool(journal.recovered)
        assert not verify(folder)
    assert torn >= 4, "each that was killed in the middle of a write left a torn one"


class Interrupted:
    """A write that is cut off by Ctrl-C half-way, once."""

    def __init__(self) -> None:
        self.due = True

    def __call__(self, fd: int, data: bytes) -> int:
        if self.due:
            self.due = False
            os.write(fd, data[:20])
            raise KeyboardInterrupt
        return os.write(fd, data)


def test_an_interrupt_in_the_middle_of_a_write_leaves_nothing(tmp_path: Path) -> None:
    with Journal.create(tmp_path, Interrupted()) as journal:
        with pytest.raises(KeyboardInterrupt):
            journal.append([CLAIM], 1.0)
        journal.append([END], 2.0)
    assert [entry.event for entry in read_journal(tmp_path)] == [END]
    assert not verify(tmp_path)
