"""Lets files of tests load that lack something of the code under test, with placeholders for what is missing.

So pytest itself says which tests they have, and which of these it does not run here. In one run all placeholders are
true, in another one all are false: what both say of a test does not depend on the code that is not there.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
import unittest
from importlib.machinery import ModuleSpec, SourceFileLoader
from itertools import chain
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from jumar.child.pytest.blame import list_frames, list_star_imports, unwrap
from jumar.child.pytest.challenge_plugin import get_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest

    from jumar.child.pytest.blame import BlameFinder

MOST = 1000
"""Placeholders that one process makes: a loop over what each one lacks has to end."""

ANSWERS = ("bool", "contains", "eq", "ge", "gt", "instancecheck", "le", "lt", "ne", "subclasscheck")
"""Methods of a placeholder that say whether it is true."""

COUNTS = {"complex": complex, "float": float, "index": int, "int": int, "len": int}
"""Methods that say the same by a number."""

OPERATORS = ("add", "and", "divmod", "floordiv", "lshift", "matmul", "mod", "mul", "or", "pow", "rshift", "sub",
             "truediv", "xor")  # fmt: skip
UNARY = ("abs", "enter", "getitem", "invert", "neg", "pos", "round")
"""Methods that return the placeholder itself."""

RAISED = re.compile(r"(Error|Exception|Warning)$")
"""Ends the name of a class that tests raise, or hand to `pytest.raises`."""

LACKING = re.compile(r"cannot import name '(\w+)'")
"""Says what a module lacks, where the exception does not (Python 3.11 or older)."""

EXCUSE = re.compile(b"skip|xfail", re.IGNORECASE)
"""Stands where a test may be skipped, or expected to fail."""

ASKED_BY_PYTEST = ("pytestmark", "patchings")
"""Attributes that pytest looks for at everything it finds, beside those with underscores."""


class Placeholder:
    """Stands for something of the code under test: has each attribute, may be called, and is true or false."""

    def __init__(self, name: str) -> None:
        self._placeholder_name = name
        if self:
            self.__name__ = name  # so that it has another name as a case than what is false

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Return another placeholder; what is decorated stays as it is."""
        decorates = len(args) == 1 and not options and isinstance(args[0], (FunctionType, type))
        if decorates and args[0].__module__ not in ("builtins", "typing"):
            return args[0]
        return make_placeholder(type(self), f"{self._placeholder_name}()")

    def __getattr__(self, name: str) -> Any:
        """Return a placeholder for an attribute."""
        if name.startswith("_") or name in ASKED_BY_PYTEST:
            raise AttributeError(name)
        found = make_placeholder(type(self), name)
        setattr(self, name, found)
        return found

    def __iter__(self) -> Iterator[Any]:
        """Yield a placeholder, or nothing."""
        return iter([make_placeholder(type(self), f"{self._placeholder_name}[]")] if self else [])

    def __mro_entries__(self, _: tuple[Any, ...]) -> tuple[type, ...]:
        """Return what it is as a base class."""
        return (unittest.TestCase,) if self._placeholder_name.endswith("TestCase") else ()

    def __str__(self) -> str:
        """Return another text than what is false."""
        return f"{self._placeholder_name} that is {bool(self)}"

    __repr__ = __fspath__ = __str__
    __hash__ = object.__hash__

    def __format__(self, _: str) -> str:
        """Return its text, whatever format is asked for."""
        return str(self)

    def __exit__(self, *_: object) -> None:
        """Let what was raised pass."""


def build_kind(truth: bool) -> type[Placeholder]:  # noqa: FBT001  the one thing that it is told
    """Build the class of placeholders that are true, or of those that are not."""

    def answer(*_: object) -> bool:
        return truth

    methods: dict[str, Any] = {f"__{name}__": answer for name in ANSWERS}
    for name, number in COUNTS.items():
        methods[f"__{name}__"] = lambda _, count=number: count(truth)
    for name in chain(UNARY, OPERATORS, (f"r{name}" for name in OPERATORS)):
        methods[f"__{name}__"] = lambda self, *_: self
    return type(f"Placeholder{truth}", (Placeholder,), methods)


def make_placeholder(kind: type[Placeholder], name: str) -> Any:
    """Make a placeholder of *kind*, or an exception class where *name* is that of one."""
    match = RAISED.search(name)
    return kind(name) if match is None else type(name, (Warning if match[1] == "Warning" else Exception,), {})


class PlaceholderModule(ModuleType):
    """Stands for a module that is not there, or does not load: it has each name, and each submodule."""

    kind: type[Placeholder]
    __all__: list[str]

    def __getattr__(self, name: str) -> Any:
        """Return a placeholder for a name."""
        if name.startswith("__"):
            raise AttributeError(name)
        found = make_placeholder(self.kind, name)
        setattr(self, name, found)
        return found


class PlaceholderFinder:
    """Finds modules for which there are placeholders, before all others."""

    def __init__(self, kind: type[Placeholder]) -> None:
        self.names: set[str] = set()
        self._kind = kind

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        """Return where the module *name* comes from, if there is a placeholder for it."""
        return ModuleSpec(name, self, is_package=True) if name in self.names else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> PlaceholderModule:
        """Make the module."""
        made = PlaceholderModule(spec.name)
        made.kind, made.__all__ = self._kind, []
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: there is no code."""


class MissingSupply:
    """Plug-in that loads a file of tests again, with a placeholder more each time, until it loads or nothing helps."""

    def __init__(self, truth: bool, blame: BlameFinder) -> None:  # noqa: FBT001  as above
        self._kind, self._blame = build_kind(truth), blame
        self._finder = PlaceholderFinder(self._kind)
        self._made: set[tuple[str, str]] = set()
        self._install()

    def _install(self) -> None:
        """Let files of tests, and the packages around them, be loaded so. It is for a process that judges nothing."""
        rewrite = importlib.import_module("_pytest.assertion.rewrite")
        self._wrap(rewrite.AssertionRewritingHook, "")
        self._wrap(SourceFileLoader, "__init__.py")
        sys.meta_path.insert(0, self._finder)

    def _wrap(self, loader: type[Any], ending: str) -> None:
        load: Callable[[Any, ModuleType], None] = loader.exec_module

        def load_again(hook: Any, module: ModuleType) -> None:
            before, file = dict(vars(module)), str(module.__file__)
            tests = file.endswith(ending) and self._blame.is_test_file(file)
            while True:
                try:
                    return load(hook, module)
                except Exception as error:
                    if not tests or not self._supply(error):  # a plug-in may do without what is not installed
                        raise
                vars(module).clear()
                vars(module).update(before)
                self._drop_orphans()

        loader.exec_module = load_again

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Run no test of a file that has nothing of skipping or expected failures, nor has a helper of the tests.

        It could take long, and say nothing: whether it passes is of no interest.
        """
        files = {get_file(item) for item in session.items}
        loaded = {str(getattr(module, "__file__", "")) for module in list(sys.modules.values())}
        helped = any(map(_has_excuse, filter(self._blame.is_test_file, loaded - files)))
        excused = {file for file in files if helped or _has_excuse(file)}
        for item in session.items:
            if get_file(item) not in excused:
                vars(item)["runtest"] = int  # which does nothing

    def _drop_orphans(self) -> None:
        """Have modules of the code under test loaded again whose package was not: nothing would bind them to it."""
        for name, module in sorted(sys.modules.items()):
            parent = name.rpartition(".")[0]
            if parent and parent not in sys.modules and self._is_ours(module):
                del sys.modules[name]

    def _supply(self, error: BaseException) -> bool:
        """Make a placeholder for what raised *error*; return whether there is a new one."""
        if isinstance(error, unittest.SkipTest) or len(self._made) > MOST:
            return False
        error = unwrap(error)
        for owner, name in self._find_missing(error):
            module = owner if isinstance(owner, str) else owner.__name__
            if (module, name) not in self._made:
                self._made.add((module, name))
                if self._put(owner, name):
                    return True
        return False

    def _find_missing(self, error: BaseException) -> Iterator[tuple[Any, str]]:
        """Yield what may be missing: a module or a class, and a name of it; or the name of a module, and nothing."""
        if isinstance(error, ModuleNotFoundError):
            top = (error.name or "").partition(".")[0]
            if top in self._finder.names or (top and self._blame.locate_module(top) != "elsewhere"):
                yield error.name, ""
        elif isinstance(error, ImportError):
            lacking = LACKING.search(str(error))
            if lacking and self._is_ours(sys.modules.get(error.name or "")):
                yield sys.modules[error.name or ""], lacking[1]
        elif isinstance(error, AttributeError):
            owner = getattr(error, "obj", None)  # Python 3.10 or newer
            if self._is_ours(owner) or self._blame.is_made_by_product(owner):
                yield (owner if isinstance(owner, (ModuleType, type)) else type(owner)), str(getattr(error, "name", ""))
        frames = [*list_frames(error)]
        if isinstance(error, NameError) and frames:
            starred = [sys.modules.get(name) for name in list_star_imports(frames[-1])]
            yield from ((module, str(getattr(error, "name", ""))) for module in starred if self._is_ours(module))
        yield from ((name, "") for name in self._list_broken_modules(error))

    def _is_ours(self, module: object) -> bool:
        """Return whether *module* is one of the room, or a placeholder."""
        return isinstance(module, ModuleType) and (
            isinstance(module, PlaceholderModule) or self._blame.is_in_room(module)
        )

    def _list_broken_modules(self, error: BaseException) -> Iterator[str]:
        """Yield the modules of the code under test that were being loaded when *error* was raised, the last first."""
        if isinstance(error, SyntaxError) and self._blame.is_foreign(error.filename or ""):
            folders = [folder for folder in sys.path if folder and f"{error.filename}".startswith(folder + os.sep)]
            for folder in sorted(folders, key=len, reverse=True):
                path = str(error.filename)[len(folder) + 1 :].rpartition(".")[0]
                yield (os.path.dirname(path) if path.endswith("/__init__") else path).replace(os.sep, ".")  # noqa: PTH120  as text
        for frame in reversed([*list_frames(error)]):
            if frame.f_code.co_name == "<module>" and self._blame.is_foreign(frame.f_code.co_filename):
                yield str(frame.f_globals["__name__"])

    def _put(self, owner: Any, name: str) -> bool:
        """Put a placeholder for *name* into *owner*, or let one be found for the module *owner*."""
        if isinstance(owner, str):
            self._finder.names.add(owner)
            sys.modules.pop(owner, None)
            parent = sys.modules.get(owner.rpartition(".")[0])
            if parent is not None and not hasattr(parent, "__path__"):
                parent.__path__ = []  # else nothing looks for modules in what is no package
            return True
        try:
            setattr(owner, name, make_placeholder(self._kind, name))
        except (AttributeError, TypeError):  # a class in C, or one that does not take it
            return False
        if isinstance(vars(owner).get("__all__"), list):
            owner.__all__.append(name)
        return True


def _has_excuse(file: str) -> bool:
    with contextlib.suppress(OSError), open(file, "rb") as source:  # noqa: PTH123  some of its names are no paths
        return EXCUSE.search(source.read()) is not None
    return False
