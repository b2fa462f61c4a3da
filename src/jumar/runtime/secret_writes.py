"""Finds secrets that a write would bring into the workspace; one that is already there is no hit."""

from __future__ import annotations

from collections.abc import Mapping

from jumar.core.gate.admission import YES, Ruling
from jumar.core.gate.secret_patterns import RULE, Secret, find_secrets
from jumar.core.gate.write_rules import Hit
from jumar.runtime.dependencies import RunDependencies
from jumar.workspace.files.trees import EntryKind
from jumar.workspace.store.object_store import Store


def check_leaks(parts: RunDependencies, files: Mapping[str, str | None], tree: str) -> Ruling:
    """Rule on the secrets in *files* that are not in *tree*: path -> whole new text; None deletes."""
    for path, text in files.items():
        for secret in find_secrets(text or "", fixture=parts.guard.authorable(path)):
            if not _holds_secret(parts.workspace.store, tree, secret):
                what = f"{secret.kind} in {path}"
                return Ruling(admitted=False, reason=f"nothing may be written that holds {what}", hit=Hit(RULE, what))
    return YES


def _holds_secret(store: Store, tree: str, secret: Secret) -> bool:
    """Check whether any file of *tree* holds *secret* already: it may be moved."""
    wanted, nodes = secret.text.encode(), store.manifest(tree).values()
    return any(wanted in store.get(node.sha256) for node in nodes if node.kind is EntryKind.FILE)
