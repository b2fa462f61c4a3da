"""Runs one session of a campaign in front of a person: its progress, its signals, its deadline."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from jumar.cli.console.output import Console
from jumar.errors import BadInput, find_cause
from jumar.runs.setup.marks import Trust

if TYPE_CHECKING:
    from jumar.campaigns.campaign import Campaign
    from jumar.campaigns.summary import CampaignSummary

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
DAY_SECONDS = 86_400


STOPPING = "stopping: what is at work is halted and keeps its best tree (press Ctrl-C again to kill it)"
KILLING = "stopping now: what is at work goes on from its journal"


def run_session(voice: Console, folder: Path, trust: Trust, lock: int, chosen: dict[str, Any]) -> CampaignSummary:
    """Run one session of the campaign in *folder*, and return the summary of the campaign so far.

    *chosen* has `concurrency`, `cores` and `processes`, the `deadline` as a time, and `where` runs run; *lock* is that
    of the folder.
    """
    from jumar.campaigns.campaign import Campaign, CampaignLimits  # noqa: PLC0415  it is slow to import
    from jumar.campaigns.plan import load_plan  # noqa: PLC0415  as above
    from jumar.campaigns.summary import format_table, summarise  # noqa: PLC0415  as above
    from jumar.campaigns.worker_process import WorkerSettings  # noqa: PLC0415  as above
    from jumar.cli.console.campaign_status import CampaignStatus  # noqa: PLC0415  as above
    from jumar.cli.console.progress import ProgressDisplay  # noqa: PLC0415  as above
    from jumar.executors.choose import open_executor  # noqa: PLC0415  as above

    plan = load_plan(folder, trust)
    cores = chosen["cores"] or len(os.sched_getaffinity(0))
    processes = min(chosen["processes"] or cores, chosen["concurrency"], len(plan.tasks) * plan.rollouts)
    workers = 1 if chosen["where"].executor == "ray" else processes
    limits = CampaignLimits(chosen["concurrency"], workers, chosen["deadline"])
    settings = WorkerSettings(folder, trust.environ, cores, lock, trust=trust.anyone)
    with open_executor(chosen["where"], plan, settings, voice.note) as start:
        campaign = Campaign(plan, folder, start, limits, voice.note)
        with ProgressDisplay(voice, status=CampaignStatus(look=lambda: campaign.progress)):
            ends = anyio.run(_attend, campaign, voice)
    for line in format_table(ends):
        voice.say(line)
    return summarise(str(folder), ends, campaign.stopped)


async def _attend(campaign: Campaign, voice: Console) -> Any:
    """Run *campaign* until it has ended; a signal stops it, a second one kills its workers."""
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_listen, campaign, voice)
            ends = await campaign.run()
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:  # a person reads one sentence, not the groups that it came through
        raise find_cause(group) from group
    return ends


async def _listen(campaign: Campaign, voice: Console) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            voice.note(KILLING if campaign.stopped else STOPPING)
            await campaign.stop("stopped by a signal")


def read_deadline(text: str, now: float) -> float:
    """Return the time in seconds since 1970 in *text*: a duration (30s, 90m, 8h, 1d), or the next HH:MM.

    Raises:
        BadInput: if it is neither.
    """
    if found := re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text.strip()):
        return now + float(found[1]) * SECONDS[found[2]]
    if found := re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)", text.strip()):
        today = time.localtime(now)
        at = time.mktime((*today[:3], int(found[1]), int(found[2]), 0, 0, 0, -1))
        return at if at > now else at + DAY_SECONDS
    raise BadInput(f"--deadline {text} is no time: say 90m, 8h, 1d, or a time of day such as 07:30")
