"""Which replies are a clean review, which object, and which say nothing."""

from __future__ import annotations

from time import process_time

import pytest

from jumar.core.prompts.review import LONGEST, MOST, parse_violations


@pytest.mark.parametrize(
    "reply",
    [
        "CLEAN", "clean", " CLEAN.\n", "**CLEAN**", "`CLEAN`", "```\nCLEAN\n```", "# CLEAN", "> CLEAN", "- CLEAN",
        '"CLEAN"',
        "I went through the rules.\n\nCLEAN", "CLEAN\n\nAll imports resolve.", "<think>is `x` there?</think>CLEAN",
        "1. Imports resolve: CLEAN\n2. Return types: CLEAN", "| imports | CLEAN |\n| returns | OK |",
        "No violations found.",
        "The code is CLEAN.", "✅ CLEAN", "CLEAN ✅", "<answer>CLEAN</answer>", "<answer>\nCLEAN\n</answer>",
        "Verdict: CLEAN", "**Verdict:** CLEAN", "The draft looks clean.", "There are no violations.",
    ],
)  # fmt: skip
def test_a_clean_review(reply: str) -> None:
    assert parse_violations(reply) == ()


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ("app.py: run is missing", ("app.py: run is missing",)),
        ("`__init__` takes no n\napp.py: prints", ("`__init__` takes no n", "app.py: prints")),
        ("I looked.\n\n- a is missing\n- b is missing\n\nPlease mend it.", ("a is missing", "b is missing")),
        ("Violations:\n1. a is missing\n2) b is missing", ("a is missing", "b is missing")),
        ("1. Imports: CLEAN\n2. Names: `run` is missing", ("Names: `run` is missing",)),
        ("a is missing\n~~~~\n```\nCLEAN\n```\n~~~~", ("a is missing",)),
        ("```text\n- a is missing\n  2. b is missing\n```", ("a is missing", "b is missing")),
        ("NOT CLEAN", ("NOT CLEAN",)),
        ("It is not CLEAN: run is missing", ("It is not CLEAN: run is missing",)),
        ("a is missing\n```python\ndef a():\n    pass\n```", ("a is missing",)),
        ("<think>CLEAN</think>\na is missing", ("a is missing",)),
        ("CLEAN code would not print", ("CLEAN code would not print",)),
        ("CLEAN except that run is missing", ("CLEAN except that run is missing",)),
        ("The code is not CLEAN.", ("The code is not CLEAN.",)),
        ("Nothing is CLEAN.", ("Nothing is CLEAN.",)),
        ("The code is CLEAN.\na is missing", ("a is missing",)),
        ("<answer>\na is missing\n</answer>", ("a is missing",)),
        ("<answer>a is missing</answer>", ("a is missing",)),
        ("❌ CLEAN", ("❌ CLEAN",)),
        ("<p>CLEAN</b>", ("<p>CLEAN</b>",)),
    ],
)
def test_a_review_that_objects(reply: str, found: tuple[str, ...]) -> None:
    assert parse_violations(reply) == found


@pytest.mark.parametrize(
    "reply",
    [
        "",
        " \n",
        "---",
        "```python\nx = 1\n```",
        "Here is the code:\n```\nx\n```",
        "```\nx\ny",
        "I'm sorry, I can't.",
        "# Review",
    ],
)
def test_a_review_that_says_nothing_usable(reply: str) -> None:
    assert parse_violations(reply) is None


@pytest.mark.slow
def test_a_review_is_read_only_so_far() -> None:
    found = parse_violations("\n".join(f"- {n} {'x' * 10_000}" for n in range(1000)))

    assert found is not None
    assert len(found) == MOST
    assert all(len(line) == LONGEST for line in found)


@pytest.mark.parametrize("piece", ["```python\n", "<think>", "- ", "|", "`", "a: ", "1. ", "> ", "<a>", "✅"])
def test_a_model_that_cannot_stop_is_read_in_no_time(piece: str) -> None:
    started = process_time()
    parse_violations(piece * 50_000)

    assert process_time() - started < 2
