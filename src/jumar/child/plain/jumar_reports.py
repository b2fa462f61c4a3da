"""Plug-in that pytest loads because a variable names it: it writes down what happens to each test.

Loaded before anything of the project; then nothing of it is left in the environment, on the path, or among the modules.
Code under test must find what it finds in a process of a person's. PYTEST_DONT_REWRITE

Standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import marshal
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

NAME = "jumar_reports"
"""Name of this module for pytest."""

PATH, PLUGINS = "PYTHONPATH", "PYTEST_PLUGINS"
"""Variables that lead to this module, before what a task has there."""

FILE = "JUMAR_REPORTS"
"""Variable with the path of the file that holds the config, and gets the records."""

FOLDER = Path(__file__).resolve().parent


def pytest_addoption(parser: object, pluginmanager: pytest.PytestPluginManager) -> None:  # noqa: ARG001  pytest names them
    """Register what reports: pytest calls this when it has loaded the plug-in, before it looks at the project."""
    path = Path(os.environ.pop(FILE))
    config: dict[str, Any] = marshal.loads(path.read_bytes())  # noqa: S302  jumar wrote it
    plain = _load()
    _hide()
    for plugin in plain.build_plugins(config, _build_writer(path)):
        pluginmanager.register(plugin)


def _load() -> Any:
    """Import our part of the plug-in, and leave no trace of it."""
    sys.path.insert(0, str(FOLDER.parent))
    try:
        start = __import__("start")
    finally:
        del sys.path[0]
        sys.modules.pop("start", None)
    return start.load("jumar.child.plain.plain_plugins")


def _hide() -> None:
    """Take this module's name away, its folder, and what leads to them."""
    sys.modules.pop(NAME, None)
    sys.path.remove(str(FOLDER))
    for place in [place for place in sys.path_importer_cache if place.startswith(str(FOLDER.parent))]:
        del sys.path_importer_cache[place]
    for name, between in ((PATH, os.pathsep), (PLUGINS, ",")):
        _, more, rest = os.environ.pop(name).partition(between)
        if more:
            os.environ[name] = rest


def _build_writer(path: Path) -> Callable[..., None]:
    """Return what appends records to the file *path*, which is open only for that: tests may count descriptors."""
    opened, write, close, dump, getpid = os.open, os.write, os.close, marshal.dumps, os.getpid
    name, owner = str(path), getpid()
    path.write_bytes(b"")

    def send(*records: Any) -> None:
        if getpid() != owner:  # a child that a test forked
            return
        fd = opened(name, os.O_WRONLY | os.O_APPEND)
        for record in records:
            write(fd, dump(record))
        close(fd)

    return send
