"""A repository that runs programs for whoever uses git in it: whatever jumar does there, none of them is started."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from jumar.core.state.budget import Budget
from jumar.errors import JumarError
from jumar.importing.from_git import read_git_sides
from jumar.workspace.git_ignored import read_ignored
from jumar.workspace.patch import explain_misfit, format_diff, make_best_patch
from jumar.workspace.store.object_store import Store
from jumar.workspace.workspace import Workspace
from support.processes import fake_provider as wire
from support.processes.external_run import Outing, Terms

FIX = "the_answer_of_tomorrow"


class Hostile:
    """A repository of two commits, and a program that leaves a mark wherever it is started."""

    def __init__(self, folder: Path) -> None:
        self.root, self.mark = folder / "repository", folder / "mark"
        self.program = folder / "program"
        self.program.write_text(f'#!/bin/sh\ntouch "{self.mark}"\ncat\n')
        self.program.chmod(0o755)
        self.environ = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        }  # fmt: skip
        self.root.mkdir()
        self.git("init", "-q", "-b", "main")
        for number in range(2):
            self.write("app.py", f"x = {number}\n")
            self.write("data.bin", f"{number}\0\n")
            self.git("add", "-A")
            self.git("commit", "-qm", str(number))

    def git(self, *words: str, folder: Path | None = None) -> None:
        """Plain git, as anybody runs it; what it says of it is all the same."""
        subprocess.run(
            ["git", *words], cwd=folder or self.root, env=self.environ, capture_output=True, stdin=subprocess.DEVNULL,
            check=False, timeout=20,
        )  # fmt: skip

    def write(self, path: str, text: str) -> None:
        """Write a file of the repository."""
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def hook(self, name: str, folder: str = ".git/hooks") -> None:
        """Have git start the program there."""
        (self.root / folder).mkdir(parents=True, exist_ok=True)
        (self.root / folder / name).symlink_to(self.program)


def _filtered(side: str) -> Callable[[Hostile], None]:
    def arm(hostile: Hostile) -> None:
        hostile.write(".gitattributes", "* filter=evil\n")
        hostile.git("config", f"filter.evil.{side}", str(hostile.program))

    return arm


def _textconv(hostile: Hostile) -> None:
    hostile.write(".gitattributes", "* diff=evil\n")
    hostile.git("config", "diff.evil.textconv", str(hostile.program))


def _hooks_path(hostile: Hostile) -> None:
    for name in ("pre-commit", "post-checkout", "post-index-change"):
        hostile.hook(name, "tools/hooks")
    hostile.git("config", "core.hooksPath", "tools/hooks")


def _included(hostile: Hostile) -> None:
    hostile.write("settings", f"[core]\n\tfsmonitor = {hostile.program}\n")
    hostile.git("config", "include.path", "../settings")


def _swapped(hostile: Hostile) -> None:
    (hostile.root / ".git").rename(hostile.root / "store")
    hostile.write(".git", "gitdir: store\n")
    hostile.git("config", "core.fsmonitor", str(hostile.program))


def _nested(hostile: Hostile) -> None:
    """A bare repository is a folder that anybody can check in: whoever works in it obeys its settings."""
    hostile.git("clone", "-q", "--bare", ".", "inner")
    for key in ("core.fsmonitor", "core.pager", "gpg.program"):
        hostile.git("config", key, str(hostile.program), folder=hostile.root / "inner")
    hostile.git("config", "core.bare", "false", folder=hostile.root / "inner")
    hostile.git("config", "core.worktree", str(hostile.root), folder=hostile.root / "inner")


def _signed(hostile: Hostile) -> None:
    hostile.git("config", "gpg.program", str(hostile.program))
    hostile.git("config", "commit.gpgSign", "true")


VECTORS: dict[str, Callable[[Hostile], None]] = {
    "core.fsmonitor": lambda h: h.git("config", "core.fsmonitor", str(h.program)),
    "hook pre-commit": lambda h: h.hook("pre-commit"),
    "hook post-checkout": lambda h: h.hook("post-checkout"),
    "hook post-index-change": lambda h: h.hook("post-index-change"),
    "hook reference-transaction": lambda h: h.hook("reference-transaction"),
    "hook post-commit": lambda h: h.hook("post-commit"),
    "filter.clean": _filtered("clean"),
    "filter.smudge": _filtered("smudge"),
    "diff.external": lambda h: h.git("config", "diff.external", str(h.program)),
    "textconv": _textconv,
    "alias": lambda h: h.git("config", "alias.st", f"!{h.program}"),
    "gpg.program": _signed,
    "core.hooksPath": _hooks_path,
    "include.path": _included,
    "gitdir swap": _swapped,
    "nested bare repository": _nested,
}
"""Ways to have git start a program -> how a repository is made to."""


SAMPLE = ("core.fsmonitor", "hook post-index-change", "filter.clean", "gitdir swap", "nested bare repository")
"""Those that are tried each time; all of them are a proof."""


def plainly_used(hostile: Hostile) -> None:
    """What a person or a tool does in a repository."""
    if (hostile.root / "inner").is_dir():
        hostile.git("read-tree", "HEAD", folder=hostile.root / "inner")
        hostile.git("status", folder=hostile.root / "inner")
    back = ("checkout", "-q", "HEAD", "--", "app.py")
    commit, new = ("commit", "-qm", "new"), ("log", "-p", "-1")
    for words in (("status",), ("diff",), ("st",), back, ("add", "-A"), commit, new, ("checkout", "-q", "HEAD~")):
        if words[0] != "checkout":
            hostile.write("app.py", "x = 2\n")
        hostile.git(*words)


def used_by_jumar(hostile: Hostile, folder: Path) -> None:
    """All that jumar does with trees and git: keep, lay out, compare, put back, patch, import, read what is ignored."""
    store = Store(folder / "objects")
    before = store.capture(hostile.root)
    workspace = Workspace(hostile.root, store)
    workspace.write("app.py", b"x = 3\n")
    after = workspace.capture()
    assert workspace.changed(before) == ("app.py",)
    patch = make_best_patch(store, before, after)
    assert b"x = 3" in patch
    assert format_diff(store, before, after)
    assert explain_misfit(store, patch, store.manifest(before), store.manifest(after)) == ""
    workspace.reset(before)
    store.materialise(after, folder / "room")
    for place in (hostile.root, hostile.root / "inner"):
        if place.is_dir():
            read_ignored(place, hostile.environ)
            with suppress(JumarError):  # git may find that what it is given is no good repository
                anyio.run(read_git_sides, str(place), "main~..main")


@pytest.mark.parametrize(
    "vector", [pytest.param(v, marks=pytest.mark.slow if v in SAMPLE else pytest.mark.proof) for v in VECTORS]
)
def test_a_vector_is_live_and_inert_here(tmp_path: Path, vector: str) -> None:
    hostile = Hostile(tmp_path)
    VECTORS[vector](hostile)
    hostile.mark.unlink(missing_ok=True)

    used_by_jumar(hostile, tmp_path)

    assert not hostile.mark.exists()
    plainly_used(hostile)
    assert hostile.mark.exists(), "plain git starts the program: the vector was there"


@pytest.mark.slow
def test_an_agent_that_arms_them_all_is_not_obeyed(tmp_path: Path) -> None:
    """Its history and the repositories it leaves in folders are there while its work is kept, judged and put back."""
    script = """
        mark, program = pathlib.Path(sys.argv[1], "mark"), pathlib.Path(sys.argv[1], "program")
        print(mark.exists())
        write(program, f"#!/bin/sh\\ntouch {mark}\\ncat\\n")
        program.chmod(0o755)
        write(".gitattributes", "* filter=evil diff=evil\\n")
        os.makedirs("src/inner", exist_ok=True)
        if not os.path.exists("src/inner/.git"):
            sh("git init -q src/inner; cd src/inner; git config user.email a@b; git config user.name a; echo > x")
            sh("cd src/inner; git add x; git commit -qm x; echo y > x")
        for folder in (".", "src/inner"):
            for name in ("pre-commit", "post-checkout", "post-index-change", "reference-transaction", "post-commit"):
                path = pathlib.Path(folder, ".git/hooks", name)
                path.parent.mkdir(exist_ok=True)
                path.unlink(missing_ok=True)
                path.symlink_to(program)
            keys = ("fsmonitor", "pager", "editor", "sshCommand", "askPass")
            with open(f"{folder}/.git/config", "a") as config:
                config.write("[core]\\n" + "".join(f"{key} = {program}\\n" for key in keys))
                config.write(f"[filter \\"evil\\"]\\nclean = {program}\\nsmudge = {program}\\n")
                config.write(f"[diff]\\nexternal = {program}\\n[diff \\"evil\\"]\\ntextconv = {program}\\n")
                config.write(f"[alias]\\ndiff = !{program}\\n[gpg]\\nprogram = {program}\\n")
                config.write("[commit]\\ngpgSign = true\\n")
        write("src/sums.py", "def total(rows): return 0\\n")
        ask()
    """
    terms = Terms(words=(str(tmp_path),), budget=Budget(turns=2, attempts=None))
    with wire.Server() as server:
        outing = Outing(tmp_path / "run", script, server, terms)
        outing.run()

    assert [outing.said(1), outing.said(2)] == ["False\n", "False\n"]
    assert not (tmp_path / "mark").exists()
    assert (outing.workspace / "src" / "inner" / ".git" / "config").exists(), "it was there all the time"
    subprocess.run(["git", "status"], cwd=outing.workspace / "src" / "inner", capture_output=True, check=False)
    assert (tmp_path / "mark").exists(), "and it was live"


@pytest.mark.slow
def test_the_history_of_an_agent_tells_nothing_of_another(tmp_path: Path) -> None:
    hostile = Hostile(tmp_path)
    hostile.write("app.py", f"{FIX} = 42\n")
    hostile.git("commit", "-qam", "the fix")
    hostile.git("tag", "fixed")
    hostile.git("reset", "-q", "--hard", "HEAD~")
    hostile.git("remote", "add", "origin", str(tmp_path))
    script = f"""
        run = lambda *words: subprocess.run(("git", *words), capture_output=True, text=True).stdout.split()
        print(run("rev-list", "--all", "--count"), run("remote"), run("tag"))
        print(len(run("reflog", "--all", "--format=%h")))
        print(run("log", "--all", "--reflog", "-S", {FIX!r}), run("fsck", "--lost-found", "--no-progress"))
        print(os.path.exists(".git/objects/info/alternates"), os.path.exists(".git/packed-refs"))
        ask()
    """
    with wire.Server() as server:
        outing = Outing(hostile.root / "runs" / "one", script, server, Terms(budget=Budget(turns=1)))
        outing.run()

    assert outing.said().splitlines() == ["['1'] [] []", "2", "[] []", "False False"]


def test_settings_that_name_a_pipe_block_nobody(tmp_path: Path) -> None:
    hostile = Hostile(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    hostile.git("config", "core.excludesFile", str(tmp_path / "pipe"))
    hostile.root.joinpath(".git", "info").mkdir(exist_ok=True)
    hostile.root.joinpath(".git", "info", "exclude").unlink(missing_ok=True)
    hostile.root.joinpath(".git", "info", "exclude").symlink_to("/dev/zero")

    assert read_ignored(hostile.root, hostile.environ).tracked == ()
