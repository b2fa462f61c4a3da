"""One command per test: `[tests] command_for` replaces how any runner judges; its exit status is the evidence."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from jumar.child import start
from jumar.child.commands import single_main
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Ended, Report
from jumar.errors import BadInput
from jumar.ports import Collected, Invocation, Record, Runner, Site, Surroundings
from jumar.process import records as decode

PLACE = "{test_id}"


def wrap_runner(runner: Runner, suite: Suite) -> Runner:
    """Return *runner*, judging by the command for one test if *suite* has one; it still finds the tests its own way.

    Raises:
        BadInput: if that command cannot be split into words, or has no place for the id.
    """
    return SingleTestRunner(runner, _split_command(suite.command_for)) if suite.command_for else runner


class SingleTestRunner:
    """A runner whose verifications are commands of the task's."""

    grade = "X"

    def __init__(self, runner: Runner, words: Sequence[str]) -> None:
        self.name = runner.name
        self._runner, self._words = runner, tuple(words)

    def surroundings(self, origin: Path, environ: Mapping[str, str]) -> Surroundings:
        """Return the needs of the runner, which still collects."""
        return self._runner.surroundings(origin, environ)

    def collection(self, suite: Suite, room: Path) -> Invocation:
        """Return the runner's own invocation of a collection."""
        return self._runner.collection(suite, room)

    def verification(self, suite: Suite, room: Path, ids: Sequence[str]) -> Invocation:  # noqa: ARG002  any room
        """Return one process that runs the command for each of *ids*."""
        commands = [[i, [word.replace(PLACE, i) for word in self._words]] for i in ids]
        return Invocation(
            argv=(sys.executable, "-I", "-S", "-B", *start.build_command(single_main)),
            config={"commands": commands, "limit": suite.test_timeout_seconds},
            env=suite.env,
        )

    def collected(self, records: Iterable[Record], ended: Ended, detail: str) -> Collected:
        """Return the ids as the runner collects them."""
        return self._runner.collected(records, ended, detail)

    def report(self, records: Iterable[Record], ended: Ended, detail: str) -> Report:
        """Return the results in the records of the commands."""
        return decode.build_report(records, ended, detail)

    def test_files(self, paths: Iterable[str], select: Sequence[str]) -> tuple[str, ...]:
        """Return the test files as the runner knows them."""
        return self._runner.test_files(paths, select)

    def sites(self, path: str, source: bytes) -> tuple[Site, ...]:
        """Return the sites as the runner knows them."""
        return self._runner.sites(path, source)


def _split_command(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise BadInput(f"[tests] command_for = {command!r} is no command line: {error}") from error
    if not any(PLACE in word for word in words[1:]):
        raise BadInput(f"[tests] command_for = {command!r} has no {PLACE} after the program: it runs one test")
    return words
