"""Runs the test command of a task, which is its one test: exit status 0 is a pass, whatever the command prints."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

from jumar.child import runner_bridge
from jumar.child.commands import single_main

ASSIGNMENT = re.compile(r"\w+=")
"""Assignment of a variable before the program."""

WORD = re.compile(r"[\w./+-]+")
"""A program that is named plainly; what a shell must expand first is left to the shell."""

BUILTINS = frozenset(
    {
        ".", ":", "break", "case", "cd", "command", "echo", "eval", "exec", "exit", "export", "false", "for", "if",
        "printf", "pwd", "read", "return", "set", "shift", "source", "test", "time", "times", "trap", "true", "type",
        "ulimit", "umask", "unset", "until", "wait", "while",
    }
)  # fmt: skip
"""Shell words that run without a program."""


def main() -> None:
    """Serve one request: name the one test, or report its outcome."""
    runner_bridge.serve(run_job)


def run_job(config: dict[str, Any], send: runner_bridge.Send) -> int:
    """Look for the program, run the command if that is asked for, send the records."""
    if config["bin"]:
        os.environ["PATH"] = f"{config['bin']}:{os.environ.get('PATH', '')}"
    send(["hello", {}])
    if why := check_startable(config["command"], os.environ.get("PATH", ""), Path()):
        send(["unusable", why])
        return 0
    runner_bridge.collect(send, [config["id"]])
    if config["mode"] == "collect":
        return 0
    if why := single_main.judge_test(config["id"], config["argv"], config["command"], config["limit"], send):
        send(["unusable", f"cannot start the test command {config['command']!r}: {why}"])
    return 0


def check_startable(command: str, search: str, folder: Path) -> str:
    """Return why the first program of *command* cannot be started in *folder* with the PATH *search*; or empty."""
    program = find_program(command)
    if not program or program in BUILTINS:
        return ""
    if "/" in program:
        path = folder / program
        found = path.is_file() and os.access(path, os.X_OK)
        why = f"{program} cannot be executed: chmod +x it" if path.is_file() else f"there is no file {program}"
    else:
        found = shutil.which(program, path=search) is not None
        why = f"there is no program {program!r} on PATH"
    return "" if found else f"cannot start the test command {command!r}: {why}"


def find_program(command: str) -> str:
    """Return the program that *command* begins with; empty where only a shell can tell."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    named = next((word for word in words if not ASSIGNMENT.match(word)), "")
    return named if WORD.fullmatch(named) else ""
