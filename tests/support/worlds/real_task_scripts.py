"""Scripts of a model that keeps to the gate: it looks, claims what is red, and writes the solution. For real tasks.

`python tests/support/worlds/real_task_scripts.py --data DIR --out DIR` lays the tasks out with such a script beside
each.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import tomli_w

MOST_CLAIMS = 40
"""Of one script: a reply may hold fifty actions, and each file of the solution takes one."""

Entry = Mapping[str, Any]
"""One task of the index: `id`, `language`, `kind`, `run`, `editable`, `protected`, `F2P`, `P2P`."""


def tasks(data: Path, language: str = "python", sets: Iterable[str] = ("quixbugs", "exercism")) -> Iterator[Entry]:
    """The tasks below *data* that have something red at the start, of these *sets*."""
    index = json.loads((data / "index.json").read_text("utf-8"))
    names = tuple(sets)
    yield from (t for t in index["tasks"] if t["language"] == language and t["F2P"] and t["id"].startswith(names))


def script_for(task: Entry, solution: Path) -> str:
    """The replies, as JSON lines, of a model that turns the red tests of *task* green with the files in *solution*."""
    files = [p.relative_to(solution).as_posix() for p in sorted(solution.rglob("*")) if p.is_file()]
    ids = claimable(task)
    claims = [
        _call("edit_claim", test_id=i, edit_target=path) for path in files for i in ids[: MOST_CLAIMS // len(files)]
    ]
    writes = [_call("write_file", path=path, text=(solution / path).read_text("utf-8")) for path in files]
    replies = ([_call("run_tests")], [*claims, *writes], [_call("final", message="done")])
    usage = {"input_tokens": 1000, "cached_tokens": 600, "output_tokens": 100}
    return "".join(json.dumps({"tool_calls": calls, "usage": usage, "usd": 0.01}) + "\n" for calls in replies)


def claimable(task: Entry) -> tuple[str, ...]:
    """The ids that are red at the start, in their order."""
    return tuple(dict.fromkeys(task["F2P"]))


def laid_out(data: Path, task: Entry, into: Path) -> Path:
    """A folder with the start of *task* and a task file; the solution is not in it."""
    folder = into / str(task["id"])
    shutil.copytree(data / "tasks" / task["id"], folder)
    arguments = task["run"][3:] if task["run"][1:3] == ["-m", "pytest"] else []
    limits = [float(a.partition("=")[2]) for a in arguments if a.startswith("--timeout=")]
    tests: dict[str, object] = {"select": [a for a in arguments if not a.startswith("-")]}
    tests |= {"test_timeout_seconds": limits[0]} if limits else {}
    table: dict[str, object] = {"name": task["id"], "env": task.get("env") or {}}
    written = {"task": table, "files": {"editable": task["editable"], "protected": task["protected"]}, "tests": tests}
    (folder / "task.toml").write_text(tomli_w.dumps(written), "utf-8")
    return folder


def _call(name: str, **arguments: object) -> dict[str, object]:
    return {"name": name, "arguments": arguments}


def main() -> None:
    """Lay the tasks out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a folder with index.json, tasks/ and solutions/")
    parser.add_argument("--out", type=Path, required=True, help="where the tasks and scripts go")
    parser.add_argument("--language", default="python")
    chosen = parser.parse_args()
    for task in tasks(chosen.data, chosen.language):
        folder = laid_out(chosen.data, task, chosen.out)
        script = script_for(task, chosen.data / "solutions" / task["id"])
        (chosen.out / f"{folder.name}.jsonl").write_text(script, "utf-8")


if __name__ == "__main__":
    main()
