"""Carries out the arguments of bubblewrap in this process itself, instead of starting bubblewrap.

The arguments are those of `jumar.sandbox.bwrap`; one that is not known here is refused. What they make is judged as
every sandbox is: by the probes.
"""

from __future__ import annotations

# ruff: noqa: PTH103
import ctypes
import errno
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from jumar.child.sandbox import locks, mounts, process_namespace
from jumar.child.sandbox.view import View

if TYPE_CHECKING:
    import socket

NEW_NAMES, NEW_CGROUPS = 0x4000000, 0x2000000
"""CLONE_NEWUTS and CLONE_NEWCGROUP; the others are in `mounts`."""

ALL = (
    mounts.NEW_USER | mounts.NEW_MOUNTS | mounts.NEW_IPC | mounts.NEW_NETWORK | mounts.NEW_PROCESSES
    | NEW_NAMES | NEW_CGROUPS
)  # fmt: skip

SET_DUMPABLE = 4
DROP_BOUNDING, AMBIENT, CLEAR_ALL = 24, 47, 4
CAPABILITIES_3 = 0x20080522
"""_LINUX_CAPABILITY_VERSION_3."""

ONE, TWO = 1, 2
WORDS = {
    "--perms": ONE, "--size": ONE, "--tmpfs": ONE, "--dir": ONE, "--proc": ONE, "--dev": ONE, "--ro-bind": TWO,
    "--bind": TWO, "--ro-bind-data": TWO, "--symlink": TWO, "--overlay-src": ONE, "--overlay": 3, "--remount-ro": ONE,
    "--setenv": TWO, "--unsetenv": ONE, "--chdir": ONE, "--seccomp": ONE, "--hostname": ONE, "--uid": ONE,
    "--gid": ONE, "--cap-drop": ONE, "--cap-add": ONE, "--dev-bind": TWO, "--unshare-user": 0, "--unshare-all": 0,
    "--disable-userns": 0, "--die-with-parent": 0, "--new-session": 0,
}  # fmt: skip
"""Argument -> how many words follow it."""

READ = ("--seccomp", "--ro-bind-data")
"""Arguments whose first word is a descriptor that is read, and closed."""

NEEDED = ("--unshare-user", "--unshare-all", "--disable-userns", "--die-with-parent", "--new-session", "--cap-drop")
"""Arguments that mean what is always done here."""


class Entrance:
    """A sandbox that is being made: its view, and descriptors that lead out of it until it is done."""

    def __init__(self, proc: int, maximum: int) -> None:
        """*proc* is the machine's, *maximum* is the file that bounds how many namespaces of users there may be."""
        self.proc, self.maximum = proc, maximum
        self.view: View | None = None

    def begin(self, steps: Sequence[tuple[str, list[str]]], contents: Sequence[bytes]) -> None:
        """Carry out *steps* that no order changes."""
        mask = os.umask(0)
        self.view = View(contents)
        self.view.begin()
        self.view.carry_out(steps)
        os.umask(mask)


def open_namespaces(adopter: socket.socket | None = None) -> Entrance:
    """Unshare all namespaces, and go on in the second process of the new one; *adopter* as in `enter_namespace`.

    Raises:
        OSError: if the kernel gives none.
    """
    user, group = os.getuid(), os.getgid()
    # Of the machine's, as one in the view is read only; no program must find it open.
    proc = os.open("/proc", os.O_PATH | os.O_CLOEXEC)
    locks.call(locks.LIBC.prctl(SET_DUMPABLE, 1, 0, 0, 0), "a process that can be given namespaces")
    locks.call(locks.LIBC.unshare(ALL), "namespaces")
    _map(proc, user, group)
    mounts.mount("none", "/", None, mounts.RECURSIVE | mounts.DEPENDENT)
    maximum = os.open("sys/user/max_user_namespaces", os.O_WRONLY | os.O_CLOEXEC, dir_fd=proc)
    process_namespace.enter_namespace(adopter)
    process_namespace.die_with_parent()
    mounts.enable_loopback()
    process_namespace.start_second(drop_capabilities)
    process_namespace.die_with_parent()
    return Entrance(proc, maximum)


def enter(argv: Sequence[str], env: dict[str, str], entrance: Entrance) -> tuple[list[str], dict[str, str]]:
    """Enter the sandbox that *argv*, one or two bubblewraps and a command, describes; the command and its environment.

    Raises:
        OSError: if it cannot be entered, or if an argument is not known.
    """
    outer: list[tuple[str, list[str]]] = []
    inner, command = read_steps(argv)
    if "--dev-bind" in dict(inner):
        outer, (inner, command) = inner, read_steps(command)
    if missing := [word for word in NEEDED if word not in dict(inner)]:
        raise OSError(errno.EINVAL, f"without {missing[0]} it is no sandbox")
    mask = os.umask(0)
    user, group = os.getuid(), os.getgid()
    if entrance.view is None:
        entrance.begin((), ())
    view = cast("View", entrance.view)
    for word, (place, *_) in ((word, words) for word, words in outer if words):
        if word in ("--tmpfs", "--dir"):
            _make_outside(word, f"/old{place}", dict(outer))
    for _, words in (step for step in inner[: view.steps] if step[0] in READ):
        os.close(int(words[0]))
    view.carry_out(inner[view.steps :])
    view.finish()
    os.write(entrance.maximum, b"1")
    os.close(entrance.maximum)
    locks.call(locks.LIBC.unshare(mounts.NEW_USER), "a user namespace")
    _map(entrance.proc, user, group)
    os.close(entrance.proc)
    os.umask(mask)
    os.setsid()
    os.chdir(view.folder)
    drop_capabilities()
    locks.set_no_new_privileges()
    for program in view.filters:
        locks.install_filter(program)
    changed = {**env, **view.env}
    return list(command), {name: value for name, value in changed.items() if value is not None}


def read_steps(argv: Sequence[str]) -> tuple[list[tuple[str, list[str]]], list[str]]:
    """Return the arguments of the bubblewrap in *argv*, and the command behind them."""
    steps, at = [], 1
    while argv[at] != "--":
        word = argv[at]
        if word not in WORDS:
            raise OSError(errno.EINVAL, f"{word} is not known")
        steps.append((word, list(argv[at + 1 : at + 1 + WORDS[word]])))
        at += 1 + WORDS[word]
    return steps, list(argv[at + 1 :])


def _map(proc: int, user: int, group: int) -> None:
    """Let *user* and *group* be in the new namespace what they are outside."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        file = os.open(f"self/{name}", os.O_WRONLY | os.O_CLOEXEC, dir_fd=proc)
        os.write(file, text.encode())
        os.close(file)


def _make_outside(word: str, place: str, outer: dict[str, list[str]]) -> None:
    """Make a folder of the outer bubblewrap: one in memory, or one in it."""
    if word == "--dir":
        os.makedirs(place, 0o755, exist_ok=True)
        return
    options = f"mode={outer['--perms'][0]},size={outer['--size'][0]}"
    mounts.mount("tmpfs", place, "tmpfs", mounts.NOSUID | mounts.NODEV, options)


def drop_capabilities() -> None:
    """Give up every capability for good; there is none to get back by starting a program."""
    locks.LIBC.prctl(AMBIENT, CLEAR_ALL, 0, 0, 0)
    number = 0
    while locks.LIBC.prctl(DROP_BOUNDING, number, 0, 0, 0) == 0:
        number += 1
    header = (ctypes.c_uint32 * 2)(CAPABILITIES_3, 0)
    locks.call(locks.LIBC.capset(header, (ctypes.c_uint32 * 6)()), "capabilities")
