"""Orders the campaign of a challenge: every agent on every task, in turn, under one ledger."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec.structs import replace

from jumar.campaigns.create import CampaignBudget, CampaignOrder
from jumar.campaigns.plan import CampaignPlan, CampaignTask
from jumar.challenges.agents_file import ChallengeAgent, ModelTable
from jumar.challenges.challenge_file import Challenge, find_tasks_below
from jumar.errors import BadInput
from jumar.task.option_values import OptionValues
from jumar.task.task import load_task
from jumar.workspace.files.disk_faults import explain_disk_faults

CONFIGS = "agents"
"""Name in the campaign's folder: the routes of its agents."""


class ChallengeOrigin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Origin of a campaign: the file of its challenge, which is read again when it is scored again, and its agents."""

    challenge: str
    agents: tuple[ChallengeAgent, ...]
    """Agents as they were when it began; so are the models."""
    judge: ModelTable = ModelTable()
    proposer: ModelTable = ModelTable()
    generations: int = 0
    rollouts: int | None = None
    """Runs of each agent on each task; None: as many as the challenge says."""
    usd: float | None = None
    """Cap on everything together, generations included."""
    options: OptionValues = OptionValues()
    """Options of all runs: sandbox, interpreter, confirmation, limits of the tests."""


def order_campaign(challenge: Challenge, origin: ChallengeOrigin, folder: Path, usd: float | None) -> CampaignOrder:
    """Return the order of the campaign of *origin* on *challenge*, whose folder is *folder*.

    Each run has the same share of its agent's money. Rollouts of different agents take turns. *usd* caps all agents
    together; None: their own caps do.

    Raises:
        BadInput: if a task cannot be loaded, or an agent's options do not fit.
    """
    rollouts = origin.rollouts or challenge.tables.rollouts
    by_agent = [_list_tasks(challenge, agent, folder, origin.options) for agent in origin.agents]
    limits = challenge.tables.limits
    share = limits.usd / (len(challenge.tasks) * rollouts) if limits.usd is not None else None
    tasks = tuple(
        replace(task, options=replace(options, seconds=limits.seconds, tokens=limits.tokens, usd=share))
        for turn in zip(*by_agent, strict=True)
        for task in turn
        if (options := task.options) is not None
    )
    if usd is None and limits.usd is not None:
        usd = limits.usd * len(origin.agents)
    return CampaignOrder(
        tasks=tasks,
        options=origin.options,
        budget=CampaignBudget(usd=usd),
        rollouts=rollouts,
        purpose=msgspec.json.encode(origin).decode(),
    )


def load_origin(plan: CampaignPlan, folder: Path) -> ChallengeOrigin:
    """Return the origin of *plan*, of the campaign in *folder*.

    Raises:
        BadInput: if it is the campaign of no challenge.
    """
    try:
        return msgspec.json.decode(plan.purpose, type=ChallengeOrigin)
    except msgspec.MsgspecError:
        raise BadInput(f"{folder} is the campaign of no challenge; `jumar evolve CHALLENGE` begins one") from None


def _list_tasks(
    challenge: Challenge, agent: ChallengeAgent, folder: Path, given: OptionValues
) -> tuple[CampaignTask, ...]:
    """Return the tasks that *agent* works on, each with the options of its runs; *given* are those of all agents."""
    tasks = find_tasks_below(Path(agent.folder), agent.entry.tasks) if agent.entry.tasks else challenge.tasks
    names = {task.name for task in challenge.tasks}
    if absent := sorted(names - {task.name for task in tasks}):
        raise BadInput(
            f"agent {agent.name} leaves out {absent[0]}; its tasks must be those of {challenge.name}, all of them"
        )
    if unknown := [task.name for task in tasks if task.name not in names]:
        raise BadInput(
            f"agent {agent.name} works on {unknown[0]}, which is no task of {challenge.name}; "
            f"its folder must be called like one of {', '.join(sorted(names))}"
        )
    config = _write_config(agent, folder)
    return tuple(_build_task(challenge, agent, replace(task, config=config), given) for task in tasks)


def _build_task(challenge: Challenge, agent: ChallengeAgent, task: CampaignTask, given: OptionValues) -> CampaignTask:
    loaded = load_task(Path(task.path), Path(task.config) if task.config else None)
    options = merge_options(given, agent.build_options(loaded.instruction))
    held = given.timeout_seconds or loaded.verify_timeout_seconds
    if challenge.tables.limits.seconds is not None and challenge.tables.limits.seconds <= held:
        raise BadInput(
            f"[limits] seconds = {challenge.tables.limits.seconds:g} leaves no time for {task.name}, as {held:g} "
            "are held for its last verification; raise it, or lower --timeout"
        )
    return replace(task, name=f"{agent.name}.{task.name}", agent=agent.name, options=options)


def merge_options(given: OptionValues, own: OptionValues) -> OptionValues:
    """Return *own*, with the options of *given* that it leaves open; a 0 is a choice."""
    unchosen = OptionValues()
    chosen = {name: getattr(own, name) for name in own.__struct_fields__}
    return replace(given, **{name: value for name, value in chosen.items() if value != getattr(unchosen, name)})


def _write_config(agent: ChallengeAgent, folder: Path) -> str:
    text = agent.build_config()
    if not text:
        return agent.config
    path = folder / CONFIGS / f"{agent.name}.toml"
    with explain_disk_faults(f"cannot write {path}"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return str(path)


def list_names(plan: CampaignPlan) -> tuple[str, ...]:
    """Return the names of the agents of *plan*, in their order."""
    return tuple(dict.fromkeys(task.agent for task in plan.tasks))
