"""Runs vitest and jest: starts node, reads its reports, kills what hangs, and sends the results.

A test that never gives control back is found by its silence: its process is killed, and what was asked besides is asked
again without it.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumar.child import runner_bridge
from jumar.child.commands import toolchain_main
from jumar.child.javascript import project_batches, results

if TYPE_CHECKING:
    from jumar.child.javascript.project_batches import NodeRunner


STUCK_SECONDS = 5.0
"""A test that outlives its time limit by this much has not been stopped by its runner and never will be."""

FAREWELL_SECONDS = 2.0
"""So long before the whole is killed, what is known is said."""

LAST = frozenset({"done", "ready", "rested"})
"""Events with which a process says that it did what was asked."""

NOTHING = "(?!)"
"""A pattern that no name matches: all files are loaded, no test is run."""


class Hang(Exception):  # noqa: N818  # it is no error of ours
    """Raised when nothing was heard of some files for too long."""

    def __init__(self, paths: list[str]) -> None:
        super().__init__(", ".join(paths))
        self.paths = paths


def find_tool(tool: NodeRunner) -> tuple[str, str]:
    """Return the node that runs *tool*, and its version.

    Raises:
        RunnerUnusable: if one of the two is not there.
    """
    node, package = shutil.which("node"), project_batches.find_package(tool, Path.cwd())
    version = json.loads(package.read_text("utf-8")).get("version", "0") if package else ""
    if node is None or package is None or int(version.split(".")[0]) < tool.oldest:
        where = f"no node on the PATH of the sandbox ({os.environ.get('PATH')})"
        lacks = where if node is None else f"no {tool.name} {tool.oldest} or newer in node_modules"
        raise RunnerUnusable(f"there is {lacks}; install it (`npm install`) and try again")
    return node, version


def run_job(config: dict[str, Any], send: runner_bridge.Send) -> int:
    """List the ids of the suite, or judge the asked ones; the status to leave with."""
    tool = project_batches.RUNNERS[config["tool"]]
    try:
        node, version = find_tool(tool)
    except RunnerUnusable as why:
        send(["unusable", str(why)])
        return 3
    send(["hello", {tool.name: version}])
    session = NodeToolSession(tool, node, config)
    try:
        for line in session.work():
            send(line)
    except RunnerRefused as refused:
        send(["usage", runner_bridge.normalise_text(str(refused))])
        return 3
    return 0


class RunnerUnusable(Exception):  # noqa: N818  # as above
    """The runner is not there, or too old."""


class RunnerRefused(Exception):  # noqa: N818  # as above
    """The runner did not get as far as loading a test file."""


def start_node(node: str, script: str, writes: int) -> subprocess.Popen[bytes]:
    """Start *script* beside this file, which tells events on the descriptor *writes*; that is closed here."""
    process = subprocess.Popen(  # noqa: S603  # node, our script, a number
        [node, str(Path(__file__).with_name(script)), str(writes)],
        stdin=subprocess.PIPE, pass_fds=[writes], process_group=0,
        env={**os.environ, "JUMAR_MARKS": str(Path(os.environ["TMPDIR"], "marks"))},
    )  # fmt: skip
    os.close(writes)
    return process


class NodeToolSession:
    """All processes of one job, and their reports."""

    def __init__(self, tool: NodeRunner, node: str, config: dict[str, Any]) -> None:
        self._tool, self._node, self._config = tool, node, config
        self._collects = config["mode"] == "collect"
        self._findings = results.ResultFindings()
        self._deadline = time.monotonic() + config["seconds"] - min(FAREWELL_SECONDS, config["seconds"] / 5)
        self._scratch = Path(os.environ["TMPDIR"])
        self._heard: dict[str, float] = {}
        """Path of each file that is at work -> when something was last heard of it."""
        self._running: dict[str, str] = {}
        """Path -> id of the test that started last."""
        self._stopped = ""

    def work(self) -> Iterator[list[object]]:
        """Yield the records of the job."""
        todo = project_batches.split_batches(self._tool, self._config)
        while todo:
            batch = todo.pop(0)
            try:
                self._run(batch)
            except Hang as hang:
                todo[:0] = self._drop_hung(batch, hang)
            if time.monotonic() > self._deadline:
                break
        yield from self._build_records()
        if self._stopped or time.monotonic() > self._deadline:
            for test_id in self._find_lost():
                yield ["start", test_id]
        if time.monotonic() > self._deadline:
            # What is left to be said of the timeout is said by whoever kills us for it.
            signal.pause()
        if self._stopped:
            yield ["stopped", self._stopped]

    def _run(self, batch: Any) -> None:
        """Run one process to its end.

        Raises:
            Hang: if it has to be killed as some files say nothing.
            RunnerRefused: if the runner cannot work with its configuration.
        """
        self._heard.clear()
        reads, writes = os.pipe()
        with start_node(self._node, self._tool.script, writes) as process:
            try:
                if process.stdin:
                    with contextlib.suppress(BrokenPipeError), process.stdin:
                        process.stdin.write(json.dumps(self._build_order(batch)).encode())
                done = self._listen(reads)
            finally:
                os.close(reads)
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        if not done and time.monotonic() < self._deadline:
            if not self._findings.list_found() and (why := toolchain_main.check_node(self._node)):
                raise RunnerRefused(why)
            self._stopped = f"{self._tool.name} left with status {process.returncode} before it was done"

    def _build_order(self, batch: Any) -> dict[str, object]:
        package = project_batches.find_package(self._tool, batch.folder)
        names = [i.partition("::")[2] for i in batch.ids]
        return {
            "package": str(package),
            "base": str(batch.folder),
            "configured": project_batches.is_configured(self._tool, batch.folder),
            "files": [str(Path.cwd() / file) for file in batch.files],
            "exact": not self._collects,
            "pattern": results.build_pattern(names) if names else NOTHING,
            "limit": self._config["limit"],
            "cache": str(self._scratch / "cache"),
        }

    def _listen(self, reads: int) -> bool:
        """Take in events until one says that all is done; whether one did."""
        tail, done = b"", False
        with selectors.DefaultSelector() as selector:
            selector.register(reads, selectors.EVENT_READ)
            while not done and time.monotonic() < self._deadline:
                if not selector.select(0.25):
                    self._watch()
                    continue
                piece = os.read(reads, 1 << 16)
                if not piece:
                    break
                *lines, tail = (tail + piece).split(b"\n")
                for event in map(json.loads, lines):
                    done = done or event["on"] in LAST
                    self._hear(event)
        return done

    def _hear(self, event: dict[str, Any]) -> None:
        if event["on"] == "refused":
            raise RunnerRefused(event["errors"][0]["message"] or event["errors"][0]["stack"])
        path = os.path.relpath(os.path.realpath(event["file"])) if "file" in event else ""
        if event["on"] == "loaded":
            self._heard.pop(path, None)
        elif path:
            self._heard[path] = time.monotonic()
        if event["on"] == "start":
            self._running[path] = results.build_id(path, event["names"])
        self._findings.hear(event)

    def _watch(self) -> None:
        patience = time.monotonic() - self._config["limit"] - STUCK_SECONDS
        if late := [path for path, heard in self._heard.items() if heard < patience]:
            raise Hang(late)

    def _drop_hung(self, batch: Any, hang: Hang) -> list[Any]:
        self._read_marks()
        why = f"nothing came back for {self._config['limit'] + STUCK_SECONDS:g} s, so the process was killed"
        hung = results.NodeTestResult("timeout", int(1000 * self._config["limit"]), why, "code", "")
        findings = self._findings
        for path in hang.paths:
            running, waiting = self._running.get(path), [i for i in batch.ids if i.partition("::")[0] == path]
            if running is not None and not self._collects and not findings.is_reported(running):
                findings.forced[running] = hung
            elif path in findings.tests:
                # Between its loading and its first test: a hook.
                findings.forced.update(
                    (i, hung._replace(outcome="error")) for i in waiting if not findings.is_reported(i)
                )
            else:
                findings.broken[path] = hung._replace(outcome="import_error")
        left = [i for i in batch.ids if not findings.is_reported(i)]
        findings.sealed.update(m for i in batch.ids if i not in left for m in findings.list_members(i))
        files = [f for f in batch.files if any(i.partition("::")[0] == f for i in left)]
        return [batch._replace(files=files, ids=left)] if left else []

    def _read_marks(self) -> None:
        """Take in which tests began, from where they said so themselves."""
        with contextlib.suppress(OSError):
            for line in (self._scratch / "marks").read_text("utf-8").splitlines():
                event = json.loads(line)
                path = os.path.relpath(os.path.realpath(event["file"]))
                self._running[path] = results.build_id(path, event["names"])

    def _find_lost(self) -> list[str]:
        """Return the asked id in which the process ended, if it can be told."""
        self._read_marks()
        members = {member: i for i in self._config["ids"] for member in self._findings.list_members(i)}
        running = [i for i in self._running.values() if not self._findings.is_reported(i)]
        return [members[i] for i in running if i in members][-1:]

    def _build_records(self) -> Iterator[list[object]]:
        plain = runner_bridge.normalise_text
        asked = self._config["ids"]
        found = [i for i in self._findings.list_found() if _is_selected(self._config["args"], i)]
        ids = found if self._collects else [i for i in asked if self._findings.list_members(i)]
        records: list[list[object]] = []
        runner_bridge.collect(records.append, ids)
        yield from records
        for path, why in sorted(self._findings.list_broken().items()):
            yield ["broken", path, plain(why.excerpt), why.blame, why.absent]
        if not self._collects:
            for test_id, result in self._findings.build_results(asked).items():
                outcome, ms, excerpt, blame, absent = result
                yield ["result", test_id, outcome, ms, plain(excerpt), blame, absent]


def _is_selected(select: list[str], test_id: str) -> bool:
    """Return whether *test_id* is in *select*: files, folders or ids."""
    path = test_id.partition("::")[0]
    return not select or any(
        s.rstrip("/") in (".", path, test_id) or path.startswith(s.rstrip("/") + "/") or test_id.startswith(s + " > ")
        for s in (os.path.normpath(one) if "::" not in one else one for one in select)
    )


def main() -> None:
    """Run the tests that one order on standard input asks for."""
    runner_bridge.serve(run_job)
