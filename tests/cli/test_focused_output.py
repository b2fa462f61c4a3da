"""Captured output of failing tests in what a model is shown, and the command of each test run in the journal."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from cli.test_cli import Called, jumar, lay
from jumar.child.pytest import pytest_main

__all__ = ["jumar"]

TEST = """\
import logging
from app import f
def test_f():
    print("OUT-MARK" + "x" * 5000)
    logging.getLogger("app").warning("LOG-MARK")
    assert f() == 2
def test_green():
    print("SILENT")
"""


@pytest.mark.slow
def test_captured_output_follows_the_traceback_and_the_command_is_the_argv_that_ran(
    tmp_path: Path, jumar: Called
) -> None:
    lay(tmp_path / "task", {"app.py": "def f():\n    return 1\n", "test_app.py": TEST})
    lay(tmp_path, {"script.jsonl": '{"tool_calls": [{"name": "final", "arguments": {}}]}\n'})

    assert jumar("run", "task", "--model", "script:script.jsonl", "--confirm", "0", "-q")[0] == 1

    (journal,) = tmp_path.glob(".jumar/runs/*/events.jsonl")
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    shown = next(e["content"]["output"] for e in events if e["type"] == "observation")
    assert shown.index("assert 1 == 2") < shown.index("OUT-MARK") < shown.index("LOG-MARK")
    assert "SILENT" not in shown
    assert len(shown) < 2500, "what a test prints is bounded"
    argv = {tuple(shlex.split(e["command"])) for e in events if e["type"] == "test_run"}
    assert [(Path(a[0]).name[:6], *a[1::2]) for a in argv] == [("python", "-I", pytest_main.__name__)]
