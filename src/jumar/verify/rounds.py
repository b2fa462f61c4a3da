"""Runs one fresh round of a green: unchanged or with falsified tests, in one process or in two."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from jumar.core.gate import challenge_rounds
from jumar.core.gate.challenge_rounds import Round, RoundResult, Strength, check_round, find_empty, is_unable
from jumar.core.gate.grades import Grade
from jumar.core.state.verdict import Cause, Ended, Outcome, Report, get_function, reconcile
from jumar.ports import Invocation
from jumar.verify.challenge.round_challenge import UNCHALLENGED, Challenge, challenge_files
from jumar.verify.merge_reports import merge_reports, run_side_by_side, split_ids
from jumar.verify.two_process import APART, estimate_patience, list_confirming, measure_load, run_two_processes
from jumar.workspace.files.trees import overlay

if TYPE_CHECKING:
    from jumar.process.launch import Confinement
    from jumar.verify.execution import TreeRunner

STARTS = 10
"""Times that the code under test is started in one round, where tests cost its process."""

EMPTY = "it came to none of its assertions"
FAILED = "it fails where the code is in another process"

_Done = TypeVar("_Done")


@dataclass(slots=True)
class GreenCandidate:
    """A green that is being accepted, or a part of its tests."""

    verifier: TreeRunner
    tree: str
    """The candidate's, with the held-out tests."""
    alone: str
    """The candidate's, without them: nothing else lies where the code under test has a process of its own."""
    ids: tuple[str, ...]
    """All that is judged, by the runner's names; held-out tests too."""
    accepted: Mapping[str, Outcome]
    """By the runner's names: what the frozen run had for ids that did not pass."""
    took: Mapping[str, int] = field(default_factory=dict)
    """Milliseconds that tests took in their first run."""
    runs: list[str] = field(default_factory=list)
    """Trees of the runs that its acceptance took."""
    asked: int | None = None
    """Requests of the code under test that the tests performed in two processes; None: it was in none."""
    done: list[Round] = field(default_factory=list)
    unproved: set[str] = field(default_factory=set)
    strengths: dict[str, Strength] = field(default_factory=dict)
    """Test function -> the way in which it was falsified, as its rounds have seen; its parts share this."""
    swayed: set[str] = field(default_factory=set)
    """Test functions that compared an object of the code under test which has a say in that."""
    reached: dict[str, Counter[str]] = field(default_factory=dict)
    """Test, and test function -> how often it came to assertions and comparisons, most of all rounds and cases."""
    missed: dict[str, set[int]] = field(default_factory=dict)
    """Test function -> the lines of its own assertions that none of its cases came to, in no round."""
    matched: set[str] = field(default_factory=set)
    """Tests that compare an object of the code under test with one that they made of a class of it."""
    tied: set[str] = field(default_factory=set)
    """Tests that need the code under test in their own process by what they do themselves."""
    led: set[str] = field(default_factory=set)
    """Tests that need it there by a step with what it answered."""
    doubted: dict[str, str] = field(default_factory=dict)
    """Tests that are no evidence in two processes, each with why."""
    conversed: dict[str, str] = field(default_factory=dict)
    """Tests in which more than questions and data crossed between two processes, each with why."""
    copied: set[str] = field(default_factory=set)
    """Tests that hold something of which the code under test changed its copy."""
    dependent: set[str] = field(default_factory=set)
    """Tests that pass only as long as they do not see that (`evidence.find_dependent`)."""
    in_place: bool = False
    """True if tests see such changes, as in one process, and the code is asked how things of theirs compare."""


class Seeds(NamedTuple):
    """Random seeds of a round. The process is told the order, and must not learn the other seed from it."""

    order: int | None = None
    """Seed of the shuffling; None keeps the tests' own order."""
    falsities: int | None = None
    """Seed of what is falsified; None: nothing is."""


class ApartResult(NamedTuple):
    """Result of a round in two processes."""

    kept: frozenset[str]
    """Tests that came out as they must, or were falsified."""
    forged: tuple[str, ...] = ()
    """Functions that were falsified, and of which a case passed."""
    why: str = ""
    """Reason that it proves nothing: the tests' process could not be confined as it should."""


def begin_rounds(verifier: TreeRunner, *, ahead: bool = False) -> None:
    """Start the zygotes of what confirms a green, if that is forked; do not wait. *ahead* as in `WarmPool.begin`."""
    if verifier.warm is not None:
        confirming = _list_kinds(verifier)
        if modules := verifier.list_product_modules():
            verifier.warm.learn(*confirming[-1], modules)
        verifier.warm.begin(confirming, ahead=ahead)


def expect_rounds(verifier: TreeRunner) -> None:
    """Have processes made ready for the sandbox that is known now, where zygotes for the rounds have started."""
    if verifier.warm is not None:
        verifier.warm.expect(_list_kinds(verifier))


def _list_kinds(verifier: TreeRunner) -> Sequence[tuple[Invocation, Confinement]]:
    tests = verifier.runner.verification(verifier.suite, verifier.rooms, ())
    return list_confirming(tests, verifier.build_confinement(verifier.rooms.absolute() / "next", None))


def draw_seeds(*, shuffled: bool) -> Seeds:
    """Return random seeds that nobody can foresee."""
    return Seeds(secrets.randbits(32) if shuffled else None, secrets.randbits(64))


def toss_coins() -> Iterator[bool]:
    """Yield fair random bits without end."""
    while True:
        yield bool(secrets.randbits(1))


async def run_round(green: GreenCandidate, step: Round, draw: Seeds) -> tuple[RoundResult, Cause]:
    """Run a round; its result, and the cause if there is none. The same draw makes the same files in the same order."""
    challenge = build_challenge(green, step, draw)

    async def run(part: GreenCandidate) -> Report:
        part.runs.append(part.tree)
        report = await part.verifier.run_fresh(part.tree, list_asked(part, step), challenge, draw.order)
        return challenge_rounds.accept_stop(report, step.falsified)

    report = reduce(merge_reports, await run_parts(green, run))
    note_strengths(green, report, step)
    cause = Cause.HARNESS if report.ended is Ended.UNSTARTED and not report.anomalies else Cause.TAMPER
    return check_round(report, step, green.ids, green.accepted), cause


def can_run_apart(verifier: TreeRunner) -> bool:
    """Return whether two processes are to be tried."""
    return verifier.experience.apart and is_pytest(verifier) and verifier.sandbox.tier in APART


async def run_parts(green: GreenCandidate, run: Callable[[GreenCandidate], Awaitable[_Done]]) -> list[_Done]:
    """Let *run* run the tests of *green*: those of some files beside those of others, where there are cores for that.

    They are parts of one round: processes that are confined alike, and know no more than one process for all would.
    """
    splits = is_pytest(green.verifier) and green.verifier.sandbox.tier in APART
    chosen = split_ids(green.ids, green.took) if splits else [green.ids]
    parts = [replace(green, ids=tuple(ids), runs=[], asked=None) for ids in chosen]
    done = await run_side_by_side([partial(run, part) for part in parts])
    longest = max((part.runs for part in parts), key=len)
    green.runs += longest
    asked = [part.asked for part in parts if part.asked is not None]
    green.asked = sum(asked, green.asked or 0) if asked else green.asked
    return done


async def run_round_apart(green: GreenCandidate, step: Round, draw: Seeds) -> ApartResult:
    """Run a round in two processes. Whatever a test cannot do there makes it no forgery, only not proved that way."""
    done = await run_parts(green, lambda part: _run_part_apart(part, step, draw))
    kept: frozenset[str] = frozenset().union(*(result.kept for result in done))
    forged = dict.fromkeys(name for result in done for name in result.forged)
    why = next((result.why for result in done if result.why), "")
    return ApartResult(frozenset(), why=why) if why else ApartResult(kept, tuple(forged))


async def _run_part_apart(green: GreenCandidate, step: Round, draw: Seeds) -> ApartResult:
    """Run a part of a round; see `run_round_apart`.

    Where a test costs the process of the code under test, those after it run again without it.
    """
    kept: frozenset[str] = frozenset()
    forged: list[str] = []
    left = green
    for _ in range(STARTS):
        report = await run_fresh_apart(left, step, draw)
        green.asked = left.asked
        if report is None or report.unconfined:
            return ApartResult(frozenset(), why=report.unconfined[0] if report else "")
        later = challenge_rounds.list_later(report, left.ids, step)
        done = [i for i in left.ids if i not in later]
        plain = [i for i in done if get_function(i) not in step.falsified]
        empty = dict.fromkeys(find_empty(report), EMPTY)
        kept |= reconcile(plain, report, green.accepted).green_ids.difference(empty) if plain else frozenset()
        kept |= frozenset(done).difference(plain, report.doubted, empty)
        # A test with parameters of the code under test may be expected by the name of its function.
        doubted = {**dict.fromkeys(frozenset(plain).difference(kept), FAILED), **empty, **report.doubted}
        green.doubted.update({**{get_function(i): why for i, why in doubted.items()}, **doubted})
        green.conversed.update({**{get_function(i): why for i, why in report.conversed.items()}, **report.conversed})
        for noted, ids in ((green.matched, report.matched), (green.tied, report.tied), (green.led, report.led)):
            noted.update(ids, map(get_function, ids))
        green.copied.update(report.copied)
        note_strengths(green, report, step)
        able = [r for r in report.results if not is_unable(report, get_function(r.id))]
        passing = {get_function(r.id) for r in able if r.outcome is Outcome.PASSED}
        forged += sorted(passing & step.falsified)
        if not later:
            break
        left = replace(left, ids=tuple(i for i in left.ids if i in later))
    return ApartResult(kept, tuple(forged))


async def confirm_forged(
    green: GreenCandidate, step: Round, draw: Seeds, forged: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return those of *forged* that pass unfalsified, too, and those that pass again, falsified by the same files.

    A test that fails in two processes as it is, since the code under test does not see what it wrote, forges nothing.
    """
    plain = await run_round_apart(green, Round(challenge=False), draw)
    sound = {get_function(i) for i in plain.kept}
    if sound.isdisjoint(forged):
        return (), ()
    same = await run_round_apart(green, step, draw)
    return tuple(sorted(sound.intersection(forged))), tuple(sorted(sound.intersection(same.forged)))


async def run_fresh_apart(green: GreenCandidate, step: Round, draw: Seeds) -> Report | None:
    """Run the tests of *green* in two processes; None after an anomaly: no evidence for or against the candidate."""
    ids, challenge = list_asked(green, step), build_challenge(green, step, draw, apart=True)
    trial = green.verifier.build_two_process_trial(green.tree, ids, challenge=challenge, seed=draw.order)
    limited = partial(_limit_tests, trial.invocation, green)
    records, child = await run_two_processes(trial._replace(product_tree=green.alone, invocation=limited))
    green.runs.append(green.tree)
    report = green.verifier.runner.report(records, child.ended, child.detail)
    report = challenge_rounds.accept_stop(report, step.falsified)
    green.asked = (green.asked or 0) + (report.asked_tests or 0)
    return None if report.anomalies or child.anomalies else report


def _limit_tests(build: Callable[[Path], Invocation], green: GreenCandidate, room: Path) -> Invocation:
    """Return the invocation that *build* makes for *room*, with what *green* says of time and of changes.

    Where the tests are challenged, in whatever order, nobody reads the words of a failed assertion.
    """
    made = build(room)
    more = {"patience": estimate_patience(green.ids, green.took, measure_load()), "in_place": green.in_place}
    more["bare"] = made.config["bare"] or "challenge" in made.config
    return msgspec.structs.replace(made, config={**made.config, **more})


def lay_held_out(verifier: TreeRunner, tree: str) -> str:
    """Return *tree* with the held-out tests in it."""
    if not verifier.held_out.tree:
        return tree
    hidden = verifier.store.manifest(verifier.held_out.tree)
    return verifier.store.keep(overlay(verifier.store.manifest(tree), hidden, hidden.__contains__))


def build_challenge(green: GreenCandidate, step: Round, draw: Seeds, *, apart: bool = False) -> Challenge:
    """Return the challenge of a round; an empty one where it has no chances. *apart*: no code under test can see it."""
    known = green.verifier.experience.challenge
    if not known or draw.falsities is None or not step.challenge:
        return UNCHALLENGED
    summed = set(map(get_function, green.verifier.held_out.ids))
    return challenge_files(known, step.falsified, draw.falsities, summed, apart=apart)


def list_asked(green: GreenCandidate, step: Round) -> Sequence[str]:
    """Return the ids that a round asks for: functions, where a falsified parameter may name a case otherwise."""
    return tuple(dict.fromkeys(map(get_function, green.ids))) if step.falsified else green.ids


def note_strengths(green: GreenCandidate, report: Report, step: Round) -> None:
    """Note what a round has seen of how its tests are falsified: the least of all their cases and rounds."""
    empty = find_empty(report)
    for result in report.results if step.challenge else ():
        name, seen = get_function(result.id), Strength(report.strengths.get(result.id, Strength.WHOLE))
        green.swayed |= {name} if Strength.AFFIRMING <= seen <= Strength.SWAYED else set()
        for key in {name, result.id}:  # a falsified parameter may name a case otherwise
            green.reached[key] = green.reached.get(key, Counter()) | Counter(report.reached.get(result.id, {}))
        missed = set(report.missed.get(result.id, ()))
        green.missed[name] = missed & green.missed.get(name, missed)
        if seen is Strength.IDLE:
            seen = Strength.EMPTY if result.id in empty else Strength.WHOLE
        green.strengths[name] = min(seen, green.strengths.get(name, seen))


def is_pytest(verifier: TreeRunner) -> bool:
    """Return whether the tests are pytest's: these can be falsified, and separated from the code under test."""
    return verifier.runner.name == "pytest" and verifier.runner.grade != Grade.X
