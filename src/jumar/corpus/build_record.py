"""Builds the record of a kept edit from the disk of its run, without traces of the machine it ran on."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path, PurePosixPath

import msgspec

from jumar.core.state import events as ev
from jumar.core.state.settings import Suite
from jumar.corpus.kept_edits import ClaimedTest, KeptTurn, LeftOut, VerifiedTurn
from jumar.corpus.schema import (
    CODEMOD,
    RED_GREEN,
    SCHEMA,
    ClaimRecord,
    CostRecord,
    EditOrigin,
    EditRecord,
    File,
    GreenRecord,
    Record,
    RecordedTest,
    RecordedVerification,
    RedRecord,
    TextRecord,
)
from jumar.languages.test_annotations import find_known_sites
from jumar.runs.setup.assembly import load_runner
from jumar.task.resolve import OFFLINE
from jumar.workspace.files import trees
from jumar.workspace.files.trees import EntryKind, Manifest
from jumar.workspace.patch import make_best_patch
from jumar.workspace.store.object_store import Store


class RecordTrees(Store):
    """Object store of a run, with trees that the run never had, from its files. Writes nothing there."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._drawn: dict[str, Manifest] = {}
        self._held: dict[str, bytes] = {}

    def add(self, manifest: Manifest, held: Mapping[str, bytes] | None = None) -> str:
        """Remember *manifest*, and the bytes of files it names; return the tree's hash."""
        tree = sha256(trees.encode(manifest)).hexdigest()
        self._drawn[tree] = manifest
        self._held |= held or {}
        return tree

    def manifest(self, tree: str) -> Manifest:
        """Return the manifest of *tree*: the node at each path."""
        return self._drawn[tree] if tree in self._drawn else super().manifest(tree)

    def get(self, digest: str) -> bytes:
        """Return the bytes named *digest*."""
        return self._held[digest] if digest in self._held else super().get(digest)


def build_record(store: RecordTrees, start: ev.RunStart, kept: KeptTurn) -> Record | LeftOut:
    """Return the record of the *kept* edits in the run that *start* began, or why it cannot be built."""
    suite, shown = start.settings.suite, PathScrubber.create(start)
    changed = trees.find_differences(kept.before, kept.after)
    files = tuple(_build_file(store, path, kept) for path in changed if _is_present(path, kept))
    if not files:
        return LeftOut(kept.seqs[0], "it changes nothing but empty folders")
    if any("\ud800" <= c <= "\udfff" for path in changed for c in path):
        return LeftOut(kept.seqs[0], "the name of a file in it is no UTF-8")
    before, after = store.add(kept.before), store.add(kept.after)
    reds = {claim.red.seq: claim.red for claim in kept.claims} or {kept.before_it.seq: kept.before_it}
    return Record(
        schema=SCHEMA,
        kind=CODEMOD if kept.codemod else RED_GREEN,
        codemod=_build_origin(*kept.codemod) if kept.codemod else EditOrigin(),
        id=f"{start.run}:{kept.seqs[0]}",
        run=start.run,
        task=start.task,
        instruction=start.settings.instruction,
        agent=start.agent,
        model=_clean_model_name(start.model),
        gate=start.gate,
        runner=suite.runner,
        suite=_encode_suite(suite),
        seq=kept.seqs[0],
        start_tree=start.tree,
        judged=tuple(kept.green.runs),
        tests=tuple(_build_test(store, suite, kept, claim) for claim in kept.claims),
        red=tuple(_build_verification(reds[seq], shown) for seq in sorted(reds)),
        edit=_build_edit(kept, (before, after), files, TextRecord.encode(make_best_patch(store, before, after))),
        green=_build_verification(kept.green, shown),
        best_seq=kept.best,
        cost=CostRecord(**msgspec.structs.asdict(kept.spent), shared_by=kept.shared_by),
    )


def _build_edit(kept: KeptTurn, sides: tuple[str, str], files: tuple[File, ...], patch: TextRecord) -> EditRecord:
    return EditRecord(
        seqs=kept.seqs,
        tree_before=sides[0],
        tree_after=sides[1],
        files=files,
        patch_encoding=patch.encoding,
        patch=patch.texts[0],
    )


def _build_origin(seq: int, event: ev.Codemod) -> EditOrigin:
    return EditOrigin(
        seq=seq,
        tool=event.tool,
        command=event.command,
        pattern=event.pattern,
        replacement=event.replacement,
        renames=json.dumps(dict(event.renames), sort_keys=True) if event.renames else "",
    )


def _is_present(path: str, kept: KeptTurn) -> bool:
    """Return whether one of the sides has more than an empty folder at *path*."""
    return any((n := side.get(path)) and n.kind is not EntryKind.DIR for side in (kept.before, kept.after))


def _build_file(store: Store, path: str, kept: KeptTurn) -> File:
    nodes = [n if (n := side.get(path)) and n.kind is not EntryKind.DIR else None for side in (kept.before, kept.after)]
    text = TextRecord.encode(*(store.get(n.sha256) if n else b"" for n in nodes))
    modes, digests = [n.mode if n else "" for n in nodes], [n.sha256 if n else "" for n in nodes]
    return File(
        path=path,
        encoding=text.encoding,
        before=text.texts[0],
        after=text.texts[1],
        before_mode=modes[0],
        after_mode=modes[1],
        before_sha256=digests[0],
        after_sha256=digests[1],
    )


def _build_test(store: Store, suite: Suite, kept: KeptTurn, claim: ClaimedTest) -> RecordedTest:
    red_seq, red = claim.red.runs[claim.test_id]
    green_seq, green = kept.green.runs[claim.test_id]
    source, site = _find_source(store, suite, kept.before, red)
    return RecordedTest(
        id=claim.test_id,
        id_source=red.test_id_source,
        path=red.file,
        source=source,
        first_line=site[0],
        last_line=site[1],
        red=RedRecord(
            seq=red_seq,
            verification=claim.red.seq,
            tree=claim.red.tests.tree,
            status=red.status,
            outcome=red.outcome,
            blame=red.blame or "",
            absent=red.absent,
        ),
        claim=ClaimRecord(seq=claim.seq, edit_target=claim.target),
        green=GreenRecord(seq=green_seq, status=green.status, outcome=green.outcome),
    )


def _find_source(store: Store, suite: Suite, before: Manifest, run: ev.TestRun) -> tuple[str, tuple[int, int]]:
    """Return the lines of a test and their place; empty if its file's syntax tree does not show it."""
    there = before.get(run.file)
    if there is None or there.kind is not EntryKind.FILE:
        return "", (0, 0)
    data = store.get(there.sha256)
    name = run.test_id.partition("[")[0]
    for site in find_known_sites(run.file, data, load_runner(suite.runner)):
        if site.id in (name, run.test_id):
            lines = data.splitlines(keepends=True)[site.start - 1 : site.end]
            return b"".join(lines).decode("utf-8", "backslashreplace"), (site.start, site.end)
    return "", (0, 0)


def _build_verification(verified: VerifiedTurn, shown: PathScrubber) -> RecordedVerification:
    tests = verified.tests
    return RecordedVerification(
        seq=verified.seq,
        trigger=tests.trigger,
        tree=tests.tree,
        passed=tests.passed,
        failed=tests.failed,
        errors=tests.errors,
        total=tests.total,
        grade=tests.grade,
        sandbox=tests.sandbox,
        executions=tests.executions,
        output=shown.scrub(verified.output),
    )


def _encode_suite(suite: Suite) -> str:
    """Return *suite* without the interpreter, which is the machine's."""
    plain = {k: v for k, v in msgspec.to_builtins(suite).items() if k != "python"}
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


def _clean_model_name(name: str) -> str:
    """Return the *name* of a model, of a script without the folder."""
    kind, colon, rest = name.partition(":")
    return f"{kind}:{PurePosixPath(rest).name}" if colon and kind in OFFLINE else name


class PathScrubber(msgspec.Struct, frozen=True):
    """Removes folders of the machine from texts that a model saw: rooms, the task's, the interpreter's."""

    folders: tuple[tuple[str, str], ...]

    @classmethod
    def create(cls, start: ev.RunStart) -> PathScrubber:
        """Build the scrubber of the run that *start* begins."""
        settings = start.settings
        python = str(PurePosixPath(settings.suite.python).parent.parent) if settings.suite.python else ""
        named = {settings.origin: ".", python: "PYTHON"}
        return cls(tuple((path, name) for path, name in named.items() if len(path) > 1))

    def scrub(self, text: str) -> str:
        """Return *text* without those folders, and as valid UTF-8."""
        text = _WORD.sub(_strip_folder, text)
        for path, name in self.folders:
            text = re.sub(rf"{re.escape(path)}(?![\w-])", name, text)  # the names have no backslash
        return text.encode("utf-8", "backslashreplace").decode()


_WORD = re.compile(r"[^\s'\"]+")
_ROOT = re.compile(r"(?<![\w.-])/")
"""Start of an absolute path."""
_END = re.compile(
    r"/(?:rooms/[0-9a-f]{8}(?![0-9a-f])/?|lib/python3[.]\d+/(?:site-packages/)?|(?=jumar/child/[\w/]+[.]py))"
)
"""End of the folder of a room, of a library or of jumar itself: each lies elsewhere on another machine."""


def _strip_folder(word: re.Match[str]) -> str:
    """Return a path from its task's folder on."""
    root = _ROOT.search(word[0])
    found = _END.search(word[0], root.start()) if root else None
    return word[0][: root.start()] + word[0][found.end() :] if root and found else word[0]
