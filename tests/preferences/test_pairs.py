"""Pairs teach what passed against what did not, for one prompt, and nothing else; every rollout is accounted for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from jumar.cli.main import call
from jumar.core.run.effects import Halt
from jumar.core.run.strategy import Message
from jumar.core.state.budget import Budget
from jumar.core.state.reply import ToolCall
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import TestPolicy
from jumar.core.state.verdict import Void
from jumar.models.script import ScriptLine, ScriptModel
from jumar.ports import Answer, Ask
from jumar.preferences.completions import Completion, Target
from jumar.preferences.export import Format, build_examples, split_by_task
from jumar.preferences.leaks import LabelledText, find_leak, find_telltale_signs
from jumar.preferences.pairs import Pair, PairRules, choose_pairs
from jumar.preferences.rollouts import ENDS, Reason, Rollout, Selection, read_rollout
from jumar.report.build_report import build_report
from support.worlds.rollout_world import CRASH, DONE, work, write_passing
from support.worlds.run_world import IDS, TOTAL, Terms, judge

ANY = Selection(min_grade="X")


def said(text: str) -> Completion:
    return Completion((Message("user", "do"),), (Message("assistant", text),))


def rollout(name: str, score: float, *, task: str = "t", group: str = "g", text: str = "") -> Rollout:
    return Rollout(
        folder=name, run=name, task=task, group=group, passed=score >= 1, score=score, stop="", grade="A",
        completion=said(text or name),
    )  # fmt: skip


def names(pairs: tuple[Pair, ...]) -> list[tuple[str, str]]:
    return [(pair.chosen.run, pair.rejected.run) for pair in pairs]


class TestPairing:
    """The pure rules."""

    def test_pass_against_fail_and_nothing_between_two_fails(self) -> None:
        rollouts = [rollout("good", 1), rollout("bad", 0.5), rollout("worse", 0.1)]

        assert names(choose_pairs(rollouts, PairRules()).pairs) == [("good", "worse"), ("good", "bad")]
        assert choose_pairs(rollouts[1:], PairRules()).pairs == ()

    def test_by_score_a_margin_decides(self) -> None:
        rollouts = [rollout("a", 0.9), rollout("b", 0.5), rollout("c", 0.45)]

        paired = choose_pairs(rollouts, PairRules(by_score=True, margin=0.3))

        assert set(names(paired.pairs)) == {("a", "b"), ("a", "c")}

    def test_other_groups_and_tasks_are_never_compared(self) -> None:
        apart = [rollout("a", 1), rollout("b", 0, group="h"), rollout("c", 0, task="u", group="i")]

        assert choose_pairs(apart, PairRules()).left == dict.fromkeys(["a", "b", "c"], Reason.UNPAIRED)

    def test_the_same_completion_counts_once_and_never_with_both_labels(self) -> None:
        rollouts = [
            rollout("a", 1, text="x"), rollout("b", 1, text="x"), rollout("c", 0, text="y"),
            rollout("d", 1, text="z"), rollout("e", 0, text="z"),
        ]  # fmt: skip

        paired = choose_pairs(rollouts, PairRules())

        assert names(paired.pairs) == [("a", "c")]
        assert paired.left == {"b": Reason.DUPLICATE, "d": Reason.FLAKY, "e": Reason.FLAKY}

    def test_many_rollouts_are_used_before_one_is_used_twice_and_lengths_are_alike(self) -> None:
        rollouts = [
            rollout("p1", 1, text="x" * 90), rollout("p2", 1, text="y" * 10),
            rollout("f1", 0, text="u" * 11), rollout("f2", 0, text="v" * 95), rollout("f3", 0, text="w" * 500),
        ]  # fmt: skip

        paired = choose_pairs(rollouts, PairRules(max_pairs=2))

        assert set(names(paired.pairs)) == {("p2", "f1"), ("p1", "f2")}
        assert paired.left == {"f3": Reason.SURPLUS}

    @given(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(0, 5)), max_size=12),
        st.booleans(),
        st.integers(1, 5),
    )
    def test_every_rollout_is_in_a_pair_or_left_for_one_reason(
        self,
        made: list[tuple[int, int, int]],
        by_score: bool,  # noqa: FBT001  drawn
        most: int,
    ) -> None:
        rollouts = [
            rollout(f"r{n}", score / 4, task=f"t{task}", group=f"g{task}", text=f"text {text}")
            for n, (task, score, text) in enumerate(made)
        ]

        paired = choose_pairs(rollouts, PairRules(by_score=by_score, max_pairs=most))

        used = {r.folder for pair in paired.pairs for r in (pair.chosen, pair.rejected)}
        assert used.isdisjoint(paired.left)
        assert used | paired.left.keys() == {r.folder for r in rollouts}
        for pair in paired.pairs:
            assert pair.chosen.group == pair.rejected.group
            assert pair.chosen.score > pair.rejected.score
            assert pair.chosen.example != pair.rejected.example


class TestLeaks:
    """Words that tell the label are found where somebody plants them."""

    @pytest.mark.parametrize(
        "text",
        [
            "# 3 passed, 1 failed", "=== 2 failed in 0.1s ===", "PASSED test_app.py::test_gcd", "test_gcd: FAILED",
            "verdict: green", "grade A+H", "<chosen>", "reward: 1", "2 of 2 tests passed", "driver.run_tests",
            "label=0",
        ],
    )  # fmt: skip
    def test_planted(self, text: str) -> None:
        assert find_leak((Message("assistant", f"fix\n{text}\n"),), ["test_app.py::test_gcd"])
        call = Message("assistant", tool_calls=(ToolCall("final", {"message": [{"deep": text}]}),))
        assert find_leak((call,), ["test_app.py::test_gcd"])

    @pytest.mark.parametrize(
        "text",
        [
            "def passed(n):\n    return n",
            "raise Failed('rejected')",
            "the grade of steel",
            "status = 'failed'",
            "label = 'x'",
        ],
    )
    def test_code_that_speaks_of_such_things_is_none(self, text: str) -> None:
        assert find_leak((Message("assistant", text),), ["test_app.py::test_gcd"]) == ""

    def test_a_word_on_one_side_of_every_example_of_several_tasks_is_named(self) -> None:
        def texts(count: int, mark: str) -> list[LabelledText]:
            return [
                LabelledText(f"t{n}", side, said(f"common word{n} {mark if side else ''}").completion)
                for n in range(count)
                for side in (True, False)
            ]

        assert find_telltale_signs(texts(5, "zanzibar")) == ("zanzibar",)
        assert find_telltale_signs(texts(5, "")) == ()
        assert find_telltale_signs(texts(2, "zanzibar")) == (), "in two tasks it may be what they are about"

    @pytest.mark.parametrize(
        ("rejected", "signs"),
        [
            (("assistant", "search"), {"a call of search", "an end with search"}),
            (("assistant", ""), {"an end without a call"}),
            (("user", ""), {"an end by the assistant", "an end by the user", "an end without a call"}),
        ],
    )
    def test_so_are_tools_and_the_message_at_the_end(self, rejected: tuple[str, str], signs: set[str]) -> None:
        chosen = ("assistant", "final")
        examples = [
            LabelledText(f"t{n}", side is chosen, (Message(role, tool_calls=(ToolCall(tool, {}),) if tool else ()),))
            for n in range(4)
            for side in (chosen, rejected)
            for role, tool in (side,)
        ]

        assert set(find_telltale_signs(examples)) == signs | {"a call of final", "an end with final"}


def counted(folder: Path, wanted: Selection = ANY, kind: Format = Format.DPO) -> tuple[int, Mapping[str, int]]:
    found = build_examples([folder], kind, wanted, PairRules())
    assert found.used + sum(found.excluded.values()) == found.rollouts
    return len(found.rows), found.excluded


@pytest.mark.proof
def test_twenty_three_passes_and_a_crash_are_no_pair(tmp_path: Path) -> None:
    for n in range(23):
        work(tmp_path / f"p{n}", (write_passing(TOTAL, str(n)),))
    work(tmp_path / "crash", (write_passing(9), CRASH, CRASH, CRASH, CRASH, CRASH, CRASH))

    assert counted(tmp_path) == (0, {"infra": 1, "unpaired": 23})


def test_one_pass_and_one_fail_are_exactly_one_pair_and_hold_no_result(tmp_path: Path) -> None:
    work(tmp_path / "pass", (write_passing(TOTAL), DONE))
    work(tmp_path / "fail", (write_passing(9), DONE))

    for target in Target:
        found = build_examples([tmp_path], Format.DPO, replace(ANY, target=target), PairRules())
        (row,) = found.rows
        assert (row["chosen_run"], row["chosen_score"], row["rejected_score"]) == ("story", 1.0, round(9 / TOTAL, 6))
        assert f"PASSING = {TOTAL}" in json.dumps(row["chosen"])
        assert "PASSING = 9" in json.dumps(row["rejected"])
        assert "test_app.py::" not in json.dumps([row["chosen"], row["rejected"]]), "no result of a test"
    assert [m["role"] for m in row["prompt"]] == ["system", "user"]
    assert row["chosen"][0]["tool_calls"][0]["function"]["name"] == "write_file"
    assert row["chosen"][-1]["role"] == "assistant"
    assert {t["function"]["name"] for t in json.loads(row["tools"])} >= {"write_file", "final"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "other",
    [
        Terms(policy=TestPolicy.ON_WRITE, budget=Budget(attempts=None)),
        Terms(policy=TestPolicy.ON_FINAL, budget=Budget(attempts=None), instruction="another prompt"),
        Terms(policy=TestPolicy.ON_FINAL, budget=Budget(attempts=None, turns=30)),
        Terms(policy=TestPolicy.ON_FINAL, budget=Budget(attempts=None), start=7),
    ],
    ids=["policy", "prompt", "caps", "files"],
)
def test_runs_under_other_conditions_are_never_paired(tmp_path: Path, other: Terms) -> None:
    work(tmp_path / "pass", (write_passing(TOTAL),))
    work(tmp_path / "fail", (write_passing(9),), other)

    assert counted(tmp_path) == (0, {"unpaired": 2})


USUAL = Terms(policy=TestPolicy.ON_FINAL, budget=Budget(attempts=None))


def unsteady(files: Mapping[str, bytes]) -> Mapping[str, str]:
    found = judge(files)
    assert not isinstance(found, Void)
    return {**found, IDS[0]: "flaky"}


@pytest.mark.parametrize(
    ("lines", "terms", "reason"),
    [
        (
            (write_passing(9), write_passing(10), write_passing(11)),
            replace(USUAL, budget=Budget(attempts=None, usd=0.015)),
            Reason.BUDGET,
        ),
        ((ScriptLine(tool_calls=(ToolCall("write_file", {"path": "../x", "text": "x"}),)),), USUAL, Reason.GUARDRAIL),
        ((write_passing(9),), replace(USUAL, policy=TestPolicy.NEVER), Reason.UNSCORED),
        ((write_passing(99),), USUAL, Reason.VOID),
        ((write_passing(9),), replace(USUAL, judge=unsteady), Reason.FLAKY),
        ((write_passing(8, ""),), USUAL, Reason.UNCHANGED),
        ((write_passing(9, "# 3 passed, 1 failed"),), USUAL, Reason.LEAK),
    ],
)
def test_an_end_that_says_nothing_of_the_agent_is_left_out(
    tmp_path: Path, lines: tuple[ScriptLine, ...], terms: Terms, reason: Reason
) -> None:
    assert read_rollout(work(tmp_path / "r", lines, terms), ANY) == reason


def test_interrupted_damaged_weak_and_long_ones_too(tmp_path: Path) -> None:
    stopped = work(tmp_path / "stopped", (write_passing(9),), halt=Halt(StopReason.INTERRUPTED))
    weak = work(tmp_path / "weak", (write_passing(TOTAL),))
    watched = work(tmp_path / "watched", (write_passing(9),), replace(USUAL, policy=TestPolicy.ON_WRITE))
    assert read_rollout(stopped, ANY) == Reason.UNFINISHED
    killed = work(tmp_path / "killed", (write_passing(9),)) / "events.jsonl"
    killed.write_bytes(killed.read_bytes()[:-40])
    assert read_rollout(killed.parent, ANY) == Reason.UNFINISHED, "its last line is half written"
    assert read_rollout(weak, Selection()) == Reason.GRADE, "by default a pytest green needs a B"
    assert read_rollout(weak, replace(ANY, max_prompt_chars=9)) == Reason.TOO_LONG
    assert read_rollout(watched, replace(ANY, target=Target.TRAJECTORY)) == Reason.RESULTS_SHOWN

    journal = weak / "events.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"story"', b'"other"', 1))
    assert read_rollout(weak, ANY) == Reason.DAMAGED


TALK = Selection(min_grade="X", target=Target.TRAJECTORY)
LOOK = ScriptLine(tool_calls=(ToolCall("read_file", {"path": "app.py"}),))


class CutModel(ScriptModel):
    """Answers as its script says, and is cut off each time before it is done."""

    async def complete(self, ask: Ask) -> Answer:
        answer = await super().complete(ask)
        line = self.get_line(ask.position)
        return replace(answer, reply=replace(answer.reply, cut=line is not None and line != DONE))


class TestWhatIsNotTheAssistants:
    """No conversation is exported that jumar cut short, or in which it speaks for the assistant."""

    @pytest.mark.parametrize(
        "odd",
        [
            ScriptLine(error="refusal"),
            ScriptLine(),
            ScriptLine(content=" \n"),
            ScriptLine(content="I think that it is right now."),
            ScriptLine(tool_calls=(ToolCall("write_file", {"_malformed": "{not json"}),)),
            ScriptLine(tool_calls=(ToolCall("nosuch", {"path": "app.py"}),)),
        ],
        ids=["refused", "empty", "blank", "without a call", "no JSON", "no such tool"],
    )
    def test_a_reply_that_is_none(self, tmp_path: Path, odd: ScriptLine) -> None:
        folder = work(tmp_path / "r", (write_passing(TOTAL), odd, DONE))

        assert read_rollout(folder, TALK) == Reason.UNUSABLE
        assert isinstance(read_rollout(folder, ANY), Rollout), "a patch holds no reply"
        for kind in Format:
            found = build_examples([folder], kind, TALK, PairRules())
            assert (found.rows, found.excluded) == ((), {"unusable": 1})

    def test_a_reply_that_was_cut_off(self, tmp_path: Path) -> None:
        lines = (write_passing(TOTAL), ScriptLine(tool_calls=(*LOOK.tool_calls, *LOOK.tool_calls)), DONE)
        folder = work(tmp_path / "r", (), replace(USUAL, model=CutModel(lines)))

        assert read_rollout(folder, TALK) == Reason.UNUSABLE

    def test_a_mistake_of_its_own_with_the_answer_to_it_stays(self, tmp_path: Path) -> None:
        wrong = ScriptLine(tool_calls=(ToolCall("read_file", {"file": "app.py"}),))
        down = ScriptLine(error="server")

        found = read_rollout(work(tmp_path / "r", (wrong, down, write_passing(TOTAL), DONE)), TALK)

        assert isinstance(found, Rollout)
        assert [m.role for m in found.completion.completion] == ["assistant", "tool", "assistant", "tool", "assistant"]

    @pytest.mark.parametrize("passing", [9, TOTAL])
    @pytest.mark.parametrize(
        ("rest", "turns"),
        [((LOOK,) * 4, None), ((LOOK, DONE), 2), ((ScriptLine(),) * 4, None), ((), None)],
        ids=["stalled", "turns", "stalled on nothing", "used up"],
    )
    def test_an_end_that_jumar_made(
        self, tmp_path: Path, passing: int, rest: tuple[ScriptLine, ...], turns: int | None
    ) -> None:
        """Also where the tests pass at the end: the stop reason is `green` then."""
        terms = replace(USUAL, budget=Budget(attempts=None, turns=turns))
        folder = work(tmp_path / "r", (write_passing(passing), *rest), terms)

        found = read_rollout(folder, ANY)
        assert isinstance(found, Rollout)
        assert found.passed is (passing == TOTAL)
        assert read_rollout(folder, TALK) == Reason.BROKEN_OFF

    def test_every_stop_reason_is_its_own_end_or_left_out(self) -> None:
        """A new one must be put on one side: `ENDS` says nothing of the agent, others are asked how they ended."""
        asked = {StopReason.GREEN, StopReason.FINAL, StopReason.ATTEMPTS, StopReason.TURNS, StopReason.STALLED}

        assert set(StopReason) - ENDS.keys() == asked


@pytest.mark.parametrize("kind", [Format.KTO, Format.SFT])
def test_campaigns_that_differ_in_a_cap_alone_give_no_example_twice(tmp_path: Path, kind: Format) -> None:
    for name, terms in (("few", replace(USUAL, budget=Budget(attempts=None, turns=30))), ("many", USUAL)):
        work(tmp_path / name / "pass", (write_passing(TOTAL),), terms)
        work(tmp_path / name / "fail", (write_passing(9),), terms)

    found = build_examples([tmp_path], kind, ANY, PairRules())

    assert len(found.rows) == (2 if kind is Format.KTO else 1)
    assert found.excluded["duplicate"] == 2


@pytest.mark.parametrize(
    ("score", "reason"),
    [
        ({"ok": True, "passed": TOTAL}, None),
        ({"ok": False, "passed": 9, "total": TOTAL + 2}, Reason.REJUDGED),
        ({"ok": False, "void": "held_out: not general"}, Reason.REJUDGED),
        ({"ok": False, "void": "harness: it could not be judged"}, None),
        ("no score", Reason.REJUDGED),
    ],
)
def test_a_run_that_a_later_verdict_refutes_is_left_out(tmp_path: Path, score: object, reason: Reason | None) -> None:
    folder = work(tmp_path / "r", (write_passing(TOTAL),))
    (folder / "score.json").write_text(json.dumps(score))

    found = read_rollout(folder, ANY)

    assert found == reason or (reason is None and isinstance(found, Rollout))


def test_a_last_line_that_was_changed_is_not_believed(tmp_path: Path) -> None:
    folder = work(tmp_path / "r", (write_passing(9),))
    journal = folder / "events.jsonl"
    journal.write_bytes(b'"stop":"green"'.join(journal.read_bytes().rsplit(b'"stop":"final"', 1)))

    assert read_rollout(folder, ANY) == Reason.DAMAGED
    report = build_report([tmp_path])
    assert (report.totals.runs, len(report.damaged)) == (0, 1)
    assert "the journal's anchor remembers another hash" in report.damaged[0]


@pytest.mark.slow
def test_unpaired_examples_and_demonstrations(tmp_path: Path) -> None:
    for n in range(3):
        work(tmp_path / f"p{n}", (write_passing(TOTAL, str(n)),))
        work(tmp_path / f"f{n}", (write_passing(9, str(n)),))

    kto = build_examples([tmp_path], Format.KTO, ANY, PairRules())
    assert sorted(row["label"] for row in kto.rows) == [False] * 3 + [True] * 3
    assert counted(tmp_path, kind=Format.SFT) == (3, {"failed": 3})


def test_all_examples_of_a_task_are_on_one_side_of_the_split() -> None:
    rows = [{"task": f"t{n % 40}"} for n in range(120)]

    train, test = split_by_task(rows, 0.3)

    assert len(train) + len(test) == 120
    assert {r["task"] for r in train}.isdisjoint(r["task"] for r in test)
    assert 4 <= len({r["task"] for r in test}) <= 20


@pytest.mark.slow
def test_the_command_writes_pairs_and_a_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for n in range(2):
        work(tmp_path / "runs" / f"p{n}", (write_passing(TOTAL, str(n)),))
        work(tmp_path / "runs" / f"f{n}", (write_passing(9, str(n)),))
    out = tmp_path / "pairs.jsonl"

    assert call(["prefs", str(tmp_path / "runs"), "-o", str(out), "--min-grade", "D", "--json"]) == 0

    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["rollouts"], told["pairs"], told["excluded"]) == (4, 4, {})
    assert [json.loads(line)["task"] for line in out.read_text().splitlines()] == ["app"] * 4
    assert "4 examples of 1 tasks, from 4 of 4 rollouts." in (tmp_path / "pairs.card.md").read_text()
    journal = tmp_path / "runs" / "p0" / "events.jsonl"
    before = journal.read_bytes()
    assert call(["prefs", str(tmp_path / "runs"), "-o", str(journal)]) == 2
    assert (journal.read_bytes(), "lies in the run" in capsys.readouterr().err) == (before, True)
    assert call(["prefs", str(tmp_path / "runs"), "-o", str(tmp_path / "x.csv")]) == 2
    assert "name a .jsonl or a .parquet file" in capsys.readouterr().err
    (tmp_path / "pairs.test.jsonl").touch()  # of an export that held some tasks back
    assert call(["prefs", str(tmp_path / "runs"), "-o", str(out), "--min-grade", "D"]) == 0
    assert "pairs.test.jsonl is of an earlier export" in capsys.readouterr().err
