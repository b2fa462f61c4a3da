"""Seccomp filter for code under test: a program that the kernel itself runs before each system call.

The tiers S3 and S2 use it. It takes nothing away that honest suites were seen to need; it takes away what reaches into
other processes, makes namespaces and mounts, or goes round the other walls. What is refused fails with EPERM, unless
something else is said.

Numbers: arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h of the kernel. Instructions:
classic BPF on `struct seccomp_data` (include/uapi/linux/filter.h and seccomp.h).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from jumar.sandbox import bpf
from jumar.sandbox.bpf import (
    ALLOW,
    ANY_BIT,
    AT_LEAST,
    EAFNOSUPPORT,
    ENOPROTOOPT,
    ENOSYS,
    EOPNOTSUPP,
    EPERM,
    EQUAL,
    INET,
    INET6,
    NETLINK,
    RETURN,
    UNIX,
    Instruction,
    fail_with,
    load_argument,
)

Machines = tuple[int | None, int | None]
"""The number of a system call on x86_64 and on aarch64; None: there is none."""

REFUSED: Mapping[str, Mapping[str, Machines]] = MappingProxyType({
    "reads or steers another process: the one that holds the channel, or jumar": {
        "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
        "pidfd_getfd": (438, 438), "move_pages": (279, 239), "migrate_pages": (256, 238),
        "process_madvise": (440, 440),
    },
    "is not bounded by this filter, or by who may open what": {
        "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
        "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264),
    },
    "changes what is mounted where": {
        "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
        "move_mount": (429, 429), "open_tree": (428, 428), "open_tree_attr": (467, 467), "fsopen": (430, 430),
        "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    },
    "makes or enters a namespace, in which one is root": {"unshare": (272, 97), "setns": (308, 268)},
    "holds keys and secrets outside of any namespace": {
        "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    },
    "runs code in the kernel, or makes it wait": {
        "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "kexec_load": (246, 104),
        "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
        "delete_module": (176, 106), "modify_ldt": (154, None), "iopl": (172, None), "ioperm": (173, None),
    },
    "tells which files are in memory: one run could leave word for the next there": {
        "mincore": (27, 232), "cachestat": (451, 451),
    },
    "is the administrator's": {
        "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60),
        "quotactl_fd": (443, 443), "vhangup": (153, 58), "syslog": (103, 116), "lookup_dcookie": (212, 18),
        "nfsservctl": (180, 42), "settimeofday": (164, 170), "clock_settime": (227, 112), "sethostname": (170, 161),
        "setdomainname": (171, 162),
    },
})  # fmt: skip
"""Reason -> the system calls that are refused for it."""

FAMILIES = (UNIX, INET, INET6, NETLINK)
"""Kinds of sockets that honest suites use: local servers, and the question which interfaces there are (netlink's
protocol 0, nothing else of it). Most of the others, such as VSOCK, know no network namespaces and lead outside."""

_X32, _DONE = 0x40000000, 0
_CLONE = {"clone": (56, 220)}
_PIDFD = 0x1000
"""A descriptor of the new process: its number tells how many processes this machine has started."""
_UNKNOWN = {"clone3": (435, 435), "pidfd_open": (434, 434)}
"""Programs that hear that the kernel does not know these use older ones: `clone`, whose flags can be seen, and `wait4`,
which gives no number that tells how many processes there were."""
_NAMESPACES = 0x7E020000
"""All of CLONE_NEW* that fit `clone`; the flags of `clone3` lie in memory, where nobody can look."""

_MKNOD, _MKNODAT = {"mknod": (133, None)}, {"mknodat": (259, 33)}
_S_IFCHR = 0x2000
"""The bit that devices have in their mode, and pipes, sockets and files have not."""

_IOCTL = {"ioctl": (16, 29)}
_TERMINAL = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX: they type into the terminal of whoever started jumar."""

_PERSONALITY = {"personality": (135, 92)}
_PLAIN, _QUERY = 0, 0xFFFFFFFF
"""The personality everybody has, and the question which one that is."""

_FADVISE, _MADVISE, _PREADV2 = {"fadvise64": (221, 223)}, {"madvise": (28, 233)}, {"preadv2": (327, 286)}
_SYNC_RANGE = {"sync_file_range": (277, 84)}
_COLD, _PAGEOUT, _COLLAPSE = 20, 21, 25
_RWF_NOWAIT = 0x8
"""With these, too, it can be told which files are in memory, and arranged. Advice is taken, and not followed."""

_SOCKETS = {"socket": (41, 198), "socketpair": (53, 199)}

_SOCKET_OPTIONS = {"getsockopt": (55, 209), "setsockopt": (54, 208)}
_SOL_SOCKET, _NUMBERED = 1, (57, 76, 77)
"""SO_COOKIE, SO_PASSPIDFD and SO_PEERPIDFD: numbers that are counted up for the whole machine."""


def build_filter(machine: str = "", *, families: tuple[int, ...] = FAMILIES) -> bytes | None:
    """Return the filter, as an array of `struct sock_filter`; None for a machine whose numbers are not known here.

    Args:
        machine: what `uname -m` says; empty is this one.
        families: of sockets that can be made. The default suits a network namespace of its own.
    """
    known = bpf.find_machine(machine)
    if known is None:
        return None
    place, architecture = known
    rules = (
        (AT_LEAST, 0, 1, _X32),
        fail_with(EPERM),
        *_build_refused(place),
        *_build_judged(place, families),
        (RETURN, 0, 0, ALLOW),
    )
    return bpf.assemble(architecture, rules)


def _build_refused(place: int) -> Iterator[Instruction]:
    for calls in REFUSED.values():
        for number in _list_numbers(calls, place):
            yield from ((EQUAL, 0, 1, number), fail_with(EPERM))
    for number in _list_numbers(_UNKNOWN, place):
        yield from ((EQUAL, 0, 1, number), fail_with(ENOSYS))


def _build_judged(place: int, families: tuple[int, ...]) -> Iterator[Instruction]:
    """Yield the rules that check an argument."""
    allow, refuse = (RETURN, 0, 0, ALLOW), fail_with(EPERM)
    yield from _build_case(_CLONE, place, load_argument(0), (ANY_BIT, 0, 1, _NAMESPACES | _PIDFD), refuse, allow)
    device = ((ANY_BIT, 0, 1, _S_IFCHR), refuse, allow)
    yield from _build_case(_MKNOD, place, load_argument(1), *device)
    yield from _build_case(_MKNODAT, place, load_argument(2), *device)
    typed = [rule for code in _TERMINAL for rule in ((EQUAL, 0, 1, code), refuse)]
    yield from _build_case(_IOCTL, place, load_argument(1), *typed, allow)
    known = [rule for kind in (_PLAIN, _QUERY) for rule in ((EQUAL, 0, 1, kind), allow)]
    yield from _build_case(_PERSONALITY, place, load_argument(0), *known, refuse)
    done = fail_with(_DONE)
    yield from _build_case({**_FADVISE, **_SYNC_RANGE}, place, done)
    cold = [rule for advice in (_COLD, _PAGEOUT, _COLLAPSE) for rule in ((EQUAL, 0, 1, advice), done)]
    yield from _build_case(_MADVISE, place, load_argument(2), *cold, allow)
    at_once = (ANY_BIT, 0, 1, _RWF_NOWAIT), fail_with(EOPNOTSUPP)
    yield from _build_case(_PREADV2, place, load_argument(5), *at_once, allow)
    counted = [rule for option in _NUMBERED for rule in ((EQUAL, 0, 1, option), fail_with(ENOPROTOOPT))]
    socket_level = ((EQUAL, 1, 0, _SOL_SOCKET), allow, load_argument(2))
    yield from _build_case(_SOCKET_OPTIONS, place, load_argument(1), *socket_level, *counted, allow)
    plain = [rule for family in families if family != NETLINK for rule in ((EQUAL, 0, 1, family), allow)]
    routes = ((EQUAL, 0, 3, NETLINK), load_argument(2), (EQUAL, 0, 1, 0), allow) if NETLINK in families else ()
    yield from _build_case(_SOCKETS, place, load_argument(0), *plain, *routes, fail_with(EAFNOSUPPORT))


def _build_case(calls: Mapping[str, Machines], place: int, *body: Instruction) -> Iterator[Instruction]:
    """Yield *body*, which ends in an answer, for each of *calls*."""
    for number in _list_numbers(calls, place):
        yield (EQUAL, 0, len(body), number)
        yield from body


def _list_numbers(calls: Mapping[str, Machines], place: int) -> Iterator[int]:
    yield from (number for numbers in calls.values() if (number := numbers[place]) is not None)
