"""From tool calls to actions. A call that makes no sense becomes an `unparsable` action with the reason."""

from __future__ import annotations

from collections.abc import Iterable

from jumar.core.events import ToolCall
from jumar.core.gate import Action


def actions(calls: Iterable[ToolCall]) -> tuple[Action, ...]:
    """One action a call, in order."""
    return tuple(_action(call) for call in calls)


def unparsable(reason: str) -> Action:
    """The action that stands for a reply nobody can perform."""
    return Action("unparsable", message=reason)


def _action(call: ToolCall) -> Action:
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


def encodable(text: str) -> bool:
    """Whether *text* can be written as UTF-8 (JSON may carry lone surrogates)."""
    return not any("\ud800" <= char <= "\udfff" for char in text)
