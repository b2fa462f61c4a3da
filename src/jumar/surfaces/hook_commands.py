"""Shell commands that no red test can ask for: a small table over the words of a line, for the hook's first look.

It stops what is written plainly. What a script hides is found by comparing the tree afterwards, as far as files go.
"""

from __future__ import annotations

import re
import shlex
from contextlib import suppress

MOST_CHARACTERS = 200_000
"""A longer line is taken by its plain words: shlex needs a minute for a word of a megabyte, and no host waits that."""

_ENDS = frozenset(";|&()\n`<>")
_REDIRECTS = frozenset("<>&")
_WRAPPERS = frozenset({
    "sudo", "doas", "env", "command", "builtin", "exec", "nohup", "time", "nice", "ionice", "setsid", "stdbuf",
    "timeout", "xargs", "then", "do", "else", "!",
})  # fmt: skip
_SUBSTITUTION = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_GIT_VALUES = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"})
_DEPLOYS = {
    "gcloud": (("functions", "deploy"), ("run", "deploy"), ("app", "deploy")),
    "kubectl": (("apply",), ("delete",), ("replace",), ("rollout",)),
    "terraform": (("apply",), ("destroy",)),
    "tofu": (("apply",), ("destroy",)),
    "pulumi": (("up",), ("destroy",)),
    "helm": (("install",), ("upgrade",), ("uninstall",), ("rollback",)),
    "serverless": (("deploy",), ("remove",)),
    "sls": (("deploy",), ("remove",)),
    "cdk": (("deploy",), ("destroy",)),
    "firebase": (("deploy",),),
    "netlify": (("deploy",),),
    "vercel": (("deploy",), ("--prod",)),
    "fly": (("deploy",),),
    "flyctl": (("deploy",),),
    "wrangler": (("deploy",), ("publish",)),
    "npm": (("publish",), ("unpublish",)),
    "pnpm": (("publish",),),
    "yarn": (("publish",), ("npm", "publish")),
    "cargo": (("publish",), ("yank",)),
    "twine": (("upload",),),
    "gh": (("repo", "delete"), ("release", "delete")),
}
"""Program -> words that, in this order, make it one that changes what others use."""


def refused(line: str) -> str:
    """Why the shell must not run *line*, in one sentence; empty: nothing here speaks against it."""
    return next((why for words in _commands(line) if (why := _why(words))), "")


def _commands(line: str, depth: int = 0) -> list[list[str]]:
    """The simple commands in *line*, each as its words, with those that a shell is handed as text."""
    found: list[list[str]] = [[]]
    tokens = iter(_tokens(line))
    for token in tokens:
        if set(token) <= _REDIRECTS and token.strip("&"):
            # Its descriptor and its file are no words of the command.
            if found[-1] and found[-1][-1].isdigit():
                found[-1].pop()
            next(tokens, "")
        elif set(token) <= _ENDS:
            found.append([])
        else:
            found[-1].append(token)
    nested = [inner for words in found if depth < 3 for text in _texts(words) for inner in _commands(text, depth + 1)]  # noqa: PLR2004  deeper is no plain command
    return [*found, *nested]


def _tokens(line: str) -> list[str]:
    lexer = shlex.shlex(line.replace("\\\n", " "), posix=True, punctuation_chars="".join(sorted(_ENDS)))
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    with suppress(ValueError):  # no closing quotation, as in many a here-document
        if len(line) <= MOST_CHARACTERS:
            return list(lexer)
    plain = line.replace(";", " ; ").replace("&", " & ")
    return [word for row in plain.split("\n") for word in (*row.split(), "\n")]


def _texts(words: list[str]) -> list[str]:
    """What *words* hand to another shell as a text: by name, or within double quotes."""
    inside = [part for word in words if " " in word for found in _SUBSTITUTION.findall(word) for part in found]
    words = _bare(words)
    name = words[0].rpartition("/")[2] if words else ""
    if name == "eval":
        return [*inside, " ".join(words[1:])]
    if name in _SHELLS:
        flags = [
            i for i, word in enumerate(words) if word.startswith("-") and not word.startswith("--") and "c" in word
        ]
        return [*inside, *(words[flags[0] + 1 : flags[0] + 2] if flags else ())]
    return inside


def _bare(words: list[str]) -> list[str]:
    """*words* without what stands before the program: assignments, and programs that start others."""
    rest = list(words)
    while rest:
        head = rest[0]
        name, equals, _ = head.partition("=")
        if head in _WRAPPERS or head.rpartition("/")[2] in _WRAPPERS or (equals and name.isidentifier()) or head == "{":
            wrapped = head.rpartition("/")[2] in _WRAPPERS
            rest = rest[1:]
            while wrapped and rest and (rest[0].startswith("-") or rest[0][:1].isdigit()):
                rest = rest[1:]
        else:
            break
    return rest


def _why(words: list[str]) -> str:
    words = _bare(words)
    if not words:
        return ""
    program, rest = words[0].rpartition("/")[2], words[1:]
    if program == "git":
        return _git(rest)
    plain = [word for word in rest if not word.startswith("-") or word == "--prod"]
    if program == "jumar" and plain[:1] == ["hook"]:
        return "jumar hook is for the host of this session, not for its agent"
    if any(word.rpartition("/")[2] in ("hook_fast.py", "jumar.surfaces.hook") for word in rest):
        return "jumar's hook is for the host of this session, not for its agent"
    for way in _DEPLOYS.get(program, ()):
        if list(way) == plain[: len(way)] or (way == ("--prod",) and "--prod" in plain):
            return f"{program} {' '.join(way)} changes what others use; the person does that, not an agent"
    return ""


def _git(rest: list[str]) -> str:
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in _GIT_VALUES else rest[1:]
    verb, args = (rest[0], rest[1:]) if rest else ("", [])
    short = {letter for word in args if word.startswith("-") and not word.startswith("--") for letter in word[1:]}
    long = {word.partition("=")[0] for word in args if word.startswith("--")}
    bad = {
        "push": "f" in short
        or any(flag.startswith(("--force", "--mirror", "--delete", "--prune")) for flag in long)
        or "d" in short
        or any(word.startswith(("+", ":")) for word in args),
        "reset": "--hard" in long or "--har" in long,
        "clean": "f" in short or "--force" in long,
        "branch": bool(short & {"D", "M"}) or ("--force" in long) or ({"d", "f"} <= short),
        "filter-branch": True,
        "update-ref": "d" in short or "--delete" in long,
        "reflog": args[:1] in (["expire"], ["delete"]),
    }
    if bad.get(verb):
        return f"git {verb} as it stands here destroys history or work; the person does that, not an agent"
    return ""
