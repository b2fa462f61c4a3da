"""Names of modules and data of objects are sent again only where they changed: never as they were."""

from __future__ import annotations

import re
import types
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jumar.child.two_process.environment.module_names import KnownNames, WatchedNames
from jumar.child.two_process.object_data import OwnFields
from jumar.child.two_process.wire.containers.shared_container import FIELDS, SharedContainer
from support.judging.two_process_verifier import outcomes, reported

PRODUCT = """
import warnings

def one(): return 1
def two(): return 2

current = one
count = 0
WORD, LIMIT, MARK = "a", 1, object()
last = []

class Kept: pass

class method:
    __module__ = "builtins"

class Kind(type):
    CALLED = property(lambda kind: method())
    ANSWER = property(lambda kind: last[-1][0])
    def __getattribute__(kind, name):
        return name if name == "carl" else type.__getattribute__(kind, name)

class Level(metaclass=Kind):
    FULL, LAST = object(), (1, "a")
    ANSWER = property(lambda self: last[-1][0])
    @classmethod
    def READ(cls): return 1

levels = Level()

class Newest(type):
    latest = property(lambda kind: kind())

class Member(metaclass=Newest): pass

def grow():
    global LIMIT
    LIMIT += 1

def level(text):
    last.append([text])
    return text

def switch():
    global current
    current = two if current is one else one

def drop():
    global Kept
    del Kept

def __getattr__(name):
    if name == "OLD":
        warnings.warn("use one", DeprecationWarning)
        return one
    if name in ("ANSWER", "ONCE", "LATER") and (last or name == "ONCE"):
        return last[-1][0] if last else "b"
    if name == "MADE":
        return Kept()
    if name == "Latest":
        return type("Latest", (), {})
    raise AttributeError(name)

def read(thing): return (thing.level, len(thing.names))
def hand_back(thing): return thing
"""

TESTS = """
import pytest

import product

class Thing:
    def __init__(self): self.level, self._calls, self.names = 1, 0, ["a"]

def test_twice():
    assert product.current() == 1 and product.current() == 1

def test_the_product_sets_it():
    assert product.current() == 1
    product.switch()
    assert product.current() == 2
    product.switch()
    assert product.current() == 1

def test_the_test_sets_it(monkeypatch):
    assert product.one() == 1
    with monkeypatch.context() as patch:
        patch.setattr(product, "one", product.two)
        assert product.one() == 2
    assert product.one() == 1

def test_it_is_computed():
    for _ in range(2):
        with pytest.warns(DeprecationWarning):
            assert product.OLD() == 1

def test_a_constant():
    assert product.WORD == "a" and product.WORD == "a" and product.MARK is product.MARK

def test_a_constant_that_the_test_sets(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(product, "WORD", "b")
        assert product.WORD == "b"
    assert product.WORD == "a"

def test_a_number_in_capitals_grows():
    assert product.LIMIT == 1
    product.grow()
    assert product.LIMIT == 2

def test_a_constant_of_a_class():
    assert product.Level.FULL is product.Level.FULL and product.Level.LAST == (1, "a") == product.Level.LAST
    assert product.Level.READ() == 1 == product.levels.READ() == product.levels.READ()

def test_a_constant_of_a_class_follows():
    assert product.level("b") == product.Level.ANSWER
    assert product.level("c") == product.Level.ANSWER

def test_a_constant_of_a_class_is_no_method_by_its_name_follows():
    assert product.Level.CALLED is not product.Level.CALLED

def test_a_constant_is_a_member_that_follows():
    assert product.Member.latest is not product.Member.latest

def test_a_constant_is_a_class_that_follows():
    assert product.Latest is not product.Latest

def test_a_constant_of_an_object_follows():
    assert product.level("b") == product.levels.ANSWER
    assert product.level("c") == product.levels.ANSWER

class Wanted(product.Level):
    ann, bob, carl = True, False, True

def test_what_a_class_of_the_tests_says():
    assert Wanted.ann is True and Wanted.bob is False

def test_what_the_product_says_in_its_place():
    assert Wanted.carl == "carl"

def test_a_constant_follows():
    assert product.level("b") == product.ANSWER
    assert product.level("c") == product.ANSWER

def test_a_constant_that_is_first_read_after_the_answer_follows():
    assert product.level("d") == product.ONCE

def test_a_constant_that_was_not_there_follows():
    assert product.level("d") == product.LATER

def test_a_constant_is_made():
    assert product.MADE is not product.MADE

def test_it_is_deleted():
    assert product.Kept() is not None
    product.drop()
    with pytest.raises(AttributeError):
        product.Kept()

def test_data():
    thing = Thing()
    assert product.read(thing) == (1, 1)
    thing._calls += 1
    assert product.read(thing) == (1, 1)
    thing.level = 2
    assert product.read(thing) == (2, 1)
    thing.level = 1
    assert product.read(thing) == (1, 1)
    thing.names.append("b")
    assert product.read(thing) == (1, 2)
    thing.__dict__ = {"level": 5, "names": []}
    assert product.read(thing) == (5, 0)
    del thing.level
    with pytest.raises(AttributeError):
        product.read(thing)

def test_many_objects():
    things = [Thing() for _ in range(200)]
    assert all(product.hand_back(each) is each for each in things)
    things[150].level = 7
    assert product.read(things[150]) == (7, 1)
"""


@pytest.mark.slow
def test_what_changes_is_seen_changed(tmp_path: Path) -> None:
    said = outcomes(reported(tmp_path, {"product.py": PRODUCT, "test_product.py": TESTS}))

    names = re.findall(r"def (test_(?:a_constant\w*_(?:follows|is_made)|a_number\w+|what_the_product_says\w+))", TESTS)
    following = dict.fromkeys(names, "failed")
    assert {name: outcome for name, outcome in said.items() if outcome != "passed"} == following
    assert len(said) == TESTS.count("def test_")


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["ask", 0, 1, "data", "delete"])), max_size=30))
def test_a_known_name_is_what_the_module_has(steps: list[tuple[str, Any]]) -> None:
    module, number = types.ModuleType("product"), 4
    values = {0: lambda: 0, 1: lambda: 1, "data": 5}
    vars(module).update(a=values[0], b=values[1])
    watched, known = WatchedNames(), KnownNames(callable, str, ())

    def ask(name: str) -> Any:
        found = vars(module).get(name)
        watched.note(module, number, name, found)
        known.follow(watched.report())
        return found

    for name, step in steps:
        if step == "ask":
            assert known.ask(number, name, lambda: ask(name)) is vars(module).get(name)  # noqa: B023  called at once
            continue
        vars(module)[name] = values.get(step)
        if step == "delete":
            del vars(module)[name]
        known.follow(watched.report())  # the product did it while it was asked for something


@pytest.mark.parametrize("told", [5, [], ["a", []], [0], [0, [[1]]], [0, [["a", "b"]]], [0, [[1, 2]]], [True, []]])
def test_what_is_no_report_of_names_is_refused(told: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        KnownNames(callable, str, ()).follow(told)


class Thing:
    """An object of the tests."""


class Other:
    """Another class of the tests."""


def test_the_product_sets_no_name_of_python_itself() -> None:
    thing = Thing()
    vars(thing).update(level=1, _own=2)
    fields = OwnFields(thing, lambda _: True)

    fields.write({"__class__": Other, "__dict__": {}, "_own": 3, "_new": 4, "level": 5})
    untouched = (type(thing), dict(vars(thing)))
    fields.keep()

    assert untouched == (Thing, {"level": 1, "_own": 2})
    assert (type(thing), vars(thing)) == (Thing, {"level": 5, "_own": 3, "_new": 4})


STEPS = st.tuples(st.sampled_from(["level", "_level", "seen"]), st.sampled_from([None, 1, 2, "told", "look"]))


BACK = [("level", step) for step in (1, "told", "look", 2, "told", 1, "look")]


@pytest.mark.slow
@settings(max_examples=200)
@example(BACK)
@given(st.lists(STEPS, max_size=30))
def test_data_of_an_object_is_told_where_it_differs_from_what_is_known(steps: list[tuple[str, Any]]) -> None:
    thing = Thing()
    entry = SharedContainer(OwnFields(thing, lambda _: True), FIELDS)
    entry.note_seen(entry.get_content())
    for name, step in steps:
        now = [part for pair in vars(thing).items() if pair[0][0] != "_" for part in pair]
        if step == "told":
            entry.note_seen(entry.get_content())
        elif step == "look":
            assert entry.find_change() == (None if entry.seen == now else now)
        elif step is None:
            vars(thing).pop(name, None)
        else:
            setattr(thing, name, step)


COLOURS = """
import enum, sys, types

heard = []

class Hearing(types.ModuleType):
    def __getattribute__(self, name):
        if name in ("RED", "BLUE", "REDS", "BLUES", "PINK", "LILAC"):
            heard.append(name)
        return super().__getattribute__(name)

class Tones(enum.EnumMeta):
    def __getattribute__(kind, name):
        if name in ("WARM", "COLD"):
            heard.append(name)
        return super().__getattribute__(name)
    def __getitem__(kind, name):
        heard.append(name)
        return super().__getitem__(name)
    def __call__(kind, *given):
        heard.extend(given)
        return super().__call__(*given)

class Tone(enum.Enum, metaclass=Tones):
    WARM = "warm"
    COLD = "cold"

RED, BLUE, PINK, LILAC = "red", "blue", "pink", "lilac"
REDS, BLUES = ["red"], ["blue"]
sys.modules[__name__].__class__ = Hearing

def tell():
    told = list(heard)
    heard.clear()
    return told
"""

READING = """
import pytest

import product_colours as colours

colours.Tone.WARM, colours.Tone("warm")  # what is looked at first is listed
READS = {
    "a name": (lambda: colours.RED, lambda: colours.BLUE),
    "a member": (lambda: colours.Tone.WARM, lambda: colours.Tone.COLD),
    "an item": (lambda: colours.Tone["WARM"], lambda: colours.Tone["COLD"]),
    "a list": (lambda: colours.REDS, lambda: colours.BLUES),
    "a computed name": (lambda: getattr(colours, "PI" + "NK"), lambda: getattr(colours, "LI" + "LAC")),
    "a computed item": (lambda: colours.Tone["WA" + "RM"], lambda: colours.Tone["CO" + "LD"]),
    "a value": (lambda: colours.Tone("warm"), lambda: colours.Tone("cold")),
}

@pytest.mark.parametrize("how", READS)
def test_told(how):
    colours.tell()
    told = []
    for read in READS[how]:
        read()
        told.append(colours.tell())
    assert told[0] == told[1]
"""


@pytest.mark.slow
def test_the_code_does_not_hear_which_name_a_test_reads(tmp_path: Path) -> None:
    said = outcomes(reported(tmp_path, {"product_colours.py": COLOURS, "test_colours.py": READING}))

    assert {*said.values()} == {"passed"}
    assert len(said) == READING.count("(lambda")


UNLISTED = """
import enum

class Tones(enum.EnumMeta):
    __members__ = property(lambda kind: {})
    def __dir__(kind):
        return []

class Tone(enum.Enum, metaclass=Tones):
    WARM = "warm"

ERRORS = {"parse": AssertionError}
def __getattr__(name):
    if name == "Late":
        return KeyError
    raise AttributeError(name)
"""

ASKING = """
import pytest

import product_tones as tones

def test_a_member_that_is_not_listed():
    assert tones.Tone.WARM is tones.Tone.WARM

def test_a_member_by_value_where_none_is_listed():
    assert tones.Tone("warm") is not None

def test_a_class_that_is_not_listed():
    with pytest.raises(tones.Late):
        raise KeyError

def test_a_table_that_was_read_among_others():
    assert tones.ERRORS["parse"] is not None
"""


@pytest.mark.slow
def test_what_is_not_listed_or_was_doubtful_among_others_is_no_evidence(tmp_path: Path) -> None:
    said = outcomes(reported(tmp_path, {"product_tones.py": UNLISTED, "test_tones.py": ASKING}))

    assert said == dict.fromkeys(re.findall("def (test_[a-z_]+)", ASKING), "failed")
