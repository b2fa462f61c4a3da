"""Reading in large parts and replaying many results at once: the same as line by line and event by event."""

from __future__ import annotations

import json
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.core.run.reducers.transitions import IllegalEvent, RunState, reduce, replay
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget
from jumar.core.state.reply import Reply
from jumar.core.state.test_policy import Gate, TestPolicy, Trigger
from jumar.core.state.verdict import Outcome
from jumar.errors import BadInput
from jumar.journal import read_groups as parts
from jumar.journal.line_format import JournalEnd, format_group, hash_line, parse
from jumar.journal.read_groups import Groups, TornLine, read_groups

TEXTS = st.text(max_size=6) | st.sampled_from(['"type":', ',"prev":"', '"more":3', "\\", '"}', "\n"])
TREE = "a" * 64
EVENTS = st.one_of(
    st.builds(lambda text: ev.EditClaim(test_id=text, edit_target="a.py"), TEXTS),
    st.builds(
        lambda text, ok: ev.TestRun(
            test_id=text, status="pass" if ok else "fail", outcome=Outcome.PASSED if ok else Outcome.FAILED
        ),
        TEXTS,
        st.booleans(),
    ),
    st.builds(lambda text: ev.Observation(name="x", content={"more": 1, "prev": text, "seq": 2}), TEXTS),
)
GROUPS = st.lists(st.lists(EVENTS, min_size=1, max_size=4), max_size=5)


def write(groups: list[list[ev.Event]]) -> list[bytes]:
    """The lines of a journal of *groups*, with their newlines."""
    lines: list[bytes] = []
    end = JournalEnd()
    for n, group in enumerate(groups):
        entries, more = format_group(group, n / 3, end)
        lines += [line + b"\n" for line in more]
        end = JournalEnd(entries[-1].seq, hash_line(more[-1]))
    return lines


def read(data: bytes) -> tuple[list[Groups], list[TornLine], str]:
    """All that is read of *data*, and the complaint."""
    found: list[Groups] = []
    torn: list[TornLine] = []
    try:
        found += read_groups(BytesIO(data), torn.append)
    except BadInput as fault:
        return [], [], str(fault)
    return found, torn, ""


def read_each(data: bytes) -> tuple[list[ev.Entry], int, bytes, str]:
    """The entries of whole groups, their bytes, the torn rest and the complaint: line by line."""
    entries: list[ev.Entry] = []
    whole = size = owed = 0
    last, place = "", 0
    for number, raw in enumerate(data.splitlines(keepends=True) if data.isascii() else _lines(data), 1):
        if not raw.endswith(b"\n"):
            break
        try:
            line = parse(raw[:-1])
        except ValueError:
            return [], 0, b"", f"line {number} "
        if line.prev != last or line.entry.seq != number - 1 or (owed and line.more != owed - 1):
            return [], 0, b"", f"line {number} "
        entries.append(line.entry)
        last, owed, place = hash_line(raw[:-1]), line.more, place + len(raw)
        if not owed:
            whole, size = len(entries), place
    return entries[:whole], size, data[size:], ""


def _lines(data: bytes) -> list[bytes]:
    return [line + b"\n" for line in data.split(b"\n")[:-1]] + (
        [data.rpartition(b"\n")[2]] if data[-1:] != b"\n" else []
    )


HARM = st.tuples(
    st.sampled_from(["none", "byte", "cut", "swap", "loose", "reorder", "drop", "insert"]), st.floats(0, 0.999)
)


def harm(lines: list[bytes], kind: str, where: float) -> bytes:
    """*lines* as somebody else might have left them; hashes are right where a line was only spelt otherwise."""
    n = int(where * len(lines))
    if not lines or kind == "none":
        return b"".join(lines)
    if kind in ("loose", "reorder"):
        facts = json.loads(lines[n])
        if kind == "reorder":
            facts = dict(sorted(facts.items(), key=lambda item: item[0] == "ts"))
        lines = [*lines[:n], json.dumps(facts).encode() + b"\n", *lines[n + 1 :]]
        for after in range(n + 1, len(lines)):
            lines[after] = lines[after].replace(
                lines[after][-67:-3], hash_line(lines[after - 1][:-1]).encode()
            )  # fmt: skip
        return b"".join(lines)
    if kind == "swap":
        lines = [*lines[:n], *lines[n + 1 : n + 2], lines[n], *lines[n + 2 :]]
    elif kind == "drop":
        lines = [*lines[:n], *lines[n + 1 :]]
    elif kind == "insert":
        lines = [*lines[:n], lines[n].replace(b',"type"', b',"evil":1,"type"', 1), *lines[n + 1 :]]
    data = b"".join(lines)
    place = int(where * len(data))
    if kind == "byte":
        return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
    return data[:place] if kind == "cut" else data


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [1, 200, 1 << 16])
@settings(deadline=None)
@given(groups=GROUPS, done=HARM)
def test_a_part_reads_as_its_lines_do(chunk: int, groups: list[list[ev.Event]], done: tuple[str, float]) -> None:
    data = harm(write(groups), *done)
    known, parts.CHUNK = parts.CHUNK, chunk
    try:
        found, torn, complaint = read(data)
    finally:
        parts.CHUNK = known
    entries, size, rest, why = read_each(data)
    assert [entry for group in found for entry in group.entries] == entries
    assert why in complaint
    assert bool(why) == bool(complaint)
    if not complaint:
        assert sum(group.size for group in found) == size
        assert b"".join(line.data for line in torn) == rest
        assert [line.seq for line in torn] == ([len(entries)] if rest else [])
        if found:
            assert found[-1].end == JournalEnd(
                len(entries) - 1, hash_line(data[:size].rpartition(b"\n")[0].split(b"\n")[-1])
            )


START = ev.RunStart(
    run="r", task="t", agent="driver", model="m", test_policy=TestPolicy.ON_WRITE, gate=Gate.STRICT, budget=Budget(),
    expected=("a", "b"), tree=TREE,
)  # fmt: skip
STEPS: dict[str, ev.Event] = {
    "ask": ev.ModelRequest(tier="mid", model="m", stage="turn", reserved_usd=0.1),
    "call": ev.ModelCall(reply=Reply(content="x"), tier="mid", model="m", stage="turn", usd=0.01),
    "look": ev.ActionTaken(name="run_tests", args={}, admitted=True, last=True),
    "a": ev.TestRun(test_id="a", status="pass", outcome=Outcome.PASSED),
    "b": ev.TestRun(test_id="b", status="fail", outcome=Outcome.FAILED),
    "tests": ev.Tests(trigger=Trigger.MODEL, ok=False, passed=1, failed=1, errors=0, total=2, tree=TREE),
    "resume": ev.Resume(from_seq=0),
}


@settings(deadline=None)
@given(
    kinds=st.lists(st.sampled_from(["a", "b", "a", "b", *STEPS]), max_size=20),
    times=st.lists(st.floats(-1, 3).map(lambda t: round(t, 3)), min_size=21, max_size=21),
)
def test_results_replayed_together_leave_the_state_that_they_leave_one_by_one(
    kinds: list[str], times: list[float]
) -> None:
    entries = [ev.Entry(n, times[n], event) for n, event in enumerate([START, *(STEPS[kind] for kind in kinds)])]
    state = RunState()
    for done, entry in enumerate(entries):
        try:
            state = reduce(state, entry)
        except IllegalEvent:
            with pytest.raises(IllegalEvent):
                replay(entries)
            entries = entries[:done]
            break
    assert replay(entries) == state


@pytest.mark.parametrize("count", ["100000000000000000000", "1", "+1", "01", " 1", "1.0", "-1", "x", ""])
def test_a_group_is_as_long_as_it_is_whatever_its_first_line_says(count: str) -> None:
    lines = [line.removesuffix(b"\n") for line in write([[ev.EditClaim(test_id=i, edit_target="a.py")] for i in "abc"])]
    lines[1] = lines[1].replace(b',"prev"', f',"more":{count},"prev"'.encode())
    lines[2] = lines[2].replace(lines[2][-66:-2], hash_line(lines[1]).encode())
    data = b"".join(line + b"\n" for line in lines)

    found, torn, complaint = read(data)

    entries, _, rest, why = read_each(data)
    assert ([entry for group in found for entry in group.entries], bool(complaint)) == (entries, bool(why))
    assert b"".join(line.data for line in torn) == rest
