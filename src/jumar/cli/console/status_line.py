"""Text of the status line: the current work of a run, its progress, its speed, and its remaining time."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field

from jumar.process.progress import ProgressPart

BAR = 10
"""Characters of the bar."""

SURE_SECONDS = 0.5
"""A rate that was measured for less than this tells nothing."""

MINUTE = 60


@dataclass
class PartCount:
    """Progress counter of one part."""

    since: float
    done: int = 0
    total: int = 0
    at: float = 0.0
    """Time of the last step."""

    def compute_rate(self, now: float) -> float:
        """Return parts a second; 0: unknown."""
        seconds = now - self.since
        return self.done / seconds if seconds >= SURE_SECONDS and self.done else 0.0

    def estimate_left(self, now: float) -> float:
        """Return the seconds until all are done; 0: unknown, or nothing was done for as long as that."""
        rate, steps = self.compute_rate(now), self.total - self.done
        expected = steps * max(self.at - self.since, SURE_SECONDS) / self.done if rate else 0.0
        return steps / rate if rate and steps > 0 and now - self.at <= expected + SURE_SECONDS else 0.0


@dataclass
class StatusLine:
    """Current work and its progress."""

    title: str = ""
    work: str = ""
    since: float = 0.0
    best: tuple[int, int] | None = None
    """Tests that the best tree passes, of how many."""
    counts: dict[ProgressPart, PartCount] = field(default_factory=dict)

    def begin(self, work: str, now: float) -> None:
        """Begin another work; the counts of the last one end."""
        if work != self.work:
            self.work, self.since, self.counts = work, now, {}

    def count(self, part: ProgressPart, done: int, total: int, now: float) -> None:
        """Count *part*. A smaller number is that of another process, with a rate of its own."""
        known = self.counts.get(part)
        if known is None or done < known.done:
            known = self.counts[part] = PartCount(now, at=now)
        if part is ProgressPart.ROUND:
            self.counts.pop(ProgressPart.TESTS, None)
        known.done, known.total, known.at = done, total, known.at if done == known.done else now

    def text(self, now: float, width: int) -> str:
        """Return all parts that fit into *width* columns.

        First without the units, then the least important is left out.
        """
        whole = self._list_parts(now, units=True)
        fits = count_columns(" ".join(text for _, text in whole)) <= width
        return fit_parts(whole if fits else self._list_parts(now, units=False), width)

    def _list_parts(self, now: float, *, units: bool) -> list[tuple[int, str]]:
        """Return the parts in their order, each with its weight: the lightest is left out first."""
        elapsed = int(now - self.since)
        inner = self._find_innermost()
        rate, left = (inner.compute_rate(now), inner.estimate_left(now)) if inner else (0.0, 0.0)
        parts = [
            (2, f"{self.title}:" if self.title else ""),
            (9, self.work),
            (1, format_bar(inner) if inner else ""),
            *self._format_counts(units=units),
            (4, f"{rate:.{1 if rate < BAR else 0}f}/s" if rate else ""),
            (5, f"ETA {format_duration(left)}" if left else ""),
            (8, format_duration(elapsed)),
            (3, f"best {self.best[0]}/{self.best[1]}" if self.best else ""),
        ]
        return [part for part in parts if part[1]]

    def _find_innermost(self) -> PartCount | None:
        """Return the counter with the smallest steps."""
        found = [
            self.counts[part]
            for part in (ProgressPart.FILES, ProgressPart.TESTS, ProgressPart.CANDIDATES)
            if part in self.counts
        ]
        return found[-1] if found else None

    def _format_counts(self, *, units: bool) -> Iterable[tuple[int, str]]:
        for part in ProgressPart:
            if (count := self.counts.get(part)) is None:
                continue
            of = f"{count.done}/{count.total}" if count.total else str(count.done)
            yield (6, f"round {of}") if part is ProgressPart.ROUND else (7, f"{of} {part}" if units else of)


def format_bar(count: PartCount) -> str:
    """Return a progress bar; empty if the total is unknown."""
    if not count.total:
        return ""
    full = BAR * min(count.done, count.total) // count.total
    return f"[{'#' * full}{'.' * (BAR - full)}]"


def format_duration(seconds: float) -> str:
    """Return *seconds* as minutes and seconds, or hours, minutes and seconds."""
    minutes, rest = divmod(int(seconds), MINUTE)
    hours, minutes = divmod(minutes, MINUTE)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def fit_parts(parts: list[tuple[int, str]], width: int) -> str:
    """Return *parts*, (weight, text) each, in their order: the lightest left out until the rest fits."""
    kept = list(parts)
    while len(kept) > 1 and count_columns(" ".join(text for _, text in kept)) > width:
        kept.remove(min(kept, key=lambda part: part[0]))
    return cut(" ".join(text for _, text in kept), width)


def cut(text: str, width: int) -> str:
    """Cut *text* to the part that fits into *width* columns."""
    while text and count_columns(text) > width:
        text = text[:-1]
    return text


def count_columns(text: str) -> int:
    """Return the number of terminal columns that *text* takes."""
    return sum(_count_letter(letter) for letter in text)


def _count_letter(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
