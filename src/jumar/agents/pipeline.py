"""Whole files: write, have it reviewed, rewrite, then fix from the best tree. What tests say is the only feedback."""

from __future__ import annotations

from collections.abc import Mapping

from jumar.agents import tools
from jumar.agents.replies import extract
from jumar.core import prompts
from jumar.core.agent import Message, Request, Tool
from jumar.core.gate import Action
from jumar.core.policy import TestPolicy
from jumar.core.prompts import Texts
from jumar.core.reply import Reply
from jumar.core.review import violations
from jumar.core.run import RunState
from jumar.core.settings import Settings

Files = dict[str, str | None]

FURTHER = 2
"""Turns that a review and what follows from it may take: with fewer left nobody could act upon it."""


class Pipeline:
    """Asks for whole files.

    Args:
        targets: The paths it may be answered with.
        settings: Of the run: they say whether the first draft is reviewed. None: it is not.
        tests: Path -> text of the acceptance tests, which the prompts show.
        current: Path -> text of the targets when the run began; tells a whole file from a part of one.
    """

    name = "pipeline"
    localises = False
    loops = False
    tools: tuple[Tool, ...] = ()
    note = ""

    def __init__(
        self,
        targets: tuple[str, ...],
        settings: Settings | None = None,
        tests: Mapping[str, str] | None = None,
        current: Mapping[str, str] | None = None,
    ) -> None:
        self._targets, self._review = targets, settings is not None and settings.switches.review
        self._tests, self._current = dict(tests or {}), dict(current or {})

    def request(self, state: RunState) -> Request | None:
        """`write` first; with a draft `review`, then `rewrite`; `fix` after.

        Without feedback during the run there is nothing to fix from.
        """
        if state.draft is not None:
            return (
                Request("mid", "rewrite", optional=True)
                if state.violations
                else Request("cheap", "review", optional=True)
            )
        if state.spend.turns == 0:
            return Request("mid", "write")
        return Request("mid", "fix") if state.run.test_policy is TestPolicy.ON_WRITE else None

    def messages(self, state: RunState, files: dict[str, str]) -> tuple[Message, ...]:
        """The prompt, with the texts of the targets alone; for a review those of the draft alone."""
        request = self.request(state)
        texts = {path: text for path, text in files.items() if path in self._targets}
        match request.stage if request else "":
            case "write":
                return prompts.write(state, Texts(texts, self._tests))
            case "review":
                return prompts.review(state, Texts(self._draft(state), self._tests))
            case "rewrite":
                return prompts.rewrite(state, Texts(texts | self._draft(state), self._tests))
        return prompts.fix(state, Texts(texts, self._tests))

    def actions(self, state: RunState) -> tuple[Action, ...]:
        """One action: a write of all the files in the reply, what a review found, or why there is neither."""
        if state.reply is None:
            return ()
        match state.stage:
            case "review":
                return (_reviewed(state.reply, state.flaw),)
            case "rewrite":
                return (self._rewritten(state.reply, state),)
        if state.reply.tool_calls and not state.flaw:
            return tools.actions(state.reply.tool_calls)
        found = state.flaw or self._files(state.reply)
        if isinstance(found, str):
            return (tools.unparsable(found),)
        return (Action("draft" if state.stage == "write" and self._reviews(state) else "write_files", files=found),)

    def _reviews(self, state: RunState) -> bool:
        cap = state.run.budget.turns
        return self._review and (cap is None or state.spend.turns + FURTHER <= cap)

    def _rewritten(self, reply: Reply, state: RunState) -> Action:
        """The draft with the files of the rewrite over it; a rewrite that cannot be used leaves the draft."""
        found = state.flaw or self._files(reply)
        if isinstance(found, str):
            return Action("rewrite", fault=f"the rewrite cannot be used, the draft is written: {found}")
        return Action("write_files", files={**self._draft(state), **found})

    def _draft(self, state: RunState) -> dict[str, str]:
        found = self._files(state.draft) if state.draft else {}
        return {} if isinstance(found, str) else {path: text for path, text in found.items() if text is not None}

    def _files(self, reply: Reply) -> Files | str:
        if not reply.content.strip():
            return "the reply is empty"
        if reply.cut:
            return "the reply was cut off at the most tokens it may have; answer more briefly, with the complete file"
        return extract(reply.content, self._targets, self._current)


def _reviewed(reply: Reply, flaw: str) -> Action:
    found = None if flaw else violations(reply.content)
    if found is None:
        return Action("review", fault=f"the review cannot be used, the draft is written: {flaw or 'it says nothing'}")
    return Action("review", message="\n".join(found))
