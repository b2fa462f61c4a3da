"""Runs git on untrusted repositories, with settings that keep it from starting their programs."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from jumar.errors import Infra

INERT = ("--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
"""Options of git itself: no hook, monitor or pager that a repository's settings name is started."""

NO_SETTINGS: Mapping[str, str] = MappingProxyType({
    "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_ATTR_NOSYSTEM": "1",
})  # fmt: skip
"""Environment in which no settings of the machine or the person count."""

SECONDS = 120
"""git takes well under a second for what jumar asks; a disk that hangs must not hang the run."""


def run_git(
    program: str, arguments: Sequence[str], cwd: Path, env: Mapping[str, str], send: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run `git ARGUMENTS` in the folder *cwd* with the environment *env*, and *send* on its standard input.

    Raises:
        Infra: if it cannot be started, or takes longer than `SECONDS`.
    """
    name = next((word for word in arguments if not word.startswith("-") and "=" not in word), "")
    try:
        return subprocess.run(  # noqa: S603  git itself, found on PATH, with arguments of our own
            [program, *INERT, *arguments], input=send, env=env, cwd=cwd, capture_output=True, check=False,
            timeout=SECONDS,
            process_group=0,  # Ctrl-C is for jumar, which still has its best tree to write down
        )  # fmt: skip
    except subprocess.TimeoutExpired as fault:
        raise Infra(f"git {name} took longer than {SECONDS} seconds in {cwd}") from fault
    except OSError as fault:
        raise Infra(f"git {name} cannot be started in {cwd}: {fault.strerror}") from fault


def explain_failure(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return git's standard error."""
    return done.stderr.decode(errors="replace").strip()
