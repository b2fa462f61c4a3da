"""Seeds of random generators: where a test seeds one that all use, that of the product's process is seeded, too."""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any

SEEDED = ("random", "numpy.random")
"""Modules with a generator that is used by all."""


def watch_seeds(seeds: dict[str, tuple[Any, ...]]) -> None:
    """Keep in *seeds*, by module, how often the generators that are loaded are seeded from now on, and with what."""
    for name in SEEDED:
        module: Any = sys.modules.get(name)
        if module is not None and not hasattr(module.seed, "__wrapped__"):
            module.seed = _note_seed(module.seed, name, seeds)


def _note_seed(seed: Any, name: str, seeds: dict[str, tuple[Any, ...]]) -> Any:
    @functools.wraps(seed)
    def seed_and_note(*args: Any, **keywords: Any) -> None:
        seed(*args, **keywords)
        seeds[name] = (seeds.get(name, (0,))[0] + 1, args, tuple(keywords.items()))

    return seed_and_note


class FollowedSeeds:
    """Generators of the product's process, which are seeded as those of the tests are."""

    def __init__(self) -> None:
        self._done: dict[str, int] = {}

    def follow(self, seeds: Any) -> None:
        """Seed the generators that the tests have seeded since."""
        for name, (times, args, keywords) in seeds:
            if self._done.get(name) != times:
                importlib.import_module(name).seed(*args, **dict(keywords))
                self._done[name] = times


def end_early() -> None:
    """Have hypothesis, if it is there, look for no shorter example of a failure: in these rounds nobody reads one."""
    module: Any = sys.modules.get("hypothesis")
    if module is not None:
        phases = [phase for phase in module.Phase if phase.name not in ("shrink", "explain")]
        module.settings.register_profile("jumar", module.settings.default, phases=phases)
        module.settings.load_profile("jumar")
