"""Names of the product's modules and classes that files of the tests mention: all of one thing are asked for at once.

The product hears that a module or class of its is looked at, and not which name a test is about to expect: code that
raises the exception, or gives the member, that was read last would be right in every test.
"""

from __future__ import annotations

import contextlib
import re
import types
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from jumar.child.two_process import proxies
from jumar.child.two_process.environment.module_names import MADE_ANEW
from jumar.child.two_process.test_process import import_hook
from jumar.child.two_process.wire.exceptions import CannotRunApart
from jumar.child.two_process.wire.own_instances import is_enumeration

WORD = re.compile(r"[A-Za-z_]\w*")
CONSTANT = re.compile(r"\b([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\.([A-Z][A-Z\d_]*)\b")
"""Constant in a text: the path to what has it, and its name."""

VALUES = (str, int, float, bytes)
"""Types of values by which tests name a member of an enumeration."""

CONTAINERS = (list, dict, set, bytearray)
"""Types of what may change: under a name that is no constant it is asked for alone."""


class MentionedNames:
    """Reads names of things of the product, each among all that the tests mention and that may be expected."""

    def __init__(self, side: Any, ask: Callable[[str, Any, str], Any]) -> None:
        """*ask* asks a thing of the product for a name, `get`, or for what else an operation says."""
        self._side, self._ask_thing = side, ask
        self._words: frozenset[str] | None = None
        self._listed: dict[int, set[str]] = {}
        """Module or class -> the names that it had when it was looked at first, and what tests have put there."""
        self._apart: dict[int, set[str]] = {}
        """Module or class -> its names that are asked for alone: methods, and what changes."""
        self._together: dict[int, list[str]] = {}
        """Module or class -> its names that are asked for together."""
        self._faulty: dict[tuple[int, str], str] = {}
        """Module or class and name -> what was doubtful when it was read."""
        self._members: dict[int, list[tuple[Any, Any]]] = {}
        """Enumeration -> its members, each with its value."""

    def learn_words(self) -> frozenset[str]:
        """Return the words in all files of the tests; read once, before this process is confined."""
        if self._words is None:
            files = Path(self._side.environment.room).rglob("*.py")
            texts = (file.read_text("utf-8", "replace") for file in files if file.is_file())
            self._words = frozenset().union(*map(WORD.findall, texts))
        return self._words

    def note_put(self, thing: Any, name: str) -> None:
        """Note that the tests put something under *name* of *thing*."""
        self._listed.get(proxies.get_number(thing), set()).add(name)

    def has_listed(self, thing: Any, name: Any) -> bool:
        """Return whether *thing* had *name* when it was looked at first."""
        return type(name) is str and name in self._list_names(thing)

    def read(self, thing: Any, name: str) -> Any:
        """Return what *name* of *thing*, a module or class, stands for.

        What was doubtful in it once is so again: a container that is known is not looked at anew.
        """
        read, faults = (proxies.get_number(thing), name), self._side.faults
        found = self._read(thing, name)
        if self._side.faults > faults:
            self._faulty[read] = self._side.why
        elif read in self._faulty:
            self._side.fault(self._faulty[read])
        return found

    def _read(self, thing: Any, name: str) -> Any:
        number, ask = proxies.get_number(thing), partial(self._ask, thing)
        if name[:2] == "__" or (type(thing) is import_hook.ModuleFacade and self._side.names.knows(number, name)):
            return ask(name)
        listed = self._list_names(thing)
        if name not in listed:
            return self._read_late(thing, name, ask)
        mentioned = self._together.get(number)
        if mentioned is None:
            whole = isinstance(thing, type) and is_enumeration(thing)
            mentioned = sorted(listed if whole else listed & self.learn_words())
        elif name in self._apart.get(number, ()):
            return ask(name)
        if name not in mentioned:  # a name that the test computes
            mentioned = sorted(listed.difference(self._apart.get(number, ())))
        found = self._read_all(thing, mentioned, name)
        self._sort_out(thing, mentioned, found)
        return found[name]

    def _sort_out(self, thing: Any, names: list[str], found: dict[str, Any]) -> None:
        """Note which of *names* are asked for together from now on, and which alone."""
        number = proxies.get_number(thing)
        apart = {each for each, value in found.items() if not _may_be_expected(value, each, thing)}
        self._apart.setdefault(number, set()).update(apart)
        self._together[number] = [each for each in names if each not in apart]

    def find_member(self, kind: Any, args: tuple[Any, ...], keywords: Any) -> Any:
        """Return the member of the enumeration *kind* that has the only one of *args* as its value; None: none has."""
        number = proxies.get_number(kind)
        if keywords or len(args) != 1 or not _is_plain(args[0]):
            return None
        if number not in self._members:
            found = self._read_all(kind, sorted(self._list_names(kind)), "")
            members = [each for each in found.values() if type(each) is kind]
            if not members:
                self._side.fault(f"{kind.__name__}, an enumeration of the product, does not list its members")
            self._members[number] = []
            with self._overlook():
                self._members[number] += [(each, self._ask_thing("get", each, "value")) for each in members]
        same = (each for each, value in self._members[number] if type(value) is type(args[0]) and value == args[0])
        return next(same, None)

    def _ask(self, thing: Any, name: str) -> Any:
        """Ask for *name* of *thing*."""
        if type(thing) is not import_hook.ModuleFacade:
            return self._ask_thing("get", thing, name)
        return self._side.names.ask(proxies.get_number(thing), name, lambda: self._ask_thing("get", thing, name))

    def _list_names(self, thing: Any) -> set[str]:
        """Return the names that *thing* had when it was looked at first, but those with two underscores in front."""
        number, listed = proxies.get_number(thing), list[Any]()
        if number not in self._listed:
            with self._overlook():
                listed += self._side.peer.ask("dir", thing)
                if isinstance(thing, type) and is_enumeration(thing):  # another name of a member is in no `dir`
                    listed += self._side.peer.ask("get", thing, "__members__")
            self._listed[number] = {name for name in listed if type(name) is str and name[:2] != "__"}
        return self._listed[number]

    def _read_all(self, thing: Any, names: list[str], wanted: str) -> dict[str, Any]:
        """Return what *names* of *thing* stand for, as far as they are there: in one order, whichever is *wanted*."""
        ask, found = partial(self._ask, thing), dict[str, Any]()
        failed: list[BaseException] = []
        for name in names:
            if name != wanted:
                with self._overlook((proxies.get_number(thing), name)):
                    found[name] = ask(name)
                continue
            try:
                found[name] = ask(name)
            except (Exception, CannotRunApart) as error:  # noqa: BLE001  the others are asked for all the same
                failed.append(error)
        if failed:
            raise failed[0]
        return found

    def _read_late(self, thing: Any, name: str, ask: Callable[[str], Any]) -> Any:
        """Return what *name* stands for that *thing* did not list; doubt a class or constant."""
        found = ask(name)
        lasting = isinstance(found, type) or (name.isupper() and _may_be_expected(found, name, thing))
        if lasting and self._side.running and not _is_called(found):
            self._side.fault(f"{name}, of the product, was not there when its module or class was looked at first")
        return found

    @contextlib.contextmanager
    def _overlook(self, read: tuple[int, str] | None = None) -> Iterator[None]:
        """Let nothing that fails or is doubtful in the body be the test's, until it asks for what is *read* there."""
        side = self._side
        faults, why = side.faults, side.why
        try:
            with contextlib.suppress(Exception, CannotRunApart), side.ties.keep():
                yield
        finally:
            if side.faults > faults and read is not None:
                self._faulty[read] = side.why
            side.faults, side.why = faults, why


def read_constants(side: Any, names: Mapping[str, Any], text: str) -> None:
    """Read each constant that the *text* of a file names by a module or class of the product in its *names*.

    It is read before any test runs, so that none can follow an answer: what it has then, it must have for all tests
    (`KnownNames.check_constant`). A fault of *side* is none of a test's.
    """
    faults, why = side.faults, side.why
    for path, name in sorted(set(CONSTANT.findall(text))):
        first, *parts = path.split(".")
        thing, found = None, names.get(first)
        for part in (*parts, name):
            thing, found = found, None
            if not (type(thing) is import_hook.ModuleFacade or type(thing) is proxies.ProxyClass):
                break
            with contextlib.suppress(Exception, CannotRunApart):  # a test that needs it hears of that
                found = getattr(thing, part)
        else:
            side.names.note_first(proxies.get_number(thing), name, found)
    side.faults, side.why = faults, why


def _may_be_expected(value: Any, name: str, thing: Any) -> bool:
    """Return whether a test may compare with *value*, which is *name* of *thing*: no method, and no changing data."""
    if isinstance(thing, type) and _is_called(value):
        return False
    return not isinstance(value, types.ModuleType) and (name.isupper() or not isinstance(value, CONTAINERS))


def _is_called(value: Any) -> bool:
    return type(value).__name__ in (*MADE_ANEW, "function")


def _is_plain(value: Any) -> bool:
    """Return whether *value* is one by which tests name a member of an enumeration."""
    return isinstance(value, (*VALUES, type(None))) or (type(value) is tuple and all(map(_is_plain, value)))
