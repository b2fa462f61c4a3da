"""A recorded run can be had again: the same answers to the same questions, and a plain word where they differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wire
from jumar.core.agent import Message, Request, Tool
from jumar.core.budget import Cost
from jumar.core.reply import Reply, ToolCall
from jumar.core.retry import ERRORS
from jumar.core.settings import Price, Route
from jumar.errors import BadInput, Infra
from jumar.models.cassette import Take, digest_of, resumed, started
from jumar.models.llm import LlmModel
from jumar.models.prices import tariff
from jumar.models.replay import Cassette, parse_cassette, read_cassette
from jumar.models.script import Line, ScriptModel, Usage
from jumar.ports import Answer, Ask, Model
from jumar.testing import check_model

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
    recorder = started(path, "openai:tiny", ROUTES, secrets)
    model = recorder.around(lambda _: Given(*answers))("mid")
    for position in range(len(answers)):
        anyio.run(model.complete, asking(position))


def played(path: Path) -> Cassette:
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
    model = played(path).of("mid")
    for position, answer in enumerate(answers):
        again = anyio.run(model.complete, asking(position))
        assert again == answer
        assert model.worst(asking(position)) == Cost(1.0 + position, 1000), "the journal tells what was set aside"


def test_a_recording_knows_what_was_run(tmp_path: Path) -> None:
    record(tmp_path / "tape", Answer(reply=Reply("x")))
    cassette = played(tmp_path / "tape")
    assert (cassette.model, cassette.routes) == ("openai:tiny", ROUTES)
    assert [cassette.of(tier).name for tier in ("mid", "cheap", "other")] == [
        "openai:tiny",
        "openai:tinier",
        "openai:tiny",
    ]


def test_a_recording_that_is_used_up_ends_the_run(tmp_path: Path) -> None:
    record(tmp_path / "tape")
    (call,) = anyio.run(check_model, played(tmp_path / "tape").of("mid"), asking()).reply.tool_calls
    assert (call.name, call.arguments) == ("final", {"message": "the recording is used up"})


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
    answer = anyio.run(check_model, played(tmp_path / "tape").of("mid"), ask)
    assert (answer.error, answer.detail, answer.reply) == ("mismatch", words, Reply())


def test_a_call_that_was_cut_off_has_no_answer(tmp_path: Path) -> None:
    recorder = started(tmp_path / "tape", "openai:tiny", ROUTES)
    model = recorder.around(lambda _: Given(*[Answer(reply=Reply("x"))] * 3))("mid")
    for position in (0, 2):
        anyio.run(model.complete, asking(position))
    answer = anyio.run(played(tmp_path / "tape").of("mid").complete, asking(1))
    assert answer.error == "mismatch"
    assert "call 2 was cut off" in answer.detail


def test_addresses_of_objects_make_no_difference() -> None:
    one, two, three = (digest_of(asking(text=f"<Foo object at {a}>")) for a in ("0x7f01ab", "0x7fff9", "1234"))
    assert one == two != three


def test_a_call_made_again_after_a_crash_counts_as_it_was_made_last(tmp_path: Path) -> None:
    record(tmp_path / "tape", Answer(reply=Reply("lost")))
    model = resumed(tmp_path / "tape").around(lambda _: Given(Answer(reply=Reply("kept"))))("mid")
    anyio.run(model.complete, asking())
    assert anyio.run(played(tmp_path / "tape").of("mid").complete, asking()).reply.content == "kept"


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_torn_last_line_is_cut_off_before_a_recording_goes_on(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "tape"
    record(path, *[Answer(reply=Reply(f"reply {n}")) for n in range(2)])
    path.write_bytes(path.read_bytes()[:-cut])
    model = resumed(path).around(lambda _: Given(*[Answer(reply=Reply("again"))] * 2))("mid")
    anyio.run(model.complete, asking(1))
    model = played(path).of("mid")
    assert [anyio.run(model.complete, asking(n)).reply.content for n in range(2)] == ["reply 0", "again"]


def test_a_recording_replaces_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("dear")
    with pytest.raises(BadInput, match="name another file"):
        started(tmp_path / "notes", "openai:tiny", ROUTES)
    assert (tmp_path / "notes").read_text() == "dear"
    with pytest.raises(BadInput, match="no header of a recording"):
        resumed(_with(tmp_path / "other", b"dear\n"))
    with pytest.raises(BadInput, match="cannot write the recording"):
        started(tmp_path / "no" / "such" / "folder", "openai:tiny", ROUTES)


def test_a_recording_that_cannot_be_written_ends_the_run(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "tape"
    path.parent.mkdir()
    model = started(path, "openai:tiny", ROUTES).around(lambda _: Given(Answer(reply=Reply("x"))))("mid")
    path.unlink()
    path.parent.rmdir()
    with pytest.raises(Infra, match="cannot write the recording"):
        anyio.run(model.complete, asking())


HEADER = b'{"format":"jumar-cassette","version":1,"model":"openai:tiny","routes":{}}\n'


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"nonsense", "line 1 of tape is no header"),
        (b'{"content": "a script"}', "line 1 of tape is no header"),
        (HEADER.replace(b":1,", b":2,"), "this version reads jumar-cassette 1"),
        (HEADER.replace(b"jumar-cassette", b"other"), "this version reads jumar-cassette 1"),
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
    assert msgspec.json.decode(data.splitlines()[1], type=Take).answer.detail == "[key]"


def test_a_provider_s_model_is_recorded_and_replayed(tmp_path: Path) -> None:
    steps = [wire.rate_limited(), wire.reply("I look.", ("final", {"message": "x"}), tokens=wire.Tokens(10, 5, 4))]
    with wire.Server(steps) as server:
        route = msgspec.structs.replace(ROUTES["mid"], base_url=server.url)
        recorder = started(tmp_path / "tape", route.model, {"mid": route}, (KEY,))
        model = recorder.around(lambda _: LlmModel(route, KEY, tariff(route)))("mid")
        first = [anyio.run(check_model, model, asking(n)) for n in range(2)]
    model = played(tmp_path / "tape").of("mid")
    second = [anyio.run(check_model, model, asking(n)) for n in range(2)]
    assert second == first
    assert KEY.encode() not in (tmp_path / "tape").read_bytes()


@pytest.mark.parametrize(
    "line",
    [
        Line(content="x", usage=Usage(10, 5, 5), usd=0.1),
        Line(tool_calls=(ToolCall("final"), ToolCall("final"))),
        Line(error="timeout"),
    ],
)
def test_a_script_keeps_the_contract_of_models(line: Line) -> None:
    anyio.run(check_model, ScriptModel((line,)), asking())
    anyio.run(check_model, ScriptModel((line,)), asking(1))


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
