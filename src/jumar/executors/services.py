"""Services that rollouts on other machines share: the campaign's ledger, its verdicts, and the order to stop.

Each becomes one Ray actor, on a machine that sees the campaign's folder: no other process has these files open. All
they know is on the disk after each call, or can be lost: an actor that is started again goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from jumar.core.state.budget import Cost
from jumar.errors import BadInput, Infra
from jumar.journal.ledger_rows import LedgerRows
from jumar.runs.judging.verdict_store import StoredVerdict, VerdictStore

ELSEWHERE = "ray:"
"""Begins the folder of a run, in the ledger, whose journal lies on a node of a cluster; its attempt follows."""


class LedgerService:
    """The ledger in the file *path*, for runs whose journals lie on other machines.

    A run is entered for each attempt at it. Money that an earlier attempt spent, and that the journal which goes on
    does not know, stays spent. Who still works on an earlier attempt, cut off, is refused. Calls that come while the
    disk is at work wait, and are then written in one transaction: it takes no longer than one of them.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._opened: LedgerRows | None = None
        self._attempts: dict[str, str] = {}
        self._waiting: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []

    @property
    def _rows(self) -> LedgerRows:
        """Rows, opened in the thread that uses them, which is not the one that creates the actor."""
        if self._opened is None:
            self._opened = LedgerRows(self._path)
            for run, folder in self._opened.list_folders().items():
                if folder.parts[:1] == (ELSEWHERE,):
                    self._attempts[run] = folder.name
        return self._opened

    async def begin(self, run: str, attempt: str, kept: Collection[int]) -> None:
        """Enter *run* for a new *attempt*, whose journal has the calls *kept*."""
        await self._write(partial(self._begin, run, attempt, kept))

    def _begin(self, run: str, attempt: str, kept: Collection[int]) -> None:
        folder, rows = Path(ELSEWHERE, attempt), self._rows
        if rows.enter(run, folder) != folder:
            rows.move(run, folder)
            rows.write_off(run, kept)
        self._attempts[run] = attempt

    async def reserve(self, run: str, attempt: str, seq: int, worst: Cost) -> str:
        """Set *worst* aside for a call; return the name of the cap that refuses it, or empty."""
        refused: str = await self._write(lambda: self._check(run, attempt).reserve(run, seq, worst))
        return refused

    async def settle(self, run: str, attempt: str, seq: int, cost: Cost) -> None:
        """Replace the reservation by the cost of the call."""
        await self._write(lambda: self._check(run, attempt).settle(run, {seq: cost}))

    async def put_right(self, run: str, attempt: str, bills: Mapping[int, Cost]) -> None:
        """Settle *bills*, and release the rest that is set aside for *run*."""
        await self._write(lambda: self._check(run, attempt).settle_all(run, bills))

    async def seconds_left(self) -> float | None:
        """Return the seconds until the cap on time is reached; None is no cap."""
        cap = self._rows.caps.seconds
        return None if cap is None else max(0.0, cap - self._rows.sum_worked_seconds())

    async def collect(self, run: str, attempt: str, folder: str, bills: Mapping[int, Cost]) -> None:
        """Record that the journal of *run* lies in *folder* now, and has the calls *bills*."""
        await self._write(lambda: self._collect(run, attempt, Path(folder), bills))

    def _collect(self, run: str, attempt: str, folder: Path, bills: Mapping[int, Cost]) -> None:
        self._check(run, attempt).settle_all(run, bills)
        self._rows.move(run, folder)

    async def close(self) -> None:
        """Close the file."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _check(self, run: str, attempt: str) -> LedgerRows:
        """Return the rows, for an *attempt* that is the last one at *run*."""
        rows = self._rows
        if self._attempts.get(run) != attempt:
            raise Infra(f"the run {run} was begun again elsewhere: this attempt was taken for lost")
        return rows

    async def _write(self, change: Callable[[], Any]) -> Any:
        """Return the result of *change*, once it is on the disk."""
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((change, done))
        if len(self._waiting) == 1:
            await asyncio.sleep(0)  # whoever has come by now is written with this one
            self._flush()
        return await done

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        told: list[tuple[asyncio.Future[Any], Any]] = []
        try:
            with self._rows.transact():
                for change, done in waiting:
                    try:
                        told.append((done, change()))
                    except (Infra, BadInput) as refused:
                        told.append((done, refused))
        except (Infra, BadInput) as fault:  # the disk refused them all
            told = [(done, fault) for _, done in waiting]
        for done, result in told:
            if isinstance(result, Exception) and not done.cancelled():
                done.set_exception(result)
            elif not done.cancelled():
                done.set_result(result)


class Claim(NamedTuple):
    """A question that somebody works on."""

    asker: str
    done: asyncio.Event


class VerdictService:
    """The store of verdicts in the file *path*, for runs on other machines: one works on a question, others wait."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._opened: VerdictStore | None = None
        self._claims: dict[bytes, Claim] = {}

    @property
    def _store(self) -> VerdictStore:
        """Store, opened in the thread that uses it, which is not the one that creates the actor."""
        self._opened = self._opened or VerdictStore.open(self._path)
        return self._opened

    async def ask(self, key: bytes, asker: str) -> bytes | None:
        """Return the verdict on the question *key*, encoded; None: *asker* must find it, others wait."""
        while True:
            if (found := self._store.get(key)) is not None:
                return msgspec.json.encode(found)
            claim = self._claims.setdefault(key, Claim(asker, asyncio.Event()))
            if claim.asker == asker:  # it may ask again, where the answer got lost
                return None
            await claim.done.wait()

    async def answer(self, key: bytes, asker: str, found: bytes | None) -> None:
        """End the work of *asker* on the question *key*, with an encoded `StoredVerdict` or nothing.

        What does not say something for sure is not kept.
        """
        if found is not None:
            verdict = msgspec.json.decode(found, type=StoredVerdict)
            self._store.keep(key, verdict.done, Path(verdict.run))
        self._release(key, asker)

    async def forget(self, asker: str) -> None:
        """Let others work on all questions of *asker*, which is gone."""
        for key in [key for key, claim in self._claims.items() if claim.asker == asker]:
            self._release(key, asker)

    def _release(self, key: bytes, asker: str) -> None:
        claim = self._claims.get(key)
        if claim is not None and claim.asker == asker:
            del self._claims[key]
            claim.done.set()


class StopService:
    """The order to stop, for which all rollouts wait."""

    def __init__(self) -> None:
        self._why = ""
        self._stopped = asyncio.Event()

    async def stop(self, why: str) -> None:
        """Order all rollouts to stop."""
        self._why = why
        self._stopped.set()

    async def wait(self) -> str:
        """Return the reason, once the order is given."""
        await self._stopped.wait()
        return self._why
