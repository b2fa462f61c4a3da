"""Private files, shown in no sandbox: the person's home as a whole, its dot-folders except toolchains, barred places.

Every path that a sandbox shows as readable passes `list_shown_files`, whoever named it: a runner, a link of a
repository, a PATH.
"""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from jumar.child import start
from jumar.sandbox.barred_places import is_below, list_single_programs
from jumar.sandbox.program_files import find_interpreter_files, find_parts
from jumar.sandbox.request import Reach


class ShownFolder(NamedTuple):
    """Dot-folders of a home that may be shown, and how much of each."""

    folders: str
    why: str
    only: str = ""
    """The folders in it that may be shown; empty: all of it."""
    never: str = ""
    """The names directly in it that may not, as patterns."""


TOOLCHAINS = (
    ShownFolder(
        ".rustup .pyenv .nvm .asdf .goenv .nodenv .rbenv .rvm .jenv .volta .fnm .bun .deno .sdkman .mise .rye .pixi "
        ".proto .ghcup .juliaup .swiftly .n .nodebrew .npm-global .npm-packages .node_modules .linuxbrew .nix-profile",
        "version managers: toolchains and what is installed in them",
        never="*npmrc bunfig.toml .yarnrc*",
    ),
    ShownFolder(
        ".conda .miniconda* .anaconda* .miniforge* .mambaforge .micromamba .venv .venvs .env .envs .virtualenv "
        ".virtualenvs .pipx .uv .hatch",
        "environments of Python; a plain file called .env holds keys",
        never="*rc *token* .env",
    ),
    ShownFolder(".cargo", "cargo's programs and crates, beside the token of a registry", never="credentials*"),
    ShownFolder(".npm .pnpm .pnpm-store .yarn", "caches of packages, beside tokens", never="*rc *rc.y*ml"),
    ShownFolder(".gradle", "caches and toolchains; its settings hold passwords", "caches jdks wrapper native"),
    ShownFolder(".m2", "packages of Java, and Maven itself; its settings hold passwords", "repository wrapper"),
    ShownFolder(".nuget .gem", "packages; what lies beside them holds tokens", "packages gems ruby specs"),
    ShownFolder(".dotnet .opam .stack .cabal .julia", "toolchains", never="*token* config*"),
    ShownFolder(".claude .opencode .amp .factory", "programs of agents, beside sessions and keys", "local bin"),
    ShownFolder(".config", "two toolchains that live among settings", "nvm yarn/global"),
    ShownFolder(
        ".local",
        "what pip, pipx, uv and others install; share and state hold keyrings, mail and histories",
        "bin lib lib64 libexec include opt go node* python* share/uv share/pipx share/pnpm share/fnm share/mise "
        "share/rtx share/asdf share/virtualenv share/virtualenvs share/hatch share/pypoetry share/pdm share/rye "
        "share/nvm share/npm share/yarn share/bun share/deno share/go share/cargo share/rustup share/mamba "
        "share/micromamba share/conda share/claude share/jumar share/sdkman share/gem share/nodejs",
    ),
    ShownFolder(
        ".cache",
        "caches of compilers and packages; those of browsers hold sessions",
        "go-build go pip uv pypoetry pdm hatch virtualenv pre-commit deno bun yarn pnpm node ccache sccache zig "
        "rattler bazel bazelisk golangci-lint ms-playwright puppeteer electron Cypress jumar/cargo",
    ),
    ShownFolder(".jumar", "what jumar keeps"),
)  # fmt: skip
"""Entries of a home beginning with a dot that may be shown; all others are hidden."""

_KEPT: Mapping[str, ShownFolder] = MappingProxyType(
    {name: kept for kept in TOOLCHAINS for name in kept.folders.split()}
)


def list_shown_files(python: Path, reach: Reach, homes: Iterable[Path] | None = None) -> tuple[Path, ...]:
    """Return the files of *python*, which will run, and of *reach*, without private files of the person.

    Told by where a path really lies. What belongs to the task or was named by the person (*reach.own*) may lie
    anywhere, and so may the environment of *python*, but neither is ever a whole home. *homes* are the person's, unless
    told otherwise. What *reach* bars is shown to nobody: of a folder that holds such a place its programs are.
    """
    readable = (*find_interpreter_files(python), *reach.readable)
    real = _Real()
    found = tuple({real(path) for path in (find_homes() if homes is None else homes)})
    named = (*reach.own, *find_parts(python.parent.parent), *_find_own_paths())
    ours = tuple(path for path in map(real, named) if not _contains_home(path, found))
    barred = tuple(map(real, reach.barred))
    shown = (path for whole in readable for path in _split_barred(whole, real, barred))
    return tuple(path for path in shown if not any(_is_withheld(way, found, ours) for way in _list_ways(path, real)))


def find_homes() -> tuple[Path, ...]:
    """Return the homes of this user: that of the environment, and that of the password database."""
    found = []
    with suppress(RuntimeError):  # there is none
        found.append(Path.home())
    with suppress(KeyError):  # a user that the database does not know, as in containers
        found.append(Path(pwd.getpwuid(os.getuid()).pw_dir))
    return tuple(home for home in found if home.is_absolute())


def _find_own_paths() -> tuple[Path, ...]:
    """Return the paths that jumar itself runs from."""
    places = {Path(sys.executable).parent.parent, Path(sys.prefix), Path(sys.base_prefix)}
    return (*(part for place in places for part in find_parts(place)), Path(start.FOLDER).parents[1])


def _list_ways(path: Path, real: _Real) -> Iterator[str]:
    """Yield the real path of *path*, and the kernel's: for `..` it follows a link first, then goes up."""
    yield real(path)
    if ".." in path.parts:
        yield os.path.realpath(path)


def _split_barred(path: Path, real: _Real, barred: Sequence[str]) -> tuple[Path, ...]:
    """Return *path*, its programs if it holds a place that is *barred*, or nothing if it lies in one."""
    ways = tuple(_list_ways(path, real)) if barred else ()
    if any(is_below(way, place) for way in ways for place in barred):
        return ()
    if not any(is_below(place, way) for way in ways for place in barred):
        return (path,)
    singles = list_single_programs(path)
    return tuple(one for one in singles if not any(is_below(real(one), place) for place in barred))


def _is_withheld(path: str, homes: Iterable[str], own: Iterable[str]) -> bool:
    if _contains_home(path, homes):
        return True
    return not any(is_below(path, folder) for folder in own) and any(_is_private(path, home) for home in homes)


def _contains_home(path: str, homes: Iterable[str]) -> bool:
    """Return whether *path* is a home or contains one."""
    return any(is_below(home, path) for home in homes)


def _is_private(path: str, home: str) -> bool:
    """Return whether *path* lies in a dot-folder of *home* that is no toolchain's, or holds private files."""
    if not is_below(path, home):
        return False
    top, _, inner = path[len(home.rstrip("/")) + 1 :].partition("/")
    if not top.startswith("."):
        return False
    kept = _KEPT.get(top) or next((kept for name, kept in _KEPT.items() if fnmatch(top, name)), None)
    if kept is None or not (inner or Path(path).is_dir()):
        return True
    if kept.only and not any(_matches(inner, pattern) for pattern in kept.only.split()):
        return True
    try:
        names = [inner.partition("/")[0]] if inner else os.listdir(path)  # noqa: PTH208  names alone
    except OSError:
        return True
    return any(fnmatch(name, pattern) for name in names for pattern in kept.never.split())


def _matches(inner: str, pattern: str) -> bool:
    """Return whether *inner* matches *pattern*, or lies in a folder that does."""
    depth = pattern.count("/") + 1
    return fnmatch("/".join(inner.split("/")[:depth]), pattern)


class _Real:
    """Resolves the real locations of paths. It caches the folders, as many paths share one."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def __call__(self, path: Path) -> str:
        folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100  as text, see below
        if folder not in self._known:
            self._known[folder] = os.path.realpath(folder)
        inside = os.path.join(self._known[folder], name)  # noqa: PTH118  many paths: text is several times as fast
        return os.path.realpath(inside) if os.path.islink(inside) else inside  # noqa: PTH114  as above
