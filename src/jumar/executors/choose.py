"""Chooses where the rollouts of a campaign run: in processes of this machine, or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from importlib.util import find_spec
from typing import NamedTuple

from jumar.campaigns.campaign import StartWorker
from jumar.campaigns.plan import LEDGER, RUNS, CampaignPlan
from jumar.campaigns.worker_process import WorkerProcess, WorkerSettings
from jumar.errors import BadInput
from jumar.executors.archives import finish_unpacking
from jumar.executors.services import ELSEWHERE
from jumar.journal.ledger import compute_bills
from jumar.journal.ledger_rows import LedgerRows
from jumar.journal.writer import EVENTS, read_journal


class Executor(StrEnum):
    """Place where the rollouts of a campaign run."""

    LOCAL = "local"
    RAY = "ray"


class ExecutorChoice(NamedTuple):
    """The person's choice of the place where the rollouts of one session run."""

    executor: Executor = Executor.LOCAL
    ray_address: str | None = None
    collect: str = ""
    cores: int | None = None
    """Runs judged at once on one machine; None: as many as it has cores."""
    processes: int | None = None

    def check(self) -> None:
        """Refuse options that the chosen executor does not have, and Ray if it is not installed.

        Raises:
            BadInput: naming one.
        """
        if self.executor == Executor.LOCAL and (self.ray_address or self.collect):
            option = "--ray-address" if self.ray_address else "--collect"
            raise BadInput(f"{option} is an option of --executor ray; add that, or leave it out")
        if self.executor == Executor.RAY and self.processes is not None:
            raise BadInput("--processes is an option of --executor local: Ray has a process for each rollout")
        if self.executor == Executor.RAY and find_spec("ray") is None:
            raise BadInput("--executor ray needs Ray; install jumar with its extra: pip install 'jumar[ray]'")


@contextmanager
def open_executor(
    choice: ExecutorChoice, plan: CampaignPlan, settings: WorkerSettings, tell: Callable[[str], None]
) -> Iterator[StartWorker]:
    """Yield the function that starts the workers of a session.

    Raises:
        BadInput: if Ray or its cluster is not there, or other code runs there.
    """
    if choice.executor == Executor.LOCAL:
        finish_unpacking(settings.folder / RUNS)
        write_off_lost_attempts(settings)
        yield partial(WorkerProcess.start, settings)
        return
    from jumar.executors.ray_session import RaySettings, open_ray  # noqa: PLC0415  only where it is used

    ray = RaySettings(plan, settings.folder, settings.environ, tell, choice.ray_address, choice.cores, choice.collect)
    with open_ray(ray) as start:
        yield start


def write_off_lost_attempts(settings: WorkerSettings) -> None:
    """Count as spent the cost of attempts on a cluster whose journals were lost: their runs continue.

    Raises:
        Infra: if the ledger cannot be used.
    """
    rows = LedgerRows(settings.folder / LEDGER)
    try:
        for run, folder in rows.list_folders().items():
            if folder.parts[:1] == (ELSEWHERE,):
                here = settings.folder / RUNS / run
                known = read_journal(here) if (here / EVENTS).is_file() else ()
                rows.write_off(run, compute_bills(known))
    finally:
        rows.close()
