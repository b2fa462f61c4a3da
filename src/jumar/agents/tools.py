"""From tool calls to actions. A call that makes no sense becomes an action with a fault that the model can mend."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256

from jumar.agents.toolbox import ALL, Argument, Offer
from jumar.core.gate import Action, Edit
from jumar.core.guard import PATH_BYTES, escape
from jumar.core.reply import Reply, ToolCall

MALFORMED = "_malformed"
"""The one argument of a call whose arguments are no JSON object: their text."""

EXCERPT = 60
"""Characters of a model's own words that are repeated to it."""


def action(call: ToolCall, offers: Sequence[Offer]) -> Action:
    """What *call* asks for, if it is one of *offers* and its arguments are right; else an action with a fault."""
    offer = next((o for o in offers if o.name == call.name), None)
    if offer is None:
        if any(o.name == call.name for o in ALL):
            return faulty(call, f"{call.name} is switched off in this run")
        names = ", ".join(o.name for o in offers)
        return faulty(call, f"there is no tool {call.name[:EXCERPT]!r}; there are {names}")
    if MALFORMED in call.arguments:
        needed = ", ".join(a.name for a in offer.arguments)
        return faulty(call, f"the arguments of {call.name} are no JSON object; give one with {needed}")
    values: dict[str, object] = {}
    for argument in offer.arguments:
        value, why = _value(call, argument)
        if why:
            return faulty(call, why)
        values[argument.name] = value
    asked = _asked(call, values)
    return faulty(call, asked) if isinstance(asked, str) else asked


def none(reason: str, reply: Reply, place: int = 0) -> Action:
    """The action that stands for *reply*, or for what is in *place* in it, where nothing can be performed."""
    # Stalling is told by what was done: what differs must not look alike.
    return Action("none", args={"asked": _digest((reply.content, place))}, fault=reason)


def encodable(text: str) -> bool:
    """Whether *text* can be written as UTF-8 (JSON may carry lone surrogates)."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def faulty(call: ToolCall, why: str) -> Action:
    """The action that stands for a *call* that cannot be performed; one of an unknown tool has no name of its own."""
    name = call.name if any(offer.name == call.name for offer in ALL) else "none"
    return Action(name, call_id=call.id, args={"asked": _digest((call.name, call.arguments))}, fault=why)


def _digest(asked: object) -> str:
    return sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]  # escapes what is not valid Unicode


def _value(call: ToolCall, argument: Argument) -> tuple[object, str]:
    """The value of *argument* in *call*, or why there is none."""
    given = call.arguments.get(argument.name)
    if given is None and not argument.required:
        return argument.default, ""
    if given is None:
        known = call.arguments.keys()
        others = ", ".join(sorted(known))[:EXCERPT]
        instead = f", not {others}" if known else ""
        return None, f"{call.name} needs `{argument.name}` ({argument.kind}){instead}"
    value = _converted(given, argument.kind)
    if value is None:
        return None, f"`{argument.name}` of {call.name} must be of type {argument.kind}"
    texts = [value] if isinstance(value, str) else value if isinstance(value, tuple) else []
    if not all(encodable(text) for text in texts):
        return None, f"`{argument.name}` of {call.name} holds characters that are not valid Unicode"
    return value, ""


def _converted(given: object, kind: str) -> object | None:
    """*given* as a value of *kind*, where no meaning is lost; else None."""
    match kind, given:
        case "string", str():
            return given
        case "integer", int() if not isinstance(given, bool):
            return given
        case "integer", (float() | str()) if str(given).strip().removesuffix(".0").isdecimal():
            return int(str(given).strip().removesuffix(".0"))
        case "array", str():
            return (given,)
        case "array", list() | tuple() if all(isinstance(item, str) for item in given):
            return tuple(given)
    return None


def _asked(call: ToolCall, values: dict[str, object]) -> Action | str:
    """The action of a call with right *values*, or what they lack together."""
    path = _plain(str(values.get("path", "")))
    match call.name:
        case "write_file":
            return Action(call.name, files={path: str(values["text"])}, call_id=call.id)
        case "delete_file":
            return Action(call.name, files={path: None}, call_id=call.id)
        case "edit_file":
            edit = Edit(path, str(values["old"]), str(values["new"]))
            return _unedited(edit) or Action(call.name, call_id=call.id, edit=edit)
        case "final":
            return Action(call.name, message=str(values["message"]), call_id=call.id)
    if "path" in values:
        values = values | {"path": path}
    return _unread(path) or Action(call.name, call_id=call.id, args=values)


def _unedited(edit: Edit) -> str:
    """Why *edit* can be made in no file; empty: it may."""
    if not edit.old:
        return "`old` is empty: give the text that is to be replaced, or write the whole file with write_file"
    return "`old` and `new` are the same: nothing would change" if edit.old == edit.new else ""


def _unread(path: str) -> str:
    """Why nothing below *path* can be read, whatever there is; empty: it may."""
    if escape(path):
        return f"{path[:EXCERPT]!r} leads outside the workspace; paths are relative to its root"
    return f"{path[:EXCERPT]}... is too long for the name of a file" if len(path.encode()) > PATH_BYTES else ""


def _plain(path: str) -> str:
    """*path* without what says nothing: `./a.py` is `a.py`, and `.` is everything."""
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    return "" if path == "." else path


def named(asked: Iterable[str], expected: Sequence[str]) -> tuple[str, ...] | str:
    """The *expected* ids that are *asked* for, by id, file or folder; or why there are none such."""
    found: list[str] = []
    for wanted in asked:
        below = [i for i in expected if i == wanted or i.startswith((f"{wanted}::", f"{wanted}[", f"{wanted}/"))]
        if not below:
            return f"there is no test {wanted[:EXCERPT]!r} among those of this task"
        found += below
    return tuple(dict.fromkeys(found))


def actions(calls: Iterable[ToolCall]) -> tuple[Action, ...]:
    """One action a call, in order, for agents that offer no tools: what scripts and the search for repairs ask."""
    return tuple(_scripted(call) for call in calls)


def unparsable(reason: str) -> Action:
    """The action that stands for a whole-file reply nobody can perform."""
    return Action("unparsable", message=reason)


def _scripted(call: ToolCall) -> Action:
    arguments = call.arguments
    match call.name:
        case "write_file":
            return _writing({str(arguments.get("path", "")): arguments.get("text")}, call)
        case "write_files":
            files = arguments.get("files")
            return (
                _writing(files, call)
                if isinstance(files, dict)
                else unparsable("write_files needs `files`: path to text")
            )
        case "delete_file":
            return Action("delete_file", files={str(arguments.get("path", "")): None}, call_id=call.id)
        case "final" | "out_of_time":
            return Action(call.name, message=str(arguments.get("message", "")), call_id=call.id)
    return unparsable(f"there is no tool {call.name!r}; there are write_file, write_files, delete_file and final")


def _writing(files: dict[str, object], call: ToolCall) -> Action:
    texts: dict[str, str | None] = {}
    for path, text in files.items():
        if not isinstance(text, str):
            return unparsable(f"{call.name}: the text of {path!r} is missing")
        if not encodable(path) or not encodable(text):
            return unparsable(f"{call.name}: {path!r} holds characters that are not valid Unicode")
        texts[path] = text
    return Action("write_files", files=texts, call_id=call.id) if texts else unparsable(f"{call.name} names no file")
