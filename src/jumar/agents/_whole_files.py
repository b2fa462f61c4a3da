"""Selects the files that an agent can write whole, and refuses where there are too many or they are too large."""

from __future__ import annotations

from collections.abc import Mapping

from jumar.core.run.strategy import AgentFacts
from jumar.errors import BadInput
from jumar.languages.python_encoding import check_utf8

MANY = 20
"""Files that a prompt can hold whole."""

LARGEST = 400_000
"""Characters of all targets together above which nobody answers with whole files."""


def read_whole_files(facts: AgentFacts) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the targets that can be written whole, and the texts of those that exist.

    Raises:
        BadInput: if there are too many, they are too large, or none of them is UTF-8.
    """
    there = {path: data for path in facts.targets if (data := facts.read(path)) is not None}
    targets = _drop_binary(facts.targets, there)
    if len(targets) > MANY:
        raise BadInput(
            f"the pipeline writes whole files and {len(targets)} may be edited here: name a few in [files] editable, "
            "or pass --agent driver"
        )
    texts = {path: there[path].decode("utf-8", "replace") for path in targets if path in there}
    if why := explain_too_large(texts):
        raise BadInput(why)
    return targets, texts


def _drop_binary(targets: tuple[str, ...], there: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the *targets* that a reply can hold whole: files that are not UTF-8 are left alone.

    Raises:
        BadInput: if none is left.
    """
    faults = {path: why for path in targets if path in there and (why := check_utf8(there[path]))}
    left = tuple(path for path in targets if path not in faults)
    if faults and not left:
        named = "; ".join(f"{path} {why}" for path, why in list(faults.items())[:3])
        raise BadInput(f"no file that may be edited is UTF-8: {named}; save it as UTF-8")
    return left


def explain_too_large(current: Mapping[str, str]) -> str:
    """Explain why the targets with the texts *current* cannot be written whole, with the fix; "" if they can."""
    size = sum(map(len, current.values()))
    if size <= LARGEST:
        return ""
    most = max(current, key=lambda path: len(current[path]))
    return (
        f"the pipeline writes whole files, at most {LARGEST:,} characters of them, and those that may be edited here "
        f"have {size:,} (most of them {most}): name fewer in [files] editable, or pass --agent driver"
    )
