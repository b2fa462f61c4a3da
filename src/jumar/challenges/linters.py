"""Attaches existing linters as scar rules: each runs confined on the tree before the run and after it."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from msgspec.structs import replace

from jumar.challenges.challenge_file import LinterTable
from jumar.challenges.changed_files import ChangedFiles
from jumar.errors import BadInput, Infra
from jumar.languages.syntax import find_language
from jumar.process.model_command import ConfinedCommands, build_confined_commands
from jumar.sandbox.program_files import PATH
from jumar.scorers.scars.sarif import parse_sarif
from jumar.scorers.scars.search import Finding, subtract_findings
from jumar.workspace.store.object_store import Store
from jumar.workspace.store.shared import find_objects_folder

SECONDS = 120.0
"""For one run of a linter."""

_PROGRAM = re.compile(r"/?[\w.+-]+(?:/[\w.+-]+)*")
"""The first word of a command, if it is the name or the path of a program and nothing else."""

_PROGRAM_SECONDS = 30.0
"""Longest time to find out whether a program is there."""

_NOT_FOUND = 127
"""The exit status of shells where a program is not there."""


async def refuse_missing_linters(tables: Sequence[LinterTable], environ: Mapping[str, str], python: str | None) -> None:
    """Refuse linters that cannot run here: before any agent runs, as nothing is scored without them.

    Raises:
        BadInput: if nothing here can confine them, or the program of one is not there.
    """
    if not tables:
        return
    own = find_linter_python(python)
    with TemporaryDirectory(prefix="jumar-lint-") as folder:
        store = Store(Path(folder) / "objects")
        try:
            commands = await build_confined_commands(store, Path(folder), own, environ)
        except (BadInput, Infra) as why:
            raise BadInput(f"linters cannot be confined here ({why}); take [[linter]] out of the challenge") from None
        for table in tables:
            word = next(iter(table.command.split()), "")
            if not _PROGRAM.fullmatch(word) or ("/" in word and not word.startswith("/")):
                continue  # the shell's own, or a file of the tasks
            if (await commands.run(store.keep({}), f"command -v -- {word}", _PROGRAM_SECONDS)).exit != 0:
                raise BadInput(
                    f"the program {word} of the [[linter]] {table.command!r} is not there, neither beside {own} nor on "
                    f"{PATH}; install it, or take the table out of the challenge"
                )


class Linters:
    """Runs the linters *tables* on runs of *campaign*; *python* has them, or the PATH does."""

    def __init__(
        self, tables: Sequence[LinterTable], environ: Mapping[str, str], python: str | None, campaign: Path
    ) -> None:
        self._tables, self._environ, self._campaign = tuple(tables), environ, campaign
        self._python = find_linter_python(python)

    async def search(self, run: Path, trees: tuple[str, str], changed: ChangedFiles) -> tuple[Finding, ...]:
        """Return the new findings of the linters in the files that the run in *run* changed.

        *trees* are the one that it began with and the one that it ended with.

        Raises:
            Infra: if a linter does not write SARIF.
            BadInput: if nothing here can confine it.
        """
        files = sorted(path for path in changed.after if find_language(path))
        if not self._tables or not files:
            return ()
        with TemporaryDirectory(prefix="jumar-lint-") as folder:
            store = Store(find_objects_folder(run))
            commands = await build_confined_commands(store, Path(folder), self._python, self._environ)
            found: list[Finding] = []
            for table in self._tables:
                linter = _Linter(commands, table, f"then jumar evolve --rescore {shlex.quote(str(self._campaign))}")
                known = [path for path in files if path in changed.before]
                before = await linter.run(trees[0], {path: changed.before[path] for path in known})
                after = await linter.run(trees[1], {path: changed.after[path] for path in files})
                found += subtract_findings(after, before)
        return tuple(sorted(found))


def find_linter_python(python: str | None) -> Path:
    """Return the interpreter whose folder is first on the PATH of linters: *python*, or jumar's own."""
    return Path(python or sys.executable).absolute()


class _Linter(NamedTuple):
    """Linter that is run confined; *then* says how to go on after it failed."""

    commands: ConfinedCommands
    table: LinterTable
    then: str

    async def run(self, tree: str, files: Mapping[str, bytes]) -> list[Finding]:
        """Return its findings in *files* of *tree*.

        Raises:
            Infra: if it writes no SARIF.
        """
        if not files:
            return []
        table, mend = self.table, f"mend its command in the challenge, {self.then}"
        command = table.command.replace("{files}", shlex.join(files))
        ran = await self.commands.run(tree, command, SECONDS)
        start = ran.output.find("{")
        if start < 0:
            said = (ran.output.strip().splitlines() or ["nothing"])[-1]
            mend = f"install it, {self.then}" if ran.exit == _NOT_FOUND else mend
            raise Infra(f"the linter {table.command!r} wrote no SARIF (exit {ran.exit}): {said}; {mend}")
        points = dict.fromkeys(table.rules, table.points) or {"*": table.points}
        try:
            found = list(parse_sarif(ran.output[start:].encode(), points, f"the linter {table.command!r}"))
        except BadInput as fault:
            raise Infra(f"{fault}; {mend}") from None
        return [each for finding in found if (each := _place(finding, files)) is not None]


def _place(finding: Finding, files: Mapping[str, bytes]) -> Finding | None:
    """Return *finding* with the path as the tree has it, and its line's text; None: it is about another file."""
    path = next((path for path in _list_longest(files) if f"/{finding.path}".endswith(f"/{path}")), None)
    if path is None:
        return None
    lines = files[path].decode("utf-8", "replace").splitlines()
    text = lines[finding.line - 1].strip() if 0 < finding.line <= len(lines) else ""
    return replace(finding, path=path, text=text)


def _list_longest(files: Iterable[str]) -> list[str]:
    return sorted(files, key=len, reverse=True)
