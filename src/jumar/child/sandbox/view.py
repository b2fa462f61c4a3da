"""Builds the files that are seen in a sandbox of bubblewrap's arguments, in this very process.

What bubblewrap makes of the same arguments is the model for each of them.
"""

from __future__ import annotations

# ruff: noqa: PTH101, PTH102, PTH103, PTH108, PTH112, PTH114, PTH115, PTH118, PTH120, PTH123, PTH211
import errno
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from jumar.child.sandbox import locks, mounts

DETACH = 2
ATTRIBUTE_NOSUID, ATTRIBUTE_NODEV = 2, 4

PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
"""The system call, for which the C library has no function."""

BASE = "/tmp"  # noqa: S108  covered by a folder in memory while the view is built
OLD, NEW = f"{BASE}/old", f"{BASE}/new"
NAMED = "@file="
"""Beginning of a word that stands for a file, before it is one."""

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


class View:
    """The files that are seen in the sandbox, built in a folder in memory that becomes the root."""

    def __init__(self, contents: Sequence[bytes] = ()) -> None:
        """*contents* are those of files that arguments name by a place among them instead of by a descriptor."""
        self._contents = contents
        self._mode, self._size, self._lower = "", "", ""
        self.env: dict[str, str | None] = {}
        """Changes of the environment."""
        self.folder = "/"
        self.filters: list[bytes] = []
        self.steps = 0

    def begin(self) -> None:
        """Make an empty folder the root; the files of the machine are in one folder there, and the view in another."""
        mounts.mount("tmpfs", BASE, "tmpfs", mounts.NOSUID | mounts.NODEV, "mode=755")
        for folder in (NEW, OLD):
            os.mkdir(folder, 0o755)
        mounts.mount(NEW, NEW, None, mounts.BIND | mounts.RECURSIVE)
        _pivot_root(BASE, OLD)
        os.symlink("old/proc", "/proc")  # whoever looks at itself meanwhile

    def carry_out(self, steps: Sequence[tuple[str, list[str]]]) -> None:
        """Carry out *steps*: arguments, each with its words."""
        acts = self._build_acts()
        for word, words in steps:
            if word in acts:
                acts[word](*words)
            self.steps += 1

    def finish(self) -> None:
        """Make what was built the root; there is no way back."""
        locks.call(locks.LIBC.umount2(b"/old", DETACH), "the old root")
        os.chdir("/new")
        _pivot_root(".", ".")
        locks.call(locks.LIBC.umount2(b".", DETACH), "the folder of the view")
        os.chdir("/")

    def _build_acts(self) -> dict[str, Callable[..., object]]:
        def keep(name: str) -> Callable[[str], None]:
            return partial(setattr, self, name)

        return {
            "--perms": keep("_mode"), "--size": keep("_size"), "--overlay-src": keep("_lower"),
            "--chdir": keep("folder"), "--tmpfs": self._mount_tmpfs, "--dir": _make_folder, "--proc": self._mount_proc,
            "--dev": self._mount_dev, "--bind": self._bind, "--ro-bind": partial(self._bind, more=mounts.READ_ONLY),
            "--ro-bind-data": self._bind_data, "--symlink": self._make_symlink, "--overlay": self._mount_overlay,
            "--remount-ro": lambda place: mounts.change(f"/new{place}", (mounts.READ_ONLY, 0), 0),
            "--setenv": self.env.__setitem__, "--unsetenv": lambda name: self.env.update({name: None}),
            "--seccomp": lambda number: self.filters.append(self._read(number)), "--hostname": _name_host,
        }  # fmt: skip

    def _read(self, word: str) -> bytes:
        _, named, place = word.partition(NAMED)
        if named:
            return self._contents[int(place)]
        with os.fdopen(int(word), "rb") as stream:
            return stream.read()

    def _mount_tmpfs(self, place: str) -> None:
        _make_folder(place)
        mode, size = self._mode or "0755", self._size
        self._mode = self._size = ""  # for the next one
        options = f"mode={mode}" + (f",size={size}" if size else "")
        mounts.mount("tmpfs", f"/new{place}", "tmpfs", mounts.NOSUID | mounts.NODEV, options)

    def _mount_proc(self, place: str) -> None:
        _make_folder(place)
        mounts.mount("proc", f"/new{place}", "proc", mounts.NOSUID | mounts.NOEXEC | mounts.NODEV)
        for name in ("sys", "sysrq-trigger", "irq", "bus"):
            path = f"/new{place}/{name}"
            if os.path.lexists(path):
                _show(path, path, mounts.READ_ONLY | ATTRIBUTE_NOSUID | ATTRIBUTE_NODEV)

    def _mount_dev(self, place: str) -> None:
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

    def _bind(self, source: str, place: str, more: int = 0) -> None:
        real = f"/old{_resolve(source)}"
        _make_folder(place) if os.path.isdir(real) else _make_file(place)
        _show(real, f"/new{place}", ATTRIBUTE_NOSUID | ATTRIBUTE_NODEV | more)

    def _bind_data(self, number: str, place: str) -> None:
        with open("/content", "wb") as file:
            file.write(self._read(number))
        os.chmod("/content", 0o600)
        _make_file(place)
        _show("/content", f"/new{place}", ATTRIBUTE_NOSUID | ATTRIBUTE_NODEV | mounts.READ_ONLY)
        os.unlink("/content")

    def _make_symlink(self, target: str, place: str) -> None:
        _make_folder(os.path.dirname(place))
        try:
            os.symlink(target, f"/new{place}")
        except FileExistsError:  # by another name of its folder; as bubblewrap does
            if os.readlink(f"/new{place}") != target:
                raise

    def _mount_overlay(self, upper: str, work: str, place: str) -> None:
        _make_folder(place)
        lower, up, workdir = (f"/old{_resolve(one)}" for one in (self._lower, upper, work))
        options = f"lowerdir={_escape(lower)},upperdir={_escape(up)},workdir={_escape(workdir)},userxattr"
        mounts.mount("overlay", f"/new{place}", "overlay", 0, options)


def _resolve(path: str) -> str:
    """Return the real path of *path*, which was meant before the root was another one."""
    for _ in range(40):
        for prefix in _list_prefixes(path):
            if os.path.islink(f"/old{prefix}"):
                target = os.path.join(os.path.dirname(prefix), os.readlink(f"/old{prefix}"))
                path = os.path.normpath(target + path[len(prefix) :])
                break
        else:
            return path
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def _list_prefixes(path: str) -> Iterator[str]:
    at = path.find("/", 1)
    while at > 0:
        yield path[:at]
        at = path.find("/", at + 1)
    yield path


def _show(source: str, place: str, attributes: int) -> None:
    """Show *source* at *place*, with all that is mounted in it."""
    mounts.mount(source, place, None, mounts.BIND | mounts.RECURSIVE)
    mounts.change(place, (attributes, 0), mounts.WHOLE)


def _name_host(name: str) -> None:
    locks.call(locks.LIBC.sethostname(name.encode(), len(name)), "a host name")


def _make_folder(place: str) -> None:
    if not os.path.isdir(f"/new{place}"):
        os.makedirs(f"/new{place}", 0o755, exist_ok=True)


def _make_file(place: str) -> None:
    if not os.path.lexists(f"/new{place}"):
        _make_folder(os.path.dirname(place))
        os.close(os.open(f"/new{place}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o444))


def _escape(path: str) -> str:
    return path.replace("\\", "\\\\").replace(",", "\\,").replace(":", "\\:")


def _pivot_root(new: str, old: str) -> None:
    number = PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, "pivot_root is not known for this machine")
    locks.call(locks.LIBC.syscall(number, os.fsencode(new), os.fsencode(old)), "pivot_root")
    if old != new:
        os.chdir("/")
