"""Finds ignored files that tests seem to need: failed tests name them, git ignores them, no tree holds them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from jumar.errors import BadInput
from jumar.languages.gitignore_globs import escape_path
from jumar.runs.tree.task_tree import list_ignored_files
from jumar.task.task import Task

_TOKEN = re.compile(r"[\w@./-]+")
_MODULE = re.compile(r"(?:[Nn]o module named|cannot import name|Cannot find (?:module|package)) ['\"]([^'\"]+)['\"]")
_ENDINGS = re.compile(r"\.(?:py|pyi|so|pyd|js|jsx|mjs|cjs|ts|tsx|mts|cts|json|cpython-[\w-]+|abi3)$")
_METADATA = re.compile(r"No package metadata was found for ['\"]?([\w.-]+)")
_EGG_INFO = ".egg-info/"
NAMED = 5
"""Files that one sentence names."""


def find_needed_files(texts: Iterable[str], ignored: Sequence[str], present: Iterable[str]) -> tuple[str, ...]:
    """Return the *ignored* files that *texts* name, and that are not meant for one of the files *present*."""
    known: dict[str, str] = {}
    ignored = tuple(dict.fromkeys(map(_widen_to_metadata, ignored)))
    for path in sorted(ignored, key=lambda path: (path.count("/"), path), reverse=True):
        known.update(dict.fromkeys(_list_spellings(path), path))
    for path in present:
        for name in _list_spellings(path):
            known.pop(name, None)
    found: dict[str, None] = {}
    for text in texts if known else ():
        for name in _find_mentions(text):
            if name in known:
                found[known[name]] = None
    return tuple(found)


def build_advice(files: Sequence[str]) -> str:
    """Return one sentence on *files*, which the tests seem to need."""
    named = ", ".join(files[:NAMED]) + (f" and {len(files) - NAMED} more" if len(files) > NAMED else "")
    lines = ", ".join(f'"{escape_path(path)}"' for path in files[:NAMED])
    return (
        f"the tests seem to need {named}, which git ignores and which was therefore left out: "
        f"name it in task.toml or jumar.toml ([files] include = [{lines}]), or pass --include"
    )


def find_needed_by(task: Task, present: Iterable[str], texts: Iterable[str]) -> tuple[str, ...]:
    """Return the files that *task* leaves out and *texts*, about a tree with the files *present*, seem to need."""
    said = tuple(texts)
    return find_needed_files(said, list_ignored_files(task), present) if said else ()


def refuse_left_out(task: Task, present: Iterable[str], texts: Iterable[str]) -> None:
    """Refuse *task* if by *texts* its test files cannot be loaded for lack of a file that was left out.

    Raises:
        BadInput: naming the files and the key.
    """
    if files := find_needed_by(task, present, texts):
        raise BadInput(build_advice(files))


def _widen_to_metadata(path: str) -> str:
    """Return the folder of a package's metadata, if *path* lies in one, else *path*."""
    before, found, _ = path.partition(_EGG_INFO)
    return before + found if found else path


def _list_spellings(path: str) -> Iterator[str]:
    """Return the ways in which a text may name *path*.

    Its last parts, with slashes or dots, with its ending or without.
    """
    parts = path.rstrip("/").split("/")
    bare = parts[-1]
    while (shorter := _ENDINGS.sub("", bare)) != bare:
        bare = shorter
    module = parts[:-1] if bare in ("__init__", "index") else [*parts[:-1], bare]
    for start in range(len(parts)):
        yield "/".join(parts[start:])
        if module[start:] and (len(module) - start > 1 or start == 0 or bare != parts[-1]):
            yield "/".join(module[start:])
            yield ".".join(module[start:])


def _find_mentions(text: str) -> Iterator[str]:
    """Return the files that *text* may name: modules, paths of two parts or more, or names with a dot."""
    for name in _MODULE.findall(text):
        yield name.lstrip("./")
        yield name.rpartition("/")[2]
    for name in _METADATA.findall(text):
        yield name.replace("-", "_") + _EGG_INFO[:-1]
    for token in _TOKEN.findall(text):
        parts = token.strip("./").split("/")
        for start in range(len(parts)):
            name = "/".join(parts[start:])
            if "/" in name or "." in name:
                yield name
