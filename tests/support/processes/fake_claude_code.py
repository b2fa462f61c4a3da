"""A host of an agent, as Claude Code is one: it asks the installed hook before and after each tool, in its own JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import anyio
import msgspec

import jumar.child.hook.hook_fast
from jumar.child.hook.published_state import HookRefusal
from jumar.child.hook.ruling import (
    BEGIN,
    FAILED,
    POST,
    PRE,
    PROMPT,
    STOP,
    SUBAGENT_STOP,
    answer_event,
    format_refusal,
    introduce,
)
from jumar.core.state.test_policy import Gate
from jumar.hooks.claim_command import claim_in_session
from jumar.hooks.full_rule import answer_or_refuse
from support.processes.interpreters import beside_it

FAST = Path(jumar.child.hook.hook_fast.__file__)

BUGGY = "def add(a, b):\n    return a - b\n\n\ndef mul(a, b):\n    return a * b\n"
RIGHT = BUGGY.replace("a - b", "a + b")
TESTS = (
    "from calc import add, mul\n\n\ndef test_add():\n    assert add(1, 2) == 3\n\n\n"
    "def test_mul():\n    assert mul(2, 3) == 6\n"
)
RED = "test_calc.py::test_add"


class Answer(msgspec.Struct, frozen=True):
    """What the hook said."""

    status: int
    said: dict[str, object]
    error: str

    @property
    def blocked(self) -> str:
        """Why the host must not go on; empty: it may."""
        if self.status == 2:
            return self.error or "blocked"
        assert self.status == 0, self.error
        inner = self.said.get("hookSpecificOutput", {})
        assert isinstance(inner, dict)
        if inner.get("permissionDecision") == "deny":
            return str(inner["permissionDecisionReason"])
        return str(self.said["reason"]) if self.said.get("decision") == "block" else ""

    @property
    def context(self) -> str:
        """What the model is told beside."""
        inner = self.said.get("hookSpecificOutput", {})
        return str(inner.get("additionalContext", "")) if isinstance(inner, dict) else ""


class Host:
    """One conversation in one repository."""

    def __init__(
        self, root: Path, name: str = "one", *, processes: bool = False, gate: Gate | None = Gate.STRICT
    ) -> None:
        """With *processes* the hook is started as a host starts it; else it is called, which is quicker."""
        self.root, self.name, self._processes, self._gate = root, name, processes, gate
        kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "JUMAR_HOST")}
        self.environ: Mapping[str, str] = {**kept, "CLAUDE_PROJECT_DIR": str(root)}

    def event(self, event: str, **fields: object) -> Answer:
        """Send one event with *fields* beside those that all have."""
        common = {"session_id": self.name, "transcript_path": "/none.jsonl", "cwd": str(self.root)}
        return self.send(event, json.dumps({**common, "hook_event_name": event, **fields}).encode())

    def send(self, event: str, raw: bytes, seconds: str = "60") -> Answer:
        """Send *raw* to the hook for *event*, which has so many *seconds*."""
        if not self._processes:
            return Answer(0, self._called(event, raw, float(seconds)) or {}, "")
        argv = [sys.executable, "-I", "-S", str(FAST), event, seconds, *([self._gate.value] if self._gate else [])]
        done = subprocess.run(argv, input=raw, capture_output=True, env=self.environ, timeout=120, check=False)
        said = json.loads(done.stdout) if done.stdout else {}
        return Answer(done.returncode, said, done.stderr.decode())

    def _called(self, event: str, raw: bytes, seconds: float) -> dict[str, object] | None:
        def full(event: str, raw: bytes, root: str, _seconds: float) -> dict[str, object] | None:
            return answer_or_refuse(event, raw, Path(root), self.environ, self._gate)

        try:
            if event == BEGIN:
                return introduce(raw, str(self.root), self._gate.value if self._gate else "")
            return answer_event(event, raw, str(self.root), seconds, full)
        except HookRefusal as why:
            return format_refusal(event, str(why), raw)

    def begins(self) -> Answer:
        """A conversation begins."""
        return self.event(BEGIN, source="startup")

    def prompt(self) -> Answer:
        """A person sends a prompt."""
        return self.event(PROMPT, prompt="make the tests pass")

    def asks(self, tool: str, **given: object) -> Answer:
        """The agent wants to use *tool*."""
        return self.event(PRE, tool_name=tool, tool_input=given, tool_use_id="toolu_01")

    def used(self, tool: str, **given: object) -> Answer:
        """The agent has used *tool*."""
        return self.event(POST, tool_name=tool, tool_input=given, tool_response={}, tool_use_id="toolu_01")

    def failed(self, tool: str, **given: object) -> Answer:
        """The agent has used *tool*, and it failed."""
        return self.event(FAILED, tool_name=tool, tool_input=given, error="exit 1", tool_use_id="toolu_01")

    def stop(self, *, again: bool = False) -> Answer:
        """The agent is done."""
        return self.event(STOP, stop_hook_active=again)

    def subagent_stops(self, agent: str, *, again: bool = False) -> Answer:
        """A subagent is done."""
        return self.event(SUBAGENT_STOP, stop_hook_active=again, agent_id=agent, agent_type="general-purpose")

    def edit(self, path: str, old: str, new: str) -> str:
        """The agent edits as the host lets it: why it did not, or what came back afterwards; empty: it is edited."""
        file = self.root / path
        given: dict[str, object] = {"file_path": str(file), "old_string": old, "new_string": new}
        if why := self.asks("Edit", **given).blocked:
            return why
        file.write_text(file.read_text().replace(old, new, 1))
        return self.used("Edit", **given).blocked

    def write(self, path: str, text: str) -> str:
        """The same for a whole file."""
        given: dict[str, object] = {"file_path": str(self.root / path), "content": text}
        if why := self.asks("Write", **given).blocked:
            return why
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)
        return self.used("Write", **given).blocked

    def shell(self, line: str) -> Answer:
        """The agent runs *line* in its shell; what is answered afterwards (or before, if that blocks)."""
        before = self.asks("Bash", command=line)
        if before.blocked:
            return before
        done = subprocess.run(["bash", "-c", line], cwd=self.root, env=self.environ, capture_output=True, check=False)
        return (self.failed if done.returncode else self.used)("Bash", command=line)

    def claim(self, test: str, target: str) -> tuple[bool, str]:
        """The agent claims in its shell; whether it was admitted, and the line it sees."""
        if not self._processes:
            done = anyio.run(claim_in_session, self.root, test, target, self.environ)
            return done.admitted, done.text + "\n"
        argv = [sys.executable, "-I", "-m", "jumar.cli.main", "claim", test, target]
        ended = subprocess.run(argv, cwd=self.root, env=self.environ, capture_output=True, text=True, check=False)
        assert ended.returncode in (0, 1), ended.stderr
        return ended.returncode == 0, ended.stdout


def quick(host: Host) -> Host:
    """*host*, whose hooks believe the first run in no sandbox: for what is not about verdicts."""
    host.environ = {**host.environ, "JUMAR_HOOK_SANDBOX": "S0", "JUMAR_HOOK_CONFIRM": "0"}
    return host


def git(root: Path, *arguments: str) -> str:
    """What git prints, as somebody with a name."""
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "core.excludesFile=")
    return subprocess.run(["git", *who, *arguments], cwd=root, check=True, capture_output=True, text=True).stdout


def repository(root: Path) -> Path:
    """A small repository with one red test, ignored files, and work that is not committed."""
    root.mkdir()
    files = {
        "calc.py": BUGGY, "test_calc.py": TESTS, "other.py": "x = 1\n", "note.ipynb": '{"cells": []}\n',
        "run.sh": "#!/bin/sh\n", "pkg/mod.py": "y = 1\n", ".gitignore": "*.log\n__pycache__/\n.env\nbuild/\n.venv\n",
        ".env": "KEY=1\n", "build/out.bin": "1\n", "a.log": "x\n",
    }  # fmt: skip
    for path, text in files.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text)
    (root / "run.sh").chmod(0o755)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    beside_it(root)
    (root / "other.py").write_text("x = 1  # not committed\n")
    return root
