"""Audit hook: stops a test from running text of the product as code, or opening a path of the product.

The product has no code in the tests' process, so nothing of it can remove the hook.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import types
from pathlib import Path, PurePath
from typing import Any

from jumar.child.challenge.asserting_functions import list_all
from jumar.child.challenge.deciding import HEAP
from jumar.child.two_process.wire.files import shared_files

RUNNING = frozenset(("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "pty.spawn"))
"""Starting programs: they could look into the process of the tests."""

CODE = frozenset(("compile", "exec", "marshal.loads"))

MAKERS = ("importlib", "_frozen_importlib", "_frozen_importlib_external", "_pytest", "hypothesis", "ast", "collections",
          "dataclasses", "enum", "inspect", "attr", "unittest")  # fmt: skip
"""Packages that compile and run what they made themselves, or load modules. Nobody else does while tests run: whoever
else runs text in this process may have been given it by the product."""

OPENING = frozenset(("open", "os.chdir", "os.listdir", "os.scandir"))
"""Events that come before what lies at a path is read; it is their first argument."""

LOADING = {"import": 1, "ctypes.dlopen": 0}
"""Events that come before a library in C is loaded, and which argument is its path."""

IMPORTING = ("_frozen_importlib_external", "importlib._bootstrap_external", "zipimport")
"""Modules that read the files of modules."""

MATCHING = {"glob.glob": 0, "pathlib.Path.glob": 1, "pathlib.Path.rglob": 1}
"""Events of a search for files, and which of their two arguments is the pattern."""

READERS = ("typing", "annotationlib")
"""Modules that compile annotations; to run one is refused."""

DECIDING = tuple(f"__{n}__" for n in ("eq", "ne", "lt", "le", "gt", "ge", "contains", "getattr", "getattribute"))
"""Methods by which an object of a class of the tests may be equal to much. A pickle makes none."""


class ProductGuard:
    """Audit hook. It refuses the event, and makes the test fail that tried.

    *paths* are those of the room, with the names of theirs that stand in texts of the product (`RoomPaths`).
    """

    def __init__(self, side: Any, paths: Any) -> None:
        self._side, self._paths = side, paths
        self._is_of_tests = side.capabilities.is_file
        self.armed = False
        """True if files of the room may have been loaded."""
        self._unpickled: dict[type, dict[str, Any]] = {}
        """Classes that pickles named, and what was in them: a pickle can change one."""
        self.words: set[str] = set()
        """Words of the files of tests: of these alone a relative path may be made that leads to a file of theirs."""
        self._frame = sys._getframe  # noqa: SLF001  there is no other way to see who asks

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Check *event*, an audit event of the interpreter."""
        if event == "exec":
            self._note_code(arguments[0])
        if not self.armed:
            return
        if event in CODE:
            self._check_code(self._frame(1), event)
        elif event in RUNNING:
            self._side.tie("a test starts a program")
        elif event == "sqlite3.connect":  # SQL is code, and the product may have said it
            self._side.tie("a test uses a database in its own process")
        elif event == "pickle.find_class":
            self._check_unpickled(str(arguments[0]), str(arguments[1]))
        elif event in MATCHING and any(str(arguments[-2:][MATCHING[event]]).endswith(p) for p in self._paths.patterns):
            self._side.give_up("a test looks for what a pattern of the product matches")
        elif event in OPENING and isinstance(arguments[0], (str, bytes, PurePath)):
            self._check_opened(os.fspath(arguments[0]), *arguments[1:])
        elif event in LOADING and self._paths.is_temporary(str(arguments[LOADING[event]])):
            self._side.tie("a test loads a library from its own folder")

    def _note_code(self, code: Any) -> None:
        """Note *code* that is run, if it is that of a file of the tests."""
        own = isinstance(code, types.CodeType) and self._is_of_tests(code.co_filename)
        if own and any("__import__" in each.co_names for each in list_all(code)):
            self._side.hide(code.co_filename, "a file of tests imports modules by names that the product may say")

    def _check_code(self, frame: Any, event: str) -> None:
        """Give a test up if what is compiled or run in *frame* may be a text of the product."""
        module = str(frame.f_globals.get("__name__")).partition(".")[0]
        by_tests = self._side.running or (event != "exec" and self._is_of_tests(frame.f_code.co_filename))
        if module in READERS:
            if event == "exec":
                self._side.give_up("a test has the text of an annotation run as code")
        elif module not in MAKERS and by_tests:
            self._side.tie("a test runs text as code")

    def _check_unpickled(self, module: str, name: str) -> None:
        if not self._side.can_unpickle(module, name) and ("." in name or not self._is_class_of_tests(module, name)):
            self._side.give_up(f"a test unpickles {module}.{name}")
        kind = getattr(sys.modules.get(module), name, None)
        if self._is_class_of_tests(module, name):
            self._side.capabilities.conversation.note(f"a pickle of the code makes a {name} of the tests")
        if isinstance(kind, type) and kind.__flags__ & HEAP and not hasattr(kind, "_jumar_peer"):
            self._unpickled.setdefault(kind, dict(vars(kind)))

    def _check_opened(self, name: str | bytes, _: Any = None, flags: Any = os.O_RDONLY, *__: Any) -> None:
        path = os.fsdecode(name)
        if self._is_suspect(path):
            self._side.give_up(f"a test opens {path}, and the product may have named it")
        if self._is_opened_again(path) and self._side.running:
            self._side.give_up(f"a test opens {path} twice, and the product may have named it")
        if self._paths.is_temporary(path) and self._frame(2).f_globals.get("__name__") != shared_files.__name__:
            self._check_temporary(os.path.abspath(path), flags)  # noqa: PTH100  asked with each file
        self._paths.note_temporary(path)

    def _is_opened_again(self, path: str) -> bool:
        """Return whether a test opens *path*, a data file of its room, that it has opened before.

        If the product named it in bytes that the test unpacks, both sides of a comparison may be that file.
        """
        real = os.path.realpath(path)
        if real not in self._paths.places or real.endswith(".py") or Path(real).is_dir():
            return False
        again = real in self._paths.opened or real in self._paths.read
        (self._paths.opened if self._side.running else self._paths.read).add(real)
        return again and self._paths.packed

    def _check_temporary(self, path: str, flags: Any) -> None:
        """Check *path*, a file of the tests' temporary folder that is opened."""
        if self._paths.may_be_named(path) or os.path.realpath(path) != self._paths.make_real(path):
            self._side.give_up(f"a test opens {path}, a file of its own that the product may have named")
        reads = type(flags) is int and flags & os.O_ACCMODE != os.O_WRONLY and not flags & os.O_TRUNC
        if reads and self._side.running and Path(path).is_file() and not self._paths.files.is_of_product(path):
            with self._side.ties.serve() if self._paths.files.is_lent(path) else contextlib.nullcontext():
                self._side.tie(f"a test reads {path}, a file of its own, which may be what it expects")
        if str(self._frame(3).f_globals.get("__name__")) in IMPORTING:
            self._side.tie("a test imports a file of its own folder, which the product may have written")

    def find_changed_class(self) -> str:
        """Return the name of a class that is not as it was when a pickle first named it; empty: there is none."""
        changed = (kind.__name__ for kind, held in self._unpickled.items() if not _is_same(held, vars(kind)))
        return next(changed, "")

    def _is_class_of_tests(self, module: str, name: str) -> bool:
        """Return whether *name* is a class that the tests' files define."""
        place = vars(sys.modules[module]) if type(sys.modules.get(module)) is types.ModuleType else {}
        kind = place.get(name)
        return type(kind) is type and self._is_of_tests(place.get("__file__")) and not self._decides(kind)

    def _decides(self, kind: type) -> bool:
        """Return whether *kind* has a method of the tests' files that says what its instances are equal to."""
        codes = (getattr(vars(base).get(name), "__code__", None) for base in kind.__mro__ for name in DECIDING)
        return any(self._is_of_tests(getattr(code, "co_filename", None)) for code in codes)

    def _is_suspect(self, path: str) -> bool:
        """Return whether *path* leads to the tests' files and may come from code that does not know their place."""
        if path.startswith(("/proc/", "/dev/fd")):
            return not path.startswith(("/proc/sys", "/proc/meminfo", "/proc/cpuinfo", "/proc/mounts"))
        real = os.path.realpath(path)
        if real in self._paths.places and os.path.normpath(os.path.join(os.getcwd(), path)) != real:  # noqa: PTH109, PTH118  asked with each file
            return True  # through a link
        if real not in self._paths.places:
            return False
        if os.path.isabs(path):  # noqa: PTH117  asked with each file
            return self._side.running and any(
                f"{os.sep}{end}" in path and path.endswith(end) for end in self._paths.chosen
            )
        parts = os.path.normpath(path).split("/")
        theirs = self._paths.named.isdisjoint(parts) and self.words.issuperset(parts[:-1])
        return not theirs or self._is_of_tests(self._frame(3).f_code.co_filename)


def watch_module_names(side: Any, paths: Any) -> None:
    """Have `importlib.import_module` give up a test that imports a module of the tests which the product named."""
    usual = importlib.import_module

    def import_module(name: str, package: str | None = None) -> types.ModuleType:
        """Import the module *name*, as `importlib` does."""
        if side.running and paths.may_be_module(name):
            side.give_up(f"a test imports {name}, and the product may have named it")
        return usual(name, package)

    importlib.import_module = import_module


def open_compared_files() -> None:
    """Have `filecmp` open files whose size and time agree, too: what is not opened is not checked."""
    module: Any = importlib.import_module("filecmp")
    usual = module._sig  # noqa: SLF001  its functions have no option for it
    module._sig = lambda at: (*usual(at), object())  # noqa: SLF001  as above


def _is_same(before: dict[str, Any], now: Any) -> bool:
    return before.keys() == now.keys() and all(now[name] is value for name, value in before.items())
