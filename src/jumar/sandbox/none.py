"""Tier S0, no sandbox: the process runs as the person, sees what they see, and is only supervised."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jumar.confinement import Reach, Wrapped


class Unconfined:
    """No sandbox (see `ports.Sandbox`)."""

    tier = "S0"

    def wrap(self, argv: Sequence[str], room: Path, private: Path, reach: Reach) -> Wrapped:  # noqa: ARG002  the port
        """*argv* as it is."""
        return Wrapped(argv=tuple(argv))
