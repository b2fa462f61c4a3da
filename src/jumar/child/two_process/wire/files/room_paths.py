"""Finds texts of the product that name a file of the tests: a test that opened it would read what it expects.

It does not matter who opens it.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
from collections.abc import Collection, Iterator
from string import Formatter
from typing import Any
from urllib.parse import unquote

from jumar.child.two_process.wire.files.shared_files import TOKEN, SharedFiles

LONGEST = 4096
"""Characters of the longest path, once it is as short as it can be."""

MOST = 1 << 20
"""Characters of a text that are looked through."""

MOST_WORDS = 50_000
"""No more words of the product are remembered in a test."""

WILD = re.compile(r"[*?\[]")
"""Characters that make a pattern of a path."""

WORD = re.compile(r"[\w.+-]+")
"""Part of a text that may be the name of a file or folder."""

REFERENCE = re.compile(r"[\w.]+:[\w.]+")
"""Part of a text that may name something in a module."""

UPWARDS = re.compile(r"^(?:\.{1,2}/+)+")
"""Beginning of a path that leads to folders above."""

REACHING = re.compile(r".*\.(?:__|(?:gi|cr|ag|tb)_frame)|\w*(?:\.\w+){2,}\[", re.DOTALL)
"""Beginning of a field of a format string that leads from an object to what made it, or through modules to a table."""

NESTED = 2
"""Levels of fields within each other that Python formats."""

EXCUSING = AssertionError.__mro__[:-1]
"""Classes that a failed assertion belongs to: an `except` of the tests with one of them goes on after it."""


class RoomPaths:
    """Paths of the tests' *room*. The product may name those alone that the tests handed out, as *side* knows.

    And those of the files that it has itself, which are *shared*.
    """

    def __init__(self, room: str, side: Any, shared: Collection[str]) -> None:
        self._room, self._capabilities, self._fault, self._ties = room, side.capabilities, side.fault, side.ties
        self.files: SharedFiles = side.files
        """Files of the temporary folder that both sides have."""
        self._private: str = self.files.top
        self._shared = {os.path.join(os.path.realpath(room), path) for path in shared}  # noqa: PTH118  compared as text
        self.found = False
        """True if the product has named a file of the tests, or what would read them, since this was set to False."""
        self._keeping = False
        """True while texts are checked that stay with a thing or in a container."""
        self._texts: set[str] = set()
        """Short texts of the product in this test, and names of files and paths in all of them."""
        self.packed = False
        """True if the product has said bytes in this test."""
        self.opened: set[str] = set()
        """Data files of the room that this test has opened."""
        self.read: set[str] = set()
        """The same, of those that were opened while files of the tests were loaded."""
        self.places: set[str] = set()
        """Files and folders of the room."""
        self.named: set[str] = set()
        """Names of theirs that stand in texts of the product, or may: nobody can tell what was meant by them."""
        self.chosen: set[str] = set()
        """Ends of paths of the room's files that a text of the product is, and none of the tests."""
        self.patterns: set[str] = set()
        """Texts of the product that match more than one path."""
        self._names: set[str] = set()
        self._ends: set[str] = set()
        self.look()

    def look(self) -> None:
        """List the room again: a file that is loaded may make others."""
        root = os.path.realpath(self._room)
        for folder, _, names in os.walk(root):
            files = [name for name in names if os.path.join(folder, name) not in self._shared]  # noqa: PTH118  as above
            within = folder[len(root) :].split("/")[1:]
            if not files and names:
                continue
            self.places.update(os.path.join(folder, name) for name in files)  # noqa: PTH118  as above
            self.places.update("/".join((root, *within[: n + 1])) for n in range(len(within)))
            self._names.update(within, files)
            self._ends.update("/".join((*within[n:], file)) for file in files for n in range(len(within) + 1))
        self.named.update(name for name in self._names if not WORD.fullmatch(name))

    def check_class(self, kind: type) -> type:
        """Return *kind*, which the product hands over as a value; record a fault if it would excuse an assertion."""
        if kind in EXCUSING:
            self._fault(f"the product hands over {kind.__name__}, which a failed assertion belongs to")
        self._ties.note_library_class(kind)
        return kind

    def begin_test(self) -> None:
        """Forget what only one test has handed out, or heard."""
        self.found = self.packed = False
        self._texts.clear()
        self.opened.clear()
        self.files.begin_test()

    def may_be_named(self, path: str) -> bool:
        """Return whether the product may have named *path*, a file of the temporary folder that it was not given.

        Its path stood in a text of the product in this test, its name in a short one, or one said its stem and no more.
        """
        name = path.rpartition("/")[2]
        return self.may_say(path, name, name.partition(".")[0]) and os.path.lexists(path) and not self.files.knows(path)

    def may_be_module(self, name: str) -> bool:
        """Return whether *name* is that of a module of the tests, and the product has said a part of it."""
        parts = name.split(".")
        return f"{parts[-1]}.py" in self._names and self.may_say(name, *parts)

    def may_say(self, *words: str) -> bool:
        """Return whether the product has said one of *words* in this test, or more than is remembered."""
        return len(self._texts) >= MOST_WORDS or not self._texts.isdisjoint(words)

    def is_temporary(self, path: str) -> bool:
        """Return whether *path* lies in the temporary folder of the tests."""
        return os.path.abspath(path).startswith(f"{self._private}{os.sep}")  # noqa: PTH100  asked with each file

    def make_real(self, path: str) -> str:
        """Return *path*, of the temporary folder, as it is where nothing in it is a link."""
        return os.path.realpath(self._private) + path[len(self._private) :]

    def note_temporary(self, path: str) -> None:
        """Note that a test opens *path*: a relative one within the temporary folder is a file of its own."""
        if not path.startswith("/") and f"{os.getcwd()}/".startswith(f"{self._private}/"):  # noqa: PTH109  as below
            self._note_lent()

    def _note_lent(self) -> None:
        """Note that a test hands out a path in the temporary folder, or works there: the product may not have it."""
        if not self.files.active:
            self._ties.note()

    def hand_out(self, text: str) -> None:
        """Let the product name what *text* names, and say what it would reach as a format string."""
        if self._private in text:
            self._note_lent()
            if chosen := next(filter(self.may_be_named, self.files.find_paths(text)), ""):
                self._fault(f"a test hands out {chosen}, and the product may have named it")
            else:
                self.files.share(text, lasting=self._capabilities.lasting)
        if text in self._ends:
            self._capabilities.hand_out(text)
        named = [path for path in self._list_paths(text) if self._leads_in(path)] if "/" in text else []
        named += filter(self._is_module, REFERENCE.findall(text[:MOST])) if ":" in text else ()
        if any(os.path.isabs(path) and self._is_there(path) for path in named):  # noqa: PTH117  as below
            self._ties.note()  # the product does not have the files of the tests' room
        for path in dict.fromkeys((text, *named) if named or is_reaching(text) else ()):
            self._capabilities.hand_out(path)

    def check(self, text: str) -> bool:
        """Record a fault if *text*, of the product, leads to a file of the tests that it was not given.

        So does a format string that leads from what a test puts into it to what the test knows. Returned is whether
        such a text would stay with a thing: it does not cross again for later tests, so nothing may come of it.
        """
        if self._capabilities.is_handed_out(text):
            return False
        why = ""
        if any(self._leads_in(path) and not self._capabilities.is_handed_out(path) for path in self._list_paths(text)):
            why = "the product names a file of the tests"
        elif ":" in text and any(map(self._is_module, (text, *REFERENCE.findall(text[:MOST])))):
            why = "the product names a module of the tests"
        elif is_reaching(text):
            why = "a format string of the product would read what the tests are"
        if why:
            self.found = True
            self._fault(f"{why}: {text[:LONGEST]}")
        self.note(text)
        return bool(why) and self._keeping

    def check_bytes(self, value: bytes) -> bool:
        """Check *value* as a text; what it says may be packed."""
        self.packed = True
        return self.check(value.decode(errors="replace"))

    @contextlib.contextmanager
    def keep(self) -> Iterator[None]:
        """Mark that the texts that are checked in the body stay with something."""
        before, self._keeping = self._keeping, True
        try:
            yield
        finally:
            self._keeping = before

    def note(self, text: str) -> None:
        """Note the names of the room that stand in *text*, of the product."""
        words = WORD.findall(text[:MOST])
        if len(self._texts) < MOST_WORDS:
            paths = self.files.find_paths(text) if self._private in text else ()
            self._texts.update(paths)
            if len(text) <= LONGEST:
                within = {word for path in paths for word in WORD.findall(path)}
                self._texts.update([text], (word for word in words if "." in word and word not in within))
        self.named.update(self._names.intersection(words), self._names.intersection(".".join(words).split(".")))
        for part in TOKEN.findall(text[:MOST]) if self._room in text else ():
            if part.startswith(self._room) and not self._capabilities.is_handed_out(part):
                self.chosen.add(part[len(self._room) :].lstrip("/"))
        if len(text) <= LONGEST and WILD.search(text):
            self.patterns.add(text)
        if len(text) <= LONGEST:
            parts = os.path.normpath(UPWARDS.sub("", text)).split("/")
            # Folders of other places stand before it, where a path leads upwards.
            ends = ("/".join(parts[n:]) for n in range(len(parts) if text.startswith(".") else 1))
            self.chosen.update(end for end in ends if end in self._ends)

    def _list_paths(self, text: str) -> Iterator[str]:
        """Yield *text*, and what else somebody may open for it: paths that stand in it, what a pattern matches."""
        yield text
        if "/" not in text:
            return
        plain = unquote(text[:MOST])
        inside = plain.find(self._room)
        named = [plain[inside:], plain[inside:].partition("#")[0]] if inside >= 0 else []
        yield from (path for path in named if path != text)
        yield from (part for part in TOKEN.findall(plain) if "/" in part and part != text)
        for pattern in (text, *named) if len(text) <= LONGEST else ():
            folder = WILD.split(pattern, maxsplit=1)[0].rpartition("/")[0]
            if folder and len(folder) < len(pattern) - 1 and WILD.search(pattern) and self._is_there(folder):
                whole = os.path.join(self._room, pattern)  # noqa: PTH118  as above
                yield from (place for place in self.places if fnmatch.fnmatchcase(place, whole))

    def _is_module(self, reference: str) -> bool:
        """Return whether a *reference* names something in a module of the tests (`reference:slow`, `name:golden.A`)."""
        before, _, after = reference.partition(":")
        return not self._names.isdisjoint((f"{before.rpartition('.')[2]}.py", f"{after.partition('.')[0]}.py"))

    def _leads_in(self, text: str) -> bool:
        if "\0" in text or len(text) > MOST:
            return False
        if "/" not in text:
            return os.path.join(self._room, text) in self.places and "." in text  # noqa: PTH118  as above
        return text.startswith(("/proc/", "/dev/fd/")) or self._is_there(text)

    def _is_there(self, path: str) -> bool:
        here = {self._room, os.getcwd()}  # noqa: PTH109  as above
        return any(os.path.normpath(os.path.join(base, path)) in self.places for base in here)  # noqa: PTH118  as above


def is_reaching(text: str) -> bool:
    """Return whether *text* would lead, as a format string, from what is put into it to what made that."""
    return "{" in text and "." in text and any(map(REACHING.match, _list_fields(text, NESTED)))


def _list_fields(text: str, levels: int) -> Iterator[str]:
    """Yield the fields that *text* has as a format string, on so many *levels*; else what looks like some."""
    try:
        for _, field, within, _ in Formatter().parse(text):
            yield field or ""
            yield from _list_fields(within, levels - 1) if within and levels > 1 and "{" in within else ()
    except ValueError:
        yield from re.findall(r"\{([^{}]*)", text)
