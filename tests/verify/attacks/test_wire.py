"""The wire between tests and product: hostile frames get data, a refusal or an end, and perform nothing else."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock  # the tests of a task hand them out

import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from jumar.child.two_process import codec, object_tables, proxies
from jumar.child.two_process.environment.changes import ProductEnvironment
from jumar.child.two_process.product_process import main as product_main
from jumar.child.two_process.test_process import side as tests_side
from jumar.child.two_process.wire import exceptions, frames, library_values, rpc

CALLED: list[str] = []
"""Calls that were performed at the product's request."""

NEWS: list[Any] = [[], [], None]


def lent(*_: Any) -> int:
    """Handed out in this test."""
    CALLED.append("lent")
    return 4


def earlier(*_: Any) -> int:
    """Handed out in another test."""
    CALLED.append("earlier")
    return 5


class Tool:
    """Class of an instance that is handed out."""

    kind = "tool"

    def __init__(self) -> None:
        self.size, self._secret = 3, "expected"

    def use(self, *_: Any) -> int:
        """Do what the tests wrote."""
        CALLED.append("use")
        return 6

    def _inner(self, *_: Any) -> None:
        CALLED.append("_inner")


class Turn:
    """Lets other tasks go first."""

    def __await__(self) -> Generator[None]:
        yield


async def step() -> None:
    """Coroutine that is handed out."""
    CALLED.append("step")
    await Turn()


def price(*_: Any) -> str:
    """Do what a mock below one that is handed out does when it is called."""
    CALLED.append("price")
    return "expected"


class Shop:
    """Class that a mock stands for."""

    price = other = __enter__ = staticmethod(lambda *_: None)


def store() -> Any:
    """A mock that is handed out: with mocks below it, data that the tests set, and what it expects."""
    made = mock.create_autospec(Shop, instance=True, size=3)
    made.price.side_effect = price
    made.other("expected")
    made.other.return_value = "expected"
    made.method_calls.clear()
    return made


class Wire:
    """A tests' side, and the numbers that a hostile product could name."""

    def __init__(self, asks: int, answers: int) -> None:
        self.side = tests_side.TestsSide(ProductEnvironment(str(Path(__file__).parent)), (frames.ConnectionLost,))
        values = codec.Codec(0)
        tables = object_tables.ObjectTables(values, self.side)
        self.peer = rpc.RpcPeer(frames.FrameConnection(asks, answers), values, tables, self.side)
        self.kept: list[Any] = [earlier, lent, Tool(), store(), step(), asyncio.Event().wait()]
        self.side.capabilities.begin_test()
        self.earlier = values.encode(self.kept[0])[1]
        self.side.capabilities.end_test()
        self.side.capabilities.begin_test()
        self.lent, self.tool, self.mock, self.step, self.sleep = (values.encode(thing)[1] for thing in self.kept[1:])


@contextmanager
def wire(messages: list[Any]) -> Iterator[tuple[Wire, int]]:
    """The tests' side of a wire on which *messages* wait, and nothing after them; where it writes."""
    (asks, product), (answers, heard) = os.pipe(), os.pipe()
    tests = Wire(asks, heard)
    try:
        fcntl.fcntl(product, fcntl.F_SETPIPE_SZ, 1 << 20)
        fcntl.fcntl(answers, fcntl.F_SETPIPE_SZ, 1 << 20)
        os.write(product, b"".join(framed(message) for message in messages))
        os.close(product)
        yield tests, answers
    finally:
        tests.peer.wire.close()
        for coroutine in tests.kept[4:]:
            coroutine.close()
        os.close(answers)


def framed(message: Any) -> bytes:
    body = json.dumps(message).encode()
    return len(body).to_bytes(8, "big") + body


def replies(fd: int) -> list[list[Any]]:
    """All that was written."""
    data = b""
    while piece := os.read(fd, 1 << 20):
        data += piece
    found = []
    while data:
        size = int.from_bytes(data[:8], "big")
        found.append(json.loads(data[8 : 8 + size]))
        data = data[8 + size :]
    return found


def asked(op: str, *parts: Any) -> list[Any]:
    return ["ask", "w", NEWS, op, list(parts)]


def answer(op: str, *parts: Any) -> list[Any]:
    """Answer of the tests to one request."""
    CALLED.clear()
    with wire([asked(op, *parts)]) as (tests, written):
        with pytest.raises(frames.ConnectionLost):
            tests.peer.ask("call")
        return replies(written)[1]


NONE = (["t", []], ["m", 1, "dict", []])
"""No arguments."""


def test_the_numbers_are_those_of_the_things() -> None:
    with wire([]) as (tests, _):
        assert tests.lent != tests.earlier != tests.tool
        assert tests.peer.tables.own[tests.lent] is lent


def numbered() -> tuple[int, ...]:
    with wire([]) as (tests, _):
        return tests.earlier, tests.lent, tests.tool, tests.mock, tests.step, tests.sleep


@pytest.mark.parametrize(("op", "which", "more", "done"), [
    ("call", 1, NONE, ["lent"]),
    ("invoke", 2, ("use", *NONE), ["use"]),
    ("call", 0, NONE, []),
    ("call", 2, NONE, []),
    ("invoke", 2, ("_inner", *NONE), []),
    ("invoke", 2, ("__init__", *NONE), []),
    ("invoke", 2, ("__reduce__", *NONE), []),
    ("invoke", 2, ("__copy__", *NONE), []),
    ("invoke", 2, ("__getattribute__", *NONE), []),
    ("invoke", 2, ("__class__", *NONE), []),
    ("invoke", 1, ("__get__", *NONE), []),
    ("invoke", 1, ("__globals__", *NONE), []),
    ("next", 2, (), []),
    ("next", 4, (), ["step"]),
    ("next", 5, (), []),
    ("call", 4, NONE, []),
    ("invoke", 4, ("send", *NONE), []),
    ("get", 2, ("size",), []),
    ("get", 1, ("__globals__",), []),
    ("method", 2, (0, "use", *NONE), []),
    ("set", 2, ("size", 4), []),
    ("repr", 2, (), []),
    ("input", 1, (), []),
    ("next", 3, (), []),
    ("get", 3, ("size",), []),
])  # fmt: skip
def test_a_request_is_performed_only_if_the_tests_handed_it_out(
    op: str, which: int, more: Any, done: list[str]
) -> None:
    said = answer(op, ["y", numbered()[which]], *more)

    assert done == CALLED
    assert said[0] == ("answer" if done else "error")


@pytest.mark.parametrize(("name", "part"), [("size", 3), ("price", "o"), ("__enter__", "o")])
def test_a_part_of_a_mock_is_another_mock_or_what_the_tests_set(name: str, part: Any) -> None:
    said = answer("invoke", ["y", numbered()[3]], name, *NONE)

    assert (said[0], said[3][0] if part == "o" else said[3]) == ("answer", part)
    assert "expected" not in json.dumps(said)


@pytest.mark.parametrize("name", [
    "return_value", "side_effect", "called", "call_count", "call_args", "call_args_list", "mock_calls", "method_calls",
    "assert_called_with", "assert_any_call", "assert_nothing", "mock_add_spec", "configure_mock", "attach_mock",
    "reset_mock", "await_args", "await_args_list", "await_count", "_mock_children", "_mock_return_value",
    "_get_child_mock", "__class__", "__dict__", "__call__", "__getattr__", "__eq__", "__reduce__", "unknown",
    ["t", ["size"]],
])  # fmt: skip
def test_what_a_mock_expects_or_does_not_have_is_no_part_of_it(name: Any) -> None:
    said = answer("invoke", ["y", numbered()[3]], name, *NONE)

    assert said[0] == "error"
    assert "expected" not in json.dumps(said)


def test_a_mock_below_another_one_is_called_as_it_is() -> None:
    CALLED.clear()
    with wire([]) as (tests, _):
        child = tests.side.perform("invoke", [tests.kept[3], "price", (), {}], [["y", tests.mock], "price", *NONE])
        form = tests.peer.values.encode(child)
        assert tests.side.perform("call", [child, ("a",), {}], [["y", form[1]], *NONE]) == "expected"

        assert tests.kept[3].mock_calls == [mock.call.other("expected"), mock.call.price("a")]
    assert CALLED == ["price"]


class Held:
    """Class of the tests that a mock wraps."""

    wanted = "expected"

    def use(self) -> int:
        """Do what the tests wrote."""
        return 6


@pytest.mark.parametrize(("wrapped", "name", "read"), [
    (Held(), "use", True), (Held(), "wanted", False), (Held, "wanted", False), (os, "getcwd", False),
    ({}, "get", False), (lent, "__globals__", False), (None, "anything", True),
])  # fmt: skip
def test_a_mock_is_no_way_to_what_it_wraps(wrapped: Any, name: str, read: bool) -> None:  # noqa: FBT001  a row
    with wire([]) as (tests, _):
        made = mock.Mock(wraps=wrapped)
        request = [["y", tests.peer.values.encode(made)[1]], name, *NONE]
        if read:
            assert isinstance(tests.side.perform("invoke", [made, name, (), {}], request), mock.Mock)
        else:
            with pytest.raises(TypeError):
                tests.side.perform("invoke", [made, name, (), {}], request)


async def wait() -> int:
    """A coroutine of the tests."""
    return 4


@pytest.mark.parametrize("make", [wait, mock.AsyncMock(return_value=4), mock.create_autospec(wait, return_value=4)])
def test_a_coroutine_of_the_tests_or_of_a_mock_is_stepped(make: Any) -> None:
    with wire([]) as (tests, _):
        made = tests.side.perform("call", [make, (), {}], [["y", tests.peer.values.encode(make)[1]], *NONE])
        number = tests.peer.values.encode(made)[1]
        with pytest.raises(StopIteration) as end:
            tests.side.perform("next", [made], [["y", number]])
        assert end.value.value == 4


@pytest.mark.parametrize("form", [["q", "os", "system"], ["n", "object"], "lent", None, ["m", 1, "list", []], {"y": 8}])
def test_a_request_names_a_number_or_nothing(form: Any) -> None:
    CALLED.clear()
    with wire([asked("call", form, *NONE)]) as (tests, written):
        with pytest.raises((frames.ConnectionLost, exceptions.CannotRunApart)):
            tests.peer.ask("call")
        assert all(said[0] == "error" for said in replies(written)[1:])
    assert CALLED == []


def test_data_of_an_instance_crosses_with_it_and_what_is_private_does_not() -> None:
    with wire([]) as (tests, _):
        form = tests.peer.values.encode(Tool())

    assert form[4][1] == ["size", 3]
    assert "expected" not in json.dumps(form)


WORDS = st.sampled_from(["call", "invoke", "next", "get", "set", "method", "member", "import", "extend", "repr", "dir",
                         "copy", "input", "use", "_inner", "size", "__class__", "__globals__", "format", "price",
                         "other", "return_value", "mock_calls", "call_args", "assert_any_call", "_mock_children",
                         "__enter__", "record"])  # fmt: skip

BASES = st.lists(
    st.builds(lambda n: ["y", n], st.integers(0, 20))
    | st.builds(lambda name: ["n", name], st.sampled_from(sorted(codec.Codec(0).named)))
    | st.builds(lambda name: ["n", f".{name}"], st.sampled_from(sorted(library_values.MADE)))
    | st.just(["C", 9]),
    max_size=3,
)  # fmt: skip

CLASSES = st.builds(
    lambda n, bases, names: ["C", n, ["A", "m", "A", bases, names, [], False, None]],
    st.integers(0, 20), BASES, st.lists(st.sampled_from(["__eq__", "__len__", "size", "__iter__"]), max_size=2),
)  # fmt: skip

FORMS = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 40) | WORDS
    | st.builds(lambda n: ["y", n], st.integers(-2, 40)) | CLASSES
    | st.builds(lambda n, kind, state: ["o", n, kind, state, None], st.integers(0, 40), CLASSES, WORDS | st.none())
    | st.builds(lambda t: [t, 3], st.sampled_from(["m", "o", "C", "k", "i", "b", "q", "M", "w", "p", "v", "n"])),
    lambda inner: st.lists(inner, max_size=3)
    | st.builds(lambda items: ["t", items], st.lists(inner, max_size=3))
    | st.builds(lambda n, items: ["m", n, "dict", items], st.integers(-2, 40), st.lists(inner, max_size=2)),
    max_leaves=6,
)  # fmt: skip

MESSAGES = st.one_of(
    st.builds(lambda op, parts: ["ask", "w", NEWS, op, parts], WORDS, st.lists(FORMS, max_size=5)),
    st.builds(
        lambda op, n, name, more: ["ask", "w", NEWS, op, [["y", n], *name, *more]],
        st.sampled_from(["call", "invoke", "next"]), st.integers(0, 20), st.lists(WORDS, max_size=1),
        st.just(NONE) | st.lists(FORMS, max_size=2),
    ),
    st.builds(lambda parts: ["ask", *parts], st.lists(FORMS, min_size=3, max_size=4)),
    st.builds(lambda kind, parts: [kind, *parts], st.sampled_from(["answer", "error", "said", "x"]),
              st.lists(FORMS, min_size=2, max_size=3)),
)  # fmt: skip


def runs_here(kind: type, known: Collection[type]) -> bool:
    """Return whether *kind*, of the product, has a base in Python that the product does not answer for."""
    return not all(
        type(base) is proxies.ProxyClass or base in (proxies.Proxy, *known) or issubclass(base, BaseException)
        for base in type.mro(kind)
    )


def drive(messages: list[Any]) -> None:
    """Send *messages*, and look at what was performed and what came back."""
    CALLED.clear()
    with wire(messages) as (tests, written):
        with pytest.raises((frames.ConnectionLost, exceptions.CannotRunApart)):
            tests.peer.ask("call")
        capabilities = tests.side.capabilities
        said = replies(written)[1:]
        kinds = list(tests.peer.tables._classes.values())  # noqa: SLF001  no message shows them
        assert not [kind for kind in kinds if runs_here(kind, tests.peer.values.names)]
    assert set(CALLED) <= {"lent", "use", "price", "step"}
    told = json.dumps(said)
    assert "price" in CALLED or "other" in json.dumps(messages) or "expected" not in told
    assert len(CALLED) <= capabilities.conversation.asked
    assert {one[0] for one in said} <= {"answer", "error"}


def drive_product(messages: list[Any]) -> None:
    """Send *messages* to the product's end, and look at how each was answered until the end."""
    (asks, tests), (answers, heard) = os.pipe(), os.pipe()
    pipes = frames.FrameConnection(asks, heard)
    try:
        fcntl.fcntl(answers, fcntl.F_SETPIPE_SZ, 1 << 20)
        os.write(tests, b"".join(framed(message) for message in messages))
        os.close(tests)
        side = product_main.ProductSide([])
        values = codec.Codec(1)
        peer = rpc.RpcPeer(pipes, values, object_tables.ObjectTables(values, side), side)
        with pytest.raises(frames.ConnectionLost):
            peer.serve_all()
    finally:
        pipes.close()
    said = replies(answers)
    os.close(answers)
    assert {one[0] for one in said} <= {"answer", "error"}
    assert len(said) <= len(messages)


ASKS = st.builds(lambda op, parts: ["ask", "w", NEWS, op, parts], WORDS, st.lists(FORMS, max_size=5)) | st.builds(
    lambda kind, parts: [kind, *parts],
    st.sampled_from(["answer", "ask", "said", "x"]),
    st.lists(FORMS, max_size=2),
)


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(ASKS, max_size=6))
def test_hostile_frames_at_the_end_of_the_product_get_an_answer_a_refusal_or_an_end(messages: list[Any]) -> None:
    drive_product(messages)


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(MESSAGES, max_size=6))
def test_hostile_frames_get_data_a_refusal_or_an_end(messages: list[Any]) -> None:
    drive(messages)


PARTS, EACH = 40, 1_250
"""Parts of the proof, with seeds of their own, and sequences of each at either end: 100,000 in all."""


@pytest.mark.proof
@pytest.mark.parametrize("part", range(PARTS))
def test_a_hundred_thousand_sequences_of_hostile_frames(part: int) -> None:
    much = settings(max_examples=EACH, deadline=None, database=None, phases=(Phase.generate,))
    for messages, end in ((MESSAGES, drive), (ASKS, drive_product)):
        seed(part)(much(given(st.lists(messages, max_size=6))(end)))()
