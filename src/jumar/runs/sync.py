"""The synchronous entry point: for programs that have no event loop of their own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import anyio

from jumar.runs.lifecycle import start
from jumar.runs.setup.result import Result
from jumar.task.resolve import Options, apply_options
from jumar.task.task import load_task


def run(
    task: str | Path,
    options: Options | None = None,
    *,
    runs: str | Path = ".jumar/runs",
    environ: Mapping[str, str] | None = None,
) -> Result:
    """Work on *task* (a `task.toml`, or any folder with tests) until it is green or a cap is reached.

    >>> import jumar
    >>> jumar.run("tasks/gcd", jumar.Options(model="repair")).stop  # doctest: +SKIP
    <StopReason.GREEN: 'green'>

    *environ* may hold providers' keys, and is what the tests' processes may see a little of (PATH, LANG, LC_*, TZ);
    nothing is read from this process's own.

    Raises:
        BadInput: if the task or an option is wrong; nothing was run.
        Infra: if the machine failed before the run could be written down.
    """
    chosen = options or Options()
    settled = apply_options(load_task(Path(task)), chosen, environ or {})
    return anyio.run(lambda: start(settled, Path(runs), python=chosen.python, environ=environ or {}))
