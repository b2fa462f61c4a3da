"""Builds the pipeline agent of a run, and selects the files that it can write whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jumar.core.run.strategy import Strategy
from jumar.core.state.events import RunStart
from jumar.errors import BadInput
from jumar.languages.python_encoding import check_utf8
from jumar.workspace.files.trees import Manifest
from jumar.workspace.store.object_store import Store

MANY = 20
"""Files that a prompt can hold whole."""


def build_pipeline(run: RunStart, store: Store, targets: Sequence[str], tests: Sequence[str]) -> Strategy:
    """The agent that writes whole files: *targets* may be edited, *tests* are shown.

    Raises:
        BadInput: if there are too many files for that, they are too large, or none of them is UTF-8.
    """
    from jumar.agents.pipeline import Pipeline, too_large  # noqa: PLC0415  a run of another agent does not need it

    manifest = store.manifest(run.tree)
    targets = _whole(targets, manifest, store)
    if len(targets) > MANY:
        raise BadInput(
            f"the pipeline writes whole files and {len(targets)} may be edited here: name a few in [files] editable, "
            "or pass --agent driver"
        )

    def texts(paths: Iterable[str]) -> dict[str, str]:
        there = (path for path in paths if path in manifest)
        return {path: store.get(manifest[path].sha256).decode("utf-8", "replace") for path in there}

    if why := too_large(current := texts(targets)):
        raise BadInput(why)
    return Pipeline(targets, run.settings, tests=texts(tests), current=current)


def _whole(targets: Sequence[str], manifest: Manifest, store: Store) -> tuple[str, ...]:
    """Return the *targets* that a reply can hold whole: files that are not UTF-8 are left alone.

    Raises:
        BadInput: if none is left.
    """
    faults = {p: why for p in targets if p in manifest and (why := check_utf8(store.get(manifest[p].sha256)))}
    left = tuple(path for path in targets if path not in faults)
    if faults and not left:
        named = "; ".join(f"{path} {why}" for path, why in list(faults.items())[:3])
        raise BadInput(f"no file that may be edited is UTF-8: {named}; save it as UTF-8")
    return left
