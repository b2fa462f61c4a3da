"""Finds the tasks of a campaign: folders, task files, globs, and lists of them."""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from jumar.campaigns.plan import CampaignTask
from jumar.errors import BadInput
from jumar.runs.setup.run_directory import shorten_name


class ListedTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of a list of tasks."""

    path: str
    """Of a `task.toml` or a folder, relative to the list."""
    name: str = ""
    """Empty: that of the folder."""


def find_tasks(words: Sequence[str]) -> tuple[CampaignTask, ...]:
    """Return the tasks that *words* name, in their order, each with a unique name.

    A word is a folder, a `task.toml`, a glob of them, or a `.jsonl` file with a `ListedTask` in each line.

    Raises:
        BadInput: if a word names nothing, a list cannot be read, or one task is named twice.
    """
    found = [task for word in words for task in _expand(word)]
    if not found:
        raise BadInput("no task is named; name folders, globs or a list, such as 'tasks/*'")
    for path, count in Counter(task.path for task in found).items():
        if count > 1:
            raise BadInput(f"{path} is named {count} times; name each task once, --rollouts N works on it N times")
    return tuple(_number(found))


def _expand(word: str) -> Iterator[CampaignTask]:
    path = Path(word)
    if path.suffix == ".jsonl" and path.is_file():
        yield from _read_list(path)
    elif path.exists():
        yield _build(path)
    elif not glob.has_magic(word):
        raise BadInput(f"there is no task {word}: no such file or folder")
    else:
        matches = [Path(p) for p in sorted(glob.glob(word, recursive=True))]  # noqa: PTH207  the word may be absolute
        tasks = [p for p in matches if p.is_dir() or p.name == "task.toml"]
        if not tasks:
            raise BadInput(f"{word} matches no folder and no task.toml")
        yield from map(_build, tasks)


def _read_list(path: Path) -> Iterator[CampaignTask]:
    lines = [(number, line) for number, line in enumerate(path.read_bytes().splitlines(), 1) if line.strip()]
    if not lines:
        raise BadInput(f'{path} is empty; each of its lines names a task: {{"path": "gcd", "name": "gcd"}}')
    for number, line in lines:
        try:
            listed = msgspec.json.decode(line, type=ListedTask)
        except msgspec.MsgspecError as error:
            raise BadInput(f'{path}:{number}: {error}; a line is {{"path": "gcd", "name": "gcd"}}') from None
        found = path.parent / listed.path
        if not found.exists():
            raise BadInput(f"{path}:{number}: there is no task {found}: no such file or folder")
        yield _build(found, listed.name)


def _build(path: Path, name: str = "") -> CampaignTask:
    folder = path.resolve().parent if path.name == "task.toml" else path.resolve()
    return CampaignTask(shorten_name(name or folder.name or "task"), str(path.resolve()))


def _number(tasks: Iterable[CampaignTask]) -> Iterator[CampaignTask]:
    """Yield *tasks*; the second one of the same name is called NAME-2."""
    taken: set[str] = set()
    for task in tasks:
        name, count = task.name, 1
        while name in taken:
            count += 1
            name = f"{task.name}-{count}"
        taken.add(name)
        yield CampaignTask(name, task.path)
