"""The files of a tree that a command names or runs, and those that its scripts and build files run in turn.

What tells a file that judges from one that is judged is where its name stands: a file that is *run* (the first word of
a command, or the first argument of an interpreter, of `source` or of `include`) judges; any other argument does not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from posixpath import basename, normpath

from jumar.globs import spec

_NODE = ("package.json",)
BUILD_FILES_OF = {
    "make": ("Makefile", "makefile", "GNUmakefile"), "gmake": ("Makefile", "makefile", "GNUmakefile"),
    "npm": _NODE, "npx": _NODE, "yarn": _NODE, "pnpm": _NODE, "bun": _NODE, "tox": ("tox.ini", "setup.cfg"),
    "nox": ("noxfile.py",), "just": ("justfile", "Justfile", ".justfile"), "task": ("Taskfile.y*ml",),
    "invoke": ("tasks.py",), "inv": ("tasks.py",), "composer": ("composer.json",),
}  # fmt: skip
"""Program -> the files that tell it what to run."""

LARGEST = 200_000
"""Characters of a file that are searched."""

_INTERPRETER = re.compile(
    r"(?:sh|bash|dash|ksh|zsh|python[\d.]*|pypy3?|node|deno|bun|tsx|ts-node|ruby|perl|php|lua|Rscript|sys\.executable|process\.execPath)"
)
_LOADS = frozenset({"source", ".", "include", "sinclude", "-include"})
_BEFORE = frozenset({
    "!", "builtin", "command", "coverage", "do", "elif", "else", "env", "eval", "exec", "hatch", "if", "nice", "nohup",
    "npx", "pipenv", "poetry", "run", "set", "stdbuf", "sudo", "then", "time", "timeout", "until", "uv", "while",
    "xargs",
})  # fmt: skip
"""Words after which a command begins."""

_NUMBER = re.compile(r"[\d.]*\d[smhd]?")
_SPLIT = re.compile(r"&&|\|\||[;&|(){}`\n]|\$\(")
_SPACE = re.compile(r"[\s'\"\\]+")
_CALL = re.compile(
    r"\b(?:run|call|check_call|check_output|Popen|popen|system|run_path|exec\w*|spawn\w*|fork)\s*\(([^()]{0,2000})"
)
_VALUE = re.compile(r"^[ \t]*(?:export[ \t]+|override[ \t]+)?(\w+)[ \t]*(?::{0,3}|\?|)=[ \t]*(.*)$", re.MULTILINE)
_USED = re.compile(r"\$(?:\((\w+)\)|\{(\w+)\}|(\w+))")
_RULE = re.compile(r"^([^\s#:=][^#:=]*)::?(?!=)(.*)$")
_KEY = re.compile(r"^\s*[\w.{}-]+\s*[=:]\s+|^\s*- ")
_CODE = (".py", ".js", ".ts", ".mjs", ".cjs", ".rb", ".pl", ".php")
_SUBJECTS = frozenset({
    "cc", "gcc", "g++", "clang", "clang++", "c99", "tcc", "rustc", "javac", "kotlinc", "ghc", "gfortran",
})  # fmt: skip
"""Compilers: the files that a command gives them are the code under test."""


def files_run(command: str, paths: Iterable[str], read: Callable[[str], str]) -> frozenset[str]:
    """The files among *paths* that *command* names or runs, and those that these run, to a fixed point."""
    every = tuple(paths)
    found, asked, texts = frozenset(_named(command, every)), frozenset(_asked(command)), dict[str, str]()
    while True:
        for path in found - texts.keys():
            texts[path] = read(path)[:LARGEST]
        text = "\n".join((command, *(_commands_of(path, texts[path], asked) for path in sorted(found))))
        more = found.union(_run_by(text, every), _build_files(text, every)), asked.union(_asked(text))
        if more == (found, asked):
            return found
        found, asked = more


def _asked(text: str) -> Iterator[str]:
    """What *text* asks of programs that have build files: targets of make, scripts of npm."""
    for words in _simple(text):
        if any(basename(word) in BUILD_FILES_OF for word in words):
            yield from (word for word in words if not word.startswith("-") and basename(word) not in BUILD_FILES_OF)


def _named(command: str, paths: tuple[str, ...]) -> Iterator[str]:
    """The files that *command* itself names, wherever they stand in it, but for what it compiles."""
    for words in _simple(command):
        if words and basename(words[0]) not in _SUBJECTS:
            for word in words:
                for part in re.findall(r"[\w./@+-]+", word):
                    yield from _ending_with(part, paths) if not part.startswith("/") else ()


def _run_by(text: str, paths: tuple[str, ...]) -> Iterator[str]:
    """The files that stand where a command line names what is run."""
    for words in _simple(text):
        for name in _run_in(words):
            yield from _ending_with(name, paths)


def _run_in(words: list[str]) -> Iterator[str]:
    """What the simple command *words* runs or loads; what follows a script is an argument of it."""
    started, loads = False, False
    for at, word in enumerate(words):
        name = basename(word)
        if started and word == "-m" and words[at + 1 : at + 2]:
            stem = words[at + 1].replace(".", "/")
            yield from (f"{stem}.py", f"{stem}/__main__.py")
            return
        if word in _LOADS:
            loads = True
        elif word.startswith("-") or "=" in word or _NUMBER.fullmatch(word) or name in _BEFORE:
            continue  # an option, an assignment, the seconds of a `timeout`
        elif _INTERPRETER.fullmatch(name):
            started = True
        else:
            yield word
            if not loads:
                return


def _simple(text: str) -> Iterator[list[str]]:
    """The simple commands of *text*, as words without their quotes."""
    for line in re.sub(r"\\\n", " ", text).split("\n"):
        if line.lstrip().startswith("#"):
            continue
        for command in _SPLIT.split(line):
            words = [word.lstrip("@+") for word in _SPACE.split(command.strip().lstrip("@+")) if word]
            if words and words[0].startswith("-") and words[0] != "-include":
                words[0] = words[0].lstrip("-@+")
            yield words


def _ending_with(word: str, paths: tuple[str, ...]) -> Iterator[str]:
    """The files whose path is *word* or ends with it, as it does after `cd`."""
    path = re.sub(r"^(?:\.\./)+", "", normpath(word).lstrip("/"))
    return (file for file in paths if file == path or file.endswith(f"/{path}"))


def _build_files(text: str, paths: tuple[str, ...]) -> Iterator[str]:
    """The files by which the programs that *text* starts decide what to run, those of `-f FILE` too."""
    for words in _simple(text):
        lines = [line for word in words for line in BUILD_FILES_OF.get(basename(word), ())]
        if lines:
            wanted = spec(lines)
            yield from (path for path in paths if wanted(path))
            for option, value in pairwise(words):
                yield from _ending_with(value, paths) if option in ("-f", "--file", "--makefile") else ()


def _commands_of(path: str, body: str, asked: frozenset[str]) -> str:
    """The text of *path* in which commands stand, where *asked* is asked of it."""
    name = basename(path)
    if name in ("package.json", "composer.json"):
        return _scripts(body, asked)
    if name.endswith(_CODE):
        return "\n".join(re.sub(r"[\[\],'\"]+", " ", call) for call in _CALL.findall(body))
    if name.lower() in ("makefile", "gnumakefile") or name.endswith((".mk", ".make")):
        return _recipes(_resolved(re.sub(r"\\\n", " ", body)), asked)
    if name.endswith((".ini", ".cfg", ".yml", ".yaml", ".toml")):
        return "\n".join(_KEY.sub("", line) for line in body.split("\n"))
    return _resolved(body)


def _resolved(body: str) -> str:
    """*body* with the simple values of its names put in their places; `$(MAKE)` is make."""
    values = {"MAKE": "make", "SHELL": "sh", **dict(_VALUE.findall(body))}

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2] or match[3]
        return str(values.get(name, match[0] if match[1] else ""))

    for _ in range(3):  # of values in values, as deep as people write them
        body = _USED.sub(value, body)[:LARGEST]
    return body


def _recipes(body: str, asked: frozenset[str]) -> str:
    """What make runs for the targets among *asked*, else for the first, and for what those need."""
    rules: dict[str, list[str]] = {}
    needs: dict[str, set[str]] = {}
    outside: list[str] = []
    current: list[str] = []
    for line in body.split("\n"):
        if line.startswith("\t"):
            for target in current:
                rules[target].append(line)
        elif rule := _RULE.match(line):
            before, _, recipe = rule[2].partition(";")
            current = rule[1].split()
            for target in current:
                rules.setdefault(target, []).append(recipe)
                needs.setdefault(target, set()).update(before.split())
        elif not _VALUE.match(line):
            outside.append(line)
    first = [name for name in rules if not name.startswith(".")][:1]
    wanted = set(asked & rules.keys() if asked else first)
    while more := {need for target in wanted for need in needs[target] if need in rules} - wanted:
        wanted |= more
    patterns = {target for target in rules if "%" in target}
    return "\n".join([*outside, *(line for target in sorted({*wanted, *patterns}) for line in rules[target])])


def _scripts(body: str, asked: frozenset[str]) -> str:
    """The scripts of a package that are started by *asked*, those that they start, and what runs before and after."""
    try:
        scripts = dict(json.loads(body).get("scripts", {}))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return ""
    taken: dict[str, str] = {}
    wanted = {"test" if word in ("t", "tst") else word for word in asked}
    while more := {
        name for name in scripts if name not in taken and name.removeprefix("pre").removeprefix("post") in wanted
    }:
        taken.update((name, str(scripts[name])) for name in more)
        wanted |= {word for name in more for word in _SPACE.split(_SPLIT.sub(" ", taken[name]))}
    return "\n".join(taken.values())
