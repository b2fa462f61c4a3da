"""The one module that reads the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def read_environment() -> Mapping[str, str]:
    """Return a copy of this process's environment; the verifier lets little of it through."""
    return dict(os.environ)


def find_cache_folder() -> Path:
    """Return the folder of downloads kept between calls, by the XDG convention."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jumar"
