"""Exchanges functions in C that hand out frames, or disguise code, and raise no audit event for it.

Handlers of signals get a frame that reports who looks at it: most of them do not.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.machinery
import signal
import sys
from types import FunctionType
from typing import TYPE_CHECKING, Any

from jumar.child.pytest.frames.askers import build_by_product

if TYPE_CHECKING:
    from collections.abc import Callable

    Tell = Callable[[str], None]

# Of our own, whatever becomes of the others.
__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # a module or its names

UNHEARD = (("faulthandler", "dump_traceback"), ("faulthandler", "dump_traceback_later"), ("faulthandler", "register"),
           ("sys", "set_coroutine_origin_tracking_depth"), ("_imp", "_fix_co_filename"),
           ("_imp", "create_builtin"))  # fmt: skip
"""Functions that show frames, disguise code, or make one of these modules anew: there stand others that tell."""

ITSELF = frozenset(("_fix_co_filename", "create_builtin"))
"""Names of those that the importer calls for each module."""


def exchange_unheard(tests: frozenset[str], foreign: Callable[[str], bool], tell: Tell) -> None:
    """Put functions that report code under test, which *foreign* tells by its file, where those of C stood."""
    is_by_product = build_by_product(tests, foreign)
    for module, name in UNHEARD:
        place: Any = importlib.import_module(module)
        setattr(place, name, _build_heard(getattr(place, name), is_by_product, tell))
    _exchange_signals(tests, tell)


# What they need they have in their closures: names of a module are anybody's to exchange.


def _build_heard(function: Callable[..., Any], is_by_product: Callable[[Any], bool], tell: Tell) -> Callable[..., Any]:
    """Build a wrapper that calls *function*, and reports a call for code under test."""
    get_frame, name, specs = sys._getframe, function.__name__, importlib.machinery.ModuleSpec  # noqa: SLF001  as above
    itself, known, makes = name in ITSELF, frozenset(("_signal", *dict(UNHEARD))), name == "create_builtin"

    def call_watched(*args: Any, **keywords: Any) -> Any:
        frame = get_frame(1)
        usual = itself and name in frame.f_code.co_names and frame.f_code.co_filename.startswith("<frozen importlib")
        if makes and args and type(args[0]) is specs:
            usual = args[0].name not in known
        if not usual and is_by_product(frame):
            tell(name)
        return function(*args, **keywords)

    return call_watched


def _exchange_signals(tests: frozenset[str], tell: Tell) -> None:
    """Make handlers of signals get a frame that tells, unless they are functions of *tests*."""
    place: Any = importlib.import_module("_signal")
    install, ask, function, usual, show = (
        place.signal,
        place.getsignal,
        FunctionType,
        place.default_int_handler,
        _build_show(tell),
    )
    handlers: dict[int, tuple[Any, Any]] = {}

    def restore(number: int, installed: Any) -> Any:
        shown, handler = handlers.get(number, (None, None))
        return handler if shown is not None and installed is shown else installed

    def exchanged_signal(number: int, handler: Any, /) -> Any:
        shown = handler
        of_tests = type(handler) is function and handler.__globals__.get("__file__") in tests
        if callable(handler) and handler is not usual and not of_tests:

            def shown(number: int, frame: Any) -> Any:
                return handler(number, show(frame))

        before = restore(number, install(number, shown))
        handlers[number] = (shown, handler)
        return before

    def exchanged_getsignal(number: int, /) -> Any:
        return restore(number, ask(number))

    for name, exchanged in (("signal", exchanged_signal), ("getsignal", exchanged_getsignal)):
        exchanged.__name__ = exchanged.__qualname__ = name
        setattr(place, name, exchanged)
        public: Any = getattr(signal, name)
        public.__wrapped__ = exchanged


def _build_show(tell: Tell) -> Callable[[Any], Any]:
    """Build the function that makes the frame that tells."""
    get = getattr

    def show(frame: Any) -> Any:
        class Shown:
            __slots__ = ()

            def __getattribute__(self, name: str) -> Any:
                tell("the frame of a signal")
                return get(frame, name)

        Shown.__name__ = Shown.__qualname__ = "frame"
        return frame if frame is None else Shown()

    return show
