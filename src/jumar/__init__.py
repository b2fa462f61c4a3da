"""Tests decide when a coding agent may edit, what of its work is kept, and when it stops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jumar.core.state.ratchet import Ratchet, Ties
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.errors import BadInput, Infra, JumarError

if TYPE_CHECKING:
    from jumar.runs.setup.result import Result
    from jumar.runs.sync import run
    from jumar.task.resolve import Options

__all__ = [
    "BadInput",
    "Gate",
    "Infra",
    "JumarError",
    "Options",
    "Ratchet",
    "Result",
    "StopReason",
    "TestPolicy",
    "Ties",
    "run",
]

_LATE = {"run": "jumar.runs.sync", "Result": "jumar.runs.setup.result", "Options": "jumar.task.resolve"}
"""Names that need more than the core: imported when they are used, so that `import jumar` stays quick."""


def __getattr__(name: str) -> Any:
    if name == "__version__":  # reading the metadata of a package takes longer than importing all of the core
        from importlib.metadata import version  # noqa: PLC0415  as above

        return version("jumar")
    if name not in _LATE:
        raise AttributeError(f"module 'jumar' has no attribute {name!r}")
    return getattr(__import__(_LATE[name], fromlist=[name]), name)
