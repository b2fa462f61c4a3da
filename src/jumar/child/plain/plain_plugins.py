"""Plug-ins of a plain run: they write down what happens to each test, and switch off what measures coverage.

Loaded before anything of the project; then nothing of them is left in the environment, on the path, or among the
modules. Code under test must find what it finds in a process of a person's; what they import, pytest has imported.

Standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import marshal
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumar.child import normalise, start, test_timeout
from jumar.child.pytest.blame import BlameFinder
from jumar.child.pytest.import_paths import add_room_to_path
from jumar.child.pytest.preparation import PluginSwitch, mark
from jumar.child.pytest.reporter import Reporter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pytest


CONFIG, NOTES = "config", "notes"
"""Names of a file that holds the config, and of a pipe that gets the records."""


def register(manager: pytest.PytestPluginManager, name: str, folder: str) -> None:
    """Register what reports, and take the module *name* away that pytest knows us by; it lies in *folder*."""
    config: dict[str, Any] = marshal.loads(Path(folder, CONFIG).read_bytes())  # noqa: S302  jumar wrote it
    _hide(name, folder, config["before"])
    for plugin in _build_plugins(config, _build_writer(str(Path(folder, NOTES)))):
        mark(plugin, sys.modules["pytest"])
        manager.register(plugin)


def _hide(name: str, folder: str, before: dict[str, str | None]) -> None:
    """Take away the module *name*, its *folder*, what leads to them, and our options: all is as it was *before*."""
    sys.modules.pop(name, None)
    sys.path.remove(folder)
    for place in [place for place in sys.path_importer_cache if place.startswith((folder, start.FOLDER))]:
        del sys.path_importer_cache[place]
    for variable, value in before.items():
        del os.environ[variable]
        if value is not None:
            os.environ[variable] = value


def _build_plugins(config: dict[str, Any], send: Callable[..., None]) -> list[object]:
    room = Path(config["room"])
    blame, cleaned = BlameFinder(str(room)), normalise.build_normaliser(str(room), config["private"])
    reporter = Reporter({**config, "keeps_bytecode": True}, send, cleaned, blame, test_timeout.NoTimeLimit())
    switch = PluginSwitch(send)
    plugins = [reporter, add_room_to_path(room, config["paths"], config["known"])]
    plugins += [] if config.get("distributed") else [switch]
    return [
        *plugins,
        Ending((reporter.close, switch.close, lambda: send(["usual", reporter.list_usual_statuses(room)]))),
    ]


class Ending:
    """Writes down, when pytest is over, what is left to say, and with which statuses this session may end."""

    def __init__(self, steps: Sequence[Callable[[], None]]) -> None:
        self._steps = steps

    def pytest_unconfigure(self) -> None:
        """Take the steps that are left."""
        for step in self._steps:
            step()


def _build_writer(path: str) -> Callable[..., None]:
    """Return what writes records to the pipe at *path*, which is open only for that: tests may count descriptors."""
    opened, write, close, dump, getpid = os.open, os.write, os.close, marshal.dumps, os.getpid
    owner = getpid()

    def send(*records: Any) -> None:
        if getpid() != owner:  # a child that a test forked
            return
        fd = opened(path, os.O_WRONLY)
        left = b"".join(map(dump, records))
        while left:
            left = left[write(fd, left) :]
        close(fd)

    return send
