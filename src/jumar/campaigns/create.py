"""Creates campaigns: settles the options of their runs and the caps of their ledger, and tries every task first."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from jumar.campaigns.plan import LEDGER, RUNS, CampaignPlan, CampaignTask, Rollout, build_task, get_options, save_plan
from jumar.campaigns.worker_process import OUTPUT
from jumar.core.run.strategy import REPAIR
from jumar.core.state.budget import PROFILES, Budget
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.errors import BadInput
from jumar.journal.ledger import Caps, SqliteLedger
from jumar.runs.archive.find import find_link
from jumar.runs.setup.choose_model import prepare_model
from jumar.runs.setup.choose_sandbox import SandboxSurroundings, try_sandbox
from jumar.runs.setup.refusals import refuse_missing_runner, refuse_unfit
from jumar.task.budget_options import USUAL_PROFILE, read_profile
from jumar.task.option_values import OptionValues
from jumar.task.task import Task
from jumar.workspace.files.disk_faults import explain_output_faults

CAMPAIGNS = Path(".jumar") / "campaigns"
"""The folder of campaigns where nobody chose another."""

LAST = "last"
"""Stands for the campaign that was begun last."""


class CampaignBudget(msgspec.Struct, frozen=True, kw_only=True):
    """Caps on the spending of a campaign; None is no cap of this kind."""

    usd: float | None = None
    """Of all runs together; so are the tokens."""
    tokens: int | None = None
    task_usd: float | None = None
    """Of all rollouts of one task: each has its equal share."""
    run_usd: float | None = None
    run_tokens: int | None = None

    def __post_init__(self) -> None:
        """Refuse a cap that leaves nothing to spend.

        Raises:
            BadInput: naming it.
        """
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                flag = {"usd": "--budget-usd", "tokens": "--budget-tokens"}.get(name, "--" + name.replace("_", "-"))
                raise BadInput(f"{flag} must be more than 0, not {value:g}; leave it out to have no such cap")


class CampaignOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a campaign as the person gave them."""

    tasks: tuple[CampaignTask, ...]
    options: OptionValues
    """Of its runs, as they were typed."""
    budget: CampaignBudget = CampaignBudget()
    rollouts: int = 1
    config: str = ""
    temperatures: tuple[float, ...] = ()
    patience: int | None = None
    retries: int = 2
    shared_verdicts: bool = True
    purpose: str = ""


def create_campaign(folder: Path, order: CampaignOrder, environ: Mapping[str, str]) -> CampaignPlan:
    """Return the plan of a new campaign in *folder*, which exists and has no plan; nothing is begun.

    Where it may cost money and nobody set a cap, its caps are those of the profile `workday`.

    Raises:
        BadInput: if a task cannot be worked on with these options.
    """
    plan = CampaignPlan(
        began=time.strftime("%Y%m%d-%H%M%S"),
        tasks=tuple(_settle_task(order, task) for task in order.tasks),
        rollouts=order.rollouts,
        options=_settle_options(order, order.options),
        config=order.config,
        temperatures=order.temperatures,
        patience=order.patience,
        retries=order.retries,
        shared_verdicts=order.shared_verdicts,
        purpose=order.purpose,
    )
    costs = [_try_task(folder, plan, task, environ) for task in plan.tasks]
    profile = read_profile(order.options)
    if any(costs) and profile is None and order.budget.usd is None:
        profile = PROFILES[USUAL_PROFILE]
    SqliteLedger.open(folder / LEDGER, _build_caps(order.budget, profile)).close()
    save_plan(folder, plan, environ)
    return plan


def _settle_task(order: CampaignOrder, task: CampaignTask) -> CampaignTask:
    return task if task.options is None else replace(task, options=_settle_options(order, task.options))


def _settle_options(order: CampaignOrder, options: OptionValues) -> OptionValues:
    """Return the options of each run: of several rollouts, each is judged once, at its end, and none is gated.

    The repair agent lives on test results, so it keeps its own policy.
    """
    budget = order.budget
    if order.rollouts > 1 and REPAIR not in (options.model, options.agent):
        policy, gate = options.test_policy or TestPolicy.ON_FINAL, options.gate or Gate.OFF
        options = replace(options, test_policy=str(policy), gate=str(gate))
    share = budget.task_usd / order.rollouts if budget.task_usd is not None else None
    caps = [cap for cap in (budget.run_usd, share, options.usd) if cap is not None]
    tokens = budget.run_tokens if options.tokens is None else options.tokens
    return replace(options, usd=min(caps, default=None), tokens=tokens, profile=None)


def _try_task(folder: Path, plan: CampaignPlan, task: CampaignTask, environ: Mapping[str, str]) -> bool:
    """Return whether work on *task* may cost money.

    Raises:
        BadInput: if it cannot be worked on with the options of *plan*.
    """
    try:
        built = prepare_model(build_task(folder, plan, Rollout(task, 1), environ), environ).task
        refuse_unfit(built, get_options(plan, Rollout(task, 1)).python)
    except BadInput as error:
        raise BadInput(f"{task.name}: {error}") from None
    return bool(built.chosen_routes) or get_options(plan, Rollout(task, 1)).allow_unmetered


async def try_machine(folder: Path, plan: CampaignPlan, environ: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Test the sandboxes of the tasks, here and once: else hundreds of rollouts would do so at the same time.

    Raises:
        BadInput: if there is none for some task, or what runs its tests is not here, naming it.
    """
    asked: dict[str, Task] = {}
    for task in plan.tasks:
        built = build_task(folder, plan, Rollout(task, 1), environ)
        try:
            refuse_missing_runner(built, environ)
        except BadInput as error:
            raise BadInput(f"{task.name}: {error}") from None
        asked.setdefault(built.sandbox, built)
    for sandbox, built in asked.items():
        around = SandboxSurroundings(folder / RUNS, environ, (built.root,), tell=lambda *_: say("trying the sandbox"))
        await try_sandbox(sandbox, around, unattended=True)


def _build_caps(budget: CampaignBudget, profile: Budget | None) -> Caps:
    usd = profile.usd if budget.usd is None and profile is not None else budget.usd
    return Caps(usd=usd, tokens=budget.tokens, seconds=profile.seconds if profile is not None else None)


@contextmanager
def make_campaign_folder(folder: Path) -> Iterator[None]:
    """Create the *folder* of a new campaign; remove it again if what follows fails.

    Raises:
        BadInput: if it is there already, or cannot be made.
    """
    refuse_linked_campaigns(folder)
    with explain_output_faults(folder, "--campaign"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            folder.mkdir()
        except FileExistsError:
            raise BadInput(f"{folder} is there already; go on with it by --resume, or name another folder") from None
        (folder / RUNS).mkdir()
        for place in (folder, folder / RUNS):
            (place / ".gitignore").write_text("*\n")
        (folder / OUTPUT).mkdir()
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def name_campaign() -> Path:
    """Return the folder of a new campaign without a name."""
    return CAMPAIGNS / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"


def find_campaign(name: str) -> Path:
    """Return the folder of the campaign called *name*: a path, a name in the usual folder, or `last`.

    Raises:
        BadInput: if there is none.
    """
    refuse_linked_campaigns(CAMPAIGNS / "any")
    if name == LAST:
        known = sorted(_list_campaigns(), key=lambda path: path.name)
        if not known:
            raise BadInput(f"there is no campaign in {CAMPAIGNS}; `jumar batch` or `jumar evolve` begins one")
        return known[-1]
    return CAMPAIGNS / name if (CAMPAIGNS / name).is_dir() else Path(name)


def _list_campaigns() -> Iterator[Path]:
    if CAMPAIGNS.is_dir():
        yield from (path for path in CAMPAIGNS.iterdir() if path.is_dir() and not path.is_symlink())


def refuse_linked_campaigns(folder: Path) -> None:
    """Refuse *folder* if a folder above it is a link, which a repository may have brought.

    Raises:
        BadInput: if `.jumar` or `.jumar/campaigns` is a link, and it lies there.
    """
    there = folder.absolute().parent == CAMPAIGNS.absolute()
    link = find_link(CAMPAIGNS.parent, CAMPAIGNS) if there else None
    if link is not None:
        raise BadInput(f"{link} is a link to {link.resolve()}, and no link is followed there; remove it")
