"""Verifiers that differ in one thing: a plain run that accepts no green, and judging by renamed test files."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from jumar.verify.rounds import SuiteKnowledge

if TYPE_CHECKING:
    from jumar.core.state.verdict import Outcome
    from jumar.ports import Verification
    from jumar.verify.verifier import TrustedVerifier


async def run_plain(
    verifier: TrustedVerifier, tree: str, accepted: Mapping[str, Outcome] | None, also: Sequence[str] = ()
) -> Verification:
    """The outcome of each expected id in *tree*, and of those in *also*, as the runner tells it once."""
    once = copy.copy(verifier)
    once.suite = msgspec.structs.replace(verifier.suite, confirm=0)
    return await once.verify(tree, accepted, also=also)


def judge_with(verifier: TrustedVerifier, tests: str) -> TrustedVerifier:
    """*verifier*, which takes the test files of the tree *tests* for the task's own; empty: as it is."""
    if not tests:
        return verifier
    other = copy.copy(verifier)
    other.experience = verifier.experience.others.setdefault(tests, SuiteKnowledge(tests=tests))
    return other
