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
    """Object store of a run, with trees that the run never had, from files it never saw. Writes nothing there."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._drawn: dict[str, Manifest] = {}
        self._held: dict[str, bytes] = {}

    def draw(self, manifest: Manifest, held: Mapping[str, bytes] | None = None) -> str:
        """Remember *manifest*, and the bytes of files it names; the tree's hash."""
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
    """Return the record of what was *kept* in the run that *start* began, or why there is none."""
    suite, shown = start.settings.suite, PathScrubber.of(start)
    changed = trees.find_differences(kept.before, kept.after)
    files = tuple(_file(store, path, kept) for path in changed if _solid(path, kept))
    if not files:
        return LeftOut(kept.seqs[0], "it changes nothing but empty folders")
    if any("\ud800" <= c <= "\udfff" for path in changed for c in path):
        return LeftOut(kept.seqs[0], "the name of a file in it is no UTF-8")
    before, after = store.draw(kept.before), store.draw(kept.after)
    reds = {claim.red.seq: claim.red for claim in kept.claims} or {kept.before_it.seq: kept.before_it}
    return Record(
        schema=SCHEMA,
        kind=CODEMOD if kept.codemod else RED_GREEN,
        codemod=_made(*kept.codemod) if kept.codemod else EditOrigin(),
        id=f"{start.run}:{kept.seqs[0]}",
        run=start.run,
        task=start.task,
        instruction=start.settings.instruction,
        agent=start.agent,
        model=_model(start.model),
        gate=start.gate,
        runner=suite.runner,
        suite=_suite(suite),
        seq=kept.seqs[0],
        start_tree=start.tree,
        judged=tuple(kept.green.runs),
        tests=tuple(_test(store, suite, kept, claim) for claim in kept.claims),
        red=tuple(_seen(reds[seq], shown) for seq in sorted(reds)),
        edit=_edit(kept, (before, after), files, TextRecord.of(make_best_patch(store, before, after))),
        green=_seen(kept.green, shown),
        best_seq=kept.best,
        cost=CostRecord(**msgspec.structs.asdict(kept.spent), shared_by=kept.shared_by),
    )


def _edit(kept: KeptTurn, sides: tuple[str, str], files: tuple[File, ...], patch: TextRecord) -> EditRecord:
    return EditRecord(
        seqs=kept.seqs,
        tree_before=sides[0],
        tree_after=sides[1],
        files=files,
        patch_encoding=patch.encoding,
        patch=patch.texts[0],
    )


def _made(seq: int, event: ev.Codemod) -> EditOrigin:
    return EditOrigin(
        seq=seq,
        tool=event.tool,
        command=event.command,
        pattern=event.pattern,
        replacement=event.replacement,
        renames=json.dumps(dict(event.renames), sort_keys=True) if event.renames else "",
    )


def _solid(path: str, kept: KeptTurn) -> bool:
    """Return whether something other than an empty folder stands at *path* on one of the sides."""
    return any((n := side.get(path)) and n.kind is not EntryKind.DIR for side in (kept.before, kept.after))


def _file(store: Store, path: str, kept: KeptTurn) -> File:
    nodes = [n if (n := side.get(path)) and n.kind is not EntryKind.DIR else None for side in (kept.before, kept.after)]
    text = TextRecord.of(*(store.get(n.sha256) if n else b"" for n in nodes))
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


def _test(store: Store, suite: Suite, kept: KeptTurn, claim: ClaimedTest) -> RecordedTest:
    red_seq, red = claim.red.runs[claim.test_id]
    green_seq, green = kept.green.runs[claim.test_id]
    source, site = _source(store, suite, kept.before, red)
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


def _source(store: Store, suite: Suite, before: Manifest, run: ev.TestRun) -> tuple[str, tuple[int, int]]:
    """Return the lines of a test and where they stand; nothing where its file's syntax tree does not show it."""
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


def _seen(verified: VerifiedTurn, shown: PathScrubber) -> RecordedVerification:
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
        output=shown.plain(verified.output),
    )


def _suite(suite: Suite) -> str:
    """Return *suite* without the interpreter, which is the machine's."""
    plain = {k: v for k, v in msgspec.to_builtins(suite).items() if k != "python"}
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


def _model(name: str) -> str:
    """*name*, of a script without the folder that it lay in."""
    kind, colon, rest = name.partition(":")
    return f"{kind}:{PurePosixPath(rest).name}" if colon and kind in OFFLINE else name


class PathScrubber(msgspec.Struct, frozen=True):
    """Removes machine-specific folders from what a model was shown: rooms, the task's folder, the interpreter's."""

    folders: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, start: ev.RunStart) -> PathScrubber:
        """Build the instance for the run that *start* begins."""
        settings = start.settings
        python = str(PurePosixPath(settings.suite.python).parent.parent) if settings.suite.python else ""
        named = {settings.origin: ".", python: "PYTHON"}
        return cls(tuple((path, name) for path, name in named.items() if len(path) > 1))

    def plain(self, text: str) -> str:
        """Return *text* without them, and without what UTF-8 cannot say."""
        text = _WORD.sub(_without_folder, text)
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


def _without_folder(word: re.Match[str]) -> str:
    """Return a path from there on."""
    root = _ROOT.search(word[0])
    found = _END.search(word[0], root.start()) if root else None
    return word[0][: root.start()] + word[0][found.end() :] if root and found else word[0]
