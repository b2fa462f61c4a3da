"""An agent driven by a host (MCP client, hooks): it asks no model, and its actions come from outside one by one."""

from __future__ import annotations

from jumar.core.gate.admission import Action
from jumar.core.run.strategy import AgentFacts, Message, Request, Tool
from jumar.core.state.run_state import RunState


class HostedAgent:
    """Agent behind an MCP client or behind hooks. Its actions come from outside, so it asks for nothing."""

    name = "host"
    localises = False
    loops = True
    note = ""
    tools: tuple[Tool, ...] = ()

    def request(self, state: RunState) -> Request | None:  # noqa: ARG002  the port's signature
        """Return no request: the host asks its own model."""
        return None

    def messages(self, state: RunState, files: dict[str, str]) -> tuple[Message, ...]:  # noqa: ARG002  as above
        """Return no messages: no model is asked."""
        return ()

    def actions(self, state: RunState) -> tuple[Action, ...]:  # noqa: ARG002  as above
        """Return no actions: there is no reply."""
        return ()


def plugin(_facts: AgentFacts) -> HostedAgent:
    """Build the agent; see `jumar.core.run.strategy.BuildAgent`."""
    return HostedAgent()
