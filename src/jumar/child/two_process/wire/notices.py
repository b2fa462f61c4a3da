"""Warnings and records of logs on their way from the product to the tests, and levels of loggers on the way back.

The product's process sends each record that comes to its root logger; the tests' process hands it to the logger of the
same name, where `caplog`, `assertLogs` and handlers of the tests find it. Only plain data crosses.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

from jumar.child.two_process.wire.signatures import DATA

RECORD = "record"
"""Stream of printed output that records are sent on."""

MOST_BYTES = 64 << 20
"""The product may print, and tell without being asked, so much."""


def send_records(send: Callable[[str, Any], None]) -> None:
    """Send each record that comes to the root logger of this process."""
    logging = importlib.import_module("logging")
    standard = vars(logging.makeLogRecord({})).keys() | {"message", "asctime"}

    class Sender(logging.Handler):  # type: ignore[misc, name-defined]  # the module is loaded late
        def emit(self, record: Any) -> None:
            extra = {k: v for k, v in vars(record).items() if k not in standard and type(v) in DATA}
            text = logging.Formatter().formatException(record.exc_info) if record.exc_info else record.exc_text
            send(RECORD, [str(record.name), int(record.levelno), f"{record.getMessage()}", text and f"{text}",
                          str(record.funcName), extra])  # fmt: skip

    logging.getLogger().addHandler(Sender())


def read_notice(
    stream: str, form: Any, decode: Callable[[Any], Any], find_warning: Callable[[type, str, str], type]
) -> Callable[[], None]:
    """Return a function that gives a warning, or a record of a log, to who listens here; its texts are decoded.

    *find_warning* returns the class of a warning by its built-in kind, its module and its name.

    Raises:
        AttributeError, TypeError, ValueError: if *form* is neither.
    """
    if stream == RECORD:
        return _read_record(form, decode)
    kind = getattr(builtins, stream)
    if not issubclass(kind, Warning):
        raise TypeError(f"{stream} is no warning")
    text, module, name = map(str, decode(form))
    return lambda: warnings.warn_explicit(text, find_warning(kind, module, name), "product", 1)


def _read_record(form: Any, decode: Callable[[Any], Any]) -> Callable[[], None]:
    name, level, message, text, function, extra = form
    if [type(name), type(level), type(message), type(function)] != [str, int, str, str] or type(text) not in DATA:
        raise ValueError("no record of a log")
    if any(type(value) not in DATA for value in extra.values()):
        raise ValueError("no plain data of a record")
    message, text, extra = decode(message), text and str(decode(text)), {str(k): decode(v) for k, v in extra.items()}
    logging = importlib.import_module("logging")

    def hand_over() -> None:
        logger = logging.getLogger(name)
        if logger.disabled or level <= logger.manager.disable:
            return
        known = vars(logging.makeLogRecord({})).keys() | {"message", "asctime"}
        record = logger.makeRecord(name, level, "product", 0, message, (), None, function,
                                   {k: v for k, v in extra.items() if k not in known})  # fmt: skip
        record.exc_text = text
        logger.handle(record)

    return hand_over


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


SEEDED = ("random", "numpy.random")
"""Modules with a generator that is used by all: where a test seeds it, that of the product's process is seeded, too."""


def watch_seeds(seeds: dict[str, tuple[Any, ...]]) -> None:
    """Keep in *seeds*, by module, how often the generators that are loaded are seeded from now on, and with what."""
    for name in SEEDED:
        module: Any = sys.modules.get(name)
        if module is not None and not hasattr(module.seed, "__wrapped__"):
            module.seed = _note_seed(module.seed, name, seeds)


def _note_seed(seed: Any, name: str, seeds: dict[str, tuple[Any, ...]]) -> Any:
    @functools.wraps(seed)
    def seed_and_note(*args: Any, **keywords: Any) -> None:
        seed(*args, **keywords)
        seeds[name] = (seeds.get(name, (0,))[0] + 1, args, tuple(keywords.items()))

    return seed_and_note


class FollowedSeeds:
    """Generators of the product's process, which are seeded as those of the tests are."""

    def __init__(self) -> None:
        self._done: dict[str, int] = {}

    def follow(self, seeds: Any) -> None:
        """Seed the generators that the tests have seeded since."""
        for name, (times, args, keywords) in seeds:
            if self._done.get(name) != times:
                importlib.import_module(name).seed(*args, **dict(keywords))
                self._done[name] = times


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
