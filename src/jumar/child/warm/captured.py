"""Corrects module attributes that were set when the zygote imported them: paths of its folders, and times.

A time would tell a run when the zygote began, and by that how long the runs before it took.
Standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import PurePath
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

CLOCKS: dict[type, tuple[Callable[[], Any], ...]] = {
    float: (time.time, time.monotonic, time.perf_counter),
    int: (time.time_ns, time.monotonic_ns, time.perf_counter_ns),
}
"""Kind of a number -> the clocks that it may be of."""


class Captured(NamedTuple):
    """Attributes of modules."""

    paths: list[tuple[dict[str, Any], str, str]]
    """Paths below the zygote's folder: the names of a module, the name, the path from there on."""
    times: list[tuple[dict[str, Any], str, Callable[[], Any]]]
    """Times since the zygote began: the names of a module, the name, the clock."""


def read_clocks() -> dict[Callable[[], Any], Any]:
    """Return what each clock says now."""
    return {clock: clock() for clocks in CLOCKS.values() for clock in clocks}


def find_captured(folder: str, began: Mapping[Callable[[], Any], Any]) -> Captured:
    """Return the module attributes that are paths below *folder* or times since this process *began*."""
    found = Captured([], [])
    for table, name, value in _list_attributes():
        kind = type(value)
        if kind in CLOCKS:
            clocks = [clock for clock in CLOCKS[kind] if began[clock] <= value <= clock()]
            found.times.extend((table, name, clock) for clock in clocks[:1])
        elif (kind is str or issubclass(kind, PurePath)) and str(value).startswith(folder):
            found.paths.append((table, name, str(value)[len(folder) + 1 :]))
    return found


def _list_attributes() -> Iterator[tuple[dict[str, Any], str, Any]]:
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType):
            for name, value in list(vars(module).items()):
                yield vars(module), name, value


def correct(captured: Captured, places: Mapping[str, str]) -> None:
    """Give paths and times the values that they would have here; *places* are the folders by their names there."""
    for table, name, path in captured.paths:
        place, _, rest = path.partition("/")
        if place in places:
            table[name] = type(table[name])(os.path.join(places[place], rest) if rest else places[place])  # noqa: PTH118
    for table, name, clock in captured.times:
        table[name] = clock()
