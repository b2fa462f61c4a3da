"""Things that the tests made themselves: a method in them that compares is one of the product."""

from __future__ import annotations

from typing import Any

import pytest

from jumar.child.two_process.wire.own_instances import OwnInstances


@pytest.mark.parametrize(
    ("found", "name", "thing", "wrong"),
    [
        (str, "startswith", range(3), True),
        (len, "issuperset", range(3), True),
        (3, "count", range(3), False),
        (str, "title", range(3), False),
        ("text".startswith, "startswith", "text", False),
        (str, "find", range, True),
    ],
)
def test_what_compares_for_a_text_or_a_set_is_a_method(found: Any, name: str, thing: Any, *, wrong: bool) -> None:
    assert bool(OwnInstances(lambda _: None, print).note_method(found, name, thing, known=thing is range)) is wrong
