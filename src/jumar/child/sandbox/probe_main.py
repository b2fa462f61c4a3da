"""Runs the probes in the sandbox that it was started in, and reports which were possible.

Its first request names the aims; it answers `["tried", name, "possible" | "impossible" | "untried", evidence]` for each
probe. Probes that change what they run in have a process of their own, which ends with them; one that hangs or crashes
is no answer.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from jumar.child.channel import join
from jumar.child.sandbox import probe_channels, probe_files, probe_kernel, probe_processes
from jumar.child.sandbox.probe_files import Probe

PROBES = {**probe_processes.PROBES, **probe_files.PROBES, **probe_kernel.PROBES, **probe_channels.PROBES}

FORKED = frozenset({
    "trace", "join_namespace", "type_into_terminal", "become_root_in_namespace", "mount", "change_root", "raise_limits",
})  # fmt: skip
"""Probes that change what they run in: they have a process of their own, which ends with them."""

PATIENCE_SECONDS = 3


class Slow(Exception):  # noqa: N818  # no TimeoutError, which is what an OSError is
    """Raised when a probe hangs."""


def hang(*_: object) -> None:
    """Raise, to interrupt a probe that hangs."""
    raise Slow


def run_probe(probe: Probe, aims: dict[str, Any]) -> tuple[str, str]:
    """Run *probe*, and return how it went and its evidence."""
    signal.alarm(PATIENCE_SECONDS)
    try:
        evidence = probe(aims)
    except OSError:
        return "impossible", ""
    except Exception as fault:  # noqa: BLE001  # what is not known to be impossible counts as possible
        return "untried", f"{type(fault).__name__}: {fault}"
    finally:
        signal.alarm(0)
    return ("possible", evidence) if evidence else ("impossible", "")


def run_probe_forked(probe: Probe, aims: dict[str, Any]) -> tuple[str, str]:
    """Run *probe* in a process of its own, and return how it went and its evidence."""
    told, tells = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(tells, "\n".join(run_probe(probe, aims)).encode()[:4000])
        os._exit(0)
    os.close(tells)
    with os.fdopen(told, "rb") as stream:
        answer = stream.read().decode("utf-8", "replace")
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSYS:
        return "impossible", ""
    how, _, evidence = answer.partition("\n")
    return (how, evidence) if how else ("untried", f"it ended with status {status}")


def main() -> None:
    """Try every probe in the sandbox and report which succeeded."""
    inherited = probe_processes.list_descriptors()
    _, send, requests = join()
    send(["hello"])
    aims: Any = next(iter(requests))
    aims["inherited"] = inherited
    only = aims["only"]
    signal.signal(signal.SIGALRM, hang)
    for name, probe in PROBES.items():
        if not only or name in only:
            judge = run_probe_forked if name in FORKED else run_probe
            send(["tried", name, *judge(probe, aims)])
    send(["end", 0])
    sys.stdout.flush()
    os._exit(0)
