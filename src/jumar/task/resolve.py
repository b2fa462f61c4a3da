"""Resolves the options of a run: the command line wins over every file, and contradictions are refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec.structs import replace

from jumar.core.gate.write_rules import find_escape
from jumar.core.prompts.suggestion import build_suggestion
from jumar.core.run.strategy import DRIVER, REPAIR
from jumar.core.state.budget import UNATTENDED, Budget
from jumar.core.state.ratchet import Ratchet, Rule, Ties
from jumar.core.state.run_state import HOST
from jumar.core.state.settings import Route, Suite, Switches
from jumar.core.state.test_policy import Gate, TestPolicy, find_contradiction
from jumar.errors import BadInput
from jumar.languages.gitignore_globs import compile_patterns
from jumar.languages.project_kinds import COMMAND, find_project
from jumar.models.wire.prices import can_cost_money
from jumar.plugins import exists, list_names
from jumar.task.agent_command import read_agent_settings, refuse_relative_script
from jumar.task.budget_options import format_flag, read_ledger_caps, resolve_caps
from jumar.task.in_force import resolve_settings
from jumar.task.model_routes import list_tiers, resolve_routes
from jumar.task.notes import list_notes
from jumar.task.option_checks import asks_provider, check_options, find_idle_options, find_idle_under_policy
from jumar.task.option_values import OptionValues
from jumar.task.settings.precedence import SettingValue
from jumar.task.settings.run_settings import LONGEST_SECONDS, OFFLINE, check_model
from jumar.task.task import Task, protect_judging_files

__all__ = ["OFFLINE", "Options", "apply_options", "asks_provider"]

NO_MODEL = (
    "no model is chosen: set a provider's key (ANTHROPIC_API_KEY, OPENAI_API_KEY, ...), or name a local server "
    "(--model openai:NAME --base-url http://127.0.0.1:8080/v1), or pass --model repair (offline search, no key)"
)


class Options(OptionValues, frozen=True, kw_only=True):
    """Options of a run, as the command line passes them; None or empty means not chosen. Checked on creation."""

    def __post_init__(self) -> None:
        """Refuse options that work with no task.

        Raises:
            BadInput: naming the field, what is wrong with it, and what would do.
        """
        check_options(self)


def apply_options(
    task: Task, options: Options, environ: Mapping[str, str] | None = None, *, from_environment: bool = False
) -> Task:
    """Return *task* with the chosen options, and defaults for the others.

    `Task.in_force` has the source of each setting.

    *environ* may hold providers' keys. *from_environment*: *options* come from the environment, not from flags.

    Raises:
        BadInput: if no model is chosen, or what was chosen does not go together.
    """
    task = _apply_plain(apply_test_command(task, options), options)
    rows = resolve_settings(task, options, environ or {}, from_environment=from_environment)
    agent, model, policy, gate = _refuse(options, rows)
    outside = read_agent_settings(options, agent, environ or {})
    refuse_relative_script(outside.argv, task.root)
    routes, caps = _resolve_spending(task, options, rows, from_environment=from_environment)
    return replace(
        task,
        suite=_build_suite(task, options, int(str(rows["confirm"].value))),
        budget=_build_budget(caps, policy),
        agent=agent,
        model=model,
        test_policy=policy,
        gate=gate,
        gate_chosen=bool(rows["gate"].authority),
        rule=Rule(Ratchet(str(rows["ratchet"].value)), Ties(str(rows["ties"].value))),
        chosen_routes=routes,
        switches=_build_switches(task, options, agent, gate),
        outside=outside,
        sandbox=str(rows["sandbox"].value),
        min_grade=str(rows["min_grade"].value or ""),
        in_force=(*rows.values(), *caps.values()),
        notes=tuple(list_notes(task, options, rows | caps, routes)),
    )


def _apply_plain(task: Task, options: Options) -> Task:
    """Return *task* with the options that depend on no other."""
    return replace(
        task,
        instruction=task.instruction if options.instruction is None else options.instruction,
        expected=_narrow(task.expected, options.tests),
        include=(*task.include, *options.include),
        verify=task.verify if options.verify is None else options.verify,
        seed=task.seed if options.seed is None else options.seed,
        ledger=_make_absolute(options.ledger),
        caps=read_ledger_caps(options),
        record=_make_absolute(options.record),
        unattended=options.profile in UNATTENDED,
        probe=options.probe,
    )


def _make_absolute(path: str | None) -> Path | None:
    return Path(path).absolute() if path else None


def _resolve_spending(
    task: Task, options: Options, rows: Mapping[str, SettingValue], *, from_environment: bool
) -> tuple[dict[str, Route], dict[str, SettingValue]]:
    """Return the routes of a run with the settings *rows*, and its caps, which depend on their prices."""
    agent, model, gate = (str(rows[name].value) for name in ("agent", "model", "gate"))
    # A model that somebody named, not a route or a key, is asked by the tiers that no route names.
    routes = resolve_routes(task, options, model, named=bool(rows["model"].authority)) if asks_provider(model) else {}
    asked = [routes[tier] for tier in list_tiers(agent, Gate(gate), routes) if tier in routes]
    paid = agent != HOST and (options.allow_unmetered or any(map(can_cost_money, asked)))
    return routes, resolve_caps(task, options, agent, paid=paid, from_environment=from_environment)


def _build_budget(caps: Mapping[str, SettingValue], policy: TestPolicy) -> Budget:
    budget = Budget(**{name: row.value for name, row in caps.items()})  # type: ignore[arg-type]  # as the rows say
    if policy is TestPolicy.ON_FINAL and budget.test_runs == 0:
        raise BadInput("test policy on_final needs one test run at the end; raise the cap on test_runs, or use never")
    return budget


def _refuse(options: Options, rows: Mapping[str, SettingValue]) -> tuple[str, str, TestPolicy, Gate]:
    """Return the agent, model, policy and gate in *rows*; refuse *options* without effect or that contradict them.

    Raises:
        BadInput: as it says.
    """
    agent, model, policy, gate = (str(rows[name].value or "") for name in ("agent", "model", "test_policy", "gate"))
    if not model:
        raise BadInput(NO_MODEL)
    if model not in (REPAIR, HOST):
        check_model(model)
    for why in (*find_idle_options(options, model), *find_idle_under_policy(options, TestPolicy(policy))):
        raise BadInput(why)
    if said := find_contradiction(TestPolicy(policy), Gate(gate), agent, model_runs_tests=options.model_may_run_tests):
        raise BadInput(said)
    return agent, model, TestPolicy(policy), Gate(gate)


def _build_switches(task: Task, options: Options, agent: str, gate: Gate) -> Switches:
    if options.allow_refactor and gate is not Gate.STRICT:
        raise BadInput(f"--allow-refactor lets a model leave the strict gate, and the gate is {gate}; leave it out")
    if options.allow_codemod and gate is Gate.OFF:
        raise BadInput("--allow-codemod lets a model leave the gate for one edit, and the gate is off; leave it out")
    if options.allow_codemod and agent not in (DRIVER, HOST):
        raise BadInput(f"--allow-codemod is for agents that call tools, and agent {agent} calls none; leave it out")
    if options.codemod_renames and not options.allow_codemod:
        raise BadInput("--codemod-renames says where a codemod may rename, and there is none: pass --allow-codemod too")
    compile_patterns(options.codemod_renames)  # refused here, before anything runs
    for name in ("text_actions", "model_may_run_commands"):
        if getattr(options, name) and agent != DRIVER:
            raise BadInput(f"{format_flag(name)} is for --agent driver; agent {agent} takes no actions")
    return Switches(
        review=task.pipeline.review is not False,
        text_actions=options.text_actions,
        model_may_run_tests=options.model_may_run_tests or gate is not Gate.OFF,
        allow_refactor=options.allow_refactor,
        allow_codemod=options.allow_codemod,
        codemod_renames=options.codemod_renames,
        model_may_run_commands=options.model_may_run_commands,
    )


def _build_suite(task: Task, options: Options, confirm: int) -> Suite:
    if not exists("runners", task.suite.runner):
        raise BadInput(
            f"unknown runner {task.suite.runner!r}; {build_suggestion(task.suite.runner, list_names('runners'))}"
        )
    for test in options.tests:
        path = test.partition("::")[0]
        if find_escape(test) or not (task.root / path).exists():
            raise BadInput(f"--test {path}: no such file or folder in {task.root}; name it relative to that")
    timeout = options.timeout_seconds or task.suite.timeout_seconds
    return replace(
        task.suite,
        select=options.tests or task.suite.select,
        timeout_seconds=timeout,
        confirm=confirm,
        test_timeout_seconds=min(options.test_timeout_seconds or task.suite.test_timeout_seconds, timeout),
    )


def _narrow(expected: tuple[str, ...], tests: Iterable[str]) -> tuple[str, ...]:
    """Return the expected ids that lie in *tests*; all of them if none were chosen."""
    chosen = tuple(t.rstrip("/") for t in tests)
    if not chosen:
        return expected
    return tuple(i for i in expected if any(i == t or i.startswith((f"{t}/", f"{t}::", f"{t}[")) for t in chosen))


def apply_test_command(task: Task, options: Options) -> Task:
    """Return *task*, judged by the test command of *options* if they have one.

    Raises:
        BadInput: if that command, or the task's own, is given what only applies to a runner that names its tests.
    """
    if options.test_command is None:
        _refuse_idle(task, options)
        return task
    kind = find_project(COMMAND)
    limit = task.suite.test_timeout_seconds if "tests.test_timeout_seconds" in task.named else LONGEST_SECONDS
    suite = replace(
        task.suite, runner=COMMAND, command=options.test_command, report="", command_for="", select=(),
        test_timeout_seconds=limit,
    )  # fmt: skip
    chosen = "files.editable" in task.named
    task = replace(
        task,
        suite=suite,
        expected=(),
        editable=task.editable if chosen else kind.sources,
        protected=task.protected if chosen else (*task.protected, *kind.tests),
    )
    _refuse_idle(task, options)
    return protect_judging_files(task)


def _refuse_idle(task: Task, options: Options) -> None:
    """Refuse options for single tests if the command is the only test."""
    if not task.suite.single:
        return
    for label, value in (
        ("--test", options.tests),
        ("[tests] select", task.suite.select),
        ("[tests] expected", task.expected),
        ("[tests] command_for", task.suite.command_for),
        ("[tests] hidden", task.hidden),
    ):
        if value:
            raise BadInput(
                f"{label} names single tests, and a test command is one test for the whole suite: leave it out "
                "(name files that must stay read-only in [files] protected)"
            )
