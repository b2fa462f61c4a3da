"""Refuses tables and keys that no configuration file has, and names the nearest known one in any table."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from jumar.core.prompts.suggestion import find_nearest
from jumar.errors import BadInput
from jumar.task.settings.run_settings import SETTINGS, TYPED_ONLY

Keys = Mapping[str, tuple[str, ...]]
"""Table -> its keys; the file itself is the table of an empty name."""

_read_hints = functools.cache(get_type_hints)
"""The types of a struct's fields; to read them again for each file took longer than to read the file."""


def refuse_unknown(raw: Mapping[str, Any], whole: type[msgspec.Struct], where: str) -> None:
    """Refuse the first table or key of *raw* that *whole*, the type of the file, does not have.

    Raises:
        BadInput: naming it, its table, the file *where*, and the nearest known one.
    """
    keys = dict(_list_keys(whole, ""))
    runs = "run" in keys[""]
    for table, shown, key, value in _list_used(raw, whole, ("", "")):
        known = keys[table]
        if runs and not table and key in SETTINGS and not isinstance(value, Mapping):
            raise BadInput(f"{where}: {key!r} stands in no table; did you mean {key!r} in [run]?")
        if key in known:
            continue
        if runs and table == "run" and key in TYPED_ONLY:
            flag = f"--{key.replace('_', '-')}"
            raise BadInput(f"{where}: [run] {key} is no key of a file; pass {flag}, or set JUMAR_RUN_{key.upper()}")
        label = f"table [{f'{shown}.' if shown else ''}{key}]" if isinstance(value, Mapping) else f"key {key!r}"
        raise BadInput(
            f"{where}: unknown {label} in {f'[{shown}]' if shown else 'the file'}; {_suggest(key, table, keys)}"
        )


def _suggest(key: str, table: str, keys: Keys) -> str:
    """Suggest a key of this table, else the same or a near one of another; else the known keys."""
    if near := find_nearest(key, keys[table]):
        return f"did you mean {near!r}?"
    others = [(other, each) for other, known in keys.items() if other and other != table for each in known]
    tops = [(other, each) for other, each in others if "." not in other]
    for among in (tops, others):
        same = next(((other, each) for other, each in among if each == key), None)
        near = "" if same else find_nearest(key, dict.fromkeys(each for _, each in among))
        if found := same or next(((other, each) for other, each in among if each == near), None):
            return f"did you mean {found[1]!r} in [{found[0]}]?"
    return f"known are {', '.join(sorted(keys[table]))}"


def _list_keys(struct: type[msgspec.Struct], table: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the tables of *struct*, which is called *table*, and the keys of each."""
    hints = _read_hints(struct)
    yield table, tuple(hints)
    for name, hint in hints.items():
        if inner := _get_struct(hint):
            yield from _list_keys(inner, f"{table}.{name}" if table else name)
    if not table and "run" in hints:
        yield "run", tuple(SETTINGS)


def _list_used(raw: Mapping[str, Any], struct: type[msgspec.Struct] | None, at: tuple[str, str]) -> Iterator[_Used]:
    """Yield the keys in *raw*; *at* is its table, as it is written in the file."""
    table, shown = at
    hints = _read_hints(struct) if struct else {}
    for key, value in raw.items():
        yield table, shown, key, value
        inner, below = _get_struct(hints.get(key)), (f"{table}.{key}".lstrip("."), f"{shown}.{key}".lstrip("."))
        if isinstance(value, list) and inner:  # tables of one name, such as [[agent]]
            for part in value:
                yield from _list_used(part, inner, (below[0], f"[{below[1]}]")) if isinstance(part, Mapping) else ()
        if not isinstance(value, Mapping) or not (inner or below[0] == "run"):
            continue
        if get_origin(hints.get(key)) is dict and inner:  # a table of tables, whose names are the person's
            for name, part in value.items():
                yield from (
                    _list_used(part, inner, (below[0], f'{below[1]}."{name}"')) if isinstance(part, Mapping) else ()
                )
        else:
            yield from _list_used(value, inner, below)


_Used = tuple[str, str, str, Any]
"""The table of a key, how that table is written, the key and its value."""


def _get_struct(hint: object) -> type[msgspec.Struct] | None:
    """Return the struct that a field of type *hint* holds: by itself, under names of the person's, or several."""
    kinds = (hint, *get_args(hint)) if get_origin(hint) in (None, dict, tuple) else ()
    return next((each for each in kinds if isinstance(each, type) and issubclass(each, msgspec.Struct)), None)
