"""Checks by identity that the framework, its hooks and the collected tests stay what they were.

Loaded by path inside the tested interpreter; standard library only, Python 3.8 or newer. Monkeypatching within a test
that is undone with it is nobody's business. What the code under test leaves behind in the framework is reported as
`["tampered", what]`. It is a wire across the floor, not a wall: code in the same process can step over it, which is
what challenges and a second process are for.
"""

from __future__ import annotations

import sys
import time
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any

from jumar.child.pytest import framework_snapshot as snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    import pytest

    Send = Callable[[list[object]], None]

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
"""The whole framework is looked at when this many times as long has passed as that takes: 2 % of the time at most."""

TOLD = 5
"""Maximum number of findings reported; the first one already voids the verdict."""


class TamperCheck:
    """Plug-in that compares the framework, its hooks and the tests with what they were.

    *foreign* says whether a file is code under test.
    """

    def __init__(self, foreign: Callable[[str], bool], send: Send) -> None:
        self._foreign = foreign
        self._send = send
        self._told: set[str] = set()
        self._first: dict[tuple[str, str], object] = {}
        self._hooks: dict[str, Any] = {}
        self._items: dict[str, Any] = {}
        self._manager: Any = None
        self._next, self._clock = 0.0, time.perf_counter
        self._closed = False
        self.arm()

    def arm(self) -> None:
        """Remember what the framework is made of now: before the room can be seen, and again once plug-ins are in."""
        self._spaces = tuple(snapshot.list_spaces())
        self._deciding = tuple(s for s in self._spaces if s.where in DECIDING)
        functions = (snapshot.unwrap_function(value) for space in self._spaces for value in space.values)
        self._functions = [function for function in functions if function is not None]
        self._codes = [function.__code__ for function in self._functions]
        if not self._first:  # what plug-ins put there later may go again, and often does when the session is over
            self._first = {(s.where, name): s.values[n] for s in self._spaces for n, name in enumerate(s.names)}

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Accept what the loading of conftest files and plug-ins has made of the framework as the new state.

        Plug-ins of pytest change it, and one that is itself the code under test is loaded to do just that.
        """
        self._manager = session.config.pluginmanager
        files = [str(getattr(plugin, "__file__", None) or "") for plugin in self._manager.get_plugins()]
        if not any(map(self._foreign, files)):
            self._look(self._spaces, lenient=True)
            self._look_at_code()
            for name in HOOKS:
                self._judge_hook(name, ())
        self.arm()
        self._hooks = {name: snapshot.snapshot_hook(self._manager, name) for name in HOOKS}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Remember the tests and the hooks; by now all of their files, and so the code under test, were imported."""
        self._look(self._spaces)
        self._outcome()
        self._hooks = {name: snapshot.snapshot_hook(self._manager, name) for name in HOOKS}
        self._items = {item.nodeid: snapshot.snapshot_test(item) for item in session.items}

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Check that the test about to run is the collected one, and not what an earlier test made of it."""
        known, now = self._items.get(item.nodeid), snapshot.snapshot_test(item)
        if known is not None and not (snapshot.are_identical(known.parts, now.parts) and known.content == now.content):
            same_code = snapshot.are_identical(known.parts[:2], now.parts[:2])
            if same_code or not self._explained(vars(item).get("_obj")):
                self._tell(f"the collected test {item.nodeid}")

    def pytest_runtest_call(self, item: pytest.Item) -> None:
        """Look at what the test is about to go through: fixtures may have called the code under test."""
        self._look(self._deciding)
        for name in SHADOWS.intersection(vars(item)):
            self._judge(item.nodeid, name, vars(item)[name])

    def pytest_runtest_logfinish(self) -> None:
        """Look at what the test came through, and now and then at everything."""
        self._outcome()
        started = self._clock()
        if started >= self._next:
            self._look(self._spaces)
            self._look_at_code()
            now = self._clock()
            self._next = now + SHARE * (now - started)

    def pytest_sessionfinish(self) -> Generator[None, Any, None]:
        """Look at everything before the session is over."""
        self.close()
        yield

    def close(self) -> None:
        """Look at everything once more, unless that was done; whoever takes the plug-in away does not keep it blind."""
        if self._manager is not None and not self._closed:
            self._closed = True
            self._outcome()
            self._look(self._spaces)
            self._look_at_code()

    def _outcome(self) -> None:
        self._look(self._deciding)
        for name, hook in self._hooks.items():
            if not snapshot.is_unchanged(self._manager, hook):
                self._judge_hook(name, hook.parts)

    def _look(self, spaces: Sequence[Any], *, lenient: bool = False) -> None:
        for space in spaces:
            table = space.table
            if not all(map(is_, map(table.get, space.names), space.values)):
                for n, name in enumerate(space.names):
                    now = table.get(name)
                    if now is not space.values[n] and now is not self._first.get((space.where, name)):
                        self._judge(space.where, name, now, lenient=lenient)
            if len(table) > space.size and isinstance(space.owner, type):
                for name in snapshot.find_hiding_names(space):
                    self._judge(space.where, name, table[name], lenient=lenient)

    def _look_at_code(self) -> None:
        if not all(map(is_, map(attrgetter("__code__"), self._functions), self._codes)):
            for n, function in enumerate(self._functions):
                if function.__code__ is not self._codes[n]:
                    self._judge(function.__module__, f"{function.__qualname__}.__code__", function)

    def _judge_hook(self, name: str, known: Sequence[object]) -> None:
        """Judge what was added to the hook *name*, taken from it, or made of what was there."""
        among, now = snapshot.contains_identity, snapshot.snapshot_hook(self._manager, name)
        for function in now.functions:
            below = snapshot.unwrap_function(function)
            if not (among(function, known) and (below is None or among(below.__code__, known))):
                self._judge("the hook", name, function, lenient=True)
        gone = [one for one in known if not among(one, now.parts)]
        if known and (not snapshot.are_identical(known[:2], now.parts[:2]) or any(map(snapshot.is_ours, gone))):
            self._tell(f"the hook {name}")

    def _judge(self, where: str, name: str, value: object, *, lenient: bool = False) -> None:
        if not self._explained(value, lenient=lenient):
            self._tell(f"{where}.{name}")

    def _explained(self, value: object, *, lenient: bool = False) -> bool:
        """Return whether *value* is the work of the task's own tests or of a plug-in; *lenient*.

        Or of anybody else known.

        What belongs to nobody is no explanation: no plug-in wants pytest to call `print` in place of a test.
        """
        function = snapshot.unwrap_function(value)
        places = snapshot.find_source_files(value if function is None else function)
        if not places or any(map(self._foreign, places)):
            return False
        owner = function if function is not None else value if isinstance(value, type) else type(value)
        package = str(getattr(owner, "__module__", "")).partition(".")[0]
        return lenient or not (package in snapshot.FRAMEWORK or package in getattr(sys, "stdlib_module_names", ()))

    def _tell(self, what: str) -> None:
        if what not in self._told and len(self._told) < TOLD:
            self._told.add(what)
            self._send(["tampered", what])
