"""Events of the gate's modes: entering and leaving them, what refactor mode refuses, and a codemod."""

from __future__ import annotations

from jumar.core.state.event_base import EventBase
from jumar.core.state.test_policy import Gate
from jumar.core.state.verdict import Void


class Mode(EventBase, frozen=True, kw_only=True, tag="mode", rename={"from_": "from"}):
    """Strict or refactor."""

    from_: Gate
    to: Gate


class Refusal(EventBase, frozen=True, kw_only=True, tag="refusal"):
    """A verdict in refactor mode was not green: the mode is not left, and the edits stay in the workspace."""

    why: str
    tree: str


class PlainRun(EventBase, frozen=True, kw_only=True, tag="plain_run"):
    """The tests ran once under configuration that the run edited; it precedes the `tests` that it stands beside."""

    paths: tuple[str, ...]
    """The edited files that steer the runner."""
    ok: bool
    """Whether every id came out as under the frozen configuration."""
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
    """One command or one replacement changed files: the `write` events that follow are one edit."""

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
    """Where it touched tests: the old identifier and the new one."""
