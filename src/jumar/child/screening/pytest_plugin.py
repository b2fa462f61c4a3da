"""Runs the tests of one candidate inside a forked child, and sends its parent one line about each."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MEMORY_BYTES = 1 << 30
"""Memory that a candidate may map beyond its parent's, in bytes."""

FILE_BYTES = 64 << 20
"""Most bytes that a candidate may write to one file."""

SLACK = 5.0
"""A green test may take so many times longer than it did without the change."""


class ScreeningPlugin:
    """Pytest plugin that collects the asked tests of a session and runs them one by one, on request."""

    def __init__(self, config: Mapping[str, Any], ready: Callable[[ScreeningPlugin], None]) -> None:
        """*ready* is called when the tests are collected; it leaves the process."""
        self._asked = frozenset([*config["red"], *config["green"]])
        self._ready = ready
        self._outcome = ""
        self._sign = ""
        self.items: dict[str, list[Any]] = {}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Find the items of each asked id; an id without parameters stands for all of its parametrisations."""
        for item in items:
            name = item.nodeid if item.nodeid in self._asked else item.nodeid.partition("[")[0]
            if name in self._asked:
                self.items.setdefault(name, []).append(item)

    def pytest_runtestloop(self) -> bool:
        """Run the screening of candidates in the place of pytest's own loop."""
        self._ready(self)
        return True

    def pytest_runtest_makereport(self, item: Any, call: Any) -> object:
        """Return a report of a failure without its traceback: nobody reads it, and it can be slow."""
        if call.excinfo is None or call.excinfo.typename in ("Skipped", "XFailed"):
            return None
        self._sign = self._sign or f"{call.excinfo.typename}: {str(call.excinfo.value)[:200]}"
        reports = import_module("_pytest.reports")
        report: object = reports.TestReport(
            item.nodeid, item.location, {}, "failed", self._sign, call.when, duration=call.duration
        )
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Merge the phases of a test: the first that did not pass counts."""
        if self._outcome in ("", "passed") and report.outcome != "rerun":
            expected = hasattr(report, "wasxfail")
            outcomes = {"skipped": "xfailed" if expected else "skipped", "failed": "failed"}
            self._outcome = outcomes.get(report.outcome, "xpassed" if expected else "passed")

    def run(self, name: str) -> tuple[str, str]:
        """Return the outcome of the asked id (`missing` if it was not collected), and how it failed."""
        found = self.items.get(name, [])
        self._sign = ""
        for item in found:
            self._outcome = ""
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            if self._outcome != "passed":
                return self._outcome or "missing", self._sign
        return "passed" if found else "missing", ""


class ForkedTrial:
    """A run of one candidate in its forked child."""

    def __init__(self, config: Mapping[str, Any], job: Mapping[str, Any], fd: int) -> None:
        self._config, self._job, self._fd = config, job, fd

    def tell(self, *what: object) -> None:
        """Send one line to the waiting parent."""
        os.write(self._fd, json.dumps(what).encode() + b"\n")

    def confine(self) -> None:
        """Bound what the candidate may take; called first thing in the child."""
        os.setsid()
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        with contextlib.suppress(OSError, ValueError):
            mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY_BYTES,) * 2)
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES,) * 2)
        self._limit(self._job["seconds"] + 2.0)

    def screen(self, plugin: ScreeningPlugin) -> None:
        """Run what the job asks for, and leave."""
        if self._job.get("baseline"):
            self._measure(plugin)
        elif self._run_reds(plugin):
            self._run_greens(plugin)
        self.tell("done")
        os._exit(0)

    def _limit(self, seconds: float) -> None:
        """Die of SIGPROF after so many more seconds of processor time."""
        signal.setitimer(signal.ITIMER_PROF, seconds)

    def _measure(self, plugin: ScreeningPlugin) -> None:
        for name in self._config["green"]:
            started = time.process_time()
            self._limit(self._job["seconds"])
            outcome, _ = plugin.run(name)
            self.tell("green", name, outcome, time.process_time() - started)

    def _run_reds(self, plugin: ScreeningPlugin) -> bool:
        """Run the red tests and return whether enough turned green for the green ones to be worth their time."""
        turned = failed = 0
        for name in self._config["red"]:
            started = time.process_time()
            self._limit(self._job["seconds"])
            outcome, sign = plugin.run(name)
            self.tell("red", name, outcome, sign, time.process_time() - started)
            turned += outcome == "passed"
            failed += outcome != "passed"
            if failed >= self._config["hopeless"] and not turned:
                return False
        if not failed:
            self.tell("turned")
        return bool(turned > self._job["floor"])

    def _run_greens(self, plugin: ScreeningPlugin) -> None:
        for name, known, seconds in self._job["greens"]:
            self._limit(max(self._job["seconds"], SLACK * seconds))
            outcome, _ = plugin.run(name)
            if outcome not in ("passed", known):
                self.tell("lost", name, outcome)
                return
        self.tell("kept")
