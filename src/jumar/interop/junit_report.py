"""Writes runs as a JUnit report for CI: a suite for each task, a test case for each rollout."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from xml.etree import ElementTree as ET

from jumar.core.gate.excused_tests import format_passed
from jumar.core.state.stop import StopReason
from jumar.interop.stored_runs import AGENT_NAME, StoredRun

KINDS: Mapping[StopReason, str] = {
    StopReason.INFRA: "error",
    StopReason.INTERRUPTED: "skipped",
    StopReason.UNTESTED: "skipped",
}
"""Ends that are no failure of the agent. Green passes; every other end is a failure."""

UNPRINTABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot hold."""

COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def build_junit_report(runs: Iterable[StoredRun]) -> bytes:
    """Return *runs* as JUnit XML. The type of a failure or an error is the reason to stop."""
    tasks: dict[str, list[StoredRun]] = {}
    for run in runs:
        tasks.setdefault(run.start.task, []).append(run)
    suites = [_build_suite(task, rollouts) for task, rollouts in sorted(tasks.items())]
    root = ET.Element("testsuites", name=AGENT_NAME)
    for name in ("tests", *COUNTED.values()):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    root.set("time", _format_seconds(sum(float(suite.get("time", "0")) for suite in suites)))
    root.extend(suites)
    ET.indent(root)
    data: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return data + b"\n"


def _build_suite(task: str, runs: list[StoredRun]) -> ET.Element:
    kinds = [classify_end(run.stop) for run in runs]
    suite = ET.Element("testsuite", name=_clean(task), tests=str(len(runs)))
    for kind, name in COUNTED.items():
        suite.set(name, str(kinds.count(kind)))
    suite.set("time", _format_seconds(sum(run.state.spend.seconds for run in runs)))
    for run, kind in zip(runs, kinds, strict=True):
        suite.append(_build_case(run, kind))
    return suite


def classify_end(stop: StopReason) -> str:
    """Return `failure`, `error` or `skipped` for a run that stopped so; empty: it passed."""
    return "" if stop is StopReason.GREEN else KINDS.get(stop, "failure")


def _build_case(run: StoredRun, kind: str) -> ET.Element:
    state = run.state
    case = ET.Element("testcase", name=_clean(run.start.run), classname=_clean(run.start.task))
    case.set("time", _format_seconds(state.spend.seconds))
    facts = {
        "stop": run.stop, "usd": f"{state.spend.usd:.6f}", "tokens": state.spend.tokens,
        "attempts": state.spend.attempts, "test_runs": state.spend.test_runs,
        "grade": state.evidence.grade if state.evidence and state.best else "", "model": run.model,
    }  # fmt: skip
    properties = ET.SubElement(case, "properties")
    for name, value in facts.items():
        ET.SubElement(properties, "property", name=name, value=_clean(str(value)))
    if kind:
        fault = ET.SubElement(case, kind, message=_clean(f"{run.stop}: {_describe_standing(run)}"))
        if kind != "skipped":
            fault.set("type", str(run.stop))
            fault.text = _clean(run.why)
    return case


def _describe_standing(run: StoredRun) -> str:
    best, total, evidence = run.state.best, len(run.state.expected), run.state.evidence
    if not (best and total and evidence):
        return "no tests were run"
    return format_passed(best.score.passed, total, evidence.excused).replace(" passed", " tests passed", 1)


def _format_seconds(value: float) -> str:
    return f"{value:.3f}"


def _clean(text: str) -> str:
    return UNPRINTABLE.sub("?", text)
