"""Ends a process of pytest as an interpreter ends: whoever waits is waited for, and what is registered is called.

Standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import NoReturn

from jumar.child import test_timeout
from jumar.child.channel import ENDLESS, HIGH_FD

ENDING: Sequence[Callable[[], None]] = (threading._shutdown, atexit._run_exitfuncs)  # type: ignore[attr-defined]  # noqa: SLF001
"""The steps of `Py_FinalizeEx` that wait for others, and call what others have registered; kept before others come."""

UNFLUSHED = 120
"""Status of an interpreter that could not flush an output stream at its end; see `sys.exit`."""


def leave(status: int, seconds: float) -> NoReturn:
    """End this process with *status*; where no test failed as an interpreter ends, if that is given *seconds*.

    Not by `sys.exit`, as what was left in `atexit` must not have the last word where a test failed.
    """
    judges = status == 0 and seconds
    if judges:
        end_program(seconds)
    if not flush_output() and judges:
        status = UNFLUSHED
    os.closerange(1, HIGH_FD)  # the supervisor looks then whether this process leaves
    os._exit(status)


def end_program(seconds: float) -> None:
    """Do what an interpreter does when its program is over: wait for threads, and call what is registered for that.

    Where that takes longer than *seconds*, the process leaves with another status than it has told.
    """
    limit = test_timeout.TimeLimit(seconds)
    limit.start(seconds)
    # Before Python 3.10 what is registered may raise here, which changes no status.
    with contextlib.suppress(BaseException), limit.limit():
        for step in ENDING:
            step()
    limit.switch_off()
    if limit.rung:
        names = [one.name for one in threading.enumerate() if not one.daemon and one is not threading.main_thread()]
        some = f"the thread {names[0]} goes on" if names else "what is registered with `atexit` goes on"
        os.write(2, f"The program did not end in {seconds:g} s: {some}.\n".encode(errors="replace"))
        os._exit(ENDLESS)


def flush_output() -> bool:
    """Flush the output streams, also those that the code under test has replaced; return whether they could be.

    One that is closed, or not there, has nothing left.
    """
    flushed = True
    for stream in (sys.stderr, sys.stdout):
        try:
            if stream is not None and not getattr(stream, "closed", False):
                stream.flush()
        except Exception:  # noqa: BLE001  whatever the code under test has put there
            flushed = False
    return flushed
