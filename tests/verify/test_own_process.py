"""Tests that look at their own process, or arrange it, are found by what they reach."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest

from jumar.child.two_process.environment.own_process import find_state

LOOKING = {
    "itself": ("def test(): assert os.getcwd()", "getcwd"),
    "by another name": ("from os import getcwd as here\ndef test(): assert here()", "getcwd"),
    "by a name without its module": (
        "from threading import enumerate as them\ndef test(): them()",
        "threading.enumerate",
    ),
    "at an object without its module": ("from sys import path as places\ndef test(): assert places", "sys.path"),
    "by a method of an object": ("from random import getstate as now\ndef test(): now()", "getstate"),
    "by a helper": ("def look(): return os.environ\ndef test(): look()", "environ"),
    "by a helper within a helper": ("def a(): os.getcwd()\ndef b(): a()\ndef test(): b()", "getcwd"),
    "by a method of a helper": ("class Steady:\n def __enter__(self): os.getcwd()\ndef test(): Steady()", "getcwd"),
    "by a property of an object": (
        "class Here:\n @property\n def now(self): return os.getcwd()\nHERE = Here()\ndef test(): HERE.now",
        "getcwd",
    ),
    "by setting a name of a library": ("import json\ndef test(): json.dumps = str", "json.dumps"),
    "at handlers": ("import logging\ndef test(): logging.getLogger('a').handlers", "handlers of loggers"),
    "at filters": ("import logging\nLOG = logging.getLogger()\ndef test(): LOG.filters", "filters of loggers"),
    "at a module of handlers": (
        "import logging.handlers\ndef test(): logging.getLogger('a').addHandler(logging.handlers.MemoryHandler(9))",
        "",
    ),
    "at other handlers": ("import argparse\ndef test(): argparse.handlers", ""),
    "not at all": ("def test(): assert os.path.join('a', 'b') and sys.version_info", ""),
    "in another test": ("class TestIt:\n def test_b(self): os.getcwd()\ndef test(): TestIt()", ""),
}

Load = Callable[[str], ModuleType]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Load a source as a file of tests."""
    name = f"looking_{tmp_path.name}"
    monkeypatch.syspath_prepend(str(tmp_path))

    def load_source(source: str) -> ModuleType:
        (tmp_path / f"{name}.py").write_text(f"import os, sys\n{dedent(source)}\n")
        return importlib.import_module(name)

    yield load_source
    sys.modules.pop(name, None)


def find_in(things: list[Any], module: ModuleType) -> str:
    return find_state(things, lambda file: file == module.__file__, lambda kind: kind.__module__ == module.__name__)


@pytest.mark.parametrize(("source", "name"), LOOKING.values(), ids=list(LOOKING))
def test_what_a_test_reaches_is_looked_at(load: Load, source: str, name: str) -> None:
    module = load(source)

    assert find_in([module.test], module) == name


def test_its_class_and_what_it_gets_are_looked_at_too(load: Load) -> None:
    module = load("class TestIt:\n def setup_method(self): os.getcwd()\n def test_a(self): pass")

    assert find_in([module.TestIt], module) == "getcwd"
    assert find_in([module.TestIt.test_a], module) == ""
    assert find_in([module.TestIt.test_a, module.os.getcwd], module) == "getcwd"
