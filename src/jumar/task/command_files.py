"""Finds the files that a command names or runs, and those that its scripts and build files run.

What tells a file that judges from one that is judged is where its name stands: a file that is *run* (the first word of
a command that is a file of the tree, and what `source`, `include` or `-m` load) judges; any later argument does not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch
from itertools import pairwise
from posixpath import basename, normpath

from jumar.languages.gitignore_globs import compile_patterns

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

LONGEST_VALUE = 200
"""Characters of the value of a name: a file that doubles its names again and again has no end."""

_LOADS = frozenset({"source", ".", "include", "sinclude", "-include"})
_BEFORE = frozenset({
    "!", "builtin", "ccache", "command", "coverage", "do", "elif", "else", "env", "eval", "exec", "hatch", "if", "nice",
    "nohup", "npx", "pipenv", "poetry", "run", "set", "stdbuf", "sudo", "then", "time", "timeout", "until", "uv",
    "while", "xargs",
})  # fmt: skip
"""Words after which a command begins."""

_NUMBER = re.compile(r"[\d.]*\d[smhd]?")
_SPLIT = re.compile(r"&&|\|\||[;&|(){}`\n]|\$\(")
_SPACE = re.compile(r"[\s'\"\\]+")
_CALL = re.compile(
    r"\b(?:run|call|check_call|check_output|Popen|popen|system|run_path|exec\w*|spawn\w*|fork)\s*\(([^()]{0,2000})"
)
_VALUE = re.compile(r"^[ \t]*(?:export[ \t]+|override[ \t]+)?(\w+)[ \t]*(:{0,3}|\?|\+)=[ \t]*(.*)$", re.MULTILINE)
_USED = re.compile(r"\$(?:\((\w+)\)|\{(\w+)\}|(\w+))")
_GIVEN = re.compile(r"\$[<^+?]")
_RULE = re.compile(r"^([^\s#:=][^#:=]*)::?(?!=)(.*)$")
_GOAL = re.compile(r"^\.DEFAULT_GOAL[ \t]*:{0,3}=[ \t]*(\S+)", re.MULTILINE)
_KEY = re.compile(r"^\s*(?:- )?([\w.{}-]+)\s*[=:](?:\s+|$)|^\s*- ")
_HOLDS = re.compile(r"cmd|command|script|run|sh$")
_CODE = (".py", ".js", ".ts", ".mjs", ".cjs", ".rb", ".pl", ".php")
_COMPILERS = frozenset({
    "cc", "gcc", "g++", "clang", "clang++", "c99", "tcc", "rustc", "javac", "kotlinc", "ghc", "gfortran", "tsc",
})  # fmt: skip
SUBJECTS = _COMPILERS | frozenset({
    "bandit", "biome", "black", "clang-format", "clang-tidy", "codespell", "cppcheck", "eslint", "flake8", "gofmt",
    "golangci-lint", "hadolint", "isort", "jshint", "mypy", "prettier", "pycodestyle", "pydocstyle", "pyflakes",
    "pylint", "pyright", "rubocop", "ruff", "rustfmt", "shellcheck", "shfmt", "standard", "staticcheck", "stylelint",
    "ava", "jasmine", "jest", "mocha", "phpunit", "py.test", "pytest", "rspec", "tap", "vitest",
    "[", "[[", "basename", "cat", "cd", "chmod", "chown", "cp", "cut", "date", "dirname", "echo", "egrep", "export",
    "fgrep", "find", "git", "grep", "gzip", "head", "install", "ln", "ls", "mkdir", "mv", "printf", "read", "realpath",
    "rg", "rm", "rmdir", "sed", "sleep", "sort", "stat", "tail", "tar", "tee", "test", "touch", "tr", "type", "uniq",
    "wc", "which", "zip",
})  # fmt: skip
"""Compilers, checkers, runners of tests, tools for text: the files that they are given are their subject."""

_INTERPRETERS = frozenset({"sh", "bash", "python", "python3", "node"})

_ALL = frozenset({"for", "cmp", "diff"})
"""Programs of which every argument counts; the words of a `for` are run in its loop."""

_FOLDERS = frozenset({"run-parts"})
"""Programs that run what lies in the folders that they are given."""

_FILE_OPTIONS = frozenset({
    "-r", "--require", "--import", "--loader", "--experimental-loader", "--rcfile", "--init-file", "-f", "--file",
})  # fmt: skip
"""Options whose file is run or loaded before the script."""

_READS = re.compile(r"\s*(?:(?:ba|da|z|k)?sh|python[\d.]*|node)\b")


class _Tree:
    """Files of a tree, by their names."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = tuple(paths)
        self._ends: dict[str, list[str]] = {}
        for path in self.paths:
            self._ends.setdefault(basename(path), []).append(path)

    def find_ending(self, word: str) -> list[str]:
        """Return the files whose path is *word* or ends with it, as it does after `cd`."""
        path = re.sub(r"^(?:\.\./)+", "", normpath(word).lstrip("/"))
        return [file for file in self._ends.get(basename(path), ()) if file == path or file.endswith(f"/{path}")]

    def match(self, word: str) -> list[str]:
        """Return the files that *word* names, as a path or as a pattern of the shell."""
        name = word.lstrip("<")
        if not set(name) & set("*?["):
            return self.find_ending(name)
        return [path for path in self.paths if fnmatch(path, name) or fnmatch(path, f"*/{name.removeprefix('./')}")]

    def find_below(self, word: str) -> list[str]:
        """Return the files in the folder *word*."""
        folder = re.sub(r"^(?:\.\.?/)+", "", normpath(word).lstrip("/"))
        return [path for path in self.paths if f"/{folder}/" in f"/{path}"] if folder not in ("", ".") else []


def find_files_run(command: str, paths: Iterable[str], read: Callable[[str], str]) -> frozenset[str]:
    """Return the files among *paths* that *command* names or runs, and those that these run, to a fixed point."""
    every = _Tree(paths)
    found, asked, texts = frozenset(_list_named(command, every)), frozenset(_list_asked(command)), dict[str, str]()
    while True:
        for path in found - texts.keys():
            texts[path] = read(path)[:LARGEST]
        text = "\n".join((command, *(_extract_commands(path, texts[path], asked) for path in sorted(found))))
        more = found.union(_list_run_by(text, every), _list_build_files(text, every)), asked.union(_list_asked(text))
        if more == (found, asked):
            return found
        found, asked = more


def _list_asked(text: str) -> Iterator[str]:
    """Yield the targets of make and the scripts of npm that *text* runs."""
    for words in _split_commands(text):
        if any(basename(word) in BUILD_FILES_OF for word in words):
            yield from (word for word in words if not word.startswith("-") and basename(word) not in BUILD_FILES_OF)


def _list_named(command: str, tree: _Tree) -> Iterator[str]:
    """Yield the files that *command* itself names anywhere, but for those it compiles."""
    for words in _split_commands(command):
        if words and basename(words[0]) not in SUBJECTS:
            for word in words:
                for part in re.findall(r"[\w./@+-]+", word):
                    yield from tree.find_ending(part) if not part.startswith("/") else ()


def _list_run_by(text: str, tree: _Tree) -> Iterator[str]:
    """Yield the files that a command line runs, by their place in it."""
    for words in _split_commands(text):
        yield from _list_run_in(words, tree)
    for line in text.split("\n"):
        for before, after in pairwise(line.split("|")):
            if _READS.match(after):  # cat FILE | sh
                yield from (path for word in _SPACE.split(re.split("[;&]", before)[-1]) for path in tree.match(word))


def _list_run_in(words: list[str], tree: _Tree) -> Iterator[str]:
    """Yield the files that the simple command *words* runs or loads: the first that it names.

    Later ones are its arguments.

    Not the first word: options and wrappers have values (`bash -o pipefail x.sh`, `timeout -s KILL 9 sh x.sh`).
    """
    started = next((w for w in words if basename(w) not in _BEFORE and not _is_option(w)), "")
    program = basename(started)
    if program in _FOLDERS or (program == "find" and {"-exec", "-execdir"} & set(words)):
        yield from (path for word in words for path in tree.find_below(word))
        return
    built = "/" in started[1:] and not started.startswith("/") and not tree.find_ending(started)
    if (program in SUBJECTS and not _INTERPRETERS & set(words)) or "--check" in words or built:
        return
    every = program in _ALL or bool(_LOADS & set(words))
    for at, word in enumerate(words):
        if word == "-m" and words[at + 1 : at + 2]:
            stem = words[at + 1].replace(".", "/")
            yield from (path for end in (".py", "/__main__.py") for path in tree.find_ending(stem + end))
            return
        on_path = word == started and "/" not in word and not every
        found = [] if on_path else tree.match(word)
        yield from found
        if found and not every and words[max(0, at - 1)] not in _FILE_OPTIONS:
            return


def _is_option(word: str) -> bool:
    return word.startswith("-") or "=" in word or bool(_NUMBER.fullmatch(word))


def _split_commands(text: str) -> Iterator[list[str]]:
    """Yield the simple commands of *text*, as words without their quotes."""
    for line in re.sub(r"\\\n", " ", text).split("\n"):
        if line.lstrip().startswith("#"):
            continue
        for command in _SPLIT.split(line):
            words = [word.lstrip("@+") for word in _SPACE.split(command.strip().lstrip("@+")) if word]
            if words and words[0].startswith("-") and words[0] != "-include":
                words[0] = words[0].lstrip("-@+")
            yield words


def _list_build_files(text: str, tree: _Tree) -> Iterator[str]:
    """Yield the files that decide what programs in *text* run, those of `-f FILE` too."""
    for words in _split_commands(text):
        lines = [line for word in words for line in BUILD_FILES_OF.get(basename(word), ())]
        if lines:
            wanted = compile_patterns(lines)
            yield from (path for path in tree.paths if wanted(path))
            for option, value in pairwise(words):
                yield from tree.find_ending(value) if option in ("-f", "--file", "--makefile") else ()


def _extract_commands(path: str, body: str, asked: frozenset[str]) -> str:
    """Return the commands in the file *path*, for the targets *asked*."""
    name = basename(path)
    if name in ("package.json", "composer.json"):
        return _extract_scripts(body, asked)
    if name.endswith(_CODE):
        return "\n".join(re.sub(r"[\[\],'\"]+", " ", call) for call in _CALL.findall(body))
    if name.lower() in ("makefile", "gnumakefile") or name.endswith((".mk", ".make")):
        return _extract_recipes(_resolve(re.sub(r"\\\n", " ", body)), asked)
    if name.endswith((".ini", ".cfg", ".yml", ".yaml", ".toml")):
        return "\n".join(_list_config_commands(body))
    return _resolve(body)


def _list_config_commands(body: str) -> Iterator[str]:
    """Yield the lines of an INI or YAML file that hold commands.

    Those of keys that are called so, and what follows them.
    """
    holds = False
    for line in body.split("\n"):
        if key := _KEY.match(line):
            holds = bool(_HOLDS.search(key[1])) if key[1] else holds
        if holds:
            yield _KEY.sub("", line)


def _resolve(body: str) -> str:
    """Return *body* with the simple values of its names filled in; `$(MAKE)` is make."""
    values = {"MAKE": "make", "SHELL": "sh"}
    for name, how, text in _VALUE.findall(body):
        values[name] = f"{values.get(name, '')} {text}" if how == "+" else text

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2] or match[3]
        return str(values.get(name, match[0] if match[1] else ""))[:LONGEST_VALUE]

    for _ in range(3):  # of values in values, as deep as people write them
        body = _USED.sub(value, body)[:LARGEST]
    return body


def _extract_recipes(body: str, asked: frozenset[str]) -> str:
    """Return the recipes of the targets among *asked*, else of the first one, and of their prerequisites."""
    rules: dict[str, list[str]] = {}
    needs: dict[str, set[str]] = {}
    outside: list[str] = []
    current: list[str] = []
    given = ""
    for line in body.split("\n"):
        if line.startswith("\t"):
            for target in current:
                rules[target].append(_GIVEN.sub(given, line))
        elif rule := _RULE.match(line):
            before, _, recipe = rule[2].partition(";")
            current, given = rule[1].split(), before.strip().replace("\\", "")
            for target in current:
                rules.setdefault(target, []).append(_GIVEN.sub(given, recipe))
                needs.setdefault(target, set()).update(before.split())
        elif not _VALUE.match(line):
            outside.append(line)
    goal = _GOAL.search(body)
    first = [goal[1]] if goal else [name for name in rules if not name.startswith(".")][:1]
    wanted = {target for target in (asked if asked & rules.keys() else first) if target in rules}
    while more := {need for target in wanted for need in needs[target] if need in rules} - wanted:
        wanted |= more
    patterns = {target for target in rules if "%" in target}
    return "\n".join([*outside, *(line for target in sorted({*wanted, *patterns}) for line in rules[target])])


def _extract_scripts(body: str, asked: frozenset[str]) -> str:
    """Return the scripts of a package that *asked* starts, those that they start, and their pre and post scripts."""
    try:
        scripts = dict(json.loads(body).get("scripts", {}))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return ""
    taken: dict[str, str] = {}
    wanted = {"test" if word in ("t", "tst") else word for word in asked}
    while more := {
        name
        for name in scripts
        if name not in taken and _is_asked(name.removeprefix("pre").removeprefix("post"), wanted)
    }:
        taken.update((name, str(scripts[name])) for name in more)
        wanted |= {word for name in more for word in _SPACE.split(_SPLIT.sub(" ", taken[name]))}
    return "\n".join(taken.values())


def _is_asked(name: str, wanted: set[str]) -> bool:
    """Return whether the script *name* is among *wanted*, which may be `npm:NAME` or a pattern (`check:*`)."""
    return name in wanted or any(
        fnmatch(name, word.removeprefix("npm:")) for word in wanted if "*" in word or ":" in word
    )
