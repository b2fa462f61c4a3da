"""`jumar prefs`: exports preference pairs, unpaired examples or demonstrations from rollouts."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import click

from jumar.cli.console.output import Console
from jumar.cli.parameters.command_options import add_output_options
from jumar.cli.parameters.run_argument import MANY_RUNS
from jumar.core.gate.grades import Grade
from jumar.corpus.export import find_run_directories, refuse_inside_runs
from jumar.errors import BadInput
from jumar.preferences.completions import Target
from jumar.preferences.export import Format, build_card, build_examples, encode_rows, split_by_task
from jumar.preferences.pairs import PairRules
from jumar.preferences.rollouts import DEFAULT_GRADE, Selection
from jumar.workspace.files.disk_faults import explain_output_faults
from jumar.workspace.files.safe_paths import replace_file


@click.command(epilog="Example: jumar prefs .jumar/campaigns/20261123-101500-1a2b -o pairs.jsonl --target trajectory")
@MANY_RUNS
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="A .jsonl or .parquet file.")
@click.option(
    "--format",
    "kind",
    type=click.Choice([*map(str, Format)]),
    default=str(Format.DPO),
    help="dpo (default), kto or sft.",
)
@click.option(
    "--target",
    type=click.Choice([*map(str, Target)]),
    default=str(Target.PATCH),
    help="patch (default), file or trajectory.",
)
@click.option(
    "--by", type=click.Choice(["outcome", "score"]), default="outcome", help="outcome (default): pass against fail."
)
@click.option("--margin", type=click.FloatRange(0, 1), default=0.0, help="Least difference of the shares that passed.")
@click.option("--max-pairs", type=click.IntRange(1), default=4, help="Pairs of one task (default 4).")
@click.option(
    "--min-grade",
    type=click.Choice([*map(str, Grade)]),
    help="Weakest grade of a green (default A, where the runner can have one).",
)
@click.option("--max-prompt-chars", type=click.IntRange(1), default=200_000, help="Longest prompt (default 200000).")
@click.option("--test-share", type=click.FloatRange(0, 1), default=0.0, help="Share of the tasks for FILE.test.")
@add_output_options
def prefs(runs: tuple[Path, ...], out: Path, *, as_json: bool, quiet: bool, **chosen: Any) -> int:
    """Write preference pairs from RUNS: folders of runs or campaigns; `last` is the campaign begun last.

    Runs that ended for a fault, a guardrail or a cap on money, tokens or time, flaky, void and weak verdicts are left
    out, each for a reason that is counted.
    """
    voice = Console(json=as_json, quiet=quiet)
    if out.suffix not in (".jsonl", ".parquet"):
        raise BadInput(f"-o {out} has no known suffix; name a .jsonl or a .parquet file")
    refuse_inside_runs(find_run_directories(runs), out)
    wanted = Selection(
        target=Target(chosen["target"]),
        min_grade=chosen["min_grade"] or "",
        max_prompt_chars=chosen["max_prompt_chars"],
    )
    rules = PairRules(by_score=chosen["by"] == "score", margin=chosen["margin"], max_pairs=chosen["max_pairs"])
    found = build_examples(runs, Format(chosen["kind"]), wanted, rules)
    train, test = split_by_task(found.rows, chosen["test_share"])
    parts = {out: train, **({out.with_suffix(f".test{out.suffix}"): test} if chosen["test_share"] else {})}
    files = {path: encode_rows(rows, path) for path, rows in parts.items()}
    told = {**chosen, "min_grade": wanted.min_grade or DEFAULT_GRADE}
    card = build_card(found, {p.name: (len(parts[p]), files[p]) for p in files}, told)
    with explain_output_faults(out):
        for path, data in files.items():
            replace_file(path, data)
        replace_file(out.with_suffix(".card.md"), card.encode())
    _warn_of_old(voice, out, parts)
    for reason, count in found.excluded.items():
        voice.say(f"left out {count:>5}  {reason}")
    if found.telltale:
        voice.note(f"warning: these signs tell the label in every example: {', '.join(found.telltale)}")
    noun = "pairs" if chosen["kind"] == Format.DPO else "examples"
    voice.say(f"{len(found.rows)} {noun} from {found.used} of {found.rollouts} rollouts in {out}")
    voice.print_result(
        {
            "rollouts": found.rollouts, "used": found.used, "pairs": len(found.rows), "excluded": dict(found.excluded),
            "telltale": list(found.telltale), "file": str(out), "card": str(out.with_suffix(".card.md")),
        }
    )  # fmt: skip
    return 0


def _warn_of_old(voice: Console, out: Path, written: Collection[Path]) -> None:
    """Warn of a file that an earlier export with `--test-share` left beside *out*, if it was not *written* again."""
    old = out.with_suffix(f".test{out.suffix}")
    if old not in written and old.exists():
        voice.note(f"warning: {old} is of an earlier export; what it holds is in {out} now, too")
