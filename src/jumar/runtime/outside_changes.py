"""Finds changes made outside the tools before anything else happens, and rules on them like on any other edit."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from jumar.core.gate.admission import Action, rule_on_write
from jumar.core.gate.leave_refactor import needs_verdict
from jumar.core.gate.write_rules import Hit
from jumar.core.state import events as ev
from jumar.core.state.run_state import RunState
from jumar.core.state.test_policy import Gate
from jumar.errors import BadInput, Infra
from jumar.ports import Push
from jumar.runtime.actions import act
from jumar.runtime.authored_tests import check_rewrite
from jumar.runtime.dependencies import RunDependencies
from jumar.runtime.secret_writes import check_leaks
from jumar.workspace.files import trees
from jumar.workspace.files.trees import EntryKind, Manifest

NAMED = 5
"""Paths that a sentence names."""


async def wait_for_push(
    parts: RunDependencies, state: RunState, held: Push | None = None
) -> tuple[Sequence[ev.Event], Push | None]:
    """Rule on changes made in the workspace meanwhile, and return the host's next request. Empty: it leaves.

    What would leave refactor mode waits for a verdict: it is *held*, and comes again.
    """
    if parts.host is None:
        raise Infra("this run waits for a host, and has none")
    push = held or await parts.host.next(state)
    if push is None:
        return (), None
    before = rule_on_outside_changes(parts, state)
    if any(isinstance(event, ev.Guardrail) for event in before):
        taken = ev.ActionTaken(name=push.action.name, args={}, admitted=False, reason="the run ends", last=push.last)
        return (*before, taken), None
    action = push.action
    if not action.fault and needs_verdict(replace(state, tree=parts.workspace.tree), action.name, action.args):
        asked = ev.ActionTaken(
            name="leave", args={"by": action.name, "message": action.message}, admitted=True, last=True
        )
        return (*before, asked), push
    return (*before, *_perform(parts, action, state, last=push.last)), None


def _perform(parts: RunDependencies, action: Action, state: RunState, *, last: bool) -> Sequence[ev.Event]:
    if action.name in ("look", "ask_model", "turn_end"):
        return (ev.ActionTaken(name=action.name, args=dict(action.args), admitted=True, last=last),)
    if action.name == "stop":  # the host has ruled on it: it is written down
        why = str(action.args.get("why", ""))
        args = {name: value for name, value in action.args.items() if name != "why"}
        return (ev.ActionTaken(name=action.name, args=args, admitted=not why, reason=why, last=last),)
    return act(parts, action, state, last=last)


def rule_on_outside_changes(parts: RunDependencies, state: RunState) -> Sequence[ev.Event]:
    """Compare the workspace with the known tree: admitted changes become edits, others are reverted."""
    workspace, store = parts.workspace, parts.workspace.store
    before = store.manifest(state.tree)
    gone: tuple[ev.Revert, ...] = ()
    special: dict[str, str] = {}
    for _ in range(ROUNDS):
        try:
            seen = workspace.capture()
        except BadInput as fault:
            if state.run.settings.in_place:  # it may be a person's own
                raise
            if found := workspace.remove_special_files():  # a pipe, a socket: the rest is judged without it
                special |= {path: _explain_irregular(path) for path in found}
                continue
            workspace.reset(state.tree)  # a name too long, or too much: it goes, and what else changed with it
            why = f"changed around the tools, and no tree can hold it: {fault}"
            gone, special = (ev.Revert(to=state.tree, paths=(), why=why, found=True),), {}
            continue
        if seen == state.tree and not special:
            return gone
        now = store.manifest(seen)
        changed = trees.find_differences(before, now)
        leak = next((hit for path in changed if (hit := _find_leak(path, now, state.tree, parts))), None)
        reasons = {path: why for path in changed if (why := _explain_refusal(path, before, now, state, parts))}
        reasons |= special
        reasons |= dict.fromkeys(changed, leak.what) if leak else {}  # the run ends: nothing of it stays
        wanted = trees.overlay(before, now, frozenset(now.keys() | before.keys()).difference(reasons).__contains__)
        tree = store.keep(wanted)
        workspace.reset(tree)
        if workspace.capture() == tree:
            rail = (ev.Guardrail(rule=leak.rule, what=leak.what),) if leak else ()
            return (*gone, *_build_events(parts, state, before, wanted, reasons), *rail)
    raise Infra("something writes to the workspace all the time: no tree of it can be judged")


ROUNDS = 5
"""Times that the workspace is put right while something goes on writing there."""


def _explain_refusal(path: str, before: Manifest, now: Manifest, state: RunState, parts: RunDependencies) -> str:
    """Return why the change at *path* is reverted; empty: it is an edit like one of the tools'."""
    kinds = {node.kind for node in (before.get(path), now.get(path)) if node is not None}
    if kinds == {EntryKind.DIR}:  # an empty folder: no tool makes one, and no test asks for it
        return "" if state.gate_state.mode is Gate.OFF else "an empty folder"
    if kinds - {EntryKind.FILE}:
        return _explain_irregular(path)
    if why := rule_on_write(path, state, parts.guard).reason:
        return why
    old, new = (parts.workspace.store.get(node.sha256) if node else b"" for node in (before.get(path), now.get(path)))
    return check_rewrite(parts, path, old, new, state)


def _explain_irregular(path: str) -> str:
    return f"{path} is no regular file any more"


def _find_leak(path: str, now: Manifest, tree: str, parts: RunDependencies) -> Hit | None:
    """Return the hit of a secret that the file holds now and no file of *tree* held."""
    node = now.get(path)
    if node is None or node.kind is not EntryKind.FILE:
        return None
    return check_leaks(parts, {path: parts.workspace.store.get(node.sha256).decode("utf-8", "replace")}, tree).hit


def _build_events(
    parts: RunDependencies, state: RunState, before: Manifest, wanted: Manifest, reasons: dict[str, str]
) -> Sequence[ev.Event]:
    """Return the edits that were found, as writes in sequence, and the reverted changes."""
    events: list[ev.Event] = []
    step: Manifest = before
    for path in trees.find_differences(before, wanted):
        node, old = wanted.get(path), before.get(path)
        if any(n is not None and n.kind is EntryKind.DIR for n in (node, old)):
            continue
        step = trees.put(step, path, node)
        events.append(
            ev.Write(
                path=path,
                before=old.sha256 if old else "",
                after=node.sha256 if node else "",
                tree=parts.workspace.store.keep(step),
                claimed=state.gate_state.find_covering(path) if state.gate_state.mode is Gate.STRICT else (),
                test=state.gate_state.mode is not Gate.OFF and parts.guard.authorable(path),
            )
        )
    if events and isinstance(last := events[-1], ev.Write):  # empty folders come and go with their files
        events[-1] = ev.Write(**{f: getattr(last, f) for f in last.__struct_fields__} | {"tree": parts.workspace.tree})
    if reasons:
        named = escape_name("; ".join(list(reasons.values())[:NAMED]))
        events.append(
            ev.Revert(
                to=parts.workspace.tree,
                paths=tuple(map(escape_name, reasons)),
                why=f"changed around the tools: {named}",
                found=True,
            )
        )
    return events


def escape_name(name: str) -> str:
    """Return *name* as valid text: bytes that are not UTF-8 are escaped."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
