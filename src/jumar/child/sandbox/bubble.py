"""Carries out the arguments of bubblewrap in this very process, which a program that is started would not be any more.

The arguments are those of `jumar.sandbox.bwrap`; one that is not known here is refused. What they make is judged as
every sandbox is: by the probes. Standard library only.
"""

from __future__ import annotations

# ruff: noqa: PTH102, PTH101, PTH103, PTH108, PTH112, PTH114, PTH115, PTH118, PTH120, PTH123, PTH211
import ctypes
import errno
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from jumar.child.sandbox import locks, mounts, process_namespace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NEW_NAMES, NEW_CGROUPS = 0x4000000, 0x2000000
"""CLONE_NEWUTS and CLONE_NEWCGROUP; the others are in `mounts`."""

ALL = (
    mounts.NEW_USER | mounts.NEW_MOUNTS | mounts.NEW_IPC | mounts.NEW_NETWORK | mounts.NEW_PROCESSES
    | NEW_NAMES | NEW_CGROUPS
)  # fmt: skip

DETACH = 2
ATTRIBUTE_NOSUID, ATTRIBUTE_NODEV = 2, 4

PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
"""The system call, for which the C library has no function."""

SET_DUMPABLE = 4
SET_PARENT_DEATH_SIGNAL, DROP_BOUNDING, AMBIENT, CLEAR_ALL = 1, 24, 47, 4
CAPABILITIES_3 = 0x20080522
"""_LINUX_CAPABILITY_VERSION_3."""

BASE = "/tmp"  # noqa: S108  covered by a folder in memory while the view is built
OLD, NEW = f"{BASE}/old", f"{BASE}/new"
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")

ONE, TWO = 1, 2
WORDS = {
    "--perms": ONE, "--size": ONE, "--tmpfs": ONE, "--dir": ONE, "--proc": ONE, "--dev": ONE, "--ro-bind": TWO,
    "--bind": TWO, "--ro-bind-data": TWO, "--symlink": TWO, "--overlay-src": ONE, "--overlay": 3, "--remount-ro": ONE,
    "--setenv": TWO, "--unsetenv": ONE, "--chdir": ONE, "--seccomp": ONE, "--hostname": ONE, "--uid": ONE,
    "--gid": ONE, "--cap-drop": ONE, "--cap-add": ONE, "--dev-bind": TWO, "--unshare-user": 0, "--unshare-all": 0,
    "--disable-userns": 0, "--die-with-parent": 0, "--new-session": 0,
}  # fmt: skip
"""Argument -> how many words follow it."""

NEEDED = ("--unshare-user", "--unshare-all", "--disable-userns", "--die-with-parent", "--new-session", "--cap-drop")
"""Arguments that mean what is always done here."""


class Entrance:
    """Descriptors that lead out of the namespaces while a view is built: of /proc, and of the bound on namespaces."""

    def __init__(self, proc: int, maximum: int) -> None:
        self.proc, self.maximum = proc, maximum


def open_namespaces() -> Entrance:
    """Unshare all namespaces, and go on in the second process of the new one.

    Raises:
        OSError: if the kernel gives none.
    """
    user, group = os.getuid(), os.getgid()
    # Of the machine's, as one in the view is read only; no program must find it open.
    proc = os.open("/proc", os.O_PATH | os.O_CLOEXEC)
    mounts.call(locks.LIBC.prctl(SET_DUMPABLE, 1, 0, 0, 0), "a process that can be given namespaces")
    mounts.call(locks.LIBC.unshare(ALL), "namespaces")
    _map(proc, user, group)
    mounts.mount("none", "/", None, mounts.RECURSIVE | mounts.DEPENDENT)
    maximum = os.open("sys/user/max_user_namespaces", os.O_WRONLY | os.O_CLOEXEC, dir_fd=proc)
    process_namespace.enter_namespace()
    locks.LIBC.prctl(SET_PARENT_DEATH_SIGNAL, 9, 0, 0, 0)
    mounts.enable_loopback()
    process_namespace.start_second(drop_capabilities)
    locks.LIBC.prctl(SET_PARENT_DEATH_SIGNAL, 9, 0, 0, 0)
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
    for word, (place, *_) in ((word, words) for word, words in outer if words):
        if word in ("--tmpfs", "--dir"):
            _make_outside(word, place, dict(outer))
    view = View(env)
    view.build(inner)
    os.write(entrance.maximum, b"1")
    os.close(entrance.maximum)
    mounts.call(locks.LIBC.unshare(mounts.NEW_USER), "a user namespace")
    _map(entrance.proc, user, group)
    os.close(entrance.proc)
    os.umask(mask)
    os.setsid()
    os.chdir(view.folder)
    drop_capabilities()
    locks.set_no_new_privileges()
    for program in view.filters:
        locks.install_filter(program)
    return list(command), env


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
    mounts.call(locks.LIBC.capset(header, (ctypes.c_uint32 * 6)()), "capabilities")


class View:
    """The files that are seen in the sandbox, built in a folder in memory that becomes the root."""

    def __init__(self, env: dict[str, str]) -> None:
        self._env = env
        self._mode, self._size, self._lower = "", "", ""
        self.folder = "/"
        self.filters: list[bytes] = []

    def build(self, steps: Sequence[tuple[str, list[str]]]) -> None:
        """Carry out *steps*, and make what they built the root."""
        mounts.mount("tmpfs", BASE, "tmpfs", mounts.NOSUID | mounts.NODEV, "mode=755")
        for folder in (NEW, OLD):
            os.mkdir(folder, 0o755)
        mounts.mount(NEW, NEW, None, mounts.BIND | mounts.RECURSIVE)
        _pivot(BASE, OLD)
        for word, words in steps:
            self._carry_out(word, words)
        mounts.call(locks.LIBC.umount2(b"/old", DETACH), "the old root")
        os.chdir("/new")
        _pivot(".", ".")
        mounts.call(locks.LIBC.umount2(b".", DETACH), "the folder of the view")
        os.chdir("/")

    def _carry_out(self, word: str, words: list[str]) -> None:
        """Carry out one argument."""
        act = self._acts().get(word)
        if act is not None:
            act(*words)
        elif word == "--perms":
            self._mode = words[0]
        elif word == "--size":
            self._size = words[0]
        elif word == "--overlay-src":
            self._lower = words[0]
        elif word == "--setenv":
            self._env[words[0]] = words[1]
        elif word == "--unsetenv":
            self._env.pop(words[0], None)
        elif word == "--chdir":
            self.folder = words[0]
        elif word == "--seccomp":
            self.filters.append(_read(words[0]))
        elif word == "--hostname":
            mounts.call(locks.LIBC.sethostname(words[0].encode(), len(words[0])), "a host name")

    def _acts(self) -> dict[str, Callable[..., None]]:
        return {
            "--tmpfs": self._tmpfs, "--dir": self._dir, "--proc": self._proc, "--dev": self._dev,
            "--ro-bind": self._ro_bind, "--bind": self._bind, "--ro-bind-data": self._data, "--symlink": self._symlink,
            "--overlay": self._overlay, "--remount-ro": self._remount,
        }  # fmt: skip

    def _taken(self, usual: str) -> str:
        """Return the mode for the next file, and the usual one again for those after it."""
        mode, self._mode = self._mode or usual, ""
        return mode

    def _tmpfs(self, place: str) -> None:
        _make_folder(place)
        size, self._size = self._size, ""
        options = f"mode={self._taken('0755')}" + (f",size={size}" if size else "")
        mounts.mount("tmpfs", f"/new{place}", "tmpfs", mounts.NOSUID | mounts.NODEV, options)

    def _dir(self, place: str) -> None:
        _make_folder(place)

    def _proc(self, place: str) -> None:
        _make_folder(place)
        mounts.mount("proc", f"/new{place}", "proc", mounts.NOSUID | mounts.NOEXEC | mounts.NODEV)
        for name in ("sys", "sysrq-trigger", "irq", "bus"):
            path = f"/new{place}/{name}"
            if os.path.lexists(path):
                _show(path, path, mounts.READ_ONLY | ATTRIBUTE_NOSUID | ATTRIBUTE_NODEV)

    def _dev(self, place: str) -> None:
        _make_folder(place)
        mounts.mount("tmpfs", f"/new{place}", "tmpfs", mounts.NOSUID | mounts.NODEV, "mode=0755")
        for name in DEVICES:
            _make_file(f"{place}/{name}")
            _show(f"/old/dev/{name}", f"/new{place}/{name}", ATTRIBUTE_NOSUID)
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            os.symlink(f"/proc/self/fd/{number}", f"/new{place}/{name}")
        os.symlink("/proc/self/fd", f"/new{place}/fd")
        os.symlink("/proc/kcore", f"/new{place}/core")
        _make_folder(f"{place}/shm")
        _make_folder(f"{place}/pts")
        options = "newinstance,ptmxmode=0666,mode=620"
        mounts.mount("devpts", f"/new{place}/pts", "devpts", mounts.NOSUID | mounts.NOEXEC, options)
        os.symlink("pts/ptmx", f"/new{place}/ptmx")

    def _ro_bind(self, source: str, place: str) -> None:
        self._bind(source, place, mounts.READ_ONLY)

    def _bind(self, source: str, place: str, more: int = 0) -> None:
        real = f"/old{_resolve(source)}"
        _make_folder(place) if os.path.isdir(real) else _make_file(place)
        _show(real, f"/new{place}", ATTRIBUTE_NOSUID | ATTRIBUTE_NODEV | more)

    def _data(self, number: str, place: str) -> None:
        with open("/content", "wb") as file:
            file.write(_read(number))
        os.chmod("/content", 0o600)
        _make_file(place)
        _show("/content", f"/new{place}", ATTRIBUTE_NOSUID | ATTRIBUTE_NODEV | mounts.READ_ONLY)
        os.unlink("/content")

    def _symlink(self, target: str, place: str) -> None:
        _make_folder(os.path.dirname(place))
        os.symlink(target, f"/new{place}")

    def _overlay(self, upper: str, work: str, place: str) -> None:
        _make_folder(place)
        lower, up, workdir = (f"/old{_resolve(one)}" for one in (self._lower, upper, work))
        options = f"lowerdir={_escape(lower)},upperdir={_escape(up)},workdir={_escape(workdir)},userxattr"
        mounts.mount("overlay", f"/new{place}", "overlay", 0, options)

    def _remount(self, place: str) -> None:
        mounts.change(f"/new{place}", (mounts.READ_ONLY, 0), 0)


def _resolve(path: str) -> str:
    """Return the real path of *path*, which was meant before the root was another one."""
    for _ in range(40):
        for prefix in _prefixes(path):
            if os.path.islink(f"/old{prefix}"):
                target = os.path.join(os.path.dirname(prefix), os.readlink(f"/old{prefix}"))
                path = os.path.normpath(target + path[len(prefix) :])
                break
        else:
            return path
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def _prefixes(path: str) -> Iterator[str]:
    at = path.find("/", 1)
    while at > 0:
        yield path[:at]
        at = path.find("/", at + 1)
    yield path


def _show(source: str, place: str, attributes: int) -> None:
    """Show *source* at *place*, with all that is mounted in it."""
    mounts.mount(source, place, None, mounts.BIND | mounts.RECURSIVE)
    mounts.change(place, (attributes, 0), mounts.WHOLE)


def _make_folder(place: str) -> None:
    if not os.path.isdir(f"/new{place}"):
        os.makedirs(f"/new{place}", 0o755, exist_ok=True)


def _make_file(place: str) -> None:
    if not os.path.lexists(f"/new{place}"):
        _make_folder(os.path.dirname(place))
        os.close(os.open(f"/new{place}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o444))


def _read(number: str) -> bytes:
    with os.fdopen(int(number), "rb") as stream:
        return stream.read()


def _escape(path: str) -> str:
    return path.replace("\\", "\\\\").replace(",", "\\,").replace(":", "\\:")


def _pivot(new: str, old: str) -> None:
    number = PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, "pivot_root is not known for this machine")
    mounts.call(locks.LIBC.syscall(number, os.fsencode(new), os.fsencode(old)), "pivot_root")
    if old != new:
        os.chdir("/")
