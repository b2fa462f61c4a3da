"""Lists the trees that a run's journal names and keeps, and the objects that they consist of."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from jumar.core.state import events as ev
from jumar.workspace.files.trees import Manifest


def list_named_trees(entries: Iterable[ev.Entry]) -> tuple[str, ...]:
    """Return the trees that the run began from, verified, found best or put back, in the order of the journal.

    The trees between two writes of one turn are not kept by a run, so they are not among them.
    """
    named: dict[str, None] = {}
    for entry in entries:
        match entry.event:
            case ev.RunStart(tree=tree) | ev.Tests(tree=tree) | ev.BestFound(tree=tree) | ev.Revert(to=tree):
                named.setdefault(tree)
            case _:
                continue
    return tuple(tree for tree in named if tree)


def list_objects(trees: Iterable[str], manifest: Callable[[str], Manifest]) -> frozenset[str]:
    """Return the hashes of *trees* and of all files and links in them."""
    found: set[str] = set()
    for tree in trees:
        found.add(tree)
        found.update(node.sha256 for node in manifest(tree).values() if node.sha256)
    return frozenset(found)
