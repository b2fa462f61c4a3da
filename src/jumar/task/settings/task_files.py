"""Files of a task: the `task.toml` and `jumar.toml` in force, their owners, and their tables merged."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from jumar.core.state.settings import Price
from jumar.errors import BadInput
from jumar.task.settings.precedence import FileSettings, read_file_settings
from jumar.task.settings.task_file import Raw, TaskFile, merge_tables, parse, read_tables

TASK_FILE = "task.toml"
DEFAULTS_FILE = "jumar.toml"

RUN_BEGINS = (b'{"seq":0,', b'"type":"run_start"')
CAMPAIGN_BEGINS = (b'{"version":', b'"began":"')
"""Bytes with which a journal, and the plan of a campaign, begin: any repository may have files of those names."""
HEAD_BYTES = 200


class TaskTables(msgspec.Struct, frozen=True):
    """Contents of the files of a task."""

    root: Path
    """The task's folder."""
    where: str
    """The highest file, or the folder: named where something is refused."""
    tables: TaskFile
    """All tables, those of higher files over those of lower ones."""
    settings: tuple[FileSettings, ...]
    """The settings of `[run]`, file by file, the highest first."""
    own_prices: Mapping[str, Price]
    """Prices in a file of the person's."""
    named: frozenset[str]
    """The keys that a file set, as `table.key`."""


def read_files(path: Path, config: Path | None) -> TaskTables:
    """Return the files of the task at *path*; *config* is read instead of any `jumar.toml`.

    Raises:
        BadInput: if a file is missing, cannot be read, or holds what it cannot.
    """
    root, task_file = _locate(path)
    read = [(file, own, read_tables(file)) for file, own in _list_files(root, task_file, config)]
    raw: Raw = {}
    for _, _, tables in reversed(read):
        raw = merge_tables(raw, tables)
    where = str(read[0][0]) if read else str(path)
    own_prices = [parse(tables, str(file)).prices for file, own, tables in read if own]
    settings = tuple(read_file_settings(str(file), tables, own=own) for file, own, tables in read)
    named = frozenset(f"{table}.{key}" for table, keys in raw.items() if isinstance(keys, Mapping) for key in keys)
    return TaskTables(root, where, parse(raw, where), settings, own_prices[0] if own_prices else {}, named)


def _find_results(root: Path) -> str:
    """Return `run` or `campaign` if *root* is the folder of one; else empty."""
    if _begins_with(root / "events.jsonl", RUN_BEGINS):
        return "run"
    return "campaign" if (root / "runs").is_dir() and _begins_with(root / "campaign.json", CAMPAIGN_BEGINS) else ""


def _begins_with(file: Path, words: tuple[bytes, bytes]) -> bool:
    """Return whether *file* begins with the first of *words*, and the other one comes soon after."""
    try:
        with file.open("rb") as opened:
            head = opened.read(HEAD_BYTES)
    except OSError:
        return False
    return head.startswith(words[0]) and words[1] in head


def refuse_non_tasks(root: Path, named: Path) -> None:
    """Refuse *root*, which a person named as *named*, if it holds results, or tasks with what no agent may see.

    Raises:
        BadInput: naming it and the commands that read it, or the task in it with its solution or held-out tests.
    """
    if named.is_file() or (root / TASK_FILE).exists():
        return
    if kind := _find_results(root):
        resume = "jumar resume" if kind == "run" else "jumar batch --resume"
        raise BadInput(
            f"{named} is the folder of a {kind}, and no task; name its task, or use `jumar report` to read the {kind} "
            f"and `{resume}` to go on with it"
        )
    for file in sorted(root.glob(f"*/{TASK_FILE}")):
        if kept := _find_withheld(file):
            shown = shlex.quote(str(named / file.parent.name))
            raise BadInput(
                f"{named} has no {TASK_FILE}, and {file.parent.name}/ in it is a task with {kept}, which the agent "
                f"would see; name the task itself: {shown}"
            )


def _find_withheld(file: Path) -> str:
    """Return the key of the task *file* that names what no agent may see, with its value; empty: none does."""
    try:
        raw = tomllib.loads(file.read_bytes().decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return ""
    for table, key in (("task", "reference"), ("tests", "hidden")):
        found = raw.get(table)
        if isinstance(found, dict) and found.get(key):
            return f"[{table}] {key} = {found[key]!r}"
    return ""


def _list_files(root: Path, task_file: Path | None, config: Path | None) -> Iterator[tuple[Path, bool]]:
    """Yield the files of the task in *root*, the highest first, and whether each is the person's own."""
    if task_file:
        yield task_file, False
    if config:
        yield config, True
        return
    inside, beside = root / DEFAULTS_FILE, root.parent / DEFAULTS_FILE
    if inside.exists():
        yield inside, False
    if beside.exists():
        yield beside, not beside.resolve().is_relative_to(root.resolve()) and not _is_versioned(root.parent)


HISTORIES = (".git", ".hg", ".svn")


def _is_versioned(folder: Path) -> bool:
    """Return whether *folder* lies in a repository: a file in it may have come with the tasks in it."""
    here = folder.resolve()
    return any((above / name).exists() for above in (here, *here.parents) for name in HISTORIES)


def _locate(path: Path) -> tuple[Path, Path | None]:
    """Return the folder of a task and its task file, if it has one."""
    try:
        there, folder = path.exists(), path.is_dir()
        root = path.resolve()
        task_file = root / TASK_FILE if folder and (root / TASK_FILE).exists() else None
    except (OSError, ValueError, RuntimeError) as error:
        raise BadInput(f"cannot look at {path}: {error}") from error
    if folder:
        return root, task_file
    if not there:
        raise BadInput(f"there is no {path}; name a task file, or a folder with a {TASK_FILE} or a repository in it")
    if path.suffix != ".toml":
        raise BadInput(f"{path} is no task: name a task file (*.toml) or a folder")
    return root.parent, root
