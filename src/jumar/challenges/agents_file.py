"""Reads the agents of a challenge: their kinds, models by tier, prompts, or external commands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from jumar.challenges.challenge_file import CHALLENGE, ChallengeTables
from jumar.core.run.strategy import REPAIR
from jumar.core.state.run_state import EXTERNAL
from jumar.errors import BadInput
from jumar.task.option_values import OptionValues
from jumar.task.resolve import asks_provider
from jumar.task.settings.typed_file import decode_tables

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
"""Names of agents begin the names of runs."""

FILE_MODELS = ("script:", "replay:")
"""Models whose name ends with a path."""

TIERS = ("cheap", "mid", "frontier")


class AgentEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One agent, `[[agent]]`. Its file is the person's own: it may name commands and servers."""

    name: str
    agent: str = ""
    """Kind, as `--agent` takes it; empty: what the model asks for, or `external` if there is a command."""
    model: str = ""
    """Model, written like `--model`. A path in it is relative to the file, and may hold `{task}` and `{rollout}`."""
    models: Mapping[str, str] = {}
    """Tier -> model, for the tiers that do not ask `model`."""
    config: str = ""
    """File of defaults, such as `[routes.TIER]` tables with limits, relative to the file. It replaces `models`."""
    prompts: tuple[str, ...] = ()
    """Files that stand before the task's instruction: rules, examples. They are the agent's genome."""
    command: str = ""
    """Of an external agent."""
    env: tuple[str, ...] = ()
    """Variables that an external agent is given."""
    turn_seconds: float | None = None
    allow_unmetered: bool = False
    base_url: str | None = None
    price: str | None = None
    temperature: float | None = None
    gate: str | None = None
    test_policy: str | None = None
    attempts: Annotated[int, msgspec.Meta(gt=0)] | None = None
    turns: Annotated[int, msgspec.Meta(gt=0)] | None = None
    text_actions: bool = False
    tasks: tuple[str, ...] = ()
    """The challenge's tasks in its own language, relative to the file; empty: those of the challenge."""


class ModelTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[judge]` or `[proposer]`: a model that is asked beside the agents.

    It stands in the person's own file, as it is sent the key of its provider, and spends money.
    """

    model: str = ""
    """Model, written like `--model`; a script's path is relative to the file. Empty: none is asked."""
    base_url: str = ""
    price: str = ""
    usd: Annotated[float, msgspec.Meta(gt=0)] = 5.0
    """Cap on what it may cost: a judge in one session, a proposer in all generations."""


class AgentTables(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file `agents.toml`."""

    judge: ModelTable = ModelTable()
    proposer: ModelTable = ModelTable()
    agent: Annotated[tuple[AgentEntry, ...], msgspec.Meta(min_length=1)]


class ChallengeAgent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent whose files were read."""

    entry: AgentEntry
    folder: str
    """Folder that its paths are relative to."""
    genome: str
    """Text of its prompts."""
    how: str = ""
    """Sentence on how it differs from the agent that it is a variant of; empty: it is none."""

    @property
    def name(self) -> str:
        """Return its name."""
        return self.entry.name

    @property
    def reads_prompts(self) -> bool:
        """Return whether prompts make a difference to it."""
        return REPAIR not in (self.entry.agent, self.entry.model)

    @property
    def sends_temperature(self) -> bool:
        """Return whether a temperature may be chosen for it: an external agent and a script take none."""
        return bool(self.entry.model) and asks_provider(self.entry.model) and not self.entry.command

    def build_options(self, instruction: str) -> OptionValues:
        """Return the options of its runs on a task that says *instruction*."""
        entry = self.entry
        chosen: dict[str, Any] = {
            name: getattr(entry, name)
            for name in ("base_url", "price", "temperature", "gate", "test_policy", "attempts", "turns", "turn_seconds")
        }
        return OptionValues(
            **chosen,
            agent=entry.agent or (EXTERNAL if entry.command else None),
            model=locate_model(entry.model, Path(self.folder)) if entry.model else None,
            text_actions=entry.text_actions,
            agent_command=entry.command or None,
            agent_env=entry.env,
            allow_unmetered=entry.allow_unmetered,
            instruction="\n\n".join(part for part in (self.genome, instruction) if part) if self.genome else None,
        )

    @property
    def config(self) -> str:
        """Return the path of its file of defaults; empty: it has none."""
        return str(Path(self.folder, self.entry.config)) if self.entry.config else ""

    def build_config(self) -> str:
        """Return a file of defaults with the routes of its tiers; empty: it needs none."""
        return "".join(
            f"[routes.{tier}]\nmodel = {msgspec.json.encode(model).decode()}\n\n"
            for tier, model in self.entry.models.items()
        )


def locate_model(model: str, folder: Path) -> str:
    """Return *model* with the path in it, of a script or a recording, made absolute from *folder*."""
    kind = next((kind for kind in FILE_MODELS if model.startswith(kind)), "")
    return f"{kind}{folder / model.removeprefix(kind)}" if kind else model


class ReadAgents(NamedTuple):
    """Agents, and the models beside them, of one file."""

    agents: tuple[ChallengeAgent, ...]
    judge: ModelTable
    proposer: ModelTable


def load_agents(path: Path) -> ReadAgents:
    """Return the agents in the file *path*, and the models that judge them and propose variants.

    Raises:
        BadInput: if it, or a prompt that it names, cannot be read, or its entries contradict themselves or each other.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read the agents in {path}: {error.strerror}") from None
    tables = decode_tables(
        data, AgentTables, str(path), dict.fromkeys(ChallengeTables.__struct_fields__, f"the challenge ({CHALLENGE})")
    )
    folder, entries = path.resolve().parent, tables.agent
    seen = set[str]()
    for entry in entries:
        if not NAME.fullmatch(entry.name):
            raise BadInput(f"{path}: {entry.name!r} is no name of an agent: up to 40 letters, digits, - and _")
        if entry.name.lower() in seen:
            raise BadInput(f"{path}: two agents are called {entry.name}; give one of them another name")
        seen.add(entry.name.lower())
        _check_entry(entry, path)
    agents = tuple(ChallengeAgent(entry=e, folder=str(folder), genome=_read_prompts(folder, e)) for e in entries)
    judge, proposer = (
        replace(table, model=locate_model(table.model, folder)) for table in (tables.judge, tables.proposer)
    )
    return ReadAgents(agents, judge, proposer)


def _check_entry(entry: AgentEntry, path: Path) -> None:
    where = f"{path}: agent {entry.name}"
    if entry.command and entry.agent not in ("", EXTERNAL):
        raise BadInput(f"{where} has a command, which is for {EXTERNAL} agents, and is to be {entry.agent}; drop one")
    if not (entry.command or entry.model or entry.models or entry.agent):
        raise BadInput(f"{where} has neither a model nor a command; give it one")
    if unknown := [tier for tier in entry.models if tier not in TIERS]:
        raise BadInput(f"{where}: there is no tier {unknown[0]!r}; they are {', '.join(TIERS)}")
    if entry.config and entry.models:
        raise BadInput(f"{where} has models and a config; write the models into the config")
    if entry.prompts and REPAIR in (entry.agent, entry.model):
        raise BadInput(f"{where} is {REPAIR}, which reads no prompts; leave them out")


def _read_prompts(folder: Path, entry: AgentEntry) -> str:
    try:
        return "\n\n".join((folder / name).read_text("utf-8").strip() for name in entry.prompts)
    except OSError as error:
        raise BadInput(f"cannot read the prompt {error.filename} of agent {entry.name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"a prompt of agent {entry.name} is no UTF-8 text") from None
