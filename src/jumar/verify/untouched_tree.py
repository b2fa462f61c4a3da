"""Runs of the untouched tree that say what a green is worth: which tests were red, and which ran in two processes.

Both are run at most once a task, and only where the answer decides a grade.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from jumar.core.state.verdict import reconcile
from jumar.verify.rounds import Seeds, can_run_apart, lay_held_out, pass_apart

if TYPE_CHECKING:
    from jumar.verify.rounds import GreenCandidate


async def find_red_on_base(green: GreenCandidate) -> frozenset[str]:
    """Return the tests of *green* that do not pass on the untouched tree of the task; empty where there is none."""
    verifier = green.verifier
    known = verifier.experience
    if known.red is None and verifier.base and verifier.base != green.tree:
        report = await verifier.run_fresh(verifier.base, green.ids, files={}, seed=None)
        green.executions += 1
        known.red = frozenset(green.ids) - reconcile(green.ids, report, green.accepted).green_ids
    return (known.red or frozenset()).intersection(green.ids)


async def find_retreated(green: GreenCandidate, apart: Collection[str]) -> frozenset[str]:
    """Return the tests that run in two processes on the untouched tree, and do not with the candidate.

    Of tests that are red there, it is not known: they count where all that pass on the untouched tree do so in two
    processes as well.
    """
    verifier, missing = green.verifier, frozenset(green.ids).difference(apart)
    known = verifier.experience
    if not missing or not verifier.base or not can_run_apart(verifier):
        return frozenset()
    red = await find_red_on_base(green)
    if known.base_apart is None:
        base = replace(green, tree=lay_held_out(verifier, verifier.base), executions=0)
        known.base_apart = await pass_apart(base, base.ids, Seeds())
        green.executions += 1
    passing = frozenset(green.ids).difference(red, verifier.held_out.ids)
    alike = bool(passing) and passing <= known.base_apart
    known.apart = bool(known.base_apart or apart)
    return missing if alike else missing & known.base_apart
