"""Runs an open run to its end, and writes beside its journal the files that people and tools read first."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from jumar.core.state.run_state import RunState
from jumar.core.state.stop import StopReason
from jumar.errors import Infra
from jumar.journal.writer import EVENTS, Journal
from jumar.kernel import Kernel
from jumar.runs.external.host import ExternalHost
from jumar.runs.remove_workspace import leave_workspace
from jumar.runs.setup.assembly import RunPlace
from jumar.runs.setup.result import Result, build_result
from jumar.runs.setup.selftest_cache import SelftestCache
from jumar.workspace.files.disk_faults import FULL, explain_disk_faults
from jumar.workspace.files.safe_paths import replace_file
from jumar.workspace.patch import make_best_patch


@contextmanager
def explain_full_disk(folder: Path) -> Iterator[None]:
    """Turn a full disk, wherever it was met, into one sentence on how to go on with the run in *folder*.

    Other faults pass.

    Raises:
        Infra: instead of OSError, naming the path, or *folder* where the system names none.
    """
    try:
        yield
    except OSError as fault:
        if fault.errno not in FULL:
            raise
        begun = (folder / EVENTS).is_file()
        then = f"go on with jumar resume {shlex.quote(str(folder))}" if begun else "start the run again"
        raise Infra(
            f"cannot write {fault.filename or folder}: {fault.strerror}; free some space, then {then}"
        ) from fault


class Running(NamedTuple):
    """A run that is open in this process."""

    kernel: Kernel
    place: RunPlace
    journal: Journal
    agent: ExternalHost | None = None
    """A command-line agent: it works while the run is open."""


async def finish_run(running: Running) -> Result:
    """Run to the end, and write the result beside the journal.

    Raises:
        Infra: if the disk is full, with how to go on.
    """
    with explain_full_disk(running.place.folder):
        if running.agent is None:
            return write_result(running, await running.kernel.run())
        async with running.agent.at_work():
            state = await running.kernel.run()
            await running.agent.leave(state)
        return write_result(running, state)


def write_result(running: Running, state: RunState) -> Result:
    """Write the result of the run that ended in *state* beside its journal; return it."""
    place, journal = running.place, running.journal
    shutil.rmtree(place.folder / "rooms", ignore_errors=True)  # before anything is written: the disk may be full
    with explain_disk_faults(f"the run has ended, but {place.folder} cannot be written"):
        replace_file(place.folder / "best.patch", make_best_patch(place.store, state.run.tree, state.tree))
    if state.end is not None and state.end.stop is StopReason.INFRA:
        SelftestCache(place.environ).forget()
    leave_workspace(place, state)
    return store_result(place, build_result(state, place.folder, journal.mark))


def store_result(place: RunPlace, result: Result) -> Result:
    """Write *result* in *place*, where nothing is judged any more; return it."""
    shutil.rmtree(place.folder / "rooms", ignore_errors=True)
    with explain_disk_faults(f"the run has ended, but {place.folder} cannot be written"):
        replace_file(place.folder / "result.json", msgspec.json.format(msgspec.json.encode(result)) + b"\n")
    return result
