"""The MCP Inspector's command line drives a whole session: each of its calls is a process, so each names the run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from mcp_server.test_mcp_wire import serving
from support.processes.fake_sessions import ADD, HALF, SOURCE, repository

INSPECTOR = Path(__file__).parents[2] / ".venv" / "tools" / "inspector" / "node_modules" / ".bin" / "mcp-inspector"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not INSPECTOR.exists(), reason="the MCP Inspector is not installed: npm was missing at `make`"),
]


class Inspector:
    """Its command line, aimed at a server."""

    def __init__(self, home: Path, *target: str) -> None:
        self._argv, self._env = (str(INSPECTOR), "--cli", *target), {**os.environ, "HOME": str(home)}
        self.run = ""

    def asked(self, *argv: str) -> tuple[int, dict[str, Any]]:
        """Its exit status and what it printed."""
        done = subprocess.run([*self._argv, *argv], check=False, capture_output=True, timeout=60, env=self._env)
        return done.returncode, json.loads(done.stdout or "{}")

    def call(self, name: str, **arguments: object) -> tuple[int, dict[str, Any]]:
        """Call a tool; the exit status and the structured answer."""
        given = {**({"run": self.run} if self.run else {}), **arguments}
        argv = ("--method", "tools/call", "--tool-name", name, "--tool-args-json", json.dumps(given))
        status, said = self.asked(*argv)
        structured: dict[str, Any] = said["structuredContent"]
        assert said["isError"] is (status != 0) is not structured["ok"]
        return status, structured


@pytest.mark.proof
def test_over_standard_input_the_tools_are_portable_and_a_task_opens(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")
    jumar = (sys.executable, "-m", "jumar.cli.main", "mcp", str(root), "--runs", str(tmp_path / "runs"))
    inspector = Inspector(tmp_path, *jumar)
    status, listed = inspector.asked("--method", "tools/list", "--strict")
    assert status == 0, "a schema that some host cannot take ends it with 6"
    assert {"open_task", "run_tests", "edit_claim", "finish"} <= {tool["name"] for tool in listed["tools"]}
    assert inspector.call("open_task", path=".")[1]["tests"]["red"] == [ADD, HALF]


@pytest.mark.proof
def test_a_whole_session_over_http(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")
    right = SOURCE.replace("a - b", "a + b")

    def story(inspector: Inspector) -> None:
        inspector.run = inspector.call("open_task", path=".", tests=[ADD])[1]["run"]
        status, refused = inspector.call("write_file", path="calc.py", text=right)
        assert (status, "no red test was claimed" in refused["reason"]) == (5, True)
        assert inspector.call("edit_claim", test_id=ADD, edit_target="calc.py")[0] == 0
        assert inspector.call("write_file", path="calc.py", text=right)[0] == 0
        assert inspector.call("run_tests")[1]["tests"]["passed"] == 1
        assert inspector.call("finish", apply=True)[1]["applied"] == ["calc.py"]

    async def play() -> None:
        async with serving(root, tmp_path / "runs") as server:
            header = ("--header", f"Authorization: Bearer {server.key}")
            target = ("--transport", "http", "--server-url", f"{server.base}/mcp", *header)
            await anyio.to_thread.run_sync(story, Inspector(tmp_path, *target))

    anyio.run(play)
    assert (root / "calc.py").read_text() == right
