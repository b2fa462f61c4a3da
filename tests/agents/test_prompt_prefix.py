"""The conversation only grows: what a model was sent begins what it is sent next, byte for byte, whatever happens."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.core.run.effects import Halt
from jumar.core.run.reducers.transitions import reduce
from jumar.core.run.strategy import Message
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget
from jumar.core.state.reply import ToolCall
from jumar.core.state.run_state import RunState
from jumar.core.state.settings import Switches
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import TestPolicy
from jumar.models.script import ScriptLine
from support.worlds.driver_world import Echo, Rules, Turns, ended, resumed, swift, turns
from support.worlds.run_world import IDS, program

PATHS = st.sampled_from(["app.py", "src/sums.py", "src/new.py", "test_app.py", "docs/notes.md", "nothing.py", ""])
PROGRAMS = st.builds(program, st.sampled_from([3, 7, 8, 9, 10, 12, 99]), st.sampled_from("abcdef"))


def asked(name: str, **arguments: st.SearchStrategy[object]) -> st.SearchStrategy[ToolCall]:
    """Calls of one tool."""
    return st.builds(ToolCall, st.just(name), st.fixed_dictionaries(arguments))


WRITING = asked("write_file", path=st.just("app.py"), text=PROGRAMS)
CALLS = st.one_of(
    *[WRITING] * 6,
    asked("run_tests"),
    asked("write_file", path=PATHS, text=st.sampled_from(["x = 1\n", "y = 2\n", ""])),
    asked(
        "edit_file", path=PATHS, old=st.sampled_from(["PASSING = 8", "PASSING", "sum", "S"]), new=st.just("PASSING = 9")
    ),
    asked("delete_file", path=st.sampled_from(["src/sums.py", "nothing.py", "test_app.py"])),
    asked("read_file", path=PATHS, start=st.sampled_from([1, 2, "1", "x"])),
    asked("list_files"),
    asked("search", pattern=st.sampled_from(["PASSING", "(", "."])),
    asked("run_tests", test_ids=st.sampled_from([[], [IDS[3]], ["test_app.py"], ["absent"], [1]])),
    asked("run_command", command=st.sampled_from(["ls", "forever"])),
    asked("final", message=st.just("done")),
    asked("escalate", test_id=st.sampled_from([IDS[3], "absent"]), reason=st.just("it contradicts the task")),
    asked("no_such_tool"),
    asked("read_file", _malformed=st.just("{")),
)
TEXTS = st.lists(
    st.one_of(
        st.builds("```action write_file path=app.py\n{}```\n".format, PROGRAMS),
        st.sampled_from([
            "```action read_file path=app.py\n```\n",
            "```action run_tests\n```\n",
            "```action write_file path=app.py\n",
            "```action nothing\n```\n",
            "I think so.\n",
            "",
        ]),
    ),
    max_size=3,
).map("\n".join)  # fmt: skip
LINES = st.one_of(
    st.builds(
        ScriptLine, tool_calls=st.lists(CALLS, min_size=1, max_size=4).map(tuple), content=TEXTS, usd=st.just(0.01)
    ),
    st.builds(
        ScriptLine, tool_calls=st.lists(CALLS, min_size=1, max_size=4).map(tuple), content=TEXTS, usd=st.just(0.01)
    ),
    st.builds(ScriptLine, content=TEXTS, usd=st.just(0.01)),
    st.builds(ScriptLine, error=st.sampled_from(["refusal", "server"])),
)
RULES = st.builds(
    Rules,
    budget=st.builds(
        Budget,
        attempts=st.sampled_from([None, None, 2, 5]),
        usd=st.sampled_from([None, 0.05, 0.5]),
        turns=st.sampled_from([12, 12, 4]),
        test_runs=st.sampled_from([None, None, 3]),
    ),
    policy=st.sampled_from([*TestPolicy, TestPolicy.ON_WRITE]),
    instruction=st.sampled_from(["", "count higher"]),
    start=st.sampled_from([8, 8, 8, 17]),
    switches=st.builds(
        Switches,
        text_actions=st.booleans(),
        model_may_run_tests=st.sampled_from([True, True, False]),
        model_may_run_commands=st.booleans(),
    ),
    commands=st.just(Echo()),
)
Cut = tuple[str, int] | None
"""Before which effect a segment is cut off (`flight`: while a call is under way), and at which time it comes."""
AT = st.sampled_from(["Act", "Act", "Act", "Execute", "Reserve", "Verify", "Keep", "Call", "flight", "flight"])
CUTS = st.lists(st.one_of(st.none(), *[st.tuples(AT, st.integers(1, 4))] * 3), max_size=3)


def interrupted(made: Turns, cut: Cut) -> Callable[[RunState, object], None]:
    """Asks the kernel to stop where *cut* says."""
    at, left = cut or ("", 0), iter(range((cut or ("", 0))[1] - 1, -1, -1))

    def seen(kind: str) -> None:
        if kind == at[0] and next(left, -1) == 0:
            made.world.kernel.halt(Halt(StopReason.INTERRUPTED))

    made.model.during = lambda: seen("flight")
    return lambda _state, effect: seen(type(effect).__name__)


def lines_of(messages: tuple[Message, ...]) -> list[bytes]:
    """*messages* as JSON lines."""
    return [msgspec.json.encode(message, order="deterministic") for message in messages]


def check(prompts: list[tuple[Message, ...]]) -> None:
    """Each prompt begins with the whole of the one before, and every call has its one result directly after it."""
    for before, after in pairwise(prompts):
        assert lines_of(after)[: len(before)] == lines_of(before)
    for last in prompts[-1:]:
        assert [m.role for m in last[:2]] == ["system", "user"]
        at = 2
        while at < len(last):
            message, at = last[at], at + 1
            assert message.role in ("assistant", "user"), "a result stands directly after the reply it belongs to"
            assert message.content or message.tool_calls
            results = last[at : at + len(message.tool_calls)]
            assert [(m.role, m.call_id, m.name) for m in results] == [
                ("tool", c.id, c.name) for c in message.tool_calls
            ]
            assert all(m.content for m in results)
            at += len(results)


def lived(folder: Path, script: list[ScriptLine], rules: Rules, cuts: list[Cut]) -> Turns:
    """A run of several segments, each cut off at one of *cuts*, and the last one not."""
    made = turns(folder, tuple(script), rules)
    made.world.kernel.watch = interrupted(made, cuts[0] if cuts else None)
    ended(made)
    for cut in [*cuts[1:], None]:
        resumed(made, interrupted(made, cut))
    return made


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.lists(LINES, min_size=1, max_size=7), RULES, CUTS)
def test_wherever_a_run_is_killed_what_was_sent_stays_as_it_was(
    script: list[ScriptLine], rules: Rules, cuts: list[Cut]
) -> None:
    with swift() as folder:
        made = lived(folder, script, rules, cuts)
        state, sent = RunState(), list[bytes]()
        for entry in made.world.entries():
            state = reduce(state, entry)
            killed = state if isinstance(entry.event, ev.TestRun) else reduce(state, after(entry))
            for now in (state, killed):
                assert lines_of(made.agent.messages(now, {}))[: len(sent)] == sent
            if isinstance(entry.event, ev.ModelRequest):
                sent = lines_of(made.agent.messages(state, {}))


def after(entry: ev.Entry) -> ev.Entry:
    """What is written when a run goes on that was killed after *entry*."""
    return ev.Entry(entry.seq + 1, entry.ts, ev.Resume(from_seq=entry.seq))


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(LINES, min_size=1, max_size=7), RULES, CUTS)
def test_what_was_sent_stays_as_it_was(script: list[ScriptLine], rules: Rules, cuts: list[Cut]) -> None:
    with swift() as folder:
        check(lived(folder, script, rules, cuts).model.prompts)


@pytest.mark.proof
@settings(max_examples=2000, deadline=None)
@given(st.lists(LINES, min_size=1, max_size=10), RULES, CUTS)
def test_what_was_sent_stays_as_it_was_over_many_runs(script: list[ScriptLine], rules: Rules, cuts: list[Cut]) -> None:
    with swift() as folder:
        check(lived(folder, script, rules, cuts).model.prompts)


def test_the_property_would_see_a_change() -> None:
    sent = (Message("system", "a"), Message("user", "b"))

    with pytest.raises(AssertionError):
        check([sent, (sent[0], Message("user", "c"), Message("assistant", "d"))])
