"""Constants of the product that the files of the tests name, read before any test runs: none can follow an answer."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from typing import Any

from jumar.child.two_process import proxies
from jumar.child.two_process.test_process import import_hook
from jumar.child.two_process.wire.exceptions import CannotRunApart

NAMED = re.compile(r"\b([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\.([A-Z][A-Z\d_]*)\b")
"""Constant in a text: the path to what has it, and its name."""


def read_constants(side: Any, names: Mapping[str, Any], text: str) -> None:
    """Read each constant that the *text* of a file names by a module or class of the product in its *names*.

    What it has then, it must have for all tests (`KnownNames.check_constant`). A fault of *side* is none of a test's.
    """
    faults, why = side.faults, side.why
    for path, name in sorted(set(NAMED.findall(text))):
        first, *parts = path.split(".")
        thing, found = None, names.get(first)
        for part in (*parts, name):
            thing, found = found, None
            if not (type(thing) is import_hook.ModuleFacade or type(thing) is proxies.ProxyClass):
                break
            with contextlib.suppress(Exception, CannotRunApart):  # a test that needs it hears of that
                found = getattr(thing, part)
        else:
            side.names.note_first(proxies.get_number(thing), name, found)
    side.faults, side.why = faults, why
