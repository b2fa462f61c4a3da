"""The demo's bugs are worked on side by side: each shows what is its own, and one that is stopped stops them all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from jumar.cli.console.signals import FIRST
from jumar.core.state.stop import StopReason
from jumar.errors import BadInput
from jumar.importing.demo import AT_ONCE, DemoBug, work_through
from jumar.importing.recipes import PreparedRecipe, load_shipped
from jumar.kernel import Kernel
from jumar.runs.lifecycle import Begun
from support.processes.interpreters import beside_it

BUG = "def f(a, b):\n    return a - b\n"
TASK = "[task]\nname = '{}'\n[files]\neditable = ['/app.py']\n[run]\nconfirm = 0\n"
TEST = "from app import f\n\n\ndef test_f():\n    assert f(5, 3) == 8\n"


class Watching:
    """A stage that remembers what it is told, and halts the first run if it is told to."""

    def __init__(self, *, halting: bool = False) -> None:
        self.said: list[tuple[str, str]] = []
        self.done: list[DemoBug] = []
        self.refused: list[tuple[str, str]] = []
        self._halting = halting

    @contextmanager
    def follow(self, prepared: PreparedRecipe) -> Iterator[Begun]:
        name = prepared.recipe.task_name
        self.said.append(("enter", name))

        def begun(kernel: Kernel) -> None:
            assert kernel.state.run.task == name
            if self._halting:
                kernel.halt(FIRST)

        yield begun
        self.said.append(("leave", name))

    def show(self, done: DemoBug) -> None:
        self.done.append(done)

    def refuse(self, prepared: PreparedRecipe, why: str) -> None:
        self.refused.append((prepared.recipe.task_name, why))


def work(folder: Path, stage: Watching, bugs: int, *, unsound: int = 0) -> None:
    """Work through so many tasks with one bug; the first *unsound* of them cannot be judged."""
    made: list[PreparedRecipe] = []
    for recipe in load_shipped().fixed[:bugs]:
        root = folder / "demo" / recipe.task_name
        root.mkdir(parents=True)
        (root / "app.py").write_text(BUG)
        (root / "test_app.py").write_text(TEST)
        (root / "pytest.ini").write_text("[pytest]\naddopts = --no-such\n" if len(made) < unsound else "[pytest]\n")
        (root / "task.toml").write_text(TASK.format(recipe.task_name))
        beside_it(root)
        made.append(PreparedRecipe(recipe, root))
    environ: Mapping[str, str] = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    anyio.run(work_through, (*made, PreparedRecipe(load_shipped().fixed[-1], None, "no network")),
              folder / "runs", environ, stage, 400.0)  # fmt: skip


@pytest.mark.proof
@pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < AT_ONCE, reason="bugs are worked on side by side where there are cores"
)
def test_two_bugs_are_worked_on_at_once_and_each_gets_its_own_result(tmp_path: Path) -> None:
    stage = Watching()
    work(tmp_path, stage, bugs=2)

    assert [what for what, _ in stage.said] == ["enter", "enter", "leave", "leave"], "what was not fetched is left out"
    assert len({one.prepared.recipe.task_name for one in stage.done}) == 2
    for one in stage.done:
        assert (one.result.stop, one.result.task) == (StopReason.GREEN, one.prepared.recipe.task_name)
        assert "+    return a + b" in one.diff
        assert one.candidates > 0
    assert not [path for path in (tmp_path / "runs").iterdir() if path.name.startswith(".sandbox")]


@pytest.mark.slow
def test_one_that_is_interrupted_ends_and_no_other_is_begun(tmp_path: Path) -> None:
    stage = Watching(halting=True)
    work(tmp_path, stage, bugs=4)

    assert {one.result.stop for one in stage.done} == {StopReason.INTERRUPTED}
    assert [what for what, _ in stage.said].count("enter") <= AT_ONCE
    ended = {Path(one.result.events).parent.name for one in stage.done}
    kept = {path.name for path in (tmp_path / "runs").iterdir() if path.is_dir() and not path.name.startswith(".")}
    assert kept == ended, "none is left half begun"


@pytest.mark.slow
def test_one_that_is_refused_does_not_end_the_others(tmp_path: Path) -> None:
    stage = Watching()
    work(tmp_path, stage, bugs=2, unsound=1)

    assert [(name, "--no-such" in why) for name, why in stage.refused] == [(load_shipped().fixed[0].task_name, True)]
    assert [one.result.stop for one in stage.done] == [StopReason.GREEN]


@pytest.mark.slow
def test_where_each_is_refused_the_first_reason_is_given(tmp_path: Path) -> None:
    stage = Watching()
    with pytest.raises(BadInput, match="--no-such"):
        work(tmp_path, stage, bugs=1, unsound=1)
    assert not stage.done
