"""A verdict that was stored serves the same question, and only that; what says nothing for sure is never served."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from jumar.core.state.verdict import Cause, Ended, Outcome, TestResult, Verdict, Void
from jumar.errors import Infra
from jumar.ports import Verification
from jumar.runs.judging.shared_judging import CoreLimit, JudgedRun, QueuedVerifier, SharedJudging
from jumar.runs.judging.verdict_store import VerdictStore
from jumar.testing import FakeVerifier

RED = TestResult("t::a", Outcome.FAILED, excerpt="assert 1 == 2")
DONE = Verification(
    verdict=Verdict({"t::a": RED, "t::b": TestResult("t::b", Outcome.PASSED)}, frozenset({"t::b"})),
    ended=Ended.NORMAL, executions=1, duration_ms=9, output="001.txt", grade="D", natives={"t::a": "n::a"},
)  # fmt: skip


class Judge(FakeVerifier):
    """Answers *done* and counts how often it was asked."""

    def __init__(self, done: Verification) -> None:
        self.done, self.times, self.most, self._now = done, 0, 0, 0

    async def verify(
        self,
        tree: str,  # noqa: ARG002  the port's signature
        accepted: Mapping[str, Outcome] | None,  # noqa: ARG002  as above
        *,
        control: str = "",  # noqa: ARG002  as above
        also: Sequence[str] = (),  # noqa: ARG002  as above
        first: Sequence[str] = (),  # noqa: ARG002  as above
    ) -> Verification:
        self._now += 1
        self.most = max(self.most, self._now)
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        self._now -= 1
        self.times += 1
        return self.done


def asked(folder: Path, judge: Judge, *questions: tuple[str, str, tuple[str, ...]]) -> list[Verification]:
    """The answers to *questions* (rules, tree, further tests), asked at once."""
    answers: dict[int, Verification] = {}
    (folder / "run" / "output").mkdir(parents=True, exist_ok=True)

    def new_output() -> Path:
        return folder / "run" / "output" / f"{len(list((folder / 'run' / 'output').iterdir())) + 1:03d}.txt"

    async def ask(number: int, shared: SharedJudging) -> None:
        rules, tree, also = questions[number]
        verifier = QueuedVerifier(judge, shared, JudgedRun(folder / "run", rules, new_output))
        answers[number] = await verifier.verify(tree, None, control="", also=also)

    async def all_of_them() -> None:
        store = VerdictStore.open(folder / "verdicts.db")
        shared = SharedJudging(CoreLimit(folder / "cores.lock", 2), store)
        async with anyio.create_task_group() as tasks:
            for number in range(len(questions)):
                tasks.start_soon(ask, number, shared)
        store.close()

    anyio.run(all_of_them)
    return [answers[number] for number in range(len(questions))]


def test_the_same_question_is_put_to_the_tests_once_even_at_the_same_time(tmp_path: Path) -> None:
    judge = Judge(DONE)

    answers = asked(tmp_path, judge, *[("r", "tree", ())] * 5)
    later = asked(tmp_path, judge, ("r", "tree", ()))

    assert judge.times == 1
    assert sorted(a.executions for a in answers) == [0, 0, 0, 0, 1]
    (again,) = later
    assert (again.verdict, again.natives, again.grade) == (DONE.verdict, DONE.natives, DONE.grade)
    assert "was judged before" in (tmp_path / "run" / "output" / again.output).read_text()


def test_another_tree_other_rules_and_other_tests_are_other_questions(tmp_path: Path) -> None:
    judge = Judge(DONE)

    asked(tmp_path, judge, ("r", "tree", ()), ("r", "other", ()), ("s", "tree", ()), ("r", "tree", ("t::c",)))

    assert judge.times == 4
    assert judge.most == 2, "and as many are judged at once as there are cores"


FLAKY = replace(DONE.verdict, results={"t::a": replace(RED, outcome=Outcome.FLAKY)})


@pytest.mark.parametrize(
    "done",
    [
        replace(DONE, verdict=Verdict({}, void=Void(Cause.HARNESS, "no disk"))),
        replace(DONE, verdict=FLAKY),
        replace(DONE, ended=Ended.TIMEOUT),
        replace(DONE, verdict=Verdict({})),
    ],
    ids=["void", "flaky", "timeout", "empty"],
)
def test_what_says_nothing_for_sure_is_asked_again(tmp_path: Path, done: Verification) -> None:
    judge = Judge(done)

    asked(tmp_path, judge, *[("r", "tree", ())] * 3)

    assert judge.times == 3


def test_a_damaged_row_is_asked_again_and_a_foreign_file_is_refused(tmp_path: Path) -> None:
    judge = Judge(DONE)
    asked(tmp_path, judge, ("r", "tree", ()))
    with sqlite3.connect(tmp_path / "verdicts.db") as db:
        db.execute("UPDATE verdicts SET verdict = 'nonsense'")
    asked(tmp_path, judge, ("r", "tree", ()))
    assert judge.times == 2

    (tmp_path / "text.db").write_text("not a database, but long enough to be none " * 40)
    with pytest.raises(Infra, match=r"text\.db"):
        VerdictStore.open(tmp_path / "text.db")
    with sqlite3.connect(tmp_path / "foreign.db") as db:
        db.execute("PRAGMA application_id = 7")
        db.execute("CREATE TABLE t (x)")
    with pytest.raises(Infra, match="no store of verdicts"):
        VerdictStore.open(tmp_path / "foreign.db")
