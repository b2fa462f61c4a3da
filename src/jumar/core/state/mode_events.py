"""Events of the gate's modes: entering and leaving them, refusals in refactor mode, and a codemod."""

from __future__ import annotations

from jumar.core.state.event_base import EventBase
from jumar.core.state.test_policy import Gate
from jumar.core.state.verdict import Void


class Mode(EventBase, frozen=True, kw_only=True, tag="mode", rename={"from_": "from"}):
    """A change of the gate's mode: strict or refactor."""

    from_: Gate
    to: Gate


class Refusal(EventBase, frozen=True, kw_only=True, tag="refusal"):
    """A verdict in refactor mode that was not green: the mode is not left, and the edits stay in the workspace."""

    why: str
    tree: str


class PlainRun(EventBase, frozen=True, kw_only=True, tag="plain_run"):
    """One run of the tests under configuration that the run edited; it precedes the `tests` event it belongs to."""

    paths: tuple[str, ...]
    """The edited files that steer the runner."""
    ok: bool
    """True if every id had the same outcome as under the frozen configuration."""
    differs: tuple[str, ...] = ()
    """The ids that did not."""
    passed: int
    total: int
    void: Void | None = None
    grade: str = "D"
    sandbox: str = "S0"
    executions: int = 1
    output: str = ""
    """Path of the full output, relative to the run's directory."""
    duration_ms: int = 0
    tree: str = ""


class Codemod(EventBase, frozen=True, kw_only=True, tag="codemod"):
    """A command or replacement that changed files: the `write` events that follow are one edit."""

    tool: str
    """`run_command` or `replace_in_files`."""
    command: str = ""
    pattern: str = ""
    replacement: str = ""
    paths: tuple[str, ...] = ()
    """The files that it changed."""
    before: str
    """The tree that it began from."""
    after: str
    renames: tuple[tuple[str, str], ...] = ()
    """Renamed identifiers where it touched tests: old and new."""
