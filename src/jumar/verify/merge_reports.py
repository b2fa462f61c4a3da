"""Splits tests among processes, and merges the reports of several on one tree: each judges one part of the ids."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import anyio
import msgspec

from jumar.core.state.verdict import Cause, Ended, Outcome, Report, Void
from jumar.errors import find_cause
from jumar.workspace.store.object_store import Store

PART_MS = 150
"""Least work of a part, in milliseconds of a first run: to start one takes a third of that."""

EACH_MS = 3
"""More milliseconds for each test: its report, and its calls of another process."""

_Done = TypeVar("_Done")


class ReportPart(NamedTuple):
    """Test ids that are judged by one process."""

    ids: Sequence[str]
    beside: str | None = None
    """The one file of the candidate's own tests that lies in its room; empty: none does; None: all do."""
    refutes: bool = False
    """True if only what is red counts, so that nobody has to look whether the code changes what judges it."""


class FirstReport(NamedTuple):
    """First report on a tree."""

    report: Report
    natives: Mapping[str, str] = MappingProxyType({})
    """Id that an annotation gives -> the id that the runner knows the test by."""
    again: int = 0
    """Processes that ran a second time."""
    fresh: bool = True
    """True if it comes from processes that ran nothing else before."""
    warnings: tuple[str, ...] = ()


class PlainReport(NamedTuple):
    """Report of a plain run."""

    report: Report
    broken: Mapping[str, str]
    """Files and folders that nobody asked for and that break when they are loaded, and not on the untouched tree."""
    whole: bool
    """True if pytest found the files by itself, and each one counts."""


PlainAhead = Callable[[list[str]], Awaitable[PlainReport | None]]
"""Returns the report of a plain run that was begun early, and adds the trees of its processes to the list; None: it was
given up."""


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


def list_retries(report: Report, natives: Mapping[str, str], own: Sequence[str]) -> list[ReportPart]:
    """Return candidate's own tests whose files came to nothing, where several did: one may have broken the others."""
    broken = {r.id for r in report.results if r.outcome is Outcome.IMPORT_ERROR}
    files: dict[str, list[str]] = {}
    for test_id in own:
        path = natives.get(test_id, test_id).partition("::")[0]
        if test_id in broken or path in report.broken:
            files.setdefault(path, []).append(test_id)
    return [ReportPart(ids, path) for path, ids in files.items()] if len(files) > 1 else []


def remove_parts(report: Report, natives: Mapping[str, str], parts: Sequence[ReportPart]) -> Report:
    """Return *report* without the results of *parts*, which were judged again."""
    files = {part.beside for part in parts}
    return msgspec.structs.replace(
        report,
        results=tuple(r for r in report.results if natives.get(r.id, r.id).partition("::")[0] not in files),
        broken={path: why for path, why in report.broken.items() if path not in files},
    )


def judge_shadows(report: Report, store: Store, base: str) -> Report:
    """Add an anomaly for modules that hide an installed one and are not in the tree *base*: tests may ask for that."""
    theirs = store.manifest(base) if report.shadows and base else {}
    new = [path for path in dict.fromkeys(report.shadows) if path not in theirs] if theirs else []
    said = tuple(f"{path} stands in the place of an installed module of that name" for path in new)
    return msgspec.structs.replace(report, anomalies=(*report.anomalies, *said)) if said else report


def merge_reports(first: Report, more: Report) -> Report:
    """Merge the reports of two processes: all that they list of tests. If one ended badly, so did both."""
    bad = more if first.ended is Ended.NORMAL or (first.stopped and more.ended is not Ended.NORMAL) else first
    pairs = ((name, getattr(first, name), getattr(more, name)) for name in Report.__struct_fields__)
    listed: dict[str, Any] = {
        name: (*one, *other) if isinstance(one, tuple) else {**one, **other}
        for name, one, other in pairs
        if isinstance(one, tuple | Mapping)
    }
    listed["broken"] = {**more.broken, **first.broken}
    return Report(**listed, ended=bad.ended, detail=bad.detail, stopped=bad.stopped, lost=first.lost or more.lost)


def find_differences(one: Report, other: Report) -> list[str]:
    """Return the ids, or paths of broken files, of which two reports on the same tree do not say the same."""
    said = [
        {**{r.id: r.outcome for r in report.results}, **dict.fromkeys(report.broken, Outcome.IMPORT_ERROR)}
        for report in (one, other)
    ]
    return sorted(i for i in said[0].keys() | said[1].keys() if said[0].get(i) != said[1].get(i))


def attribute_bad_end(report: Report, control: Report) -> tuple[Report, Void | None]:
    """Attribute a bad end: to the candidate, if the control ends well under the same conditions."""
    if control.ended is not Ended.NORMAL:
        return report, Void(Cause.HARNESS, f"the best tree does not end well any more either: {control.detail}")
    ended = Ended.EXIT if report.ended is Ended.UNSTARTED else report.ended
    return msgspec.structs.replace(report, ended=ended), None
