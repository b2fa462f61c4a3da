"""Rules for leaving refactor mode: everything must be green. A red leave is refused, and three in a row end the run."""

from __future__ import annotations

from collections.abc import Mapping

from jumar.core.gate.turn_outcome import format_ids
from jumar.core.state.mode_events import PlainRun
from jumar.core.state.run_state import HOST, RunState
from jumar.core.state.test_policy import Gate
from jumar.core.state.verdict import Outcome

REFUSALS = 3
"""Number of refusals in a row that takes back all edits since the mode was entered, and ends the run."""

RULE = "refactor mode is left green or not at all"


def would_leave(name: str, args: Mapping[str, object]) -> bool:
    """Return whether the action *name* with *args* would leave refactor mode: `final`, or `set_mode("strict")`."""
    return (name == "final" and "asked" not in args) or (name == "set_mode" and args.get("mode") == Gate.STRICT)


def is_judged(state: RunState) -> bool:
    """Return whether the newest verdict is of the tree in the workspace, and of the command in `[gate] verify`."""
    judged = state.judged
    if judged is None or judged.tests.tree != state.tree:
        return False
    return judged.commanded or not state.run.settings.verify


def needs_verdict(state: RunState, name: str, args: Mapping[str, object]) -> bool:
    """Return whether the tests must run before a ruling on the action *name*: it would leave refactor mode unjudged."""
    if state.gate_state.mode is not Gate.REFACTOR or not would_leave(name, args) or is_judged(state):
        return False
    return name == "final" or not is_untouched(state)


def is_untouched(state: RunState) -> bool:
    """Return whether nothing was edited since refactor mode was entered."""
    return state.best is not None and state.tree == state.best.tree


def explain_red(state: RunState) -> str:
    """Return why the tree in the workspace, which was judged, is not green; empty: it is."""
    judged = state.judged
    if judged is None or not is_judged(state):
        return "the files as they are were not judged yet"
    tests = judged.tests
    if tests.void is not None:
        return f"no usable evidence: {tests.void.reason}"
    plain = judged.plain
    differs = plain.differs if plain is not None else ()
    green = judged.green_ids
    elsewhere = {i for i in differs if judged.runs[i].outcome is Outcome.PASSED}
    red = tuple(i for i in judged.runs if i not in green and i not in elsewhere)
    said = [f"{tests.passed} of {tests.total} passed"] if tests.passed < tests.total or not judged.checked else []
    said += [f"red is {format_ids(red)}"] if red else []
    said += [] if judged.checked else ["the command of [gate] verify failed"]
    if plain is not None and not plain.ok:
        said.append(_describe_differing(plain))
    return "; ".join(said)


def explain_no_codemod(state: RunState) -> str:
    """Return why codemod mode cannot be entered; empty: it can."""
    if state.run.agent == HOST:
        return "codemod mode is not offered here: this run has the modes strict and refactor"
    if not state.run.settings.switches.allow_codemod:
        return "codemod mode is the person's switch, and it is off: pass --allow-codemod"
    if state.gate_state.mode is Gate.REFACTOR and not is_untouched(state):
        return "what was edited in refactor mode was not judged yet: leave it with set_mode('strict') first"
    if not state.expected and not state.run.settings.verify:
        return "there is no test and no [gate] verify that a codemod could be judged by"
    return ""


def explain_not_kept(state: RunState) -> str:
    """Return why a codemod is reverted: an expected outcome changed, or no usable evidence; empty: it stays."""
    judged = state.judged
    if judged is None:
        return "it was not judged"
    if judged.tests.void is not None:
        return f"there is no usable evidence: {judged.tests.void.reason}"
    before = {i: run.outcome for i, run in state.gate_state.newest.items()}
    changed = [
        f"{i} was {before.get(i, 'unknown')} and is {run.outcome}"
        for i, run in judged.runs.items()
        if run.outcome != before.get(i) and before.get(i) is not Outcome.FLAKY
    ]
    said = [format_ids(tuple(changed))] if changed else []
    said += [] if judged.checked else ["the command of [gate] verify failed"]
    if judged.plain is not None and not judged.plain.ok:
        said.append(_describe_differing(judged.plain))
    return "; ".join(said)


def _describe_differing(plain: PlainRun) -> str:
    """Describe what went wrong in a plain run under edited configuration."""
    what = f"{format_ids(plain.differs)} came out differently" if plain.differs else "there was no usable evidence"
    return f"with {format_ids(plain.paths)} as edited, {what}"


def refuse_leave(state: RunState, name: str, args: Mapping[str, object]) -> str:
    """Return why the action *name*, which would leave refactor mode, is refused, and what follows; empty: it is not."""
    if state.gate_state.mode is not Gate.REFACTOR or not would_leave(name, args):
        return ""
    if name == "set_mode" and is_untouched(state):
        return ""
    why = explain_red(state)
    if not why:
        return ""
    number = state.gate_state.refusals + 1
    last = "all edits since it was entered go back, and the run ends"
    then = last if number >= REFUSALS else f"mend it and try again; after the third refusal in a row {last}"
    return f"{RULE}: {why}. Refusal {number} of {REFUSALS}: {then}"
