"""Collects the events of the tests of one Go package, and the result of each requested test, reported once.

Events are those of `go doc test2json`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Event = Mapping[str, object]
    Record = list[object]

TEXT_CHARS = 8_000
"""Characters kept of what a test prints, of its start and of its end."""

OUTCOMES = {"pass": "passed", "fail": "failed", "skip": "skipped"}

WORST = ("failed", "skipped", "passed")
"""Order of precedence of outcomes where two tests of a package have one name."""

NOISE = re.compile(r"\s*(?:=== (?:RUN|PAUSE|CONT|NAME|ATTR|ARTIFACTS)\b|--- (?:PASS|SKIP): )")

DIED = re.compile(r"^(?:panic: |fatal error: |SIG[A-Z]+: )", re.MULTILINE)

FRAME = re.compile(r"^\t(/\S+\.go):\d+", re.MULTILINE)

VARYING = (
    (re.compile(r" ?\(\d+\.\d+s\)"), ""),
    (re.compile(r"\bgoroutine \d+(?: gp=\S+)?(?: m=\S+)?(?: mp=\S+)?"), "goroutine N"),
    (re.compile(r"^((?:ok|FAIL|\?)\s+\S+)\s+\d+\.\d+s$", re.MULTILINE), r"\1"),
)
"""Patterns of text that differs from run to run, and their replacements."""


class BoundedText:
    """Printed text of which only the beginning and the end are kept."""

    def __init__(self) -> None:
        self._head, self._tail = "", ""

    def add(self, text: str) -> None:
        """Add *text*, dropping what no longer fits from the middle."""
        room = TEXT_CHARS - len(self._head)
        self._head += text[:room] if room > 0 else ""
        self._tail = (self._tail + (text[room:] if room > 0 else text))[-TEXT_CHARS:]

    def __str__(self) -> str:
        return self._head + self._tail


class PackageResults:
    """The tests of one folder. Each event it takes in is answered with the records to send."""

    def __init__(self, folder: str, homes: Mapping[str, Sequence[str]], ids: Iterable[str], limit: float) -> None:
        self.folder, self.homes, self.ended, self.late = folder, homes, False, ""
        self.files, self.began, self._limit = homes[""], False, limit
        self._asked: dict[str, list[str]] = {}
        for test_id in ids:
            path, _, name = test_id.partition("::")
            if path in homes.get(name.partition("/")[0], ()):
                self._asked.setdefault(name, []).append(test_id)
        self._texts: dict[str, BoundedText] = {}
        self._open: dict[str, bool] = {}
        """Tests that began and did not end; whether they wait for others to run in parallel with."""
        self._clock: dict[str, float] = {}
        self._used: dict[str, float] = {}
        self._told: set[str] = set()
        self._twins: dict[str, list[Record]] = {}
        self._pending: list[Record] = []
        self._failed = self._complete = False

    def build_pattern(self) -> str:
        """Return the expression for `-run` that selects what was asked for.

        A subtest alone if its test was not asked for.
        """
        whole = [re.escape(name) for name in self._asked if "/" not in name]
        parts = [f"^({'|'.join(whole)})$"] if whole else []
        alone = [name for name in self._asked if "/" in name and name.partition("/")[0] not in self._asked]
        parts += ["/".join(f"^{re.escape(element)}$" for element in name.split("/")) for name in alone]
        return "|".join(parts) or "^$"

    def hear(self, event: Event, now: float) -> list[Record]:
        """Take an event of a test, or of what the package itself prints; *now* in seconds."""
        action, test = str(event.get("Action")), str(event.get("Test", ""))
        if action == "output":
            self._print(test, str(event.get("Output", "")))
        elif action in ("run", "cont"):
            self.began, self._open[test], self._clock[test] = True, False, now
            return [["start", i] for i in self._asked.get(test, ())] if action == "run" else []
        elif action == "pause":
            self._open[test] = True
            self._used[test] = self._used.get(test, 0.0) + now - self._clock.pop(test, now)
        elif test and action in OUTCOMES:
            return self._finish(test, action, event.get("Elapsed"))
        return []

    def find_overdue(self, now: float) -> str:
        """Return the test that ran longer than it may, or empty. One with requested subtests has time for each."""
        for test, since in tuple(self._clock.items()):
            share = max(1, sum(name == test or name.startswith(f"{test}/") for name in self._asked))
            if "/" not in test and self._used.get(test, 0.0) + now - since > share * self._limit:
                return test
        return ""

    def settle(self, *, failed: bool) -> list[Record]:
        """Return the results of the tests that did not end, now that their package has; none for missing tests."""
        self.ended = True
        records: list[Record] = []
        for name, runs in self._twins.items():
            records += self._tell(name, min(runs, key=lambda run: WORST.index(str(run[0]))))
        left = [name for name in self._asked if name not in self._told]
        if failed and self._pending and not (self._failed or self._open or left):
            why = f"passed, and then its package failed\n{self.get_output('')}"
            self._pending = [[*self._pending[0][:2], "error", 0, why, "code", ""]]
        records += self._flush()
        if failed and not self._complete:
            for name in left:
                records += self._tell(name, self._record_unfinished(name))
        return records

    def get_output(self, test: str) -> str:
        """Return the output of *test* and its subtests, or, for an empty name, of the package outside of its tests."""
        names = [n for n in self._texts if n == test or (test and n.startswith(f"{test}/"))]
        text = "".join(str(self._texts[name]) for name in names)
        for varying, constant in VARYING:
            text = varying.sub(constant, text)
        return text

    def find_blame(self, room: str) -> str:
        """Return the blame if it ended before its first test: whose code in *room* the stack shows first."""
        files = [path for path in FRAME.findall(self.get_output("")) if path.startswith(f"{room}/")]
        return "test" if not files or files[0].endswith("_test.go") else "code"

    def _print(self, test: str, text: str) -> None:
        if not test and text in ("PASS\n", "FAIL\n"):
            self._complete = True  # the testing package came to its own end
        elif not NOISE.match(text):
            self._texts.setdefault(test, BoundedText()).add(text)

    def _finish(self, test: str, action: str, elapsed: object) -> list[Record]:
        self._open.pop(test, None)
        self._clock.pop(test, None)
        self._failed = self._failed or action == "fail"
        records: list[Record] = []
        if test in self._asked:
            ms = int(1000 * elapsed) if isinstance(elapsed, int | float) else 0
            said = "" if action == "pass" else self.get_output(test)
            run: Record = [OUTCOMES[action], ms, said, "code" if action == "fail" else "", ""]
            if len(self.homes[test.partition("/")[0]]) > 1:
                self._twins.setdefault(test, []).append(run)
            else:
                records = self._tell(test, run)
        if action != "fail" or "/" not in test:
            for name in [n for n in self._texts if n == test or n.startswith(f"{test}/")]:
                del self._texts[name]
        return records

    def _tell(self, name: str, run: Record) -> list[Record]:
        """Return the results for *name*. The newest pass is held back: its package may still fail without one."""
        self._told.add(name)
        records = self._flush()
        results: list[Record] = [["result", test_id, *run] for test_id in self._asked[name]]
        if run[0] == "passed":
            self._pending = results[-1:]
            return records + results[:-1]
        return records + results

    def _flush(self) -> list[Record]:
        pending, self._pending = self._pending, []
        return pending

    def _record_unfinished(self, name: str) -> Record:  # noqa: PLR0911  one line per fate
        """Return the record of a test that was asked for and did not end."""
        culprit = self.late or next((n for n, waits in self._open.items() if "/" not in n and not waits), "")
        running = name in self._open and not self._open[name]
        if not running and culprit:
            ended = f"ran longer than {self._limit:g} s" if self.late else "ended the process"
            return ["error", 0, f"not run: {culprit} {ended}, which ended all tests of its package", "code", ""]
        if not self.began:
            return ["error", 0, self.get_output("") or "the package failed before its first test", "", ""]
        if not running:
            return ["error", 0, f"not run: its package ended before\n{self.get_output('')}", "code", ""]
        said = self.get_output(name)
        if self.late and name.partition("/")[0] == self.late:
            return ["timeout", 0, f"ran longer than {self._limit:g} s\n{_select_stacks(said)}", "code", ""]
        if self.late:
            return ["error", 0, f"stopped: {self.late} ran longer than {self._limit:g} s", "code", ""]
        if DIED.search(said):
            return ["failed", 0, said, "code", ""]
        return ["error", 0, f"the process ended in this test\n{said}", "code", ""]


def _select_stacks(said: str) -> str:
    """Return the stacks of a dump that run through the room, the working directory."""
    before, quit_, dump = said.partition("SIGQUIT: quit\n")
    inside = f"\t{Path.cwd()}/"
    return before + "\n\n".join(block for block in dump.split("\n\n") if inside in block) if quit_ else said
