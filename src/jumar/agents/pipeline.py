"""Whole-file generation: write, then fix from the best tree. What tests say is the only feedback."""

from __future__ import annotations

from jumar.agents import tools
from jumar.agents.replies import extract
from jumar.core import prompts
from jumar.core.gate import Action
from jumar.core.policy import TestPolicy
from jumar.core.run import RunState
from jumar.core.step import Message, Request


class Pipeline:
    """Asks for whole files; *targets* are the paths it may be answered with."""

    name = "pipeline"
    localises = False
    note = ""

    def __init__(self, targets: tuple[str, ...]) -> None:
        self._targets = targets

    def request(self, state: RunState) -> Request | None:
        """`write` first, `fix` after; without feedback during the run there is nothing to fix from."""
        first = state.spend.turns == 0
        if not first and state.run.test_policy is not TestPolicy.ON_WRITE:
            return None
        return Request("mid", "write" if first else "fix")

    def messages(self, state: RunState, files: dict[str, str]) -> tuple[Message, ...]:
        """The prompt, with the texts of the targets alone."""
        texts = {path: text for path, text in files.items() if path in self._targets}
        return (prompts.write if state.spend.turns == 0 else prompts.fix)(state, texts)

    def actions(self, state: RunState) -> tuple[Action, ...]:
        """One write of all the files in the reply, or its tool calls."""
        reply = state.reply
        if reply is None:
            return ()
        if reply.tool_calls:
            return tools.actions(reply.tool_calls)
        found = extract(reply.content, self._targets)
        return (tools.unparsable(found) if isinstance(found, str) else Action("write_files", files=found),)
