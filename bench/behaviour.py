"""Runs inside a task's tree: records how its tests call a function, or calls it on given inputs, one fork each.

python behaviour.py harvest FILE FUNCTION TEST...     -> JSON: reprs of argument lists
python behaviour.py call FILE FUNCTION < reprs        -> JSON: what each call did
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import inspect
import json
import os
import re
import resource
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

LONGEST = 2000

HANGS = 8
"""After so many calls that hang nothing more is called: the inputs are not what the function is for."""


def harvest(file: str, function: str, tests: list[str]) -> list[str]:
    """The arguments of outer calls, as far as they are literals."""
    found: dict[str, None] = {}
    place = str(Path(file).resolve())

    def watch(frame: FrameType, event: str, _: object) -> None:
        code, back = frame.f_code, frame.f_back
        if event != "call" or code.co_name != function or code.co_filename != place:
            return
        if back is not None and back.f_code.co_filename == place:
            return
        names = code.co_varnames[: code.co_argcount]
        text = repr([frame.f_locals.get(n) for n in names])
        with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            if len(text) <= LONGEST and ast.literal_eval(text) is not None:
                found[text] = None

    sys.setprofile(watch)
    with contextlib.redirect_stdout(sys.stderr):
        pytest.main(["-q", "-p", "no:cacheprovider", *tests])
    sys.setprofile(None)
    return list(found)


def call(file: str, function: str, seconds: int, inputs: list[str]) -> list[str]:
    """What the function does on each input: its value (a generator's as a list), `raises NAME`, or `hangs`."""
    target = getattr(_module(file), function)
    done: list[str] = []
    for text in inputs:
        hopeless = done.count("hangs") >= HANGS
        done.append("hangs" if hopeless else _forked(target, ast.literal_eval(text), seconds))
    return done


def _module(file: str) -> Any:
    """The module in *file*, imported under the package it lies in."""
    sys.path.insert(0, str(Path.cwd()))
    name = ".".join(Path(file).with_suffix("").parts)
    with contextlib.suppress(ImportError):
        return importlib.import_module(name)
    raise SystemExit(f"cannot import {file}")


def _forked(target: Any, arguments: list[Any], seconds: int) -> str:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
            signal.alarm(seconds)
            os.write(write, _outcome(target, arguments).encode()[:60_000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        said = stream.read().decode()
    _, status = os.waitpid(pid, 0)
    return said if status == 0 and said else "hangs"


def _outcome(target: Any, arguments: list[Any]) -> str:
    try:
        value = target(*arguments)
        if inspect.isgenerator(value):
            value = list(value)
    except Exception as error:  # noqa: BLE001  # what it raises is what it does
        return f"raises {type(error).__name__}"
    # A function may work by changing what it is given.
    return re.sub(r" at 0x[0-9a-f]+", "", repr((value, arguments)))


if __name__ == "__main__":
    mode, where, what, *rest = sys.argv[1:]
    done = harvest(where, what, rest) if mode == "harvest" else call(where, what, int(rest[0]), json.load(sys.stdin))
    print(json.dumps(done))
