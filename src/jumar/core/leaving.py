"""Rules for leaving refactor mode: everything must be green. A red leave is refused, and three in a row end the run."""

from __future__ import annotations

from collections.abc import Mapping

from jumar.core.policy import Gate
from jumar.core.run import RunState
from jumar.core.turn import named
from jumar.core.verdict import Outcome

REFUSALS = 3
"""As many refusals in a row take back all edits since the mode was entered, and end the run."""

RULE = "refactor mode is left green or not at all"


def leaves(name: str, args: Mapping[str, object]) -> bool:
    """Whether the action *name* with *args* would leave refactor mode: `final`, or `set_mode("strict")`."""
    return (name == "final" and "asked" not in args) or (name == "set_mode" and args.get("mode") == Gate.STRICT)


def is_judged(state: RunState) -> bool:
    """Whether the newest verdict is of the tree in the workspace, and of the command in `[gate] verify`."""
    judged = state.judged
    if judged is None or judged.tests.tree != state.tree:
        return False
    return judged.commanded or not state.run.settings.verify


def needs_verdict(state: RunState, name: str, args: Mapping[str, object]) -> bool:
    """Whether the tests must run before it can be ruled on the action *name*: it would leave refactor mode unjudged."""
    if state.book.mode is not Gate.REFACTOR or not leaves(name, args) or is_judged(state):
        return False
    return name == "final" or not is_untouched(state)


def is_untouched(state: RunState) -> bool:
    """Whether nothing was edited since refactor mode was entered."""
    return state.best is not None and state.tree == state.best.tree


def why_red(state: RunState) -> str:
    """Why the tree in the workspace, which was judged, is not green; empty: it is."""
    judged = state.judged
    if judged is None or not is_judged(state):
        return "the files as they are were not judged yet"
    tests = judged.tests
    if tests.void is not None:
        return f"no usable evidence: {tests.void.reason}"
    plain = judged.plain
    differs = plain.differs if plain is not None else ()
    elsewhere = {i for i in differs if judged.outcomes[i] is Outcome.PASSED}
    red = tuple(i for i in judged.outcomes if i not in judged.green_ids and i not in elsewhere)
    said = [f"{tests.passed} of {tests.total} passed"] if tests.passed < tests.total or not judged.checked else []
    said += [f"red is {named(red)}"] if red else []
    said += [] if judged.checked else ["the command of [gate] verify failed"]
    if plain is not None and not plain.ok:
        what = f"{named(differs)} came out differently" if differs else "there was no usable evidence"
        said.append(f"with {named(plain.paths)} as edited, {what}")
    return "; ".join(said)


def refused_leave(state: RunState, name: str, args: Mapping[str, object]) -> str:
    """Why the action *name*, which would leave refactor mode, is refused, and what comes of it; empty: it is not."""
    if state.book.mode is not Gate.REFACTOR or not leaves(name, args):
        return ""
    if name == "set_mode" and is_untouched(state):
        return ""
    why = why_red(state)
    if not why:
        return ""
    number = state.book.refusals + 1
    last = "all edits since it was entered go back, and the run ends"
    then = last if number >= REFUSALS else f"mend it and try again; after the third refusal in a row {last}"
    return f"{RULE}: {why}. Refusal {number} of {REFUSALS}: {then}"
