"""Levels of loggers: where a test changes one, the logger of the same name in the product's process follows."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable
from typing import Any


def watch_levels(changed: dict[str, int], is_library: Callable[[str], bool]) -> None:
    """Keep in *changed* the levels, by name, that the tests give to loggers, and that these did not have before.

    Loggers of the tests' own files are left out: *is_library* tells whether a module belongs to none of them.
    """
    before: dict[str, int] = {}
    kind: Any = importlib.import_module("logging").Logger
    set_level = kind.setLevel

    def set_and_note(logger: Any, level: Any) -> None:
        first = before.setdefault(str(logger.name), logger.level)
        set_level(logger, level)
        root = str(logger.name).partition(".")[0]
        if logger.level == first:
            changed.pop(logger.name, None)
        elif type(sys.modules.get(root)) is not types.ModuleType or is_library(root):
            changed[logger.name] = logger.level

    kind.setLevel = set_and_note


class FollowedLevels:
    """Levels of loggers in the product's process, which follow those of the tests."""

    def __init__(self) -> None:
        self._told: dict[str, int] = {}
        self._own: dict[str, int] = {}

    def follow(self, changed: dict[str, int]) -> None:
        """Give loggers the levels in *changed*, and those that are no longer in it what they had."""
        if changed == self._told:
            return
        get_logger = importlib.import_module("logging").getLogger
        for name in self._told.keys() - changed.keys():
            get_logger(name).setLevel(self._own.pop(name))
        for name, level in changed.items():
            if self._told.get(name) != level:
                self._own.setdefault(name, get_logger(name).level)
                get_logger(name).setLevel(level)
        self._told = changed
