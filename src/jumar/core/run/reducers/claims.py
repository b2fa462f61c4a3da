"""Reducers of the gate's claims. Pure, as all folds are."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from jumar.core.gate.turn_outcome import judge_turn, plan_next_trial
from jumar.core.state import events as ev
from jumar.core.state.claims import FAILURES, Claim, Edited, GateState, Stage
from jumar.core.state.run_state import RunState
from jumar.core.state.test_policy import Gate, Trigger


def open_claim(book: GateState, claim: ev.EditClaim) -> GateState:
    """Open a claim; made again in the same turn it is the newest one, and earlier failures still count."""
    before = next((c for c in book.claims if c.test_id == claim.test_id), None)
    others = tuple(c for c in book.claims if (c.test_id, c.path) != (claim.test_id, claim.edit_target))
    at = -1 if book.over and not book.turn else len(book.turn)
    new = Claim(claim.test_id, claim.edit_target, before.failures if before else 0, at)
    return replace(book, claims=(*others, new))


def count_action(book: GateState, *, last: bool) -> GateState:
    """Count one more action of a turn: with the last one the turn is over, and without edits nothing waits."""
    rested = tuple(map(_reset_claim, book.claims)) if last and not book.turn else book.claims
    return replace(book, over=last, claims=rested)


def add_write(state: RunState, write: ev.Write) -> GateState:
    """Return the state with one more edit that waits for its verdict; in refactor mode none waits.

    The mode is judged as a whole, with its tests.
    """
    book = state.gate_state
    if book.mode is Gate.CODEMOD:
        return book
    if book.mode is Gate.REFACTOR:
        return replace(book, authored=tuple(dict.fromkeys((*book.authored, *([write.path] if write.test else ())))))
    edit = Edited(write.path, write.before, write.after, write.claimed, write.test)
    return replace(
        book,
        base=book.base or state.tree,
        turn=(*book.turn, edit),
        trying=(*book.trying, len(book.turn)),
    )


def record_tests(state: RunState, tests: ev.Tests, runs: Mapping[str, ev.TestRun]) -> GateState:
    """Record which tests are red, and why.

    Results of a trial of edits do not count for the tree that edits begin from.
    """
    book = state.gate_state
    if book.mode is Gate.OFF or tests.void is not None:
        return book
    home = book.base or (state.best.tree if state.best is not None else state.run.tree)
    if tests.trigger is Trigger.MODEL and state.tree != home:
        return book
    if tests.trigger is Trigger.MODEL:
        return replace(book, newest=runs, claims=tuple(c for c in book.claims if _is_red(runs, c)))
    return replace(book, latest=runs)


def keep_edits(state: RunState) -> GateState:
    """Keep the edits in the workspace: their claims are fulfilled, and their tests are expected from now on."""
    book = state.gate_state
    if not state.coalesces:
        return book
    edits = [book.turn[n] for n in book.trying]
    known = set(state.expected)
    own = {edit.path for edit in edits if edit.test} | set(book.authored)
    joined = tuple(i for i, run in book.latest.items() if run.file in own and i not in known)
    return replace(
        _clear_waiting(book),
        newest=book.latest,
        claims=tuple(_reset_claim(c) for c in book.claims if _is_red(book.latest, c)),
        # A claim that was given up may be made again once another one was fulfilled.
        ended=frozenset() if any(edit.claims for edit in edits) else book.ended,
        authored=tuple(dict.fromkeys((*book.authored, *sorted(own)))),
        joined=(*book.joined, *joined),
    )


def revert_edits(state: RunState, revert: ev.Revert) -> GateState:
    """Revert edits: some for good, some to be tried again without the others, all for now if the run stops."""
    book = state.gate_state
    if not book.turn:
        return book
    if book.parked and revert.to == state.postponed:
        return replace(book, parked=False)
    if state.unjudged:
        return replace(book, parked=state.best is not None)
    trial = plan_next_trial(book, judge_turn(state)) if book.mode is Gate.STRICT else None
    if trial is None or not (revert.left or trial.waiting):
        return replace(_clear_waiting(book), claims=tuple(map(_reset_claim, book.claims)))
    return replace(
        book, trying=revert.left, settled=trial.settled, waiting=trial.waiting, stage=trial.stage, apart=trial.apart,
        fulfilled=trial.fulfilled,
    )  # fmt: skip


def count_failure(book: GateState, repair: ev.Repair) -> GateState:
    """Count edits that did not turn their tests green; too many end the claims."""
    counted = [replace(c, failures=repair.failures) if c.test_id in repair.test_ids else c for c in book.claims]
    over = {c.test_id for c in counted if c.failures >= FAILURES}
    return replace(book, claims=tuple(c for c in counted if c.test_id not in over), ended=book.ended | over)


def _clear_waiting(book: GateState) -> GateState:
    """Return the state with no edit that waits."""
    return replace(
        book, base="", turn=(), trying=(), settled=(), waiting=(), apart=(), fulfilled=frozenset(), stage=Stage.ALL,
        over=False, parked=False,
    )  # fmt: skip


def _reset_claim(claim: Claim) -> Claim:
    """Return a claim as it is after the end of its turn."""
    return replace(claim, at=-1)


def _is_red(newest: Mapping[str, ev.TestRun], claim: Claim) -> bool:
    run = newest.get(claim.test_id)
    return run is not None and run.status != "pass"
