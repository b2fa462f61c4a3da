"""Snapshots of a repository of 5,000 files: an edit of a tool, what a command changed, and copies of all of it.

Run as `make bench ONLY=snapshots`. An edit is one file written through the workspace (objects, manifest and folder,
synced) and taken back; then a file is changed around the workspace, and found. Sizes are drawn as source files have
them: half of them below 3 kB, 8 kB on average.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from frame import Figure, interleave, median_of, milliseconds, ratio_of
from jumar.workspace.git_ignored import read_ignored
from jumar.workspace.store.object_store import Store
from jumar.workspace.workspace import Workspace

FILES, PER_FOLDER = 5_000, 50
MEMORY = Path("/dev/shm")  # noqa: S108  the same without a disk


def make_repository(root: Path) -> list[str]:
    """Make a repository of so many files; their paths."""
    draw = random.Random(5)  # noqa: S311  no secret
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)  # noqa: S603, S607
    (root / ".gitignore").write_text("*.log\n__pycache__/\nbuild/\n")
    paths = [f"src/p{number // PER_FOLDER}/m{number}.py" for number in range(FILES)]
    for number, path in enumerate(paths):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        line = f"def f{number}(a, b): return a + b + {number}\n"
        (root / path).write_text(line * max(1, int(draw.lognormvariate(8, 1.4) / len(line))))
    return paths


def measure_in(place: Path, rounds: int) -> dict[str, list[float]]:
    """Measure a repository in *place*."""
    paths = make_repository(place / "repository")
    root, copies = place / "repository", count()
    workspace = Workspace(root, Store(place / "objects"), read_ignored(root, os.environ).build_skip())
    base = workspace.capture()
    turn = count()

    def edit() -> None:
        workspace.write(paths[next(turn) * 97 % FILES], f"x = {next(turn)}\n".encode())

    def change() -> float:
        """Change a file around the workspace: not measured."""
        workspace.reset(base)
        (root / paths[next(turn) * 89 % FILES]).write_text(f"y = {next(turn)}\n")
        return 0.0

    def copy() -> None:
        shutil.copytree(root / "src", place / f"copy{next(copies)}")

    ways = {
        "edit": edit, "take back": lambda: workspace.take_back(base), "unchanged": workspace.capture,
        "change": change, "found": workspace.capture, "undone": lambda: workspace.reset(base), "copy": copy,
        "synced": lambda: Store(place / f"store{next(copies)}").capture(root / "src"),
    }  # fmt: skip
    return interleave(ways, rounds)


def measure(rounds: int) -> Iterator[Figure]:
    """Yield the figures of the disk of the temporary folder, and of a memory disk where there is one."""
    with tempfile.TemporaryDirectory() as folder:
        taken = {name: milliseconds(samples) for name, samples in measure_in(Path(folder).resolve(), rounds).items()}
    both = [a + b for a, b in zip(taken["edit"], taken["take back"], strict=True)]
    yield median_of("edit of a tool, kept", taken["edit"], "ms")
    yield median_of("edit of a tool, taken back", taken["take back"], "ms")
    yield median_of("edit of a tool, kept and taken back", both, "ms")
    yield median_of("a tree in which nothing changed", taken["unchanged"], "ms")
    yield median_of("a tree that a command changed", taken["found"], "ms")
    yield median_of("a command's change undone", taken["undone"], "ms")
    yield ratio_of("copying against a tree that a command changed", taken["copy"], taken["found"], "more")
    yield ratio_of("copying and syncing against the same", taken["synced"], taken["found"], "more")
    if MEMORY.is_dir():
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            quick = measure_in(Path(folder).resolve(), rounds)
        both = milliseconds([a + b for a, b in zip(quick["edit"], quick["take back"], strict=True)])
        yield median_of("edit of a tool, kept and taken back, in memory", both, "ms")
