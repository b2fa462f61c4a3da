"""Fresh runs of the untouched tree, before a run begins: what varies is found, what hangs costs its time once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
from msgspec.structs import replace

from jumar.core.state.verdict import Ended, Outcome, TestResult, Verdict
from jumar.ports import Verification
from jumar.runs.setup.first_event import UntouchedRuns, find_unsteady_ids
from jumar.verify.verifier import TrustedVerifier
from support.judging.real_verifier import Court

STEADY, HANGS, VARIES = "t.py::steady", "t.py::hangs", "t.py::varies"


class ScriptedVerifier(TrustedVerifier):
    """Starts no process: the tests come out as the rounds say, and what was asked for is kept."""

    rounds: Sequence[Mapping[str, Outcome]]
    asked: list[tuple[tuple[str, ...], float, float]]

    async def verify(self, tree: str, accepted: Any, **_: Any) -> Verification:
        """The next round, of the tests that are expected."""
        assert (tree, accepted) == ("base", None)
        ids = self.expected
        outcomes = self.rounds[len(self.asked)]
        self.asked.append((ids, self.suite.timeout_seconds, self.suite.test_timeout_seconds))
        green = frozenset(i for i in ids if outcomes[i] is Outcome.PASSED)
        verdict = Verdict({i: TestResult(i, outcomes[i]) for i in ids}, green)
        return Verification(verdict=verdict, ended=Ended.NORMAL, executions=1, duration_ms=0, output="")


def find(folder: Path, rounds: Sequence[Mapping[str, Outcome]], seconds: float | None = None) -> tuple[Any, Any]:
    """Findings of the rounds, and the tests that each was asked for."""
    court = Court(folder).verifier
    verifier = ScriptedVerifier(court.store, court.runner, replace(court.suite, confirm=3), folder, base="base")
    verifier.expected, verifier.rounds, verifier.asked = tuple(rounds[0]), rounds, []

    async def look() -> UntouchedRuns:
        return await find_unsteady_ids(verifier, seconds)

    return anyio.run(look), verifier.asked


PASSES = {STEADY: Outcome.PASSED, HANGS: Outcome.TIMEOUT, VARIES: Outcome.PASSED}
FAILS = {**PASSES, VARIES: Outcome.FAILED}


def test_a_test_that_hangs_is_run_once_and_named(tmp_path: Path) -> None:
    seen, asked = find(tmp_path, (PASSES, FAILS, PASSES))

    assert [ids for ids, _, _ in asked] == [(STEADY, HANGS, VARIES), (STEADY, VARIES), (STEADY, VARIES)]
    assert seen.flaky == (VARIES,)
    (note,) = seen.notes
    assert note == f"stopped after 5 s on the untouched files, where it is not run again (--test-timeout): {HANGS}"


def test_where_all_hang_there_is_one_round(tmp_path: Path) -> None:
    seen, asked = find(tmp_path, ({HANGS: Outcome.TIMEOUT},) * 3)

    assert (len(asked), seen.flaky, len(seen.notes)) == (1, (), 1)


def test_the_cap_on_seconds_holds_for_these_runs_too(tmp_path: Path) -> None:
    seen, asked = find(tmp_path, (PASSES, FAILS, FAILS), seconds=0.0)

    ((_, whole, one),) = asked
    assert seen.flaky == ()
    assert (whole, one) == (1.0, 0.8), "the test that hangs is named before the whole is over"


def test_without_a_cap_all_have_their_own_time(tmp_path: Path) -> None:
    _, asked = find(tmp_path, ({STEADY: Outcome.PASSED},) * 3)

    assert asked == [((STEADY,), 20.0, 5.0)] * 3
