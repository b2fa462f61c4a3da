"""Keeps a candidate's own configuration out of the verdict; one plain run shows that it changes no outcome."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from jumar.core.gate.turn_outcome import format_ids
from jumar.core.prompts.feedback import OUTPUT_LIMIT, build_feedback
from jumar.core.quoting import cut_middle
from jumar.core.state import events as ev
from jumar.core.state.run_state import RunState
from jumar.core.state.test_policy import Gate
from jumar.core.state.verdict import Outcome, Verdict
from jumar.ports import Checked, Verification
from jumar.runtime.dependencies import RunDependencies
from jumar.workspace.files import trees

Plain = dict[tuple[str, tuple[str, ...]], tuple[ev.PlainRun, str]]
"""The plain runs that are kept in mind: by tree and ids, the event and what is shown of it."""


def freeze_configuration(parts: RunDependencies, state: RunState, tree: str) -> str:
    """Return *tree* with the configuration that the run began with: the tree that is judged."""
    first, switches = state.run.tree, state.run.settings.switches
    opened = state.run.gate is Gate.REFACTOR or switches.allow_refactor or switches.allow_codemod
    if tree == first or not opened or not _find_edited(parts, state, tree):
        return tree
    return parts.workspace.store.overlay(first, tree, lambda path: not parts.guard.steering(path))


def _find_edited(parts: RunDependencies, state: RunState, tree: str) -> tuple[str, ...]:
    """Return the files of *tree* that steer the runner and differ from those that the run began with."""
    store = parts.workspace.store
    changed = trees.find_differences(store.manifest(state.run.tree), store.manifest(tree))
    return tuple(path for path in changed if parts.guard.steering(path))


async def run_plain(
    parts: RunDependencies, known: Plain, state: RunState, done: Verification
) -> tuple[ev.PlainRun, str] | None:
    """Return one run under the configuration in the workspace, and the text shown of it; None: nothing to ask.

    *done* is the verdict under the frozen configuration, which every outcome is compared with.
    """
    if (
        done.verdict.void is not None
        or not done.verdict.results
        or done.selected
        or freeze_configuration(parts, state, state.tree) == state.tree
    ):
        return None
    asked = (state.tree, tuple(done.verdict.results))
    if asked in known:
        event, shown = known[asked]
        return replace(event, executions=0, duration_ms=0), shown
    also = asked[1][len(state.run.expected) :]
    ran = await parts.verifier.plain(state.tree, state.accepted, also=also)
    paths = _find_edited(parts, state, state.tree)
    differs = find_differing_ids(done.verdict, ran.verdict)
    event = ev.PlainRun(
        paths=paths,
        ok=ran.verdict.void is None and not differs,
        differs=differs,
        passed=ran.verdict.passed,
        total=len(done.verdict.results),
        void=ran.verdict.void,
        grade=ran.grade,
        sandbox=ran.sandbox,
        executions=ran.executions,
        output=f"output/{ran.output}",
        duration_ms=ran.duration_ms,
        tree=state.tree,
    )
    known[asked] = event, "" if event.ok else _describe_plain(event, ran)
    return known[asked]


def find_differing_ids(frozen_one: Verdict, plain_one: Verdict) -> tuple[str, ...]:
    """Return the ids whose outcomes differ in two verdicts; flaky ids are left out."""
    if plain_one.void is not None:
        return ()
    pairs = ((i, r.outcome, _get_outcome(plain_one, i)) for i, r in frozen_one.results.items())
    return tuple(i for i, one, other in pairs if one != other and Outcome.FLAKY not in (one, other))


def _get_outcome(verdict: Verdict, test_id: str) -> Outcome:
    result = verdict.results.get(test_id)
    return Outcome.MISSING if result is None else result.outcome


def _describe_plain(event: ev.PlainRun, ran: Verification) -> str:
    """Return the text that a model is shown of a plain run that disagrees."""
    said = build_feedback(ran.verdict, event.differs)["output"]
    what = f"{format_ids(event.differs)} come out differently" if event.differs else "there is no usable evidence"
    return cut_middle(f"With {format_ids(event.paths)} as edited, {what}:\n{said}", OUTPUT_LIMIT)


def add_plain_results(shown: Mapping[str, object], plain: tuple[ev.PlainRun, str]) -> dict[str, object]:
    """Return the results of the verdict, with the text *shown* of a plain run that disagrees with it."""
    event, said = plain
    output = "\n".join(str(part) for part in (shown.get("output", ""), said) if part)
    return {"ok": bool(shown.get("ok")) and event.ok, "output": cut_middle(output, OUTPUT_LIMIT)}


async def check_command(parts: RunDependencies, state: RunState) -> Checked | None:
    """Check that the command of `[gate] verify` succeeds under both configurations; None: there is no command."""
    settings = state.run.settings
    if not settings.verify:
        return None
    first = freeze_configuration(parts, state, state.tree)
    done = await parts.verifier.check(first, settings.verify, settings.verify_seconds)
    if first == state.tree or not done.ok:
        return done
    return await parts.verifier.check(state.tree, settings.verify, settings.verify_seconds)


def join_results(shown: Mapping[str, object], command: str, checked: Checked) -> dict[str, object]:
    """Return the results of the tests, and of the *command* that guards refactor mode."""
    said = f"{command}: {'succeeded' if checked.ok else 'failed'}\n{checked.output}".rstrip()
    output = "\n".join(str(part) for part in (shown.get("output", ""), said) if part)
    return {"ok": bool(shown.get("ok")) and checked.ok, "output": cut_middle(output, OUTPUT_LIMIT)}
