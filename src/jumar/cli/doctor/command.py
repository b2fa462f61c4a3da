"""`jumar doctor`: checks what works here and what does not, and shows how to fix it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import click
import msgspec

from jumar.cli.console.output import Console
from jumar.cli.doctor.gate import GateCheck, check_path, check_plans, check_runners, check_tests
from jumar.cli.doctor.pytest_version import find_pytest_version, is_project_python
from jumar.cli.doctor.sandbox import check_sandboxes
from jumar.cli.doctor.settings import resolve_run_settings
from jumar.cli.parameters.command_options import TEST_COMMAND, add_output_options
from jumar.cli.parameters.environment import read_environment
from jumar.errors import BadInput
from jumar.models.wire.http_client import check_installed
from jumar.models.wire.providers import PROVIDERS
from jumar.process.model_command import check_confinable
from jumar.runs.archive.find import RUNS, refuse_links
from jumar.task.model_routes import find_keyed_model
from jumar.task.resolve import Options, apply_test_command
from jumar.task.settings.precedence import format_value
from jumar.task.task import Task, find_interpreter, load_task

ENOUGH_BYTES = 512 * 1024**2


@click.command(epilog="Example: jumar doctor .")
@click.argument("task", type=click.Path(path_type=Path), default=".")
@click.option("--python", help="The interpreter that runs the tests; default: the task's .venv, else ours.")
@click.option("--runs", type=click.Path(path_type=Path), default=RUNS, show_default=True, help="Where runs are kept.")
@TEST_COMMAND
@click.option("--probe", is_flag=True, help="Run the self-test of the sandboxes again, whatever is remembered of it.")
@add_output_options
def doctor(task: Path, python: str | None, runs: Path, test_command: str | None, *, probe: bool, **speech: bool) -> int:
    """Try what jumar needs for TASK: Python, the runners, git, disk, permissions, models, sandboxes."""
    voice = Console(json=speech["as_json"], quiet=speech["quiet"])
    refuse_links(runs)
    checks = tuple(_run_checks(task, python, runs, test_command, anew=probe))
    for check in checks:
        mark = "ok  " if check.ok else "FAIL" if check.needed else "warn"
        voice.say(f"{mark}  {check.name:<13} {check.found}" + (f"\n      mend: {check.mend}" if check.mend else ""))
    broken = [c for c in checks if c.needed and not c.ok]
    rows, notes = resolve_run_settings(task, read_environment())
    for row in rows:
        voice.say(f"set   {row.name:<13} {format_value(row.value)}  ({row.source})")
    for note in notes:
        voice.say(f"note  {note}")
    found = {"checks": checks, "settings": rows, "notes": notes}
    voice.print_result(
        {"ok": not broken} | {key: [msgspec.to_builtins(each) for each in many] for key, many in found.items()}
    )
    return int(bool(broken))


def _run_checks(
    task: Path, python: str | None, runs: Path, test_command: str | None, *, anew: bool
) -> Iterator[GateCheck]:
    yield _check_python()
    yield from _check_tests(task, python, test_command)
    yield from check_plans(runs)
    yield _check_git()
    yield _check_disk(runs)
    yield from _check_permissions(runs)
    yield _check_system()
    yield _check_commands(task, python)
    yield _check_models()
    yield from check_sandboxes(runs, read_environment(), anew=anew)


def _check_python() -> GateCheck:
    found = f"{platform.python_version()} at {sys.executable}"
    ok = sys.version_info >= (3, 11)
    return GateCheck("python", ok=ok, found=found, mend="" if ok else "install Python 3.11 or newer")


def _check_tests(task: Path, flag: str | None, test_command: str | None) -> Iterator[GateCheck]:
    try:
        loaded = apply_test_command(load_task(task), Options(test_command=test_command))
        python = find_interpreter(loaded, flag)
    except BadInput as bad:
        yield GateCheck("task", ok=False, found=str(bad), mend="name a folder with tests or a task file")
        yield from check_runners(None, read_environment())
        return
    yield GateCheck("task", ok=True, found=str(task.resolve()))
    yield from check_path(loaded, read_environment())
    yield from check_tests(loaded, read_environment())
    yield _check_pytest(loaded, python)
    yield from check_runners(loaded, read_environment())


def _check_pytest(loaded: Task, python: Path) -> GateCheck:
    """Check that *python* has pytest. One from the task is not started: no sandbox confines it here."""
    if is_project_python(python, loaded.root):
        found = find_pytest_version(python)
        ok = bool(found)
    else:
        probe = "import sys, pytest; print(pytest.__version__, 'with Python', sys.version.split()[0])"
        found, ok = _run_program([str(python), "-I", "-c", probe])
    mend = "" if ok else f"{python} -m pip install pytest, or pass --python"
    found = f"{found} at {python}" if ok else f"{python} has no pytest"
    return GateCheck("pytest", ok=ok, found=found, mend=mend, needed=loaded.suite.runner == "pytest")


def _check_git() -> GateCheck:
    git = shutil.which("git")
    found, ok = _run_program([git, "--version"]) if git else ("not found", False)
    return GateCheck("git", ok=ok, found=found, mend="" if ok else "install git: best.patch is made with it")


def _check_disk(runs: Path) -> GateCheck:
    free = shutil.disk_usage(_find_existing(runs)).free
    ok = free >= ENOUGH_BYTES
    mend = "" if ok else "free some space, or keep runs elsewhere with --runs"
    return GateCheck("disk", ok=ok, found=f"{free / 1024**3:.1f} GiB free for {runs}", mend=mend)


def _check_permissions(runs: Path) -> Iterator[GateCheck]:
    for name, folder in (("runs", _find_existing(runs)), ("temporary", Path(tempfile.gettempdir()))):
        ok = os.access(folder, os.W_OK | os.X_OK)
        mend = "" if ok else f"make {folder} writable" + (", or pass --runs" if name == "runs" else ", or set TMPDIR")
        yield GateCheck(name, ok=ok, found=f"{folder} is {'' if ok else 'not '}writable", mend=mend)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        mend = "run as an ordinary user where tests are not yours"
        yield GateCheck("user", ok=False, needed=False, found="root: in sandbox S0 tests have all rights", mend=mend)


def _check_system() -> GateCheck:
    linux = sys.platform == "linux"
    mend = "" if linux else "use Linux: elsewhere a process that leaves its group may survive a kill"
    return GateCheck("processes", ok=linux, needed=False, found=f"{platform.system()} {platform.release()}", mend=mend)


def _check_commands(task: Path, flag: str | None) -> GateCheck:
    try:
        python = find_interpreter(load_task(task), flag)
    except BadInput:  # which has a line of its own
        python = Path(sys.executable)
    why = anyio.run(check_confinable, python.absolute(), read_environment())
    mend = "install bubblewrap, or pip install 'jumar[sandbox]', where user namespaces are allowed" if why else ""
    found = why or "commands of a model can be confined: no network, no home, a copy of the tree"
    return GateCheck("commands", ok=not why, needed=False, found=found, mend=mend)


def _check_models() -> GateCheck:
    """Check that a provider can be asked. Keys are named by their variables, never shown."""
    try:
        check_installed()
    except BadInput as bad:
        return GateCheck("models", ok=False, needed=False, found=str(bad), mend="pip install 'jumar[llm]'")
    environ = read_environment()
    variables = [v for p in PROVIDERS if p.needs_key for v in p.keys if environ.get(v, "").strip()]
    if not variables:
        mend = "set one such as ANTHROPIC_API_KEY, or pass --base-url of a local server, or --model repair"
        return GateCheck("models", ok=False, needed=False, found="no key of a provider is set", mend=mend)
    found = f"{', '.join(variables)} set: {find_keyed_model(environ)[0]} where no model is chosen"
    return GateCheck("models", ok=True, needed=False, found=found)


def _find_existing(folder: Path) -> Path:
    """Return *folder*, or the nearest of its parents that exists."""
    absolute = folder.absolute()
    return next(p for p in (absolute, *absolute.parents) if p.exists())


def _run_program(argv: list[str]) -> tuple[str, bool]:
    """Run a program; return its output and whether it worked."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)  # noqa: S603  ours
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error), False
    return done.stdout.strip(), done.returncode == 0
