"""`jumar run`, `resume` and `score`: parse what a person chose, hand it to the harness, show what came out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from jumar.core.budget import Budget
from jumar.core.quoting import one_line
from jumar.core.stop import EXIT_CODES, StopReason
from jumar.errors import BadInput
from jumar.harness.result import Result
from jumar.options import Options, with_options
from jumar.surfaces.attend import Attendant
from jumar.surfaces.environment import environment
from jumar.surfaces.output import Voice, fail
from jumar.surfaces.progress import Live
from jumar.task import load_task

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

RUNS = Path(".jumar") / "runs"

LISTED = 10
"""As many tests are named in a report."""


def speaking(command: Decorated) -> Decorated:
    """The options every command has."""
    command = click.option("--json", "as_json", is_flag=True, help="One JSON object as the last line of output.")(
        command
    )
    return click.option("-q", "--quiet", is_flag=True, help="No progress on standard error.")(command)


EVIDENCE = (
    click.option("--confirm", type=int, help="Fresh runs that must agree before a tree is green (default 3)."),
    click.option("--sandbox", help="auto (default): the strongest tier here; or S3, S2, S1, S0."),
)
"""The options that say what a green is worth."""

PROBE = click.option("--probe", is_flag=True, help="Mutate the lines that a green changed: do the tests notice?")


def judging(command: Decorated) -> Decorated:
    """The options that say what a green is worth."""
    for option in reversed(EVIDENCE):
        command = option(command)
    return command


CHOICES = (
    click.option("-i", "--instruction", help="What to do, beyond making the tests pass."),
    click.option("--test", "tests", multiple=True, help="A test file, folder or id; may be repeated."),
    click.option("--agent", help="driver (turn by turn), pipeline (whole files), repair or external; else what fits."),
    click.option("--model", help="PROVIDER:NAME, repair (offline search), script:FILE or replay:FILE."),
    click.option("--base-url", help="A server that is compatible with the model's provider."),
    click.option("--price", help="INPUT,OUTPUT[,CACHED] in usd per million tokens, or free."),
    click.option("--record", help="Keep what the model answers in this file, for replay:FILE."),
    click.option("--test-policy", help="on_write (default), on_final or never."),
    click.option(
        "--gate", help="strict: no edit without a red test (the driver's default); refactor; off: the ratchet alone."
    ),
    click.option("--allow-refactor", is_flag=True, help="The model may enter refactor mode."),
    click.option("--ratchet", help="count (default) or identity: never lose a green test."),
    click.option("--ties", help="keep (default) the newer tree at a tie, or revert it."),
    click.option("--attempts", type=int, help="Cap on verified candidates."),
    click.option("--turns", type=int, help="Cap on replies of the model (driver: 40)."),
    click.option("--test-runs", type=int, help="Cap on verifications."),
    click.option("--budget-usd", type=float, help="Cap on money."),
    click.option("--budget-tokens", type=int, help="Cap on tokens."),
    click.option("--seconds", type=float, help="Cap on the time of the whole run."),
    click.option("--profile", help="workday ($10, 8 h) or overnight ($30, 12 h; S3 unless typed): caps nobody chose."),
    click.option("--ledger", help="A file that many runs draw on together; new, its caps are the profile's."),
    click.option("--ledger-usd", type=float, help="The cap of a new ledger, in usd."),
    click.option("--text-actions", is_flag=True, help="The driver's actions as plain text, for models without tools."),
    click.option("--model-may-run-tests", is_flag=True, help="The driver's model may ask for a test run."),
    click.option("--model-may-run-commands", is_flag=True, help="It may run commands, confined, on a copy."),
    click.option("--agent-command", help="Of an external agent, such as 'mini -t {prompt} -y'; no shell runs it."),
    click.option("--agent-env", multiple=True, help="A variable that it is given as it is; may be repeated."),
    click.option("--turn-seconds", type=float, help="For one turn of it (default: what is left, or 600)."),
    click.option("--allow-unmetered", is_flag=True, help="It may work without the proxy; its spend is then unknown."),
    click.option("--timeout", type=float, help="Seconds for one verification (default 120)."),
    click.option("--test-timeout", type=float, help="Seconds for one test (default 30)."),
    *EVIDENCE,
    PROBE,
    click.option("--python", help="The interpreter that runs the tests; default: the task's .venv, else ours."),
    click.option("--seed", type=int, help="Same seed, same search."),
    click.option("--config", type=click.Path(path_type=Path), help="Defaults instead of the task's jumar.toml."),
)
"""The options that shape a run."""


def choosing(command: Decorated) -> Decorated:
    """The options that shape a run."""
    for option in reversed(CHOICES):
        command = option(command)
    return command


def options_of(chosen: dict[str, Any]) -> Options:
    """The options that were chosen, without what is not the task's business."""
    names = {"timeout": "timeout_seconds", "test_timeout": "test_timeout_seconds"}
    names |= {"budget_usd": "usd", "budget_tokens": "tokens"}
    own = set(Options.__struct_fields__)
    return Options(**{k: v for key, v in chosen.items() if (k := names.get(key, key)) in own and v is not None})


@click.command(epilog="Example: jumar run . --model repair")
@click.argument("task", type=click.Path(path_type=Path), default=".")
@choosing
@click.option("--runs", type=click.Path(path_type=Path), default=RUNS, show_default=True, help="Where runs are kept.")
@click.option("--apply", is_flag=True, help="Write the best tree onto the original when the run has ended.")
@speaking
def run(task: Path, runs: Path, **chosen: Any) -> int:
    """Work on TASK (a task.toml, or any folder with tests) until its tests pass or a cap is reached."""
    from jumar.harness import runs as harness  # noqa: PLC0415  libcst is slow to import

    voice = Voice(json=chosen.pop("as_json"), quiet=chosen.pop("quiet"))
    settled = with_options(load_task(task, chosen.pop("config")), options_of(chosen), environment())
    attendant = Attendant()
    with Live(voice) as live:
        if settled.unread:
            live.line(f"{', '.join(settled.unread)} of the task: set, and without effect in this version")
        result = attendant.run(
            lambda: harness.start(
                settled, runs, python=chosen["python"], environ=environment(), begun=_following(live, attendant)
            )
        )
    return _ended(voice, result, apply=chosen["apply"])


@click.command(epilog="Example: jumar resume .jumar/runs/20261121-101500-gcd-1a2b3c --attempts 40")
@click.argument("run_dir", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--attempts", type=int, help="Raise the cap on verified candidates.")
@click.option("--turns", type=int, help="Raise the cap on replies of the model.")
@click.option("--test-runs", type=int, help="Raise the cap on verifications.")
@click.option("--seconds", type=float, help="Raise the cap on the time of the whole run.")
@click.option("--budget-usd", "usd", type=float, help="Raise the cap on money.")
@click.option("--budget-tokens", "tokens", type=int, help="Raise the cap on tokens.")
@click.option("--apply", is_flag=True, help="Write the best tree onto the original when the run has ended.")
@speaking
def resume(run_dir: Path, *, apply: bool, as_json: bool, quiet: bool, **limits: float | None) -> int:
    """Go on with RUN (its directory) after a crash, an interrupt or a cap."""
    from jumar.harness import runs as harness  # noqa: PLC0415  as above

    voice = Voice(json=as_json, quiet=quiet)
    raised = {name: cap for name, cap in limits.items() if cap is not None}
    attendant = Attendant()
    with Live(voice) as live:
        result = attendant.run(
            lambda: harness.resume(run_dir, limits=raised, environ=environment(), begun=_following(live, attendant))
        )
    return _ended(voice, result, apply=apply)


@click.command(epilog="Example: jumar score tasks/gcd ~/src/gcd")
@click.argument("task", type=click.Path(path_type=Path))
@click.argument("tree", type=click.Path(path_type=Path))
@click.option("--python", help="The interpreter that runs the tests; default: the task's .venv, else ours.")
@click.option("--timeout", type=float, help="Seconds for the verification (default 120).")
@click.option("--test-timeout", type=float, help="Seconds for one test (default 30).")
@judging
@PROBE
@speaking
def score(task: Path, tree: Path, python: str | None, *, as_json: bool, quiet: bool, **chosen: Any) -> int:
    """A verdict on TREE (a folder, or the directory of a run) by TASK's own tests, and nothing else."""
    from jumar.harness.scoring import score_tree  # noqa: PLC0415  as above

    voice = Voice(json=as_json, quiet=quiet)
    settled = with_options(load_task(task), options_of({"model": "repair", **chosen}))
    scored = Attendant().run(lambda: score_tree(settled, tree, python=python, environ=environment()))
    if scored is None:
        return voice.interrupted()
    for warning in scored.warnings:
        voice.say(f"warning: {warning}")
    word = "void: " + scored.void if scored.void else "green" if scored.ok else "red"
    voice.say(f"{word}  {scored.passed} of {scored.total} passed, {scored.failed} failed, {scored.errors} errors")
    voice.say(f"grade {scored.grade}, sandbox {scored.sandbox}")
    _list(voice, "red", scored.red)
    _list(voice, "flaky", scored.flaky)
    if scored.probed:
        voice.say(f"probe    {scored.probed.said}")
    voice.result(scored)
    return EXIT_CODES[StopReason.INFRA] if scored.void else int(not scored.ok)


def _list(voice: Voice, word: str, ids: Sequence[str]) -> None:
    """A line for each of the first few of *ids*, of which *word* says what they are."""
    for test_id in ids[:LISTED]:
        voice.say(f"{word:<9}{one_line(test_id)}")
    if len(ids) > LISTED:
        voice.say(f"{word:<9}and {len(ids) - LISTED} more")


def _caps(budget: Budget) -> str:
    """The caps of a run, for people: whoever let a key or a file choose the model sees what it may use."""
    caps = {name: cap for name, cap in msgspec.structs.asdict(budget).items() if cap is not None}
    return "at most " + ", ".join(f"{cap:g} {name}" for name, cap in caps.items()) if caps else "no cap is set"


def _following(live: Live, attendant: Attendant) -> Callable[[Any], None]:
    def begun(kernel: Any) -> None:
        kernel.watch = live.watch
        run = kernel.state.run
        if run.settings.routes:
            purse = f"; ledger {run.settings.ledger}" if run.settings.ledger else ""
            live.line(f"{run.agent} asks {run.model}; {_caps(run.budget)}{purse}")
        for test_id in run.settings.flaky:
            live.line(f"flaky: {test_id} comes out differently on the untouched files; it judges nothing in this run")
        for sentence in kernel.journal.recovered:
            live.line(sentence)
        attendant.begun(kernel)

    return begun


def _ended(voice: Voice, result: Result | None, *, apply: bool) -> int:
    """Say how the run ended; with *apply*, put its best tree onto the original."""
    if result is None:
        return voice.interrupted()
    folder = Path(result.events).parent
    cost = f"  ${result.usd:.4f}" if result.usd else ""
    voice.say(f"{result.stop}  {result.best.passed} of {result.best.total} passed  {result.seconds:.1f} s{cost}")
    if result.grade:
        voice.say(f"grade {result.grade}, sandbox {result.sandbox}")
    _list(voice, "flaky", result.flaky)
    for warning in result.warnings:
        voice.say(f"warning: {warning}")
    if result.probed:
        voice.say(f"probe    {result.probed.said}")
    if result.why:
        voice.say(result.why)
    voice.say(f"journal  {result.events}")
    if (folder / "best.patch").is_file() and (folder / "best.patch").stat().st_size:
        voice.say(f"patch    {folder / 'best.patch'}")
    if result.stop is not StopReason.GREEN:
        voice.say(f"go on    jumar resume {folder}")
    refused = _applied(voice, folder) if apply else ""
    voice.result(result)
    return fail(refused, EXIT_CODES[StopReason.FINAL], as_json=False) if refused else result.exit


def _applied(voice: Voice, folder: Path) -> str:
    """Write the best tree of the run in *folder* onto the original; why that was refused, or nothing."""
    from jumar.harness import runs as harness  # noqa: PLC0415  as above

    try:
        written = harness.apply_best(folder)
    except BadInput as error:
        return f"{error} (the best tree is in {folder / 'workspace'})"
    voice.say("\n".join(f"wrote    {path}" for path in written) or "nothing to write: the original is the best")
    return ""
