"""Request (`Reach`) and answer (`Wrapped`) of a sandbox."""

from __future__ import annotations

from pathlib import Path

import msgspec

TIERS = ("S3", "S2", "S1", "S0")
"""Strongest first."""

AUTO = "auto"
"""The strongest tier that this machine has."""


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """Paths that a confined process may reach beside the system's programs, its room and its private folder."""

    readable: tuple[Path, ...] = ()
    """Shown to it, read only, at their own paths, where they exist and are not private (`sandbox.personal`)."""
    own: tuple[Path, ...] = ()
    """Folders of the task, and files that the person named: of *readable*, what lies in them is not private."""
    barred: tuple[Path, ...] = ()
    """Never shown, whatever names them (`sandbox.barred_places`): nor is a folder as a whole that holds one of them."""
    writable: tuple[Path, ...] = ()
    """Paths that it may change for good. Empty: nothing that it writes outlives it, not even in its room."""
    sockets: tuple[Path, ...] = ()
    """Unix sockets of ours that it may talk to."""


class Wrapped(msgspec.Struct, frozen=True, kw_only=True):
    """An argv that confines the original one."""

    argv: tuple[str, ...]
    """`@file=N` stands for the number of an open descriptor that holds `files[N]`."""
    files: tuple[bytes, ...] = ()
    signalled: int = 0
    """An exit status of this plus n stands for a death by signal n; 0: a signal arrives as one."""
    start: Path | None = None
    """Folder in which the argv is started, unless in the room. There, a relative path in the environment (of
    libraries, mostly) could lead the confining program to a file of the code it is to confine."""
