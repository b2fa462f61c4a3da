"""Builds the conversation from the state alone. It only grows: sent messages stay a byte-identical prefix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jumar.core.gate.admission import WRITES
from jumar.core.prompts.feedback import NO_TEST, OUTPUT_LIMIT
from jumar.core.quoting import cut_middle
from jumar.core.run.retry import UNUSABLE
from jumar.core.run.strategy import Message
from jumar.core.state import events as ev
from jumar.core.state.reply import ToolCall
from jumar.core.state.run_state import ConversationCell, RunState
from jumar.core.state.test_policy import Gate, TestPolicy

REASON_LIMIT = 4_000
"""Characters of a reason that are told: it may repeat what the model wrote."""

EMPTY = "(an empty reply)"
"""Stands for a reply without a word and without a call: providers take no empty message back."""

UNPERFORMED = "not performed"
AGAIN = "the run had ended with this, and was taken up again: go on"
ENDINGS = ("final", "escalate")
"""Actions that end the run: what is told of them is for a run that goes on afterwards."""
NEXT = "Next: edit_claim(test_id, edit_target) for a red test, then its edit."
DONE = "All green: write a failing test first, or end the work."
FIRST = "Next: write a failing test, in a new test file and nothing else in that turn."
"""The footers of a test result under the strict gate; what they cost is measured in `bench/footer.py`."""
LATER = "; the tests run when the run ends"


class Conversation:
    """The messages of a run, rebuilt from its state. A memo: it reads only the events that it has not read before.

    It answers as if it remembered nothing. What it has read is known by identity, as one cell of the state's linked
    list of events; a state whose list does not hold that cell is read from the start.
    """

    def __init__(self) -> None:
        self._read: ConversationCell | None = None
        self._told: _Told | None = None

    def messages(self, state: RunState, system: str, task: str) -> tuple[Message, ...]:
        """Return the messages of the next prompt.

        *system*, *task* with the test results of before the first question, and all that followed.

        Both texts must not depend on anything that changes in a run.
        """
        told, events = self._told, state.list_since(self._read)
        if told is None or events is None or not told.is_current(system, task, state.run):
            told, events = _Told(system, task, state.run), state.history
        for event in events:
            told.add_event(event)
        self._told, self._read = told, state.conversation
        return told.all


def describe_events(events: Iterable[ev.Event], run: ev.RunStart) -> str:
    """Describe to a model, as one text, the *events* of *run* that one action led to."""
    told = _Told("", "", run)
    for event in events:
        if not (isinstance(event, ev.ActionTaken) and event.name in ENDINGS and event.admitted):
            told.add_event(event)
    return told.text


class _Told:
    """Text of a conversation, built event by event."""

    def __init__(self, system: str, task: str, run: ev.RunStart) -> None:
        self._system, self._task, self._policy = system, task, run.test_policy
        self._strict = run.gate is Gate.STRICT
        self._sent: tuple[Message, ...] = ()
        """Up to the newest request. It is long, and copied once for each: two tuples are added, which is cheapest."""
        self._replies: list[Message] = []
        """Messages that answered it."""
        self._all: tuple[Message, ...] = ()
        """Cached value of `all`; empty if it must be rebuilt."""
        self._calls: tuple[ToolCall, ...] = ()
        self._done: list[list[str]] = []
        """Results of each action of the newest reply, in their order."""
        self._loose: list[str] = []
        """Events since the last request that belong to no action."""

    def is_current(self, system: str, task: str, run: ev.RunStart) -> bool:
        """Check whether the conversation would be the same if it were built again from the start."""
        own = (self._system, self._task, self._policy, self._strict)
        return own == (system, task, run.test_policy, run.gate is Gate.STRICT)

    def add_event(self, event: ev.Event) -> None:
        """Add one more event to the text."""
        match event:
            case ev.ModelRequest():
                self._mark_sent()
                return
            case ev.ModelCall(error=error, reply=reply) if not error or error in UNUSABLE:
                said = reply.content or ("" if reply.tool_calls else EMPTY)
                self._replies.append(Message("assistant", said, reply.tool_calls, reply.opaque))
                self._calls = reply.tool_calls
            case ev.ActionTaken(name="plan" | "leave"):
                # The call for a plan was not made: whoever is asked instead need not know. The action that asked to
                # leave a mode is told of when it was ruled on.
                pass
            case ev.ActionTaken():
                self._done.append([part for part in (_describe_action(event, self._policy),) if part])
            case ev.Observation(name=name, content=content):
                self._add_part(
                    "\n".join(filter(None, (_describe_observation(name, content), self._build_footer(name, content))))
                )
            case ev.Revert(why=why):
                self._add_part(why if why.startswith("taken") else f"taken back: {why}")
        self._all = ()

    @property
    def all(self) -> tuple[Message, ...]:
        """Messages, with the text added since the newest request: it would be sent with the next one."""
        if not self._all:
            self._all = self._sent + (*self._replies, *self._list_unsent())  # noqa: RUF005  said at `_sent`
        return self._all

    @property
    def text(self) -> str:
        """Text that was added and not sent yet."""
        return "\n".join(part for parts in (self._loose, *self._done) for part in parts)

    def _mark_sent(self) -> None:
        """Mark all text as sent: nothing may be added to it any more."""
        self._sent, self._replies = self.all, []
        self._calls, self._done, self._loose = (), [], []

    def _list_unsent(self) -> list[Message]:
        """Return the messages that were not sent yet."""
        found: list[Message] = []
        loose = self._loose
        if not self._sent:
            found += _build_opening(self._system, self._task, loose)
            loose = []
        for n, call in enumerate(self._calls):
            said = _join_parts(self._done[n]) if n < len(self._done) else UNPERFORMED
            found.append(Message("tool", said, call_id=call.id, name=call.name))
        if not self._calls and self._done:
            parts = [_join_parts(part) for part in self._done]
            numbered = len(parts) > 1
            said = "\n\n".join(f"{n}. {part}" if numbered else part for n, part in enumerate(parts, 1))
            found.append(Message("user", said))
        if loose:
            found.append(Message("user", _join_parts(loose)))
        return found

    def _build_footer(self, name: str, content: Mapping[str, object]) -> str:
        """Return the hint on what to do next, shown after test results under the strict gate."""
        if not self._strict or name != "driver.run_tests":
            return ""
        return DONE if content.get("ok") else FIRST if content.get("output") == NO_TEST else NEXT

    def _add_part(self, part: str) -> None:
        (self._done[-1] if self._done else self._loose).append(part)


def _build_opening(system: str, task: str, observed: list[str]) -> tuple[Message, Message]:
    results = f"The tests now: {observed[-1]}" if observed else ""
    return Message("system", system), Message("user", "\n\n".join(part for part in (task, results) if part))


def _join_parts(parts: list[str]) -> str:
    return "\n".join(parts) or "done"


def _describe_action(taken: ev.ActionTaken, policy: TestPolicy) -> str:
    """Describe an action itself; its result follows."""
    if not taken.admitted:
        reason = cut_middle(taken.reason, REASON_LIMIT)
        return reason if taken.name == "none" else f"{taken.name} was not performed: {reason}"
    if taken.name in ENDINGS:
        return AGAIN
    files = taken.args.get("files")
    if taken.name == "edit_claim":
        return "claimed"
    paths = ", ".join(files) if isinstance(files, Mapping) else str(taken.args.get("path", ""))
    if taken.name in WRITES:
        verb = {"delete_file": "deleted", "edit_file": "edited"}.get(taken.name, "wrote")
        return f"{verb} {paths}{LATER if policy is TestPolicy.ON_FINAL else ''}"
    return f"{taken.name} {paths}".rstrip()


def _describe_observation(name: str, content: Mapping[str, object]) -> str:
    """Return an observation as text, capped; the journal fixes what it holds."""
    return cut_middle(_format_result(name, content), OUTPUT_LIMIT)


def _format_result(name: str, content: Mapping[str, object]) -> str:
    if "error" in content:
        return str(content["error"])
    match name:
        case "list_files":
            return _format_rows(content, "files", "no file")
        case "search":
            return _format_rows(content, "matches", "no match")
        case "read_file":
            return f"lines {content.get('lines')}\n{content.get('text')}"
        case "run_command":
            code = content.get("exit")
            ended = "it did not end in time" if code is None else f"exit status {code}"
            return f"{ended}\n{content.get('output')}".rstrip("\n")
    return str(content.get("output", ""))


def _format_rows(content: Mapping[str, object], key: str, nothing: str) -> str:
    rows = content.get(key)
    lines = [str(row) for row in rows] if isinstance(rows, list | tuple) else []
    more = content.get("more")
    if more:
        lines.append(f"... {more} more; narrow it down" if more is not True else "... and more; narrow it down")
    return "\n".join(lines) or nothing
