"""Attaches existing linters as scar rules: each runs confined on the tree before the run and after it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from jumar.challenges.challenge_file import LinterTable
from jumar.challenges.changed_files import ChangedFiles
from jumar.errors import BadInput
from jumar.languages.syntax import find_language
from jumar.process.model_command import ConfinedCommands, build_confined_commands
from jumar.scorers.scars.sarif import parse_sarif
from jumar.scorers.scars.search import Finding, subtract_findings
from jumar.workspace.store.object_store import Store
from jumar.workspace.store.shared import find_objects_folder

SECONDS = 120.0
"""For one run of a linter."""


class Linters:
    """Runs the linters *tables*; *python* has them, or the PATH does."""

    def __init__(self, tables: Sequence[LinterTable], environ: Mapping[str, str], python: str | None) -> None:
        self._tables, self._environ = tuple(tables), environ
        self._python = find_linter_python(python)

    async def search(self, run: Path, trees: tuple[str, str], changed: ChangedFiles) -> tuple[Finding, ...]:
        """Return the new findings of the linters in the files that the run in *run* changed.

        *trees* are the one that it began with and the one that it ended with.

        Raises:
            BadInput: if a linter does not write SARIF, or nothing here can confine it.
        """
        files = sorted(path for path in changed.after if find_language(path))
        if not self._tables or not files:
            return ()
        with TemporaryDirectory(prefix="jumar-lint-") as folder:
            store = Store(find_objects_folder(run))
            commands = await build_confined_commands(store, Path(folder), self._python, self._environ)
            found: list[Finding] = []
            for table in self._tables:
                known = [path for path in files if path in changed.before]
                before = await _lint(commands, table, trees[0], {path: changed.before[path] for path in known})
                after = await _lint(commands, table, trees[1], {path: changed.after[path] for path in files})
                found += subtract_findings(after, before)
        return tuple(sorted(found))


def find_linter_python(python: str | None) -> Path:
    """Return the interpreter whose folder is first on the PATH of linters: *python*, or jumar's own."""
    return Path(python or sys.executable).absolute()


async def _lint(commands: ConfinedCommands, table: LinterTable, tree: str, files: Mapping[str, bytes]) -> list[Finding]:
    """Return the findings of the linter *table* in *files* of *tree*."""
    if not files:
        return []
    command = table.command.replace("{files}", shlex.join(files))
    ran = await commands.run(tree, command, SECONDS)
    start = ran.output.find("{")
    if start < 0:
        said = ran.output.strip().splitlines()
        raise BadInput(
            f"the linter {table.command!r} wrote no SARIF (exit {ran.exit}): {said[-1] if said else 'nothing'}"
        )
    points = dict.fromkeys(table.rules, table.points) or {"*": table.points}
    found = parse_sarif(ran.output[start:].encode(), points, f"the linter {table.command!r}")
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
