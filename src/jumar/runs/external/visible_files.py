"""Files that an external agent needs to see: its program, programs on its PATH, and files in its arguments.

Nothing of it leads to the home folder as a whole, or to the run.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from jumar.child import start
from jumar.sandbox.barred_places import list_single_programs, split_runs
from jumar.sandbox.program_files import find_installation, find_interpreter_files, find_parts, leads_away
from jumar.sandbox.request import Reach

LINE_BYTES = 256
"""Of a script, to find the program that runs it."""


class AgentView(msgspec.Struct, frozen=True, kw_only=True):
    """Files and folders of one turn of an agent on this machine."""

    argv: Sequence[str]
    """The agent's, as the person wrote it."""
    search: str
    """Its PATH."""
    run: Path
    """The run's folder."""
    home: Path | None
    """The person's."""
    prompt: Path | None
    """The file that its prompt is read from; None: it is read from none."""
    door: Path | None
    """The socket that leads to its model."""
    origin: Path
    """The folder of the task."""
    barred: tuple[Path, ...] = ()
    """Places that the task holds for itself."""

    def build_reach(self) -> Reach:
        """Return the files that the agent may see; only its workspace can be changed for good."""
        named = tuple(Path(word) for word in self.argv[1:] if Path(word).is_absolute() and "\0" not in word)
        found = (
            *self._list_programs(),
            *named,
            # `jumar claim` is a program of ours that it may start, found in the folder of packages that we are in.
            *Path(start.FOLDER).parents[:2],
        )
        prompt = (self.prompt,) if self.prompt is not None else ()
        return Reach(
            readable=(*self._keep_harmless(dict.fromkeys(found)), *prompt),
            own=(*named, *prompt, *self._list_chosen()),
            barred=self.barred,
            writable=(self.run / "workspace",),
            sockets=(self.door,) if self.door is not None else (),
        )

    def _list_chosen(self) -> Iterator[Path]:
        """Yield the agent's program, and the environment of the interpreter that runs the tests.

        They may lie anywhere.
        """
        tests, _, search = self.search.partition(":")  # first comes what may be the repository's
        yield from find_parts(Path(tests).parent)
        for program in self._list_started(search):
            yield from find_installation(program)

    def _list_started(self, search: str) -> Iterator[Path]:
        """Yield the program that starts, and those its arguments name: `env A=B /path/agent` starts another."""
        if program := shutil.which(self.argv[0], path=search):
            yield Path(program)
        for word in self.argv[1:]:
            if Path(word).is_absolute() and "\0" not in word and os.access(word, os.X_OK) and Path(word).is_file():
                yield Path(word)

    def _list_programs(self) -> Iterator[Path]:
        for program in self._list_started(self.search):
            for part in (program, *_resolve_link(program)):
                yield from find_installation(part)
                yield from find_interpreter_files(part.with_name("python"))
                yield from find_interpreter_files(part.with_name("python3"))
                yield from _list_interpreter_files(part)
        for folder in map(Path, self.search.split(":")):
            if folder.is_absolute():
                yield from find_interpreter_files(folder / "python")
                yield from find_interpreter_files(folder / "python3")
                if leads_away(folder, self.origin):
                    continue
                yield folder
                if folder.name == "bin" and folder.parent != self.home:
                    yield from find_parts(folder.parent)

    def _keep_harmless(self, paths: Iterable[Path]) -> Iterator[Path]:
        """Yield those of *paths* that exist and lead neither to a run nor to the person's whole home.

        Of a folder with runs, its programs.
        """
        run, home = self.run.resolve(), self.home.resolve() if self.home else None
        for path in paths:
            ways = (path, path.resolve())
            if not path.exists() or any(w.is_relative_to(run) or (home and home.is_relative_to(w)) for w in ways):
                continue
            yield from list_single_programs(path) if any(map(run.is_relative_to, ways)) else split_runs(path)


def _resolve_link(program: Path) -> Iterable[Path]:
    """Return the target of *program*, if it is a link."""
    return (program.resolve(),) if program.is_symlink() else ()


def _list_interpreter_files(script: Path) -> Iterator[Path]:
    """Yield the files of the interpreter that *script* names in its first line."""
    try:
        with script.open("rb") as stream:
            line = stream.read(LINE_BYTES).partition(b"\n")[0]
    except OSError:
        return
    words = line.removeprefix(b"#!").decode("utf-8", "replace").split() if line.startswith(b"#!") else []
    if words and Path(words[0]).is_absolute():
        yield from find_interpreter_files(Path(words[0]))
