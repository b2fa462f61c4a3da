"""The arguments RUN (a path, a name, a beginning of one, or `last`) and RUNS (folders, or `last`) of commands."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from jumar.core.state.stop import EXIT_CODES, USAGE_EXIT, StopReason
from jumar.errors import BadInput
from jumar.runs.archive.find import RUNS, find_run
from jumar.workspace.files.disk_faults import Unwritable


class RunPath(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """A run, found in the usual folder of runs."""

    name = "run"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:  # noqa: ARG002  click's
        """Return the directory of the run called *value*, absolute: processes of the run start elsewhere."""
        return value if isinstance(value, Path) else find_run(value, RUNS).absolute()


class RunsPath(click.ParamType):  # type: ignore[type-arg]  # as above
    """A folder of runs: a campaign or a run, by path or name, or a folder that holds some."""

    name = "runs"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:  # noqa: ARG002  click's
        """Return the folder called *value*: `last`, if nothing has that name, is the campaign begun last."""
        if isinstance(value, Path) or Path(value).exists():
            return Path(value)
        place = RUNS / value if (RUNS / value).is_dir() else _find_campaign(value)
        if not place.exists():
            raise BadInput(f"there is no {value}; name a campaign, a run, or a folder of runs, or `last`")
        return place


def _find_campaign(name: str) -> Path:
    from jumar.campaigns.create import find_campaign  # noqa: PLC0415  it is slow to import

    return find_campaign(name)


MANY_RUNS = click.argument("runs", nargs=-1, required=True, type=RunsPath())

RUN = click.argument("run_name", metavar="[RUN]", default="last")

IN_RUNS = click.option(
    "--runs", type=click.Path(path_type=Path), default=RUNS, show_default=True, help="Where runs are kept."
)


TRUST = click.option(
    "--trust", is_flag=True, help="Act on the run although you did not begin it on this machine: see what it asks for."
)


NOTHING_TO_WRITE = "nothing to write: the run changed nothing, or what it changed is there already"


def get_apply_exit(refusal: BadInput) -> int:
    """Return the exit code of *refusal* to apply: the place was wrong, or the changes do not fit what is there."""
    return USAGE_EXIT if isinstance(refusal, Unwritable) else EXIT_CODES[StopReason.FINAL]


def format_run(folder: Path) -> str:
    """Return the argument that a person would type for the run in *folder*, from the current folder."""
    known = RUNS / folder.name
    return shlex.quote(folder.name if known.is_dir() and known.samefile(folder) else str(folder))
