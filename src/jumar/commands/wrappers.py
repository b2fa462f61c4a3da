"""Finds the commands that a command starts, from its words: `env`, `sh -c`, `xargs`, `find -exec`, a git alias."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from jumar.commands.downloads import SHELLS
from jumar.commands.git_and_files import HOLE, parse_git_args


class WrappedCommand(NamedTuple):
    """Commands and shell texts found in the words of one command."""

    commands: tuple[tuple[str, ...], ...] = ()
    """Other commands, as their words."""
    texts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Texts for a shell to run, each with its positional parameters."""


class Prefix(NamedTuple):
    """A program that starts the rest of its words."""

    values: frozenset[str] = frozenset()
    """Options that take a value, which is the word after them."""
    skipped: int = 0
    """Words of its own before the command's."""
    verbs: tuple[str, ...] = ()
    """The words with which alone it starts anything; empty: it always does."""


def _split_options(said: str) -> frozenset[str]:
    return frozenset(said.split())


_WRAPPED = {
    "sudo": Prefix(
        _split_options("-u -g -h -p -C -T -r -t -U -D -R --user --group --host --prompt --chdir --role --type")
    ),
    "doas": Prefix(_split_options("-u -C")),
    "env": Prefix(_split_options("-u -C --unset --chdir -a --argv0")),
    **dict.fromkeys(("command", "builtin", "nohup", "setsid", "coproc", "!", "{", "then", "do", "else"), Prefix()),
    **dict.fromkeys(("busybox", "toybox", "dbus-run-session", "unbuffer", "systemd-inhibit", "caffeinate"), Prefix()),
    "exec": Prefix(_split_options("-a")),
    "nice": Prefix(_split_options("-n --adjustment")),
    "ionice": Prefix(_split_options("-c -n --class --classdata")),
    "time": Prefix(_split_options("-f -o --format --output")),
    "timeout": Prefix(_split_options("-s -k --signal --kill-after"), 1),
    "stdbuf": Prefix(_split_options("-i -o -e --input --output --error")),
    "taskset": Prefix(skipped=1),
    "chrt": Prefix(skipped=1),
    "chroot": Prefix(skipped=1),
    "flock": Prefix(_split_options("-w -E --timeout"), 1),
    "unshare": Prefix(_split_options("-S -G --setuid --setgid -w --wd")),
    "nsenter": Prefix(_split_options("-t --target -S -G")),
    "setpriv": Prefix(_split_options("--reuid --regid --groups --bounding-set --inh-caps")),
    "runuser": Prefix(_split_options("-u -g -G")),
    "ssh-agent": Prefix(_split_options("-a -t -E -O -P")),
    "strace": Prefix(_split_options("-e -o -p -s -E -u")),
    "ltrace": Prefix(_split_options("-e -o -s -u")),
    "watch": Prefix(_split_options("-n --interval")),
    "xargs": Prefix(_split_options("-a -d -E -I -L -n -P -s --arg-file --delimiter --max-args --max-procs --replace")),
    "parallel": Prefix(_split_options("-j -a --jobs --arg-file --delay --timeout")),
    "xvfb-run": Prefix(_split_options("-n -s --server-num --server-args")),
    "npx": Prefix(_split_options("-p --package")),
    "bunx": Prefix(),
    "uvx": Prefix(_split_options("--from --with --python -p")),
    "pipx": Prefix(_split_options("--spec"), verbs=("run",)),
    "npm": Prefix(verbs=("exec", "x")),
    "pnpm": Prefix(verbs=("exec", "dlx")),
    "yarn": Prefix(verbs=("exec", "dlx")),
    "uv": Prefix(_split_options("--with --python -p --extra --group"), verbs=("run", "tool run")),
    **dict.fromkeys(("poetry", "pipenv", "pdm", "hatch", "rye"), Prefix(verbs=("run",))),
    "bundle": Prefix(verbs=("exec",)),
    "mise": Prefix(verbs=("exec", "x")),
}

_TEXTS = {
    "su": ("-c", "--command"), "runuser": ("-c", "--command"), "script": ("-c", "--command", "-qc", "-qec"),
    "flock": ("-c", "--command"), "nix-shell": ("--run", "--command"), "entr": ("-s",),
    "mapfile": ("-C",), "readarray": ("-C",), "complete": ("-C",), "compgen": ("-C",), "nodemon": ("-x", "--exec"),
}  # fmt: skip
"""Programs that hand a text to a shell, and the options that are followed by it."""

_SPOKEN = frozenset({"hyperfine", "sg", "concurrently", "tmux", "screen", "watchexec", "parallel"})
"""Programs each of whose words, up to a `:::`, may be a text that they hand to a shell."""

STARTERS = frozenset({*_WRAPPED, *_TEXTS, *_SPOKEN, "eval", "trap"})
"""Programs of which is known here what they start."""


def find_started(words: Sequence[str]) -> WrappedCommand:  # noqa: PLR0911  one line per kind of program
    """Return the commands that *words* starts directly, as far as its words determine them."""
    if not words:
        return WrappedCommand()
    program, args = words[0].rpartition("/")[2], tuple(words[1:])
    if program in SHELLS:
        return WrappedCommand(texts=_find_shell_text(args))
    if program in ("eval", "trap"):
        return WrappedCommand(texts=((" ".join(args) if program == "eval" else "".join(args[:1]), ()),))
    if program == "git":
        return _find_git_started(args)
    if program == "find":
        return WrappedCommand(_find_exec_commands(args))
    if program.startswith(("python", "pypy")):
        return WrappedCommand(_find_module(args))
    texts = tuple((args[at + 1], ()) for at, word in enumerate(args[:-1]) if word in _TEXTS.get(program, ()))
    if program in _SPOKEN:
        spoken = takewhile(lambda word: not word.startswith(":::"), args)
        texts += tuple((word, ()) for word in spoken if len(word.split()) > 1)
    if program == "env" and (split := _split_env_string(args)):
        return WrappedCommand(commands=(split,))
    rest = _get_started(program, args)
    if program == "watch" and rest:
        return WrappedCommand(texts=((" ".join(rest), ()),))
    return WrappedCommand((rest,) if rest else (), texts)


def _get_started(program: str, args: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that the *args* of a program which starts others name, or nothing."""
    prefix = _WRAPPED.get(program)
    if prefix is None or (program == "command" and {"-v", "-V"} & set(args[:1])):
        return ()
    if prefix.verbs:
        verb = next((v for v in prefix.verbs if tuple(v.split()) == args[: len(v.split())]), "")
        if not verb:
            return ()
        args = args[len(verb.split()) :]
    at = 0
    while at < len(args) and (
        args[at].startswith("-") or (program in ("env", "sudo", "doas") and _is_assignment(args[at]))
    ):
        word = args[at]
        at += 2 if word in prefix.values else 1
        if word == "--":
            break
    while program in ("env", "sudo", "doas") and at < len(args) and _is_assignment(args[at]):
        at += 1
    rest = args[at + prefix.skipped :]
    return (*rest, HOLE) if program in ("xargs", "parallel") and rest else rest


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier()


def _split_env_string(args: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command in the `-S` of env."""
    for at, word in enumerate(args):
        for option in ("--split-string=", "-S", "-vS", "-iS"):
            if word == option.rstrip("=") and at + 1 < len(args):
                return ("env", *_split_words(args[at + 1]), *args[at + 2 :])
            if word.startswith(option) and len(word) > len(option):
                return ("env", *_split_words(word[len(option) :]), *args[at + 1 :])
    return ()


def _find_shell_text(args: tuple[str, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the text that a shell is given with `-c`, and its parameters."""
    at, asked = 0, False
    while at < len(args) and args[at][:1] in ("-", "+") and len(args[at]) > 1:
        word = args[at]
        at += 1
        if word == "--":
            break
        asked = asked or word == "--command" or (word[0] == "-" and word[1] != "-" and "c" in word)
        if (word[-1] in "oO" and word[1] != "-") or word in ("--rcfile", "--init-file"):
            at += 1
    return ((args[at], args[at + 2 :]),) if asked and at < len(args) else ()


def _find_git_started(args: tuple[str, ...]) -> WrappedCommand:
    """Return the commands started by an alias that is set for one command, or by a git command that runs others."""
    settings, command = parse_git_args(args)
    verb, rest = command[0] if command else "", command[1:]
    alias = settings.get(f"alias.{verb.lower()}", "")
    if alias.startswith("!"):
        return WrappedCommand(texts=((" ".join((alias[1:], *map(shlex.quote, rest))), rest),))
    if alias:
        return WrappedCommand((("git", *_split_words(alias), *rest),))
    if verb == "submodule" and "foreach" in rest:
        inner = [word for word in rest[rest.index("foreach") + 1 :] if not word.startswith("--")]
        return WrappedCommand(texts=((" ".join(inner), ()),))
    if verb == "bisect" and rest[:1] == ("run",):
        return WrappedCommand((rest[1:],))
    return WrappedCommand()


def _find_exec_commands(args: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    commands = []
    for at, word in enumerate(args):
        if word in ("-exec", "-execdir", "-ok", "-okdir"):
            rest = args[at + 1 :]
            end = next(
                (i for i, w in enumerate(rest) if w == ";" or (w == "+" and i and rest[i - 1] == "{}")), len(rest)
            )
            commands.append(tuple(HOLE if w == "{}" else w for w in rest[:end]))
    return tuple(commands)


def _find_module(args: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the module or script that a Python interpreter is told to run, as if it were a program."""
    for at, word in enumerate(args):
        if word == "-m" and at + 1 < len(args):
            return (args[at + 1 :],)
        if not word.startswith("-"):
            return (args[at:],)
        if word == "-c":
            break
    return ()


def _split_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # no closing quotation
        return text.split()
