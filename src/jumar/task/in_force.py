"""Settings in force: the value and the source of each setting of one run, contradictions between sources resolved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from jumar.core.run.strategy import DRIVER, REPAIR
from jumar.core.state.run_state import HOST
from jumar.core.state.test_policy import Gate, TestPolicy, find_contradiction
from jumar.errors import BadInput
from jumar.sandbox.request import AUTO
from jumar.task.model_routes import find_keyed_model
from jumar.task.settings.precedence import Authority, SettingValue, apply_limit, settle
from jumar.task.settings.run_settings import SETTINGS

if TYPE_CHECKING:
    from jumar.task.option_values import OptionValues
    from jumar.task.task import Task

Rows = dict[str, SettingValue]

PLAIN = ("ratchet", "ties", "confirm", "sandbox", "min_grade")
"""Settings that depend on no other."""

DEFAULTS: Mapping[str, str | int] = {"ratchet": "count", "ties": "keep", "confirm": 3, "sandbox": AUTO}


def resolve_settings(
    task: Task, options: OptionValues, environ: Mapping[str, str], *, from_environment: bool = False
) -> Rows:
    """Return the settings of *task* but its caps, by name. The model is None if nobody chose one.

    Args:
        task: with what its files ask for.
        options: what the person typed, or what the environment holds.
        environ: may hold providers' keys; where nobody names a model, a key chooses its provider's.
        from_environment: whether *options* come from the environment, for the report.

    Raises:
        BadInput: if two settings of the same source contradict each other.
    """
    rows = {name: _build_row(name, task, options, from_environment=from_environment) for name in (*_TOGETHER, *PLAIN)}
    if options.agent == HOST:  # whose agent and model are its own business, whatever files say
        rows |= {name: SettingValue(name, HOST, authority=Authority.TYPED) for name in ("agent", "model")}
    rows |= {name: _set_default(rows[name], DEFAULTS[name]) for name in ("ratchet", "ties", "confirm")}
    rows["sandbox"] = apply_limit(SETTINGS["sandbox"], rows["sandbox"], AUTO, "default")
    _resolve(rows, ("agent", "model"), _explain_mismatch)
    rows |= _choose_agent(rows, task, environ)
    rows["test_policy"] = _set_default(rows["test_policy"], TestPolicy.ON_WRITE)
    _resolve(rows, ("gate", "test_policy", "agent"), _explain_contradiction)
    rows |= _choose_agent(rows, task, environ)
    rows["gate"] = _set_default(
        rows["gate"], choose_usual_gate(str(rows["agent"].value), str(rows["test_policy"].value))
    )
    return rows


_TOGETHER = ("agent", "model", "test_policy", "gate")
"""Settings that may contradict each other."""


def choose_usual_gate(agent: str, policy: str) -> Gate:
    """Return the default gate: strict for an agent that can claim and is shown test results."""
    return Gate.STRICT if agent in (DRIVER, HOST) and policy == TestPolicy.ON_WRITE else Gate.OFF


def _build_row(name: str, task: Task, options: OptionValues, *, from_environment: bool) -> SettingValue:
    setting = SETTINGS[name]
    return settle(setting, getattr(options, name), task.files, setting.variable if from_environment else "")


def _set_default(row: SettingValue, value: str | int) -> SettingValue:
    return row if row.value is not None else replace(row, value=str(value) if isinstance(value, str) else value)


def _choose_agent(rows: Rows, task: Task, environ: Mapping[str, str]) -> Rows:
    """Return the agent and the model: each may imply the other, and passes on its authority then."""
    agent, model = rows["agent"], rows["model"]
    if model.value is None:
        model = replace(model, **_find_usual_model(agent, task, environ))
    if agent.value is None and model.value == REPAIR:
        source = f"model repair of {model.source}"
        agent = replace(agent, value=REPAIR, source=source, authority=model.authority)
    return {"agent": _set_default(agent, DRIVER), "model": model}


def _find_usual_model(agent: SettingValue, task: Task, environ: Mapping[str, str]) -> dict[str, Any]:
    if agent.value == REPAIR:
        return {"value": REPAIR, "source": f"agent repair of {agent.source}", "authority": agent.authority}
    if task.routes.mid.model:
        return {"value": task.routes.mid.model, "source": "[routes.mid]"}
    keyed, variable = find_keyed_model(environ)
    return {"value": keyed or None, "source": f"{variable} is set" if variable else "default"}


def _explain_mismatch(rows: Rows) -> str:
    agent, model = rows["agent"].value, rows["model"].value
    if agent is None or model is None or (agent == REPAIR) == (model == REPAIR):
        return ""
    return f"agent {agent} and model {model} do not go together; --model repair is its own agent"


def _explain_contradiction(rows: Rows) -> str:
    policy, agent, gate = (rows[name].value for name in ("test_policy", "agent", "gate"))
    if gate is None:
        gate = choose_usual_gate(str(agent), str(policy))
    return find_contradiction(TestPolicy(str(policy)), Gate(str(gate)), str(agent)) or ""


def _resolve(rows: Rows, names: tuple[str, ...], why: Callable[[Rows], str]) -> None:
    """Reset the settings of least authority among *names* until *why* finds no contradiction.

    Raises:
        BadInput: with the words of *why*, if two settings have the same authority.
    """
    while said := why(rows):
        chosen = sorted((rows[n] for n in names if rows[n].authority), key=lambda row: row.authority)
        least, *others = chosen
        if not others or others[0].authority == least.authority:
            raise BadInput(said)
        stays = others[-1]
        default = TestPolicy.ON_WRITE.value if least.name == "test_policy" else None
        by = f"with {stays.name} {stays.value} of {stays.source}"
        rows[least.name] = least.reset(default, by)
        # It would bring the agent back, unless it is what the agent gives way to.
        if least.name == "agent" and "model" not in names and rows["model"].value == REPAIR:
            rows["model"] = rows["model"].reset(None, by)
