"""Refuses tasks that cannot be run with their options: by what can be known before anything is made or run."""

from __future__ import annotations

from collections.abc import Mapping

from jumar.core.run.strategy import REPAIR
from jumar.errors import BadInput
from jumar.languages.project_kinds import PYTHON
from jumar.runners._programs import find_runner_surroundings
from jumar.runs.setup.assembly import load_runner
from jumar.task.task import Task, find_interpreter


def refuse_unfit(task: Task, python: str | None) -> None:
    """Refuse *task* if it and its options do not fit together: a run would, and so would each one of a campaign.

    Raises:
        BadInput: saying why.
    """
    find_interpreter(task, python)
    _refuse_search(task)
    refuse_unrun_held_out(confirm=task.suite.confirm if task.hidden else 1)
    refuse_probe(task)


def refuse_missing_runner(task: Task, environ: Mapping[str, str]) -> None:
    """Refuse *task* if what runs its tests is not on this machine.

    Raises:
        BadInput: saying how to get it.
    """
    if missing := find_runner_surroundings(load_runner(task.suite.runner), task.root, environ).missing:
        raise BadInput(missing)


def refuse_unrun_held_out(*, confirm: int) -> None:
    """Refuse held-out tests that would never run, as *confirm* runs confirm a green.

    Raises:
        BadInput: if it is none.
    """
    if not confirm:
        raise BadInput(
            "[tests] hidden runs in the runs that confirm a green, and --confirm 0 has none; say --confirm 1 or more"
        )


def refuse_probe(task: Task) -> None:
    """Refuse `--probe` where nothing could be mutated.

    Raises:
        BadInput: if it is chosen, and *task* has no tests that pytest runs.
    """
    if task.probe and task.suite.runner != PYTHON.runner:
        raise BadInput(
            f"--probe mutates Python that pytest tests, and {task.suite.runner} runs the tests of {task.root}: there "
            "are no mutants for it; leave --probe out"
        )


def _refuse_search(task: Task) -> None:
    if task.agent == REPAIR and task.suite.single:
        raise BadInput(
            "the repair agent needs tests that run one by one under pytest, and a test command is one test for the "
            "whole suite; choose a model for another agent, or name the tests with --test in the place of the command"
        )
    if task.agent == REPAIR and task.suite.runner != PYTHON.runner:
        raise BadInput(
            f"repair changes Python that pytest tests, and {task.suite.runner} runs the tests of {task.root}; "
            "choose a model for another agent"
        )
