"""Runs one shell command in the room and leaves with its status: what guards refactor mode. Standard library only."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def main() -> None:
    """Join the channel and run the command of the config."""
    envoy = runpy.run_path(str(Path(__file__).with_name("envoy.py")))

    def errand(config: dict[str, Any], send: Callable[[list[object]], None]) -> int:
        send(["hello"])
        status: int = envoy["started"](["/bin/sh", "-c", config["command"]], lambda _line: None)
        return status if status >= 0 else SIGNALLED - status

    envoy["serve"](errand)


SIGNALLED = 128
"""Shells report a death by signal n as this plus n."""

if __name__ == "__main__":
    main()
