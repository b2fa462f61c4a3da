"""The conversation is rebuilt from the state, and it only grows: what was sent stays a byte-identical prefix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jumar.core import events as ev
from jumar.core.agent import Message
from jumar.core.gate import WRITES
from jumar.core.policy import Gate, TestPolicy
from jumar.core.prompts import OUTPUT_LIMIT, head_and_tail
from jumar.core.reply import ToolCall
from jumar.core.retry import UNUSABLE
from jumar.core.run import RunState

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
"""The footers of a test result under the strict gate; what they cost is measured in `bench/footer.py`."""
LATER = "; the tests run when the run ends"


def messages(state: RunState, system: str, task: str) -> tuple[Message, ...]:
    """What is sent next: *system*, *task* with the test results of before the first question, and all that followed.

    Both texts must not depend on anything that changes in a run.
    """
    told = _Told(system, task, state.run)
    for event in state.history:
        told.hear(event)
    told.send()
    return tuple(told.messages)


def account(events: Iterable[ev.Event], run: ev.RunStart) -> str:
    """What *events* of *run*, those that one action led to, tell a model, as one text."""
    told = _Told("", "", run)
    for event in events:
        if not (isinstance(event, ev.ActionTaken) and event.name in ENDINGS and event.admitted):
            told.hear(event)
    return told.text


class _Told:
    """A conversation as it is told, event by event."""

    def __init__(self, system: str, task: str, run: ev.RunStart) -> None:
        self.messages: list[Message] = []
        self._system, self._task, self._policy = system, task, run.test_policy
        self._strict = run.gate is Gate.STRICT
        self._calls: tuple[ToolCall, ...] = ()
        self._done: list[list[str]] = []
        """What came of each action of the newest reply, in their order."""
        self._loose: list[str] = []
        """What happened since something was sent and belongs to no action."""

    def hear(self, event: ev.Event) -> None:
        """Take in one more event."""
        match event:
            case ev.ModelRequest():
                self.send()
            case ev.ModelCall(error=error, reply=reply) if not error or error in UNUSABLE:
                said = reply.content or ("" if reply.tool_calls else EMPTY)
                self.messages.append(Message("assistant", said, reply.tool_calls, reply.opaque))
                self._calls = reply.tool_calls
            case ev.ActionTaken():
                self._done.append([part for part in (_action(event, self._policy),) if part])
            case ev.Observation(name=name, content=content):
                footer = (DONE if content.get("ok") else NEXT) if self._strict and name == "driver.run_tests" else ""
                self._add("\n".join(filter(None, (_shown(name, content), footer))))
            case ev.Revert(why=why):
                self._add(why if why.startswith("taken") else f"taken back: {why}")

    def send(self) -> None:
        """All that was heard leaves: nothing may be added to it any more."""
        if not self.messages:
            self.messages += _opening(self._system, self._task, self._loose)
            self._loose = []
        for n, call in enumerate(self._calls):
            said = _joined(self._done[n]) if n < len(self._done) else UNPERFORMED
            self.messages.append(Message("tool", said, call_id=call.id, name=call.name))
        if not self._calls and self._done:
            parts = [_joined(part) for part in self._done]
            numbered = len(parts) > 1
            said = "\n\n".join(f"{n}. {part}" if numbered else part for n, part in enumerate(parts, 1))
            self.messages.append(Message("user", said))
        if self._loose:
            self.messages.append(Message("user", _joined(self._loose)))
        self._calls, self._done, self._loose = (), [], []

    @property
    def text(self) -> str:
        """What was heard and not sent yet."""
        return "\n".join(part for parts in (self._loose, *self._done) for part in parts)

    def _add(self, part: str) -> None:
        (self._done[-1] if self._done else self._loose).append(part)


def _opening(system: str, task: str, observed: list[str]) -> tuple[Message, Message]:
    results = f"The tests now: {observed[-1]}" if observed else ""
    return Message("system", system), Message("user", "\n\n".join(part for part in (task, results) if part))


def _joined(parts: list[str]) -> str:
    return "\n".join(parts) or "done"


def _action(taken: ev.ActionTaken, policy: TestPolicy) -> str:
    """What is told of an action itself; what it shows comes after."""
    if not taken.admitted:
        reason = head_and_tail(taken.reason, REASON_LIMIT)
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


def _shown(name: str, content: Mapping[str, object]) -> str:
    """An observation as text, capped; what it holds is fixed by the journal."""
    return head_and_tail(_text(name, content), OUTPUT_LIMIT)


def _text(name: str, content: Mapping[str, object]) -> str:
    if "error" in content:
        return str(content["error"])
    match name:
        case "list_files":
            return _rows(content, "files", "no file")
        case "search":
            return _rows(content, "matches", "no match")
        case "read_file":
            return f"lines {content.get('lines')}\n{content.get('text')}"
        case "run_command":
            code = content.get("exit")
            ended = "it did not end in time" if code is None else f"exit status {code}"
            return f"{ended}\n{content.get('output')}".rstrip("\n")
    return str(content.get("output", ""))


def _rows(content: Mapping[str, object], key: str, nothing: str) -> str:
    rows = content.get(key)
    lines = [str(row) for row in rows] if isinstance(rows, list | tuple) else []
    more = content.get("more")
    if more:
        lines.append(f"... {more} more; narrow it down" if more is not True else "... and more; narrow it down")
    return "\n".join(lines) or nothing
