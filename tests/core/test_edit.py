"""An edit is made where its text stands exactly once; else it is refused in a sentence that helps."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.core.gate.exact_edit import EditRefused, replace_once

TEXT = "def f(a):\n    if a:\n        return 1\n    return 2\n\n\ndef g(b):\n    return f(b) + 1\n"
SMALL = st.text("ab \n\r\t", max_size=12)


def reason(text: str, old: str, new: str = "new") -> str:
    found = replace_once(text, old, new)
    assert isinstance(found, EditRefused)
    return found.reason


def test_what_stands_once_is_replaced_to_the_letter() -> None:
    assert replace_once(TEXT, "        return 1\n", "\treturn 3\r\n") == TEXT.replace(
        "        return 1\n", "\treturn 3\r\n"
    )
    assert replace_once("a.b", "a.b", "") == ""
    assert replace_once("x\\1y", "\\1", "\\g<0>") == "x\\g<0>y", "nothing is a pattern"


@pytest.mark.parametrize(
    ("old", "words"),
    [
        ("", "write_file"),
        ("return ", "lines 3, 4, 8; add surrounding lines"),
        ("a", "line 1, more than once"),
        ("  if a:\n    return 1", "lines 2 to 3 would match but for indentation:\n2:     if a:\n3:         return 1"),
        ("if a:\r\n        return 1", "but for line endings"),
        ("if a:  \n        return 1", "but for trailing whitespace"),
        ("def  f(a):", "line 1 would match but for whitespace"),
        ("DEF f(a):", "but for upper and lower case"),
        ("Def  f(a):", "but for case and whitespace"),
        ("def g(c):", "the closest text is line 7:\n7: def g(b):"),
        ("def g(b):\n    return f(b) - 1\n", "the closest text is lines 7 to 8"),
        ("zzz qqq", "nor anything like it; read the file"),
        ("\n\n\n\n", "nothing but blanks"),
    ],
)
def test_a_refusal_says_where_to_look(old: str, words: str) -> None:
    text = TEXT if old != "a" else "a a"
    assert words in reason(text, old)


def test_an_empty_file_and_an_edit_that_changes_nothing() -> None:
    assert "write_file" in reason("", "x")
    assert "changes nothing" in reason(TEXT, "return 1", "return 1")


def test_occurrences_that_overlap_are_several() -> None:
    assert "not unique" in reason("aaa", "aa")
    assert "1, 2, 3, 4, 5 and more" in reason("x\n" * 9, "x")


def test_a_long_region_is_not_quoted_whole() -> None:
    text = "".join(f"    line_{n} = {n}\n" for n in range(99))
    told = reason(text, text.replace("    ", "\t"))
    assert "lines 1 to 99 would match but for indentation" in told
    assert "87 lines more" in told
    assert len(reason("y" * 9999 + "z", "y" * 9999 + "Z")) < 500


@pytest.mark.slow
@given(SMALL, SMALL, SMALL)
def test_only_a_single_exact_occurrence_is_ever_replaced(text: str, old: str, new: str) -> None:
    starts = [n for n in range(len(text)) if old and text.startswith(old, n)]
    found = replace_once(text, old, new)
    if len(starts) == 1 and old != new:
        assert found == text[: starts[0]] + new + text[starts[0] + len(old) :]
    else:
        assert isinstance(found, EditRefused)
        assert found.reason


BIG = "".join(f"    value_{n * 7919 % 99991} = compute(arg_{n}, {n})\n" for n in range(26000))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "old"),
    [
        (BIG, "value = compute(arg, 3)\n" * 2200),
        (BIG, BIG[300_000:350_000].replace("compute", "komputer")),
        (BIG, BIG[300_000:350_000].replace("    ", "\t")),
        ("\n" * 10**6, "\n" * 50_000),
        ("a" * 10**6, "a" * 25_000 + "b" + "a" * 25_000),
        ("x\n" * 500_000, "x\ny\n" * 12_500),
        ("foo bar " * 125_000, "bar foo baz " * 4_000),
        ("a \n" * 333_333, "a\n" * 12_000 + "b"),
    ],
    ids=["words", "near", "tabs", "blank", "one line", "two letters", "two words", "trailing"],
)
def test_a_refusal_in_a_megabyte_takes_less_than_a_second(text: str, old: str) -> None:
    start = time.process_time()
    assert isinstance(replace_once(text, old, "new"), EditRefused)
    assert time.process_time() - start < 1
