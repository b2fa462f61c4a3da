"""`jumar check`: finds tasks that cannot be worked on before an agent is paid to try."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import click
from msgspec.structs import replace

from jumar.campaigns.find_tasks import find_tasks
from jumar.campaigns.plan import CampaignTask
from jumar.cli.console.output import Console
from jumar.cli.console.signals import SignalWatcher
from jumar.cli.harbor_tasks import replace_harbor_tasks
from jumar.cli.parameters.command_options import TEST_COMMAND, add_output_options, add_verdict_options, read_options
from jumar.cli.parameters.environment import read_environment
from jumar.core.state.run_state import HOST
from jumar.core.state.stop import EXIT_CODES, StopReason
from jumar.core.state.test_policy import Gate
from jumar.errors import BadInput, Infra
from jumar.importing.check_task import CheckResources, TaskValidity, examine_task
from jumar.runs.setup.choose_sandbox import SandboxSurroundings, choose_sandbox
from jumar.sandbox.request import AUTO
from jumar.task.resolve import apply_options
from jumar.task.task import Task, load_task


@click.command(epilog="Example: jumar check 'tasks/*' --references solutions")
@click.argument("tasks", nargs=-1)
@click.option(
    "--references", type=click.Path(path_type=Path), help="A folder with the solution of each task, by its name."
)
@click.option("--python", help="The interpreter that runs the tests; default: the task's .venv, else ours.")
@click.option("--cores", type=click.IntRange(1), help="Tasks checked at once (default: the cores of this machine).")
@TEST_COMMAND
@add_verdict_options
@add_output_options
def check(tasks: tuple[str, ...], *, as_json: bool, quiet: bool, **chosen: Any) -> int:
    """Check TASKS: folders, task.toml files, globs, .jsonl lists, or folders of Harbor tasks.

    A task is valid if something is red on its untouched tree, its tests come out the same each time, not all of them
    pass with the code gone, and its reference solution, where it has one, is accepted as a green.
    """
    voice = Console(json=as_json, quiet=quiet)
    if chosen["references"] is not None and not chosen["references"].is_dir():
        raise BadInput(f"there is no folder {chosen['references']}; name one with a solution for each task")
    named = find_tasks(tasks)
    checks = SignalWatcher(voice.note, quiet=quiet).run(lambda: _check_all(voice, named, chosen))
    if checks is None:
        return voice.report_interrupt()
    valid = sum(each.valid for each in checks)
    voice.say(f"{valid} of {len(checks)} tasks are valid")
    voice.print_result({"tasks": checks, "valid": valid, "invalid": len(checks) - valid})
    return 0 if valid == len(checks) else EXIT_CODES[StopReason.FINAL]


async def _check_all(voice: Console, tasks: Sequence[CampaignTask], chosen: dict[str, Any]) -> list[TaskValidity]:
    environ = read_environment()
    found: dict[str, TaskValidity] = {}
    limiter = anyio.CapacityLimiter(chosen["cores"] or len(os.sched_getaffinity(0)))
    with tempfile.TemporaryDirectory(prefix="jumar-check-") as scratch:
        around = SandboxSurroundings(Path(scratch), environ, tuple(Path(task.path) for task in tasks))
        sandbox = await choose_sandbox(chosen["sandbox"] or AUTO, around, unattended=False)
        means = CheckResources(sandbox, environ, chosen["python"])

        async def check_one(task: CampaignTask) -> None:
            async with limiter:
                try:
                    (ready,) = await replace_harbor_tasks([task], Path(scratch) / "harbor", voice)
                    found[task.name] = await _check(ready, chosen, means)
                except (BadInput, Infra) as fault:
                    found[task.name] = TaskValidity(task=task.name, valid=False, problems=(str(fault),))
                _show(voice, found[task.name])

        async with anyio.create_task_group() as group:
            for task in tasks:
                group.start_soon(check_one, task)
    return [found[task.name] for task in tasks]


async def _check(named: CampaignTask, chosen: dict[str, Any], means: CheckResources) -> TaskValidity:
    return replace(await examine_task(_load(named, chosen), means), task=named.name)


def _load(named: CampaignTask, chosen: dict[str, Any]) -> Task:
    options = read_options({"agent": HOST, "model": HOST, "gate": Gate.OFF, **chosen})
    task = apply_options(load_task(Path(named.path)), options)
    references = chosen["references"]
    if references is None or task.reference is not None:
        return task
    folder = references / named.name
    if not folder.is_dir():
        raise BadInput(f"there is no solution {folder}; name the folder that holds one for each task")
    return replace(task, reference=folder.resolve())


def _show(voice: Console, found: TaskValidity) -> None:
    """Print the findings, a line or more for each task."""
    about = f"{found.tests} tests, {len(found.red)} red at the start, reference {found.reference}"
    voice.say(f"{'valid  ' if found.valid else 'INVALID'}  {found.task}  {about}  {found.seconds:.1f} s")
    for problem in found.problems:
        voice.say_line(f"         {problem}")
    for warning in found.warnings:
        voice.say_line(f"         warning: {warning}")
