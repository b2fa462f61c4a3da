"""Status line of a campaign: how many rollouts have ended, run and wait, their cost, and the time left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jumar.campaigns.campaign import CampaignProgress
from jumar.cli.console.status_line import PartCount, StatusLine, fit_parts, format_bar, format_duration


@dataclass
class CampaignStatus(StatusLine):
    """Status line that asks the campaign itself."""

    look: Callable[[], CampaignProgress] | None = None
    """Returns how far the campaign is; None: it has not begun."""

    def text(self, now: float, width: int) -> str:
        """Return all parts that fit into *width* columns; the least important are left out."""
        if self.look is None:
            return super().text(now, width)
        seen = self.look()
        count = PartCount(self.since, seen.ended - seen.known, seen.total - seen.known, at=now)
        left = count.estimate_left(now)  # rollouts differ so much that a long one says nothing
        parts = [
            (9, f"{seen.ended}/{seen.total} rollouts"),
            (1, format_bar(PartCount(0.0, seen.ended, seen.total))),
            (7, f"{seen.active} at work" + (f", {seen.paused} wait" if seen.paused else "")),
            (6, f"{seen.green} green"),
            (5, f"${seen.usd:.4f}" if seen.usd else ""),
            (3, f"{seen.test_runs} test runs"),
            (4, f"ETA {format_duration(left)}" if left else ""),
            (8, format_duration(now - self.since)),
        ]
        return fit_parts([part for part in parts if part[1]], width)
