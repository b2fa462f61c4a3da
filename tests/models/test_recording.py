"""A recorded run can be had again: the same answers to the same questions, and a plain word where they differ."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.agents.driver import Driver
from jumar.agents.pipeline import Pipeline
from jumar.core.run.retry import ERRORS
from jumar.core.run.strategy import Message, Request, Strategy, Tool
from jumar.core.state.budget import Budget, Cost
from jumar.core.state.reply import Reply, ToolCall
from jumar.core.state.settings import Price, Route, Settings, Switches
from jumar.core.state.stop import StopReason
from jumar.errors import BadInput, Infra
from jumar.models.llm import LlmModel
from jumar.models.recording import Digests, RecordedCall, resume_recording, start_recording
from jumar.models.replay import Recording, parse_cassette, read_cassette
from jumar.models.router import ByTier
from jumar.models.script import ScriptedUsage, ScriptLine, ScriptModel, parse_script
from jumar.models.wire.prices import find_tariff
from jumar.ports import Answer, Ask, Model
from jumar.testing import check_model
from support.processes import fake_provider as wire
from support.worlds.run_world import Terms, program, world

pytestmark = pytest.mark.slow
"""Real clients and servers: the first call of a process alone takes a second."""

KEY = "sk-test-0123456789abcdefghij"
ROUTES = {
    "mid": Route(model="openai:tiny", max_output_tokens=10, price=Price(input=1.0, output=2.0)),
    "cheap": Route(model="openai:tinier", max_output_tokens=10),
}


def asking(position: int = 0, text: str = "Mend this.", tier: str = "mid", stage: str = "write") -> Ask:
    return Ask(
        request=Request(tier, stage),
        messages=(Message("user", text),),
        tree="",
        files={},
        red=(),
        green=(),
        localisation=None,
        position=position,
        refused=frozenset(),
        seed=0,
        seconds=None,
        tools=(Tool("final", "Ends it.", {"type": "object"}),),
    )


class Given:
    """Answers with what it was given, one a call."""

    name = "openai:tiny"

    def __init__(self, *answers: Answer) -> None:
        self._answers = answers

    def worst(self, ask: Ask) -> Cost:
        return Cost(1.0 + ask.position, 1000)

    async def complete(self, ask: Ask) -> Answer:
        return self._answers[ask.position]


def record(path: Path, *answers: Answer, secrets: tuple[str, ...] = ()) -> None:
    recorder = start_recording(path, "openai:tiny", ROUTES, secrets)
    model = recorder.record_models(lambda _: Given(*answers))("mid")
    for position in range(len(answers)):
        anyio.run(model.complete, asking(position))


def played(path: Path) -> Recording:
    return parse_cassette(read_cassette(path), str(path))


ANSWERS = st.builds(
    Answer,
    reply=st.builds(
        Reply,
        st.text(st.characters(exclude_categories=["Cs"])),
        st.tuples(st.builds(ToolCall, st.just("read_file"), st.just({"path": "a"}), st.just("c1"))) | st.just(()),
        st.just({}) | st.just({"parts": [{"part_kind": "thinking", "content": "hm"}]}),
    ),
    input_tokens=st.integers(0, 10**6),
    output_tokens=st.integers(0, 10**6),
    usd=st.floats(0, 10),
    error=st.sampled_from(["", *sorted(ERRORS)]),
    retry_after=st.none() | st.floats(0, 1000),
    assumed=st.booleans(),
)


@given(answers=st.lists(ANSWERS, max_size=5))
def test_a_recording_answers_as_the_model_did(tmp_path_factory: pytest.TempPathFactory, answers: list[Answer]) -> None:
    path = tmp_path_factory.mktemp("tape") / "run.tape"
    record(path, *answers)
    model = played(path).get_model("mid")
    for position, answer in enumerate(answers):
        again = anyio.run(model.complete, asking(position))
        assert again == answer
        assert model.worst(asking(position)) == Cost(1.0 + position, 1000), "the journal tells what was set aside"


def test_a_recording_knows_what_was_run(tmp_path: Path) -> None:
    record(tmp_path / "tape", Answer(reply=Reply("x")))
    cassette = played(tmp_path / "tape")
    assert (cassette.model, cassette.routes) == ("openai:tiny", ROUTES)
    assert [cassette.get_model(tier).name for tier in ("mid", "cheap", "other")] == [
        "openai:tiny",
        "openai:tinier",
        "openai:tiny",
    ]


def test_a_recording_that_is_used_up_ends_the_run(tmp_path: Path) -> None:
    record(tmp_path / "tape")
    (call,) = anyio.run(check_model, played(tmp_path / "tape").get_model("mid"), asking()).reply.tool_calls
    assert (call.name, call.arguments) == ("final", {"message": "the recording is used up"})


class Tiers:
    """One model for a story, that asks the one of the tier."""

    name = "openai:tiny"

    def __init__(self, by_tier: ByTier) -> None:
        self._by_tier = by_tier

    def worst(self, ask: Ask) -> Cost:
        return self._by_tier(ask.request.tier).worst(ask)

    async def complete(self, ask: Ask) -> Answer:
        return await self._by_tier(ask.request.tier).complete(ask)


def had(folder: Path, agent: str, budget: Budget, by_tier: ByTier) -> tuple[StopReason, list[object]]:
    """How a story in *folder* stopped, and all its events."""
    strategy: Strategy = Driver(("app.py", "test_app.py"), ("test_app.py",), Switches())
    if agent == "pipeline":
        strategy = Pipeline(("app.py",), Settings(switches=Switches(review=True)))
    made = world(folder, (), Terms(budget=budget, agent=strategy, model=Tiers(by_tier)))
    with made.journal:
        end = anyio.run(made.kernel.run).end
    assert end
    return end.stop, [msgspec.to_builtins(e.event) for e in made.entries()]


SPENT = wire.Tokens(2000, 40)


def wrote(agent: str, passing: int) -> wire.Step:
    """An answer that writes a program with *passing* tests green, as the agent asks for it."""
    if agent == "pipeline":
        return wire.reply(f"```python\n{program(passing)}```", tokens=SPENT)
    return wire.reply("", ("write_file", {"path": "app.py", "text": program(passing)}), tokens=SPENT)


STORIES: Mapping[str, tuple[str, Budget, float]] = {
    "driver, money": ("driver", Budget(attempts=99, usd=0.016), 1.0),
    "driver, tokens": ("driver", Budget(attempts=99, tokens=16_000), 1.0),
    "pipeline, money": ("pipeline", Budget(attempts=99, usd=0.016), 1.0),
    "pipeline, tokens": ("pipeline", Budget(attempts=99, tokens=15_000), 1.0),
    "pipeline, reviews too dear": ("pipeline", Budget(attempts=99, usd=0.016), 1000.0),
}
"""Agent, caps, and what a million tokens of a review cost."""


@pytest.mark.parametrize("story", STORIES)
def test_a_run_that_its_caps_ended_ends_so_again(tmp_path: Path, story: str) -> None:
    agent, budget, dear = STORIES[story]
    reviewed = [wire.reply("CLEAN", tokens=SPENT)] if agent == "pipeline" and dear == 1 else []
    with wire.Server([step for n in range(9, 17) for step in (wrote(agent, n), *reviewed)]) as server:
        prices = {"mid": Price(input=1.0, output=2.0), "cheap": Price(input=dear, output=2.0)}
        routes = {
            tier: Route(model="openai:tiny", max_output_tokens=50, price=price, base_url=server.url)
            for tier, price in prices.items()
        }
        models = {tier: LlmModel(route, KEY, find_tariff(route)) for tier, route in routes.items()}
        recorder = start_recording(tmp_path / "tape", "openai:tiny", routes, (KEY,))
        first = had(tmp_path / "first", agent, budget, recorder.record_models(models.__getitem__))
        asked = len(server.requests)
    again = had(tmp_path / "again", agent, budget, played(tmp_path / "tape").get_model)

    assert first[0] is StopReason.BUDGET
    assert again == first
    assert asked > 1, "it ended in the middle"
    done = [(e["type"], e.get("stage", e.get("name"))) for e in first[1] if isinstance(e, dict)]
    made, forgone = (done.count((kind, "review")) for kind in ("model_call", "action"))
    assert (made > 0, forgone > 0 or dear == 1) == (agent == "pipeline" and dear == 1, True), "made, or forgone"


def test_what_a_call_would_have_cost_is_on_record_once(tmp_path: Path) -> None:
    recorder = start_recording(tmp_path / "tape", "openai:tiny", ROUTES)
    for _ in range(3):  # the router is asked for the model each time
        model = recorder.record_models(lambda _: Given(Answer(reply=Reply("x"))))("mid")
        model.worst(asking())
    anyio.run(model.complete, asking())
    model.worst(asking(1))
    _, *lines = (tmp_path / "tape").read_bytes().splitlines()
    takes = [msgspec.json.decode(line, type=RecordedCall) for line in lines]
    assert [(t.position, t.answer is not None) for t in takes] == [(0, False), (0, True), (1, False)]


def test_what_was_never_made_has_no_answer_before_the_end(tmp_path: Path) -> None:
    recorder = start_recording(tmp_path / "tape", "openai:tiny", ROUTES)
    model = recorder.record_models(lambda _: Given(*[Answer(reply=Reply("x"))] * 3))("mid")
    model.worst(asking(0, stage="review"))
    anyio.run(model.complete, asking(0))
    model.worst(asking(1))
    tape = played(tmp_path / "tape").get_model("mid")
    assert [tape.worst(asking(0, stage="review")), tape.worst(asking(1))] == [Cost(1.0, 1000), Cost(2.0, 1000)]
    review = anyio.run(check_model, tape, asking(0, stage="review"))
    assert (review.error, review.reply) == ("mismatch", Reply())
    assert "call 1 (review) was cut off or too dear" in review.detail
    assert anyio.run(check_model, tape, asking(1)).reply.tool_calls[0].name == "final", "a higher cap finds no more"


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (asking(1, text="Something else."), "the conversation differs from the recording at call 2 (write)"),
        (asking(1, stage="fix"), "call 2 asks mid for fix, and the recording asked mid for write"),
        (asking(1, tier="cheap"), "call 2 asks cheap for write, and the recording asked mid for write"),
    ],
)
def test_another_conversation_is_no_match(tmp_path: Path, ask: Ask, words: str) -> None:
    record(tmp_path / "tape", *[Answer(reply=Reply("x"))] * 2)
    answer = anyio.run(check_model, played(tmp_path / "tape").get_model("mid"), ask)
    assert (answer.error, answer.detail, answer.reply) == ("mismatch", words, Reply())


def test_a_call_that_was_cut_off_has_no_answer(tmp_path: Path) -> None:
    recorder = start_recording(tmp_path / "tape", "openai:tiny", ROUTES)
    model = recorder.record_models(lambda _: Given(*[Answer(reply=Reply("x"))] * 3))("mid")
    for position in (0, 2):
        anyio.run(model.complete, asking(position))
    answer = anyio.run(played(tmp_path / "tape").get_model("mid").complete, asking(1))
    assert answer.error == "mismatch"
    assert "call 2 (write) was cut off" in answer.detail


def test_addresses_of_objects_make_no_difference() -> None:
    one, two, three = (Digests().compute(asking(text=f"<Foo object at {a}>")) for a in ("0x7f01ab", "0x7fff9", "1234"))
    assert one == two != three


def test_a_call_made_again_after_a_crash_counts_as_it_was_made_last(tmp_path: Path) -> None:
    record(tmp_path / "tape", Answer(reply=Reply("lost")))
    model = resume_recording(tmp_path / "tape").record_models(lambda _: Given(Answer(reply=Reply("kept"))))("mid")
    anyio.run(model.complete, asking())
    assert anyio.run(played(tmp_path / "tape").get_model("mid").complete, asking()).reply.content == "kept"


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_torn_last_line_is_cut_off_before_a_recording_goes_on(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "tape"
    record(path, *[Answer(reply=Reply(f"reply {n}")) for n in range(2)])
    path.write_bytes(path.read_bytes()[:-cut])
    model = resume_recording(path).record_models(lambda _: Given(*[Answer(reply=Reply("again"))] * 2))("mid")
    anyio.run(model.complete, asking(1))
    model = played(path).get_model("mid")
    assert [anyio.run(model.complete, asking(n)).reply.content for n in range(2)] == ["reply 0", "again"]


def test_a_recording_replaces_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("dear")
    with pytest.raises(BadInput, match="name another file"):
        start_recording(tmp_path / "notes", "openai:tiny", ROUTES)
    assert (tmp_path / "notes").read_text() == "dear"
    with pytest.raises(BadInput, match="no header of a recording"):
        resume_recording(_with(tmp_path / "other", b"dear\n"))
    with pytest.raises(BadInput, match="cannot write the recording"):
        start_recording(tmp_path / "no" / "such" / "folder", "openai:tiny", ROUTES)


def test_a_recording_that_cannot_be_written_ends_the_run(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "tape"
    path.parent.mkdir()
    model = start_recording(path, "openai:tiny", ROUTES).record_models(lambda _: Given(Answer(reply=Reply("x"))))("mid")
    path.unlink()
    path.parent.rmdir()
    with pytest.raises(Infra, match="cannot write the recording"):
        anyio.run(model.complete, asking())


HEADER = b'{"format":"jumar-cassette","version":2,"model":"openai:tiny","routes":{}}\n'


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"nonsense", "line 1 of tape is no header"),
        (b'{"content": "a script"}', "line 1 of tape is no header"),
        (HEADER.replace(b":2,", b":1,"), "this version reads jumar-cassette 2"),
        (HEADER.replace(b"jumar-cassette", b"other"), "this version reads jumar-cassette 2"),
        (HEADER + b'\n{"position": 0}', "line 3 of tape is no recorded call"),
        (HEADER + b'{"position": "0"}', "line 2 of tape is no recorded call"),
        (HEADER + b"[" * 100_000, "line 2 of tape is no recorded call"),
    ],
)
def test_what_is_no_recording_is_refused_by_the_line(data: bytes, words: str) -> None:
    with pytest.raises(BadInput) as refusal:
        parse_cassette(data, "tape")
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


ABSURD = [
    ("answer", "usd", -0.1),
    ("answer", "usd", 1e308),
    ("answer", "input_tokens", -500),
    ("answer", "cached_tokens", -1),
    ("answer", "output_tokens", 2**63),
    ("answer", "output_tokens", 10**30),
    ("worst", "usd", -5.0),
    ("worst", "tokens", -500),
    ("worst", "tokens", 2**51),
]


@pytest.mark.parametrize(("part", "field", "number"), ABSURD)
def test_a_number_that_no_call_can_have_is_refused_by_the_line(
    tmp_path: Path, part: str, field: str, number: float
) -> None:
    record(tmp_path / "tape", *[Answer(reply=Reply("x"))] * 2)
    lines = (tmp_path / "tape").read_bytes().splitlines()
    line = json.loads(lines[2])
    line[part][field] = number
    data = b"\n".join([*lines[:2], json.dumps(line).encode()])
    with pytest.raises(BadInput, match="line 3 of tape is no recorded call"):
        parse_cassette(data, "tape")


def test_a_recording_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot read the recording"):
        read_cassette(tmp_path / "nowhere")


def test_no_key_and_no_prompt_is_in_a_recording(tmp_path: Path) -> None:
    answer = Answer(reply=Reply(f"{KEY}", (ToolCall("x", {"k": KEY}, "1"),), {"k": KEY}), detail=KEY)
    record(tmp_path / "tape", answer, secrets=(KEY,))
    data = (tmp_path / "tape").read_bytes()
    assert KEY.encode() not in data
    assert b"Mend this." not in data
    assert data.count(b"[key]") == 4
    assert json.loads(data.splitlines()[1])["answer"]["detail"] == "[key]"


def test_a_provider_s_model_is_recorded_and_replayed(tmp_path: Path) -> None:
    steps = [wire.rate_limited(), wire.reply("I look.", ("final", {"message": "x"}), tokens=wire.Tokens(10, 5, 4))]
    with wire.Server(steps) as server:
        route = msgspec.structs.replace(ROUTES["mid"], base_url=server.url)
        recorder = start_recording(tmp_path / "tape", route.model, {"mid": route}, (KEY,))
        model = recorder.record_models(lambda _: LlmModel(route, KEY, find_tariff(route)))("mid")
        first = [anyio.run(check_model, model, asking(n)) for n in range(2)]
    model = played(tmp_path / "tape").get_model("mid")
    second = [anyio.run(check_model, model, asking(n)) for n in range(2)]
    assert second == first
    assert KEY.encode() not in (tmp_path / "tape").read_bytes()


@pytest.mark.parametrize(
    "line",
    [
        ScriptLine(content="x", usage=ScriptedUsage(10, 5, 5), usd=0.1),
        ScriptLine(tool_calls=(ToolCall("final"), ToolCall("final"))),
        ScriptLine(error="timeout"),
    ],
)
def test_a_script_keeps_the_contract_of_models(line: ScriptLine) -> None:
    anyio.run(check_model, ScriptModel((line,)), asking())
    anyio.run(check_model, ScriptModel((line,)), asking(1))


@pytest.mark.parametrize(
    "line",
    [
        '{"content": "x", "usd": -5}',
        '{"content": "x", "usd": 1e308}',
        '{"content": "x", "usd": 1e999}',
        '{"content": "x", "usd": NaN}',
        '{"content": "x", "usage": {"input_tokens": -500}}',
        '{"content": "x", "usage": {"cached_tokens": -1}}',
        '{"content": "x", "usage": {"output_tokens": 9223372036854775808}}',
        '{"content": "x", "usage": {"input_tokens": 1000000000000000000000000000000}}',
    ],
)
def test_a_script_with_a_number_that_no_call_can_have_is_refused_by_the_line(line: str) -> None:
    with pytest.raises(BadInput, match=r"^line 2 of s is no reply: [^\n]*$"):
        parse_script(f'{{"content": "fine", "usd": 1000000}}\n{line}\n'.encode(), "s")


BROKEN: dict[str, dict[str, Any]] = {
    "a fault has one of the names": {"error": "oops"},
    "one line": {"detail": "a\nb"},
    "cached tokens are part": {"cached_tokens": 1},
    "gives none back": {"usd": -0.1},
    "costs more": {"usd": 9.0},
    "takes more": {"input_tokens": 2000},
    "nobody waits": {"retry_after": -1.0},
    "written down": {"reply": Reply(opaque={"a": (1, 2)})},
    "ids of their own": {"reply": Reply(tool_calls=(ToolCall("a"),))},
}


@pytest.mark.parametrize("clause", BROKEN)
def test_the_contract_of_models_can_be_broken(clause: str) -> None:
    model: Model = Given(Answer(**{"reply": Reply(), **BROKEN[clause]}))
    with pytest.raises(AssertionError, match=clause):
        anyio.run(check_model, model, asking())


def _with(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path
