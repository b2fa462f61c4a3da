"""Works on one rollout as a Ray task: in a folder of its machine, from one archive to the next.

The services of the campaign are actors elsewhere. What dies here is begun again elsewhere, as another attempt.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import msgspec
from anyio.streams.memory import MemoryObjectSendStream

from jumar.campaigns.messages import Order, Report, RolloutBroken
from jumar.campaigns.plan import CORES, RUNS, CampaignPlan, get_run_folder, list_rollouts
from jumar.campaigns.worker import Worker, WorkerParts
from jumar.cli.parameters.environment import read_environment
from jumar.errors import Infra
from jumar.executors.archives import pack_run, unpack_run
from jumar.executors.builds import NodeBuild, describe_build, explain_skew
from jumar.executors.remote import RemoteLedger, RemoteVerdicts
from jumar.executors.scratch import enter_attempt, make_campaign_scratch
from jumar.executors.uploads import upload
from jumar.journal.writer import EVENTS
from jumar.runs.judging.shared_judging import CoreLimit, SharedJudging
from jumar.runs.setup.marks import Trust
from jumar.workspace.files.disk_faults import explain_disk_faults


class ClusterParts(NamedTuple):
    """Parts that all rollouts of a session need, sent to each machine once."""

    folder: str
    """Of the campaign, on the machine that runs it."""
    current: str
    """The current folder there: names of files in the plan are relative to it."""
    build: NodeBuild
    """Python and jumar of the campaign."""
    keys: Mapping[str, str]
    """Variables with keys of providers."""
    cores: int | None
    """Runs judged at once on one machine; None: as many as Ray has cores there."""
    collect: str
    """URL under which archives are stored; empty: nowhere."""
    ledger: Any
    verdicts: Any
    """Actors. None: each run judges for itself."""
    stop: Any


class RolloutOrder(NamedTuple):
    """Order to work on a rollout."""

    rollout: str
    attempt: str
    plan: bytes
    """The plan of the campaign, encoded, with the task of this rollout alone."""
    archive: bytes | None
    """The run directory as an earlier attempt left it; None: there is none."""


class RolloutReturn(NamedTuple):
    """End of an attempt at a rollout."""

    report: bytes
    """The worker's report, encoded."""
    archive: bytes | None = None
    """The run directory; None: there is none."""
    not_stored: str = ""
    """Reason that the archive is not under the URL it was to be stored at; empty: it is."""


def run_rollout(parts: ClusterParts, order: RolloutOrder) -> RolloutReturn:
    """Work on the rollout that *order* names."""
    skew = explain_skew(parts.build, _describe_own())
    if skew:
        return RolloutReturn(msgspec.json.encode(RolloutBroken(order.rollout, skew)))
    try:
        with explain_disk_faults(f"the folder of `jumar batch` is not on the Ray node {platform.node()}"):
            os.chdir(parts.current)
        scratch = make_campaign_scratch(parts.folder)
        with enter_attempt(scratch, order.attempt) as place:
            return _work(parts, order, place, scratch)
    except Infra as error:
        return RolloutReturn(msgspec.json.encode(RolloutBroken(order.rollout, str(error))))


@cache
def _describe_own() -> NodeBuild:
    return describe_build()


def _work(parts: ClusterParts, order: RolloutOrder, place: Path, scratch: Path) -> RolloutReturn:
    plan = msgspec.json.decode(order.plan, type=CampaignPlan)
    rollout = next(rollout for rollout in list_rollouts(plan) if rollout.name == order.rollout)
    run = get_run_folder(place, plan, rollout)
    if order.archive is not None:
        run.parent.mkdir()
        unpack_run(order.archive, run.parent, run.name)
    limit = CoreLimit(*_find_cores(scratch, parts.cores))
    verdicts = RemoteVerdicts(parts.verdicts, order.attempt, Path(parts.folder, RUNS)) if parts.verdicts else None
    ledger = RemoteLedger(parts.ledger, order.attempt)
    worker_parts = WorkerParts(
        plan, Path(parts.folder), place, SharedJudging(limit, verdicts), lambda _path, _caps: nullcontext(ledger)
    )
    report = anyio.run(_serve, worker_parts, parts, order.rollout)
    archive = pack_run(run) if (run / EVENTS).is_file() else None
    not_stored = upload(f"{parts.collect}/{run.name}.tar.gz", archive) if parts.collect and archive else ""
    return RolloutReturn(msgspec.json.encode(report), archive, not_stored)


def _find_cores(scratch: Path, chosen: int | None) -> tuple[Path, int]:
    """Return the file with a byte for each core of this node, and their number."""
    import ray  # noqa: PLC0415  it is heavy, and an extra

    own = ray.get_runtime_context().get_node_id()
    known = next((node["Resources"].get("CPU", 1) for node in ray.nodes() if node["NodeID"] == own), 1)
    return scratch / f"{own}-{CORES}", chosen or max(1, int(known))


async def _serve(worker_parts: WorkerParts, parts: ClusterParts, rollout: str) -> Report:
    """Let a worker work on *rollout*, until it reports or all are to stop."""
    orders, received = anyio.create_memory_object_stream[bytes](2)
    reports: list[Report] = []

    def hear(report: Report) -> None:
        reports.append(report)
        orders.close()

    trust = Trust({**read_environment(), **parts.keys}, anyone=True)
    worker = Worker(worker_parts, trust, hear)
    orders.send_nowait(msgspec.json.encode(Order(rollout=rollout)))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_pass_on_stop, parts.stop, orders)
        await worker.serve(received)
        tasks.cancel_scope.cancel()
    return reports[0]


async def _pass_on_stop(stop: Any, orders: MemoryObjectSendStream[bytes]) -> None:
    """Pass the order to stop on; end if nobody is left who could give it."""
    from ray.exceptions import RayError  # noqa: PLC0415  it is heavy, and an extra

    try:
        why = await stop.wait.remote()
        orders.send_nowait(msgspec.json.encode(Order(stop=why)))
    except RayError:
        orders.close()
    except anyio.ClosedResourceError:  # it has ended meanwhile
        return
