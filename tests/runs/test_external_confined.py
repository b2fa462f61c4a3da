"""An agent that is none of ours, in a sandbox: it works as it does outside, and reaches nothing but its workspace."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import pytest
from anyio.abc import SocketStream

from jumar.child.commands import agent_main
from jumar.core.state.budget import Budget
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Gate
from jumar.errors import BadInput
from jumar.ports import Sandbox
from jumar.process.sandbox_check import find_bubblewrap
from jumar.runs.external.visible_files import AgentView
from jumar.sandbox.landlock import Landlocked
from jumar.sandbox.other_user import AnotherUser
from support.processes import fake_provider as wire
from support.processes.external_run import FILES, KEY, Outing, Terms
from support.worlds.run_world import program

TIERS: dict[str, Callable[[Path], Sandbox]] = {
    "S3": lambda folder: anyio.run(find_bubblewrap, folder, dict(os.environ)),
    "S2": lambda _: Landlocked(),
    "S1": lambda _: AnotherUser(),
}


@pytest.fixture(
    params=[
        pytest.param("S3", marks=pytest.mark.slow),
        *(pytest.param(t, marks=pytest.mark.proof) for t in ("S2", "S1")),
    ]
)
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Sandbox:
    """Each tier that this machine has."""
    if request.param != "S3" and os.geteuid() != 0:
        pytest.skip(f"{request.param} needs root")
    try:
        return TIERS[request.param](tmp_path)
    except BadInput as reason:
        pytest.skip(f"NOT PROVED: {reason}")


class TestAConfinedAgent:
    """Is confined by whatever sandbox the run has."""

    def test_works_as_it_does_outside(self, tmp_path: Path, sandbox: Sandbox) -> None:
        """Its history, its calls, also two at a time and one after the other, and its claims by our own program."""
        script = f"""
            print(subprocess.run(["git", "log", "--format=%s"], capture_output=True, text=True).stdout.strip())
            threads = [threading.Thread(target=ask, args=("at once",)) for _ in range(3)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
            print(ask("a question")[0])
            print(subprocess.run(["jumar", "claim", "test_app.py::test_8", "app.py"]).returncode)
            write("app.py", {program(17)!r})
        """
        terms = Terms(gate=Gate.STRICT, sandbox=sandbox)
        with wire.Server(last=wire.reply("go on")) as server:
            outing = Outing(tmp_path, script, server, terms)
            end = outing.run()
        said = outing.said().splitlines()
        assert end.stop is StopReason.GREEN, (end, said)
        assert sorted(said) == ["0", "200", "as the turn began", "claimed: app.py"]
        assert outing.workspace.joinpath("app.py").read_text() == program(17)
        assert len(outing.calls()) == 4
        assert not list(tmp_path.glob("*.private"))

    def test_reaches_nothing_of_the_person_s_or_of_the_run(self, tmp_path: Path, sandbox: Sandbox) -> None:
        attacks = """
            import ctypes, glob, signal, socket

            def environs():
                paths = [path for path in glob.glob("/proc/[0-9]*/environ") if os.access(path, os.R_OK)]
                return any(SECRET.encode() in open(path, "rb").read() for path in paths)

            def memory_of_the_envoy():
                os.close(os.open(f"/proc/{os.getppid()}/mem", os.O_RDWR))
                return True

            def channel_of_the_envoy():
                folder = f"/proc/{os.getppid()}/fd"
                return any([os.open(f"{folder}/{name}", os.O_RDWR) for name in os.listdir(folder)])

            def journal():
                with open(RUN + "/events.jsonl", "ab") as file:
                    file.write(b"{}")

            def read_journal():
                return "run_start" in open(RUN + "/events.jsonl").read()

            def prompts():
                return bool(os.listdir(RUN + "/output"))

            def files_beside():
                write(RUN + "/stolen", "x")

            def home():
                return bool(os.listdir(HOME))

            def repository():
                return os.path.exists(RUN + "/objects") and bool(os.listdir(RUN + "/objects"))

            def stops_jumar():
                os.kill(JUMAR, signal.SIGSTOP)
                return True

            def other_port():
                socket.create_connection(("127.0.0.1", PORT), 1).close()
                return True

            def provider():
                socket.create_connection(("127.0.0.1", PROVIDER), 1).close()
                return True

            def network():
                socket.create_connection(("192.0.2.1", 80), 0.5).close()
                return True

            def name_server():
                socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53))
                return True

            def abstract():
                socket.socket(socket.AF_UNIX).connect("\\0" + ABSTRACT)
                return True

            def cron():
                write("/etc/cron.d/x", "x")
                return True

            def links():
                os.link(RUN + "/events.jsonl", "app.py.link")
                return True

            for attack in (environs, memory_of_the_envoy, channel_of_the_envoy, journal, read_journal, prompts, home,
                           files_beside, repository, stops_jumar, other_port, provider, network, name_server, abstract,
                           cron, links):
                try:
                    done = attack()
                except OSError:
                    done = False
                if done:
                    print(attack.__name__)
            print("tried")
            ask()
        """
        home = tmp_path / "home"
        home.mkdir()
        (home / "secret").write_text("x")
        run = tmp_path / "run"
        run.mkdir()
        name = f"jumar-test-{os.getpid()}"
        with wire.Server() as server, _listening(name) as port:
            facts = {
                "SECRET": KEY, "RUN": str(run), "HOME": str(home), "JUMAR": os.getpid(), "PORT": port,
                "PROVIDER": urlsplit(server.url).port, "ABSTRACT": name,
            }  # fmt: skip
            given = "\n".join(f"            {key} = {value!r}" for key, value in facts.items())
            terms = Terms(sandbox=sandbox, budget=Budget(usd=1.0, turns=1), environ={"HOME": str(home)})
            outing = Outing(run, f"{given}\n{attacks}", server, terms)
            outing.run()
        assert outing.said().splitlines() == ["tried"]
        assert not (home / "stolen").exists()
        assert not (run / "stolen").exists()
        assert outing.snapshot() == {path: (text, 0) for path, text in FILES.items()}

    @pytest.mark.parametrize("named", ["work/task", "work", "work/task/hidden", "runs"])
    def test_reaches_nothing_that_the_task_keeps_by_way_of_path(
        self, tmp_path: Path, sandbox: Sandbox, named: str
    ) -> None:
        """As where `PATH_add .` of direnv puts the task's folder, or one above it, on PATH."""
        kept = (
            "work/task/hidden/test_h.py",
            "work/task/reference/app.py",
            "work/task/.git/HEAD",
            "runs/two/events.jsonl",
        )
        for path in kept:
            (tmp_path / path).parent.mkdir(parents=True)
            (tmp_path / path).write_text('{"type":"run_start"}')
        task = tmp_path / "work" / "task"
        script = f"""
            print([path for path in {[str(tmp_path / path) for path in kept]!r} if os.access(path, os.R_OK)])
            ask()
        """
        terms = Terms(
            sandbox=sandbox,
            budget=Budget(usd=1.0, turns=1),
            environ={"HOME": str(tmp_path / "home"), "PATH": f"{os.environ['PATH']}:{tmp_path / named}"},
            origin=str(task),
            reserved=(str(task / "hidden"), str(task / "reference")),
        )
        with wire.Server() as server:
            outing = Outing(tmp_path / "elsewhere" / "run", script, server, terms)
            outing.run()
        assert outing.said().strip() == "[]"


class TestWhatItSees:
    """Its program, what is on its PATH, and what its words name."""

    def outlook(self, tmp_path: Path, *argv: str, search: str = "/usr/bin", **more: Path) -> tuple[Path, ...]:
        (tmp_path / "run" / "workspace").mkdir(parents=True, exist_ok=True)
        outlook = AgentView(
            argv=argv,
            search=search,
            run=tmp_path / "run",
            home=tmp_path / "home",
            prompt=more.get("prompt"),
            door=None,
            origin=tmp_path / "task",
        )
        reach = outlook.build_reach()
        assert reach.writable == (tmp_path / "run" / "workspace",)
        return reach.readable

    def test_is_a_program_and_what_runs_it(self, tmp_path: Path) -> None:
        venv = tmp_path / "home" / "venv"
        for part in ("bin", "lib/python3.12"):
            (venv / part).mkdir(parents=True)
        (venv / "pyvenv.cfg").write_text("home = /opt/nowhere/bin\n")
        (venv / "bin" / "python").symlink_to(sys.executable)
        tool = venv / "bin" / "tool"
        tool.write_text(f"#!{venv}/bin/python\n")
        tool.chmod(0o755)
        (tmp_path / "links").mkdir()
        (tmp_path / "links" / "tool").symlink_to(tool)

        seen = self.outlook(tmp_path, "tool", search=f"{tmp_path}/links")

        assert {venv / "bin", venv / "lib", venv / "pyvenv.cfg", Path(sys.executable).resolve().parent} <= set(seen)
        assert venv not in seen

    def test_is_also_what_env_starts(self, tmp_path: Path) -> None:
        place = tmp_path / "home" / "tools"
        (place / "bin").mkdir(parents=True)
        (place / "lib").mkdir()
        (place / "bin" / "agent").write_text("#!/bin/sh\n")
        (place / "bin" / "agent").chmod(0o755)

        assert place / "lib" in self.outlook(tmp_path, "env", "A=B", str(place / "bin" / "agent"), "{prompt}")

    def test_is_no_folder_that_the_task_chose(self, tmp_path: Path) -> None:
        for folder in ("task/tools", "letters"):
            (tmp_path / folder).mkdir(parents=True)
        (tmp_path / "task" / "led").symlink_to(tmp_path / "letters")

        seen = self.outlook(tmp_path, "tool", search=f"{tmp_path}/task/led:{tmp_path}/task/tools")

        assert tmp_path / "task" / "tools" in seen
        assert tmp_path / "task" / "led" not in seen

    def test_is_what_its_words_name(self, tmp_path: Path) -> None:
        config = tmp_path / "home" / "config.toml"
        config.parent.mkdir()
        config.write_text("")
        assert config in self.outlook(tmp_path, "/bin/sh", str(config), "--flag", "{prompt}")

    @pytest.mark.parametrize("word", ["/", "{0}", "{0}/home", "{0}/run", "{0}/run/events.jsonl", "{0}/link"])
    def test_is_never_the_run_nor_all_that_the_person_has(self, tmp_path: Path, word: str) -> None:
        (tmp_path / "home").mkdir()
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "events.jsonl").touch()
        (tmp_path / "link").symlink_to(tmp_path / "home")
        named = word.format(tmp_path)
        assert Path(named) not in self.outlook(tmp_path, "/bin/sh", named, search=f"/usr/bin:{named}:.")

    def test_is_of_a_folder_with_runs_the_programs(self, tmp_path: Path) -> None:
        (tmp_path / "other" / "one").mkdir(parents=True)
        (tmp_path / "other" / "one" / "events.jsonl").write_text('{"type":"run_start"}')
        (tmp_path / "other" / "tool").write_text("#!/bin/sh\n")
        (tmp_path / "other" / "tool").chmod(0o755)
        (tmp_path / "other" / "notes").touch(0o755)

        seen = self.outlook(tmp_path, "sh", search=f"/usr/bin:{tmp_path}/other:{tmp_path}/other/one")

        assert [path for path in seen if path.is_relative_to(tmp_path)] == [tmp_path / "other" / "tool"]

    def test_is_its_prompt_if_it_reads_it_from_a_file(self, tmp_path: Path) -> None:
        prompt = tmp_path / "run" / "output" / "agent-001.md"
        assert self.outlook(tmp_path, "/bin/sh", "{prompt_file}", prompt=prompt)[-1] == prompt


@pytest.mark.slow
class TestTheBridge:
    """From a loopback of the agent's own to the socket that its model is behind."""

    def test_carries_every_connection_to_its_end(self, tmp_path: Path) -> None:
        """Both ways, more of them than are served at a time, long ones, and one whose other end is closed first."""

        async def echo(stream: SocketStream) -> None:
            async with stream:
                async for data in stream:
                    await stream.send(data.upper())
                await stream.send(b"!")

        async def one(port: int, size: int) -> None:
            async with await anyio.connect_tcp("127.0.0.1", port) as stream, anyio.create_task_group() as tasks:
                tasks.start_soon(_sent, stream, b"x" * size)
                heard = b"".join([data async for data in stream])
            assert heard == b"X" * size + b"!"

        async def go() -> None:
            with socket.create_server(("127.0.0.1", 0)) as free:
                port: int = free.getsockname()[1]
            door = tmp_path / "door"
            async with await anyio.create_unix_listener(door) as listener, anyio.create_task_group() as tasks:
                tasks.start_soon(listener.serve, echo)
                agent_main.bridge(port, str(door))
                async with anyio.create_task_group() as clients:
                    for number in range(agent_main.CONNECTIONS + 6):
                        clients.start_soon(one, port, number * 10_000)
                tasks.cancel_scope.cancel()

        anyio.run(go)

    def test_leaves_a_loopback_that_is_our_own_alone(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as ours:
            agent_main.bridge(ours.getsockname()[1], str(tmp_path / "none"))
            with socket.create_connection(ours.getsockname()):
                ours.accept()[0].close()


async def _sent(stream: SocketStream, data: bytes) -> None:
    await stream.send(data)
    await stream.send_eof()


@contextmanager
def _listening(name: str) -> Iterator[int]:
    """Somebody else's server on loopback, and one without a path called *name*; the port."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(f"\0{name}")
        unix.listen()
        yield server.getsockname()[1]
