"""Stops all processes of an agent while its work is inspected, and continues them afterwards."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from jumar.child.supervisor import process_tree
from jumar.errors import Infra

STOP_SECONDS = 2.0
"""For stopping all of them: what still multiplies then cannot be judged."""

WAIT_SECONDS = 0.2
"""For one that waits within the system: longer is for a child that it was about to start, and that is stopped."""

AGAIN_SECONDS = 0.05
"""Interval for stopping running processes anew: one that was not stopped yet may have continued another."""

MOVING, WAITING, DEAD = frozenset("RSD"), "D", frozenset("ZX")
"""States of a thread that can run; a stopped or traced one is `T` or `t`, a dead one `Z` or `X`."""

Steps = Mapping[tuple[int, int], tuple[str, ...]]
"""Process and thread -> its state and how often it left a processor: who was stopped in between shows the same."""


class FrozenTree(msgspec.Struct, frozen=True):
    """A stopped process tree. It may resume: the kernel's own timers and descriptors can send SIGCONT, too."""

    root: int
    stopped: frozenset[int] = frozenset()
    steps: Steps = {}

    @property
    def lasts(self) -> bool:
        """Return whether no remaining process has moved since, and none is new."""
        begun = time.monotonic()
        # Somebody else may kill one, the system for its memory most of all: it is awake while it dies.
        while (
            not (same := _count_steps(self.root).items() <= self.steps.items())
            and time.monotonic() < begun + WAIT_SECONDS
        ):
            os.sched_yield()
        return same

    def end(self) -> None:
        """Let the stopped processes continue."""
        for target in self.stopped:
            process_tree.send_signal(target, signal.SIGCONT)


def freeze_processes(kin: tuple[str, int]) -> FrozenTree:
    """Stop all processes of *kin* (see `verify.process.Child.family`).

    Raises:
        Infra: if they multiply faster than they can be stopped, or have killed the one that they are all below.
    """
    nonce, root = kin
    begun = time.monotonic()
    stopped = process_tree.freeze(nonce, root, begun + STOP_SECONDS)
    again = begun + AGAIN_SECONDS
    # A signal is on its way for a moment: until it has arrived, a process may still write.
    while any(
        _can_run(pid, patient=time.monotonic() < begun + WAIT_SECONDS) for pid in process_tree.find_descendants(root)
    ):
        if (now := time.monotonic()) > begun + STOP_SECONDS:
            raise Infra("the processes of the agent cannot be stopped: no tree of its workspace can be judged")
        if now > again:
            stopped |= process_tree.freeze(nonce, root, begun + STOP_SECONDS)
            again = time.monotonic() + AGAIN_SECONDS
        os.sched_yield()
    if not set(_list_states(root)) - DEAD:
        raise Infra("the agent killed what supervises it: nobody knows what it left running")
    return FrozenTree(root, frozenset(stopped), _count_steps(root))


def _can_run(pid: int, *, patient: bool) -> bool:
    """Return whether any thread of *pid* can run."""
    states = set(_list_states(pid))
    return bool(states & MOVING if patient else (states & MOVING) - {WAITING})


def _list_states(pid: int) -> Iterator[str]:
    """Yield the state of each thread of *pid*; none of a process that is gone."""
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            yield (task / "stat").read_text("ascii", "replace").rpartition(")")[2].split()[0]


def _count_steps(root: int) -> Steps:
    """Return the state and switch counts of all threads below *root*, except the dead."""
    steps: dict[tuple[int, int], tuple[str, ...]] = {}
    for pid in process_tree.find_descendants(root):
        with suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                lines = (task / "status").read_text("utf-8", "replace").splitlines()
                told = tuple(line for line in lines if line.startswith(("State:", "voluntary", "nonvoluntary")))
                if not any(line.split()[1] in DEAD for line in told[:1]):
                    steps[pid, int(task.name)] = told
    return steps
