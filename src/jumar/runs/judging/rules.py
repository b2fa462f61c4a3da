"""Hashes the rules of a verdict: tests, command, interpreter, packages, sandbox, version of jumar."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import jumar
from jumar.core.state.events import RunStart
from jumar.runs.judging.verdict_store import hash_question
from jumar.sandbox.probes.circumstances import hash_circumstances

JUDGES = ("child", "core", "process", "runners", "sandbox", "verify")
"""Folders of jumar whose sources decide what a verdict is."""

LOCKS = ("node_modules/.package-lock.json", "package-lock.json", "go.sum", "Cargo.lock", "uv.lock", "poetry.lock")
"""Files of a task's folder that name what is installed for it."""

INSTALLED = ("lib/python*/site-packages", "lib64/python*/site-packages", "Lib/site-packages")


def hash_rules(run: RunStart, folder: Path) -> str:
    """Return the hash of the rules by which *run*, in the directory *folder*, is judged.

    Whatever is not certain to be the same gives another hash: another boot of the machine, user, folder of runs,
    interpreter, installed package, or version of jumar.
    """
    settings, origin = run.settings, Path(run.settings.origin)
    python = Path(settings.suite.python) if settings.suite.python else None
    facts = (
        hash_circumstances(folder.parent, (python,) if python else ()),
        [_read_stat(path) for path in _list_sources()],
        run.tree,
        run.expected,
        settings.suite,
        sorted(settings.editable),
        sorted(settings.protected),
        (settings.hidden, settings.held_out, settings.sandbox, str(origin)),
        [_read(origin / name) for name in LOCKS],
        [_read_stat(path) for path in _list_installed(python)],
    )
    return hash_question(facts).hex()


def _list_sources() -> Iterator[Path]:
    root = Path(jumar.__file__).parent
    for folder in JUDGES:
        yield from sorted((root / folder).rglob("*.py"))


def _list_installed(python: Path | None) -> Iterator[Path]:
    """Yield the packages installed beside *python*: to add, remove or update one changes an entry."""
    if python is not None:
        for pattern in INSTALLED:
            for packages in sorted(python.parent.parent.glob(pattern)):
                yield packages
                yield from sorted(packages.iterdir())


def _read_stat(path: Path) -> tuple[str, int, int]:
    with suppress(OSError):
        found = path.stat()
        return str(path), found.st_size, found.st_mtime_ns
    return str(path), 0, 0


def _read(path: Path) -> str:
    with suppress(OSError):
        return sha256(path.read_bytes()).hexdigest()
    return ""
