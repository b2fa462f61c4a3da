"""Starts and resumes runs. A run directory is all that a run needs."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from math import isfinite
from pathlib import Path
from typing import NamedTuple

import anyio
from msgspec.structs import replace

from jumar import ports
from jumar.agents.external import ExternalAgent
from jumar.core.run.reducers.transitions import replay
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget, find_exhausted_cap
from jumar.core.state.run_state import HOST, Phase, RunState
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import TestPolicy
from jumar.errors import BadInput
from jumar.journal.line_format import JournalEnd, format_group
from jumar.journal.writer import Journal
from jumar.kernel import Kernel
from jumar.languages.test_annotations import find_known_sites
from jumar.models.router import collect_keys
from jumar.process.progress import Tell, get_tell, ignore_progress
from jumar.process.warm.starts import NO_WARM
from jumar.runs.archive.find import refuse_links
from jumar.runs.external.host import build_host
from jumar.runs.finish import Running, explain_full_disk, finish_run, store_result
from jumar.runs.judging.rules import hash_rules
from jumar.runs.judging.shared_judging import JudgedRun, SharedJudging
from jumar.runs.setup.agent_parts import build_agent, build_commands
from jumar.runs.setup.assembly import RunPlace, build_judges, build_workspace
from jumar.runs.setup.choose_model import is_offline, load_models, prepare_model
from jumar.runs.setup.choose_sandbox import SandboxSurroundings, choose_sandbox
from jumar.runs.setup.first_event import build_first_event
from jumar.runs.setup.marks import TrustedRun, mark
from jumar.runs.setup.refusals import refuse_unfit
from jumar.runs.setup.result import Result, build_no_event_fault, build_result, replay_state
from jumar.runs.setup.run_directory import create_run_directory, leave_no_trace, make_absolute, withhold_run_files
from jumar.runs.setup.selftest_cache import SelftestCache
from jumar.runs.setup.shared_ledger import OpenLedger, open_ledger
from jumar.runs.tree.task_tree import compute_allowed_bytes, settle_tree
from jumar.runtime.dependencies import NoLedger, RunDependencies, skip_pause
from jumar.runtime.effect_runner import EffectRunner
from jumar.task.budget_options import format_flag
from jumar.task.task import Task
from jumar.verify.kept_process import KeepingRunner, KeptRuns
from jumar.verify.mutation_probe import probe
from jumar.workspace.files.disk_faults import explain_disk_faults

Begun = Callable[[Kernel], None]
"""Is handed the kernel before it runs: to watch it, or to halt it on a signal. See `jumar.process.progress.Telling`."""


def _skip_watching(_kernel: Kernel) -> None:
    """Do nothing: the run has no watcher."""


async def start(
    task: Task, runs: Path, *, python: str | None = None, environ: Mapping[str, str], begun: Begun = _skip_watching
) -> Result:
    """Run *task* in a new directory under *runs*, from start to a typed stop reason.

    Raises:
        BadInput: if it cannot be run as asked; nothing was run and nothing is left behind.
        Infra: if the machine failed before the end could be written down; the journal and the best tree are intact.
    """
    return await start_entered(task, runs, RunEntry(environ, python, tell=get_tell(begun)), begun)


class RunEntry(NamedTuple):
    """Environment, interpreter, host and progress callback with which a run is entered."""

    environ: Mapping[str, str]
    python: str | None = None
    host: ports.Host | None = None
    """Source of its actions, if not a model of ours."""
    tell: Tell = ignore_progress
    name: str = ""
    """Name of its directory; empty: after its task and the time."""
    judging: SharedJudging = SharedJudging()
    """Cores and verdicts that it shares with other runs."""
    open_ledger: OpenLedger = open_ledger
    """Opens the ledger that its task names."""


async def start_entered(task: Task, runs: Path, entry: RunEntry, begun: Begun = _skip_watching) -> Result:
    """Run *task* as `start` does, in the directory and with the shared parts that *entry* names.

    Raises:
        BadInput: as `start`.
        Infra: as `start`.
    """
    with explain_full_disk(runs), ExitStack() as held:
        running = await create_run(task, runs, entry, held)
        begun(running.kernel)
        result = await finish_run(running)
        if not task.probe or result.stop is not StopReason.GREEN:
            return result
        run = running.kernel.state.run
        verifier = build_judges(run, running.place)[2]
        probed = await running.kernel.conclude(probe(verifier, run.tree, result.tree, seed=task.seed))
        return store_result(running.place, replace(result, probed=probed))


async def create_run(task: Task, runs: Path, entry: RunEntry, held: ExitStack) -> Running:
    """Return a new run of *task* under *runs*, ready to start; *held* closes what it holds.

    Raises:
        BadInput: as `start`.
    """
    refuse_links(runs)
    ready = prepare_model(task, entry.environ)
    refuse_unfit(ready.task, entry.python)
    task = settle_tree(withhold_run_files(ready.task, runs, task.model, entry.environ), entry.environ)
    new = not runs.exists()  # noqa: ASYNC240  one look, before anything runs
    place = _enter_place(create_run_directory(runs, task.name, entry.name), entry)
    try:
        place.store.limit_bytes = compute_allowed_bytes(task.weight.bytes)
        around = SandboxSurroundings(place.folder, entry.environ, (task.root,), tell=entry.tell)
        box = await choose_sandbox(task.sandbox, around, unattended=task.unattended)
        place = replace(place, sandbox=box)
        with explain_disk_faults(f"cannot write to {place.folder}"):
            for name, data in ready.kept.items():
                (place.folder / name).write_bytes(data)
        async with place.judging.turn():
            first = await build_first_event(task, place, entry.python)
        now = time.time()
        with explain_disk_faults(f"cannot write to {place.folder}"):  # a run that is killed here has its mark
            mark(place.folder, format_group((first,), now, JournalEnd())[1][0], entry.environ)
        journal = held.enter_context(Journal.create(place.folder))
        state = replay(journal.append((first,), now))
        return await _build_running(place, journal, state, held, (entry.host, task.caps))
    except BaseException:
        SelftestCache(entry.environ).forget()  # it may have been the sandbox: the next start looks at it again
        held.close()
        place.store.release()
        shutil.rmtree(place.folder, ignore_errors=True)
        if new:
            leave_no_trace(runs)
        raise


async def rejoin_run(run: TrustedRun, entry: RunEntry, held: ExitStack) -> Running:
    """Return the open *run*, ready to continue where its host left it; *held* closes what it holds.

    Raises:
        BadInput: if there is no run, another process writes it, or its journal is damaged.
    """
    folder = make_absolute(run.folder)
    place = _enter_place(folder, entry)
    journal = held.enter_context(Journal.open(folder))
    state = replay_state(journal.entries)
    if state.start is None:
        raise build_no_event_fault(folder)
    return await _build_running(await _restore_sandbox(place, state), journal, state, held, (entry.host, None))


async def resume(
    run: TrustedRun,
    *,
    limits: dict[str, float] | None = None,
    environ: Mapping[str, str],
    begun: Begun = _skip_watching,
) -> Result:
    """Resume *run* after a crash, an interrupt or a cap; *limits* raises caps by name.

    Raises:
        BadInput: if there is no run, another process writes it, or its journal is damaged.
        Infra: as `start`.
    """
    return await resume_entered(run, RunEntry(environ, tell=get_tell(begun)), limits=limits, begun=begun)


async def resume_entered(
    run: TrustedRun, entry: RunEntry, *, limits: dict[str, float] | None = None, begun: Begun = _skip_watching
) -> Result:
    """Resume *run* as `resume` does, with the shared parts that *entry* names.

    Raises:
        BadInput: as `resume`.
        Infra: as `start`.
    """
    folder = make_absolute(run.folder)
    place = _enter_place(folder, entry)
    with explain_full_disk(folder), Journal.open(folder) as journal, ExitStack() as held:
        state = replay_state(journal.entries)
        if state.start is None:
            raise build_no_event_fault(folder)
        if state.run.agent == HOST:
            raise BadInput(f"the run in {folder} is a host's: its actions come from there, and it goes on from there")
        if state.phase is Phase.ENDED and state.end and state.end.stop is StopReason.GREEN:
            return build_result(state, folder, journal.mark)
        raised = _list_raised_caps(state, limits or {})  # refused before anything is touched
        place = await _restore_sandbox(place, state)
        running = await _build_running(place, journal, state, held)
        kernel = running.kernel
        shutil.rmtree(folder / "rooms", ignore_errors=True)
        place.store.sweep()
        kernel.record((*raised, ev.Resume(from_seq=journal.entries[-1].seq)))
        build_workspace(place, state.run).reset(kernel.state.tree)
        begun(kernel)
        return await finish_run(running)


def _enter_place(folder: Path, entry: RunEntry) -> RunPlace:
    place = RunPlace.at(folder, entry.environ)
    return replace(place, tell=entry.tell, judging=entry.judging, open_ledger=entry.open_ledger)


async def _restore_sandbox(place: RunPlace, state: RunState) -> RunPlace:
    """Return *place* with the sandbox that the run began with: a weaker one would judge under other rules.

    Raises:
        BadInput: if this machine has none of that tier any more.
    """
    run = state.run.settings
    around = SandboxSurroundings(place.folder, place.environ, (Path(run.origin),), tell=place.tell)
    sandbox = await choose_sandbox(run.sandbox, around, unattended=False)
    return replace(place, sandbox=sandbox)


async def _build_running(
    place: RunPlace,
    journal: Journal,
    state: RunState,
    held: ExitStack,
    given: tuple[ports.Host | None, Budget | None] = (None, None),
) -> Running:
    """Return the run in *place*, ready to start; *held* closes what it holds. Files for others are made last.

    *given* are the host its actions come from and the caps of a new ledger, where there are such.
    """
    run, (host, caps) = state.run, given
    agent, commands = build_agent(run, place), await build_commands(run, place)
    working = build_host(run, place, agent) if isinstance(agent, ExternalAgent) else None
    runner, guard, verifier = build_judges(run, place)
    if verifier.around.missing:
        raise BadInput(verifier.around.missing)
    # What other runs are told comes from fresh processes.
    if isinstance(runner, KeepingRunner) and place.judging.store is None and not place.environ.get(NO_WARM):
        verifier.kept = KeptRuns()
        held.callback(verifier.kept.release)
    parts = RunDependencies(
        workspace=build_workspace(place, run),
        host=working or host,
        verifier=place.judging.wrap(
            verifier, lambda: JudgedRun(place.folder, hash_rules(run, place.folder), verifier.new_output)
        ),
        agent=agent,
        guard=guard,
        sites=lambda path, source: find_known_sites(path, source, runner),
        clock=time.time,
        commands=commands,
        sleep=skip_pause if is_offline(place) else anyio.sleep,
        ledger=_open_account(run, place, journal, held, caps),
        route=(lambda _tier: working.model) if working else load_models(state, place),
        secrets=collect_keys(run.settings, place.environ),
    )
    return Running(Kernel(journal, EffectRunner(parts), agent, state), place, journal, working)


def _open_account(
    run: ev.RunStart, place: RunPlace, journal: Journal, held: ExitStack, caps: Budget | None
) -> ports.Ledger:
    """Return the ledger that the run draws on beside its own budget; settle what it reserved before it died."""
    if not run.settings.ledger:
        return NoLedger()
    drawing = held.enter_context(place.open_ledger(Path(run.settings.ledger), caps)).open_account(run.run, place.folder)
    drawing.recover_own(journal.entries)
    return drawing


def _list_raised_caps(state: RunState, limits: Mapping[str, float]) -> tuple[ev.Limit, ...]:
    """Return the caps that change, as events.

    Raises:
        BadInput: if a new cap is below what is spent already.
    """
    for name, new in limits.items():
        if not isfinite(new):
            raise BadInput(f"{format_flag(name)} must be a number, not {new:g}; leave it out to keep the cap")
        if new <= getattr(state.spend, name):
            used = getattr(state.spend, name)
            raise BadInput(f"{format_flag(name)} {new:g} is used up already ({used:g}); give a higher cap")
    budget = replace(state.run.budget, **limits)
    over = find_exhausted_cap(budget, state.spend, names=("attempts", "turns", "test_runs"))
    if over and state.end is not None and state.run.test_policy is TestPolicy.ON_FINAL:
        raise BadInput(
            f"the cap on {over} is used up, and going on takes one more test run: raise it with {format_flag(over)}"
        )
    budget = state.run.budget
    return tuple(ev.Limit(name=n, old=getattr(budget, n), new=new, by="resume") for n, new in limits.items())
