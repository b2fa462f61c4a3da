"""Selects the events of a journal that `jumar log` shows."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import get_args

from jumar.core.state import events as ev
from jumar.errors import BadInput

TYPES = tuple(str(kind.__struct_config__.tag) for kind in get_args(ev.Event))


def filter_types(entries: Sequence[ev.Entry], types: Sequence[str]) -> tuple[ev.Entry, ...]:
    """Return the *entries* whose type is one of *types*, or all.

    Raises:
        BadInput: naming a type that there is not.
    """
    for name in types:
        if name not in TYPES:
            near = difflib.get_close_matches(name, TYPES, 1)
            known = f"did you mean {near[0]}?" if near else f"known are {', '.join(TYPES)}"
            raise BadInput(f"--type {name} is no type of event; {known}")
    return tuple(e for e in entries if not types or type(e.event).__struct_config__.tag in types)


def drop_repeats(entries: Sequence[ev.Entry]) -> Iterator[ev.Entry | int]:
    """Yield *entries*, with a count in place of tests whose outcome is as in the verification before."""
    before: dict[str, tuple[str, str]] = {}
    hidden = 0
    for entry in entries:
        event = entry.event
        if isinstance(event, ev.TestRun):
            now = (str(event.status), str(event.outcome))
            if before.get(event.test_id) == now:
                hidden += 1
                continue
            before[event.test_id] = now
        elif hidden:
            yield hidden
            hidden = 0
        yield entry
    if hidden:
        yield hidden
