"""Judges a tree that is expected to be green: its plain run goes on beside its first run."""

from __future__ import annotations

import copy
import os
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import anyio
from anyio import to_thread

from jumar.languages.test_annotations import is_slug
from jumar.ports import Verification
from jumar.process.launch import Role
from jumar.verify.merge_reports import PlainReport, run_side_by_side
from jumar.verify.rounds import GreenCandidate, can_run_apart
from jumar.verify.verifier import TrustedVerifier


async def verify_expected_green(verifier: TrustedVerifier, tree: str) -> Verification:
    """Judge *tree* as `verify` does: its first run is forked from what has begun for the others.

    Its plain run goes on beside that one, and ends as soon as the tree is not green: it was begun in vain then. Tests
    that use all cores take twice as long meanwhile, so it is given up, and comes later, where it takes a large part of
    the time that they have.
    """
    if not (verifier.suite.confirm and can_run_apart(verifier)):
        return await verifier.verify(tree, None, control=verifier.base)
    eager = copy.copy(verifier)
    eager.first_role = Role.EXPECTED
    if not _may_run_ahead(verifier):
        return await eager.verify(tree, None, control=verifier.base)
    alone = copy.copy(verifier)
    alone.warm = None  # what would fork it gets ready only now
    begun = _PlainRun(GreenCandidate(alone, tree, tree, verifier.expected, {}), anyio.Event(), [])
    eager.plain_ahead = begun.take
    until = anyio.CancelScope()

    async def judge() -> Verification:
        done = await eager.verify(tree, None, control=verifier.base)
        until.cancel()
        return done

    calls: list[Callable[[], Awaitable[Any]]] = [judge, partial(begun.run, until)]
    done: Verification = (await run_side_by_side(calls))[0]
    return done


def _may_run_ahead(verifier: TrustedVerifier) -> bool:
    """Return whether a plain run may go on beside the first one, and there is a core for it.

    Held-out tests are not shown as they are before they were challenged. Other names of tests are known later.
    """
    held_out = bool(verifier.held_out.ids)
    return not held_out and not any(map(is_slug, verifier.expected)) and len(os.sched_getaffinity(0)) > 1


class _PlainRun(NamedTuple):
    """A plain run that was begun before it was known whether the tree is green."""

    green: GreenCandidate
    over: anyio.Event
    said: list[PlainReport]

    async def run(self, until: anyio.CancelScope) -> None:
        # It takes a while to import, in which the first run starts.
        module = await to_thread.run_sync(import_module, "jumar.verify.plain_run")
        suite = self.green.verifier.suite
        with until, anyio.move_on_after(min(suite.timeout_seconds / 8, suite.test_timeout_seconds / 4)):
            self.said.append(await module.run_plainly(self.green))
        self.over.set()

    async def take(self, runs: list[str]) -> PlainReport | None:
        """Return its report, and add the trees of its processes to *runs*; None: it was given up."""
        await self.over.wait()
        runs += self.green.runs if self.said else ()
        return self.said[0] if self.said else None
