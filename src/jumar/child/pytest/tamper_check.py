"""Checks by identity that loaded code, the hooks of pytest and the collected tests stay what they were.

Monkeypatching within a test that is undone with it is nobody's business. What the code under test leaves behind in the
framework, or in what tests ask, is reported as `["tampered", what]`. It is a wire across the floor, not a wall: code in
the same process can step over it, which is what challenges and a second process are for.
"""

from __future__ import annotations

import builtins
import sys
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from jumar.child.pytest import code_identity as identity
from jumar.child.pytest import loaded_code as loaded
from jumar.child.pytest.asked_names import AskedNames, is_special

if TYPE_CHECKING:
    import pytest

    from jumar.child.pytest.blame import BlameFinder

    Send = Callable[[list[object]], None]

# Of our own, whatever becomes of the others.
__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # a module or its names

DECIDING = frozenset({
    "_pytest.python.Function", "_pytest.unittest.TestCaseFunction", "_pytest.runner", "_pytest.runner.CallInfo",
    "_pytest.reports.TestReport", "_pytest.skipping", "unittest.case.TestCase", "builtins",
})  # fmt: skip
"""Through these every outcome goes: they are looked at around each test, everything else when there is time."""

HOOKS = ("pytest_pyfunc_call", "pytest_runtest_protocol", "pytest_runtest_setup", "pytest_runtest_call",
         "pytest_runtest_teardown", "pytest_runtest_makereport", "pytest_runtest_logreport",
         "pytest_runtest_logfinish", "pytest_fixture_setup")  # fmt: skip
"""The hooks through which every outcome goes."""

SHADOWS = frozenset({"runtest", "setup", "teardown", "iter_markers", "listchain", "repr_failure"})
"""Methods of a test that an attribute of the same name would hide."""

SHARE = 50
"""All code is looked at when this many times as long has passed as that takes: 2 % of the time at most."""

TOLD = 5
"""Maximum number of findings reported; the first one already voids the verdict."""


class TamperCheck:
    """Plug-in that compares loaded code, the hooks and the tests with what they were.

    *sources* are the test files, as they are before the code under test can run.
    """

    def __init__(self, blame: BlameFinder, send: Send, sources: Sequence[bytes]) -> None:
        self._foreign, self._supports, self._send, self._sources = blame.is_foreign, blame.is_test_file, send, sources
        self._told: set[str] = set()
        self._hooks: dict[str, Any] = {}
        self._items: dict[str, Any] = {}
        self._manager: Any = None
        self._next, self._clock = 0.0, time.perf_counter
        self._closed = False
        self._code = loaded.take_loaded_code(lambda file: blame.is_foreign(file) or blame.is_test_file(file))
        self._arm()

    def _arm(self) -> None:
        known = self._code.by_owner
        self._modules = {name: one for name, one in sys.modules.items() if identity.get_address(one) in known}
        self._asking: AskedNames | None = None
        deciding = (self._modules.get(name) or self._get_class(name) for name in DECIDING)
        self._deciding = [known[key] for key in map(identity.get_address, deciding) if key in known]

    def _look_at_deciding(self, *, lenient: bool = False) -> None:
        for table in self._deciding:
            framework = not lenient or table.owner is not builtins
            if framework and not identity.are_identical([*table.before.values()], [*table.live.values()]):
                self._look(loaded.find_changed_names(table, dict(table.live)), lenient=lenient)

    def _get_class(self, name: str) -> object:
        module, _, kind = name.rpartition(".")
        return getattr(self._modules.get(module), kind, None)

    @property
    def _asked(self) -> AskedNames:
        self._asking = self._asking or AskedNames(self._sources, self._code)
        return self._asking

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Accept what the loading of conftest files and plug-ins has made of loaded code as the new state.

        Plug-ins of pytest change it, and one that is itself the code under test is loaded to do just that.
        """
        changes = self._code.take()
        self._manager = session.config.pluginmanager
        files = [str(getattr(plugin, "__file__", None) or "") for plugin in self._manager.get_plugins()]
        if not any(map(self._foreign, files)):
            self._look(changes, lenient=True)
            for name in HOOKS:
                self._judge_hook(name, ())
        self._arm()
        self._hooks = {name: identity.snapshot_hook(self._manager, name) for name in HOOKS}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Remember the tests and the hooks; by now all of their files, and so the code under test, were imported."""
        started = self._clock()
        self._look_at_all(settled=True)
        self._code.take_tests(self._supports)
        self._plan(started)
        self._hooks = {name: identity.snapshot_hook(self._manager, name) for name in HOOKS}
        self._items = {item.nodeid: identity.snapshot_test(item) for item in session.items}

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Check that the test about to run is the collected one, and not what an earlier test made of it."""
        (now, content), same = identity.snapshot_test(item), identity.are_identical
        known, before = self._items.get(item.nodeid, (now, content))
        if not (same(known, now) and before == content):
            same_code = same(known[:2], now[:2])
            if same_code or not self._is_explained(vars(item).get("_obj")):
                self._tell(f"the collected test {item.nodeid}")

    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, None]:
        """Check the code that decides the test, before and after it: fixtures may have called the code under test.

        Again when it was called: a patch of what makes its report may undo itself there. What the test itself
        patched is not undone yet, so only what is of the code under test counts then.
        """
        self._look_at_deciding()
        for name in SHADOWS.intersection(vars(item)):
            self._judge(item.nodeid, name, vars(item)[name])
        yield
        self._look_at_deciding(lenient=True)

    def pytest_runtest_logfinish(self) -> None:
        """Check the code that decided the test, and now and then all loaded code."""
        self._check_hooks()
        started = self._clock()
        if started >= self._next:
            self._look_at_all(settled=False)
            self._plan(started)

    def _plan(self, started: float) -> None:
        now = self._clock()
        self._next = now + SHARE * (now - started)

    def pytest_sessionfinish(self) -> Generator[None, Any, None]:
        """Check all loaded code before the session is over."""
        self.close()
        yield

    def pytest_unconfigure(self) -> None:
        """Check all loaded code where a session broke off: changes by plug-ins are undone after this."""
        self.close()

    def close(self) -> None:
        """Check all loaded code once more, unless that was done: to unregister the plug-in does not blind it."""
        if self._manager is not None and not self._closed:
            self._closed = True
            self._look_at_all(settled=True)

    def _check_hooks(self) -> None:
        self._look_at_deciding()
        for name, hook in self._hooks.items():
            if not identity.is_unchanged(self._manager, hook):
                self._judge_hook(name, hook.parts)

    def _look_at_all(self, *, settled: bool) -> None:
        """Check all loaded code; *settled* if no fixture is at work, so that every change is permanent."""
        self._check_hooks()
        self._look(self._code.find_changes(), settled=settled)
        for name, module in self._modules.items():
            now = sys.modules.get(name)
            deciding = name.partition(".")[0] in identity.FRAMEWORK
            if now is not module and (deciding or (settled and now is not None and self._asked.imports(name))):
                self._judge("sys.modules", name, now)

    def _look(self, changes: Iterable[loaded.Change], *, lenient: bool = False, settled: bool = False) -> None:
        for change in changes:
            if not identity.is_same_again(change.before, change.now) and self._matters(change, settled):
                self._judge(change.where, change.name, change.now, lenient=lenient)

    def _matters(self, change: loaded.Change, settled: bool) -> bool:  # noqa: FBT001  as `_look_at_all` says it
        """Return whether *change* is in the framework, or by the code under test in the tests or what they ask."""
        if change.where.partition(".")[0] in identity.FRAMEWORK:
            return True
        if change.now is loaded.GONE and "<locals>" in getattr(change.owner, "__qualname__", ""):
            return False  # a class of one call that sheds its methods, as lazy containers do
        foreign = any(map(self._foreign, identity.find_places(change.now)))
        if self._supports(loaded.find_file(change.owner)):
            hidden = change.before is loaded.GONE if isinstance(change.owner, ModuleType) else is_special(change.name)
            return foreign and (isinstance(change.owner, FunctionType) or hidden)
        return (settled or foreign) and change in self._asked

    def _judge_hook(self, name: str, known: Sequence[object]) -> None:
        """Judge what was added to the hook *name*, taken from it, or made of what was there."""
        among, now = identity.contains_identity, identity.snapshot_hook(self._manager, name)
        for function in now.functions:
            below = identity.unwrap_function(function)
            if not (among(function, known) and (below is None or among(below.__code__, known))):
                self._judge("the hook", name, function, lenient=True)
        gone = [one for one in known if not among(one, now.parts)]
        if known and (not identity.are_identical(known[:2], now.parts[:2]) or any(map(identity.is_ours, gone))):
            self._tell(f"the hook {name}")

    def _judge(self, where: str, name: str, value: object, *, lenient: bool = False) -> None:
        if not self._is_explained(value, lenient=lenient):
            self._tell(f"{where}.{name}")

    def _is_explained(self, value: object, *, lenient: bool = False) -> bool:
        """Return whether *value* is the work of the task's own tests or of a plug-in; *lenient*: of anybody else known.

        What belongs to nobody is no explanation: no plug-in wants pytest to call `print` in place of a test.
        """
        places, function = identity.find_places(value), identity.unwrap_function(value)
        if not places or any(map(self._foreign, places)):
            return False
        owner = function if function is not None else value if isinstance(value, type) else type(value)
        package = str(getattr(owner, "__module__", "")).partition(".")[0]
        return lenient or not (package in identity.FRAMEWORK or package in getattr(sys, "stdlib_module_names", ()))

    def _tell(self, what: str) -> None:
        if what not in self._told and len(self._told) < TOLD:
            self._told.add(what)
            self._send(["tampered", what])
