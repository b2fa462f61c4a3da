"""Environment that a test may arrange for the product: working directory, environment variables, argv, input.

Patches of libraries do not belong to it: they stay in the tests' process, which is found out. The product never hears
which test runs.
"""

from __future__ import annotations

import builtins
import io
import os
import sys
from collections.abc import Callable
from typing import Any

from jumar.child.two_process.environment.arithmetic import read_arithmetic
from jumar.child.two_process.environment.clocks import read_clock
from jumar.child.two_process.environment.seeds import read_states
from jumar.child.two_process.wire.files import shared_files


class ProductEnvironment:
    """Tracks the changes of the environment since the product was last told."""

    def __init__(self, room: str) -> None:
        self.room = os.path.realpath(room) + os.sep
        self._input = builtins.input
        self._private = shared_files.find_folder() + os.sep
        self._loop: Any = None
        self._loops = 0
        self.levels: dict[str, int] = {}
        """Levels that tests gave to loggers, by name."""
        self.seeds: dict[str, int] = {}
        """Times that generators were seeded, by module (`seeds.watch_seeds`)."""
        self.note_seed: Callable[[], object] = str
        """Is told that one of those is seeded."""
        self.begin()

    def begin(self) -> None:
        """Record the present environment as the one in which nothing was arranged."""
        self._environ, self._argv = _read_environ(), list(sys.argv)
        self._looked: tuple[Any, ...] = ()
        self._told: tuple[Any, ...] = (self.room, {}, [], {}, 0, None, None, (), (), read_arithmetic())

    def find_changes(self) -> list[Any] | None:
        """Return directory, environment, arguments, levels, loop, `input`, stdin, seeds, clock, arithmetic, or None.

        The directory is the working one, in the room or below the temporary one (None: elsewhere), the loop is the
        running one, counted from 1 (0: none). Of the environment only what differs from that of the beginning is there;
        what was removed is None.
        """
        try:
            place = os.getcwd()  # noqa: PTH109  asked with each call
        except OSError:
            place = ""
        argv = sys.argv[1:] if sys.argv != self._argv else []
        raw: Any = getattr(os.environ, "_data", None)  # the same comparison, without decoding all of it each time
        seeds = tuple(self.seeds.items())
        read = (seeds, read_clock(), read_arithmetic())
        looked = (raw, place, argv, self.levels, self._count_loop(), builtins.input, sys.stdin, *read)
        if raw is not None and looked == self._looked:
            return None
        levels = dict(self.levels)
        self._looked = (dict(raw or {}), place, argv, levels, *looked[4:])
        now = _read_environ()
        changed: dict[str, str | None] = {k: v for k, v in now.items() if self._environ.get(k) != v}
        changed.update(dict.fromkeys(self._environ.keys() - now.keys()))
        stdin = sys.stdin if type(sys.stdin) is io.StringIO else None
        reading = builtins.input if builtins.input is not self._input else None, stdin
        found = (place + os.sep, changed, argv, levels, looked[4], *reading, *read)
        if found == self._told:
            return None
        self._told = found
        private = place if found[0].startswith(self._private) else None
        directory = os.path.relpath(place, self.room) if found[0].startswith(self.room) else private
        return [directory, *found[1:7], read_states(self.seeds), *found[8:]]

    def _count_loop(self) -> int:
        """Return which event loop runs, counted from 1; 0: none does."""
        events = sys.modules.get("asyncio.events")
        running = events and events._get_running_loop()  # noqa: SLF001  documented for those who write loops
        if running is not None and running is not self._loop:
            self._loop, self._loops = running, self._loops + 1
        return self._loops if running is not None else 0


def _read_environ() -> dict[str, str]:
    """Return the environment, without what tells which test runs."""
    return {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
