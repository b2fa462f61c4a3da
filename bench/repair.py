"""How many real bugs `--model repair` mends, and how many of its patches do what the reference does on fresh inputs.

    python bench/repair.py --data DIR [--only SUBSTR] [--seconds 60]

DIR holds `index.json`, `tasks/` and `solutions/`. Writes a table to `docs/repair-results.md`.
"""

from __future__ import annotations

import argparse
import ast
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

import jumar
from fresh import fresh
from jumar.core.state.events import ModelCall
from jumar.journal.writer import read_journal

HERE = Path(__file__).parent
TABLE = HERE.parent / "docs" / "repair-results.md"
INPUTS = 200


@dataclass(frozen=True, slots=True)
class Row:
    """One task of the table."""

    task: str
    stop: str
    seconds: float
    tried: int
    change: str
    equal: str

    @property
    def solved(self) -> bool:
        """Whether the run ended green."""
        return self.stop == "green"


def main() -> None:
    """Run all tasks and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    index = json.loads((options.data / "index.json").read_text("utf-8"))
    tasks = [t for t in index["tasks"] if t["kind"] == "fix" and t["language"] == "python" and options.only in t["id"]]
    rows = []
    for task in tasks:
        with tempfile.TemporaryDirectory() as scratch:
            rows.append(measured(task, options.data, Path(scratch), options.seconds))
        print(_line(rows[-1]), flush=True)
    text = table(rows, options.seconds)
    if not options.only:
        TABLE.write_text(text, "utf-8")
    print(text[text.index("\n## Totals") :])


def measured(task: Mapping[str, Any], data: Path, scratch: Path, seconds: float) -> Row:
    """Run one task and compare what it ends with to the reference."""
    folder = scratch / "task"
    shutil.copytree(data / "tasks" / task["id"], folder, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"))
    (folder / "task.toml").write_text(tomli_w.dumps(_description(task)), "utf-8")
    started = time.monotonic()
    options = jumar.Options(model="repair", seconds=seconds, attempts=20)
    result = jumar.run(folder / "task.toml", options, runs=scratch / "runs")
    took = time.monotonic() - started
    run = next(path for path in (scratch / "runs").iterdir() if path.is_dir())
    replies = [e.event.reply for e in read_journal(run) if isinstance(e.event, ModelCall)]
    tried = sum(int(str(reply.opaque.get("tried", 0))) for reply in replies)
    changes = [
        r.content.partition(" (")[0].split(": ", 1)[-1] for r in replies if r.tool_calls[0].name == "write_files"
    ]
    solved = result.stop == "green"
    equal = compared(task, data, run / "workspace") if solved else ""
    return Row(task["id"], str(result.stop), took, tried, "; ".join(changes) if solved else "", equal)


def _description(task: Mapping[str, Any]) -> dict[str, object]:
    """A `task.toml` for *task*."""
    arguments = task["run"][3:]
    limit = [float(a.partition("=")[2]) for a in arguments if a.startswith("--timeout=")]
    return {
        "task": {"name": task["id"], "env": task.get("env") or {}},
        "files": {"editable": task["editable"]},
        "tests": {
            "select": [a for a in arguments if not a.startswith("-")],
            "expected": [*task["F2P"], *task["P2P"]],
            "test_timeout_seconds": limit[0] if limit else 30.0,
        },
    }


def compared(task: Mapping[str, Any], data: Path, patched: Path) -> str:
    """On how many fresh inputs the patched tree does what the reference does; `n/a` where they cannot be made."""
    reference = patched.parent / "reference"
    shutil.copytree(data / "tasks" / task["id"], reference)
    shutil.copytree(data / "solutions" / task["id"], reference, dirs_exist_ok=True)
    file = task["editable"][0]
    function = _changed((data / "tasks" / task["id"] / file).read_text("utf-8"), (patched / file).read_text("utf-8"))
    if not function:
        return "n/a"
    tests = [a for a in task["run"][3:] if not a.startswith("-")]
    samples = [ast.literal_eval(text) for text in _asked(reference, ["harvest", file, function, *tests])]
    if not samples or not samples[0]:
        return "n/a"
    inputs = [repr(made) for made in fresh(samples, INPUTS)]
    right = _asked(reference, ["call", file, function, "2"], inputs)
    inputs = [made for made, does in zip(inputs, right, strict=True) if not does.startswith(("raises ", "hangs"))]
    right = [does for does in right if not does.startswith(("raises ", "hangs"))]
    # Ours may be slower than the reference, but not by much.
    ours = _asked(patched, ["call", file, function, "10"], inputs)
    within = list(zip(right, ours, strict=True))
    same = sum(a == b for a, b in within)
    return "n/a" if not within else "yes" if same == len(within) else f"no ({same}/{len(within)})"


def _asked(tree: Path, arguments: list[str], inputs: list[str] | None = None) -> list[str]:
    done = subprocess.run(  # noqa: S603  # our interpreter, our script
        [sys.executable, "-B", str(HERE / "behaviour.py"), *arguments],
        input=json.dumps(inputs or []),
        cwd=tree, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    last = done.stdout.strip().rpartition("\n")[2]
    found = json.loads(last) if last.startswith("[") else []
    return [str(text) for text in found]


def _changed(before: str, after: str) -> str:
    """The function of the top level that differs, or nothing if it is not exactly one."""
    old, new = _functions(before), _functions(after)
    names = [name for name in new if old.get(name) != new[name]]
    return names[0] if len(names) == 1 else ""


def _functions(source: str) -> dict[str, str]:
    return {node.name: ast.dump(node) for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}


def table(rows: list[Row], seconds: float) -> str:
    """The rows and their totals as Markdown."""
    sets = sorted({row.task.partition("-")[0] for row in rows})
    totals = []
    for name in sets:
        mine = [row for row in rows if row.task.startswith(f"{name}-")]
        solved = [row for row in mine if row.solved]
        equal = sum(row.equal == "yes" for row in solved)
        unknown = sum(row.equal == "n/a" for row in solved)
        totals.append(f"| {name} | {len(mine)} | {len(solved)} | {equal} | {unknown} |")
    return "\n".join([
        "# What `--model repair` mends",
        "",
        f"Written by `bench/repair.py`; at most {seconds:g} s a task, the tests before and after included.",
        f"*Equals reference*: on up to {INPUTS} fresh inputs, made from those of the tests, the patched function",
        "does what the reference does (`n/a`: such inputs cannot be made).",
        "A patch that passes is only as right as the tests. *Candidates* are screenings, that of the unchanged",
        "program among them.",
        "",
        "| task | solved | seconds | candidates | change | equals reference |",
        "| --- | --- | --- | --- | --- | --- |",
        *map(_line, rows),
        "",
        "## Totals",
        "",
        "| set | tasks | solved | equal | not comparable |",
        "| --- | --- | --- | --- | --- |",
        *totals,
        "",
    ])  # fmt: skip


def _line(row: Row) -> str:
    solved = "yes" if row.solved else f"no ({row.stop})"
    change = row.change.replace("|", "\\|")
    return f"| {row.task} | {solved} | {row.seconds:.1f} | {row.tried} | {change} | {row.equal} |"


if __name__ == "__main__":
    main()
