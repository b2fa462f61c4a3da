"""Files of the tests' temporary folder that a test hands out: the product's process has copies at the same place.

Every message carries what changed, in both directions, as it does for lists: regular files, folders, and links of the
tests. What a test does not hand out the product does not have; a folder is handed out with all that is in it.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

MOST_BYTES = 8 << 20
"""No message carries more of the content of files."""

MOST_FILES = 5000

RACY_NS = 50_000_000
"""A file that was written so shortly before a look may be written again in the same tick of the clock."""

TOKEN = re.compile(r"[^\s'\"`<>|;,:?#()\[\]{}=]+")
"""Part of a text that may be a path."""

KINDS = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)


def find_folder() -> str:
    """Return the temporary folder of this process: not that of the one that it was forked from."""
    return os.environ.get("TMPDIR", "/tmp")  # noqa: S108  every process of ours has a `TMPDIR`


class Stamp(NamedTuple):
    """State of a file when both sides knew it."""

    mode: int
    size: int
    changed: int
    inode: int
    digest: bytes = b""
    """Of the content, if the time says too little."""


class SharedFiles:
    """This side's copy of what is shared of the temporary folder.

    *owner* is the side of the tests, in their process: there, nothing is changed that was not handed out, what is tried
    is a fault, and each text that comes is checked. None: this is the product's process.
    """

    def __init__(self, owner: Any) -> None:
        self.top = find_folder()
        self._owner = owner
        self._paths = re.compile(f"{re.escape(self.top)}/{TOKEN.pattern}")
        self.active = owner is None
        """True if the other process has a folder of its own at the same place."""
        self._lasting: set[str] = set()
        self._lent: set[str] = set()
        self._bases: dict[str, str] = {}
        """Paths that are handed out -> folder in which the product may make more: the path or the nearest around it."""
        self._known: dict[str, Stamp] = {}
        self._made: dict[str, Stamp] = {}
        """Paths that the other side has made, or was given by themselves, empty, and filled; how it left them."""
        self._removed: set[str] = set()
        """Paths of the tests' own that the other side has removed in this test: what it makes there is no news."""
        self._next: tuple[dict[str, str], dict[str, Stamp]] = ({}, {})

    def begin_test(self) -> None:
        """Take back what one test alone has handed out."""
        self._lent.clear()
        self._removed.clear()
        self._made = {path: stamp for path, stamp in self._made.items() if _is_below(path, self._lasting)}
        self._known = {path: stamp for path, stamp in self._known.items() if _is_below(path, self._lasting)}

    def share(self, text: str, *, lasting: bool) -> None:
        """Share the files and folders that *text* names."""
        (self._lasting if lasting else self._lent).update(self.find_paths(text))

    def find_paths(self, text: str) -> list[str]:
        """Return the paths below the folder that *text* is, or that stand in it."""
        whole = text.startswith(f"{self.top}/") and "\0" not in text and os.path.isdir(os.path.dirname(text))
        named = [text] if whole else self._paths.findall(text)
        return [path for path in map(os.path.normpath, named) if path.startswith(f"{self.top}/")]

    def is_of_product(self, path: str) -> bool:
        """Return whether the file *path* is as the product left it, which made it or was given it empty, by itself.

        Another one is of the tests, and may be what they expect, even if its folder was given away.
        """
        if path not in self._made:
            return False
        left, now = self._made[path], _read_stamp(path)
        return left[:4] == now[:4] and now.digest in (b"", left.digest)

    def is_lent(self, path: str) -> bool:
        """Return whether the tests have handed out the file *path* by itself: the product may leave it as it is."""
        return path in self._lasting | self._lent

    def knows(self, path: str) -> bool:
        """Return whether *path* is shared, or something that the product has made."""
        return path in self._known or _is_below(path, self._list_roots())

    def list_changes(self) -> list[Any] | None:
        """Return the shared places and what has changed there since `settle` was called; None: nothing.

        Raises:
            ValueError: if that is too much to be sent.
        """
        bases = self._list_bases() if self._owner else self._bases
        if not self.active or not (bases or self._bases):
            return None
        now = dict(self._scan(bases))
        gone = [path for path in sorted(self._known.keys() - now.keys(), reverse=True) if not os.path.lexists(path)]
        changes = [[path] for path in gone]
        size = 0
        for path in sorted(path for path, stamp in now.items() if self._known.get(path) != stamp):
            changes.append(_describe(path, now[path]))
            size += len(changes[-1][-1]) // 2
            if size > MOST_BYTES:
                raise ValueError(f"files of more than {MOST_BYTES} bytes")
        self._next = bases, now
        return [list(bases.items()), changes] if changes or bases != self._bases else None

    def settle(self) -> None:
        """Mark what `list_changes` returned as sent."""
        self._bases, self._known = self._next

    def apply(self, news: Any) -> None:
        """Make the changes that the other side tells of. Any exception means that they are none."""
        bases, changes = news
        if not self._owner:
            self._bases = {str(root): str(base) for root, base in bases}
            for base in self._bases.values():
                os.makedirs(base if base not in self._bases else os.path.dirname(base), exist_ok=True)
        for path, *described in changes:
            if self._may_change(path, *described[:1]):
                if self._owner:
                    self._owner.capabilities.conversation.note("the code changes files of the test")
                given = path in self._lasting | self._lent and not _is_filled(path)
                gone = not os.path.lexists(path)
                known = given or (path in self._made and (gone or self.is_of_product(path)))
                new = gone and path not in self._removed
                self._change(path, described)
                if described and (known or new):
                    self._made[path] = self._known[path]
                elif not (described or known):
                    self._removed.add(path)
        self._next = self._bases, self._known

    def _list_bases(self) -> dict[str, str]:
        return {root: self._find_base(root) for root in sorted(self._list_roots())}

    def _list_roots(self) -> set[str]:
        """Return what the tests share: what they handed out, and the working directory, if it lies in the folder."""
        roots = self._lasting | self._lent
        with contextlib.suppress(FileNotFoundError):
            roots.add(os.getcwd())
        return {root for root in roots if root.startswith(f"{self.top}/")}

    def _find_base(self, root: str) -> str:
        base = root
        while not os.path.isdir(base):
            base = os.path.dirname(base)
        shared_by_all = (self.top, os.path.join(self.top, "pytest"))
        return root if base in shared_by_all else base

    def _scan(self, bases: dict[str, str]) -> Iterator[tuple[str, Stamp]]:
        """Yield what is shared, with its stamps: of the product's, also what it puts beside a file."""
        waiting = [*bases, *(self._known if self._owner else ())]
        seen: set[str] = set()
        for root, base in bases.items() if not self._owner else ():
            waiting += [entry.path for entry in os.scandir(base)] if base != root and os.path.isdir(base) else []
        while waiting:
            path = waiting.pop()
            if path in seen or not os.path.lexists(path):
                continue
            seen.add(path)
            if len(seen) > MOST_FILES:
                raise ValueError(f"more than {MOST_FILES} files")
            stamp = self._get_stamp(path)
            if self._owner and self._known.get(path, stamp) != stamp and not _is_below(path, bases):
                continue  # made by the product, and changed by a test that does not hand it out
            if stat.S_ISDIR(stamp.mode) and (not self._owner or _is_below(path, bases)):
                waiting += [entry.path for entry in os.scandir(path)]
            if stat.S_IFMT(stamp.mode) in KINDS:
                yield path, stamp

    def _get_stamp(self, path: str) -> Stamp:
        """Return how *path* is, or what is known of it if it is the same."""
        now, known = _read_stamp(path), self._known.get(path)
        if known is None or known[:4] != now[:4] or known.digest == now.digest:
            return now
        if not known.digest:
            return known
        if (now.digest or _read_digest(path)) == known.digest:
            self._known[path] = now
        return now

    def _may_change(self, path: Any, mode: int | None = None) -> bool:
        """Return whether the other side may change *path*; to change what it was not given is refused.

        Raises:
            ValueError: if that is no path in the folder.
        """
        if type(path) is not str or os.path.normpath(path) != path or not path.startswith(f"{self.top}/"):
            raise ValueError("no path of the temporary folder")
        if not self._owner:
            return True
        if mode is not None and stat.S_ISDIR(mode) and os.path.isdir(path) and not os.path.islink(path):
            return path in self._known
        folder = os.path.dirname(path)
        given = _is_below(path, self._bases) or folder in self._bases.values() or folder in self._known
        through = os.path.realpath(folder) != os.path.realpath(self.top) + folder[len(self.top) :] or os.path.islink(
            path
        )
        link = mode is not None and stat.S_IFMT(mode) not in KINDS[:2]
        if link or through or not given or (os.path.lexists(path) and path not in self._known):
            self._owner.fault(f"the product changes {path}, which it was not given, or makes a link")
            return False
        return True

    def _change(self, path: str, described: list[Any]) -> None:
        if described:
            self._write(path, *described)
            self._known[path] = _read_stamp(path)
            return
        self._known.pop(path, None)
        self._remove(path)

    def _remove(self, path: str) -> None:
        if os.path.islink(path) or not os.path.isdir(path):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        elif self._owner:
            os.rmdir(path)
        else:
            shutil.rmtree(path)

    def _write(self, path: str, mode: int, changed: int, content: str) -> None:
        """Write *content*, in hexadecimal digits: of a file, or the target of a link."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        data = bytes.fromhex(content)
        if os.path.lexists(path) and stat.S_IFMT(os.lstat(path).st_mode) != stat.S_IFMT(mode):
            self._remove(path)
        if stat.S_ISLNK(mode):
            os.symlink(data, path)
            return
        if stat.S_ISDIR(mode):
            os.makedirs(path, exist_ok=True)
        else:
            if self._owner:
                self._owner.peer.values.paths.check(data.decode(errors="replace"))
            with io.FileIO(path, "wb") as file:  # `open` may be patched
                file.write(data)
        os.chmod(path, stat.S_IMODE(mode) & 0o777 | (0o700 if stat.S_ISDIR(mode) else 0o400))  # it is looked at again
        os.utime(path, ns=(changed, changed))


def _is_filled(path: str) -> bool:
    """Return whether there is something in the file *path*: as a list with items, it is not there to be filled."""
    return os.path.isfile(path) and os.path.getsize(path) > 0


def _is_below(path: str, roots: Any) -> bool:
    return any(path == root or path.startswith(f"{root}/") for root in roots)


def _read_stamp(path: str, read_time: Callable[[], int] = time.time_ns) -> Stamp:
    """Return the state of a file; *read_time* is no test's stopped clock."""
    at = os.lstat(path)
    if stat.S_ISDIR(at.st_mode):
        return Stamp(at.st_mode, 0, 0, at.st_ino)
    racy = stat.S_ISREG(at.st_mode) and read_time() - at.st_mtime_ns < RACY_NS
    return Stamp(at.st_mode, at.st_size, at.st_mtime_ns, at.st_ino, _read_digest(path) if racy else b"")


def _read_digest(path: str) -> bytes:
    return hashlib.sha256(_read(path)).digest()


def _read(path: str) -> bytes:
    with io.FileIO(path, "rb") as file:
        return file.read(MOST_BYTES + 1)


def _describe(path: str, stamp: Stamp) -> list[Any]:
    """Return path, mode, time and content of a file as they cross."""
    content = _read(path) if stat.S_ISREG(stamp.mode) else b""
    if stat.S_ISLNK(stamp.mode):
        content = os.fsencode(os.readlink(path))
    return [path, stamp.mode, os.lstat(path).st_mtime_ns, content.hex()]
