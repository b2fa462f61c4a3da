"""The envoy of an agent that is not ours: it makes the history the agent may play with, starts it, and reports its end.

A standalone script, standard library only. Its config names the argv, the text for the agent's standard input, and the
git that is used, if there is one. The agent knows neither the channel nor its key.
"""

from __future__ import annotations

import contextlib
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

SIGNALLED = 128
"""Shells report a death by signal n as this plus n."""

NOT_FOUND = 127

STEPS = (
    ("init", "--quiet", "--template="),
    ("config", "user.name", "agent"),
    ("config", "user.email", "agent@localhost"),
    ("config", "commit.gpgsign", "false"),
    ("add", "--all", "--force"),
    ("commit", "--quiet", "--no-verify", "--allow-empty", "--message", "as the turn began"),
)


def history(git: str) -> None:
    """One commit of the tree as it is. Where git refuses, the agent has none: it can work without."""
    for step in STEPS:
        done = subprocess.run([git, *step], stdin=subprocess.DEVNULL, capture_output=True, check=False)  # noqa: S603  our words
        if done.returncode != 0:
            return


def errand(config: dict[str, Any], send: Callable[[list[object]], None]) -> int:
    """Start the agent, wait for it; its exit status."""
    send(["hello"])
    if config["git"]:
        history(config["git"])
    with tempfile.TemporaryFile() as stdin:
        stdin.write(config["stdin"].encode("utf-8", "replace"))
        stdin.seek(0)
        try:
            code = subprocess.run(config["argv"], stdin=stdin, check=False).returncode  # noqa: S603  as the person wrote it
        except OSError as error:
            sys.stdout.write(f"jumar: cannot start {config['argv'][0]}: {error.strerror}\n")
            return NOT_FOUND
    return code if code >= 0 else SIGNALLED - code


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        runpy.run_path(str(Path(__file__).with_name("envoy.py")))["serve"](errand)
