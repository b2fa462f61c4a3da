"""Patch output for people: shortened, and in colours on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import click

from jumar.cli.console.output import strip_controls

LINES, LINE_LENGTH = 60, 200
"""Of a patch in a report."""


def can_show_colours(environ: Mapping[str, str]) -> bool:
    """Return whether standard output is a terminal that may show colours."""
    return sys.stdout.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def colour_patch(text: str) -> str:
    """Return the patch *text* in the usual colours."""
    return "\n".join(map(_colour_line, text.split("\n")))


def _colour_line(line: str) -> str:
    if line.startswith(
        ("diff --git ", "+++ ", "--- ", "index ", "new file ", "deleted file ", "old mode ", "new mode ")
    ):
        return click.style(line, bold=True)
    if line.startswith("@@"):
        return click.style(line, fg="cyan")
    if line.startswith("+"):
        return click.style(line, fg="green")
    return click.style(line, fg="red") if line.startswith("-") else line


def shorten_patch(text: str, command: str) -> str:
    """Return the beginning of the patch *text*, without git's own lines, and how *command* shows the rest."""
    lines = [line for line in text.splitlines() if not line.startswith(("diff --git ", "index "))]
    shown = [line if len(line) <= LINE_LENGTH else line[: LINE_LENGTH - 3] + "..." for line in lines[:LINES]]
    if len(lines) > LINES:
        shown.append(f"... {len(lines) - LINES} more lines: {command}")
    return strip_controls("\n".join(shown))
