"""Stories of the pipeline: which calls it makes in which order, and what it shows the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import anyio
import anyio.lowlevel
import msgspec
import pytest

from jumar.agents._whole_files import LARGEST, explain_too_large
from jumar.agents.pipeline import Pipeline
from jumar.core.gate.write_rules import WriteRules
from jumar.core.quoting import fence_text
from jumar.core.run.effects import Effect, Halt
from jumar.core.run.reducers.transitions import replay
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget, Cost, Spend
from jumar.core.state.reply import Reply, ToolCall
from jumar.core.state.run_state import RunState
from jumar.core.state.settings import Settings, Switches
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.core.state.verdict import Outcome
from jumar.journal.writer import Journal, read_journal
from jumar.kernel import Kernel
from jumar.models.script import ScriptLine, ScriptModel
from jumar.ports import Answer, Ask, Verification
from jumar.runtime.dependencies import RunDependencies
from jumar.runtime.effect_runner import EffectRunner
from jumar.testing import FakeClock, FakeVerifier
from jumar.workspace.store.object_store import Store
from jumar.workspace.workspace import Workspace
from support.worlds.run_world import IDS, TOTAL, judge, program

OSCILLATING = (8, 12, 10, 13, 11)
TESTS = "import app\n\n\ndef test_all() -> None:\n    assert app.PASSING > 16\n"
WRITTEN = ("write", "mid")
REVIEWED = ("review", "cheap")
REWRITTEN = ("rewrite", "mid")
FIXED = ("fix", "mid")


class Listening:
    """A scripted model that remembers what it was asked."""

    name = "script"

    def __init__(self, lines: tuple[ScriptLine, ...]) -> None:
        self._script = ScriptModel(lines)
        self.asked: list[Ask] = []
        self.in_flight: Callable[[Ask], None] = lambda _: None

    def worst(self, ask: Ask) -> Cost:
        return self._script.worst(ask)

    async def complete(self, ask: Ask) -> Answer:
        self.asked.append(ask)
        self.in_flight(ask)
        await anyio.lowlevel.checkpoint()
        return await self._script.complete(ask)

    @property
    def calls(self) -> list[tuple[str, str]]:
        return [(ask.request.stage, ask.request.tier) for ask in self.asked]

    def prompts(self, stage: str) -> list[str]:
        return ["\n".join(m.content for m in ask.messages) for ask in self.asked if ask.request.stage == stage]


class Talkative(FakeVerifier):
    """Every test has an output of its own, those that pass too."""

    async def verify(
        self,
        tree: str,
        accepted: Mapping[str, Outcome] | None,
        *,
        control: str,
        also: Sequence[str] = (),
        first: Sequence[str] = (),
    ) -> Verification:
        done = await super().verify(tree, accepted, control=control, also=also, first=first)
        said = {i: msgspec.structs.replace(r, excerpt=f"<said by {i}>") for i, r in done.verdict.results.items()}
        return msgspec.structs.replace(done, verdict=msgspec.structs.replace(done.verdict, results=said))


@dataclass(frozen=True)
class Terms:
    """What a story may vary."""

    policy: TestPolicy = TestPolicy.ON_WRITE
    budget: Budget = field(default_factory=Budget)
    review: bool = True
    files: Mapping[str, str] = field(default_factory=lambda: {"app.py": program(3)})


@dataclass
class Story:
    """One run of the pipeline."""

    folder: Path
    kernel: Kernel
    model: Listening

    @property
    def text(self) -> str:
        return (self.folder / "workspace" / "app.py").read_text()

    def read(self, path: str) -> str:
        return (self.folder / "workspace" / path).read_text()

    def run(self) -> StopReason:
        """Run it; why it stopped. What the journal says is what the kernel believed."""
        with self.kernel.journal:
            end = anyio.run(self.kernel.run)

        assert replay(read_journal(self.folder)) == end
        assert end.end is not None
        return end.end.stop

    def resumed(self, **caps: float) -> StopReason:
        """Go on in a new process that knows nothing but the journal."""
        with Journal.open(self.folder) as journal:
            state = replay(journal.entries)
            kernel = Kernel(journal, self.kernel.shell, self.kernel.agent, state)
            kernel.record([ev.Limit(name=name, old=None, new=new, by="test") for name, new in caps.items()])
            kernel.record((ev.Resume(from_seq=journal.entries[-1].seq),))
            end = anyio.run(kernel.run)
        assert end.end is not None
        return end.end.stop

    def halts_at(self, name: str, stage: str, why: StopReason = StopReason.INTERRUPTED) -> None:
        """Stop it where the effect *name* is about to be performed while *stage* is asked or answered.

        `Flight` stops it while the call is made.
        """

        def listen(ask: Ask) -> None:
            if name == "Flight" and ask.request.stage == stage:
                self.model.in_flight = lambda _: None
                self.kernel.halt(Halt(why))

        def watch(state: RunState, effect: Effect) -> None:
            request = getattr(effect, "request", None)
            at = request.stage if request else state.stage
            if type(effect).__name__ == name and at == stage:
                self.kernel.halt(Halt(why))

        self.kernel.watch, self.model.in_flight = watch, listen

    def actions(self) -> list[tuple[str, bool]]:
        events = [entry.event for entry in read_journal(self.folder)]
        return [(e.name, e.admitted) for e in events if isinstance(e, ev.ActionTaken)]


def story(folder: Path, lines: tuple[str | ScriptLine, ...], terms: Terms | None = None) -> Story:
    """A run in *folder* whose model answers *lines*."""
    terms = terms or Terms()
    store = Store(folder / "objects")
    workspace = Workspace(folder / "workspace", store)
    workspace.folder.mkdir(parents=True)
    for path, text in terms.files.items():
        (workspace.folder / path).write_text(text)
    (workspace.folder / "test_app.py").write_text(TESTS)
    settings = Settings(instruction="Count.", switches=Switches(review=terms.review))
    agent = Pipeline(tuple(terms.files), settings, {"test_app.py": TESTS}, terms.files)
    model = Listening(
        tuple(line if isinstance(line, ScriptLine) else ScriptLine(content=line, usd=0.01) for line in lines)
    )
    parts = RunDependencies(
        workspace=workspace,
        verifier=Talkative(store, IDS, judge),
        route=lambda _: model,
        agent=agent,
        guard=WriteRules(editable=lambda p: p in terms.files, protected=lambda p: p == "test_app.py"),
        clock=FakeClock(),
        sleep=_at_once,
    )
    first = ev.RunStart(
        run="story", task="app", agent="pipeline", model="script", test_policy=terms.policy, gate=Gate.OFF,
        budget=terms.budget, expected=IDS, tree=workspace.capture(), settings=settings,
    )  # fmt: skip
    journal = Journal.create(folder)
    return Story(folder, Kernel(journal, EffectRunner(parts), agent, replay(journal.append((first,), 0.0))), model)


async def _at_once(_seconds: float) -> None:
    """Nobody waits."""


def error(kind: Literal["timeout", "server"]) -> ScriptLine:
    return ScriptLine(error=kind, usd=0.01)


STUB = '"""To be written. PASSING = 3"""\n'


def whole(passing: int, names: str = "abc") -> str:
    """A program with a function for each of *names*: with two names less it has half of the public ones."""
    return program(passing) + "".join(f"\n\ndef {name}():\n    return 1\n" for name in names)


def call(text: str) -> ScriptLine:
    return ScriptLine(tool_calls=(ToolCall("write_file", {"path": "app.py", "text": text}),), usd=0.01)


REFUSAL = ScriptLine(error="refusal", content=program(16), usd=0.01)
"""What a model says that declines is not to be used, whatever it looks like."""
FAULT = (error("server"),) * 5


# ---- which calls, in which order


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "calls"),
    [
        ((program(8), "CLEAN"), [WRITTEN, REVIEWED]),
        ((program(5), "app.py: PASSING is too low", program(8)), [WRITTEN, REVIEWED, REWRITTEN]),
    ],
    ids=["clean", "rewritten"],
)
def test_five_attempts_are_one_first_version_and_four_fixes(
    tmp_path: Path, first: tuple[str, ...], calls: list[tuple[str, str]]
) -> None:
    made = story(tmp_path, (*first, *map(program, OSCILLATING[1:]), program(TOTAL)))

    assert made.run() is StopReason.ATTEMPTS
    assert all(admitted for _, admitted in made.actions())
    assert made.model.calls == [*calls, FIXED, FIXED, FIXED, FIXED]
    assert made.text == program(13)
    verified = [e.event.passed for e in read_journal(tmp_path) if isinstance(e.event, ev.Tests)]
    assert verified == [3, *OSCILLATING]


def test_each_fix_is_shown_the_failures_of_the_best_code_and_nothing_that_passes(tmp_path: Path) -> None:
    made = story(tmp_path, (program(8), "CLEAN", *map(program, OSCILLATING[1:])))

    made.run()

    shown = made.model.prompts("fix")
    for prompt, best, last in zip(shown, (8, 12, 12, 13), OSCILLATING[:4], strict=True):
        assert program(best) in prompt
        assert last == best or program(last) not in prompt
        lines = prompt.splitlines()
        assert all(f"FAILED {i}" in lines and f"<said by {i}>" in lines for i in IDS[best:])
        assert not any(i in prompt.split() or f"<said by {i}>" in prompt for i in IDS[:best])
        assert TESTS in prompt
        assert "The tests (read-only):" in prompt
        assert "output the complete file" in prompt
    assert "10 of 17 passed, the best has 12" in shown[2]
    assert "not kept" not in shown[1]


def test_without_a_review_the_draft_is_written_at_once(tmp_path: Path) -> None:
    made = story(tmp_path, (program(8), program(TOTAL)), Terms(review=False))

    assert made.run() is StopReason.GREEN
    assert made.model.calls == [WRITTEN, FIXED]


def test_nothing_is_written_before_the_review_is_in(tmp_path: Path) -> None:
    made = story(tmp_path, (program(8), "app.py: no", program(TOTAL)))
    seen: list[str] = []
    made.kernel.watch = lambda _, effect: seen.append(made.text) if type(effect).__name__ == "Call" else None

    assert made.run() is StopReason.GREEN
    assert seen == [program(3)] * 3
    assert made.actions() == [("draft", True), ("review", True), ("write_files", True)]


@pytest.mark.parametrize("line", ["def broken(:", "   ", REFUSAL], ids=["unparsable", "blank", "refusal"])
def test_a_first_version_that_cannot_be_used_is_an_attempt_and_is_fixed_from_the_untouched_tree(
    tmp_path: Path, line: str | ScriptLine
) -> None:
    made = story(tmp_path, (line, program(8), program(9)), Terms(budget=Budget(attempts=3)))

    assert made.run() is StopReason.ATTEMPTS
    assert made.model.calls == [WRITTEN, FIXED, FIXED]
    assert made.kernel.state.spend.usd == pytest.approx(0.03)
    assert program(3) in made.model.prompts("fix")[0]
    assert "Your last answer was not kept:" in made.model.prompts("fix")[0]
    assert made.text == program(9)


@pytest.mark.parametrize(
    "line",
    ["  ", "I'm sorry, I cannot do that.", REFUSAL, ScriptLine(tool_calls=(ToolCall("final"),)), *FAULT[:1]],
    ids=["blank", "excuse", "refusal", "tool call", "fault"],
)
def test_a_review_that_says_nothing_usable_lets_the_draft_go_on(tmp_path: Path, line: str | ScriptLine) -> None:
    lines = FAULT if line in FAULT else (line,)
    made = story(tmp_path, (program(8), *lines, program(TOTAL)))

    assert made.run() is StopReason.GREEN
    assert made.model.calls == [WRITTEN, *[REVIEWED] * len(lines), FIXED]
    assert made.actions()[-3 - (line not in FAULT) : -1] == [
        ("draft", True), *([("review", False)] if line not in FAULT else []), ("write_files", True),
    ]  # fmt: skip


@pytest.mark.parametrize("line", ["def broken(:", REFUSAL, *FAULT[:1]], ids=["unparsable", "refusal", "fault"])
def test_a_rewrite_that_cannot_be_used_leaves_the_draft(tmp_path: Path, line: str | ScriptLine) -> None:
    lines = FAULT if line in FAULT else (line,)
    made = story(tmp_path, (program(8), "app.py: no", *lines), Terms(budget=Budget(attempts=1)))

    assert made.run() is StopReason.ATTEMPTS
    assert made.text == program(8)
    assert made.kernel.state.spend.attempts == 1


@pytest.mark.parametrize("paid", [1, 2])
@pytest.mark.parametrize("policy", TestPolicy)
def test_what_cannot_be_paid_for_is_done_without(tmp_path: Path, paid: int, policy: TestPolicy) -> None:
    made = story(tmp_path, (program(8), "app.py: no", program(9)), Terms(policy, Budget(usd=0.01 * paid)))

    made.run()

    assert made.model.calls == [WRITTEN, REVIEWED][:paid]
    assert made.text == program(8)
    assert made.kernel.state.spend.usd == pytest.approx(0.01 * paid)


@pytest.mark.parametrize("turns", [1, 2, 3])
@pytest.mark.parametrize("policy", TestPolicy)
def test_no_turn_is_spent_on_a_review_that_nobody_could_act_upon(
    tmp_path: Path, turns: int, policy: TestPolicy
) -> None:
    made = story(tmp_path, (program(8), "app.py: no", program(9)), Terms(policy, Budget(turns=turns)))

    made.run()

    reviewed = turns == 3
    assert (REVIEWED in made.model.calls) is reviewed
    assert made.text == program(9 if reviewed else 8)


@pytest.mark.parametrize("policy", [TestPolicy.ON_FINAL, TestPolicy.NEVER])
@pytest.mark.parametrize("found", ["CLEAN", "app.py: no"])
def test_without_feedback_there_is_one_attempt(tmp_path: Path, policy: TestPolicy, found: str) -> None:
    made = story(tmp_path, (program(8), found, program(9), program(TOTAL)), Terms(policy))

    assert made.run() is StopReason.FINAL
    assert made.model.calls == ([WRITTEN, REVIEWED] if found == "CLEAN" else [WRITTEN, REVIEWED, REWRITTEN])
    assert made.text == (program(8) if found == "CLEAN" else program(9))


@pytest.mark.parametrize("policy", [TestPolicy.ON_FINAL, TestPolicy.NEVER])
def test_without_feedback_a_first_version_that_cannot_be_used_is_the_end(tmp_path: Path, policy: TestPolicy) -> None:
    made = story(tmp_path, ("def broken(:", program(TOTAL)), Terms(policy))

    assert made.run() is StopReason.FINAL
    assert made.model.calls == [WRITTEN]
    assert made.text == program(3)


@pytest.mark.parametrize("policy", [TestPolicy.ON_FINAL, TestPolicy.NEVER])
@pytest.mark.parametrize("stage", ["review", "rewrite"])
def test_a_draft_that_time_ran_out_on_is_written_all_the_same(tmp_path: Path, policy: TestPolicy, stage: str) -> None:
    made = story(tmp_path, (program(8), "app.py: no", program(9)), Terms(policy))
    made.halts_at("Call", stage, StopReason.BUDGET)

    assert made.run() is StopReason.BUDGET
    assert made.text == program(8)


def test_a_transient_fault_asks_the_same_stage_again(tmp_path: Path) -> None:
    fault = error("timeout")
    made = story(tmp_path, (fault, program(8), fault, "app.py: no", fault, program(9), fault, program(TOTAL)))

    assert made.run() is StopReason.GREEN
    assert made.model.calls == [WRITTEN, WRITTEN, REVIEWED, REVIEWED, REWRITTEN, REWRITTEN, FIXED, FIXED]


STOPS = [
    (effect, stage)
    for stage in ("write", "review", "rewrite", "fix")
    for effect in ("Reserve", "Call", "Flight", "Act")
]


@pytest.mark.slow
@pytest.mark.parametrize(("effect", "stage"), STOPS)
def test_an_interrupt_anywhere_changes_nothing_but_the_time(tmp_path: Path, effect: str, stage: str) -> None:
    lines = (program(8), "app.py: no", program(9), program(TOTAL))
    made = story(tmp_path, lines)
    made.halts_at(effect, stage)

    assert made.run() is StopReason.INTERRUPTED
    assert made.text == (program(9) if stage == "fix" else program(3))
    assert made.resumed() is StopReason.GREEN
    events = [e.event for e in read_journal(tmp_path)]
    answered = [(e.stage, e.tier) for e in events if isinstance(e, ev.ModelCall) and not e.error]
    assert answered == [WRITTEN, REVIEWED, REWRITTEN, FIXED]
    assert [e.passed for e in events if isinstance(e, ev.Tests)] == [3, 9, TOTAL]


def test_a_rewrite_of_one_file_keeps_the_draft_of_the_other(tmp_path: Path) -> None:
    def both(n: int, note: str) -> str:
        return f"app.py\n\n{fence_text(program(n))}\n\nnotes.py\n\n{fence_text(note)}"

    lines = (both(8, "NOTE = 1\n"), "app.py: no", f"app.py\n\n{fence_text(program(TOTAL))}")
    made = story(tmp_path, lines, Terms(files={"app.py": program(3), "notes.py": "NOTE = 0\n"}))

    assert made.run() is StopReason.GREEN
    assert (made.text, made.read("notes.py")) == (program(TOTAL), "NOTE = 1\n")
    assert "NOTE = 1\n" in made.model.prompts("review")[0]
    assert "NOTE = 1\n" in made.model.prompts("rewrite")[0]


@pytest.mark.parametrize("policy", [TestPolicy.ON_FINAL, TestPolicy.NEVER])
@pytest.mark.parametrize("stage", ["review", "rewrite"])
def test_without_feedback_an_interrupted_draft_is_written_when_the_run_goes_on(
    tmp_path: Path, policy: TestPolicy, stage: str
) -> None:
    made = story(tmp_path, (program(8), "app.py: no", program(9), program(9)), Terms(policy))
    made.halts_at("Call", stage)

    assert made.run() is StopReason.INTERRUPTED
    assert made.resumed() is StopReason.FINAL
    assert made.text == program(9)
    events = [e.event for e in read_journal(tmp_path)]
    finals, verdicts = ([e for e in events if isinstance(e, kind)] for kind in (ev.Final, ev.Tests))
    if policy is TestPolicy.NEVER:
        assert not verdicts
    else:
        assert isinstance(verdicts[-1], ev.Tests)
        assert verdicts[-1].passed == 9
        assert "9 of 17 passed" in str(finals[-1])


def test_a_reply_is_read_beside_the_file_as_it_was(tmp_path: Path) -> None:
    made = story(tmp_path, ())
    agent = Pipeline(("app.py",), current={"app.py": "PASSING = 3\r\n"})
    state = msgspec.structs.replace(made.kernel.state, reply=Reply("PASSING = 8\n"), stage="write")
    made.kernel.journal.close()

    assert agent.actions(state)[0].files == {"app.py": "PASSING = 8\r\n"}


def test_a_half_is_no_rewrite_of_a_draft(tmp_path: Path) -> None:
    lines = (whole(8), "app.py: a has no docstring", whole(TOTAL, "a"))
    made = story(tmp_path, lines, Terms(files={"app.py": STUB}))

    made.run()

    assert made.actions()[:3] == [("draft", True), ("review", True), ("rewrite", False)]
    assert made.text == whole(8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lines", "best"),
    [
        ((whole(8), "CLEAN"), whole(8)),
        ((whole(8), "app.py: no", whole(9, "abd")), whole(9, "abd")),
        ((whole(8), "app.py: no", "def broken(:"), whole(8)),
        ((whole(8), *FAULT), whole(8)),
        ((whole(8), "CLEAN", whole(5, "ax")), whole(8)),
        ((whole(8), "CLEAN", "def broken(:"), whole(8)),
        ((STUB, "CLEAN", whole(9), whole(5, "ax")), whole(9)),
        ((whole(8), "CLEAN", whole(9, "abcd"), whole(10, "abcdef")), whole(10, "abcdef")),
        ((call(whole(8)), whole(9, "abcd")), whole(9, "abcd")),
        ((whole(8, "abc"), "CLEAN", call(whole(9, "abd"))), whole(9, "abd")),
        ((call(whole(8, "abcdef")),), whole(8, "abcdef")),
    ],
    ids=[
        "draft", "rewritten", "broken rewrite", "no review", "worse", "refused", "nothing but a stub", "twice better",
        "call, then better", "better by a call", "call",
    ],
)  # fmt: skip
def test_a_half_of_the_best_version_is_no_fix(tmp_path: Path, lines: tuple[str | ScriptLine, ...], best: str) -> None:
    half = whole(TOTAL, "a")
    made = story(tmp_path, (*lines, half), Terms(files={"app.py": STUB}, budget=Budget(attempts=9)))

    assert made.run() is StopReason.FINAL
    assert made.actions()[-2:] == [("unparsable", False), ("final", True)]
    assert made.text == best


@pytest.mark.parametrize("effect", ["Act", "Verify", "Keep", "Reserve"])
def test_a_half_of_the_best_version_is_no_fix_after_an_interrupt(tmp_path: Path, effect: str) -> None:
    lines = (whole(8, "ab"), "CLEAN", whole(9, "abcdef"), whole(TOTAL, "ab"))
    made = story(tmp_path, lines, Terms(files={"app.py": STUB}))
    made.halts_at(effect, "fix")

    assert made.run() is StopReason.INTERRUPTED
    assert made.resumed() is StopReason.FINAL
    reverts = [e.event for e in read_journal(tmp_path) if isinstance(e.event, ev.Revert)]
    assert len(reverts) == (2 if effect == "Act" else 0)
    assert made.actions()[-2:] == [("unparsable", False), ("final", True)]
    assert made.text == whole(9, "abcdef")


@pytest.mark.slow
def test_a_file_that_a_fix_leaves_out_stays_known_as_it_was_kept(tmp_path: Path) -> None:
    def named(**texts: str) -> str:
        return "\n".join(f"{path}.py\n\n{fence_text(text)}" for path, text in texts.items())

    lines = (
        named(app=whole(8), notes=whole(0, "uvwx")), "CLEAN", named(app=whole(9)), named(notes=whole(0, "u")),
        named(app=whole(10, "a"), notes=whole(0, "uvwx")),
    )  # fmt: skip
    made = story(tmp_path, lines, Terms(files={"app.py": STUB, "notes.py": STUB}, budget=Budget(attempts=9)))

    assert made.run() is StopReason.FINAL
    assert made.actions()[-3:] == [("unparsable", False), ("unparsable", False), ("final", True)]
    assert (made.text, made.read("notes.py")) == (whole(9), whole(0, "uvwx"))


def test_a_rewrite_that_takes_the_draft_back_leaves_the_draft(tmp_path: Path) -> None:
    made = story(tmp_path, (program(8), "app.py: no", program(3)), Terms(budget=Budget(attempts=1)))

    assert made.run() is StopReason.ATTEMPTS
    assert made.text == program(8)
    assert made.actions()[-2:] == [("rewrite", False), ("write_files", True)]


@pytest.mark.parametrize("turns", [0, 1])
def test_a_target_that_does_not_exist_is_asked_for_until_it_does(tmp_path: Path, turns: int) -> None:
    made = story(tmp_path, ())
    made.kernel.journal.close()
    agent = Pipeline(("app.py", "data.bin"), current={"data.bin": "\ufffd"})
    state = msgspec.structs.replace(made.kernel.state, spend=Spend(turns=turns))
    absent, there = (agent.messages(state, files)[-1].content for files in ({}, {"app.py": program(8)}))

    assert "The file app.py does not exist yet" in absent
    assert "does not exist yet" not in there
    state = msgspec.structs.replace(state, reply=Reply(fence_text(program(9), "app.py")), stage="fix")
    assert agent.actions(state)[0].files == {"app.py": program(9)}


def test_targets_that_nobody_answers_whole_are_refused() -> None:
    assert not explain_too_large({"a.py": "x" * (LARGEST - 1), "b.py": "x"})
    why = explain_too_large({"a.py": "x" * LARGEST, "b.py": "x"})
    assert "400,001" in why
    assert "a.py" in why
    assert "--agent driver" in why


def test_a_script_that_is_used_up_has_the_last_word(tmp_path: Path) -> None:
    made = story(tmp_path, (program(8), "CLEAN"))

    assert made.run() is StopReason.FINAL
    assert made.text == program(8)


@pytest.mark.parametrize(
    ("turns", "also"), [(0, {}), (1, {}), (1, {"draft": True}), (1, {"draft": True, "violations": "no"})]
)
def test_only_the_targets_are_shown(tmp_path: Path, turns: int, also: dict[str, object]) -> None:
    made = story(tmp_path, ())
    made.kernel.journal.close()
    if also:
        also = also | {"draft": Reply(program(8))}
    state = msgspec.structs.replace(made.kernel.state, spend=Spend(turns=turns), **also)
    shown = made.kernel.agent.messages(state, {"app.py": program(8), "other.py": "OTHER = 1\n"})

    assert any(program(8) in message.content for message in shown)
    assert not any("OTHER" in message.content for message in shown)


@pytest.mark.parametrize("review", [True, False])
def test_what_comes_next_is_known_from_the_journal_alone(tmp_path: Path, review: bool) -> None:  # noqa: FBT001  a parameter of pytest's
    fault = error("timeout")
    lines = (program(8), fault, "app.py: no", "def broken(:", fault, program(9), REFUSAL, program(TOTAL))
    made = story(tmp_path, lines, Terms(review=review, budget=Budget(attempts=9)))
    made.run()
    entries = list(read_journal(tmp_path))

    asked = 0
    for n, entry in enumerate(entries):
        if isinstance(entry.event, ev.ModelRequest):
            request = made.kernel.agent.request(replay(entries[:n]))
            assert request is not None
            assert (request.stage, request.tier) == (entry.event.stage, entry.event.tier)
            asked += 1
        if isinstance(entry.event, ev.ActionTaken):
            assert made.kernel.agent.actions(replay(entries[:n]))[0].name == entry.event.name
    assert asked >= len(lines)
