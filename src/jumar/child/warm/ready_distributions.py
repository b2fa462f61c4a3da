"""Reads the metadata of installed distributions in the zygote; pytest reads it twice at each start.

A zygote is replaced when a distribution is installed or removed, so what it has read stays true for its forks.
"""

from __future__ import annotations

import contextlib
import sys
from functools import cached_property
from importlib import metadata
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

GROUP = "pytest11"
"""Group of entry points that are plug-ins of pytest: it asks those distributions for their files, too."""


class ReadDistribution(metadata.PathDistribution):
    """A distribution that reads its files once."""

    entry_points = cached_property(cast("Any", metadata.PathDistribution.entry_points).fget)
    files = cached_property(cast("Any", metadata.PathDistribution.files).fget)


_read: dict[str, list[metadata.Distribution]] = {}
"""Folder on sys.path -> the distributions in there."""


def prepare(folders: Sequence[str]) -> None:
    """Read the distributions that are installed in *folders*, and forget what was read before."""
    _read.clear()
    for folder in folders:
        _read[folder] = list(metadata.distributions(path=[folder]))
        for one in _read[folder]:
            if type(one) is metadata.PathDistribution:
                one.__class__ = ReadDistribution
            if any(point.group == GROUP for point in one.entry_points):
                str(one.files)  # each keeps its text, too


def list_distributions() -> Iterator[metadata.Distribution]:
    """Yield the distributions on sys.path in its order; what is not installed is looked for anew."""
    for folder in sys.path:
        yield from _read.get(folder) or metadata.Distribution.discover(path=[folder])


def use_in(owner: object, name: str) -> None:
    """Let the next call of the method *name* of *owner* find the distributions that were read."""
    usual: Callable[..., Any] | None = getattr(owner, name, None)
    if usual is None or not _read:
        return

    def call(*args: Any, **options: Any) -> Any:
        with contextlib.suppress(AttributeError):
            delattr(owner, name)
        searching, metadata.distributions = metadata.distributions, list_distributions  # type: ignore[assignment]
        try:
            return usual(*args, **options)
        finally:
            metadata.distributions = searching

    setattr(owner, name, call)
