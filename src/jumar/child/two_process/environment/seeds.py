"""Seeds of random generators: where a test seeds one that all use, that of the product's process is seeded, too."""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any

SEEDED = ("random", "numpy.random")
"""Modules with a generator that is used by all."""


def watch_seeds(environment: Any) -> None:
    """Keep in *environment*, by module, how often the generators that are loaded are seeded from now on."""
    for name in SEEDED:
        module: Any = sys.modules.get(name)
        if module is not None and not hasattr(module.seed, "__wrapped__"):
            module.seed = _note_seed(module.seed, name, environment)


def _note_seed(seed: Any, name: str, environment: Any) -> Any:
    @functools.wraps(seed)
    def seed_and_note(*args: Any, **keywords: Any) -> None:
        seed(*args, **keywords)
        environment.seeds[name] = environment.seeds.get(name, 0) + 1
        environment.note_seed()

    return seed_and_note


def read_states(seeds: dict[str, int]) -> tuple[Any, ...]:
    """Return the generators that were seeded: the module, how often, and the state that it has now.

    Not the seed: the code under test would draw once more what the test has drawn since.
    """
    return tuple((name, times, _get_state(sys.modules[name])) for name, times in seeds.items())


def _get_state(module: Any) -> tuple[Any, ...]:
    state = module.getstate() if module.__name__ == "random" else module.get_state()
    return tuple(tuple(part.tolist()) if hasattr(part, "tolist") else part for part in state)


class FollowedSeeds:
    """Generators of the product's process, which follow those of the tests where these are seeded."""

    def __init__(self) -> None:
        self._done: dict[str, int] = {}

    def follow(self, seeds: Any) -> None:
        """Bring the generators that the tests have seeded since into the same state."""
        for name, times, state in seeds:
            if self._done.get(name) != times:
                module: Any = importlib.import_module(name)
                (module.setstate if name == "random" else module.set_state)(state)
                self._done[name] = times


def end_early() -> None:
    """Have hypothesis, if it is there, look for no shorter example of a failure: in these rounds nobody reads one."""
    module: Any = sys.modules.get("hypothesis")
    if module is not None:
        phases = [phase for phase in module.Phase if phase.name not in ("shrink", "explain")]
        module.settings.register_profile("jumar", module.settings.default, phases=phases)
        module.settings.load_profile("jumar")
