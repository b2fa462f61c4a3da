"""Finds an extension by name: a module of jumar's, or another package's entry point. It needs no registry."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

from jumar.core.prompts.suggestion import build_suggestion
from jumar.errors import BadInput

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

Kind = Literal["agents", "runners"]


UNNAMED = ("host",)
"""Extensions that jumar chooses itself, and nobody by name."""


def list_names(kind: Kind) -> tuple[str, ...]:
    """Return the installed extensions of *kind*."""
    modules = pkgutil.iter_modules(import_module(f"jumar.{kind}").__path__)
    own = {m.name for m in modules if not (m.ispkg or m.name.startswith("_") or m.name in UNNAMED)}
    return tuple(sorted(own | {e.name for e in _list_others(kind)}))


def exists(kind: Kind, name: str) -> bool:
    """Return whether there is an extension called *name*.

    Other packages are only asked if jumar has none of that name.
    """
    return _is_ours(kind, name) or name in list_names(kind)


def load(kind: Kind, name: str) -> object:
    """Return the `plugin` object of the extension called *name*.

    Raises:
        BadInput: if there is none; the sentence lists those there are.
    """
    if _is_ours(kind, name):
        plugin: object = import_module(f"jumar.{kind}.{name}").plugin
        return plugin
    for entry in _list_others(kind).select(name=name):
        return entry.load()
    raise BadInput(f"unknown {kind[:-1]} {name!r}; {build_suggestion(name, list_names(kind))}")


def _is_ours(kind: Kind, name: str) -> bool:
    return name.isidentifier() and not name.startswith("_") and find_spec(f"jumar.{kind}.{name}") is not None


def _list_others(kind: Kind) -> EntryPoints:
    """Return the extensions of other packages. This reads the metadata of every installed package."""
    from importlib.metadata import entry_points  # noqa: PLC0415  30 ms, and seldom needed

    return entry_points(group=f"jumar.{kind}")
