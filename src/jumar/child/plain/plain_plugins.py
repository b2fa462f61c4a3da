"""Builds the plug-ins of a plain run: they report, and switch off what measures coverage.

What they import, pytest has imported already. Standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumar.child import normalise, test_timeout
from jumar.child.pytest.blame import BlameFinder
from jumar.child.pytest.import_paths import add_room_to_path
from jumar.child.pytest.preparation import PluginSwitch, mark
from jumar.child.pytest.reporter import Reporter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def build_plugins(config: dict[str, Any], send: Callable[..., None]) -> list[object]:
    """Return the plug-ins for the run that *config* describes; *send* keeps their records."""
    room = Path(config["room"])
    blame, cleaned = BlameFinder(str(room)), normalise.build_normaliser(str(room), config["private"])
    reporter = Reporter(config, send, cleaned, blame, test_timeout.NoTimeLimit())
    switch = PluginSwitch(send)
    plugins = [reporter, add_room_to_path(room, config["paths"]), *([] if config.get("distributed") else [switch])]
    plugins.append(Ending((reporter.close, switch.close, lambda: send(["usual", reporter.list_usual_statuses(room)]))))
    for plugin in plugins:
        mark(plugin, sys.modules["pytest"])
    return plugins


class Ending:
    """Writes down, when pytest is over, what is left to say, and with which statuses this session may end."""

    def __init__(self, steps: Sequence[Callable[[], None]]) -> None:
        self._steps = steps

    def pytest_unconfigure(self) -> None:
        """Do so."""
        for step in self._steps:
            step()
