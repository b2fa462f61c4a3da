"""Texts of the product that would lead, as format strings, from what a test puts into them to what the test knows."""

from __future__ import annotations

import pytest

from jumar.child.two_process.wire.files.room_paths import MOST, is_reaching

REACHING = [
    "{user.__init__.__globals__[CARD]}",
    "{user-name.__class__}",
    '{user."x.__class__}',
    "{user[0].__class__!r:>9}",
    "{name:{width.__class__}}",
    "{step.gi_frame.f_locals}",
    "{path.parser.os.sys.modules[golden]}",
    "} {user.__class__",
    "x" * MOST + "{user.__class__}",
]

HARMLESS = [
    "{user.name}",
    "{row.cells[0]}",
    '{"version": "1.2"}',
    "a { color: red; margin: 0.5em }",
    "def __init__(self): pass",
    '{"a":' * 5000 + "1" + "}" * 5000 + " 1.5",
]


@pytest.mark.parametrize("text", REACHING, ids=range(len(REACHING)))
def test_a_template_that_leads_away_from_what_is_put_into_it_is_known(text: str) -> None:
    assert is_reaching(text)


@pytest.mark.parametrize("text", HARMLESS, ids=range(len(HARMLESS)))
def test_other_texts_lead_nowhere(text: str) -> None:
    assert not is_reaching(text)
