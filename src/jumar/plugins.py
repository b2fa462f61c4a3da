"""Finds an extension by name: a module of ours, or another package's entry point. No registry is edited."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from importlib.metadata import entry_points
from typing import Literal

from jumar.errors import BadInput
from jumar.nearest import suggestion

Kind = Literal["runners"]


def names(kind: Kind) -> tuple[str, ...]:
    """The extensions of *kind* that are installed."""
    own = {m.name for m in pkgutil.iter_modules(import_module(f"jumar.{kind}").__path__)}
    return tuple(sorted(own | {e.name for e in entry_points(group=f"jumar.{kind}")}))


def load(kind: Kind, name: str) -> object:
    """The `plugin` object of the extension called *name*.

    Raises:
        BadInput: if there is none; the sentence lists those there are.
    """
    if name not in names(kind):
        raise BadInput(f"unknown {kind[:-1]} {name!r}; {suggestion(name, names(kind))}")
    for entry in entry_points(group=f"jumar.{kind}", name=name):
        return entry.load()
    plugin: object = import_module(f"jumar.{kind}.{name}").plugin
    return plugin
