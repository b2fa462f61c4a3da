"""Finds commands among the words of a program that no table knows: it may start them, as `fakeroot` does."""

from __future__ import annotations

from collections.abc import Sequence

from jumar.child.hook.deploy_table import TABLE
from jumar.commands.downloads import SHELLS
from jumar.commands.wrappers import STARTERS

NAMED = (
    frozenset({"git", "rm", "mv", "dd", "shred", "find", "env"})
    | SHELLS
    | frozenset(program for program, ways in TABLE.items() if not {"-", "*"} & set(ways.split(", ")))
)
"""Programs that are looked for among the words of others: those with rules that take more than their name to break."""

READERS = frozenset({
    *("echo", "printf", "say", "cowsay", "notify-send", "logger", "wall", "read", "test", "[", "[[", "expr", "let"),
    *("export", "declare", "local", "readonly", "typeset", "set", "unset", "unalias", "alias", "return"),
    *("exit", "hash", "true", "false", ":", "cd", "pushd", "popd", "wait", "kill", "shift", "source", ".", "sleep"),
    *("grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "sed", "awk", "gawk", "jq", "yq", "tr", "cut", "fzf"),
    *("cat", "bat", "head", "tail", "less", "more", "ls", "tree", "wc", "sort", "uniq", "diff", "cmp", "file", "stat"),
    *("man", "info", "help", "tldr", "apropos", "whatis", "which", "whereis", "type", "dpkg", "rpm"),
    *("apt", "apt-get", "brew", "dnf", "yum", "apk", "pacman", "snap", "choco", "winget", "pip", "pip3"),
    *("touch", "mkdir", "cp", "ln", "tar", "zip", "unzip", "basename", "dirname", "realpath", "readlink", "seq"),
    *("vim", "vi", "nano", "emacs", "code", "pytest", "go", "node", "perl", "ruby", "php", "curl", "wget", "jumar"),
})  # fmt: skip
"""Programs whose words are texts, files or packages: nothing in them is run."""


def list_named_commands(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the commands that *words* would start if its program, which is in no table, started any of its words."""
    program = words[0].rpartition("/")[2]
    if program in NAMED | READERS | STARTERS or program in TABLE or program.startswith(("git-", "python", "pypy")):
        return []
    return [tuple(words[at:]) for at, word in enumerate(words) if at and word.rpartition("/")[2] in NAMED]
