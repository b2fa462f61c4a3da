"""Warnings: code in a candidate that looks written for the tests, as `path:line: what`. They change no verdict.

All parsing happens in a confined child (`warnings_main`); the parent hands it bytes
and takes lines of text back, which it trusts no further than to print them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from jumar.child import programs
from jumar.child.analysis.hard_coded_answers import WRITTEN_DOWN
from jumar.core.gate.challenge_rounds import Strength
from jumar.ports import Record, Site
from jumar.process.launch import Confinement
from jumar.process.script import StandaloneScript, run_script
from jumar.verify.two_process import find_product_start
from jumar.workspace.files.trees import EntryKind, Manifest, find_differences
from jumar.workspace.store.object_store import Store

if TYPE_CHECKING:
    from jumar.verify.execution import TreeRunner

SECONDS = 10.0
"""For the child: it takes tenths of one, unless a file was written to keep it busy."""

FILE_BYTES = 1 << 20
TOTAL_BYTES = 8 << 20
"""Bytes of sources that are inspected; more are skipped, and a warning says so."""

MOST = 20
"""Warnings that are given; how many more there are is said."""

NAMED = 3
"""Tests that cannot be falsified and are named."""

LACKING = {
    Strength.EMPTY: "comes to none of its assertions",
    Strength.NONE: "cannot be falsified",
    Strength.AFFIRMING: "compares an object of the code under test that is equal to something wrong, too",
    Strength.ANSWERED: "compares an object of the code under test that has a say in it, of a class that no test names",
    Strength.SWAYED: "compares an object of the code under test that has a say in it",
    Strength.PARTIAL: "cannot be falsified in all that it compares",
}
"""Faults of tests of which a challenge proves nothing."""

LONGEST = 300
"""Characters of a warning."""

DATA = (".json", ".jsonl")
"""Test data that is read beside the test files."""


async def find_warnings(verifier: TreeRunner, tree: str) -> tuple[str, ...]:
    """Return the warnings about the candidate *tree*, as `path:line: what`, or why it could not be inspected.

    What stands in the tree of the task already is nobody's trick. Of test files that the candidate wrote itself it is
    looked at whether they test anything.

    Raises:
        Infra: if the machine cannot start a process, or objects of the store are gone.
    """
    config, warnings = await to_thread.run_sync(_build_config, verifier, tree)
    if not config["after"] and not config["own"]:
        return tuple(warnings)
    tests = verifier.runner.verification(verifier.suite, verifier.rooms, ())
    script = StandaloneScript(programs.WARNINGS, find_product_start(tests, verifier.warm))

    def confine(room: Path) -> Confinement:
        return dataclasses.replace(verifier.build_confinement(room, None), seconds=SECONDS)

    records, failed = await run_script(script, config, verifier.rooms, confine)
    warnings += [_format_plain(text) for record in records if (text := _format_record(record))]
    more = len(warnings) - MOST
    tail = [f"and {more} more like these"] if more > 0 else []
    # A process that failed may have been made to: what it said until then counts, and that it failed is said.
    return (*warnings[:MOST], *tail, *([f"no warnings could be looked for: {_format_plain(failed)}"] if failed else []))


def find_written_answer(warnings: Iterable[str]) -> str:
    """Return the first of *warnings* about an answer of the tests that is written down in the code; empty: none is."""
    texts = ((warning, warning.partition(": ")[2]) for warning in warnings)
    return next((warning for warning, what in texts if what.startswith(WRITTEN_DOWN)), "")


def warn_of_unfalsifiable(strengths: Mapping[str, Strength], sites: Iterable[Site]) -> tuple[str, ...]:
    """Warn of tests that cannot be falsified, or not wholly (functions, ids without parameters).

    The first few are named, the rest are counted: old suites have hundreds.
    """
    lines = {site.id: site.start for site in sites}
    weak = [name for name, strength in strengths.items() if strength in LACKING]
    named = [
        f"{name.partition('::')[0]}:{lines.get(name, 1)}: {name.partition('::')[2]} {LACKING[strengths[name]]}: "
        "that it passes is known from its own report alone"
        for name in weak[:NAMED]
    ]
    more = len(weak) - NAMED
    return (*named, *([f"and {more} more of {len(strengths)} tests cannot be falsified"] if more > 0 else []))


def _build_config(verifier: TreeRunner, candidate: str) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Return the texts for the child, and what is too large to be among them."""
    base, tree = (verifier.store.manifest(hash_) for hash_ in (verifier.base, candidate))
    judging = dict.fromkeys(i.partition("::")[0] for i in verifier.expected)
    tests = [path for path in judging if path.endswith((".py", *DATA))]
    changed = [
        path
        for path in find_differences(base, tree)
        if path.endswith(".py") and path not in tests and verifier.sources(path) and not verifier.own(path)
    ]
    # What the candidate wrote comes first: nothing can crowd it out.
    shelf = _Shelf(verifier.store, TOTAL_BYTES)
    after = shelf.read_texts(changed, tree)
    own = shelf.read_texts((path for path in tree if path.endswith(".py") and verifier.own(path)), tree)
    warnings = [_format_plain(f"{path}:1: too large to be looked at") for path in shelf.large]
    before, judged = ({}, {}) if not after else (shelf.read_texts(changed, base), shelf.read_texts(tests, base))
    left_out = [path for path in tests if path in shelf.large[len(warnings) :]]
    if left_out:
        warnings.append(
            _format_plain(f"{left_out[0]}:1: not compared with the code, it is too much ({len(left_out)} files)")
        )
    return {"after": after, "own": own, "before": before, "tests": judged}, warnings


class _Shelf:
    """Reads files as text, each and all up to a size. Bytes travel as latin-1, which loses none."""

    def __init__(self, store: Store, left: int) -> None:
        self.large: list[str] = []
        self._store, self._left = store, left

    def read_texts(self, paths: Iterable[str], manifest: Manifest) -> dict[str, str]:
        found: dict[str, str] = {}
        for path in paths:
            node = manifest.get(path)
            data = self._store.get(node.sha256) if node and node.kind is EntryKind.FILE else None
            if data is not None and len(data) > min(self._left, FILE_BYTES):
                self.large.append(path)
            elif data is not None:
                self._left -= len(data)
                found[path] = data.decode("latin-1")
        return found


def _format_record(record: Record) -> str:
    match record:
        case ["warning", str(path), int(line), str(what)]:
            return f"{path}:{line}: {what}"
    return ""


def _format_plain(text: str) -> str:
    """Return *text* on one line, without what a terminal would obey, cut to size."""
    clean = "".join(c if c.isprintable() else "?" for c in text)
    return clean if len(clean) <= LONGEST else clean[: LONGEST - 3] + "..."
