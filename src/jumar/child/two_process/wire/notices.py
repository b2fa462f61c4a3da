"""Warnings and records of logs on their way from the product to the tests.

The product's process sends each record that comes to its root logger; the tests' process hands it to the logger of the
same name, where `caplog`, `assertLogs` and handlers of the tests find it. Only plain data crosses.
"""

from __future__ import annotations

import builtins
import importlib
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
