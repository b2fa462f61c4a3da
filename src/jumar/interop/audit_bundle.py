"""Audits a bundle with nothing but its bytes: form, sums, hash chain, objects, the result by folding the journal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import msgspec

from jumar.core.state import events as ev
from jumar.core.state.run_state import RunState
from jumar.errors import BadInput
from jumar.interop import bundle_format as form
from jumar.interop.bundle import build_index, encode_index, encode_result, format_sums, get_last_line
from jumar.interop.needed_objects import list_named_trees, list_objects
from jumar.interop.stored_runs import StoredRun
from jumar.journal.audit import find_damage
from jumar.journal.line_format import JournalEnd, hash_line
from jumar.journal.read_groups import read_groups
from jumar.runs.setup.result import replay_state
from jumar.workspace.files import trees
from jumar.workspace.files.trees import Manifest


class BundleAudit(msgspec.Struct, frozen=True, kw_only=True):
    """Findings on a bundle."""

    ok: bool
    sha256: str
    """Of the whole file: what is signed, and compared with a signature."""
    run: str
    task: str
    stop: str
    grade: str
    events: int
    objects: int
    findings: tuple[str, ...]
    """Differences, one sentence each; empty: the bundle is as it was written."""


def audit_bundle(path: Path) -> BundleAudit:
    """Return the findings on the bundle at *path*. Nothing is unpacked, and no other file is read.

    Raises:
        BadInput: if it cannot be read, or is not in the form of a bundle; the sentence names the place.
    """
    try:
        with path.open("rb") as file:
            members = {member.name: member for member in form.read_members(file, str(path))}
            return _Bundle(file, members, str(path)).audit()
    except OSError as fault:
        raise BadInput(f"{path} cannot be read: {fault.strerror}; name a file of `jumar log bundle`") from fault


class _Bundle:
    """An open bundle whose form is right."""

    def __init__(self, file: IO[bytes], members: Mapping[str, form.Member], where: str) -> None:
        self._file, self._members, self._where = file, members, where
        for name in (form.INDEX, form.JOURNAL, form.RESULT, form.SUMS):
            if name not in members:
                raise BadInput(f"{where} holds no {name}, so it is no whole bundle; ask for a new one")

    def audit(self) -> BundleAudit:
        findings = [*self._check_order(), *self._check_sums()]
        journal = self._read(form.JOURNAL)
        entries, faults = self._check_journal(journal)
        findings += faults
        state = RunState()
        if not faults:
            try:
                state = replay_state(entries)
            except BadInput as fault:
                findings.append(str(fault))
        if state.start is None:
            findings.append(f"{form.JOURNAL} tells of no run")
        elif not faults:
            findings += self._check_contents(journal, entries, state)
        end, evidence = state.end, state.evidence
        return BundleAudit(
            ok=not findings,
            sha256=form.hash_whole(self._file),
            run=state.start.run if state.start else "",
            task=state.start.task if state.start else "",
            stop=str(end.stop) if end else "",
            grade=evidence.grade if evidence and state.best else "",
            events=len(entries),
            objects=len(self._list_objects()),
            findings=tuple(dict.fromkeys(findings)),
        )

    def _read(self, name: str) -> bytes:
        return form.read_member(self._file, self._members[name])

    def _list_objects(self) -> frozenset[str]:
        return frozenset(n.removeprefix(form.OBJECTS) for n in self._members if n.startswith(form.OBJECTS))

    def _check_order(self) -> Iterator[str]:
        kept = sorted(name for name in self._members if name.startswith(form.OBJECTS))
        if [*self._members] != [form.INDEX, form.JOURNAL, form.RESULT, *kept, form.SUMS]:
            yield "the members are not in the order of a bundle"

    def _check_sums(self) -> Iterator[str]:
        """Yield the members whose bytes differ from their recorded sums."""
        written = [(m.name, m.sha256) for m in self._members.values() if m.name != form.SUMS]
        text = self._read(form.SUMS)
        if text != format_sums(written):
            lines = dict(line.split(b"  ", 1)[::-1] for line in text.splitlines() if b"  " in line)
            wrong = [name for name, digest in written if lines.get(name.encode()) != digest.encode()]
            yield from (f"{name} was changed: {form.SUMS} names another hash" for name in wrong)
            if not wrong:
                yield f"{form.SUMS} was changed: it does not list the members, one by one"
        for member in self._members.values():
            if member.name.startswith(form.OBJECTS) and member.name != form.OBJECTS + member.sha256:
                yield f"{member.name} was changed: its bytes have another hash"

    def _check_journal(self, journal: bytes) -> tuple[tuple[ev.Entry, ...], list[str]]:
        """Return the entries of the *journal*, and the faults of its chain."""
        try:
            index = msgspec.json.decode(self._read(form.INDEX), type=_Head)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            index = _Head()
        found = [
            f"line {each.line} of {form.JOURNAL} {each.what}" for each in find_damage(BytesIO(journal), index.head)
        ]
        if found:
            return (), found
        try:
            return tuple(e for group in read_groups(BytesIO(journal), lambda _: None) for e in group.entries), []
        except BadInput as fault:
            return (), [str(fault)]

    def _check_contents(self, journal: bytes, entries: tuple[ev.Entry, ...], state: RunState) -> Iterator[str]:
        """Yield the members that do not follow from the journal, or are missing: index, result, objects."""
        head = JournalEnd(entries[-1].seq, hash_line(get_last_line(journal)))
        named = list_named_trees(entries)
        run = StoredRun(folder=Path(), entries=entries, state=state)
        yield from self._compare(form.INDEX, encode_index(build_index(entries, state.run, head, named)))
        yield from self._compare(form.RESULT, encode_result(run, head))
        kept = self._list_objects()
        wanted: set[str] = set()
        for tree in named:
            try:
                wanted |= list_objects([tree], self._get_manifest)
            except (ValueError, RecursionError) as fault:
                wanted.add(tree)
                yield f"tree {tree} cannot be read: {fault}"
        yield from (f"{form.OBJECTS}{digest} is missing" for digest in sorted(wanted - kept))
        yield from (f"{form.OBJECTS}{digest} belongs to no tree of the journal" for digest in sorted(kept - wanted))

    def _compare(self, name: str, expected: bytes) -> Iterator[str]:
        """Yield each key of the member *name* that does not follow from the journal. A newer jumar may add some."""
        try:
            told = msgspec.json.decode(self._read(name), type=dict[str, Any])
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            yield f"{name} was changed: it is no JSON object"
            return
        follows = msgspec.json.decode(expected, type=dict[str, Any])
        for key, value in told.items():
            if key not in follows or follows[key] != value:
                yield f"{name} was changed: {key[:80]!a} does not follow from the journal"

    def _get_manifest(self, tree: str) -> Manifest:
        if form.OBJECTS + tree not in self._members:
            raise ValueError("it is not in the bundle")
        return trees.decode(self._read(form.OBJECTS + tree))


class _Head(msgspec.Struct, frozen=True):
    """The field of the index that the chain needs."""

    head: JournalEnd = JournalEnd()
