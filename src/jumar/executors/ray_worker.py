"""Gives the rollouts of a campaign to a Ray cluster, one task each, and collects their results."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import msgspec
from msgspec.structs import replace

from jumar.campaigns.messages import Report, RolloutBroken, RolloutEnded, RolloutLost
from jumar.campaigns.plan import CampaignPlan, get_run_folder, list_rollouts
from jumar.campaigns.worker_process import OUTPUT
from jumar.errors import BadInput, Infra
from jumar.executors.archives import pack_run, unpack_run
from jumar.executors.remote import get_first_line
from jumar.executors.rollout_task import RolloutOrder, RolloutReturn
from jumar.journal.ledger import compute_bills
from jumar.journal.writer import EVENTS, read_journal
from jumar.runs.setup.marks import mark
from jumar.workspace.files.disk_faults import explain_disk_faults
from jumar.workspace.files.safe_paths import replace_file

LOG = "ray.txt"
"""In the campaign's folder of output: what Ray says of tasks that died."""


class RaySession(NamedTuple):
    """A connected cluster, and the services there of one session of a campaign."""

    plan: CampaignPlan
    folder: Path
    environ: Mapping[str, str]
    tell: Callable[[str], None]
    submit: Callable[[RolloutOrder], Any]
    """Begins a task; the Ray object of its `RolloutReturn`."""
    cancel: Callable[[Any], None]
    """Kills a task."""
    ledger: Any
    verdicts: Any
    stop: Any
    """Actors."""


class Attempt(NamedTuple):
    """An attempt at a rollout that a task works on."""

    rollout: str
    token: str
    ref: Any


class RayWorker:
    """Worker that represents a whole cluster."""

    def __init__(self, session: RaySession) -> None:
        self._session = session
        self._rollouts = {rollout.name: rollout for rollout in list_rollouts(session.plan)}
        self._attempts: dict[str, Attempt] = {}
        self._ended: asyncio.Queue[Attempt | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()

    @property
    def active(self) -> AbstractSet[str]:
        """Rollouts that tasks work on."""
        return self._attempts.keys()

    def _find_folder(self, rollout: str) -> Path:
        return get_run_folder(self._session.folder, self._session.plan, self._rollouts[rollout])

    async def give(self, rollout: str) -> None:
        """Begin a task that works on *rollout*, from its state in the campaign's folder."""
        folder, token = self._find_folder(rollout), secrets.token_hex(6)
        plan = msgspec.json.encode(replace(self._session.plan, tasks=(self._rollouts[rollout].task,)))
        bills = compute_bills(read_journal(folder)) if (folder / EVENTS).is_file() else {}
        begin = self._session.ledger.begin.remote(folder.name, token, tuple(bills))
        archive = await anyio.to_thread.run_sync(pack_run, folder) if (folder / EVENTS).is_file() else None
        await _wait(begin)
        ref = self._session.submit(RolloutOrder(rollout, token, plan, archive))
        attempt = self._attempts[rollout] = Attempt(rollout, token, ref)
        ref.future().add_done_callback(partial(self._queue_end, attempt))

    def _queue_end(self, attempt: Attempt, _future: object) -> None:
        """Record, in a thread of Ray's, that *attempt* has ended."""
        self._loop.call_soon_threadsafe(self._ended.put_nowait, attempt)

    async def stop(self, why: str) -> None:
        """Order all tasks to halt their runs."""
        await _wait(self._session.stop.stop.remote(why))

    async def dismiss(self) -> None:
        """End `reports`."""
        self._ended.put_nowait(None)

    async def reports(self) -> AsyncIterator[Report]:
        """Yield the report of each attempt that ends, until it is dismissed."""
        while (attempt := await self._ended.get()) is not None:
            report = await self._collect(attempt)
            self._session.verdicts and self._session.verdicts.forget.remote(attempt.token)
            del self._attempts[attempt.rollout]
            yield report

    def kill(self) -> None:
        """Kill all tasks; their runs can be resumed from the collected state."""
        for attempt in self._attempts.values():
            self._session.cancel(attempt.ref)

    async def _collect(self, attempt: Attempt) -> Report:
        """Return the report of *attempt*, and store its results in the campaign's folder."""
        from ray.exceptions import RayError  # noqa: PLC0415  it is heavy, and an extra

        try:
            done: RolloutReturn = await attempt.ref
        except RayError as error:
            self._log_output(attempt, str(error))
            return RolloutLost(attempt.rollout)
        if done.not_stored:
            self._session.tell(f"{attempt.rollout}: not stored under the URL: {done.not_stored}")
        report: Report = msgspec.json.decode(done.report, type=Report)
        try:
            if done.archive is None:
                return report
            folder = await anyio.to_thread.run_sync(partial(self._store, attempt, done.archive))
            bills = compute_bills(read_journal(folder))
            await _wait(self._session.ledger.collect.remote(folder.name, attempt.token, str(folder), bills))
        except (Infra, BadInput) as error:
            return RolloutBroken(attempt.rollout, str(error))
        return _settle(report, folder)

    def _store(self, attempt: Attempt, archive: bytes) -> Path:
        known, environ = self._find_folder(attempt.rollout), self._session.environ
        folder = unpack_run(archive, known.parent, known.name)
        with explain_disk_faults(f"cannot write to {folder}"), (folder / EVENTS).open("rb") as journal:
            mark(folder, journal.readline().rstrip(b"\n"), environ)
        return folder

    def _log_output(self, attempt: Attempt, said: str) -> None:
        log = self._session.folder / OUTPUT / LOG
        with explain_disk_faults(f"cannot write to {log}"), log.open("a", encoding="utf-8") as file:
            file.write(f"{attempt.rollout}, attempt {attempt.token}: {said}\n\n")


def _settle(report: Report, folder: Path) -> Report:
    """Return *report* with a result that names the journal where it lies now, as does the one in *folder*."""
    if not isinstance(report, RolloutEnded):
        return report
    result = replace(report.result, events=str(folder / EVENTS))
    with explain_disk_faults(f"cannot write to {folder}"):
        replace_file(folder / "result.json", msgspec.json.format(msgspec.json.encode(result)) + b"\n")
    return replace(report, result=result)


async def _wait(ref: Any) -> Any:
    """Return the value of the Ray object *ref*.

    Raises:
        Infra: if its actor is gone, or says so.
    """
    from ray.exceptions import RayError, RayTaskError  # noqa: PLC0415  it is heavy, and an extra

    try:
        return await ref
    except RayTaskError as error:
        raise error.cause from None
    except RayError as error:
        raise Infra(f"a service of the campaign on Ray is gone: {get_first_line(error)}") from None
