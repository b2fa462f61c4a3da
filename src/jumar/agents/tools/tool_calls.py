"""Turns tool calls into actions. A malformed call becomes an action with a fault that the model can mend."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from hashlib import sha256

from jumar.agents.tools.catalogue import ALL, Argument, ToolSpec
from jumar.core.gate.admission import Action, Edit
from jumar.core.gate.write_rules import PATH_BYTES, find_escape
from jumar.core.state.reply import Reply, ToolCall

MALFORMED = "_malformed"
"""The one argument of a call whose arguments are no JSON object: their text."""

EXCERPT = 60
"""Characters of a model's own words that are repeated to it."""

_NUMBER = re.compile(r"\s*([0-9]{1,18})(?:\.0)?\s*", re.ASCII)
"""A whole number as text. Longer ones are no line of any file, and neither JSON nor `int` takes them at any length."""

_LARGEST = 10**18 - 1
"""Largest whole number of a call."""


def parse_action(call: ToolCall, offers: Sequence[ToolSpec]) -> Action:
    """Parse *call* into an action of *offers*, or into one with a fault if the call or an argument is wrong."""
    if not (is_encodable(call.name) and is_encodable(call.id)):
        return build_faulty_action(call, "the name or the id of the call holds characters that are not valid Unicode")
    offer = next((o for o in offers if o.name == call.name), None)
    if offer is None:
        if any(o.name == call.name for o in ALL):
            person = (
                ": its modes are the person's switches (--allow-refactor, --allow-codemod)"
                if call.name in ("set_mode", "replace_in_files")
                else ""
            )
            return build_faulty_action(call, f"{call.name} is switched off in this run{person}")
        names = ", ".join(o.name for o in offers)
        return build_faulty_action(call, f"there is no tool {call.name[:EXCERPT]!r}; there are {names}")
    if MALFORMED in call.arguments:
        needed = ", ".join(a.name for a in offer.arguments)
        return build_faulty_action(call, f"the arguments of {call.name} are no JSON object; give one with {needed}")
    values: dict[str, object] = {}
    for argument in offer.arguments:
        value, why = _read_value(call, argument)
        if why:
            return build_faulty_action(call, why)
        values[argument.name] = value
    asked = _build_action(call, values)
    return build_faulty_action(call, asked) if isinstance(asked, str) else asked


def build_null_action(reason: str, reply: Reply, place: int = 0) -> Action:
    """Return the action for a *reply*, or for the part *place* of it, that cannot be performed."""
    # Stalling is told by what was done: what differs must not look alike.
    return Action("none", args={"asked": _compute_digest((reply.content, place))}, fault=reason)


def is_encodable(text: str) -> bool:
    """Return whether *text* can be written as UTF-8 (JSON may carry lone surrogates)."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def build_faulty_action(call: ToolCall, why: str) -> Action:
    """Return the action for a *call* that cannot be performed.

    One of an unknown tool has no name of its own.
    """
    name = call.name if any(offer.name == call.name for offer in ALL) else "none"
    own = call.id if is_encodable(call.id) else ""
    return Action(name, call_id=own, args={"asked": _compute_digest((call.name, call.arguments))}, fault=why)


def _compute_digest(asked: object) -> str:
    try:
        text = json.dumps(asked, sort_keys=True)  # escapes what is not valid Unicode
    except (TypeError, ValueError, RecursionError):  # too deep, too long a number: what no provider may send
        text = "unspeakable"
    return sha256(text.encode()).hexdigest()[:16]


def _read_value(call: ToolCall, argument: Argument) -> tuple[object, str]:
    """Return the value of *argument* in *call*, or why there is none."""
    given = call.arguments.get(argument.name)
    if given is None and not argument.required:
        return argument.default, ""
    if argument.name not in call.arguments:
        others = ", ".join(sorted(filter(is_encodable, call.arguments)))[:EXCERPT]
        instead = f", not {others}" if others else ""
        return None, f"{call.name} needs `{argument.name}` ({argument.kind}){instead}"
    value = _convert(given, argument.kind)
    if value is None and argument.kind == "integer" and isinstance(given, int) and not isinstance(given, bool):
        return None, f"`{argument.name}` of {call.name} is out of range: at most {_LARGEST}"
    if value is None:
        steps = " of steps: a title, and a test_id and a test_file_path where there are, all strings"
        kind = f"{argument.schema['type']}{steps if argument.kind == 'steps' else ''}"
        return None, f"`{argument.name}` of {call.name} must be of type {kind}"
    if not is_encodable(str(value)):
        return None, f"`{argument.name}` of {call.name} holds characters that are not valid Unicode"
    return value, ""


def _convert(given: object, kind: str) -> object | None:  # noqa: PLR0911  one line per kind reads best
    """Return *given* as a value of *kind* if that loses no meaning; else None."""
    match kind, given:
        case "string", str():
            return given
        case "integer", int() if not isinstance(given, bool) and abs(given) <= _LARGEST:
            return given
        case "integer", (float() | str()) if number := _NUMBER.fullmatch(str(given)):
            return int(number[1])
        case "steps", list() | tuple() if all(isinstance(step, dict) for step in given):
            return _read_steps(given)
        case "array", str():
            return (given,)
        case "array", list() | tuple() if all(isinstance(item, str) for item in given):
            return tuple(given)
    return None


def _read_steps(given: Sequence[dict[str, object]]) -> tuple[dict[str, str], ...] | None:
    """Return the steps of a plan as `core.events.PlanStep` has them; None if one does not fit its schema."""
    known = {"title", "test_id", "test_file_path"}
    steps = [{key: value for key, value in step.items() if value is not None} for step in given]
    right = all("title" in s and set(s) <= known and all(isinstance(v, str) for v in s.values()) for s in steps)
    return (
        tuple({k: _normalise_path(str(v)) if k == "test_file_path" else str(v) for k, v in s.items()} for s in steps)
        if right
        else None
    )


def _build_action(call: ToolCall, values: dict[str, object]) -> Action | str:
    """Return the action of a call with valid *values*, or what is missing in them together."""
    path = _normalise_path(str(values.get("path", "")))
    match call.name:
        case "write_file":
            return Action(call.name, files={path: str(values["text"])}, call_id=call.id)
        case "delete_file":
            return Action(call.name, files={path: None}, call_id=call.id)
        case "edit_file":
            edit = Edit(path, str(values["old"]), str(values["new"]))
            return _explain_unedited(edit) or Action(call.name, call_id=call.id, edit=edit)
        case "final":
            return Action(call.name, message=str(values["message"]), call_id=call.id)
    if "path" in values:
        values = values | {"path": path}
    if "edit_target" in values:
        return Action(
            call.name, call_id=call.id, args=values | {"edit_target": _normalise_path(str(values["edit_target"]))}
        )
    return _explain_unread(path) or Action(call.name, call_id=call.id, args=values)


def _explain_unedited(edit: Edit) -> str:
    """Return why *edit* fits no file at all; empty: it may fit one."""
    if not edit.old:
        return "`old` is empty: give the text that is to be replaced, or write the whole file with write_file"
    return "`old` and `new` are the same: nothing would change" if edit.old == edit.new else ""


def _explain_unread(path: str) -> str:
    """Return why nothing below *path* can be read in any tree; empty: something may."""
    if find_escape(path):
        return f"{path[:EXCERPT]!r} leads outside the workspace; paths are relative to its root"
    return f"{path[:EXCERPT]}... is too long for the name of a file" if len(path.encode()) > PATH_BYTES else ""


def _normalise_path(path: str) -> str:
    """Return *path* in its shortest form: `./a.py` is `a.py`, and `.` is everything."""
    path = re.sub(r"\A(?:\./+)+", "", path)
    return "" if path == "." else path


def select_ids(asked: Iterable[str], expected: Sequence[str]) -> tuple[str, ...] | str:
    """Return the *expected* ids that are *asked* for, by id, file or folder; or why there are none."""
    found: list[str] = []
    for wanted in dict.fromkeys(asked):
        below = [i for i in expected if i == wanted or i.startswith((f"{wanted}::", f"{wanted}[", f"{wanted}/"))]
        if not below:
            return f"there is no test {wanted[:EXCERPT]!r} among those of this task"
        found += below
    return tuple(dict.fromkeys(found))


def parse_actions(calls: Iterable[ToolCall], internal: Collection[str] = ()) -> tuple[Action, ...]:
    """Return one action a call, in order, for agents without tools: from scripts and the search for repairs.

    *internal* are the names of endings that only our own models may ask for: no provider's and no script's.
    """
    return tuple(_build_scripted(call, internal) for call in calls)


def build_unparsable_action(reason: str) -> Action:
    """Return the action for a whole-file reply that cannot be performed."""
    return Action("unparsable", message=reason)


def _build_scripted(call: ToolCall, internal: Collection[str]) -> Action:
    wanted = {"write_file": "path", "delete_file": "path", "final": "message"} | dict.fromkeys(internal, "message")
    named = wanted.get(call.name, "")
    word = call.arguments.get(named, "")
    if not isinstance(word, str) or not is_encodable(word + call.id):
        return build_unparsable_action(
            f"`{named or 'id'}` of {call.name[:EXCERPT]!r} must be a string of valid Unicode"
        )
    match call.name:
        case "write_file":
            return _build_writing({word: call.arguments.get("text")}, call)
        case "write_files":
            files = call.arguments.get("files")
            return (
                _build_writing(files, call)
                if isinstance(files, dict)
                else build_unparsable_action(f"{call.name} needs `files`")
            )
        case "delete_file":
            return Action("delete_file", files={word: None}, call_id=call.id)
    names = "write_file, write_files, delete_file and final"
    unknown = build_unparsable_action(f"there is no tool {call.name[:EXCERPT]!r}; there are {names}")
    return Action(call.name, message=word, call_id=call.id) if named else unknown


def _build_writing(files: dict[str, object], call: ToolCall) -> Action:
    texts: dict[str, str | None] = {}
    for path, text in files.items():
        if not isinstance(text, str):
            return build_unparsable_action(f"{call.name}: the text of {path[:EXCERPT]!r} must be a string")
        if not is_encodable(path) or not is_encodable(text):
            return build_unparsable_action(
                f"{call.name}: {path[:EXCERPT]!r} holds characters that are not valid Unicode"
            )
        texts[path] = text
    return (
        Action("write_files", files=texts, call_id=call.id)
        if texts
        else build_unparsable_action(f"{call.name} names no file")
    )
