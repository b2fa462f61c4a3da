"""A process that leaves is known to be over before it can be waited for, and only where nothing of it is left."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """\
import os, subprocess, sys
from jumar.child.supervisor import leaving, supervise
supervise.adopt_orphans()
held = bytearray(300 << 20)
held[::4096] = b"x" * len(held[::4096])
SLEEPER = [sys.executable, "-c", "import sys; sys.stdin.read()"]
output, theirs = os.pipe()
lifeline, kept = os.pipe()

def start_child():
    child = os.fork()
    if child == 0:
        os.close(output)
        os.close(kept)
        {code}
        os.closerange(theirs, theirs + 1)
        os._exit({status})
    return child

{before}
family = leaving.Family(start_child(), "none of them")
os.close(theirs)
os.read(output, 1)
found = leaving.await_leaving(family)
assert found is None or os.waitpid(family.child, os.WNOHANG) == (0, 0)  # it could not be waited for
print(found)
"""

LIVES = "subprocess.Popen(SLEEPER, stdin=lifeline)"


def judge(code: str = "pass", status: int = 0, before: str = "") -> str:
    """Return what is said of a process with much memory that runs *code*, closes its output and leaves."""
    script = SCRIPT.format(code=code, status=status, before=before)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize("status", [0, 1, 70])
def test_the_status_of_a_process_that_leaves_is_known_while_its_memory_is_taken_away(status: int) -> None:
    assert judge(status=status) == str(status)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "before"),
    [
        (LIVES, ""),
        ("pass", LIVES),
        ("pass", "subprocess.Popen(SLEEPER, stdin=lifeline, env={'JUMAR_ROOM': 'none of them'})"),
        ("if os.fork() == 0: " + LIVES + "; os._exit(0)\n        os.wait()", ""),
        ("os.closerange(theirs, theirs + 1); os.read(lifeline, 1)", ""),
    ],
    ids=["a child of it lives", "another child lives", "what has the mark lives", "an orphan lives", "it stays"],
)
def test_a_process_of_which_something_is_left_has_to_be_waited_for(code: str, before: str) -> None:
    assert judge(code, before=before) == "None"
