"""Any test command, such as `make check`: one test for the whole suite, passed if the command exits with status 0.

`[tests] command` without a report, or `--test-command`. The evidence is the exit status and nothing else: grade X.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from jumar.child import start
from jumar.child.commands import test_command_main
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Ended, Report
from jumar.errors import BadInput
from jumar.languages.project_kinds import find_test_files
from jumar.ports import Collected, Invocation, Record, Site, Surroundings
from jumar.process import records as decode
from jumar.runners import _programs

HEAD = "test-command"
"""Stands where other ids have the path of a test file: the suite of a command lies in no single file."""

LONGEST = 200
"""Characters of a command that its id shows."""

SYNTAX = re.compile(r"[|&;<>()$`*?~#\n]|\A\s*\w+=")
"""Text that only a shell understands; a command without any is started directly."""

PLACES = ("{ids}", "{report}", "{test_id}")
"""Placeholders of other runners, which would reach the command as they are."""


class CommandRunner:
    """Adapter of commands that report only their exit status."""

    name = "command"
    grade = "X"
    single = True
    """It has one test, which stands for the whole suite (see `jumar.testing.check_runner`)."""

    def surroundings(self, origin: Path, environ: Mapping[str, str]) -> Surroundings:
        """Return the programs on PATH, and the installed packages of the project in *origin*."""
        return _programs.find_command_surroundings(origin, environ)

    def collection(self, suite: Suite, room: Path) -> Invocation:  # noqa: ARG002  # other runners look into it
        """Look for the program that the command starts; the one id is known already."""
        return _build_invocation(suite, "collect")

    def verification(self, suite: Suite, room: Path, ids: Sequence[str]) -> Invocation:  # noqa: ARG002  # as above
        """Run the command if its id is among *ids*."""
        return _build_invocation(suite, "run" if build_test_id(suite) in ids else "collect")

    def collected(self, records: Iterable[Record], ended: Ended, detail: str) -> Collected:
        """Return the id in the records of a collection."""
        return decode.parse_collection(records, ended, detail)

    def report(self, records: Iterable[Record], ended: Ended, detail: str) -> Report:
        """Return the result in the records of a verification."""
        return decode.build_report(records, ended, detail)

    def test_files(self, paths: Iterable[str], select: Sequence[str]) -> tuple[str, ...]:
        """Return the test files among *paths*, by usual names and folders of any language, and those *select* names."""
        return find_test_files(paths, select)

    def sites(self, path: str, source: bytes) -> tuple[Site, ...]:  # noqa: ARG002  # the command names no test
        """Return no sites: an exit status does not show which test of which file failed."""
        return ()


def build_test_id(suite: Suite) -> str:
    """Return the id of the one test: the command itself, on one line."""
    said = " ".join(suite.command.split())
    return f"{HEAD}::{said if len(said) <= LONGEST else said[: LONGEST - 3] + '...'}"


def build_argv(command: str) -> tuple[str, ...]:
    """Return the words of *command*, or a shell that runs it if it uses shell syntax.

    Raises:
        BadInput: if it is empty, cannot be split into words, or has a placeholder of another runner.
    """
    if not command.strip():
        raise BadInput("the runner command needs a command: set [tests] command, or pass --test-command 'make check'")
    if place := next((p for p in PLACES if p in command), ""):
        raise BadInput(
            f"the test command {command!r} has {place}, which nothing fills in here: with a JUnit report set "
            "[tests] report too, with one command for each test use [tests] command_for"
        )
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise BadInput(f"the test command {command!r} is no command line: {error}") from error
    return ("/bin/sh", "-c", command) if SYNTAX.search(command) else tuple(words)


def _build_invocation(suite: Suite, mode: str) -> Invocation:
    return Invocation(
        argv=(sys.executable, "-I", "-S", "-B", *start.build_command(test_command_main)),
        config={
            "mode": mode,
            "id": build_test_id(suite),
            "command": suite.command,
            "argv": list(build_argv(suite.command)),
            "limit": suite.test_timeout_seconds,
            "bin": str(Path(suite.python).parent) if suite.python else "",
        },
        env=suite.env,
    )


_CHECK = """\
import pathlib, sys, types

module = types.ModuleType("sample")
exec(pathlib.Path("tests/sample.py").read_text(), vars(module))
vars(module).get("setup", lambda: None)()
for name in [name for name in vars(module) if name.startswith("test_")]:
    vars(module)[name]()
"""

_ONE = "def test_one():\n    assert 1 + 1 == {}\n"

SAMPLES: dict[str, dict[str, str]] = {
    name: {"check.py": _CHECK, "tests/sample.py": source}
    for name, source in (
        ("passing", _ONE.format(2)),
        ("failing", _ONE.format(3)),
        ("broken_import", "import no_such_module_anywhere\n\n\n" + _ONE.format(2)),
        ("broken_fixture", "def setup():\n    raise RuntimeError('broken')\n\n\n" + _ONE.format(2)),
        (
            "several",
            "from threading import Event\n\n\ndef test_one(): pass\n\n\ndef test_three(): Event().wait()\n",
        ),
    )
}
"""Tiny projects, as `jumar.testing.check_runner` wants them; `SAMPLE_SUITE` runs them."""

SAMPLE_SUITE = Suite(runner="command", command="python check.py")

plugin = CommandRunner()
