"""Stand-ins for what Python itself gives to a descriptor of the product: an instance of the tests, or a class.

Nobody who reads a test sees that it is handed out. So the product gets a number without methods, members and data, but
for data that it sets itself, and can hand it back.
"""

from __future__ import annotations

import weakref
from typing import Any

GIVEN = {"__get__": 2, "__set_name__": 1, "__set__": 1, "__delete__": 1}
"""Methods that Python calls of a descriptor, and how many of their arguments nobody has written down."""


class StandIn:
    """Stands for *thing*. That for a class is a class below this one, whose instances stand for its instances."""

    __slots__ = ("__weakref__", "thing")
    of: Any = None

    def __new__(cls, *_: Any) -> Any:
        """Refuse: the product may not make one."""
        raise TypeError("that is no function of the tests")


_classes: dict[int, Any] = {}
_instances: weakref.WeakValueDictionary[int, StandIn] = weakref.WeakValueDictionary()


def hide(name: str, arguments: tuple[Any, ...], theirs: tuple[type, ...]) -> tuple[Any, ...]:
    """Return *arguments* of the special method *name*, with stand-ins for what Python itself gives to it.

    *Theirs* are the classes of what is the product's own.
    """
    count = GIVEN.get(name, 0)
    hidden = [one if one is None or isinstance(one, theirs) else _stand_for(one) for one in arguments[:count]]
    return (*hidden, *arguments[count:])


def is_one(thing: Any) -> bool:
    """Return whether *thing* is a stand-in. The product may ask none for anything."""
    return issubclass(thing if issubclass(type(thing), type) else type(thing), StandIn)


def unwrap(thing: Any) -> Any:
    """Return what *thing* stands for, if it is a stand-in; else *thing*."""
    if not is_one(thing):
        return thing
    return thing.of if issubclass(type(thing), type) else thing.thing


def _stand_for(thing: Any) -> Any:
    if issubclass(type(thing), type):
        if id(thing) not in _classes:
            facts = {"__module__": thing.__module__, "__slots__": (), "of": thing}
            _classes[id(thing)] = type(thing.__name__, (StandIn,), facts)
        return _classes[id(thing)]
    made = _instances.get(id(thing))
    if made is None:
        made = _instances[id(thing)] = object.__new__(_stand_for(type(thing)))
        made.thing = thing
    return made
