"""A task, resolved before anything runs: editable files, judging tests, interpreter."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from os.path import normpath, relpath
from pathlib import Path

import msgspec

from jumar.core.gate.grades import REACHABLE
from jumar.core.gate.write_rules import CONFIGURATION, WriteRules, find_absent
from jumar.core.state.budget import Budget
from jumar.core.state.external_agent import ExternalAgentSettings
from jumar.core.state.ratchet import Rule
from jumar.core.state.settings import Context, Price, Route, Settings, Suite, Switches
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.errors import BadInput
from jumar.languages.gitignore_globs import compile_patterns, escape_path
from jumar.languages.project_kinds import (
    BUILD_FILES,
    CHECKER_FILES,
    COMMAND,
    PYTHON,
    ProjectKind,
    find_project,
    recognise_runner,
)
from jumar.languages.python_encoding import decode_source
from jumar.process.toolchain import resolve_python
from jumar.sandbox.request import AUTO
from jumar.task.settings.precedence import FileSettings, SettingValue
from jumar.task.settings.task_file import (
    ContextTable,
    PipelineTable,
    Routes,
    TaskFile,
    refuse_paths,
)
from jumar.task.settings.task_files import DEFAULTS_FILE, TASK_FILE, read_files, refuse_non_tasks
from jumar.task.suites import build_suite, choose_runner, find_judging_files
from jumar.workspace.files.tree_size import TreeSize
from jumar.workspace.git_ignored import Ignored

VENVS = (".venv", "venv")

NAME = re.compile(r"[^/\\\x00-\x1f]{1,100}")
"""A task's name becomes part of the name of its runs' folders."""

NEVER = (".git/", ".hg/", ".svn/", ".jumar/", ".venv/", ".tox/", ".nox/", "node_modules/", "__pycache__/", "*.pyc")


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace, an instruction, the tests that judge it, limits: everything known before a run."""

    root: Path
    """The folder the tree is copied from."""
    name: str
    instruction: str = ""
    env: Mapping[str, str] = {}
    editable: tuple[str, ...] = ("*.py",)
    protected: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    """Globs of what never enters a workspace: the reference, hidden tests, the task file, virtual environments."""
    include: tuple[str, ...] = ()
    """Globs of what belongs to the tree though git ignores it."""
    exclude: tuple[str, ...] = ()
    """Globs of what is left out beside that."""
    left_out: Ignored | None = None
    """Files that git ignores there; None if nobody has looked yet."""
    weight: TreeSize = TreeSize()
    """Size of its tree; empty if nobody has looked yet."""
    reference: Path | None = None
    hidden: Path | None = None
    suite: Suite = Suite()
    verify_timeout_seconds: float = 120.0
    expected: tuple[str, ...] = ()
    """The ids that judge; empty is whatever the runner collects."""
    budget: Budget = Budget()
    files: tuple[FileSettings, ...] = ()
    """The settings of `[run]` in the files that were read, the highest file first."""
    in_force: tuple[SettingValue, ...] = ()
    """The settings of the run, each with its source."""
    notes: tuple[str, ...] = ()
    """One line each: what was set and is not in force, and which cap nobody set."""
    named: frozenset[str] = frozenset()
    """The keys that a file set, as `table.key`."""
    context: ContextTable = ContextTable()
    verify: str = ""
    """`[gate] verify`: the command of the last gate."""
    pipeline: PipelineTable = PipelineTable()
    routes: Routes = Routes()
    prices: Mapping[str, Price] = {}
    own_prices: Mapping[str, Price] = {}
    """Prices from a file that did not come with the task."""
    agent: str = ""
    model: str = ""
    test_policy: TestPolicy = TestPolicy.ON_WRITE
    gate: Gate = Gate.OFF
    gate_chosen: bool = False
    """True if a person chose the gate: else a repository without tests begins in refactor mode."""
    rule: Rule = Rule()
    seed: int = 0
    chosen_routes: Mapping[str, Route] = {}
    """Tier -> route, settled from what was chosen, the tables and the defaults; empty: no provider is asked."""
    switches: Switches = Switches()
    ledger: Path | None = None
    caps: Budget | None = None
    """Of the ledger, where it is new."""
    record: Path | None = None
    sandbox: str = AUTO
    min_grade: str = ""
    """Weakest grade of a green; empty: nobody chose one, and it is `reachable` unattended or with held-out tests."""
    unattended: bool = False
    """True if nobody watches: without a chosen sandbox the run gets the strongest tier, or is refused."""
    probe: bool = False
    outside: ExternalAgentSettings = ExternalAgentSettings()
    """Of an external agent: its command."""
    in_place: Ignored | None = None
    """Files that are never touched where the agent works in that folder itself; None: it works in a copy."""


def load_task(path: Path, config: Path | None = None, *, hosted: bool = False) -> Task:
    """Return the task at *path*: a `task.toml`, a folder with one, or any repository.

    Args:
        path: What the person named.
        config: A file of defaults of the person's; without it, `jumar.toml` in the folder and beside it are read.
        hosted: True if the agent works in that folder itself: it sees all that lies below, whatever is refused here.

    Raises:
        BadInput: if anything is missing, unreadable or contradicts itself; nothing was run.
    """
    found = read_files(path, config)
    if not hosted:
        refuse_non_tasks(found.root, path)
    task = _build(found.root, found.tables, found.where)
    _refuse_undecodable(task)
    task = msgspec.structs.replace(task, own_prices=found.own_prices, files=found.settings, named=found.named)
    return protect_judging_files(task)


def list_protected(task: Task, test_files: Iterable[str]) -> tuple[str, ...]:
    """Return the globs of read-only files: the task's own, its tests, and the files that steer the runner.

    Later lines win in gitignore, so no negation of the task's can open the tests.
    """
    return (*task.protected, *(escape_path(p) for p in test_files), *CONFIGURATION)


def build_write_rules(settings: Settings) -> WriteRules:
    """Return the write rules of a run that is resumed from its journal."""
    return WriteRules(compile_patterns(settings.editable), compile_patterns(settings.protected))


def freeze_settings(
    task: Task, test_files: Iterable[str], python: Path | None = None, context: Context | None = None
) -> Settings:
    """Return the settings that the journal keeps of *task*, so that a run directory is enough to resume."""
    return Settings(
        instruction=task.instruction,
        editable=task.editable,
        protected=list_protected(task, test_files),
        rule=task.rule,
        suite=msgspec.structs.replace(task.suite, python=str(python)) if python else task.suite,
        seed=task.seed,
        origin=str(task.root),
        routes=dict(task.chosen_routes),
        context=context or Context(),
        switches=task.switches,
        outside=task.outside,
        in_place=task.in_place is not None,
        skip=task.in_place.lines if task.in_place else (),
        tracked=task.in_place.tracked if task.in_place else (),
        include=task.in_place.include if task.in_place else (),
        tree_bytes=task.weight.bytes,
        verify=task.verify,
        verify_seconds=task.verify_timeout_seconds,
        sandbox=task.sandbox,
        min_grade=task.min_grade or (REACHABLE if task.unattended or task.hidden else ""),
        ledger=str(task.ledger) if task.ledger else "",
        notes=task.notes,
    )


def find_interpreter(task: Task, flag: str | None = None) -> Path:
    """Return the Python that runs the tests: *flag*, else the task's virtual environment, else jumar's own.

    Raises:
        BadInput: if *flag* names no program.
    """
    if flag:
        found = shutil.which(flag)
        if found is None:
            raise BadInput(f"--python {flag} is not a program that can be run; give the path of a Python interpreter")
        return resolve_python(Path(found).absolute(), task.root)
    own = (task.root / venv / "bin" / "python" for venv in VENVS)
    return next((p.absolute() for p in own if os.access(p, os.X_OK)), Path(sys.executable))  # the link, not its target


def list_tree_files(root: Path, withheld: Iterable[str] = ()) -> Iterator[str]:
    """Yield the regular files under *root* that belong to the task's tree, relative, sorted, with forward slashes."""
    out = compile_patterns((*NEVER, *withheld))
    for folder, folders, files in os.walk(root):
        here = Path(folder).relative_to(root)
        folders[:] = sorted(f for f in folders if not out((here / f).as_posix() + "/"))
        for name in sorted(files):
            path = (here / name).as_posix()
            if not out(path) and (root / path).is_file() and not (root / path).is_symlink():
                yield path


def list_targets(task: Task) -> tuple[str, ...]:
    """Return the files in the task's folder that may be edited or made, by their names."""
    editable = compile_patterns(task.editable)
    closed = compile_patterns((*task.protected, *find_project(task.suite.runner).tests, *CONFIGURATION))
    files = set(list_tree_files(task.root, task.withheld))
    return tuple(p for p in sorted(files.union(find_absent(task.editable, files))) if editable(p) and not closed(p))


def _build(root: Path, tables: TaskFile, where: str) -> Task:
    name = tables.task.name or root.name or "task"
    if not NAME.fullmatch(name):
        raise BadInput(f"{where}: the name {name!r} cannot be part of a folder's name; set a plain [task] name")
    folders = {"task.reference": tables.task.reference, "tests.hidden": tables.tests.hidden}
    refuse_paths(root, tables, folders, where)
    withheld = [line for f in folders.values() if f for line in _build_hiding_globs(root, f)]
    withheld += [f"/{v}/" for v in VENVS if (root / v / "pyvenv.cfg").is_file()]
    tests = msgspec.structs.replace(tables.tests, runner=choose_runner(tables.tests, root))
    kind = find_project(tests.runner) if tables.tests.runner else _find_kind(root, tests.runner, withheld)
    task = Task(
        root=root,
        name=name,
        instruction=tables.task.instruction,
        env=tables.task.env,
        editable=kind.sources if tables.files.editable is None else tables.files.editable,
        protected=(*tables.files.protected, *kind.tests) if tables.files.editable is None else tables.files.protected,
        withheld=(*withheld, *tables.files.exclude, f"/{TASK_FILE}", f"/{DEFAULTS_FILE}", "/task.checks.json"),
        include=tables.files.include,
        exclude=tables.files.exclude,
        reference=root / tables.task.reference if tables.task.reference else None,
        hidden=root / tests.hidden if tests.hidden else None,
        suite=build_suite(tests, tables.task.env),
        verify_timeout_seconds=tests.verify_timeout_seconds or tests.timeout_seconds,
        expected=tuple(dict.fromkeys(tests.expected)),
        budget=tables.budget,
        context=tables.context,
        verify=tables.gate.verify,
        pipeline=tables.pipeline,
        routes=tables.routes,
        prices=tables.prices,
    )
    for globs in (task.editable, task.protected, task.include, task.exclude):
        compile_patterns(globs)  # refused here, before anything runs
    return task


def _find_kind(root: Path, runner: str, withheld: Iterable[str]) -> ProjectKind:
    """Return the kind of project that *root* holds.

    Of a language that no runner is for, all files but tests are its code.
    """
    if runner != PYTHON.runner or recognise_runner(root):
        return find_project(runner)
    return PYTHON if any(path.endswith(".py") for path in list_tree_files(root, withheld)) else find_project(COMMAND)


def _build_hiding_globs(root: Path, folder: str) -> tuple[str, ...]:
    """Return the globs that keep *folder* out of the tree, under its given name and its real one."""
    names = {normpath(folder.strip("/")), relpath((root / folder).resolve(), root.resolve())}
    return tuple(escape_path(name) for name in sorted(names) if not name.startswith(".."))


def _refuse_undecodable(task: Task) -> None:
    """Refuse a Python source of the task that does not decode as it declares: it could not be edited.

    One that a pattern alone covers (data of the tests, an old template) is left alone.
    """
    for path in list_targets(task):
        if path in task.editable and path.endswith(".py") and (task.root / path).exists():
            try:
                decode_source((task.root / path).read_bytes(), path)
            except OSError as error:
                raise BadInput(f"cannot read {path}: {error.strerror}") from error


def protect_judging_files(task: Task) -> Task:
    """Return *task* with a test command's build files, and the files that it names, as read-only.

    A file that `[files] editable` names by its path stays open.
    """
    if not task.suite.single:
        return task
    opened = {normpath(line).lstrip("/") for line in task.editable} if "files.editable" in task.named else set()
    judging = (escape_path(path) for path in find_judging_files(task.suite.command, task.root) if path not in opened)
    return msgspec.structs.replace(task, protected=(*task.protected, *BUILD_FILES, *CHECKER_FILES, *judging))
