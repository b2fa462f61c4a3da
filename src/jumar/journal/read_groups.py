"""Reads the groups of a journal, a large part at a time, and checks that each line follows from the one before."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from hashlib import sha256
from operator import add
from typing import IO

import msgspec

from jumar.core.state.events import Entry, Event
from jumar.errors import BadInput
from jumar.journal.line_format import (
    COUNT_BYTES,
    END,
    MORE,
    PREV,
    TAIL,
    JournalEnd,
    JournalLine,
    format_tail,
    hash_line,
    parse,
    parse_count,
)

CHUNK = 1 << 16
"""Bytes that are read at a time: what is made of them fits into the caches of a processor."""

_TYPE = b',"type":'


class TornLine(msgspec.Struct, frozen=True):
    """Unfinished end of a journal: the bytes of an interrupted group."""

    seq: int
    """The number its first line has or would have had."""
    data: bytes

    def __str__(self) -> str:
        return f"the journal's last write, from line {self.seq + 1} on ({len(self.data)} bytes), was interrupted"


class Groups(msgspec.Struct, frozen=True):
    """Events of whole groups, in the order of the journal."""

    entries: list[Entry]
    size: int
    """Bytes of their lines."""
    end: JournalEnd


class _Head(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """Fields of a line before its event."""

    seq: int
    ts: float


_HEADS = msgspec.json.Decoder(_Head)
_EVENTS = msgspec.json.Decoder(Event)

_Decoded = tuple[list[Entry], list[int]]
"""Entries, and how many lines of its group follow each."""


def read_groups(file: IO[bytes], torn: Callable[[TornLine], None], run: str = "RUN") -> Iterator[Groups]:
    """Yield the complete groups of the journal of *run*, many at a time. *torn* gets an unfinished end.

    Raises:
        BadInput: naming the first line that is damaged, or does not follow from the one before.
    """
    end, owed = JournalEnd(), 0
    entries: list[Entry] = []
    held: list[bytes] = []
    rest = b""
    # The first line names no other: it is read alone.
    while data := file.read(CHUNK) if end.hash else file.readline():
        part, newline, rest = (rest + data).rpartition(b"\n")
        if not newline:
            continue
        texts = part.split(b"\n")
        found, mores = _decode_all(texts, end, owed) or _decode_each(texts, end, owed, run)
        entries += found
        held.append(part + newline)
        end, owed = JournalEnd(found[-1].seq, hash_line(texts[-1])), mores[-1]
        # What follows the last group that is whole is kept for the next part.
        loose = next((n for n, left in enumerate(reversed(mores)) if not left), len(entries))
        if loose < len(entries):
            kept = b"".join(text + newline for text in texts[len(texts) - loose :])
            last = JournalEnd(found[-loose - 1].seq, hash_line(texts[-loose - 1])) if loose else end
            yield Groups(entries[: len(entries) - loose], sum(map(len, held)) - len(kept), last)
            entries, held = entries[len(entries) - loose :], [kept]
    if torn_data := b"".join(held) + rest:
        torn(TornLine(end.seq + 1 - len(entries), torn_data))


def _decode_all(texts: list[bytes], after: JournalEnd, owed: int) -> _Decoded | None:
    """Return the lines *texts* decoded together.

    None: one is not just as it is written, or does not follow; ask `_decode_each`, which is slower.
    """
    hashes = [after.hash, *[sha256(text).hexdigest() for text in texts[:-1]]]
    try:
        mores = _count_following(texts, owed)
        ends = {more: format_tail(more) for more in set(mores)}
        sizes = {more: len(end) + TAIL - len(PREV) for more, end in ends.items()}
        tails = [sizes[more] for more in mores]
        wanted = map(add, [ends[more] for more in mores], hashes)
        found = b"".join([text[-tail:] for text, tail in zip(texts, tails, strict=True)])
        if found != END.decode().join([*wanted, ""]).encode():
            return None
        cuts = [text.index(_TYPE) for text in texts]
        heads = _HEADS.decode_lines(b"}\n".join([text[:cut] for text, cut in zip(texts, cuts, strict=True)]) + b"}")
        bodies = [text[cut + 1 : -tail] for text, cut, tail in zip(texts, cuts, tails, strict=True)]
        # Whatever else stands in a line is a field that no event has.
        events = _EVENTS.decode_lines(b"{%b}" % b"}\n{".join(bodies))
    except (msgspec.DecodeError, ValueError):
        return None
    seqs = [head.seq for head in heads]
    if seqs != list(range(after.seq + 1, after.seq + 1 + len(texts))):
        return None
    return list(map(Entry, seqs, [head.ts for head in heads], events)), mores


def _count_following(texts: list[bytes], owed: int) -> list[int]:
    """Return how many lines of its group follow each of *texts*, as the first line of each group says.

    Of the group that is not whole yet *owed* lines are to come.

    Raises:
        ValueError: if a line says no number.
    """
    found: list[int] = []
    while len(found) < len(texts):
        if not owed:
            _, more, count = texts[len(found)][-TAIL - COUNT_BYTES : -TAIL].rpartition(MORE)
            owed = parse_count(count) + 1 if more else 1
        here = min(owed, len(texts) - len(found))
        found.extend(range(owed - 1, owed - 1 - here, -1))
        owed = 0
    return found


def _decode_each(texts: list[bytes], after: JournalEnd, owed: int, run: str) -> _Decoded:
    """Return the lines *texts* decoded one by one, with any spacing and order of their keys.

    Raises:
        BadInput: naming the first that is damaged, and *run*: many journals may be read by one command.
    """
    found: list[JournalLine] = []
    for text in texts:
        try:
            found.append(_parse_checked(text, after, owed))
        except ValueError as fault:
            raise BadInput(
                f"line {after.seq + 2} of the journal is damaged: {fault}; "
                f"run `jumar log verify {shlex.quote(run)}` to see all of it"
            ) from None
        after, owed = JournalEnd(after.seq + 1, hash_line(text)), found[-1].more
    return [line.entry for line in found], [line.more for line in found]


def _parse_checked(text: bytes, after: JournalEnd, owed: int) -> JournalLine:
    """Parse the line *text*, which must follow the line *after*; a ValueError says why it is damaged."""
    line = parse(text)
    if line.prev != after.hash:
        raise ValueError("it does not follow from the line before")
    if line.entry.seq != after.seq + 1:
        raise ValueError(f"it has seq {line.entry.seq}, not {after.seq + 1}")
    if owed and line.more != owed - 1:
        raise ValueError("the group it belongs to is cut")
    return line
