"""The cost of a turn, early and late in a long run: it may not grow with what was said before.

Run as `make bench ONLY=flat`. A run of the driver with a scripted model and the shipped fake verifier reads and writes
turn by turn, on a disk in memory where there is one. Three figures: the whole turn (kernel, shell, journal, workspace,
conversation); that, and what a provider's model does with each prompt before its client takes over (the worst case, the
prompt in the client's words, the digest of a recording); and the same journal folded again with nothing but the core,
the agent and its conversation. Each is the processor time of a turn, around turn 100 and around the last turn.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

from frame import Figure, median_of, ratio_of

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from jumar.core.run.next_effect import next_effect
from jumar.core.run.reducers.transitions import reduce
from jumar.core.run.strategy import TURN, Request
from jumar.core.state.budget import Budget
from jumar.core.state.events import Entry, ModelRequest
from jumar.core.state.run_state import Phase, RunState
from jumar.core.state.stop import StopReason
from jumar.models.recording import Digests
from jumar.models.wire.messages import Transcript
from jumar.ports import Ask
from support.worlds.driver_world import Rules, Turns, call, ended, swift, turns, writes
from support.worlds.run_world import program

EARLY, WINDOW = 100, 50
"""The early turn, and how many turns on either side of a place are taken together."""

TURNS = 2000


class Cost(NamedTuple):
    """Milliseconds of processor time of a turn at one place."""

    median: float
    mean: float


class Pair(NamedTuple):
    """The cost of a turn early and late in one run."""

    early: Cost
    late: Cost


def made(folder: Path, count: int) -> Turns:
    """A run of so many turns: it reads, asks for a listing, and writes what scores the same, which is kept."""
    kinds = (
        lambda n: writes(8, f"try {n}"),
        lambda n: call("read_file", path="app.py", start=1, end=n),
        lambda n: call("search", pattern=f"total {n}", path=""),
        lambda n: call("edit_file", path="app.py", old=program(8, f"try {n - 3}"), new=program(8, f"edit {n}")),
    )  # fmt: skip
    lines = tuple(kinds[n % len(kinds)](n) for n in range(count))
    return turns(folder, lines, Rules(budget=Budget(attempts=None, turns=count)))


def whole(story: Turns, count: int) -> Pair:
    """The cost of a turn of *story* as it is run."""
    begun: list[float] = []

    def watch(state: RunState, _effect: object) -> None:
        if state.phase is Phase.OPEN and state.request is None and state.spend.turns == len(begun):
            begun.append(time.process_time())

    story.world.kernel.watch = watch
    if (stop := ended(story)) is not StopReason.TURNS:
        raise SystemExit(f"the run ended early: {stop}")
    return _pair(begun, count)


def folded(story: Turns, entries: list[Entry], count: int) -> Pair:
    """The cost of a turn of the core and the agent alone: fold, decide, rebuild what is sent."""
    state, begun = RunState(), list[float]()
    for entry in entries:
        state = reduce(state, entry)
        if state.phase not in (Phase.ENDED, Phase.TESTING, Phase.NEW):
            next_effect(state, story.agent)
        if isinstance(entry.event, ModelRequest) and entry.event.stage == TURN:
            begun.append(time.process_time())
            story.agent.messages(state, {})
    return _pair(begun, count)


def prepared(story: Turns, entries: list[Entry], count: int) -> Pair:
    """The cost of making each prompt ready for the client of a provider."""
    transcript, digests = Transcript(), Digests()
    state, spans = RunState(), list[float]()
    for entry in entries:
        state = reduce(state, entry)
        if isinstance(entry.event, ModelRequest) and entry.event.stage == TURN:
            messages = story.agent.messages(state, {})
            ask = Ask(
                request=Request("mid", TURN), messages=messages, tree="", files={}, red=(), green=(),
                localisation=None, position=0, refused=frozenset(), seed=0, seconds=None,
            )  # fmt: skip
            begun = time.process_time()
            transcript.bound_tokens(messages, (), (len(messages) - 2, 100 * len(messages)))
            transcript.convert(messages)
            digests.compute(ask)
            spans.append(1000 * (time.process_time() - begun))
    return _costs(spans, count)


def _pair(begun: list[float], count: int) -> Pair:
    return _costs([1000 * (after - before) for before, after in pairwise(begun)], count)


def _costs(spans: list[float], count: int) -> Pair:
    places = (spans[EARLY - WINDOW : EARLY + WINDOW], spans[count - 2 * WINDOW : count])
    return Pair(*(Cost(median(place), mean(place)) for place in places))


def _added(one: Cost, other: Cost) -> Cost:
    return Cost(one.median + other.median, one.mean + other.mean)


def measure(rounds: int) -> Iterator[Figure]:
    """Yield the cost of a late turn, and how many times that of an early one it is."""
    pairs: dict[str, list[Pair]] = {"whole turn": [], "turn with prompt": [], "core alone": []}
    for _ in range(max(rounds // 3, 1)):
        with swift() as folder:
            story = made(folder, TURNS)
            turn = whole(story, TURNS)
            entries = story.world.entries()
            prompt = prepared(made(folder / "prompts", 1), entries, TURNS)
            pairs["whole turn"].append(turn)
            pairs["turn with prompt"].append(Pair(*map(_added, turn, prompt)))
            pairs["core alone"].append(folded(made(folder / "again", 1), entries, TURNS))
    for name, some in pairs.items():
        late, early = ([getattr(pair, at).median for pair in some] for at in ("late", "early"))
        yield median_of(f"{name}, turn {TURNS}", late, "ms")
        yield ratio_of(f"{name}, turn {TURNS} against turn {EARLY}", late, early)
