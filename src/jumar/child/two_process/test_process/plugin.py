"""Pytest plug-in for a product in another process: it finds the modules there, and every doubt fails a test."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from jumar.child.challenge.own_assertions import unwrap_chain
from jumar.child.pytest import pytest_main
from jumar.child.pytest.challenge_plugin import ChallengePlugin, get_file
from jumar.child.sandbox import lock_down
from jumar.child.two_process import codec, object_tables, proxies
from jumar.child.two_process.environment.changes import ProductEnvironment
from jumar.child.two_process.environment.clocks import refuse_clocks
from jumar.child.two_process.environment.kinds import refuse_kinds
from jumar.child.two_process.environment.levels import watch_levels
from jumar.child.two_process.environment.own_process import find_state
from jumar.child.two_process.environment.seeds import end_early, watch_seeds
from jumar.child.two_process.test_process import import_hook, patches
from jumar.child.two_process.test_process import side as tests_side
from jumar.child.two_process.test_process.mentioned_names import read_constants
from jumar.child.two_process.wire import frames, library_values, rpc
from jumar.child.two_process.wire.containers.held_changes import HeldChanges, InPlaceChanges
from jumar.child.two_process.wire.files import room_paths
from jumar.child.two_process.wire.files.product_guard import ProductGuard, open_compared_files, watch_module_names
from jumar.child.two_process.wire.own_instances import is_enumeration

if TYPE_CHECKING:
    import pytest

    Wrapper = Generator[None, Any, None]
    Send = Callable[[list[object]], None]


def connect_product(config: dict[str, Any], room: str, fatal: tuple[type, ...], send: Send) -> Any:
    """Connect to the product's process as *config* says; the plug-in that represents it."""
    side = tests_side.TestsSide(ProductEnvironment(room), (*fatal, frames.ConnectionLost))
    known = codec.Codec(0)
    known.paths = room_paths.RoomPaths(room, side, config["shared"])
    known.note_library = side.ties.note_library
    changes = InPlaceChanges if config["in_place"] else HeldChanges
    known.changes = side.operands.changes = changes(known, side.fault, side.capabilities)
    side.own_instances.asks = config["in_place"]
    tables = object_tables.ObjectTables(known, side)
    peer = rpc.RpcPeer(frames.FrameConnection(*config["pipes"]), known, tables, side)
    sys.meta_path.insert(0, import_hook.ProductFinder(peer, room, config["product"]))
    guard = ProductGuard(side, known.paths)
    side.find_changed_class, side.note_text = guard.find_changed_class, known.paths.note
    sys.addaudithook(guard)
    watch_module_names(side, known.paths)
    patches.watch_patches(side.note_tie)
    watch_levels(side.environment.levels, proxies.is_library)
    patches.refuse_configured_names(side.fault)
    refuse_kinds(side, proxies.Proxy)

    def confine(names: Any) -> list[str]:
        return lock_down.confine_tests(lock_down.find_test_files(room, names), side.files.top, config["filter"])

    return DoubtPlugin(side, guard, send, confine)


class DoubtPlugin:
    """Plug-in that fails a test in which anything was doubtful, even if the test passed.

    *confine* confines this process, given the files that it has loaded, and returns what it could not do.
    """

    def __init__(self, side: tests_side.TestsSide, guard: ProductGuard, send: Send, confine: Any) -> None:
        self._side, self._guard, self._send, self._confine = side, guard, send, confine
        self._blamed = 0
        self._doubted_collectors: dict[str, str] = {}
        """Node ids of files and folders whose tests are no evidence, each with why; empty: of all tests."""
        self._tied_fixtures: list[tuple[Any, bool]] = []
        """Fixtures of several tests that need the product in this process, and whether it had a part in that."""
        self._fixed: list[tuple[dict[str, Any], str, Any]] = []
        """Functions, classes and constants of the tests' modules: namespace, name and value."""
        self._doubted_files: dict[str, str] = {}
        """Files of tests in which the product has named a file of the tests, each with which."""
        self._doubted_fixtures: list[tuple[Any, str]] = []
        """Fixtures of several tests in whose set-up something was doubtful, each with what."""

    def pytest_load_initial_conftests(self) -> Wrapper:
        """Mark that files of the room are loaded from here on."""
        watch_seeds(self._side.environment)
        self._side.environment.begin()
        open_compared_files()
        end_early()
        self._guard.armed = True
        yield

    def pytest_make_parametrize_id(self, val: object) -> str | None:
        """Return the text of a member of an enumeration of the product: that is what pytest calls members."""
        return str(val) if isinstance(val, proxies.Proxy) and is_enumeration(type(val)) else None

    def pytest_collection(self, session: pytest.Session) -> Wrapper:
        """Record which tests are the product's to call. Then all is loaded, and the process is confined."""
        yield
        calls = "the product calls functions of this test"
        self._doubts = {item.nodeid: calls for item in session.items if self._has_foreign_function(item)}
        self._doubts.update(self._find_hidden(session.items))
        self._note_doubt("")  # of what a conftest.py did
        for start, why in self._doubted_collectors.items():
            self._doubts.update({item.nodeid: why for item in session.items if item.nodeid.startswith(start)})
        self._settle(session)
        self._side.running = True
        for plugin in session.config.pluginmanager.get_plugins():
            if isinstance(plugin, ChallengePlugin):
                plugin.questions.listener = self._side.operands

    def _settle(self, session: pytest.Session) -> None:
        """Take note of what was loaded of the tests, and confine this process."""
        self._side.mentioned.learn_words()
        watch_seeds(self._side.environment)
        refuse_clocks(self._side.tie, library_values.MADE_NAMES)
        loaded = [*sys.modules.values(), *session.config.pluginmanager.get_plugins()]
        held = [import_hook.get_module_dict(m) for m in loaded if isinstance(m, types.ModuleType)]
        for lacking in self._confine([*(names.get("__file__") for names in held), *map(get_file, session.items)]):
            self._send(["unconfined", lacking])
        self._side.peer.values.paths.look()
        self._side.capabilities.conversation.files.update(map(get_file, session.items))
        for names in held:
            file = str(names.get("__file__"))
            if file.startswith(self._side.environment.room):
                text = self._side.capabilities.handed.read(file)
                self._side.capabilities.conversation.note_text(file, text)
                self._guard.words.update(room_paths.WORD.findall(text))
                self._fixed += [(names, name, value) for name, value in names.items() if _is_fixed(name, value)]
                read_constants(self._side, names, text)

    def pytest_make_collect_report(self, collector: pytest.Collector) -> Wrapper:
        """Doubt all tests of a file in whose top-level code something was doubtful."""
        if isinstance(collector, importlib.import_module("pytest").Module):
            self._side.capabilities.conversation.note_collected(get_file(collector))
        self._note_doubt("")
        yield
        self._note_doubt(collector.nodeid)

    def pytest_fixture_setup(self, fixturedef: Any) -> Wrapper:
        """Let what a fixture of several tests hands out outlive the first of them, and what is doubtful of it, too."""
        capabilities = self._side.capabilities
        before, capabilities.lasting = capabilities.lasting, capabilities.lasting or fixturedef.scope != "function"
        faults = self._side.faults
        earlier = self._side.ties.take()
        try:
            with capabilities.conversation.watch(fixturedef if capabilities.lasting else None):
                yield
        finally:
            capabilities.lasting = before
            tie = self._side.ties.take()
            if tie and fixturedef.scope != "function":
                self._tied_fixtures.append((fixturedef, tie == "led"))
            for each in filter(None, (earlier, tie)):
                self._side.ties.add(led=each == "led")
            if self._side.faults > faults and fixturedef.scope != "function":
                self._doubted_fixtures.append((fixturedef, self._side.why))

    def pytest_runtest_protocol(self, item: pytest.Item) -> Wrapper:
        """Lend what a test hands out to that test; say after which one the product was gone."""
        paths = self._side.peer.values.paths
        peer, side = self._side.peer, self._side
        for part in (peer, side.capabilities, paths, peer.values.changes, side.operands, side.line_up):
            part.begin_test()
        self._side.own_instances.take_matched()  # of what was compared between tests
        self._side.ties.begin_test()
        before, faults = self._side.peer.lost, self._side.faults
        yield
        peer.end_test()
        if paths.found:  # a helper of that file may remember what it has read
            self._doubted_files[get_file(item)] = self._side.why
        self._side.capabilities.end_test()
        if tie := self._side.ties.take():
            self._send([tie, item.nodeid])
        if why := self._side.capabilities.conversation.why:
            self._send(["conversed", item.nodeid, why])
        if self._side.own_instances.take_matched():
            self._send(["matched", item.nodeid])
        if self._side.peer.values.changes.copied:
            self._send(["copied", item.nodeid])
        if self._side.faults > faults:
            self._send(["doubted", item.nodeid, self._side.why[:300]])
        if self._side.peer.lost and not before:
            self._send(["lost", item.nodeid])

    def pytest_runtest_setup(self) -> Wrapper:
        """Check after the set-up, and after the clean-up, whether the connection answered truthfully."""
        yield from self._watch_phase("")

    def pytest_runtest_call(self, item: pytest.Item) -> Wrapper:
        """Check after the call; a test that the product could leave out is no evidence."""
        able = self._side.capabilities
        if name := find_state(_list_run(item), able.is_file, able.is_own_class):
            self._side.note_tie(f"the test looks at its own process by {name}, and the product has another one")
        doubt = self._doubts.get(item.nodeid) or self._doubted_files.get(get_file(item), "")
        yield from self._watch_phase(doubt, item=item)

    def pytest_runtest_teardown(self, item: pytest.Item) -> Wrapper:
        """Check it once more, that no fixture that it used is doubtful, and that it has asked about each query."""
        used = getattr(getattr(item, "_request", None), "_fixture_defs", {}).values()
        doubt = next((why for fixture, why in self._doubted_fixtures if fixture in used), "")
        for led in (led for fixture, led in self._tied_fixtures if fixture in used):
            self._side.ties.add(led=led)
        self._side.capabilities.conversation.note_used(used, get_file(item))
        doubt = doubt or self._side.capabilities.handed.find_idle(get_file(item), self._side.operands.compared)
        yield from self._watch_phase(doubt, last=True)

    def pytest_sessionfinish(self) -> Wrapper:
        """Ignore a plug-in that fails to write a report into the room: every test was reported by now."""
        self._guard.armed = False  # plug-ins open files for their reports
        outcome = yield
        if outcome.excinfo and isinstance(outcome.excinfo[1], PermissionError):
            outcome.force_result([])

    def close(self) -> None:
        """Report how often the tests answered, and a doubt outside of them, which makes all of them doubtful."""
        self._send(["asked", self._side.capabilities.conversation.asked])
        if self._side.faults > self._blamed:
            self._send(["doubtful", self._side.why[:1000]])

    def _watch_phase(self, doubt: str, *, last: bool = False, item: Any = None) -> Wrapper:
        outcome = yield
        kept = getattr(item, "_excinfo", None) or ()  # pytest hears of an error from unittest
        raised = [one.value for one in kept] if kept else [outcome.excinfo[1]] if outcome.excinfo else []
        self._side.asked_within.settle(raised)
        if last and (query := self._side.find_unasked()):
            doubt = f"a comparison came to a {query}, and the product was not asked about that"
        # A library may have done it for the product, as one that reads a configuration of logs does.
        if last and (changed := next((name for names, name, value in self._fixed if names.get(name) is not value), "")):
            doubt = f"{changed} of the tests is not what it was"
        self._side.check_state()
        if doubt:
            self._side.fault(doubt)
        doubted = self._side.faults > self._blamed
        self._blamed = self._side.faults
        if doubted and not outcome.excinfo:
            outcome.force_exception(AssertionError(f"not evident in two processes: {self._side.why}"[:1000]))

    def _note_doubt(self, node: str) -> None:
        """Doubt the tests of *node* if anything was doubtful since this was asked the last time."""
        if self._side.faults > self._blamed:
            self._doubted_collectors[node] = self._side.why
        self._blamed = self._side.faults

    def _find_hidden(self, items: Sequence[pytest.Item]) -> Iterator[tuple[str, str]]:
        """Yield the tests for which a name of the product hides another one: of that file, or of all that may use it.

        A file without tests may be used by any.
        """
        for file, why in self._side.hidden.items():
            own = [item.nodeid for item in items if get_file(item) == file]
            yield from ((name, why) for name in own or [item.nodeid for item in items])

    def _has_foreign_function(self, item: pytest.Item) -> bool:
        """Return whether a function of a test, or of a fixture that it takes, is not the tests' own."""
        chains = map(unwrap_chain, _list_functions(item))
        return any(not all(isinstance(function, types.FunctionType) for function in chain) for chain in chains)


def _list_functions(item: pytest.Item) -> list[Any]:
    """Return what is called for a test, and for the fixtures that it takes."""
    fixtures = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {}).values()
    return [getattr(item, "obj", None), *(fixture.func for found in fixtures for fixture in found)]


def _list_run(item: Any) -> Iterator[Any]:
    """Yield what runs for the test *item*: its function, its fixtures, its class, and its parameters."""
    test, *fixtures = _list_functions(item)
    yield from (*unwrap_chain(test), *fixtures, getattr(item, "cls", None))
    yield from getattr(getattr(item, "callspec", None), "params", {}).values()


def main() -> None:
    """Run pytest once, with the plug-in that finds the product's modules in the other process."""
    pytest_main.main(connect_product)


def _is_fixed(name: str, value: Any) -> bool:
    """Return whether a name of a file of tests stays what it is: a function's, a class's, a constant's."""
    constant = name.isupper() and not isinstance(value, (int, type(None)))
    return constant or isinstance(value, (types.FunctionType, type))
