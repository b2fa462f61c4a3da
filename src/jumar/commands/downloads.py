"""Detects downloads that are run at once: commands that fetch and print, and programs that run their input."""

from __future__ import annotations

import re
from collections.abc import Sequence

FETCHED = "\ufffb"
"""Stands in a word for what a download brings: known only when the command runs, and never looked at by anybody."""

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish", "yash"})

_INTERPRETER = re.compile(r"(?:python|pypy|perl|ruby|node|nodejs|php|lua|Rscript)[\d.]*")
"""Programs that run a program of another language."""

_GIVEN = frozenset("cemnprR")
"""Letters of their options that say that the program is not what they are fed: `-c`, `-e`, `-m json.tool`."""

_CURL_VALUES = frozenset("AbcCdDeEFhHKmPQrtTuUwxXyYz")
"""Letters of curl's options that take a value, but for `-o`."""

_NOWHERE = frozenset({"-", "/dev/stdout", "/dev/fd/1"})


def prints_download(words: Sequence[str]) -> bool:
    """Return whether the command *words* prints a download."""
    program, args = (words[0].rpartition("/")[2], words[1:]) if words else ("", ())
    if program == "curl":
        return _writes_no_file(args)
    if program == "wget":
        pairs = zip(args, (*args[1:], ""), strict=True)
        return any(_find_output_file(word, after) in _NOWHERE for word, after in pairs)
    return False


def _writes_no_file(args: Sequence[str]) -> bool:
    """Return whether curl with *args* writes to no file."""
    for at, word in enumerate(args):
        if word.startswith(("--output=", "--remote-name")) or word == "--output":
            place = word.partition("=")[2] or (*args, "")[at + 1]
            if word.startswith("--remote") or place not in _NOWHERE:
                return False
        for after, letter in enumerate(word[1:] if word[:1] == "-" and word[1:2] != "-" else "", 2):
            if letter == "O" or (letter == "o" and (word[after:] or (*args, "")[at + 1]) not in _NOWHERE):
                return False
            if letter in _CURL_VALUES or letter == "o":
                break
    return True


def _find_output_file(word: str, after: str) -> str:
    """Return the file that wget writes to by its option *word*, followed by *after*; empty if it names none."""
    if word.startswith("--output-document"):
        return word.partition("=")[2] or after
    letters, found, place = word.partition("O")
    return (place or after) if found and letters[:1] == "-" and letters[1:2] != "-" else ""


def runs_input(words: Sequence[str]) -> bool:
    """Return whether the command *words* runs its input: a shell or an interpreter without another program."""
    program, args = words[0].rpartition("/")[2], words[1:]
    shell = program in SHELLS
    if not shell and not _INTERPRETER.fullmatch(program):
        return False
    rest = iter(args)
    for word in rest:
        letters = set(word[1:] if word[1:2] != "-" else "")
        if word in ("-", "/dev/stdin") or (shell and word[:1] == "-" and "s" in letters):
            return True
        if word[:1] not in ("-", "+") or (not shell and (_GIVEN & letters or word.startswith(("--eval", "--print")))):
            return False
        if shell and letters & {"o", "O"}:
            next(rest, "")
    return True


def runs_download(words: Sequence[str]) -> bool:
    """Return whether the command *words* is a download, or runs one."""
    program, args = words[0].rpartition("/")[2], words[1:]
    if program in SHELLS or program in ("source", ".") or _INTERPRETER.fullmatch(program):
        return next((word for word in args if word[:1] not in ("-", "+")), "") == FETCHED
    return words[0] == FETCHED
