"""Performs one action of a model, after the gate has ruled. A refusal is a fact with a reason, and changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

from msgspec.structs import replace

from jumar.commands.parser import check_command
from jumar.core.gate.admission import WRITES, YES, Action, Ruling, admits, parse_steps
from jumar.core.gate.exact_edit import EditRefused, replace_once
from jumar.core.gate.write_rules import OUTSIDE, Hit, find_alike
from jumar.core.quoting import cut_middle
from jumar.core.state import events as ev
from jumar.core.state.claims import find_plan_warnings
from jumar.core.state.run_state import RunState
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.models.wire.redaction import clean, clean_json
from jumar.runtime import read_tools
from jumar.runtime.authored_tests import check_rewrite
from jumar.runtime.codemod import run_codemod
from jumar.runtime.dependencies import RunDependencies
from jumar.runtime.secret_writes import check_leaks
from jumar.workspace.workspace import OutsideWorkspace, Workspace

COMMAND_SECONDS = 60.0
"""For one command of a model's."""


def act(parts: RunDependencies, action: Action, state: RunState, *, last: bool) -> Sequence[ev.Event]:
    """Perform *action* if it is admitted, and return the events."""
    ruling = admits(action, state, parts.guard)
    if action.name in WRITES and not action.fault:
        return _write_ruled(parts, action, ruling, state, last=last)
    args = dict(action.args) | ({"message": action.message} if action.message else {})
    reason = ruling.reason or (action.message if action.name == "unparsable" else "")
    reason = reason or _explain_forbidden(action, state)
    taken = ev.ActionTaken(name=action.name, args=args, admitted=not reason, reason=reason, last=last)
    if reason:
        return (taken, *_build_guardrail(ruling))
    shown = _read_for(parts.workspace, action)
    return (taken, *build_gate_events(action, state)) if shown is None else (taken, _build_observation(action, shown))


def build_gate_events(action: Action, state: RunState) -> Sequence[ev.Event]:
    """Return the events of the gate for an admitted action."""
    match action.name:
        case "edit_claim":
            return (ev.EditClaim(test_id=str(action.args["test_id"]), edit_target=str(action.args["edit_target"])),)
        case "submit_plan":
            steps = parse_steps(action)
            said = "\n".join(find_plan_warnings(steps)) or f"{len(steps)} steps"
            told = {"ok": True, "output": cut_middle(said, read_tools.ROOM)}
            return (ev.Plan(steps=steps), ev.Observation(name=action.name, call_id=action.call_id, content=told))
        case "set_mode":  # what it must be judged for was judged before it was admitted
            return (ev.Mode(from_=state.gate_state.mode, to=Gate(str(action.args["mode"]))),)
    return ()


async def execute(parts: RunDependencies, action: Action, state: RunState, *, last: bool) -> Sequence[ev.Event]:
    """Run the command that *action* asks for, on a copy of the workspace's tree."""
    if state.gate_state.mode is Gate.CODEMOD or action.name == "replace_in_files":
        return await run_codemod(parts, action, state, last=last)
    if not state.run.settings.switches.model_may_run_commands and state.run.settings.switches.allow_codemod:
        return (
            build_cut_off_event(action, "run_command is for codemod mode: call set_mode('codemod') first", last=last),
        )
    if parts.commands is None:
        return (build_cut_off_event(action, "run_command is switched off in this run", last=last),)
    if reason := (ruling := check_command(str(action.args["command"]))).reason:
        return (build_cut_off_event(action, reason, last=last), *_build_guardrail(ruling))
    ran = await parts.commands.run(state.tree, str(action.args["command"]), COMMAND_SECONDS)
    content: dict[str, object] = {"exit": ran.exit, "output": cut_middle(ran.output, read_tools.ROOM)}
    taken = ev.ActionTaken(name=action.name, args=dict(action.args), admitted=True, last=last)
    return (taken, _build_observation(action, content))


def redact_event(event: ev.Event, secrets: tuple[str, ...]) -> ev.Event:
    """Return *event* without keys, which a file or test of the task may show."""
    if secrets and isinstance(event, ev.Observation):
        return replace(event, content=clean_json(event.content, secrets))
    if secrets and isinstance(event, ev.ActionTaken):
        return replace(event, args=clean_json(event.args, secrets), reason=clean(event.reason, secrets))
    if secrets and isinstance(event, ev.Codemod):
        return replace(event, **{n: clean(getattr(event, n), secrets) for n in ("command", "pattern", "replacement")})
    return event


def build_cut_off_event(action: Action, why: str, *, last: bool) -> ev.ActionTaken:
    """Return the event that *action* was not performed to its end."""
    return ev.ActionTaken(name=action.name, args=dict(action.args), admitted=False, reason=why, last=last)


def _build_observation(action: Action, content: dict[str, object]) -> ev.Observation:
    return ev.Observation(name=action.name, call_id=action.call_id, content=content)


def _read_for(workspace: Workspace, action: Action) -> dict[str, object] | None:
    """Return the result of a reading action; None if it is not one."""
    args, path = action.args, str(action.args.get("path", ""))
    match action.name:
        case "list_files":
            return read_tools.list_files(workspace.paths(), path)
        case "read_file":
            start, end = int(str(args["start"])), int(str(args["end"]))
            return read_tools.read_lines(workspace.files(lambda p: p == path), path, start, end)
        case "search":
            files = workspace.files(lambda p: read_tools.is_within(p, path))
            return read_tools.search_files(files, str(args["pattern"]), path)
    return None


def _explain_forbidden(action: Action, state: RunState) -> str:
    if action.name != "run_tests":
        return ""
    if not state.run.settings.switches.model_may_run_tests:
        return "run_tests is switched off in this run: the tests run by themselves when they are due"
    if state.run.test_policy is TestPolicy.NEVER:
        return "run_tests is refused under test policy never: nobody in this run sees a test result"
    waiting = state.coalesces and state.best is not None and state.tree != state.best.tree
    # One is for the end, or for the edits that wait for their verdict.
    cap, held = state.run.budget.test_runs, waiting or state.run.test_policy is TestPolicy.ON_FINAL
    return "no test run is left in the budget" if cap is not None and state.spend.test_runs + held >= cap else ""


def _write_ruled(
    parts: RunDependencies, action: Action, ruling: Ruling, state: RunState, *, last: bool
) -> Sequence[ev.Event]:
    workspace = parts.workspace
    files, reason = (action.files, ruling.reason) if ruling.reason else _resolve_texts(workspace, action)
    for path in () if reason else files:
        old = workspace.file(path) or b""
        reason = reason or check_rewrite(parts, path, old, (files[path] or "").encode(), state)
    if not reason:
        ruling = check_leaks(parts, files, state.tree)
        reason = ruling.reason
    args: dict[str, object] = {"message": action.message} if action.message else {}
    # An edit that cannot be resolved is named by its path; its texts are in the reply.
    args |= (
        {"files": {p: _hash_text(text) for p, text in files.items()}}
        if files
        else {"files": dict.fromkeys(action.paths)}
    )
    args |= {"digest": action.digest}
    writes: list[ev.Event] = []
    if not reason:
        writes, ruling = _write_all(parts, files, state)
        reason = ruling.reason or ("" if writes else _explain_nothing_written(action))
    taken = ev.ActionTaken(name=action.name, args=args, admitted=not reason, reason=reason, last=last)
    return (taken, *writes, *_build_guardrail(ruling))


def _build_guardrail(ruling: Ruling) -> Sequence[ev.Event]:
    return (ev.Guardrail(rule=ruling.hit.rule, what=ruling.hit.what),) if ruling.hit else ()


def _explain_nothing_written(action: Action) -> str:
    """Return why a write that was performed changed nothing."""
    match action.name:
        case "delete_file":
            return f"there is no file {next(iter(action.files))!r} to delete"
        case "write_file":
            return f"{next(iter(action.files))} holds exactly this text already"
    return "the reply changes nothing"


def _resolve_texts(workspace: Workspace, action: Action) -> tuple[dict[str, str | None], str]:
    """Return the whole new texts that *action* asks for, or why an edit has none."""
    edit = action.edit
    if edit is None:
        return action.files, ""
    data = workspace.file(edit.path)
    if data is None:
        return {}, f"there is no file {edit.path!r}; list_files shows what there is, write_file makes a new one"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {}, f"{edit.path} is no UTF-8 text"
    old, new = edit.old, edit.new
    if "\r\n" in text and "\r" not in old and ("\n" not in old or old not in text):
        # Models write plain line ends whatever the file has.
        old, new = old.replace("\n", "\r\n"), new.replace("\r\n", "\n").replace("\n", "\r\n")
    done = replace_once(text, old, new)
    return ({}, done.reason) if isinstance(done, EditRefused) else ({edit.path: done}, "")


def _write_all(
    parts: RunDependencies, files: Mapping[str, str | None], state: RunState
) -> tuple[list[ev.Event], Ruling]:
    """Write all the *files*, or none of them and the reason why."""
    events: list[ev.Event] = []
    workspace, mode = parts.workspace, state.gate_state.mode
    tree = workspace.tree
    for path, text in files.items():
        if text is not None and path not in workspace.paths() and (other := find_alike(path, workspace.paths())):
            workspace.take_back(tree)
            return [], Ruling(
                admitted=False, reason=f"{path!r} could be taken for {other!r}, which is there: name it so"
            )
        try:
            before, after = workspace.write(path, None if text is None else text.encode())
        except ValueError as refused:  # no path of a file: a folder, a link, below a file, in a cache
            workspace.take_back(tree)
            hit = Hit(OUTSIDE, path) if isinstance(refused, OutsideWorkspace) else None
            return [], Ruling(admitted=False, reason=str(refused), hit=hit)
        if before != after:
            claimed = state.gate_state.find_covering(path) if mode is Gate.STRICT else ()
            test = mode is not Gate.OFF and parts.guard.authorable(path)
            events.append(
                ev.Write(path=path, before=before, after=after, tree=workspace.tree, claimed=claimed, test=test)
            )
    return events, YES


def _hash_text(text: str | None) -> str:
    return "" if text is None else sha256(text.encode()).hexdigest()
