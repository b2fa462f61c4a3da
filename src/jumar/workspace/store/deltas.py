"""Stores manifests as their difference from another one: an edit of a large tree costs its own lines."""

from __future__ import annotations

import json

from jumar.workspace.files import trees
from jumar.workspace.files.trees import EntryKind, Manifest, Node

LARGE = 200
"""A manifest with fewer paths is kept whole."""

SHARE = 8
"""Limit of a difference: where more than one path in so many differs, the manifest is kept whole, too."""

SUFFIX = ".delta"
"""Ends the name of such a file."""

HEAD = b'{"base":'


def encode_delta(base_tree: str, base: Manifest, manifest: Manifest) -> bytes | None:
    """Encode the difference from *base*, the tree *base_tree*, to *manifest*; None: it would save nothing."""
    if len(manifest) < LARGE:
        return None
    changed = trees.find_differences(base, manifest)
    if len(changed) * SHARE > len(manifest):
        return None
    paths = {path: _encode_node(manifest.get(path)) for path in changed}
    return json.dumps({"base": base_tree, "paths": paths}, separators=(",", ":"), ensure_ascii=True).encode()


def read_base(data: bytes) -> str:
    """Return the tree that the delta *data* begins from.

    Raises:
        ValueError: if it is no delta.
    """
    found = json.loads(data)
    if not isinstance(found, dict) or not isinstance(found.get("base"), str):
        raise ValueError("it is no delta of a manifest")  # noqa: TRY004  a value, not a type, is wrong
    return str(found["base"])


def apply_delta(base: Manifest, data: bytes) -> bytes:
    """Return the bytes of the manifest that the delta *data* leads to from *base*.

    Raises:
        ValueError: if it is no delta.
    """
    after = dict(base)
    try:
        for path, node in json.loads(data)["paths"].items():
            if node is None:
                after.pop(path, None)
            else:
                after[path] = Node(EntryKind(node[0]), node[2], executable=node[1] == "100755")
    except (TypeError, KeyError, IndexError, AttributeError) as fault:
        raise ValueError(f"it is no delta of a manifest: {fault}") from fault
    return trees.encode(after)


def _encode_node(node: Node | None) -> list[str] | None:
    return None if node is None else [node.kind, node.mode, node.sha256]
