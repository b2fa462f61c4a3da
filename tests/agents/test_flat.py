"""The cost of a step is flat: what was said before is read once, and nobody can tell from the answers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.test_prompt_prefix import LINES
from jumar.agents.driver import Driver
from jumar.agents.pipeline import Pipeline
from jumar.core.run.reducers.transitions import reduce
from jumar.core.run.strategy import Message, Request
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget
from jumar.core.state.reply import ToolCall
from jumar.core.state.run_state import Phase, RunState
from jumar.core.state.settings import Switches
from jumar.models.recording import Digests
from jumar.models.script import ScriptLine
from jumar.models.wire.messages import Transcript, bound_tokens
from jumar.ports import Ask
from support.worlds.driver_world import Rules, call, ended, swift, turns, writes
from support.worlds.run_world import Terms, program, world

TURNS = 160


@pytest.mark.slow
def test_a_late_turn_takes_as_many_calls_as_an_early_one() -> None:
    """Function calls of the whole turn are counted: unlike seconds they are the same on every machine."""
    lines = tuple(writes(8, f"try {n}") if n % 2 else call("search", pattern=f"p{n}", path="") for n in range(TURNS))
    begun: list[int] = []
    calls = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    def watch(state: RunState, _effect: object) -> None:
        if state.phase is Phase.OPEN and state.reply is None and state.spend.turns == len(begun):
            begun.append(calls)

    with swift() as folder:
        made = turns(folder, lines, Rules(budget=Budget(attempts=None, turns=TURNS)))
        made.world.kernel.watch = watch
        sys.setprofile(count)
        try:
            ended(made)
        finally:
            sys.setprofile(None)
    taken = [late - early for early, late in pairwise(begun)]
    assert len(taken) >= TURNS - 1
    assert sum(taken[120:140]) < 1.1 * sum(taken[20:40])


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(LINES, min_size=1, max_size=7), st.randoms(use_true_random=False))
def test_a_conversation_that_remembers_says_what_one_rebuilt_from_the_start_says(
    script: list[ScriptLine], random: Random
) -> None:
    with swift() as folder:
        made = turns(folder, tuple(script), Rules(budget=Budget(turns=12)))
        given = (made.parts.workspace.paths(), ("test_app.py",), Switches())
        ended(made)
        remembering = Driver(*given)
        for state in _states(made.world.entries(), random):
            assert remembering.messages(state, {}) == Driver(*given).messages(state, {})


@pytest.mark.slow
def test_a_pipeline_that_remembers_keeps_what_one_that_reads_all_again_keeps() -> None:
    passing = (9, 8, 9, 10, 99, 3, 12, 11, 13)
    replies = tuple(f"```python\n{program(n, str(at))}```" for at, n in enumerate(passing))
    with swift() as folder:
        made = world(folder, replies, Terms(budget=Budget(attempts=len(replies))))
        with made.journal:
            anyio.run(made.kernel.run)
        remembering = Pipeline(("app.py",))
        states = _states(made.entries(), Random(1))
        for state in states:
            assert remembering.read_kept(state) == Pipeline(("app.py",)).read_kept(state)
        assert {"app.py": program(13, "8")} in [remembering.read_kept(state) for state in states]


def _states(entries: list[ev.Entry], random: Random) -> list[RunState]:
    """The states of a run between its effects: all of them in their order, then some in no order."""
    state, states = RunState(), list[RunState]()
    for entry in entries:
        state = reduce(state, entry)
        states += [state] if state.phase is Phase.OPEN else []
    return [*states, *(random.choice(states) for _ in range(20))]


TEXTS = st.text(max_size=20)
MESSAGES = st.lists(
    st.one_of(
        st.builds(Message, st.sampled_from(["system", "user"]), TEXTS),
        st.builds(Message, st.just("tool"), TEXTS, call_id=st.just("c1"), name=st.just("read_file")),
        st.builds(
            lambda text, n: Message("assistant", text, (ToolCall("read_file", {"start": n}, "c1"),), {"n": text}),
            TEXTS, st.sampled_from([1, True, 2]),
        ),
    ),
    max_size=8,
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(MESSAGES, st.lists(st.tuples(st.integers(0, 8), MESSAGES), max_size=4))
def test_a_model_that_remembers_the_prompt_before_reads_the_next_one_as_if_it_were_the_first(
    first: list[Message], edits: list[tuple[int, list[Message]]]
) -> None:
    """Prompts that go on from the one before, and prompts that leave it at any message."""
    transcript, digests, prompt = Transcript(), Digests(), tuple(first)
    for at, more in [(8, []), *edits]:
        prompt = (*prompt[:at], *more)
        for measured in ((0, 0), (1, 50), (len(prompt), 1000)):
            assert transcript.bound_tokens(prompt, (), measured) == bound_tokens(prompt, (), measured)
        assert _said(transcript.convert(prompt)) == _said(Transcript().convert(prompt))
        assert digests.compute(_asking(prompt)) == Digests().compute(_asking(prompt))


def _said(turns: Sequence[Any]) -> list[list[tuple[str, ...]]]:
    """What is sent of *turns*; each part and each turn also has the time it was made at."""
    return [
        [(p.part_kind, repr(getattr(p, "content", "")), repr(getattr(p, "args", ""))) for p in t.parts] for t in turns
    ]


def _asking(messages: tuple[Message, ...]) -> Ask:
    return Ask(
        request=Request("mid", "turn"), messages=messages, tree="", files={}, red=(), green=(), localisation=None,
        position=0, refused=frozenset(), seed=0, seconds=None,
    )  # fmt: skip
