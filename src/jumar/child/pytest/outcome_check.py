"""Observes every phase of a test itself: a reported pass must be the observed pass.

Loaded by path inside the tested interpreter; standard library only, Python 3.8 or newer. Its wrappers stand around the
phases and around the call of the test function. What is reported passed had its set-up, call and clean-up run once each
and in this order, none of them raised, and their reports are those that were made for them.
Where a plug-in or a conftest file of the task itself repeats tests or excuses failures, that is its right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jumar.child.start import FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    import pytest

    Send = Callable[[list[object]], None]
    Wrapper = Generator[None, Any, None]

PHASES = ("setup", "call", "teardown")

WATCHERS = ("_pytest", "_hypothesis_pytestplugin", "anyio", "faker", "pytest_asyncio", "pytest_benchmark", "pytest_cov",
            "pytest_django", "pytest_flask", "pytest_httpx", "pytest_mock", "pytest_randomly", "pytest_socket",
            "pytest_subtests", "pytest_timeout", "pytest_trio", "respx", "syrupy", "typeguard",
            "xdist")  # fmt: skip
"""Packages whose hooks look on, and change no outcome."""


class OutcomeCheck:
    """Plug-in that observes the phases of each test."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._excused = False
        self._plain: set[str] = set()
        self._begin()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Check which plug-ins may change outcomes, and which tests are plain functions, called through one hook."""
        hook = session.config.hook
        callers = [(hook.pytest_runtest_protocol, False), (hook.pytest_runtest_makereport, True)]
        callers += [(getattr(hook, f"pytest_runtest_{phase}"), True) for phase in PHASES]
        # What runs tests by itself is no wrapper; what excuses them is one.
        self._excused = any(
            _meddles(one) and _wraps(one) is wrapping for caller, wrapping in callers for one in caller.get_hookimpls()
        )
        items = (item for item in session.items if type(item).__module__ == "_pytest.python")
        self._plain = {item.nodeid for item in items if "runtest" not in vars(item)}

    def pytest_runtest_logstart(self) -> None:
        """Reset what was observed of the test before."""
        self._begin()

    def pytest_runtest_setup(self) -> Wrapper:
        """Observe whether the set-up raises."""
        yield from self._phase("setup")

    def pytest_runtest_call(self) -> Wrapper:
        """Observe whether the call raises."""
        yield from self._phase("call")

    def pytest_runtest_teardown(self) -> Wrapper:
        """Observe whether the teardown raises."""
        yield from self._phase("teardown")

    def pytest_pyfunc_call(self) -> Wrapper:
        """Observe whether the test function raises; what lies between it and the phase is pytest."""
        outcome = yield
        self._called += 1
        if outcome.excinfo:
            self._raised.append("the function of the test")

    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Wrapper:
        """Keep the report, and what it says now."""
        outcome = yield
        if not outcome.excinfo:
            report = outcome.get_result()
            self._made.append((report, report.outcome, call.excinfo is not None))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Compare a report with what was made. Those of subtests come as they like; they can only fail a test."""
        if not hasattr(report, "context"):
            self._said.append((str(report.when), report.outcome, hasattr(report, "wasxfail")))
            made = [raised for one, outcome, raised in self._made if one is report and outcome == report.outcome]
            if not made:
                self._unmade = True
            if any(made):
                self._raised.append(f"the {report.when} of the test")

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Speak up if the test is said to have passed and did not."""
        passed = all(outcome == "passed" and not expected for _, outcome, expected in self._said)
        if passed and not self._excused:
            for fault in self._faults(nodeid):
                self._send(["tampered", f"{nodeid}: {fault}"])
                break

    def _faults(self, nodeid: str) -> Generator[str, None, None]:
        if tuple(when for when, _, _ in self._said) != PHASES:
            yield "reported passed without a report of each of its phases"
        if tuple(self._ran) != PHASES:
            yield "reported passed without having been run"
        if self._raised:
            yield f"reported passed, and {self._raised[0]} raised"
        if self._unmade:
            yield "reported by what did not run it"
        if nodeid in self._plain and self._called != 1:
            yield "reported passed, and its function was not called"

    def _begin(self) -> None:
        self._ran: list[str] = []
        self._raised: list[str] = []
        self._made: list[tuple[object, str, bool]] = []
        self._said: list[tuple[str, str, bool]] = []
        self._called = 0
        self._unmade = False

    def _phase(self, name: str) -> Wrapper:
        self._ran.append(name)
        outcome = yield
        if outcome.excinfo:
            self._raised.append(f"the {name} of the test")


def _meddles(implementation: Any) -> bool:
    """Return whether anybody other than pytest, jumar and pure observers implements a hook."""
    function = implementation.function
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    ours = code is not None and code.co_filename.startswith(FOLDER)
    return not ours and str(getattr(function, "__module__", "")).partition(".")[0] not in WATCHERS


def _wraps(implementation: Any) -> bool:
    return bool(implementation.hookwrapper or getattr(implementation, "wrapper", False))
