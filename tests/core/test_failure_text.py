"""Reasons of failures, read from what the runner printed."""

from __future__ import annotations

import pytest

from jumar.core.failure_text import REASON_CHARACTERS, find_import_error, find_message, find_reason, split_output


def test_the_message_is_what_pytest_marks_as_such_or_else_all_but_the_frames() -> None:
    marked = "test_a.py:4: in test_a\n    assert f() == 3\nE   assert 2 == 3\nE    +  where 2 = f()"

    assert find_message(marked) == "assert 2 == 3\n+  where 2 = f()"
    assert find_message("expected 3\nsrc/a.py:4: in f\n    return 2") == "expected 3"
    assert find_message("    indented only") == "indented only"


@pytest.mark.parametrize(
    ("excerpt", "reason"),
    [
        ("a.py:4: in f\n    assert g() == 3\nE   assert 2 == 3\nE    +  where 2 = g()", "assert 2 == 3"),
        ("E   AssertionError: sums\nE   assert 2 == 3", "AssertionError: sums"),
        ("E   KeyError: 1\n\nDuring handling of it:\na.py:8: in f\n    x\nE   ValueError: two", "ValueError: two"),
        ("E   a.b.TooSlow: ran longer than 2 s", "TooSlow: ran longer than 2 s"),
        ("E   a.b.c is no name", "a.b.c is no name"),
        (
            "E     File \"/room/conf.py\", line 3\nE       def f(\nE   SyntaxError: '(' was never closed",
            "SyntaxError: '(' was never closed (conf.py, line 3)",
        ),
        ("async functions need a plugin.\nFor example:\n  - one", "async functions need a plugin."),
        ("x_test.go:5: got 1, want 2\n", "x_test.go:5: got 1, want 2"),
        ("E   \x1b[31mred\x1b[0m", "red"),
        ("", ""),
    ],
)
def test_a_reason_is_the_first_line_of_the_last_error(excerpt: str, reason: str) -> None:
    assert find_reason(excerpt) == reason


def test_a_reason_is_short() -> None:
    assert len(find_reason("E   assert " + "x" * 1000)) == REASON_CHARACTERS


def test_output_is_split_at_the_names_of_failing_tests_alone() -> None:
    output = (
        "1 of 3 passed\n\nFAILED t.py::a\nE x\nFAILED t.py::zzz\n\nIMPORT_ERROR t.py::b\nE y\n\nFAILED t.py::a\nE z"
    )

    assert split_output(output, ["t.py::a", "t.py::b"]) == {
        "t.py::a": "E x\nFAILED t.py::zzz",
        "t.py::b": "E y",
    }


def test_tests_that_cannot_be_imported_have_one_reason() -> None:
    broken = "0 of 2 passed\n\nIMPORT_ERROR t.py::a\nE   ImportError: x\n\nIMPORT_ERROR t.py::b\nE   ImportError: x"

    assert find_import_error(broken, ["t.py::a", "t.py::b"]) == "ImportError: x"
    assert find_import_error(broken.replace("IMPORT_ERROR t.py::b", "FAILED t.py::b"), ["t.py::a", "t.py::b"]) == ""
    assert find_import_error("", ["t.py::a"]) == ""
