"""How often tests run is counted, not promised: per write, once at the end on every way out, or never."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
import pytest

from jumar.agents.driver import Driver
from jumar.agents.pipeline import Pipeline
from jumar.core.run.effects import Halt
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget
from jumar.core.state.reply import ToolCall
from jumar.core.state.settings import Switches
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import TestPolicy
from jumar.models.script import ScriptedUsage, ScriptLine, ScriptModel
from jumar.runs.lifecycle import start
from jumar.task.resolve import Options, apply_options
from jumar.task.task import load_task
from support.processes.interpreters import beside_it
from support.worlds.run_world import Terms, World, program, world

TASKS, ROLLOUTS, WRITES = 30, 8, 4


def writing(number: int, passing: int = 9) -> ScriptLine:
    call = ToolCall("write_file", {"path": "app.py", "text": program(passing, f"write {number}")})
    return ScriptLine(tool_calls=(call,), usd=0.01, usage=ScriptedUsage(input_tokens=100, output_tokens=10))


def driven(folder: Path, lines: tuple[ScriptLine, ...], policy: TestPolicy, budget: Budget | None = None) -> World:
    """A run of the driver that answers *lines*."""
    agent = Driver(("app.py", "test_app.py"), ("test_app.py",), Switches())
    terms = Terms(policy=policy, budget=budget or Budget(attempts=None), model=ScriptModel(lines), agent=agent)
    return world(folder, (), terms)


def ended(made: World) -> ev.RunEnd:
    with made.journal:
        end = anyio.run(made.kernel.run).end
    assert end
    assert made.replayed().end == end
    return end


def runs_of(made: World) -> tuple[int, int]:
    """How many `tests` events without the baseline, and how many observations of test results without its own."""
    tests = [e for e in made.events(ev.Tests) if isinstance(e, ev.Tests)]
    shown = [e for e in made.events(ev.Observation) if isinstance(e, ev.Observation) and e.name == "driver.run_tests"]
    baselines = sum(t.trigger == "baseline" for t in tests)
    return len(tests) - baselines, len(shown) - baselines


def metered_in_memory(tmp_path: Path, many: int, policy: TestPolicy) -> tuple[int, int, int]:
    """Verifications, observations of them, and test runs billed, over *many* runs of the kernel."""
    runs = shown = billed = 0
    for n in range(many):
        made = driven(tmp_path / str(n), tuple(writing(k) for k in range(WRITES)), policy)
        end = ended(made)
        assert end.stop is StopReason.FINAL
        billed += end.test_runs
        run, observed = runs_of(made)
        runs, shown = runs + run, shown + observed
        assert len(made.verifier.asked) == run + (policy is TestPolicy.ON_WRITE), "the runner itself was asked as often"
    return runs, shown, billed


COUNTED = [(TestPolicy.ON_WRITE, 4), (TestPolicy.ON_FINAL, 1), (TestPolicy.NEVER, 0)]


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "each"), COUNTED)
def test_a_sample_of_four_writes(tmp_path: Path, policy: TestPolicy, each: int) -> None:
    assert metered_in_memory(tmp_path, 5, policy) == (5 * each,) * 3


@pytest.mark.proof
@pytest.mark.parametrize(("policy", "each"), COUNTED)
def test_thirty_tasks_eight_rollouts_four_writes(tmp_path: Path, policy: TestPolicy, each: int) -> None:
    assert metered_in_memory(tmp_path, TASKS * ROLLOUTS, policy) == (240 * each,) * 3


def outside() -> ScriptLine:
    return ScriptLine(tool_calls=(ToolCall("write_file", {"path": "../evil.py", "text": "x = 1\n"}),))


def final() -> ScriptLine:
    return ScriptLine(tool_calls=(ToolCall("final", {"message": "enough"}),))


def looking(n: int = 0) -> ScriptLine:
    return ScriptLine(tool_calls=(ToolCall("search", {"pattern": f"PASSING{n}", "path": ""}),))


WAYS_OUT: Mapping[str, tuple[StopReason, tuple[ScriptLine, ...], Budget]] = {
    "final": (StopReason.FINAL, (writing(1), final()), Budget(attempts=None)),
    "green": (StopReason.GREEN, (writing(1, 17), final()), Budget(attempts=None)),
    "turns": (StopReason.TURNS, (writing(1), writing(2), writing(3)), Budget(attempts=None, turns=2)),
    "usd": (StopReason.BUDGET, (writing(1), writing(2), writing(3)), Budget(attempts=None, usd=0.02)),
    "tokens": (StopReason.BUDGET, (writing(1), writing(2)), Budget(attempts=None, tokens=150)),
    "seconds": (StopReason.BUDGET, tuple(looking(n) for n in range(99)), Budget(attempts=None, seconds=160.0)),
    "guardrail": (StopReason.GUARDRAIL, (writing(1), outside()), Budget(attempts=None)),
    "provider error": (StopReason.INFRA, (writing(1), ScriptLine(error="server")), Budget(attempts=None)),
    "stalled": (StopReason.STALLED, (looking(), looking(), looking()), Budget(attempts=None)),
    "refusals": (StopReason.TURNS, (ScriptLine(error="refusal"), writing(1)), Budget(attempts=None, turns=2)),
}


def one_result(made: World) -> None:
    """Exactly one verification and one observation of it, which is what the last word says."""
    assert runs_of(made) == (1, 1)
    shown = [e for e in made.events(ev.Observation) if isinstance(e, ev.Observation) and e.name == "driver.run_tests"]
    (last,) = (e for e in made.events(ev.Final) if isinstance(e, ev.Final))
    assert last.test_result == shown[0].content
    assert set(shown[0].content) == {"ok", "output"}


@pytest.mark.parametrize("way", WAYS_OUT)
def test_under_on_final_every_way_out_has_one_result(tmp_path: Path, way: str) -> None:
    stop, lines, budget = WAYS_OUT[way]
    made = driven(tmp_path / "run", lines, TestPolicy.ON_FINAL, budget)

    assert ended(made).stop is stop
    one_result(made)


@pytest.mark.parametrize("way", WAYS_OUT)
def test_under_never_no_way_out_has_any(tmp_path: Path, way: str) -> None:
    stop, lines, budget = WAYS_OUT[way]
    made = driven(tmp_path / "run", lines, TestPolicy.NEVER, budget)

    assert ended(made).stop is (StopReason.FINAL if stop is StopReason.GREEN else stop)
    assert runs_of(made) == (0, 0)
    (last,) = (e for e in made.events(ev.Final) if isinstance(e, ev.Final))
    assert last.test_result is None
    assert b"test_result" not in (tmp_path / "run" / "events.jsonl").read_bytes()


@pytest.mark.parametrize("effect", ["Reserve", "Call", "Act", "Verify", "Keep", "Finish", "Close"])
def test_an_interrupt_at_any_effect_leaves_one_result(tmp_path: Path, effect: str) -> None:
    made = driven(tmp_path, (writing(1), writing(2)), TestPolicy.ON_FINAL)
    made.kernel.watch = lambda _, due: (
        made.kernel.halt(Halt(StopReason.INTERRUPTED)) if type(due).__name__ == effect else None
    )

    assert ended(made).stop in (StopReason.INTERRUPTED, StopReason.FINAL)
    one_result(made)


@pytest.mark.parametrize(
    ("stop", "lines", "budget"),
    [
        (StopReason.FINAL, (ScriptLine(content=program(9)),), Budget()),
        (StopReason.GREEN, (ScriptLine(content=program(17)),), Budget()),
        (StopReason.ATTEMPTS, (ScriptLine(content="def broken(:"),), Budget(attempts=1)),
        (StopReason.BUDGET, (ScriptLine(content=program(9), usd=1.0),), Budget(usd=0.5)),
        (StopReason.INFRA, (ScriptLine(error="timeout"),), Budget()),
    ],
)
def test_the_pipeline_too(tmp_path: Path, stop: StopReason, lines: tuple[ScriptLine, ...], budget: Budget) -> None:
    terms = Terms(policy=TestPolicy.ON_FINAL, budget=budget, model=ScriptModel(lines), agent=Pipeline(("app.py",)))
    made = world(tmp_path, (), terms)

    assert ended(made).stop is stop
    one_result(made)


def lay_out(folder: Path) -> Path:
    folder.mkdir(parents=True)
    beside_it(folder)
    (folder / "app.py").write_text("N = 0\n")
    (folder / "test_app.py").write_text("from app import N\n\n\ndef test_it():\n    assert N == 99\n")
    lines = [
        {"tool_calls": [{"name": "write_file", "arguments": {"path": "app.py", "text": f"N = {n}\n"}}]}
        for n in range(1, WRITES + 1)
    ]
    (folder.parent / f"{folder.name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return folder


async def metered(folder: Path, many: int, policy: TestPolicy) -> int:
    """Test runs of *many* tasks x rollouts with real pytest processes, two at a time."""
    counted, two = [], anyio.CapacityLimiter(2)

    async def one(number: int) -> None:
        async with two:
            chosen = Options(
                agent="driver",
                model=f"script:{folder / f'{number}.jsonl'}",
                test_policy=policy,
                gate="off",
                confirm=0,
                sandbox="S0",
            )
            task = apply_options(load_task(lay_out(folder / str(number))), chosen)
            result = await start(task, folder / "runs", environ=os.environ)
            assert result.stop is StopReason.FINAL
            counted.append(result.test_runs)

    async with anyio.create_task_group() as group:
        for number in range(many):
            group.start_soon(one, number)
    return sum(counted)


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "each"), COUNTED[::2])
def test_a_sample_with_real_tests(tmp_path: Path, policy: TestPolicy, each: int) -> None:
    assert anyio.run(metered, tmp_path / "m", 1, policy) == each


@pytest.mark.proof
@pytest.mark.parametrize(("policy", "each"), COUNTED)
def test_all_with_real_tests(tmp_path: Path, policy: TestPolicy, each: int, figure: Callable[[str, str], None]) -> None:
    many = TASKS * ROLLOUTS

    assert anyio.run(metered, tmp_path / "m", many, policy) == many * each
    figure(f"meter {policy}", f"{many} runs of {WRITES} writes: {many * each} test runs")


@pytest.mark.slow
def test_sigterm_leaves_one_result(tmp_path: Path) -> None:
    task = lay_out(tmp_path / "task")
    (task / "test_app.py").write_text(
        f"import os, signal\nfrom app import N\n\nSEEN = {str(tmp_path / 'seen')!r}\n\n\ndef test_it():\n"
        "    if not os.path.exists(SEEN):\n        open(SEEN, 'w').close()\n"
        f"        open({str(tmp_path / 'testing')!r}, 'w').close()\n        signal.pause()\n    assert N == 99\n"
    )
    chosen = [
        "--agent",
        "driver",
        "--test-policy",
        "on_final",
        "--model",
        f"script:{tmp_path / 'task.jsonl'}",
        "--json",
    ]
    argv = [sys.executable, "-m", "jumar.cli.main", "run", str(task), *chosen, "--runs", str(tmp_path / "runs")]
    os.mkfifo(tmp_path / "testing")
    reader = os.open(tmp_path / "testing", os.O_RDONLY | os.O_NONBLOCK)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        select.select([reader], [], [], 60)  # the test, in the last verification, opens the other end
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
    os.close(reader)
    result = json.loads(out.splitlines()[-1])
    entries = [json.loads(line) for line in Path(result["events"]).read_text().splitlines()]

    assert result["exit"] == process.returncode == 130
    assert [e["type"] for e in entries].count("tests") == 1
    (shown,) = (e for e in entries if e["type"] == "observation" and e["name"] == "driver.run_tests")
    (last,) = (e for e in entries if e["type"] == "final")
    assert last["test_result"] == shown["content"]
