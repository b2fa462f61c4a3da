"""Accepts or refuses a green: fresh runs, in two processes or under challenge, that a forger cannot foresee.

Tests that pass with the code under test in another process are proved by that. Those that cannot run that way are
challenged in one process (`core/gate/challenge_rounds.py`); what cannot be challenged is repeated. Each test has the
grade of what was done with itself (`core/gate/grades.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from jumar.core.gate.challenge_rounds import ApartRounds, Round, Strength, plan_rounds
from jumar.core.state.verdict import CHANGED, EXCUSED, Cause, Outcome, Verdict, Void, get_file, get_function, mark_flaky
from jumar.ports import Verification
from jumar.process.progress import ProgressPart
from jumar.verify import evidence, rounds
from jumar.verify.code_warnings import find_warnings, warn_of_unfalsifiable
from jumar.verify.merge_reports import run_side_by_side
from jumar.verify.plain_run import CUT_SHORT, FAILED_APART, NOT_GENERAL, hide_output, judge_plainly, may_run_beside
from jumar.verify.rounds import GreenCandidate, is_pytest
from jumar.verify.untouched_tree import find_hollow, list_unable
from jumar.workspace.files.trees import EntryKind

if TYPE_CHECKING:
    from jumar.verify.execution import TreeRunner


LEAST_RUNS = 3
"""Runs of a test that asks and gets data back: the first one, one in two processes, the plain one."""


async def accept_green(
    verifier: TreeRunner, first: Verification, tree: str, excused: Mapping[str, Outcome], beyond: Sequence[str] = ()
) -> Verification:
    """Accept or refute *first*, a green of *tree*.

    While its fresh runs go on, the sandbox is probed, and the code is inspected for suspicious parts. *beyond* are
    tests in the files of the first run that nobody asked for. See `_accept_green` for the others.
    """
    done: Verification
    strengths: Mapping[str, Strength]
    rounds.begin_rounds(verifier)
    accept = partial(_accept_green, verifier, first, tree, excused, beyond)
    calls: list[Callable[[], Awaitable[Any]]] = [verifier.weakened, partial(_inspect_code, verifier, tree), accept]
    weak, suspicious, (done, strengths) = await run_side_by_side(calls)
    if weak:
        return msgspec.structs.replace(first, verdict=Verdict({}, void=Void(Cause.HARNESS, weak)))
    if not done.verdict.green:
        # The visible tests passed: whether their answers are written down tells a wrong answer from one by heart.
        void = done.verdict.void
        told = suspicious if void and void.cause is Cause.HELD_OUT else ()
        return msgspec.structs.replace(done, warnings=(*done.warnings, *told))
    vacuous = _list_unfalsifiable(verifier, strengths) if strengths else ()
    return msgspec.structs.replace(done, warnings=(*done.warnings, *suspicious, *vacuous))


async def _accept_green(
    verifier: TreeRunner, first: Verification, tree: str, excused: Mapping[str, Outcome], beyond: Sequence[str]
) -> tuple[Verification, Mapping[str, Strength]]:
    """Accept or refute *first*, a green of *tree*: in two processes, by a challenge, or by plain fresh runs.

    It stays green and gets its grades, or it is void (a forged report, held-out tests that fail), or the tests whose
    outcome changed are flaky. Returned with it is how those of one process were falsified. *excused*: as frozen.
    """
    names = {first.natives.get(i, i): i for i in verifier.expected}
    excuses = {name: excused[i] for name, i in names.items() if excused.get(i) in EXCUSED}
    took = {first.natives.get(i, i): result.duration_ms for i, result in first.verdict.results.items()}
    ids = (*names, *verifier.held_out.ids)
    whole = GreenCandidate(verifier, rounds.lay_held_out(verifier, tree), tree, ids, excuses, took)
    rest = replace(whole, strengths={}, swayed=set(), reached={}, missed={})
    judge = partial(judge_plainly, whole, first.verdict, names, beyond)
    calls: list[Callable[[], Awaitable[Any]]] = [partial(_run_rounds, whole, rest), judge]
    (apart, ahead, found), *plainly = await run_side_by_side(calls if may_run_beside(whole) else calls[:1])
    if (found.void is not None and not found.early) or found.flaky:
        # Held-out tests that fail are no flake, and visible ones that waver beside them could tell of them, bit by bit.
        if found.flaky and verifier.held_out.ids:
            found = _Found(void=Void(Cause.HELD_OUT, CUT_SHORT) if found.cut_short else NOT_GENERAL)
        return _refute(first, found, names, len(whole.runs)), {}
    plain = first.verdict if found.early else plainly[0] if plainly else await judge()
    if not plain.green:
        return msgspec.structs.replace(first, verdict=plain, executions=first.executions + len(whole.runs)), {}
    apart -= evidence.find_unproved(whole, rest, apart, ahead)
    names = {name: i for name, i in names.items() if first.verdict.results[i].outcome not in EXCUSED}
    grades, warnings, agreed = await evidence.grade_green(whole, rest, apart, ahead, names)
    done = msgspec.structs.replace(
        first,
        executions=first.executions + len(whole.runs),
        grade=f"{grades.lowest}{'+H' if agreed else ''}",
        reachable=grades.reachable,
        grades={names[i]: str(grade) for i, grade in grades.tests.items() if i in names},
        better={names[i]: str(grade) for i, grade in grades.better.items() if i in names},
        weaker={names[i]: why for i, why in evidence.list_weaker(whole, grades.tests) if i in names},
        asked=whole.asked if apart else None,
        warnings=(*found.warnings, *(() if found.void else warnings)),  # those are of the grade of a green
    )
    return done if found.void is None else _refute(done, found, names, 0), rest.strengths


def _refute(first: Verification, found: _Found, names: Mapping[str, str], executions: int) -> Verification:
    """Return *first* as what it turned out to be: void, or flaky."""
    wavering = [names.get(i, i) for i in found.flaky]
    verdict = (
        Verdict({}, void=found.void)
        if found.void
        else mark_flaky(first.verdict, wavering, CUT_SHORT if found.cut_short else CHANGED)
    )
    return msgspec.structs.replace(first, verdict=verdict, executions=first.executions + executions)


class _Found(NamedTuple):
    """Findings of the fresh runs."""

    void: Void | None = None
    flaky: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    step: Round = Round()
    """The one that did not come out as it must."""
    draw: rounds.Seeds = rounds.Seeds()
    """Its chances."""
    cut_short: bool = False
    """True if they were cut short: see `RoundResult`."""
    early: bool = False
    """True if two processes refuse a green with held-out tests already: none of them is shown to the code in one."""


async def _run_rounds(whole: GreenCandidate, rest: GreenCandidate) -> tuple[frozenset[str], evidence.RunsAhead, _Found]:
    """Run the rounds in two processes, and in one those of *rest*; return what the first prove, and what refutes it."""
    apart, found = await _run_apart(whole)
    refuted = found.void is not None or found.flaky
    ahead = evidence.RunsAhead() if refuted else await evidence.run_ahead(whole, apart)
    if lost := ahead.list_refused(whole):
        return apart, ahead, found._replace(void=FAILED_APART if rounds.FAILED in lost.values() else None, early=True)
    unreached = evidence.note_unreached(whole, apart)
    # What the code under test does to its own process is seen in one alone, as visible tests did in the first run.
    settled = apart.difference(whole.verifier.held_out.ids, unreached)
    if len(settled) < len(whole.ids) and not refuted:
        before, found = found, await _confirm_green(rest, settled)
        found = found._replace(warnings=(*before.warnings, *found.warnings))
    return apart - evidence.list_left_out(whole, rest, unreached), ahead, found


def _list_rest(ids: Sequence[str], apart: Collection[str], part: Callable[[str], str]) -> tuple[str, ...]:
    """Return the tests in *ids* that are run in one process: all of each function, or file, with one not in *apart*.

    *part* names the function, or the file, of a test.
    """
    parts = {part(i) for i in ids if i not in apart}
    return tuple(i for i in ids if part(i) in parts)


async def _run_apart(green: GreenCandidate) -> tuple[frozenset[str], _Found]:
    """Run the tests in two processes; return those that this proves, and what refutes the green, if anything does.

    A falsified test that passes was asked of an object that answers whatever it is asked, as by its own operators.
    """
    known = green.verifier.experience
    kept = frozenset(green.ids) - (unable := list_unable(known))
    if known.base_apart:
        green.doubted.update((i, why) for i, why in known.base_apart.doubted.items() if i in unable)
    if not rounds.can_run_apart(green.verifier):
        return frozenset(), _Found()
    asked, again = tuple(i for i in green.ids if i in kept), max(0, green.verifier.suite.confirm - LEAST_RUNS)
    plan = ApartRounds(_list_challenged(green, ()), known.conversed, again, rounds.toss_coins())
    while kept and (step := plan.plan_next()) is not None:
        green.verifier.tell(ProgressPart.ROUND, plan.number, plan.number + plan.count_left())
        # In their own order: what a test leaves for another one in plain pytest, it leaves there as well.
        part, draw = replace(green, ids=asked), rounds.draw_seeds(shuffled=False)
        result = await rounds.run_round_apart(part, step, draw)
        if result.forged:
            forged, same = await rounds.confirm_forged(part, step, draw, result.forged)
            if forged:
                return frozenset(), _judge_forged(green, forged, same)
            kept = frozenset(i for i in kept if get_function(i) not in result.forged)
        green.asked = part.asked
        if result.why:
            return frozenset(), _Found(warnings=(f"two processes prove nothing here: {result.why}",))
        kept &= result.kept
        plan.note_conversed(map(get_function, kept.intersection(green.conversed)))
    known.conversed |= plan.conversed
    green.dependent |= await evidence.find_dependent(green, kept)
    return kept - green.dependent - await find_hollow(green, kept), _Found()


async def _confirm_green(green: GreenCandidate, apart: Collection[str]) -> _Found:
    """Run all the rounds of what is not in *apart*, which becomes the ids of *green*.

    In another order first, without the other tests of their files, and without the words of failed assertions. If that
    is what breaks the tests, then all is as it was in the first run.
    """
    verifier, experience = green.verifier, green.verifier.experience
    whole = _list_rest(green.ids, apart, get_file)
    green.ids = whole if experience.ordered else _list_rest(green.ids, apart, get_function)
    challenged = _list_challenged(green, apart)
    # The plain run is one of them.
    runs = max(1, verifier.suite.confirm - is_pytest(verifier))
    plan = plan_rounds(challenged, runs, rounds.toss_coins())
    found = await _run_plan(green, plan, shuffled=not experience.ordered)
    if experience.ordered or found.void is not None or not found.flaky:
        return found
    # Flaky code gets no retry: only if the same order breaks the same tests again is this an order dependency, and then
    # all rounds are run once more, and one beyond.
    same, _ = await rounds.run_round(green, found.step, found.draw)
    if set(same.unsteady) != set(found.flaky):
        return found
    green.ids = whole
    beyond = await _run_plan(green, plan_rounds(challenged, runs + 1, rounds.toss_coins()), shuffled=False)
    if beyond.void is None and not beyond.flaky:
        experience.ordered = True
        # Which ones could tell of held-out tests, bit by bit.
        some = "some" if verifier.held_out.ids else ", ".join(found.flaky[:3])
        said = f"the tests depend on their order, or on each other: {some} failed in another one"
        return beyond._replace(warnings=(said,))
    return beyond


async def _run_plan(green: GreenCandidate, plan: Sequence[Round], *, shuffled: bool) -> _Found:
    """Run *plan*, up to the first round that does not come out as it must."""
    green.done.clear()
    green.unproved.clear()
    for number, step in enumerate(plan, 1):
        green.verifier.tell(ProgressPart.ROUND, number, len(plan))
        draw = rounds.draw_seeds(shuffled=shuffled)
        answered, cause = await rounds.run_round(green, step, draw)
        if answered.void:
            return _Found(void=Void(cause, hide_output(green) or answered.void))
        # In another order the answers of a suite that depends on it are others, and may be what was falsified: where
        # tests fail that are as they were, all rounds come again in their own order, and nothing passes there so.
        if answered.forged and not (shuffled and answered.unsteady):
            same, _ = await rounds.run_round(green, step, draw)
            return _judge_forged(green, answered.forged, same.forged)
        if answered.unsteady:
            return _Found(flaky=answered.unsteady, step=step, draw=draw, cut_short=answered.cut_short)
        green.done.append(step)
        green.unproved |= answered.unproved
    return _Found()


def _judge_forged(green: GreenCandidate, forged: Sequence[str], again: Sequence[str]) -> _Found:
    """Judge tests that passed although falsified: random if not all of them are forged *again*, by the same files."""
    wavering = set(forged).difference(again)
    if {get_function(i) for i in green.verifier.held_out.ids}.issuperset(forged):
        # A wrong answer can be just what a falsified test wants, and of held-out tests a falsified one is seen first.
        return _Found(void=NOT_GENERAL)
    if wavering:
        return _Found(flaky=tuple(i for i in green.ids if get_function(i) in wavering))
    some = f"{len(forged)} tests that had to fail did not, {forged[0]} among them"
    return _Found(void=Void(Cause.TAMPER, hide_output(green) or some))


def _list_challenged(rest: GreenCandidate, apart: Collection[str]) -> tuple[str, ...]:
    """Return the test functions of *rest* that a challenge falsifies: those with a case that is not in *apart*."""
    if not rest.ids or not is_pytest(rest.verifier) or not _read_files(rest.verifier):
        return ()
    judging = (get_function(i) for i in rest.ids if i not in apart and i not in rest.accepted)
    return tuple(dict.fromkeys(judging))


def _read_files(verifier: TreeRunner) -> Mapping[str, bytes]:
    """Return the Python files of the tests, helpers and held-out ones too; read once, as they were frozen."""
    if verifier.experience.challenge is None:
        store, own = verifier.store, verifier.sources
        manifest = store.manifest(rounds.lay_held_out(verifier, verifier.experience.tests or verifier.base))
        files = {p: n.sha256 for p, n in manifest.items() if n.kind is EntryKind.FILE and p.endswith(".py")}
        tests = {*verifier.runner.test_files(tuple(files), ()), *(i.partition("::")[0] for i in verifier.expected)}
        verifier.experience.challenge = {p: store.get(f) for p, f in files.items() if p in tests or not own(p)}
    return verifier.experience.challenge


def _list_unfalsifiable(verifier: TreeRunner, strengths: Mapping[str, Strength]) -> tuple[str, ...]:
    """Return the visible tests of those in *strengths* that could not be falsified."""
    store, sites = verifier.store, verifier.runner.sites
    held_out = {get_function(i) for i in verifier.held_out.ids}
    visible = {name: strength for name, strength in strengths.items() if name not in held_out}
    manifest = store.manifest(verifier.experience.tests or verifier.base)
    paths = dict.fromkeys(path for name in visible if (path := name.partition("::")[0]) in manifest)
    return warn_of_unfalsifiable(visible, (site for p in paths for site in sites(p, store.get(manifest[p].sha256))))


async def _inspect_code(verifier: TreeRunner, tree: str) -> tuple[str, ...]:
    return await find_warnings(verifier, tree) if is_pytest(verifier) else ()
