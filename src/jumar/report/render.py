"""Renders a report as one HTML page that needs nothing else: no network, no file, and no script to be read."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from shlex import quote

import msgspec
from jinja2 import BaseLoader, Environment, StrictUndefined

from jumar import __version__
from jumar.errors import JumarError
from jumar.report.build_report import Report
from jumar.report.curve import HEIGHT, WIDTH, draw_curve
from jumar.report.read_change import Change, read_change, show_controls
from jumar.report.read_run import RunReport
from jumar.report.summary import format_seconds

ALL_CHANGES = 6_000_000
"""Characters of changes on one page: those of the best run of each task come first."""

POLICY = "default-src 'none'; style-src '{style}'; script-src '{script}'; img-src data:; base-uri 'none'"
"""Content Security Policy: nothing is loaded or run but the page's own style and script, whatever a run wrote."""

PARTS = files("jumar.report") / "page"
"""The template, the style and the script."""


class RunChange(msgspec.Struct, frozen=True):
    """Change of a run as the page shows it."""

    change: Change | None = None
    same_as: str = ""
    """Name of the run that has the same change, and shows it; empty: none."""
    same_folder: str = ""
    """Directory of that run."""
    left_out: bool = False
    """True if there is no room for it."""
    unreadable: str = ""
    """Sentence that says why it cannot be shown; empty: it can."""


def render_page(report: Report) -> str:
    """Return the page that shows *report*."""
    style, script = read_part("page.css"), read_part("page.js")
    return build_environment().from_string(read_part("page.html.j2")).render(
        report=report,
        style=style,
        script=script,
        policy=POLICY.format(style=hash_text(style), script=hash_text(script)),
        made=time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(report.made)),
        version=__version__,
        changes=dict(_choose_changes(report)),
        anchors={run.folder: f"run-{number}" for number, run in enumerate(_list_runs(report), 1)},
        draw_curve=draw_curve,
        width=WIDTH,
        height=HEIGHT,
    )  # fmt: skip


def build_environment() -> Environment:
    """Return the environment of the templates: every value is escaped, and none may be missing."""
    environment = Environment(
        loader=BaseLoader(), autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    environment.filters |= {"seconds": format_seconds, "share": _format_share, "plain": show_controls, "quoted": quote}
    return environment


def read_part(name: str) -> str:
    """Return the text of the template, style or script *name*."""
    return (PARTS / name).read_text(encoding="utf-8")


def hash_text(text: str) -> str:
    """Return *text* as a source of a Content Security Policy."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _format_share(share: float) -> str:
    return f"{share:.1%}"


def _list_runs(report: Report) -> list[RunReport]:
    return [run for task in report.tasks for run in task.runs]


def _choose_changes(report: Report) -> Iterator[tuple[str, RunChange]]:
    """Yield the change of each run by its directory: one that another run of the task has too is shown once."""
    room = ALL_CHANGES
    shown: dict[tuple[str, str, str], RunReport] = {}
    best = {task.best.folder for task in report.tasks}
    for run in sorted(_list_runs(report), key=lambda run: run.folder not in best):
        same = shown.setdefault((run.task, run.base, run.result.tree), run)
        if same is not run:
            yield run.folder, RunChange(same_as=same.rollout, same_folder=same.folder)
            continue
        try:
            change = read_change(Path(run.folder))
        except JumarError as why:
            yield run.folder, RunChange(unreadable=str(why))
            continue
        size = change.size if change else 0
        yield run.folder, RunChange(change) if size <= room else RunChange(left_out=True)
        room -= min(size, room)
