"""Rules of git on ignored files: read once, as lines, and valid for a whole run.

It is frozen because an agent with a shell could otherwise hide its work: one line in `.git/info/exclude` and a
`git rm --cached` would take any file out of the tree that the gate compares.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from itertools import takewhile
from pathlib import Path

import msgspec

from jumar.errors import BadInput, Infra
from jumar.languages.gitignore_globs import compile_patterns, escape_path
from jumar.workspace.files import trees
from jumar.workspace.files.checkout import Skip
from jumar.workspace.files.disk_faults import explain_disk_faults
from jumar.workspace.git import explain_failure, run_git

_PASSED_ON = ("PATH", "HOME", "XDG_CONFIG_HOME", "LANG", "LC_ALL")
_RULES = ".gitignore"
_RULE_BYTES = 1 << 20
"""Of a file of rules; further ones are none that a person wrote."""
HOSTS = ("/.claude/settings.local.json", "/.claude/worktrees/")
"""Files that hosts of agents write in a repository while they run: permissions of the person, work trees of git."""


class Ignored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ignored files of a repository, which are in no tree."""

    lines: tuple[str, ...] = ()
    """Gitignore lines, relative to the root of the repository, in git's order: a person's own list,
    `.git/info/exclude`, then each `.gitignore`, the outer before the inner."""
    tracked: tuple[str, ...] = ()
    """Files that git knows, whatever the lines say."""

    include: tuple[str, ...] = ()
    """Globs of what belongs to the tree all the same: the person named it."""
    below: str = ""
    """The folder of the repository that the paths are relative to, with a slash at its end; empty is its root."""

    def build_skip(self) -> Skip:
        """Return the predicate for paths that are left out (a folder's path ends with a slash)."""
        return drop_included(self._build_skip(), self.include) if self.include else self._build_skip()

    def _build_skip(self) -> Skip:
        rule, at = compile_patterns(self.lines), self.below
        known = trees.add_folders(dict.fromkeys(self.tracked, trees.EMPTY))

        def ignored(path: str) -> bool:
            return rule(at + path)

        closed = {p for p in known if any(ignored(folder + "/") for folder in (p, *trees.list_parents(p)))}

        def skips(path: str) -> bool:
            name = path.removesuffix("/")
            # No line can let back in what lies in an ignored folder: only being tracked does.
            return name not in known and (name.rpartition("/")[0] in closed or ignored(path))

        return skips


def drop_included(skip: Skip, include: tuple[str, ...]) -> Skip:
    """Return *skip* without the paths that the globs *include* name; folders that may hold some are entered."""
    wanted = compile_patterns(include)
    ways = tuple(_find_fixed_folder(line) for line in include if not line.startswith("!"))

    def skips(path: str) -> bool:
        hidden = skip(path) or any(skip(folder + "/") for folder in trees.list_parents(path.removesuffix("/")))
        if not hidden or wanted(path):
            return False
        # A folder without the way to anything that is named is not even looked into.
        return not (path.endswith("/") and any(path.startswith(way) or way.startswith(path) for way in ways))

    return skips


def _find_fixed_folder(line: str) -> str:
    """Return the folder that holds all matches of the glob *line*, with a slash at its end; empty: anywhere."""
    parts = line.rstrip("/").lstrip("/").split("/")
    if len(parts) == 1 and not line.startswith("/"):
        return ""
    fixed = list(takewhile(lambda part: not set(part) & set("*?[\\"), parts[:-1]))
    return "".join(f"{part}/" for part in fixed)


def find_left_out(root: Path, environ: Mapping[str, str]) -> Ignored:
    """Return the files that a copy of *root* leaves out.

    Those that git ignores, in the repository or in one inside it.

    A folder that is ignored itself is taken as it is.

    Raises:
        Infra: if git fails.
    """
    top = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)
    if top == root:
        return read_ignored(root, environ)
    below = root.relative_to(top).as_posix() + "/"
    found = _read_rules(top, root, environ)
    if any(compile_patterns(found.lines)(folder + "/") for folder in (below[:-1], *trees.list_parents(below[:-1]))):
        return Ignored(HOSTS)
    tracked = (path.removeprefix(below) for path in found.tracked if path.startswith(below))
    return Ignored(found.lines, tuple(tracked), below=below)


def read_ignored(root: Path, environ: Mapping[str, str]) -> Ignored:
    """Return the files that git ignores in *root* now; empty if it is no repository of its own.

    Raises:
        Infra: if git fails.
    """
    if not (root / ".git").exists():
        return Ignored(HOSTS)
    return _read_rules(root, root, environ)


def _read_rules(root: Path, within: Path, environ: Mapping[str, str]) -> Ignored:
    """Return the rules of the repository *root* that apply to *within*."""
    git = _build_git(root, environ)
    own = git("config", "--type=path", "--get", "core.excludesFile", fails=True).strip()
    home = environ.get("XDG_CONFIG_HOME") or (f"{environ['HOME']}/.config" if environ.get("HOME") else "")
    first = [Path(own) if own else Path(home) / "git" / "ignore"] if own or home else []
    exclude = git("rev-parse", "--git-path", "info/exclude").strip()
    lines = [line for file in (*first, root / exclude) for line in _translate_rules(file, "")]
    outer = (folder / _RULES for folder in reversed(within.parents) if folder.is_relative_to(root))
    for file in (*(file for file in outer if file.is_file() and not file.is_symlink()), *_list_rule_files(within)):
        folder = file.parent.relative_to(root).as_posix()
        lines += _translate_rules(file, "" if folder == "." else folder)
    with explain_disk_faults("cannot write to the temporary folder"), tempfile.NamedTemporaryFile() as rules:
        # Not --exclude-standard: what the settings name may be a pipe, and git would wait for it.
        rules.write("".join(f"{line}\n" for line in lines).encode(errors="surrogateescape"))
        rules.flush()
        tracked = git("ls-files", "-z", "-i", "-c", f"--exclude-from={rules.name}").split("\0")
    return Ignored((*lines, *HOSTS), tuple(path for path in tracked if path))


def _build_git(root: Path, environ: Mapping[str, str]) -> _Git:
    program = shutil.which("git", path=environ.get("PATH"))
    if program is None:
        raise BadInput(f"{root} is a git repository and git was not found on PATH; install it")
    return _Git(program, root, {name: environ[name] for name in _PASSED_ON if name in environ})


class _Git:
    """git in a person's repository, read only, without starting anything of the repository's own."""

    def __init__(self, program: str, root: Path, environment: Mapping[str, str]) -> None:
        self._program, self._root, self._environment = program, root, environment

    def __call__(self, *arguments: str, fails: bool = False) -> str:
        """Run git and return its output. With *fails*, an exit status of 1 prints nothing."""
        # Whoever owns the repository: it is only read.
        done = run_git(self._program, ["-c", "safe.directory=*", *arguments], self._root, self._environment)
        if done.returncode and not (fails and done.returncode == 1):
            raise Infra(f"git {arguments[0]} failed in {self._root}: {explain_failure(done)}")
        return done.stdout.decode(errors="surrogateescape")


def _list_rule_files(folder: Path) -> Iterator[Path]:
    """Yield every `.gitignore` below *folder*, outer before inner; links and excluded folders are not entered."""
    below: list[Path] = []
    for entry in sorted(folder.iterdir()):
        if entry.name == _RULES and entry.is_file() and not entry.is_symlink():
            yield entry
        elif not trees.is_ignored(entry.name) and not entry.is_symlink() and entry.is_dir():
            below.append(entry)
    for inner in below:
        if not (inner / ".git").exists() and not (inner / trees.VENV).exists():
            yield from _list_rule_files(inner)


def _read_text(file: Path) -> str:
    """Read *file*; empty if it is not a regular file: settings may name a pipe, which would block, or a device."""
    try:
        with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:  # noqa: PTH123  a descriptor
            known = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
            return stream.read(_RULE_BYTES).decode(errors="surrogateescape") if known else ""
    except OSError:
        return ""


def _translate_rules(file: Path, folder: str) -> Iterator[str]:
    """Yield the lines of *file*, which apply to *folder* (empty: the root), as lines that apply to the root."""
    text = _read_text(file)
    where = escape_path(folder) + "/" if folder else "/"
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
