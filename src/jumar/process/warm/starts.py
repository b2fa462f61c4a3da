"""The warm starts of one run: forks what can be forked, counts how each process was started, can be switched off."""

from __future__ import annotations

import atexit
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from jumar.ports import Invocation
from jumar.process.launch import Confinement, Fork, Launch, Role, Supervisor
from jumar.process.warm.pool import WarmPool
from jumar.process.warm.zygote import Expected, Zygote
from jumar.sandbox.request import Wrapped

WARM = "warm"

NO_WARM = "JUMAR_NO_WARM"
"""Variable of the environment with which no process is forked: each is started."""

COMPARED = 50
"""Every so many verifications whose processes were forked, one is repeated with processes that are started."""


def get_pool() -> WarmPool:
    """Return the zygotes that all runs in this process share."""
    return _get_pool_of(os.getpid())


@cache
def _get_pool_of(_process: int) -> WarmPool:
    """Return the pool of a process: a fork of jumar must not talk to the zygotes of the first one."""
    pool = WarmPool()
    atexit.register(pool.close)
    return pool


class WarmStarts:
    """Warm starts of one run; see `jumar.process.launch.WarmStart`."""

    def __init__(self, pool: WarmPool | None = None, compared: int = COMPARED) -> None:
        self.counts: Counter[str] = Counter()
        """Reason -> how many processes were started for it and not forked; `WARM` -> how many were forked."""
        self.installed: set[str] = set()
        """Installed modules that the untouched tree and its tests imported."""
        self.read_tests: Callable[[], Mapping[str, bytes]] = dict
        """Returns the test files of the untouched tree, by their hashes: they are rewritten once, for first runs."""
        self.off = ""
        """Reason that nothing is forked any more; empty: it is."""
        self._pool = pool or get_pool()
        self._every, self._compared = compared, 0

    @property
    def is_comparison_due(self) -> bool:
        """Return whether the newest verification should be repeated with processes that are started."""
        due = not self.off and self.counts[WARM] // self._every > self._compared
        self._compared = self.counts[WARM] // self._every
        return due

    def begin(self, wanted: Sequence[tuple[Invocation, Confinement]], *, ahead: bool = False) -> None:
        """Start zygotes for what confirms a green; see `WarmPool.begin`."""
        if not self.off:
            self._pool.begin(wanted, ahead=ahead)

    def expect(self, wanted: Sequence[tuple[Invocation, Confinement]]) -> None:
        """Have processes made ready for the sandbox of what confirms a green, where there are zygotes."""
        if not self.off:
            for one in wanted:
                self._pool.expect(*one)

    async def prepare(self, invocation: Invocation, confinement: Confinement) -> None:
        """Wait for a zygote of *invocation*, if it can have one."""
        if not self.off:
            await self._pool.prepare(invocation, confinement)

    def find(self, invocation: Invocation, confinement: Confinement, wrapped: Wrapped) -> Fork | None:
        """Return what forks *invocation*; None: it is started, and the reason is counted."""
        found = self.off or self._pool.find(invocation, confinement, wrapped)
        if isinstance(found, str):
            self.counts[found] += 1
            return None
        # In a confirmation, a test that was falsified would come later than one that was not.
        confirms = confinement.role in (Role.CONFIRMING, Role.EXPECTED)
        return _Request(*found, self.counts, dict if confirms else self.read_tests)

    def learn(self, invocation: Invocation, confinement: Confinement, modules: Sequence[str]) -> None:
        """Record the modules that a process imported, or is going to."""
        self.installed.update(modules)
        if not self.off:
            self._pool.learn(invocation, confinement, modules)

    def give_up(self, reason: str) -> None:
        """Fork nothing any more in this run, for *reason*."""
        self.off = self.off or reason


class _Request:
    """A request that a zygote is asked; see `jumar.process.launch.Fork`."""

    def __init__(
        self, zygote: Zygote, expected: Expected, counts: Counter[str], read_tests: Callable[[], Mapping[str, bytes]]
    ) -> None:
        self._zygote, self._expected, self._counts, self._read_tests = zygote, expected, counts, read_tests

    @property
    def nonce(self) -> str:
        """Return the mark of what it starts."""
        return self._expected.nonce

    def fork(self, launch: Launch) -> Supervisor | None:
        """Let it carry out *launch*; None: that cannot be, and one is started."""
        forked, reason = self._zygote.fork(self._expected, launch), "the zygote was gone"
        if forked and not self._zygote.is_current:  # looked at while that one runs, which ends with its lifeline
            self._zygote.close()
            forked, reason = None, "an installed package has changed"
        self._counts[WARM if forked else reason] += 1
        if forked:
            self._zygote.rewrite(self._read_tests())  # while that one runs
        return forked
