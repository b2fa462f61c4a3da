"""Reducers of the gate's modes: entering, leaving, and refusals to leave. Pure, as all folds are."""

from __future__ import annotations

from msgspec.structs import replace

from jumar.core.gate.leave_refactor import explain_red, is_judged, would_leave
from jumar.core.state import events as ev
from jumar.core.state.run_state import RunState
from jumar.core.state.test_policy import Gate

ENDED = "the agent has ended"
"""The last word of an agent that says none."""


def record_action(state: RunState, action: ev.ActionTaken) -> RunState:
    """Record an action in refactor mode: one that would leave it is refused, or waits for a verdict."""
    book = state.gate_state
    if book.mode is not Gate.REFACTOR:
        return state
    if not action.admitted and would_leave(action.name, action.args):
        return replace(state, gate_state=replace(book, refusals=book.refusals + 1))
    if action.name == "leave":
        return replace(state, gate_state=replace(book, leaving=str(action.args.get("by"))))
    return _end_agent_turn(state) if action.name == "turn_end" else state


def _end_agent_turn(state: RunState) -> RunState:
    """End the turn of a command-line agent: that is its last word, if everything is green."""
    book = state.gate_state
    if not is_judged(state):
        return replace(state, gate_state=replace(book, leaving="turn_end"))
    if explain_red(state):
        return replace(state, gate_state=replace(book, refusals=book.refusals + 1))
    return replace(state, final_message=ENDED)


def keep_edits(state: RunState) -> RunState:
    """Keep the judged edits: admit an end that waited for it; tests in which names changed become the task's."""
    book = state.gate_state
    leaving, renamed = book.leaving, book.renaming or book.renamed
    state = replace(state, gate_state=replace(book, leaving="", renaming="", renamed=renamed))
    return replace(state, final_message=ENDED) if leaving in ("final", "turn_end") else state


def refuse_edits(state: RunState, refusal: ev.Refusal) -> RunState:
    """Leave the edits in place, unkept: an interrupt sets them aside, and a resume makes them again."""
    book = state.gate_state
    book = replace(book, leaving="", refusals=book.refusals + (book.leaving == "turn_end"))
    return replace(state, gate_state=book, written=True, last_rejection=refusal.why)


def switch_mode(state: RunState, mode: ev.Mode) -> RunState:
    """Switch the mode: claims and refusals of the last one are forgotten."""
    book = replace(state.gate_state, mode=mode.to, refusals=0, claims=(), codemod=False, renaming="")
    entered = mode.to is Gate.CODEMOD
    return replace(state, gate_state=replace(book, outer=mode.from_) if entered else book)


def record_codemod(state: RunState, codemod: ev.Codemod) -> RunState:
    """Record the one edit of codemod mode: it is judged next."""
    renaming = codemod.after if codemod.renames else ""
    return replace(state, gate_state=replace(state.gate_state, codemod=True, renaming=renaming))
