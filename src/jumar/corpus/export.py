"""Builds a corpus: a red-edit-green record for each kept edit.

The same journals give the same bytes, wherever they lie.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from jumar.core.state import events as ev
from jumar.corpus.build_record import RecordTrees, build_record
from jumar.corpus.kept_edits import LeftOut, find_accepted_edits
from jumar.corpus.schema import Record
from jumar.errors import BadInput
from jumar.journal.writer import EVENTS
from jumar.runs.setup.believed import read_believed
from jumar.workspace.files import trees
from jumar.workspace.store.object_store import Store
from jumar.workspace.store.shared import find_objects_folder


class Corpus(msgspec.Struct, frozen=True):
    """The records of some runs, in order, and the kept edits without a record."""

    records: tuple[Record, ...]
    left: tuple[str, ...]
    """Edits that were kept and are no triple, one sentence each."""
    runs: int
    folders: Mapping[str, Path]
    """Run -> the directory it was read from."""


def find_run_directories(places: Iterable[Path]) -> tuple[Path, ...]:
    """Return the run directories at or below *places*, at any depth, each once. No run is searched inside.

    Raises:
        BadInput: if one of them holds none.
    """
    found: dict[Path, Path] = {}
    for place in places:
        here = sorted(_find_below(place))
        if not here:
            raise BadInput(f"{place} is no run and holds none (no {EVENTS}); name the directory of a run, or of runs")
        for folder in here:
            found.setdefault(folder.resolve(), folder)
    return tuple(found.values())


def refuse_inside_runs(runs: Iterable[Path], *places: Path) -> None:
    """Refuse to write to one of *places* that lies in one of *runs*: that would destroy its journal.

    Raises:
        BadInput: naming both.
    """
    for folder in runs:
        for place in places:
            if place.resolve().is_relative_to(folder.resolve()):
                raise BadInput(f"{place} lies in the run {folder}, which nothing is written to; name another place")


def _find_below(place: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(place):
        if EVENTS in files:
            folders.clear()  # a workspace may hold what looks like a run
            yield Path(folder)


def build_corpus(places: Iterable[Path]) -> Corpus:
    """Return the corpus of the runs in *places*, in the order of their names, each run once.

    Raises:
        BadInput: if a journal is damaged, tells what cannot have happened, or two different ones have one name.
        Infra: if an object is missing or damaged.
    """
    read: dict[str, tuple[Path, tuple[ev.Entry, ...]]] = {}
    for folder in find_run_directories(places):
        entries, _ = read_believed(folder)
        if not entries or not isinstance(first := entries[0].event, ev.RunStart):
            continue
        there, known = read.setdefault(first.run, (folder, entries))
        if known != entries:
            raise BadInput(
                f"{there} and {folder} are two different runs of the name {first.run}; leave one of them out"
            )
    records: list[Record] = []
    left: list[str] = []
    for run, (folder, entries) in sorted(read.items()):
        for one in _build_records(RecordTrees(find_objects_folder(folder)), entries):
            if isinstance(one, Record):
                records.append(one)
            else:
                left.append(f"{run}, edit {one.seq}: {one.why}")
    return Corpus(tuple(records), tuple(left), len(read), {run: folder for run, (folder, _) in read.items()})


def _build_records(store: RecordTrees, entries: tuple[ev.Entry, ...]) -> Iterator[Record | LeftOut]:
    start = entries[0].event
    if isinstance(start, ev.RunStart):
        for one in find_accepted_edits(entries, store.manifest):
            yield one if isinstance(one, LeftOut) else build_record(store, start, one)


def load_trees(folder: Path) -> RecordTrees:
    """Return the objects of the run in *folder*, and the trees that its records begin from.

    Some lay between two of its own.

    Raises:
        BadInput: if its journal is damaged.
    """
    store = RecordTrees(find_objects_folder(folder))
    for one in find_accepted_edits(read_believed(folder)[0], store.manifest):
        if not isinstance(one, LeftOut):
            store.add(one.before)
    return store


def keep_bases(corpus: Corpus, into: Path) -> None:
    """Store in *into* the trees that the records of *corpus* begin from: then the corpus needs its runs no more.

    Raises:
        Infra: if an object is missing or damaged, or the disk refuses.
    """
    kept = Store(into)
    for run in dict.fromkeys(record.run for record in corpus.records):
        store = load_trees(corpus.folders[run])
        for tree in dict.fromkeys(r.edit.tree_before for r in corpus.records if r.run == run):
            manifest = store.manifest(tree)
            contents = (store.get(digest) for digest in sorted({n.sha256 for n in manifest.values()} - {""}))
            kept.put_all([*contents, trees.encode(manifest)])
