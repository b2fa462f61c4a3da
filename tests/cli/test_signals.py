"""Ctrl-C and SIGTERM are heard at once, whatever answers; a second one ends without a last verification."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint

from jumar.cli.console.signals import FIRST, SECOND, SignalWatcher
from jumar.core.run.effects import Halt, Verify
from jumar.core.state import events as ev
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import TestPolicy, Trigger
from support.worlds.driver_world import Rules, ended, turns, writes
from support.worlds.run_world import Terms, program, world

BUSY_SECONDS = 20.0
"""As long as a computation would take that nothing breaks off."""

HEARD_SECONDS = 5.0
"""What a loaded machine may take; a signal that is not heard takes `BUSY_SECONDS` or more."""


def busy() -> None:
    """Keep the event loop from everything else."""
    end = time.monotonic() + BUSY_SECONDS
    while time.monotonic() < end:
        pass


def test_a_model_that_always_answers_leaves_time_for_others(tmp_path: Path) -> None:
    made = world(tmp_path, tuple(program(n % 9, str(n)) for n in range(200)), Terms())

    async def both() -> None:
        async def stop() -> None:
            for _ in range(20):
                await checkpoint()
            made.kernel.halt(FIRST)

        async with anyio.create_task_group() as group:
            group.start_soon(stop)
            await made.kernel.run()

    anyio.run(both)

    end = made.replayed().end
    assert end is not None
    assert end.stop is StopReason.INTERRUPTED
    assert len(made.events(ev.ModelCall)) < 100


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_breaks_off_what_keeps_the_event_loop_before_there_is_a_run(number: signal.Signals) -> None:
    said: list[str] = []
    attendant = SignalWatcher(said.append, quiet=True)

    async def work() -> str:
        os.kill(os.getpid(), number)
        busy()
        return "done"

    before, started = signal.getsignal(number), time.monotonic()

    assert attendant.run(work) is None
    assert attendant.interrupted
    assert time.monotonic() - started < HEARD_SECONDS
    assert signal.getsignal(number) == before, "handlers are put back"


@pytest.mark.slow
def test_a_signal_breaks_off_a_long_computation_of_an_effect_and_the_run_ends_typed(tmp_path: Path) -> None:
    made = turns(tmp_path, (writes(9), writes(10), writes(11)), Rules())
    kernel, attendant = made.world.kernel, SignalWatcher(quiet=True)
    perform = kernel.shell.perform

    async def stuck(effect: object, state: object) -> object:
        if isinstance(effect, Verify) and effect.trigger is Trigger.WRITE:
            os.kill(os.getpid(), signal.SIGINT)
            busy()
        return await perform(effect, state)  # type: ignore[arg-type]

    kernel.shell.perform = stuck  # type: ignore[assignment, method-assign]  # a verifier that computes for long

    async def work() -> object:
        attendant.watch(kernel)
        return await kernel.run()

    started = time.monotonic()
    attendant.run(work)

    assert time.monotonic() - started < HEARD_SECONDS
    end = made.world.replayed().end
    assert end is not None
    assert end.stop is StopReason.INTERRUPTED


def test_what_comes_after_the_end_can_be_stopped_and_costs_no_result(tmp_path: Path) -> None:
    made = world(tmp_path, (program(9),))
    attendant = SignalWatcher(quiet=True)

    async def long() -> str:
        os.kill(os.getpid(), signal.SIGINT)
        await anyio.sleep_forever()
        return "never"

    async def work() -> tuple[object, object]:
        attendant.watch(made.kernel)
        state = await made.kernel.run()
        return state.end, await made.kernel.conclude(long())

    end, after = attendant.run(work) or (None, "lost")

    assert end is not None
    assert after is None


def test_a_signal_halts_every_run_that_is_at_work(tmp_path: Path) -> None:
    worlds = [world(tmp_path / name, tuple(program(n % 9, str(n)) for n in range(200))) for name in ("one", "two")]
    attendant = SignalWatcher(quiet=True, patient=True)

    async def work() -> None:
        async with anyio.create_task_group() as group:
            for made in worlds:
                attendant.watch(made.kernel)
                group.start_soon(made.kernel.run)
            for _ in range(20):
                await checkpoint()
            os.kill(os.getpid(), signal.SIGINT)

    attendant.run(work)

    ends = [made.replayed().end for made in worlds]
    assert [end and end.stop for end in ends] == [StopReason.INTERRUPTED] * 2


def test_a_second_signal_skips_the_last_verification_and_keeps_the_best_tree(tmp_path: Path) -> None:
    made = turns(tmp_path, (writes(12), writes(13)), Rules(policy=TestPolicy.ON_FINAL))
    kernel = made.world.kernel
    perform = kernel.shell.perform

    async def twice(effect: object, state: object) -> object:
        if isinstance(effect, Verify):
            kernel.halt(FIRST)
            kernel.halt(SECOND)
            await anyio.sleep_forever()
        return await perform(effect, state)  # type: ignore[arg-type]

    kernel.shell.perform = twice  # type: ignore[assignment, method-assign]  # a verification that takes for ever

    assert ended(made) is StopReason.INTERRUPTED
    assert made.triggers() == []
    assert made.text("app.py") == program(13)
    (final,) = made.events(ev.Final)
    assert isinstance(final, ev.Final)
    assert "without the last verification" in final.message


def test_the_first_reason_to_stop_stays_what_it_was(tmp_path: Path) -> None:
    made = world(tmp_path, (program(9),))
    made.kernel.intend(Halt(StopReason.INFRA, "the disk is full"))
    made.kernel.intend(SECOND)

    anyio.run(made.kernel.run)

    end = made.replayed().end
    assert end is not None
    assert end.stop is StopReason.INFRA


LOOKS = [
    {"tool_calls": [{"name": "search", "arguments": {"pattern": f"no{n}", "path": "app.py"}}]} for n in range(9999)
]


def command(folder: Path, replies: list[object], test: str, *options: str) -> subprocess.Popen[str]:
    """A run of the driver on one function and one *test*, whose model answers *replies*."""
    (folder / "task").mkdir()
    (folder / "task" / "app.py").write_text("def f():\n    return 1\n", "utf-8")
    (folder / "task" / "test_app.py").write_text(test, "utf-8")
    (folder / "s.jsonl").write_text("\n".join(map(json.dumps, replies)), "utf-8")
    chosen = ("--agent", "driver", "--model", "script:s.jsonl", "--sandbox", "S0", "--confirm", "0", "--json")
    argv = (sys.executable, "-m", "jumar.cli.main", "run", "task", *chosen, *options)
    return subprocess.Popen(argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(folder: Path, lines: int) -> None:
    """Until the journal of the only run has *lines*."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for journal in folder.glob(".jumar/runs/*/events.jsonl"):
            if len(journal.read_bytes().splitlines()) >= lines:
                return
        threading.Event().wait(0.02)  # between two looks at the file
    raise AssertionError("the run did not get so far")


@pytest.mark.slow
def test_a_scripted_model_does_not_starve_a_signal(tmp_path: Path) -> None:
    test = "from app import f\n\n\ndef test_f():\n    assert f() == 2\n"
    process = command(tmp_path, list(LOOKS), test, "--turns", "100000")
    wait_for(tmp_path, 40)

    process.send_signal(signal.SIGTERM)
    sent = time.monotonic()
    out, err = process.communicate(timeout=BUSY_SECONDS)

    assert time.monotonic() - sent < HEARD_SECONDS
    assert "stopping: the run ends with its best tree" in err
    assert (process.returncode, json.loads(out.splitlines()[-1])["stop"]) == (130, "interrupted")


@pytest.mark.slow
def test_a_second_ctrl_c_does_not_lose_the_best_tree(tmp_path: Path) -> None:
    test = (
        "import signal, time\nfrom app import f\n\n\ndef test_f():\n    if f() == 2:\n"
        "        signal.signal(signal.SIGTERM, signal.SIG_IGN)\n        time.sleep(25)\n    assert f() == 3\n"
    )
    write = {"name": "write_file", "arguments": {"path": "app.py", "text": "def f():\n    return 2\n"}}
    replies = [{"tool_calls": [write]}, {"tool_calls": [{"name": "final", "arguments": {"message": "done"}}]}]
    process = command(tmp_path, list(replies), test, "--gate", "off", "--test-policy", "on_final")
    wait_for(tmp_path, 7)

    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert any("stopping" in line for line in process.stderr), "the first one is heard"
    process.send_signal(signal.SIGINT)  # while the last verification runs
    out, _ = process.communicate(timeout=BUSY_SECONDS)

    result = json.loads(out.splitlines()[-1])
    folder = Path(result["events"]).parent
    assert (process.returncode, result["stop"]) == (130, "interrupted")
    assert "return 2" in (folder / "best.patch").read_text("utf-8")
    assert "return 2" in (folder / "workspace" / "app.py").read_text("utf-8")
