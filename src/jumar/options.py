"""What a person chose on the command line wins over every file, and is refused here if it cannot work."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import msgspec
from msgspec.structs import replace

import jumar.agents
from jumar.caps import budget_of, flag, ledger_caps
from jumar.commandline import outside_of
from jumar.config import LONGEST_SECONDS
from jumar.core.agent import DRIVER, PIPELINE, REPAIR
from jumar.core.budget import UNATTENDED, Budget
from jumar.core.guard import escape
from jumar.core.policy import CHOICES, Gate, TestPolicy, contradiction
from jumar.core.ratchet import Ratchet, Rule, Ties
from jumar.core.run import EXTERNAL, HOST
from jumar.core.settings import Suite, Switches
from jumar.errors import BadInput
from jumar.globs import spec
from jumar.models.providers import PROVIDERS
from jumar.plugins import names
from jumar.routing import keyed_model, routes_of
from jumar.task import Task, targets

OFFLINE = ("script", "replay")
"""Models that answer from a file."""

MOST_CONFIRMATIONS = 100

FEW = 5
"""Files that the pipeline is given where nobody chose an agent: each of its prompts and replies holds them whole."""

Choice = TypeVar("Choice", bound=StrEnum)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line passes; None or empty is not chosen."""

    instruction: str | None = None
    tests: tuple[str, ...] = ()
    timeout_seconds: float | None = None
    test_timeout_seconds: float | None = None
    attempts: int | None = None
    usd: float | None = None
    seconds: float | None = None
    tokens: int | None = None
    seed: int | None = None
    confirm: int | None = None
    """Fresh runs that must agree before a tree is called green; 0: the first one is believed."""
    sandbox: str | None = None
    """A tier, or `auto`: the strongest that this machine has."""
    probe: bool = False
    """Whether the lines that a green changed are mutated, to see whether the tests notice."""
    python: str | None = None
    ratchet: str | None = None
    ties: str | None = None
    gate: str | None = None
    test_policy: str | None = None
    agent: str | None = None
    model: str | None = None
    base_url: str | None = None
    """Of a server that is compatible with the model's provider; never read from a file that comes with a task."""
    price: str | None = None
    """`INPUT,OUTPUT` or `INPUT,OUTPUT,CACHED` in usd per million tokens, or `free`."""
    turns: int | None = None
    test_runs: int | None = None
    profile: str | None = None
    ledger: str | None = None
    ledger_usd: float | None = None
    record: str | None = None
    text_actions: bool = False
    model_may_run_tests: bool = False
    model_may_run_commands: bool = False
    allow_refactor: bool = False
    allow_codemod: bool = False
    codemod_renames: tuple[str, ...] = ()
    """Globs of the test files in which a codemod may rename identifiers."""
    agent_command: str | None = None
    """Of an external agent: words, as a shell splits them; no shell runs them. Never read from a file."""
    agent_env: tuple[str, ...] = ()
    """Names of variables that it is given as they are."""
    turn_seconds: float | None = None
    """For one of its turns."""
    allow_unmetered: bool = False
    """Whether it may work without the proxy: what it spends is then not known."""


def with_options(task: Task, options: Options, environ: Mapping[str, str] | None = None) -> Task:
    """*task* with what was chosen, and a default for what was not.

    *environ* may hold providers' keys: where no model is chosen, a key chooses its provider's.

    Raises:
        BadInput: on an unknown value (the known ones are listed), a number out of range or a contradiction.
    """
    options = _typed(options)
    agent, model = _who(task, options, environ or {})
    policy = _choice(TestPolicy, "--test-policy", options.test_policy, task.test_policy)
    usual = Gate.STRICT if agent in (DRIVER, HOST) and policy is TestPolicy.ON_WRITE else Gate.OFF
    gate = _gate(options.gate, usual)
    if why := contradiction(policy, gate, agent, model_runs_tests=options.model_may_run_tests):
        raise BadInput(why)
    _refuse_idle(options, model, policy)
    budget = _budget(task, options, agent, policy)
    return replace(
        task,
        instruction=task.instruction if options.instruction is None else options.instruction,
        suite=_suite(task, options),
        expected=_narrowed(task.expected, options.tests),
        budget=budget,
        agent=agent,
        model=model,
        test_policy=policy,
        gate=gate,
        rule=_rule(task, options),
        seed=task.seed if options.seed is None else options.seed,
        chosen_routes=routes_of(task, options, model) if asks_provider(model) else {},
        switches=_switches(task, options, agent, gate),
        outside=outside_of(options, agent, environ or {}),
        ledger=Path(options.ledger).absolute() if options.ledger else None,
        caps=ledger_caps(options),
        record=_record(options, model),
        sandbox=options.sandbox or task.sandbox,
        unattended=options.profile in UNATTENDED,
        probe=options.probe,
    )


def known(package: ModuleType) -> tuple[str, ...]:
    """The names of what *package* offers: one module is one."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_")))


def _gate(value: str | None, usual: Gate) -> Gate:
    """The gate that a run begins with: codemod mode is entered for one edit, and is none."""
    if value is None or value in CHOICES:
        return Gate(value or usual)
    more = "; codemod mode is for one edit: pass --gate strict --allow-codemod" if value == Gate.CODEMOD else ""
    raise BadInput(f"unknown value {value!r} of --gate; known are {', '.join(CHOICES)}{more}")


def _rule(task: Task, options: Options) -> Rule:
    return Rule(
        _choice(Ratchet, "--ratchet", options.ratchet, task.rule.ratchet),
        _choice(Ties, "--ties", options.ties, task.rule.ties),
    )


def _typed(options: Options) -> Options:
    """*options*, whose values may come from a program, checked for their types."""
    try:
        return msgspec.convert(msgspec.to_builtins(options), Options)
    except (msgspec.ValidationError, TypeError) as error:
        what, _, place = str(error).partition(" - at `$.")
        raise BadInput(f"the option {place.rstrip('`') or 'given'} is of the wrong type: {what}") from None


def _refuse_idle(options: Options, model: str, policy: TestPolicy) -> None:
    """Refuse what was chosen and could have no effect."""
    for name in () if asks_provider(model) else ("base_url", "price"):
        if getattr(options, name) is not None:
            raise BadInput(f"{flag(name)} is for a provider's model, and {model} asks none; leave it out")
    for name in ("test_runs", "ratchet", "ties") if policy is TestPolicy.NEVER else ():
        if getattr(options, name) is not None:
            raise BadInput(f"under test policy never nothing is verified, and {flag(name)} has no effect; leave it out")


def asks_provider(model: str) -> bool:
    """Whether *model* is a provider's: neither a search nor an answer from a file."""
    return model not in (REPAIR, HOST) and model.partition(":")[0] not in OFFLINE


def _who(task: Task, options: Options, environ: Mapping[str, str]) -> tuple[str, str]:
    """The agent and the model, each of which may imply the other."""
    if options.agent == HOST:
        return HOST, HOST
    model = options.model or task.model or task.routes.mid.model or keyed_model(environ)
    if not model:
        raise BadInput(
            "no model is chosen: set a provider's key (ANTHROPIC_API_KEY, OPENAI_API_KEY, ...), or name a local server "
            "(--model openai:NAME --base-url http://127.0.0.1:8080/v1), or pass --model repair (offline search, no key)"
        )
    kind, _, rest = model.partition(":")
    known_kinds = (*OFFLINE, *(p.name for p in PROVIDERS))
    if model != REPAIR and (kind not in known_kinds or not rest):
        forms = (REPAIR, *(f"{k}:{'FILE' if k in OFFLINE else 'NAME'}" for k in known_kinds))
        raise BadInput(f"unknown model {model!r}; known are {', '.join(forms)}")
    agent = options.agent or task.agent or (REPAIR if model == REPAIR else _usual_agent(task, kind, options))
    agents = tuple(n for n in (DRIVER, PIPELINE, REPAIR, EXTERNAL) if n in known(jumar.agents))
    if agent not in agents:
        raise BadInput(f"unknown agent {agent!r}; known are {', '.join(agents)}")
    if (agent == REPAIR) != (model == REPAIR):
        raise BadInput(f"agent {agent} and model {model} do not go together; --model repair is its own agent")
    if agent == EXTERNAL and kind in OFFLINE:
        raise BadInput(
            f"an external agent asks a provider's model through a proxy, and {model} is a file; name a model"
        )
    return agent, model


def _usual_agent(task: Task, kind: str, options: Options) -> str:
    """Whole files where they are few or a script holds them, else the driver, which alone works under a gate."""
    if options.gate in (Gate.STRICT, Gate.REFACTOR):
        return DRIVER
    return PIPELINE if kind == "script" or len(targets(task)) <= FEW else DRIVER


def _switches(task: Task, options: Options, agent: str, gate: Gate) -> Switches:
    if options.allow_refactor and gate is not Gate.STRICT:
        raise BadInput(f"--allow-refactor lets a model leave the strict gate, and the gate is {gate}; leave it out")
    if options.allow_codemod and gate is Gate.OFF:
        raise BadInput("--allow-codemod lets a model leave the gate for one edit, and the gate is off; leave it out")
    if options.allow_codemod and agent not in (DRIVER, HOST):
        raise BadInput(f"--allow-codemod is for agents that call tools, and agent {agent} calls none; leave it out")
    if options.codemod_renames and not options.allow_codemod:
        raise BadInput("--codemod-renames says where a codemod may rename, and there is none: pass --allow-codemod too")
    spec(options.codemod_renames)  # refused here, before anything runs
    for name in ("text_actions", "model_may_run_commands"):
        if getattr(options, name) and agent != DRIVER:
            raise BadInput(f"{flag(name)} is for --agent driver; agent {agent} takes no actions")
    return Switches(
        review=task.pipeline.review is not False,
        text_actions=options.text_actions,
        model_may_run_tests=options.model_may_run_tests or gate is not Gate.OFF,
        allow_refactor=options.allow_refactor,
        allow_codemod=options.allow_codemod,
        codemod_renames=options.codemod_renames,
        model_may_run_commands=options.model_may_run_commands,
    )


def _record(options: Options, model: str) -> Path | None:
    if not options.record:
        return None
    if not asks_provider(model):
        raise BadInput(f"--record keeps what a provider's model answers, and {model} asks none; leave it out")
    return Path(options.record).absolute()


def _choice(kind: type[Choice], option: str, value: str | None, default: Choice) -> Choice:
    if value is None:
        return default
    try:
        return kind(value)
    except ValueError:
        raise BadInput(f"unknown value {value!r} of {option}; known are {', '.join(kind)}") from None


def _budget(task: Task, options: Options, agent: str, policy: TestPolicy) -> Budget:
    budget = budget_of(task, options, agent)
    if policy is TestPolicy.ON_FINAL and budget.test_runs == 0:
        raise BadInput("test policy on_final needs one test run at the end; raise the cap on test_runs, or use never")
    return budget


def _suite(task: Task, options: Options) -> Suite:
    if task.suite.runner not in (runners := names("runners")):
        raise BadInput(f"unknown runner {task.suite.runner!r}; known are {', '.join(runners)}")
    for test in options.tests:
        path = test.partition("::")[0]
        if escape(test) or not (task.root / path).exists():
            raise BadInput(f"--test {path}: no such file or folder in {task.root}; name it relative to that")
    for option, seconds in (("--timeout", options.timeout_seconds), ("--test-timeout", options.test_timeout_seconds)):
        if seconds is not None and not 0 < seconds <= LONGEST_SECONDS:
            raise BadInput(f"{option} must be more than zero seconds and at most {LONGEST_SECONDS}, not {seconds:g}")
    confirm = task.suite.confirm if options.confirm is None else options.confirm
    if not 0 <= confirm <= MOST_CONFIRMATIONS:
        bounds = f"a number of fresh runs from 0 to {MOST_CONFIRMATIONS}"
        raise BadInput(f"--confirm (or [tests] confirm) must be {bounds}, not {confirm}")
    timeout = options.timeout_seconds or task.suite.timeout_seconds
    return replace(
        task.suite,
        select=options.tests or task.suite.select,
        timeout_seconds=timeout,
        confirm=confirm,
        test_timeout_seconds=min(options.test_timeout_seconds or task.suite.test_timeout_seconds, timeout),
    )


def _narrowed(expected: tuple[str, ...], tests: Iterable[str]) -> tuple[str, ...]:
    """The expected ids that lie in *tests*; all of them if none were chosen."""
    chosen = tuple(t.rstrip("/") for t in tests)
    if not chosen:
        return expected
    return tuple(i for i in expected if any(i == t or i.startswith((f"{t}/", f"{t}::", f"{t}[")) for t in chosen))
