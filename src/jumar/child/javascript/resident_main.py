"""Keeps one vitest for many orders: writes edits, has it run the tests, and looks for traces of the run afterwards.

A request is `{"edits": {path: base64}, "ids": [...], "mark": word}`. The answer is the records of a verification and
`["served", held]`, whose files a request must not edit, or `["declined", why, lasting]`. After `served` comes `["kept",
why]`: what the run left behind, empty if that is nothing. Whatever is not as it was before the run ends this process:
nothing is cleaned for a next run but the folders of temporary files.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jumar.child import runner_bridge
from jumar.child.javascript import node_tool, project_batches, sandbox_state
from jumar.child.supervisor import process_tree, supervise

VITEST, SCRIPT = project_batches.RUNNERS["vitest"], "vitest_resident.mjs"

READY_SECONDS, REST_SECONDS = 60.0, 5.0
"""Time limits for vitest's start, and for the end of its processes after a run."""


class Declined(Exception):  # noqa: N818  # it is no error
    """Raised when an order is not carried out by the kept process; *lasting* if none of this project ever will be."""

    def __init__(self, why: str, *, lasting: bool = False) -> None:
        super().__init__(why)
        self.lasting = lasting


class KeptVitest:
    """The process of vitest that is kept."""

    def __init__(self, node: str, order: Mapping[str, object]) -> None:
        self.base = order["base"]
        self.events, writes = os.pipe()
        self._process = node_tool.start_node(node, SCRIPT, writes)
        self.tell(order)

    def tell(self, step: Mapping[str, object]) -> None:
        """Send *step*; one that is gone hears nothing."""
        if self._process.stdin:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(json.dumps(step).encode() + b"\n")
                self._process.stdin.flush()


class KeptRun(node_tool.NodeToolSession):
    """One order, carried out by a vitest that is there already."""

    last: Mapping[str, Any] = {}
    """The newest event."""

    def find_batch(self) -> project_batches.ProcessBatch:
        """Return the only batch of the order.

        Raises:
            Declined: if there are several.
        """
        batches = project_batches.split_batches(self._tool, self._config)
        if len(batches) != 1:
            raise Declined("the tests are of several projects, or of none", lasting=len(batches) > 1)
        return batches[0]

    def start(self, batch: project_batches.ProcessBatch) -> KeptVitest:
        """Start the vitest that is kept."""
        return KeptVitest(self._node, self._build_order(batch))

    def wait_for(self, node: KeptVitest, name: str) -> Mapping[str, Any]:
        """Return the event *name*, which ends what was asked last.

        Raises:
            Declined: if it does not come.
        """
        self.last = {}
        if not self._listen(node.events) or self.last.get("on") != name:
            raise Declined(f"vitest did not say {name}")
        return self.last

    def run(self, node: KeptVitest, batch: project_batches.ProcessBatch) -> list[list[object]]:
        """Have *node* run the tests of *batch*; their records."""
        order = self._build_order(batch)
        node.tell({"on": "run", "files": order["files"], "pattern": order["pattern"]})
        self.wait_for(node, "done")
        return [*self._build_records()]

    def _hear(self, event: dict[str, Any]) -> None:
        self.last = event
        super()._hear(event)


class Resident:
    """Server of requests: edits files, starts vitest once, and decides whether it can be kept."""

    def __init__(self, config: dict[str, Any], node: str) -> None:
        self._config, self._node = config, node
        self._room = Path.cwd()
        self._scratch = [os.environ["HOME"], os.environ["TMPDIR"]]
        self._watched = [str(self._room), *config["own"]]
        self._alone = bool(config["own"])
        self._kept: KeptVitest | None = None
        self._family: set[int] = set()
        """Vitest's process, and what it had started before it ran a test."""
        self._before: sandbox_state.State = {}
        self.held: list[str] = []

    def carry_out(self, request: dict[str, Any]) -> list[list[object]]:
        """Write the edits and run the tests; their records.

        Raises:
            Declined: if this process cannot.
            node_tool.Hang: if files say nothing for too long.
            node_tool.RunnerRefused: if vitest refuses its configuration.
        """
        for path, text in request["edits"].items():
            self._write(path, base64.b64decode(text))
        run = KeptRun(VITEST, self._node, {**self._config, "mode": "run", "args": [], "ids": request["ids"]})
        batch = run.find_batch()
        if self._kept is None:
            self._kept = run.start(batch)
            ready = run.wait_for(self._kept, "ready")
            if ready["unfit"]:
                raise Declined(ready["unfit"], lasting=True)
            self.held = [os.path.relpath(os.path.realpath(one), os.path.realpath(self._room)) for one in ready["held"]]
            self._family = set(process_tree.find_descendants(os.getpid()))
        if self._kept.base != str(batch.folder):
            raise Declined("the tests are of several projects", lasting=True)
        self._before = self._look()
        return run.run(self._kept, batch)

    def tidy(self) -> str:
        """End what the run started, empty the temporary folders, and return what else is not as it was."""
        if self._kept is None:
            return "vitest is gone"
        self._kept.tell({"on": "rest"})
        run = KeptRun(VITEST, self._node, {**self._config, "mode": "run", "ids": [], "seconds": REST_SECONDS})
        try:
            alone = run.wait_for(self._kept, "rested")["alone"]
            strays = process_tree.find_descendants(os.getpid()).keys() - self._family
            for folder in self._scratch:
                sandbox_state.empty_folder(folder)
            left = sum(len(os.listdir(folder)) for folder in self._scratch)  # noqa: PTH208  counted, not used
            changed = sandbox_state.find_difference(self._before, self._look())
        except (OSError, Declined, node_tool.Hang) as why:
            return f"it cannot be seen what the run left: {why}"
        if strays or not alone:
            return "a process that the tests started is still there"
        return "a temporary file cannot be removed" if left else f"the tests changed {changed}" if changed else ""

    def prepare(self) -> None:
        """Have the next processes for tests started."""
        if self._kept is not None:
            self._kept.tell({"on": "prepare"})

    def _look(self) -> sandbox_state.State:
        return sandbox_state.read_state(self._watched, alone=self._alone)

    def _write(self, path: str, content: bytes) -> None:
        place = self._room / path
        mode = place.stat().st_mode & 0o777
        place.unlink()
        place.write_bytes(content)
        place.chmod(mode)


def serve(config: dict[str, Any], send: runner_bridge.Send, requests: Iterator[object]) -> int:
    """Serve *requests* until something of one would be seen by the next; the status to leave with."""
    supervise.adopt_orphans()
    node, version = node_tool.find_tool(VITEST)
    send(["hello", {VITEST.name: version}])
    resident = Resident(config, node)
    for request in requests:
        if not isinstance(request, dict):
            return 3
        try:
            records = resident.carry_out(request)
        except (Declined, node_tool.Hang, node_tool.RunnerRefused, OSError) as why:
            send(["declined", str(why), getattr(why, "lasting", False)])
            return 0
        os.write(1, f"\n{request['mark']}\n".encode())
        send(*records, ["served", resident.held])
        left = resident.tidy()
        send(["kept", left])
        if left:
            return 0
        resident.prepare()
    return 0


def main() -> None:
    """Keep vitest, and carry out the requests on the channel."""
    runner_bridge.serve_requests(serve)
