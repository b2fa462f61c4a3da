"""Progress of slow work, for display alone: no decision depends on it, and it waits for no reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable


class Work(StrEnum):
    """Kind of slow work, as a person is shown it."""

    STARTING = "starting"
    COPYING = "copying the files"
    PROBING = "testing the sandbox"
    PREPARING = "building the toolchain's own library, once a day"
    COLLECTING = "collecting the tests"
    STEADYING = "running the untouched tests"
    JUDGING = "running the tests"
    MUTATING = "trying mutants"


class ProgressPart(StrEnum):
    """Unit in which parts of the current work are counted."""

    FILES = "files"
    ROUND = "round"
    TESTS = "tests"
    CANDIDATES = "candidates"


Tell = Callable[[Work | ProgressPart, int, int], None]
"""Is told that a work begins, or how many of a part are done, and of how many: 0 where nobody knows."""


def ignore_progress(_what: Work | ProgressPart, _done: int = 0, _total: int = 0) -> None:
    """Report the progress to nobody."""


@runtime_checkable
class Telling(Protocol):
    """Follower of a run that also receives its progress."""

    tell: Tell


def get_tell(follower: object) -> Tell:
    """Return the function that tells *follower* the progress; it does nothing if the follower wants none."""
    return follower.tell if isinstance(follower, Telling) else ignore_progress


class Counter:
    """Counts the tests in the records of one process, see `jumar.process.records`."""

    def __init__(self, tell: Tell) -> None:
        self._tell, self._done, self._total = tell, 0, 0

    def count(self, records: Sequence[Sequence[Any]]) -> None:
        """Count *records* as they arrive."""
        for record in records:
            match record:
                case ["collected", [*ids], *_]:
                    self._total += len(ids)
                case ["result", *_]:
                    self._done += 1
        if records and (self._done or self._total):
            self._tell(ProgressPart.TESTS, self._done, max(self._done, self._total))
