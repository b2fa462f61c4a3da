"""Plan of a campaign: its tasks, the number of rollouts of each, and the options of the runs. Written once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from jumar.errors import BadInput
from jumar.languages.gitignore_globs import escape_path
from jumar.runs.setup.marks import Trust, is_own, mark
from jumar.task.option_values import OptionValues
from jumar.task.resolve import Options, apply_options
from jumar.task.task import Task, load_task
from jumar.workspace.files.disk_faults import explain_disk_faults
from jumar.workspace.files.safe_paths import replace_file

PLAN, LEDGER, VERDICTS, CORES, RUNS = "campaign.json", "ledger.db", "verdicts.db", "cores.lock", "runs"
"""Names in a campaign's folder."""


class CampaignTask(msgspec.Struct, frozen=True):
    """One task of a campaign."""

    name: str
    """Unique in the campaign."""
    path: str
    """An absolute path: a `task.toml`, or a folder."""
    agent: str = ""
    """Agent of a challenge whose runs these are: it begins the name. Empty: all runs of the campaign are alike."""
    options: OptionValues | None = None
    """Options of its runs in the place of the campaign's."""
    config: str = ""
    """File of defaults in the place of the campaign's."""

    @property
    def own_name(self) -> str:
        """Name of the task itself, without its agent."""
        return self.name.removeprefix(f"{self.agent}.") if self.agent else self.name


class Rollout(NamedTuple):
    """One of the runs on a task."""

    task: CampaignTask
    number: int
    """Counted from 1."""

    @property
    def name(self) -> str:
        """Name of the rollout in its campaign, such as `gcd-r003`."""
        return f"{self.task.name}-r{self.number:03d}"


class CampaignPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that determines the runs of a campaign."""

    version: int = 1
    began: str
    """Local time of its beginning, as in the names of runs: `20261123-101500`."""
    tasks: tuple[CampaignTask, ...]
    rollouts: int = 1
    """Of each task."""
    options: OptionValues
    """Of every run; its ledger is the campaign's."""
    config: str = ""
    """File of the person's defaults; empty: none was named."""
    temperatures: tuple[float, ...] = ()
    """Temperatures of the rollouts of a task, the first one again after the last; empty: that of the options."""
    patience: int | None = None
    """Rollouts of a task in a row without a better result, after which no more of it are begun; None: all are."""
    shared_verdicts: bool = True
    """True if a tree that one run had judged is not judged again for another one."""
    retries: int = 2
    """Number of times that a run goes on after a fault of the machine or the provider."""
    purpose: str = ""
    """Text of whoever ordered it, kept under the plan's mark: nobody else can have written it."""


def list_rollouts(plan: CampaignPlan) -> tuple[Rollout, ...]:
    """Return all rollouts in fair order: the first one of every task, then the second one of every task, ..."""
    return tuple(Rollout(task, number) for number in range(1, plan.rollouts + 1) for task in plan.tasks)


def get_run_folder(folder: Path, plan: CampaignPlan, rollout: Rollout) -> Path:
    """Return the run directory of *rollout* in the campaign's *folder*."""
    return folder / RUNS / f"{plan.began}-{rollout.name}"


def get_options(plan: CampaignPlan, rollout: Rollout) -> OptionValues:
    """Return the options of *rollout*: those of its agent, or of the campaign."""
    return rollout.task.options or plan.options


def build_task(folder: Path, plan: CampaignPlan, rollout: Rollout, environ: Mapping[str, str]) -> Task:
    """Return the task of *rollout* with the options of its run.

    Each rollout has a seed of its own, one more than that of the rollout before, and the next one of the plan's
    temperatures. `{rollout}` and `{task}` in the name of its model, a script's path, stand for its number and the name
    of its task in the campaign.

    Raises:
        BadInput: if the task cannot be loaded, or the options do not fit it.
    """
    config, options = rollout.task.config or plan.config, get_options(plan, rollout)
    task = load_task(Path(rollout.task.path), Path(config) if config else None)
    seed = (task.seed if options.seed is None else options.seed) + rollout.number - 1
    model = options.model and options.model.replace("{rollout}", str(rollout.number)).replace(
        "{task}", rollout.task.own_name
    )
    chosen = replace(options, model=model, seed=seed, ledger=str(folder / LEDGER))
    if plan.temperatures:
        chosen = replace(chosen, temperature=plan.temperatures[(rollout.number - 1) % len(plan.temperatures)])
    fields = {name: getattr(chosen, name) for name in chosen.__struct_fields__}
    return replace(_withhold(apply_options(task, Options(**fields), environ), folder), unattended=True)


def _withhold(task: Task, folder: Path) -> Task:
    """Return *task* with a tree without the campaign's *folder*, if that lies in the task's own."""
    place = folder.resolve()
    if not place.is_relative_to(task.root.resolve()):
        return task
    line = escape_path(place.relative_to(task.root.resolve()).as_posix()) + "/"
    return replace(task, withheld=(*task.withheld, line))


def save_plan(folder: Path, plan: CampaignPlan, environ: Mapping[str, str]) -> None:
    """Write *plan* into the new *folder*, with the mark of this user.

    Raises:
        BadInput: if the folder cannot be written.
    """
    line = msgspec.json.encode(plan)
    with explain_disk_faults(f"cannot write to {folder}"):
        mark(folder, line, environ)
        replace_file(folder / PLAN, line + b"\n")


def load_plan(folder: Path, trust: Trust) -> CampaignPlan:
    """Return the plan of the campaign in *folder*: it names commands to run, so only this user's own is trusted.

    Raises:
        BadInput: if there is none, it cannot be read, or somebody else may have made it.
    """
    try:
        data = (folder / PLAN).read_bytes()
    except OSError:
        raise BadInput(f"there is no campaign in {folder}; name the folder of one, or `last`") from None
    if not trust.anyone and not is_own(folder, trust.environ, PLAN):
        raise BadInput(
            f"you did not begin the campaign in {folder} on this machine, and its plan names commands to run; "
            f"add {trust.said_by} if that is what you want"
        )
    try:
        return msgspec.json.decode(data, type=CampaignPlan)
    except msgspec.MsgspecError as error:
        raise BadInput(f"{folder / PLAN} is no plan that this jumar can read: {error}") from None
