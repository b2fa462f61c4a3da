"""Format of a journal line: one event, its number, its time, the hash of the line before."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Annotated

import msgspec

from jumar.core.state.events import Entry, Event

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Event)
_HEAD = re.compile(rb'\{"seq":(\d+),"ts":(-?\d[0-9.e+-]*),(?="type":)')
PREV, MORE, END = b',"prev":"', b',"more":', b'"}'
_HASH = 64
TAIL = len(PREV) + _HASH + len(END)
"""Bytes of the tail of every line but the first."""

COUNT_BYTES = 20
"""Most bytes of the count of lines that follow, with its name."""

_Count = Annotated[int, msgspec.Meta(ge=0)]


class JournalLine(msgspec.Struct, frozen=True, gc=False):
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
    """Return *events* as the lines that follow the line *after*, and as the entries that a reader will get.

    Raises:
        ValueError: if an event holds what would not read back (a bug of whoever made it).
    """
    entries: list[Entry] = []
    lines: list[bytes] = []
    for n, event in enumerate(events, 1):
        prev = hash_line(lines[-1]) if lines else after.hash
        body = _encode_body(event)
        tail = f"{format_tail(len(events) - n)}{prev}".encode() + END
        lines.append(b'{"seq":%d,"ts":%s,%s%s' % (after.seq + n, _ENCODER.encode(ts), body, tail))
        entries.append(parse(lines[-1]).entry)
    return tuple(entries), lines


@lru_cache(maxsize=1024)
def format_tail(more: int) -> str:
    """Return what stands behind the event of a line that *more* lines of its group follow, up to its hash."""
    count = f"{MORE.decode()}{more}" if more else ""
    return count + PREV.decode()


def _encode_body(event: Event) -> bytes:
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
    head, end, prev = _HEAD.match(line), len(line) - TAIL, line[-_HASH - len(END) : -len(END)]
    if head is None or not prev.isalnum() or line[end : end + len(PREV)] != PREV or line[-len(END) :] != END:
        return _parse_loosely(line)
    try:
        more = 0
        if (count := line.rfind(MORE, end - COUNT_BYTES, end)) >= 0:
            end, more = count, parse_count(line[count + len(MORE) : end])
        event = _DECODER.decode(b"{%b}" % line[head.end() : end])
        return JournalLine(Entry(int(head[1]), float(head[2]), event), more, prev.decode())
    except (msgspec.DecodeError, ValueError):
        return _parse_loosely(line)


def parse_count(digits: bytes) -> int:
    """Return the count of lines that *digits* say, as it is written.

    Raises:
        ValueError: if it is none.
    """
    if not digits.isdigit() or digits[:1] == b"0":
        raise ValueError("it is no count")
    return int(digits)


def _parse_loosely(line: bytes) -> JournalLine:
    """Decode a line with any spacing and order of the keys, as strictly otherwise; or report the fault."""
    try:
        facts = json.loads(line, parse_constant=_refuse_constant)
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
        entry = Entry(
            msgspec.convert(envelope["seq"], _Count), msgspec.convert(envelope["ts"], float), _convert_event(facts)
        )
        return JournalLine(entry, msgspec.convert(more, _Count), msgspec.convert(envelope["prev"], str))
    except msgspec.ValidationError as fault:
        raise ValueError(f"type {kind!r}: {fault}") from None


def _refuse_constant(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")


def _convert_event(facts: dict[str, object]) -> Event:
    return msgspec.convert(facts, Event)  # type: ignore[no-any-return]
