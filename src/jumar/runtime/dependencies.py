"""Dependencies of a run: everything that does I/O, passed in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import anyio
import msgspec

from jumar.core.gate.write_rules import WriteRules
from jumar.core.run.strategy import Strategy
from jumar.core.state.budget import Cost
from jumar.ports import Commands, Host, Ledger, Model, Site, Verifier
from jumar.workspace.workspace import Workspace


class NoLedger:
    """Ledger that shares no budget: the run's own budget is the only limit."""

    def reserve(self, seq: int, worst: Cost) -> str:  # noqa: ARG002  the port's signature
        """Admit every call."""
        return ""

    def settle(self, seq: int, cost: Cost) -> None:
        """Ignore the cost: no budget is shared."""

    def seconds_left(self) -> float | None:
        """Return None: there is no cap."""
        return None


async def skip_pause(_seconds: float) -> None:
    """Skip the pause: a file that answers has no capacity to wait for."""


class RunDependencies(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of one run."""

    workspace: Workspace
    verifier: Verifier
    route: Callable[[str], Model]
    """Tier -> the model that answers it."""
    agent: Strategy
    guard: WriteRules
    clock: Callable[[], float]
    ledger: Ledger = NoLedger()
    secrets: tuple[str, ...] = ()
    """Keys: struck out of whatever a model is shown or asks for, wherever it comes from."""
    commands: Commands | None = None
    """Runner of the model's commands; None if it may run no commands."""
    host: Host | None = None
    """Source of the actions, if not a model of ours."""
    sites: Callable[[str, bytes], Sequence[Site]] = lambda _path, _source: ()
    """The tests in a test file, by the runner that judges."""
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
