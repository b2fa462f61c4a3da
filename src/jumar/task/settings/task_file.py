"""Reads a configuration file whole or refuses it; one sentence names the key, its table and the likely fix."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from jumar.core.gate.write_rules import find_escape
from jumar.core.state.budget import Budget
from jumar.core.state.settings import Price
from jumar.errors import BadInput
from jumar.task.settings.run_settings import LARGEST, LONGEST_SECONDS, MOST_CONFIRMATIONS
from jumar.task.settings.type_errors import explain_range, translate_type_error
from jumar.task.settings.unknown_keys import refuse_unknown

Texts = str | tuple[str, ...]
"""One file or text, or several."""


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base class of all tables: they are decoded strictly."""


class TaskTable(Table, frozen=True, kw_only=True):
    """The table `[task]` of a task file."""

    name: str = ""
    instruction: str = ""
    reference: str = ""
    """A folder laid over the tree for the oracle; it never enters a workspace."""
    env: dict[str, str] = {}
    """Added to the environment of the tests. Entries of `PYTHONPATH` are relative to the room."""


class FilesTable(Table, frozen=True, kw_only=True):
    """The table `[files]` of a task file: globs with gitignore semantics."""

    editable: tuple[str, ...] | None = None
    protected: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    """Files that git ignores and that belong to the tree all the same."""
    exclude: tuple[str, ...] = ()
    """Files that are left out of the tree, beside what git ignores."""


class TestsTable(Table, frozen=True, kw_only=True):
    """The table `[tests]` of a task file."""

    __test__ = False

    runner: str = ""
    """Absent: told by the files at the root."""
    command: str = ""
    """Command that runs the tests. With `report`, for runner `junit`: `{ids}` and `{report}` are filled in. Without,
    it is one test, whose outcome is the exit status (runner `command`)."""
    report: str = ""
    """Of runner `junit`: the report it writes."""
    select: tuple[str, ...] = ()
    timeout_seconds: float = 120.0
    test_timeout_seconds: float | None = None
    """Absent: 30; for a test command, which is one test, that of the whole."""
    verify_timeout_seconds: float | None = None
    """For `[gate] verify`; absent is `timeout_seconds`."""
    hidden: str = ""
    """A folder of tests that no agent sees: a green is accepted only if they pass too."""
    confirm: Annotated[int, msgspec.Meta(le=MOST_CONFIRMATIONS)] = 3
    """Fresh runs that must agree before a tree is called green; 0: the first one is believed."""
    expected: tuple[str, ...] = ()
    command_for: str = ""


class ContextTable(Table, frozen=True, kw_only=True):
    """`[context]`: files or texts for the write and review prompts."""

    reference: Texts = ()
    examples: Texts = ()
    signatures: Texts = ()
    review_rules: Texts = ()


class GateTable(Table, frozen=True, kw_only=True):
    """The table `[gate]` of a task file."""

    verify: str = ""


class PipelineTable(Table, frozen=True, kw_only=True):
    """The table `[pipeline]` of a task file."""

    review: bool | None = None
    """Absent: yes, but for a script that holds no review."""


class RouteTable(Table, frozen=True, kw_only=True):
    """A table `[routes.TIER]` of a task file."""

    model: str = ""
    max_output_tokens: int | None = None
    temperature: float | None = None


class Routes(Table, frozen=True, kw_only=True):
    """`[routes]`: one table for each tier."""

    cheap: RouteTable = RouteTable()
    mid: RouteTable = RouteTable()
    frontier: RouteTable = RouteTable()


class TaskFile(Table, frozen=True, kw_only=True):
    """A whole `task.toml` or `jumar.toml`."""

    task: TaskTable = TaskTable()
    files: FilesTable = FilesTable()
    tests: TestsTable = TestsTable()
    budget: Budget = Budget()
    run: dict[str, Any] = {}
    """Keys and values as in `jumar.task.settings.run_settings`, which checks them."""
    context: ContextTable = ContextTable()
    gate: GateTable = GateTable()
    pipeline: PipelineTable = PipelineTable()
    routes: Routes = Routes()
    prices: dict[str, Price] = {}


Raw = Mapping[str, Any]
"""Tables as they were written, before defaults."""


def read_tables(path: Path) -> Raw:
    """Return the tables in the TOML file at *path*, checked.

    Raises:
        BadInput: if the file cannot be read, is not UTF-8 or TOML, or holds a key or value that no table has,
            as that of a Harbor task does.
    """
    if path.exists() and not path.is_file():
        raise BadInput(f"{path} is not a file")
    try:
        raw = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is not valid TOML: {error}") from error
    if is_harbor(raw):
        raise BadInput(
            f"{path} is that of a Harbor task; make one of jumar's: jumar import harbor {path.parent} -o DIR"
        )
    parse(raw, str(path))
    return raw


def is_harbor(raw: Raw) -> bool:
    """Return whether *raw* are the tables of a Harbor task, which has a `task.toml` too."""
    return "schema_version" in raw or raw.keys() >= {"verifier", "environment"}


def parse(raw: Raw, where: str) -> TaskFile:
    """Return *raw* as typed tables; *where* is named in the sentence when it is refused.

    Raises:
        BadInput: on an unknown key, a wrong type or a number out of range.
    """
    refuse_unknown(raw, TaskFile, where)
    try:
        tables = msgspec.convert(raw, TaskFile)
    except msgspec.ValidationError as error:
        raise BadInput(f"{where}: {translate_type_error(error, raw, TaskFile)}") from error
    _refuse_numbers(msgspec.to_builtins(tables), "", where)
    return tables


def merge_tables(low: Raw, high: Raw) -> Raw:
    """Return the keys of *high*, and those of *low* that it does not set, table by table."""
    both = dict(low)
    for key, value in high.items():
        under = both.get(key)
        both[key] = merge_tables(under, value) if isinstance(under, Mapping) and isinstance(value, Mapping) else value
    return both


def refuse_paths(root: Path, tables: TaskFile, folders: Mapping[str, str], where: str) -> None:
    """Refuse a named path that does not exist, or is not inside the task's folder.

    Raises:
        BadInput: naming the first of them, and the file *where* it stands.
    """
    for key, folder in folders.items():
        if folder and (find_escape(folder) or not (root / folder).exists()):
            raise BadInput(f"{where}: {key} = {folder!r} is not in the task's folder")
        if folder and (root / folder).resolve() in (root.resolve(), *root.resolve().parents):
            raise BadInput(f"{where}: {key} = {folder!r} is the task's folder itself; keep it in one of its own")
    for entry in tables.tests.select:
        inside = entry.partition("::")[0]
        if find_escape(entry) or not (root / inside).exists():
            raise BadInput(f"{where}: tests.select names {inside!r}, which is not in the task's folder")
        _refuse_seen(root, inside, tables.tests.hidden, where)
    for key, value in tables.task.env.items():
        if not key or "=" in key or "\0" in key + value or key.startswith("LD_") or key in ("HOME", "TMPDIR"):
            raise BadInput(f"{where}: task.env has {key!r}, which cannot be set for the tests; take it out")
    for path in {i.partition("::")[0] for i in tables.tests.expected}:
        if not path or find_escape(path) or not (root / path).is_file():
            raise BadInput(f"{where}: tests.expected names {path!r}, which is no file in the task's folder")
    _refuse_leaving(tables.files.editable or (), where)


def _refuse_leaving(editable: Iterable[str], where: str) -> None:
    """Refuse a pattern of *editable* that leaves the task's folder: no file of the task matches it."""
    for line in editable:
        if ".." in line.split("/"):
            said = f"files.editable has {line!r}, which leaves the task's folder, and nothing out there can be edited"
            raise BadInput(f"{where}: {said}; name a file within")


def _refuse_seen(root: Path, inside: str, hidden: str, where: str) -> None:
    """Refuse held-out tests that an agent can see: they enter no workspace."""
    if hidden and (root / inside).resolve().is_relative_to((root / hidden).resolve()):
        said = f"tests.select names {inside!r}, which lies in tests.hidden = {hidden!r}"
        raise BadInput(f"{where}: {said}: no agent sees held-out tests, so keep them in a folder apart")


_MAY_BE_ZERO = re.compile(r"budget\.(?:usd|tokens|seconds)|run\..*|prices\..*|routes\..*\.temperature|tests\.confirm")


def _refuse_numbers(value: object, place: str, where: str) -> None:
    """Refuse numbers that are negative, infinite or not a number, and times or token limits of zero."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _refuse_numbers(inner, f"{place}.{key}" if place else str(key), where)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        zero_is_fine = bool(_MAY_BE_ZERO.fullmatch(place))
        too_long = place.endswith("seconds") and value > LONGEST_SECONDS
        if not math.isfinite(value) or value < 0 or (value == 0 and not zero_is_fine) or too_long:
            least = "zero or more" if zero_is_fine else "more than zero"
            least += "" if math.isfinite(value) else " and finite"
            least = f"{LONGEST_SECONDS} or less" if too_long and math.isfinite(value) else least
            raise BadInput(f"{where}: {place} must be {least}, not {value}")
        if value > LARGEST:
            raise BadInput(f"{where}: {place} {explain_range(place)}")
