"""Shows a ranking as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jumar.challenges.ranking.rank_agents import Lost, RankedAgent
from jumar.core.quoting import make_one_line
from jumar.scorers.axes import Axis, AxisScore, Label

REASONS = 4
"""Reasons for lost points that are shown of each agent."""

PLACES = 3
"""Places that are shown of each reason."""


def format_ranking(ranked: Sequence[RankedAgent]) -> Iterator[str]:
    """Yield the table of *ranked*, and below it why each agent lost points."""
    width = max(len(agent.agent) for agent in ranked)
    axes = list(dict.fromkeys(axis for agent in ranked for axis in agent.axes))
    yield f"{'':>3}  {'agent':<{width}}  {'composite':<22}" + "".join(f"  {axis:<14}" for axis in axes) + "  cost"
    for agent in ranked:
        cells = "".join(f"  {format_axis(agent.axes[axis]) if axis in agent.axes else '':<14}" for axis in axes)
        labels = f"  [{', '.join(agent.labels)}]" if agent.labels else ""
        yield f"{agent.rank:>3}  {agent.agent:<{width}}  {format_composite(agent):<22}{cells}  ${agent.usd:.4f}{labels}"
    for agent in ranked:
        if not agent.lost:
            continue
        yield f"{agent.agent} lost"
        yield from (f"  {make_one_line(format_lost(lost))}" for lost in agent.lost[:REASONS])
        if len(agent.lost) > REASONS:
            yield f"  and for {len(agent.lost) - REASONS} more reasons"


def format_composite(agent: RankedAgent) -> str:
    """Return the composite of *agent* with its interval."""
    interval = f" ({agent.low:.1f} to {agent.high:.1f})" if agent.low is not None and agent.high is not None else ""
    return f"{agent.composite:.1f} of {agent.maximum:g}{interval}"


def format_axis(score: AxisScore) -> str:
    """Return the points of an axis, or the label that stands for them."""
    return "withheld" if score.label == Label.WITHHELD else f"{score.points:.1f} of {score.maximum:g}"


def format_lost(lost: Lost) -> str:
    """Return one reason for lost points, with some of its places."""
    places = ", ".join(lost.places[:PLACES])
    more = f" and {len(lost.places) - PLACES} more" if len(lost.places) > PLACES else ""
    name = "" if lost.axis == Axis.TESTS else f"{lost.axis}: "
    return f"-{lost.points:.1f}  {name}{lost.what}" + (f"  ({places}{more})" if places else "")
