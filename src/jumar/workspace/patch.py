"""Makes patches by git from trees alone: no file of the task and no setting of the person takes part."""

from __future__ import annotations

import difflib
import shutil
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from io import StringIO
from pathlib import Path

import msgspec

from jumar.errors import BadInput, Infra
from jumar.workspace.files import trees
from jumar.workspace.files.disk_faults import explain_disk_faults
from jumar.workspace.files.trees import EntryKind, Manifest, Node
from jumar.workspace.git import NO_SETTINGS, explain_failure, run_git
from jumar.workspace.store.object_store import Store

_SETTINGS = (
    "core.attributesFile=/dev/null", "core.autocrlf=false", "core.protectNTFS=false", "core.protectHFS=false",
    "core.quotePath=true",
)  # fmt: skip
_DIFF = (
    "diff-tree", "-r", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color",
    "--src-prefix=a/", "--dst-prefix=b/",
)  # fmt: skip


def make_best_patch(store: Store, base: str, best: str) -> bytes:
    """Return the changes from *base* to *best* as a patch for `git apply`: binary, links, bits and deletions.

    Git knows no empty folders, so those are not in it.

    Raises:
        BadInput: if there is no git.
        Infra: if git fails.
    """
    return _run_on_trees(store, base, best, _DIFF)


class DiffStat(msgspec.Struct, frozen=True):
    """Number of changed lines of a file; None if it is not text."""

    path: str
    added: int | None
    removed: int | None


def count_changed_lines(store: Store, base: str, best: str) -> tuple[DiffStat, ...]:
    """Count the lines that *best* added and removed in each file of *base*, by path.

    Raises:
        BadInput: if there is no git.
        Infra: if git fails.
    """
    rows = _run_on_trees(store, base, best, ("diff-tree", "-r", "--numstat", "-z", "--no-renames")).split(b"\0")
    counted = []
    for row in filter(None, rows):
        added, removed, path = row.split(b"\t", 2)
        numbers = [None if number == b"-" else int(number) for number in (added, removed)]
        counted.append(DiffStat(path.decode(errors="surrogateescape"), numbers[0], numbers[1]))
    return tuple(counted)


def find_git() -> str:
    """Return the path of git, which makes the patch of a run.

    Raises:
        BadInput: if there is none.
    """
    program = shutil.which("git")
    if program is None:
        raise BadInput("git was not found on PATH; install it to get best.patch")
    return program


def _run_on_trees(store: Store, base: str, best: str, words: tuple[str, ...]) -> bytes:
    """Run git with *words* on the trees *base* and *best*; return its output, or nothing if they are equal."""
    old, new = store.manifest(base), store.manifest(best)
    changed = trees.find_differences(old, new)
    if not changed:
        return b""
    program = find_git()
    with (
        explain_disk_faults("the patch cannot be made"),
        tempfile.TemporaryDirectory(prefix="jumar-patch-") as room,
    ):
        git = _Git(program, Path(room))
        git("init", "--quiet", "--bare", "--template=", str(git.room / "git"))
        sides = [{path: side[path] for path in changed if path in side} for side in (old, new)]
        names = git.store_blobs(store, sides)
        return git(*words, *(git.build_tree(side, names) for side in sides))


def explain_misfit(store: Store, patch: bytes, before: Manifest, after: Manifest) -> str:
    """Explain why *patch* does not lead from *before* to *after* and back; empty if it does.

    Empty folders do not count.

    Raises:
        BadInput: if there is no git.
        Infra: if the disk refuses.
    """
    program = shutil.which("git")
    if program is None:
        raise BadInput("git was not found on PATH; install it to have patches checked")
    with (
        explain_disk_faults("the patch cannot be checked"),
        tempfile.TemporaryDirectory(prefix="jumar-patch-") as room,
    ):
        git = _Git(program, Path(room))
        git("init", "--quiet", "--bare", "--template=", str(git.room / "git"))
        sides = [dict(before), dict(after)]
        names = git.store_blobs(store, sides)
        old, new = (git.build_tree(side, names) for side in sides)
        for way, start, end in (((), old, new), (("--reverse",), new, old)):
            git("read-tree", start)
            try:
                git("apply", "--cached", "--whitespace=nowarn", *way, send=patch)
            except Infra as fault:
                return str(fault)
            if git("write-tree").decode().strip() != end:
                return f"the patch{' taken back' if way else ''} leads to other files"
    return ""


class _Git(msgspec.Struct, frozen=True):
    """git in a private folder: a bare repository and an environment of its own, no work tree."""

    program: str
    room: Path

    def __call__(self, *arguments: str, send: bytes = b"", index: str = "index") -> bytes:
        """Run git with *send* on its standard input; return its output."""
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        places = {"HOME": str(self.room), "GIT_DIR": str(self.room / "git"), "GIT_INDEX_FILE": str(self.room / index)}
        done = run_git(self.program, [*settings, *arguments], self.room, {**NO_SETTINGS, **places}, send)
        if done.returncode:
            raise Infra(f"git {arguments[0]} failed: {explain_failure(done)}")
        return done.stdout

    def store_blobs(self, store: Store, sides: list[dict[str, Node]]) -> dict[str, str]:
        """Store the contents of *sides* in git; return git's name of each, by sha256."""
        digests = sorted({node.sha256 for side in sides for node in side.values() if node.kind is not EntryKind.DIR})
        for digest in digests:
            (self.room / digest).write_bytes(store.get(digest))
        listed = "".join(f"{digest}\n" for digest in digests)
        names = self("hash-object", "-w", "--no-filters", "--stdin-paths", send=listed.encode()).decode().split()
        return dict(zip(digests, names, strict=True))

    def build_tree(self, side: dict[str, Node], names: dict[str, str]) -> str:
        """Return git's name of the tree of *side*."""
        index = sha256(trees.encode(side)).hexdigest() + ".index"
        lines = [
            f"{node.mode} {names[node.sha256]}\t{path}\0"
            for path, node in sorted(side.items())
            if node.kind is not EntryKind.DIR
        ]
        self("update-index", "-z", "--index-info", send="".join(lines).encode(errors="surrogateescape"), index=index)
        return self("write-tree", index=index).decode().strip()


def format_diff(store: Store, base: str, best: str) -> str:
    """Return the changes from *base* to *best* for people: unified text, or one line where there is no text."""
    old, new = store.manifest(base), store.manifest(best)
    return "".join(line for path in trees.find_differences(old, new) for line in _diff_path(store, path, old, new))


def _diff_path(store: Store, path: str, old: Manifest, new: Manifest) -> Iterator[str]:
    before, after = old.get(path), new.get(path)
    name = path.encode(errors="surrogateescape").decode(errors="backslashreplace")
    if before and after and before.mode != after.mode:
        yield f"{name}: mode {before.mode} -> {after.mode}\n"
    texts = [_read_lines(store, node) for node in (before, after)]
    if texts[0] is None or texts[1] is None:
        yield f"{name}: binary, {_describe_change(before, after)}\n"
        return
    if not any(texts):
        yield f"{name}: empty, {_describe_change(before, after)}\n" if not (before and after) else ""
    source, target = f"a/{name}" if before else "/dev/null", f"b/{name}" if after else "/dev/null"
    for line in difflib.unified_diff(texts[0], texts[1], source, target):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _describe_change(before: Node | None, after: Node | None) -> str:
    return "changed" if before and after else "new" if after else "deleted"


def _read_lines(store: Store, node: Node | None) -> list[str] | None:
    """Return the lines of *node*, empty for a folder or a missing one; None if they are not text."""
    if node is None or node.kind is EntryKind.DIR:
        return []
    data = store.get(node.sha256)
    try:
        return None if b"\0" in data else list(StringIO(data.decode(), newline="\n"))
    except UnicodeDecodeError:
        return None
