"""Reads `[context]` of a task before anything runs: files or texts, never ones that reveal the answer."""

from __future__ import annotations

import re
from pathlib import Path

from jumar.core.gate.write_rules import find_escape
from jumar.core.state.settings import Context
from jumar.errors import BadInput
from jumar.task.settings.task_file import Texts
from jumar.task.task import Task

LIMIT = 100_000
"""Characters of all files and texts together: what is shown with every draft has to leave room for the work."""

SUFFIXES = (
    "c|cc|cfg|cpp|cs|css|csv|go|h|hpp|html|ini|java|js|json|jsx|kt|lua|md|mjs|php|proto|py|pyi|rb|rs|rst|sh|sql|swift|"
    "toml|ts|tsx|txt|xml|yaml|yml"
)
PATH = re.compile(
    rf"~?/[\w.@+/\\-]+|[\w.@+-]+(?:[/\\][\w.@+-]+)+|[\w@+-][\w.@+-]*\.(?:{SUFFIXES})",
    re.IGNORECASE,
)
"""Text that can only be meant as a path, whether it exists or not."""


def read_context(task: Task) -> Context:
    """Return the texts that `[context]` of *task* gives or names, as (name, text) pairs; texts have an empty name.

    An entry is a file where the task's folder has one of that name, or where it can be nothing but a path.

    Raises:
        BadInput: if a file is missing, leads out of the task's folder, belongs to the hidden tests or the reference
            solution, or is no UTF-8 text; or if it is more than `LIMIT` characters in all.
    """
    tables = {
        "reference": task.context.reference,
        "examples": task.context.examples,
        "signatures": task.context.signatures,
        "review_rules": task.context.review_rules,
    }
    pairs = {key: _read_pairs(task, key, entries) for key, entries in tables.items()}
    size = sum(len(text) for texts in pairs.values() for _, text in texts)
    if size > LIMIT:
        raise BadInput(f"[context] has {size} characters, and {LIMIT} can be shown; name fewer or shorter files")
    return Context(**pairs)


def _read_pairs(task: Task, key: str, entries: Texts) -> tuple[tuple[str, str], ...]:
    listed = (entries,) if isinstance(entries, str) else entries
    return tuple(_read_pair(task, f"[context] {key}", entry) for entry in listed if entry.strip())


def _read_pair(task: Task, where: str, entry: str) -> tuple[str, str]:
    if not (PATH.fullmatch(entry) or _exists(task.root, entry)):
        return ("", entry)
    if find_escape(entry):
        raise BadInput(f"{where} names {entry!r}, which is not in the task's folder; copy it there, or give its text")
    return (Path(entry).as_posix(), _read_text(task, where, entry))


def _exists(root: Path, entry: str) -> bool:
    try:
        return (root / entry).exists()
    except (OSError, ValueError):  # too long for a name, or a character that no name has
        return False


def _read_text(task: Task, where: str, entry: str) -> str:
    """Return the text of the file that *entry* names, if it may be shown."""
    try:
        real = (task.root / entry).resolve(strict=True)
    except (OSError, RuntimeError):
        raise BadInput(
            f"{where} names {entry!r}, which is not in the task's folder; correct the path, or give the text itself"
        ) from None
    if not real.is_relative_to(task.root.resolve()):
        raise BadInput(
            f"{where} names {entry!r}, which leads out of the task's folder; copy it there, or give its text"
        )
    for folder, what in ((task.hidden, "the hidden tests"), (task.reference, "the reference solution")):
        if folder is not None and real.is_relative_to(folder.resolve()):
            raise BadInput(f"{where} names {entry!r}, which belongs to {what}: a model must not see it; take it out")
    if not real.is_file():
        raise BadInput(f"{where} names {entry!r}, which is no file; name the files in it, or give a text")
    return _read(real, where, entry)


def _read(real: Path, where: str, entry: str) -> str:
    try:
        if real.stat().st_size > 4 * LIMIT:
            raise BadInput(f"{where} names {entry!r}, which is longer than {LIMIT} characters; name a shorter file")
        data = real.read_bytes()
    except OSError as error:
        raise BadInput(f"{where} names {entry!r}, which cannot be read: {error.strerror}") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{where} names {entry!r}, which is not UTF-8 (byte {error.start}); save it as UTF-8") from error
