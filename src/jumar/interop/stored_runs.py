"""Reads the finished runs of an export, in the order of their names."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import msgspec

from jumar.core.state import events as ev
from jumar.core.state.run_state import Phase, RunState
from jumar.core.state.stop import StopReason
from jumar.corpus.export import find_run_directories
from jumar.errors import BadInput
from jumar.runs.setup.believed import read_believed

AGENT_NAME = "jumar"
"""Name under which other tools know what made a run; its agents are variants of it."""


class StoredRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run as its journal records it."""

    folder: Path
    entries: tuple[ev.Entry, ...]
    state: RunState

    @property
    def start(self) -> ev.RunStart:
        """The first event."""
        return self.state.run

    @property
    def stop(self) -> StopReason:
        """Reason for which it stopped; one without an end was interrupted."""
        ended = self.state.phase is Phase.ENDED and self.state.end is not None
        return self.state.end.stop if ended and self.state.end else StopReason.INTERRUPTED

    @property
    def why(self) -> str:
        """One sentence, if the reason alone is not clear."""
        return self.state.end.why if self.state.end else ""

    @property
    def tree(self) -> str:
        """The final tree: the best one, or the first one if no other was judged."""
        if self.state.phase is Phase.ENDED:
            return self.state.tree
        return self.state.best.tree if self.state.best else self.start.tree

    @property
    def began(self) -> float:
        """Time of the first event, in seconds since 1970."""
        return self.entries[0].ts

    @property
    def ended(self) -> float:
        """Time of the newest event."""
        return max(entry.ts for entry in self.entries)

    @property
    def model(self) -> str:
        """Name of the model, without the paths of files that stand for one."""
        kind, _, _ = self.start.model.partition(":")
        return kind if kind in ("script", "replay") else self.start.model or "none"

    @property
    def calls(self) -> tuple[ev.ModelCall, ...]:
        """All settled model calls."""
        return tuple(entry.event for entry in self.entries if isinstance(entry.event, ev.ModelCall))

    @property
    def identity(self) -> str:
        """Hash of its first event: two runs of one name in two campaigns differ by it."""
        return sha256(msgspec.json.encode((self.began, self.start))).hexdigest()


def read_stored_runs(places: Iterable[Path]) -> tuple[StoredRun, ...]:
    """Return the runs at or below *places*, each once; a run that has not begun is left out.

    Raises:
        BadInput: if there are none, a journal is damaged, or two different ones begin with the same event.
    """
    folders = [folder.resolve() for folder in find_run_directories(places)]
    runs = [run for folder in folders if (run := read_stored_run(folder)) is not None]
    if not runs:
        raise BadInput("none of these runs has begun; name runs with a first event in their journal")
    unique: dict[str, StoredRun] = {}
    for run in runs:
        there = unique.setdefault(run.identity, run)
        if there.entries != run.entries:
            raise BadInput(
                f"{there.folder} and {run.folder} are two different runs of the name {run.start.run}; leave one out"
            )
    return tuple(sorted(unique.values(), key=lambda run: (run.start.run, run.identity)))


def read_stored_run(folder: Path) -> StoredRun | None:
    """Return the run in *folder*; None if its journal holds no first event.

    Raises:
        BadInput: if its journal is damaged.
    """
    entries, state = read_believed(folder)
    return StoredRun(folder=folder, entries=entries, state=state) if state.start else None
