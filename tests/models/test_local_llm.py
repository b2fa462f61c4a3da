"""A real language model on loopback: real tokens, real usage and a real prefix cache. Nothing is said of its skill."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice, pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from jumar.core.run.strategy import Message, Request
from jumar.core.state import events as ev
from jumar.core.state.settings import Price, Route
from jumar.core.state.stop import EXIT_CODES, StopReason
from jumar.journal.writer import read_journal
from jumar.models.llm import LlmModel
from jumar.models.router import check_route
from jumar.ports import Answer, Ask
from support.processes.local_llm import STOP_SECONDS, Local, missing, serving

pytestmark = pytest.mark.slow

RULES = Message("system", "You repair programs. Answer with the whole file.")
CODE = "\n".join(f"def add_{n}(number):\n    return number - {n}\n" for n in range(6))
"""Some 130 tokens."""


@pytest.fixture(scope="module")
def local() -> Iterator[Local]:
    """The server that all of these tests share."""
    if why := missing():
        pytest.skip(why)
    with serving() as server:
        yield server


def route(local: Local, wire: str, most: int = 16, price: Price | None = None) -> Route:
    """Where the model answers over *wire*, with at most so many tokens."""
    base_url = local.openai if wire == "openai" else local.anthropic
    return Route(model=f"{wire}:smollm2", max_output_tokens=most, base_url=base_url, price=price)


def ask(*messages: Message, seed: int = 7, seconds: float = 60.0) -> Ask:
    """A question to a model, with nothing but *messages*."""
    return Ask(
        request=Request("mid", "write"),
        messages=messages,
        tree="",
        files={},
        red=(),
        green=(),
        localisation=None,
        position=0,
        refused=frozenset(),
        seed=seed,
        seconds=seconds,
    )


TASK = """
[task]
name = "{name}"
instruction = "{name}(a, b) gives a - b. Make its test pass."
[files]
editable = ["{name}.py"]
[tests]
select = ["test_{name}.py"]
"""

FIGURE = 0.936
"""Cached prompt tokens of all prompt tokens that the design this follows has published."""

TURNS = 10
"""Of the run that the figure is about."""


@dataclass(frozen=True)
class Ran:
    """A run that a process of its own has made."""

    report: dict[str, Any]
    folder: Path

    @property
    def calls(self) -> list[ev.ModelCall]:
        """What the model was asked and answered."""
        return [e.event for e in read_journal(self.folder) if isinstance(e.event, ev.ModelCall)]

    @property
    def share(self) -> float:
        """Cached prompt tokens of all prompt tokens, as `jumar log stats` shows it."""
        return float(jumar("log", "stats", str(self.folder))[1]["cached_share"])


def jumar(*words: str) -> tuple[int, dict[str, Any]]:
    """The exit status and the object of one command line, run as a person would, without a key."""
    env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    command = [str(Path(sys.executable).with_name("jumar")), *words, "--json"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600, env=env)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout.splitlines()[-1])


def task(folder: Path, name: str) -> Path:
    """A task with one wrong line."""
    home = folder / name
    home.mkdir(parents=True)
    (home / "task.toml").write_text(TASK.format(name=name))
    (home / f"{name}.py").write_text(f"def {name}(a, b):\n    return a - b\n")
    (home / f"test_{name}.py").write_text(
        f"from {name} import {name}\n\n\ndef test_it():\n    assert {name}(2, 3) == 5\n"
    )
    return home


def run(local: Local, home: Path, most: int, *options: str) -> Ran:
    """One run on the task in *home*, of replies with at most so many tokens; it ended typed and its books are right."""
    config = home.parent / f"{most}.toml"
    config.write_text(f"[routes.mid]\nmax_output_tokens = {most}\n[routes.cheap]\nmax_output_tokens = {most // 2}\n")
    where = ("--model", "openai:smollm2", "--base-url", local.openai, "--config", str(config))
    status, report = jumar("run", str(home), *where, "--runs", str(home.parent / "runs"), *options)
    ran = Ran(report, Path(report["events"]).parent)
    assert status == report["exit"] == EXIT_CODES[StopReason(report["stop"])]
    assert report["stop"] in ("green", "final", "turns", "stalled", "attempts"), report
    assert ran.calls
    for call in ran.calls:
        assert (call.error, call.usd, call.assumed) == ("", 0.0, False)
        assert 0 < call.output_tokens <= most
        assert 0 <= call.cached_tokens < call.input_tokens
    assert report["tokens"] == sum(c.input_tokens + c.output_tokens for c in ran.calls)
    assert jumar("log", "verify", str(ran.folder))[0] == 0
    return ran


def model(route: Route) -> LlmModel:
    """The model of *route*, as a run would have it."""
    return LlmModel(route, "no-key", check_route(route))


def answer(route: Route, *messages: Message, seed: int = 7) -> Answer:
    """What the model says to *messages*."""
    return anyio.run(model(route).complete, ask(*messages, seed=seed))


@pytest.mark.parametrize("wire", ["openai", pytest.param("anthropic", marks=pytest.mark.proof)])
def test_it_answers_with_text_and_usage_and_the_second_turn_comes_from_its_cache(local: Local, wire: str) -> None:
    asked = Message("user", f"Repair {wire}.py:\n{CODE}")
    first = answer(route(local, wire), RULES, asked)
    assert first.error == ""
    assert first.reply.content
    assert not first.reply.tool_calls
    assert 100 < first.input_tokens < 400
    assert 0 < first.output_tokens <= 16
    assert first.cached_tokens < 60, "only the rules were sent before"

    said = Message("assistant", first.reply.content)
    second = answer(route(local, wire), RULES, asked, said, Message("user", "That is not the whole file."))
    assert second.input_tokens > first.input_tokens
    assert second.cached_tokens >= first.input_tokens, "all of the first prompt is the start of the second one"
    assert second.cached_tokens < second.input_tokens


@pytest.mark.proof
def test_it_is_free_here_unless_a_price_is_given_and_then_cached_tokens_cost_theirs(local: Local) -> None:
    asked = Message("user", f"Repair priced.py:\n{CODE}")
    assert answer(route(local, "openai"), RULES, asked).usd == 0.0
    paid = Price(input=1_000_000.0, output=2_000_000.0, cached=1.0)
    again = answer(route(local, "openai", price=paid), RULES, asked)
    assert again.cached_tokens == again.input_tokens - 1, "it computes the last token anew, to have where to go on from"
    assert again.usd == pytest.approx(1 + again.cached_tokens / 1_000_000 + 2 * again.output_tokens)


@pytest.mark.proof
def test_the_same_seed_says_the_same_and_no_reply_is_longer_than_the_route_allows(local: Local) -> None:
    asked = (RULES, Message("user", "Say something."))
    answers = [answer(route(local, "openai", most), *asked, seed=seed) for most, seed in ((24, 3), (24, 3), (24, 4))]
    assert answers[0].reply == answers[1].reply != answers[2].reply
    assert all(a.output_tokens <= 24 for a in answers)


@pytest.mark.proof
def test_what_it_may_cost_is_never_less_than_what_it_counts(local: Local) -> None:
    begun = (RULES, Message("user", CODE))
    asked = ask(*begun, Message("assistant", "Wait."), Message("user", "é漢字🙂" * 20))
    before = answer(route(local, "openai"), *begun)
    said = anyio.run(model(route(local, "openai")).complete, asked)
    guessed = model(route(local, "openai")).worst(asked)
    closer = model(route(local, "openai")).worst(replace(asked, measured=(len(begun), before.input_tokens)))
    assert said.input_tokens + said.output_tokens <= closer.tokens <= guessed.tokens


def test_a_prompt_that_is_too_long_is_a_fault_with_a_reason(local: Local) -> None:
    said = answer(route(local, "openai"), RULES, Message("user", "word " * 9000))
    assert said.error in ("context", "rejected"), "asked again, it would be no shorter"
    assert not said.assumed
    assert "context" in said.detail
    assert said.reply.content == ""


@pytest.mark.proof
@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_a_call_that_is_cancelled_leaves_the_server_free(local: Local, wire: str) -> None:
    long = ask(RULES, Message("user", "Write the numbers from 1 to 500, one a line."))
    before = local.written

    async def cancelled() -> Answer:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(model(route(local, wire, most=1000)).complete, long)
                while not await anyio.to_thread.run_sync(local.writing):
                    pass
                group.cancel_scope.cancel()
            # It has one slot: this waits for its turn. The server looks once a second whether anybody still listens,
            # so that nothing may be asked of it meanwhile.
            return await model(route(local, wire)).complete(ask(RULES, Message("user", "And now?")))

    next_one = anyio.run(cancelled)
    assert next_one.error == ""
    assert local.written - before - next_one.output_tokens < 300, "it went on with what nobody waits for"


def test_a_call_that_takes_too_long_is_a_timeout_that_may_be_billed(local: Local) -> None:
    slow = Message("user", "\n".join(f"{n} is a number" for n in range(100)))
    said = anyio.run(model(route(local, "openai")).complete, ask(RULES, slow, seconds=1.0))
    assert said.error == "timeout"
    assert said.assumed


def test_the_server_ends_with_whoever_started_it_even_if_that_was_killed() -> None:
    if why := missing():
        pytest.skip(why)
    program = (
        "import sys\nfrom support.processes import local_llm\nwith local_llm.serving() as s:\n"
        "    print(s.pid, flush=True)\n    sys.stdin.read()"
    )
    argv, here = [sys.executable, "-c", program], {"PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=here) as owner:
        assert owner.stdout is not None
        served = os.pidfd_open(int(owner.stdout.readline()))
        owner.kill()
    ended, _, _ = select.select([served], [], [], STOP_SECONDS)
    os.close(served)
    assert ended


@pytest.mark.proof
def test_the_driver_ends_typed_and_each_prompt_begins_with_all_of_the_one_before(local: Local, tmp_path: Path) -> None:
    ran = run(
        local,
        task(tmp_path, "plus"),
        16,
        "--agent",
        "driver",
        "--text-actions",
        "--gate",
        "off",
        "--turns",
        "2",
        "--seed",
        "1",
    )
    assert len(ran.calls) == 2
    grown = [(before.input_tokens, now.cached_tokens) for before, now in pairwise(ran.calls)]
    assert all(cached >= before for before, cached in grown), grown
    cached, prompt = sum(c.cached_tokens for c in ran.calls), sum(c.input_tokens for c in ran.calls)
    assert ran.share == pytest.approx(cached / prompt, abs=1e-4)
    assert cached > 0


@pytest.mark.proof
def test_the_pipeline_ends_typed_and_its_prompts_share_their_beginning(local: Local, tmp_path: Path) -> None:
    ran = run(local, task(tmp_path, "sums"), 32, "--agent", "pipeline", "--attempts", "2", "--seed", "1")
    stages = [call.stage for call in ran.calls]
    assert stages[0] == "write"
    assert set(stages[1:]) <= {"review", "rewrite", "fix"}
    assert ran.report["stop"] in ("green", "attempts")
    if ran.report["stop"] == "attempts":  # it may be right at once
        assert len(stages) > 1
        assert sum(call.cached_tokens for call in ran.calls) > 0
        assert ran.share > 0


def of_ten_turns(runs: Iterator[Ran]) -> Ran:
    """The first of *runs* that has all its turns: one that is lucky, or repeats itself, ends before."""
    return next(ran for ran in islice(runs, 8) if len(ran.calls) == TURNS)


@pytest.mark.proof
def test_the_share_of_cached_tokens_in_ten_turns(tmp_path: Path, figure: Callable[[str, str], None]) -> None:
    if why := missing():
        pytest.skip(why)

    def ten(server: Local, name: str, seed: int, turns: int = TURNS) -> Ran:
        home = tmp_path / name
        options = ("--agent", "driver", "--text-actions", "--turns", str(turns), "--seed", str(seed))
        return run(server, home if home.exists() else task(tmp_path, name), 48, *options)

    def cold(seed: int) -> Ran:
        with serving() as fresh:
            return ten(fresh, "cold", seed)

    first = of_ten_turns(cold(seed) for seed in count(1))
    with serving() as server:
        ten(server, "before", seed=1, turns=1)
        rules = of_ten_turns(ten(server, f"rules_{seed}", seed) for seed in count(1))
        again = [of_ten_turns(ten(server, rules.report["task"], seed) for seed in count(start)) for start in (11, 21)]
    said = " and ".join(f"{ran.share:.3f}" for ran in again)
    figure(
        "cache",
        f"of the prompt tokens of {TURNS} turns on a real server, cached: {first.share:.3f} where it knew nothing, "
        f"{rules.share:.3f} where it knew the driver's rules, {said} in the second and third rollout of one task",
    )
    # What is new in a turn is what the last actions showed, and in the first one all of it: a cold run stays below 0.9.
    assert first.calls[0].cached_tokens == 0
    assert 0.85 < first.share < rules.share
    assert min(ran.share for ran in again) >= FIGURE
