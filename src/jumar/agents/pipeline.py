"""The pipeline agent writes whole files: write, review, rewrite, then fix the best tree by its test results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256

from jumar.agents._whole_files import read_whole_files
from jumar.agents.extraction import infer_path
from jumar.agents.extraction.extract import extract
from jumar.agents.tools import tool_calls
from jumar.core.gate.admission import WRITES, Action
from jumar.core.prompts import feedback
from jumar.core.prompts.feedback import Texts
from jumar.core.prompts.review import parse_violations
from jumar.core.run.strategy import AgentFacts, Message, Request, Tool
from jumar.core.state import events as ev
from jumar.core.state.reply import Reply
from jumar.core.state.run_state import ConversationCell, RunState
from jumar.core.state.settings import Settings
from jumar.core.state.test_policy import TestPolicy

Files = dict[str, str | None]

FURTHER = 2
"""Turns that a review and what follows from it may take: with fewer left nobody could act upon it."""


@dataclass
class _Kept:
    """The kept texts of the targets, and the newest write, which may or may not be kept.

    A write that is not kept is reverted. One that the run had to stop before is reverted, and reverted to when the
    run goes on: what was reverted an even number of times stands.
    """

    kept: dict[str, str]
    written: ev.ActionTaken | None = None
    by: list[ev.ModelCall] = field(default_factory=list)
    """The usable replies that led to it."""
    stands: bool = True
    calls: list[ev.ModelCall] = field(default_factory=list)
    """The usable replies since."""
    read: ConversationCell | None = None
    """The newest event that was read: what is asked again reads on from there."""


class Pipeline:
    """Agent that asks a model for whole files: write, review, then fix until the tests pass.

    Args:
        targets: The paths it may be answered with.
        settings: Of the run: they say whether the first draft is reviewed. None: it is not.
        tests: Path -> text of the acceptance tests, which the prompts show.
        current: Path -> text of the targets when the run began, but for those that did not exist; what was kept since
            stands over it, and together they tell a whole file from a part of one.
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
        self._tests, self._first = dict(tests or {}), dict(current or {})
        self._memory = _Kept(dict(self._first))
        self._imported = infer_path.collect_test_imports(self._tests, targets)

    def request(self, state: RunState) -> Request | None:
        """Return the next request: `write` first; with a draft `review`, then `rewrite`; `fix` after.

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
        """Return the prompt with the texts of the targets alone; for a review with those of the draft alone."""
        request = self.request(state)
        texts = {path: text for path, text in files.items() if path in self._targets}
        match request.stage if request else "":
            case "write":
                return feedback.write(state, self._build_texts(texts))
            case "review":
                return feedback.review(state, Texts(self._read_draft(state), self._tests))
            case "rewrite":
                return feedback.rewrite(state, self._build_texts(texts | self._read_draft(state)))
        return feedback.fix(state, self._build_texts(texts))

    def actions(self, state: RunState) -> tuple[Action, ...]:
        """Return one action: a write of all files in the reply, the objections of a review, or a fault."""
        if state.reply is None:
            return ()
        match state.stage:
            case "review":
                return (_build_review(state.reply, state.flaw),)
            case "rewrite":
                return (self._merge_rewrite(state.reply, state),)
        if state.reply.tool_calls and not state.flaw:
            return tool_calls.parse_actions(state.reply.tool_calls)
        found = state.flaw or self._extract_files(state.reply, self.read_kept(state))
        if isinstance(found, str):
            return (tool_calls.build_unparsable_action(found),)
        return (Action("draft" if state.stage == "write" and self._can_review(state) else "write_files", files=found),)

    def _build_texts(self, files: dict[str, str]) -> Texts:
        absent = tuple(path for path in self._targets if path not in files and path not in self._first)
        return Texts(files, self._tests, absent)

    def _can_review(self, state: RunState) -> bool:
        cap = state.run.budget.turns
        return self._review and (cap is None or state.spend.turns + FURTHER <= cap)

    def _merge_rewrite(self, reply: Reply, state: RunState) -> Action:
        """Return the draft with the files of the rewrite over it, or the draft if the rewrite is unusable."""
        kept, draft = self.read_kept(state), self._read_draft(state)
        found = state.flaw or self._extract_files(reply, kept | draft)
        if not isinstance(found, str):
            files = {**draft, **found}
            if any(kept.get(path) != text for path, text in files.items()):
                return Action("write_files", files=files)
            found = "it takes back all that the draft changes"
        return Action("rewrite", fault=f"the rewrite cannot be used, the draft is written: {found}")

    def _read_draft(self, state: RunState) -> dict[str, str]:
        found = self._extract_files(state.draft, self.read_kept(state)) if state.draft else {}
        return {} if isinstance(found, str) else {path: text for path, text in found.items() if text is not None}

    def read_kept(self, state: RunState) -> dict[str, str]:
        """Return the texts of the targets in the best tree.

        The first ones, and over them what was written and kept since.

        The journal names what was written by its hash; the texts are in the replies before it.
        """
        memory, events = replace(self._memory), state.list_since(self._memory.read)
        if events is None:
            memory, events = _Kept(dict(self._first)), state.history
        for event in events:
            match event:
                case ev.ModelCall(error=""):
                    memory.calls = [*memory.calls, event] if event.stage in ("review", "rewrite") else [event]
                case ev.ActionTaken(admitted=True) if event.name in WRITES:
                    memory.kept = self._add_write(memory)
                    memory.written, memory.by, memory.stands = event, memory.calls, True
                case ev.Revert():
                    memory.stands = not memory.stands
        memory.read, self._memory = state.conversation, memory
        return self._add_write(memory)

    def _add_write(self, memory: _Kept) -> dict[str, str]:
        """Return the kept texts, with those of the newest write if it was kept."""
        kept = dict(memory.kept)
        if memory.written is None or not memory.stands:
            return kept
        hashes = memory.written.args.get("files")
        texts = self._collect_texts(memory.by, kept)
        for path, digest in hashes.items() if isinstance(hashes, dict) else ():
            if not digest:
                kept.pop(path, None)
            elif (text := texts.get(str(digest))) is not None:
                kept[path] = text
        return kept

    def _collect_texts(self, calls: list[ev.ModelCall], kept: dict[str, str]) -> dict[str, str]:
        """Return hash -> text of all files in the replies that led to one write, read as they were read then."""
        said: dict[str, str] = {}
        draft: dict[str, str] = {}
        for call in calls:
            if call.reply.tool_calls:
                read = [action.files for action in tool_calls.parse_actions(call.reply.tool_calls)]
            else:
                found = self._extract_files(call.reply, kept | draft)
                read = [] if isinstance(found, str) else [found]
            texts = [(path, text) for files in read for path, text in files.items() if text is not None]
            said |= {sha256(text.encode()).hexdigest(): text for _, text in texts}
            draft = dict(texts) if call.stage == "write" else draft
        return said

    def _extract_files(self, reply: Reply, current: Mapping[str, str]) -> Files | str:
        if not reply.content.strip():
            return "the reply is empty"
        if reply.cut:
            return "the reply was cut off at the most tokens it may have; answer more briefly, with the complete file"
        return extract(reply.content, self._targets, current, self._imported)


def _build_review(reply: Reply, flaw: str) -> Action:
    found = None if flaw else parse_violations(reply.content)
    if found is None:
        return Action("review", fault=f"the review cannot be used, the draft is written: {flaw or 'it says nothing'}")
    return Action("review", message="\n".join(found))


def plugin(facts: AgentFacts) -> Pipeline:
    """Build the agent; see `jumar.core.run.strategy.BuildAgent`.

    Raises:
        BadInput: if there are too many files to be written whole, they are too large, or none of them is UTF-8.
    """
    targets, current = read_whole_files(facts)
    tests = {path: data.decode("utf-8", "replace") for path in facts.tests if (data := facts.read(path)) is not None}
    return Pipeline(targets, facts.settings, tests=tests, current=current)
