"""A process that leaves is known to be over before it can be waited for, and only where nothing of it is left."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from support.processes.other_users import ORDINARY, stranger

SCRIPT = """\
import ctypes, os, platform, socket, subprocess, sys, threading, traceback
from jumar.child.sandbox import bubble, locks, mounts, process_namespace
from jumar.child.supervisor import leaving, process_tree, supervise
supervise.adopt_orphans()
held = bytearray(300 << 20)
held[::4096] = b"x" * len(held[::4096])
SLEEPER = [sys.executable, "-c", "import sys; sys.stdin.read()"]
output, theirs = os.pipe()
lifeline, kept = os.pipe()

def start_child():
    ours, adopter = socket.socketpair()
    child = os.fork()
    if child:
        if {inside}:
            first = int(ours.recv(16))
            os.waitpid(child, 0)
            ours.sendall(b"1")
            return first
        return child
    try:
        os.close(output)
        os.close(kept)
        if {inside}: {enter}
        {code}
        os.closerange(theirs, theirs + 1)
        os._exit({status})
    finally:
        traceback.print_exc()
        os._exit(99)

{before}
family = leaving.Family(start_child(), "none of them")
os.close(theirs)
os.read(output, 1)
found = leaving.await_leaving(family)
print(found)
process_tree.destroy(family.nonce, os.getpid())
"""

LIVES = "subprocess.Popen(SLEEPER, stdin=lifeline)"
CLOSES = "os.closerange(theirs, theirs + 1)"

ORPHANED = "if os.fork() == 0: " + LIVES + "; os._exit(0)\n        os.wait()"
"""It starts a process that starts another one, and ends."""

DAEMON = "if os.fork() == 0: os.setsid(); " + LIVES + "; os._exit(0)\n        os.wait()"

SIBLING = f"""number = {{"x86_64": 56, "aarch64": 220}}[platform.machine()]
        if locks.LIBC.syscall(number, 0x8000 | 17, 0, 0, 0, 0) == 0: {CLOSES}; os.read(lifeline, 1); os._exit(0)"""
"""CLONE_PARENT: what it starts is a child of its parent."""

SHARER = """stack = ctypes.create_string_buffer(1 << 16)
        top = ctypes.c_void_p(ctypes.addressof(stack) + (1 << 15))
        os.set_inheritable(theirs, False)
        locks.LIBC.clone(ctypes.cast(locks.LIBC.pause, ctypes.c_void_p), top, 0x500 | 17, None)"""
"""CLONE_VM and CLONE_FILES: what it starts has the memory and the descriptors of this one."""

FIRST_THREAD_LEAVES = f"""threading.Thread(target=os.read, args=(lifeline, 1)).start()
        number = {{"x86_64": 60, "aarch64": 93}}[platform.machine()]
        {CLOSES}; locks.LIBC.syscall(number, 0)"""

SECOND = "bubble.open_namespaces(adopter)"
"""Go on as the second process of a namespace, as a fork of a zygote does in S3."""

THIRD = """
            locks.LIBC.unshare(mounts.NEW_USER | mounts.NEW_PROCESSES)
            process_namespace.enter_namespace(adopter)
            if os.fork() == 0: os._exit(1)
            os.wait()
            process_namespace.start_second()"""
"""Go on as the third one of a namespace, whose second one has ended with another status, and was waited for."""

USER_OF_ITS_OWN = """locks.LIBC.unshare(mounts.NEW_USER)
        locks.LIBC.prctl(4, {dumpable}, 0, 0, 0)"""
"""In a user namespace below the one of the first process, as in S3."""


def build_script(code: str = "pass", status: int = 0, before: str = "", enter: str = "") -> str:
    """Return what prints the judgement of a process with much memory that runs *code*, closes its output and leaves."""
    return SCRIPT.format(code=code, status=status, before=before, inside=bool(enter), enter=enter or "pass")


def judge(code: str = "pass", status: int = 0, before: str = "", enter: str = "") -> str:
    """Return what is said of it."""
    script = build_script(code, status, before, enter)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert not done.stderr
    return done.stdout.strip()


TRIES = 5
"""It is looked for a moment alone, which passes before the process gets on where a machine is busy."""


def judge_until_told(ask: Callable[[], str], tries: int = TRIES) -> str:
    """Return the first judgement that tells the status, if there is one."""
    return next((told for _ in range(tries) if (told := ask()) != "None"), "None")


@pytest.mark.slow
@pytest.mark.parametrize("enter", ["", SECOND], ids=["child", "second"])
@pytest.mark.parametrize("status", [*(pytest.param(status, marks=pytest.mark.proof) for status in (0, 1)), 70])
def test_the_status_of_a_process_that_leaves_is_known_while_its_memory_is_taken_away(status: int, enter: str) -> None:
    assert judge_until_told(lambda: judge(status=status, enter=enter)) == str(status)


MARKED = "subprocess.Popen(SLEEPER, stdin=lifeline, env={'JUMAR_ROOM': 'none of them'})"
LEFT = {
    "a child of it lives": (LIVES, ""),
    "another child lives": ("pass", LIVES),
    "what has the mark lives": (
        "pass",
        "subprocess.Popen(SLEEPER, stdin=lifeline, env={'JUMAR_ROOM': 'none of them'})",
    ),
    "an orphan lives": (ORPHANED, ""),
    "a daemon lives": (DAEMON, ""),
    "a sibling lives": (SIBLING, ""),
    "what has its memory lives": (SHARER, ""),
    "a thread lives": (FIRST_THREAD_LEAVES, ""),
    "it stays": (f"{CLOSES}; os.read(lifeline, 1)", ""),
}
SAMPLE = dict.fromkeys(("a child of it lives", "an orphan lives", "a sibling lives", "it stays"), pytest.mark.slow)
"""Tried each time; `make prove` tries all."""


@pytest.mark.parametrize(
    ("what", "enter"),
    [pytest.param(what, enter, marks=SAMPLE.get(what, pytest.mark.proof)) for enter in ("", SECOND) for what in LEFT],
)
def test_a_process_of_which_something_is_left_has_to_be_waited_for(what: str, enter: str) -> None:
    code, before = LEFT[what]
    assert judge(code, before=before, enter=enter) == "None"


@pytest.mark.slow
def test_an_orphan_that_leaves_has_not_the_status_of_the_second_process() -> None:
    assert judge(enter=THIRD) == "None"


@pytest.mark.slow
def test_a_second_process_that_is_killed_has_to_be_waited_for_as_the_first_one_tells_it_otherwise() -> None:
    assert judge(f"{CLOSES}; os.kill(os.getpid(), 9)", enter=SECOND) == "None"


@pytest.mark.slow
@pytest.mark.parametrize("enter", ["", SECOND], ids=["child", "second"])
@pytest.mark.parametrize(("dumpable", "told"), [(1, {"70"}), (0, {"70", "None"})], ids=["shown", "hidden"])
def test_an_ordinary_user_knows_the_status_or_waits(enter: str, dumpable: int, told: set[str]) -> None:
    code = USER_OF_ITS_OWN.format(dumpable=dumpable) if enter else f"locks.LIBC.prctl(4, {dumpable}, 0, 0, 0)"
    with stranger() as somebody:
        script = build_script(code, 70, enter=enter)
        assert judge_until_told(lambda: somebody.run(ORDINARY, script), 1 if "None" in told else TRIES) in told
