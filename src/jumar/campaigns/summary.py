"""Summary of a campaign: the object of `--json`, and the table for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from jumar.campaigns.schedule import RolloutEnd, is_out_of_budget
from jumar.core.quoting import make_one_line
from jumar.core.state.stop import EXIT_CODES, StopReason


class CampaignSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Summary of a campaign. Amounts are sums over its runs, those of earlier sessions included."""

    campaign: str
    """Its folder."""
    runs: tuple[Mapping[str, Any], ...]
    """The result of each rollout that has one, with `rollout`, its name, and `task`, that of its task."""
    other: tuple[RolloutEnd, ...]
    """Rollouts without a result: refused, not begun, or broken off by the machine."""
    usd: float
    tokens: int
    test_runs: int
    executions: int
    """Test processes that were started."""
    verdicts_cached: int
    """Verdicts that needed none, as the same tree had been judged."""
    seconds: float
    """Time at work, summed over the runs."""
    by_stop: Mapping[str, int]
    """Reason to stop -> number of rollouts."""
    tasks: int
    solved: int
    """Tasks with a green rollout."""
    spent: bool = False
    """True if the caps of the whole campaign let no further call be made."""
    stopped: str = ""
    """Reason that this session ended before its work was done; empty: it was not."""

    @property
    def exit(self) -> int:
        """The exit code: 0 if every task has a green rollout, and the campaign came to its end."""
        if self.stopped:
            return EXIT_CODES[StopReason.INTERRUPTED]
        if self.spent:
            return EXIT_CODES[StopReason.BUDGET]
        return 0 if self.solved == self.tasks else EXIT_CODES[StopReason.FINAL]


def summarise(folder: str, ends: Sequence[RolloutEnd], stopped: str) -> CampaignSummary:
    """Return the summary of the campaign in *folder*, whose rollouts have the ends *ends*."""
    results = [end.result for end in ends if end.result is not None]
    green = {end.task for end in ends if end.stop == StopReason.GREEN}
    return CampaignSummary(
        campaign=folder,
        runs=tuple(
            {**msgspec.to_builtins(end.result), "rollout": end.rollout, "task": end.task}
            for end in ends
            if end.result is not None
        ),
        other=tuple(end for end in ends if end.result is None),
        usd=round(sum(r.usd for r in results), 6),
        tokens=sum(r.tokens for r in results),
        test_runs=sum(r.test_runs for r in results),
        executions=sum(r.executions for r in results),
        verdicts_cached=sum(end.cached for end in ends),
        seconds=round(sum(r.seconds for r in results), 3),
        by_stop=dict(Counter(end.stop for end in ends)),
        tasks=len({end.task for end in ends}),
        solved=len(green),
        spent=any(is_out_of_budget(end.result) for end in ends),
        stopped=stopped,
    )


def format_table(ends: Iterable[RolloutEnd]) -> Iterator[str]:
    """Yield a line for each task: its greens, its best result, its cost, and why its rollouts stopped."""
    by_task: dict[str, list[RolloutEnd]] = {}
    for end in ends:
        by_task.setdefault(end.task, []).append(end)
    width = max((len(name) for name in by_task), default=0)
    for name, rollouts in by_task.items():
        results = [end.result for end in rollouts if end.result is not None]
        green = sum(end.stop == StopReason.GREEN for end in rollouts)
        best = max(results, key=lambda result: result.passed or 0, default=None)
        stops = ", ".join(f"{count} {stop}" for stop, count in Counter(end.stop for end in rollouts).items())
        standing = best.standing if best is not None else "nothing was run"
        usd = sum(result.usd for result in results)
        yield f"{name:<{width}}  {green} of {len(rollouts)} green  best {standing}  ${usd:.4f}  ({stops})"
        yield from (
            f"{'':<{width}}  {end.rollout}: {make_one_line(end.why)}"
            for end in rollouts
            if end.result is None and end.why
        )
