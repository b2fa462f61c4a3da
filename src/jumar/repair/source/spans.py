"""Text edits: a span of a text and its replacement; every byte outside of the span stays unchanged."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class TextEdit:
    """One change of one source text."""

    start: int
    """Offset of the first replaced character."""
    end: int
    """Offset after the last replaced character."""
    text: str
    operator: str
    """Kind of change, in a few words for people."""
    prior: float
    """Probability that this shape of change fixes a bug, by rule of thumb: 0 to 1."""
    line: int
    """The line (from 1) whose suspicion the edit inherits."""

    def apply(self, source: str) -> str:
        """Return *source* with this change."""
        return source[: self.start] + self.text + source[self.end :]

    def fit(self, source: str) -> TextEdit:
        """Return the same change with the line endings of *source*, whose last line may have none."""
        text, start = self.text, self.start
        if not source.endswith("\n") and self.end >= len(source):
            text = text.removesuffix("\n")
            text = f"\n{text}" if start >= len(source) else text
        if "\r\n" in source:
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        return replace(self, start=min(start, len(source)), end=min(self.end, len(source)), text=text)

    def shift(self, offset: int, lines: int) -> TextEdit:
        """Return the same change, moved *offset* characters and *lines* lines down."""
        return TextEdit(self.start + offset, self.end + offset, self.text, self.operator, self.prior, self.line + lines)
