"""Finds the pytest of an environment by its files: an interpreter from a repository is not started."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from jumar.sandbox.program_files import find_source_folders, is_base_interpreter

MOST_BYTES = 64 << 10
"""Most bytes read of a file; the wanted text stands in its first lines."""

VERSION = re.compile(r"\d[\w.+!-]{0,40}")


def is_project_python(python: Path, root: Path) -> bool:
    """Return whether *python* comes with the project in *root*, by its name or by its location."""
    named = python.absolute().is_relative_to(root.absolute())
    return named or python.parent.resolve().is_relative_to(root.resolve())


def find_pytest_version(python: Path) -> str:
    """Return the versions of pytest and Python in the environment of *python*; empty: there is no pytest.

    Formats: docs.python.org/3/library/venv.html (`pyvenv.cfg`), packaging.python.org (`METADATA`, `PKG-INFO`)
    """
    place = python.parent.parent
    settings = _read_pairs(place / "pyvenv.cfg", "=")
    for folder in _list_folders(python, settings):
        for found in sorted((*folder.glob("pytest-*.dist-info/METADATA"), *folder.glob("pytest-*.egg-info/PKG-INFO"))):
            version = _find_version(_read_pairs(found, ":").get("version", ""))
            if version:
                return f"{version} with Python {_find_python_version(settings, folder) or 'of unknown version'}"
    return ""


def _list_folders(python: Path, settings: Mapping[str, str]) -> Iterator[Path]:
    """Yield the folders of packages for *python*: its own, those its `.pth` files name, those it shares."""
    place, home = python.parent.parent, Path(settings.get("home", ""))
    yield from _list_packages(place)
    yield from find_source_folders(python)
    if settings.get("include-system-site-packages", "").lower() == "true" and is_base_interpreter(home / "python3"):
        yield from _list_packages(home.parent)


def _list_packages(place: Path) -> Iterator[Path]:
    for name in ("site-packages", "dist-packages"):
        yield from sorted(place.glob(f"lib*/python3*/{name}"))
        yield from sorted(place.glob(f"local/lib/python3*/{name}"))


def _find_python_version(settings: Mapping[str, str], folder: Path) -> str:
    named = _find_version(settings.get("version", "") or settings.get("version_info", ""))
    return named or _find_version(folder.parent.name.removeprefix("python"))


def _find_version(text: str) -> str:
    return text if VERSION.fullmatch(text) else ""


def _read_pairs(file: Path, sign: str) -> dict[str, str]:
    """Return the first lines of *file*, as names in lower case and values, up to an empty line."""
    with suppress(OSError):
        if file.is_file():
            with file.open("rb") as stream:
                text = stream.read(MOST_BYTES).decode("utf-8", "replace")
            split = (line.partition(sign) for line in text.partition("\n\n")[0].splitlines())
            return {name.strip().lower(): value.strip() for name, _, value in split}
    return {}
