"""Shared code of the JavaScript and TypeScript runners: invocations, decoding, and packages that are in no tree."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import ModuleType

from jumar.child import start
from jumar.child.javascript import node_tool
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Ended, Report
from jumar.languages import javascript_tests
from jumar.ports import Collected, Invocation, Record, Site, Surroundings
from jumar.process import records as decode
from jumar.process import toolchain
from jumar.process.launch import PATH
from jumar.sandbox.program_files import find_installation

PACKAGES = "node_modules"

NAMED = "JUMAR_NODE_MODULES"
"""The environment variable that names a folder of packages, for tasks that have none of their own."""

DEEPEST = 3
"""Folders within folders that are searched for packages of their own: workspaces lie at `packages/NAME`."""


class JavaScriptRunner:
    """The adapter of a runner that node runs."""

    name: str
    grade = "X"
    patterns: re.Pattern[str]
    """The runner's own names for test files."""

    def surroundings(self, origin: Path, environ: Mapping[str, str]) -> Surroundings:
        """Return links to the packages of *origin*, else to those that `JUMAR_NODE_MODULES` names."""
        path = environ.get("PATH", PATH)
        found = shutil.which("node", path=path)
        if found is None:
            return Surroundings(
                missing=f"there is no node on PATH, which runs {self.name}: install Node.js 20 or newer"
            )
        node, why = _find_node(Path(found), origin, environ)
        if why:
            return Surroundings(missing=toolchain.explain_unusable(node, "node -p process.execPath", why))
        named = environ.get(NAMED, "")
        above = (folder / PACKAGES for folder in (origin, *origin.parents) if _is_of_packages(folder / PACKAGES))
        packages = next((p for p in above if (p / self.name).is_dir()), Path(named) if named else None)
        if packages is None or not (packages / self.name).is_dir():
            where = f"{named} ({NAMED})" if named else f"{origin} or a folder above it"
            return Surroundings(
                missing=f"there is no {self.name} in the node_modules of {where}: run `npm install` there, or name a "
                f"node_modules folder that has it in {NAMED}"
            )
        links, seen = (
            dict(_list_links(packages, PurePosixPath(PACKAGES), origin)),
            [*_list_shown_folders(packages, origin)],
        )
        for folder in _list_workspaces(origin):
            links.update(_list_links(folder / PACKAGES, PurePosixPath(folder.relative_to(origin), PACKAGES), origin))
            seen += _list_shown_folders(folder / PACKAGES, origin)
        # As on a machine of CI: nothing is asked, nothing is watched, and no snapshot is written to make a test pass.
        readable = (*find_installation(node), *dict.fromkeys(seen))
        first = toolchain.build_search_path((node.parent,), path, Path(sys.executable).parent)
        env = {"CI": "true", "NO_COLOR": "1", "PATH": first}
        return Surroundings(env=env, links=links, readable=readable, probe=(str(node), "--version"))

    def collection(self, suite: Suite, room: Path) -> Invocation:  # noqa: ARG002  # the boot finds it
        """Return the invocation that lists the ids of the suite: all files are loaded, and no test is run."""
        return self._build_invocation(suite, {"mode": "collect", "args": list(suite.select), "ids": []})

    def verification(self, suite: Suite, room: Path, ids: Sequence[str]) -> Invocation:  # noqa: ARG002  # as above
        """Return the invocation that judges *ids*: it loads their files and runs only those tests."""
        return self._build_invocation(suite, {"mode": "run", "args": [], "ids": list(ids)})

    def collected(self, records: Iterable[Record], ended: Ended, detail: str) -> Collected:
        """Return the ids in the records of a collection."""
        return decode.parse_collection(records, ended, detail)

    def report(self, records: Iterable[Record], ended: Ended, detail: str) -> Report:
        """Return the results in the records of a verification."""
        return decode.build_report(records, ended, detail)

    def test_files(self, paths: Iterable[str], select: Sequence[str]) -> tuple[str, ...]:
        """Return the test files among *paths*: by the runner's own names, below what *select* names, or named there."""
        chosen = [PurePosixPath(s.partition("::")[0]) for s in select]

        def holds_tests(path: PurePosixPath) -> bool:
            named = PACKAGES not in path.parts and self.patterns.search(path.as_posix())
            below = not chosen or any(folder in path.parents for folder in chosen)
            return path in chosen or bool(named and below)

        return tuple(p for p in paths if holds_tests(PurePosixPath(p)))

    def sites(self, path: str, source: bytes) -> tuple[Site, ...]:
        """Return the tests in *source*, each once.

        What is filled in at run time stands in their names as it is written.
        """
        return javascript_tests.find_sites(path, source)

    def _build_invocation(
        self, suite: Suite, config: Mapping[str, object], program: ModuleType = node_tool
    ) -> Invocation:
        return Invocation(
            argv=(sys.executable, "-I", "-S", "-B", *start.build_command(program)),
            config={**config, "tool": self.name, "limit": suite.test_timeout_seconds, "seconds": suite.timeout_seconds},
            env=suite.env,
        )


def find_installed_packages(origin: Path) -> tuple[Mapping[str, Path], tuple[Path, ...]]:
    """Return the links to the packages of *origin* and its workspaces, and the folders that they are read from."""
    links, seen = dict[str, Path](), list[Path]()
    for folder in (origin, *_list_workspaces(origin)) if (origin / "package.json").is_file() else ():
        if _is_of_packages(folder / PACKAGES):
            links.update(_list_links(folder / PACKAGES, PurePosixPath(folder.relative_to(origin), PACKAGES), origin))
            seen += _list_shown_folders(folder / PACKAGES, origin)
    return links, tuple(dict.fromkeys(seen))


def _find_node(node: Path, origin: Path, environ: Mapping[str, str]) -> tuple[Path, str]:
    """Return the program that *node* starts, or *node* and why that cannot be found."""
    if toolchain.find_binary(node, ("node", "nodejs")):
        return node, ""
    asked = toolchain.ask_folder((str(node), "-p", "process.execPath"), origin, environ)
    return (node, asked.why) if asked.why else (Path(asked.said), "")


def _list_links(packages: Path, place: PurePosixPath, origin: Path) -> Iterator[tuple[str, Path]]:
    """Yield one link for each of *packages*: the folder itself is the room's, as tools write to it.

    Links that lead back into *origin* are packages of the task itself, and it is the room's that have to be tested:
    those become relative.
    """
    for name, target in _list_entries(packages):
        inside = place / name
        if target is not None and _is_own(target, origin):
            yield str(inside), Path(os.path.relpath(target.relative_to(origin.resolve()), inside.parent))
        else:
            yield str(inside), packages.absolute() / name


def _list_shown_folders(packages: Path, origin: Path) -> Iterator[Path]:
    """Yield the folders that hold *packages*, with those linked from elsewhere that are packages."""
    real = packages.resolve()
    yield from (packages.absolute(), real)
    for _, target in _list_entries(packages):
        if (
            target is not None
            and not target.is_relative_to(real)
            and not _is_own(target, origin)
            and _is_package(target)
        ):
            yield target


def _is_of_packages(folder: Path) -> bool:
    """Check that the real *folder* is a folder of packages: a repository's link may lead anywhere."""
    return folder.is_dir() and PACKAGES in folder.resolve().parts


def _is_package(target: Path) -> bool:
    """Return whether *target* is a package, or lies among packages, like the target of a link of `.bin`."""
    return PACKAGES in target.parts[:-1] or (target / "package.json").is_file()


def _list_entries(packages: Path) -> Iterator[tuple[str, Path | None]]:
    """Yield names in a folder of packages, and the targets of links; files that tools keep there are left out."""
    for entry in sorted(packages.iterdir()):
        if entry.name.startswith(".") and entry.name != ".bin":
            continue
        scope = entry.name.startswith("@") and not entry.is_symlink()
        for package in sorted(entry.iterdir()) if scope else [entry]:
            yield package.relative_to(packages).as_posix(), package.resolve() if package.is_symlink() else None


def _is_own(target: Path, origin: Path) -> bool:
    root = origin.resolve()
    return target.is_relative_to(root) and PACKAGES not in target.relative_to(root).parts


def _list_workspaces(origin: Path) -> Iterator[Path]:
    """Yield the folders below *origin* that have packages of their own."""
    for parent, folders, _ in os.walk(origin):
        depth = len(Path(parent).relative_to(origin).parts)
        if depth and PACKAGES in folders and _is_of_packages(Path(parent, PACKAGES)):
            yield Path(parent)
        folders[:] = sorted(f for f in folders if f != PACKAGES and not f.startswith(".")) if depth < DEEPEST else []
