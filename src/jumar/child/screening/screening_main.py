"""Runs candidates inside the project's interpreter: one fork each, from a process that is ready to run its tests.

Standard library and pytest only, Python 3.8 or newer.
What it reports is never a verdict: a candidate runs in the very process that reports.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumar.child.channel import join
from jumar.child.pytest import pytest_main
from jumar.child.pytest.import_paths import add_room_to_path
from jumar.child.pytest.preparation import PluginSwitch, build_arguments, mark
from jumar.child.screening import hot_swap, pytest_plugin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

OPTIONS = ["--assert=plain", "--capture=no", "-q"]
"""Pytest options that save time: test output and failure reasons are not read."""

TURNED = b'["turned"]\n'
"""The line with which a candidate says that all red tests have passed under it."""

REPORT_BYTES = 1 << 20
"""A candidate that writes more than this to our pipe is talking to it itself."""


class Server:
    """Serves one job after the other: forks, waits, reports."""

    def __init__(self, config: Mapping[str, Any], send: Callable[[list[object]], None]) -> None:
        self._config, self._send = config, send
        self._room = Path.cwd()
        self._greens: list[tuple[str, str, float]] = []

    def serve_warm(self, requests: Iterable[Any], plugin: Any) -> None:
        """Serve from a process whose tests are collected: changes of functions are swapped into the living modules."""
        swaps = hot_swap.HotSwap(self._room, self._config["editable"])
        for name in self._config["red"]:
            if name not in plugin.items:
                self._send(["unready", f"{name} was not collected"])
                os._exit(0)

        def change(job: Mapping[str, Any], attempt: Any) -> None:
            if "snippet" in job:
                swaps.swap(job)
            attempt.screen(plugin)

        self._serve(requests, change)

    def serve_cold(self, requests: Iterable[Any], run: Callable[[list[Any]], object]) -> None:
        """Serve from a process that has imported nothing but pytest: for changes that only an import brings to life."""

        def change(job: Mapping[str, Any], attempt: Any) -> None:
            hot_swap.override(self._room, job.get("files", {}))  # none: the green tests are being measured
            run([pytest_plugin.ScreeningPlugin(self._config, attempt.screen)])

        self._serve(requests, change)

    def _serve(self, requests: Iterable[Any], change: Callable[[Mapping[str, Any], Any], None]) -> None:
        gc.collect()
        gc.freeze()
        self._send(["ready"])
        for job in requests:
            lines = self._run_forked({**job, "greens": self._greens}, change)
            if job.get("baseline"):
                measured = [tuple(line[1:]) for line in lines if line[0] == "green"]
                kept = [entry for entry in measured if entry[1] not in ("failed", "missing")]
                self._greens = sorted(kept, key=lambda entry: entry[2])
            for line in lines:
                if line[0] == "lost":
                    # What caught one candidate will catch the next: it goes first.
                    self._greens = _move_first(self._greens, line[1])
            self._send(["screened", job["number"], lines])
        os._exit(0)

    def _run_forked(self, job: Mapping[str, Any], change: Callable[[Mapping[str, Any], Any], None]) -> list[Any]:
        """Return the lines that a child wrote about the changed tests, and how it ended if it did not say so itself."""
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                os.close(read)
                attempt = pytest_plugin.ForkedTrial(self._config, job, write)
                try:
                    attempt.confine()
                    change(job, attempt)
                except hot_swap.MisfitError:
                    attempt.tell("misfit")
            os._exit(1)
        os.close(write)
        data = _drain(read, time.monotonic() + job["wall"], lambda: self._send(["turned", job["number"]]))
        for end in (os.killpg, os.kill):
            with contextlib.suppress(OSError):
                end(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        return _parse_lines(
            data, killed=os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGKILL)
        )


def _move_first(greens: list[tuple[str, str, float]], name: str) -> list[tuple[str, str, float]]:
    return sorted(greens, key=lambda entry: entry[0] != name)


def _parse_lines(data: bytes, *, killed: bool) -> list[Any]:
    lines: list[Any] = []
    with contextlib.suppress(ValueError):
        lines.extend(json.loads(row) for row in data.split(b"\n")[:-1])
    if not lines or lines[-1][0] not in ("done", "misfit"):
        lines.append(["hung" if killed else "crashed"])
    return lines


def _drain(fd: int, deadline: float, turned: Callable[[], object]) -> bytes:
    """Read from *fd* until it ends, says that it is done, or the deadline passes.

    *turned* is called when all red tests have passed: the green ones take long, and the parent may not wait for them.
    """
    data, awaited = b"", True
    while not data.endswith((b'["done"]\n', b'["misfit"]\n')) and len(data) < REPORT_BYTES:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            break
        piece = os.read(fd, 1 << 16)
        if not piece:
            break
        data += piece
        if awaited and TURNED in data:
            awaited = False
            turned()
    os.close(fd)
    return data


def main() -> None:
    """Get ready as the verifier does, then serve."""
    config, send, requests = join()
    room = Path.cwd()
    try:
        pytest = importlib.import_module("pytest")
    except ImportError as error:
        send(["unready", str(error)])
        os._exit(3)
    pytest_main.import_friends()
    sys.dont_write_bytecode = True
    own = [add_room_to_path(room, config["paths"]), PluginSwitch(send)]
    for plugin in own:
        mark(plugin, pytest)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    args = [*OPTIONS, *build_arguments(room, Path(os.environ["TMPDIR"]), config)]
    sys.argv[:] = ["pytest", *args]
    send(["hello", {}])
    server = Server(config, send)
    if config["cold"]:
        server.serve_cold(requests, lambda plugins: pytest.main(args, plugins=[*own, *plugins]))
    with contextlib.suppress(BaseException):
        watch = pytest_plugin.ScreeningPlugin(config, lambda plugin: server.serve_warm(requests, plugin))
        pytest.main(args, plugins=[*own, watch])
    send(["unready", "pytest did not get to the tests"])
    os._exit(3)
