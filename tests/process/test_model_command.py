"""A command of a model's: what it can reach, what it leaves behind, and what is told of it."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.errors import BadInput
from jumar.ports import Ran
from jumar.process.model_command import REFUSED, build_confined_commands
from jumar.process.output import OMITTED, OUTPUT_BYTES, strip_terminal_codes
from jumar.sandbox import bwrap
from jumar.workspace.store.object_store import Store
from support.processes.sandboxes import environment_of, s3

PYTHON = Path(sys.executable)
KEY = "sk-planted-" + "k" * 20
ENVIRON = {"PATH": os.environ["PATH"], "HOME": str(Path.home()), "LANG": "C.UTF-8", "OPENAI_API_KEY": KEY}
FILES = {"a.py": "print('as it was')\n", "test_a.py": "def test_a():\n    assert open('a.py').read()\n"}


class Lab:
    """Runs commands in copies of one small tree."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run_folder = folder / "runs" / "this"
        self.store = Store(self.run_folder / "objects")
        self.repository = folder / "repository"
        self.tree = self.keep(FILES)
        (self.run_folder / "events.jsonl").write_text(KEY, "utf-8")
        self.commands = anyio.run(build_confined_commands, self.store, self.run_folder, PYTHON, ENVIRON, s3())

    def keep(self, files: Mapping[str, str]) -> str:
        """The tree of *files*, which stay in the repository."""
        for path, text in files.items():
            (self.repository / path).parent.mkdir(parents=True, exist_ok=True)
            (self.repository / path).write_text(text, "utf-8")
        return self.store.capture(self.repository)

    def run(self, command: str, seconds: float = 20.0, tree: str = "") -> Ran:
        """What *command* did."""
        return anyio.run(self.commands.run, tree or self.tree, command, seconds)

    def python(self, source: str, seconds: float = 20.0) -> str:
        """What a Python program prints in there."""
        return self.run(f"python -c '{source}'", seconds).output.strip()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """The lab of all of these tests: it has to try its sandbox, and no command leaves anything."""
    return Lab(tmp_path_factory.mktemp("lab"))


def bearing(mark: str) -> list[str]:
    """The living processes of this machine with *mark* in their command line."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (process / "cmdline").read_bytes():
                found.append((process / "cmdline").read_text("utf-8", "replace"))
    return found


@pytest.mark.parametrize(
    ("printed", "kept"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;cm0gLXJm\x07", ""),
        ("\x1bPdevice\x1b\\a", "a"),
        ("\x1b]never ends\nnext line", "never ends\nnext line"),
        ("\x9b31mc1\x85", "c1"),
        ("a\r\nb\rc\td\x00\x08\x7f\x0c", "a\nb\nc\td"),
        ("\x1b(B\x1b=\x1bcplain\x1b", "plain"),
        ("dénouement ✓", "dénouement ✓"),
    ],
)
def test_control_sequences_are_stripped(printed: str, kept: str) -> None:
    assert strip_terminal_codes(printed) == kept


@pytest.mark.slow
@given(st.text(st.sampled_from("\x1b[]PX^_\\\x07;0m?\r\n\t a\x9b\x9c\x00\x7f")))
def test_what_is_left_moves_no_cursor(text: str) -> None:
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", strip_terminal_codes(text))


@pytest.mark.slow
def test_stripping_takes_time_in_proportion() -> None:
    started = time.perf_counter()
    for piece in ("\x1b]", "\x1b[", "\x1b]0;x", "\x1b[0;", "\x1bP"):
        strip_terminal_codes(piece * (OUTPUT_BYTES // len(piece)))
    assert time.perf_counter() - started < 5


@pytest.mark.slow
class TestAvailability:
    """Confined by a program that was seen to confine, or refused before anything runs."""

    def test_a_run_that_commands_could_see_is_refused(self, tmp_path: Path) -> None:
        box, python = s3(), environment_of(tmp_path / "environment")
        folder = tmp_path / "environment" / "lib" / "runs" / "this"
        with pytest.raises(BadInput, match=f"would see the runs in {folder}/rooms, as they have to see .*/lib: keep"):
            anyio.run(build_confined_commands, Store(folder / "objects"), folder, python, ENVIRON, box)

    def test_an_interpreter_that_does_not_start_in_there_is_refused(self, tmp_path: Path) -> None:
        box, shim = s3(), tmp_path / "shims" / "python"
        shim.parent.mkdir()
        shim.write_text(f'#!/bin/sh\n. {tmp_path}/beside\nexec {PYTHON} "$@"\n', "utf-8")
        shim.chmod(0o755)
        (tmp_path / "beside").touch()
        store = Store(tmp_path / "objects")
        with pytest.raises(BadInput, match=f"{shim} does not start in the sandbox"):
            anyio.run(build_confined_commands, store, tmp_path / "run", shim, ENVIRON, box)


@pytest.mark.slow
class TestReach:
    """What a command can see, write, call and signal."""

    def test_no_network(self, lab: Lab) -> None:
        name = f"\0jumar-{uuid4()}"
        with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
            unix.bind(name)
            unix.listen()
            port = tcp.getsockname()[1]
            probe = f"""
import socket
def tried(do):
    try:
        do()
        print("reached")
    except OSError as fault:
        print(type(fault).__name__)
tried(lambda: socket.create_connection(("127.0.0.1", {port}), 3))
tried(lambda: socket.socket(socket.AF_UNIX).connect("\\0{name[1:]}"))
tried(lambda: socket.getaddrinfo("example.org", 80))
tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53)))
own = socket.create_server(("127.0.0.1", 0))
tried(lambda: socket.create_connection(own.getsockname(), 3))
"""
            said = lab.run(f"python - <<'END'\n{probe}\nEND").output.split()
        assert said == ["ConnectionRefusedError", "ConnectionRefusedError", "gaierror", "OSError", "reached"]

    def test_no_secret_of_the_home_the_run_other_runs_or_the_repository(self, lab: Lab) -> None:
        other = lab.folder / "runs" / "other" / "events.jsonl"
        other.parent.mkdir()
        other.write_text(KEY, "utf-8")
        (lab.repository / ".env").write_text(KEY, "utf-8")
        with tempfile.NamedTemporaryFile("w", dir=Path.home(), prefix=".jumar-planted") as planted:
            planted.write(KEY)
            planted.flush()
            paths = (planted.name, other, lab.run_folder / "events.jsonl", lab.repository / ".env", "/etc/shadow")
            ways = [way for path in paths for way in (path, f"/proc/1/root{path}", f"/proc/self/cwd/../..{path}")]
            assert all(Path(path).exists() for path in paths)
            ran = lab.run("\n".join(f"cat {way}" for way in ways))
            listed = lab.run(f"find {Path.home()} {lab.folder} /run /var /mnt /home -type f -not -path '*/lib/*' 2>&1")
        assert ran.output.count("No such file") == len(ways)
        assert KEY not in ran.output
        assert planted.name not in listed.output
        assert str(lab.folder) not in listed.output.replace(f"find: ‘{lab.folder}’", "")
        assert not lab.run(r"find / \( -path /proc -o -path /usr \) -prune -o -type s -print").output

    def test_no_key_of_the_environment(self, lab: Lab) -> None:
        said = lab.run("env; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'").output
        assert "HOME=/jumar/private/home" in said
        assert KEY not in said
        assert "OPENAI" not in said

    def test_the_environment_is_the_same_each_time(self, lab: Lab) -> None:
        first, second = (
            lab.run("env; pwd; hostname; id; ls -A ~ . /tmp"),
            lab.run("env; pwd; hostname; id; ls -A ~ . /tmp"),
        )
        assert first == second
        assert str(bwrap.WORKSPACE) in first.output

    def test_nothing_outside_can_be_written(self, lab: Lab, tmp_path: Path) -> None:
        own = [
            tmp_path,
            lab.folder,
            lab.run_folder,
            lab.repository,
            Path.home(),
            PYTHON.parent,
            Path(sys.base_prefix, "lib"),
        ]
        system = ["/", "/usr/bin", "/etc", "/dev", "/jumar", "/jumar/tree", "/proc/sys/kernel"]
        name = f"jumar-{uuid4()}"
        ran = lab.run("\n".join(f"echo x > {folder}/{name} && echo {folder} written" for folder in (*own, *system)))
        assert "written" not in ran.output
        assert not [folder for folder in own if (folder / name).exists()]

    def test_the_kernel_cannot_be_told_what_to_start_outside(self, lab: Lab) -> None:
        for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger"):
            ran = lab.run(f": >> {path} && echo opened")
            assert "opened" not in ran.output

    def test_no_process_outside_is_seen_or_signalled(self, lab: Lab) -> None:
        with subprocess.Popen([PYTHON, "-c", "input()"], stdin=subprocess.PIPE) as outside:
            ran = lab.run(f"ls /proc | grep -c '^[0-9]'; kill -9 {outside.pid} {os.getpid()}; kill -9 -1; echo here")
            assert int(ran.output.split()[0]) < 10
            assert "No such process" in ran.output
            assert outside.poll() is None
            outside.communicate(b"\n")
        assert outside.returncode == 0

    def test_no_descriptor_of_ours_is_handed_down(self, lab: Lab) -> None:
        seen = lab.python('import os; print([f for f in range(1024) if os.path.exists(f"/proc/self/fd/{f}")])')
        assert seen == "[0, 1, 2]"
        assert lab.run("cat; cat <&3").output.count("\n") <= 1

    def test_no_privilege_can_be_had(self, lab: Lab) -> None:
        assert lab.run("mount -t tmpfs none /tmp || mount --bind / /tmp || mount -o remount,rw /usr/bin").exit
        assert lab.run("unshare --user true").exit
        assert (
            lab.run("grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb)' /proc/self/status | grep -vc '0000000000000000$'").output
            == "0\n"
        )

    def test_links_in_a_tree_lead_nowhere(self, lab: Lab, tmp_path: Path) -> None:
        victim = tmp_path / "victim"
        victim.write_text(KEY, "utf-8")
        (lab.repository / "link").symlink_to(victim)
        (lab.repository / "folder").symlink_to(tmp_path)
        (lab.repository / "up").symlink_to("../" * 20 + str(victim)[1:])
        tree = lab.store.capture(lab.repository)
        ran = lab.run(
            "cat link up folder/victim; echo broken > link; echo broken > up; echo broken > folder/victim;"
            "ln /jumar/tree/a.py hard; ln -s /proc/1/root root; cat root/etc/shadow",
            tree=tree,
        )
        assert KEY not in ran.output
        assert "root:" not in ran.output
        assert victim.read_text("utf-8") == KEY


@pytest.mark.slow
class TestLeavings:
    """What is left when it has ended, or had to."""

    def test_the_tree_is_as_it_was(self, lab: Lab) -> None:
        before = {p: p.read_bytes() for p in lab.store.root.rglob("*") if p.is_file()}
        ran = lab.run(
            "echo 'print(1)' > a.py; chmod 777 .; rm test_a.py; mkdir -p locked/in; chmod 000 locked; python a.py"
        )
        assert ran == Ran(exit=0, output="1\n")
        assert lab.run("python a.py; ls").output == "as it was\na.py\ntest_a.py\n"
        assert {p: p.read_bytes() for p in lab.store.root.rglob("*") if p.is_file()} == before
        assert (lab.repository / "a.py").read_text("utf-8") == FILES["a.py"]
        assert not list((lab.run_folder / "rooms").iterdir())

    def test_what_it_writes_has_a_bound_and_is_not_on_the_disk(self, lab: Lab) -> None:
        ran = lab.run(
            "head -c 100000000 /dev/zero > /dev/shm/big; df --output=target,size . /tmp /dev/shm | tail -n +2"
        )
        assert "No space left on device" in ran.output
        sizes = {where: int(size) << 10 for where, size in map(str.split, ran.output.splitlines()[1:])}
        assert sizes == {str(bwrap.WORKSPACE): bwrap.ROOM_BYTES, "/tmp": bwrap.TMP_BYTES, "/dev/shm": bwrap.SHM_BYTES}  # noqa: S108

    @pytest.mark.parametrize(
        "daemon",
        [
            "setsid sleep {} > /dev/null 2>&1 &",
            "setsid sleep {} &",
            "(trap '' TERM HUP INT; exec setsid sleep {}) &",
            "env -i setsid sh -c 'setsid sleep {} & exit' &",
        ],
    )
    def test_no_daemon_outlives_its_command(self, lab: Lab, daemon: str) -> None:
        mark = f"{uuid4().int % 10**9}.{uuid4().int % 10**9}"
        started = time.monotonic()
        ran = lab.run(daemon.format(mark) + "\necho done")
        assert ran == Ran(exit=0, output="done\n")
        assert time.monotonic() - started < 10
        assert not bearing(mark)

    def test_time_is_up_for_those_who_ignore_it_too(self, lab: Lab) -> None:
        mark = str(600 + uuid4().int % 10**9)
        started = time.monotonic()
        ran = lab.run(f"trap '' TERM INT HUP; echo here; setsid sleep {mark} & sleep {mark}; sleep {mark}", seconds=1)
        assert ran == Ran(exit=None, output="here\n")
        assert time.monotonic() - started < 5
        assert not bearing(mark)

    def test_hardly_any_time_is_no_fault_of_the_machine(self, lab: Lab) -> None:
        assert lab.run("echo too late", seconds=0.001).exit is None

    def test_a_storm_of_processes_ends(self, lab: Lab) -> None:
        mark = f"storm{uuid4().int}"
        source = (
            "import os, signal, time; signal.signal(15, signal.SIG_IGN); [os.fork() for _ in range(8)]; time.sleep(600)"
        )
        started = time.monotonic()
        assert lab.run(f"python -c '{source}' {mark}", seconds=2).exit is None
        assert time.monotonic() - started < 10
        assert not bearing(mark)

    def test_a_cancelled_command_is_gone(self, lab: Lab) -> None:
        mark = str(600 + uuid4().int % 10**9)

        async def cancelled() -> None:
            with anyio.move_on_after(1.0):
                await lab.commands.run(lab.tree, f"setsid sleep {mark} & sleep {mark}", 60.0)

        anyio.run(cancelled)
        assert not bearing(mark)
        assert not list((lab.run_folder / "rooms").iterdir())


@pytest.mark.slow
class TestAnswer:
    """What the model is told."""

    @pytest.mark.parametrize(
        ("command", "exit_status"),
        [("exit 3", 3), ("true", 0), ("", 0), ("kill -9 $$", 137), ("no-such-program", 127), ("python -c 1/0", 1)],
    )
    def test_the_exit_status_is_the_command_s(self, lab: Lab, command: str, exit_status: int) -> None:
        assert lab.run(command).exit == exit_status

    def test_standard_output_and_error_come_in_order(self, lab: Lab) -> None:
        ran = lab.run("for i in 1 2 3; do echo out $i; echo err $i >&2; done; printf '\\033[31mr\\377d\\033[0m'")
        assert ran.output == "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\nr\ufffdd"

    def test_the_tests_of_the_task_can_be_run(self, lab: Lab) -> None:
        ran = lab.run("python -m pytest -q test_a.py")
        assert ran.exit == 0
        assert "1 passed" in ran.output
        assert lab.python("import sys; print(sys.prefix)") == sys.prefix

    def test_endless_output_is_kept_from_both_ends(self, lab: Lab) -> None:
        ran = lab.run("echo first; yes", seconds=1)
        assert ran.exit is None
        assert ran.output.startswith("first\ny\n")
        assert OMITTED in ran.output
        assert len(ran.output) <= OUTPUT_BYTES + len(OMITTED)
        ended = lab.run(f"head -c {3 * OUTPUT_BYTES} /dev/zero | tr '\\0' x; echo last")
        assert ended.exit == 0
        assert ended.output.endswith("xlast\n")

    @pytest.mark.parametrize("command", ["echo \0", "echo \ud800", ": " + "x" * 100_000])
    def test_what_no_shell_can_take_is_told_and_not_run(self, lab: Lab, command: str) -> None:
        ran = lab.run(command)
        assert ran.exit == REFUSED
        assert ran.output.startswith("jumar: a command ")

    def test_a_long_command_runs(self, lab: Lab) -> None:
        assert lab.run("echo ok; : " + "x" * 99_000) == Ran(exit=0, output="ok\n")

    def test_commands_run_side_by_side(self, lab: Lab) -> None:
        outputs: list[str] = []

        async def one(number: int) -> None:
            ran = await lab.commands.run(lab.tree, f"echo {number} > mine; ls; cat mine", 20.0)
            outputs.append(ran.output)

        async def all_of_them() -> None:
            async with anyio.create_task_group() as group:
                for number in range(4):
                    group.start_soon(one, number)

        anyio.run(all_of_them)
        assert sorted(outputs) == [f"a.py\nmine\ntest_a.py\n{number}\n" for number in range(4)]
