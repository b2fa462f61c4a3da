"""Splits a job into processes of vitest or jest: one for each folder with a configuration of its own.

The room is the working directory.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple


class NodeRunner(NamedTuple):
    """A JavaScript runner, and the names of its configuration files."""

    name: str
    script: str
    """Beside this file; takes an order on standard input and tells events on the descriptor it is given."""
    configurations: str
    """A pattern for the names of its configuration files."""
    section: str
    """The key of its configuration in `find_package.json`; empty: it reads none there."""
    oldest: int
    """Major version that the script needs at least."""


RUNNERS = {
    "vitest": NodeRunner(
        "vitest", "vitest_run.mjs", r"vite(st)?\.config\.[cm]?[jt]s|vitest\.workspace\.([cm]?[jt]s|json)", "", 3
    ),
    "jest": NodeRunner("jest", "jest_run.cjs", r"jest\.config\.([cm]?[jt]s|json)", "jest", 28),
}
"""The runners by their names."""


class ProcessBatch(NamedTuple):
    """Files of one process, and the ids in them; without ids nothing is run."""

    folder: Path
    """Folder of the configuration."""
    files: list[str]
    ids: list[str]


def split_batches(tool: NodeRunner, config: dict[str, Any]) -> list[ProcessBatch]:
    """Return one for each folder with a configuration of its own, unless the room has one, which then holds for all."""
    room, ids, collects = Path.cwd(), config["ids"], config["mode"] == "collect"
    if collects and not config["args"]:
        return [ProcessBatch(folder, [], []) for folder in [*_list_folders(tool, room)] or [room]]
    grouped: dict[Path, list[str]] = {}
    asked = (one.partition("::")[0] for one in (config["args"] if collects else ids))
    for file in dict.fromkeys(map(os.path.normpath, asked)):
        if (room / file).exists():
            grouped.setdefault(_find_home(tool, room / file), []).append(file)
    return [ProcessBatch(f, some, [i for i in ids if i.partition("::")[0] in some]) for f, some in grouped.items()]


def is_configured(tool: NodeRunner, folder: Path) -> bool:
    """Return whether *folder* holds a configuration of *tool*."""
    if any(re.fullmatch(tool.configurations, entry.name) for entry in os.scandir(folder)):
        return True
    with contextlib.suppress(OSError, ValueError):
        manifest = json.loads((folder / "package.json").read_text("utf-8"))
        return bool(tool.section) and isinstance(manifest, dict) and tool.section in manifest
    return False


def find_package(tool: NodeRunner, folder: Path) -> Path | None:
    """Return the manifest of the package that *folder* would find, looked for no higher than the room."""
    room = Path.cwd()
    for place in (folder, *folder.parents):
        manifest = place / "node_modules" / tool.name / "package.json"
        if manifest.is_file():
            return manifest.resolve()
        if place == room:
            break
    return None


def _find_home(tool: NodeRunner, file: Path) -> Path:
    """Return the folder whose configuration holds for *file*."""
    room = Path.cwd()
    if is_configured(tool, room):
        return room
    around = (file, *file.parents) if file.is_dir() else file.parents
    return next((f for f in around if f.is_relative_to(room) and is_configured(tool, f)), room)


def _list_folders(tool: NodeRunner, room: Path) -> Iterator[Path]:
    """Yield the topmost folders with a configuration, those of packages left out."""
    for parent, folders, _ in os.walk(room):
        folders[:] = sorted(f for f in folders if f != "node_modules" and not f.startswith("."))
        if is_configured(tool, Path(parent)):
            folders.clear()
            yield Path(parent)
