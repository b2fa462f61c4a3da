"""Containers that the tests made themselves: one that has whatever text it is asked for says nothing."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

import pytest

from jumar.child.two_process.wire.own_instances import OwnInstances


class Lower:
    """Has all texts in small letters."""

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and text.islower()


class Fussy:
    """Refuses what it does not know."""

    def __contains__(self, text: object) -> bool:
        return bool({"abc": True}[str(text)])


def ask(box: Container[Any]) -> Callable[..., bool]:
    return lambda given, _: given[0] in box


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


@pytest.mark.parametrize(
    ("box", "needle", "wrong"),
    [
        (Lower(), "abc", True),
        (Lower(), "a.b", True),
        (Lower(), "a", False),
        (Fussy(), "abc", False),
        (range(9), 3, False),
        ("the text", "text", False),
        ({"a", "b"}, "a", False),
    ],
)
def test_a_box_is_asked_for_texts_by_chance_that_look_alike(box: Container[Any], needle: Any, *, wrong: bool) -> None:
    own = OwnInstances(lambda _: None, print)
    assert own.note_held(needle in box or wrong, box, needle, ask(box))
    assert (own.find_boundless() != "") is wrong
    assert own.find_boundless() == ""
