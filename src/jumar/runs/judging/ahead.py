"""Starts early the processes from which a verdict forks its rounds.

To import the modules that judge takes as long as a run of few tests; this one imports no more than it needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from jumar.process.launch import Confinement
from jumar.process.warm.starts import NO_WARM, get_pool
from jumar.runners.pytest import PytestRunner
from jumar.task.task import Task, find_interpreter
from jumar.verify.two_process import list_confirming


def begin_ahead(task: Task, python: str | None, environ: Mapping[str, str]) -> None:
    """Start the zygotes that would confirm a green of *task*, if there can be one; do not wait for them.

    Raises:
        BadInput: if *python* names no program.
    """
    suite = replace(task.suite, python=str(find_interpreter(task, python)))
    if suite.runner != PytestRunner.name or suite.single or not suite.confirm or environ.get(NO_WARM):
        return
    confinement = Confinement(room=Path("/room"), seconds=suite.timeout_seconds, environ=environ)
    tests = PytestRunner().verification(suite, confinement.room, ())
    get_pool().begin(list_confirming(tests, confinement), ahead=True)
