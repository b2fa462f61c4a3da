"""Attacks on two processes: products that lie, break off, forge and spy. Not one of their tests may count as passed."""

from __future__ import annotations

import ast
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from anyio import pytest_plugin

from jumar.child.two_process import codec, object_tables
from jumar.child.two_process.environment.changes import ProductEnvironment
from jumar.child.two_process.test_process import side as tests_side
from jumar.child.two_process.wire import exceptions, frames, rpc
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Ended
from support.judging.two_process_attacks import BREAKING, CHANGES_A_TEST_FILE, FILES_REFUSED, LASTING, REFUSED, SQUARE
from support.judging.two_process_verifier import green, outcomes, reported
from support.processes.sandboxes import s3

NEWS: list[Any] = [[], [], None]
SAMPLE = ("forge_early",)
PATIENT = Suite(timeout_seconds=120.0, test_timeout_seconds=2.0)
"""For all of them together."""


class Limit(BaseException):
    """Stands for a time limit."""


class Lent:
    """Equal to all that there is."""

    def __init__(self) -> None:
        self.size = 3

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


@contextmanager
def product(answers: Callable[[list[Any]], bytes]) -> Iterator[tuple[Any, Any]]:
    """The tests' side, and a product that answers a message with the bytes of *answers*."""
    (asked, asks), (heard, says) = os.pipe(), os.pipe()
    side = tests_side.TestsSide(ProductEnvironment("."), (Limit, frames.ConnectionLost))
    known = codec.Codec(0)
    tables = object_tables.ObjectTables(known, side)
    wire = frames.FrameConnection(heard, asks)

    def serve() -> None:
        with os.fdopen(asked, "rb") as questions, os.fdopen(says, "wb", buffering=0) as replies:
            while size := questions.read(8):
                question = json.loads(questions.read(int.from_bytes(size, "big")))
                with suppress(BrokenPipeError):
                    replies.write(answers(question))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield rpc.RpcPeer(wire, known, tables, side), side
    finally:
        wire.close()
        thread.join()


def framed(message: object) -> bytes:
    body = json.dumps(message).encode()
    return len(body).to_bytes(8, "big") + body


def class_form(name: str, module: str, bases: list[Any], *attributes: str) -> list[Any]:
    return ["C", 9, [name, module, name, bases, [*attributes], [], False, None]]


def thing_form(state: Any, *bases: list[Any]) -> list[Any]:
    return ["o", 11, class_form("A", "m", [*bases]), state, None]


def error_form(kind: list[Any]) -> list[Any]:
    return ["o", 11, kind, [["x"], [], None, None, False], None]


def test_an_answer_is_heard() -> None:
    with product(lambda asked: framed(["answer", asked[1], NEWS, ["t", [1, 2]]])) as (peer, side):
        assert peer.ask("call") == (1, 2)
        assert side.faults == 0


def test_a_class_with_code_in_its_name_has_another_name_here() -> None:
    with product(lambda asked: framed(["answer", asked[1], NEWS, class_form("1;a/b", "m", [["n", "object"]])])) as (
        peer,
        side,
    ):
        assert peer.ask("call").__name__ == "_1_a_b"
        assert side.faults == 0


LIES: dict[str, Callable[[list[Any]], bytes]] = {
    "another word": lambda _: framed(["answer", "0" * 16, NEWS, 4]),
    "no word": lambda _: framed(["answer", 4]),
    "no list": lambda _: framed("answer"),
    "no json": lambda _: (3).to_bytes(8, "big") + b"\x00\x00\x00",
    "endless": lambda _: (1 << 60).to_bytes(8, "big"),
    "deep json": lambda _: (200_000).to_bytes(8, "big") + b"[" * 200_000,
    "long number": lambda _: (100_000).to_bytes(8, "big") + b"9" * 100_000,
    "deep form": lambda asked: framed(["answer", asked[1], NEWS, deep(100)]),
    "no news": lambda asked: framed(["answer", asked[1], None, 4]),
    "no drops": lambda asked: framed(["answer", asked[1], [[], 4, None], 4]),
    "a foreign change": lambda asked: framed(["answer", asked[1], [[[2, [1]]], [], None], 4]),
    "a thing never given": lambda asked: framed(["answer", asked[1], NEWS, ["y", 40]]),
    "a named function": lambda asked: framed(["answer", asked[1], NEWS, ["q", "os", "system"]]),
    "code in the name of an attribute": lambda asked: framed(
        ["answer", asked[1], NEWS, class_form("A", "m", [["n", "object"]], "a;b")]
    ),
    "a path with equality of its own": lambda asked: framed(
        ["answer", asked[1], NEWS, thing_form(None, ["n", ".PurePosixPath"])]
    ),
    "a class below one of the tests": lambda asked: framed(
        ["answer", asked[1], NEWS, thing_form(None, ["y", asked[4][0][2][1]])]
    ),
    "an enumeration": lambda asked: framed(
        ["answer", asked[1], NEWS, ["E", class_form("A", "m", [["n", "object"]]), []]]
    ),
    "a fraction of one number": lambda asked: framed(["answer", asked[1], NEWS, ["v", "Fraction", [3]]]),
    "a fraction of what extends a number": lambda asked: framed(
        ["answer", asked[1], NEWS, ["v", "Fraction", [thing_form(3, ["n", "int"]), 1]]]
    ),
    "a zone by what extends a text": lambda asked: framed(
        ["answer", asked[1], NEWS, ["v", "ZoneInfo", [thing_form("Europe/Berlin", ["n", "str"])]]]
    ),
    "a view of no dict": lambda asked: framed(
        ["answer", asked[1], NEWS, ["v", "mappingproxy", [["m", 13, "list", []]]]]
    ),
    "data of an object as a container": lambda asked: framed(["answer", asked[1], NEWS, ["m", asked[4][0][4][0]]]),
    "a text that a thing would say": lambda asked: framed(
        ["answer", asked[1], NEWS, thing_form(["y", asked[4][0][1]], ["n", "str"])]
    ),
    "a tuple of a list": lambda asked: framed(
        ["answer", asked[1], NEWS, thing_form(["m", 13, "list", [1]], ["n", "tuple"])]
    ),
    "no exception": lambda asked: framed(["error", asked[1], NEWS, 4]),
    "an interrupt": lambda asked: framed(["error", asked[1], NEWS, error_form(["n", "KeyboardInterrupt"])]),
    "an unknown operation": lambda _: framed(["ask", "w", NEWS, "import", ["os"]]) + framed(["answer", "w", NEWS, 1]),
    "an unknown warning": lambda _: framed(["said", "eval", ["t", ["x", "m", "n"]]]),
    "a warning that is no value": lambda _: framed(["said", "UserWarning", [False]]),
    "a warning without a class": lambda _: framed(["said", "UserWarning", "x"]),
    "a record without a message": lambda _: framed(["said", "record", ["shop", 20, None, None, "f", {}]]),
    "a record of a thing": lambda _: framed(["said", "record", ["shop", 20, "x", None, "f", {"it": ["y", 2]}]]),
    "a record of nothing": lambda _: framed(["said", "record", None]),
}


def deep(levels: int) -> list[Any]:
    form: list[Any] = ["t", []]
    for _ in range(levels):
        form = ["t", [form]]
    return form


@pytest.mark.parametrize("name", LIES)
def test_a_product_that_does_not_keep_to_the_rules_is_not_asked_again(name: str) -> None:
    with product(LIES[name]) as (peer, side):
        with pytest.raises((exceptions.CannotRunApart, frames.ConnectionLost)):
            peer.ask("call", Lent())

        assert side.faults
        with pytest.raises(exceptions.ProductLost):
            peer.ask("call")


@pytest.mark.parametrize("name", ["Exception", "BaseException", "AssertionError"])
def test_an_exception_that_failed_assertions_belong_to_has_no_other_name(name: str) -> None:
    form = class_form(name, "builtins", [["n", "Exception"]])
    with product(lambda asked: framed(["answer", asked[1], NEWS, form])) as (peer, _):
        assert not issubclass(AssertionError, peer.ask("call"))


def test_an_exception_of_pytest_has_no_name_in_a_library() -> None:
    """A module of a library that holds pytest itself is no way to it."""
    form = class_form("Failed", pytest_plugin.__name__, [["n", "Exception"]])
    form[2][2] = "pytest.fail.Exception"
    with product(lambda asked: framed(["answer", asked[1], NEWS, form])) as (peer, _):
        assert not issubclass(pytest.fail.Exception, peer.ask("call"))


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("SkipTest", "unittest.case"),
        ("Skipped", "_pytest.outcomes"),
        ("Exit", "_pytest.outcomes"),
        ("XFailed", "pytest"),
    ],
)
def test_an_exception_that_excuses_tests_is_another_one_of_that_name(name: str, module: str) -> None:
    form = error_form(class_form(name, module, [["n", "Exception"]]))
    with product(lambda asked: framed(["error", asked[1], NEWS, form])) as (peer, side):
        with pytest.raises(Exception, match="x") as caught:
            peer.ask("call")

        assert type(caught.value).__name__ == name
        assert not isinstance(caught.value, side.fatal)


def test_a_product_that_asks_on_and_on_after_a_time_limit_is_given_up() -> None:
    called: list[int] = []

    def ring() -> None:
        called.append(1)
        raise Limit

    with product(lambda _: framed(["ask", "w", NEWS, "call", [["y", 2], ["t", []], ["m", 3, "dict", []]]])) as (
        peer,
        side,
    ):
        with pytest.raises(Limit):
            peer.ask("call", ring)

        assert side.faults
        with pytest.raises(exceptions.ProductLost):
            peer.ask("call")
        assert called == [1]


def split_tests(source: str) -> list[str]:
    """*source* once for each of its tests, without the others: what dooms one often dooms the whole file."""
    tree, lines = ast.parse(source), source.splitlines(keepends=True)
    found = [
        node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef) and "test" in node.name.lower()
    ]
    kept = [node for node in found if not node.decorator_list]
    whole = [range(node.lineno - 1, node.end_lineno or node.lineno) for node in kept]
    return [
        "".join(line for n, line in enumerate(lines) if not any(n in other for other in whole if other != own))
        for own in whole
    ]


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, *(pytest.param(n, marks=pytest.mark.proof) for n in (1, 2))])
def test_lies_and_spying_turn_no_test_green(part: int, tmp_path: Path) -> None:
    files, names = {}, sorted(REFUSED)[part::3]
    for name in names:
        source, tests = REFUSED[name]
        files[f"{name}/product_{name}.py"] = source.replace("test_product.py", f"{name}/test_{name}.py")
        renamed = tests.replace("from product import", f"from product_{name} import")
        renamed = renamed.replace("import product\n", f"import product_{name} as product\n")
        alone = split_tests(renamed)
        if len(alone) < 2 or "\n@" in renamed or "test_product.py" in source + tests:
            files[f"{name}/test_{name}.py"] = renamed.replace("test_product.py", f"{name}/test_{name}.py")
        files |= {f"{name}/test_{name}_{n}.py": text for n, text in enumerate(alone)}

    of_paths = [name for name in names if name.startswith(("path_", "texts_"))]
    files |= {f"{case}/{name}.txt": name for case in of_paths for name in ("data", "other")}
    files["zz/product_zz.py"] = "def f(x):\n    return x * x\n"
    files["zz/test_zz.py"] = SQUARE.replace("from product import", "from product_zz import")

    report = reported(tmp_path, files, suite=PATIENT)

    assert {r.id.partition("/")[0] for r in report.results if r.outcome == "passed"} == {"zz"}
    told = (*(r.id for r in report.results), *report.broken)
    assert {where.partition("/")[0] for where in told} == {*names, "zz"}
    assert report.ended is Ended.NORMAL, "the last one shows that none of them broke off"


@pytest.mark.slow
@pytest.mark.parametrize("name", LASTING)
def test_what_crosses_once_is_nothing_in_every_file(name: str, tmp_path: Path) -> None:
    source, test = LASTING[name]
    tests = f'from pathlib import Path\nimport product\nWANTED = "data"\n{test}'
    files = {"product.py": f"{source}def two(): return 2\n", "data.txt": "data"}
    files |= {f"test_{n}.py": tests for n in range(3)}
    files["test_9.py"] = "import product\ndef test_two(): assert product.two() == 2\n"

    report = reported(tmp_path, files, suite=PATIENT)

    assert [str(result.outcome) for result in report.results] == [*["failed"] * 3, "passed"]


@pytest.mark.slow
def test_files_of_the_tests_are_changed_in_no_other_way_than_by_their_path(tmp_path: Path) -> None:
    source, tests = FILES_REFUSED

    report = reported(tmp_path, {"product.py": source, "test_product.py": tests, "data.txt": "4"}, sandbox=s3())

    assert "passed" not in outcomes(report).values()
    assert len(report.results) == 13


@pytest.mark.slow
def test_what_changes_a_file_of_the_tests_leaves_no_evidence_in_it(tmp_path: Path) -> None:
    source, tests = CHANGES_A_TEST_FILE

    report = reported(tmp_path, {"product.py": source, "test_product.py": tests}, suite=PATIENT)

    assert [str(result.outcome) for result in report.results] == ["error"]
    assert list(report.doubted.values()) == ["slow of the tests is not what it was"]


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLE)
def test_breaking_off_turns_no_test_green(name: str, tmp_path: Path) -> None:
    _breaks(name, tmp_path)


@pytest.mark.proof
@pytest.mark.parametrize("name", sorted(set(BREAKING) - set(SAMPLE)))
def test_no_way_of_breaking_off_turns_a_test_green(name: str, tmp_path: Path) -> None:
    _breaks(name, tmp_path)


def _breaks(name: str, folder: Path) -> None:
    source, tests = BREAKING[name]
    files = {"product.py": source, "test_product.py": tests}

    report = reported(folder, files)

    assert not green(report, files)
    assert report.ended in (Ended.NORMAL, Ended.EXIT)
    assert "passed" not in outcomes(report).values() or name == "fork"
