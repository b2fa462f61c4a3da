"""Forbidden commands: on git's history, deploys, the machine. A pure table over the words of one command.

What the rules cannot see (a script, an interpreter's own text) is not what keeps a run in: that is what commands cannot
reach. These words are for a clear message and an early stop. The standard library alone: hooks read this file by path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from jumar.child.hook.deploy_table import find_deployment
from jumar.commands.downloads import runs_download

HOLE = "\ufffc"
"""Stands in a word for what is known only when the command runs."""

HISTORY, DEPLOY, MACHINE, DOWNLOAD = "git-history", "deploy", "destroy-machine", "run-download"
HOOK = "jumar-hook"
"""The names of the rules, as they stand in `guardrail` events."""


class Forbidden(NamedTuple):
    """A rule that a command breaks, and the effect of the command, in one sentence."""

    rule: str
    why: str


class GitArguments(NamedTuple):
    """The arguments of a git command, by kind."""

    long: frozenset[str]
    """`--name`, without values."""
    short: frozenset[str]
    """Letters."""
    plain: tuple[str, ...]
    """Arguments that are no options."""


def find_broken_rule(words: Sequence[str], *, moved: bool = False) -> Forbidden | None:
    """Return the rule that the simple command *words* breaks, or None. A redirection to a file is `(">", path)`.

    *moved* is whether it runs in another folder than the line began in: what lies there may be of no account.
    """
    if not words:
        return None
    program, args = words[0].rpartition("/")[2], tuple(words[1:])
    if program == "git" or program.startswith("git-"):
        why = _explain_git(args if program == "git" else (program.removeprefix("git-"), *args))
        return Forbidden(HISTORY, f"git {why}") if why else _find_deploy(args)
    if program in ("hook_fast.py", "jumar.hooks.full_rule") or (program == "jumar" and args[:1] == ("hook",)):
        return Forbidden(HOOK, "jumar's hook is for the host of this session")
    unseen = Forbidden(DOWNLOAD, "what a download brings is run unseen") if runs_download(words) else None
    if ruined := unseen or _find_ruin(program, args, moved=moved):
        return ruined
    if said := find_deployment(program, args):
        return Forbidden(DEPLOY, f"{said} changes what others use")
    return None


# --- git ------------------------------------------------------------------------------------------------------------

Test = Callable[[GitArguments], bool]


class Ban(NamedTuple):
    """Condition that forbids a git command: any argument named here is given, and none that makes it harmless."""

    why: str
    long: tuple[str, ...] = ()
    """Options; git takes any beginning of a name that is not another one's."""
    short: str = ""
    test: Test = lambda _: False
    harmless: tuple[str, ...] = ()
    """Options with which nothing is done."""
    values: str = ""
    """Short options that take a value, which is no option itself."""


def _match_all(_: GitArguments) -> bool:
    return True


def _is_whole(given: GitArguments) -> bool:
    """Return whether the named paths are everything."""
    return any(word.rstrip("/") in (".", ":", "*", ":/*", ":.", "./*", "..") or word == "/" for word in given.plain)


def _is_verb(*verbs: str) -> Test:
    return lambda given: given.plain[:1] != () and given.plain[0] in verbs


def _unstages(given: GitArguments) -> bool:
    return bool(given.long & {"--staged"} or given.short & {"S"}) and not (
        given.long & {"--worktree"} or given.short & {"W"}
    )


def _is_given(option: str, long: frozenset[str]) -> bool:
    """Return whether one of *long* is *option* or a prefix of it, as git accepts them."""
    return any(option.startswith(word) and len(word) > 2 for word in long)  # noqa: PLR2004  more than the dashes


KEYS = (
    "alias.", "url.", "include.", "includeif.", "filter.", "credential.", "gpg.", "receive.", "protocol.", "remote.",
    "core.hookspath", "core.fsmonitor", "core.sshcommand", "core.gitproxy", "core.askpass", "core.worktree",
    "core.bare", "diff.external", "init.templatedir", "gc.reflogexpire", "gc.pruneexpire", "clean.requireforce",
)  # fmt: skip
"""Beginnings of keys, in small letters, that decide what git runs, where it pushes, or what it still asks for."""


def _steers(given: GitArguments) -> bool:
    reads = {"--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "--get-color", "--get-colorbool"}
    if given.long & reads or "l" in given.short or given.plain[:1] in (("get",), ("list",)):
        return False
    if given.long & {"--edit"} or "e" in given.short or given.plain[:1] == ("edit",):
        return True
    plain = given.plain[1:] if given.plain[:1] in (("set",), ("unset",)) else given.plain
    removes = given.plain[:1] == ("unset",) or any(word.startswith("--unset") for word in given.long)
    if any(_is_given(o, given.long) for o in ("--remove-section", "--rename-section")):
        return True
    return bool(plain) and plain[0].lower().startswith(KEYS) and (len(plain) > 1 or removes)


_DRY = ("--dry-run", "-n")
_PUSH = Ban(
    "push of this kind rewrites or deletes what others have",
    ("--force", "--force-with-lease", "--mirror", "--delete", "--prune"),
    "fd",
    lambda given: any(word[0] == "+" or (word[0] == ":" and len(word) > 1) for word in given.plain if word),
    _DRY,
    "o",
)  # fmt: skip
_DROPS = "throws away changes that no commit holds"
_REWRITES = "rewrites history"

GIT: dict[str, tuple[Ban, ...]] = {
    "push": (_PUSH,),
    "send-pack": (_PUSH,),
    "reset": (Ban(f"reset of this kind moves a branch and {_DROPS}", ("--hard", "--merge", "--keep")),),
    "clean": (Ban("clean deletes files that no commit holds", ("--force",), "f", harmless=_DRY, values="e"),),
    "branch": (Ban("branch by force deletes or moves a branch", ("--force",), "DfC", values="u"),),
    "checkout": (Ban(f"checkout of this kind {_DROPS}", ("--force",), "fB", _is_whole, values="b"),),
    "switch": (Ban(f"switch by force {_DROPS}", ("--force", "--discard-changes", "--force-create"), "fC", values="c"),),
    "restore": (Ban(f"restore of everything {_DROPS}", test=lambda g: _is_whole(g) and not _unstages(g), values="s"),),
    "rm": (Ban(f"rm of everything {_DROPS}", test=_is_whole, harmless=("--cached", *_DRY)),),
    "read-tree": (Ban(f"read-tree --reset {_DROPS}", ("--reset",)),),
    "checkout-index": (Ban(f"checkout-index by force {_DROPS}", ("--force",), "f"),),
    "stash": (Ban("stash of this kind deletes what was put aside", test=_is_verb("drop", "clear")),),
    "reflog": (Ban("reflog of this kind deletes the way back", test=_is_verb("expire", "delete", "drop")),),
    "gc": (Ban("gc --prune deletes the way back", ("--prune",)),),
    "prune": (Ban("prune deletes the way back", test=_match_all, harmless=_DRY),),
    "filter-branch": (Ban(_REWRITES, test=_match_all),),
    "filter-repo": (Ban(_REWRITES, test=_match_all, harmless=("--analyze",)),),
    "history": (Ban(_REWRITES, test=_match_all),),
    "replace": (Ban(_REWRITES, test=lambda g: bool(g.plain), harmless=("-l", "--list")),),
    "rebase": (Ban(f"rebase {_REWRITES}", test=_match_all, harmless=("--abort", "--quit", "--show-current-patch")),),
    "commit": (Ban(f"commit --amend {_REWRITES}", ("--amend",), values="mFCct"),),
    "fast-import": (Ban(_REWRITES, test=_match_all),),
    "update-ref": (Ban("update-ref moves or deletes a branch", test=_match_all),),
    "symbolic-ref": (Ban("symbolic-ref moves HEAD", ("--delete",), "d", lambda g: len(g.plain) > 1),),
    "tag": (Ban("tag of this kind deletes or moves a tag", ("--delete", "--force"), "df", values="mFu"),),
    "worktree": (
        Ban("worktree remove by force deletes its changes",
            test=lambda g: g.plain[:1] == ("remove",) and bool(g.short & {"f"} or _is_given("--force", g.long))),
    ),
    "remote": (Ban("remote of this kind changes where pushes go", test=_is_verb("set-url", "remove", "rm", "rename")),),
    "config": (Ban("config of this key changes what git runs or where it pushes", test=_steers),),
}  # fmt: skip

_GLOBAL_VALUES = frozenset({
    "-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix", "--attr-source",
})  # fmt: skip

HOSTS = frozenset({"heroku", "dokku", "piku", "production", "prod", "live", "deploy"})
"""Names of remotes to which a push is a deploy."""


def parse_git_args(args: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the settings of `-c` in the *args* of git (keys in lower case), and its command with its arguments."""
    settings: dict[str, str] = {}
    at = 0
    while at < len(args) and args[at].startswith("-"):
        word = args[at]
        taken = word in _GLOBAL_VALUES
        if word == "-c" and at + 1 < len(args):
            key, _, value = args[at + 1].partition("=")
            settings[key.lower()] = value
        at += 1 + taken
    return settings, tuple(args[at:])


def _explain_git(args: tuple[str, ...]) -> str:
    """Return why the command of git with *args* is forbidden, or empty."""
    settings, command = parse_git_args(args)
    verb, rest = command[0] if command else "", command[1:]
    for ban in GIT.get(verb, ()):
        given = _sort_arguments(rest, ban.values)
        if any(_is_given(o, given.long) if o.startswith("--") else o[1] in given.short for o in ban.harmless):
            continue
        if any(_is_given(o, given.long) for o in ban.long) or given.short & set(ban.short) or ban.test(given):
            return ban.why
        if verb == "clean" and "clean.requireforce" in settings:
            return ban.why
        if verb == "push" and any(k.startswith("remote.") and k.endswith((".mirror", ".push")) for k in settings):
            return ban.why
    return ""


def _find_deploy(args: tuple[str, ...]) -> Forbidden | None:
    _, command = parse_git_args(args)
    given = _sort_arguments(command[1:], "o") if command[:1] == ("push",) else None
    if given is None or not given.plain or given.plain[0] not in HOSTS or "n" in given.short:
        return None
    return Forbidden(DEPLOY, f"git push {given.plain[0]} is a deploy")


def _sort_arguments(args: Sequence[str], values: str) -> GitArguments:
    long, short, plain = set[str](), set[str](), list[str]()
    rest = iter(args)
    for word in rest:
        if word == "--":
            plain += rest
        elif word.startswith("--"):
            long.add(word.partition("=")[0])
        elif word.startswith("-") and len(word) > 1:
            for place, letter in enumerate(word[1:], 2):
                short.add(letter)
                if letter in values:
                    if place == len(word):
                        next(rest, "")
                    break
        else:
            plain.append(word)
    return GitArguments(frozenset(long), frozenset(short), tuple(plain))


# --- files ----------------------------------------------------------------------------------------------------------

_REMOVERS = frozenset({"rm", "rmdir", "unlink", "shred", "mv", "truncate", "tee", "chmod", "chown", "srm", ">"})
"""Programs that change every file they are given."""

_LAST = frozenset({"cp", "ln", "install", "rsync"})
"""Programs that change the last file they are given."""

_DISKS = ("/dev/sd", "/dev/nvme", "/dev/vd", "/dev/hd", "/dev/xvd", "/dev/mapper", "/dev/disk", "/dev/mem", "/dev/mmc")


def has_moved(words: Sequence[str], *, moved: bool) -> bool:
    """Return whether commands after *words* run in another folder than the line began in, given *moved* before."""
    if words[0] not in ("cd", "pushd"):
        return moved
    place = next((word for word in words[1:] if not word.startswith("-")), "~" if len(words) == 1 else ".")
    return not _is_everything(place) and (moved or not _is_all_here(place))


def _find_ruin(program: str, args: tuple[str, ...], *, moved: bool) -> Forbidden | None:
    """Return the rule that a command breaks by destroying files of git or of the machine, or None."""
    plain = tuple(word for word in args if not word.startswith("-"))
    changed = plain if program in _REMOVERS else plain[-1:] if program in _LAST and len(plain) > 1 else ()
    if program == "find" and {"-delete"} & set(args):
        changed = plain[:1]
    if program == "dd":
        changed = tuple(word[3:] for word in args if word.startswith("of="))
    if program == "sed" and any(word.startswith(("-i", "--in-place")) for word in args):
        changed = plain[1:]
    if touched := next((path for path in changed if _is_history(path)), ""):
        return Forbidden(HISTORY, f"{program} {touched} changes the repository behind git's back")
    if program.startswith("mkfs") or any(path.startswith(_DISKS) for path in changed):
        return Forbidden(MACHINE, f"{program} destroys a disk")
    flags = {letter for word in args if word.startswith("-") and word[1:2] != "-" for letter in word}
    deep = program == "rm" and (flags & {"r", "R"} or _is_given("--recursive", frozenset(args)))
    deep = deep or (program == "find" and bool(changed))
    if deep and (gone := next((path for path in changed if _is_everything(path)), "")):
        return Forbidden(MACHINE, f"{program} {gone} deletes what is not the task's")
    if deep and program == "rm" and not moved and (gone := next((path for path in plain if _is_all_here(path)), "")):
        return Forbidden(MACHINE, f"rm {gone} deletes all there is")
    return None


def _is_history(path: str) -> bool:
    return ".git" in path.split("/") and not path.endswith(("/info/exclude",))


def _is_everything(path: str) -> bool:
    """Return whether *path* is the root, a home or a folder of the system as a whole."""
    bare = path.rstrip("*").rstrip("/") or "/"
    if path.startswith("~"):
        return "/" not in bare
    top = bare.split("/")[1:] if path.startswith("/") else []
    return bool(top) and len(top) == 1 and top[0] not in ("tmp", "jumar")


def _is_all_here(path: str) -> bool:
    """Check whether *path* is the folder that a command runs in, one above it, or all that lies there."""
    return bool(path) and path[0] != "/" and {"", ".", "..", "*", ".*", "**"}.issuperset(path.split("/"))
