"""Checks of `jumar.Options` on creation: types, known values, ranges, and fields that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import TYPE_CHECKING, get_type_hints

import msgspec

from jumar.core.run.strategy import DRIVER, REPAIR
from jumar.core.state.run_state import EXTERNAL, HOST
from jumar.core.state.test_policy import Gate, TestPolicy, find_contradiction
from jumar.errors import BadInput
from jumar.models.wire.providers import check_base_url, check_temperature
from jumar.task.agent_command import check_command, refuse_idle
from jumar.task.budget_options import format_flag, read_ledger_caps, read_profile
from jumar.task.model_routes import parse_price
from jumar.task.settings.run_settings import LONGEST_SECONDS, OFFLINE, SETTINGS

if TYPE_CHECKING:
    from jumar.task.option_values import OptionValues

TIMES = {"timeout_seconds": "--timeout", "test_timeout_seconds": "--test-timeout", "turn_seconds": "--turn-seconds"}


def asks_provider(model: str) -> bool:
    """Return whether *model* is a provider's: neither a search nor answers from a file."""
    return model not in (REPAIR, HOST) and model.partition(":")[0] not in OFFLINE


def check_options(options: OptionValues) -> None:
    """Refuse *options* that work with no task; convert lists to tuples and enumerations to values.

    Raises:
        BadInput: naming the option, what is wrong with it, and what would do.
    """
    _convert(options)
    for name, setting in SETTINGS.items():
        value = getattr(options, name)
        if value is not None and not (value == HOST and name in ("agent", "model")):
            setting.check(value, setting.flag)
    for name, label in TIMES.items():
        seconds = getattr(options, name)
        if seconds is not None and not (isfinite(seconds) and 0 < seconds <= LONGEST_SECONDS):
            raise BadInput(f"{label} must be more than zero seconds and at most {LONGEST_SECONDS}, not {seconds:g}")
    if options.base_url is not None:
        check_base_url(options.base_url)
    if options.price is not None:
        parse_price(options.price)
    if options.temperature is not None:
        check_temperature(options.temperature, "--temperature")
    read_profile(options)
    read_ledger_caps(options)
    check_command(options)
    for why in _find_contradictions(options):
        raise BadInput(why)


def _convert(options: OptionValues) -> None:
    """Convert each field to its declared type."""
    for name, kind in get_type_hints(type(options)).items():
        try:
            value = msgspec.convert(msgspec.to_builtins(getattr(options, name)), kind)
        except (msgspec.ValidationError, TypeError) as error:
            what = str(error).partition(" - at `$")[0]
            raise BadInput(f"the option {name} is of the wrong type: {what}") from None
        msgspec.structs.force_setattr(options, name, value)


def _find_contradictions(options: OptionValues) -> Iterator[str]:
    """Yield the reasons why fields of *options* cannot work together, whatever the task."""
    agent, model = options.agent, options.model
    policy = TestPolicy(options.test_policy or TestPolicy.ON_WRITE)
    if agent and model and (agent == REPAIR) != (model == REPAIR):
        yield f"agent {agent} and model {model} do not go together; --model repair is its own agent"
    known = agent or (REPAIR if model == REPAIR else "")
    gate = Gate(options.gate) if options.gate else Gate.OFF
    if why := find_contradiction(policy, gate, known or DRIVER, model_runs_tests=options.model_may_run_tests):
        yield why
    if known:
        refuse_idle(options, known)
    if known and known != DRIVER:
        for name in ("text_actions", "model_may_run_commands"):
            if getattr(options, name):
                yield f"{format_flag(name)} is for --agent driver; agent {known} takes no actions"
    if options.allow_refactor and options.gate and gate is not Gate.STRICT:
        yield f"--allow-refactor lets a model leave the strict gate, and the gate is {gate}; leave it out"
    opened = gate is Gate.REFACTOR or options.allow_refactor or options.allow_codemod
    if options.verify is not None and options.gate and not opened:
        yield f"--verify guards refactor mode and codemods, and the gate is {gate} without either; leave it out"
    if model:
        yield from find_idle_options(options, model)
    yield from find_idle_under_policy(options, policy)


def find_idle_options(options: OptionValues, model: str) -> Iterator[str]:
    """Yield options that have no effect beside *model*."""
    if asks_provider(model):
        if options.agent == EXTERNAL and options.temperature is not None:
            yield "an external agent chooses the temperature of its calls itself; leave --temperature out"
        return
    if options.agent == EXTERNAL:
        yield f"an external agent asks a provider's model through a proxy, and {model} is a file; name a model"
    for name in ("base_url", "price", "temperature"):
        if getattr(options, name) is not None:
            yield f"{format_flag(name)} is for a provider's model, and {model} asks none; leave it out"
    if options.record:
        yield f"--record keeps what a provider's model answers, and {model} asks none; leave it out"


def find_idle_under_policy(options: OptionValues, policy: TestPolicy) -> Iterator[str]:
    """Yield options that have no effect under *policy*."""
    for name in ("test_runs", "ratchet", "ties") if policy is TestPolicy.NEVER else ():
        if getattr(options, name) is not None:
            yield f"under test policy never nothing is verified, and {format_flag(name)} has no effect; leave it out"
