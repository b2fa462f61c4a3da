"""Finds out whether code under test asks for a frame, or for a file, directly or by functions of libraries."""

from __future__ import annotations

import builtins
import importlib
import inspect
import threading
import traceback
from types import CodeType, FunctionType, TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Foreign = Callable[[str], bool]
    Asks = Callable[[Any, int, tuple[Any, ...]], bool]

# Of our own, whatever becomes of the others.
__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # a module or its names

OFF, LOADING, RUNNING = range(3)
"""Times: nothing of the room was loaded; no test runs, but code under test may; a test runs."""

HANDING = ("inspect", "logging", "traceback")
"""Modules that hand frames to whoever asks: those of others keep to the names in them, as `namedtuple` does."""

NAMING = ("collections", "dataclasses", "enum", "typing")
"""Modules whose functions ask for a frame to learn the name of its module, and no more."""

READERS = ("_signature_from_function", "_has_code_flag")
"""Functions of `inspect` that say no more of a function than its parameters, or whether it is a coroutine's."""

CALLED_BY_NAME = ("sys._getframe", "sys._current", "gc.get", "object.__getattr__")
"""Beginnings of the events of functions that a library calls by their name, where it does so for itself."""

OURS = frozenset((("frames.exchanged", "call_watched"), ("hide_tests", "ask"), ("hide_tests", "take"),
                  ("loaded_code", "watch_setting")))  # fmt: skip
"""Modules of this package, and their functions that ask who calls them, or what was set."""

GETTERS = frozenset(("_getframe", "_getframemodulename"))

# What the hook needs it has in its closure: names of a module are anybody's to exchange.


def build_by_product(tests: frozenset[str], foreign: Foreign) -> Callable[[Any], bool]:
    """Build the predicate for frames with code under test among their callers, up to the first frame of *tests*."""

    def is_by_product(frame: Any) -> bool:
        while frame is not None and frame.f_code.co_filename not in tests:
            if foreign(frame.f_code.co_filename):
                return True
            frame = frame.f_back
        return False

    return is_by_product


def build_askers(tests: frozenset[str], foreign: Foreign) -> tuple[Asks, Asks]:
    """Build the predicates for code under test that asks for a frame (or what a function holds), and for a file."""
    running, handing, function, trace = RUNNING, HANDING, FunctionType, TracebackType
    readers = {getattr(inspect, name).__code__ for name in READERS if hasattr(inspect, name)}
    is_by_product, is_excused = build_by_product(tests, foreign), _build_excuse(tests, foreign)
    is_for_product = _build_walk(tests, foreign)

    def asks_for_frame(frame: Any, now: int, arguments: tuple[Any, ...]) -> bool:
        """Return whether code under test asks; *arguments* are the event and its own.

        For what a function or a traceback of the tests holds, it may be any of the callers.
        """
        event, thing = arguments[0], arguments[1] if len(arguments) > 1 else None
        held_by = thing.__globals__.get("__file__") if type(thing) is function else None
        if frame.f_code in readers or (type(held_by) is str and foreign(held_by)):
            return False
        if now == running and type(held_by) is str and held_by in tests:
            return asks_for_file(frame, now, arguments)
        if event == "object.__getattr__" and type(thing) is trace and thing.tb_frame.f_code.co_filename in tests:
            return is_by_product(frame)
        asker = frame
        while frame.f_back is not None and not frame.f_code.co_filename.startswith("/"):
            frame = frame.f_back  # made of a text: whoever runs it asks
        unlikely = frame.f_globals.get("__name__") not in handing and not foreign(frame.f_code.co_filename)
        if (now != running and unlikely) or (frame is asker and is_excused(frame, event)):
            return False
        return is_for_product(frame, now, event if asker is frame else "", arguments[-1])

    def asks_for_file(frame: Any, _: int, __: tuple[Any, ...]) -> bool:
        """Return whether code under test is one of the callers: who opens a file for it hands it the text."""
        while frame is not None and not foreign(frame.f_code.co_filename):
            frame = frame.f_back
        return frame is not None

    return asks_for_frame, asks_for_file


def _build_walk(tests: frozenset[str], foreign: Foreign) -> Callable[[Any, int, str, Any], bool]:
    """Build the predicate for frames that ask for code under test.

    A library asks for itself where it calls by their names what shows a frame, and its function that does so: what it
    calls without knowing (a callback, a generator), it may call for others.
    """
    handing, by_name, running, main, get_thread = (
        HANDING,
        CALLED_BY_NAME,
        RUNNING,
        threading.get_ident(),
        threading.get_ident,
    )

    def is_for_product(frame: Any, now: int, event: str, last: Any) -> bool:
        code, strict = frame.f_code, event.startswith(by_name)
        wanted = last if event == "object.__getattr__" else event.rpartition(".")[2]
        named = bool(event) and (not strict or wanted in (*code.co_names, *code.co_consts))
        while frame is not None and frame.f_code.co_filename not in tests:
            code, caller = frame.f_code, frame.f_back
            if foreign(code.co_filename):
                return True
            if code.co_name == "<module>" and code.co_filename.startswith("/"):
                return False  # it is imported: nobody gets what it finds
            if caller is not None and caller.f_code.co_filename != code.co_filename:
                names = caller.f_code.co_names
                named = named and (code.co_name in names or (not strict and code.co_name.startswith("__")))
                keeps = now != running or frame.f_globals.get("__name__") not in handing
                if named and keeps and not foreign(caller.f_code.co_filename):
                    return False
            frame = caller
        return frame is None and strict and not named and get_thread() != main

    return is_for_product


def _build_excuse(tests: frozenset[str], foreign: Foreign) -> Callable[[Any, str], bool]:
    """Build the predicate for functions of the standard library that keep a frame to themselves."""
    logging: Any = importlib.import_module("logging")  # not before: it notes when it is imported
    naming, find_caller = frozenset(_list_naming()), logging.Logger.findCaller.__code__
    makers = {traceback.TracebackException.__init__.__code__, traceback.extract_tb.__code__}
    logs, source, texts = find_caller.co_filename, getattr(logging, "_srcfile", None), traceback.__file__
    ours = OURS

    def is_excused(frame: Any, event: str) -> bool:
        name = str(frame.f_globals.get("__name__")).rpartition("jumar.child.pytest.")[2]
        if frame.f_code in naming or (name, frame.f_code.co_name) in ours:
            return not foreign(frame.f_code.co_filename)
        caller = frame.f_back
        if caller is not None and caller.f_code is find_caller and frame.f_code.co_filename == logs:
            return frame.f_globals.get("_srcfile") == source and not names_test(caller)
        while event == "object.__getattr__" and frame is not None and frame.f_code.co_filename == texts:
            if frame.f_code in makers:
                return True  # the frames of an exception from where it was caught on
            frame = frame.f_back
        return False

    def names_test(frame: Any) -> bool:
        """Return whether `findCaller` is called by code under test, or shows it who calls that."""
        held, frame = frame.f_locals, frame.f_back
        level = held.get("stacklevel", 1)
        if held.get("stack_info") or type(level) is not int or foreign(frame.f_code.co_filename):
            return True
        product = False
        while frame is not None and level > 0:
            file = frame.f_code.co_filename
            if file in tests:
                return product
            product = product or foreign(file)
            level -= file != logs and not ("importlib" in file and "_bootstrap" in file)
            frame = frame.f_back
        return False

    return is_excused


def _list_naming() -> Iterator[CodeType]:
    """Yield the code of functions of `NAMING` that ask for a frame."""
    for module in map(importlib.import_module, NAMING):
        classes = [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__]
        for one in (value for owner in (module, *classes) for value in vars(owner).values()):
            function = getattr(one, "__func__", one)
            if type(function) is FunctionType and GETTERS.intersection(function.__code__.co_names):
                yield function.__code__
