"""What becomes of the edits of a turn: all that were claimed for and turned green stay, and nothing else does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from jumar.core.claims import Book, Edited, Stage, groups, why_not_red
from jumar.core.run import IllegalEvent, Judged, RunState
from jumar.core.verdict import Outcome

NAMED = 3
"""Tests that a sentence names."""


class Judgement(msgspec.Struct, frozen=True):
    """What a verification says of the edits that lay in the workspace."""

    red: tuple[str, ...] = ()
    """Claimed tests that did not turn green."""
    lost: tuple[str, ...] = ()
    """Tests that were green and are not any more."""
    wrong: Mapping[str, str] = {}
    """Written test file -> why it is not one that was seen red."""
    void: str = ""
    """Why there is no usable evidence."""

    @property
    def good(self) -> bool:
        """Whether the edits may stay."""
        return not (self.red or self.lost or self.wrong or self.void)

    @property
    def why(self) -> str:
        """In one sentence, why they may not."""
        said = [f"no usable evidence: {self.void}"] if self.void else []
        said += [f"still red: {named(self.red)}"] if self.red else []
        said += [f"it cost what was green: {named(self.lost)}"] if self.lost else []
        return "; ".join([*said, *self.wrong.values()])


class Trial(msgspec.Struct, frozen=True):
    """Which edits are judged next, and what is remembered meanwhile."""

    left: tuple[int, ...]
    settled: tuple[int, ...] = ()
    waiting: tuple[tuple[int, ...], ...] = ()
    stage: Stage = Stage.ALL
    dropped: tuple[int, ...] = ()
    """Edits that go back, and are tried again only if without them the rest is not good."""


def judgement(state: RunState) -> Judgement:
    """What the newest verification says of the edits that lie in the workspace."""
    judged, book = _judged(state), state.book
    edits = [book.turn[n] for n in book.trying]
    if judged.tests.void is not None:
        return Judgement(void=judged.tests.void.reason)
    claimed = dict.fromkeys(i for edit in edits for i in edit.claims)
    before = state.best.green_ids if state.best is not None else frozenset[str]()
    wrong = {edit.path: _wrong(edit, state) for edit in edits if edit.test}
    return Judgement(
        red=tuple(i for i in claimed if i not in judged.green_ids),
        lost=tuple(i for i in state.expected if i in before and i not in judged.green_ids),
        wrong={path: why for path, why in wrong.items() if why},
    )


def next_trial(book: Book, found: Judgement) -> Trial | None:
    """What is judged next, given what was *found* of the edits that lie in the workspace; None: they stay.

    First all edits together. Then without those whose own tests stayed red; if there are several of these, one may have
    kept another from turning green, and each is tried on top of the rest. Where the rest is not good either, every
    group is tried, one after the other, on top of those that were good.
    """
    if found.good:
        if not book.waiting:
            return None
        first, *later = book.waiting
        return Trial(_flat([book.trying, first]), settled=book.trying, waiting=tuple(later), stage=Stage.SINGLY)
    if book.stage is Stage.SINGLY:
        return _without_newest(book)
    parts = groups(book.turn, range(len(book.turn)))
    bad = [part for part in parts if _is_bad(book.turn, part, found)]
    rest = [part for part in parts if part not in bad]
    if book.stage is Stage.ALL and bad and rest:
        alone = len(bad) == 1
        waiting, dropped = ((), bad[0]) if alone else (tuple(bad), ())
        return Trial(_flat(rest), waiting=waiting, stage=Stage.NARROWED, dropped=dropped)
    if len(parts) > 1:
        first, *later = sorted(parts, key=lambda part: book.turn[part[0]].test)  # code first: a new test must be red
        return Trial(first, waiting=tuple(later), stage=Stage.SINGLY)
    return Trial((), dropped=book.trying)


def _without_newest(book: Book) -> Trial:
    """The group that was tried last goes back; the next one, if there is one, is tried."""
    dropped = tuple(n for n in book.trying if n not in book.settled)
    if book.waiting:
        first, *later = book.waiting
        left = _flat([book.settled, first])
        return Trial(left, settled=book.settled, waiting=tuple(later), stage=Stage.SINGLY, dropped=dropped)
    if dropped and book.settled:
        return Trial(book.settled, settled=book.settled, stage=Stage.SINGLY, dropped=dropped)
    return Trial((), dropped=book.trying)


def _is_bad(turn: tuple[Edited, ...], part: tuple[int, ...], found: Judgement) -> bool:
    return any(turn[n].path in found.wrong or set(turn[n].claims).intersection(found.red) for n in part)


def _flat(parts: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(sorted({n for part in parts for n in part}))


def _wrong(edit: Edited, state: RunState) -> str:
    """Why the test file that *edit* wrote is not one whose new tests were seen red; empty: it is."""
    before = state.best.green_ids if state.best is not None else frozenset[str]()
    own = {i: run for i, run in state.book.latest.items() if run.file == edit.path}
    if not own:
        return f"{edit.path} holds no test that the runner knows: a new test file needs tests that are seen red"
    for test_id, run in own.items():
        if test_id in before:
            continue
        if run.status == "pass":
            return f"{test_id} passes at once: a new test must be seen red before the code is written"
        if run.outcome is Outcome.TIMEOUT:
            return f"{test_id} ran out of time: a new test must fail by an assertion or an error in the code"
        if why := why_not_red(run, test_id):
            return why
    return ""


def named(ids: tuple[str, ...]) -> str:
    """Some of *ids*, and how many more."""
    more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
    return ", ".join(ids[:NAMED]) + more


def _judged(state: RunState) -> Judged:
    if state.judged is None:
        raise IllegalEvent("edits are judged by a verification, and there is none")
    return state.judged
