"""What a person chose on the command line wins over every file, and is refused here if it cannot work."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable
from enum import StrEnum
from types import ModuleType
from typing import TypeVar

import msgspec
from msgspec.structs import replace

import jumar.agents
import jumar.models
from jumar.config import LONGEST_SECONDS
from jumar.core.budget import Budget
from jumar.core.events import Suite
from jumar.core.guard import escape
from jumar.core.policy import Gate, TestPolicy, contradiction
from jumar.core.ratchet import Ratchet, Rule, Ties
from jumar.errors import BadInput
from jumar.plugins import names
from jumar.task import Task

REPAIR = "repair"

REPAIR_BOUNDS = Budget(attempts=20, seconds=120.0)
"""What `repair` may use where nobody chose: its proposals are screened, so a right one comes early."""

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
    python: str | None = None
    ratchet: str | None = None
    ties: str | None = None
    gate: str | None = None
    test_policy: str | None = None
    agent: str | None = None
    model: str | None = None


def with_options(task: Task, options: Options) -> Task:
    """*task* with what was chosen, and a default for what was not.

    Raises:
        BadInput: on an unknown value (the known ones are listed), a number out of range or a contradiction.
    """
    agent, model = _who(task, options)
    policy = _choice(TestPolicy, "--test-policy", options.test_policy, task.test_policy)
    default_gate = Gate.STRICT if agent == "driver" and policy is TestPolicy.ON_WRITE else Gate.OFF
    gate = _choice(Gate, "--gate", options.gate, default_gate)
    if why := contradiction(policy, gate, agent):
        raise BadInput(why)
    if gate is not Gate.OFF:
        raise BadInput(f"gate {gate} needs an agent that claims red tests, and this version has none; use --gate off")
    rule = Rule(
        _choice(Ratchet, "--ratchet", options.ratchet, task.rule.ratchet),
        _choice(Ties, "--ties", options.ties, task.rule.ties),
    )
    return replace(
        task,
        instruction=task.instruction if options.instruction is None else options.instruction,
        suite=_suite(task, options),
        expected=_narrowed(task.expected, options.tests),
        budget=_budget(task, options, agent),
        agent=agent,
        model=model,
        test_policy=policy,
        gate=gate,
        rule=rule,
        seed=task.seed if options.seed is None else options.seed,
    )


def known(package: ModuleType) -> tuple[str, ...]:
    """The names of what *package* offers: one module is one."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_")))


def _who(task: Task, options: Options) -> tuple[str, str]:
    """The agent and the model, each of which may imply the other."""
    model = options.model or task.model or task.routes.mid.model
    if not model:
        raise BadInput(
            "no model is chosen: pass --model repair (offline search, no key) or --model script:FILE (recorded replies)"
        )
    agent = options.agent or task.agent or (REPAIR if model == REPAIR else "pipeline")
    agents = tuple(n for n in ("driver", "pipeline", REPAIR, "external") if n in known(jumar.agents))
    if agent not in agents:
        raise BadInput(f"unknown agent {agent!r}; known are {', '.join(agents)}")
    kind, colon, rest = model.partition(":")
    kinds = tuple(n for n in known(jumar.models) if n not in (REPAIR, "router", "prices"))
    if model != REPAIR and (kind not in kinds or not colon or not rest):
        forms = (REPAIR, *(f"{k}:{'FILE' if k in ('script', 'replay') else 'NAME'}" for k in kinds))
        raise BadInput(f"unknown model {model!r}; known are {', '.join(forms)}")
    if (agent == REPAIR) != (model == REPAIR):
        raise BadInput(f"agent {agent} and model {model} do not go together; --model repair is its own agent")
    return agent, model


def _choice(kind: type[Choice], flag: str, value: str | None, default: Choice) -> Choice:
    if value is None:
        return default
    try:
        return kind(value)
    except ValueError:
        raise BadInput(f"unknown value {value!r} of {flag}; known are {', '.join(kind)}") from None


def _suite(task: Task, options: Options) -> Suite:
    if task.suite.runner not in (runners := names("runners")):
        raise BadInput(f"unknown runner {task.suite.runner!r}; known are {', '.join(runners)}")
    for test in options.tests:
        path = test.partition("::")[0]
        if escape(test) or not (task.root / path).exists():
            raise BadInput(f"--test {path}: no such file or folder in {task.root}; name it relative to that")
    for flag, seconds in (("--timeout", options.timeout_seconds), ("--test-timeout", options.test_timeout_seconds)):
        if seconds is not None and not 0 < seconds <= LONGEST_SECONDS:
            raise BadInput(f"{flag} must be more than zero seconds and at most {LONGEST_SECONDS}, not {seconds:g}")
    timeout = options.timeout_seconds or task.suite.timeout_seconds
    return replace(
        task.suite,
        select=options.tests or task.suite.select,
        timeout_seconds=timeout,
        test_timeout_seconds=min(options.test_timeout_seconds or task.suite.test_timeout_seconds, timeout),
    )


def _narrowed(expected: tuple[str, ...], tests: Iterable[str]) -> tuple[str, ...]:
    """The expected ids that lie in *tests*; all of them if none were chosen."""
    chosen = tuple(t.rstrip("/") for t in tests)
    if not chosen:
        return expected
    return tuple(i for i in expected if any(i == t or i.startswith((f"{t}/", f"{t}::", f"{t}[")) for t in chosen))


def _budget(task: Task, options: Options, agent: str) -> Budget:
    budget = task.budget
    if agent == REPAIR:
        for name in {"attempts", "seconds"} - task.budget_set:
            budget = replace(budget, **{name: getattr(REPAIR_BOUNDS, name)})
    for name, least in (("attempts", 1), ("usd", 0), ("seconds", 0), ("tokens", 0)):
        value = getattr(options, name)
        if value is None:
            continue
        if not least <= value < float("inf"):
            raise BadInput(f"--{name} must be {least} or more, not {value}")
        budget = replace(budget, **{name: value})
    return budget
