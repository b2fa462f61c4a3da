"""The offline agent: proposes results of mutation search. It needs no key, costs nothing, and knows only the tests."""

from __future__ import annotations

from jumar.agents.tools import tool_calls
from jumar.core.gate.admission import Action
from jumar.core.run.strategy import AgentFacts, Message, Request, Tool
from jumar.core.state.run_state import RunState


class RepairAgent:
    """Asks the repair model for the next candidate of the best tree."""

    name = "repair"
    localises = True
    loops = False
    tools: tuple[Tool, ...] = ()
    note = "A patch that passes is only as right as the tests."

    def request(self, state: RunState) -> Request | None:  # noqa: ARG002  the port's signature
        """Return a request for the next candidate; the model itself says when there is none."""
        return Request("offline", "repair")

    def messages(self, state: RunState, files: dict[str, str]) -> tuple[Message, ...]:  # noqa: ARG002  as above
        """Return no messages: the search reads the structured view of the request."""
        return ()

    def actions(self, state: RunState) -> tuple[Action, ...]:
        """Return the candidate as a write, or the end."""
        return tool_calls.parse_actions(state.reply.tool_calls, internal=("out_of_time",)) if state.reply else ()


def plugin(_facts: AgentFacts) -> RepairAgent:
    """Build the agent; see `jumar.core.run.strategy.BuildAgent`."""
    return RepairAgent()
