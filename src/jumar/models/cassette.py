"""What a model answered, a JSON line a call, so that a run can be had again offline. It holds no prompt and no key."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

import msgspec

from jumar.core.budget import Cost
from jumar.core.settings import Route
from jumar.errors import BadInput, Infra
from jumar.models.lines import decoded, numbered, read_once
from jumar.models.secrets import clean
from jumar.ports import Answer, Ask, Model

FORMAT = "jumar-cassette"

VERSION = 1
"""Raised when an older reader would misread a line."""

ADDRESS = re.compile(rb"0x[0-9a-f]+")
"""An object's address in a printed representation: it differs from process to process, and means nothing."""


class Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first line."""

    format: str
    version: int
    model: str
    """What the run calls its model."""
    routes: dict[str, Route] = {}
    """Tier -> route of the run's settings."""


class Take(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every other line: a settled call."""

    position: int
    tier: str
    stage: str
    model: str
    digest: str
    """Of what was sent: `digest_of`."""
    worst: Cost
    """What was set aside for the call: the journal tells it, so the repeated one must."""
    answer: Answer


class Recorder:
    """Appends to the recording at *path*, with *secrets* struck out.

    Make it with `started`, which writes the header, or `resumed`.
    """

    def __init__(self, path: Path, secrets: tuple[str, ...]) -> None:
        self._path, self._secrets = path, secrets

    def around(self, by_tier: Callable[[str], Model]) -> Callable[[str], Model]:
        """The models of *by_tier*, each of whose answers is recorded before anybody sees it."""
        return lambda tier: Recorded(by_tier(tier), self)

    def write(self, line: Header | Take) -> None:
        """Append *line*.

        Raises:
            Infra: if the disk refuses it: a recording with a gap would mislead whoever replays it.
        """
        text = clean(msgspec.json.encode(line).decode(), self._secrets)
        try:
            with self._path.open("ab") as file:
                file.write(f"{text}\n".encode())
        except OSError as error:
            raise Infra(f"cannot write the recording {self._path}: {error.strerror}") from None


class Recorded:
    """*model*, recorded."""

    def __init__(self, model: Model, recorder: Recorder) -> None:
        self.name = model.name
        self._model, self._recorder = model, recorder

    def worst(self, ask: Ask) -> Cost:
        """The model's own."""
        return self._model.worst(ask)

    async def complete(self, ask: Ask) -> Answer:
        """The model's own answer, once it is on record."""
        answer = await self._model.complete(ask)
        take = Take(
            position=ask.position,
            tier=ask.request.tier,
            stage=ask.request.stage,
            model=self.name,
            digest=digest_of(ask),
            worst=self._model.worst(ask),
            answer=answer,
        )
        self._recorder.write(take)
        return answer


def digest_of(ask: Ask) -> str:
    """Sha256 of the messages and tools of *ask*, with the addresses of objects masked."""
    return sha256(ADDRESS.sub(b"0x", msgspec.json.encode((ask.messages, ask.tools)))).hexdigest()


def started(path: Path, model: str, routes: Mapping[str, Route], secrets: tuple[str, ...] = ()) -> Recorder:
    """A new recording at *path* of a run whose model is called *model*.

    Raises:
        BadInput: if there is something at *path* already, or nothing can be written there.
    """
    recorder = Recorder(path, secrets)
    try:
        path.open("xb").close()
    except FileExistsError:
        raise BadInput(f"{path} is there already, and a recording replaces nothing; name another file") from None
    except OSError as error:
        raise BadInput(f"cannot write the recording {path}: {error.strerror}") from None
    recorder.write(Header(format=FORMAT, version=VERSION, model=model, routes=dict(routes)))
    return recorder


def resumed(path: Path, secrets: tuple[str, ...] = ()) -> Recorder:
    """The recording at *path*, to be gone on with. A last line that a crash tore is cut off.

    Raises:
        BadInput: if it is no recording, or cannot be written.
    """
    data = read_once(path, "recording")
    whole = data[: data.rfind(b"\n") + 1]
    read_lines(whole, str(path))
    if len(whole) < len(data):
        try:
            with path.open("r+b") as file:
                file.truncate(len(whole))
        except OSError as error:
            raise BadInput(f"cannot write the recording {path}: {error.strerror}") from None
    return Recorder(path, secrets)


def read_lines(data: bytes, name: str) -> tuple[Header, tuple[Take, ...]]:
    """The header and the calls of a recording.

    Raises:
        BadInput: naming the line that is none of either.
    """
    lines = numbered(data, name)
    first = next(lines, None)
    if first is None:
        raise BadInput(f"{name} is empty; make a recording with --record FILE")
    header = decoded(first[1], Header, f"line {first[0]} of {name} is no header of a recording")
    if header.format != FORMAT or header.version != VERSION:
        what = f"{header.format} {header.version}"
        raise BadInput(f"{name} is {what!r}, and this version reads {FORMAT} {VERSION}; record it again")
    return header, tuple(decoded(text, Take, f"line {number} of {name} is no recorded call") for number, text in lines)
