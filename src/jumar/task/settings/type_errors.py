"""Translates msgspec's messages on wrong types into the words of a TOML file, with the keys as they stand there."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from jumar.task.settings.run_settings import LARGEST, LONGEST_SECONDS

_STEP = re.compile(r"\.(\w+)|\[(\d+)\]|\[(\.\.\.)\]")
"""Part of a path of msgspec's: a field, an entry of a list, or an unnamed entry of a table."""

_BARE = re.compile(r"[\w-]+", re.ASCII)
"""Key of TOML that needs no quotes."""


def translate_type_error(error: msgspec.ValidationError, raw: Mapping[str, Any], kind: type[msgspec.Struct]) -> str:
    """Translate the *error* on the tables *raw*, which are no *kind*, into the words of the file."""
    what, _, path = str(error).partition(" - at `$")
    place = _name_place(_Error(str(error), raw, kind), path.removesuffix("`"))
    if match := re.fullmatch(r"Expected `(.+)`, got `(.+)`", what):
        what = f"must be {_translate_kinds(match[1])}, not {_translate_kinds(match[2])}"
    elif match := re.fullmatch(r"Object missing required field `(.+)`", what):
        what = f"lacks the key {match[1]!r}"
    elif match := re.fullmatch(r"Expected `(.+)` (of length )?(>=|<=|>|<) (\S+)", what):
        kinds = "have a length" if match[2] else f"be {_translate_kinds(match[1])}"
        what = f"must {kinds} {_BOUNDS[match[3]]} {match[4].removesuffix('.0')}"
    elif what == "Number out of range":
        what = explain_range(place)
    return f"{place or 'the file'} {what}"


def explain_range(place: str) -> str:
    """Return the words on a number at *place* that is too large."""
    return f"is out of range: at most {LONGEST_SECONDS if place.endswith('seconds') else LARGEST}"


class _Error(NamedTuple):
    """Message of msgspec on tables that are not of a kind."""

    message: str
    raw: Mapping[str, Any]
    kind: type[msgspec.Struct]


def _name_place(error: _Error, path: str) -> str:
    """Return *path*, which msgspec wrote, with the keys and names of the entries in it."""
    said, keys = "", list[str | int]()
    for field, number, _ in _STEP.findall(path):
        if number:
            entry = _get(error.raw, (*keys, int(number)))
            name = entry.get("name") if isinstance(entry, Mapping) else None
            said += f" {name!r}" if isinstance(name, str) else f" (entry {int(number) + 1})"
            keys.append(int(number))
        else:
            key = field or _find_key(error, keys)
            said += f".{key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)}"
            keys.append(key)
    return said.removeprefix(".")


def _find_key(error: _Error, keys: Sequence[str | int]) -> str:
    """Return the key of the table at *keys* whose value alone brings the same *error*."""
    table: Mapping[str, Any] = _get(error.raw, keys)
    for key, value in table.items():
        try:
            msgspec.convert(_replace(error.raw, keys, {key: value}), error.kind)
        except msgspec.ValidationError as again:
            if str(again) == error.message:
                return key
    return "..."


def _get(raw: Any, keys: Sequence[str | int]) -> Any:
    for key in keys:
        raw = raw[key]
    return raw


def _replace(raw: Any, keys: Sequence[str | int], value: object) -> Any:
    """Return a copy of *raw* with *value* at *keys*."""
    if not keys:
        return value
    copied: Any = list(raw) if isinstance(raw, list) else dict(raw)
    copied[keys[0]] = _replace(raw[keys[0]], keys[1:], value)
    return copied


_BOUNDS = {">=": "of at least", "<=": "of at most", ">": "above", "<": "below"}


def _translate_kinds(kinds: str) -> str:
    said = {
        "array": "a list", "str": "a string", "int": "a whole number", "float": "a number", "bool": "true or false",
        "object": "a table", "null": "absent",
    }  # fmt: skip
    return " or ".join(said.get(k, k) for k in kinds.split(" | ") if k != "null" or kinds == "null")
