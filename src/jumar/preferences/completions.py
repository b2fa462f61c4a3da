"""Builds the prompt and the completion of a rollout: a patch, whole files, or the conversation with its tool calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

from jumar.core.run.strategy import Message, Tool
from jumar.core.state.run_state import RunState
from jumar.runs.setup.agent_parts import build_agent
from jumar.runs.setup.assembly import RunPlace, find_files_of_tests, find_targets, load_runner
from jumar.workspace.files.trees import EntryKind, Manifest
from jumar.workspace.patch import make_best_patch
from jumar.workspace.store.object_store import Store
from jumar.workspace.store.shared import find_objects_folder


class Target(StrEnum):
    """Form of a completion."""

    PATCH = "patch"
    FILE = "file"
    TRAJECTORY = "trajectory"


class TooLong(Exception):  # noqa: N818  named for what it says; caught where it is counted
    """The prompt is longer than it may be."""


class Completion(msgspec.Struct, frozen=True):
    """Prompt and completion of one rollout."""

    prompt: tuple[Message, ...]
    completion: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()

    @property
    def length(self) -> int:
        """Characters of the completion, encoded."""
        return len(msgspec.json.encode(self.completion))


ASKED = {
    Target.PATCH: "Answer with one unified diff against these files, and nothing else.",
    Target.FILE: (
        "Answer with each file that you change, whole: a line with its path, then its content in a fenced block. "
        "For a file that you delete, say `PATH: deleted`."
    ),
}


def build_completion(folder: Path, state: RunState, target: Target, max_prompt_chars: int) -> Completion | None:
    """Return the prompt and completion of the run in *folder*, which ended in *state*; None: it has none of this form.

    Raises:
        TooLong: if the prompt has more than *max_prompt_chars* characters.
        BadInput: if files of the run are gone.
        Infra: if they cannot be read.
    """
    place = RunPlace(folder, Store(find_objects_folder(folder)), {})
    built = _build_conversation(place, state) if target is Target.TRAJECTORY else _write(place, state, target)
    if built is not None and sum(len(message.content) for message in built.prompt) > max_prompt_chars:
        raise TooLong
    return built


def _build_conversation(place: RunPlace, state: RunState) -> Completion | None:
    """Return the conversation of the driver, if all of it contributed to the judged tree."""
    assert state.best is not None  # noqa: S101  who has no best tree was left out before
    if state.evidence is None or state.best.tree != state.tree:
        return None
    agent = build_agent(state.run, place)
    messages = agent.messages(state, {})
    first = next((n for n, message in enumerate(messages) if message.role == "assistant"), len(messages))
    last = max((n for n, message in enumerate(messages) if message.role == "assistant"), default=-1)
    spoken = tuple(msgspec.structs.replace(m, opaque={}) for m in messages[first : last + 1])
    return Completion(messages[:first], spoken, agent.tools) if spoken else None


def _write(place: RunPlace, state: RunState, target: Target) -> Completion | None:
    """Return the change of the files in the tree that was judged best."""
    assert state.best is not None  # noqa: S101  as above
    store, base, best = place.store, state.run.tree, state.best.tree
    text = (
        _build_patch(store, base, best)
        if target is Target.PATCH
        else _format_files(store, store.manifest(base), store.manifest(best))
    )
    if not text:
        return None
    prompt = Message("user", "\n\n".join([_format_task(state), *_list_sources(place, state), ASKED[target]]))
    return Completion((prompt,), (Message("assistant", text),))


def _format_task(state: RunState) -> str:
    return state.run.settings.instruction or "Make the failing tests pass."


def _list_sources(place: RunPlace, state: RunState) -> Iterator[str]:
    """Yield the files of the first tree that may be edited, and the tests, which may not."""
    store, run = place.store, state.run
    manifest = store.manifest(run.tree)
    editable = sorted(path for path in find_targets(run.settings, manifest) if path in manifest)
    tests = find_files_of_tests(run.expected, place, run.tree, load_runner(run.settings.suite.runner))
    for title, paths in (("", editable), (" (read-only test)", sorted(p for p in tests if p in manifest))):
        for path in paths:
            if (
                manifest[path].kind is EntryKind.FILE
                and (text := _decode_text(store.get(manifest[path].sha256))) is not None
            ):
                yield f"{path}{title}\n```\n{text}\n```"


def _build_patch(store: Store, base: str, best: str) -> str:
    """Return the patch without git's hashes of contents, which the writer of a patch cannot know."""
    patch = _decode_text(make_best_patch(store, base, best)) or ""
    return (
        ""
        if "GIT binary patch" in patch
        else re.sub(r"^index [0-9a-f]+\.\.[0-9a-f]+.*\n", "", patch, flags=re.MULTILINE)
    )


def _format_files(store: Store, base: Manifest, best: Manifest) -> str:
    return "\n\n".join(_list_changed(store, base, best))


def _list_changed(store: Store, base: Manifest, best: Manifest) -> Iterator[str]:
    for path in sorted(base.keys() | best.keys()):
        old, new = base.get(path), best.get(path)
        if old == new:
            continue
        if new is None:
            yield f"{path}: deleted"
        elif new.kind is EntryKind.FILE and (text := _decode_text(store.get(new.sha256))) is not None:
            yield f"{path}\n```\n{text}\n```"


def _decode_text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def encode_message(message: Message) -> Mapping[str, object]:
    """Return *message* as chat templates take it; tool calls in the form of OpenAI's API, as TRL documents it."""
    told: dict[str, object] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        told["tool_calls"] = [
            {"type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.role == "tool" and message.name:
        told["name"] = message.name
    return told


def encode_tools(tools: tuple[Tool, ...]) -> str:
    """Return *tools* as a JSON string: a list of functions with their JSON schema."""
    listed = [
        {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
        for t in tools
    ]
    return msgspec.json.encode(listed).decode()
