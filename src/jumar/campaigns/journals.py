"""Reads off the journals of a campaign what its workers cannot tell: what a lost one spent, and what can go on."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from jumar.campaigns.plan import CampaignPlan, Rollout, get_run_folder, list_rollouts
from jumar.campaigns.schedule import OtherEnd, RolloutEnd, Schedule
from jumar.campaigns.standing import Standing, read_standing
from jumar.core.state.stop import EXIT_CODES, StopReason
from jumar.errors import BadInput


def read_standings(folder: Path, plan: CampaignPlan) -> list[tuple[Rollout, Standing]]:
    """Return the rollouts of the campaign in *folder* with their standing.

    Raises:
        BadInput: if a journal is damaged, naming its run.
    """
    return [(rollout, read_standing(get_run_folder(folder, plan, rollout))) for rollout in list_rollouts(plan)]


def list_open_rollouts(folder: Path, plan: CampaignPlan) -> tuple[str, ...]:
    """Return the rollouts that another session of the campaign in *folder* would work on.

    Raises:
        BadInput: as `read_standings`.
    """
    return tuple(iter(Schedule(plan, read_standings(folder, plan)).take, None))


def add_result(end: RolloutEnd, run: Path) -> RolloutEnd:
    """Return *end* with the result that the journal of *run* has, where its worker told none: it has spent, too."""
    if end.stop not in (OtherEnd.INFRA, OtherEnd.INTERRUPTED):
        return end
    with suppress(BadInput):  # it was damaged while the session ran: the end says why it is one
        standing = read_standing(run)
        if standing.result is not None:
            stop = StopReason(end.stop)
            result = replace(standing.result, stop=stop, exit=EXIT_CODES[stop], why=end.why or standing.result.why)
            return replace(end, result=result, cached=standing.cached)
    return end
