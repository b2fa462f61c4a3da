"""Gate checks of `jumar doctor`: the runners that work here, the tests, the open steps of a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from jumar.child.commands.test_command_main import check_startable
from jumar.core.state.claims import find_plan_warnings, get_step_status
from jumar.errors import BadInput, JumarError
from jumar.languages.project_kinds import COMMAND
from jumar.plugins import list_names
from jumar.runners._programs import find_runner_surroundings
from jumar.runners.command import build_argv
from jumar.runs.setup.assembly import list_reserved, load_runner
from jumar.runs.setup.result import read_state
from jumar.runs.setup.toolchain_check import check_toolchain
from jumar.sandbox.barred_places import explain_left_out, list_barred_places
from jumar.sandbox.personal_files import find_homes
from jumar.task.task import Task, list_tree_files
from jumar.task.untested import ELSE, SET_VERIFY, find_verify_commands

UNTESTED = "no test file: jumar run -i '...' begins in refactor mode, in which edits need no claims"
OFFER = f"{SET_VERIFY}; {ELSE}; or pass --gate strict, and the agent writes the first failing test"


class GateCheck(msgspec.Struct, frozen=True):
    """Result of one check."""

    name: str
    ok: bool
    found: str
    mend: str = ""
    needed: bool = True
    """True if jumar cannot work without it."""
    facts: Mapping[str, object] = {}
    """More of what was found, for programs."""


def check_runners(task: Task | None, environ: Mapping[str, str]) -> Iterator[GateCheck]:
    """Check which runners work for *task*; only its own is needed. pytest's interpreter is checked elsewhere."""
    root = task.root if task else Path.cwd()
    for name in list_names("runners"):
        needed = task is not None and task.suite.runner == name
        if name in ("pytest", "junit", COMMAND) and not needed:
            continue
        around = find_runner_surroundings(load_runner(name), root, environ)
        why = around.missing or check_toolchain(around, environ)
        what, _, mend = why.rpartition(": ") if why else ("", "", "")
        found = what if why else f"{around.probe[0]} works in a sandbox" if around.probe else "is there"
        yield GateCheck(f"runner {name}", ok=not why, found=found, mend=mend, needed=needed)


def check_path(task: Task, environ: Mapping[str, str]) -> Iterator[GateCheck]:
    """Report the folders of PATH that no sandbox shows as a whole: a command or an agent misses what lies there."""
    barred = list_barred_places(task.root, list_reserved(task))
    for said in explain_left_out(environ.get("PATH", ""), barred, find_homes()):
        yield GateCheck(
            "path", ok=False, needed=False, found=said, mend="take it off PATH, or name a folder of its own"
        )


def check_tests(task: Task, environ: Mapping[str, str]) -> Iterator[GateCheck]:
    """Check whether *task* has tests, and else which commands could guard a refactoring of it."""
    if task.suite.single:
        yield _check_command(task, environ)
        return
    files = tuple(list_tree_files(task.root, task.withheld))
    there = load_runner(task.suite.runner).test_files(files, task.suite.select)
    if there:
        yield GateCheck("tests", ok=True, needed=False, found=f"{len(there)} test files for {task.suite.runner}")
    else:
        guards = (task.verify,) if task.verify else find_verify_commands(task, environ)
        said = f"; [gate] verify: {guards[0]}" if task.verify else ""
        said = said or (f"; guarded by the first that succeeds: {', '.join(guards)}" if guards else "")
        facts = {"verify": list(guards)}
        yield GateCheck("tests", ok=False, needed=False, found=UNTESTED + said, mend=OFFER, facts=facts)


def _check_command(task: Task, environ: Mapping[str, str]) -> GateCheck:
    """Check that the test command of *task* can be started."""
    try:
        build_argv(task.suite.command)
        why = check_startable(task.suite.command, environ.get("PATH", ""), task.root)
    except BadInput as bad:
        why = str(bad)
    what, _, mend = why.partition(": ")
    found = what if why else f"{task.suite.command}: one test, passed if it exits with status 0"
    return GateCheck("tests", ok=not why, found=found, mend=mend)


def check_plans(runs: Path) -> Iterator[GateCheck]:
    """Report the open steps in the plan of the newest run below *runs*, if it has one."""
    folders = sorted((path.parent for path in runs.glob("*/events.jsonl")), key=lambda path: path.name)
    for folder in reversed(folders):
        try:
            book = read_state(folder).gate_state
        except JumarError:  # `jumar log verify` tells
            continue
        for said in find_plan_warnings(book.plan):
            yield GateCheck(
                "plan", ok=False, needed=False, found=f"{folder.name}: {said}", mend="submit the plan again"
            )
        if book.plan:
            where = ", ".join(f"{step.title}: {get_step_status(step, book.newest)}" for step in book.plan)
            yield GateCheck("plan", ok=True, needed=False, found=f"{folder.name}: {where}")
        return
