"""The filter of system calls, run on a machine of three lines: what it says of each call, on two kinds of processor."""

from __future__ import annotations

import struct

import pytest

from jumar.sandbox import seccomp, seccomp_processes

X86, ARM = ("x86_64", 0xC000003E, 0), ("aarch64", 0xC00000B7, 1)
ALLOW, EPERM, ENOSYS, EAFNOSUPPORT, KILL = 0x7FFF0000, 0x50001, 0x50026, 0x50061, 0x80000000
OPEN_CALLS = {
    "read": (0, 63), "openat": (257, 56), "execve": (59, 221), "kill": (62, 129), "mmap": (9, 222), "futex": (202, 98),
    "pidfd_send_signal": (424, 424), "seccomp": (317, 277), "memfd_create": (319, 279),
    "prctl": (157, 167), "landlock_create_ruleset": (444, 444), "connect": (42, 203), "wait4": (61, 260),
}  # fmt: skip
"""What honest suites call."""


def says(machine: tuple[str, int, int], number: int, *arguments: int, audit: int | None = None, **how: object) -> int:
    """What the filter answers to a system call."""
    name, own, _ = machine
    return answer(seccomp.build_filter(name, **how), number, own if audit is None else audit, arguments)  # type: ignore[arg-type]


def answer(program: bytes | None, number: int, audit: int, arguments: tuple[int, ...]) -> int:
    """What *program* answers to a system call of the architecture *audit*."""
    assert program is not None
    data = struct.pack("<IIQ6Q", number, audit, 0, *arguments, *[0] * (6 - len(arguments)))
    rules, place, accumulator = list(struct.iter_unpack("<HBBI", program)), 0, 0
    while True:
        code, true, false, operand = rules[place]
        place += 1
        if code == 0x20:
            accumulator = struct.unpack_from("<I", data, operand)[0]
        elif code == 0x06:
            return int(operand)
        else:
            test = {0x15: accumulator == operand, 0x35: accumulator >= operand, 0x45: bool(accumulator & operand)}[code]
            place += true if test else false


@pytest.mark.parametrize("machine", [X86, ARM], ids=["x86_64", "aarch64"])
class TestAnswers:
    """What is allowed, and what is refused how."""

    def test_every_refused_call_is_refused_and_says_why(self, machine: tuple[str, int, int]) -> None:
        for why, calls in seccomp.REFUSED.items():
            assert why
            for name, numbers in calls.items():
                number = numbers[machine[2]]
                assert number is None or says(machine, number, 1, 2, 3) == EPERM, name

    def test_nobody_learns_or_arranges_which_files_are_in_memory(self, machine: tuple[str, int, int]) -> None:
        fadvise, madvise, preadv2 = ((221, 28, 327), (223, 233, 286))[machine[2]]
        assert says(machine, fadvise, 3, 0, 4096, 4) == 0x50000
        assert [says(machine, madvise, 0, 4096, advice) for advice in (4, 8, 14)] == [ALLOW] * 3
        assert [says(machine, madvise, 0, 4096, advice) for advice in (20, 21, 25)] == [0x50000] * 3
        assert says(machine, (277, 84)[machine[2]], 3, 0, 4096, 7) == 0x50000
        assert says(machine, preadv2, 3, 0, 1, 0, 0, 0) == ALLOW
        assert says(machine, preadv2, 3, 0, 1, 0, 0, 8) == 0x5005F

    def test_no_number_stands_twice(self, machine: tuple[str, int, int]) -> None:
        numbers = [n[machine[2]] for calls in seccomp.REFUSED.values() for n in calls.values()]
        there = [number for number in numbers if number is not None]
        assert len(there) == len(set(there))
        assert not {n[machine[2]] for n in OPEN_CALLS.values()} & set(there)

    def test_what_honest_suites_call_is_allowed(self, machine: tuple[str, int, int]) -> None:
        for name, numbers in OPEN_CALLS.items():
            assert says(machine, numbers[machine[2]], 1, 2, 3) == ALLOW, name

    def test_no_namespace_comes_from_clone(self, machine: tuple[str, int, int]) -> None:
        clone = (56, 220)[machine[2]]
        assert says(machine, clone, 0x01200011) == ALLOW, "fork"
        assert says(machine, clone, 0x003D0F00) == ALLOW, "a thread"
        assert says(machine, clone, 0x11 | 0x1000) == EPERM, "a descriptor whose number counts processes"
        for bit in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
            assert says(machine, clone, 0x11 | bit) == EPERM
        assert says(machine, 435, 0, 88) == ENOSYS, "a C library falls back to clone"
        assert says(machine, 434, 1, 0) == ENOSYS, "asyncio and Go fall back to waiting for a number"

    def test_no_socket_tells_how_many_there_were(self, machine: tuple[str, int, int]) -> None:
        for number in ((55, 54), (209, 208))[machine[2]]:
            assert [says(machine, number, 3, 1, option) for option in (57, 76, 77)] == [0x5005C] * 3
            assert [says(machine, number, 3, level, option) for level, option in ((1, 4), (6, 57))] == [ALLOW] * 2

    def test_sockets_are_local_or_of_the_internet(self, machine: tuple[str, int, int]) -> None:
        for number in ((41, 53), (198, 199))[machine[2]]:
            assert [says(machine, number, family, 1, 0) for family in (1, 2, 10, 16)] == [ALLOW] * 4
            assert says(machine, number, 16, 3, 9) == EAFNOSUPPORT, (
                "netlink is for the question which interfaces are there"
            )
            for family in (17, 29, 31, 38, 40, 44):  # packet, CAN, Bluetooth, the kernel's crypto, hypervisor, XDP
                assert says(machine, number, family, 1, 0) == EAFNOSUPPORT
            assert [says(machine, number, family, 1, 0, families=(1,)) for family in (1, 2, 16)] == [
                ALLOW, EAFNOSUPPORT, EAFNOSUPPORT,
            ]  # fmt: skip

    def test_pipes_can_be_made_and_devices_not(self, machine: tuple[str, int, int]) -> None:
        for mode, answer in (
            (0o010600, ALLOW),
            (0o100600, ALLOW),
            (0o140600, ALLOW),
            (0o020600, EPERM),
            (0o060600, EPERM),
        ):
            assert says(machine, (259, 33)[machine[2]], 0, 0, mode) == answer
            assert machine is ARM or says(machine, 133, 0, mode) == answer

    def test_nobody_types_into_a_terminal(self, machine: tuple[str, int, int]) -> None:
        for code, answer in (
            (0x5401, ALLOW),
            (0x5413, ALLOW),
            (0x5412, EPERM),
            (0x541C, EPERM),
            (0x1_0000_5412, EPERM),
        ):
            assert says(machine, (16, 29)[machine[2]], 0, code) == answer

    def test_the_personality_is_everybodys(self, machine: tuple[str, int, int]) -> None:
        number = (135, 92)[machine[2]]
        assert [says(machine, number, kind) for kind in (0, 0xFFFFFFFF, 0x40000)] == [ALLOW, ALLOW, EPERM]

    def test_other_ways_to_call_the_same_kernel_are_closed(self, machine: tuple[str, int, int]) -> None:
        assert says(machine, 0, audit=0x40000003) == KILL, "numbers of a 32-bit program mean something else"
        assert says(machine, 0x40000000 + 101) == EPERM, "x32"


def test_another_machine_has_no_filter() -> None:
    assert seccomp.build_filter("riscv64") is None
    assert seccomp_processes.build_filter("riscv64") is None


@pytest.mark.parametrize("machine", [X86, ARM], ids=["x86_64", "aarch64"])
def test_the_tests_process_makes_threads_and_no_process(machine: tuple[str, int, int]) -> None:
    name, audit, place = machine

    def said(number: int, *arguments: int) -> int:
        return answer(seccomp_processes.build_filter(name), number, audit, arguments)

    clone = (56, 220)[place]
    assert said(clone, 0x003D0F00) == ALLOW, "a thread"
    assert [said(clone, flags) for flags in (0x11, 0x01200011, 0x4111)] == [EPERM] * 3, "fork, and posix_spawn"
    assert said(435, 0, 88) == ENOSYS, "a C library falls back to clone"
    assert [said(number) for number in ((57, 58, 59, 322), (221, 281))[place]] == [EPERM] * (4, 2)[place]
    others = [number[place] for call, number in OPEN_CALLS.items() if call != "execve"]
    assert [said(number, 1, 2, 3) for number in others] == [ALLOW] * (len(OPEN_CALLS) - 1)
    assert said(0x40000000 + 57) == EPERM, "x32"
