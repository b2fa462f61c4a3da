"""Finds faults of a journal, line by line: a line is genuine if the next one, or the anchor, names it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from jumar.errors import BadInput
from jumar.journal.line_format import JournalEnd, hash_line, parse
from jumar.journal.writer import EVENTS, read_anchor


class Finding(msgspec.Struct, frozen=True):
    """One difference from the written journal. Lines count from 1, as editors do."""

    line: int
    what: str


class _Seen(msgspec.Struct, frozen=True):
    """A line as it was read. An unreadable one has no number (-1) and a fault."""

    number: int
    hash: str
    seq: int = -1
    prev: str = ""
    more: int = 0
    fault: str = ""


def verify(folder: Path, anchor: JournalEnd | None = None) -> tuple[Finding, ...]:
    """Return every line of the journal in *folder* that was changed, deleted, inserted or moved; nothing if none was.

    *anchor* is what else remembers the journal's end; without it, the one beside the journal is asked. Where none
    is left, a changed or deleted last line cannot be told. A line whose follower is gone or unreadable is believed if
    it fits the line before.

    Raises:
        BadInput: if there is no journal that can be read.
    """
    try:
        with (folder / EVENTS).open("rb") as lines:
            return find_damage(lines, anchor or read_anchor(folder) or JournalEnd())
    except OSError as fault:
        raise BadInput(
            f"the journal in {folder} cannot be read: {fault.strerror}; name the directory of a run"
        ) from fault


def find_damage(lines: Iterable[bytes], anchor: JournalEnd) -> tuple[Finding, ...]:
    """Return the faults of a journal given as *lines*, with their newlines; see `verify`."""
    seen, torn = _parse_lines(lines)
    findings = _Audit(seen, anchor).list_findings()
    if torn:
        findings.append(
            Finding(len(seen) + 1, f"is torn ({torn} bytes): an interrupted write, which resume moves aside")
        )
    elif seen and not findings and seen[-1].more:
        what = f"ends inside a group ({seen[-1].more} lines of it are missing): an interrupted write, or a deleted end"
        findings.append(Finding(len(seen), what))
    return tuple(sorted(findings, key=lambda finding: finding.line))


def _parse_lines(lines: Iterable[bytes]) -> tuple[list[_Seen], int]:
    """Return the whole lines, and how many bytes follow the last newline."""
    seen: list[_Seen] = []
    for number, raw in enumerate(lines, 1):
        if not raw.endswith(b"\n"):
            return seen, len(raw)
        name = hash_line(raw[:-1])
        try:
            line = parse(raw[:-1])
        except ValueError as fault:
            seen.append(_Seen(number, name, fault=str(fault)))
        else:
            seen.append(_Seen(number, name, line.entry.seq, line.prev, line.more))
    return seen, 0


class _Audit:
    """Sorts the genuine lines by number, and explains the other lines between them."""

    def __init__(self, seen: Sequence[_Seen], anchor: JournalEnd) -> None:
        self._seen, self._anchor = seen, anchor
        readable = [line for line in seen if not line.fault]
        self._hashes = {line.hash: line.seq for line in readable}
        self._named = {(line.prev, line.seq - 1) for line in readable} | {(anchor.hash, anchor.seq)}
        self._newest = max((line.seq for line in readable), default=-1)
        self._genuine = [line for line in readable if self._is_vouched_for(line)]
        self._order = _find_unmoved(self._genuine)
        self._at = {line.seq: line for line in (*self._genuine, *self._order)}
        self._sound = {line.number for line in self._genuine}
        self._found: list[Finding] = []

    def list_findings(self) -> list[Finding]:
        unmoved = {line.number for line in self._order}
        for line in self._genuine:
            if line is not self._at[line.seq]:
                self._note(line.number, f"is a copy of line {self._at[line.seq].number}")
            elif line.number not in unmoved:
                self._note(line.number, f"stands out of order: it is seq {line.seq}")
        seq, number = 0, 1
        for line in self._order:
            self._explain(range(seq, line.seq), number, line.number)
            seq, number = line.seq + 1, line.number + 1
        self._explain(range(seq, max(seq, self._anchor.seq + 1)), number, len(self._seen) + 1)
        known = self._at.get(self._anchor.seq)
        if known is not None and known.hash != self._anchor.hash:
            self._note(known.number, "was changed: the journal's anchor remembers another hash")
        return self._found

    def _note(self, number: int, what: str) -> None:
        self._found.append(Finding(number, what))

    def _is_vouched_for(self, line: _Seen) -> bool:
        """Check whether the next line or the anchor names this one's hash, or whether it is too new for that."""
        if (line.hash, line.seq) in self._named:
            return True
        linked = self._hashes.get(line.prev) == line.seq - 1 if line.seq else not line.prev
        return line.seq == self._newest and line.seq > self._anchor.seq and linked

    def _explain(self, seqs: range, first: int, end: int) -> None:
        """Match the lines from *first* to before *end* that are not genuine with the missing *seqs*."""
        loose = [line for line in self._seen[first - 1 : end - 1] if line.number not in self._sound]
        # A journal that was tampered with may claim any number: no more are counted than can matter.
        gone = list(islice((seq for seq in seqs if seq not in self._at), len(self._seen) + 1))
        endless = len(gone) > len(self._seen)
        own = {line.seq: line for line in loose if line.seq in gone}
        for line in own.values():
            gone.remove(line.seq)
            self._judge(line)
        for line in loose:
            if own.get(line.seq) is line:
                continue
            if gone:
                self._note(
                    line.number, f"was changed: {line.fault or f'it has seq {line.seq}'}, where seq {gone.pop(0)} was"
                )
            else:
                self._note(line.number, f"was inserted: {line.fault or f'no other line knows it as seq {line.seq}'}")
        if gone:
            last = seqs[-1] if endless else gone[-1]
            span = f"seq {gone[0]}" if last == gone[0] else f"seq {gone[0]} to {last}"
            self._note(
                end,
                f"{span} deleted before this line" if end <= len(self._seen) else f"{span} deleted here, at the end",
            )

    def _judge(self, line: _Seen) -> None:
        """Judge a line that has a number of its own, but no other line that names it."""
        before, after = self._at.get(line.seq - 1), self._at.get(line.seq + 1)
        follower = next((other for other in self._seen if other.seq == line.seq + 1), None)
        if after is not None:
            self._note(line.number, f"was changed: line {after.number} names another hash")
        elif line.seq == self._anchor.seq:
            self._note(line.number, "was changed: the journal's anchor remembers another hash")
        elif before is not None and before.hash != line.prev:
            self._note(line.number, f"was changed: it names another hash than that of line {before.number}")
        elif follower is not None:
            self._note(line.number, f"cannot be confirmed: line {follower.number}, changed itself, names another hash")


def _find_unmoved(lines: Sequence[_Seen]) -> list[_Seen]:
    """Return the lines that stand where they were written, apart from lines added or removed between them."""
    rising = _find_longest_rising(lines)
    if len(rising) == len({line.hash for line in lines}):
        return rising
    # Of two lines that changed places both are named: neither stands where its number says.
    settled = [line for line in lines if line.seq == line.number - 1]
    return settled if len(settled) + 1 >= len(rising) else rising


def _find_longest_rising(lines: Sequence[_Seen]) -> list[_Seen]:
    """Return the longest subsequence of *lines* whose numbers rise: the lines that were not moved."""
    tops: list[int] = []
    piles: list[int] = []
    back: list[int] = []
    for n, line in enumerate(lines):
        pile = bisect_left(tops, line.seq)
        if pile == len(tops):
            tops.append(line.seq)
            piles.append(n)
        else:
            tops[pile] = line.seq
            piles[pile] = n
        back.append(piles[pile - 1] if pile else -1)
    chosen: list[_Seen] = []
    n = piles[-1] if piles else -1
    while n >= 0:
        chosen.append(lines[n])
        n = back[n]
    return chosen[::-1]
