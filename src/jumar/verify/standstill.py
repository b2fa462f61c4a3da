"""While an agent's work is looked at, nothing of it moves: all its processes are stopped, and go on afterwards."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jumar.errors import Infra
from jumar.verify import reaper

STOP_SECONDS = 2.0
"""For stopping all of them: what still multiplies then cannot be judged."""

WAIT_SECONDS = 0.2
"""For one that waits within the system: longer is for a child that it was about to start, and that is stopped."""

MOVING, WAITING = frozenset("RSD"), "D"
"""States of a thread that can run; a stopped or traced one is `T` or `t`, a dead one `Z` or `X`."""


def still(family: tuple[str, int]) -> frozenset[int]:
    """Stop all processes of *family* (see `verify.process.Child.family`); whom `moving` sets going again.

    Raises:
        Infra: if they multiply faster than they can be stopped.
    """
    nonce, root = family
    begun = time.monotonic()
    stopped = reaper.freeze(nonce, root, begun + STOP_SECONDS)
    # A signal is on its way for a moment: until it has arrived, a process may still write.
    while any(_moves(pid, patient=time.monotonic() < begun + WAIT_SECONDS) for pid in reaper.descendants(root)):
        if time.monotonic() > begun + STOP_SECONDS:
            raise Infra("the processes of the agent cannot be stopped: no tree of its workspace can be judged")
        os.sched_yield()
    return frozenset(stopped)


def moving(stopped: frozenset[int]) -> None:
    """Let those that *stopped* go on."""
    for target in stopped:
        reaper.signal_to(target, signal.SIGCONT)


@contextmanager
def at_rest(family: tuple[str, int]) -> Iterator[None]:
    """All of *family* stands still within the block."""
    stopped = still(family)
    try:
        yield
    finally:
        moving(stopped)


def _moves(pid: int, *, patient: bool) -> bool:
    """Whether any thread of *pid* can run."""
    states = set[str]()
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            states.add((task / "stat").read_text("ascii", "replace").rpartition(")")[2].split()[0])
    return bool(states & MOVING if patient else (states & MOVING) - {WAITING})
