"""`jumar hook`: answers a host's events, and installs itself in Claude Code's settings, after showing the change."""

from __future__ import annotations

import difflib
import json
import shlex
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from jumar.child.hook import hook_fast
from jumar.child.hook.published_state import HookRefusal, find_root
from jumar.child.hook.ruling import BEGIN, EVENTS, FAILED, POST, PRE, PROMPT, STOP, STOPS, SUBAGENT_STOP
from jumar.cli.console.output import Console
from jumar.cli.parameters.command_options import add_output_options
from jumar.core.state.test_policy import Gate
from jumar.errors import BadInput
from jumar.workspace.files.disk_faults import explain_disk_faults, refuse_unwritable
from jumar.workspace.files.safe_paths import make_temporary_name

SECONDS = {PRE: 60, POST: 180, FAILED: 180, STOP: 900, SUBAGENT_STOP: 900, PROMPT: 900, BEGIN: 30}
"""Timeout of the host for each event; most of it is for the tests of a whole turn, or of the beginning."""

HELP = {
    PRE: "Before a tool is used: may it write there?",
    POST: "After a tool was used: unclaimed changes go back.",
    FAILED: "The same of a tool that failed.",
    STOP: "The agent wants to stop: its edits are judged.",
    SUBAGENT_STOP: "The same of an agent that it started.",
    PROMPT: "A person wrote: a turn begins.",
    BEGIN: "A session begins.",
}
"""Line of help for each event; Claude Code asks, not a person."""

CLAUDE = ".claude"
"""Folder of Claude Code in a repository."""

MARGIN_SECONDS = 10
"""The hook itself ends so much earlier: a host lets through what takes longer."""

MATCHED = (PRE, POST, FAILED)
"""Events of tools. They are asked about every tool: one that nobody knew when this was written may write, too."""

CLOSED = (PRE, POST, FAILED, *STOPS)
"""Events that a hook which does not even start must block."""

Settings = dict[str, Any]


class Hooks(click.Group):
    """Command group that has the events of a host as commands, beside those for people."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command called *cmd_name*."""
        if cmd_name in EVENTS:
            example = f"Example: jumar hook {cmd_name} < event.json"
            answer = partial(hook_fast.answer, [cmd_name])
            return click.Command(cmd_name, callback=answer, help=HELP[cmd_name], epilog=example)
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, those for people first."""
        return [*super().list_commands(ctx), *EVENTS]


@click.group(cls=Hooks, epilog="Example: jumar hook install")
def hook() -> None:
    """The gate as hooks of Claude Code: an event as JSON on standard input, the answer on standard output."""


@hook.command(epilog="Example: jumar hook install . --local")
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path), default=".")
@click.option("--local", is_flag=True, help="Into settings.local.json, which is not shared with others.")
@click.option(
    "--gate", type=click.Choice([Gate.STRICT.value, Gate.REFACTOR.value]), default=Gate.STRICT.value, show_default=True,
    help="refactor: no claims, but what a turn leaves must pass all tests, and [gate] verify.",
)  # fmt: skip
@click.option("--uninstall", is_flag=True, help="Take the hooks out again; all else stays.")
@click.option("-y", "--yes", is_flag=True, help="Write without asking.")
@add_output_options
def install(folder: Path, *, local: bool, gate: str, uninstall: bool, yes: bool, **speech: bool) -> int:
    """Write the hooks into .claude/settings.json of the repository in DIR. What is there stays; the change is shown.

    The commands hold paths of this machine: use --local where the settings are shared.
    """
    voice = Console(json=speech["as_json"], quiet=speech["quiet"])
    file = find_settings_file(folder, local=local)
    try:
        old = file.read_text("utf-8") if file.exists() else ""
    except UnicodeDecodeError as fault:
        raise BadInput(f"{file} is not UTF-8 (byte {fault.start}); mend it first") from None
    new = edit_settings(old, str(file), None if uninstall else Gate(gate))
    before, after = (text.splitlines(keepends=True) for text in (old, new))
    name = f"{file.parent.name}/{file.name}"
    diff = "".join(difflib.unified_diff(before, after, f"a/{name}", f"b/{name}"))
    if diff:
        voice.say(diff.rstrip("\n"))
    agreed = bool(diff) and (yes or _ask_person(file))
    if agreed:
        mend = "make it writable, or name another repository"
        with explain_disk_faults(f"cannot write {file}"), refuse_unwritable(f"cannot write {file}", mend):
            _write(file, new)
    left = _describe_others(folder, local=local) if uninstall else ""
    done = "wrote" if new else "removed"
    voice.say(f"{'nothing to change in' if not diff else done if agreed else 'left alone:'} {file}{left}")
    voice.print_result({"file": str(file), "changed": agreed, "diff": diff})
    return 0 if agreed or not diff else 1


def find_settings_file(folder: Path, *, local: bool) -> Path:
    """Return the path of Claude Code's settings for the repository around *folder*.

    Raises:
        BadInput: if *folder* is none.
    """
    try:
        root = Path(find_root(str(folder.absolute())))
    except HookRefusal as why:
        raise BadInput(str(why)) from None
    # Who keeps the file elsewhere and links to it means that file.
    return (root / CLAUDE / ("settings.local.json" if local else "settings.json")).resolve()


def _describe_others(folder: Path, *, local: bool) -> str:
    """Return a warning that the other settings of the repository around *folder* hold the hooks; empty: they do not."""
    other = find_settings_file(folder, local=not local)
    try:
        there = other.read_text("utf-8")
        hooked = edit_settings(there, str(other), None) != there
    except (OSError, UnicodeDecodeError, BadInput):  # nobody asked for that file
        return ""
    way = "without --local" if local else "with --local"
    return f"; {other} holds the hooks, too: do the same {way}" if hooked else ""


def edit_settings(text: str, where: str, gate: Gate | None) -> str:
    """Return the settings *text*, read from *where*, with jumar's hooks under *gate*, or without any (None).

    Raises:
        BadInput: if they are not such settings; nothing is to be written then.
    """
    settings = _parse_settings(text, where)
    hooks: dict[str, list[Any]] = settings.get("hooks", {})
    after: dict[str, list[Any]] = {}
    for event, groups in hooks.items():
        if gate and [group for group in groups if _has_ours(group)] == [build_hook_entry(event, gate)]:
            after[event] = groups
            continue
        kept = [rest for group in groups if (rest := _drop_ours(group))["hooks"] or not _has_ours(group)]
        if kept or not groups:
            after[event] = kept
    for event in EVENTS if gate else ():
        groups = after.setdefault(event, [])
        if (group := build_hook_entry(event, gate or Gate.STRICT)) not in groups:
            groups.append(group)
    if after == hooks:
        return text
    if after:
        settings["hooks"] = after
    else:
        settings.pop("hooks", None)
    return json.dumps(settings, indent=_detect_indent(text), ensure_ascii=False) + "\n" if settings else ""


def build_hook_entry(event: str, gate: Gate) -> dict[str, Any]:
    """Build the settings entry for *event* under *gate*: one line for a shell, which every version supports."""
    seconds = SECONDS.get(event, 0)
    words = [sys.executable, "-I", "-S", str(Path(hook_fast.__file__)), event, str(seconds - MARGIN_SECONDS)]
    words += [] if gate is Gate.STRICT else [gate.value]
    handler: dict[str, Any] = {"type": "command", "command": shlex.join(words), "timeout": seconds}
    if event in CLOSED:
        handler["onFailure"] = "block"
    return ({"matcher": "*"} if event in MATCHED else {}) | {"hooks": [handler]}


def _is_ours(handler: Any) -> bool:
    command = handler.get("command") if isinstance(handler, dict) else None
    return isinstance(command, str) and Path(hook_fast.__file__).name in command and "jumar" in command


def _has_ours(group: dict[str, Any]) -> bool:
    return any(map(_is_ours, group["hooks"]))


def _drop_ours(group: dict[str, Any]) -> dict[str, Any]:
    return group | {"hooks": [handler for handler in group["hooks"] if not _is_ours(handler)]}


def _parse_settings(text: str, where: str) -> Settings:
    """Return the object in *text*, after a check that its hooks have the form that the host wants."""
    if not text.strip():
        return {}
    try:
        settings = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise BadInput(f"{where} is not valid JSON: {fault}; mend it first") from None
    if not isinstance(settings, dict):
        raise BadInput(f"{where} is not the settings of Claude Code, which are a JSON object, {{...}}; mend it first")
    try:
        msgspec.convert(settings.get("hooks", {}), dict[str, list[_Group]])
    except msgspec.ValidationError as fault:
        raise BadInput(f"{where} has `hooks` that Claude Code does not know: {fault}; mend it first") from None
    return settings


class _Group(msgspec.Struct):
    """Shape that a group of hooks in the settings must have before one may be added."""

    hooks: list[dict[str, Any]]


def _detect_indent(text: str) -> int | str:
    inner = next((line for line in text.splitlines() if line[:1] in (" ", "\t")), "  ")
    blank = inner[: len(inner) - len(inner.lstrip())]
    return "\t" if blank.startswith("\t") else len(blank)


def _ask_person(file: Path) -> bool:
    if not sys.stdin.isatty():
        raise BadInput(f"nobody is here to agree that {file} is changed; pass --yes")
    return click.confirm(f"Write {file}?", default=True, err=True)


def _write(file: Path, text: str) -> None:
    """Replace *file* by one with *text*, whole or not at all; remove it, and its empty folder, if the text is empty."""
    if not text:
        file.unlink(missing_ok=True)
        if file.parent.name == CLAUDE:  # else it is where a link led
            with suppress(OSError):  # others keep something there
                file.parent.rmdir()
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(make_temporary_name())
    try:
        temporary.write_text(text, "utf-8")
        if file.exists():
            temporary.chmod(file.stat().st_mode & 0o777)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
