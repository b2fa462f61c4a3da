"""An external agent, which edits the folder itself: it is prompted at each turn, and its claims are not trusted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import dedent

from jumar.core.gate.admission import Action, adapt_to_shell
from jumar.core.gate.leave_refactor import REFUSALS, explain_red
from jumar.core.prompts.feedback import OUTPUT_LIMIT
from jumar.core.quoting import cut_middle, fence_text, strip_control_sequences
from jumar.core.run.strategy import AgentFacts, Message, Request, Tool
from jumar.core.state import events as ev
from jumar.core.state.run_state import RunState
from jumar.core.state.test_policy import Gate, TestPolicy

PROXY = "proxy"
"""The stage of what such an agent asks its model: what it makes of the answer is its own business."""

LISTED = 6_000
"""Characters of paths that are read-only."""

UNMETERED = "What the agent spent beside the calls through jumar is not known."

PLACE = dedent("""\
    You are in the root of the repository, in a copy that is yours. When you have ended, the tests run on the files as
    you left them, and nothing you say counts beside them: end when you believe that they pass. What lowers the result
    is taken back. Processes that you leave running are ended with you. The git history is new, and thrown away.""")

QUIET = dedent("""\
    You are in the root of the repository, in a copy that is yours. The files are judged as you leave them. Processes
    that you leave running are ended with you. The git history is new, and thrown away.""")

WAY_OUT = dedent("""\
    Where a test contradicts the task or another test, do not bend the code to it. This ends the work, and a person
    decides:

        jumar escalate TEST 'what it contradicts, and how'""")

STRICT = dedent("""\
    An edit needs a red test that asks for it. Before you change a file that is no test, say which failing test the edit
    is for:

        jumar claim TEST FILE

    TEST is its id as it is written here, FILE the path of the file you will change; claim each file you change. A file
    that is changed without a claim is put back before your next call of a model, byte for byte. What you changed for a
    claim stays only if its test is green when you have ended, and no other test was lost. Where no test is red, write a
    failing test first, in a new test file, change nothing else, and end.""")

REFACTOR = dedent("""\
    This is a refactoring: no claims are needed, and what the code does must stay the same. Every file may be changed
    but tests: code, docs, configuration, dependencies. When you have ended, all tests must be green: if they are not,
    you are told what is red and go on from there; after the third time in a row all that you changed goes back.""")


class ExternalAgent:
    """Any command-line agent. *closed* are the read-only files of the run's first tree.

    *metered* says whether all that it spends is known.
    """

    name = "external"
    localises = False
    loops = True
    tools: tuple[Tool, ...] = ()

    def __init__(self, closed: tuple[str, ...], *, metered: bool = True) -> None:
        self._closed = closed
        self.note = "" if metered else UNMETERED

    def request(self, state: RunState) -> Request | None:
        """Return the request that the agent itself made, if any."""
        return Request("mid", PROXY) if state.asking else None

    def messages(self, state: RunState, files: dict[str, str]) -> tuple[Message, ...]:  # noqa: ARG002  the port's
        """Return no messages: the agent's own request is forwarded unchanged."""
        return ()

    def actions(self, state: RunState) -> tuple[Action, ...]:  # noqa: ARG002  the port's signature
        """Return no actions: the agent's work is read from its folder."""
        return ()

    def prompt(self, state: RunState) -> str:
        """Return the prompt of the agent at the start of a turn."""
        policy, mode = state.run.test_policy, state.gate_state.mode
        rules = {Gate.STRICT: STRICT, Gate.REFACTOR: REFACTOR}.get(mode, "")
        closed = cut_middle(strip_control_sequences("\n".join(self._closed)), LISTED)
        parts = [
            state.run.settings.instruction or "Make the failing tests pass.",
            PLACE if policy is TestPolicy.ON_WRITE else QUIET,
            rules,
            WAY_OUT,
            f"Read-only, whatever is done to them is undone:\n{closed}" if closed else "",
            _format_results(state),
            _explain_refusal(state),
            _describe_reverted(_list_newest(state)),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"


def _format_results(state: RunState) -> str:
    """Return the test results of the folder: the best tree, or in refactor mode one that is not green yet."""
    shown = state.latest_results if state.best is not None and state.tree != state.best.tree else state.best_results
    if state.run.test_policy is not TestPolicy.ON_WRITE or not shown:
        return ""
    return f"The tests, on the files as they are now:\n\n{fence_text(str(shown.get('output', '')))}"


def _explain_refusal(state: RunState) -> str:
    """Explain why the refactoring did not end with the agent's newest turn."""
    if not state.gate_state.refusals:
        return ""
    said = f"time {state.gate_state.refusals} of {REFUSALS} in a row"
    why = explain_red(state)
    return f"You have ended, and it is not green: {why} ({said}). What you changed lies there as you left it."


def _list_newest(state: RunState) -> list[ev.Event]:
    """Return the end of the conversation, from the last turn but one on, oldest first."""
    events: list[ev.Event] = []
    cell, ends = state.conversation, 0
    while cell is not None and ends < 2:  # noqa: PLR2004  said above
        events.append(cell.event)
        ends += isinstance(cell.event, ev.ActionTaken) and cell.event.name == "turn_end"
        cell = cell.rest
    return events[::-1]


def _describe_reverted(history: Sequence[ev.Event]) -> str:
    """Describe the part of the agent's newest turn that was reverted, and the reason."""
    ends = [n for n, event in enumerate(history) if isinstance(event, ev.ActionTaken) and event.name == "turn_end"]
    if not ends:
        return ""
    begun = ends[-2] if len(ends) > 1 else -1
    # What was judged after the turn before was told when this one began.
    told = [e for n, e in enumerate(history) if n > ends[-1] or (n > begun and _belongs_to_turn(e))]
    lines = [line for event in told if (line := _format_event(event))]
    shown = cut_middle(adapt_to_shell(strip_control_sequences("\n".join(dict.fromkeys(lines)))), OUTPUT_LIMIT)
    return f"Of what you did in your last turn, this did not stay:\n{shown}" if lines else ""


def _belongs_to_turn(event: ev.Event) -> bool:
    """Return whether *event* can only belong to the turn itself, not to its verdict."""
    return (isinstance(event, ev.Revert) and event.found) or isinstance(event, ev.ActionTaken)


def _format_event(event: ev.Event) -> str:
    match event:
        case ev.Revert(why=why, paths=paths) if paths:
            return f"- {why}" if any(path in why for path in paths) else f"- {_format_paths(paths)}: {why}"
        case ev.ActionTaken(admitted=False, name=name, reason=reason):
            return f"- {name} was refused: {reason}"
    return ""


def _format_paths(paths: Iterable[str]) -> str:
    first, *rest = paths
    return f"{first} and {len(rest)} more" if rest else first


def plugin(facts: AgentFacts) -> ExternalAgent:
    """Build the agent; see `jumar.core.run.strategy.BuildAgent`."""
    return ExternalAgent(facts.closed, metered=facts.settings.outside.metered)
