"""Questions of `inspect` about functions of the product, which are none in the process of the tests."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

FUNCTIONS = ("function", "method")

KINDS = {
    **dict.fromkeys(("isfunction", "ismethod", "isroutine"), FUNCTIONS),
    **dict.fromkeys(("isasyncgenfunction", "iscoroutinefunction", "isgeneratorfunction"), FUNCTIONS),
    "iscoroutine": ("coroutine",),
}  # fmt: skip
"""Question of `inspect` -> types of the product's things that it would have to ask for."""


def refuse_kinds(side: Any, things: type) -> None:
    """Have *side* give each test up that asks such a question of *things*, what stands for an object of the product."""
    for name in KINDS:
        setattr(inspect, name, _refuse(getattr(inspect, name), side, things))


def _refuse(ask: Callable[[Any], bool], side: Any, things: type) -> Callable[[Any], bool]:
    """Return *ask*, a predicate of `inspect`, wrapped: a test that asks it of such a thing of the product is given up.

    To leave all of them out, as a loop over the functions of a module would, proves nothing.
    """

    def ask_checked(thing: Any) -> bool:
        who: Any = sys._getframe(1)  # noqa: SLF001  mocks and signatures ask, too, and go on without
        who = who.f_back if who.f_globals.get("__name__") == "asyncio.coroutines" else who
        by_test = who.f_code.co_name.endswith("getmembers") or side.capabilities.is_file(who.f_globals.get("__file__"))
        kind = type(thing)
        asked = isinstance(thing, things) and kind.__module__ == "builtins" and kind.__name__ in KINDS[ask.__name__]
        if side.running and asked and by_test:
            side.tie(f"{ask.__name__} is asked of a {kind.__name__} of the product, which is none here", thing)
        return ask(thing)

    return ask_checked
