"""A model that replays a recording, as long as the requests match those of the recording."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jumar.core.run.strategy import Request
from jumar.core.state.budget import Cost
from jumar.core.state.reply import Reply
from jumar.core.state.settings import Route
from jumar.models.recording import Digests, RecordedCall, read_lines
from jumar.models.wire.jsonl import RECORDING, build_exhausted_reply, read_once
from jumar.ports import Answer, Ask, Model

Place = tuple[int, str, str]
"""Position, tier and stage: at one position several things may be asked for, if what is optional was forgone."""


class ReplayModel:
    """Answers with the take at the run's position. *name* is that of the recorded model."""

    def __init__(self, takes: Mapping[Place, RecordedCall], name: str) -> None:
        self.name = name
        self._takes = takes
        self._digests = Digests()
        self._made = {position: take for (position, _, _), take in takes.items() if take.answer}

    def worst(self, ask: Ask) -> Cost:
        """Return the cost recorded for the call, whether or not the call was made then."""
        take = self._takes.get(_locate(ask.position, ask.request))
        return Cost() if take is None else take.worst

    async def complete(self, ask: Ask) -> Answer:
        """Return the recorded answer, or a mismatch if the conversation is another one.

        `final` when there is no more.
        """
        if ask.position > max(self._made, default=-1):
            return Answer(reply=build_exhausted_reply(RECORDING, ask.position))
        take, number = self._takes.get(_locate(ask.position, ask.request)), ask.position + 1
        made = self._made.get(ask.position)
        if take is None and made is not None:
            asked, then = (f"{r.tier} for {r.stage}" for r in (ask.request, made))
            return _build_mismatch(f"call {number} asks {asked}, and the recording asked {then}")
        if take is None or take.answer is None:
            why = "was cut off or too dear when this was recorded, so there is no answer to it"
            return _build_mismatch(f"call {number} ({ask.request.stage}) {why}")
        if take.digest != self._digests.compute(ask):
            return _build_mismatch(f"the conversation differs from the recording at call {number} ({take.stage})")
        return take.answer


class Recording:
    """A parsed recording."""

    def __init__(self, model: str, routes: Mapping[str, Route], takes: tuple[RecordedCall, ...]) -> None:
        self.model = model
        """Name of the model in the recorded run."""
        self.routes = dict(routes)
        """Tier -> route of the recorded run."""
        # An answer comes after its question. A call that was on record when the machine died is asked for and made
        # again: the later one was used.
        self._takes = {_locate(take.position, take): take for take in takes}

    def get_model(self, tier: str) -> Model:
        """Return the model that answers the calls of *tier*."""
        return ReplayModel(self._takes, self.routes[tier].model if tier in self.routes else self.model)


def read_cassette(path: Path) -> bytes:
    """Return the bytes of the recording at *path*, read once (it may be a pipe).

    Raises:
        BadInput: if it cannot be read.
    """
    return read_once(path, "recording")


def parse_cassette(data: bytes, name: str) -> Recording:
    """Return the recording in *data*; *name* is the person's name for it.

    Raises:
        BadInput: naming the line that is no header or no recorded call.
    """
    header, takes = read_lines(data, name)
    return Recording(header.model, header.routes, takes)


def _locate(position: int, of: Request | RecordedCall) -> Place:
    return position, of.tier, of.stage


def _build_mismatch(detail: str) -> Answer:
    return Answer(reply=Reply(), error="mismatch", detail=detail)
