"""A green is believed only after fresh runs that a forger cannot foresee: what is about to be kept is accepted here."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from jumar.core.acceptance import Answer, Grade, Round, Strength, answer, bits_of, grade_of, rounds
from jumar.core.verdict import EXCUSED, Cause, Outcome, Verdict, Void, reconcile, unsteady
from jumar.disk.trees import Kind, overlay
from jumar.ports import Verification
from jumar.verify.apart import apart
from jumar.verify.falsify import Challenge, challenge
from jumar.verify.suspicions import Suspects, suspicions, unfalsifiable

if TYPE_CHECKING:
    from jumar.verify.verifier import TrustedVerifier

APART = ("S3", "S2")
"""Tiers in which a process cannot reach another one: below them two processes are one."""

CHANGED = "it passed in one run and did not in another, on the same files"


class HeldOut(NamedTuple):
    """Tests that no candidate sees: they are there only when a green is accepted."""

    tree: str = ""
    """Their files, laid over the candidate's; empty: there are none."""
    ids: tuple[str, ...] = ()


@dataclass(slots=True)
class Experience:
    """What the acceptances of one task have taught."""

    apart: bool = True
    """Whether its tests may run in a process of their own: until they fail there although they are right."""
    ordered: bool = False
    """Whether its tests pass in their own order only."""
    challenge: Challenge | None = None


@dataclass(slots=True)
class _Green:
    """A green that is being accepted."""

    verifier: TrustedVerifier
    tree: str
    """The candidate's, with the held-out tests."""
    names: Mapping[str, str]
    """What the runner calls a test -> the expected id."""
    accepted: Mapping[str, Outcome]
    """By the runner's names: what the frozen run had for ids that did not pass."""
    executions: int = 0
    done: list[Round] = field(default_factory=list)
    unproved: set[str] = field(default_factory=set)

    @property
    def ids(self) -> tuple[str, ...]:
        """All that is judged, by the runner's names."""
        return (*self.names, *self.verifier.held_out.ids)


async def accepted(
    verifier: TrustedVerifier, first: Verification, tree: str, excused: Mapping[str, Outcome]
) -> Verification:
    """What becomes of *first*, a green of *tree*, in two processes or under challenge, and in plain fresh runs.

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
    green = _Green(verifier, _with_held_out(verifier, tree), names, excuses)
    strengths = _open_to_it(green, _strengths(verifier))
    two = await _apart(green)
    found = await _confirmed(green, {} if two else strengths, two=two)
    done = msgspec.structs.replace(first, executions=first.executions + green.executions)
    if found.void is not None:
        return msgspec.structs.replace(done, verdict=Verdict({}, void=found.void))
    if not two and not found.flaky:  # honest, as far as can be seen: it was the suite that did not run apart
        verifier.experience.apart = False
    if found.flaky:
        flaky = [names.get(i, i) for i in found.flaky]
        return msgspec.structs.replace(done, verdict=unsteady(first.verdict, flaky, CHANGED))
    bits = 0 if two else bits_of(strengths, green.done, green.unproved)
    challenged = not two and any(r.falsified - green.unproved for r in green.done)
    grade = Grade.A if two else grade_of(bits) if challenged else Grade(verifier.runner.grade)
    if verifier.experience.ordered:  # in an order that never changes, answers can be had by the number of the call
        grade = max(grade, Grade.C)
    held = "+H" if verifier.held_out.ids else ""
    warnings = (*found.warnings, *await _warnings(verifier, tree, {} if two else strengths))
    return msgspec.structs.replace(done, grade=f"{grade}{held}", bits=bits, warnings=warnings)


class _Found(NamedTuple):
    """What the fresh runs came to."""

    void: Void | None = None
    flaky: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    step: Round = Round()
    """The one that did not come out as it must."""
    seed: int | None = None
    """Of its order."""


async def _confirmed(green: _Green, strengths: Mapping[str, Strength], *, two: bool) -> _Found:
    """Run all the rounds; in another order first, and if that is what breaks the tests, in their own."""
    verifier, experience = green.verifier, green.verifier.experience
    more = verifier.suite.confirm - two
    plan = rounds(strengths, more, _coins())
    found = await _run(green, plan, shuffled=not experience.ordered)
    if experience.ordered or found.void is not None or not found.flaky:
        return _held_out(green, found)
    # Who is lucky now and then gets no cheap second throw: the same order must break the same tests again, and then
    # all of it is run once more, and one run beyond.
    same, _ = await _round(green, found.step, found.seed)
    if set(same.unsteady) != set(found.flaky):
        return _held_out(green, found)
    again = await _run(green, rounds(strengths, more + 1, _coins()), shuffled=False)
    if again.void is None and not again.flaky:
        experience.ordered = True
        said = f"the tests depend on their order: {', '.join(found.flaky[:3])} failed in another one"
        return again._replace(warnings=(said,))
    return _held_out(green, again)


def _held_out(green: _Green, found: _Found) -> _Found:
    """Held-out tests that fail are no flake: the visible ones alone were answered."""
    failed = [i for i in found.flaky if i in green.verifier.held_out.ids]
    if not failed:
        return found
    why = "every visible test passed, and held-out tests of the same behaviour did not: the change is not general"
    return _Found(void=Void(Cause.HELD_OUT, why))


async def _run(green: _Green, plan: Sequence[Round], *, shuffled: bool) -> _Found:
    """Run *plan*, up to the first round that does not come out as it must."""
    green.done.clear()
    green.unproved.clear()
    for step in plan:
        seed = secrets.randbits(32) if shuffled else None
        answered, cause = await _round(green, step, seed)
        if answered.void:
            return _Found(void=Void(cause, answered.void))
        if answered.forged:
            some = f"{len(answered.forged)} tests that had to fail did not, {answered.forged[0]} among them"
            return _Found(void=Void(Cause.TAMPER, some))
        if answered.unsteady:
            return _Found(flaky=answered.unsteady, step=step, seed=seed)
        green.done.append(step)
        green.unproved |= answered.unproved
    return _Found()


async def _round(green: _Green, step: Round, seed: int | None) -> tuple[Answer, Cause]:
    verifier = green.verifier
    files: Mapping[str, bytes] = {}
    if step.challenge and verifier.experience.challenge is not None:
        files = verifier.experience.challenge.falsified(step.falsified, random.Random(secrets.randbits(64)))  # noqa: S311  seeded by secrets
    asked = tuple(dict.fromkeys(i.partition("[")[0] for i in green.ids)) if step.challenge else green.ids
    report = await verifier.again(green.tree, asked, files=files, seed=seed)
    green.executions += 1
    return answer(report, step, green.ids, green.accepted), Cause.TAMPER if report.anomalies else Cause.HARNESS


async def _apart(green: _Green) -> bool:
    """Whether every test passes in a process of its own, beside that of the code under test."""
    verifier, experience = green.verifier, green.verifier.experience
    if not experience.apart or not _python(verifier) or verifier.sandbox.tier not in APART:
        return False
    records, child = await apart(verifier.question(green.tree, green.ids))
    green.executions += 1
    report = verifier.runner.report(records, child.ended, child.detail)
    report = msgspec.structs.replace(report, anomalies=(*report.anomalies, *child.anomalies))
    return reconcile(green.ids, report, green.accepted).green


def _strengths(verifier: TrustedVerifier) -> Mapping[str, Strength]:
    """How the tests of the task, held-out ones included, can be falsified; read from its own frozen files, once."""
    if not _python(verifier):
        return {}
    if verifier.experience.challenge is None:
        store = verifier.store
        manifest = store.manifest(_with_held_out(verifier, verifier.base))
        files = {p: store.get(n.sha256) for p, n in manifest.items() if n.kind is Kind.FILE and p.endswith(".py")}
        tests = {*verifier.runner.test_files(tuple(files), ()), *(i.partition("::")[0] for i in verifier.expected)}
        verifier.experience.challenge = challenge(
            {p: files[p] for p in files if p in tests},
            {p: s for p, s in files.items() if p not in tests and not verifier.sources(p)},
        )
    return verifier.experience.challenge.strengths


def _open_to_it(green: _Green, strengths: Mapping[str, Strength]) -> Mapping[str, Strength]:
    """The functions in *strengths* that judge, and of which nothing is excused: only their coins are tossed."""
    judging = {i.partition("[")[0] for i in green.ids}
    excused = {i.partition("[")[0] for i in green.accepted}
    return {name: strength for name, strength in strengths.items() if name in judging - excused}


def _python(verifier: TrustedVerifier) -> bool:
    return verifier.runner.name == "pytest" and verifier.runner.grade != Grade.X


def _with_held_out(verifier: TrustedVerifier, tree: str) -> str:
    """*tree* with the held-out tests in it."""
    if not verifier.held_out.tree:
        return tree
    hidden = verifier.store.manifest(verifier.held_out.tree)
    return verifier.store.keep(overlay(verifier.store.manifest(tree), hidden, hidden.__contains__))


def _coins() -> Iterator[bool]:
    while True:
        yield bool(secrets.randbits(1))


def _vacuous(verifier: TrustedVerifier, strengths: Mapping[str, Strength]) -> tuple[str, ...]:
    """Which visible tests of those in *strengths* could not be falsified."""
    store, sites = verifier.store, verifier.runner.sites
    held_out = {i.partition("[")[0] for i in verifier.held_out.ids}
    visible = {name: strength for name, strength in strengths.items() if name not in held_out}
    manifest = store.manifest(verifier.base)
    paths = dict.fromkeys(path for name in visible if (path := name.partition("::")[0]) in manifest)
    return unfalsifiable(visible, (site for p in paths for site in sites(p, store.get(manifest[p].sha256))))


async def _warnings(verifier: TrustedVerifier, tree: str, strengths: Mapping[str, Strength]) -> tuple[str, ...]:
    """What no channel closes, in a tree that is green, and which of the challenged tests nothing could falsify."""
    if not _python(verifier):
        return ()
    tests = tuple(dict.fromkeys(i.partition("::")[0] for i in verifier.expected))
    store = verifier.store
    suspects = Suspects(
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
    return (*await suspicions(suspects), *_vacuous(verifier, strengths))
