"""Judges the tree in the workspace, and reverts edits that a verdict did not bear out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from jumar.core.gate.exact_edit import EditRefused, reapply_edit
from jumar.core.gate.turn_outcome import TurnTrial, format_ids, judge_turn, plan_next_trial
from jumar.core.run.effects import Rebuild
from jumar.core.state import events as ev
from jumar.core.state.claims import FAILURES, Stage, group_edits
from jumar.core.state.run_state import RunState
from jumar.core.state.test_policy import Trigger
from jumar.core.state.verdict import Ended, Verdict
from jumar.ports import Verification
from jumar.runtime.dependencies import RunDependencies
from jumar.runtime.frozen_configuration import freeze_configuration
from jumar.workspace.workspace import Workspace

REMEMBERED = 8
"""Verdicts that are kept in mind."""

Memory = dict[tuple[str, tuple[str, ...]], Verification]


async def verify_tree(
    parts: RunDependencies, memory: Memory, state: RunState, first: Sequence[str] = ()
) -> Verification:
    """Return the verdict on the workspace's tree; under a gate no question is put to the runner twice.

    Where one of *first* is red, or a test was lost, the others need not have run.
    """
    also = find_written_ids(parts, state)
    tree = freeze_configuration(parts, state, state.tree)
    asked = (tree, (*state.expected, *also))
    if not asked[1]:  # a repository without tests: only a command says anything of it
        return Verification(
            verdict=Verdict({}), ended=Ended.NORMAL, executions=0, duration_ms=0, output="", grade="", sandbox=""
        )
    known = memory.get(asked) if state.coalesces else None
    if known is not None:
        return replace(known, executions=0, duration_ms=0, starts={})
    control = freeze_configuration(parts, state, state.best.tree) if state.best is not None else state.run.tree
    extra = asked[1][len(state.run.expected) :]
    renamed = state.gate_state.renaming or state.gate_state.renamed
    judge = parts.verifier.with_tests(renamed) if renamed else parts.verifier
    done = await judge.verify(tree, state.accepted, control=control, also=extra, first=() if renamed else first)
    if done.verdict.void is None and not done.selected:
        memory[asked] = done
        while len(memory) > REMEMBERED:
            del memory[next(iter(memory))]
    return done


def build_test_runs(done: Verification, state: RunState) -> Iterator[ev.TestRun]:
    """Yield the outcome of each test as an event."""
    for test_id, result in done.verdict.results.items():
        native = done.natives.get(test_id)
        yield ev.TestRun(
            test_id=test_id,
            test_id_source="annotation" if native else "native",
            status="pass" if test_id in done.verdict.green_ids else "fail",
            outcome=result.outcome,
            command=done.command or state.run.settings.suite.runner,
            duration_ms=result.duration_ms,
            blame=result.blame,
            absent=result.absent,
            path=native.partition("::")[0] if native else "",
            grade=done.grades.get(test_id, ""),
            weaker=done.weaker.get(test_id, ""),
            better=done.better.get(test_id, ""),
        )


def build_tests_event(trigger: Trigger, state: RunState, done: Verification) -> ev.Tests:
    """Return the verification itself, as an event."""
    verdict: Verdict = done.verdict
    return ev.Tests(
        trigger=trigger,
        ok=verdict.green,
        passed=verdict.passed,
        failed=verdict.failed,
        errors=verdict.errors,
        total=verdict.total or len(state.expected),
        void=verdict.void,
        grade=done.grade,
        sandbox=done.sandbox,
        grades=dict(sorted(Counter(done.grades.values()).items())),
        reachable=done.reachable,
        asked=done.asked,
        flaky=verdict.flaky_ids,
        excused=verdict.excused,
        warnings=done.warnings,
        selected=done.selected,
        starts=dict(done.starts),
        executions=done.executions,
        output=f"output/{done.output}",
        cached=done.executions == 0,
        duration_ms=done.duration_ms,
        tree=state.tree,
    )


def rebuild_workspace(workspace: Workspace, effect: Rebuild, state: RunState) -> Sequence[ev.Event]:
    """Reset the workspace to the start of the turn, and make the edits that are *left* again, in order.

    An edit that does not apply without one that went back goes back too, and so do those it stands or falls with; but
    what was good already stays, and what is tried on top of it goes.
    """
    book, was = state.gate_state, state.tree
    trial = plan_next_trial(book, judge_turn(state)) or TurnTrial(effect.left)
    left, unfit = effect.left, ""
    while True:
        workspace.take_back(book.base)
        stuck = _remake_edits(workspace, state, left)
        if stuck is None:
            break
        part = (stuck,) if stuck in trial.apart else next(p for p in group_edits(book.turn, left) if stuck in p)
        out = set(left).difference(trial.settled) if stuck in trial.settled else part
        left = tuple(n for n in left if n not in out)
        unfit = f"the edit of {book.turn[stuck].path} does not apply without the others"
    gone = (*effect.dropped, *(n for n in effect.left if n not in left))
    whys = [effect.why if effect.dropped else "", unfit]
    why = _describe_revert("; ".join(filter(None, whys)), gone, state) if gone else _describe_trials(effect, state)
    revert = ev.Revert(to=workspace.tree, paths=workspace.changed(was), why=why, left=left)
    return (revert,) if left or trial.waiting else (*build_repair_events(state, left), revert)


def _remake_edits(workspace: Workspace, state: RunState, left: Sequence[int]) -> int | None:
    """Make the edits *left* in the workspace; return the place of the first that does not apply, or None."""
    store = workspace.store
    for number in left:
        edit = state.gate_state.turn[number]
        now = workspace.file(edit.path)
        before, after = (store.get(sha) if sha else None for sha in (edit.before, edit.after))
        made = reapply_edit(before, after, now)
        if isinstance(made, EditRefused):
            return number
        workspace.write(edit.path, made)
    return None


def build_repair_events(state: RunState, left: Sequence[int] | None = None) -> Sequence[ev.Repair]:
    """Return an event for each group of reverted edits, whose claimed tests did not turn green.

    One for those that failed as often. *left* are those that lie in the workspace unless it is said. Where the machine
    failed, nothing was seen of them.
    """
    book = state.gate_state
    kept = book.trying if left is None else left
    gone = [] if state.fault else [n for n, edit in enumerate(book.turn) if edit.claims and n not in kept]
    before = {c.test_id: c.failures for c in book.claims}
    found = []
    for part in group_edits(book.turn, gone):
        paths = tuple(dict.fromkeys(book.turn[n].path for n in part))
        often: dict[int, list[str]] = {}
        claims = book.turn[part[0]].claims
        others = any(set(book.turn[n].claims) == set(claims) for n in kept)  # which turned some of them green
        green = state.judged.green_ids if others and state.judged else frozenset[str]()
        for test_id in (i for i in claims if i not in green):
            often.setdefault(1 + before.get(test_id, 0), []).append(test_id)
        found += [ev.Repair(test_ids=tuple(ids), edits=paths, failures=n) for n, ids in often.items()]
    return found


def _describe_revert(why: str, gone: Sequence[int], state: RunState) -> str:
    """Describe which edits were reverted, why, and what may be tried next."""
    edits = [state.gate_state.turn[n] for n in gone]
    ids = dict.fromkeys(i for edit in edits for i in edit.claims)
    once = [c.test_id for c in state.gate_state.claims if c.test_id in ids and c.failures + 1 >= FAILURES]
    after = (
        f"; that was the second time: the claim of {format_ids(tuple(dict.fromkeys(once)))} has ended" if once else ""
    )
    after = after or ("; the claim is open for one more try" if ids else "")
    singly = state.gate_state.stage is Stage.SINGLY  # what is red then may be so by others too
    return f"{_format_edits(gone, state, tests=singly)}: {why}{after}"


def _describe_trials(effect: Rebuild, state: RunState) -> str:
    """Describe that edits are judged one by one, and which are next."""
    if effect.why:
        return f"taken apart, to be judged one by one: {effect.why}"
    more = [number for number in effect.left if number not in state.gate_state.trying]
    return f"taken up again, on top of what was good: {_format_edits(more, state, tests=True)}"


def _format_edits(numbers: Sequence[int], state: RunState, *, tests: bool) -> str:
    """Return some edits of the turn, by their files and the *tests* they were for."""
    edits = [state.gate_state.turn[n] for n in numbers]
    ids = tuple(dict.fromkeys(i for edit in edits for i in edit.claims)) if tests else ()
    return ", ".join(dict.fromkeys(edit.path for edit in edits)) + (f" for {format_ids(ids)}" if ids else "")


def find_written_ids(parts: RunDependencies, state: RunState) -> tuple[str, ...]:
    """Return the tests in files that this run wrote, beyond those that are expected already."""
    book = state.gate_state
    paths = {*book.authored, *(book.turn[n].path for n in book.trying if book.turn[n].test)}
    if not paths:
        return ()
    known = set(state.expected)
    files = parts.workspace.files(lambda path: path in paths)
    ids = (site.id for path, source in sorted(files.items()) for site in parts.sites(path, source))
    return tuple(i for i in dict.fromkeys(ids) if i not in known)
