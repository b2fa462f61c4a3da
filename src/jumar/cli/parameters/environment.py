"""The one module that reads the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from jumar.core.prompts.suggestion import find_nearest


def read_environment() -> Mapping[str, str]:
    """Return a copy of this process's environment; the verifier lets little of it through."""
    return dict(os.environ)


def explain_unknown_variable(prefix: str, known: Sequence[str]) -> str:
    """Return what is wrong with a variable of a command that stands for none of its parameters; empty: there is none.

    Args:
        prefix: of all variables of the command, such as `JUMAR_RUN_`.
        known: names of its parameters, in capitals.
    """
    for variable in sorted(name for name in os.environ if name.startswith(prefix)):
        if (word := variable.removeprefix(prefix)) not in known:
            near = find_nearest(word, known)
            hint = f"did you mean {prefix}{near}?" if near else "unset it: no option of this command has that name"
            return f"unknown variable {variable}; {hint}"
    return ""


def find_variable(ctx: click.Context, name: str) -> str:
    """Return the variable that gave parameter *name* its value: the command's own, else that of `jumar run`.

    Empty: it came from elsewhere.
    """
    if ctx.get_parameter_source(name) is not ParameterSource.ENVIRONMENT:
        return ""
    own = f"{ctx.auto_envvar_prefix}_{name.upper()}"
    return own if own in os.environ else f"JUMAR_RUN_{name.upper()}"


def find_cache_folder() -> Path:
    """Return the folder of downloads kept between calls, by the XDG convention."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jumar"
