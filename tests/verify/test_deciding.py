"""Objects that have a say in what they equal are found, whatever they, their classes or what they hold say of it."""

from __future__ import annotations

import collections
import email.charset
import fractions
import pathlib
import types
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from jumar.child.challenge.deciding import find_deciding, list_deciding
from jumar.child.challenge.known_assertions import is_kin


class Lax:
    """Equal to everything."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True


class Meta(type):
    """Leaves its classes with the methods of another class, which `type.mro` does not know of."""

    def mro(cls) -> list[type]:
        """Return the order in which methods are looked for."""
        return [cls, Lax, object]


class EqualClasses(type):
    """Classes that are equal to everything."""

    __hash__ = type.__hash__

    def __eq__(cls, other: object) -> bool:
        return True


class Ordered(metaclass=Meta):
    """Has an equality by its metaclass alone."""


class Key(str):
    """A name that is another one when it is looked for later."""

    __slots__ = ()

    def __hash__(self) -> int:
        return 5


class SaysItIsAClass(Lax):
    """Is no class."""

    __class__ = type  # type: ignore[assignment]


class Held:
    """Answers what a class of a library asks of what it holds."""

    def lower(self) -> Any:
        """Return what is equal to everything."""
        return Lax()


class Data(collections.UserString):
    """Says by its data what it is."""

    @property
    def data(self) -> Any:
        """Return what is equal to everything."""
        return Lax()

    @data.setter
    def data(self, value: object) -> None:
        """Forget it."""


class Named(collections.UserDict[str, int]):
    """Adds a method of its own name."""

    def count(self) -> int:
        """Return how many there are."""
        return len(self.data)


def hold(name: str, value: object, thing: Any) -> Any:
    """*thing*, which holds *value* under *name*."""
    vars(thing)[name] = value
    return thing


STRANGE = (Lax, Meta, EqualClasses, Ordered, SaysItIsAClass, Held, Data, Named)
"""Classes that are those of the code under test."""

NAMES: Any = {Key("__eq__"): Lax.__eq__}


def decides(kind: type) -> bool:
    return any(any(base is one for one in STRANGE) for base in list_deciding(kind)) or kind.__name__ == "Keyed"


def is_strange(kind: type) -> bool:
    return any(kind is one for one in STRANGE)


@pytest.mark.parametrize(
    "value",
    [
        Ordered(),
        types.new_class("Keyed", (), {}, lambda body: body.update(NAMES))(),
        [SaysItIsAClass()],
        [EqualClasses("Equal", (), {})],
        hold("items", list, collections.UserDict()),
        hold("items", list, collections.UserDict(a={"b": 1})),
        hold("input_charset", Held(), email.charset.Charset()),
        Data("a"),
        [collections.UserList([Lax()])],
    ],
)
def test_who_decides_by_what_a_library_asks_for_is_found(value: Any) -> None:
    assert find_deciding(value, decides, is_strange)


@pytest.mark.parametrize(
    "make",
    [
        lambda: fractions.Fraction(1, 3),
        lambda: pathlib.PurePath("a", "b"),
        lambda: collections.UserDict(a=[1, {"b": 2}]),
        lambda: Named(a=1),
        lambda: collections.Counter("abba"),
        lambda: email.charset.Charset("utf-8"),
        lambda: [Held(), Held, Lax],
        lambda: collections.Counter([Held(), Held]),
        lambda: mock.call(Held(), key=hold),
        lambda: collections.UserDict(a=hold, b=Held()),
        lambda: types.SimpleNamespace(a=fractions.Fraction(1)),
    ],
)
def test_what_holds_data_alone_decides_nothing(make: Callable[[], Any]) -> None:
    assert not find_deciding(make(), decides, is_strange)


class TakesAll(type):
    """Says that all classes are of its own."""

    def __subclasscheck__(cls, other: type) -> bool:
        return True


def test_an_exception_is_of_the_kinds_that_it_extends() -> None:
    taking = TakesAll("taking", (Exception,), {})
    assert is_kin(KeyError, LookupError)
    assert is_kin(OSError, PermissionError)
    assert is_kin(taking, Exception)
    assert not is_kin(taking, EOFError)
