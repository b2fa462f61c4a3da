"""Admits the edits that a red test asks for, of any author. No model is asked."""

from __future__ import annotations

import re
import shlex
from hashlib import sha256

import msgspec

from jumar.core.gate.leave_refactor import explain_no_codemod, refuse_leave
from jumar.core.gate.turn_outcome import format_ids
from jumar.core.gate.write_rules import Hit, WriteRules, explain_misnamed, explain_refusal, find_escape
from jumar.core.state.claims import GateState, can_provide, explain_not_red, find_red_ids
from jumar.core.state.events import PlanStep
from jumar.core.state.run_state import HOST, RunState
from jumar.core.state.test_policy import Gate

ONE_EDIT = (
    "codemod mode takes one command (run_command) or one replacement (replace_in_files), which is judged as one edit; "
    "set_mode('strict') leaves it"
)
CLAIM_OF_FILE = re.compile(r"""call edit_claim\(test_id, ('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\)""")
"""Advice of the gate to claim a file, with its name as Python writes it."""
WRITES = frozenset({"write_file", "write_files", "edit_file", "delete_file"})
"""Actions that change files."""


class Edit(msgspec.Struct, frozen=True):
    """An exact replacement: *old* stands exactly once in the file."""

    path: str
    old: str
    new: str


class Action(msgspec.Struct, frozen=True):
    """Request of the model in a turn. A file body of None deletes the file."""

    name: str
    files: dict[str, str | None] = {}
    """Path -> whole new text, for actions that write."""
    message: str = ""
    """For `final`, for a review and for an unparsable reply: what it says."""
    call_id: str = ""
    edit: Edit | None = None
    args: dict[str, object] = {}
    """Other arguments: of reads, test runs and commands."""
    fault: str = ""
    """Reason that it cannot be performed in any state, told to the model; empty: it can."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of the files that the action would change."""
        return (*self.files, *((self.edit.path,) if self.edit else ()))

    @property
    def digest(self) -> str:
        """Hash of the proposal: sha256 over the paths and the texts, in order of the paths."""
        asked: object = (self.files, self.edit) if self.edit else self.files
        return sha256(msgspec.json.encode(asked, order="deterministic")).hexdigest()


class Ruling(msgspec.Struct, frozen=True):
    """Decision whether an action may be performed, and the reason if not."""

    admitted: bool
    reason: str = ""
    hit: Hit | None = None


def admits(action: Action, state: RunState, guard: WriteRules) -> Ruling:  # noqa: PLR0911  one case per action
    """Rule on *action* before it touches the disk: same state, same action, same answer."""
    if action.fault:
        return _refuse(action.fault)
    match action.name:
        case "final":
            return _rule_for(refuse_leave(state, action.name, action.args))
        case "edit_claim":
            return _rule_on_claim(str(action.args["test_id"]), str(action.args["edit_target"]), state, guard)
        case "replace_in_files" if state.gate_state.mode is not Gate.CODEMOD:
            return _refuse("replace_in_files is for codemod mode: call set_mode('codemod') first")
        case "escalate":
            return _rule_on_escalation(str(action.args["test_id"]), str(action.args["reason"]), state)
        case "set_mode":
            return _rule_on_mode(str(action.args["mode"]), state)
        case "submit_plan":
            return _rule_on_plan(parse_steps(action), state, guard)
        case name if name in WRITES:
            rulings = (rule_on_write(path, state, guard) for path in action.paths)
            return next((ruling for ruling in rulings if not ruling.admitted), YES)
    return YES


def rule_on_write(path: str, state: RunState, guard: WriteRules) -> Ruling:  # noqa: PLR0911  one line per reason
    """Rule on a change of the file *path*, whichever way it comes."""
    if hit := find_escape(path):
        return Ruling(admitted=False, reason=f"{path!r} leads outside the workspace", hit=hit)
    mode = state.gate_state.mode
    if mode is Gate.CODEMOD:
        return _refuse(f"{path} was not changed: {ONE_EDIT}")
    if mode is not Gate.OFF and guard.authorable(path):
        return _rule_for(explain_misnamed(path) or "")
    if mode is Gate.REFACTOR and guard.refactorable(path):
        return _rule_for(explain_misnamed(path) or "")
    if why := explain_refusal(path, guard):
        return _refuse(why)
    if mode is not Gate.STRICT or state.gate_state.find_covering(path):
        return YES
    return _refuse(_explain_unclaimed(path, state.gate_state))


def parse_steps(action: Action) -> tuple[PlanStep, ...]:
    """Return the steps of a plan that *action* submits."""
    return msgspec.convert(action.args["steps"], tuple[PlanStep, ...])


def adapt_to_shell(text: str) -> str:
    """Return *text* of the gate, for an agent that claims in its shell and has none of jumar's tools."""
    text = CLAIM_OF_FILE.sub(_format_shell_claim, text)
    return text.replace("edit_claim(test_id, edit_target)", "`jumar claim TEST_ID FILE` in the shell")


def _format_shell_claim(advice: re.Match[str]) -> str:
    path = advice[1][1:-1].replace("\\'", "'")  # a path that is admitted has no backslash of its own
    return f"run `jumar claim TEST_ID {shlex.quote(path)}` in the shell"


def _explain_unclaimed(path: str, book: GateState) -> str:
    """Return why an edit of *path* that no claim covers is refused, and what would admit it."""
    other = [f"{c.test_id} for {c.path}" for c in book.claims]
    red = [i for i in find_red_ids(book.newest) if i not in book.ended]
    if other:
        named = format_ids(tuple(other))
        return f"no claim covers {path}: open is {named}; claim it too: call edit_claim(test_id, {path!r})"
    if red:
        named = format_ids(tuple(red))
        return f"no red test was claimed for {path}: call edit_claim(test_id, {path!r}) first; red is {named}"
    return (
        f"no test asks for an edit of {path}: none is red that an edit could answer; "
        "write a failing test first, in a new test file and nothing else in that turn"
    )


def _rule_on_claim(test_id: str, target: str, state: RunState, guard: WriteRules) -> Ruling:  # noqa: PLR0911  as in _plan
    book = state.gate_state
    if book.mode is not Gate.STRICT:
        return _refuse(f"the gate is {book.mode}: edits need no claims now")
    if hit := find_escape(target):
        return Ruling(admitted=False, reason=f"{target!r} leads outside the workspace", hit=hit)
    if guard.authorable(target):
        return _refuse(f"{target} is a test file, which needs no claim: claim the file of the code under test")
    if why := explain_refusal(target, guard):
        return _refuse(why)
    run = book.newest.get(test_id)
    if run is None and test_id not in state.expected:
        near = tuple(i for i in state.expected if i.endswith(f"::{test_id}")) or find_red_ids(book.newest)
        return _refuse(f"there is no test {test_id!r}; there is {format_ids(near) or 'none that is red'}")
    if why := explain_not_red(run, test_id):
        return _refuse(why)
    if test_id in book.ended:
        return _refuse(f"two edits for {test_id} did not turn it green: claim another test first")
    if run is not None and not can_provide(target, run.absent):
        return _refuse(f"{test_id} misses {run.absent!r}, which {target} does not provide: claim the file that will")
    return YES


def _rule_on_escalation(test_id: str, reason: str, state: RunState) -> Ruling:
    """Admit an escalation of any test that the run knows, red or green: a person decides who is right."""
    if test_id not in state.gate_state.newest and test_id not in state.expected:
        near = tuple(i for i in state.expected if test_id and test_id in i) or find_red_ids(state.gate_state.newest)
        there = format_ids(near or state.expected) or "none"
        return _refuse(f"there is no test {test_id!r} in this run; there is {there}: name the one that contradicts")
    if not reason.strip():
        return _refuse(f"say in `reason` what {test_id} contradicts: the instruction, or which other test, and how")
    return YES


def _rule_on_mode(mode: str, state: RunState) -> Ruling:  # noqa: PLR0911  one line per reason
    book, switches = state.gate_state, state.run.settings.switches
    if mode not in (Gate.STRICT, Gate.REFACTOR, Gate.CODEMOD):
        there = "strict and refactor" if state.run.agent == HOST else "strict, refactor and codemod"
        return _refuse(f"there is no mode {mode[:60]!r}; there are {there}")
    if mode == book.mode:
        return _refuse(f"the mode is {mode} already")
    if book.mode is Gate.OFF:
        return _refuse("the gate is off in this run: there is no mode to set")
    if mode == Gate.REFACTOR and not switches.allow_refactor:
        return _refuse("refactor mode is the person's switch, and it is off: pass --allow-refactor")
    if book.turn:
        return _refuse("edits of this turn wait for their verdict: set the mode in a turn of its own")
    if mode == Gate.CODEMOD:
        return _rule_for(explain_no_codemod(state))
    return _rule_for(refuse_leave(state, "set_mode", {"mode": mode}))


def _rule_on_plan(steps: tuple[PlanStep, ...], state: RunState, guard: WriteRules) -> Ruling:  # noqa: PLR0911  one line per reason
    """Rule on a plan as a whole. A step that names a test which its file does not have will never be red."""
    homes = {i: i.partition("::")[0] for i in state.expected} | {i: r.file for i, r in state.gate_state.newest.items()}
    files = frozenset(homes.values())
    if not steps:
        return _refuse("a plan needs at least one step")
    for number, step in enumerate(steps, 1):
        path = step.test_file_path
        if not step.title.strip():
            return _refuse(f"step {number} has no title")
        if path and (find_escape(path) or not (path in files or guard.authorable(path) or guard.protected(path))):
            return _refuse(f"step {number}: {path!r} is no test file; give the file its test stands in, or will")
        if step.test_id and path in files and homes.get(step.test_id) != path:
            return _refuse(f"step {number}: {path} has no test {step.test_id!r}; a new test goes into a new test file")
        if path and not step.test_id:
            return _refuse(f"step {number} names {path} and no test_id: name the test")
        if not step.test_id and state.gate_state.mode is Gate.STRICT and not state.run.settings.switches.allow_refactor:
            return _refuse(f"step {number} ({step.title!r}) has no test: give test_id and test_file_path")
    return YES


YES = Ruling(admitted=True)


def _refuse(reason: str) -> Ruling:
    return Ruling(admitted=False, reason=reason)


def _rule_for(reason: str) -> Ruling:
    """Return a refusal for *reason*; empty: the action is admitted."""
    return _refuse(reason) if reason else YES
