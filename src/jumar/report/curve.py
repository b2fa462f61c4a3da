"""Places the verifications of a run on its attempt curve, with the line that the ratchet holds."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from jumar.report.read_run import Verification

WIDTH, HEIGHT, MARGIN = 320, 96, 8
"""Size of a curve, in units of its own."""

POINTS = 200
"""Points of a curve at most: of more verifications the first and the last ones are drawn."""


class Dot(msgspec.Struct, frozen=True):
    """One verification on the curve."""

    x: float
    y: float
    kind: str
    """`kept`, `reverted` or `void`."""
    said: str


class Curve(msgspec.Struct, frozen=True):
    """Coordinates of a curve, and its description."""

    dots: tuple[Dot, ...]
    ratchet: str
    """Points of the line of the best tree so far."""
    said: str


def draw_curve(points: Sequence[Verification]) -> Curve | None:
    """Return the curve through *points*; None: there are none."""
    if not points:
        return None
    shown = points if len(points) <= POINTS else [*points[: POINTS // 2], *points[-POINTS // 2 :]]
    most = max(1, *(max(point.total, point.passed or 0) for point in shown))
    step = (WIDTH - 2 * MARGIN) / max(1, len(shown) - 1)
    places = [MARGIN + number * step for number in range(len(shown))]
    line: list[str] = []
    for number, (x, point) in enumerate(zip(places, shown, strict=True)):
        if number and point.best != shown[number - 1].best:
            line.append(f"{x:.1f},{_place(shown[number - 1].best, most):.1f}")
        line.append(f"{x:.1f},{_place(point.best, most):.1f}")
    dots = tuple(_build_dot(x, point, most) for x, point in zip(places, shown, strict=True))
    results = ", ".join("void" if point.passed is None else str(point.passed) for point in shown)
    cut = f" (of {len(points)} verifications the first and the last {POINTS // 2})" if shown is not points else ""
    return Curve(dots, " ".join(line), f"Tests passed, one verification after the other{cut}: {results}; of {most}")


def _build_dot(x: float, point: Verification, most: int) -> Dot:
    known = " (known from another run)" if point.cached else ""
    if point.passed is None:
        return Dot(round(x, 1), _place(0, most), "void", f"{point.trigger}: void")
    kind = "kept" if point.passed >= point.best else "reverted"
    return Dot(
        round(x, 1), _place(point.passed, most), kind, f"{point.trigger}: {point.passed} of {point.total}{known}"
    )


def _place(passed: int, most: int) -> float:
    return round(HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * passed / most, 1)
