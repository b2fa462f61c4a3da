"""Puts the tested tree on `sys.path`, and tells which of its modules stand before others.

Standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import contextlib
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    import pytest

TESTS_OF_PYTHON = "test"
"""A package that Python brings for itself, and many projects for their own tests."""


def add_room_to_path(room: Path, extra: Sequence[str], known: Collection[str] | None = None) -> CollectionRoot:
    """Put the tested tree on sys.path, after the standard library and before installed packages.

    Source folders come along: *extra* (the task's PYTHONPATH, which an isolated interpreter ignores), `src`, and what
    an editable installation of the original points to; else that original would be judged. Of them and the room those
    are left out that are not *known*. The room stands last until the plug-in that comes back, once marked and
    registered, lets it in.
    """
    site = [i for i, path in enumerate(sys.path) if Path(path).name in ("site-packages", "dist-packages")]
    place = site[0] if site else len(sys.path)
    prefixes = {Path(prefix).resolve() for prefix in (sys.prefix, sys.base_prefix)}
    linked = [Path(path).name for path in sys.path[place:] if not prefixes.intersection(Path(path).resolve().parents)]
    named = [name for name in (".", "src", *linked) if known is None or name in known]
    folders = dict.fromkeys(room / folder for folder in (*extra, *named))
    there = [
        str(folder)
        for folder in folders
        if folder.is_dir() and (folder == room or not (folder / "__init__.py").exists())
        if str(folder) not in sys.path  # where PYTHONPATH itself has put it
    ]
    sys.path.extend(there)
    return CollectionRoot(there, place)


def list_shadowing(room: Path, args: Sequence[str], extra: Sequence[str]) -> list[str]:
    """Return top-level modules of *room*, by their paths, that an installed module of the same name stands behind.

    So are those of the *extra* folders, which the task's PYTHONPATH puts before all others.

    One of Python's own would come before the room here, and behind it in a project's shell. Where a test file among
    *args*, or a conftest file, lies in the room itself, pytest puts the room first: there is no difference then.
    """
    first = (room / "conftest.py").is_file() or any(
        "/" not in file and file.endswith(".py") for file in (arg.partition("::")[0] for arg in args)
    )
    pythons = () if first else getattr(sys, "stdlib_module_names", ())  # Python 3.10 or newer
    site = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    found = {}
    for folder in dict.fromkeys((room, *(room / name for name in extra))):
        modules = {path.stem: path for path in folder.glob("*.py")}
        modules.update({path.parent.name: path for path in folder.glob("*/__init__.py")})
        hidden = pythons if folder == room else getattr(sys, "stdlib_module_names", ())
        for name, path in modules.items():
            if room in path.parents and (
                (name in hidden and name != TESTS_OF_PYTHON) or PathFinder.find_spec(name, site)
            ):
                found[name] = str(path.relative_to(room))
    return [path for _, path in sorted(found.items())]


class CollectionRoot:
    """Puts the room before the installed packages on sys.path, once those that are plug-ins of pytest are loaded."""

    def __init__(self, folders: Sequence[str], place: int) -> None:
        self._folders, self._place = list(folders), place

    def pytest_load_initial_conftests(self, early_config: pytest.Config) -> Iterator[None]:
        """Prepare before the first line of the room runs. A plug-in named in the project's options comes last.

        Folders that the project's `pythonpath` puts first stay there; older versions of pytest put them there later.
        """
        named: list[object] = []
        with contextlib.suppress(ValueError, KeyError):  # pytest 6 does not know of it
            named = [str(path) for path in early_config.getini("pythonpath")]
        ahead = [path for path in sys.path[: len(named)] if path in named]
        others = [path for path in sys.path[len(ahead) :] if path not in self._folders]
        others[self._place : self._place] = [path for path in self._folders if path not in ahead]
        sys.path[:] = [*ahead, *others]
        yield
