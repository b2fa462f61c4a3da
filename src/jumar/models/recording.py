"""Recording of a model's answers, one JSON line a call, for repeating a run offline. It holds no prompt and no key."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

import msgspec

from jumar.core.run.strategy import Message
from jumar.core.state.budget import Cost
from jumar.core.state.settings import Route
from jumar.errors import BadInput, Infra
from jumar.models.wire.jsonl import Tokens, Usd, decode_line, number_lines, read_once
from jumar.models.wire.prompt_prefix import is_continuation
from jumar.models.wire.redaction import clean
from jumar.ports import Answer, Ask, Model

FORMAT = "jumar-cassette"

VERSION = 2
"""Raised when an older reader would misread a line."""

ADDRESS = re.compile(rb"0x[0-9a-f]+")
"""An object's address in a printed representation: it differs from process to process, and means nothing."""


class RecordingHeader(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first line of a recording."""

    format: str
    version: int
    model: str
    """Name of the model in the run."""
    routes: dict[str, Route] = {}
    """Tier -> route of the run's settings."""


class RecordedCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Any other line: the reserved cost of a call, before it is made, and again with its answer.

    A run that its caps end has asked what the next call would cost, and not made it: a replay must hear the same.
    """

    position: int
    tier: str
    stage: str
    model: str
    digest: str
    """Of what was sent: see `Digests`."""
    worst: Cost
    """Cost reserved for the call: the journal holds it, so the repeated call must reserve the same."""
    answer: Answer | None = None
    """The answer; None if the call was not made yet, or never."""


class CallNumbers(msgspec.Struct, frozen=True):
    """Numbers of an answer, or of its worst case, that are added up."""

    usd: Usd = 0.0
    input_tokens: Tokens = 0
    cached_tokens: Tokens = 0
    output_tokens: Tokens = 0
    tokens: Tokens = 0


class Recorder:
    """Appends to the recording at *path*, with *secrets* redacted.

    Make it with `start_recording`, which writes the header, or `resume_recording`.
    """

    def __init__(self, path: Path, secrets: tuple[str, ...]) -> None:
        self._path, self._secrets = path, secrets
        self._asked: RecordedCall | None = None

    def record_models(self, by_tier: Callable[[str], Model]) -> Callable[[str], Model]:
        """Return the models of *by_tier*, wrapped so that each answer is recorded before it is used."""
        return lambda tier: RecordingModel(by_tier(tier), self)

    def record_ask(self, take: RecordedCall) -> None:
        """Append *take*, which has no answer yet, unless it is the newest line already.

        Raises:
            Infra: as `write`.
        """
        if take != self._asked:
            self.write(take)
            self._asked = take

    def write(self, line: RecordingHeader | RecordedCall) -> None:
        """Append *line* to the recording.

        Raises:
            Infra: if the disk refuses it: a recording with a gap would mislead whoever replays it.
        """
        text = clean(msgspec.json.encode(line).decode(), self._secrets)
        try:
            with self._path.open("ab") as file:
                file.write(f"{text}\n".encode())
        except OSError as error:
            raise Infra(f"cannot write the recording {self._path}: {error.strerror}") from None


class RecordingModel:
    """Model that records the calls of another *model*."""

    def __init__(self, model: Model, recorder: Recorder) -> None:
        self.name = model.name
        self._model, self._recorder = model, recorder
        self._digests = Digests()

    def worst(self, ask: Ask) -> Cost:
        """Return the model's own worst cost, after recording the request."""
        worst = self._model.worst(ask)
        self._recorder.record_ask(self._record(ask, worst))
        return worst

    async def complete(self, ask: Ask) -> Answer:
        """Return the model's own answer, after recording it."""
        answer = await self._model.complete(ask)
        self._recorder.write(self._record(ask, self._model.worst(ask), answer))
        return answer

    def _record(self, ask: Ask, worst: Cost, answer: Answer | None = None) -> RecordedCall:
        return RecordedCall(
            position=ask.position,
            tier=ask.request.tier,
            stage=ask.request.stage,
            model=self.name,
            digest=self._digests.compute(ask),
            worst=worst,
            answer=answer,
        )


class Digests:
    """Sha256 of the messages and tools of a prompt, as JSON, with the addresses of objects masked.

    A memo: of a prompt that begins with the whole of the one before only the rest is read.
    """

    def __init__(self) -> None:
        self._newest: tuple[Message, ...] = ()
        self._begun, self._read = sha256(b"[["), 0

    def compute(self, ask: Ask) -> str:
        """Return the digest under which *ask* is recorded."""
        if not is_continuation(self._newest, ask.messages):
            self._begun, self._read = sha256(b"[["), 0
        self._newest = ask.messages
        for message in ask.messages[self._read :]:
            self._begun.update((b"," if self._read else b"") + _mask(message))
            self._read += 1
        whole = self._begun.copy()
        whole.update(b"]," + _mask(ask.tools) + b"]")
        return whole.hexdigest()


def _mask(value: object) -> bytes:
    return ADDRESS.sub(b"0x", msgspec.json.encode(value))


def start_recording(path: Path, model: str, routes: Mapping[str, Route], secrets: tuple[str, ...] = ()) -> Recorder:
    """Return a new recording at *path* of a run whose model is called *model*.

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
    recorder.write(RecordingHeader(format=FORMAT, version=VERSION, model=model, routes=dict(routes)))
    return recorder


def resume_recording(path: Path, secrets: tuple[str, ...] = ()) -> Recorder:
    """Return the recording at *path*, to be continued. A last line that a crash tore is cut off.

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


def read_lines(data: bytes, name: str) -> tuple[RecordingHeader, tuple[RecordedCall, ...]]:
    """Return the header and the calls of a recording.

    Raises:
        BadInput: naming the line that is none of either.
    """
    lines = number_lines(data, name)
    first = next(lines, None)
    if first is None:
        raise BadInput(f"{name} is empty; make a recording with --record FILE")
    header = decode_line(first[1], RecordingHeader, f"line {first[0]} of {name} is no header of a recording")
    if header.format != FORMAT or header.version != VERSION:
        what = f"{header.format} {header.version}"
        raise BadInput(f"{name} is {what!r}, and this version reads {FORMAT} {VERSION}; record it again")
    return header, tuple(_parse_call(text, f"line {number} of {name} is no recorded call") for number, text in lines)


def _parse_call(text: str, where: str) -> RecordedCall:
    """Return the call in the line *text*, with numbers that can be added up; *where* names the line."""
    take = decode_line(text, RecordedCall, where)
    try:
        for numbers in (take.worst, take.answer):
            if numbers is not None:
                msgspec.convert(numbers, CallNumbers, from_attributes=True)
    except msgspec.ValidationError as error:
        raise BadInput(f"{where}: {error}") from None
    return take
