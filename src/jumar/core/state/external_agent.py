"""Settings of an external command-line agent. Only the person gives them: a task's files cannot."""

from __future__ import annotations

import msgspec


class ExternalAgentSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Start settings of the external agent, for each turn."""

    argv: tuple[str, ...] = ()
    """Its words; no shell reads them. `{prompt}`, `{prompt_file}` and `{model}` are filled in; without the first two
    the prompt comes on its standard input."""
    turn_seconds: float | None = None
    """For one turn; None: what is left of the run's time, or `TURN_SECONDS`."""
    metered: bool = True
    """True if a turn that changed files without a call through the proxy ends the run."""
    variables: tuple[str, ...] = ()
    """Names of variables that it is given as they are; their values are written nowhere."""


TURN_SECONDS = 600.0
"""For one turn of a run without a cap on its time."""
