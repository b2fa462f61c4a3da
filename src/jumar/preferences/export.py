"""Exports examples for trainers: TRL's conversational formats, as JSON lines or Parquet, with a data card."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from jumar.corpus.export import find_run_directories
from jumar.errors import BadInput
from jumar.preferences.completions import Completion, encode_message, encode_tools
from jumar.preferences.leaks import LabelledText, find_telltale_signs
from jumar.preferences.pairs import PairRules, choose_pairs, drop_duplicates
from jumar.preferences.rollouts import Reason, Rollout, Selection, read_rollout

Row = dict[str, Any]

DIGITS = 6
"""Digits of a score: `datasets` keeps ten of a number in JSON lines, and what is loaded should be what was written."""


class Format(StrEnum):
    """Format of an example. Source: TRL, "Dataset formats and types"."""

    DPO = "dpo"
    """`prompt`, `chosen`, `rejected`: preference, conversational."""
    KTO = "kto"
    """`prompt`, `completion`, `label`: unpaired preference."""
    SFT = "sft"
    """`prompt`, `completion`: what passed."""


class Examples(msgspec.Struct, frozen=True):
    """Examples, and the use of every rollout."""

    rows: tuple[Row, ...]
    rollouts: int
    excluded: Mapping[str, int]
    """Reason -> number of rollouts in no example; with `used` they add up to `rollouts`."""
    used: int
    telltale: tuple[str, ...]
    """Words, calls and ends that tell the label in every example."""


def build_examples(runs: Iterable[Path], kind: Format, wanted: Selection, rules: PairRules) -> Examples:
    """Return the examples of the runs at or below *runs*, in the format *kind*.

    Raises:
        BadInput: if one of them holds no run.
    """
    folders = find_run_directories(runs)
    read = [(str(folder), read_rollout(folder, wanted)) for folder in folders]
    good = [found for _, found in read if isinstance(found, Rollout)]
    excluded = Counter(str(found) for _, found in read if isinstance(found, Reason))
    if kind is Format.DPO:
        paired = choose_pairs(good, rules)
        rows = [_build_pair_row(pair.chosen, pair.rejected) for pair in paired.pairs]
        left = paired.left
        labelled = [_build_label(r, chosen=c) for p in paired.pairs for r, c in ((p.chosen, True), (p.rejected, False))]
    else:
        kept, left = drop_duplicates(good)
        if kind is Format.SFT:
            left |= {r.folder: Reason.FAILED for r in kept if not r.passed}
            kept = [r for r in kept if r.passed]
        rows = [_build_single_row(r, kind) for r in kept]
        labelled = [_build_label(r, chosen=r.passed) for r in kept]
    excluded.update(str(reason) for reason in left.values())
    return Examples(
        rows=tuple(rows),
        rollouts=len(folders),
        excluded=dict(sorted(excluded.items())),
        used=len(good) - len(left),
        telltale=find_telltale_signs(labelled),
    )


def _build_label(rollout: Rollout, *, chosen: bool) -> LabelledText:
    return LabelledText(rollout.task, chosen, rollout.completion.completion)


def _build_pair_row(chosen: Rollout, rejected: Rollout) -> Row:
    return {
        **_build_prompt(chosen.completion),
        "chosen": [encode_message(m) for m in chosen.completion.completion],
        "rejected": [encode_message(m) for m in rejected.completion.completion],
        "task": chosen.task,
        "chosen_run": chosen.run,
        "rejected_run": rejected.run,
        "chosen_grade": chosen.grade,
        "rejected_grade": rejected.grade,
        "chosen_score": round(chosen.score, DIGITS),
        "rejected_score": round(rejected.score, DIGITS),
    }


def _build_single_row(rollout: Rollout, kind: Format) -> Row:
    return {
        **_build_prompt(rollout.completion),
        "completion": [encode_message(m) for m in rollout.completion.completion],
        **({"label": rollout.passed} if kind is Format.KTO else {}),
        "task": rollout.task,
        "run": rollout.run,
        "grade": rollout.grade,
        "score": round(rollout.score, DIGITS),
    }


def _build_prompt(completion: Completion) -> Row:
    tools = {"tools": encode_tools(completion.tools)} if completion.tools else {}
    return {"prompt": [encode_message(m) for m in completion.prompt], **tools}


def split_by_task(rows: Sequence[Row], share: float) -> tuple[list[Row], list[Row]]:
    """Return *rows* for training and for testing: all examples of a task are on one side, by the hash of its name.

    *share* of the tasks, in the long run, are for testing.
    """
    tested = {
        row["task"] for row in rows if int.from_bytes(sha256(row["task"].encode()).digest()[:4], "big") < share * 2**32
    }
    return [r for r in rows if r["task"] not in tested], [r for r in rows if r["task"] in tested]


def encode_rows(rows: Sequence[Row], path: Path) -> bytes:
    """Return *rows* as the suffix of *path* asks: JSON lines, or Parquet.

    Parquet gives arguments of tool calls that differ between rows one set of columns, with nulls, so there they are
    JSON strings; JSON lines are canonical.

    Raises:
        BadInput: if Parquet is asked for and pyarrow is not installed.
    """
    if path.suffix != ".parquet":
        return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
    try:
        import pyarrow as pa  # type: ignore[import-not-found]  # noqa: PLC0415  an extra
        from pyarrow import parquet  # noqa: PLC0415  as above
    except ImportError:
        raise BadInput("writing Parquet needs pyarrow: pip install 'jumar[parquet]', or name a .jsonl file") from None
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.Table.from_pylist([_flatten(row) for row in rows]), sink)
    return bytes(sink.getvalue())


def _flatten(value: Any, key: str = "") -> Any:
    if key == "arguments":
        return msgspec.json.encode(value).decode()
    if isinstance(value, dict):
        return {name: _flatten(each, name) for name, each in value.items()}
    return [_flatten(each) for each in value] if isinstance(value, list) else value


def build_card(found: Examples, files: Mapping[str, tuple[int, bytes]], chosen: Mapping[str, object]) -> str:
    """Return the data card: counts, exclusions, versions, options and hashes, in Markdown.

    *files* are names with their number of examples and their content, *chosen* the options.
    """
    tasks = Counter(str(row["task"]) for row in found.rows)
    lines = [
        "# Data card",
        "",
        f"{len(found.rows)} examples of {len(tasks)} tasks, from {found.used} of {found.rollouts} rollouts.",
        "",
        "| rollouts | number |",
        "| --- | --- |",
        f"| used | {found.used} |",
        *(f"| left out: {reason} | {count} |" for reason, count in found.excluded.items()),
        f"| all | {found.rollouts} |",
        "",
        "| file | examples | sha256 |",
        "| --- | --- | --- |",
        *(f"| {name} | {count} | {sha256(data).hexdigest()} |" for name, (count, data) in files.items()),
        "",
        "| task | examples |",
        "| --- | --- |",
        *(f"| {task} | {count} |" for task, count in sorted(tasks.items())),
        "",
        f"Signs (words, calls, ends) that stand on one side of every example: {', '.join(found.telltale) or 'none'}.",
        "",
        f"jumar {version('jumar')}, Python {platform.python_version()}; "
        + ", ".join(f"{name} {value}" for name, value in chosen.items()),
        "",
    ]
    return "\n".join(lines)
