"""Starts or resumes a run in a process of its own that kills itself: after group N of the journal, or within its bytes.

    python kill_driver.py FOLDER GROUP BYTES REAL

GROUP counts the groups this process writes (a negative one never comes); BYTES is how many bytes of it reach the disk
(-1: all, and synced; -2, -3, ...: its first one, two, ... lines). Every verification and model call leaves a line in
FOLDER/calls, outside the journal.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
from msgspec.structs import replace

from jumar.core.state.budget import Cost
from jumar.core.state.stop import StopReason
from jumar.core.state.verdict import Outcome
from jumar.kernel import Kernel
from jumar.ports import Answer, Ask, Checked, Model, Verification, Verifier
from jumar.runs.lifecycle import resume, start
from jumar.runs.setup.marks import TrustedRun
from jumar.runtime.dependencies import RunDependencies
from jumar.runtime.effect_runner import EffectRunner
from jumar.task.resolve import Options, apply_options
from jumar.task.task import load_task
from jumar.testing import FakeVerifier
from support.processes.interpreters import beside_it

REPLIES = (8, 12, 10, 13, 11)
TOTAL = 17


def lay_out(folder: Path) -> None:
    """The task and the script of the story."""
    (folder / "task").mkdir(parents=True)
    beside_it(folder / "task")
    (folder / "task" / "app.py").write_text("PASSING = 8  # start\n")
    (folder / "task" / "test_app.py").write_text(
        "import pytest\nfrom app import PASSING\n\n\n"
        f"@pytest.mark.parametrize('n', range({TOTAL}))\ndef test_it(n):\n    assert n < PASSING\n"
    )
    lines = [{"content": f"PASSING = {n}  # reply {k}\n", "usd": 0.01} for k, n in enumerate(REPLIES)]
    (folder / "script.jsonl").write_text("\n".join(map(json.dumps, lines)))


def judge(files: Mapping[str, bytes]) -> Mapping[str, str]:
    """What the real tests would say."""
    passing = int(files["app.py"].split()[2])
    return {f"test_app.py::test_it[{n}]": "passed" if n < passing else "failed" for n in range(TOTAL)}


class Counted:
    """A verifier and a model that leave a line for every call."""

    def __init__(self, log: Path, verifier: Verifier, model: Model) -> None:
        self._log, self._verifier, self._model = log, verifier, model
        self.name = model.name
        self.localise = verifier.localise

    def _count(self, what: str) -> None:
        with self._log.open("a") as log:
            log.write(what + "\n")

    async def verify(
        self,
        tree: str,
        accepted: Mapping[str, Outcome] | None,
        *,
        control: str,
        also: Sequence[str] = (),
        first: Sequence[str] = (),
    ) -> Verification:
        self._count("verify")
        return await self._verifier.verify(tree, accepted, control=control, also=also, first=first)

    async def check(self, tree: str, command: str, seconds: float) -> Checked:
        return await self._verifier.check(tree, command, seconds)

    def worst(self, ask: Ask) -> Cost:
        return self._model.worst(ask)

    async def complete(self, ask: Ask) -> Answer:
        self._count("call")
        return await self._model.complete(ask)


class Killer:
    """Writes like `os.write` until the chosen group, of which it writes some bytes and dies."""

    def __init__(self, group: int, many: int) -> None:
        self._left, self._many = group, many

    def __call__(self, fd: int, data: bytes) -> int:
        if self._left != 0:
            self._left -= 1
            return os.write(fd, data)
        lines = data.splitlines(keepends=True)
        cut = b"".join(lines[: -1 - self._many]) if self._many < -1 else data[: self._many % len(data)]
        os.write(fd, data if self._many == -1 else cut)
        if self._many < 0:
            os.fsync(fd)
        os.kill(os.getpid(), signal.SIGKILL)
        return 0


def main(folder: Path, group: int, many: int, real: bool) -> StopReason:  # noqa: FBT001  the command line's order
    """Run to the end, or die."""

    def begun(kernel: Kernel) -> None:
        parts: RunDependencies = kernel.shell._parts  # noqa: SLF001  the driver stands in for the machine
        store = parts.workspace._store  # noqa: SLF001  as above
        verifier = parts.verifier if real else FakeVerifier(store, kernel.state.run.expected, judge)
        counted = Counted(folder / "calls", verifier, parts.route("mid"))
        kernel.shell = EffectRunner(replace(parts, verifier=counted, route=lambda _tier: counted))
        kernel.journal._write = Killer(group, many)  # noqa: SLF001  as above

    runs = folder / "runs"
    there = sorted(p.parent for p in runs.glob("*/events.jsonl"))

    async def work() -> StopReason:
        if there:
            return (await resume(TrustedRun(there[0]), environ=os.environ, begun=begun)).stop
        chosen = Options(
            agent="pipeline", model=f"script:{folder / 'script.jsonl'}", attempts=5, confirm=0, sandbox="S0"
        )
        task = apply_options(load_task(folder / "task"), chosen)
        return (await start(task, runs, environ=os.environ, begun=begun)).stop

    return anyio.run(work)


if __name__ == "__main__":
    sys.stdout.write(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "real"))
