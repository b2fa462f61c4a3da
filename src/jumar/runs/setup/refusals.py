"""Refuses tasks that cannot be run with their options: by what can be known before anything is made or run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from jumar.core.gate.write_rules import CONFIGURATION
from jumar.core.run.strategy import REPAIR
from jumar.errors import BadInput
from jumar.languages.gitignore_globs import compile_patterns
from jumar.languages.project_kinds import BUILD_FILES, CHECKER_FILES, PYTHON
from jumar.ports import Collected
from jumar.runners._programs import find_runner_surroundings
from jumar.runs.setup.assembly import load_runner
from jumar.task.suites import find_judging_files, find_last_run
from jumar.task.task import Task, find_interpreter

NAMED = 5
"""Files that a sentence names."""


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


def refuse_unloaded(folder: Path, tests: Iterable[str], found: Collected) -> None:
    """Refuse held-out *tests*, the files of *folder* that may have some, if there is none or one of them has no test.

    One that lacks what the change is to bring has those that stand in it; one that is no Python has none.

    Raises:
        BadInput: naming the folder, or the file and why it does not load.
    """
    have = {i.partition("::")[0] for i in found.ids}
    for path in tests:
        if path not in have and path in found.broken:
            why = (found.broken[path].why.strip().splitlines() or ["it does not load"])[-1]
            raise BadInput(f"[tests] hidden: {folder / path} has no test that can be found: {why.lstrip('E ')}")
    if have.isdisjoint(tests):
        raise BadInput(
            f"[tests] hidden names {folder}, and there is no test in it: {found.anomaly or 'nothing was found'}"
        )


def refuse_lost_tests(folder: Path, visible: Iterable[str], held_out: Iterable[str]) -> None:
    """Refuse held-out tests of *folder* in a file that takes the place of one with *visible* tests, and lacks some.

    Those would judge nothing. A fuller version of a file has them all.

    Raises:
        BadInput: naming the file and a test that it lacks.
    """
    kept = set(held_out)
    replaced = {i.partition("::")[0] for i in kept}
    for lost in visible:
        path, _, name = lost.partition("::")
        if path in replaced and lost not in kept:
            raise BadInput(
                f"[tests] hidden: {folder / path} takes the place of the task's own {path}, and lacks its {name}, "
                "which would judge nothing; give the file another name, or add what it lacks"
            )


def find_namesakes(visible: Iterable[str], held_out: Iterable[str]) -> dict[str, str]:
    """Return each file of *held_out*, paths, with a file of *visible* elsewhere that has the same name."""
    known = {PurePosixPath(path).name: path for path in visible}
    named = {path: known.get(PurePosixPath(path).name, path) for path in held_out}
    return {path: other for path, other in named.items() if other != path}


def refuse_namesakes(folder: Path, namesakes: Mapping[str, str], found: Collected) -> None:
    """Refuse *namesakes* as `find_namesakes` returns them, of which pytest loaded only one as *found* says.

    Raises:
        BadInput: naming both.
    """
    for path, other in namesakes.items():
        if any("import file mismatch" in found.broken[one].why for one in (path, other) if one in found.broken):
            raise BadInput(
                f"[tests] hidden: {folder / path} has the name of {other}, and pytest can load only one of them; give "
                "it another name, or put an __init__.py beside each"
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


def explain_no_target(task: Task, unprotected: Sequence[str], found: Sequence[str]) -> str:
    """Explain why no file of *task* may be edited: *unprotected* could be if they held none of the tests *found*."""
    inside = next((test for test in found if test.partition("::")[0] in unprotected), "")
    if inside:
        return (
            f"a file that holds a test is read-only, and {inside.partition('::')[0]} holds the test {inside}; if that "
            "is a doctest, name the test files with --test, and the other files may be edited"
        )
    if "files.editable" in task.named:
        return "[files] editable names none but tests, files that steer their runner, and build files"
    if task.suite.single:
        return _explain_all_judge(task)
    return f"none there is a source ({', '.join(task.editable)}) that is no test; name others in [files] editable"


def _explain_all_judge(task: Task) -> str:
    """Explain that the test command of *task* runs all files there are, and name the line that opens one."""
    command = task.suite.command
    judging = find_judging_files(command, task.root)
    closed = compile_patterns((*BUILD_FILES, *CHECKER_FILES, *CONFIGURATION))
    opened = [path for path in find_last_run(command, task.root, judging) if not closed(path)]
    if not opened:
        return f"{command} is the test command, and there is nothing beside tests, build files and configuration"
    shown = ", ".join(judging[:NAMED]) + (f" and {len(judging) - NAMED} more" if len(judging) > NAMED else "")
    line = ", ".join(f'"{path}"' for path in opened[:NAMED])
    return (
        f"the test command {command!r} names or runs {shown}, which judge and are read-only for that; open what is to "
        f"be mended by its path, in a task.toml: [files] editable = [{line}]"
    )
