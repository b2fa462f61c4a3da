"""Whatever a test or the code under test takes of the machine: a typed end in time, and nothing of it left."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent, indent
from typing import NamedTuple

import anyio
import pytest

from jumar.child.supervisor import process_tree, resource_watch
from jumar.child.supervisor.cgroup import MEMORY, Cgroup
from jumar.core.state.settings import Suite
from jumar.errors import BadInput
from jumar.ports import Invocation, Sandbox, Verification
from jumar.process.child_process import Child, run_confined
from jumar.process.launch import Confinement
from jumar.process.limits import ResourceLimits, compute_default_ceiling
from jumar.process.sandbox_check import find_bubblewrap
from jumar.runners.pytest import PytestRunner
from jumar.sandbox.unconfined import Unconfined
from jumar.verify.verifier import TrustedVerifier
from support.judging.real_verifier import Court

SECONDS = 2.5
"""For a whole verification that will not end by itself."""

PATIENT_SECONDS = 6.0
"""For one that is ended for what it takes, on a machine that is busy with other things."""

LOW = ResourceLimits(memory_bytes=400 << 20, processes=300)
"""As low as an honest suite can bear: the machine is not to be filled by its own tests."""

ATTACKS = {
    "ignores every signal": ("timeout", """
        for n in set(signal.Signals) - {9, 19}: signal.signal(n, signal.SIG_IGN)
        sum(iter(int, 1))
    """),
    "leaves a daemon that holds everything open": ("exit", """
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                signal.signal(15, signal.SIG_IGN)
                while True: signal.pause()
        os._exit(0)
    """),
    "leaves a daemon that prints for ever": ("exit", """
        subprocess.Popen(['yes'], start_new_session=True, env={})
        os._exit(0)
    """),
    "forks 3000": ("processes memory timeout", "for _ in range(3000):\n    if os.fork() == 0: signal.pause()\n"),
    "forks without end": ("processes memory timeout", "while True: os.fork()"),
    "starts threads without end": ("processes memory normal", """
        event = threading.Event()
        while True: threading.Thread(target=event.wait, daemon=True).start()
    """),
    "takes much memory at once": ("memory", "kept = b'x' * (2 << 30)\nsignal.pause()"),
    "takes memory bit by bit": ("memory", "kept = [b'x' * (4 << 20) for _ in range(500)]\nsignal.pause()"),
    "takes memory in many processes": ("memory", """
        for _ in range(20):
            if os.fork() == 0:
                kept = [b'x' * (1 << 20) for _ in range(100)]
                signal.pause()
        signal.pause()
    """),
    "prints without end": ("normal timeout memory space", "while True: print('x' * 10000)"),
    "prints without end around the capture": ("normal timeout", """
        pipes = [n for n in range(3, 200) if writable(n)]
        while True: [os.write(n, b'x' * 65536) for n in pipes]
    """),
    "writes into the channel without end": ("normal timeout exit", """
        pipes = [n for n in range(200, 300) if writable(n)]
        while True: [os.write(n, b'x' * 65536) for n in pipes]
    """),
    "spins": ("normal timeout", "for _ in range(5): os.fork()\nsum(iter(int, 1))"),
    "stops itself": ("timeout", "os.kill(os.getpid(), signal.SIGSTOP)"),
    "stops its group": ("timeout", "os.kill(0, signal.SIGSTOP)"),
    "fills the room": ("space normal memory timeout", "fill('.')"),
    "fills its temporary folder": ("space normal memory timeout", "fill(tempfile.gettempdir())"),
    "makes files without end": ("space normal memory timeout", "for n in range(10**6): open(f'f{n}', 'x').close()"),
    "makes folders without end": ("space normal memory timeout", """
        folder = tempfile.gettempdir()
        for n in range(10**6): os.mkdir(f'{folder}/f{n}')
    """),
}  # fmt: skip
"""What is done -> how it may end, and its source."""

SAMPLE = ("takes memory in many processes", "stops its group")
"""Those that are tried each time; all of them are a proof."""

WORK = """
import fcntl, os, signal, stat, subprocess, tempfile, threading


def writable(n):
    try:
        return stat.S_ISFIFO(os.fstat(n).st_mode) and fcntl.fcntl(n, fcntl.F_GETFL) & os.O_WRONLY
    except OSError:
        return False


def fill(folder):
    for n in range(100):
        with open(f"{{folder}}/junk{{n}}", "wb", buffering=0) as file:
            while file.tell() < 1 << 30:
                file.write(b"x" * (1 << 20))


def work():
{}
    return 1
"""


class Bounded(TrustedVerifier):
    """A verifier whose processes may take less than usual."""

    def build_confinement(self, room: Path, output: Path | None) -> Confinement:
        return dataclasses.replace(super().build_confinement(room, output), ceiling=LOW)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=160m,nr_inodes=9000", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs root, who may mount a small disk: without a sandbox there is none to be filled safely")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """The strongest sandbox."""
    try:
        return anyio.run(find_bubblewrap, tmp_path_factory.mktemp("box"), dict(os.environ))
    except BadInput as reason:
        pytest.skip(f"NOT PROVED: {reason}")


def limit(what: str) -> float:
    """How long *what* may take."""
    ends = set(ATTACKS[what][0].split())
    return PATIENT_SECONDS if ends & {"processes", "memory", "space"} or ends == {"exit"} else SECONDS


def judged(folder: Path, what: str, where: str, sandbox: Sandbox) -> tuple[Verification, Court, float]:
    """The verification of a small project in which *what* is done, in its code or in its test, and its seconds."""
    work = WORK.format(indent(dedent(ATTACKS[what][1]).strip(), "    "))
    test = "def test_before(): pass\n\n\ndef test_it():\n    assert work() == 1\n\n\ndef test_after(): pass\n"
    files = {"app.py": work, "test_app.py": "from app import work\n\n\n" + test}
    if where == "test":
        files = {"test_app.py": f"{work}\n\n{test}"}
    court = Court(folder, started=True)
    seconds = limit(what)
    suite = Suite(timeout_seconds=seconds, test_timeout_seconds=0.8 * seconds)
    court.verifier = Bounded(court.store, PytestRunner(), suite, folder / "run", sandbox=sandbox)
    court.verifier.expected = tuple(f"test_app.py::test_{name}" for name in ("before", "it", "after"))
    tree, started = court.tree(files), time.monotonic()
    return court.judge(tree), court, time.monotonic() - started


def check(what: str, done: Verification, court: Court, seconds: float) -> None:
    """It ended as it may, in time, and nothing is left of it."""
    said = " ".join(r.excerpt for r in done.verdict.results.values())
    # Beside other tests a second is no second.
    late = 2.5 if "PYTEST_XDIST_WORKER" in os.environ or os.getloadavg()[0] > (os.cpu_count() or 1) else 1.0
    assert seconds < limit(what) + late
    assert court.survivors() == []
    assert list((court.folder / "run" / "rooms").iterdir()) == []
    assert "test_app.py::test_it" not in done.verdict.green_ids
    hows = {"processes": "processes", "memory": "memory", "space": "on its disk"}
    ends, how = ATTACKS[what][0].split(), (done.ended, said, court.output(done))
    assert done.ended in ends or any(hows[end] in said for end in ends if end in hows), how
    assert done.verdict.void is None or "channel" in what, done.verdict.void


@pytest.mark.slow
@pytest.mark.parametrize("what", SAMPLE)
def test_a_toll_that_is_too_high_ends_typed_and_in_time(tmp_path: Path, what: str) -> None:
    check(what, *judged(tmp_path, what, "code", Unconfined()))


@pytest.mark.proof
@pytest.mark.parametrize("what", ["stops its group"])
def test_in_a_sandbox_it_ends_likewise(tmp_path: Path, box: Sandbox, what: str) -> None:
    check(what, *judged(tmp_path, what, "code", box))


@pytest.mark.proof
@pytest.mark.parametrize("where", ["code", "test"])
@pytest.mark.parametrize("what", ATTACKS)
def test_every_toll_that_is_too_high_ends_typed_and_in_time(disk: Path, what: str, where: str) -> None:
    check(what, *judged(disk, what, where, Unconfined()))


@pytest.mark.proof
@pytest.mark.parametrize("where", ["code", "test"])
@pytest.mark.parametrize("what", ATTACKS)
def test_in_a_sandbox_every_toll_ends_likewise(tmp_path: Path, box: Sandbox, what: str, where: str) -> None:
    check(what, *judged(tmp_path, what, where, box))


@pytest.mark.proof
def test_jumar_itself_stays_small_meanwhile(tmp_path: Path) -> None:
    """What is printed, reported and allocated without end costs the one who judges it next to nothing."""
    program = f"""
        import json, pathlib, sys
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        from process.test_resources import Unconfined, judged
        for number, what in enumerate(sys.argv[1:]):
            judged(pathlib.Path({str(tmp_path)!r}, str(number)), what, "code", Unconfined())
        status = pathlib.Path("/proc/self/status").read_text()
        print(next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) // 1024)
    """
    whats = (
        "prints without end around the capture",
        "writes into the channel without end",
        "takes much memory at once",
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    done = subprocess.run(
        [sys.executable, "-c", dedent(program), *whats], capture_output=True, text=True, env=environ, check=True
    )

    assert int(done.stdout) < 200, "MiB"


class Machine:
    """A family and a machine that a toll is asked of, as the test wants them."""

    def __init__(self, folder: Path, **most: int) -> None:
        self.members: dict[int, Member] = {}
        self.burst = ""
        order = {"memory_bytes": 1 << 40, "processes": 10, "cwd": str(folder), "env": {}, **most}
        self.toll = resource_watch.ResourceWatch(order, lambda: self.members, lambda: self.burst)

    def how(self) -> object:
        """How the family ends at the next look."""
        while self.toll.seconds:
            time.monotonic()
        found = self.toll.look()
        return found["how"] if found else None


class Member(NamedTuple):
    """A process that is not there."""

    threads: int = 1
    pages: int = 1


class TestALook:
    """At a family that is not there, and a machine that is."""

    @pytest.mark.slow
    def test_counts_processes_and_threads(self, tmp_path: Path) -> None:
        machine = Machine(tmp_path, processes=10)
        machine.members = {1 << 30 | n: Member() for n in range(10)}
        assert machine.how() is None
        machine.members = {1 << 30 | n: Member() for n in range(11)}
        assert machine.how() == "processes"
        machine.members = {1 << 30: Member(threads=10 * resource_watch.THREADS + 1)}
        assert machine.how() == "processes"

    @pytest.mark.slow
    def test_weighs_what_is_shared_once(self, tmp_path: Path) -> None:
        own = process_tree.find_descendants(os.getppid())[os.getpid()]
        machine = Machine(tmp_path, memory_bytes=own.pages * resource_watch.PAGE + (64 << 20))
        machine.members = {os.getpid(): Member(pages=own.pages + (128 << 20) // resource_watch.PAGE)}
        assert machine.how() is None, "what is there is less than what the sum says"
        machine.members[1 << 30] = Member(pages=(128 << 20) // resource_watch.PAGE)
        assert machine.how() == "memory", "one that cannot be weighed counts as what it holds"

    @pytest.mark.slow
    def test_believes_the_kernel(self, tmp_path: Path) -> None:
        machine = Machine(tmp_path)
        machine.burst = "memory"
        assert machine.how() == "memory"

    @pytest.mark.slow
    def test_names_a_disk_that_is_nearly_full_with_what_there_is(self, tmp_path: Path) -> None:
        machine = Machine(tmp_path)
        machine.toll._spare = {str(tmp_path): (1 << 60, 0)}  # noqa: SLF001  no disk is filled for it
        assert machine.how() == "space"

    @pytest.mark.parametrize(("number", "said"), [(3 << 30, "3 GiB"), (256 << 20, "256 MiB"), (300 << 10, "300 KiB")])
    def test_names_a_size_by_its_unit(self, number: int, said: str) -> None:
        assert resource_watch._format_size(number) == said  # noqa: SLF001  no machine has so little left

    def test_is_not_taken_before_it_is_due(self, tmp_path: Path) -> None:
        machine = Machine(tmp_path)
        machine.burst = "memory"
        assert machine.toll.look() is None


def test_the_usual_ceiling_leaves_the_machine_half_of_its_memory() -> None:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < compute_default_ceiling().memory_bytes <= min(total // 2, 8 << 30)
    assert compute_default_ceiling().processes >= 512


@pytest.mark.slow
@pytest.mark.parametrize("way", ["ends", "kills its supervisor"])
def test_a_cell_is_gone_with_what_was_in_it(tmp_path: Path, way: str) -> None:
    """Memory that belongs to no process is seen by control groups alone."""
    probe = Cgroup("probe")
    probe.make(1 << 30, 1000)
    probe.leave()
    if not any(Path(group).with_name(name).exists() for group in probe.groups for name in MEMORY):
        pytest.skip("no control group that bounds memory can be made here")
    work = "kept = os.memfd_create('x')\nfor _ in range(1000): os.write(kept, b'x' * (1 << 20))\nsignal.pause()"
    source = work if way == "ends" else "os.kill(os.getppid(), 9)\nsignal.pause()"
    (tmp_path / "room").mkdir()

    async def main() -> Child:
        invocation = Invocation(argv=(sys.executable, "-c", f"import os, signal\n{source}"))
        confinement = Confinement(room=tmp_path / "room", seconds=SECONDS, ceiling=LOW)
        async with run_confined(invocation, confinement) as child:
            await child.receive()
        return child

    child = anyio.run(main)
    assert ("400 MiB of memory" if way == "ends" else "supervisor") in child.detail
    assert not [group for group in probe.groups if Path(group).with_name(f"jumar-{child.family[0]}").exists()]
