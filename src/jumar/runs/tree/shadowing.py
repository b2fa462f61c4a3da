"""Refuses new modules that a judging command would import instead of the standard library's or a runner's."""

from __future__ import annotations

import sys
from collections.abc import Collection
from posixpath import dirname

from msgspec.structs import replace

from jumar.core.gate.write_rules import WriteRules
from jumar.core.state.settings import Settings

RUNNERS = frozenset({
    "_pytest", "coverage", "hypothesis", "iniconfig", "mypy", "nox", "packaging", "pip", "pluggy", "pyflakes", "pylint",
    "pytest", "ruff", "setuptools", "sitecustomize", "tox", "usercustomize", "xdist",
})  # fmt: skip
"""Modules that judge beside those of the standard library, and those that an interpreter loads by itself."""


def forbid_shadowing(guard: WriteRules, settings: Settings, came: Collection[str]) -> WriteRules:
    """Return *guard* without new files that would shadow a module which a command of *settings* imports.

    Python looks in the folder of a script first, and with `-m` in the folder it is started in. What the run began with,
    the files *came*, may have such names: the person chose them.
    """
    if not (settings.suite.single or settings.verify or settings.suite.command_for):
        return guard
    names = sys.stdlib_module_names | RUNNERS
    folders = {"", *(f"{dirname(path)}/".lstrip("/") for path in settings.judging if path.endswith(".py"))}
    known = {(folder, _get_module(path, folder)) for folder in folders for path in came if path.startswith(folder)}

    def shadows(path: str) -> bool:
        found = {(folder, _get_module(path, folder)) for folder in folders if path.startswith(folder)}
        return any(name in names and (folder, name) not in known for folder, name in found)

    return replace(
        guard,
        editable=lambda path: guard.editable(path) and not shadows(path),
        refactorable=lambda path: guard.refactorable(path) and not shadows(path),
    )


def _get_module(path: str, folder: str) -> str:
    """Return the module that *path* is for an import from *folder*; empty: it is none."""
    top, inside, _ = path[len(folder) :].partition("/")
    return top if inside else top.removesuffix(".py") if top.endswith(".py") else ""
