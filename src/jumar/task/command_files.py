"""Finds the files that a command names or runs, and those that its scripts and build files run.

What tells a file that judges from one that is judged is where its name stands: a file that is *run* (the first word of
a command that is a file of the tree, and what `source`, `include` or `-m` load) judges; any later argument does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch
from itertools import pairwise
from posixpath import basename, normpath

from jumar.languages.gitignore_globs import compile_patterns
from jumar.task.command_texts import LARGEST, SPACE, SPLIT, extract_commands

_NODE = ("package.json",)
BUILD_FILES_OF = {
    "make": ("Makefile", "makefile", "GNUmakefile"), "gmake": ("Makefile", "makefile", "GNUmakefile"),
    "npm": _NODE, "npx": _NODE, "yarn": _NODE, "pnpm": _NODE, "bun": _NODE, "tox": ("tox.ini", "setup.cfg"),
    "nox": ("noxfile.py",), "just": ("justfile", "Justfile", ".justfile"), "task": ("Taskfile.y*ml",),
    "invoke": ("tasks.py",), "inv": ("tasks.py",), "composer": ("composer.json",),
}  # fmt: skip
"""Program -> the files that tell it what to run."""

_LOADS = frozenset({"source", ".", "include", "sinclude", "-include"})
_BEFORE = frozenset({
    "!", "builtin", "ccache", "command", "coverage", "do", "elif", "else", "env", "eval", "exec", "hatch", "if", "nice",
    "nohup", "npx", "pipenv", "poetry", "run", "set", "stdbuf", "sudo", "then", "time", "timeout", "until", "uv",
    "while", "xargs",
})  # fmt: skip
"""Words after which a command begins."""

_NUMBER = re.compile(r"[\d.]*\d[smhd]?")
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
    "-r", "--require", "--import", "--loader", "--experimental-loader", "--rcfile", "--init-file",
})  # fmt: skip
"""Options whose file is run or loaded before the script."""

_CODE_OPTIONS = frozenset({"-f", "--file"})
"""Options whose file is the script itself (`awk -f`)."""

_ATTACHED = re.compile(r"(-f|--file)=?(.+)")
_INPUT = re.compile(r"\d*<(?!<)(.*)")
_PROGRAM = re.compile(r"\.{1,2}/(?:[^/]+/)*[\w-]+(?:\.(?:ba)?sh|\.[cm]?[jt]s|\.py|\.rb|\.pl|\.php)?")
_READS = re.compile(r"\s*(?:(?:ba|da|z|k)?sh|python[\d.]*|node|perl|ruby|php)\b")


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
        text = "\n".join((command, *(extract_commands(path, texts[path], asked) for path in sorted(found))))
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
                yield from (path for word in SPACE.split(re.split("[;&]", before)[-1]) for path in tree.match(word))


def _list_run_in(words: list[str], tree: _Tree) -> Iterator[str]:
    """Yield the files that the simple command *words* runs or loads: the first that it names.

    Later ones are its arguments.

    Not the first word: options and wrappers have values (`bash -o pipefail x.sh`, `timeout -s KILL 9 sh x.sh`).
    """
    words, inputs = _split_input(words)
    started = next((w for w in words if basename(w) not in _BEFORE and not _is_option(w)), "")
    program = basename(started)
    if program in _FOLDERS or (program == "find" and {"-exec", "-execdir"} & set(words)):
        yield from (path for word in words for path in tree.find_below(word))
        return
    built = "/" in started[1:] and not started.startswith("/") and not tree.find_ending(started)
    if (program in SUBJECTS and not _INTERPRETERS & set(words)) or "--check" in words or built:
        return
    every = program in _ALL or bool(_LOADS & set(words))
    if every or _takes_code(words, started):
        words = words + inputs
    yield from _list_first(list(_split_attached(words, tree)), tree, "" if "/" in started else started, every=every)


def _list_first(words: list[str], tree: _Tree, program: str, *, every: bool) -> Iterator[str]:
    """Yield the first file among *words*, those of `-f`, and what is loaded before it; with *every* all files.

    *program* is no file of the tree, as it is found on PATH.
    """
    for at, word in enumerate(words):
        if word == "-m" and words[at + 1 : at + 2]:
            stem = words[at + 1].replace(".", "/")
            yield from (path for end in (".py", "/__main__.py") for path in tree.find_ending(stem + end))
            return
        found = [] if word == program and not every else tree.match(word)
        yield from found
        option, later = words[max(0, at - 1)], words[at + 1 :]
        if not found or every or option in _FILE_OPTIONS:
            continue
        if option not in _CODE_OPTIONS:
            return
        if not any(_is_reader(word) or _PROGRAM.fullmatch(word) for word in later):
            yield from (path for name, file in pairwise(later) if name in _CODE_OPTIONS for path in tree.match(file))
            return


def _split_input(words: list[str]) -> tuple[list[str], list[str]]:
    """Return *words* without the files of `< FILE`, and these."""
    rest: list[str] = []
    inputs: list[str] = []
    waiting = False
    for word in words:
        if waiting:
            inputs.append(word)
            waiting = False
        elif given := _INPUT.fullmatch(word):
            inputs += [given[1]] if given[1] else []
            waiting = not given[1]
        else:
            rest.append(word)
    return rest, inputs


def _takes_code(words: list[str], started: str) -> bool:
    """Return whether the command *words* may run its standard input: an interpreter, a loop, or an unknown program."""
    return not started or started == "done" or "$" in started or any(map(_is_reader, words))


def _is_reader(word: str) -> bool:
    return bool(_READS.fullmatch(basename(word)))


def _split_attached(words: list[str], tree: _Tree) -> Iterator[str]:
    """Yield *words*; of `-fFILE` and `--file=FILE` the option and the file."""
    for word in words:
        given = _ATTACHED.fullmatch(word)
        yield from given.groups() if given and tree.match(given[2]) else (word,)


def _is_option(word: str) -> bool:
    return word.startswith("-") or "=" in word or bool(_NUMBER.fullmatch(word))


def _split_commands(text: str) -> Iterator[list[str]]:
    """Yield the simple commands of *text*, as words without their quotes."""
    for line in re.sub(r"\\\n", " ", text).split("\n"):
        if line.lstrip().startswith("#"):
            continue
        for command in SPLIT.split(line):
            words = [word.lstrip("@+") for word in SPACE.split(command.strip().lstrip("@+")) if word]
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
