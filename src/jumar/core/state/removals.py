"""Files of the best tree that a candidate deletes, folded from `write` events: the core sees no disk.

A file that was moved is not deleted: its bytes, as they were, lie in a file that the run has made. Nothing less counts,
since a hash says no more than that two files are the same. Under the gate a deletion stands or falls with its claim.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from jumar.core.state.events import Write


class Removals(msgspec.Struct, frozen=True):
    """Files of the best tree that a candidate deletes, and the files that the run has made."""

    gone: Mapping[str, str] = {}
    """File of the best tree that the candidate does not have -> hash of its bytes when it was deleted."""
    added: frozenset[str] = frozenset()
    """Files of the candidate that the best tree does not have: to delete one of them deletes nothing of it."""
    made: Mapping[str, str] = {}
    """File that the run has made and the candidate has -> hash of its bytes."""
    kept: Mapping[str, str] = {}
    """The same of the best tree."""

    @property
    def deleted(self) -> tuple[str, ...]:
        """The files of the best tree that are gone and were not moved, one move for each file that was made."""
        places, found = Counter(self.made.values()), []
        for path, digest in self.gone.items():
            if places[digest] > 0:
                places[digest] -= 1
            else:
                found.append(path)
        return tuple(found)


def apply_write(removals: Removals, write: Write) -> Removals:
    """Return *removals* after one more *write* of the candidate."""
    path, back = write.path, write.path in removals.gone
    made = {p: digest for p, digest in removals.made.items() if p != path}
    if not write.after:
        gone = {} if path in removals.added else {path: write.before}
        return replace(removals, gone={**removals.gone, **gone}, added=removals.added - {path}, made=made)
    if not write.before or path in removals.made:
        made[path] = write.after
    return replace(
        removals,
        gone={p: digest for p, digest in removals.gone.items() if p != path},
        added=removals.added if write.before or back else removals.added | {path},
        made=made,
    )


def mark_kept(removals: Removals) -> Removals:
    """Record that the candidate is the best tree now."""
    return Removals(made=removals.made, kept=removals.made)


def mark_reverted(removals: Removals) -> Removals:
    """Record that the workspace is the best tree again."""
    return Removals(made=removals.kept, kept=removals.kept)
