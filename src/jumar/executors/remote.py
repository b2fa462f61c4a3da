"""Ledger and verdicts of a campaign as a rollout on another machine sees them: each call is one to an actor."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from jumar.core.state import events as ev
from jumar.core.state.budget import Cost
from jumar.errors import Infra
from jumar.journal.ledger import compute_bills
from jumar.ports import Verification
from jumar.runs.judging.verdict_store import StoredVerdict


def wait_for(ref: Any) -> Any:
    """Return the value of the Ray object *ref*.

    Raises:
        Infra: if the actor that makes it is gone, or says so.
    """
    import ray  # noqa: PLC0415  it is heavy, and an extra
    from ray.exceptions import RayError, RayTaskError  # noqa: PLC0415  as above

    try:
        return ray.get(ref)
    except RayTaskError as error:
        raise error.cause from None
    except RayError as error:
        raise Infra(f"a service of the campaign on Ray is gone: {get_first_line(error)}") from None


def get_first_line(error: BaseException) -> str:
    """Return the first line of *error*, and the next one if the first only announces it.

    Ray adds its advice in many more.
    """
    first, *rest = str(error).strip().splitlines() or [type(error).__name__]
    return f"{first} {rest[0].strip()}" if first.endswith(":") and rest else first


class RemoteLedger:
    """The campaign's ledger behind the actor *service*, for one *attempt* at a run."""

    def __init__(self, service: Any, attempt: str) -> None:
        self._service, self._attempt = service, attempt

    def open_account(self, run: str, folder: Path) -> RemoteAccount:  # noqa: ARG002  the driver knows where runs lie
        """Return the account of the run named *run*."""
        return RemoteAccount(self._service, run, self._attempt)


class RemoteAccount:
    """Account of one attempt at a run: a `RunAccount`."""

    def __init__(self, service: Any, run: str, attempt: str) -> None:
        self._service, self._run, self._attempt = service, run, attempt

    def reserve(self, seq: int, worst: Cost) -> str:
        """Set *worst* aside; return the name of the cap that refuses it, or empty."""
        refused: str = wait_for(self._service.reserve.remote(self._run, self._attempt, seq, worst))
        return refused

    def settle(self, seq: int, cost: Cost) -> None:
        """Replace the reservation by the cost of the call."""
        wait_for(self._service.settle.remote(self._run, self._attempt, seq, cost))

    def seconds_left(self) -> float | None:
        """Return the seconds until the cap on time is reached; None is no cap."""
        left: float | None = wait_for(self._service.seconds_left.remote())
        return left

    def recover_own(self, entries: Iterable[ev.Entry]) -> None:
        """Settle the run's rows on resume; *entries* is its journal."""
        wait_for(self._service.put_right.remote(self._run, self._attempt, compute_bills(entries)))


class RemoteVerdicts:
    """Verdicts of all runs of a campaign behind the actor *service*; *runs* is where its runs are collected."""

    def __init__(self, service: Any, attempt: str, runs: Path) -> None:
        self._service, self._attempt, self._runs = service, attempt, runs
        self._found: dict[bytes, bytes] = {}

    @asynccontextmanager
    async def ask(self, key: bytes) -> AsyncIterator[StoredVerdict | None]:
        """Yield the verdict on the question *key*, or None. Within the block nobody else works on that question."""
        found = await self._ask(key)
        if found is not None:
            yield msgspec.json.decode(found, type=StoredVerdict)
            return
        try:
            yield None
        finally:  # there is no need to wait: should it get lost, somebody else runs the tests
            self._service.answer.remote(key, self._attempt, self._found.pop(key, None))

    async def _ask(self, key: bytes) -> bytes | None:
        from ray.exceptions import RayError  # noqa: PLC0415  it is heavy, and an extra

        try:
            found: bytes | None = await self._service.ask.remote(key, self._attempt)
        except RayError as error:
            raise Infra(f"the store of verdicts on Ray cannot be asked: {get_first_line(error)}") from None
        return found

    def keep(self, key: bytes, done: Verification, run: Path) -> None:
        """Keep the verdict *done*, made in the run directory *run*, if it says something for sure."""
        self._found[key] = msgspec.json.encode(StoredVerdict(done, str(self._runs / run.name)))
