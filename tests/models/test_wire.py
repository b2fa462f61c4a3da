"""Whole runs over the real clients: each fault of a provider ends typed, is billed right, and loses nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from click.testing import CliRunner

from jumar.agents.driver import Driver
from jumar.agents.pipeline import Pipeline
from jumar.cli.main import jumar as commands
from jumar.core.run.strategy import Strategy
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget, to_micro_usd
from jumar.core.state.settings import Price, Route, Settings, Switches
from jumar.core.state.stop import StopReason
from jumar.journal.writer import read_journal
from jumar.models.llm import LlmModel
from jumar.models.wire.prices import find_tariff
from jumar.models.wire.providers import PROVIDERS
from jumar.process.warm.starts import NO_WARM
from support.processes import fake_provider as wire
from support.worlds.run_world import TOTAL, Terms, World, program, world

pytestmark = pytest.mark.slow
"""Real clients and servers: the first call of a process alone takes a second."""

KEY = "sk-planted-0123456789abcdefghij"
MODELS = ("openai:tiny", "anthropic:claude-sonnet-5-5")
AGENTS = ("driver", "pipeline")
PAIRS = [
    (model, agent) if at == of else pytest.param(model, agent, marks=pytest.mark.proof)
    for at, model in enumerate(MODELS)
    for of, agent in enumerate(AGENTS)
]
"""Each model and each agent once; `make prove` tries them all with all."""
PRICE = Price(input=1.0, output=2.0, cached=0.1)
REPORTED = to_micro_usd((80 * 1.0 + 20 * 0.1 + 20 * 2.0) / 1_000_000)
"""Of `wire.Tokens(100, 20, cached=20)`, which every answer here reports."""
TOKENS = wire.Tokens(input=100, output=20, cached=20)


def agent_called(name: str) -> Strategy:
    if name == "pipeline":
        return Pipeline(("app.py",), Settings(switches=Switches(review=True)))
    return Driver(("app.py", "test_app.py"), ("test_app.py",), Switches())


def wrote(agent: str, passing: int) -> wire.Step:
    """An answer that writes a program with *passing* tests green, as the agent asks for it."""
    if agent == "pipeline":
        return wire.reply(f"```python\n{program(passing)}```", tokens=TOKENS)
    return wire.reply("I write it.", ("write_file", {"path": "app.py", "text": program(passing)}), tokens=TOKENS)


def opening(agent: str) -> list[wire.Step]:
    """The first attempt: 12 of 17."""
    review = [wire.reply("CLEAN", tokens=TOKENS)] if agent == "pipeline" else []
    return [wrote(agent, 12), *review]


FAULTS: Mapping[str, tuple[wire.Step, str, str]] = {
    "429": (wire.rate_limited("2"), "rate_limit", "free"),
    "500": (wire.failing(500), "server", "free"),
    "529": (wire.failing(529, "overloaded"), "server", "free"),
    "dropped before": (wire.dropped("before"), "connection", "reserved"),
    "dropped within": (wire.dropped("within"), "connection", "reserved"),
    "malformed": (wire.garbled(), "malformed", "reserved"),
    "refusal": (wire.Step(refusal="I cannot help with that", tokens=TOKENS), "refusal", "reported"),
    "empty": (wire.Step(tokens=TOKENS), "", "reported"),
    "401": (wire.failing(401, f"no such key: {KEY}"), "rejected", "free"),
    "too long": (
        wire.failing(400, "prompt is too long: 11 tokens > 10 maximum", code="context_length_exceeded"),
        "context",
        "free",
    ),
}
"""What the server does -> the error it is in the journal, and what the call is billed at."""

PASSING = {"429", "500", "529", "dropped before", "dropped within", "malformed"}


def ended(made: World) -> ev.RunEnd:
    with made.journal:
        state = anyio.run(made.kernel.run)
    assert made.replayed() == state
    assert state.end
    return state.end


def calls_of(made: World) -> list[tuple[ev.ModelRequest, ev.ModelCall]]:
    """Each request with what settled it: none is open, none settled twice."""
    asked = [e for e in made.events(ev.ModelRequest) if isinstance(e, ev.ModelRequest)]
    settled = [e for e in made.events(ev.ModelCall) if isinstance(e, ev.ModelCall)]
    return list(zip(asked, settled, strict=True))


def over(server: wire.Server, model: str, agent: str, folder: Path, budget: Budget) -> World:
    route = Route(model=model, max_output_tokens=50, price=PRICE, base_url=server.url)
    terms = Terms(budget=budget, agent=agent_called(agent), model=LlmModel(route, KEY, find_tariff(route)))
    return world(folder, (), terms)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("model", "agent"), PAIRS)
def test_a_fault_in_the_middle(tmp_path: Path, model: str, agent: str, fault: str) -> None:
    step, error, billed = FAULTS[fault]
    steps = [*opening(agent), step, wrote(agent, TOTAL)]
    with wire.Server(steps) as server:
        made = over(server, model, agent, tmp_path, Budget(attempts=9, turns=9))
        end = ended(made)

    calls = calls_of(made)
    fatal = fault in ("401", "too long")
    assert end.stop is (StopReason.INFRA if fatal else StopReason.GREEN)
    assert made.text == program(12 if fatal else TOTAL), "what was best is there"
    assert len(server.requests) == len(calls)
    request, call = calls[len(opening(agent))]
    assert (call.error, call.assumed) == (error, billed == "reserved")
    paid = {"free": 0, "reported": REPORTED, "reserved": to_micro_usd(request.reserved_usd)}[billed]
    assert to_micro_usd(call.usd) == paid
    others = len(calls) - 1
    assert made.replayed().spend.micro_usd == paid + others * REPORTED
    assert call.retry_after == (2.0 if fault == "429" else None)
    assert KEY not in (tmp_path / "events.jsonl").read_text()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("model", "agent"), PAIRS)
def test_a_fault_that_stays(tmp_path: Path, model: str, agent: str, fault: str) -> None:
    with wire.Server(opening(agent), last=FAULTS[fault][0]) as server:
        made = over(server, model, agent, tmp_path, Budget(attempts=3, turns=9))
        end = ended(made)

    passing, own = fault in PASSING, fault in ("refusal", "empty")
    stopped = {"driver": StopReason.STALLED, "pipeline": StopReason.ATTEMPTS}[agent] if own else StopReason.INFRA
    assert end.stop is stopped
    assert made.text == program(12)
    assert len(server.requests) - len(opening(agent)) == (
        5 if passing else {"driver": 3, "pipeline": 2}[agent] if own else 1
    )
    paid = sum(to_micro_usd(call.usd) for _, call in calls_of(made))
    assert made.replayed().spend.micro_usd == paid
    assert all(call.usd <= request.reserved_usd for request, call in calls_of(made))


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("model", MODELS)
def test_money_that_could_run_out_is_not_spent(tmp_path: Path, model: str, agent: str) -> None:
    dear = wire.Tokens(input=1000, output=50)
    with wire.Server([replace(wrote(agent, n), tokens=dear) for n in range(3, 16)]) as server:
        cap = {"driver": 0.012, "pipeline": 0.006}[agent]
        made = over(server, model, agent, tmp_path, Budget(attempts=99, usd=cap))
        assert ended(made).stop is StopReason.BUDGET

    assert made.replayed().spend.usd <= cap
    assert len(server.requests) == len(calls_of(made)) > 0


@pytest.mark.parametrize("model", MODELS)
def test_what_a_driver_sends_only_grows(tmp_path: Path, model: str) -> None:
    look = ("read_file", {"path": "app.py", "start": 1, "end": 0})
    steps = [
        wire.reply("I look.", look, ("search", {"pattern": "PASSING", "path": ""}), tokens=TOKENS),
        wrote("driver", 12),
        wire.reply("no action at all", tokens=TOKENS),
        wrote("driver", 10),
        wire.rate_limited(),
        wrote("driver", TOTAL),
    ]
    with wire.Server(steps) as server:
        ended(over(server, model, "driver", tmp_path, Budget(attempts=None)))

    bodies = [r.body for r in server.requests]
    for earlier, later in pairwise(bodies):
        assert earlier.get("tools") == later.get("tools")
        assert earlier.get("system") == later.get("system")
        sent, said = ([json.dumps(bare(m)) for m in b["messages"]] for b in (earlier, later))
        assert said[: len(sent)] == sent


def bare(message: Any) -> Any:
    """*message* without the marks of where to cache up to, which move with the conversation and are no part of it."""
    if isinstance(message, dict):
        return {k: bare(v) for k, v in message.items() if k != "cache_control"}
    return [bare(m) for m in message] if isinstance(message, list) else message


SUITE = """\
import os
from app import N


def test_one():
    assert N > 1, [name for name in os.environ if "KEY" in name]


def test_two():
    assert N > 2
"""


def lay_out(folder: Path) -> Path:
    task = folder / "task"
    task.mkdir(parents=True)
    (task / "app.py").write_text("N = 0\n")
    (task / "test_app.py").write_text(SUITE)
    return task


def jumar(*argv: str) -> tuple[int, dict[str, Any]]:
    """Return what the command line returns, and its object. A key is planted in its environment.

    All its processes are started: a journal tells which were forked, and that depends on what ran here before.
    """
    keys = {variable: KEY for p in PROVIDERS for variable in p.keys}
    done = CliRunner(env={**keys, NO_WARM: "1"}).invoke(commands, [*argv, "--json"], standalone_mode=False)
    assert done.exception is None, done.exception
    assert KEY not in done.stdout + done.stderr
    return done.return_value or 0, json.loads(done.stdout.splitlines()[-1])


def told(run: Mapping[str, Any]) -> list[Any]:
    """The journal of *run* without times and without what names this one run; a replay is free, and has no such cap."""
    own = {"seconds", "ms", "duration_ms", "ts", "prev", "run", "more", "budget"}
    entries = [msgspec.to_builtins(e.event) for e in read_journal(Path(run["events"]).parent)]
    settings = entries[0]["settings"]
    settings.pop("notes", None)  # they tell of the cap
    return [{k: v for k, v in entry.items() if k not in own} for entry in entries]


@pytest.mark.proof
@pytest.mark.parametrize(
    ("model", "agent"),
    [(MODELS[0], "driver"), pytest.param(MODELS[1], "pipeline", marks=pytest.mark.proof)],
)
def test_a_recorded_run_is_had_again_offline_and_holds_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, agent: str
) -> None:
    lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    text = {n: f"N = {n}\n" for n in (2, 3)}
    write = {
        "driver": [
            wire.reply(KEY, ("write_file", {"path": "app.py", "text": t}), tokens=TOKENS) for t in text.values()
        ],
        "pipeline": [wire.reply(f"{KEY}\n```python\n{t}```", tokens=TOKENS) for t in text.values()],
    }[agent]
    steps = [
        write[0],
        wire.reply("CLEAN", tokens=TOKENS),
        wire.failing(500, f"the key {KEY}"),
        wire.rate_limited("0.01"),
        write[1],
    ]
    if agent == "driver":
        steps[1] = wire.reply("", ("read_file", {"path": "app.py"}), tokens=TOKENS)
    shape = ("--agent", agent, "--gate", "off", "--seed", "7", "-i", "make N big")
    with wire.Server(steps) as server:
        code, first = jumar(
            "run", "task", *shape, "--model", model, "--base-url", server.url, "--price", "1,2,0.1",
            "--record", "tape.jsonl", "--runs", "first",
        )  # fmt: skip
    again_code, again = jumar("run", "task", *shape, "--model", "replay:tape.jsonl", "--runs", "again")

    assert (code, again_code) == (0, 0)
    assert first["stop"] == again["stop"] == "green"
    assert told(first) == told(again)
    assert [first[k] for k in ("usd", "tokens", "tree")] == [again[k] for k in ("usd", "tokens", "tree")]
    assert any(KEY in r.headers.get("authorization", r.headers.get("x-api-key", "")) for r in server.requests)
    written = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert not [p for p in written if KEY.encode() in p.read_bytes()], "cassettes, journals and outputs hold no key"
    assert re.search(r'"error":"server"', (tmp_path / "tape.jsonl").read_text())
    assert (tmp_path / "tape.jsonl").read_bytes().count(b"\n") == 1 + 2 * len(steps), (
        "what was asked, and what was answered"
    )
