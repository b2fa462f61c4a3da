"""Runs one fresh round of a green: unchanged or with falsified tests, in one process or in two."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from jumar.core.gate.challenge_rounds import Grade, Round, RoundResult, check_round
from jumar.core.state.verdict import Cause, Outcome, Report
from jumar.verify.two_process import run_two_processes

if TYPE_CHECKING:
    from jumar.verify.execution import TreeRunner

APART = ("S3", "S2")
"""Tiers in which a process cannot reach another one: below them two processes are one."""


@dataclass(slots=True)
class GreenCandidate:
    """A green that is being accepted."""

    verifier: TreeRunner
    tree: str
    """The candidate's, with the held-out tests."""
    names: Mapping[str, str]
    """The runner's name of a test -> the expected id."""
    accepted: Mapping[str, Outcome]
    """By the runner's names: what the frozen run had for ids that did not pass."""
    executions: int = 0
    done: list[Round] = field(default_factory=list)
    unproved: set[str] = field(default_factory=set)

    @property
    def ids(self) -> tuple[str, ...]:
        """All that is judged, by the runner's names."""
        return (*self.names, *self.verifier.held_out.ids)


class Seeds(NamedTuple):
    """The chances of a round. The process is told the order, and must not learn the other from it."""

    order: int | None = None
    """Seed of the shuffling; None keeps the tests' own order."""
    falsities: int = 0


def draw_seeds(*, shuffled: bool) -> Seeds:
    """Return random seeds that nobody can foresee."""
    return Seeds(secrets.randbits(32) if shuffled else None, secrets.randbits(64))


def toss_coins() -> Iterator[bool]:
    """Yield fair random bits without end."""
    while True:
        yield bool(secrets.randbits(1))


async def run_round(green: GreenCandidate, step: Round, draw: Seeds) -> tuple[RoundResult, Cause]:
    """Run a round; its result, and the cause if there is none. The same draw makes the same files in the same order."""
    asked, files = _laid(green, step, draw)
    report = await green.verifier.run_fresh(green.tree, asked, files=files, seed=draw.order)
    green.executions += 1
    return check_round(report, step, green.ids, green.accepted), Cause.TAMPER if report.anomalies else Cause.HARNESS


async def run_round_two_processes(green: GreenCandidate, step: Round, draw: Seeds) -> Report:
    """Run a round in two processes; its report."""
    asked, files = _laid(green, step, draw)
    records, child = await run_two_processes(
        green.verifier.build_two_process_trial(green.tree, asked, files=files, seed=draw.order)
    )
    green.executions += 1
    report = green.verifier.runner.report(records, child.ended, child.detail)
    return msgspec.structs.replace(report, anomalies=(*report.anomalies, *child.anomalies))


async def passes_same_in_both(green: GreenCandidate) -> bool:
    """Return whether exactly the same tests pass in one process and in two."""
    one = await green.verifier.run_fresh(green.tree, green.ids, files={}, seed=None)
    green.executions += 1
    two = await run_round_two_processes(green, Round(challenge=False), Seeds())
    passed = [{r.id for r in report.results if r.outcome is Outcome.PASSED} for report in (one, two)]
    return not (one.anomalies or two.anomalies) and passed[0] == passed[1]


def _laid(green: GreenCandidate, step: Round, draw: Seeds) -> tuple[Sequence[str], Mapping[str, bytes]]:
    """Return the ids of a round, and the test files that it needs."""
    challenge = green.verifier.experience.challenge
    if not step.challenge or challenge is None:
        return green.ids, {}
    files = challenge.falsified(step.falsified, random.Random(draw.falsities))  # noqa: S311  drawn from secrets
    return tuple(dict.fromkeys(i.partition("[")[0] for i in green.ids)), files


def is_pytest(verifier: TreeRunner) -> bool:
    """Return whether the tests are pytest's: these can be falsified, and separated from the code under test."""
    return verifier.runner.name == "pytest" and verifier.runner.grade != Grade.X
