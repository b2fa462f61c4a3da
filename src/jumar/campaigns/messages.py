"""Messages between a campaign and its worker processes: one JSON object a line, in both directions."""

from __future__ import annotations

import msgspec

from jumar.runs.setup.result import Result


class Order(msgspec.Struct, frozen=True, omit_defaults=True):
    """Order to a worker: to work on a rollout, or to stop."""

    rollout: str = ""
    """Name of the rollout to begin or go on with."""
    stop: str = ""
    """Reason to halt all runs at once; each keeps its best tree and can go on later. Empty: none."""


class RolloutEnded(msgspec.Struct, frozen=True, tag="ended"):
    """The run of a rollout ended."""

    rollout: str
    result: Result
    cached: int = 0
    """Verdicts that needed no test run."""
    limit_seconds: float | None = None
    """Seconds to wait as the provider asked, where the run ended at one of its limits; None: it did not."""


class RolloutRefused(msgspec.Struct, frozen=True, tag="refused"):
    """A rollout cannot be run with these options, and nothing was run."""

    rollout: str
    why: str


class RolloutBroken(msgspec.Struct, frozen=True, tag="broken"):
    """The machine failed before the end of a run could be written down."""

    rollout: str
    why: str


class RolloutStopped(msgspec.Struct, frozen=True, tag="stopped"):
    """A rollout was stopped before it had a result to keep."""

    rollout: str


class RolloutLost(msgspec.Struct, frozen=True, tag="lost"):
    """A rollout was running when its process or machine died; other rollouts continue."""

    rollout: str


Report = RolloutEnded | RolloutRefused | RolloutBroken | RolloutStopped | RolloutLost
"""Report of a worker on a rollout: exactly one for each order to work on one, unless the worker dies."""
