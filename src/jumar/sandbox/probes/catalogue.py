"""Probes of a sandbox, and those that each tier must withstand: a tier is the result of its probes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from jumar.sandbox.request import TIERS

PROBES: Mapping[str, str] = MappingProxyType({
    "write_room": "writing to the room, which is what it is for",
    "write_home": "writing to the home folder",
    "write_run": "writing to the journal of a run",
    "write_programs": "writing to /usr",
    "write_settings": "writing to /etc",
    "write_jumar": "writing to jumar's own code",
    "write_tests": "writing to tests that may only be read",
    "write_git": "writing to a repository that may only be read",
    "truncate_outside": "emptying a file elsewhere",
    "remove_outside": "removing a file elsewhere",
    "link_outside": "giving a file elsewhere a second name in the room",
    "change_modes": "changing who may open a file elsewhere",
    "see_files": "seeing that a file elsewhere exists",
    "read_home": "reading a key in the home folder",
    "list_home": "listing the home folder",
    "read_run": "reading held-out tests",
    "read_other_root": "reading a key through the root of another process",
    "read_disk": "reading a disk beneath its files",
    "read_shared_memory": "reading another process's file in /dev/shm",
    "write_terminal": "writing to another terminal",
    "find_descriptors": "finding a descriptor that was not meant for it",
    "signal_everything": "signalling all processes",
    "see_processes": "seeing which other processes run",
    "read_environ": "reading the environment of another process",
    "read_jumar_environ": "reading the environment of jumar",
    "keep_secrets": "finding a key in its own environment",
    "read_memory": "reading the memory of another process",
    "write_memory": "writing to the memory of another process",
    "read_memory_at_once": "reading memory with process_vm_readv",
    "trace": "tracing another process",
    "take_descriptor": "taking a descriptor of another process",
    "write_descriptor": "writing to a file that another process has open",
    "signal_jumar": "signalling jumar",
    "signal_process": "signalling another process",
    "signal_group": "signalling another group of processes",
    "limit_process": "setting limits of another process",
    "join_namespace": "joining the network of another process",
    "attach_memory": "attaching shared memory of another process",
    "connect_abstract": "connecting to an abstract Unix socket",
    "connect_path": "connecting to a Unix socket that is open to all",
    "connect_home": "connecting to a Unix socket in the home folder",
    "connect_tcp": "connecting to a service of this machine",
    "send_udp": "sending a datagram, as to a name server",
    "reach_internet": "having a route to the internet",
    "open_raw": "opening a raw socket",
    "open_vsock": "opening a socket to the host of a virtual machine",
    "type_into_terminal": "typing into a terminal (TIOCSTI)",
    "become_root_in_namespace": "making a user namespace",
    "mount": "mounting something",
    "change_root": "changing its root",
    "use_keyring": "using the keyring of the kernel",
    "use_io_uring": "using io_uring",
    "load_bpf": "using bpf",
    "watch_performance": "using perf_event_open",
    "catch_page_faults": "using userfaultfd",
    "make_device": "making a device",
    "open_by_handle": "opening a file by its handle",
    "load_module": "loading a module into the kernel",
    "run_setuid": "running a setuid program",
    "hold_capabilities": "holding capabilities",
    "raise_limits": "raising a limit",
    "change_kernel": "changing settings of the kernel",
    "read_kernel_log": "reading the log of the kernel",
    "leave_group": "changing its control group",
    "rename_machine": "changing the name of the machine",
    "leave_pages": "leaving pages of a file in memory for a later run",
    "evict_pages": "taking pages of a file out of memory for a later run",
    "leave_names": "leaving names that were looked up for a later run",
    "leave_access_time": "leaving the time at which a file was read for a later run",
    "leave_files": "leaving a file for a later run",
    "leave_objects": "leaving shared memory, a semaphore or a queue for a later run",
    "read_counters": "reading counters of the whole machine, which earlier runs moved",
    "read_numbers": "reading numbers that the kernel gives in turn, which earlier runs moved",
})  # fmt: skip
"""Name, as in `jumar.child.sandbox.probe_main` -> what would be possible."""

QUICK = (
    "write_room", "write_home", "write_run", "read_home", "read_run", "read_jumar_environ", "signal_jumar",
    "hold_capabilities", "become_root_in_namespace", "reach_internet",
)  # fmt: skip
"""Probes that need no decoy but files; they are tried again while a run goes on."""

LEFT = (
    "leave_pages", "evict_pages", "leave_names", "leave_access_time", "leave_files", "leave_objects", "read_counters",
    "read_numbers",
)  # fmt: skip
"""Probes that a second process answers, when the first one is gone."""

CHANNELS = ("use_keyring", *LEFT)
"""Probes of ways in which one run can leave a word for a later one."""

_ROOM = frozenset({"write_room"})
_SEEN = frozenset({"see_files", "see_processes"})

FLOORS: Mapping[str, frozenset[str]] = MappingProxyType({
    "S3": _ROOM,
    # Where a process has no namespace of its own and stays the person's user, Landlock has nothing to say of these.
    "S2": _ROOM | _SEEN | {"change_modes", "read_shared_memory"},
    # What anybody may read, and what the kernel lets anybody do where no filter of system calls is known.
    "S1": _ROOM | _SEEN | {
        "read_run", "become_root_in_namespace", "use_keyring", "use_io_uring", "load_bpf", "watch_performance",
        "catch_page_faults", "open_vsock", "type_into_terminal", "read_kernel_log",
    },
    "S0": frozenset(PROBES),
})  # fmt: skip
"""Tier -> all that may be possible in it, beside what is `LEFT`: a tier says what a process can reach."""

LACKS: Mapping[str, str] = MappingProxyType(
    {
        "S3": "it shares the kernel and the processor's time with jumar, and a run can leave a few bits for a later "
        "one in numbers that the kernel gives in turn",
        "S2": "it sees which files there are, and gets no network at all where it has no namespaces",
        "S1": "it reads what everybody on this machine may read, other runs and held-out tests among it",
        "S0": "it can do all that you can do: run untrusted code in a container or a virtual machine",
    }
)
"""Tier -> what it does not cover."""


def find_tier(possible: Collection[str]) -> str:
    """Return the strongest tier whose floor is reached if the probes in *possible* succeeded."""
    return next(tier for tier in TIERS if not find_excess_probes(tier, possible))


def find_excess_probes(tier: str, possible: Collection[str]) -> tuple[str, ...]:
    """Return those of *possible* that the floor of *tier* does not allow, in the order of the table."""
    return tuple(name for name in PROBES if name in possible and name not in FLOORS[tier] and name not in LEFT)
