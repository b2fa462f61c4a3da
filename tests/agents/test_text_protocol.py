"""The plain-text protocol: what is an action, what is none, and what is told of a block that is nearly one."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.agents.extraction.text_protocol import EXAMPLES, describe_actions, parse_calls
from jumar.agents.tools import tool_calls
from jumar.agents.tools.catalogue import ALL, list_offers
from jumar.agents.tools.tool_calls import build_null_action, parse_action
from jumar.core.gate.admission import Action, Edit
from jumar.core.state.reply import Reply, ToolCall
from jumar.core.state.settings import Switches
from jumar.models.wire import messages


def asked(content: str) -> tuple[ToolCall | str, ...]:
    """The actions in *content*, all tools offered."""
    return parse_calls(content, ALL)


def test_every_example_of_the_guide_is_an_action_of_its_name() -> None:
    for offer in ALL:
        (call,) = asked(EXAMPLES[offer.name])
        assert isinstance(call, ToolCall)
        assert call.name == offer.name
        assert not parse_action(call, ALL).fault
    assert [c.name for c in asked(describe_actions(ALL)) if isinstance(c, ToolCall)] == [o.name for o in ALL]


def test_the_guide_tells_of_what_is_offered_alone() -> None:
    told = describe_actions(list_offers(Switches()))

    assert "run_tests" not in told
    assert "run_command" not in told


@pytest.mark.parametrize(
    ("content", "call"),
    [
        ("```action list_files\n```", ToolCall("list_files")),
        ("~~~action read_file path='my file.py' end=3\n~~~", ToolCall("read_file", {"path": "my file.py", "end": "3"})),
        ("```action write_file path=a.py\n```", ToolCall("write_file", {"path": "a.py", "text": ""})),
        ("```action write_file path=a.py\n\n\tx\n\n```", ToolCall("write_file", {"path": "a.py", "text": "\n\tx\n\n"})),
        (
            "````action write_file path=a.md\n```py\nx\n```\n````",
            ToolCall("write_file", {"path": "a.md", "text": "```py\nx\n```\n"}),
        ),
        ("```action search path=src\nf\\(x\\)\n```", ToolCall("search", {"path": "src", "pattern": "f\\(x\\)"})),
        ("```action search pattern='a b'\n```", ToolCall("search", {"pattern": "a b"})),
        ("```action final\n```", ToolCall("final", {"message": ""})),
        ("```action final\nOne.\nTwo.\n```", ToolCall("final", {"message": "One.\nTwo."})),
        ("```action run_tests\na::b\n\n c::d \n```", ToolCall("run_tests", {"test_ids": ["a::b", "c::d"]})),
        ("```action run_tests\n```", ToolCall("run_tests", {"test_ids": []})),
        (
            "```action run_command\ngrep -n 'x' a |\n  wc\n```",
            ToolCall("run_command", {"command": "grep -n 'x' a |\n  wc"}),
        ),
        ("Text\r\n```action delete_file path=a.py\r\n```\r\nmore", ToolCall("delete_file", {"path": "a.py"})),
        ("<div>\n\n```action delete_file path=a.py\n```", ToolCall("delete_file", {"path": "a.py"})),
        (
            "```action edit_file path=a.py\n<<<<<<< old\na\n=======\n>>>>>>> new\n```",
            ToolCall("edit_file", {"path": "a.py", "old": "a\n", "new": ""}),
        ),
        (
            "```action edit_file path=a.py\n\n<<<<<<<\n  a\n\n=======\nb\n==\n>>>>>>>\n```",
            ToolCall("edit_file", {"path": "a.py", "old": "  a\n\n", "new": "b\n==\n"}),
        ),
    ],
)
def test_a_block_is_a_call(content: str, call: ToolCall) -> None:
    assert asked(content) == (call,)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("```action write_file path=a.py\nx = 1\n", "not closed"),
        ("```action write_file path=a.py\nx = 1", "not closed"),
        ("```action write_file path=a.py\n", "not closed"),
        ("```action write_file path=a.py", "not closed"),
        ("````action write_file path=a.py\nx\n```", "not closed"),
        ("```action write_file path=a.py\nx\n~~~", "not closed"),
        ("```action write_file path=a.py\nx\n```py", "not closed"),
        ("- ```action delete_file path=a.py\n  ```", "list or a quotation"),
        ("> ```action delete_file path=a.py\n> ```", "list or a quotation"),
        ("```action\n```", "needs a name"),
        ("```action write_file path='a.py\nx\n```", "quotes"),
        ("```action read_file a.py\n```", "'a.py' is no key=value"),
        ("```action read_file path=a path=b\n```", "'path=b' is no key=value of its own"),
        ("```action final message=a\nb\n```", "given twice"),
        ("```action search\n\n```", "the body of search is empty"),
        (f"```action read_file path={'a' * 5000}\n```", "at most 4000 characters"),
        ("```action edit_file path=a\nx\n```", "three lines"),
        ("```action edit_file path=a\n<<<<<<< old\na\n=======\nb\n=======\nc\n>>>>>>> new\n```", "three lines"),
        ("```action edit_file path=a\n<<<<<<< old\na\n>>>>>>> new\n=======\n```", "three lines"),
        ("```action edit_file path=a\nhere\n<<<<<<< old\na\n=======\nb\n>>>>>>> new\n```", "before <<<<<<<"),
        ("```action final\na\0b\n```", "characters that cannot stand"),
        ("```action final\n\ud800\n```", "characters that cannot stand"),
    ],
)
def test_what_is_nearly_an_action_is_told_and_never_performed(content: str, why: str) -> None:
    (said,) = asked(content)

    assert isinstance(said, str)
    assert why in said


@pytest.mark.parametrize(
    "content",
    [
        "",
        "action write_file path=a.py",
        "`action final`",
        "```python\naction final\n```",
        "```actions final\n```",
        "    ```action final\n    ```",
        "````\n```action delete_file path=a.py\n```\n````",
        "```md\n```action final\n```",
    ],
)
def test_what_is_no_action_is_nothing(content: str) -> None:
    assert asked(content) == ()


def test_actions_come_in_their_order() -> None:
    found = asked("A\n```action read_file path=a\n```\nB\n```action nothing\n```\n```action final\ndone\n```\n")

    assert [c.name for c in found if isinstance(c, ToolCall)] == ["read_file", "nothing", "final"]


def test_an_unknown_action_is_a_fault_that_names_what_there_is() -> None:
    (call,) = asked("```action write_files\n```")

    assert isinstance(call, ToolCall)
    assert "there is no tool 'write_files'; there are list_files, read_file" in parse_action(call, ALL).fault
    assert parse_action(call, ALL).name == "none"


lines = st.lists(
    st.sampled_from(["x = 1", "```", "````", "~~~", "", "  ```", "```action final", "> q", "- i", "\t", "é\u2028\x0c"])
)


@pytest.mark.slow
@settings(deadline=None)
@given(lines)
def test_a_file_in_a_long_enough_fence_comes_out_as_it_went_in(body: list[str]) -> None:
    text = "".join(f"{line}\n" for line in body)

    assert asked(f"``````action write_file path=a\n{text}``````\n") == (
        ToolCall("write_file", {"path": "a", "text": text}),
    )


@pytest.mark.slow
@settings(deadline=None)
@given(lines, st.integers(0, 400))
def test_a_reply_that_was_cut_off_performs_nothing_of_its_last_block(body: list[str], cut: int) -> None:
    whole = "``````action write_file path=a\n" + "".join(f"{line}\n" for line in body) + "``````"
    found = asked(whole[: min(cut, len(whole) - 1)])

    assert not [c for c in found if isinstance(c, ToolCall)]


@pytest.mark.slow
@settings(deadline=None)
@given(st.text(st.sampled_from("`~action finl=<>-\n \t'\"\\x\ud800\0"), max_size=80))
def test_whatever_a_model_says_comes_to_something(content: str) -> None:
    for said in asked(content):
        assert said if isinstance(said, str) else isinstance(parse_action(said, ALL), Action)


def test_models_and_agents_mean_the_same_by_arguments_that_are_no_object() -> None:
    assert tool_calls.MALFORMED == messages.MALFORMED


def test_replies_that_differ_stand_for_different_actions() -> None:
    one, other, again = (build_null_action("why", Reply(text)) for text in ("a", "b", "a"))

    assert one.args != other.args
    assert one == again


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (
            ToolCall("write_file", {"path": "./src//a.py", "text": ""}, "i"),
            Action("write_file", {"src//a.py": ""}, call_id="i"),
        ),
        (ToolCall("delete_file", {"path": "././a.py"}), Action("delete_file", {"a.py": None})),
        (
            ToolCall("edit_file", {"path": "a", "old": "b", "new": "", "why": 1}),
            Action("edit_file", edit=Edit("a", "b", "")),
        ),
        (ToolCall("final"), Action("final")),
        (ToolCall("list_files", {"path": "."}), Action("list_files", args={"path": ""})),
        (ToolCall("list_files", {"path": None}), Action("list_files", args={"path": ""})),
        (ToolCall("read_file", {"path": "a"}), Action("read_file", args={"path": "a", "start": 1, "end": 0})),
        (
            ToolCall("read_file", {"path": "a", "start": " 2.0 ", "end": 4.0}),
            Action("read_file", args={"path": "a", "start": 2, "end": 4}),
        ),
        (ToolCall("run_tests", {"test_ids": ("a",)}), Action("run_tests", args={"test_ids": ("a",)})),
    ],
)
def test_a_call_with_right_arguments_is_an_action(call: ToolCall, wanted: Action) -> None:
    assert parse_action(call, ALL) == wanted


@pytest.mark.parametrize(
    "call",
    [
        ToolCall("read_file", {"path": "a"}, "\ud800"),
        ToolCall("read_file", {"\ud800": "a"}),
        ToolCall("\ud800", {"path": "a"}),
        ToolCall("read_file", {"path": "a\ud800"}),
    ],
)
def test_what_is_told_of_a_call_that_is_no_valid_unicode_can_be_written_down(call: ToolCall) -> None:
    found = parse_action(call, ALL)

    assert found.fault
    assert msgspec.json.encode(found)


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "a", "text": "\ud800"},
        {"path": "\udfff", "text": ""},
        {"path": "a", "text": 1},
        {"path": "a", "text": {"a": "b"}},
        {"path": ["a"], "text": ""},
        {"text": ""},
        {"_malformed": "{"},
        {},
    ],
)
def test_a_call_with_wrong_arguments_is_an_action_of_its_name_with_a_fault(arguments: dict[str, object]) -> None:
    found = parse_action(ToolCall("write_file", arguments, "id"), ALL)

    assert (found.name, found.call_id, found.files) == ("write_file", "id", {})
    assert found.fault
