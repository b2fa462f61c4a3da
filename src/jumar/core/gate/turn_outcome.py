"""Decides which edits of a turn stay: all that were claimed for and turned green, and no others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from jumar.core.state.claims import Edited, GateState, Stage, explain_not_red, group_edits
from jumar.core.state.events import TestRun
from jumar.core.state.run_state import IllegalEvent, Judged, RunState
from jumar.core.state.test_policy import Gate
from jumar.core.state.verdict import Outcome

NAMED = 3
"""Tests that a sentence names."""


class Judgement(msgspec.Struct, frozen=True):
    """Result of a verification for the edits that lay in the workspace."""

    green: frozenset[str] = frozenset()
    """Claimed tests that did turn green."""
    red: tuple[str, ...] = ()
    """Claimed tests that did not."""
    lost: tuple[str, ...] = ()
    """Tests that were green and are not any more."""
    wrong: Mapping[str, str] = {}
    """Written test file -> why it is not one that was seen red."""
    void: str = ""
    """Reason that there is no usable evidence."""

    @property
    def good(self) -> bool:
        """Return whether the edits may stay."""
        return not (self.red or self.lost or self.wrong or self.void)

    @property
    def why(self) -> str:
        """Reason, in one sentence, why the edits may not stay."""
        said = [f"no usable evidence: {self.void}"] if self.void else []
        said += [f"still red: {format_ids(self.red)}"] if self.red else []
        said += [f"it cost what was green: {format_ids(self.lost)}"] if self.lost else []
        return "; ".join([*said, *self.wrong.values()])


class TurnTrial(msgspec.Struct, frozen=True):
    """Edits that are judged next, and those that are kept in mind meanwhile: see `GateState`."""

    left: tuple[int, ...]
    settled: tuple[int, ...] = ()
    waiting: tuple[tuple[int, ...], ...] = ()
    apart: tuple[int, ...] = ()
    fulfilled: frozenset[str] = frozenset()
    stage: Stage = Stage.ALL
    dropped: tuple[int, ...] = ()
    """Edits that go back, and are tried again only if without them the rest is not good."""


def judge_turn(state: RunState) -> Judgement:
    """Return the judgement of the newest verification on the edits in the workspace."""
    judged, book = _get_judged(state), state.gate_state
    edits = [book.turn[n] for n in book.trying]
    if judged.tests.void is not None:
        return Judgement(void=judged.tests.void.reason)
    if judged.plain is not None and judged.plain.void is not None:
        return Judgement(void=f"with {format_ids(judged.plain.paths)} as edited: {judged.plain.void.reason}")
    claimed = dict.fromkeys(i for edit in edits for i in edit.claims)
    wrong = {edit.path: _explain_uncounted(edit, state) for edit in edits if edit.test}
    return Judgement(
        green=judged.green_ids.intersection(claimed),
        red=_find_unfulfilled(book, judged.green_ids),
        lost=() if _are_only_tests(state, edits) else _find_lost(state, judged.green_ids),
        wrong={path: why for path, why in wrong.items() if why},
    )


def find_deciding_ids(state: RunState) -> tuple[str, ...]:
    """Return the claimed tests that must turn green for the edits to stay, as must all that were green.

    None where more than that is asked: of new tests, of edits of which one would do, of a test command.
    """
    book = state.gate_state
    edits = [book.turn[n] for n in book.trying]
    simple = book.mode is Gate.STRICT and not book.apart and not state.run.settings.suite.single
    if not simple or any(edit.test for edit in edits):
        return ()
    return tuple(dict.fromkeys(i for edit in edits for i in edit.claims))


def _find_unfulfilled(book: GateState, green: frozenset[str]) -> tuple[str, ...]:
    """Return the claimed tests that are red and should be green with the edits that are tried."""
    red: dict[str, None] = {}
    for number in book.trying:
        claims = book.turn[number].claims
        still = [i for i in claims if i not in green]
        if number not in book.apart:
            red |= dict.fromkeys(still)
        elif number in book.settled:
            red |= dict.fromkeys(i for i in still if i in book.fulfilled)
        elif not green.intersection(claims) - book.fulfilled:  # one of them would do
            red |= dict.fromkeys(still or claims)
    return tuple(red)


def plan_next_trial(book: GateState, found: Judgement) -> TurnTrial | None:
    """Choose the edits to judge next, given what was *found* of those in the workspace; None: they stay.

    First all edits together. Then without those whose own tests stayed red; if there are several of these, one may have
    kept another from turning green, and each is tried on top of the rest. Where the rest is not good either, every
    group is tried, one after the other, on top of those that were good. A group of several edits and several tests, of
    which only some turned green, is tried edit by edit in its turn.
    """
    if found.good:
        if not book.waiting:
            return None
        left, later = _flatten([book.trying, book.waiting[0]]), book.waiting[1:]
        return TurnTrial(left, book.trying, later, book.apart, book.fulfilled | found.green, Stage.SINGLY)
    if book.stage is Stage.SINGLY:
        return _drop_newest(book, found)
    parts = group_edits(book.turn, range(len(book.turn)))
    if book.stage is Stage.ALL and (trial := _drop_red(book, found, parts)):
        return trial
    if len(parts) > 1:
        first, *others = sorted(parts, key=lambda part: book.turn[part[0]].test)  # code first: a new test must be red
        return TurnTrial(first, waiting=tuple(others), stage=Stage.SINGLY)
    return TurnTrial((), dropped=book.trying)


def _drop_red(book: GateState, found: Judgement, parts: Sequence[tuple[int, ...]]) -> TurnTrial | None:
    """Take back the edits whose own tests stayed red, for a while if there are several; None: that leaves nothing."""
    bad = [part for part in parts if _is_bad(book.turn, part, found)]
    rest = _flatten(part for part in parts if part not in bad)
    if len(bad) == 1 and _is_mixed(book.turn, bad[0], found):
        pieces = [(n,) for n in bad[0]]
        first, others = (rest, pieces) if rest else (pieces[0], pieces[1:])
        return TurnTrial(first, waiting=tuple(others), apart=bad[0], stage=Stage.NARROWED if rest else Stage.SINGLY)
    if not (bad and rest):
        return None
    waiting, dropped = (tuple(bad), ()) if len(bad) > 1 else ((), bad[0])
    return TurnTrial(rest, waiting=waiting, stage=Stage.NARROWED, dropped=dropped)


def _drop_newest(book: GateState, found: Judgement) -> TurnTrial:
    """Take back the edits tried last, or try them one by one; then try those that wait."""
    newest = tuple(n for n in book.trying if n not in book.settled)
    waiting, apart, dropped = book.waiting, book.apart, newest
    if newest and newest[0] not in apart and _is_mixed(book.turn, newest, found):
        waiting, apart, dropped = (*((n,) for n in newest), *waiting), (*apart, *newest), ()
    if waiting:
        left, later = _flatten([book.settled, waiting[0]]), waiting[1:]
        return TurnTrial(left, book.settled, later, apart, book.fulfilled, Stage.SINGLY, dropped)
    if dropped and book.settled:
        return TurnTrial(book.settled, book.settled, (), apart, book.fulfilled, Stage.SINGLY, dropped)
    return TurnTrial((), dropped=book.trying)


def _is_mixed(turn: tuple[Edited, ...], part: tuple[int, ...], found: Judgement) -> bool:
    """Return whether several edits were claimed for the same tests, of which some turned green and some did not."""
    claims = set(turn[part[0]].claims)
    return len(part) > 1 and bool(claims & found.green) and bool(claims.intersection(found.red))


def _is_bad(turn: tuple[Edited, ...], part: tuple[int, ...], found: Judgement) -> bool:
    return any(turn[n].path in found.wrong or set(turn[n].claims).intersection(found.red) for n in part)


def _flatten(parts: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(sorted({n for part in parts for n in part}))


def _find_green_before(state: RunState) -> frozenset[str]:
    return state.best.green_ids if state.best is not None else frozenset()


def _find_lost(state: RunState, green: frozenset[str]) -> tuple[str, ...]:
    """Return the expected tests that were green and are not among those that are *green* now."""
    before = _find_green_before(state)
    return tuple(i for i in state.expected if i in before and i not in green)


def _are_only_tests(state: RunState, edits: Sequence[Edited]) -> bool:
    """Check whether *edits* are new tests alone: a test command shows them only by turning red as a whole."""
    return state.run.settings.suite.single and bool(edits) and all(edit.test for edit in edits)


def _explain_not_seen(edit: Edited, state: RunState) -> str:
    """Return why a test command did not turn red by the test file that *edit* wrote; empty: it did."""
    before = _find_green_before(state)
    for test_id, run in state.gate_state.latest.items():
        if test_id not in before and edit.path not in state.gate_state.authored:
            return f"{test_id} was red before {edit.path}, so it cannot show a new test to be red: turn it green first"
        if run.status == "pass":
            return f"{test_id} stays green with {edit.path}: the command must run the new test, and that must fail"
    return ""


def _explain_uncounted(edit: Edited, state: RunState) -> str:
    """Return why the new tests of the file that *edit* wrote do not count as seen red; empty: they do."""
    if state.run.settings.suite.single:
        return _explain_not_seen(edit, state)
    before = _find_green_before(state)
    own = {i: run for i, run in state.gate_state.latest.items() if run.file == edit.path}
    if not own:
        return f"{edit.path} holds no test that the runner knows: a new test file needs tests of its own, seen red"
    if any(i in before and run.status != "pass" for i, run in own.items()):
        return f"green tests of {edit.path} broke with it: import what is not there yet within the new test"
    if before.issuperset(own):
        return f"all tests of {edit.path} were green before: a change of it must add one that is seen red"
    reasons = (_explain_not_red(i, run) for i, run in own.items() if i not in before)
    return next(filter(None, reasons), "")


def _explain_not_red(test_id: str, run: TestRun) -> str:
    """Return why the result *run* of a new test is not red; empty: it is."""
    if run.status == "pass":
        return f"{test_id} passes at once: a new test must be seen red before the code is written"
    if run.outcome is Outcome.TIMEOUT:
        return f"{test_id} ran out of time: a new test must fail by an assertion or an error in the code"
    return explain_not_red(run, test_id)


def format_ids(ids: tuple[str, ...]) -> str:
    """Return some of *ids*, and how many more."""
    more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
    return ", ".join(ids[:NAMED]) + more


def _get_judged(state: RunState) -> Judged:
    if state.judged is None:
        raise IllegalEvent("edits are judged by a verification, and there is none")
    return state.judged
