"""Prepares pytest for a run: its command line, the order of our hooks, and plug-ins that are switched off.

Standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import importlib
import os
from inspect import isgeneratorfunction
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType

    import pytest

    Send = Callable[[list[object]], None]

CONFIGS = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
"""Configuration files of pytest, in the order in which it looks for them."""

SWITCHED_OFF = {"numprocesses": 0, "no_cov": True, "stepwise": False, "stepwise_skip": False}
"""Settings of plug-ins that distribute tests, measure coverage or stop at a failure, and what switches them off."""

DISTRIBUTING = ("numprocesses", "distload", "tx")
"""Settings of pytest-xdist that say how tests are distributed, if they are."""

QUIET = ("--tb=native", "--no-summary", "--show-capture=no")
"""Options for runs where only outcomes count. Of pytest's tracebacks only the native one can be had without frames."""

FIRST = ("pytest_runtest_setup",)
"""Hooks of our plug-ins that come before all others and are not around them."""


class PluginSwitch:
    """Switches plug-ins off that distribute tests or measure coverage, where they are loaded; reports the first."""

    def __init__(self, send: Send) -> None:
        self._send, self._distributes = send, False

    def pytest_load_initial_conftests(self, early_config: pytest.Config) -> Iterator[None]:
        """Switch off what is decided before the options of the project are read."""
        self._switch_off(early_config.known_args_namespace)
        yield

    def pytest_cmdline_main(self, config: pytest.Config) -> Iterator[None]:
        """Switch off what they say."""
        self._switch_off(config.option)
        yield

    def close(self) -> None:
        """Report whether the project has its tests distributed."""
        if self._distributes:
            self._send(["distributed"])

    def _switch_off(self, options: object) -> None:
        self._distributes |= any(getattr(options, name, None) for name in DISTRIBUTING)
        for name, value in SWITCHED_OFF.items():
            if hasattr(options, name):
                setattr(options, name, value)


def mark(plugin: object, pytest: ModuleType) -> None:
    """Tell pytest which hooks of *plugin* come first or last; its class was made without pytest.

    Those that are generators are around all others.
    """
    for name, hook in vars(type(plugin)).items():
        if name.startswith("pytest_"):
            wraps = isgeneratorfunction(hook)
            first = wraps or name in FIRST
            pytest.hookimpl(hookwrapper=wraps, tryfirst=first, trylast=not first)(hook)


def build_arguments(room: Path, private: Path, config: dict[str, Any]) -> list[str]:
    """Return the command line for pytest. Options of the project that would break a verdict are switched off last."""
    return [*build_options(room, private, config), *list_arguments(room, config)]


def list_arguments(room: Path, config: dict[str, Any]) -> list[str]:
    """Return the files and folders that pytest is to look at.

    One absent test file must not keep the others from running; if all are absent, pytest shall say so.
    """
    return [arg for arg in config["args"] if (room / arg.partition("::")[0]).exists()] or config["args"]


def build_options(room: Path, private: Path, config: dict[str, Any]) -> list[str]:
    """Return the options for pytest."""
    there = list_arguments(room, config)
    options = [*build_common_options(room), "-c", find_configuration(room, there)]
    # pytest replaces `$NAME` in it, once.
    options += ["-o", f"cache_dir={'$TMPDIR' if '$' in str(private) else private}/cache"]
    options += [f"--basetemp={private / 'pytest'}", "--color=no", "--verbosity=-1"]
    options += QUIET if config.get("quiet") else ("--tb=short", "--no-summary")
    if "challenge" in config or "placeholders" in config:
        options.append("--assert=rewrite")
    elif config.get("bare") and __debug__:  # a confirmation, in which nobody reads what an assertion says
        options.append("--assert=plain")
    if config["mode"] == "collect" and "placeholders" not in config:
        options.append("--collect-only")
    return options


def build_common_options(room: Path) -> list[str]:
    """Return the options that every run has, a plain one, too."""
    folder = "." if "$" in str(room) else room  # pytest replaces `$NAME` in it
    return [f"--rootdir={folder}", f"--confcutdir={room}", "--continue-on-collection-errors", "--maxfail=0"]


def find_configuration(room: Path, args: Sequence[str]) -> str:
    """Return the configuration file that pytest would choose, looked for no higher than the room.

    The null device if none.
    """
    readable = importlib.import_module("_pytest.config.findpaths").load_config_dict_from_file
    starts = [room / arg.partition("::")[0] for arg in args] or [room]
    common = Path(os.path.commonpath([start if start.is_dir() else start.parent for start in starts]))
    for folder in (common, *common.parents):
        for path in (folder / name for name in CONFIGS):
            if path.is_file() and readable(path) is not None:
                return str(path)
        if folder == room:
            break
    return os.devnull
