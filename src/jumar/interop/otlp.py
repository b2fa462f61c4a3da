"""Writes runs as OpenTelemetry spans in OTLP's JSON: the run, its model calls, its actions, its verifications.

Ids are hashes of the run's first event, so that a second export is the same bytes, and a backend sees it once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from importlib.metadata import version
from typing import Any

from jumar.core.run.strategy import REPAIR
from jumar.core.state import events as ev
from jumar.core.state.stop import StopReason
from jumar.interop import gen_ai_names as names
from jumar.interop.stored_runs import AGENT_NAME, StoredRun

INTERNAL, CLIENT = 1, 3
"""Kinds of spans, as OTLP counts them."""

OK, ERROR = 1, 2
"""Codes of a span's status."""

Value = str | bool | int | float
Json = dict[str, Any]


def build_spans(runs: Iterable[StoredRun]) -> Json:
    """Return the spans of *runs*, a trace for each, as OTLP/JSON."""
    made = version("jumar")
    return {
        "resourceSpans": [
            {
                "resource": {
                    "attributes": _encode_attributes({names.SERVICE: AGENT_NAME, names.SERVICE_VERSION: made})
                },
                "scopeSpans": [
                    {
                        "scope": {"name": AGENT_NAME, "version": made},
                        "spans": [span for run in runs for span in _Trace(run).build_all()],
                        "schemaUrl": names.SCHEMA_URL,
                    }
                ],
            }
        ]
    }


class _Trace:
    """Spans of one run."""

    def __init__(self, run: StoredRun) -> None:
        self._run = run
        self._trace = run.identity[:32]
        self._root = self._compute_id("run")
        self._asked = run.began

    def build_all(self) -> Iterator[Json]:
        yield self._build_root()
        for entry in self._run.entries:
            match entry.event:
                case ev.ModelRequest():
                    self._asked = entry.ts
                case ev.ModelCall() as call:
                    yield self._build_call(entry, call)
                case ev.ActionTaken() as action:
                    yield self._build_action(entry, action)
                case ev.Tests() as tests:
                    yield self._build_tests(entry, tests)
                case _:
                    continue

    def _build_root(self) -> Json:
        run, calls = self._run, self._run.calls
        facts: dict[str, Value] = {
            names.OPERATION: names.INVOKE_AGENT,
            names.PROVIDER: names.get_provider(run.model),
            names.AGENT: run.start.agent,
            names.AGENT_VERSION: version("jumar"),
            names.CONVERSATION: run.start.run,
            names.REQUEST_MODEL: run.model,
            names.INPUT_TOKENS: sum(call.input_tokens for call in calls),
            names.CACHED_TOKENS: sum(call.cached_tokens for call in calls),
            names.OUTPUT_TOKENS: sum(call.output_tokens for call in calls),
            "jumar.task": run.start.task,
            "jumar.stop": str(run.stop),
            "jumar.usd": run.state.spend.usd,
            "jumar.test_runs": run.state.spend.test_runs,
            "jumar.attempts": run.state.spend.attempts,
        }
        fault = str(run.stop) if run.stop in (StopReason.INFRA, StopReason.GUARDRAIL) else ""
        span = self._build_span(f"{names.INVOKE_AGENT} {run.start.agent}", "run", (run.began, run.ended), facts)
        del span["parentSpanId"]
        return _add_fault(span, fault, run.why)

    def _build_call(self, entry: ev.Entry, call: ev.ModelCall) -> Json:
        """Return the span of a call, from its request to its answer; jumar's own search is not a model call."""
        facts: dict[str, Value] = {
            names.OPERATION: names.CHAT,
            names.PROVIDER: names.get_provider(call.model),
            names.REQUEST_MODEL: call.model,
            names.CONVERSATION: self._run.start.run,
            names.INPUT_TOKENS: call.input_tokens,
            names.CACHED_TOKENS: call.cached_tokens,
            names.OUTPUT_TOKENS: call.output_tokens,
            "jumar.stage": call.stage,
            "jumar.tier": call.tier,
            "jumar.usd": call.usd,
        }
        if call.model == REPAIR:
            facts = {names.OPERATION: names.EXECUTE_TOOL, names.TOOL: REPAIR, names.TOOL_TYPE: "function"}
        operation = facts[names.OPERATION]
        span = self._build_span(f"{operation} {call.model}", entry.seq, (self._asked, entry.ts), facts)
        span["kind"] = INTERNAL if call.model == REPAIR else CLIENT
        return _add_fault(span, call.error, call.detail)

    def _build_action(self, entry: ev.Entry, action: ev.ActionTaken) -> Json:
        """Return the span of an action. The journal has only the moment of it, so it has no duration."""
        facts: dict[str, Value] = {
            names.OPERATION: names.EXECUTE_TOOL,
            names.TOOL: action.name,
            names.TOOL_TYPE: "function",
            "jumar.admitted": action.admitted,
        }
        span = self._build_span(f"{names.EXECUTE_TOOL} {action.name}", entry.seq, (entry.ts, entry.ts), facts)
        return _add_fault(span, "" if action.admitted else "refused", action.reason)

    def _build_tests(self, entry: ev.Entry, tests: ev.Tests) -> Json:
        facts: dict[str, Value] = {
            names.OPERATION: names.EXECUTE_TOOL,
            names.TOOL: "run_tests",
            names.TOOL_TYPE: "function",
            names.SUITE: self._run.start.task,
            names.SUITE_STATUS: "success" if tests.ok else "failure" if tests.void is None else "aborted",
            "jumar.trigger": str(tests.trigger),
            "jumar.passed": tests.passed,
            "jumar.total": tests.total,
            "jumar.grade": tests.grade,
            "jumar.sandbox": tests.sandbox,
            "jumar.cached": tests.cached,
        }
        began = max(self._run.began, entry.ts - tests.duration_ms / 1000)
        span = self._build_span(f"{names.EXECUTE_TOOL} run_tests", entry.seq, (began, entry.ts), facts)
        return _add_fault(span, str(tests.void.cause) if tests.void else "", tests.void.reason if tests.void else "")

    def _build_span(self, name: str, part: object, times: tuple[float, float], facts: Mapping[str, Value]) -> Json:
        began, ended = (round(ts * 1_000_000) * 1000 for ts in times)  # the clock's own precision
        return {
            "traceId": self._trace,
            "spanId": self._compute_id(part),
            "parentSpanId": self._root if part != "run" else "",
            "name": name,
            "kind": INTERNAL,
            "startTimeUnixNano": str(min(began, ended)),
            "endTimeUnixNano": str(ended),
            "attributes": _encode_attributes(facts),
        }

    def _compute_id(self, part: object) -> str:
        return sha256(f"{self._run.identity} {part}".encode()).hexdigest()[:16]


def _add_fault(span: Json, kind: str, why: str) -> Json:
    if not kind:
        return {**span, "status": {"code": OK}}
    attributes = [*span["attributes"], *_encode_attributes({names.ERROR: kind})]
    return {**span, "attributes": attributes, "status": {"code": ERROR, "message": why}}


def _encode_attributes(facts: Mapping[str, Value]) -> list[Json]:
    return [{"key": key, "value": _encode_value(value)} for key, value in facts.items()]


def _encode_value(value: Value) -> Json:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}  # 64 bits: a string, as protobuf's JSON wants it
        case float():
            return {"doubleValue": value}
    return {"stringValue": value}
