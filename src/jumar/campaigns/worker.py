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
    get_run_folder,
    list_rollouts,
    load_plan,
)
from jumar.campaigns.standing import Progress, read_standing
from jumar.core.run.effects import Halt
from jumar.core.state.stop import StopReason
from jumar.errors import BadInput, Infra
from jumar.kernel import Kernel
from jumar.runs.judging.shared_judging import CoreLimit, SharedJudging
from jumar.runs.judging.verdict_store import VerdictStore
from jumar.runs.lifecycle import RunEntry, resume_entered, start_entered
from jumar.runs.setup.marks import Trust
from jumar.runs.setup.result import Result

Tell = Callable[[Report], None]

ORPHANED = "the campaign ended without a word"


class OpenRollout(NamedTuple):
    """A rollout that this process works on now."""

    scope: anyio.CancelScope
    kernels: list[Kernel]
    """Its kernel, once there is one."""


class Worker:
    """Works on rollouts of the campaign in *folder*, of which all workers together judge at most *cores* at once."""

    def __init__(self, folder: Path, trust: Trust, cores: int, tell: Tell) -> None:
        self._folder, self._trust, self._tell = folder, trust, tell
        self._plan: CampaignPlan = load_plan(folder, trust)
        self._rollouts = {rollout.name: rollout for rollout in list_rollouts(self._plan)}
        store = VerdictStore.open(folder / VERDICTS) if self._plan.shared_verdicts else None
        self._judging = SharedJudging(CoreLimit(folder / CORES, cores), store)
        self._open: dict[str, OpenRollout] = {}
        self._stop: Halt | None = None

    async def serve(self, orders: AsyncIterable[bytes]) -> None:
        """Carry out *orders*, one in a line, until there are no more; then halt what is still at work."""
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
        """Work on *rollout* and report how that ended."""
        if self._stop is not None:
            self._tell(RolloutStopped(rollout.name))
            return
        with anyio.CancelScope() as scope:
            self._open[rollout.name] = OpenRollout(scope, [])
            try:
                result = await self._run(rollout, self._open[rollout.name].kernels)
                cached = read_standing(get_run_folder(self._folder, self._plan, rollout)).cached
                self._tell(RolloutEnded(rollout.name, result, cached))
            except BadInput as error:
                self._tell(RolloutRefused(rollout.name, str(error)))
            except Infra as error:
                self._tell(RolloutBroken(rollout.name, str(error)))
            finally:
                del self._open[rollout.name]
        if scope.cancelled_caught:
            self._tell(RolloutStopped(rollout.name))

    async def _run(self, rollout: Rollout, kernels: list[Kernel]) -> Result:
        """Begin *rollout*, or go on with it."""
        folder, environ = get_run_folder(self._folder, self._plan, rollout), self._trust.environ
        standing = read_standing(folder)
        if standing.progress is Progress.ENDED and standing.result is not None:
            return standing.result
        entry = RunEntry(environ, self._plan.options.python, name=folder.name, judging=self._judging)
        if standing.progress is not Progress.NEW:
            return await resume_entered(self._trust.run(folder), entry, begun=kernels.append)
        await anyio.to_thread.run_sync(partial(shutil.rmtree, folder, ignore_errors=True))
        task = build_task(self._folder, self._plan, rollout, environ)
        return await start_entered(task, folder.parent, entry, kernels.append)
