"""Reasons of failures, read from what the runner printed."""

from __future__ import annotations

import pytest

from jumar.core.failure_text import REASON_CHARACTERS, find_import_error, find_message, find_reason, split_output

RUST = "thread 'net' panicked at tests/it.rs:2:51:\n"


def test_the_message_is_what_pytest_marks_as_such_or_else_all_but_the_frames() -> None:
    marked = "test_a.py:4: in test_a\n    assert f() == 3\nE   assert 2 == 3\nE    +  where 2 = f()"

    assert find_message(marked) == "assert 2 == 3\n+  where 2 = f()"
    assert find_message("expected 3\nsrc/a.py:4: in f\n    return 2") == "expected 3"
    assert find_message("    indented only") == "indented only"
    assert find_message("    x_test.go:7: bad\n--- FAIL: TestX\n") == "x_test.go:7: bad\n--- FAIL: TestX"
    assert find_message("E\nE   assert 1 == 2\n--- Captured stdout call ---\nE   forged") == "assert 1 == 2"


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
        ("Everything is bad", "Everything is bad"),
        ("Error: cannot connect\nEOF\nExpected: 3", "Error: cannot connect"),
        ("E   assert 1 == 2\n--- Captured stdout call ---\nError: cannot connect\nE   forged", "assert 1 == 2"),
        ("E   ValueError: a\nE\nE   b\nEnd of it", "ValueError: a"),
        (
            f"printed\n\n{RUST}called `Result::unwrap()` on an `Err` value: 1\nnote: run",
            "called `Result::unwrap()` on an `Err` value: 1",
        ),
        (
            f"printed\n{RUST}assertion `left == right` failed\n  left: 2\n right: 3\nnote: run with",
            "assertion `left == right` failed, left: 2, right: 3",
        ),
        (
            "printed\nnote: test did not panic as expected at tests/it.rs:10:4",
            "test did not panic as expected at tests/it.rs:10:4",
        ),
        ('printed\nError: "bad"', 'Error: "bad"'),
        ("printed\n    x_test.go:6: logged\n    x_test.go:7: bad\n--- FAIL: TestX\n", "x_test.go:7: bad"),
        ("--- FAIL: TestX\n    x_test.go:7: bad\n--- FAIL: TestX/one\n", "x_test.go:7: bad"),
        (
            "    x_test.go:7: \n   \tError Trace:\tx_test.go:7\n   \tError:      \tNot equal: \n--- FAIL: TestX",
            "x_test.go:7: Not equal:",
        ),
        ("printed\n--- FAIL: TestX\npanic: boom [recovered, repanicked]\n\ngoroutine N [running]:", "panic: boom"),
        ("printed\n--- FAIL: TestX\n", "--- FAIL: TestX"),
        ("# sample [sample.test]\n./a_test.go:3:28: undefined: nope\n", "./a_test.go:3:28: undefined: nope"),
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
