"""Settings that `jumar doctor` shows: those that `jumar run` would use here, each with its source."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from jumar.cli.parameters.command_options import read_options
from jumar.cli.parameters.environment import explain_unknown_variable
from jumar.cli.run import run
from jumar.errors import BadInput
from jumar.task.budget_options import resolve_caps
from jumar.task.in_force import resolve_settings
from jumar.task.resolve import Options, apply_options
from jumar.task.settings.precedence import SettingValue
from jumar.task.task import Task, load_task


def resolve_run_settings(path: Path, environ: Mapping[str, str]) -> tuple[tuple[SettingValue, ...], tuple[str, ...]]:
    """Return the settings of `jumar run PATH` in this environment, and notes, among them why it would be refused.

    Without a model there is no run; the settings are shown all the same, as they would be for one that is free.
    """
    try:
        # The command itself reads its variables: here it is parsed as if nothing else had been typed.
        if why := explain_unknown_variable("JUMAR_RUN_", [str(each.name).upper() for each in run.params]):
            return (), (why,)
        chosen = run.make_context("run", [], auto_envvar_prefix="JUMAR_RUN").params
        options = read_options(chosen)
        task = load_task(path, chosen["config"])
    except (click.ClickException, BadInput) as refused:
        why = refused.format_message() if isinstance(refused, click.ClickException) else str(refused)
        return (), (why,)
    try:
        settled = apply_options(task, options, environ, from_environment=True)
    except BadInput as refused:
        return _resolve_without_run(task, options, environ), (str(refused),)
    return settled.in_force, settled.notes


def _resolve_without_run(task: Task, options: Options, environ: Mapping[str, str]) -> tuple[SettingValue, ...]:
    try:
        rows = resolve_settings(task, options, environ, from_environment=True)
    except BadInput:
        return ()
    caps = resolve_caps(task, options, str(rows["agent"].value), paid=False, from_environment=True)
    return (*rows.values(), *caps.values())
