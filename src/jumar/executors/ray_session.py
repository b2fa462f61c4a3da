"""Connects a campaign to a Ray cluster: compares the nodes with it, places its services, and disconnects."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from jumar.campaigns.campaign import StartWorker
from jumar.campaigns.plan import LEDGER, PLAN, RUNS, VERDICTS, CampaignPlan
from jumar.errors import BadInput, Infra
from jumar.executors.archives import finish_unpacking
from jumar.executors.builds import NodeBuild, describe_build, explain_skew, make_describe
from jumar.executors.ray_worker import RaySession, RayWorker
from jumar.executors.remote import get_first_line, wait_for
from jumar.executors.rollout_task import ClusterParts, RolloutOrder, run_rollout
from jumar.executors.services import LedgerService, StopService, VerdictService
from jumar.executors.uploads import check_url
from jumar.models.wire.providers import PROVIDERS

ROLLOUTS_PER_CORE = 4
"""Rollouts that Ray may place on one core: most of the time they wait for a model."""

CALLS_AT_ONCE = 100_000
"""Calls that an actor may have open: each rollout has one that waits for the order to stop."""

CONNECT_SECONDS = 10.0
"""Seconds in which a cluster that is named by its address takes a connection."""


CONNECT_ATTEMPTS = 3
"""Attempts at a cluster that takes a connection and then gives it up."""


class RaySettings(NamedTuple):
    """Settings of one session of a campaign on Ray."""

    plan: CampaignPlan
    folder: Path
    environ: Mapping[str, str]
    tell: Callable[[str], None]
    address: str | None = None
    """Address for `ray.init`; None: the cluster that RAY_ADDRESS names or that runs here, else a new one here."""
    cores: int | None = None
    collect: str = ""


@contextmanager
def open_ray(settings: RaySettings) -> Iterator[StartWorker]:
    """Yield the function that starts a campaign's one worker on a Ray cluster; the cluster is left as it was.

    Raises:
        BadInput: if the cluster is not there, or a node has another Python or jumar.
    """
    import ray  # noqa: PLC0415  it is heavy, and an extra

    if settings.collect:
        check_url(settings.collect)
    finish_unpacking(settings.folder / RUNS)
    _connect(settings.address)
    with ExitStack() as held:
        held.callback(ray.shutdown)
        session = _begin_session(settings, _check_nodes(settings.folder), held)

        async def start(_number: int) -> RayWorker:
            return RayWorker(session)

        yield start


def _connect(address: str | None) -> None:
    import ray  # noqa: PLC0415  it is heavy, and an extra

    try:
        if found := re.fullmatch(r"(?:ray://)?(.+):(\d+)", address or ""):  # Ray itself tries for minutes
            socket.create_connection((found[1], int(found[2])), CONNECT_SECONDS).close()
        for attempt in range(1, CONNECT_ATTEMPTS + 1):
            try:
                ray.init(address, log_to_driver=False, logging_level="error")
            except ConnectionAbortedError:  # a busy head could not start the process that serves a client in time
                if attempt == CONNECT_ATTEMPTS:
                    raise
            else:
                return
    except Exception as error:  # noqa: BLE001  Ray has many, some of no class of their own
        where = f"--ray-address {address}" if address else "Ray"
        raise BadInput(f"{where} cannot be connected to: {get_first_line(error)}") from None


def _check_nodes(folder: Path) -> str:
    """Return the node for the campaign's services: one that sees its *folder*, this one if possible.

    Raises:
        BadInput: if a node has another Python or jumar, or none sees the folder.
    """
    import ray  # noqa: PLC0415  it is heavy, and an extra
    from ray.exceptions import RayError  # noqa: PLC0415  as above

    ours, plan = describe_build(), folder / PLAN
    describe = ray.remote(num_cpus=0, max_retries=3)(make_describe())
    expected = sha256(plan.read_bytes()).hexdigest()
    alive = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    asked = {
        node: describe.options(scheduling_strategy=_build_affinity(node)).remote(str(plan), expected) for node in alive
    }
    seeing = []
    for node, ref in asked.items():
        try:
            build = NodeBuild(*ray.get(ref))
        except RayError:  # it is gone meanwhile: nothing will run there
            continue
        if skew := explain_skew(ours, build):
            raise BadInput(skew)
        seeing += [node] if build.sees else []
    own = "" if ray.util.client.ray.is_connected() else ray.get_runtime_context().get_node_id()
    if not seeing:
        raise BadInput(
            f"no node of the Ray cluster sees {folder}, where the ledger lies; start `jumar batch` on a node of it, "
            "or let --campaign name a folder that they share"
        )
    return own if own in seeing else seeing[0]


def _build_affinity(node: str) -> Any:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: PLC0415  it is an extra

    return NodeAffinitySchedulingStrategy(node, soft=False)


def _close(ledger: Any) -> None:
    with suppress(Infra):  # all it knows is on the disk
        wait_for(ledger.close.remote())


def _begin_session(settings: RaySettings, node: str, held: ExitStack) -> RaySession:
    """Return a session whose services run on *node*; *held* ends them."""
    import ray  # noqa: PLC0415  it is heavy, and an extra

    plan, folder = settings.plan, settings.folder
    usual = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": -1, "scheduling_strategy": _build_affinity(node)}
    many = {**usual, "max_concurrency": CALLS_AT_ONCE}
    ledger = ray.remote(LedgerService).options(**many).remote(str(folder / LEDGER))
    held.callback(_close, ledger)
    shared = plan.shared_verdicts
    verdicts = ray.remote(VerdictService).options(**many).remote(str(folder / VERDICTS)) if shared else None
    stop = ray.remote(StopService).options(**many).remote()
    keys = {name: settings.environ[name] for one in PROVIDERS for name in one.keys if name in settings.environ}
    parts = ClusterParts(
        folder=str(folder),
        current=str(Path.cwd()),
        build=describe_build(),
        keys=keys,
        cores=settings.cores,
        collect=settings.collect.rstrip("/"),
        ledger=ledger,
        verdicts=verdicts,
        stop=stop,
    )
    task = ray.remote(num_cpus=1 / ROLLOUTS_PER_CORE, max_retries=0, scheduling_strategy="SPREAD")(run_rollout)
    sent = ray.put(parts)

    def submit(order: RolloutOrder) -> Any:
        return task.remote(sent, order)

    def cancel(ref: Any) -> None:
        ray.cancel(ref, force=True)

    return RaySession(plan, folder, settings.environ, settings.tell, submit, cancel, ledger, verdicts, stop)
