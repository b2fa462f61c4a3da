"""Worker process of a campaign: works on the rollouts that it is ordered to, several at once.

It ends when its input does: a campaign that was killed leaves nothing at work. Its runs are then halted without a last
verification, and go on from their journals when the campaign does.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterable, Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec

from jumar.campaigns.messages import Order, Report, RolloutBroken, RolloutEnded, RolloutRefused, RolloutStopped
from jumar.campaigns.plan import (
    CORES,
    VERDICTS,
    CampaignPlan,
    Rollout,
    build_task,
    get_options,
    get_run_folder,
    list_rollouts,
    load_plan,
)
from jumar.campaigns.standing import Progress, read_standing
from jumar.core.run.effects import Halt
from jumar.core.state.stop import StopReason
from jumar.errors import BadInput, Infra
from jumar.journal.group_commit import GroupCommit
from jumar.kernel import Kernel
from jumar.runs.judging.shared_judging import CoreLimit, SharedJudging
from jumar.runs.judging.verdict_store import VerdictStore
from jumar.runs.lifecycle import RunEntry, resume_entered, start_entered
from jumar.runs.setup.marks import Trust
from jumar.runs.setup.result import Result
from jumar.runs.setup.shared_ledger import OpenLedger, open_ledger

Tell = Callable[[Report], None]

ORPHANED = "the campaign ended without a word"


class OpenRollout(NamedTuple):
    """A rollout that this process works on now."""

    scope: anyio.CancelScope
    kernels: list[Kernel]
    """Its kernel, once there is one."""


class WorkerParts(NamedTuple):
    """Parts with which a worker works on rollouts."""

    plan: CampaignPlan
    folder: Path
    """Of the campaign: its ledger lies there, and tasks are kept out of it."""
    place: Path
    """The folder in which `runs/` lies: the campaign's, or one on this machine."""
    judging: SharedJudging
    open_ledger: OpenLedger = open_ledger


def load_parts(folder: Path, trust: Trust, cores: int) -> WorkerParts:
    """Return the parts of a worker on the machine of the campaign in *folder*.

    All its workers together judge at most *cores* runs at once.

    Raises:
        BadInput: if the plan cannot be read or is not believed.
        Infra: if the store of verdicts cannot be used.
    """
    plan = load_plan(folder, trust)
    store = VerdictStore.open(folder / VERDICTS) if plan.shared_verdicts else None
    return WorkerParts(plan, folder, folder, SharedJudging(CoreLimit(folder / CORES, cores), store))


class Worker:
    """Works on rollouts of a campaign, with *parts*, and hands its reports to *tell*."""

    def __init__(self, parts: WorkerParts, trust: Trust, tell: Tell) -> None:
        self._parts, self._trust, self._tell = parts, trust, tell
        self._rollouts = {rollout.name: rollout for rollout in list_rollouts(parts.plan)}
        self._open: dict[str, OpenRollout] = {}
        self._stop: Halt | None = None
        self._commits = GroupCommit()

    async def serve(self, orders: AsyncIterable[bytes]) -> None:
        """Carry out *orders*, one in a line, until there are no more; then halt the runs that are not over."""
        async with anyio.create_task_group() as tasks:
            async for line in orders:
                order = msgspec.json.decode(line, type=Order)
                if order.stop:
                    self._halt(Halt(StopReason.INTERRUPTED, order.stop))
                else:
                    tasks.start_soon(self._work, self._rollouts[order.rollout])
            self._halt(Halt(StopReason.INTERRUPTED, ORPHANED, unverifiable=True))

    def _halt(self, why: Halt) -> None:
        self._stop = why
        for rollout in self._open.values():
            for kernel in rollout.kernels:
                kernel.halt(why)
            if not rollout.kernels:
                rollout.scope.cancel()

    async def _work(self, rollout: Rollout) -> None:
        """Work on *rollout* and report its end."""
        if self._stop is not None:
            self._tell(RolloutStopped(rollout.name))
            return
        with anyio.CancelScope() as scope:
            self._open[rollout.name] = OpenRollout(scope, [])
            try:
                result = await self._run(rollout, self._open[rollout.name].kernels)
                standing = read_standing(get_run_folder(self._parts.place, self._parts.plan, rollout))
                self._tell(RolloutEnded(rollout.name, result, standing.cached, standing.limit_seconds))
            except BadInput as error:
                self._tell(RolloutRefused(rollout.name, str(error)))
            except Infra as error:
                self._tell(RolloutBroken(rollout.name, str(error)))
            finally:
                del self._open[rollout.name]
        if scope.cancelled_caught:
            self._tell(RolloutStopped(rollout.name))

    async def _run(self, rollout: Rollout, kernels: list[Kernel]) -> Result:
        """Begin *rollout*, or resume it."""
        parts, environ = self._parts, self._trust.environ

        def begun(kernel: Kernel) -> None:
            kernel.journal.commits = self._commits
            kernels.append(kernel)

        folder = get_run_folder(parts.place, parts.plan, rollout)
        standing = read_standing(folder)
        if standing.progress is Progress.ENDED and standing.result is not None:
            return standing.result
        entry = RunEntry(
            environ,
            get_options(parts.plan, rollout).python,
            name=folder.name,
            judging=parts.judging,
            open_ledger=parts.open_ledger,
        )
        if standing.progress is not Progress.NEW:
            return await resume_entered(self._trust.run(folder), entry, begun=begun)
        await anyio.to_thread.run_sync(partial(shutil.rmtree, folder, ignore_errors=True))
        task = build_task(parts.folder, parts.plan, rollout, environ)
        return await start_entered(task, folder.parent, entry, begun)
