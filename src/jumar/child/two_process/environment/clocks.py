"""The clock that a test stops or moves by freezegun: that of the product's process is stopped and moved alike.

The instant crosses as data. Other libraries, and clocks that go on with each look, cannot be followed.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

FREEZEGUN = "freezegun.api"


def read_clock() -> tuple[Any, ...]:
    """Return what the clock of this process was set to: the instant, when it began to tick again, offset, ignored.

    The instant is in UTC. A clock that stands began to tick at None; an empty tuple: it was not set.
    """
    api: Any = sys.modules.get(FREEZEGUN)
    factories = getattr(api, "freeze_factories", None)  # it has none while it is imported, and may import the product
    if not factories:
        return ()
    factory = factories[-1]
    return (factory.time_to_freeze, getattr(factory, "start", None), api.tz_offsets[-1], api.ignore_lists[-1])


def refuse_clocks(refuse: Callable[[str], None], names: dict[type, str]) -> None:
    """Call *refuse* where a test sets the clock of this process in a way that cannot be followed.

    The types of dates that a set clock gives are added to *names*, under those of the dates that they are to cross as.
    """
    why = "a test sets the clock, and that of the product goes on"
    travel: Any = getattr(sys.modules.get("time_machine"), "travel", None)
    if travel is not None:
        travel.start = lambda *_: refuse(why)
    api: Any = sys.modules.get(FREEZEGUN)
    if api is not None:
        names.update(list_fakes(api))
        start = api._freeze_time.start  # noqa: SLF001  it has no other name

        def start_checked(self: Any) -> Any:
            if self.auto_tick_seconds or getattr(self, "real_asyncio", False):
                refuse(why)
            return start(self)

        api._freeze_time.start = start_checked  # noqa: SLF001  as above


def list_fakes(api: Any) -> dict[type, str]:
    """Return the types of dates of a set clock, each with the name of that in whose place it is."""
    return {api.FakeDate: "date", api.FakeDatetime: "datetime"}


class FollowedClock:
    """The clock of the product's process, which is set as that of the tests is."""

    def __init__(self, names: dict[type, str]) -> None:
        self._names = names
        """Types that cross as values (see `refuse_clocks`)."""
        self._told: tuple[Any, ...] = ()
        self._frozen: Any = None
        self._factory: Any = None

    def follow(self, told: tuple[Any, ...]) -> None:
        """Set the clock to what `read_clock` returned in the tests' process."""
        if told == self._told:
            return
        before, self._told = self._told, told
        if before and told and before[1:] == (None, *told[2:]):
            self._factory.move_to(told[0])
            return
        if before:
            self._frozen.stop()
        if told:
            self._start(*told)

    def _start(self, instant: Any, since: Any, offset: Any, ignored: Any) -> None:
        api = importlib.import_module(FREEZEGUN)
        self._names.update(list_fakes(api))
        if since is not None:
            instant += api.real_datetime.now() - since
        self._frozen = api.freeze_time(instant, offset, list(ignored), tick=since is not None)
        self._factory = self._frozen.start()
