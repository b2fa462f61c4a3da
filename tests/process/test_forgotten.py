"""The kernel gives up what it kept in memory for a run when that ends, so that no later run is faster for it."""

from __future__ import annotations

import mmap
import os
import resource
import secrets
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jumar.child.supervisor.cgroup import EMPTYING, Cgroup

PAGES = 128
NAMES = 200

Look = Callable[[int], float]
"""Looks at one of many things; what that cost."""


@pytest.fixture
def group() -> Iterator[Cgroup]:
    """The control groups of one process; the test is skipped where the kernel cannot be made to empty them."""
    made = Cgroup(secrets.token_hex(8))
    made.make(1 << 30, 1000)
    if not any(Path(folder, name).exists() for folder in made.groups for name, _ in EMPTYING):
        made.leave()
        pytest.skip("NO CONTROL GROUP OF OURS COUNTS MEMORY HERE: what rounds leave in caches is not tested")
    yield made
    made.leave()


@pytest.fixture
def cold() -> Iterator[Path]:
    """A file on a disk, no page of which is in memory; not in /tmp, which may be memory itself."""
    with tempfile.NamedTemporaryFile(dir=Path(__file__).parent) as file:
        file.write(os.urandom(PAGES * mmap.PAGESIZE))
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        yield Path(file.name)


def look_at_pages(path: Path) -> Look:
    """True if the disk had to be asked for a page of *path*."""
    with path.open("rb") as file:
        held = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    held.madvise(mmap.MADV_RANDOM)  # else the kernel reads its neighbours as well

    def look(number: int) -> float:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
        _ = held[number * mmap.PAGESIZE]
        return resource.getrusage(resource.RUSAGE_SELF).ru_majflt - before

    return look


def look_up(folder: str, mark: str) -> Look:
    """Nanoseconds that it takes to hear that there is no such file."""

    def look(number: int) -> float:
        name = f"{folder}/{mark}{number}"
        before = time.perf_counter_ns()
        Path(name).exists()
        return time.perf_counter_ns() - before

    return look


def run_inside(group: Cgroup, look: Look, numbers: range) -> None:
    """Look at *numbers*, twice, in a process that is in *group* and ends."""
    pid = os.fork()
    if pid == 0:
        group.enter()
        for number in (*numbers, *numbers):
            look(number)
        os._exit(0)
    os.waitpid(pid, 0)


def test_pages_that_a_run_was_the_first_to_read_are_on_the_disk_again(group: Cgroup, cold: Path) -> None:
    look = look_at_pages(cold)
    if not look(PAGES - 1):
        pytest.skip("THIS FILE SYSTEM LIES IN MEMORY")
    run_inside(group, look, range(0, PAGES // 2, 2))
    group.empty()
    assert sum(map(look, range(0, PAGES // 2, 2))) == PAGES // 4

    run_inside(Cgroup("none"), look_at_pages(cold), range(PAGES // 2, PAGES - 1))
    group.empty()
    assert sum(map(look_at_pages(cold), range(PAGES // 2, PAGES - 1))) == 0, "what others read first stays in memory"


def test_names_that_a_run_looked_up_are_forgotten(group: Cgroup) -> None:
    look = look_up("/usr/lib", secrets.token_hex(8))
    for number in range(100):
        look_up("/usr/lib", "warm")(number % 2)
    run_inside(Cgroup("none"), look, range(0, NAMES, 2))
    kept = [look(number) for number in range(NAMES)]
    if statistics.median(kept[::2]) > 0.8 * statistics.median(kept[1::2]):
        pytest.skip("THIS FILE SYSTEM KEEPS NO NAMES THAT ARE NOT THERE, or the machine is too busy to tell")
    look = look_up("/usr/lib", secrets.token_hex(8))
    run_inside(group, look, range(0, NAMES, 2))
    group.empty()
    found = [look(number) for number in range(NAMES)]
    assert statistics.median(found[::2]) > 0.8 * statistics.median(found[1::2])


def test_nothing_goes_wrong_where_there_is_no_group() -> None:
    Cgroup("none").empty()


@pytest.mark.parametrize(
    ("there", "written"),
    [
        (("memory.max", "memory.reclaim"), {"memory.max": "", "memory.reclaim": "1T"}),
        (("memory.max",), {"memory.max": "0"}),
        (("memory.force_empty", "memory.limit_in_bytes"), {"memory.force_empty": "0", "memory.limit_in_bytes": ""}),
    ],
)
def test_each_version_of_control_groups_is_asked_in_its_way(
    tmp_path: Path, there: tuple[str, ...], written: dict[str, str]
) -> None:
    for name in there:
        (tmp_path / name).touch()
    group = Cgroup("none")
    group.groups.append(str(tmp_path))
    group.empty()
    assert {name: (tmp_path / name).read_text("ascii") for name in there} == written
