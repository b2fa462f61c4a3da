"""Reads two commits from a repository's object store: no checkout, no hooks, none of its code is run."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from jumar.errors import BadInput, Infra
from jumar.importing.make_task import Blob, TaskDescription, TaskSides, Tree
from jumar.workspace.git import INERT

NOWHERE = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_EXTERNAL_DIFF",
)  # fmt: skip
"""Variables that lead git elsewhere, or to a program."""

HARDENED = (
    "env", *(word for name in NOWHERE for word in ("-u", name)),
    "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C",
)  # fmt: skip
"""An environment with nothing in it that a repository could turn into a program, and nobody to ask for a password."""

GIT = ("git", *INERT, "-c", "core.sshCommand=ssh -oBatchMode=yes")
"""Git that starts nothing which the settings of a repository name."""

PROTOCOLS = "file:git:http:https:ssh"
"""Protocols that are cloned over. A repository that is there is only read: its settings can name a program to fetch
the rest."""

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|[^/]+@[^/]+:")


async def read_git_sides(repo: str, revisions: str, name: str = "") -> TaskSides:
    """Return the trees of `OLD..NEW`, or of a commit and its first parent, in *repo* (a folder or any URL git knows).

    Raises:
        BadInput: if there is no such repository or commit, or OLD and NEW are the same.
    """
    if not URL.match(repo):
        if not await anyio.Path(repo).is_dir():
            raise BadInput(f"there is no repository at {repo}; give a folder or a URL")
        return await _read_sides(Path(repo), _get_name(repo), revisions, name)
    with TemporaryDirectory(prefix="jumar-git-") as scratch:
        clone = Path(scratch) / "clone"
        await _run_git("clone", "--quiet", "--bare", "--", repo, str(clone), what=f"cannot clone {repo}")
        return await _read_sides(clone, _get_name(repo), revisions, name)


def _get_name(repo: str) -> str:
    """Return the last part of a path or URL, as a name for a folder."""
    last = str(Path(repo).resolve()) if not URL.match(repo) else repo
    last = last.rstrip("/").removesuffix(".git").rpartition("/")[2].rpartition(":")[2]
    return re.sub(r"[^A-Za-z0-9._-]", "-", last).strip(".-") or "task"


async def _read_sides(store: Path, called: str, revisions: str, name: str) -> TaskSides:
    left, dots, right = revisions.partition("..")
    new = await _find_commit(store, (right.lstrip(".") if dots else revisions) or "HEAD")
    old = await _find_commit(store, left or "HEAD") if dots else await _find_parent(store, new, revisions)
    if old == new:
        raise BadInput(f"{revisions} names one commit twice; give OLD..NEW, or the commit of a fix")
    about = TaskDescription(
        name=name or f"{called}-{new[:10]}", old=f"{called} at {old[:10]}", new=f"{called} at {new[:10]}"
    )
    return TaskSides(about, await _read_tree(store, old), await _read_tree(store, new))


async def _find_parent(store: Path, commit: str, revision: str) -> str:
    try:
        return await _find_commit(store, f"{commit}^")
    except BadInput:
        raise BadInput(
            f"the commit {revision!r} in {store} has none before it, so there is no source before a fix; give OLD..NEW"
        ) from None


async def _find_commit(store: Path, revision: str) -> str:
    what = f"there is no commit {revision!r} in {store}"
    out = await _run_git("-C", str(store), "rev-parse", "--verify", "--quiet", "--end-of-options",
                     f"{revision}^{{commit}}", what=what)  # fmt: skip
    return out.decode().strip()


async def _read_tree(store: Path, commit: str) -> Tree:
    """Return all files of *commit*. Read object by object: `git archive` would leave out what `export-ignore` names."""
    listing = await _run_git("-C", str(store), "ls-tree", "-r", "-z", "--full-tree", commit, what="cannot list a tree")
    entries = []
    for line in filter(None, listing.split(b"\0")):
        meta, _, name = line.partition(b"\t")
        mode, kind, oid = meta.split()
        if kind == b"blob":  # a submodule is no file of this repository
            entries.append((os.fsdecode(name), mode, oid))
    wanted = b"".join(oid + b"\n" for _, _, oid in entries)
    bodies = await _run_git("-C", str(store), "cat-file", "--batch", what="cannot read a tree", stdin=wanted)
    tree, at = {}, 0
    for path, mode, _ in entries:
        end = bodies.index(b"\n", at)
        header = bodies[at:end].split()
        if len(header) != 3:  # noqa: PLR2004  id, kind, size; "missing" has no size
            raise BadInput(f"{store} lacks the content of {path!r} (a partial clone?); fetch it, or clone it whole")
        size = int(header[2])
        data = bodies[end + 1 : end + 1 + size]
        at = end + 2 + size
        tree[path] = Blob(data, executable=mode == b"100755", link=mode == b"120000")
    return tree


async def _run_git(*args: str, what: str, stdin: bytes = b"") -> bytes:
    try:
        ways = f"GIT_ALLOW_PROTOCOL={PROTOCOLS if args[0] == 'clone' else 'none'}"
        done = await anyio.run_process([*HARDENED, ways, *GIT, *args], input=stdin, check=False, stderr=subprocess.PIPE)
    except OSError as error:
        raise Infra(f"git cannot be started: {error.strerror}; install git") from error
    if done.returncode == 0:
        return done.stdout
    if done.returncode == 127:  # noqa: PLR2004  what env answers when there is no such program
        raise Infra("git is not installed, or not on PATH; install git")
    said = done.stderr.decode(errors="replace").strip().splitlines()
    raise BadInput(f"{what}: {said[-1]}" if said else what)
