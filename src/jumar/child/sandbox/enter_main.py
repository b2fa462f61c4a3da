"""Locks this process in (namespaces, another user, Landlock, seccomp), then becomes the given program.

Its first argument is the number of the descriptor that holds the order (see `jumar.sandbox.launch_order.Order`), the
others are the argv. What cannot be had and may be missing is done without; what may not ends it with status 126 and a
sentence, before anything was started.
"""

from __future__ import annotations

# ruff: noqa: PTH123
import marshal
import os
import sys

from jumar.child.sandbox import locks, mounts, process_namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
MEMORY = "/dev/shm"  # noqa: S108  # where the C library keeps semaphores

REFUSED = 126


def refuse(why: str) -> NoReturn:
    """Exit with the reason why the sandbox cannot be entered."""
    sys.stderr.write(f"jumar: {why}\n")
    sys.stderr.flush()
    os._exit(REFUSED)


def enter(order: dict[str, Any]) -> None:
    """Enter the sandbox as *order* says."""
    uid = order["uid"]
    own: list[str] = []
    terminals: list[str] = []
    numbered = uid is not None or not mounts.is_proc_covered()
    private = mounts.unshare_namespaces(uid, numbered=numbered)
    if not private and order["namespaces"]:
        refuse("this machine gives no namespace of its own to a process: it needs CAP_SYS_ADMIN")
    needed = [path for path in (*order["readable"], *order["writable"], *order["sockets"]) if os.path.lexists(path)]
    for path in (*order["writable"], *order["sockets"]) if uid is not None else ():
        locks.give(path, uid, (0, *range(*order["owners"])))
    if private:
        own, terminals = enter_mounts(order, needed, numbered=numbered)
    elif uid is not None and (closed := mounts.find_barrier(needed, uid)):
        refuse(f"the user that tests run as cannot pass {closed}: keep it elsewhere, or run jumar as an ordinary user")
    if uid is not None:
        locks.become(uid)
    locks.set_no_new_privileges()
    if order["landlock"]:
        if not private and uid is not None:  # their rights keep others' apart
            terminals = ["/dev/ptmx", "/dev/pts"]
        locks.apply_landlock(
            {
                **dict.fromkeys((*order["readable"], *order["sockets"], "/proc", "/sys"), locks.READING),
                **dict.fromkeys((*order["writable"], *own, MEMORY), locks.EVERYTHING),
                **dict.fromkeys(DEVICES, locks.DEVICE),
                **dict.fromkeys(terminals, locks.TERMINAL),
            },
            network=private,
        )
    for program in order["filters"]["private" if private else "shared"]:
        locks.install_filter(bytes.fromhex(program))
    if private and numbered:
        process_namespace.start_second()


def enter_mounts(order: dict[str, Any], needed: list[str], *, numbered: bool) -> tuple[list[str], list[str]]:
    """Make the mounts of a process that has its own; the folders that all may write to, and the terminals, in them."""
    if numbered:
        process_namespace.enter_namespace()
        mounts.mount("proc", "/proc", "proc", mounts.NOSUID | mounts.NODEV | mounts.NOEXEC)  # of our own numbers
    own, terminals = mounts.cover_folders(needed, order["uid"]), mounts.mount_terminals()
    mounts.hide_counters(order["hidden"], order["constant"])
    folders = [path for path in order["writable"] if os.path.isdir(path)]  # noqa: PTH112
    mounts.seal_mounts(folders, (*own, *terminals[1:]))
    return own, terminals


def main() -> None:
    """Lock this process in, and become the argv."""
    order_fd, argv = int(sys.argv[1]), sys.argv[2:]
    with open("/proc/self/environ", "rb") as file:  # ours may have been added to by the interpreter
        pairs = [entry.partition(b"=") for entry in file.read().split(b"\0") if entry]
    with os.fdopen(order_fd, "rb") as stream:
        order = marshal.loads(stream.read())  # noqa: S302  # it comes from jumar, which runs this very interpreter
    mask = os.umask(0o022)
    try:
        enter(order)
        os.umask(mask)
        os.chdir(order["room"])  # the way to it may be another one now
        os.execve(argv[0], argv, {name: value for name, _, value in pairs})  # noqa: S606  # the point of it
    except OSError as fault:
        refuse(f"{argv[0]} cannot be started in the sandbox: {fault}")
