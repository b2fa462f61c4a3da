"""Merges the reports of vitest or jest into one result per asked id; an id without a report has no result.

Tests of one name in one file are one id, which has passed if all of them have, and an id with placeholders (`adds %i`,
`$name`, `${x}`) stands for all tests it fits.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from jumar.child.javascript import blame as blaming
from jumar.child.normalise import PRINTED, shorten

SEPARATOR = " > "
WORST_FIRST = ("timeout", "failed", "error", "skipped", "xfailed", "xpassed", "passed")
"""Outcomes from worst to best: the worst one decides an id that stands for several tests."""

PLACEHOLDER = re.compile(r"\\\$\\\{.*?\\\}|%[sdifjopc%]|%\\\$|%\\#|%#|\\\$[A-Za-z_#][\w#]*(?:\\\.\w+)*")
"""Placeholders of `test.each` and template literals in a name whose regular expression characters are escaped."""

_NOISE = re.compile(r"\x1b\[[0-9;]*m|\?[tv]=\w+| \(pid=\d+\)")
_ADVICE = re.compile(r"Jest encountered an unexpected token[\s\S]*?Details:\s*|● Test suite failed to run\s*")
_SHOULD_FAIL = re.compile(r"Expect test to fail|supposed to fail")

LINES = 8
"""Places in the room that an excerpt names."""


class NodeTestResult(NamedTuple):
    """Result of one test, or of several with one id."""

    outcome: str
    ms: int
    excerpt: str
    blame: str
    absent: str


def build_pattern(names: list[str]) -> str:
    """Return a JavaScript regular expression for the tests of *names*, joined by ` > ` or by a space."""
    return f"^\\s*(?:{'|'.join(map(_build_fitting_pattern, names))})$"


def _build_fitting_pattern(name: str) -> str:
    escaped = re.sub(r"[\\^$.*+?()\[\]{}|/]", r"\\\g<0>", name)
    return PLACEHOLDER.sub(lambda _: r"[\s\S]*", escaped).replace(SEPARATOR, "(?: > | )")


class ResultFindings:
    """Results received so far, of one or more runs."""

    def __init__(self) -> None:
        self.tests: dict[str, dict[str, str]] = {}
        """Path -> id -> mode it was collected with first; empty as long as it was only heard to start."""
        self.whole = set[str]()
        """Files of which all tests are known."""
        self.results: dict[str, dict[tuple[str, str], list[dict[str, Any]]]] = {}
        """Path -> (project, id) -> what was said of it."""
        self.suites: list[tuple[str, list[str], list[dict[str, Any]]]] = []
        self.printed: dict[tuple[str, str], str] = {}
        """Id (or the beginning of all ids of a file), and stream -> what was printed there, without its middle."""
        self.loose: list[dict[str, Any]] = []
        """Errors that belong to no test."""
        self.broken: dict[str, NodeTestResult] = {}
        self.forced: dict[str, NodeTestResult] = {}
        """Ids whose result was decided by us."""
        self.lost = False
        """True if some test began and never ended."""
        self.sealed: set[str] = set()
        """Ids of which nothing more is taken in: a later run has them skipped."""

    def hear(self, event: dict[str, Any]) -> None:
        """Take in one event of the runner's end."""
        path = blaming.get_path_in_room(event["file"]) if "file" in event else ""
        if "file" in event and not path:
            return
        match event:
            case {"on": "collected", "tests": tests}:
                known = self.tests.setdefault(path, {})
                known.update((i, mode) for names, mode in tests if not known.get(i := build_id(path, names)))
                self.whole.update([path] if tests else [])
            case {"on": "start", "names": names}:
                self.tests.setdefault(path, {}).setdefault(build_id(path, names), "")
            case {"on": "again", "project": project}:
                kept = self.results.get(path, {}).items()
                self.results[path] = {key: said for key, said in kept if key[0] != project or key[1] in self.sealed}
            case {"on": "result", "project": project, "names": names} if build_id(path, names) not in self.sealed:
                test_id = build_id(path, names)
                self.tests.setdefault(path, {}).setdefault(test_id, "")
                self.results.setdefault(path, {}).setdefault((project, test_id), []).append(event)
            case {"on": "printed", "names": names, "stream": stream, "text": text}:
                key = (build_id(path, names), stream)
                self.printed[key] = shorten(self.printed.get(key, "") + text, PRINTED)
            case {"on": "suite", "names": names, "errors": errors}:
                self.suites.append((path, names, errors))
            case {"on": "unhandled", "errors": errors}:
                self.loose += errors

    def list_found(self) -> list[str]:
        """Return all ids, file by file."""
        return [test_id for path in sorted(self.tests) for test_id in self.tests[path]]

    def is_reported(self, test_id: str) -> bool:
        """Return whether a result for *test_id*, or for its file, was received that decides it."""
        path = test_id.partition("::")[0]
        said = {key[1] for key in self.results.get(path, {})}
        members = self.list_members(test_id)
        whole = any(p == path and not names for p, names, _ in self.suites)
        return test_id in self.forced or path in self.broken or whole or (bool(members) and said.issuperset(members))

    def list_members(self, asked: str) -> list[str]:
        """Return the ids that *asked* stands for: itself, or those that it fits."""
        path, _, name = asked.partition("::")
        known = self.tests.get(path, {})
        if asked in known or not PLACEHOLDER.search(re.escape(name)):
            return [asked] if asked in known else []
        pattern = re.compile(_build_fitting_pattern(name))
        return [test_id for test_id in known if pattern.fullmatch(test_id.partition("::")[2])]

    def list_broken(self) -> dict[str, NodeTestResult]:
        """Return the broken files: path -> why no test was found in it."""
        found = dict(self.broken)
        for path, names, errors in self.suites:
            if not names and not self.tests.get(path):
                found.setdefault(path, add_errors("import_error", errors, path, "file"))
        return found

    def build_results(self, asked: list[str]) -> dict[str, NodeTestResult]:
        """Return the results of the *asked* ids; nothing was said of those that are not in it."""
        folded = {}
        for test_id in asked:
            known = [self.forced.get(member) or self._build_result(member) for member in self.list_members(test_id)]
            path = test_id.partition("::")[0]
            if test_id in self.forced or (not known and self.tests.get(path) and path not in self.whole):
                known = [self.forced.get(test_id)]
            said = [result or self._build_lost_result(test_id) for result in known]
            results = [result for result in said if result]
            if results and len(results) == len(said):
                worst = min(results, key=lambda result: WORST_FIRST.index(result.outcome))
                folded[test_id] = worst._replace(ms=sum(result.ms for result in results))
        for path, names, errors in self.suites:
            if not any(self._is_withheld(member, path, names) for i in folded for member in self.list_members(i)):
                _charge(folded, build_prefix(path, names), add_errors("error", errors, path, "hook"))
        for error in [] if self.lost else self.loose:
            path = blaming.get_path_in_room(error["path"]) if error["path"] else ""
            named = [i for i in folded if error["test"] and i.startswith(path) and i.endswith(error["test"])]
            _charge(folded, named[-1] if named else path, add_errors("error", [error], path, "test"))
        return folded

    def _is_withheld(self, test_id: str, path: str, names: list[str]) -> bool:
        """Return whether *test_id* was not run because the suite of *names* could not be set up."""
        said = self._list_reports(test_id)
        wanted = self.tests.get(path, {}).get(test_id) not in ("skip", "todo")
        within = test_id.startswith(build_prefix(path, names))
        return wanted and within and all(one["state"] == "skipped" for one in said)

    def _list_reports(self, test_id: str) -> list[dict[str, Any]]:
        some = self.results.get(test_id.partition("::")[0], {})
        return [one for key, all_of in some.items() if key[1] == test_id for one in all_of]

    def _build_result(self, test_id: str) -> NodeTestResult | None:
        """Return the result of all tests of one id, in all projects."""
        results = [self._judge(test_id, one) for one in self._list_reports(test_id)]
        return min(results, key=lambda result: WORST_FIRST.index(result.outcome)) if results else None

    def _build_lost_result(self, test_id: str) -> NodeTestResult | None:
        """Return the result of a test that was found and never came back: what ended its process, if that is known."""
        path = test_id.partition("::")[0]
        errors = [errors for where, names, errors in self.suites if where == path and not names]
        errors = errors or [[e] for e in self.loose if not e["path"] or blaming.get_path_in_room(e["path"]) == path]
        self.lost = True
        return add_errors("error", errors[0], path, "test") if errors else None

    def _judge(self, test_id: str, said: dict[str, Any]) -> NodeTestResult:
        path = test_id.partition("::")[0]
        if said["state"] == "passed":
            return NodeTestResult("xfailed" if said["fails"] else "passed", said["ms"], "", "", "")
        if said["state"] == "failed":
            result = build_failure(said, path)
            return result._replace(excerpt=result.excerpt + self._format_output(test_id, path))
        for where, names, errors in self.suites:
            if self._is_withheld(test_id, where, names):
                return add_errors("error", errors, path, "hook")
        return NodeTestResult("skipped", 0, said["note"] or "skipped", "", "")

    def _format_output(self, test_id: str, path: str) -> str:
        """Return the output of the failing test *test_id*, shown after its error; with jest, that of its whole file."""
        texts = ""
        for title, key in (("", test_id), (" of the whole file", build_id(path, []))):
            for stream in ("stdout", "stderr"):
                if text := self.printed.get((key, stream), "").strip():
                    texts += f"\n--- Captured {stream}{title} ---\n{text}"
        return texts


def _charge(folded: dict[str, NodeTestResult], start: str, why: NodeTestResult) -> None:
    """Blame an error that no test threw on the last passed test whose id begins with *start*."""
    passed = [i for i, result in folded.items() if i.startswith(start) and result.outcome == "passed"]
    if passed:
        text = f"passed, and then something was thrown outside of all tests:\n{why.excerpt}"
        folded[passed[-1]] = why._replace(ms=folded[passed[-1]].ms, excerpt=text)


def build_id(path: str, names: list[str]) -> str:
    """Return the id of a test."""
    return f"{path}::{SEPARATOR.join(names)}"


def build_prefix(path: str, names: list[str]) -> str:
    """Return the prefix of the ids of all tests in a suite; the suite without names is the file."""
    return f"{path}::" + "".join(name + SEPARATOR for name in names)


def build_failure(said: dict[str, Any], path: str) -> NodeTestResult:
    """Return the result of a test that threw."""
    text = "\n".join(e["message"] + e["stack"] for e in said["errors"])
    in_hook = said["hook"] or ("_callCircusHook" in text and "_callCircusTest" not in text)
    if blaming.TIMED_OUT.search(text):
        outcome = "error" if in_hook and not said["fails"] else "timeout"
        return add_errors(outcome, said["errors"], path, "test")._replace(ms=said["ms"], blame=blaming.CODE, absent="")
    if said["fails"] and _SHOULD_FAIL.search(text):
        return add_errors("failed", said["errors"], path, "test")._replace(ms=said["ms"], blame=blaming.CODE, absent="")
    result = add_errors("error" if in_hook else "failed", said["errors"], path, "hook" if in_hook else "test")
    return result._replace(ms=said["ms"])


def add_errors(outcome: str, errors: list[dict[str, Any]], path: str, place: str) -> NodeTestResult:
    """Return a result with what its errors say; the first one decides whose doing it is."""
    faults = [blaming.JavaScriptError.parse(error) for error in errors]
    blame, absent = blaming.assign_blame(faults[0], path, place) if faults else (blaming.TEST, "")
    shown = (error["diff"] or error["frame"] for error in errors)
    texts = [format_excerpt(fault, more) for fault, more in zip(faults, shown, strict=True)]
    return NodeTestResult(outcome, 0, "\n\n".join(texts) or "it failed and did not say why", blame, absent)


def format_excerpt(fault: Any, more: str) -> str:
    """Return the message of *fault*, and where in the room it came from, with the lines that stand there."""
    head = fault.message if not fault.name or fault.name in fault.message else f"{fault.name}: {fault.message}"
    if fault.message and "\n" in fault.stack and "●" in fault.stack:
        head = blaming.FRAME.sub("", fault.stack)
    inside = blaming.get_path_in_room(fault.file) if fault.file else ""
    about = f"\n    in {inside}" if inside else ""
    lines = []
    for where, number in fault.list_places()[:LINES]:
        source = Path(where).read_text("utf-8", "replace").splitlines()
        line = source[number - 1].strip() if 0 < number <= len(source) else ""
        lines.append(f"    at {where}:{number}" + (f": {line}" if line else ""))
    text = "\n".join([_ADVICE.sub("", head).strip() + about, *([more] if more else []), *lines])
    return _NOISE.sub("", text.replace("file://" + os.path.realpath("."), ".").replace("file://", ""))
