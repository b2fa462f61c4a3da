"""Writes a run as a bundle: journal, objects, result and environment in one reproducible file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import msgspec

from jumar.core.state import events as ev
from jumar.errors import BadInput
from jumar.interop import bundle_format as form
from jumar.interop.needed_objects import list_named_trees, list_objects
from jumar.interop.stored_runs import StoredRun, read_stored_run
from jumar.journal.line_format import JournalEnd, hash_line
from jumar.journal.writer import EVENTS
from jumar.runs.setup.result import build_result
from jumar.workspace.files.disk_faults import explain_output_faults
from jumar.workspace.files.safe_paths import make_temporary_name, sync
from jumar.workspace.store.object_store import Store
from jumar.workspace.store.shared import find_objects_folder

VERSION = 1


class BundleIndex(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The member `bundle.json`."""

    format: str = "jumar-bundle"
    version: int = VERSION
    run: str
    task: str
    head: JournalEnd
    """Number and hash of the journal's last line."""
    trees: tuple[str, ...]
    """The trees of the journal whose objects are in the bundle."""
    environment: dict[str, Any]
    """Machine and model by the journal: tiers of the sandbox, runner, interpreter."""


class WrittenBundle(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle that was written."""

    file: str
    sha256: str
    bytes: int
    objects: int
    events: int


def write_bundle(folder: Path, out: Path) -> WrittenBundle:
    """Write the run in *folder* to *out*.

    Raises:
        BadInput: if the run has no end, its journal is damaged, it is too large, or *out* cannot be written.
        Infra: if an object is missing or damaged.
    """
    run = read_stored_run(folder)
    if run is None or run.state.end is None:
        raise BadInput(
            f"the run in {folder} has not ended, so a bundle of it could change; end it: jumar resume {folder}"
        )
    parent = out.parent
    draft = parent / make_temporary_name()
    with explain_output_faults(out):
        try:
            with draft.open("w+b") as file:
                written = _write(run, file)
                digest = form.hash_whole(file)
                os.fsync(file.fileno())
            size = draft.stat().st_size
            draft.rename(out)
            sync(parent)
        finally:
            draft.unlink(missing_ok=True)
    return WrittenBundle(file=str(out), sha256=digest, bytes=size, objects=written, events=len(run.entries))


def _write(run: StoredRun, file: IO[bytes]) -> int:
    """Write the members of *run* in order; return the number of objects."""
    sums: list[tuple[str, str]] = []
    for name, data in _build_members(run):
        if file.tell() + len(data) > form.LIMIT_BYTES - len(sums) * 200 or len(sums) >= form.MEMBERS - 1:
            raise BadInput(f"the run {run.start.run} is larger than a bundle may be ({form.LIMIT_BYTES} bytes)")
        _put(file, name, data)
        sums.append((name, sha256(data).hexdigest()))
    _put(file, form.SUMS, format_sums(sums))
    file.write(form.ZEROS * 2)
    return sum(name.startswith(form.OBJECTS) for name, _ in sums)


def _build_members(run: StoredRun) -> Iterator[tuple[str, bytes]]:
    journal = read_whole_journal(run)
    head = JournalEnd(run.entries[-1].seq, hash_line(get_last_line(journal)))
    trees = list_named_trees(run.entries)
    yield form.INDEX, encode_index(build_index(run.entries, run.start, head, trees))
    yield form.JOURNAL, journal
    yield form.RESULT, encode_result(run, head)
    store = Store(find_objects_folder(run.folder))
    for digest in sorted(list_objects(trees, store.manifest)):
        yield form.OBJECTS + digest, store.get(digest)


def read_whole_journal(run: StoredRun) -> bytes:
    """Return the bytes of the journal, which must not have grown since *run* was read."""
    data = (run.folder / EVENTS).read_bytes()
    if data.count(b"\n") != len(run.entries) or not data.endswith(b"\n"):
        raise BadInput(
            f"the journal in {run.folder} is being written, or its end is torn; bundle it when the run ended"
        )
    return data


def get_last_line(journal: bytes) -> bytes:
    """Return the last line, without its newline."""
    return journal.removesuffix(b"\n").rpartition(b"\n")[2]


def build_index(
    entries: tuple[ev.Entry, ...], start: ev.RunStart, head: JournalEnd, trees: tuple[str, ...]
) -> BundleIndex:
    """Return the index that a bundle of this journal has: all of it follows from the journal."""
    tests = [entry.event for entry in entries if isinstance(entry.event, ev.Tests)]
    suite = start.settings.suite
    environment = {
        "runner": suite.runner,
        "python": suite.python,
        "sandboxes": sorted({event.sandbox for event in tests}),
        "model": start.model,
        "agent": start.agent,
        "notes": list(start.settings.notes),
    }
    return BundleIndex(run=start.run, task=start.task, head=head, trees=trees, environment=environment)


def encode_index(index: BundleIndex) -> bytes:
    """Return the bytes of `bundle.json`."""
    return msgspec.json.format(msgspec.json.encode(index)) + b"\n"


def encode_result(run: StoredRun, head: JournalEnd) -> bytes:
    """Return the bytes of `result.json`: the result as it follows from the journal, without a path of a machine."""
    result = build_result(run.state, Path(), head)
    return msgspec.json.format(msgspec.json.encode(result)) + b"\n"


def format_sums(sums: list[tuple[str, str]]) -> bytes:
    """Return the member `SHA256SUMS`, as `sha256sum -c` reads it."""
    return "".join(f"{digest}  {name}\n" for name, digest in sums).encode()


def _put(file: IO[bytes], name: str, data: bytes) -> None:
    file.write(form.build_header(name, len(data)))
    file.write(data)
    file.write(form.pad(len(data)))
