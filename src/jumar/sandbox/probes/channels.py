"""Channels between rounds: ways for code under test to leave information for a later run of itself.

What a round was asked must not reach the next one: code that knows both can tell what was falsified.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from jumar.sandbox.probes.catalogue import CHANNELS, PROBES
from jumar.sandbox.request import Reach, Wrapped

CLOSED = ("S3", "S2")
"""Tiers that close the channels, where the machine lets them."""


class Confining(Protocol):
    """The part of `ports.Sandbox` that is needed here."""

    @property
    def tier(self) -> str:
        """Tier of the sandbox."""
        ...

    def wrap(self, argv: Sequence[str], room: Path, private: Path, reach: Reach) -> Wrapped:
        """Wrap *argv*; see `ports.Sandbox`."""
        ...


@dataclass(frozen=True, slots=True)
class ProbedSandbox:
    """A sandbox whose probes showed another tier than it was made for."""

    sandbox: Confining
    tier: str

    def wrap(self, argv: Sequence[str], room: Path, private: Path, reach: Reach) -> Wrapped:
        """Wrap *argv*; see `ports.Sandbox`."""
        return self.sandbox.wrap(argv, room, private, reach)


def find_channels(possible: Collection[str]) -> tuple[str, ...]:
    """Return the channels among the *possible* probes."""
    return tuple(name for name in CHANNELS if name in possible)


def describe_channels(tier: str, possible: Collection[str]) -> str:
    """Describe what a run in a sandbox of *tier* can leave for a later one, in a sentence; empty: nothing."""
    channels = find_channels(possible)
    if tier in CLOSED and not channels:
        return ""
    named = "; ".join(PROBES[name] for name in channels) or "whatever it likes"
    return f"a run can leave a word for a later one here, so that falsified tests prove little ({named})"
