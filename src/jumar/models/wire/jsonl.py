"""Reads a file of JSON lines once, and builds the last reply of a model whose file is used up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from jumar.core.state.reply import Reply, ToolCall
from jumar.errors import BadInput

Line = TypeVar("Line")

MOST_USD, MOST_TOKENS = 1e6, 10**9
"""Of one call, far above any there is; more than that, or less than nothing, is a slip that may spoil no sum."""

Usd = Annotated[float, msgspec.Meta(ge=0, le=MOST_USD)]
Tokens = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)]


def read_once(path: Path, what: str) -> bytes:
    """Return the bytes of the file at *path*, which may be a pipe. *what* names it in errors.

    Raises:
        BadInput: if it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read the {what} {path}: {error.strerror}") from None


def number_lines(data: bytes, name: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of *data* that are not blank, with their numbers from 1.

    Raises:
        BadInput: if *data* is not UTF-8.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{name} is not UTF-8 (byte {error.start})") from None
    return ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())


def decode_line(text: str, kind: type[Line], where: str) -> Line:
    """Decode the line *text* as *kind*; *where* names it in errors, with the expected content.

    Raises:
        BadInput: if it is something else.
    """
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise BadInput(f"{where}: {error}") from None


SCRIPT, RECORDING = "script", "recording"
"""Files of replies."""


def build_exhausted_reply(what: str, position: int) -> Reply:
    """Return the final reply, at *position*: *what* is used up."""
    return Reply(tool_calls=(ToolCall("final", {"message": _describe_end(what)}, f"call_{position}_0"),))


def is_exhausted_reply(reply: Reply) -> bool:
    """Return whether *reply* says that a script or a recording is used up, which no model has said."""
    ends = [{"message": _describe_end(what)} for what in (SCRIPT, RECORDING)]
    return [call.arguments for call in reply.tool_calls if call.name == "final" and call.arguments in ends] != []


def _describe_end(what: str) -> str:
    return f"the {what} is used up"
