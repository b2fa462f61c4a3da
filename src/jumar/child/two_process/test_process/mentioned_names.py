"""Names of the product's modules and classes that files of the tests mention: all of one thing are asked for at once.

The product hears that a module or class of its is looked at, and not which name a test is about to expect: code that
raises the exception, or gives the member, that was read last would be right in every test.
"""

from __future__ import annotations

import contextlib
import re
import types
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from jumar.child.two_process import proxies
from jumar.child.two_process.environment.module_names import MADE_ANEW
from jumar.child.two_process.test_process import import_hook
from jumar.child.two_process.wire.exceptions import CannotRunApart

WORD = re.compile(r"[A-Za-z_]\w*")
VALUES = (str, int, float, bytes)
"""Types of values by which tests name a member of an enumeration."""

CONTAINERS = (list, dict, set, bytearray, types.ModuleType)
"""Types of what is costly to ask for, or may change: it is asked for alone."""


class MentionedNames:
    """Reads names of things of the product, each among all that the tests mention and that may be expected."""

    def __init__(self, side: Any, ask: Callable[[str, Any, str], Any]) -> None:
        """*ask* asks a thing of the product for a name, `get`, or for what else an operation says."""
        self._side, self._ask_thing = side, ask
        self._words: frozenset[str] | None = None
        self._listed: dict[int, set[str]] = {}
        """Module or class -> the names that it had when it was looked at first, and what tests have put there."""
        self._together: dict[int, list[str]] = {}
        """Module or class -> its names that are asked for together."""
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
        """Return whether *thing* had *name* when it was looked at first, and the tests mention it."""
        return type(name) is str and name in self._list_names(thing) & self.learn_words()

    def read(self, thing: Any, name: str) -> Any:
        """Return what *name* of *thing*, a module or class, stands for."""
        number, ask = proxies.get_number(thing), partial(self._ask, thing)
        if name[:2] == "__" or (type(thing) is import_hook.ModuleFacade and self._side.names.knows(number, name)):
            return ask(name)
        first = number not in self._together
        mentioned = sorted(self._list_names(thing) & self.learn_words()) if first else self._together[number]
        if name not in mentioned:
            return self._read_alone(thing, name, ask)
        found = self._read_all(mentioned, name, ask)
        if first:
            self._together[number] = [each for each, value in found.items() if each == name or _may_be_expected(value)]
        return found[name]

    def find_member(self, kind: Any, args: tuple[Any, ...], keywords: Any) -> Any:
        """Return the member of the enumeration *kind* that has the only one of *args* as its value; None: none has."""
        number = proxies.get_number(kind)
        if keywords or len(args) != 1 or not isinstance(args[0], VALUES):
            return None
        if number not in self._members:
            found = self._read_all(sorted(self._list_names(kind)), "", partial(self._ask, kind))
            members = [each for each in found.values() if type(each) is kind]
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
            self._listed[number] = {name for name in listed if type(name) is str and name[:2] != "__"}
        return self._listed[number]

    def _read_all(self, names: list[str], wanted: str, ask: Callable[[str], Any]) -> dict[str, Any]:
        """Return what *names* stand for, as far as they are there: in one order, whichever of them is *wanted*."""
        found: dict[str, Any] = {}
        failed: list[BaseException] = []
        for name in names:
            if name != wanted:
                with self._overlook():
                    found[name] = ask(name)
                continue
            try:
                found[name] = ask(name)
            except (Exception, CannotRunApart) as error:  # noqa: BLE001  the others are asked for all the same
                failed.append(error)
        if failed:
            raise failed[0]
        return found

    def _read_alone(self, thing: Any, name: str, ask: Callable[[str], Any]) -> Any:
        """Return what *name* stands for; doubt a class or constant that a module has only since tests run."""
        found = ask(name)
        lasting = type(found) is proxies.ProxyClass or (name.isupper() and _may_be_expected(found))
        late = name not in self._list_names(thing)
        if late and lasting and self._side.running and type(thing) is import_hook.ModuleFacade:
            self._side.fault(f"{name}, of the product, was not there when its module was looked at first")
        return found

    @contextlib.contextmanager
    def _overlook(self) -> Iterator[None]:
        """Let nothing that fails or is doubtful in the body be the test's: nobody asked for that."""
        side = self._side
        faults, why, asking = side.faults, side.why, side.names.asking
        side.names.asking = True
        try:
            with contextlib.suppress(Exception, CannotRunApart), side.ties.keep():
                yield
        finally:
            side.faults, side.why, side.names.asking = faults, why, asking


def _may_be_expected(value: Any) -> bool:
    """Return whether a test may compare with *value*, a class or constant; a function is there to be called."""
    kind = type(value)
    called = kind.__name__ in (*MADE_ANEW, "function")
    return kind is proxies.ProxyClass or not (called or isinstance(value, CONTAINERS))
