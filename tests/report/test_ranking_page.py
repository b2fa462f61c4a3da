"""The page of a ranking: who won, on which axis, and why points were lost; nothing that a run wrote gets out."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from jumar.challenges.generations.search import Trial
from jumar.challenges.ranking.run_score import JudgeStanding, RunScore
from jumar.challenges.scores_file import ChallengeScores, JudgeReport
from jumar.report.ranking_page import render_ranking
from jumar.scorers.axes import AxisPoints, Label
from jumar.scorers.principles.mark import PrincipleMark
from jumar.scorers.scars.search import Finding
from support.worlds.report_page import CHROMIUM, TOOLS, look_at

HOSTILE = "</td><script>alert(1)</script>\u202e"
TASKS = ("parser", "scheduler", "cache")


def mark(name: str, value: int, quote: str, place: str) -> PrincipleMark:
    return PrincipleMark(name, value, (quote,), (place,))


def run(agent: str, task: str, rollout: int, passed: int | None, **more: object) -> RunScore:
    red = tuple(f"tests/test_{task}.py::test_{n}" for n in range(21 - (21 if passed is None else passed)))
    fields: dict[str, object] = {"stop": "final", "total": 21, "red": red, "usd": 0.04, "seconds": 31.0}
    fields |= {"tokens": 9_000, "run": f"runs/20261124-{agent}.{task}-r{rollout:03d}", **more}
    return RunScore(agent=agent, task=task, rollout=rollout, passed=passed, **fields)  # type: ignore[arg-type]


def build_example() -> ChallengeScores:
    """Scores of four agents; the words of one of them are hostile."""
    runs = []
    eval_found = Finding("src/parser.py", 41, "py-eval", 3, "eval runs whatever it is given", "return eval(text)")
    hostile = Finding("src/cache.py", 7, "py-bare-except", 2, "a bare except catches Ctrl-C, too", HOSTILE)
    for rollout in (1, 2, 3):
        for task in TASKS:
            told = mark("errors are told", 2, "raise ParseError(line)", "src/parser.py:12")
            named = mark("names say what", 1, "x2 = f(x1)", "src/parser.py:30")
            runs.append(run("careful", task, rollout, 21 if rollout > 1 else 20, marks=(told, named), usd=0.11))
            silent = mark("errors are told", 0, "return None", "src/parser.py:55")
            runs.append(run("quick", task, rollout, 20, marks=(silent, named), findings=(eval_found, hostile)))
            runs.append(run("small", task, rollout, 4 + rollout))
            why = f"none of its tests ended {HOSTILE}"
            runs.append(run("unbuilt", task, rollout, None, label=Label.NEVER_EVALUATED, why=why))
    judged = JudgeReport(
        model="judge", calls=66, usd=0.31, prompt_tokens=90_000, cached_tokens=81_000, calibration=0.96, agreement=0.93
    )
    return ChallengeScores(
        challenge="small services", agents=("careful", "quick", "small", "unbuilt"), points=AxisPoints(),
        judge=JudgeStanding(), judged=judged, runs=tuple(runs),
    )  # fmt: skip


def build_trials() -> tuple[Trial, ...]:
    told = [(1, "careful", 1, 84.0, 86.0, None), (1, "careful", 2, 89.5, 86.0, 3.2)]
    told.append((2, "careful-g1-2", 1, 88.0, 89.5, None))
    return tuple(
        Trial(
            generation=generation, parent=parent, variant=f"careful-g{generation}-{number}", how=f"adds: {HOSTILE}",
            genome=HOSTILE, temperature=None, screened=screened, screened_parent=before, difference=won,
            p=None if won is None else 0.004, limit=None if won is None else 0.025, kept=won is not None,
        )
        for generation, parent, number, screened, before, won in told
    )  # fmt: skip


@pytest.mark.slow
def test_the_page_says_who_won_and_why_points_were_lost() -> None:
    page = render_ranking(build_example(), build_trials())

    assert "<h1>careful leads small services</h1>" in page
    for words in ("src/parser.py:41", "py-eval", "src/parser.py:55 return None", "never evaluated", "96.0%", "90.0%"):
        assert words in page, words
    assert "<script" not in page
    assert "\u202e" not in page
    assert "style=" not in page, "the policy forbids it"


def test_a_withheld_axis_is_said() -> None:
    scores = build_example()
    withheld = JudgeStanding(withheld="it marked 33% of the calibration examples as their author did")
    page = render_ranking(msgspec.structs.replace(scores, judge=withheld))

    assert "Principles are withheld:" in page
    assert "of 72" in page


@pytest.mark.proof
@pytest.mark.skipif(not CHROMIUM, reason="no Chromium on PATH (Debian: apt-get install chromium)")
@pytest.mark.skipif(not (TOOLS / ".ready").is_file(), reason="`make prove` installs what drives the browser")
def test_the_page_opens_without_a_fault(tmp_path: Path) -> None:
    page = tmp_path / "ranking.html"
    page.write_text(render_ranking(build_example(), build_trials()))

    found = look_at(page)

    assert found["seen"] == {"errors": [], "requests": []}
    assert found["axe"] == {"light": [], "dark": []}
    assert found["first_focus"] == "Skip to why points were lost"
    assert found["without_script"] == "careful leads small services"
