"""Rules on one tool call of a host with the standard library alone; whatever is not understood is blocked.

The contract is that of Claude Code's hooks (code.claude.com/docs/en/hooks): one JSON object on standard input, one on
standard output. What has to be judged by running tests or comparing trees is handed to `jumar.hooks.full_rule`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import partial

from jumar.child.hook import published_state
from jumar.child.hook.published_state import HookRefusal

Answer = dict[str, object] | None
Full = Callable[[str, bytes, str, float], Answer]

PRE, POST, FAILED, STOP = "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop"
PROMPT, BEGIN = "UserPromptSubmit", "SessionStart"
SUBAGENT_STOP = "SubagentStop"
STOPS = (STOP, SUBAGENT_STOP)
EVENTS = (PRE, POST, FAILED, STOP, SUBAGENT_STOP, PROMPT, BEGIN)

EDITS: dict[str, tuple[str, dict[str, type]]] = {
    "Edit": ("file_path", {"old_string": str, "new_string": str}),
    "MultiEdit": ("file_path", {"edits": list}),
    "Write": ("file_path", {"content": str}),
    "NotebookEdit": ("notebook_path", {"new_source": str}),
}
"""Tool -> the field that names its file, and the other fields it must have."""

SHELLS = frozenset({"Bash", "PowerShell", "Monitor"})
"""Tools that run a command."""

READERS = frozenset({
    "Read", "Glob", "Grep", "LS", "NotebookRead", "WebFetch", "WebSearch", "ToolSearch", "LSP",
    "ListMcpResourcesTool", "ReadMcpResourceTool", "TodoWrite", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate",
    "TaskOutput", "TaskStop", "BashOutput", "KillShell", "KillBash", "AskUserQuestion", "EnterPlanMode",
    "ExitPlanMode", "Skill", "SlashCommand", "Task", "Agent", "SendMessage", "StructuredOutput",
})  # fmt: skip
"""Tools that change no file themselves. A subagent's own calls come to the hook one by one."""

PATIENCE_SECONDS = 570.0

PARSER = [sys.executable, "-I", "-m", "jumar.commands.parser"]
"""Tells why the line on its standard input must not be run; no output: it may."""

INTRODUCTION = (
    "jumar gates edits here: a file that is not a test may be edited only after `jumar claim TEST_ID FILE` was "
    "admitted in the shell, for that very file and a test that is red because of the code. Tests that came with the "
    "repository are read-only; write a new test file first where no test is red. When you stop, all claimed tests are "
    "run once: what leaves them red, or turns a green test red, goes back byte for byte. Changes by other ways (shell "
    "commands, scripts) without a claim go back, too. Where a test contradicts the task or another test, run "
    "`jumar escalate TEST_ID REASON` in the shell: that ends the work, and the person decides."
)

REFACTOR_INTRODUCTION = (
    "jumar gates edits here in refactor mode: edits need no claims. Tests that came with the repository are read-only. "
    "When you stop, all tests (and the command of [gate] verify, where one is set) are run once: while something is "
    "red, you are told what, and the edits stay; after the third time in a row all of them go back byte for byte. "
    "Where a test contradicts the task or another test, run `jumar escalate TEST_ID REASON` in the shell: that ends "
    "the work, and the person decides."
)


class Deferred(Exception):  # noqa: N818  it is no error
    """Raised when the small file cannot tell and the full rule must."""


def main(arguments: list[str]) -> int:
    """Answer the event that *arguments* name, within the seconds and under the gate that may follow; exit status."""
    event, raw = (arguments[0] if arguments else ""), b""
    try:
        seconds = float(arguments[1]) if len(arguments) > 1 else PATIENCE_SECONDS
        raw = sys.stdin.buffer.read()
        project = os.environ.get("CLAUDE_PROJECT_DIR", "")
        ask = partial(ask_full_rule, arguments[2:3])
        begins = event == BEGIN
        answer = introduce(raw, project, *arguments[2:3]) if begins else answer_event(event, raw, project, seconds, ask)
    except HookRefusal as why:
        answer = format_refusal(event, str(why), raw)
    if answer is None:
        return 0
    if event not in EVENTS:
        sys.stderr.write(f"jumar: {answer['reason']}\n")
        return 2
    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()
    return 0


def answer_event(event: str, raw: bytes, project: str, seconds: float, ask: Full) -> Answer:
    """Return the answer to the host for the *event* that *raw* describes; None: nothing speaks against it.

    Where the published file does not tell, *ask* does: the full rule.

    Raises:
        HookRefusal: with the reason, if it is not let through or was not understood.
    """
    payload = read(event, raw)
    if event in (PRE, POST, FAILED) and payload["tool_name"] in READERS:
        return None
    root = _find_root(payload, project)
    if event == PRE:
        try:
            rule(payload, root, seconds)
        except (Deferred, published_state.Stale):
            return ask(event, raw, root, seconds)
        return None
    return ask(event, raw, root, seconds)


def introduce(raw: bytes, project: str, gate: str = "") -> Answer:
    """Return the answer to the beginning of a conversation, in *raw*: the rule under *gate*, or of the newest run.

    Raises:
        HookRefusal: if it was not understood.
    """
    mode = gate or published_state.read_mode(_find_root(read(BEGIN, raw), project))
    told = REFACTOR_INTRODUCTION if mode == "refactor" else INTRODUCTION
    return {"hookSpecificOutput": {"hookEventName": BEGIN, "additionalContext": told}}


def _find_root(payload: dict[str, object], project: str) -> str:
    """Return the root of the repository that the host works in; *project* is its own word for it, if it says any."""
    root: str = (
        published_state.find_root(project) if project else published_state.find_session_root(str(payload["cwd"]))
    )
    return root


def format_refusal(event: str, why: str, raw: bytes = b"") -> dict[str, object]:
    """Return the answer to *event*, sent as *raw*, that blocks, or says as loudly as the event allows, *why*."""
    if event == PRE:
        decision = {"permissionDecision": "deny", "permissionDecisionReason": why}
        return {"hookSpecificOutput": {"hookEventName": PRE, **decision}}
    if event == FAILED:
        return {"hookSpecificOutput": {"hookEventName": FAILED, "additionalContext": why}}
    if event == BEGIN or (event in STOPS and is_repeated_stop(raw)):
        return {"systemMessage": f"jumar: {why}"}
    return {"decision": "block", "reason": why}


def is_repeated_stop(raw: bytes) -> bool:
    """Return whether the stop event in *raw* says that the host goes on already because a stop was blocked."""
    try:
        payload = json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return isinstance(payload, dict) and payload.get("stop_hook_active") is True


def read(event: str, raw: bytes) -> dict[str, object]:
    """Return the event in *raw*, with the fields that its kind must have.

    Raises:
        HookRefusal: if it is no such event.
    """
    if event not in EVENTS:
        raise HookRefusal(f"{event!r} is no event that jumar knows; it knows {', '.join(EVENTS)}")
    try:
        payload = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as fault:
        raise HookRefusal(f"what the host sent is not JSON: {fault}") from None
    if not isinstance(payload, dict):
        raise HookRefusal("what the host sent is no JSON object")
    wanted: dict[str, type] = {"session_id": str, "cwd": str, "hook_event_name": str}
    if event in (PRE, POST, FAILED):
        wanted |= {"tool_name": str, "tool_input": dict}
    published_state.check_fields(payload, wanted, "the event")
    if payload["hook_event_name"] != event:
        raise HookRefusal(f"the host sent {payload['hook_event_name']!r} to the hook for {event}")
    return payload


def rule(payload: dict[str, object], root: str, seconds: float) -> None:
    """Rule on a tool call before it is made, after waiting at most *seconds* for a hook that is judging.

    Raises:
        HookRefusal: if it must not be made.
        Deferred: if only the full rule can tell.
    """
    tool, given = str(payload["tool_name"]), payload["tool_input"]
    assert isinstance(given, dict)  # noqa: S101  `read` saw to it
    if tool in EDITS:
        path = find_edited_file(tool, given, root)
        rule_on_edit(path, published_state.read_state(root, seconds))
        return
    if tool in SHELLS:
        published_state.check_fields(given, {"command": str}, tool)
        rule_on_command(str(given["command"]), seconds)
    elif not tool.startswith("mcp__") and (named := _find_file_argument(given)):
        raise HookRefusal(
            f"jumar does not know the tool {tool} and it names a file ({named}); use Edit, Write or NotebookEdit"
        )
    # What it writes is found afterwards, by comparing trees: for that there must be a session.
    published_state.read_state(root, seconds)


def find_edited_file(tool: str, given: dict[str, object], root: str) -> str:
    """Return the file that an edit tool is about to change, relative to *root*.

    Raises:
        HookRefusal: if the call is malformed, or the path is not plainly that of a file inside.
    """
    field, others = EDITS[tool]
    wanted: dict[str, type] = {field: str, **others}
    if tool == "NotebookEdit" and given.get("edit_mode") == "delete":
        del wanted["new_source"]
    published_state.check_fields(given, wanted, tool)
    if tool == "MultiEdit":
        edits = given["edits"]
        if not edits or not isinstance(edits, list):
            raise HookRefusal("MultiEdit came without edits")
        for edit in edits:
            if not isinstance(edit, dict):
                raise HookRefusal("an edit of MultiEdit is no object")
            published_state.check_fields(edit, EDITS["Edit"][1], "an edit of MultiEdit")
    path: str = published_state.resolve_inside(str(given[field]), root)
    return path


def rule_on_edit(path: str, state: dict[str, object]) -> None:
    """Rule on an edit of *path* by what the session has published.

    Raises:
        HookRefusal: if it must not be made.
        Deferred: if only the full rule can tell.
    """
    if ended := state.get("ended"):
        raise HookRefusal(str(ended))
    claims, tests, authored = state["claims"], state["tests"], state["authored"]
    assert isinstance(claims, dict) and isinstance(tests, list) and isinstance(authored, list)  # noqa: S101, PT018
    if path in tests:
        raise HookRefusal(
            f"{path} is read-only: tests and configuration that came with the repository stay as they are"
        )
    if path in claims or path in authored:
        return
    # Whether a claim could cover it (git may ignore it), and which test is red, the small file does not tell.
    raise Deferred


def ask_full_rule(gate: list[str], event: str, raw: bytes, root: str, seconds: float) -> Answer:
    """Ask the full rule, in a process of its own, about the event in *raw* under *gate*, where one was named.

    Raises:
        HookRefusal: if it fails, says what is no answer, or takes longer than *seconds*.
    """
    program = [sys.executable, "-I", "-m", "jumar.hooks.full_rule", event, root, *gate]
    said, status = published_state.run(program, raw, seconds)
    try:
        answer = json.loads(said) if said else None
    except ValueError:
        answer = False
    if status != 0 or not (answer is None or isinstance(answer, dict)):
        raise HookRefusal(f"jumar's full rule failed on this {event} (status {status}); `jumar doctor` may say why")
    return answer


def _find_file_argument(given: dict[str, object]) -> str:
    """Return the argument by which an unknown tool seems to write; empty: there is none."""
    telling = ("path", "file", "content", "new_string", "new_source", "patch", "diff", "edits")
    return next((name for name in given if any(word in name.lower() for word in telling)), "")


def rule_on_command(line: str, seconds: float) -> None:
    """Rule on a *line* for a shell, within *seconds*.

    Raises:
        HookRefusal: if it must not be run, or cannot be told.
    """
    from jumar.child.hook import command_prefilter as rules  # noqa: PLC0415  most events name no command

    if not rules.needs_parser(line):
        return
    why, status = published_state.run(PARSER, line.encode("utf-8", "replace"), seconds)
    if status != 0 or why:
        failed = "jumar's rules for commands failed on this; `jumar doctor` may say why"
        raise HookRefusal(why.decode("utf-8", "replace") or failed)
