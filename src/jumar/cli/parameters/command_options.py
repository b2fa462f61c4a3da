"""Command-line options that several commands share, and the options of `jumar run`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from jumar.cli.parameters.environment import find_variable, read_environment
from jumar.task.resolve import Options
from jumar.task.settings.run_settings import SETTINGS

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def add_output_options(command: Decorated) -> Decorated:
    """Return the options every command has."""
    command = click.option("--json", "as_json", is_flag=True, help="One JSON object as the last line of output.")(
        command
    )
    return click.option("-q", "--quiet", is_flag=True, help="No progress on standard error.")(command)


SHARED = ("confirm", "sandbox", "min_grade")
"""Settings that other commands than `jumar run` have too."""


class SharedOption(click.Option):
    """An option of several commands: its variable of `jumar run` counts if its own is not set."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Return the value in the environment; None: there is none."""
        return (
            super().resolve_envvar_value(ctx) or read_environment().get(f"JUMAR_RUN_{str(self.name).upper()}") or None
        )


def check_value(ctx: click.Context, option: click.Parameter, value: Any) -> Any:
    """Return the *value* of *option*; a wrong one from the environment is refused by the name of its variable.

    Raises:
        BadInput: naming the option, the value and what would do.
    """
    row = next(row for row in SETTINGS.values() if row.flag in option.opts)
    if value is not None and (variable := find_variable(ctx, str(option.name))):
        row.check(value, variable)
    return value


def build_options(*names: str) -> Iterator[Callable[[Decorated], Decorated]]:
    """Yield the command-line options for the rows *names* of `jumar.task.settings.run_settings`."""
    for row in map(SETTINGS.__getitem__, names):
        kind = None if row.kind is str else row.kind
        cls = SharedOption if row.name in SHARED else click.Option
        yield click.option(row.flag, cls=cls, type=kind, help=row.help, callback=check_value)


EVIDENCE = (
    *build_options("confirm", "sandbox", "min_grade"),
    click.option(
        "--include", multiple=True, help="A glob: files that git ignores and the tests need; may be repeated."
    ),
)
"""The options that say what a green is worth."""

LIMITS = (
    click.option("--timeout", type=float, help="Seconds for one verification (default 120)."),
    click.option("--test-timeout", type=float, help="Seconds for one test (default 30)."),
)

TEST_COMMAND = click.option(
    "--test-command", help="Command that runs all tests, such as 'make check': exit 0 is a pass."
)

PROBE = click.option("--probe", is_flag=True, help="Mutate the Python lines a green changed (pytest only).")


def add_verdict_options(command: Decorated) -> Decorated:
    """Return the options that say how a tree is judged, and what a green is worth."""
    for option in reversed((*LIMITS, *EVIDENCE)):
        command = option(command)
    return command


RUN_BUDGET = (
    *build_options("usd", "tokens"),
    click.option("--ledger", help="A file that many runs draw on together; new, its caps are the profile's."),
    click.option("--ledger-usd", type=float, help="The cap of a new ledger, in usd."),
    click.option("--record", help="Keep what the model answers in this file, for replay:FILE."),
)
"""The options of a single run that a campaign of many has in another sense, or not at all."""

CHOICES = (
    click.option("-i", "--instruction", help="What to do, beyond making the tests pass."),
    click.option("--test", "tests", multiple=True, help="A test file, folder or id; may be repeated."),
    TEST_COMMAND,
    *build_options("agent", "model"),
    click.option("--base-url", help="A server that is compatible with the model's provider."),
    click.option("--price", help="INPUT,OUTPUT[,CACHED] in usd per million tokens, or free."),
    click.option("--temperature", type=float, help="Temperature of the sampling (default: the provider's)."),
    *build_options("test_policy", "gate"),
    click.option("--verify", help="A command that must stay green in refactor mode ([gate] verify)."),
    click.option("--allow-refactor", is_flag=True, help="The model may enter refactor mode."),
    click.option("--allow-codemod", is_flag=True, help="The model may edit all files by one command or replacement."),
    click.option("--codemod-renames", multiple=True, help="Glob of tests where a codemod may rename; may be repeated."),
    *build_options("ratchet", "ties", "attempts", "turns", "test_runs", "seconds"),
    click.option("--profile", help="workday ($10, 8 h) or overnight ($30, 12 h; S3 unless typed): caps nobody chose."),
    click.option("--text-actions", is_flag=True, help="The driver's actions as plain text, for models without tools."),
    click.option("--model-may-run-tests", is_flag=True, help="The driver's model may run tests; not under never."),
    click.option(
        "--model-may-run-commands", is_flag=True, help="The driver's model may run commands, in a sandbox, on a copy."
    ),
    click.option(
        "--agent-command", help="Command of an external agent, such as 'mini -t {prompt} -y'; no shell runs it."
    ),
    click.option("--agent-env", multiple=True, help="Variable that an external agent is given; may be repeated."),
    click.option(
        "--turn-seconds", type=float, help="Seconds for a turn of an external agent (default: what is left, or 600)."
    ),
    click.option(
        "--allow-unmetered", is_flag=True, help="An external agent may bypass the proxy; its spend is then unknown."
    ),
    *LIMITS,
    *EVIDENCE,
    PROBE,
    click.option("--python", help="The interpreter that runs the tests; default: the task's .venv, else ours."),
    click.option("--seed", type=int, help="Same seed, same search."),
    click.option("--config", type=click.Path(path_type=Path), help="Defaults instead of the task's jumar.toml."),
)
"""The options that shape a run, without its budget."""


def add_shaping_options(command: Decorated) -> Decorated:
    """Return the options that shape a run, without its budget."""
    for option in reversed(CHOICES):
        command = option(command)
    return command


def add_run_options(command: Decorated) -> Decorated:
    """Return the options that shape a run."""
    for option in reversed((*CHOICES, *RUN_BUDGET)):
        command = option(command)
    return command


def read_options(chosen: dict[str, Any]) -> Options:
    """Return the chosen options that concern the task."""
    names = {"timeout": "timeout_seconds", "test_timeout": "test_timeout_seconds"}
    names |= {"budget_usd": "usd", "budget_tokens": "tokens"}
    own = set(Options.__struct_fields__)
    return Options(**{k: v for key, v in chosen.items() if (k := names.get(key, key)) in own and v is not None})
