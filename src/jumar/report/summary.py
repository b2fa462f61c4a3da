"""Shows a report as lines of text."""

from __future__ import annotations

from collections.abc import Iterator

from jumar.core.quoting import make_one_line
from jumar.report.build_report import Report
from jumar.report.statistics import Estimate
from jumar.report.totals import ConfigurationReport, Totals

ATTENTION = 10
"""Lines at most on what a person should look at."""


def format_summary(report: Report) -> Iterator[str]:
    """Yield the report as lines: solved tasks, cost, and the runs that a person should look at."""
    totals = report.totals
    planned = len(report.tasks) + len(report.not_run)
    yield f"{report.solved} of {planned} tasks solved  {totals.green} of {totals.counted} runs green"
    yield from _format_missing(report)
    if totals.runs != totals.counted:
        yield f"not counted, as they say nothing about the agent: {totals.runs - totals.counted} of {totals.runs} runs"
    for part in report.configurations:
        if len(report.configurations) > 1:
            yield part.configuration.label
        yield from _format_configuration(part)
    yield f"ends     {', '.join(f'{count} {stop}' for stop, count in totals.by_stop.items())}"
    yield f"used     {format_use(totals)}"
    for item in report.attention[:ATTENTION]:
        yield f"look at  {item.run}: {make_one_line(item.what, 160)}"
    if len(report.attention) > ATTENTION:
        yield f"         and {len(report.attention) - ATTENTION} more"
    for sentence in report.damaged:
        yield f"damaged  {make_one_line(sentence, 200)}"
    for campaign in report.campaigns:
        if campaign.resume:
            yield f"go on    {campaign.resume}"


def _format_missing(report: Report) -> Iterator[str]:
    if report.not_run:
        yield f"no run   {len(report.not_run)} of these tasks: {make_one_line(', '.join(report.not_run), 160)}"
    for campaign in report.campaigns:
        if campaign.missing:
            some = f"{len(campaign.missing)} of {campaign.rollouts} rollouts (not begun, refused, or left out)"
            yield f"no run   {some}: {make_one_line(', '.join(campaign.missing), 120)}"


def _format_configuration(part: ConfigurationReport) -> Iterator[str]:
    for k, estimate in part.pass_at.items():
        yield f"pass@{k:<3} {format_estimate(estimate)}"
    if part.usd:
        per = f"${part.usd_per_solved:.4f} per solved task" if part.usd_per_solved is not None else "none is solved"
        yield f"cost     ${part.usd:.4f}, {per}"


def format_estimate(estimate: Estimate) -> str:
    """Return *estimate* as percentages with its interval."""
    tasks = f"{estimate.tasks} task{'s' * (estimate.tasks != 1)}"
    return f"{estimate.value:.1%} (95 % interval {estimate.low:.1%} to {estimate.high:.1%}, {tasks})"


def format_use(totals: Totals) -> str:
    """Return the resources that runs used, in one line."""
    cached = f" ({totals.cached_share:.0%} of the prompts cached)" if totals.cached_share is not None else ""
    return (
        f"${totals.usd:.4f}  {totals.tokens:,} tokens{cached}  {totals.test_runs} test runs, "
        f"{totals.cached_verdicts} verdicts known already  {format_seconds(totals.seconds)} at work in "
        f"{format_seconds(totals.wall_seconds)}"
    )


def format_seconds(seconds: float) -> str:
    """Return a duration for people."""
    if seconds < 60:  # noqa: PLR2004  a minute
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"
