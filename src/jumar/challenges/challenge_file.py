"""Reads a challenge: its tasks, the points of each axis, principles, scar rules and limits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec

from jumar.campaigns.find_tasks import find_tasks
from jumar.campaigns.plan import CampaignTask
from jumar.errors import BadInput
from jumar.scorers.axes import AxisPoints
from jumar.scorers.principles.principle import Principle
from jumar.scorers.scars.rule import load_rules
from jumar.scorers.scars.search import ScarSearch
from jumar.task.settings.typed_file import decode_tables

CHALLENGE = "challenge.toml"

Amount = Annotated[float, msgspec.Meta(gt=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]

PRINCIPLES = 10
"""Principles that one challenge may have."""


class LimitTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[limits]`: resources that each agent may use."""

    seconds: Amount | None = None
    """Of one run."""
    usd: Amount | None = None
    """Of one agent, over all its runs: each has an equal share."""
    tokens: Annotated[int, msgspec.Meta(gt=0)] | None = None
    """Of one run."""


class ScarTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[scars]`: rules that take points."""

    shipped: bool = True
    """False: the rules that come with jumar take none."""
    rules: tuple[str, ...] = ()
    """TOML files of more rules, relative to the challenge."""


class JudgeTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[judge]`: how far a judge is trusted. The person chooses its model, in the file of agents."""

    tier: Literal["mid", "frontier"] = "mid"
    gate: Share = 0.5
    """Share of the tests that must pass, and more, before a run is judged."""
    repeat: Annotated[int, msgspec.Meta(ge=1, le=9)] = 3
    """Times that a run is judged; the mark that most of them give counts."""
    calibration: Share = 0.8
    """Share of the calibration examples that the judge must mark as its author did."""
    agreement: Share = 0.8
    """Share of its marks in which the judge must agree with itself."""


class LinterTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[linter]]`: a linter whose findings, as SARIF on standard output, take points as scars."""

    command: str
    """Command for a shell, in a sandbox; `{files}` stands for the changed files."""
    points: Amount = 1
    """Of each of its rules."""
    rules: tuple[str, ...] = ()
    """Ids of the rules that count; empty: all."""


class GenerationTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[generations]`: how variants of the best agent are found."""

    variants: Annotated[int, msgspec.Meta(ge=1, le=50)] = 3
    """Of one generation."""
    lines: tuple[str, ...] = ()
    """Sentences that may be added to a genome."""


class ChallengeTables(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file `challenge.toml`."""

    name: str = ""
    tasks: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    """Folders, task files, globs or lists, relative to the challenge."""
    rollouts: Annotated[int, msgspec.Meta(ge=1, le=9999)] = 1
    points: AxisPoints = AxisPoints()
    limits: LimitTable = LimitTable()
    judge: JudgeTable = JudgeTable()
    scars: ScarTable = ScarTable()
    generations: GenerationTable = GenerationTable()
    principle: Annotated[tuple[Principle, ...], msgspec.Meta(max_length=PRINCIPLES)] = ()
    linter: tuple[LinterTable, ...] = ()


class Challenge(NamedTuple):
    """A challenge that was read and holds together."""

    name: str
    folder: Path
    """The folder that its paths are relative to."""
    tables: ChallengeTables
    tasks: tuple[CampaignTask, ...]
    scars: ScarSearch
    """Search by its rules, all of which hold what their examples say."""


def load_challenge(path: Path) -> Challenge:
    """Return the challenge in *path*, a `challenge.toml` or a folder with one.

    Raises:
        BadInput: if it cannot be read, or its parts do not fit.
    """
    place = path / CHALLENGE if path.is_dir() else path
    try:
        data = place.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read the challenge {place}: {error.strerror}") from None
    own = "the file of agents (--agents)"
    tables = decode_tables(data, ChallengeTables, str(place), {"agent": own, "proposer": own})
    folder = place.resolve().parent
    _check_principles(tables, place)
    rules = load_rules([folder / path for path in tables.scars.rules], shipped=tables.scars.shipped)
    tasks = find_tasks_below(folder, tables.tasks)
    return Challenge(tables.name or folder.name, folder, tables, tasks, ScarSearch(rules))


def find_tasks_below(folder: Path, words: tuple[str, ...]) -> tuple[CampaignTask, ...]:
    """Return the tasks that *words*, relative to *folder*, name.

    Raises:
        BadInput: as `find_tasks` does.
    """
    return find_tasks([str(folder / word) for word in words])


def _check_principles(tables: ChallengeTables, place: Path) -> None:
    names = [principle.name for principle in tables.principle]
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"{place}: two principles are called {name!r}; give one of them another name")
