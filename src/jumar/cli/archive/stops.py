"""Values of `--stop`: the states that runs are in."""

from __future__ import annotations

from collections.abc import Sequence

from jumar.core.state.stop import StopReason
from jumar.errors import BadInput
from jumar.runs.archive.listing import DAMAGED, OPEN, UNFINISHED

ENDED = (*(str(stop) for stop in StopReason), UNFINISHED, DAMAGED)
"""States of a run that no process works on."""

STATES = (*ENDED, OPEN)
"""All states of a run."""


def check_stops(given: object, known: Sequence[str]) -> tuple[str, ...]:
    """Return the values of `--stop`.

    Raises:
        BadInput: naming one that is not among *known*.
    """
    stops = tuple(given) if isinstance(given, tuple) else ()
    for stop in stops:
        if stop not in known:
            raise BadInput(f"--stop {stop} is unknown; known are {', '.join(known)}")
    return stops
