"""Agents as pure strategies: from state to a request, from a reply to actions. They do no I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import msgspec

from jumar.core.gate.admission import Action
from jumar.core.state.reply import ToolCall
from jumar.core.state.run_state import RunState
from jumar.core.state.settings import Settings
from jumar.core.state.test_policy import Gate

DRIVER, PIPELINE, REPAIR = "driver", "pipeline", "repair"
"""The names of our own agents."""

TURN = "turn"
"""The stage of agents that work in small steps, whose caps are turns: a refused write is no attempt of theirs."""

FRONTIER = "frontier"
"""The tier of what happens once: no loop of attempts may ask it."""


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of a prompt.

    `assistant` messages repeat a reply (content, tool calls, opaque parts); `tool` messages answer one of its calls.
    """

    role: str
    """`system`, `user`, `assistant` or `tool`."""
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    opaque: dict[str, object] = {}
    call_id: str = ""
    name: str = ""
    """Of the tool that a `tool` message answers for."""


class Tool(msgspec.Struct, frozen=True):
    """A tool that a model may call. *parameters* is a JSON schema of type object."""

    name: str
    description: str
    parameters: dict[str, object]


class Request(msgspec.Struct, frozen=True):
    """Request of an agent to a model: the tier, and the stage of its work."""

    tier: str
    stage: str
    optional: bool = False
    """True if the work goes on without the answer where it cannot be paid for or had."""


class Strategy(Protocol):
    """An agent: pure, from state to request and from reply to actions."""

    name: str
    localises: bool
    """True if its model wants to know which lines the red tests run."""
    note: str
    """Text that it always adds to its final message; empty is nothing."""
    loops: bool
    """True if it acts turn by turn: then the same action three times in six ends the run as stalled."""
    tools: tuple[Tool, ...]
    """Tools that its model may call; empty is none."""

    def request(self, state: RunState) -> Request | None:
        """Return the next request, or None when the agent has nothing left to try."""
        ...

    def messages(self, state: RunState, files: dict[str, str]) -> tuple[Message, ...]:
        """Return the prompt for `request`, given the editable *files* of the best tree."""
        ...

    def actions(self, state: RunState) -> tuple[Action, ...]:
        """Return the actions that `state.reply` asks for; at least one."""
        ...


class AgentFacts(NamedTuple):
    """Facts of a run's start from which its agent is built. A resumed run has the same, so its agent is the same."""

    settings: Settings
    gate: Gate
    files: tuple[str, ...]
    """Paths of the run's first tree."""
    closed: tuple[str, ...]
    """The read-only ones of these paths."""
    targets: tuple[str, ...]
    """Paths that may be edited, also those that the task names and that do not exist yet."""
    tests: tuple[str, ...]
    """Files of the expected tests."""
    read: Callable[[str], bytes | None]
    """Content of a file of the first tree; None if there is none of that path."""


BuildAgent = Callable[[AgentFacts], Strategy]
"""The `plugin` of a module in `jumar.agents`, or of an entry point in the group `jumar.agents`.

Raises:
    BadInput: if the agent cannot work in this run.
"""
