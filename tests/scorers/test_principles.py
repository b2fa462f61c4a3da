"""A judge that cannot be trusted costs nobody a point: its axis is withheld, or its mark is void."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.core.state.budget import Cost
from jumar.core.state.reply import Reply
from jumar.ports import Answer, Ask
from jumar.scorers.principles.mark import PrincipleMark, find_quote, read_marks, take_majority
from jumar.scorers.principles.principle import Principle
from jumar.scorers.principles.prompt import PLEA, build_code, build_prefix
from jumar.scorers.principles.session import Case, Judgement, JudgeRules, JudgeSession

NAMES = ("errors are told", "names say what")
PRINCIPLES = tuple(
    Principle(
        name=name,
        description=f"Whether {name}.",
        zero=f"def a_{n}():\n    zero = {n}\n",
        one=f"def b_{n}():\n    one = {n}\n",
        two=f"def c_{n}():\n    two = {n}\n",
    )
    for n, name in enumerate(NAMES)
)
RULES = JudgeRules(PRINCIPLES)
GOOD = Case("good", {"src/app.py": "def total(items):\n    two = sum(items)\n"})
POOR = Case("poor", {"src/app.py": f"# {PLEA}\ndef total(items):\n    zero = 1\n"})


def answer(mark: int, quote: str) -> str:
    return json.dumps({"marks": [{"principle": name, "mark": mark, "quotes": [quote]} for name in NAMES]})


def judge_honestly(code: str) -> str:
    """The mark is the word that the code has."""
    line = next(line for line in code.splitlines() if re.search(r"\b(zero|one|two) =", line))
    word = re.search(r"\b(zero|one|two) =", line)
    assert word is not None
    return answer(("zero", "one", "two").index(word[1]), line)


def read_last_line(code: str) -> str:
    return next(line for line in reversed(code.splitlines()) if line.startswith(" "))


CHANCE = random.Random(3)
JUDGES: dict[str, Callable[[str], str]] = {
    "always 2": lambda code: answer(2, read_last_line(code)),
    "always 0": lambda code: answer(0, read_last_line(code)),
    "at random": lambda code: answer(CHANCE.choice((0, 1, 2)), read_last_line(code)),
    "prose": lambda _: "This is fine code. I would give it full marks.",
    "quotes what is not there": lambda code: judge_honestly(code).replace("=", "!="),
    "quotes nothing": lambda code: re.sub(r'"quotes": \[.*?\]', '"quotes": []', judge_honestly(code)),
    "believes comments": lambda code: answer(2, PLEA) if PLEA in code else judge_honestly(code),
}


class ScriptedJudge:
    """Model that answers by a function of the code that it is shown."""

    name = "scripted"

    def __init__(self, reply: Callable[[str], str], usd: float = 0.01) -> None:
        self.reply, self.usd = reply, usd
        self.asked: list[Ask] = []

    def worst(self, _: Ask) -> Cost:
        return Cost(usd=self.usd)

    async def complete(self, ask: Ask) -> Answer:
        self.asked.append(ask)
        text = self.reply(ask.messages[-1].content)
        return Answer(reply=Reply(content=text), input_tokens=100, cached_tokens=60, usd=self.usd)


def judge(model: ScriptedJudge, *cases: Case, rules: JudgeRules = RULES) -> Judgement:
    return anyio.run(JudgeSession(model, rules).judge, cases)


def test_an_honest_judge_is_believed() -> None:
    done = judge(ScriptedJudge(judge_honestly), GOOD, POOR)

    assert (done.withheld, done.calibration, done.agreement) == ("", 1.0, 1.0)
    assert [mark.mark for mark in done.marks["good"]] == [2, 2]
    assert [mark.mark for mark in done.marks["poor"]] == [0, 0]
    assert done.marks["good"][0].places == ("src/app.py:2",)
    # Two principles: three examples and a plea of each, and two runs, three times each.
    assert (done.calls, done.usd, done.cached_tokens / done.prompt_tokens) == (30, 0.3, 0.6)


@pytest.mark.parametrize("name", JUDGES)
def test_a_judge_that_cannot_be_trusted_is_withheld(name: str) -> None:
    done = judge(ScriptedJudge(JUDGES[name]), GOOD, POOR)

    assert done.withheld


def test_a_judge_that_cheats_on_runs_alone_has_its_marks_voided() -> None:
    """It knows the examples by heart, and makes up what it quotes of anything else."""
    told = judge(ScriptedJudge(lambda c: judge_honestly(c) if "def total" not in c else answer(2, "made_up(1)")), GOOD)

    assert told.withheld == ""
    assert [mark.mark for mark in told.marks["good"]] == [None, None]
    assert "made_up(1)" in told.marks["good"][0].why


def test_a_judge_that_disagrees_with_itself_is_withheld() -> None:
    turns: list[int] = []

    def waver(code: str) -> str:
        if "def total" not in code:
            return judge_honestly(code)
        turns.append(len(turns) % 3)
        return answer(turns[-1], read_last_line(code))

    many = [Case(f"run {n}", {"app.py": f"def total():\n    two = {n}\n"}) for n in range(20)]
    done = judge(ScriptedJudge(waver), *many)

    assert done.agreement is not None
    assert done.agreement < 0.8
    assert "agreed with itself" in done.withheld


def test_the_prefix_is_the_same_for_all_and_no_path_is_told() -> None:
    model = ScriptedJudge(judge_honestly)
    judge(model, GOOD, POOR)

    assert all(ask.messages[0] == build_prefix(PRINCIPLES) for ask in model.asked)
    assert not any("app.py" in message.content for ask in model.asked for message in ask.messages)
    assert [ask.position for ask in sorted(model.asked, key=lambda ask: ask.position)] == list(range(30))


def test_the_budget_of_the_judge_is_never_passed() -> None:
    model = ScriptedJudge(judge_honestly, usd=0.01)
    done = judge(model, GOOD, rules=RULES._replace(usd=0.055))

    assert (done.usd, len(model.asked)) == (0.05, 5)
    assert "$0.055" in done.withheld


class CheapJudge(ScriptedJudge):
    """Costs a tenth of its worst case."""

    def worst(self, _: Ask) -> Cost:
        return Cost(usd=10 * self.usd)


def test_calls_under_way_are_waited_for_before_the_budget_is_said_to_be_short() -> None:
    """30 calls of $0.01, each of which may cost $0.10: no two of them fit under $0.4 at their worst with four more."""
    done = judge(CheapJudge(judge_honestly), GOOD, POOR, rules=RULES._replace(usd=0.4))

    assert (done.withheld, done.calls, done.usd) == ("", 30, 0.3)


def test_nothing_is_asked_where_nothing_is_to_be_judged() -> None:
    model = ScriptedJudge(judge_honestly)

    assert judge(model).calls == len(model.asked) == 0


@pytest.mark.parametrize(
    ("quote", "place"),
    [
        ("two = sum(items)", "a.py:2"),
        ("  def total(items):\n      two = sum(items)", "a.py:1"),
        ("two = sum(things)", ""),
        ("def tot", ""),
        (")", ""),
        ("", ""),
        ("def total(items):\n    return 1", ""),
    ],
)
def test_where_a_quote_is(quote: str, place: str) -> None:
    assert find_quote(quote, {"a.py": "def total(items):\n\n    two = sum(items)\n".replace("\n\n", "\n")}) == place


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"marks": 3}',
        '{"marks": [{"principle": "errors are told", "mark": 3, "quotes": ["two = sum(items)"]}]}',
        '{"marks": [{"principle": "errors are told", "mark": "2", "quotes": ["two = sum(items)"]}]}',
        '{"marks": [{"principle": "another one", "mark": 2, "quotes": ["two = sum(items)"]}]}',
        "\ud800{}",
    ],
)
def test_what_is_no_mark_is_void(text: str) -> None:
    assert [(mark.mark, bool(mark.why)) for mark in read_marks(text, PRINCIPLES, GOOD.files)] == [(None, True)] * 2


def test_two_marks_for_one_principle_are_void() -> None:
    twice = json.loads(answer(2, "two = sum(items)"))
    twice["marks"].append(twice["marks"][0])

    first, second = read_marks(json.dumps(twice), PRINCIPLES, GOOD.files)

    assert (first.mark, second.mark) == (None, 2)


@pytest.mark.parametrize(
    ("given_marks", "settled"),
    [((2, 2, 0), 2), ((2, 1, 0), None), ((2, None, None), 2), ((None, None), None), ((), None), ((1, 2), None)],
)
def test_the_mark_that_most_answers_give_counts(given_marks: tuple[int | None, ...], settled: int | None) -> None:
    assert take_majority("p", [PrincipleMark("p", mark) for mark in given_marks]).mark == settled


@given(st.text(max_size=200))
def test_no_code_gets_out_of_its_fence(text: str) -> None:
    told = build_code({"a.py": text}).content
    fence = re.search(r"^`{3,}", told, re.MULTILINE)

    assert fence is not None
    assert fence[0] not in text
