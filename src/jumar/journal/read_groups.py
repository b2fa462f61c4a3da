"""Reads the groups of a journal, a large part at a time, and checks that each line follows from the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import IO

import msgspec

from jumar.core.state.events import Entry, Event
from jumar.errors import BadInput
from jumar.journal.line_format import PREV, TAIL, JournalEnd, JournalLine, hash_line, parse

CHUNK = 1 << 16
"""Bytes that are read at a time: what is made of them fits into the caches of a processor."""

_TYPE = b'"type":'
_HASH = len(PREV) - TAIL
_QUOTES = 4
"""Of the two names that stand before the type of an event."""


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


class _Envelope(msgspec.Struct, frozen=True, gc=False):
    """All fields of a line but its event."""

    seq: int
    ts: float
    prev: str
    more: int = 0


_ENVELOPES = msgspec.json.Decoder(_Envelope)
_EVENTS = msgspec.json.Decoder(Event)

_Decoded = tuple[list[Entry], list[int]]
"""Entries, and how many lines of its group follow each."""


def read_groups(file: IO[bytes], torn: Callable[[TornLine], None]) -> Iterator[Groups]:
    """Yield the complete groups of a journal, many at a time. *torn* gets an unfinished end.

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
        found, mores = _decode_all(texts, end, owed) or _decode_each(texts, end, owed)
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
    try:
        envelopes = _ENVELOPES.decode_lines(b"\n".join(texts))
        seqs, mores = [e.seq for e in envelopes], [e.more for e in envelopes]
        hashes = [after.hash, *[sha256(text).hexdigest() for text in texts[:-1]]]
        if seqs != list(range(after.seq + 1, after.seq + 1 + len(texts))) or [e.prev for e in envelopes] != hashes:
            return None
        if any(left and more != left - 1 for left, more in zip([owed, *mores], mores, strict=False)):
            return None
        events = _EVENTS.decode_lines(_strip_all(texts, mores))
    except (msgspec.DecodeError, ValueError):
        return None
    return list(map(Entry, seqs, [e.ts for e in envelopes], events)), mores


def _strip_all(texts: list[bytes], mores: list[int]) -> bytes:
    """Return the events of the lines *texts*, which have all that an envelope has, in lines of their own.

    Raises:
        ValueError: if anything else stands before or behind one of them, or the envelope stands elsewhere.
    """
    heads, types, bodies = zip(*[text.partition(_TYPE) for text in texts], strict=True)
    if {text[-TAIL:_HASH] for text in texts} != {PREV} or b"".join(heads).count(b'"') != _QUOTES * len(texts):
        raise ValueError("a line is not as it is written")
    if set(types) != {_TYPE}:
        raise ValueError("a line has no type")
    counts = {more: b',"more":%d' % more for more in set(mores)} | {0: b""}
    stripped = [body[:-TAIL].removesuffix(counts[more]) for body, more in zip(bodies, mores, strict=True)]
    return b'{"type":%b}' % b'}\n{"type":'.join(stripped)


def _decode_each(texts: list[bytes], after: JournalEnd, owed: int) -> _Decoded:
    """Return the lines *texts* decoded one by one, with any spacing and order of their keys.

    Raises:
        BadInput: naming the first that is damaged.
    """
    found: list[JournalLine] = []
    for text in texts:
        found.append(_parse_checked(text, after, owed))
        after, owed = JournalEnd(after.seq + 1, hash_line(text)), found[-1].more
    return [line.entry for line in found], [line.more for line in found]


def _parse_checked(text: bytes, after: JournalEnd, owed: int) -> JournalLine:
    """Parse the line *text*, which must follow the line *after*."""
    number = after.seq + 2
    try:
        line = parse(text)
    except ValueError as fault:
        raise _report_damaged(number, str(fault)) from None
    if line.prev != after.hash:
        raise _report_damaged(number, "it does not follow from the line before")
    if line.entry.seq != after.seq + 1:
        raise _report_damaged(number, f"it has seq {line.entry.seq}, not {after.seq + 1}")
    if owed and line.more != owed - 1:
        raise _report_damaged(number, "the group it belongs to is cut")
    return line


def _report_damaged(number: int, why: str) -> BadInput:
    return BadInput(f"line {number} of the journal is damaged: {why}; run `jumar log verify RUN` to see all of it")
