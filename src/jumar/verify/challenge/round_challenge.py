"""Builds the challenge of one round: files of tests that are falsified, and what their process is told of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256
from random import Random
from typing import NamedTuple

from jumar.verify.challenge.falsified_files import falsify_files, list_falsifiable


class Challenge(NamedTuple):
    """The challenge of a run: what its process is told, and files that come in the place of the tree's."""

    told: Mapping[str, object] = {}
    files: Mapping[str, bytes] = {}


UNCHALLENGED = Challenge()


def challenge_files(
    files: Mapping[str, bytes], falsified: Collection[str], seed: int, summed: Iterable[str], *, apart: bool
) -> Challenge:
    """Return the challenge that falsifies the tests *falsified* in *files*, as *seed* draws.

    The data that the tests *summed* compare is summed up, to be held against that of another run.
    Where the code under test is *apart*, in another process, the tests' own is told also which tests compare something
    with a literal: one that comes to no comparison says nothing.
    """
    changed, false = falsify_files(files, falsified, Random(seed))  # noqa: S311  the seed is drawn from secrets
    hashes = {path: sha256(changed.get(path, data)).hexdigest() for path, data in files.items()}
    told: dict[str, object] = {"files": hashes, "falsified": sorted(falsified), "false": false, "seed": seed}
    told["summed"] = sorted(summed)
    if apart:
        told["comparing"] = sorted(list_falsifiable(files, files))
    return Challenge(told, changed)
