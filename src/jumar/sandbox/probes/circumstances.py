"""Hashes the circumstances that the self-test of a sandbox depends on: when one of them changes, the hash differs."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from jumar.child import start

_PROC = (
    "sys/kernel/random/boot_id", "self/mountinfo", "self/cgroup", "self/attr/current", "self/uid_map", "self/gid_map",
    "sys/user/max_user_namespaces", "sys/user/max_net_namespaces", "sys/kernel/unprivileged_userns_clone",
    "sys/kernel/apparmor_restrict_unprivileged_userns", "sys/kernel/unprivileged_bpf_disabled",
    "sys/kernel/perf_event_paranoid", "sys/kernel/dmesg_restrict", "sys/kernel/io_uring_disabled",
    "sys/kernel/yama/ptrace_scope", "sys/kernel/modules_disabled", "sys/kernel/seccomp/actions_avail",
    "sys/vm/unprivileged_userfaultfd", "sys/dev/tty/legacy_tiocsti", "sys/fs/protected_hardlinks",
    "sys/fs/protected_symlinks", "sys/fs/suid_dumpable",
)  # fmt: skip
"""Files of /proc: which boot and which mounts, and the settings that decide what a process may do."""

_STATUS = ("Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")
"""Fields of /proc/self/status. Format: proc_pid_status(5)."""

_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")

_LABELS = ("system.posix_acl_access", "system.posix_acl_default", "security.selinux")
"""Extended attributes of a folder that decide who may pass."""


def hash_circumstances(place: Path, programs: Iterable[Path]) -> str:
    """Return the hash for rooms in the folder *place* and sandboxes made by *programs*.

    It covers the kernel and its boot, its settings, the user and what the user may, the namespaces and mounts that
    jumar is in, the programs, the interpreter, every source file of jumar, and where *place* lies and who may pass on
    the way to it.
    """
    facts = [
        list(os.uname()),
        sys.version,
        [_read_proc(name) for name in _PROC],
        _read(Path("/sys/kernel/security/lsm")),
        [line for line in _read_proc("self/status").splitlines() if line.partition(":")[0] in _STATUS],
        [_read_link(Path("/proc/self/ns", name)) for name in _NAMESPACES],
        [
            _read_metadata(path)
            for program in (Path(sys.executable), *programs)
            for path in (program, program.resolve())
        ],
        [_read_metadata(path) for path in _list_sources()],
        list(_list_above(place)),
    ]
    return sha256(json.dumps(facts).encode()).hexdigest()


def _list_sources() -> Iterator[Path]:
    root = Path(start.FOLDER).parent
    for folder in ("child", "process", "sandbox"):
        yield from sorted((root / folder).rglob("*.py"))


def _read_metadata(path: Path) -> list[object]:
    """Return the metadata that differs between states of a file, without reading it.

    Nobody can choose its ctime.
    """
    try:
        found = path.stat()
    except OSError:
        return [str(path)]
    return [
        str(path), found.st_dev, found.st_ino, found.st_size, found.st_mode, found.st_uid, found.st_gid,
        found.st_mtime_ns, found.st_ctime_ns,
    ]  # fmt: skip


def _list_above(place: Path) -> Iterator[list[object]]:
    """Yield the folders from the root to *place*.

    Below the folder for temporary files, and last, their names are chance.
    """
    real, chance = place.resolve(), Path(tempfile.gettempdir()).resolve()
    for folder in (*reversed(real.parents), real):
        found = folder.stat()
        named = folder != real and chance not in folder.parents
        yield [
            str(folder) if named else "", found.st_dev, found.st_mode, found.st_uid, found.st_gid,
            [_read_label(folder, name) for name in _LABELS],
        ]  # fmt: skip


def _read_label(folder: Path, name: str) -> str:
    with suppress(OSError):
        return os.getxattr(folder, name).hex()
    return ""


def _read_proc(name: str) -> str:
    return _read(Path("/proc", name))


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_bytes().decode("utf-8", "replace")
    return ""


def _read_link(path: Path) -> str:
    with suppress(OSError):
        return str(path.readlink())
    return ""
