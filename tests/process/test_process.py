"""Whatever a test does to the process it runs in: a typed verdict, in time, and nothing of it left."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path

import anyio
import pytest

from jumar.child import channel, programs
from jumar.child.channel import Reader
from jumar.child.supervisor import supervise
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Cause, Ended
from jumar.ports import Invocation
from jumar.process import child_process, launch
from jumar.process.child_process import Child, read_records, run_confined
from jumar.process.launch import Confinement, scrub
from jumar.process.warm.pool import WarmPool
from jumar.process.warm.starts import WARM, WarmStarts
from jumar.sandbox.request import Wrapped
from support.judging.real_verifier import Court
from support.processes.sandboxes import s3

SECONDS = 3.5
"""For a whole verification that will not end by itself."""

AROUND = "def test_before():\n    pass\n\n\n{}\n\n\ndef test_after():\n    pass\n"
"""A test that behaves, the one in question, and one that still should run."""

SLEEPER = 'subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])'

LOOP = "def test_it():\n    while True:\n        {}"

HELD = "import ctypes; lock, mutex = ctypes.CDLL(None).pthread_mutex_lock, bytes(64); lock(mutex), lock(mutex)"
"""Code that waits in C for ever, whatever signals come."""

HOSTILE = {
    "hangs": (LOOP.format("pass"), "normal", "passed timeout passed"),
    "ignores SIGTERM and hangs in C": (
        f"def test_it():\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    {HELD}",
        "timeout", "passed timeout error",
    ),
    "swallows every exception": (
        LOOP.format("try: time.sleep(60)\n        except BaseException: pass"), "timeout", "passed timeout error",
    ),
    "stops itself": ("def test_it():\n    os.kill(os.getpid(), signal.SIGSTOP)", "timeout", "passed timeout error"),
    "leaves a child": (f"def test_it():\n    globals()['kept'] = {SLEEPER}", "normal", "passed passed passed"),
    "leaves a daemon that holds stdout": (
        f"def test_it():\n    globals()['kept'] = {SLEEPER[:-1]}, start_new_session=True, stdout=2, stderr=2)",
        "normal", "passed passed passed",
    ),
    "leaves a double-forked daemon without an environment": (
        (
            "def test_it():\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0:\n"
            "            os.execve('/bin/sleep', ['sleep', '600'], {})\n        os._exit(0)"
        ),
        "normal", "passed passed passed",
    ),
    "leaves a daemon that forks without end": (
        (
            "def test_it():\n    if os.fork() == 0:\n        while True:\n            os.setsid()\n"
            "            if os.fork(): os._exit(0)"
        ),
        "normal", "passed passed passed",
    ),
    "exits with 0": ("def test_it():\n    os._exit(0)", "exit", "passed error error"),
    "exits with 0 at the end": (
        "import atexit\n\n\ndef test_it():\n    atexit.register(os._exit, 0)\n    assert False",
        "normal", "passed failed passed",
    ),
    "becomes another program": ("def test_it():\n    os.execvp('true', ['true'])", "exit", "passed error error"),
    "stops the session": ("def test_it():\n    pytest.exit('enough', returncode=0)", "exit", "passed error error"),
    "interrupts the session": ("def test_it():\n    raise KeyboardInterrupt", "exit", "passed error error"),
    "crashes": ("def test_it():\n    os.kill(os.getpid(), signal.SIGSEGV)", "crash", "passed error error"),
    "deletes its file": ("def test_it():\n    os.remove(__file__)\n    assert False", "normal", "passed failed passed"),
    "deletes the room": (
        "import shutil\n\n\ndef test_it():\n    shutil.rmtree(os.getcwd())\n    assert False",
        "exit", "passed failed passed",
    ),
    "answers twice through a fork": (
        "def test_it():\n    if os.fork() == 0:\n        return\n    assert False", "normal", "passed failed passed",
    ),
}  # fmt: skip
"""What a test does -> its source, how the process ends, and the outcomes of the three tests."""


ELSEWHERE = {"deletes the room": ("normal", "passed failed passed")}
"""What comes out otherwise in S3, where a room is a mount: it cannot be removed, and the session goes on."""

SAMPLE = ("hangs", "leaves a daemon that holds stdout", "exits with 0", "crashes", "deletes the room")
"""Tried in S3 each time; `make prove` tries all."""

LIKEWISE = ("swallows every exception", "stops itself")
"""Ended as one that hangs in C is, by the limit of the whole: tried by `make prove` alone."""


@pytest.mark.parametrize(
    ("what", "tier"),
    [
        *(
            pytest.param(what, "S0", marks=pytest.mark.proof if what in LIKEWISE else pytest.mark.slow)
            for what in HOSTILE
        ),
        *(
            pytest.param(what, "S3", marks=pytest.mark.slow if what in SAMPLE else pytest.mark.proof)
            for what in HOSTILE
        ),
    ],
)
def test_a_hostile_test_gets_a_typed_verdict_in_time(tmp_path: Path, what: str, tier: str) -> None:
    source, ended, outcomes = HOSTILE[what]
    if tier == "S3" and what in ELSEWHERE:
        ended, outcomes = ELSEWHERE[what]
    court = Court(tmp_path, Suite(timeout_seconds=SECONDS, test_timeout_seconds=0.5), started=tier == "S0")
    court.verifier.expected = tuple(f"test_it.py::test_{name}" for name in ("before", "it", "after"))
    if tier == "S3":
        court.verifier.sandbox = s3()
    header = "import os\nimport signal\nimport subprocess\nimport sys\nimport time\n\nimport pytest\n\n\n"

    started = time.monotonic()
    done = court.judge(court.tree({"test_it.py": header + AROUND.format(source)}))

    assert time.monotonic() - started < SECONDS + 2
    assert (done.ended, list(court.outcomes(done).values())) == (ended, outcomes.split()), court.output(done)
    assert done.verdict.void is None
    assert court.survivors() == []
    assert list((tmp_path / "run" / "rooms").iterdir()) == []


CHAINS = """\
import os, sys
from jumar.child.supervisor import process_tree, supervise
supervise.adopt_orphans()
for _ in range(10):
    for _ in range(3):
        if os.fork() == 0:
            while True:
                os.setsid()
                if os.fork():
                    os._exit(0)
    left = process_tree.destroy("no room", os.getpid())
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        print(left, "and the kernel knows of none")
"""


@pytest.mark.slow
def test_who_starts_another_process_and_ends_faster_than_one_can_look_is_caught() -> None:
    """One of a hundred outlived its room on a busy machine, unseen, when looks through /proc were all there was."""
    done = subprocess.run([sys.executable, "-c", CHAINS], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.splitlines() == ["0 and the kernel knows of none"] * 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "ended", "outcome"),
    [
        ("os._exit(0)", Ended.EXIT, "error"),
        ("raise SystemExit(0)", Ended.EXIT, "error"),
        ("pytest.exit('no', returncode=0)", Ended.NORMAL, "import_error"),
        ("import no_such_package", Ended.NORMAL, "import_error"),
        ("1 / 0", Ended.NORMAL, "import_error"),
        ("__import__('signal').pause()", Ended.NORMAL, "import_error"),
    ],
)
def test_what_happens_at_import_is_typed_and_no_pass(tmp_path: Path, what: str, ended: Ended, outcome: str) -> None:
    court = Court(tmp_path, Suite(timeout_seconds=20.0, test_timeout_seconds=0.5), started=True)
    court.verifier.expected = ("test_it.py::test_it",)

    done = court.judge(court.tree({"test_it.py": f"import os\nimport pytest\n{what}\n\n\ndef test_it():\n    pass\n"}))

    assert done.ended is ended
    assert court.outcomes(done) == {"test_it": outcome}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=pytest.mark.proof)])
def test_an_attack_on_the_supervisor_is_noticed_and_survived(tmp_path: Path, number: int) -> None:
    court = Court(tmp_path, Suite(timeout_seconds=SECONDS), started=True)
    court.verifier.expected = ("test_it.py::test_it",)
    source = f"import os, time\n\n\ndef test_it():\n    os.kill(os.getppid(), {int(number)})\n    time.sleep(600)\n"

    started = time.monotonic()
    done = court.judge(court.tree({"test_it.py": source}))

    assert time.monotonic() - started < SECONDS + 2
    assert done.verdict.void is not None
    assert done.verdict.void.cause is Cause.TAMPER
    assert "supervisor" in done.verdict.void.reason
    assert court.survivors() == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_in_a_namespace_of_its_own_nobody_finds_the_supervisor(tmp_path: Path, number: int) -> None:
    court = Court(tmp_path, Suite(timeout_seconds=60.0, confirm=0), started=True)
    court.verifier.expected, court.verifier.sandbox = ("test_it.py::test_it",), s3()
    source = (
        f"import os\n\n\ndef test_it():\n    for pid in range(1, os.getpid()):\n        os.kill(pid, {int(number)})\n"
    )
    source += "    assert os.getppid() in (0, 1)\n"

    done = court.judge(court.tree({"test_it.py": source}))

    assert (done.ended, court.outcomes(done)) == (Ended.NORMAL, {"test_it": "passed"})
    assert court.survivors() == []


CHANNEL = f"""
import importlib.util, json, os, sys
spec = importlib.util.spec_from_file_location("channel", {channel.__file__!r})
channel = importlib.util.module_from_spec(spec)
spec.loader.exec_module(channel)
config, send, requests = channel.join()
send(["hello", {{}}])
"""
"""The start of a small program at the other end of the channel."""


def program(source: str, **config: object) -> Invocation:
    return Invocation(argv=(sys.executable, "-I", "-c", CHANNEL + source), config=config)


def run(invocation: Invocation, folder: Path, seconds: float = 20.0) -> tuple[list[list[object]], Child]:
    async def main() -> tuple[list[list[object]], Child]:
        records = []
        async with run_confined(
            invocation, Confinement(room=folder, output=folder / "output", seconds=seconds)
        ) as child:
            while (record := await child.receive()) is not None:
                records.append(record)
        return records, child

    return anyio.run(main)


@pytest.mark.slow
def test_a_gigabyte_of_output_costs_a_few_megabytes(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    flood = "block = b'x' * (1 << 20)\nos.write(1, b'first')\nfor _ in range(1024): os.write(1, block)\n"
    records, child = run(program(flood + "os.write(1, b'last'); send(['end', 0]); os._exit(0)"), tmp_path)

    kept = (tmp_path / "output").read_bytes()
    assert (child.ended, len(records)) == (Ended.NORMAL, 2)
    assert len(kept) < 2 * launch.OUTPUT_BYTES + (1 << 20)
    assert kept.startswith(b"first")
    assert kept.endswith(b"last")
    assert b"bytes of output dropped here" in kept
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10, "kibibytes"


@pytest.mark.slow
def test_a_server_is_asked_and_answers(tmp_path: Path) -> None:
    async def main() -> tuple[object, object]:
        source = "for request in requests: send(['answer', request, config['factor'] * len(request)])"
        async with run_confined(program(source, factor=3), Confinement(room=tmp_path, seconds=20.0)) as child:
            await child.receive()
            await child.send("x" * 300_000)
            answer = await child.receive()
        return answer, await child.receive()

    answer, after = anyio.run(main)

    assert answer == ["answer", "x" * 300_000, 900_000]
    assert after is None


@pytest.mark.slow
def test_cancelling_leaves_nothing(tmp_path: Path) -> None:
    court = Court(tmp_path, Suite(timeout_seconds=60.0, test_timeout_seconds=60.0), started=True)
    court.verifier.expected = ("test_it.py::test_it",)
    tree = court.tree({"test_it.py": "import signal\n\n\ndef test_it():\n    signal.pause()\n"})

    async def main() -> float:
        with anyio.move_on_after(1.0):
            await court.verifier.verify(tree, None)
        return time.monotonic()

    started = time.monotonic()

    assert anyio.run(main) - started < 3.0
    assert court.survivors() == []
    assert list((tmp_path / "run" / "rooms").iterdir()) == []


@pytest.mark.slow
def test_kill_9_of_jumar_leaves_nothing(tmp_path: Path) -> None:
    source = program("send(['pid', os.getpid()])\nwhile True: pass")
    script = (
        "import anyio, json, sys\nfrom pathlib import Path\nfrom jumar.ports import Invocation\n"
        "from jumar.process.launch import Confinement\nfrom jumar.process.child_process import run_confined\n"
        "async def main():\n"
        "    invocation = Invocation(argv=tuple(json.loads(sys.argv[1])))\n"
        "    async with run_confined(invocation, Confinement(room=Path(sys.argv[2]), seconds=60)) as child:\n"
        "        while record := await child.receive():\n            print(record[-1], flush=True)\n\nanyio.run(main)\n"
    )
    jumar = subprocess.Popen(
        [sys.executable, "-c", script, json.dumps(source.argv), str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    with jumar:
        assert jumar.stdout is not None
        jumar.stdout.readline()
        confined_pid = os.pidfd_open(int(jumar.stdout.readline()))
        jumar.kill()

    assert select.select([confined_pid], [], [], 3.0)[0], "the confined process is still there"
    os.close(confined_pid)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "ended", "anomaly"),
    [
        ("os.write(200, b'junk\\n'); send(['end', 0]); os._exit(0)", Ended.NORMAL, "a wrong MAC"),
        ("os.write(200, b'half a line'); send(['end', 0]); os._exit(0)", Ended.EXIT, "a wrong MAC"),
        ("send(['end', 0]); os.write(200, b'half a line'); os._exit(0)", Ended.NORMAL, "half a line"),
        ("send(['end', 0]); os._exit(1)", Ended.EXIT, ""),
        ("os._exit(0)", Ended.EXIT, ""),
        ("os.close(200); send(['end', 0])", Ended.EXIT, ""),
    ],
)
def test_what_the_channel_should_not_carry_is_an_anomaly(
    tmp_path: Path, source: str, ended: Ended, anomaly: str
) -> None:
    _, child = run(program(source), tmp_path)

    assert child.ended is ended
    assert anomaly in "; ".join(child.anomalies)
    assert bool(child.anomalies) is bool(anomaly)


@pytest.mark.slow
def test_a_program_that_cannot_start_is_unstarted_and_named(tmp_path: Path) -> None:
    _, child = run(Invocation(argv=("/no/such/python", "-I")), tmp_path)

    assert child.ended is Ended.UNSTARTED
    assert child.detail == "cannot start /no/such/python: No such file or directory"


@pytest.mark.slow
def test_nothing_but_the_channel_is_inherited(tmp_path: Path) -> None:
    source = "send(['open', sorted(map(int, os.listdir('/proc/self/fd')))]); send(['end', 0]); os._exit(0)"
    records, _ = run(program(source), tmp_path)

    assert records[1] == ["open", [0, 1, 2, 3, 200, 201]], "3 is the listing itself"


@pytest.mark.slow
def test_the_key_is_gone_before_anything_else_is_loaded(tmp_path: Path) -> None:
    records, _ = run(program("send(['stdin', sys.stdin.read(), config]); send(['end', 0]); os._exit(0)", x=1), tmp_path)

    assert records[1] == ["stdin", "", {"x": 1}]


def test_a_confined_process_sees_nothing_of_the_persons_environment(tmp_path: Path) -> None:
    person = {"PATH": "/p", "LANG": "de_DE.UTF-8", "LC_ALL": "C", "TZ": "UTC", "API_KEY": "k", "PYTEST_ADDOPTS": "-x"}

    seen = scrub(
        Invocation(argv=("/v/bin/python",), env={"PYTHONPATH": "src"}),
        Confinement(room=tmp_path / "room", seconds=1.0, environ=person),
    )

    assert seen == {
        "PATH": "/v/bin:/p", "LANG": "de_DE.UTF-8", "LC_ALL": "C", "TZ": "UTC", "PYTHONPATH": "src",
        "HOME": str(tmp_path / "room.private/home"), "TMPDIR": str(tmp_path / "room.private/tmp"),
    }  # fmt: skip


def test_the_reader_knows_a_gap_a_repetition_and_a_forgery() -> None:
    lines: list[bytes] = []
    read, write = os.pipe()
    send = channel._build_sender(b"key", write)  # noqa: SLF001  # the other end of the same wire
    for number in range(3):
        send(["record", number])
        lines.append(os.read(read, 1 << 16))
    os.close(read)
    os.close(write)

    def anomalies(*pieces: bytes) -> list[str]:
        reader = Reader(b"key")
        for piece in pieces:
            reader.feed(piece)
        return reader.anomalies

    assert anomalies(*lines) == []
    assert anomalies(*(line[i : i + 1] for line in lines for i in range(len(line)))) == []
    assert anomalies(lines[0], lines[2]) == ["record 2 is missing from the channel or came twice"]
    assert anomalies(lines[0], lines[0]) == ["record 2 is missing from the channel or came twice"]
    assert anomalies(lines[0].replace(b"0", b"1")) == ["a line on the channel has a wrong MAC"]
    assert anomalies(b"x" * (channel.RECORD_BYTES + 1)) == ["a line on the channel has no end"]


class FailingFork:
    """A zygote's fork that ends at once with status 70, told as a supervisor tells it."""

    nonce = "f" * 32

    def fork(self, launch: launch.Launch) -> subprocess.Popen[bytes]:
        script = f"""import os; os.write({launch.status}, b'{{"how": "exit", "code": 70}}')"""
        process = subprocess.Popen([sys.executable, "-I", "-c", script], pass_fds=[launch.status])
        process.wait()
        return process


class FailingWarmStart:
    """Warm starts of forks that fail, until they are given up."""

    def __init__(self) -> None:
        self.off = ""

    async def prepare(self, invocation: Invocation, confinement: Confinement) -> None:
        """Nothing has to get ready."""

    def find(self, *_: Invocation | Confinement | Wrapped) -> FailingFork | None:
        return None if self.off else FailingFork()

    def learn(self, invocation: Invocation, confinement: Confinement, modules: Sequence[str]) -> None:
        """Nothing is learned."""

    def give_up(self, reason: str) -> None:
        self.off = reason


@pytest.mark.slow
def test_what_a_failed_fork_did_not_run_is_run_by_a_process_that_is_started(tmp_path: Path) -> None:
    room, warm = tmp_path / "room", FailingWarmStart()
    room.mkdir()
    court = Court(tmp_path / "court")
    tree = court.tree({"test_app.py": "def test_it(): pass\n"})
    court.verifier.store.materialise(tree, room / "files")
    invocation = court.verifier.runner.collection(Suite(), room / "files")

    records, child = anyio.run(read_records, invocation, Confinement(room=room / "files", seconds=20.0, warm=warm))

    assert child.ended is Ended.NORMAL
    assert [record[0] for record in records].count("hello") == 1
    assert "ended before the tests" in warm.off
    assert "70" in warm.off


class Burying:
    """A supervisor that has reported, and is not done with its control group."""

    pid, waits = 0, 0

    def wait(self) -> object:
        self.waits += 1
        return None

    def kill(self) -> None:
        """It is not to be killed."""


@pytest.mark.slow
def test_no_process_starts_before_the_kernel_has_forgotten_the_last_one(tmp_path: Path) -> None:
    last = Burying()
    child_process.FORGETTING.append(last)

    anyio.run(read_records, program(""), Confinement(room=tmp_path, seconds=20.0))

    assert last.waits == 1
    assert last not in child_process.FORGETTING


@pytest.mark.slow
def test_a_run_in_a_sandbox_that_was_forked_is_waited_for_by_the_next_one(tmp_path: Path) -> None:
    court = Court(tmp_path, Suite(timeout_seconds=20.0))
    court.verifier.sandbox = s3()
    tree = court.tree({"test_it.py": "def test_it(): pass\n"})
    court.collect(tree)
    with closing(WarmPool(unpaid=0)) as pool:
        starts = court.verifier.warm = WarmStarts(pool)
        court.judge(tree, {})
        left = [*child_process.FORGETTING]
        court.judge(tree, {})

        assert starts.counts[WARM] >= 2
        assert len(left) == 1
        assert left[0] not in child_process.FORGETTING


def test_the_status_of_a_supervisor_is_json_whatever_is_in_its_texts() -> None:
    status = {
        "how": "memory",
        "why": 'a "quote", a \\, a\nline, \x00 and \u2028 and \u00e9',
        "code": -9,
        "survivors": 0,
    }

    assert json.loads(supervise.encode_status(status)) == status


def test_programs_that_are_known_by_name_are_there() -> None:
    """Nothing imports them before they are started."""
    names = [value for name, value in vars(programs).items() if name.isupper()]

    assert names
    assert [name for name in names if not callable(import_module(name).main)] == []
