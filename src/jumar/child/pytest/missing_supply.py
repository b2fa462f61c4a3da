"""Lets files of tests load that lack something of the code under test, with placeholders for what is missing.

So pytest itself says which tests they have, and which of these it does not run here. In one run all placeholders are
true, in another one all are false: what both say of a test does not depend on the code that is not there. A statement
that no placeholder helps is left out.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
import unittest
from functools import partial
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import TYPE_CHECKING, Any

from jumar.child.broken_statements import MAKER, PASSED_OVER, find_line, leave_out
from jumar.child.placeholders import Placeholder, PlaceholderFinder, PlaceholderModule, build_kind, make_placeholder
from jumar.child.pytest.blame import BlameFinder, list_frames, list_star_imports, unwrap
from jumar.child.pytest.challenge_plugin import get_file
from jumar.child.test_timeout import TestTimeLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    import pytest

MOST = 1000
"""Placeholders that one process makes: a loop over what each one lacks has to end."""

EXPECTING = "__unittest_expecting_failure__"
"""Attribute by which unittest marks what shall fail."""

TIMES = 4
"""Statements, or parts of one, that are left out of a line."""

LACKING = re.compile(r"cannot import name '(\w+)'")
"""Says what a module lacks, where the exception does not (Python 3.11 or older)."""

EXCUSE = re.compile(b"skip|xfail|expectedfailure", re.IGNORECASE)
"""Stands where a test may be skipped, or expected to fail."""


class MissingSupply:
    """Plug-in that loads a file of tests again, with a placeholder more each time, until it loads or nothing helps.

    *truth* says which kind they are of.
    """

    def __init__(self, truth: bool, blame: BlameFinder) -> None:  # noqa: FBT001  the one thing that differs
        self._kind, self._blame = build_kind(truth), blame
        self._made: set[tuple[str, str]] = set()
        self._finder = PlaceholderFinder(self._kind, self._made)
        self._left_out: dict[str, list[int]] = {}
        self._endless: set[str] = set()
        self._plugins: set[str] = set()
        self._codes: dict[tuple[object, ...], Any] = {}
        self._install()

    def _install(self) -> None:
        """Let files of tests, and the packages around them, be loaded so. It is for a process that judges nothing."""
        rewrite = importlib.import_module("_pytest.assertion.rewrite")
        self._wrap(rewrite.AssertionRewritingHook, "")
        self._wrap(SourceFileLoader, "__init__.py")
        self._wrap_plugins(importlib.import_module("_pytest.config").PytestPluginManager)
        sys.meta_path.insert(0, self._finder)

    def _wrap(self, loader: type[Any], ending: str) -> None:
        load: Callable[[Any, ModuleType], None] = loader.exec_module

        def load_again(hook: Any, module: ModuleType) -> None:
            before, file = dict(vars(module)), str(module.__file__)
            plugin = module.__name__ in self._plugins and self._blame.is_foreign(file)
            tests = file.endswith(ending) and (plugin or self._blame.is_test_file(file))
            while True:
                try:
                    return self._run_rest(module, file) if tests else load(hook, module)
                except Exception as error:
                    # A plug-in may do without what is not installed.
                    if not tests or not ((not plugin and self._supply(error)) or self._leave_out(file, error)):
                        raise
                vars(module).clear()
                vars(module).update(before)
                self._drop_orphans()

        loader.exec_module = load_again

    def _wrap_plugins(self, manager: type[Any]) -> None:
        load: Callable[..., None] = manager.import_plugin

        def load_again(*args: Any, **options: Any) -> None:
            self._plugins.update(arg for arg in args if isinstance(arg, str))
            while True:
                try:
                    return load(*args, **options)
                except Exception as error:
                    if not self._supply(error.__cause__ or error):
                        raise
                self._drop_orphans()

        manager.import_plugin = load_again

    def pytest_pycollect_makeitem(self, collector: pytest.Module, name: str, obj: Any) -> Generator[None, Any, None]:
        """Let a function be one test whose cases cannot be made of placeholders."""
        outcome = yield
        if outcome.excinfo is None or isinstance(obj, type):
            return
        if outcome.excinfo[0].__name__ == "Failed" or issubclass(outcome.excinfo[0], Exception):
            kind: Any = importlib.import_module("pytest").Function
            outcome.force_result([] if isinstance(obj, Placeholder) else [kind.from_parent(collector, name=name)])

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Run no test of a file that has nothing of skipping or expected failures, nor has a helper of the tests.

        It could take long, and say nothing: whether it passes is of no interest.
        """
        files = {get_file(item) for item in session.items}
        loaded = {str(getattr(module, "__file__", "")) for module in list(sys.modules.values())}
        ours = {file for file in loaded if self._blame.is_test_file(file) or self._blame.is_foreign(file)}
        helped = any(map(_has_excuse, ours - files))
        excused = {file for file in files if helped or _has_excuse(file)}
        for item in session.items:
            run = item.runtest if get_file(item) in excused else int  # which does nothing
            vars(item)["runtest"] = partial(self._run, item, run)

    def _run(self, item: pytest.Item, run: Callable[[], object]) -> None:
        """Run *item*; a mark for an expected failure that it has, or gets, stands for one, however it would come out.

        If it does not end, no other case of its function is run.
        """
        function = item.nodeid.partition("[")[0]
        try:
            if function not in self._endless and not _is_marked(item):
                run()
        except TestTimeLimit:
            self._endless.add(function)
            raise
        finally:
            if _is_marked(item):
                importlib.import_module("_pytest.skipping").xfail("marked so")

    def _leave_out(self, file: str, error: BaseException) -> bool:
        """Leave the statement of *file* out that raised *error*; return whether there is a new one."""
        line = 0 if isinstance(error, unittest.SkipTest) else find_line(error, file)
        new = line > 0 and self._left_out.get(file, []).count(line) < TIMES
        if new:
            self._left_out.setdefault(file, []).append(line)
        return new

    def _run_rest(self, module: ModuleType, file: str) -> None:
        """Run what is not left out of *file*, so that its tests go on where something raises."""
        vars(module).update({MAKER: partial(make_placeholder, self._kind), PASSED_OVER: _choose_passed_over})
        lines = self._left_out.get(file, [])
        key = (file, *lines)
        if key not in self._codes:  # it is loaded once for each name that it lacks
            with open(file, "rb") as source:  # noqa: PTH123  as pytest has it
                self._codes[key] = leave_out(source.read(), file, lines)
        exec(self._codes[key], vars(module))  # noqa: S102  it is a file of the tests

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


def _is_marked(item: pytest.Item) -> bool:
    if any(getattr(getattr(node, "obj", None), EXPECTING, False) for node in item.listchain()):
        return True
    with contextlib.suppress(Exception):  # a version that has no such function, or a condition that cannot be
        return importlib.import_module("_pytest.skipping").evaluate_xfail_marks(item) is not None
    return False


def _choose_passed_over() -> Any:
    """Return the kind of the exception that is handled, if a test with placeholders goes on behind it; else none."""
    kind: Any = sys.exc_info()[0]
    ends = not issubclass(kind, Exception) or issubclass(kind, unittest.SkipTest)
    return () if ends and kind.__name__ != "Failed" else kind
