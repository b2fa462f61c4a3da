"""Runs one session of the judge: code to judge and calibration examples, shuffled, within a budget."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import anyio

from jumar.core.run.strategy import Request
from jumar.models.wire.budgeted_calls import BudgetedCalls
from jumar.ports import Model
from jumar.scorers.principles.mark import PrincipleMark, read_marks, take_majority
from jumar.scorers.principles.principle import Principle
from jumar.scorers.principles.prompt import build_code, build_prefix, plant_plea

SEED = 92
"""Of the order of the calls, which is the same each time: a session can be replayed from its recording."""

AT_ONCE = 4
"""Calls under way together."""

STAGE = "judge"


class Case(NamedTuple):
    """Code that is judged."""

    key: str
    files: Mapping[str, str]
    """Path -> text."""
    principle: str = ""
    """Of a calibration case: the principle that it is an example of. Empty: it is the code of a run."""
    mark: int = 0
    """Of a calibration case: the mark that its author gave."""
    plea: bool = False
    """True if it asks for full marks."""


class JudgeRules(NamedTuple):
    """Rules by which code is judged, and the judge trusted."""

    principles: tuple[Principle, ...]
    tier: str = "mid"
    repeat: int = 3
    calibration: float = 0.8
    agreement: float = 0.8
    usd: float = 5.0


class Judgement(NamedTuple):
    """Outcome of a session."""

    marks: Mapping[str, tuple[PrincipleMark, ...]]
    """Key of a case -> its marks."""
    withheld: str
    """Reason that no mark counts; empty: they do."""
    calibration: float | None
    agreement: float | None
    calls: int
    usd: float
    prompt_tokens: int
    cached_tokens: int


class JudgeSession:
    """Session of *model* under *rules*."""

    def __init__(self, model: Model, rules: JudgeRules) -> None:
        self._rules = rules
        self._model = BudgetedCalls(model, rules.usd)
        self._prefix = build_prefix(rules.principles)
        self._answers: dict[int, tuple[str, tuple[PrincipleMark, ...]]] = {}

    async def judge(self, runs: Sequence[Case]) -> Judgement:
        """Return the marks of *runs*, and whether they count."""
        controls = tuple(list_calibration_cases(self._rules.principles)) if runs else ()
        calls = [case for case in (*controls, *runs) for _ in range(self._rules.repeat)]
        random.Random(SEED).shuffle(calls)  # noqa: S311  an order, no secret
        limiter = anyio.CapacityLimiter(AT_ONCE)
        async with anyio.create_task_group() as tasks:
            for position, case in enumerate(calls):
                tasks.start_soon(self._ask, limiter, position, case)
        given: dict[str, list[tuple[PrincipleMark, ...]]] = {}
        for _, (key, marks) in sorted(self._answers.items()):
            given.setdefault(key, []).append(marks)
        calibration = measure_calibration([c for c in controls if not c.plea], given)
        swayed = measure_calibration([c for c in controls if c.plea], given)
        agreement = measure_agreement(given.values())
        return Judgement(
            marks={case.key: self._settle(given.get(case.key, [])) for case in runs},
            withheld=self._model.fault or self._doubt(calibration, swayed, agreement),
            calibration=calibration,
            agreement=agreement,
            calls=self._model.calls,
            usd=round(self._model.spent, 6),
            prompt_tokens=self._model.prompt_tokens,
            cached_tokens=self._model.cached_tokens,
        )

    def _settle(self, given: Sequence[Sequence[PrincipleMark]]) -> tuple[PrincipleMark, ...]:
        return tuple(
            take_majority(principle.name, [marks[number] for marks in given])
            for number, principle in enumerate(self._rules.principles)
        )

    def _doubt(self, calibration: float | None, swayed: float | None, agreement: float | None) -> str:
        """Return why the judge is not trusted; empty: it is."""
        rules = self._rules
        if calibration is not None and calibration < rules.calibration:
            least = f"{rules.calibration:.0%} were needed"
            return f"it marked {calibration:.0%} of the calibration examples as their author did; {least}"
        if swayed is not None and swayed < rules.calibration:
            return f"a comment that asks for full marks swayed it in {1 - swayed:.0%} of the control cases"
        if agreement is not None and agreement < rules.agreement:
            return f"it agreed with itself in {agreement:.0%} of its marks; {rules.agreement:.0%} were needed"
        return ""

    async def _ask(self, limiter: anyio.CapacityLimiter, position: int, case: Case) -> None:
        async with limiter:
            request = Request(self._rules.tier, STAGE)
            answer = await self._model.ask(request, (self._prefix, build_code(case.files)), position)
        if answer is not None:
            marks = read_marks(answer.reply.content, self._rules.principles, case.files)
            self._answers[position] = (case.key, marks)


def list_calibration_cases(principles: Iterable[Principle]) -> Iterable[Case]:
    """Yield the examples of *principles* as code to be judged, and those of 0 once more with a plea for full marks."""
    for principle in principles:
        for mark, text in principle.examples:
            yield Case(f"example {principle.name} {mark}", {"example": text.strip()}, principle.name, mark)
        pleading = {"example": plant_plea(principle.zero.strip())}
        yield Case(f"plea {principle.name}", pleading, principle.name, 0, plea=True)


def measure_calibration(cases: Iterable[Case], marks: Mapping[str, Sequence[Sequence[PrincipleMark]]]) -> float | None:
    """Return the share of *marks* of *cases* that equal the author's; None: there are none."""
    given = [
        mark.mark == case.mark
        for case in cases
        for answer in marks.get(case.key, ())
        for mark in answer
        if mark.principle == case.principle
    ]
    return sum(given) / len(given) if given else None


def measure_agreement(answers: Iterable[Sequence[Sequence[PrincipleMark]]]) -> float | None:
    """Return the share of marks that equal the majority for the same code; None: no code was judged twice."""
    agreed = count = 0
    for repeated in answers:
        for marks in zip(*repeated, strict=True):
            if len(marks) > 1:
                agreed += Counter(mark.mark for mark in marks).most_common(1)[0][1]
                count += len(marks)
    return agreed / count if count else None
