"""Keeps the lineage of a search beside its campaigns: the variants of each generation, and each trial."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from jumar.challenges.agents_file import ChallengeAgent
from jumar.challenges.generations.search import Trial
from jumar.errors import BadInput
from jumar.workspace.files.disk_faults import explain_disk_faults
from jumar.workspace.files.safe_paths import replace_file

GENERATIONS, LINEAGE, GENOME = "generations", "lineage.jsonl", "genome.md"
"""Names in the campaign's folder: the campaigns of the search, its trials, and the genome that is left."""


class Proposer(Protocol):
    """Source of variants."""

    spent: float

    def propose(self, parent: ChallengeAgent, generation: int, trials: Sequence[Trial]) -> Sequence[ChallengeAgent]:
        """Return variants of *parent*."""
        ...


class StoredVariants(msgspec.Struct, frozen=True):
    """Variants of one generation, as they are stored."""

    variants: tuple[ChallengeAgent, ...]
    spent: float


class RememberedVariants:
    """Stores the proposals of *proposer* in *folder*: a resumed search tries the same variants."""

    def __init__(self, proposer: Proposer, folder: Path) -> None:
        self._proposer, self._folder = proposer, folder

    def propose(self, parent: ChallengeAgent, generation: int, trials: Sequence[Trial]) -> Sequence[ChallengeAgent]:
        """Return the variants of *parent* in this generation: those that are kept, or new ones.

        Raises:
            BadInput: if what is kept cannot be read.
        """
        path = self._folder / f"g{generation}-variants.json"
        if path.is_file():
            try:
                stored = msgspec.json.decode(path.read_bytes(), type=StoredVariants)
            except msgspec.MsgspecError as error:
                raise BadInput(f"{path} cannot be read: {error}; delete it to have variants proposed anew") from None
            self._proposer.spent = stored.spent
            return stored.variants
        variants = tuple(self._proposer.propose(parent, generation, trials))
        with explain_disk_faults(f"cannot write {path}"):
            replace_file(path, msgspec.json.encode(StoredVariants(variants, self._proposer.spent)) + b"\n")
        return variants


def append_trial(folder: Path, trial: Trial) -> None:
    """Write *trial* at the end of the lineage in *folder*.

    Raises:
        BadInput: if it cannot be written.
    """
    path = folder / LINEAGE
    with explain_disk_faults(f"cannot write {path}"), path.open("ab") as file:
        file.write(msgspec.json.encode(trial) + b"\n")


def load_lineage(folder: Path) -> tuple[Trial, ...]:
    """Return the trials of the search in *folder*; none, if there was no search.

    Raises:
        BadInput: if they cannot be read.
    """
    try:
        return tuple(msgspec.json.Decoder(Trial).decode_lines((folder / LINEAGE).read_bytes()))
    except FileNotFoundError:
        return ()
    except (OSError, msgspec.MsgspecError) as error:
        raise BadInput(f"{folder / LINEAGE} cannot be read: {error}") from None
