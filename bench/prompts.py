"""How many tokens the pipeline's fix prompt takes, and how many one with everything in it, on real failures.

    python bench/prompts.py --data DIR [--only SUBSTR]

DIR holds `index.json` and `tasks/`. Needs pytest-timeout where the index runs the tests with it. Tokens are counted by
the tokenizer of the packaged small model (extra `local-llm`). Writes `docs/prompts.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import anyio
import tomli_w

from jumar.agents.pipeline import Pipeline
from jumar.core.prompts.feedback import OUTPUT_LIMIT, RULES
from jumar.core.quoting import cut_middle, fence_text, strip_control_sequences
from jumar.core.run.reducers.transitions import replay
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget, Cost
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.journal.writer import Journal
from jumar.kernel import Kernel
from jumar.models.script import ScriptLine, ScriptModel
from jumar.ports import Answer, Ask
from jumar.runs.setup.assembly import RunPlace, build_settings, build_verifier, protect_expected_files, store_tree
from jumar.runtime.dependencies import RunDependencies
from jumar.runtime.effect_runner import EffectRunner
from jumar.task.task import Task, build_write_rules, load_task
from jumar.workspace.workspace import Workspace

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "prompts.md"
INSTRUCTION = "Make the tests pass."
LONGEST_SECONDS = 600

Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Row:
    """One task: tokens of the focused prompt, of the full dump, and of the full dump with its output cut alike."""

    task: str
    red: int
    tests: int
    focused: int
    full: int
    cut: int

    @property
    def ratio(self) -> float:
        """The focused prompt's share of the full dump."""
        return self.focused / self.full

    @property
    def ratio_cut(self) -> float:
        """The same where both cut their output."""
        return self.focused / self.cut


class Listening:
    """Answers nothing usable, then that it is done; keeps the prompts it was sent."""

    name = "script"

    def __init__(self) -> None:
        self._script = ScriptModel((ScriptLine(content=" "),))
        self.asked: list[Ask] = []

    def worst(self, ask: Ask) -> Cost:
        """Nothing."""
        return self._script.worst(ask)

    async def complete(self, ask: Ask) -> Answer:
        """The next line of the script."""
        self.asked.append(ask)
        return await self._script.complete(ask)


def main() -> None:
    """Measure all tasks and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    index = json.loads((options.data / "index.json").read_text("utf-8"))
    tasks = [t for t in index["tasks"] if t["language"] == "python" and t["F2P"] and options.only in t["id"]]
    sys.path.append(str(HERE.parent / "tests"))
    from support.processes.local_llm import serving  # noqa: PLC0415  it lies beside the tests that need it

    rows = []
    with serving() as server:
        for task in tasks:
            with tempfile.TemporaryDirectory() as scratch:
                rows.append(measured(task, options.data, Path(scratch), lambda text: counted(server.url, text)))
            print(_line(rows[-1]), flush=True)
    text = page(rows)
    if not options.only:
        PAGE.write_text(text, "utf-8")
    print(text[text.index("| set |") :])


def counted(url: str, text: str) -> int:
    """Tokens of *text*, as the server at *url* counts them."""
    body = json.dumps({"content": text}).encode()
    request = urllib.request.Request(f"{url}/tokenize", body, {"Content-Type": "application/json"})  # noqa: S310  loopback
    with urllib.request.urlopen(request, timeout=LONGEST_SECONDS) as answer:  # noqa: S310  as above
        return len(json.load(answer)["tokens"])


def measured(task: Mapping[str, Any], data: Path, scratch: Path, count: Count) -> Row:
    """The prompts for one task's start state."""
    folder = scratch / "task"
    shutil.copytree(data / "tasks" / task["id"], folder, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"))
    output = plain_output(task, folder)
    (folder / "task.toml").write_text(tomli_w.dumps(_description(task)), "utf-8")
    made = load_task(folder)
    red, prompt = anyio.run(focused, made, scratch)
    texts = {p.relative_to(folder).as_posix(): p.read_text("utf-8") for p in sorted(folder.rglob("*.py"))}
    files = "\n\n".join(fence_text(text, path) for path, text in texts.items())
    full, cut = (
        "\n".join([RULES, INSTRUCTION, files, "The output of the tests:", fence_text(shown)])
        for shown in (output, cut_middle(output, OUTPUT_LIMIT))
    )
    return Row(task["id"], red, len(made.expected), count(prompt), count(full), count(cut))


def plain_output(task: Mapping[str, Any], folder: Path) -> str:
    """What pytest prints for the whole suite of the task, the tests that pass by name."""
    ran = folder.parent / "plain"
    shutil.copytree(folder, ran)
    command = [sys.executable, *("-v" if argument == "-q" else argument for argument in task["run"][1:])]
    own = dict(task.get("env") or {})
    if "PYTHONPATH" in own:  # what the bench itself was given, pytest-timeout perhaps, stays importable
        own["PYTHONPATH"] = os.pathsep.join([own["PYTHONPATH"], os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    done = subprocess.run(  # noqa: S603  our interpreter, on the task's own tests
        command, cwd=ran, env=os.environ | own, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False
    )
    if done.returncode != 1:
        raise SystemExit(f"{task['id']}: pytest ended with {done.returncode}: {(done.stdout + done.stderr)[-500:]}")
    return strip_control_sequences(done.stdout)


async def focused(task: Task, scratch: Path) -> tuple[int, str]:
    """How many tests are red on the start state, and the prompt of the first fix: of a real run, as it was sent."""
    place = RunPlace.at(scratch / "run", {"PATH": os.environ.get("PATH", "")})
    place.folder.mkdir()
    tree = store_tree(place.store, task)
    settings = protect_expected_files(build_settings(task, place.store, tree, None), task.expected)
    workspace = Workspace(place.folder / "workspace", place.store)
    workspace.reset(tree)
    guard, model = build_write_rules(settings), Listening()
    paths = dict.fromkeys(i.partition("::")[0] for i in task.expected)
    tests = {path: (workspace.folder / path).read_text("utf-8") for path in paths}
    targets = tuple(p for p in place.store.manifest(tree) if guard.editable(p) and not guard.protected(p))
    agent = Pipeline(targets, None, tests)
    parts = RunDependencies(
        workspace=workspace, verifier=build_verifier(place, settings, tree, task.expected), route=lambda _: model,
        agent=agent, guard=guard, clock=anyio.current_time,
    )  # fmt: skip
    first = ev.RunStart(
        run="bench", task=task.name, agent=agent.name, model=model.name, test_policy=TestPolicy.ON_WRITE,
        gate=Gate.OFF, budget=Budget(), expected=task.expected, tree=tree, settings=settings,
    )  # fmt: skip
    with Journal.create(place.folder) as journal:
        end = await Kernel(journal, EffectRunner(parts), agent, replay(journal.append((first,), 0.0))).run()
    prompt = next(ask.messages for ask in model.asked if ask.request.stage == "fix")
    return len(task.expected) - len(end.best.green_ids if end.best else ()), "\n".join(m.content for m in prompt)


def _description(task: Mapping[str, Any]) -> dict[str, object]:
    """A `task.toml` for *task*."""
    arguments = task["run"][3:]
    limit = [float(a.partition("=")[2]) for a in arguments if a.startswith("--timeout=")]
    return {
        "task": {"name": task["id"], "instruction": INSTRUCTION, "env": task.get("env") or {}},
        "files": {"editable": task["editable"]},
        "tests": {
            "select": [a for a in arguments if not a.startswith("-")],
            "expected": [*task["F2P"], *task["P2P"]],
            "timeout_seconds": LONGEST_SECONDS,
            "test_timeout_seconds": limit[0] if limit else 30.0,
        },
    }


def page(rows: list[Row]) -> str:
    """The page, with a line for each set and for each task."""
    sets = sorted({row.task.partition("-")[0] for row in rows})
    return "\n".join([
        "# What a fix prompt costs",
        "",
        "Written by `bench/prompts.py`, on the start states of real tasks with tests that fail.",
        "",
        "*Focused* is the prompt of the pipeline's first fix, taken from a run: the rules, the tests (a long test",
        "file without the tests in it that pass), the files to be written, and the output of the failing tests alone,",
        f"at most {OUTPUT_LIMIT:,} characters of it. *Full dump* is what a plain harness would send: the same rules",
        "and the same instruction, all Python files of the task, those of its tests among them, and all that",
        "`pytest -v` prints for the whole suite. *Cut* is the full dump with its output cut to the same length: what",
        "is left is the focus alone. Ratios are the focused prompt's tokens over the other's; medians are over the",
        "tasks of a set. Tokens are counted by the tokenizer of SmolLM2 (49,152 entries): large models have larger",
        "ones, whose counts are lower on both sides.",
        "",
        "Where a task is one small file and all of its tests fail there is little to leave out, and the focused prompt",
        "saves only what pytest prints around the failures. Where the cap hides failing tests the focused prompt still",
        "names each of them, which the cut dump does not: that is where it is the longer one. Where one large file is",
        "to be written, that file is most of either prompt.",
        "",
        "| set | tasks | red tests | focused | full dump | ratio | smallest | largest | ratio, cut |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *(_totals(name, [row for row in rows if row.task.startswith(f"{name}-")]) for name in sets),
        _totals("all", rows),
        "",
        "Tokens, task by task:",
        "",
        "| task | red tests | focused | full dump | ratio | ratio, cut |",
        "| --- | --- | --- | --- | --- | --- |",
        *map(_line, rows),
        "",
    ])  # fmt: skip


def _totals(name: str, rows: list[Row]) -> str:
    ratios = [row.ratio for row in rows]
    red = f"{sum(row.red for row in rows)} of {sum(row.tests for row in rows)}"
    middle = [round(median(values)) for values in ([row.focused for row in rows], [row.full for row in rows])]
    cut = median(row.ratio_cut for row in rows)
    spread = f"{median(ratios):.2f} | {min(ratios):.2f} | {max(ratios):.2f} | {cut:.2f}"
    return f"| {name} | {len(rows)} | {red} | {middle[0]} | {middle[1]} | {spread} |"


def _line(row: Row) -> str:
    share = f"{row.ratio:.2f} | {row.ratio_cut:.2f}"
    return f"| {row.task} | {row.red} of {row.tests} | {row.focused} | {row.full} | {share} |"


if __name__ == "__main__":
    main()
