"""Selects the files of a task's folder that form its tree: all except ignored ones that are not named."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from jumar.core.gate.write_rules import find_absent
from jumar.errors import BadInput
from jumar.languages.gitignore_globs import compile_patterns, escape_path
from jumar.task.settings.task_files import TASK_FILE
from jumar.task.task import Task
from jumar.workspace.files.tree_size import TreeSize, weigh
from jumar.workspace.files.trees import SKIPPED
from jumar.workspace.git_ignored import HOSTS, Ignored, find_left_out
from jumar.workspace.store.object_store import LIMIT_BYTES

GROWTH = 2
"""So many times what it weighed may a tree weigh later, if that is more than `LIMIT_BYTES`."""

ADVICE = "leave files out by .gitignore, or by [files] exclude in task.toml or jumar.toml"


def settle_tree(task: Task, environ: Mapping[str, str]) -> Task:
    """Return *task* with the files that its tree leaves out, and the size of the tree.

    Raises:
        BadInput: if its folder cannot be read.
        Infra: if git fails.
    """
    if task.left_out is not None:
        return task
    if task.in_place is not None:
        return replace(task, weight=weigh(task.root, task.in_place.build_skip()))
    # A folder with a task file is made to be a tree: the rules of a repository around it are not about it.
    made = (task.root / TASK_FILE).exists() and not (task.root / ".git").exists()
    rule = Ignored(HOSTS) if made else find_left_out(task.root, environ)
    rule = replace(rule, include=(*task.include, *list_named_files(task)))
    withheld, ignored = compile_patterns(task.withheld), rule.build_skip()
    return replace(task, left_out=rule, weight=weigh(task.root, lambda path: withheld(path) or ignored(path)))


def refuse_unmatched(root: Path, include: tuple[str, ...]) -> None:
    """Refuse a glob of *include*, as a person typed it, that matches nothing in the folder *root*.

    Raises:
        BadInput: naming the first one.
    """
    if not include:
        return
    paths = [path for file in _list_files(root) for path in (file, *_list_folders(file))]
    for line in include:
        if not any(map(compile_patterns((line.removeprefix("!"),)), paths)):
            raise BadInput(f"--include {line!r} matches no file in {root}; mend the glob, or leave it out")


def _list_files(root: Path) -> Iterator[str]:
    """Yield all files below *root*, ignored or not, but histories and caches, relative to it."""
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in SKIPPED]
        here = Path(folder).relative_to(root)
        yield from ((here / name).as_posix() for name in files)


def list_named_files(task: Task) -> tuple[str, ...]:
    """Return lines for the files and folders that *task* names one by one: they belong to its tree, ignored or not."""
    plain = (*find_absent(task.editable, ()), *(entry.partition("::")[0] for entry in task.suite.select))
    return tuple(
        escape_path(path) for path in dict.fromkeys(plain) if (task.root / path).exists() and path not in ("", ".")
    )


def build_skip(task: Task) -> Ignored:
    """Return the rule that leaves files out of the tree of *task*, after `settle_tree`."""
    return task.left_out or Ignored()


def compute_allowed_bytes(tree_bytes: int) -> int:
    """Return the bytes to which a tree of *tree_bytes* may grow."""
    return max(LIMIT_BYTES, GROWTH * tree_bytes)


def announce_size(weight: TreeSize, runs: Path) -> str:
    """Return one line on a large tree, before it is stored; empty: it is not large."""
    if weight.bytes <= LIMIT_BYTES:
        return ""
    size = f"{weight.bytes / 2**30:.1f} GiB in {weight.files:,} files"
    return f"large tree: {size}, stored once below {runs}, and copied for each verification; {ADVICE}"


def list_ignored_files(task: Task, most: int = 20_000) -> tuple[str, ...]:
    """Return at most *most* files of the folder that git ignores; no packages, no histories."""
    skip, found = build_skip(task).build_skip(), list[str]()
    due = [""]
    while due and len(found) < most:
        path = due.pop()
        try:
            entries = sorted((task.root / path).iterdir())
        except OSError:
            continue
        for entry in entries:
            inner = path + entry.name
            if entry.name in SKIPPED or entry.is_symlink() or (entry / "pyvenv.cfg").exists():
                continue
            if entry.is_dir():
                due.append(inner + "/")
            elif skip(inner) or any(skip(folder) for folder in _list_folders(inner)):
                found.append(inner)
    return tuple(found[:most])


def _list_folders(path: str) -> tuple[str, ...]:
    parts = path.split("/")[:-1]
    return tuple("/".join(parts[: n + 1]) + "/" for n in range(len(parts)))
