"""Parts shared by the tiers S2 and S1: the order that `enter_main.py` performs before it becomes the argv."""

from __future__ import annotations

import marshal
import os
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from jumar.child import programs, start
from jumar.child.sandbox.process_namespace import SIGNALLED
from jumar.sandbox import bwrap, personal_files, quiet_proc
from jumar.sandbox.barred_places import refuse_barred_in
from jumar.sandbox.request import Reach, Wrapped

OWNERS = (60706, 61184)
"""Users that systemd's table of users leaves to nobody: from the first one, up to the second one."""

MARSHAL = 4
"""Version of the format of an order: every interpreter reads it, the task's own too."""


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """Seccomp programs, as hexadecimal digits; all of them are applied."""

    private: tuple[str, ...] = ()
    """For a process that has namespaces of its own."""
    shared: tuple[str, ...] = ()
    """For a process that shares the network, shared memory and mounts of the machine."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """Steps that a process applies to itself before it becomes another program."""

    room: str
    readable: tuple[str, ...]
    """Each by every path that leads to it, so that it stays where it is when something is laid over its folder."""
    writable: tuple[str, ...]
    sockets: tuple[str, ...]
    uid: int | None
    """The user to become; None: it stays who it is."""
    owners: tuple[int, int] = OWNERS
    """Owners whose files may be given to that user, beside root's: files that such users left there before."""
    namespaces: bool
    """True if it may not run without namespaces of its own."""
    landlock: bool
    filters: Filters
    hidden: tuple[tuple[str, bool], ...]
    """Paths in /proc that are hidden where that is possible, and whether each is a folder."""
    constant: Mapping[str, bytes]
    """Content of files of /proc that are not shown and not empty."""


def build_order(argv: Sequence[str], room: Path, private: Path, reach: Reach) -> Order:
    """Return the order for *argv*: it may read programs and *reach*, and write to *room* and *private*.

    Root becomes another user, one of `OWNERS` by chance, so that two processes at a time are hardly ever the same one.

    Raises:
        BadInput: if a place that *reach* bars lies among the system's programs.
    """
    system = (*bwrap.SYSTEM, Path("/etc"))
    refuse_barred_in(system, reach.barred)
    readable = (*system, *personal_files.list_shown_files(Path(argv[0]), reach))
    first, after = OWNERS
    uid = first + secrets.randbelow(after - first) if os.geteuid() == 0 else None
    return Order(
        room=str(room),
        readable=tuple(dict.fromkeys(_list_ways(readable))),
        writable=tuple(dict.fromkeys(_list_ways((room, private, *reach.writable)))),
        sockets=tuple(dict.fromkeys(_list_ways(reach.sockets))),
        uid=uid,
        namespaces=False,
        landlock=False,
        filters=Filters(),
        hidden=tuple(quiet_proc.list_hidden()),
        constant=quiet_proc.write_constant_files(),
    )


def wrap_command(argv: Sequence[str], what: Order) -> Wrapped:
    """Return *argv*, started by a script of jumar that performs *what* first."""
    script = (sys.executable, "-I", "-S", "-B", *start.build_command(programs.ENTER))
    return Wrapped(
        argv=(*script, "@file=0", *argv),
        files=(marshal.dumps(msgspec.to_builtins(what, builtin_types=(bytes,)), MARSHAL),),
        signalled=SIGNALLED,
        start=Path("/"),
    )


def _list_ways(paths: Iterable[Path]) -> Iterator[str]:
    """Yield *paths*, and the real path too if a folder above is a link."""
    for path in paths:
        absolute = os.path.normpath(path.absolute())
        yield absolute
        yield str(Path(os.path.realpath(Path(absolute).parent), Path(absolute).name))
