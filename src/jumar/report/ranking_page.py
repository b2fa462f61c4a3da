"""Renders the ranking of a challenge as one HTML page that needs nothing else."""

from __future__ import annotations

import time
from collections.abc import Sequence

from jumar import __version__
from jumar.challenges.generations.search import Trial
from jumar.challenges.ranking.comparison import compare
from jumar.challenges.ranking.rank_agents import RankedAgent
from jumar.challenges.ranking.run_score import select_runs
from jumar.challenges.scores_file import ChallengeScores
from jumar.report.lineage_picture import draw_lineage
from jumar.report.render import POLICY, build_environment, hash_text, read_part
from jumar.scorers.axes import Label

WIDTH, HEIGHT = 200, 12
"""Of the bar of an agent's axes, in its own units."""


def render_ranking(scores: ChallengeScores, trials: Sequence[Trial] = ()) -> str:
    """Return the page that shows the ranking of *scores*, and the *trials* of its generations."""
    ranked = scores.rank()
    style = read_part("page.css") + read_part("ranking.css")
    best, second = ranked[0], ranked[1] if len(ranked) > 1 else None
    leading = select_runs(scores.runs, best.agent)
    return build_environment().from_string(read_part("ranking.html.j2")).render(
        scores=scores,
        ranked=ranked,
        tied=second is not None and (second.composite, second.usd) == (best.composite, best.usd),
        axes=tuple(best.axes),
        tasks=sorted({run.task for run in scores.runs}),
        comparisons=tuple(
            compare(leading, select_runs(scores.runs, other.agent), scores.points, scores.judge) for other in ranked[1:]
        ),
        bar=draw_bar,
        trials=trials,
        lineage=draw_lineage(trials) if trials else "",
        genome=next((t.genome for t in reversed(trials) if t.kept), "(the original one)"),
        style=style,
        policy=POLICY.format(style=hash_text(style), script=hash_text("")),
        made=time.strftime("%Y-%m-%d %H:%M %Z"),
        version=__version__,
    )  # fmt: skip


def draw_bar(agent: RankedAgent) -> str:
    """Return the axes of *agent* side by side as an SVG element, with the interval of the composite as a line."""
    scale = WIDTH / agent.maximum if agent.maximum else 0
    parts, left = [f'<rect class="whole" width="{WIDTH}" height="{HEIGHT}"/>'], 0.0
    for axis, score in agent.axes.items():
        if score.label != Label.WITHHELD:
            width = score.points * scale
            parts.append(f'<rect class="{axis}" x="{left:.1f}" width="{width:.1f}" height="{HEIGHT}"/>')
            left += width
    if agent.low is not None and agent.high is not None:
        middle, low, high = HEIGHT / 2, agent.low * scale, agent.high * scale
        parts.append(f'<path class="interval" d="M{low:.1f} 2V10M{low:.1f} {middle:g}H{high:.1f}M{high:.1f} 2V10"/>')
    return (
        f'<svg class="axes" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" aria-hidden="true">'
        + "".join(parts)
        + "</svg>"
    )
