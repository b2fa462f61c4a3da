"""State of the gate: red tests and their reasons, the claims made for them, the edits that wait for their verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from jumar.core.state.events import PlanStep, TestRun
from jumar.core.state.test_policy import Gate
from jumar.core.state.verdict import Blame, Outcome

FAILURES = 2
"""Number of failed greens that ends the claims of a test."""


class Stage(StrEnum):
    """Stage of judging the edits of a turn."""

    ALL = "all"
    NARROWED = "narrowed"
    """Without those whose own tests stayed red."""
    SINGLY = "singly"
    """Group by group, each on top of the good ones."""


class Claim(msgspec.Struct, frozen=True):
    """A claim that an edit of *path* will turn a red test green."""

    test_id: str
    path: str
    failures: int = 0
    at: int = 0
    """Number of edits that the turn had when the claim was made; -1 once its turn is over."""


class Edited(msgspec.Struct, frozen=True):
    """An edit that was admitted and not judged yet. Hashes as in the `write` event."""

    path: str
    before: str
    after: str
    claims: tuple[str, ...] = ()
    """The tests it shall turn green."""
    test: bool = False
    """True if the edit writes tests of the agent's own."""


class GateState(msgspec.Struct, frozen=True):
    """Memory of the gate. Built only by the folds."""

    mode: Gate = Gate.OFF
    newest: Mapping[str, TestRun] = {}
    """Test id -> its result on the tree that edits begin from."""
    latest: Mapping[str, TestRun] = {}
    """The same of the newest verification, whichever tree that had."""
    claims: tuple[Claim, ...] = ()
    """Open claims, in their order."""
    ended: frozenset[str] = frozenset()
    """Tests whose claims ended after too many failed greens, since the last edit that was kept."""
    authored: tuple[str, ...] = ()
    """The test files that this run wrote and kept."""
    joined: tuple[str, ...] = ()
    """Their ids: they were seen red, and are expected from then on."""
    plan: tuple[PlanStep, ...] = ()
    base: str = ""
    """The tree that the edits of `turn` began from."""
    turn: tuple[Edited, ...] = ()
    """The edits that were not judged yet, in their order."""
    trying: tuple[int, ...] = ()
    """Edits of the turn that lie in the workspace."""
    settled: tuple[int, ...] = ()
    """Edits of the turn that were seen to be good together."""
    waiting: tuple[tuple[int, ...], ...] = ()
    """Groups that are still to be tried, one after the other, on top of the settled ones."""
    apart: tuple[int, ...] = ()
    """Edits that were claimed together and are judged each for itself: one of their tests is enough for each."""
    fulfilled: frozenset[str] = frozenset()
    """The tests that the settled ones turned green."""
    stage: Stage = Stage.ALL
    over: bool = False
    """True if the turn is over: its edits are judged next."""
    parked: bool = False
    """True if the run stopped before the edits were judged, and the workspace is without them."""
    outer: Gate = Gate.STRICT
    """The mode that codemod mode was entered from, and goes back to."""
    renaming: str = ""
    """The tree in which a codemod that is not judged yet renamed something in tests."""
    renamed: str = ""
    """The same of the newest one that was kept: its test files are the task's own from then on."""
    codemod: bool = False
    """True if the one edit of codemod mode was made."""
    leaving: str = ""
    """Action by which an external agent has asked to leave refactor mode: it waits for the verdict."""
    refusals: int = 0
    """Number of times in a row that leaving refactor mode was refused."""

    def find_covering(self, path: str) -> tuple[str, ...]:
        """Return the tests that an edit of *path*, made now, was claimed for.

        They are those claimed since the last edit of that file in this turn, or, if there are none, the same as for
        that edit: two edits of one file can so belong to two tests. Claims of earlier turns count where there are no
        newer ones.
        """
        own = [c for c in self.claims if c.path == path]
        for number in range(len(self.turn) - 1, -1, -1):
            edit = self.turn[number]
            if edit.path == path and edit.claims:
                newer = tuple(c.test_id for c in own if c.at > number)
                return newer or tuple(i for i in edit.claims if any(c.test_id == i for c in own))
        newer = tuple(c.test_id for c in own if c.at >= 0)
        return newer or tuple(c.test_id for c in own)


def group_edits(turn: tuple[Edited, ...], among: Iterable[int]) -> tuple[tuple[int, ...], ...]:
    """Return the edits *among* those of *turn* that stand or fall together.

    Of the same claims, or of the same test file.
    """
    found: dict[tuple[str, ...], list[int]] = {}
    for number in among:
        edit = turn[number]
        found.setdefault(("", edit.path) if edit.test else tuple(sorted(edit.claims)), []).append(number)
    return tuple(map(tuple, found.values()))


def explain_not_red(run: TestRun | None, test_id: str) -> str:  # noqa: PLR0911  one line per reason reads best
    """Explain why the result *run* is no red that an edit could answer, and what would be one; empty: it is one."""
    if run is None:
        return f"{test_id} was not run on the files as they are; call run_tests first"
    if run.status == "pass":
        return f"{test_id} is green; claim a test that is red"
    if run.outcome is Outcome.MISSING:
        return f"the runner did not find {test_id}: a test that is not there is no red"
    if run.blame is Blame.TEST:
        return (
            f"{test_id} is red by itself ({run.outcome}: its file, a fixture or a package it wants is broken), "
            "not by the code under test; no edit of the code can answer that"
        )
    if run.outcome in (Outcome.FAILED, Outcome.TIMEOUT, Outcome.XPASSED) or run.blame is not None:
        return ""
    if run.outcome in (Outcome.SKIPPED, Outcome.XFAILED):
        return f"{test_id} was {run.outcome}, which is no red"
    return f"{test_id} came out as {run.outcome} before it could test anything; claim a test that fails in the code"


def can_provide(path: str, absent: str) -> bool:
    """Return whether the file *path* could provide the module or file *absent*, as a test names it.

    `pkg.mod` is brought by `src/pkg/mod.py`, `pkg/mod/__init__.py` and anything below; `./calc` by `lib/calc.ts`.
    """
    if not absent:
        return True
    wanted = absent.removesuffix(".py") if "/" in absent else absent.replace(".", "/")
    parts = [part for part in wanted.split("/") if part not in ("", ".", "..")]
    folder, _, name = path.rpartition("/")
    stem = name.split(".")[0]
    own = [*folder.split("/"), stem] if folder else [stem]
    last = parts[-1].split(".")[0] if parts and "/" in absent else (parts[-1] if parts else "")
    parts = [*parts[:-1], last]
    span = len(parts)
    return any(own[i : i + span] == parts for i in range(len(own) - span + 1)) or own[-1] == last


def find_red_ids(newest: Mapping[str, TestRun]) -> tuple[str, ...]:
    """Return the tests that are red for a reason that an edit can answer."""
    return tuple(i for i, run in newest.items() if not explain_not_red(run, i))


def get_step_status(step: PlanStep, newest: Mapping[str, TestRun]) -> str:
    """Return the status of a plan step: `green`, `red`, `unwritten` (no such test yet), `untested` (names none)."""
    if not step.test_id:
        return "untested"
    run = newest.get(step.test_id)
    return "unwritten" if run is None or run.outcome is Outcome.MISSING else "green" if run.status == "pass" else "red"


def find_plan_warnings(steps: Iterable[PlanStep]) -> tuple[str, ...]:
    """Return a warning for each plan step whose test has no file yet: the test cannot be found when it is red."""
    return tuple(
        f"step {number} ({step.title}) names {step.test_id} and no test_file_path: say where the test will stand"
        for number, step in enumerate(steps, 1)
        if step.test_id and not step.test_file_path
    )
