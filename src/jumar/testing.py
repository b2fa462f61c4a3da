"""Public: fakes that ship, and the contracts that every adapter must keep, fakes and real ones alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

import msgspec

from jumar.core.events import Localisation
from jumar.core.reply import Reply
from jumar.core.retry import ERRORS
from jumar.core.settings import Suite
from jumar.core.verdict import EXCUSED, Cause, Ended, Outcome, Report, TestResult, Verdict, Void, reconcile
from jumar.disk.objects import Store
from jumar.models.script import Line, ScriptModel
from jumar.models.secrets import LONGEST_DETAIL
from jumar.ports import Answer, Ask, Model, Runner, Verification, Verifier
from jumar.verify.verifier import TrustedVerifier

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


async def check_runner(runner: Runner, into: Path) -> None:
    """The contract of every `Runner`, held against the four sample projects of its module, in processes below *into*.

    Raises:
        AssertionError: naming the clause that is broken.
    """
    store, verifiers, trees = Store(into / "objects"), dict[str, TrustedVerifier](), dict[str, str]()
    for sample, files in import_module(type(runner).__module__).SAMPLES.items():
        for path, text in files.items():
            (into / sample / path).parent.mkdir(parents=True, exist_ok=True)
            (into / sample / path).write_text(text, "utf-8")
        trees[sample] = store.capture(into / sample)
        suite = Suite(runner=runner.name, timeout_seconds=60.0)
        verifiers[sample] = TrustedVerifier(store, runner, suite, into / "runs" / sample, base=trees[sample])
    files = import_module(type(runner).__module__).SAMPLES["passing"]
    tests = runner.test_files(files, ())
    _hold(bool(tests), "the names of test files are known")
    _hold(runner.test_files(files, tests) == tests, "a test file may be selected by its path")
    found = {sample: await verifier.collect(trees[sample]) for sample, verifier in verifiers.items()}
    expected = found["passing"].ids
    _hold(bool(expected) and not found["passing"].anomaly, "the ids of a healthy project are collected")
    static = tuple(i for path in tests for i in runner.static_ids(path, files[path].encode()))
    _hold(static == expected, "a syntax tree gives the ids that the runner gives")
    _hold(found["broken_import"].ids == expected, "a file that does not import keeps its ids")
    _hold(set(found["broken_import"].broken) == set(tests), "a file that does not import is named as broken")
    want = {
        "passing": Outcome.PASSED,
        "failing": Outcome.FAILED,
        "broken_import": Outcome.IMPORT_ERROR,
        "broken_fixture": Outcome.ERROR,
    }
    for sample, outcome in want.items():
        verifiers[sample].expected = (*expected, f"{expected[0]}_that_is_not_there")
        done = await verifiers[sample].verify(trees[sample], None)
        *said, absent = done.verdict.results.values()
        _hold(done.verdict.void is None and done.ended is Ended.NORMAL, f"the sample {sample} can be judged")
        _hold([r.outcome for r in said] == [outcome] * len(said), f"the sample {sample} comes out as {outcome}")
        _hold(outcome is Outcome.PASSED or all(r.excerpt for r in said), f"the sample {sample} says why")
        _hold(absent.outcome not in (Outcome.PASSED, *EXCUSED), "a test that is not there has not passed")


async def check_model(model: Model, ask: Ask) -> Answer:
    """The contract of every `Model`, held against what it answers to *ask*; answers and faults are held alike.

    Returns:
        The answer, for what the caller knows of it besides.

    Raises:
        AssertionError: naming the clause that is broken.
    """
    name, worst = model.name, model.worst(ask)
    _hold(bool(name) and name.isprintable(), "a model has a name that fits on a line")
    _hold(worst.usd >= 0 and worst.tokens >= 0, "the worst case is no income")
    _hold(model.worst(ask) == worst, "the worst case of a call is the same however often it is asked for")
    answer = await model.complete(ask)
    _hold(model.name == name, "a model keeps its name")
    _hold(not answer.error or answer.error in ERRORS, "a fault has one of the names in jumar.core.retry.ERRORS")
    _hold(len(answer.detail) <= LONGEST_DETAIL and "\n" not in answer.detail, "what was said of a fault is one line")
    _hold(0 <= answer.cached_tokens <= answer.input_tokens, "cached tokens are part of the input")
    _hold(answer.output_tokens >= 0 and answer.usd >= 0, "a call takes tokens and money, and gives none back")
    if not answer.assumed:
        _hold(answer.usd <= worst.usd + 1e-9, "no call costs more than its worst case")
        _hold(answer.input_tokens + answer.output_tokens <= worst.tokens, "no call takes more than its worst case")
    _hold(answer.retry_after is None or answer.retry_after >= 0, "nobody waits for the past")
    written = msgspec.json.decode(msgspec.json.encode(answer.reply), type=Reply)
    _hold(written == answer.reply, "a reply is the same once it was written down")
    ids = [call.id for call in answer.reply.tool_calls]
    _hold(all(ids) and len(set(ids)) == len(ids), "tool calls have ids of their own")
    return answer


def _hold(clause: bool, said: str) -> None:  # noqa: FBT001  a clause is true or it is not
    if not clause:
        raise AssertionError(f"broken contract: {said}")
