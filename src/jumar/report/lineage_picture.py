"""Draws the lineage of a search: each variant at its composite in the screening, joined to its parent."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from jumar.challenges.generations.search import Trial

WIDTH, HEIGHT, MARGIN = 640, 220, 28


def draw_lineage(trials: Sequence[Trial]) -> str:
    """Return an SVG element with a point for each of *trials*, by generation and composite."""
    last = max(trial.generation for trial in trials)
    step = (WIDTH - 2 * MARGIN) / last
    known = [value for trial in trials for value in (trial.screened, trial.screened_parent)]
    low, span = min(known), max(max(known) - min(known), 1)

    def place(generation: int, composite: float) -> tuple[float, float]:
        height = (HEIGHT - 3 * MARGIN) * (composite - low) / span
        return MARGIN + step * generation, HEIGHT - 1.5 * MARGIN - height

    parts = [f'<path class="axis" d="M{MARGIN} {MARGIN}V{HEIGHT - MARGIN}H{WIDTH - MARGIN}"/>']
    parts += [
        f'<text x="{place(number, low)[0]:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{number}</text>'
        for number in range(last + 1)
    ]
    parts += [
        f'<text x="{MARGIN + 6}" y="{place(0, value)[1] + 4:.0f}">{value:.1f}</text>'
        for value in sorted({low, max(known)})
    ]
    for trial in trials:
        x, y = place(trial.generation, trial.screened)
        from_x, from_y = place(trial.generation - 1, trial.screened_parent)
        kind = "kept" if trial.kept else "tried"
        parts.append(f'<path class="{kind}" d="M{from_x:.1f} {from_y:.1f}L{x:.1f} {y:.1f}"/>')
        parts.append(
            f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="5"><title>{escape(trial.variant)}: '
            f"{trial.screened:.1f}</title></circle>"
        )
    label = f"Lineage: {len(trials)} variants in {last} generations, {sum(t.kept for t in trials)} kept"
    return f'<svg class="lineage" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
