"""Disk use and time of two runs on one large repository: `python bench/disk.py [--files N] [--megabytes M]`.

The repository is made here, with git. Both runs have a script for a model, so that what is measured is jumar alone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPLIES = (
    {
        "tool_calls": [
            {"name": "edit_claim", "arguments": {"test_id": "test_app.py::test_one", "edit_target": "app.py"}},
            {"name": "write_file", "arguments": {"path": "app.py", "text": "def one():\n    return 1\n"}},
        ]
    },
    {"tool_calls": [{"name": "final", "arguments": {"message": "done"}}]},
)


def make_repository(folder: Path, files: int, megabytes: int) -> None:
    """A repository with one red test, *files* files of random text and a file that git ignores."""
    draw = random.Random(11)  # noqa: S311  no secret
    each = megabytes * 1_000_000 // files
    for number in range(files):
        path = folder / f"data/{number % 100:02}/file{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(draw.randbytes(each))
    (folder / "app.py").write_text("def one():\n    return 2\n")
    (folder / "test_app.py").write_text("from app import one\n\n\ndef test_one():\n    assert one() == 1\n")
    (folder / ".gitignore").write_text("build/\n.jumar/\n")
    (folder / "build").mkdir()
    (folder / "build" / "big.bin").write_bytes(draw.randbytes(megabytes * 100_000))
    subprocess.run(["git", "init", "-q", str(folder)], check=True)  # noqa: S603, S607
    for words in (["add", "-A"], ["-c", "user.name=b", "-c", "user.email=b@b", "commit", "-qm", "1"]):
        subprocess.run(["git", "-C", str(folder), *words], check=True)  # noqa: S603, S607


def used(folder: Path) -> int:
    """The bytes of the disk that *folder* takes; a file with several names counts once."""
    seen: dict[int, int] = {}
    for here, _, names in os.walk(folder):
        for name in names:
            found = os.lstat(Path(here, name))
            seen[found.st_ino] = found.st_blocks * 512
    return sum(seen.values())


def run_once(repository: Path, script: Path, confirm: int) -> tuple[float, str]:
    """The seconds of one run, and how it stopped."""
    started = time.monotonic()
    argv = [sys.executable, "-m", "jumar.cli.main", "run", str(repository), "--agent", "driver", "--json", "-q"]
    argv += ["--model", f"script:{script}", "--confirm", str(confirm), "--runs", str(repository / ".jumar" / "runs")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)  # noqa: S603
    seconds = time.monotonic() - started
    return seconds, json.loads(done.stdout.splitlines()[-1]).get("stop", done.stderr[-300:])


def main() -> None:
    """Two runs, one line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--confirm", type=int, default=3)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jumar-disk-") as scratch:
        repository, script = Path(scratch, "repository"), Path(scratch, "script.jsonl")
        make_repository(repository, chosen.files, chosen.megabytes)
        script.write_text("".join(json.dumps(reply) + "\n" for reply in REPLIES))
        before = 0
        for number in (1, 2):
            seconds, stop = run_once(repository, script, chosen.confirm)
            after = used(repository / ".jumar")
            print(f"run {number}: {stop}, {seconds:.1f} s, {(after - before) / 1e6:.1f} MB more on the disk")
            before = after


if __name__ == "__main__":
    main()
