"""A codemod: one command or one replacement over many files, ruled on and judged as one edit."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence

import regex
from anyio import to_thread
from msgspec.structs import replace

from jumar.commands.parser import check_command
from jumar.core.gate.admission import Action, Ruling, admits
from jumar.core.gate.pure_renames import explain_impure, find_renames, format_files
from jumar.core.gate.write_rules import explain_misnamed, find_alike, find_escape
from jumar.core.quoting import cut_middle
from jumar.core.state import events as ev
from jumar.core.state.run_state import RunState
from jumar.errors import BadInput
from jumar.languages.gitignore_globs import compile_patterns
from jumar.runtime.authored_tests import check_rewrite
from jumar.runtime.dependencies import RunDependencies
from jumar.runtime.read_tools import ROOM, compile_pattern
from jumar.runtime.secret_writes import check_leaks
from jumar.workspace.files import trees
from jumar.workspace.files.trees import EntryKind, Manifest, Node

SECONDS = 300.0
"""For one command: it may go through a whole repository."""

REPLACING_SECONDS = 20.0
"""For one replacement in all files together."""


class CodemodRejected(ValueError):  # noqa: N818  it is an answer, not an error
    """Raised when nothing of a change may stay; says why."""


async def run_codemod(parts: RunDependencies, action: Action, state: RunState, *, last: bool) -> Sequence[ev.Event]:
    """Perform *action* in a copy of the workspace, and copy the result back if all of it is allowed."""
    ruling = admits(action, state, parts.guard)
    if ruling.admitted and action.name == "run_command":
        ruling = check_command(str(action.args["command"]))
    if not ruling.admitted:
        return _refuse(action, ruling, last=last)
    try:
        tree, shown = await (
            _run_command(parts, action, state) if action.name == "run_command" else _replace(parts, action)
        )
        renames = _check_changes(parts, state, tree)
    except CodemodRejected as why:
        return _refuse(action, Ruling(admitted=False, reason=str(why)), last=last)
    if (leak := _rule_on_leaks(parts, state, tree)).hit:
        return _refuse(action, leak, last=last)
    taken = ev.ActionTaken(name=action.name, args=dict(action.args), admitted=True, last=last)
    observed = ev.Observation(name=action.name, call_id=action.call_id, content=shown)
    if tree == state.tree:
        return (taken, observed)
    parts.workspace.reset(tree)
    return (taken, *_build_events(parts, action, (state.tree, tree), renames), observed)


def _refuse(action: Action, ruling: Ruling, *, last: bool) -> Sequence[ev.Event]:
    taken = ev.ActionTaken(name=action.name, args=dict(action.args), admitted=False, reason=ruling.reason, last=last)
    return (taken, ev.Guardrail(rule=ruling.hit.rule, what=ruling.hit.what)) if ruling.hit else (taken,)


def _build_events(
    parts: RunDependencies, action: Action, sides: tuple[str, str], renames: Mapping[str, str]
) -> tuple[ev.Event, ...]:
    """Return the edit as events: the codemod, and each file that it changed."""
    old, new = (parts.workspace.store.manifest(side) for side in sides)
    paths = tuple(
        path for path in trees.find_differences(old, new) if _is_file(old.get(path)) or _is_file(new.get(path))
    )
    said = {name: str(action.args.get(name, "")) for name in ("command", "pattern", "replacement")}
    made = ev.Codemod(
        tool=action.name, paths=paths, before=sides[0], after=sides[1], renames=tuple(sorted(renames.items())), **said
    )
    return (made, *(_build_write(path, old.get(path), new.get(path), sides[1]) for path in paths))


def _build_write(path: str, old: Node | None, new: Node | None, tree: str) -> ev.Write:
    before, after = (node.sha256 if node is not None and _is_file(node) else "" for node in (old, new))
    return ev.Write(path=path, before=before, after=after, tree=tree)


def _is_file(node: Node | None) -> bool:
    return node is not None and node.kind is EntryKind.FILE


async def _run_command(parts: RunDependencies, action: Action, state: RunState) -> tuple[str, dict[str, object]]:
    """Run the command; return the tree that it leaves, and its output.

    Raises:
        CodemodRejected: if it did not end, or no tree can hold what it left.
    """
    if parts.commands is None:
        raise CodemodRejected(
            "commands cannot be confined on this machine (jumar doctor says why): use replace_in_files"
        )
    try:
        ran, tree = await parts.commands.edit(state.tree, str(action.args["command"]), SECONDS)
    except BadInput as fault:
        raise CodemodRejected(f"nothing of it was kept: no tree can hold what the command left: {fault}") from None
    if ran.exit is None:
        raise CodemodRejected(f"the command did not end within {SECONDS:g} s: nothing of it was kept")
    changed = len(trees.find_differences(*map(parts.workspace.store.manifest, (state.tree, tree))))
    said = f"{cut_middle(ran.output, ROOM)}\n{changed} files changed"
    return tree, {"exit": ran.exit, "output": said.strip()}


async def _replace(parts: RunDependencies, action: Action) -> tuple[str, dict[str, object]]:
    """Return the tree with the replacement made, and the number of replacements in each file.

    Raises:
        CodemodRejected: if the pattern is none, or takes too long.
    """
    pattern, new = str(action.args["pattern"]), str(action.args["replacement"])
    wanted = compile_pattern(pattern)
    if isinstance(wanted, str):
        raise CodemodRejected(wanted)
    globs = action.args["paths"]
    try:
        within = compile_patterns(map(str, globs)) if isinstance(globs, list | tuple) and globs else lambda _path: True
    except BadInput as fault:
        raise CodemodRejected(str(fault)) from None
    files = parts.workspace.files(within)
    texts = {path: text for path, data in files.items() if (text := _decode_text(data)) is not None}
    open_ = {path: text for path, text in texts.items() if _is_open(parts, path) or parts.guard.renamable(path)}
    try:
        made, closed = await to_thread.run_sync(_substitute, wanted, new, open_, texts)
    except (TimeoutError, MemoryError, RecursionError):
        raise CodemodRejected(f"{pattern!r} takes too long: use a simpler expression, or fewer files") from None
    except (re.error, regex.error, IndexError, ValueError) as fault:
        raise CodemodRejected(f"{new!r} is no replacement for {pattern!r}: {fault}") from None
    manifest, store = dict(parts.workspace.store.manifest(parts.workspace.tree)), parts.workspace.store
    contents = {path: text.encode() for path, (text, _) in made.items()}
    digests = dict(zip(contents, store.put_all([*contents.values()]), strict=True)) if contents else {}
    manifest |= {path: replace(manifest[path], sha256=digest) for path, digest in digests.items()}
    lines = [f"{path}: {count}" for path, (_, count) in made.items()] or ["no match in a file that may be changed"]
    lines += [f"not touched, as they may not be changed here: {format_files(closed)}"] if closed else []
    return store.keep(manifest), {"ok": True, "output": cut_middle("\n".join(lines), ROOM)}


def _substitute(
    wanted: regex.Pattern[str], new: str, texts: Mapping[str, str], every: Mapping[str, str]
) -> tuple[dict[str, tuple[str, int]], tuple[str, ...]]:
    """Return each of *texts* that changes, with the number of its replacements.

    And which others of *every* have a match.
    """
    until = time.monotonic() + REPLACING_SECONDS

    def left() -> float:
        return max(0.001, until - time.monotonic())

    made = {path: wanted.subn(new, text, timeout=left()) for path, text in texts.items()}
    closed = [path for path, text in every.items() if path not in texts and wanted.search(text, timeout=left())]
    return {path: pair for path, pair in made.items() if pair[0] != texts[path]}, tuple(closed)


def _decode_text(data: bytes) -> str | None:
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None


def _is_open(parts: RunDependencies, path: str) -> bool:
    """Return whether a codemod may change *path*: as in refactor mode, but no test, not even the run's own."""
    guard = parts.guard
    return (guard.refactorable(path) or (guard.editable(path) and not guard.protected(path))) and not (
        guard.authorable(path)
    )


def _check_changes(parts: RunDependencies, state: RunState, tree: str) -> dict[str, str]:
    """Return the identifiers that *tree* renames in tests: old identifier -> new one.

    Raises:
        CodemodRejected: if it changes what no codemod may.
    """
    store = parts.workspace.store
    old, new = store.manifest(state.tree), store.manifest(tree)
    found: dict[str, str] = {}
    for path in trees.find_differences(old, new):
        nodes = [node for node in (old.get(path), new.get(path)) if node is not None]
        if all(node.kind is EntryKind.DIR for node in nodes):
            continue
        if why := _explain_bad_name(path, old) or _explain_irregular(nodes):
            raise CodemodRejected(f"{why}: nothing of it was kept")
        if not _is_open(parts, path):
            found |= _find_renames(parts, path, old, new)
        elif why := _explain_rewrite(parts, state, path, nodes):
            raise CodemodRejected(f"{why}: nothing of it was kept")
    if found:
        first, sides = store.manifest(state.run.tree), (_read_code(parts, old), _read_code(parts, new))
        for path in trees.find_differences(old, new):
            if not _is_open(parts, path) and (why := explain_impure(path, found, _read_code(parts, first), sides)):
                raise CodemodRejected(f"{path} is a test, and what it calls anew is no rename of the code: {why}")
    return found


def _explain_bad_name(path: str, there: Manifest) -> str:
    """Return why no file may be called *path*; empty: one may."""
    if find_escape(path):
        return f"{path!r} leads outside the workspace"
    other = "" if path in there else find_alike(path, there)
    return explain_misnamed(path) or (f"{path!r} could be taken for {other!r}, which is there" if other else "")


def _explain_irregular(nodes: Sequence[Node]) -> str:
    return "" if all(node.kind is EntryKind.FILE for node in nodes) else "it changes what is no regular file"


def _find_renames(parts: RunDependencies, path: str, old: Manifest, new: Manifest) -> dict[str, str]:
    """Return the renames in the file *path*, which is a test or closed for another reason.

    Raises:
        CodemodRejected: if it is missing on a side, renames in it are not allowed, or more than names changes.
    """
    if not parts.guard.renamable(path):
        how = "--codemod-renames GLOB is the person's switch for renames in tests"
        raise CodemodRejected(f"it changes {path}, which is read-only for a codemod: nothing of it was kept ({how})")
    store, sides = parts.workspace.store, (old.get(path), new.get(path))
    texts = [_decode_text(store.get(node.sha256)) if node is not None else None for node in sides]
    if texts[0] is None or texts[1] is None:
        raise CodemodRejected(f"it makes, deletes or moves {path}, or that is no text: of tests only names may change")
    found = find_renames(texts[0], texts[1])
    if isinstance(found, str):
        raise CodemodRejected(f"of {path} only names may change: {found}; nothing of it was kept")
    if sides[0] is not None and sides[1] is not None and sides[0].executable is not sides[1].executable:
        raise CodemodRejected(f"of {path} only names may change, not its mode; nothing of it was kept")
    return found


def _explain_rewrite(parts: RunDependencies, state: RunState, path: str, nodes: Sequence[Node]) -> str:
    store = parts.workspace.store
    return check_rewrite(parts, path, store.get(nodes[0].sha256), store.get(nodes[-1].sha256), state)


def _read_code(parts: RunDependencies, manifest: Manifest) -> dict[str, str]:
    """Return the code of a tree: the texts of the files that are not tests."""
    store = parts.workspace.store
    files = {path: node for path, node in manifest.items() if _is_file(node) and _is_open(parts, path)}
    texts = {path: _decode_text(store.get(node.sha256)) for path, node in files.items()}
    return {path: text for path, text in texts.items() if text is not None}


def _rule_on_leaks(parts: RunDependencies, state: RunState, tree: str) -> Ruling:
    """Rule on the secrets that *tree* would bring into the workspace."""
    store = parts.workspace.store
    new = store.manifest(tree)
    changed = {p: new[p] for p in trees.find_differences(store.manifest(state.tree), new) if _is_file(new.get(p))}
    texts: dict[str, str | None] = {p: store.get(node.sha256).decode("utf-8", "replace") for p, node in changed.items()}
    return check_leaks(parts, texts, state.tree)
