"""The interpreter of most rooms in our tests: one with pytest and nothing else, as plug-ins cost each process time.

`make test` makes it; without it ours is used, which is slower and no less right.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_BARE = Path(__file__).parents[3] / ".venv" / "bare" / "bin" / "python"

PLAIN_PYTHON = str(_BARE) if os.access(_BARE, os.X_OK) else sys.executable


def beside_it(root: Path) -> None:
    """Give the project in *root* the virtual environment of `PLAIN_PYTHON`, by a link that no tree holds."""
    if sys.executable != PLAIN_PYTHON:
        (root / ".venv").symlink_to(_BARE.parent.parent)
