"""Usual styles of tests in two processes, each beside what code under test would make of it if it could."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from support.judging.two_process_verifier import outcomes, reported, run_bodies

Bodies = Mapping[str, str]
"""Body of a test -> its outcome in two processes."""


def check_bodies(folder: Path, product: str, head: str, bodies: Bodies) -> None:
    """Run tests with these *bodies*, and all of *product* and *head* above them, and compare the outcomes."""
    said = outcomes(run_bodies(folder, product, f"from product import *\n{head}", bodies))

    assert {body: said[f"test_{n}"] for n, body in enumerate(bodies)} == bodies


DESCRIPTORS = """
class cached:
    def __init__(self, function): self.function = function
    def __set_name__(self, owner, name): self.name = name
    def __get__(self, thing, kind=None):
        value = thing.__dict__[self.name] = self.function(thing)
        return value

def fields(thing): return thing.__dict__
def shadow(thing): thing.__dict__.update(area=lambda: 4, kind="lie", side=4)
"""

SQUARE = """
class Square:
    kind = "square"
    def __init__(self): self.side, self.asked = 3, 0
    def area(self): return self.side ** 2

    @cached
    def grown(self):
        self.asked += 1
        return self.side + 1
"""

WRITTEN: Bodies = {
    "square = Square(); assert (square.grown, square.grown, square.asked) == (4, 4, 1)": "passed",
    "assert fields(Square()) == {'side': 3, 'asked': 0}": "passed",
    "square = Square(); shadow(square); assert square.side == 3": "passed",
    "square = Square(); shadow(square); assert square.area() == 4": "failed",
}


@pytest.mark.slow
def test_a_descriptor_of_the_product_keeps_data_in_objects_of_the_tests(tmp_path: Path) -> None:
    check_bodies(tmp_path, DESCRIPTORS, SQUARE, WRITTEN)


WRAPPING = """
import functools

def once(function):
    found = []

    @functools.wraps(function)
    def call(*args):
        if not found:
            found.append(function(*args))
        return found[0]

    return call
"""

WRAPPED: Bodies = {
    "ask = mock.Mock(return_value=4); call = once(ask); assert (call(), call(), ask.call_count) == (4, 4, 1)": "passed",
    "ask = mock.Mock(return_value=4); call = once(once(ask)); assert (call(), call(), ask.call_count) == (4, 4, 1)": (
        "passed"
    ),
    "ask = mock.Mock(return_value=4); call = once(ask); assert (call(), call(), ask.call_count) == (4, 4, 2)": "failed",
    "assert [*inspect.signature(once(lambda a, b: a)).parameters] == ['a', 'b']": "passed",
}


@pytest.mark.slow
def test_a_decorator_of_the_product_wraps_a_mock(tmp_path: Path) -> None:
    check_bodies(tmp_path, WRAPPING, "import inspect\nfrom unittest import mock", WRAPPED)


MEMBERS = {
    "product.py": """
from enum import Enum

class State(Enum):
    OPEN = 1
    CLOSED = 2

class Spoken(Enum):
    YES = "yes"
    def __str__(self): return self.value

def turn(state): return State.CLOSED if state is State.OPEN else State.OPEN
""",
    "test_product.py": """
import pytest
from product import Spoken, State, turn

@pytest.mark.parametrize(("state", "due"), [(State.OPEN, State.CLOSED), (State.CLOSED, State.OPEN)])
def test_turn(state, due): assert turn(state) is due

@pytest.mark.parametrize("word", list(Spoken))
def test_word(word): assert word.value == "yes"
""",
}


@pytest.mark.slow
def test_members_of_an_enumeration_of_the_product_name_cases_as_in_one_process(tmp_path: Path) -> None:
    cases = ("turn[State.OPEN-State.CLOSED]", "turn[State.CLOSED-State.OPEN]", "word[yes]")

    assert outcomes(reported(tmp_path, MEMBERS)) == {f"test_{case}": "passed" for case in cases}


OWNED = """
class Listening:
    def __set_name__(self, owner, name): self.owner = owner
    def __get__(self, thing, kind=None):
        self.thing, self.kind = thing, kind
        return self
    def __set__(self, thing, value): thing.kept = value
    def tell(self): return sorted(vars(self.thing)), getattr(self.owner, "due", 0), getattr(self.kind, "due", 0)
    def change(self, name): setattr(self.thing, name, 5)
    def run(self): return self.owner.wanted(self)
    def make(self): return self.kind()
    def give(self): return self.thing
    def hear(self, kind): return kind.wanted(self)

class Field:
    def __set_name__(self, owner, name): self.name = "_" + name
    def __get__(self, thing, kind=None): return self if thing is None else getattr(thing, self.name, 0)
    def __set__(self, thing, value): setattr(thing, self.name, int(value))
"""

OWNERS = """
class Case:
    due, ear, size = 9, Listening(), Field()
    def __init__(self): self.asked = 3
    def wanted(self): return 7

case = Case()
"""

HEARD: Bodies = {
    "assert case.ear.tell() == ([], 0, 0)": "passed",
    "assert case.ear.give() is case": "passed",
    "case.ear.change('asked'); case.ear.change('due'); assert (case.asked, case.due) == (3, 9)": "passed",
    "one = Case(); one.ear.change('found'); assert (one.found, one.ear.tell()[0]) == (5, ['found'])": "passed",
    "one = Case(); one.ear.change('found'); one.found = 8; assert one.ear.tell()[0] == []": "passed",
    "one = Case(); one.size = '4'; assert (one.size, Case().size) == (4, 0)": "passed",
    "one = Case(); one.ear = 6; assert one.kept == 6": "passed",
    "assert case.ear.run() == 7": "failed",
    "assert case.ear.make()": "failed",
    "assert case.ear.hear(Case) == 7": "failed",
}


@pytest.mark.slow
def test_a_descriptor_of_the_product_hears_nothing_of_what_it_lies_in(tmp_path: Path) -> None:
    check_bodies(tmp_path, OWNED, OWNERS, HEARD)


EXCUSES = """
import collections

class Own(Exception): pass

ERRORS, TABLE, ENDS = [KeyError, Own], {n: (OSError,) for n in range(200)}, collections.deque()

def grow(): ERRORS.append(AssertionError)
def deepen(): TABLE[7] = [[Exception]]
def end(): ENDS.append(BaseException)
def fail(): raise Exception("no")
def each(items, handle):
    try: handle(*items)
    except ValueError: pass
"""

FAILING = """
class Stop(ValueError): pass

def check(item):
    try: assert item == 4
    except AssertionError as error: raise Stop("wrong") from error

def refuse(item):
    if item != 4: raise Stop("wrong")
"""

EXCUSED: Bodies = {
    "assert ERRORS[0] is KeyError and TABLE[3] == (OSError,) and not ENDS and issubclass(Own, Exception)": "passed",
    "try: fail()\n    except Exception as error: assert type(error) is Exception": "passed",
    "grow(); assert True": "failed",
    "deepen(); assert True": "failed",
    "end(); assert True": "failed",
    "each([4], check)": "passed",
    "each([5], refuse)": "passed",
    "each([5], check)": "failed",
}


@pytest.mark.slow
def test_nothing_of_the_product_excuses_an_assertion(tmp_path: Path) -> None:
    check_bodies(tmp_path, EXCUSES, FAILING, EXCUSED)


TELLING = """
import pickle

def walk(names, visit):
    for name in names: visit(name)
def clear(visit): visit.__self__.clear()
def peek(done): done(done.args[-1])
def render(items, join): return join(map(str, items))
def dump(value): return pickle.dumps(value)
def forge(): return b"ctest_product\\nAnyText\\n)\\x81."
"""

TOLD = """
import functools, pickle

class AnyText:
    def __eq__(self, other): return isinstance(other, str)
    __hash__ = None

def check(heard, due, found):
    heard.append(found)
    assert found == due
"""

TELLS: Bodies = {
    "left = {'a', 'b'}; walk('ab', left.remove); assert not left": "passed",
    "heard = []; walk([4, 4], functools.partial(check, heard, 4)); assert heard == [4, 4]": "passed",
    "walk([5], functools.partial(check, [], 4))": "failed",
    "assert render([1, 2], ', '.join) == '1, 2'": "passed",
    "assert pickle.loads(dump({'a': 1})) == {'a': 1}": "passed",
    "left = {'a', 'b'}; clear(left.remove); assert not left": "failed",
    "peek(functools.partial(check, [], 4))": "failed",
    "assert pickle.loads(forge()) == 'a'": "failed",
}


@pytest.mark.slow
def test_a_method_of_a_value_or_a_partial_function_tells_nothing(tmp_path: Path) -> None:
    check_bodies(tmp_path, TELLING, TOLD, TELLS)


GENERATORS = """
def count():
    yield 1
    yield 2

class generator:
    __module__ = "builtins"
    def __eq__(self, other): return True

def lie(): return generator()
"""

GENERATED: Bodies = {
    "assert isinstance(count(), types.GeneratorType) and inspect.isgenerator(count())": "passed",
    "assert list(count()) == [1, 2]": "passed",
    "assert isinstance(count, types.GeneratorType)": "failed",
    "assert isinstance(lie(), types.GeneratorType) and lie() == [1, 2]": "failed",
}


@pytest.mark.slow
def test_a_generator_of_the_product_is_one(tmp_path: Path) -> None:
    check_bodies(tmp_path, GENERATORS, "import inspect, types", GENERATED)


EXTENDED = """
class Base:
    def same(self): return self
    def copy(self): return type(self)()

def hold(thing, n): return thing
def make_below(n): return Base.__subclasses__()[0]()
"""

OWN_EQUALITY: Bodies = {
    "assert Same() == 3": "passed",
    "assert Other().same() is not None and Other().copy() is not None": "passed",
    "assert Same().same() == 3": "failed",
    "assert Same().copy() == 3": "failed",
    "assert hold(Same(), 2) == 4": "failed",
    "assert make_below(2) == 4": "failed",
}


@pytest.mark.slow
def test_an_object_with_an_equality_of_the_tests_is_evidence_as_the_test_made_it(tmp_path: Path) -> None:
    head = """
class Same(Base):
    def __eq__(self, other): return True

class Other(Base):
    def tell(self): return 1
"""
    check_bodies(tmp_path, EXTENDED, head, OWN_EQUALITY)


SUBCLASSES = """
import collections, io

class Last(collections.deque):
    def newest(self): return self[-1]

class Lines(io.StringIO):
    def first(self): return self.getvalue().split("\\n")[0]

class Raw(io.BytesIO): pass

class Same(int):
    def twice(self): return 2 * self

class Other(int):
    numerator = denominator = property(lambda self: 0)

def last(size=None): return Last([1, 2, 3], size)
def lines(): return Lines("a\\nb")
def raw(): return Raw(b"ab")
def same(): return Same(3)
def other(): return Other(3)
"""

OF_SUBCLASSES: Bodies = {
    "assert last() == collections.deque([1, 2, 3]) and last().newest() == 3": "passed",
    "assert list(last(2)) == [2, 3] and last(2).maxlen == 2": "passed",
    "assert lines().first() == 'a' and lines().getvalue() == 'a\\nb'": "passed",
    "assert raw().getvalue() == b'ab'": "passed",
    "assert same().numerator == 3 and Fraction(5, 2) < same() < Fraction(7, 2) and same().twice() == 6": "passed",
    "assert Fraction(7, 2) <= other() <= Fraction(5, 2)": "failed",
    "assert other().numerator == 0": "failed",
}


@pytest.mark.slow
def test_what_extends_a_container_or_a_number_has_the_content_and_the_data_of_it(tmp_path: Path) -> None:
    check_bodies(tmp_path, SUBCLASSES, "import collections\nfrom fractions import Fraction", OF_SUBCLASSES)


LIBRARY = """
import argparse, http, re, types

class Equal:
    def __eq__(self, other): return True
    __hash__ = None

class Status(int):
    __eq__, __hash__ = Equal.__eq__, int.__hash__

class Space(Equal):
    asked = 0
    @property
    def __dict__(self):
        Space.asked += 1
        return {"n": Space.asked}

Status.__module__, Status.__qualname__ = "http", "HTTPStatus"
Space.__module__, Space.__qualname__, Space.__name__ = "types", "SimpleNamespace", "SimpleNamespace"

def status(number=200): return http.HTTPStatus(number)
def lie(): return Status(404)
def odd(): return Status(7)
def ignoring(): return re.I | re.M
def make(**held): return types.SimpleNamespace(**held)
def parse(*words):
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int)
    return parser.parse_args(words)
def hide(): return types.SimpleNamespace(n=Equal())
def space(): return Space()
"""

VALUES: Bodies = {
    "assert status() is HTTPStatus.OK and status().phrase == 'OK'": "passed",
    "assert status(404) in {HTTPStatus.NOT_FOUND} and ignoring() == re.I | re.M": "passed",
    "assert parse('--n', '3') == argparse.Namespace(n=3) != parse()": "passed",
    "assert [make(n=make(m=2))] == [SimpleNamespace(n=SimpleNamespace(m=2))]": "passed",
    "assert make(n=1) != SimpleNamespace(n=2)": "passed",
    "assert make(n=1) == 1": "failed",
    "assert lie() == 200": "failed",
    "assert hide() == SimpleNamespace(n=1)": "failed",
    "assert space() == SimpleNamespace(n=3)": "failed",
    "assert space() == Space()": "failed",
    "assert make(n=1) == Space()": "failed",
    "assert odd() == 200": "failed",
}


@pytest.mark.slow
def test_enumerations_and_namespaces_of_libraries_are_what_they_hold(tmp_path: Path) -> None:
    head = "import argparse, re\nfrom http import HTTPStatus\nfrom types import SimpleNamespace\n"
    check_bodies(tmp_path, LIBRARY, head, VALUES)


PROTOCOLS = """
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

@runtime_checkable
class HasArea(Protocol):
    def area(self) -> float: ...

@dataclass
class Square:
    side: int
    def area(self): return self.side ** 2

class Lying(type):
    def __instancecheck__(cls, thing): return cls.__subclasscheck__(thing)
    def __subclasscheck__(cls, kind):
        Liar.heard = kind
        return True

class Liar(metaclass=Lying): pass
class LyingError(Exception, metaclass=Lying): pass
def hear(): return Liar.heard
def one(): return 1
"""

TRYING = "try: assert one() == 2\n    except Exception as error: assert isinstance(error, {})"

BELONGING: Bodies = {
    "assert isinstance(Square(2), HasArea) and isinstance(Square(2), (str, HasArea))": "passed",
    "assert isinstance(Blob(), HasArea) and not isinstance(3, HasArea) and not isinstance(object(), HasArea)": "passed",
    "assert issubclass(Square, HasArea) and not issubclass(int, HasArea)": "passed",
    "wanted = 12345; assert isinstance(wanted, Liar) and hear() == wanted": "failed",
    "wanted = Blob(); assert isinstance(wanted, Liar) and hear() is wanted": "failed",
    "with pytest.raises(LyingError): assert one() == 2": "failed",
    "with pytest.raises(Liar): assert one() == 2": "failed",
    TRYING.format("LyingError"): "failed",
    TRYING.format("Liar"): "failed",
    TRYING.format("HasArea"): "failed",
}


@pytest.mark.slow
def test_a_protocol_says_what_belongs_to_it_and_hears_no_value(tmp_path: Path) -> None:
    head = "import pytest\n\nclass Blob:\n    def area(self): return 1\n"
    check_bodies(tmp_path, PROTOCOLS, head, BELONGING)


LOGS = """
import builtins, logging

class Broken(Exception): pass
class Ends(StopIteration): pass
class Mixed(ValueError, StopIteration): pass
class Equal(ValueError):
    def __eq__(self, other): return True
    __hash__ = None

def log(name, *args):
    kind = globals().get(name) or getattr(builtins, name)
    try: raise kind(*args)
    except BaseException: logging.getLogger("shop").exception("no")

def lie():
    logging.getLogger("shop").error("no", exc_info=(AssertionError, Equal("lie"), None))
"""

LOGGED: Bodies = {
    "log('RuntimeError', 'x', 3); assert caplog.records[0].exc_info[0] is RuntimeError": "passed",
    "log('KeyError', 'x'); assert caplog.records[0].exc_info[1].args == ('x',) and 'KeyError' in caplog.text": "passed",
    "log('Broken', 'x'); kind, error, _ = caplog.records[0].exc_info; assert kind is Broken and str(error) == 'x'":
        "passed",
    "log('Broken', 'x'); assert isinstance(caplog.records[0].exc_info[1], Broken)": "passed",
    "log('Broken', []); assert str(caplog.records[0].exc_info[1]) == '[]'": "passed",
    "log('StopIteration'); assert caplog.messages == ['no'] and not caplog.records[0].exc_info": "passed",
    "log('Ends'); raise caplog.records[0].exc_info[1]": "failed",
    "log('SystemExit'); assert not caplog.records[0].exc_info": "passed",
    "log('Mixed'); assert not isinstance(caplog.records[0].exc_info[1], StopIteration)": "passed",
    "lie(); assert caplog.records[0].exc_info[1] == 3": "failed",
    "lie(); assert caplog.records[0].exc_info[0] is AssertionError": "failed",
}  # fmt: skip


@pytest.mark.slow
def test_a_record_of_a_log_has_its_exception_as_data(tmp_path: Path) -> None:
    check_bodies(tmp_path, LOGS, "", LOGGED)


ENDING = """
class Peekable:
    def __init__(self, items): self.items = iter(items)
    def peek(self): return next(self.items)

class Ends(StopIteration): pass

def stop(*_): raise StopIteration
def end(): raise Ends
"""

ENDED: Bodies = {
    "items = Peekable('')\n    with pytest.raises(StopIteration): items.peek()": "passed",
    "with raises(StopIteration):\n        stop(\n            1)": "passed",
    "with raises(StopIteration): end()": "failed",
    "with raises(StopIteration): list(map(stop, [1]))": "failed",
    "with raises(StopIteration):\n        list(map(fail, map(stop, [1])))\n        raise StopIteration": "failed",
    "with raises(StopIteration): fail(stop())": "failed",
    "with raises(StopIteration): assert stop() == 1": "failed",
    "with raises((StopIteration, AssertionError)): stop()": "failed",
    "for one in map(stop, [1]): assert one == 3": "failed",
}


@pytest.mark.slow
def test_one_call_may_end_by_the_stop_that_a_test_awaits(tmp_path: Path) -> None:
    head = "import pytest\nfrom pytest import raises\n\ndef fail(_): assert 1 == 2\n"
    check_bodies(tmp_path, ENDING, head, ENDED)


DECIMALS = """
import decimal

def divide(): return decimal.Decimal(1) / 3
def quantize(number): return number.quantize(decimal.Decimal("0.1"))
def choose(digits): decimal.getcontext().prec = digits
"""

COMPUTED: Bodies = {
    "with localcontext() as context:\n        context.prec = 4\n        assert divide() == Decimal('0.3333')\n"
    "    assert len(str(divide())) == 30": "passed",
    "with localcontext(Context(rounding=ROUND_DOWN)): assert quantize(Decimal('0.19')) == Decimal('0.1')": "passed",
    "assert quantize(Decimal('0.19')) == Decimal('0.2')": "passed",
    "choose(2); assert divide() == Decimal('0.33')": "passed",
}


@pytest.mark.slow
def test_decimal_numbers_are_computed_as_a_test_asks_for(tmp_path: Path) -> None:
    head = "from decimal import ROUND_DOWN, Context, Decimal, localcontext\n"
    check_bodies(tmp_path, DECIMALS, head, COMPUTED)
