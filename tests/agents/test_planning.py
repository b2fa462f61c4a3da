"""The frontier tier: asked for the plan, once, by a driver under a gate; never in the loop of attempts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from agents.test_prompt_prefix import check as check_prefixes
from cli.test_cli import GOOD, lay
from jumar.agents.driver import PLANNING, Driver
from jumar.core.run.strategy import FRONTIER, Request
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget, Cost
from jumar.core.state.run_state import RunState
from jumar.core.state.settings import Price, Route, Switches
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Gate
from jumar.kernel import Kernel
from jumar.models.script import ScriptedUsage, ScriptLine
from jumar.ports import Ask
from jumar.runtime.effect_runner import EffectRunner
from jumar.task.model_routes import list_tiers
from jumar.task.resolve import Options, apply_options
from jumar.task.task import load_task
from support.worlds.driver_world import Heard, Turns, both, call, ended, resumed, swift
from support.worlds.gate_world import Terms, claim, edit, gated

ROUTES = {
    "mid": Route(model="openai:small", max_output_tokens=100),
    "frontier": Route(model="anthropic:big", max_output_tokens=100),
}
STEPS = [{"title": "add", "test_id": "test_calc.py::test_add", "test_file_path": "test_calc.py"}]
PLAN = call("submit_plan", steps=STEPS)
ADD = both(claim("add"), edit("calc.py", "a - b", "a + b"))
MUL = both(claim("mul"), edit("calc.py", "a ** b", "a * b"))
UPPER = both(claim("upper"), edit("words.py", "    return text\n\n\ndef", "    return text.upper()\n\n\ndef"))
WRONG = both(claim("add"), edit("calc.py", "a - b", "a * b"))


@pytest.fixture(name="tmp_path")
def _tmp_path() -> Iterator[Path]:
    with swift() as folder:
        yield folder


def asked(made: Turns) -> list[tuple[str, str]]:
    """The tier and stage of each call."""
    return [(e.tier, e.stage) for e in made.events(ev.ModelCall) if isinstance(e, ev.ModelCall)]


@pytest.mark.parametrize("gate", [Gate.STRICT, Gate.REFACTOR])
def test_the_frontier_makes_the_plan_and_nothing_else(tmp_path: Path, gate: Gate) -> None:
    lines = (PLAN, WRONG, ADD, MUL, UPPER)
    made = gated(tmp_path, lines, Terms(routes=ROUTES, gate=gate, budget=Budget(attempts=None, turns=5)))

    stop = ended(made)

    assert asked(made) == [("frontier", "plan"), *[("mid", "turn")] * 4]
    assert len(made.events(ev.Plan)) == 1
    assert PLANNING in made.model.prompts[0][1].content
    check_prefixes(made.model.prompts)
    if gate is Gate.STRICT:
        assert stop is StopReason.GREEN


def test_without_a_route_nobody_asks_the_frontier(tmp_path: Path) -> None:
    made = gated(tmp_path, (PLAN, ADD, MUL, UPPER))

    assert ended(made) is StopReason.GREEN
    assert asked(made) == [("mid", "turn")] * 4
    assert PLANNING not in str(made.model.prompts)


def test_a_plan_that_fails_at_the_provider_is_asked_for_again_and_after_that_the_loop_goes_on(tmp_path: Path) -> None:
    lines = (ScriptLine(error="rate_limit"), PLAN, ADD, MUL, UPPER)
    made = gated(tmp_path, lines, Terms(routes=ROUTES))

    assert ended(made) is StopReason.GREEN
    assert [tier for tier, _ in asked(made)] == ["frontier", "frontier", "mid", "mid", "mid"]


def test_an_unusable_plan_is_not_asked_for_again(tmp_path: Path) -> None:
    made = gated(tmp_path, (ScriptLine(content="I would rather talk"), ADD, MUL, UPPER), Terms(routes=ROUTES))

    assert ended(made) is StopReason.GREEN
    assert [tier for tier, _ in asked(made)] == ["frontier", "mid", "mid", "mid"]


def test_a_run_that_goes_on_after_its_plan_does_not_plan_again(tmp_path: Path) -> None:
    made = gated(tmp_path, (PLAN, ADD, MUL, UPPER), Terms(routes=ROUTES, budget=Budget(attempts=None, turns=2)))
    assert ended(made) is StopReason.TURNS

    with made.world.journal:
        state = resumed(made)

    assert state.end
    assert [tier for tier, _ in asked(made)] == ["frontier", "mid"]


class Dear(Heard):
    """A model that no cap allows."""

    def worst(self, _ask: Ask) -> Cost:
        """More than there is."""
        return Cost(usd=100.0)


def test_a_plan_that_cannot_be_paid_for_is_left_to_the_model_of_the_loop(tmp_path: Path) -> None:
    made = gated(tmp_path, (PLAN, ADD, MUL, UPPER), Terms(routes=ROUTES, budget=Budget(usd=1.0, attempts=None)))
    dear = Dear(())
    parts = replace(made.parts, route=lambda tier: dear if tier == FRONTIER else made.model)
    shell = EffectRunner(parts)
    kernel = made.world.kernel = Kernel(made.world.journal, shell, made.agent, made.world.kernel.state)
    with made.world.journal:
        state = anyio.run(kernel.run)

    assert state.end
    assert state.end.stop is StopReason.GREEN
    assert [tier for tier, _ in asked(made)] == ["mid"] * 4
    assert dear.prompts == []
    assert [reason for name, _, reason in made.taken() if name == "plan"] == ["the next call could pass the cap on usd"]
    assert "not performed" not in str(made.model.prompts)
    check_prefixes(made.model.prompts)


class Eager(Driver):
    """A driver that asks the frontier tier whenever it can."""

    def request(self, state: RunState) -> Request:  # noqa: ARG002  the port's signature
        """The frontier's turn."""
        return Request(FRONTIER, "turn")


def test_the_core_refuses_the_frontier_in_the_loop_whatever_the_agent_asks(tmp_path: Path) -> None:
    made = gated(tmp_path, (PLAN, ADD, MUL, UPPER), Terms(routes=ROUTES))
    agent = Eager((), (), Switches(), Gate.STRICT)
    kernel = made.world.kernel = Kernel(made.world.journal, made.shell, agent, made.world.kernel.state)
    with made.world.journal:
        state = anyio.run(kernel.run)

    assert state.end
    assert state.end.stop is StopReason.INFRA
    assert "frontier" in state.end.why
    assert [tier for tier, _ in asked(made)] == ["frontier"], "the planning turn, and no other"


def test_what_one_model_counted_bounds_no_prompt_of_another(tmp_path: Path) -> None:
    counted = replace(PLAN, usage=ScriptedUsage(input_tokens=3))
    made = gated(tmp_path, (counted, ADD, MUL, UPPER), Terms(routes=ROUTES, budget=Budget(attempts=None, turns=1)))

    ended(made)

    assert made.world.replayed().measured == (0, 0)


@pytest.mark.parametrize(
    ("agent", "gate", "tiers"),
    [
        ("driver", Gate.STRICT, ("mid", "frontier")),
        ("driver", Gate.OFF, ("mid",)),
        ("pipeline", Gate.OFF, ("mid", "cheap")),
        ("external", Gate.STRICT, ("mid",)),
    ],
)
def test_which_tiers_an_agent_asks(agent: str, gate: Gate, tiers: tuple[str, ...]) -> None:
    assert list_tiers(agent, gate, ROUTES) == tiers


TABLES = "[routes.frontier]\nmodel = 'anthropic:claude-opus-5-5'\n[routes.cheap]\nmodel = 'openai:small'\n"


@pytest.mark.parametrize(
    ("chosen", "notes"),
    [
        ({"model": "openai:x"}, ()),
        ({"model": "openai:x", "agent": "pipeline"}, ("[routes.frontier] is not asked",)),
        ({"model": "openai:x", "gate": "off"}, ("[routes.frontier] is not asked",)),
        (
            {"model": "openai:x", "base_url": "http://127.0.0.1:9/v1"},
            ("the tier frontier asks nobody (--base-url)", "[routes.frontier] is not asked"),
        ),
        (
            {"model": "google:x", "base_url": "http://127.0.0.1:9/v1"},
            ("the tier cheap asks google:x (--base-url), not openai:small", "the tier frontier", "[routes.frontier]"),
        ),
    ],
)
def test_a_route_that_is_not_asked_is_said_in_one_line(
    tmp_path: Path, chosen: dict[str, str], notes: tuple[str, ...]
) -> None:
    root = lay(tmp_path / "task", {**GOOD, "task.toml": TABLES})

    found = apply_options(load_task(root), Options(usd=1.0, **chosen)).notes  # type: ignore[arg-type]  # texts alone

    assert len(found) == len(notes)
    assert all(note.startswith(said) for note, said in zip(found, notes, strict=True))


def test_what_model_replaces_is_said_in_one_line(tmp_path: Path) -> None:
    root = lay(tmp_path / "task", {**GOOD, "task.toml": "[routes.mid]\nmodel = 'openai:a'\n"})
    task = apply_options(load_task(root), Options(model="openai:b", usd=1.0, price="1,2"))

    assert task.chosen_routes["mid"].model == "openai:b"
    assert task.chosen_routes["mid"].price == Price(input=1, output=2)
    assert task.notes == ("the tier mid asks openai:b (--model), not openai:a of [routes.mid]",)
