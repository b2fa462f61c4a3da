"""Public fakes, and the contract checks that every adapter, fake or real, must pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from jumar.core.run.retry import ERRORS as FAULTS
from jumar.core.state.events import Localisation
from jumar.core.state.reply import Reply
from jumar.core.state.verdict import (
    EXCUSED,
    Cause,
    Ended,
    Outcome,
    Report,
    TestResult,
    Verdict,
    Void,
    reconcile,
)
from jumar.models.script import ScriptLine, ScriptModel
from jumar.models.wire.redaction import LONGEST_DETAIL
from jumar.ports import Answer, Ask, Checked, Model, Verification, Verifier
from jumar.runner_contract import check_runner, hold
from jumar.workspace.store.object_store import Store

__all__ = (
    "FakeClock",
    "FakeVerifier",
    "Judge",
    "check_model",
    "check_runner",
    "check_verifier",
    "script",
)

Judge = Callable[[Mapping[str, bytes]], Mapping[str, str | TestResult] | Void]
"""Path -> bytes of a tree, to expected id -> outcome (or a whole result), or to no usable evidence."""


class FakeClock:
    """Clock that advances *tick* seconds a reading."""

    def __init__(self, tick: float = 1.0) -> None:
        self.now, self.tick = 0.0, tick

    def __call__(self) -> float:
        """Return the next reading."""
        self.now += self.tick
        return self.now


class FakeVerifier:
    """Judges trees by a function instead of a process; remembers the trees that it judged.

    One that *selects* runs no more tests than show that a tree cannot stay, where it is asked for that.
    """

    def __init__(self, store: Store, expected: Sequence[str], judge: Judge, *, selects: bool = False) -> None:
        self._store, self._expected, self._judge, self._selects = store, tuple(expected), judge, selects
        self._known: dict[str, Verdict] = {}
        self.asked: list[str] = []
        self.plainly: list[str] = []
        self.tests = ""

    async def verify(
        self,
        tree: str,
        accepted: Mapping[str, Outcome] | None,
        *,
        control: str,
        also: Sequence[str] = (),
        first: Sequence[str] = (),
    ) -> Verification:
        """Return the function's outcomes, reconciled as in a real verification."""
        self.asked.append(tree)
        files = {p: self._store.get(n.sha256) for p, n in self._store.manifest(tree).items() if n.sha256}
        said = self._judge(files)
        if isinstance(said, Void):
            return _build_verification(
                Verdict({}, void=said), Ended.UNSTARTED if said.cause is Cause.HARNESS else Ended.NORMAL
            )
        results = [o if isinstance(o, TestResult) else TestResult(i, Outcome(o), excerpt=o) for i, o in said.items()]
        report = Report(Ended.NORMAL, tuple(results))
        own = {r.id: r.outcome for r in results if r.outcome in EXCUSED}
        ids = tuple(dict.fromkeys((*self._expected, *also)))
        verdict = reconcile(ids, report, own if accepted is None else accepted)
        if self._selects and first and (part := self._select(verdict, control, first)):
            return part
        self._known[tree] = verdict
        return _build_verification(verdict, Ended.NORMAL)

    def _select(self, verdict: Verdict, control: str, first: Sequence[str]) -> Verification | None:
        """Return the part of *verdict* that rejects its tree, with the outcome of the control."""
        before = self._known.get(control, Verdict({}))
        shown = [i for i in before.results if i in first or (i in before.green_ids and i not in verdict.green_ids)]
        if verdict.green_ids.issuperset(shown):
            return None
        ran = {i: r for i, r in verdict.results.items() if i in shown or i not in before.results}
        green = verdict.green_ids.intersection(ran) | before.green_ids.difference(ran)
        part = _build_verification(Verdict({**before.results, **ran}, green), Ended.NORMAL)
        return msgspec.structs.replace(part, selected=len(ran))

    def with_tests(self, tests: str) -> FakeVerifier:
        """Return this verifier, and remember the tests."""
        self.tests = tests
        return self

    async def plain(self, tree: str, accepted: Mapping[str, Outcome] | None, also: Sequence[str] = ()) -> Verification:
        """Judge like `verify`, but remember the tree separately."""
        self.plainly.append(tree)
        done = await self.verify(tree, accepted, control=tree, also=also)
        self.asked.pop()
        return done

    async def check(self, tree: str, command: str, seconds: float) -> Checked:  # noqa: ARG002  as above
        """Succeed for the command `true`, and fail for every other one."""
        return Checked(ok=command == "true", output=command, duration_ms=1)

    async def localise(
        self,
        tree: str,
        red: Sequence[str],  # noqa: ARG002  as above
        green: Sequence[str],  # noqa: ARG002  as above
        seconds: float | None = None,  # noqa: ARG002  as above
    ) -> Localisation:
        """Return no suspects."""
        return Localisation(tree=tree, suspects=())


def _build_verification(verdict: Verdict, ended: Ended) -> Verification:
    return Verification(verdict=verdict, ended=ended, executions=1, duration_ms=1, output="000.txt")


def script(*contents: str, usd: float = 0.01) -> ScriptModel:
    """Return a model that answers with *contents*, one a call; each costs *usd*."""
    return ScriptModel(tuple(ScriptLine(content=c, usd=usd) for c in contents))


async def check_verifier(verifier: Verifier, expected: Sequence[str], good: str, bad: str) -> None:
    """Check the contract of every `Verifier`: *good* passes all *expected* ids, *bad* does not.

    Raises:
        AssertionError: naming the clause that is broken.
    """
    for tree, green in ((good, True), (bad, False), (good, True)):
        done = await verifier.verify(tree, {}, control=good)
        verdict = done.verdict
        hold(verdict.void is None, "a tree that can be judged is not void")
        hold(tuple(verdict.results) == tuple(expected), "there is one outcome for each expected id, in their order")
        hold(verdict.green is green, "green is every expected id passed, whatever was judged before")
        hold(done.executions >= 1, "a verification that ran counts its processes")
    red = (await verifier.verify(bad, {}, control=good)).verdict.red_ids
    once = (await verifier.plain(good, {})).verdict
    hold(once.green and tuple(once.results) == tuple(expected), "a plain run has the outcomes of a verdict")
    found = await verifier.localise(bad, red, tuple(i for i in expected if i not in red))
    hold(found.tree == bad, "a localisation names its tree")
    hold(list(found.suspects) == sorted(found.suspects, key=lambda s: -s[2]), "the most suspicious comes first")


async def check_model(model: Model, ask: Ask) -> Answer:
    """Check the contract of every `Model` on its answer to *ask*, which is returned.

    Returns:
        The answer, for what the caller knows of it besides.

    Raises:
        AssertionError: naming the clause that is broken.
    """
    name, worst = model.name, model.worst(ask)
    hold(bool(name) and name.isprintable(), "a model has a name that fits on a line")
    hold(worst.usd >= 0 and worst.tokens >= 0, "the worst case is no income")
    hold(model.worst(ask) == worst, "the worst case of a call is the same however often it is asked for")
    answer = await model.complete(ask)
    hold(model.name == name, "a model keeps its name")
    hold(not answer.error or answer.error in FAULTS, "a fault has one of the names in jumar.core.run.retry.ERRORS")
    hold(len(answer.detail) <= LONGEST_DETAIL and "\n" not in answer.detail, "what was said of a fault is one line")
    hold(0 <= answer.cached_tokens <= answer.input_tokens, "cached tokens are part of the input")
    hold(answer.output_tokens >= 0 and answer.usd >= 0, "a call takes tokens and money, and gives none back")
    if not answer.assumed:
        hold(answer.usd <= worst.usd + 1e-9, "no call costs more than its worst case")
        hold(answer.input_tokens + answer.output_tokens <= worst.tokens, "no call takes more than its worst case")
    hold(answer.retry_after is None or answer.retry_after >= 0, "nobody waits for the past")
    written = msgspec.json.decode(msgspec.json.encode(answer.reply), type=Reply)
    hold(written == answer.reply, "a reply is the same once it was written down")
    ids = [call.id for call in answer.reply.tool_calls]
    hold(all(ids) and len(set(ids)) == len(ids), "tool calls have ids of their own")
    return answer
