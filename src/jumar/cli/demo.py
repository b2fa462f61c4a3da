"""`jumar demo`: repairs real bugs of third-party libraries, offline, and shows how."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path

import click

from jumar.cli.console.output import Console
from jumar.cli.console.progress import ProgressDisplay
from jumar.cli.console.run_progress import RunProgress
from jumar.cli.console.signals import SignalWatcher
from jumar.cli.parameters.command_options import add_output_options
from jumar.cli.parameters.environment import find_cache_folder, read_environment
from jumar.cli.run import UNGATED
from jumar.core.state.stop import EXIT_CODES, StopReason
from jumar.core.state.test_policy import Gate
from jumar.importing.demo import WHOLE_SECONDS, DemoBug, Summary, select_fetched, summarise, work_through
from jumar.importing.recipes import PlantedBug, PreparedRecipe, Recipe, load_shipped, prepare_recipe_tasks
from jumar.kernel import Kernel
from jumar.runs.archive.find import RUNS, refuse_links
from jumar.runs.lifecycle import Begun

PLEDGE = 5
"""So many bugs the demo promises to repair."""


@click.command(epilog="Example: jumar demo --only humanize")
@click.option("--only", help="Only recipes whose name holds this text.")
@click.option("--all", "everything", is_flag=True, help="The bugs that repair is known not to reach too.")
@click.option("--runs", type=click.Path(path_type=Path), default=RUNS, show_default=True, help="Where runs are kept.")
@add_output_options
def demo(only: str | None, runs: Path, *, everything: bool, as_json: bool, quiet: bool) -> int:
    """Repair real bugs of third-party libraries, offline, with no key."""
    voice = Console(json=as_json, quiet=quiet)
    refuse_links(runs)
    listed = load_shipped()
    known: tuple[Recipe, ...] = (*listed.fixed, *listed.planted)
    recipes = tuple(r for r in known if (only in r.task_name if only else everything or not r.beyond))
    if not recipes:
        names = ", ".join(sorted({r.name for r in known}))
        raise click.BadParameter(f"no recipe's name holds {only!r}; they are of {names}", param_hint="--only")
    started, shown = time.monotonic(), list[DemoBug]()
    whole_seconds = inf if everything or only else WHOLE_SECONDS
    with ProgressDisplay(voice) as live:
        attendant = SignalWatcher(live.print_line, quiet=voice.quiet, patient=True)
        stage = _Stage(voice, live, attendant, shown)
        attendant.run(lambda: _work(recipes, runs, stage, whole_seconds))
    shown.sort(key=lambda one: recipes.index(one.prepared.recipe))
    if len(shown) < len(recipes):
        _print_untried(voice, recipes, stage)
    return _print_total(voice, shown, summarise("demo", shown, started), wanted=min(PLEDGE, len(recipes)))


class _Stage:
    """Console output and signal handling of one demo."""

    def __init__(self, voice: Console, live: ProgressDisplay, attendant: SignalWatcher, shown: list[DemoBug]) -> None:
        self.voice, self.live, self.attendant, self.shown = voice, live, attendant, shown
        self.prepared: tuple[PreparedRecipe, ...] = ()
        self.refused: dict[str, str] = {}

    @contextmanager
    def follow(self, prepared: PreparedRecipe) -> Iterator[Begun]:
        """Follow the run on one bug."""
        with self.live.follow(prepared.recipe.task_name) as progress:
            yield _Follower(progress, self.attendant)

    def show(self, done: DemoBug) -> None:
        """Show the result on one bug."""
        self.shown.append(done)
        _show(self.voice, done)

    def refuse(self, prepared: PreparedRecipe, why: str) -> None:
        """Keep why one bug cannot be worked on: it is told at the end."""
        self.refused[prepared.recipe.task_name] = why


class _Follower:
    """Follows one run: shows it, and lets a signal halt it."""

    def __init__(self, progress: RunProgress, attendant: SignalWatcher) -> None:
        self.tell, self._progress, self._attendant = progress.tell, progress, attendant

    def __call__(self, kernel: Kernel) -> None:
        """Follow the run from its beginning."""
        kernel.watch = self._progress.watch
        self._attendant.watch(kernel)


async def _work(recipes: tuple[Recipe, ...], runs: Path, stage: _Stage, whole_seconds: float) -> None:
    folders = find_cache_folder() / "sdists", runs.parent / "demo"
    stage.prepared = await prepare_recipe_tasks(*folders, recipes, _build_progress(stage.live))
    await work_through(select_fetched(stage.prepared), runs, read_environment(), stage, whole_seconds)


def _print_untried(voice: Console, recipes: tuple[Recipe, ...], stage: _Stage) -> None:
    """Print the bugs that were not tried, each with the reason."""
    faults = {**{one.recipe.task_name: one.fault for one in stage.prepared}, **stage.refused}
    late = "it was interrupted" if stage.attendant.interrupted else "no time was left"
    for name in (r.task_name for r in recipes if r not in [s.prepared.recipe for s in stage.shown]):
        voice.say(f"not tried  {name}: {faults.get(name, 'it was not fetched') or late}; jumar demo --only {name}")


def _build_progress(live: ProgressDisplay) -> Callable[[PreparedRecipe], None]:
    def told(prepared: PreparedRecipe) -> None:
        live.print_line(f"{prepared.recipe.task_name}: {prepared.fault or 'fetched'}")

    return told


def _show(voice: Console, one: DemoBug) -> None:
    recipe, result = one.prepared.recipe, one.result
    kind = "planted by us" if isinstance(recipe, PlantedBug) else "real"
    voice.say(f"\n{recipe.task_name}  ({kind}: {recipe.bug})")
    voice.say(
        f"  {result.stop}  {result.standing}  {result.seconds:.1f} s  "
        f"{one.candidates} candidates screened, {result.test_runs} verified"
    )
    voice.say(f"  journal  {result.events}")
    if one.diff:
        voice.say("\n".join(f"  {line}" for line in one.diff.splitlines()))


def _print_total(voice: Console, shown: list[DemoBug], total: Summary, wanted: int) -> int:
    green = [s for s in shown if s.result.stop is StopReason.GREEN]
    planted = sum(s.planted for s in green)
    if any(s.result.gate == Gate.OFF for s in shown):
        voice.say(f"\n{UNGATED}")
    voice.say(
        f"\n{len(green)} of {len(shown)} bugs repaired ({len(green) - planted} real, {planted} planted) in "
        f"{total.seconds:.0f} s, for {total.usd:.2f} usd. A patch that passes is only as right as the tests."
    )
    voice.print_result(total)
    if any(s.result.stop is StopReason.INTERRUPTED for s in shown) or not shown:
        return EXIT_CODES[StopReason.INTERRUPTED]
    return int(len(green) < wanted)
