"""The default agent: a loop of tool calls. The model chooses them; the kernel decides what is kept and when it ends."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import dedent

from msgspec.structs import replace

from jumar.agents.extraction import text_protocol
from jumar.agents.tools import tool_calls
from jumar.agents.tools.catalogue import list_offers
from jumar.core.gate.admission import Action
from jumar.core.prompts.conversation import Conversation
from jumar.core.run.planning import PLAN, has_planner, is_planning_turn
from jumar.core.run.strategy import FRONTIER, TURN, AgentFacts, Message, Request, Tool
from jumar.core.state.reply import Reply, ToolCall
from jumar.core.state.run_state import RunState
from jumar.core.state.settings import Switches
from jumar.core.state.test_policy import Gate, TestPolicy

LISTED = 6_000
"""Characters of paths in the first message; list_files shows the rest."""

SYSTEM = dedent("""\
    You are a programmer at work on one repository, and you see and change it only through actions. Look at what you
    need, change as little as the task asks for, and act in every reply. Paths are relative to the root of the
    repository, with forward slashes. The tests that judge the work are read-only. The actions of one reply are
    performed one after the other. Where a test contradicts the task or another test, call escalate instead of bending
    the code to it.""").replace("\n", " ")

POLICIES = {
    TestPolicy.ON_WRITE: (
        "After each change all tests run and you are shown what failed. A change that makes the results worse is taken "
        "back: the files are then as they were before it, and you are told. "
        "The work ends by itself when the tests that were red pass; end it with final when there is nothing left to do."
    ),
    TestPolicy.ON_FINAL: "The tests judge the work once, when it ends. End it with final when it is done.",
    TestPolicy.NEVER: "The work is judged when it has ended. End it with final when it is done.",
}
"""Text that tells a model of each test policy, where there is no gate."""

STRICT = (
    "No edit is admitted that no red test asks for. 1. A test must have been seen red, by the code under test and"
    " not by a broken test. 2. Then edit_claim(test_id, edit_target) says which file you will edit for it; only "
    "that file may be edited for it. 3. When your reply has been performed, all claimed tests are run together "
    "with those that were green: an edit whose test is not green then, or that costs a green one, goes back byte "
    "for byte. Several claims may stand in one reply, each before its own edits. When the step's test does not "
    "exist yet, write it first, at the step's test_file_path, and nothing else in that reply: it must be seen "
    "red. After two failed edits for a test claim another one first. The work ends by itself when the tests that "
    "were red pass; end it with final when there is nothing left to do."
)
REFACTOR = (
    "This is refactor mode: edits need no claims, and what the code does must stay the same. Every file may be edited "
    "but tests: code, docs, configuration, dependencies. To leave the mode (or to end the work with final) everything "
    "must be green: with anything red you are told and go on from there; after three refusals in a row all edits since "
    "you entered go back, and the work ends."
)
"""Text that tells a model of the gate."""

CUT = "the reply was cut off at its greatest length, and this may be a part of what was meant; act in smaller steps"
"""Text shown for the last action of a reply that was cut off, even if it looks whole."""

MOST = 50
"""Actions of one reply that are performed: more than anyone can mean without having seen what came of the first."""

PLANNING = (
    "Your first reply is the plan, and nothing else: submit_plan(steps), each step with the test that will show it and "
    "the file that test stands in."
)
"""Text that asks a model to make the plan."""

ASKED = "Between changes run_tests shows the results whenever you ask."
UNJUDGED = "What you run so is for you to see: it judges nothing, and nothing is taken back for it."


GATES = {Gate.STRICT: STRICT, Gate.REFACTOR: REFACTOR}


class Driver:
    """Asks a model turn by turn, and shows it the results of its actions.

    *listing* are the paths of the run's first tree, *protected* those of them that are read-only: both are part of what
    is sent first and must be the same whenever the run goes on. *switches* and *gate* say which tools there are, and
    how they are asked for.
    """

    name = "driver"
    localises = False
    loops = True
    note = ""

    def __init__(
        self, listing: tuple[str, ...], protected: tuple[str, ...], switches: Switches, gate: Gate = Gate.OFF
    ) -> None:
        self._listing, self._protected, self._text = listing, protected, switches.text_actions
        self._offers = list_offers(switches, gate)
        self._conversation = Conversation()
        # A memo of one entry, asked for by identity: the same reply to the same run has the same actions, so that
        # `actions` answers as if it were not there. It is asked once for every action of a reply.
        self._newest: tuple[tuple[object, ...], tuple[Action, ...]] = ((), ())
        self.tools: tuple[Tool, ...] = () if self._text else tuple(offer.tool for offer in self._offers)

    def request(self, state: RunState) -> Request | None:
        """Return a request for one more turn; caps, tests or the model itself end the run.

        The first may be the plan's.
        """
        if is_planning_turn(state):
            return Request(FRONTIER, PLAN, optional=True)
        return Request("mid", TURN)

    def messages(self, state: RunState, files: dict[str, str]) -> tuple[Message, ...]:  # noqa: ARG002  it reads for itself
        """Return the messages that the model was sent and has answered so far."""
        system = [
            SYSTEM,
            GATES.get(state.run.gate) or POLICIES[state.run.test_policy],
            self._describe_run_tests(state.run.test_policy),
            text_protocol.describe_actions(self._offers) if self._text else "",
        ]
        task = [
            state.run.settings.instruction or _get_usual_task(state),
            _describe_guard(state),
            PLANNING if has_planner(state.run) else "",
            f"The files of the repository:\n{_list_paths(self._listing)}",
            f"Read-only, among them the tests:\n{_list_paths(self._protected)}" if self._protected else "",
        ]
        return self._conversation.messages(state, *("\n\n".join(filter(None, parts)) for parts in (system, task)))

    def _describe_run_tests(self, policy: TestPolicy) -> str:
        """Return the text about run_tests for a model that has it."""
        if not any(offer.name == "run_tests" for offer in self._offers):
            return ""
        return f"{ASKED} {UNJUDGED}" if policy is TestPolicy.ON_FINAL else ASKED

    def actions(self, state: RunState) -> tuple[Action, ...]:
        """Return one action for each tool call, or for each block of the plain-text protocol; at least one."""
        if state.reply is None:
            return ()
        asked = (state.reply, state.run, state.flaw)
        known, found = self._newest
        if len(known) != len(asked) or any(a is not b for a, b in zip(known, asked, strict=True)):
            found = self._parse_actions(state, state.reply)
            self._newest = (asked, found)
        return found

    def _parse_actions(self, state: RunState, reply: Reply) -> tuple[Action, ...]:
        if state.flaw:
            return (tool_calls.build_null_action(f"{state.flaw}; {self._describe_how()}", reply),)
        asked = reply.tool_calls or text_protocol.parse_calls(reply.content, self._offers)
        if not asked:
            return (
                tool_calls.build_null_action(
                    CUT if reply.cut else f"the reply holds no action; {self._describe_how()}", reply
                ),
            )
        last, over = asked[-1], len(asked) - MOST
        if over > 0:
            asked = (*asked[:MOST], f"a reply may hold {MOST} actions; the other {over} were not performed")
        found = [
            tool_calls.build_null_action(a, reply, n) if isinstance(a, str) else self._parse_action(a, state)
            for n, a in enumerate(asked)
        ]
        if reply.cut and over <= 0 and isinstance(last, ToolCall):
            found[-1] = tool_calls.build_faulty_action(last, CUT)
        return tuple(found)

    def _parse_action(self, call: ToolCall, state: RunState) -> Action:
        action = tool_calls.parse_action(call, self._offers)
        asked = action.args.get("test_ids")
        if action.fault or action.name != "run_tests" or not isinstance(asked, tuple):
            return action
        ids = tool_calls.select_ids(asked, state.expected)
        return replace(action, fault=ids) if isinstance(ids, str) else replace(action, args={"test_ids": ids})

    def _describe_how(self) -> str:
        """Describe in few words how to act: the first message lists the actions, and this may come every turn."""
        return f"begin a block with ```{text_protocol.WORD} NAME" if self._text else "call a tool"


def _get_usual_task(state: RunState) -> str:
    """Return the task in the absence of an instruction."""
    tested = state.run.expected or not state.run.settings.verify
    return "Make the failing tests pass." if tested else "Make the command that guards this work succeed."


def _describe_guard(state: RunState) -> str:
    """Return the command that must succeed when refactor mode is left, if there is one."""
    verify = state.run.settings.verify
    return (
        f"The command that must succeed when refactor mode is left: {verify}" if verify and _can_refactor(state) else ""
    )


def _can_refactor(state: RunState) -> bool:
    return state.run.gate is Gate.REFACTOR or state.run.settings.switches.allow_refactor


def _list_paths(paths: Iterable[str]) -> str:
    """Return the *paths*, one a line, as many as there is room for."""
    lines, room, left = list[str](), LISTED, 0
    for path in paths:
        room -= len(path) + 1
        if room < 0:
            left += 1
        else:
            lines.append(path)
    return "\n".join([*lines, *([f"... and {left} more"] if left else [])])


def plugin(facts: AgentFacts) -> Driver:
    """Build the agent; see `jumar.core.run.strategy.BuildAgent`."""
    return Driver(facts.files, facts.closed, facts.settings.switches, facts.gate)
