"""`jumar mcp` as a process: what it says on the wire, whom it lets in, and what is left when somebody goes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from jumar.core.state.run_state import Phase
from jumar.runs.setup.result import read_state
from mcp_server.test_mcp import Guest, over_stdio, red_claim_edit_green
from support.processes.fake_sessions import ADD, HALF, SOURCE, repository

mcp = pytest.importorskip("mcp", reason="the MCP SDK is not installed: pip install 'jumar[mcp]'")

pytestmark = pytest.mark.slow

HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
}  # fmt: skip
"""The handshake of a client."""

HANGS = {"path": "calc.py", "old": "return a - b", "new": "import time; time.sleep(60)"}
"""An edit after which the tests take a minute."""


def started(*argv: str, cwd: Path) -> subprocess.Popen[bytes]:
    """`jumar mcp` with *argv*, in *cwd*."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    whole = [sys.executable, "-m", "jumar.cli.main", "mcp", *argv]
    pipe = subprocess.PIPE
    return subprocess.Popen(whole, stdin=pipe, stdout=pipe, stderr=pipe, cwd=cwd, env=env)


def within(folder: Path) -> list[int]:
    """The processes that work in or below *folder*."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if link.readlink().is_relative_to(folder):
                found.append(int(link.parent.name))
        except OSError:  # it has ended, or is another user's
            continue
    return found


def run_in(folder: Path) -> Path:
    """The one run in *folder*."""
    return next(p.parent for p in folder.glob("*/events.jsonl"))


def test_only_the_protocol_is_on_standard_output_and_a_line_that_is_none_is_answered(tmp_path: Path) -> None:
    lines = [
        b"this is no JSON",
        b'{"jsonrpc": "2.0", "id": 7, "method": "x\xff"}',
        b'{"jsonrpc": "2.0", "id": 8, "method": "\\ud800"}',
        b"",
        json.dumps(HELLO).encode(),
    ]
    process = started(str(repository(tmp_path / "repo")), cwd=tmp_path)
    assert process.stdin
    assert process.stdout
    process.stdin.write(b"\n".join(lines) + b"\n")
    process.stdin.flush()
    answers = [json.loads(process.stdout.readline()) for _ in range(4)]
    said, complained = process.communicate(timeout=20)
    assert [a["error"]["code"] for a in answers[:3]] == [-32700] * 3
    assert answers[3]["result"]["serverInfo"]["name"] == "jumar"
    assert "Tests decide what may be edited" in answers[3]["result"]["instructions"]
    assert (process.returncode, said, complained) == (0, b"", b"")
    assert not (tmp_path / ".jumar").exists(), "a server that was asked for nothing leaves nothing"


def test_a_signal_ends_it_while_it_waits_for_a_line(tmp_path: Path) -> None:
    process = started(str(repository(tmp_path / "repo")), cwd=tmp_path)
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps(HELLO).encode() + b"\n")
    process.stdin.flush()
    assert process.stdout.readline()
    process.terminate()
    assert process.wait(timeout=10) == 130
    assert process.communicate() == (b"", b"")


def test_without_the_sdk_it_says_what_to_install(tmp_path: Path) -> None:
    script = "import sys; sys.modules['mcp_types'] = None; from jumar.cli.main import call; sys.exit(call(['mcp']))"
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 2
    assert done.stderr == b"jumar: `jumar mcp` needs the MCP SDK (mcp_types is missing): pip install 'jumar[mcp]'\n"


async def hanging(guest: Guest) -> str:
    """Open a task and claim and make an edit after which the tests take a minute; the run's name."""
    opened = await guest.done("open_task", path=".", tests=[ADD])
    await guest.done("edit_claim", test_id=ADD, edit_target="calc.py")
    await guest.done("edit_file", **HANGS)
    return str(opened["run"])


async def until_tests_run(runs: Path) -> None:
    """Wait until a test process works in a room of the run."""
    with anyio.fail_after(20):
        while not within(run_in(runs) / "rooms"):
            await anyio.to_thread.run_sync(threading.Event().wait, 0.05)


@pytest.mark.proof
def test_a_client_that_vanishes_in_a_test_run_leaves_no_process_and_a_run_to_go_on_with(tmp_path: Path) -> None:
    root, runs = repository(tmp_path / "repo"), tmp_path / "runs"
    (root / "jumar.toml").write_text("[tests]\ntest_timeout_seconds = 1\n")

    async def story() -> None:
        async with over_stdio(root, "legacy") as guest:
            name = await hanging(guest)
            async with anyio.create_task_group() as group:
                group.start_soon(guest.call, "run_tests")
                await until_tests_run(runs)
                group.cancel_scope.cancel()
        assert within(tmp_path) == []
        assert read_state(run_in(runs)).phase is not Phase.ENDED
        async with over_stdio(root, "auto") as guest:
            guest.run = name
            stood = await guest.done("status")
            assert stood["tests"]["red"] == [ADD]
            assert stood["claims"] == [{"test_id": ADD, "edit_target": "calc.py"}]
            await guest.done("write_file", path="calc.py", text=SOURCE.replace("a - b", "a + b"))
            guest.run = ""  # the session has taken it up
            assert (await guest.done("run_tests"))["tests"]["passed"] == 1

    anyio.run(story)


@pytest.mark.proof
def test_sigterm_ends_it_in_time_and_leaves_no_process(tmp_path: Path) -> None:
    root, runs = repository(tmp_path / "repo"), tmp_path / "runs"

    async def story() -> None:
        async with serving(root, runs, "--token", "mine") as server, server.guest("legacy", key="mine") as guest:
            await hanging(guest)
            async with anyio.create_task_group() as group:
                group.start_soon(_forgiven, guest)
                await until_tests_run(runs)
                server.process.send_signal(signal.SIGTERM)
                assert await anyio.to_thread.run_sync(server.process.wait, 10) == 130
                group.cancel_scope.cancel()
            assert server.key == "gave", "a token that was given is not repeated: 'the one you gave'"
        assert within(tmp_path) == []
        assert read_state(run_in(runs)).phase is not Phase.ENDED

    anyio.run(story)


async def _forgiven(guest: Guest) -> None:
    with pytest.raises(Exception, match=r".*"):
        await guest.done("run_tests")


class Server:
    """A server over HTTP."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr
        first, second = (process.stderr.readline().decode() for _ in range(2))
        found = re.search(r"(http://127\.0\.0\.1:\d+)/mcp", first)
        assert found, first
        self.process, self.base, self.key = process, found[1], second.strip().rpartition(" ")[2]

    @asynccontextmanager
    async def guest(self, mode: str, key: str = "") -> AsyncIterator[Guest]:
        """A client of it, with *key* or the one that it made."""
        import httpx2  # noqa: PLC0415  comes with the SDK
        from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415  as above

        headers = {"Authorization": f"Bearer {key or self.key}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            mcp.Client(streamable_http_client(f"{self.base}/mcp", http_client=http), mode=mode) as client,
        ):
            yield Guest(client)

    def post(self, **headers: str) -> int:
        """The status of a handshake with *headers*; an empty one is not sent."""
        usual = {"Authorization": f"Bearer {self.key}", "Accept": "application/json, text/event-stream"}
        sent = {k: v for k, v in {**usual, **headers}.items() if v}
        import httpx2  # noqa: PLC0415  comes with the SDK

        return int(httpx2.post(f"{self.base}/mcp", json=HELLO, headers=sent).status_code)


@contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """End *process* on the way out."""
    try:
        yield
    finally:
        process.terminate()
        process.communicate(timeout=20)


@asynccontextmanager
async def serving(root: Path, runs: Path, *argv: str) -> AsyncIterator[Server]:
    """A server over HTTP for the folder *root*."""
    process = started("--http", "0", "--runs", str(runs), *argv, str(root), cwd=root.parent)
    with ended(process):
        yield Server(process)


def test_sessions_over_http_do_not_mix_and_strangers_are_kept_out(tmp_path: Path) -> None:
    root, runs = repository(tmp_path / "repo"), tmp_path / "runs"

    async def story() -> None:
        async with serving(root, runs) as server:
            _kept_out(server)
            async with server.guest("legacy") as first, server.guest("legacy") as second:
                await red_claim_edit_green(first, root)
                assert "no task is open here" in await second.refused("run_tests")
                other = await second.done("open_task", path=".")
                assert other["tests"]["red"] == [ADD, HALF]
                assert (await first.done("status"))["tests"]["passed"] == 3
                (root / "calc.py").write_text(SOURCE + "# meanwhile\n")
                assert "was changed while the run worked" in await first.refused("finish", apply=True)
            async with server.guest("auto") as third:
                await _third(third, other)
        assert (root / "calc.py").read_text() == SOURCE + "# meanwhile\n"

    anyio.run(story)


def _kept_out(server: Server) -> None:
    """Who has no token, the wrong one, or comes through a browser or by another name, is not heard."""
    assert server.post() == 200
    assert server.post(Authorization="") == 401
    assert server.post(Authorization="Bearer guessed") == 401
    assert server.post(Authorization=server.key) == 401
    assert server.post(Host="attacker.example") == 421
    assert server.post(Host="127.0.0.1:1") == 421
    assert server.post(Origin="http://localhost:3000") == 403
    assert server.post(Origin="null") == 403


async def _third(guest: Guest, other: dict[str, Any]) -> None:
    """A client whose protocol has no sessions: it names its run, here one whose client has left."""
    assert "no task is open here" in await guest.refused("run_tests")
    guest.run = other["run"]
    assert (await guest.done("status"))["tests"]["red"] == [ADD, HALF]
    finished = await guest.done("finish", message="enough")
    assert (finished["stop"], finished["tests"]["red"]) == ("final", [ADD, HALF]), "an end while red says so"
    assert "has ended (final)" in await guest.refused("run_tests")
    opened = await guest.done("open_task", path=".")
    guest.run = opened["run"]
    answer = await guest.call("write_file", path="../calc.py", text="")
    assert answer.is_error
    assert answer.structured_content["stop"] == "guardrail"
    assert "has ended (guardrail)" in await guest.refused("run_tests")
    assert "not applied" in await guest.refused("finish", apply=True)
