"""Tier S0, no sandbox: the process runs as the person, can read the same files, and is only supervised."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jumar.sandbox.request import Reach, Wrapped


async def report_unchanged() -> str:
    """Return that nothing has become weaker: without a sandbox, nothing can."""
    return ""


class Unconfined:
    """Runs processes without a sandbox; see `ports.Sandbox`."""

    tier = "S0"

    def wrap(self, argv: Sequence[str], room: Path, private: Path, reach: Reach) -> Wrapped:  # noqa: ARG002  the port
        """Return *argv* as it is."""
        return Wrapped(argv=tuple(argv))
