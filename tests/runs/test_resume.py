"""Going on with a run: relative paths, idle time that is never billed, and a printed command that works as printed."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cli.test_cli import Called, Files, jumar, lay
from jumar.core.run.raise_caps import explain_refusal, find_caps_to_raise
from jumar.core.run.reducers.transitions import replay
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget, Cost
from jumar.core.state.run_state import RunState
from jumar.core.state.settings import Settings
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Gate, TestPolicy

__all__ = ["jumar"]

ATTEMPTS = StopReason.ATTEMPTS

GAPS = st.floats(0.0, 1e5)
SEGMENTS = st.lists(st.tuples(GAPS, st.booleans(), st.lists(GAPS, max_size=4)), min_size=1, max_size=5)


def begun(budget: Budget | None = None, policy: TestPolicy = TestPolicy.ON_WRITE) -> ev.RunStart:
    return ev.RunStart(
        run="r", task="t", agent="driver", model="m", test_policy=policy, gate=Gate.OFF, budget=budget or Budget(),
        expected=("t.py::test",), tree="", settings=Settings(),
    )  # fmt: skip


def stopped(budget: Budget, why: str, stop: StopReason = StopReason.BUDGET, **used: object) -> RunState:
    """A run that stopped for *why*, under on_final, with *used* spent."""
    state = replay([ev.Entry(0, 0.0, begun(budget, TestPolicy.ON_FINAL))])
    end = ev.RunEnd(stop=stop, best=None, usd=0.0, tokens=0, test_runs=0, executions=0, why=why)
    return replace(state, end=end, spend=replace(state.spend, **used))


@pytest.mark.slow
@given(SEGMENTS)
def test_the_seconds_spent_are_those_within_segments_whatever_lies_between_them(
    segments: list[tuple[float, bool, list[float]]],
) -> None:
    now, billed, events = 1000.0, 0.0, [(1000.0, begun())]
    for number, (idle, raised, gaps) in enumerate(segments):
        if number:  # killed, and taken up again after some time, with or without another cap
            now += idle
            new: list[ev.Event] = [ev.Limit(name="turns", old=1, new=2, by="resume")] if raised else []
            events += [(now, event) for event in (*new, ev.Resume(from_seq=len(events)))]  # type: ignore[misc]
        for gap in gaps:
            now, billed = now + gap, billed + gap
            events.append((now, ev.ActionTaken(name="look", args={}, admitted=True)))  # type: ignore[arg-type]

    state = replay(ev.Entry(seq, ts, event) for seq, (ts, event) in enumerate(events))

    assert state.spend.seconds == pytest.approx(billed, abs=1e-6)


@pytest.mark.parametrize(
    ("state", "raised"),
    [
        (stopped(Budget(attempts=2), "the cap on attempts is used up", ATTEMPTS, attempts=2), {"attempts": 4}),
        (stopped(Budget(turns=40), "the cap on turns is used up.", StopReason.TURNS, turns=40), {"turns": 80}),
        (stopped(Budget(seconds=5.0), "the cap on seconds is used up", seconds=7.25), {"seconds": 135.0}),
        (stopped(Budget(usd=0.05), explain_refusal("usd", Cost(0.02, 9)) + ".", micro_usd=40_000), {"usd": 0.1}),
        (stopped(Budget(usd=0.05), explain_refusal("usd", Cost(0.4, 9)) + ".", micro_usd=0), {"usd": 0.8}),
        (stopped(Budget(tokens=100), explain_refusal("tokens", Cost(0.4, 900)), tokens=10), {"tokens": 1810}),
        (stopped(Budget(test_runs=2, turns=3), "the cap on turns is used up", StopReason.TURNS, turns=3, test_runs=2),
         {"turns": 6, "test_runs": 4}),
        (stopped(Budget(usd=0.05), explain_refusal("usd of the ledger", Cost(0.4, 9))), {}),
        (stopped(Budget(), "stopped by a signal", StopReason.INTERRUPTED), {}),
        (replace(stopped(Budget(seconds=14.0), "The time ended after 3 candidates.", seconds=9.0), expired="so it did"),
         {"seconds": 148.0}),
    ],
)  # fmt: skip
def test_the_caps_to_raise_are_those_that_keep_the_run_from_going_on(state: RunState, raised: dict[str, float]) -> None:
    assert find_caps_to_raise(state) == raised


FILES: Files = {
    "my proj/app.py": "def f():\n    return 1\n",
    "my proj/test_app.py": "from app import f\n\n\ndef test_f():\n    assert f() == 2\n",
    "s.jsonl": "\n".join(
        json.dumps({"tool_calls": [{"name": "read_file", "arguments": {"path": "app.py", "start": n, "end": n}}]})
        for n in range(1, 40)
    ),
}
RUN = ("run", "my proj", "--agent", "driver", "--model", "script:s.jsonl", "--confirm", "0", "--sandbox", "S0", "-q")


@pytest.mark.slow
@pytest.mark.parametrize("place", [(), ("--runs", "other runs"), ("--runs", "my proj/../deep er")], ids=str)
def test_the_command_that_is_printed_to_go_on_works_as_printed(
    jumar: Called, tmp_path: Path, place: tuple[str, ...]
) -> None:
    lay(tmp_path, FILES)
    said = jumar(*RUN, *place, "--turns", "2")[1]
    (line,) = (line for line in said.splitlines() if line.startswith("go on"))
    program, *words = shlex.split(line.removeprefix("go on"))

    code, out, err = jumar(*words, "--json", "-q")

    assert program == "jumar"
    assert code == 1, err
    result = json.loads(out.splitlines()[-1])
    journal = [json.loads(row) for row in Path(result["events"]).read_text("utf-8").splitlines()]
    assert sum(row["type"] == "model_call" for row in journal) == 4, "it went on, up to the new cap"
    assert result["raises"] == {"turns": 8}


@pytest.mark.slow
def test_resume_refuses_a_run_that_came_with_a_repository(
    jumar: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(tmp_path, FILES)
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")  # as where nothing can be written: the run has no mark
    said = jumar(*RUN, "--turns", "1")[1]
    (run,) = (tmp_path / ".jumar" / "runs").glob("2*")
    before = sorted(run.iterdir())

    code, _, err = jumar("resume", "last", "--turns", "2", "--apply")

    assert code == 2
    assert f"to write to {tmp_path / 'my proj'} and to run `pytest with " in err
    assert "in sandbox S0; add --trust" in err
    assert sorted(run.iterdir()) == before
    (line,) = (line for line in said.splitlines() if line.startswith("go on"))
    assert jumar(*shlex.split(line)[3:], "-q")[0] == 1, "what was printed works as printed"


@pytest.mark.slow
def test_resume_takes_relative_paths(jumar: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay(tmp_path, FILES)
    jumar(*RUN, "--turns", "1")
    (run,) = (tmp_path / ".jumar" / "runs").glob("2*")
    monkeypatch.chdir(run.parent.parent)

    for turns, path in ((2, f"runs/{run.name}"), (3, f"../.jumar/runs/./{run.name}/")):
        code, out, err = jumar("resume", path, "--turns", str(turns), "--json", "-q")

        assert (code, err) == (1, "")
        assert json.loads(out.splitlines()[-1])["stop"] == "turns"
