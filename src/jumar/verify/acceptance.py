"""Accepts or refuses a green: fresh runs, in two processes or by challenge, that a forger cannot foresee."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from jumar.core.gate.challenge_rounds import (
    Grade,
    Round,
    RoundResult,
    Strength,
    check_round,
    compute_grade,
    count_bits,
    plan_rounds,
)
from jumar.core.state.verdict import CHANGED, EXCUSED, Cause, Outcome, Verdict, Void, mark_flaky, reconcile
from jumar.ports import Verification
from jumar.process.progress import ProgressPart
from jumar.verify.challenge.challenge import find_challenge
from jumar.verify.code_warnings import CodeToInspect, find_warnings, warn_of_unfalsifiable
from jumar.verify.rounds import (
    APART,
    GreenCandidate,
    Seeds,
    draw_seeds,
    is_pytest,
    passes_same_in_both,
    run_round,
    run_round_two_processes,
    toss_coins,
)
from jumar.workspace.files.trees import EntryKind, overlay

if TYPE_CHECKING:
    from jumar.verify.execution import TreeRunner

APART_CONFIRMS = 2
"""Times that two processes confirm every outcome: in a plain run, and in the pair of a challenge."""


async def accept_green(
    verifier: TreeRunner, first: Verification, tree: str, excused: Mapping[str, Outcome]
) -> Verification:
    """Accept or refute *first*, a green of *tree*: in two processes or by a challenge, and in plain fresh runs.

    It stays green and gets its grade, or it is void (a forged report, held-out tests that fail), or the tests whose
    outcome changed are flaky.

    Args:
        verifier: what judged it.
        first: its green verification.
        tree: the candidate.
        excused: what the frozen run had for ids that did not pass.
    """
    if why := await verifier.weakened():
        return msgspec.structs.replace(first, verdict=Verdict({}, void=Void(Cause.HARNESS, why)))
    names = {first.natives.get(i, i): i for i in verifier.expected}
    excuses = {name: excused[i] for name, i in names.items() if excused.get(i) in EXCUSED}
    green = GreenCandidate(verifier, _with_held_out(verifier, tree), names, excuses)
    strengths = _open_to_it(green, _strengths(verifier))
    evident = await _apart(green, strengths)
    two = evident is not None
    refuted = evident is not None and (evident.void is not None or evident.flaky)
    found = evident if evident is not None and refuted else await _confirmed(green, strengths, two=two)
    done = msgspec.structs.replace(first, executions=first.executions + green.executions)
    if found.void is not None:
        return msgspec.structs.replace(done, verdict=Verdict({}, void=found.void))
    if found.flaky:
        flaky = [names.get(i, i) for i in found.flaky]
        return msgspec.structs.replace(done, verdict=mark_flaky(first.verdict, flaky, CHANGED))
    bits = 0 if two else count_bits(strengths, green.done, green.unproved)
    challenged = not two and any(r.falsified - green.unproved for r in green.done)
    grade = Grade.A if two else compute_grade(bits) if challenged else Grade(verifier.runner.grade)
    strained = () if two else await _strained(green, grade)
    if verifier.experience.ordered or strained:  # in an order that never changes, answers go by the number of the call
        grade = max(grade, Grade.C)
    held = "+H" if verifier.held_out.ids else ""
    warnings = (*found.warnings, *strained, *await _warnings(verifier, tree, {} if two else strengths))
    return msgspec.structs.replace(done, grade=f"{grade}{held}", bits=bits, warnings=warnings)


class _Found(NamedTuple):
    """Findings of the fresh runs."""

    void: Void | None = None
    flaky: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    step: Round = Round()
    """The one that did not come out as it must."""
    draw: Seeds = Seeds()
    """Its chances."""


async def _confirmed(green: GreenCandidate, strengths: Mapping[str, Strength], *, two: bool) -> _Found:
    """Run all the rounds; in another order first, and if that is what breaks the tests, in their own."""
    verifier, experience = green.verifier, green.verifier.experience
    more = max(0, verifier.suite.confirm - APART_CONFIRMS) if two else verifier.suite.confirm
    strengths = {} if two else strengths
    plan = plan_rounds(strengths, more, toss_coins())
    found = await _run(green, plan, shuffled=not experience.ordered)
    if experience.ordered or found.void is not None or not found.flaky:
        return _held_out(green, found)
    # Who is lucky now and then gets no cheap second throw: the same order must break the same tests again, and then
    # all of it is run once more, and one run beyond.
    same, _ = await run_round(green, found.step, found.draw)
    if set(same.unsteady) != set(found.flaky):
        return _held_out(green, found)
    beyond = await _run(green, plan_rounds(strengths, more + 1, toss_coins()), shuffled=False)
    if beyond.void is None and not beyond.flaky:
        experience.ordered = True
        seen = [i for i in found.flaky if i not in verifier.held_out.ids] or ["one"]
        said = f"the tests depend on their order: {', '.join(seen[:3])} failed in another one"
        return beyond._replace(warnings=(said,))
    return _held_out(green, beyond)


def _held_out(green: GreenCandidate, found: _Found) -> _Found:
    """Held-out tests that fail are no flake: the visible ones alone were answered."""
    failed = [i for i in found.flaky if i in green.verifier.held_out.ids]
    if not failed:
        return found
    why = "every visible test passed, and held-out tests of the same behaviour did not: the change is not general"
    return _Found(void=Void(Cause.HELD_OUT, why))


async def _run(green: GreenCandidate, plan: Sequence[Round], *, shuffled: bool) -> _Found:
    """Run *plan*, up to the first round that does not come out as it must."""
    green.done.clear()
    green.unproved.clear()
    for number, step in enumerate(plan, 1):
        green.verifier.tell(ProgressPart.ROUND, number, len(plan))
        draw = draw_seeds(shuffled=shuffled)
        answered, cause = await run_round(green, step, draw)
        if answered.void:
            return _Found(void=Void(cause, _untold(green) or answered.void))
        if answered.forged:
            same, _ = await run_round(green, step, draw)
            return await _without_challenge(green) or _forged(green, answered.forged, same)
        if answered.unsteady:
            return _Found(flaky=answered.unsteady, step=step, draw=draw)
        green.done.append(step)
        green.unproved |= answered.unproved
    return _Found()


async def _without_challenge(green: GreenCandidate) -> _Found | None:
    """Run the held-out tests as they are; the finding if some fail: a wrong answer can be what a falsified test wants.

    The visible tests passed before any of them was falsified; of held-out ones a challenge is the first that is seen.
    """
    if not green.verifier.held_out.ids:
        return None
    answered, _ = await run_round(green, Round(challenge=False), Seeds())
    return _Found(flaky=answered.unsteady) if answered.unsteady else None


async def _apart(green: GreenCandidate, strengths: Mapping[str, Strength]) -> _Found | None:
    """Challenge a green whose tests run in a process of their own; None if they cannot.

    An object of the code under test may still answer what a test asks it; what the test expects it cannot know.
    """
    if not _parted(green):
        return None
    shuffled = not green.verifier.experience.ordered
    if not reconcile(
        green.ids, await run_round_two_processes(green, Round(challenge=False), Seeds()), green.accepted
    ).green:
        return None
    plan = plan_rounds(strengths, 1, toss_coins())
    for number, step in enumerate(plan, 1):
        green.verifier.tell(ProgressPart.ROUND, number, len(plan))
        draw = draw_seeds(shuffled=shuffled)
        answered = check_round(await run_round_two_processes(green, step, draw), step, green.ids, green.accepted)
        if answered.forged:
            same = check_round(await run_round_two_processes(green, step, draw), step, green.ids, green.accepted)
            return _forged(green, answered.forged, same)
        if answered.void or answered.unsteady:
            return None
    return _Found()


async def _strained(green: GreenCandidate, grade: Grade) -> tuple[str, ...]:
    """Return the warning for a suite that runs in two processes, and a green that does not."""
    verifier, experience = green.verifier, green.verifier.experience
    if not _parted(green):
        return ()
    # Honest, as far as can be seen: where the untouched files come out otherwise too, it is the suite. A grade that is
    # no better than that of a strained one is not worth the runs.
    if experience.alike is None and grade < Grade.C and verifier.base:
        base = GreenCandidate(verifier, _with_held_out(verifier, verifier.base), green.names, green.accepted)
        experience.alike = await passes_same_in_both(base)
        green.executions += base.executions
    experience.apart = bool(experience.alike)
    said = "the tests run in two processes on the untouched files, and do not with this change: it is graded C at best"
    return (said,) if experience.apart else ()


def _parted(green: GreenCandidate) -> bool:
    """Return whether two processes are to be tried."""
    verifier = green.verifier
    return verifier.experience.apart and is_pytest(verifier) and verifier.sandbox.tier in APART


def _forged(green: GreenCandidate, forged: Sequence[str], same: RoundResult) -> _Found:
    """Judge tests that passed although falsified: random if the same files then fail, else forged."""
    wavering = set(forged).difference(same.forged)
    if wavering:
        return _Found(flaky=tuple(i for i in green.ids if i.partition("[")[0] in wavering))
    some = f"{len(forged)} tests that had to fail did not, {forged[0]} among them"
    return _Found(void=Void(Cause.TAMPER, _untold(green) or some))


def _untold(green: GreenCandidate) -> str:
    """Return the text that replaces output of a room with held-out tests, which could quote them."""
    if not green.verifier.held_out.ids:
        return ""
    return "a fresh run with the held-out tests was not what it must be, and what it said could quote them"


def _strengths(verifier: TreeRunner) -> Mapping[str, Strength]:
    """Return how the tests of the task, held-out ones too, can be falsified; read once from its frozen files."""
    if not is_pytest(verifier):
        return {}
    if verifier.experience.challenge is None:
        store = verifier.store
        manifest = store.manifest(_with_held_out(verifier, verifier.experience.tests or verifier.base))
        files = {p: store.get(n.sha256) for p, n in manifest.items() if n.kind is EntryKind.FILE and p.endswith(".py")}
        tests = {*verifier.runner.test_files(tuple(files), ()), *(i.partition("::")[0] for i in verifier.expected)}
        verifier.experience.challenge = find_challenge(
            {p: files[p] for p in files if p in tests},
            {p: s for p, s in files.items() if p not in tests and not verifier.sources(p)},
        )
    return verifier.experience.challenge.strengths


def _open_to_it(green: GreenCandidate, strengths: Mapping[str, Strength]) -> Mapping[str, Strength]:
    """Return the functions in *strengths* that judge, and of which nothing is excused: only their coins are tossed."""
    judging = {i.partition("[")[0] for i in green.ids}
    excused = {i.partition("[")[0] for i in green.accepted}
    return {name: strength for name, strength in strengths.items() if name in judging - excused}


def _with_held_out(verifier: TreeRunner, tree: str) -> str:
    """Return *tree* with the held-out tests in it."""
    if not verifier.held_out.tree:
        return tree
    hidden = verifier.store.manifest(verifier.held_out.tree)
    return verifier.store.keep(overlay(verifier.store.manifest(tree), hidden, hidden.__contains__))


def _vacuous(verifier: TreeRunner, strengths: Mapping[str, Strength]) -> tuple[str, ...]:
    """Return the visible tests of those in *strengths* that could not be falsified."""
    store, sites = verifier.store, verifier.runner.sites
    held_out = {i.partition("[")[0] for i in verifier.held_out.ids}
    visible = {name: strength for name, strength in strengths.items() if name not in held_out}
    manifest = store.manifest(verifier.experience.tests or verifier.base)
    paths = dict.fromkeys(path for name in visible if (path := name.partition("::")[0]) in manifest)
    return warn_of_unfalsifiable(visible, (site for p in paths for site in sites(p, store.get(manifest[p].sha256))))


async def _warnings(verifier: TreeRunner, tree: str, strengths: Mapping[str, Strength]) -> tuple[str, ...]:
    """Return the warnings about a green tree: suspicious code, and challenged tests that nothing could falsify."""
    if not is_pytest(verifier):
        return ()
    tests = tuple(dict.fromkeys(i.partition("::")[0] for i in verifier.expected))
    store = verifier.store
    suspects = CodeToInspect(
        base=verifier.base,
        tree=tree,
        product=lambda path: verifier.sources(path) and not verifier.own(path),
        tests=tests,
        store=store,
        confinement=verifier.confinement,
        rooms=verifier.rooms,
        own=tuple(path for path in store.manifest(tree) if verifier.own(path)),
        python=verifier.suite.python,
    )
    return (*await find_warnings(suspects), *_vacuous(verifier, strengths))
