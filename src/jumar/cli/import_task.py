"""`jumar import`: makes tasks from git repositories, PyPI releases and Harbor tasks, each checked first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

import click
import msgspec

from jumar.cli.console.output import Console
from jumar.cli.console.signals import SignalWatcher
from jumar.cli.parameters.command_options import add_output_options
from jumar.cli.parameters.environment import find_cache_folder, read_environment
from jumar.importing.from_git import read_git_sides
from jumar.importing.from_harbor import ImportedHarborTask, import_harbor_task
from jumar.importing.from_pypi import Release, fetch_pypi_sides
from jumar.importing.make_task import TaskSides
from jumar.importing.validate import Imported, ImportResources, import_task

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


@click.group("import", epilog="Example: jumar import git . HEAD~1..HEAD -o tasks/fix")
def import_() -> None:
    """Make a task: from a past bug (the source before a fix, judged by the tests after it), or from a Harbor task."""


def add_import_options(command: Decorated) -> Decorated:
    """Return the options of every import."""
    command = click.option("--python", help="The interpreter that runs the tests; default: ours.")(command)
    command = click.option(
        "--with", "packages", multiple=True, metavar="PKG==VER", help="Give the task a .venv with pytest and this."
    )(command)
    return click.option("-o", "--out", type=click.Path(path_type=Path), default=Path(), help="Where the task goes.")(
        command
    )


@import_.command("git", epilog="Example: jumar import git ~/src/parse 1a2b3c4..5d6e7f8 -o tasks")
@click.argument("repo")
@click.argument("revisions", metavar="OLD..NEW")
@add_import_options
@add_output_options
def git(repo: str, revisions: str, **chosen: Any) -> int:
    """A task from REPO (a folder or URL): OLD..NEW, or the commit of a fix."""
    return _make_task(lambda: read_git_sides(repo, revisions), chosen)


@import_.command(
    "pypi", epilog="Example: jumar import pypi humanize 4.12.2 4.12.3 --with freezegun --with coverage -o tasks"
)
@click.argument("name")
@click.argument("old")
@click.argument("new")
@add_import_options
@add_output_options
def pypi(name: str, old: str, new: str, **chosen: Any) -> int:
    """A task from two source distributions of NAME: the releases before and after a fix."""
    return _make_task(
        lambda: fetch_pypi_sides(Release(name, old), Release(name, new), find_cache_folder() / "sdists"), chosen
    )


@import_.command("harbor", epilog="Example: jumar import harbor hello-world -o tasks")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("-o", "--out", type=click.Path(path_type=Path), default=Path(), help="Where the task goes.")
@add_output_options
def harbor(folder: Path, out: Path, *, as_json: bool, quiet: bool) -> int:
    """A task from the Harbor task in DIR, if it runs without a container: Python files, and pytest files that judge.

    What needs one is named, and nothing is written (exit 2). `jumar check` says whether the task holds.
    """
    voice = Console(json=as_json, quiet=quiet)

    async def work() -> ImportedHarborTask:
        return await import_harbor_task(folder, out)

    made = SignalWatcher().run(work)
    if made is None:
        return voice.report_interrupt()
    voice.say(f"{made.folder}")
    for note in made.notes:
        voice.say(f"  {note}")
    voice.say(f"  try it: jumar check {quote(str(made.folder))}")
    voice.print_result(made)
    return 0


def _make_task(sides: Callable[[], Awaitable[TaskSides]], chosen: dict[str, Any]) -> int:
    voice = Console(json=chosen["as_json"], quiet=chosen["quiet"])
    means = ImportResources(python=chosen["python"], packages=chosen["packages"], environ=read_environment())

    async def work() -> Imported:
        voice.note("fetching")
        found = await sides()
        voice.note("checking: red before the fix, green with it")
        return await import_task(found, chosen["out"], means)

    made = SignalWatcher().run(work)
    if made is None:
        return voice.report_interrupt()
    checks = made.checks
    voice.say(f"{made.folder}")
    voice.say(f"  {len(checks.fail_to_pass)} red to green, {len(checks.pass_to_pass)} green before and after")
    for test_id, why in checks.dropped.items():
        voice.say(f"  dropped {test_id}: {why}")
    voice.say(f"  try it: jumar run {quote(str(made.folder))} --model repair")
    voice.print_result({"folder": str(made.folder), **msgspec.to_builtins(checks)})
    return 0
