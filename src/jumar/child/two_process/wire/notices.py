"""Warnings and records of logs on their way from the product to the tests.

The product's process sends each record that comes to its root logger; the tests' process hands it to the logger of the
same name, where `caplog`, `assertLogs` and handlers of the tests find it. Only plain data crosses.
"""

from __future__ import annotations

import builtins
import importlib
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from jumar.child.two_process.wire.endings import list_ends
from jumar.child.two_process.wire.signatures import DATA

RECORD = "record"
"""Stream of printed output that records are sent on."""

MOST_BYTES = 64 << 20
"""The product may print, and tell without being asked, so much."""


USUAL = ("logging", "unittest.case", "unittest._log")
"""Modules of what hears beside pytest's own: Python's handlers, and `assertLogs`."""


def is_usual(listener: Any) -> bool:
    """Return whether *listener* is what pytest, unittest or Python itself hears by; it may be a class or None."""
    usual: Any = (None, sys.__stdout__, sys.__stderr__, vars(warnings).get("_showwarning_orig"))
    module = str((listener if isinstance(listener, type) else type(listener)).__module__)
    return any(listener is one for one in usual) or module in USUAL or module.startswith("_pytest.")


def send_records(send: Callable[[str, Any], None]) -> None:
    """Send each record that comes to the root logger of this process."""
    logging = importlib.import_module("logging")
    standard = vars(logging.makeLogRecord({})).keys() | {"message", "asctime"}

    class Sender(logging.Handler):  # type: ignore[misc, name-defined]  # the module is loaded late
        def emit(self, record: Any) -> None:
            extra = {k: v for k, v in vars(record).items() if k not in standard and type(v) in DATA}
            text = logging.Formatter().formatException(record.exc_info) if record.exc_info else record.exc_text
            error = record.exc_info[1] if record.exc_info else None
            send(RECORD, [str(record.name), int(record.levelno), f"{record.getMessage()}", text and f"{text}",
                          str(record.funcName), extra, None if error is None else _describe_error(error)])  # fmt: skip

    logging.getLogger().addHandler(Sender())


def _describe_error(error: BaseException) -> list[Any]:
    """Return the form of *error*: its built-in class, module and name of its own, and plain arguments or its text."""
    kind = next(base for base in type(error).__mro__ if base.__module__ == "builtins")
    plain = all(type(argument) in DATA for argument in error.args)
    arguments = list(error.args) if plain else [f"{error}"]
    return [kind.__name__, str(type(error).__module__), str(type(error).__qualname__), ["t", arguments]]


def read_notice(
    stream: str, form: Any, decode: Callable[[Any], Any], find_class: Callable[[type, str, str], type]
) -> Callable[[], Iterable[Any]]:
    """Return a function that gives a warning, or a record of a log, to who listens here, and returns those.

    Its texts are decoded.
    *find_class* returns the class of a warning or an exception by its built-in kind, its module and its name.

    Raises:
        AttributeError, TypeError, ValueError: if *form* is neither.
    """
    if stream == RECORD:
        return _read_record(form, decode, find_class)
    kind = getattr(builtins, stream)
    if not issubclass(kind, Warning):
        raise TypeError(f"{stream} is no warning")
    text, module, name = map(str, decode(form))

    def warn() -> Iterable[Any]:
        warnings.warn_explicit(text, find_class(kind, module, name), "product", 1)
        return (warnings.showwarning,)

    return warn


def _read_error(form: Any, decode: Callable[[Any], Any], find_class: Callable[..., Any]) -> Callable[[], Any]:
    """Return a function that makes what a record has as `exc_info`; nothing, if that error would end a loop."""
    if form is None:
        return lambda: None
    base, module, name, arguments = getattr(builtins, form[0]), *map(str, form[1:3]), decode(form[3])
    if not issubclass(base, BaseException) or any(type(argument) not in DATA for argument in arguments):
        raise ValueError("no exception of a record")

    def make() -> Any:
        error = base.__new__(find_class(base, module, name), *arguments)
        return type(error), error, None

    return make if issubclass(base, Exception) and not issubclass(base, list_ends()) else lambda: None


def _read_record(
    form: Any, decode: Callable[[Any], Any], find_class: Callable[..., Any]
) -> Callable[[], Iterable[Any]]:
    name, level, message, text, function, extra, error = form
    if [type(name), type(level), type(message), type(function)] != [str, int, str, str] or type(text) not in DATA:
        raise ValueError("no record of a log")
    if any(type(value) not in DATA for value in extra.values()):
        raise ValueError("no plain data of a record")
    message, text, extra = decode(message), text and str(decode(text)), {str(k): decode(v) for k, v in extra.items()}
    make_error = _read_error(error, decode, find_class)
    logging = importlib.import_module("logging")

    def hand_over() -> Iterable[Any]:
        logger = logging.getLogger(name)
        if logger.disabled or level <= logger.manager.disable:
            return ()
        known = vars(logging.makeLogRecord({})).keys() | {"message", "asctime"}
        record = logger.makeRecord(name, level, "product", 0, message, (), make_error(), function,
                                   {k: v for k, v in extra.items() if k not in known})  # fmt: skip
        record.exc_text = text
        logger.handle(record)
        return _list_listeners(logger)

    return hand_over


def _list_listeners(logger: Any) -> Iterator[Any]:
    """Yield what makes records, the filters of *logger*, and the handlers that hear it with all that they have."""
    yield from (importlib.import_module("logging").getLogRecordFactory(), *logger.filters)
    while logger is not None:
        for handler in logger.handlers:
            yield from (handler, handler.formatter, *handler.filters)
            if not type(handler).__module__.startswith("_pytest"):
                yield getattr(handler, "stream", None)
        logger = logger.parent if logger.propagate else None
