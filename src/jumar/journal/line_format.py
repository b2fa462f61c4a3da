"""Format of a journal line: one event, its number, its time, the hash of the line before."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Annotated

import msgspec

from jumar.core.state.events import Entry, Event
from jumar.errors import BadInput

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Event)
_HEAD = re.compile(rb'\{"seq":(\d+),"ts":(-?\d[0-9.e+-]*),(?="type":)')
_TAIL = re.compile(rb'(?:,"more":([1-9]\d*))?,"prev":"([0-9a-f]{64}|)"\}\Z')
_TAIL_BYTES = 110
"""The longest tail a line of ours can have: two fixed names, a count, a hash."""


_Count = Annotated[int, msgspec.Meta(ge=0)]


class JournalLine(msgspec.Struct, frozen=True):
    """A decoded line of a journal."""

    entry: Entry
    more: int
    """Number of lines of the same group that follow."""
    prev: str
    """The hash of the line before; empty on the first."""


class JournalEnd(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The end of a journal: the newest line's number and hash. An empty journal has seq -1."""

    seq: int = -1
    hash: str = ""


def hash_line(line: bytes) -> str:
    """Return the hash by which the next line names *line* (without its newline)."""
    return sha256(line).hexdigest()


def format_group(events: Sequence[Event], ts: float, after: JournalEnd) -> tuple[tuple[Entry, ...], list[bytes]]:
    """Return *events* as the lines that follow the line *after*, and as the entries a reader of those lines will get.

    Raises:
        ValueError: if an event holds what would not read back (a bug of whoever made it).
    """
    entries: list[Entry] = []
    lines: list[bytes] = []
    for n, event in enumerate(events, 1):
        prev = hash_line(lines[-1]) if lines else after.hash
        body = _body(event)
        more = b',"more":%d' % (len(events) - n) if n < len(events) else b""
        seq = after.seq + n
        lines.append(b'{"seq":%d,"ts":%s,%s%s,"prev":"%s"}' % (seq, _ENCODER.encode(ts), body, more, prev.encode()))
        entries.append(parse(lines[-1]).entry)
    return tuple(entries), lines


def _body(event: Event) -> bytes:
    try:
        return _ENCODER.encode(event)[1:-1]
    except UnicodeEncodeError:
        # A lone surrogate: a file name that is no UTF-8, or what a model made up. JSON can say it, UTF-8 cannot.
        return json.dumps(msgspec.to_builtins(event), separators=(",", ":"), ensure_ascii=True, allow_nan=False)[
            1:-1
        ].encode()


def parse(line: bytes) -> JournalLine:
    """Parse one journal *line*, without its newline.

    Raises:
        ValueError: one clause on why it is no line of a journal.
    """
    head, tail = _HEAD.match(line), _TAIL.search(line, max(0, len(line) - _TAIL_BYTES))
    if head is None or tail is None:
        return _loose(line)
    try:
        event = _DECODER.decode(b"{" + line[head.end() : tail.start()] + b"}")
        entry = Entry(int(head[1]), float(head[2]), event)
    except (msgspec.DecodeError, ValueError):
        return _loose(line)
    return JournalLine(entry, int(tail[1] or 0), tail[2].decode())


def _loose(line: bytes) -> JournalLine:
    """Decode as strictly, but whatever the spacing and the order of the keys; or say what is wrong."""
    try:
        facts = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise ValueError("it is no JSON") from None
    if not isinstance(facts, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004  a line is at fault, not an argument's type
    try:
        envelope = {name: facts.pop(name) for name in ("seq", "ts", "prev")}
    except KeyError as missing:
        raise ValueError(f"it has no field {missing}") from None
    more = facts.pop("more", 0)
    kind = facts.get("type")
    try:
        entry = Entry(msgspec.convert(envelope["seq"], _Count), msgspec.convert(envelope["ts"], float), _event(facts))
        return JournalLine(entry, msgspec.convert(more, _Count), msgspec.convert(envelope["prev"], str))
    except msgspec.ValidationError as fault:
        raise ValueError(f"type {kind!r}: {fault}") from None


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")


def _event(facts: dict[str, object]) -> Event:
    return msgspec.convert(facts, Event)  # type: ignore[no-any-return]


class TornLine(msgspec.Struct, frozen=True):
    """Unfinished end of a journal: the bytes of an interrupted group."""

    seq: int
    """The number its first line has or would have had."""
    data: bytes

    def __str__(self) -> str:
        return f"the journal's last write, from line {self.seq + 1} on ({len(self.data)} bytes), was interrupted"


def read_groups(lines: Iterable[bytes], torn: Callable[[TornLine], None]) -> Iterator[list[tuple[JournalLine, bytes]]]:
    """Yield the complete groups of a journal, given its *lines* with their newlines.

    *torn* is told of an unfinished end.

    Raises:
        BadInput: naming the first line that is damaged, or does not follow from the one before.
    """
    held: list[tuple[JournalLine, bytes]] = []
    mark = JournalEnd()
    for number, raw in enumerate(lines, 1):
        if not raw.endswith(b"\n"):
            torn(TornLine(mark.seq + 1 - len(held), b"".join(r for _, r in held) + raw))
            return
        line = _checked(raw[:-1], number, mark, held[-1][0].more if held else 0)
        mark = JournalEnd(line.entry.seq, hash_line(raw[:-1]))
        held.append((line, raw))
        if not line.more:
            yield held
            held = []
    if held:
        torn(TornLine(mark.seq + 1 - len(held), b"".join(raw for _, raw in held)))


def _checked(raw: bytes, number: int, after: JournalEnd, owed: int) -> JournalLine:
    try:
        line = parse(raw)
    except ValueError as fault:
        raise _damaged(number, str(fault)) from None
    if line.prev != after.hash:
        raise _damaged(number, "it does not follow from the line before")
    if line.entry.seq != after.seq + 1:
        raise _damaged(number, f"it has seq {line.entry.seq}, not {after.seq + 1}")
    if owed and line.more != owed - 1:
        raise _damaged(number, "the group it belongs to is cut")
    return line


def _damaged(number: int, why: str) -> BadInput:
    return BadInput(f"line {number} of the journal is damaged: {why}; run `jumar log verify RUN` to see all of it")
