"""All that an agent runs is stopped while its work is looked at; who moves all the same is seen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import dedent

import pytest

from jumar.child.supervisor.process_tree import find_descendants
from jumar.process.freeze import FrozenTree, freeze_processes

COUNT = 40
"""Each killed process is another chance to be looked at just while it dies."""

FAMILY = dedent("""
    import os, sys
    for _ in range(int(sys.argv[1])):
        if not os.fork():
            while True:
                pass
    print("there", flush=True)
    sys.stdin.read()
""")


@contextmanager
def busy(count: int) -> Iterator[FrozenTree]:
    """A family of *count* processes that compute without end, and were stopped."""
    parent = subprocess.Popen(
        [sys.executable, "-c", FAMILY, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
    )
    with parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        try:
            yield freeze_processes(("nobody", parent.pid))
        finally:
            os.killpg(parent.pid, signal.SIGKILL)


@pytest.mark.slow
def test_who_is_killed_by_somebody_else_did_not_move() -> None:
    with busy(COUNT) as stillness:
        for pid in list(find_descendants(stillness.root)):
            os.kill(pid, signal.SIGKILL)
            assert stillness.lasts


@pytest.mark.slow
def test_who_is_set_going_by_somebody_else_did() -> None:
    with busy(1) as stillness:
        assert stillness.lasts
        os.kill(next(iter(find_descendants(stillness.root))), signal.SIGCONT)
        assert not stillness.lasts
