"""A model that answers from a recording, as long as it is asked what was asked then."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jumar.core.budget import Cost
from jumar.core.reply import Reply
from jumar.core.settings import Route
from jumar.models.cassette import Take, digest_of, read_lines
from jumar.models.lines import read_once, used_up
from jumar.ports import Answer, Ask, Model


class ReplayModel:
    """Answers with the take at the run's position. *name* is that of the model that was recorded."""

    def __init__(self, takes: Mapping[int, Take], name: str) -> None:
        self.name = name
        self._takes = takes

    def worst(self, ask: Ask) -> Cost:
        """What was set aside for the call when it was recorded."""
        take = self._takes.get(ask.position)
        return Cost() if take is None else take.worst

    async def complete(self, ask: Ask) -> Answer:
        """The recorded answer; a mismatch where the conversation went another way; `final` when there is no more."""
        take = self._takes.get(ask.position)
        number = ask.position + 1
        if take is None:
            if ask.position > max(self._takes, default=-1):
                return Answer(reply=used_up("recording", ask.position))
            return _mismatch(f"call {number} was cut off when this was recorded, so there is no answer to it")
        if (take.tier, take.stage) != (ask.request.tier, ask.request.stage):
            asked, then = (f"{r.tier} for {r.stage}" for r in (ask.request, take))
            return _mismatch(f"call {number} asks {asked}, and the recording asked {then}")
        if take.digest != digest_of(ask):
            return _mismatch(f"the conversation differs from the recording at call {number} ({take.stage})")
        return take.answer


class Cassette:
    """A recording that was read."""

    def __init__(self, model: str, routes: Mapping[str, Route], takes: tuple[Take, ...]) -> None:
        self.model = model
        """What the recorded run called its model."""
        self.routes = dict(routes)
        """Tier -> route of the recorded run."""
        # A call that was on record when the machine died is made and recorded again: the later one was used.
        self._takes = {take.position: take for take in takes}

    def of(self, tier: str) -> Model:
        """The model that answers the calls of *tier*."""
        return ReplayModel(self._takes, self.routes[tier].model if tier in self.routes else self.model)


def read_cassette(path: Path) -> bytes:
    """The bytes of the recording at *path*, read once (it may be a pipe).

    Raises:
        BadInput: if it cannot be read.
    """
    return read_once(path, "recording")


def parse_cassette(data: bytes, name: str) -> Cassette:
    """The recording in *data*; *name* is what a person calls it.

    Raises:
        BadInput: naming the line that is no header or no recorded call.
    """
    header, takes = read_lines(data, name)
    return Cassette(header.model, header.routes, takes)


def _mismatch(detail: str) -> Answer:
    return Answer(reply=Reply(), error="mismatch", detail=detail)
