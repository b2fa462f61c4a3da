"""One plain run of a tree under its own configuration: no challenge, no confirmation, and no verdict."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from jumar.core.verdict import Outcome
    from jumar.ports import Verification
    from jumar.verify.verifier import TrustedVerifier


async def run_plain(
    verifier: TrustedVerifier, tree: str, accepted: Mapping[str, Outcome] | None, *, also: Sequence[str] = ()
) -> Verification:
    """The outcome of each expected id in *tree*, and of those in *also*, as the runner tells it once."""
    once = copy.copy(verifier)
    once.suite = msgspec.structs.replace(verifier.suite, confirm=0)
    return await once.verify(tree, accepted, also=also)
