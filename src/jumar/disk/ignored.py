"""What git ignores in a repository is a person's own: the rule is read once, as lines, and holds for a whole run.

It is frozen because an agent with a shell could otherwise hide its work: one line in `.git/info/exclude` and a
`git rm --cached` would take any file out of the tree that the gate compares.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from jumar.disk import beneath, trees
from jumar.disk.align import Skip
from jumar.errors import Infra
from jumar.globs import literal, spec

_SECONDS = 60
_PASSED_ON = ("PATH", "HOME", "XDG_CONFIG_HOME", "LANG", "LC_ALL")
_INERT = ("--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
"""Nothing that the repository's own settings name is started by what only reads."""
_RULES = ".gitignore"
_RULE_BYTES = 1 << 20
"""Of a file of rules; further ones are none that a person wrote."""
HOSTS = ("/.claude/settings.local.json", "/.claude/worktrees/")
"""What hosts of agents write in a repository while they run: permissions that a person gave, work trees of git."""


class Ignored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is a person's own in their repository, and so in no tree."""

    lines: tuple[str, ...] = ()
    """Gitignore lines, relative to the root of the repository, in git's order: a person's own list,
    `.git/info/exclude`, then each `.gitignore`, the outer before the inner."""
    tracked: tuple[str, ...] = ()
    """Files that git knows, whatever the lines say."""

    def skip(self) -> Skip:
        """Whether a path (a folder's with a slash at its end) is ignored."""
        ignored, known = spec(self.lines), trees.spelt_out(dict.fromkeys(self.tracked, trees.EMPTY))
        closed = {p for p in known if any(ignored(folder + "/") for folder in (p, *trees.above(p)))}

        def skips(path: str) -> bool:
            name = path.removesuffix("/")
            # No line can let back in what lies in an ignored folder: only being tracked does.
            return name not in known and (name.rpartition("/")[0] in closed or ignored(path))

        return skips


def ignored_in(root: Path, environ: Mapping[str, str]) -> Ignored:
    """What git ignores in *root* now. Where that is no repository of its own, nothing is.

    Raises:
        Infra: if git fails.
    """
    if not (root / ".git").exists():
        return Ignored(HOSTS)
    git = _git(root, environ)
    own = git("config", "--type=path", "--get", "core.excludesFile", fails=True).strip()
    home = environ.get("XDG_CONFIG_HOME") or (f"{environ['HOME']}/.config" if environ.get("HOME") else "")
    first = [Path(own) if own else Path(home) / "git" / "ignore"] if own or home else []
    exclude = git("rev-parse", "--git-path", "info/exclude").strip()
    lines = [line for file in (*first, root / exclude) for line in _rules(file, "")]
    for file in _rule_files(root):
        folder = file.parent.relative_to(root).as_posix()
        lines += _rules(file, "" if folder == "." else folder)
    with beneath.disk("cannot write to the temporary folder"), tempfile.NamedTemporaryFile() as rules:
        # Not --exclude-standard: what the settings name may be a pipe, and git would wait for it.
        rules.write("".join(f"{line}\n" for line in lines).encode(errors="surrogateescape"))
        rules.flush()
        tracked = git("ls-files", "-z", "-i", "-c", f"--exclude-from={rules.name}").split("\0")
    return Ignored((*lines, *HOSTS), tuple(path for path in tracked if path))


def _git(root: Path, environ: Mapping[str, str]) -> _Git:
    program = shutil.which("git", path=environ.get("PATH"))
    if program is None:
        raise Infra(f"{root} is a git repository and git was not found on PATH; install it")
    return _Git(program, root, {name: environ[name] for name in _PASSED_ON if name in environ})


class _Git:
    """git in a person's repository, read only, with nothing of the repository's own started."""

    def __init__(self, program: str, root: Path, environment: Mapping[str, str]) -> None:
        self._program, self._root, self._environment = program, root, environment

    def __call__(self, *arguments: str, fails: bool = False) -> str:
        """What git prints for *arguments*; with *fails*, an exit status of 1 prints nothing."""
        argv = [self._program, "-C", str(self._root), *_INERT, *arguments]
        try:
            done = subprocess.run(  # noqa: S603  git itself, found on PATH, with arguments of our own
                argv,
                env=self._environment,
                capture_output=True,
                check=False,
                timeout=_SECONDS,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired) as fault:
            raise Infra(f"git {arguments[0]} failed in {self._root}: {fault}") from fault
        if done.returncode and not (fails and done.returncode == 1):
            raise Infra(f"git {arguments[0]} failed in {self._root}: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout.decode(errors="surrogateescape")


def _rule_files(folder: Path) -> Iterator[Path]:
    """Every `.gitignore` below *folder*, the outer before the inner; links and what no tree has are not entered."""
    below: list[Path] = []
    for entry in sorted(folder.iterdir()):
        if entry.name == _RULES and entry.is_file() and not entry.is_symlink():
            yield entry
        elif not trees.ignored(entry.name) and not entry.is_symlink() and entry.is_dir():
            below.append(entry)
    for inner in below:
        if not (inner / ".git").exists() and not (inner / trees.VENV).exists():
            yield from _rule_files(inner)


def _text(file: Path) -> str:
    """What *file* says; nothing if it is no file: settings may name a pipe, which would block, or a device."""
    try:
        with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:  # noqa: PTH123  a descriptor
            known = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
            return stream.read(_RULE_BYTES).decode(errors="surrogateescape") if known else ""
    except OSError:
        return ""


def _rules(file: Path, folder: str) -> Iterator[str]:
    """The lines of *file*, which speaks of *folder* (empty: the root), as lines that speak of the root."""
    text = _text(file)
    where = literal(folder) + "/" if folder else "/"
    for raw in text.removeprefix("\ufeff").split("\n"):
        line = raw.removesuffix("\r")
        if not line.strip() or line.startswith("#"):
            continue
        negated, pattern = line.startswith("!"), line.removeprefix("!")
        anchored = "/" in pattern.rstrip(" ").rstrip("/")
        if pattern.endswith("/**"):
            # All that is in a folder, and not the folder: a file in it may be let back in.
            pattern += "/*"
        if folder:
            pattern = where + (pattern.removeprefix("/") if anchored else "**/" + pattern)
        yield ("!" if negated else "") + pattern
