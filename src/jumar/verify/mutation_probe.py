"""Mutation test of a candidate: mutates its changed lines, and counts the mutants that the expected tests notice.

A mutant that no test notices is a place where the candidate may do what it likes. It changes no verdict. The mutants
are thought of in a confined child (`mutants_main`); the parent only puts the bytes that it names in their place.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import msgspec
from anyio import to_thread

from jumar.child import programs
from jumar.core.state.verdict import Cause
from jumar.ports import Record
from jumar.process.launch import Confinement
from jumar.process.progress import Work
from jumar.process.script import ScriptStart, StandaloneScript, run_script
from jumar.workspace.files.trees import EntryKind, Manifest, Node, find_differences
from jumar.workspace.store.object_store import Store

if TYPE_CHECKING:
    from jumar.verify.verifier import TrustedVerifier

SECONDS = 20.0
"""For the child that thinks of mutants."""

AT_ONCE = 2
"""Mutants that are judged at the same time."""

PATIENCE = (4.0, 5.0)
"""A mutant that runs so many times as long as the candidate, and so many seconds more, hangs: that is noticed."""

FILE_BYTES = 1 << 20


class MutationFindings(msgspec.Struct, frozen=True):
    """Results of the mutants of a candidate."""

    noticed: int
    """The tests were not green."""
    total: int
    """Mutants that were judged."""
    unnoticed: tuple[str, ...]
    """`path:line: what` for each mutant under which the tests were as green as before."""

    @property
    def summary(self) -> str:
        """Return the findings in one sentence."""
        if not self.total:
            return "nothing of the changed lines could be mutated"
        tail = f"; unnoticed: {'; '.join(self.unnoticed)}" if self.unnoticed else ""
        return f"noticed {self.noticed} of {self.total} mutants{tail}"


async def probe(verifier: TrustedVerifier, base: str, tree: str, *, most: int = 20, seed: int = 0) -> MutationFindings:
    """Mutate what *tree* changed of *base*, and see how many mutants the expected tests of *verifier* notice.

    Python files that *verifier* takes for sources are mutated; of others there are no mutants. The same arguments
    give the same mutants.

    Args:
        verifier: judges them, without acceptance; its store keeps their trees.
        base: the task as it came.
        tree: a candidate that is green.
        most: how many mutants are judged.
        seed: chooses among more.

    Raises:
        Infra: if the machine cannot start a process, or the mutants cannot be kept.
    """
    judge = copy.copy(verifier)
    judge.tell(Work.MUTATING, 0, 0)
    judge.suite = msgspec.structs.replace(verifier.suite, confirm=0)
    first = await judge.verify(tree, {}, control="")
    seconds = PATIENCE[0] * first.duration_ms / 1000 + PATIENCE[1]
    limits = (min(seconds, limit) for limit in (judge.suite.timeout_seconds, judge.suite.test_timeout_seconds))
    whole, one = limits
    judge.suite = msgspec.structs.replace(judge.suite, timeout_seconds=whole, test_timeout_seconds=one)
    green = first.verdict.green_ids
    seen: list[tuple[str, bool]] = []

    async def judge_mutant(mutant: str, what: str, slots: anyio.CapacityLimiter) -> None:
        async with slots:
            verdict = (await judge.verify(mutant, {}, control="")).verdict
        if verdict.void is None or verdict.void.cause is not Cause.HARNESS:
            seen.append((what, verdict.void is not None or not green <= verdict.green_ids))

    slots = anyio.CapacityLimiter(AT_ONCE)
    async with anyio.create_task_group() as group:
        for mutant in await make_mutants(verifier, base, tree, most=most, seed=seed) if green else ():
            group.start_soon(judge_mutant, *mutant, slots)
    unnoticed = tuple(sorted(what for what, noticed in seen if not noticed))
    return MutationFindings(len(seen) - len(unnoticed), len(seen), unnoticed)


async def make_mutants(
    verifier: TrustedVerifier, base: str, tree: str, *, most: int, seed: int
) -> list[tuple[str, str]]:
    """Return the trees of mutants of *tree*, each with its `path:line: what`, in the order of their choice."""
    store = verifier.store
    manifest = store.manifest(tree)
    texts = await to_thread.run_sync(_read_texts, verifier, store, (base, tree))
    if not texts:
        return []
    config = {"files": texts, "most": most, "seed": seed}
    found: list[tuple[str, str]] = []
    for record in await _ask_child(verifier, config):
        match record:
            case ["mutant", str(path), int(line), str(what), int(start), int(end), str(read_text)] if path in texts:
                now = texts[path][1].encode("latin-1")
                data = now[:start] + read_text.encode("latin-1") + now[end:]
                mutant = await to_thread.run_sync(_keep_tree, store, manifest, path, data)
                found.append((mutant, f"{path}:{line}: {what}"))
    return found


def _read_texts(verifier: TrustedVerifier, store: Store, trees: tuple[str, str]) -> dict[str, tuple[str, str]]:
    """Return for each changed path its text before and now. Bytes are decoded as latin-1, which loses none."""
    base, tree = (store.manifest(hash_) for hash_ in trees)

    def read_text(manifest: Manifest, path: str) -> str | None:
        node = manifest.get(path)
        data = store.get(node.sha256) if node and node.kind is EntryKind.FILE else b""
        return data.decode("latin-1") if len(data) <= FILE_BYTES else None

    changed = [p for p in find_differences(base, tree) if verifier.sources(p) and not verifier.own(p)]
    both = {path: (read_text(base, path), read_text(tree, path)) for path in changed if path.endswith(".py")}
    return {path: (before, now) for path, (before, now) in both.items() if before is not None and now}


def _keep_tree(store: Store, manifest: Manifest, path: str, data: bytes) -> str:
    digest = store.put(data)
    return store.keep({**manifest, path: Node(EntryKind.FILE, digest, manifest[path].executable)})


async def _ask_child(verifier: TrustedVerifier, config: Mapping[str, object]) -> list[Record]:
    """Return the mutants from the child process; one that crashes has found fewer."""

    def confine(room: Path) -> Confinement:
        return replace(verifier.build_confinement(room, None), seconds=SECONDS, warm=None)

    script = StandaloneScript(programs.MUTANTS, ScriptStart.by(verifier.suite.python))
    records, _ = await run_script(script, config, verifier.rooms, confine)
    return records
