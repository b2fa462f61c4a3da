"""Public: fakes that ship, and the contracts that every adapter must keep, fakes and real ones alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from jumar.core.events import Localisation
from jumar.core.verdict import EXCUSED, Cause, Ended, Outcome, Report, TestResult, Verdict, Void, reconcile
from jumar.models.script import Line, ScriptModel
from jumar.objects import Store
from jumar.ports import Verification, Verifier

Judge = Callable[[Mapping[str, bytes]], Mapping[str, str] | Void]
"""Path -> bytes of a tree, to expected id -> outcome, or to no usable evidence."""


class FakeClock:
    """Advances *tick* seconds a reading."""

    def __init__(self, tick: float = 1.0) -> None:
        self.now, self.tick = 0.0, tick

    def __call__(self) -> float:
        """The next reading."""
        self.now += self.tick
        return self.now


class FakeVerifier:
    """Judges trees by a function instead of a process; remembers which trees it was asked about."""

    def __init__(self, store: Store, expected: Sequence[str], judge: Judge) -> None:
        self._store, self._expected, self._judge = store, tuple(expected), judge
        self.asked: list[str] = []

    async def verify(self, tree: str, accepted: Mapping[str, Outcome] | None, *, control: str) -> Verification:  # noqa: ARG002  the port's signature
        """The function's outcomes, reconciled like anybody's."""
        self.asked.append(tree)
        files = {p: self._store.get(n.sha256) for p, n in self._store.manifest(tree).items() if n.sha256}
        said = self._judge(files)
        if isinstance(said, Void):
            return _verification(
                Verdict({}, void=said), Ended.UNSTARTED if said.cause is Cause.HARNESS else Ended.NORMAL
            )
        report = Report(Ended.NORMAL, tuple(TestResult(i, Outcome(o), excerpt=o) for i, o in said.items()))
        own = {i: Outcome(o) for i, o in said.items() if Outcome(o) in EXCUSED}
        return _verification(reconcile(self._expected, report, own if accepted is None else accepted), Ended.NORMAL)

    async def localise(self, tree: str, red: Sequence[str], green: Sequence[str]) -> Localisation:  # noqa: ARG002  as above
        """Nothing is suspicious."""
        return Localisation(tree=tree, suspects=())


def _verification(verdict: Verdict, ended: Ended) -> Verification:
    return Verification(verdict=verdict, ended=ended, executions=1, duration_ms=1, output="output/000.txt")


def script(*contents: str, usd: float = 0.01) -> ScriptModel:
    """A model that answers with *contents*, one a call; each costs *usd*."""
    return ScriptModel(tuple(Line(content=c, usd=usd) for c in contents))


async def check_verifier(verifier: Verifier, expected: Sequence[str], good: str, bad: str) -> None:
    """The contract of every `Verifier`: *good* is a tree that passes all *expected* ids, *bad* one that does not.

    Raises:
        AssertionError: naming the clause that is broken.
    """
    for tree, green in ((good, True), (bad, False), (good, True)):
        done = await verifier.verify(tree, {}, control=good)
        verdict = done.verdict
        _hold(verdict.void is None, "a tree that can be judged is not void")
        _hold(tuple(verdict.results) == tuple(expected), "there is one outcome for each expected id, in their order")
        _hold(verdict.green is green, "green is every expected id passed, whatever was judged before")
        _hold(done.executions >= 1, "a verification that ran counts its processes")
    red = (await verifier.verify(bad, {}, control=good)).verdict.red_ids
    found = await verifier.localise(bad, red, tuple(i for i in expected if i not in red))
    _hold(found.tree == bad, "a localisation names its tree")
    _hold(list(found.suspects) == sorted(found.suspects, key=lambda s: -s[2]), "the most suspicious comes first")


def _hold(clause: bool, said: str) -> None:  # noqa: FBT001  a clause is true or it is not
    if not clause:
        raise AssertionError(f"broken contract: {said}")
