"""Order of precedence of a setting: flag, environment, task file, project file, default.

What a person typed wins over every file. A file that came with a task wins over a file of the person's only where it
is at least as strict, so that a foreign repository cannot loosen what the person set.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import msgspec
from msgspec.structs import replace

from jumar.errors import BadInput
from jumar.task.settings.run_settings import CAPS, OFFLINE, SETTINGS, Setting, Value


class Authority(IntEnum):
    """Authority behind a value; the higher one stays where two settings contradict each other."""

    DEFAULT = 0
    TASK = 1
    """A file that came with the task: its `task.toml`, or a `jumar.toml` in its folder."""
    OWN = 2
    """A file of the person's: a `jumar.toml` beside the folder, or `--config FILE`."""
    TYPED = 3
    """A flag, a variable of the environment, a field of `jumar.Options`."""


class FileSettings(msgspec.Struct, frozen=True):
    """The settings that one file holds."""

    where: str
    """Its path."""
    own: bool
    """True if it is the person's, and no part of the task."""
    values: Mapping[str, Value]


class SettingValue(msgspec.Struct, frozen=True):
    """The value of a setting, and its source."""

    name: str
    value: Value | None
    """Value, or None: not set; of a cap: there is none."""
    source: str = "default"
    authority: Authority = Authority.DEFAULT
    overridden: tuple[str, ...] = ()
    """Values that files asked for and that are not in force, each as `VALUE of FILE`."""

    @property
    def note(self) -> str:
        """One line on the overridden values; empty if there are none."""
        if not self.overridden:
            return ""
        return f"{self.name} is {format_value(self.value)} ({self.source}), not {', nor '.join(self.overridden)}"

    def reset(self, value: Value | None, why: str) -> SettingValue:
        """Return this setting at its default *value*, as its value contradicts *why*."""
        lost = f"{format_value(self.value)} of {self.source}"
        return SettingValue(self.name, value, why, overridden=(*self.overridden, lost))


def format_value(value: Value | None) -> str:
    """Return *value* in the form that a person reads."""
    return "not set" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def read_file_settings(where: str, raw: Mapping[str, object], *, own: bool) -> FileSettings:
    """Return the settings in *raw*, the tables of the file *where*.

    `[run]`, the caps of `[budget]`, and `[tests] confirm`.

    Unknown keys were refused before.

    Raises:
        BadInput: on a value that a setting cannot have, or two tables that contradict each other.
    """
    run, budget, tests = (_get_table(raw, name) for name in ("run", "budget", "tests"))
    for key, value in run.items():
        _check_row(key, value, where)
    elsewhere = {name: ("budget", budget[name]) for name in CAPS if name in budget}
    elsewhere |= {"confirm": ("tests", tests["confirm"])} if "confirm" in tests else {}
    for name, (table, value) in elsewhere.items():
        if name in run and run[name] != value:
            raise BadInput(
                f"{where}: [run] {name} = {run[name]} and [{table}] {name} = {value} differ; keep one of them"
            )
    values = {name: value for name, (_, value) in elsewhere.items()} | dict(run)
    return FileSettings(where, own, {name: v for name, v in values.items() if isinstance(v, str | int | float)})


def settle(setting: Setting, typed: Value | None, files: tuple[FileSettings, ...], given: str = "") -> SettingValue:
    """Return the value of *setting* in force; None if nobody set it.

    Args:
        setting: its row.
        typed: what the person typed; None: nothing.
        files: the highest first.
        given: how the person typed it, for the report; empty: as a flag.
    """
    wishes = [(f.values[setting.name], f) for f in files if setting.name in f.values]
    theirs = [(value, f) for value, f in wishes if not f.own]
    found = SettingValue(setting.name, None)
    if typed is not None:
        found = SettingValue(setting.name, typed, given or setting.flag, Authority.TYPED)
    elif own := next(((value, f) for value, f in wishes if f.own), None):
        found = SettingValue(setting.name, own[0], own[1].where, Authority.OWN)
    for value, file in theirs:
        if value in setting.barred or found.authority is Authority.TASK:
            continue
        if found.value is None or (found.authority is Authority.OWN and setting.tightens(value, found.value)):
            found = SettingValue(setting.name, value, file.where, Authority.TASK)
    task_decides = found.authority is Authority.TASK  # whose files override each other as a task's files do
    lost = [(v, f) for v, f in theirs if v != found.value and (not task_decides or v in setting.barred)]
    return replace(found, overridden=tuple(f"{format_value(v)} of {f.where}" for v, f in lost))


def apply_limit(setting: Setting, found: SettingValue, limit: Value, source: str) -> SettingValue:
    """Return *found*, limited to *limit* if a file that came with the task asks for less strictness."""
    loose = found.authority <= Authority.TASK and found.value is not None and not setting.tightens(found.value, limit)
    if found.value is not None and not loose:
        return found
    lost = (f"{format_value(found.value)} of {found.source}",) if loose else ()
    return SettingValue(setting.name, limit, source, overridden=(*found.overridden, *lost))


def _get_table(raw: Mapping[str, object], name: str) -> Mapping[str, object]:
    table = raw.get(name, {})
    return table if isinstance(table, Mapping) else {}


def _check_row(key: str, value: object, where: str) -> None:
    label, setting = f"[run] {key}", SETTINGS[key]
    kinds = {str: "a string", int: "a whole number", float: "a number"}
    fits = isinstance(value, (int, float) if setting.kind is float else setting.kind) and not isinstance(value, bool)
    if not fits or not isinstance(value, str | int | float):
        raise BadInput(f"{where}: {label} must be {kinds[setting.kind]}, not {value!r}")
    setting.check(value, f"{label} in {where}")
    if _is_from_file(setting, value):
        raise BadInput(f"{where}: {label} = {value!r} answers from a file, which only --model names; take it out")


def _is_from_file(setting: Setting, value: Value) -> bool:
    return setting.name == "model" and str(value).partition(":")[0] in OFFLINE
