"""Below S3: honest programs work in S2 and S1, dishonest ones do not get out, and nothing is left of either."""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio
import pytest

from jumar.core.state.verdict import Outcome
from jumar.ports import Invocation, Sandbox
from jumar.process.child_process import run_confined
from jumar.process.launch import Confinement
from jumar.process.output import read_output
from jumar.sandbox import bpf, launch_order, seccomp_shared
from jumar.sandbox.request import Reach
from support.judging.real_verifier import Court
from support.processes import other_users as strangers

BELOW_S3 = ["S2", "S1"]

HONEST = """
import asyncio, concurrent.futures, multiprocessing, os, pathlib, pty, socket, sqlite3, subprocess, sys, tempfile

def loopback():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        server.accept()[0].sendall(b"x")
        assert client.recv(1) == b"x"

def files():
    pathlib.Path("a").write_text("x")
    os.rename("a", "b"); os.mkdir("c"); os.rename("b", "c/d"); os.link("c/d", "e"); os.symlink("c", "f")
    os.chmod("e", 0o755); os.utime("e"); os.truncate("e", 0); os.mkfifo("g"); os.unlink("e")

def pool():
    with multiprocessing.Pool(2) as workers:
        assert workers.map(abs, [-1, 2]) == [1, 2]

def temporary():
    with tempfile.TemporaryDirectory() as folder:
        assert folder.startswith(os.environ["TMPDIR"])
    (pathlib.Path.home() / "kept").write_text("x")

def threads():
    with concurrent.futures.ThreadPoolExecutor(8) as workers:
        assert sum(workers.map(abs, range(100))) == 4950

def database():
    with sqlite3.connect("it.db") as connection:
        connection.execute("create table it (x)")

def programs():
    assert subprocess.run(["/bin/sh", "-c", "echo $0 | cat"], capture_output=True).stdout == b"/bin/sh\\n"

def itself():
    assert os.path.realpath(".") == os.getcwd() and sys.executable and os.listdir("/proc/self/fd")

for work in (loopback, files, pool, temporary, threads, database, programs, itself, socket.socketpair, pty.openpty,
             lambda: asyncio.run(asyncio.sleep(0))):
    work()
print("all of it worked")
"""

LIMITED = HONEST.replace("for work in (loopback, ", "for work in (").replace(", pty.openpty", "")
"""Without namespaces there is no loopback; and no terminal where the user stays the same."""

CONFINE = """
import anyio, os, sys, tempfile
from pathlib import Path
from jumar.ports import Invocation
from jumar.sandbox.landlock import Landlocked
from jumar.process.launch import Confinement
from jumar.process.child_process import run_confined

async def main():
    room = Path(sys.argv[1], "rooms", "room")
    room.mkdir(parents=True)
    output = Path(sys.argv[1], "output")
    invocation = Invocation(argv=(sys.executable, "-I", "-c", HONEST))
    confinement = Confinement(room=room, seconds=20, output=output, sandbox=Landlocked())
    async with run_confined(invocation, confinement) as child:
        while await child.receive() is not None:
            pass
    print(output.read_text())

anyio.run(main)
"""

HOSTILE = {
    "test_it.py": (
        "import os, pathlib, pytest\n\n"
        "@pytest.mark.parametrize('path', {paths!r})\n"
        "def test_out(path):\n"
        "    with pytest.raises(OSError):\n"
        "        pathlib.Path(path).write_text('was here')\n\n"
        "def test_daemon():\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        os.execve('/bin/sleep', ['sleep', '600'], {{}})\n"
    )
}


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of ours that nothing covers; its way leads through one that others cannot pass."""
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix=".place-") as folder:
        (Path(folder) / "rooms" / "room").mkdir(parents=True)
        yield Path(folder)


@pytest.fixture(params=BELOW_S3)
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    return strangers.sandbox(request.param)


def python(code: str, place: Path, sandbox: Sandbox, reach: Reach | None = None, fds: tuple[int, ...] = ()) -> str:
    """What *code* prints in *sandbox*."""
    room, output = place / "rooms" / "room", place / "output"
    invocation = Invocation(argv=(sys.executable, "-I", "-c", code), env={"MARK": "a\udcffb=c"})

    async def started() -> str:
        confinement = Confinement(
            room=room, seconds=20, output=output, sandbox=sandbox, reach=reach or Reach(), fds=fds
        )
        async with run_confined(invocation, confinement) as child:
            while await child.receive() is not None:
                pass
        return read_output(output).strip()

    return anyio.run(started)


@pytest.mark.slow
def test_honest_programs_work(place: Path, sandbox: Sandbox) -> None:
    assert python(HONEST, place, sandbox) == "all of it worked"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("manner", "code"),
    [
        pytest.param(strangers.ORDINARY, HONEST, id="user", marks=pytest.mark.proof),
        pytest.param(strangers.SECLUDED, LIMITED, id="user without namespaces"),
    ],
)
def test_honest_programs_work_for_ordinary_users(manner: Sequence[str], code: str) -> None:
    strangers.sandbox("S2")
    with strangers.stranger() as stranger:
        assert stranger.run(manner, f"HONEST = {code!r}\n{CONFINE}") == "all of it worked"


ENDS = {
    "os._exit(7)": "left with status 7",
    "os.kill(os.getpid(), signal.SIGTERM)": "killed by SIGTERM",
    "os.kill(os.getpid(), signal.SIGKILL)": "killed by SIGKILL",
    "os.fork() or signal.pause()": "left with status 0",
}
"""End of a program -> its exit status as told. The last one leaves a process that waits for ever."""


@pytest.mark.slow
@pytest.mark.parametrize("code", ENDS)
def test_a_program_ends_as_it_would_outside(place: Path, sandbox: Sandbox, code: str) -> None:
    """It is not the first process of its namespace, which hears no signal that it does not ask for."""

    async def main() -> str:
        argv = (sys.executable, "-I", "-c", f"import os, signal\nassert os.getpid() != 1\n{code}")
        confinement = Confinement(room=place / "rooms" / "room", seconds=20, sandbox=sandbox)
        async with run_confined(Invocation(argv=argv), confinement) as child:
            while await child.receive() is not None:
                pass
        return child.detail

    assert ENDS[code] in anyio.run(main)


@pytest.mark.slow
def test_environment_and_descriptors_reach_the_program_unchanged(place: Path, sandbox: Sandbox) -> None:
    code = (
        "import json, os, sys\n"
        "with open('/proc/self/environ', 'rb') as file:\n"
        "    found = dict(e.split(b'=', 1) for e in file.read().split(b'\\0') if e)\n"
        "kept = {k.decode(): v.decode('latin-1') for k, v in found.items() if k != b'JUMAR_ROOM'}\n"
        "fds = sorted(int(n) for n in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{n}'))\n"
        "print(json.dumps([kept, os.read(FD, 10).decode(), len(fds)]))"
    )
    seen = []
    for box in (strangers.sandbox("S0"), sandbox):
        with tempfile.TemporaryFile() as file:
            file.write(b"handed on")
            file.seek(0)
            told = python(code.replace("FD", str(file.fileno())), place, box, fds=(file.fileno(),))
            seen.append(json.loads(told))

    assert seen[0] == seen[1]
    assert seen[1][1] == "handed on"
    assert seen[1][0]["MARK"] == "a\xffb=c"


@pytest.mark.slow
def test_a_verdict_is_the_same_and_nothing_gets_out(tmp_path: Path, sandbox: Sandbox) -> None:
    outside = [str(tmp_path / "out"), str(Path.home() / ".jumar-was-here"), "/usr/was-here", "/etc/was-here"]
    court = Court(tmp_path, started=True)
    court.verifier.sandbox = sandbox
    tree = court.tree({name: text.format(paths=outside) for name, text in HOSTILE.items()})
    ids = court.collect(tree)
    done = court.judge(tree)

    assert len(ids) == 5
    assert {r.outcome for r in done.verdict.results.values()} == {Outcome.PASSED}, court.output(done)
    assert not [path for path in outside if Path(path).exists()]
    assert court.survivors() == []
    assert list((tmp_path / "run" / "rooms").iterdir()) == [], "the room is gone, whoever it belonged to"


@pytest.mark.slow
def test_nobody_s_file_is_given_away_through_a_second_name(place: Path, sandbox: Sandbox) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files to another user")
    outside, room = place / "secret", place / "rooms" / "room"
    outside.write_text("secret", "utf-8")
    outside.chmod(0o600)
    (room / "own").write_text("own", "utf-8")
    os.link(outside, room / "linked")
    (room / "led").symlink_to(outside)

    said = python("print(open('own').read(), flush=True); open('linked')", place, sandbox).splitlines()

    assert said[0] == "own"
    assert said[-1].startswith("PermissionError")
    assert outside.stat().st_uid == os.geteuid()


@pytest.mark.slow
def test_the_room_may_lie_where_others_cannot_pass(place: Path, sandbox: Sandbox) -> None:
    place.chmod(0o700)
    shown = place / "shown"
    shown.mkdir()
    (shown / "it").write_text("can be read", "utf-8")
    (place / "hidden").write_text("cannot", "utf-8")
    code = (
        f"print(open({str(shown / 'it')!r}).read())\n"
        f"try: print(open({str(place / 'hidden')!r}).read())\n"
        "except OSError: print('hidden')\n"
        f"try: open({str(shown / 'it')!r}, 'w')\n"
        "except OSError: print('and no more')"
    )

    assert python(code, place, sandbox, Reach(readable=(shown,))).splitlines() == [
        "can be read", "hidden", "and no more"
    ]  # fmt: skip


@pytest.mark.slow
def test_a_closed_folder_may_lie_in_one_that_is_shown(place: Path, sandbox: Sandbox) -> None:
    place.chmod(0o755)
    (place / "rooms").chmod(0o700)
    (place / "beside").write_text("shown", "utf-8")

    assert python("print(open('../../beside').read())", place, sandbox, Reach(readable=(place,))) == "shown"


@pytest.mark.slow
def test_what_may_be_written_stays(place: Path, sandbox: Sandbox) -> None:
    kept = place / "kept"
    kept.mkdir()
    code = f"import pathlib; pathlib.Path({str(kept / 'it')!r}).write_text('stays'); print('done')"

    assert python(code, place, sandbox, Reach(writable=(kept,))) == "done"
    assert (kept / "it").read_text("utf-8") == "stays"


@pytest.mark.slow
def test_a_socket_of_ours_can_be_talked_to_and_no_other(place: Path, sandbox: Sandbox) -> None:
    ours, other = place / "ours", place / "other"
    code = (
        "import socket\n"
        f"for path in ({str(ours)!r}, {str(other)!r}):\n"
        "    try: socket.socket(socket.AF_UNIX).connect(path); print('reached')\n"
        "    except OSError as refused: print(type(refused).__name__)"
    )
    with socket.socket(socket.AF_UNIX) as first, socket.socket(socket.AF_UNIX) as second:
        for listener, path in ((first, ours), (second, other)):
            listener.bind(str(path))
            listener.listen()
        reached, refused = python(code, place, sandbox, Reach(sockets=(ours,))).splitlines()

    assert reached == "reached"
    assert refused != "reached" or os.geteuid() != 0, "as one's own user, one socket opens the way to all"


@pytest.mark.slow
def test_what_cannot_be_confined_does_not_start() -> None:
    with strangers.stranger() as stranger:
        code = CONFINE.replace("Landlocked", "AnotherUser").replace("sandbox.landlock", "sandbox.other_user")
        said = stranger.run(strangers.CONTAINED, f"HONEST = 'print(1)'\n{code}")

    assert said == "jumar: this machine gives no namespace of its own to a process: it needs CAP_SYS_ADMIN"


@pytest.mark.slow
def test_only_root_can_become_another_user() -> None:
    code = (
        "from jumar.sandbox.other_user import AnotherUser\nfrom jumar.sandbox.request import Reach\n"
        "from pathlib import Path\n"
        "try: AnotherUser().wrap(('/bin/true',), Path('/r'), Path('/p'), Reach())\n"
        "except Exception as refused: print(refused)"
    )
    with strangers.stranger() as stranger:
        assert stranger.run(strangers.ORDINARY, code).startswith("sandbox S1 cannot be had: only root can become")


def test_an_order_tells_what_may_be_read_and_written(tmp_path: Path) -> None:
    reach = Reach(readable=(tmp_path / "r",), writable=(tmp_path / "w",), sockets=(tmp_path / "s",))
    what = launch_order.build_order(("/bin/sh",), tmp_path / "room", tmp_path / "private", reach)

    assert {str(tmp_path / name) for name in ("room", "private", "w")} <= set(what.writable)
    assert {str(tmp_path / "r"), "/bin"} <= set(what.readable)
    assert not {str(tmp_path), "/", "/root", "/home"} & {*what.readable, *what.writable}
    assert what.sockets == (str(tmp_path / "s"),)


def answered(program: bytes, number: int, architecture: int, *arguments: int) -> str:
    """What the kernel would do: a filter, run on one system call (see `struct seccomp_data`)."""
    data = struct.pack("<IIQ6Q", number, architecture, 0, *arguments, *(0,) * (6 - len(arguments)))
    rules = list(struct.iter_unpack("<HBBI", program))
    held, at = 0, 0
    while True:
        code, yes, no, operand = rules[at]
        if code == 0x06:
            return {0x7FFF0000: "allow", 0x80000000: "kill"}.get(operand, f"errno {operand & 0xFFFF}")
        if code == 0x20:
            (held,) = struct.unpack_from("<I", data, operand)
        at += 1 + ((yes if held == operand else no) if code == 0x15 else 0)


@pytest.mark.parametrize(
    ("machine", "architecture", "numbers"),
    [("x86_64", 0xC000003E, (41, 302, 30, 0)), ("aarch64", 0xC00000B7, (198, 261, 196, 63))],
)
def test_the_second_filter_refuses_what_is_shared(machine: str, architecture: int, numbers: tuple[int, ...]) -> None:
    new, prlimit, shmat, read = numbers
    shut = seccomp_shared.build_filter(families=(bpf.UNIX, bpf.INET, bpf.INET6), memory=True, machine=machine)
    lone = seccomp_shared.build_filter(families=(bpf.UNIX,), memory=False, machine=machine)
    assert shut is not None
    assert lone is not None

    assert [answered(shut, new, architecture, family) for family in (1, 2, 10, 16)] == [*["errno 97"] * 3, "allow"]
    assert [answered(lone, new, architecture, family) for family in (1, 2, 10, 16)] == ["errno 97", *["allow"] * 3]
    assert [answered(lone, prlimit, architecture, pid) for pid in (0, 1, 4242)] == ["allow", "errno 1", "errno 1"]
    assert (answered(shut, shmat, architecture), answered(lone, shmat, architecture)) == ("errno 38", "allow")
    assert {answered(each, read, architecture) for each in (shut, lone)} == {"allow"}
    assert {answered(each, read, 0x40000003) for each in (shut, lone)} == {"kill"}


def test_an_unknown_machine_has_no_second_filter() -> None:
    assert seccomp_shared.build_filter(families=(), memory=True, machine="vax") is None
