"""Finds the needs of a command beside the tree: programs on PATH, and the project's installed packages."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

from msgspec.structs import replace

from jumar.languages.project_kinds import detect_runner
from jumar.plugins import load
from jumar.ports import Runner, Surroundings
from jumar.runners._javascript import NAMED, find_installed_packages
from jumar.sandbox.barred_places import list_barred_places
from jumar.sandbox.program_files import find_interpreter_files, find_path_files

VENVS = (".venv", "venv")

TOOLCHAINS = ("go", "cargo")
"""Runners whose toolchain and caches a command of such a project needs as well."""


def find_command_surroundings(origin: Path, environ: Mapping[str, str]) -> Surroundings:
    """Return the surroundings of any command in the project in *origin*.

    Nothing is missing, as only the command can tell.
    """
    env, links, readable = dict[str, str](), dict[str, Path](), list[Path]()
    if (kind := detect_runner(origin)) in TOOLCHAINS:
        runner: Runner = load("runners", kind)  # type: ignore[assignment]  # the contract kit checks what a plug-in is
        known = runner.surroundings(origin, environ)
        env.update(known.env)
        readable += known.readable
    for name in VENVS:
        if os.access(origin / name / "bin" / "python", os.X_OK):
            links[name] = (origin / name).absolute()
            readable += find_interpreter_files((origin / name / "bin" / "python").absolute())
    packages, seen = find_installed_packages(origin)
    links.update(packages)
    searched = find_path_files(environ.get("PATH", ""), environ.get("HOME", ""), origin)
    return Surroundings(env=env, links=links, readable=_drop_repeats(*readable, *seen, *searched))


def find_runner_surroundings(
    runner: Runner, origin: Path, environ: Mapping[str, str], reserved: Iterable[str] = ()
) -> Surroundings:
    """Return the surroundings of *runner*, and those of them that are the task's or the person's.

    *reserved* are places that the task holds for itself, beside those that every task has.
    """
    real = origin.resolve()
    roots = (folder for folder in (real, *real.parents) if (folder / ".git").exists())
    named = environ.get(NAMED, "")
    own = (real, *islice(roots, 1), *((Path(named).absolute(),) if named else ()))
    return replace(runner.surroundings(origin, environ), own=own, barred=list_barred_places(origin, reserved))


def join_surroundings(first: Surroundings, more: Surroundings, python: str) -> Surroundings:
    """Return *first* with the needs *more* of a command, and the interpreter *python*."""
    own = find_interpreter_files(Path(python)) if python else ()
    return replace(
        first,
        env={**more.env, **first.env},
        links={**more.links, **first.links},
        readable=_drop_repeats(*first.readable, *more.readable, *own),
    )


def _drop_repeats(*paths: Path) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(paths))
