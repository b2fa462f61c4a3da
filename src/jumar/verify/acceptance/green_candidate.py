"""A green that is being accepted: what is known of it, and its parts that run side by side."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio

from jumar.core.gate.challenge_rounds import Round, Strength
from jumar.core.gate.grades import Grade
from jumar.core.state.verdict import Outcome
from jumar.errors import find_cause

if TYPE_CHECKING:
    from jumar.verify.execution import TreeRunner

APART = ("S3", "S2")
"""Tiers in which a process cannot reach another one: below them two processes are one."""

PART_MS = 150
"""Least work of a part, in milliseconds of a first run: to start one takes a third of that."""

EACH_MS = 3
"""What a test takes beside that: its report, and its calls of another process."""

_Done = TypeVar("_Done")


@dataclass(slots=True)
class GreenCandidate:
    """A green that is being accepted, or a part of its tests."""

    verifier: TreeRunner
    tree: str
    """The candidate's, with the held-out tests."""
    alone: str
    """The candidate's, without them: nothing else lies where the code under test has a process of its own."""
    ids: tuple[str, ...]
    """All that is judged, by the runner's names; held-out tests too."""
    accepted: Mapping[str, Outcome]
    """By the runner's names: what the frozen run had for ids that did not pass."""
    took: Mapping[str, int] = field(default_factory=dict)
    """Milliseconds that tests took in their first run."""
    runs: list[str] = field(default_factory=list)
    """Trees of the runs that its acceptance took."""
    asked: int | None = None
    """Requests of the code under test that the tests performed in two processes; None: it was in none."""
    done: list[Round] = field(default_factory=list)
    unproved: set[str] = field(default_factory=set)
    strengths: dict[str, Strength] = field(default_factory=dict)
    """Test function -> the way in which it was falsified, as its rounds have seen; its parts share this."""
    matched: set[str] = field(default_factory=set)
    """Tests that compare an object of the code under test with one that they made of a class of it."""
    tied: set[str] = field(default_factory=set)
    """Tests that need the code under test in their own process by what they do themselves."""
    doubted: dict[str, str] = field(default_factory=dict)
    """Tests that are no evidence in two processes, each with why."""
    conversed: dict[str, str] = field(default_factory=dict)
    """Tests in which more than questions and data crossed between two processes, each with why."""
    copied: set[str] = field(default_factory=set)
    """Tests that hold something of which the code under test changed its copy."""
    in_place: bool = False
    """True if the tests are to see such changes in two processes, as they do in one."""


async def run_parts(green: GreenCandidate, run: Callable[[GreenCandidate], Awaitable[_Done]]) -> list[_Done]:
    """Let *run* run the tests of *green*: those of some files beside those of others, where there are cores for that.

    They are parts of one round: processes that are confined alike, and know no more than one process for all would.
    """
    splits = is_pytest(green.verifier) and green.verifier.sandbox.tier in APART
    chosen = split_ids(green.ids, green.took) if splits else [green.ids]
    parts = [replace(green, ids=tuple(ids), runs=[], asked=None) for ids in chosen]
    done = await run_side_by_side([partial(run, part) for part in parts])
    longest = max((part.runs for part in parts), key=len)
    green.runs += longest
    asked = [part.asked for part in parts if part.asked is not None]
    green.asked = sum(asked, green.asked or 0) if asked else green.asked
    return done


def split_ids(ids: Sequence[str], took: Mapping[str, int]) -> list[tuple[str, ...]]:
    """Split *ids* by their files, so that each core has as much to do: tests *took* so many milliseconds.

    What is small stays whole.
    """
    files: dict[str, int] = {}
    for test_id in ids:
        file = test_id.partition("::")[0]
        files[file] = files.get(file, 0) + EACH_MS + took.get(test_id, 0)
    most = min(len(os.sched_getaffinity(0)), len(files), sum(files.values()) // PART_MS)
    loads = [0] * max(1, most)
    part_of: dict[str, int] = {}
    for file in sorted(files, key=lambda name: (-files[name], name)):
        part_of[file] = loads.index(min(loads))
        loads[part_of[file]] += files[file]
    return [tuple(i for i in ids if part_of[i.partition("::")[0]] == part) for part in range(len(loads))]


async def run_side_by_side(calls: Sequence[Callable[[], Awaitable[_Done]]]) -> list[_Done]:
    """Await all *calls* at once; what they returned, in their order. The first exception of one ends the others."""
    done: dict[int, _Done] = {}

    async def run(number: int) -> None:
        done[number] = await calls[number]()

    try:
        async with anyio.create_task_group() as tasks:
            for number in range(len(calls)):
                tasks.start_soon(run, number)
    except BaseExceptionGroup as several:
        raise find_cause(several) from None
    return [done[number] for number in range(len(calls))]


def is_pytest(verifier: TreeRunner) -> bool:
    """Return whether the tests are pytest's: these can be falsified, and separated from the code under test."""
    return verifier.runner.name == "pytest" and verifier.runner.grade != Grade.X
