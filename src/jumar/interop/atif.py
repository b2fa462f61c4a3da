"""Writes a run as an ATIF trajectory: the prompts of the model, its answers and calls, and the results."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import msgspec

from jumar.core.gate.excused_tests import format_passed
from jumar.core.run.strategy import DRIVER, REPAIR, Message, Tool
from jumar.core.state import events as ev
from jumar.core.state.run_state import RunState
from jumar.interop.stored_runs import AGENT_NAME, StoredRun
from jumar.runs.setup.agent_parts import build_agent
from jumar.runs.setup.assembly import RunPlace
from jumar.workspace.store.object_store import Store
from jumar.workspace.store.shared import find_objects_folder

SCHEMA = "ATIF-v1.8"

Json = dict[str, Any]


def build_trajectory(run: StoredRun) -> Json:
    """Return *run* as an ATIF document.

    A model call is a step of the agent, with its tool calls, its usage and what was shown to it next; a verification is
    a step of the system. Where no model was called (the repair agent), steps say so and have no metrics.

    Raises:
        Infra: if files of the run are gone, which the first prompt lists.
    """
    told, tools = read_first_prompt(run)
    steps = _Steps()
    for message in told:
        steps.add(message.role, run.began, message=message.content)
    for entry in run.entries:
        steps.take(entry)
    agent: Json = {"name": f"{AGENT_NAME}-{run.start.agent}", "version": version("jumar"), "model_name": run.model}
    if tools:
        agent["tool_definitions"] = [
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
            for t in tools
        ]
    return {
        "schema_version": SCHEMA,
        "session_id": run.start.run,
        "trajectory_id": run.identity,
        "agent": agent,
        "steps": steps.made,
        "final_metrics": _sum_up(run, len(steps.made)),
        "extra": {"jumar": describe_outcome(run)},
    }


def describe_outcome(run: StoredRun) -> Json:
    """Describe the end of *run*: reason, verdict on the best tree, grade of the evidence."""
    state = run.state
    return {
        "task": run.start.task,
        "stop": str(run.stop),
        "why": run.why,
        "passed": state.best.score.passed if state.best and state.expected else None,
        "total": len(state.expected),
        "grade": state.evidence.grade if state.evidence and state.best else "",
        "sandbox": state.evidence.sandbox if state.evidence and state.best else "",
        "tree": state.tree,
        "gate": str(run.start.gate),
        "test_policy": str(run.start.test_policy),
    }


def read_first_prompt(run: StoredRun) -> tuple[tuple[Message, ...], tuple[Tool, ...]]:
    """Return the messages before the first reply and the tools on offer; of other agents than the driver, the task."""
    instruction = run.start.settings.instruction or "Make the failing tests pass."
    if run.start.agent != DRIVER:
        return (Message("user", instruction),), ()
    agent = build_agent(run.start, RunPlace(run.folder, Store(find_objects_folder(run.folder)), {}))
    messages = agent.messages(RunState(start=run.start, tree=run.start.tree), {})
    return tuple(m for m in messages if m.role in ("system", "user")), agent.tools


class _Steps:
    """Steps in their order, and the agent's newest one, to which results belong."""

    def __init__(self) -> None:
        self.made: list[Json] = []
        self._newest: Json | None = None

    def add(self, source: str, ts: float, **fields: Any) -> Json:
        step = {"step_id": len(self.made) + 1, "timestamp": format_time(ts), "source": source, **fields}
        self.made.append(step)
        return step

    def take(self, entry: ev.Entry) -> None:
        match entry.event:
            case ev.ModelCall() as call:
                self._newest = self.add("agent", entry.ts, **_describe_call(call, entry.seq))
            case ev.Tests() as tests:
                self.add("system", entry.ts, message=_describe_tests(tests), extra=_describe_verdict(tests))
            case ev.Observation() as seen:
                self._show(seen, entry.ts)
            case ev.Revert(to=to, why=why):
                self.add("system", entry.ts, message=f"The files were put back to tree {to[:12]}: {why}")
            case ev.Guardrail(rule=rule, what=what):
                self.add("system", entry.ts, message=f"A hard rule was broken ({rule}): {what}")
            case _:
                return

    def _show(self, seen: ev.Observation, ts: float) -> None:
        """Add a result to the newest step of the model, or to one of the system if there was none yet."""
        result: Json = {"content": msgspec.json.encode(seen.content).decode(), "extra": {"name": seen.name}}
        step = self._newest
        if step is None:
            self.add("system", ts, message=f"Before the first call: {seen.name}", observation={"results": [result]})
            return
        if any(call["tool_call_id"] == seen.call_id for call in step.get("tool_calls", ())):
            result["source_call_id"] = seen.call_id
        step.setdefault("observation", {"results": []})["results"].append(result)


def _describe_call(call: ev.ModelCall, seq: int) -> Json:
    fields: Json = {"message": call.reply.content, "model_name": call.model, "llm_call_count": 1}
    if call.model == REPAIR:
        fields["llm_call_count"] = 0  # a search of ours, no model: ATIF wants no metrics then
    else:
        fields["metrics"] = {
            "prompt_tokens": call.input_tokens,
            "completion_tokens": call.output_tokens,
            "cached_tokens": call.cached_tokens,
            "cost_usd": call.usd,
        }
    calls = [
        {"tool_call_id": c.id or f"call_{seq}_{n}", "function_name": c.name, "arguments": c.arguments}
        for n, c in enumerate(call.reply.tool_calls)
    ]
    told = {"stage": call.stage, "tier": call.tier, "ms": call.ms, "error": call.error, "detail": call.detail}
    fields["extra"] = {name: value for name, value in told.items() if value != ""}
    return {**fields, "tool_calls": calls} if calls else fields


def _describe_tests(tests: ev.Tests) -> str:
    if tests.void is not None:
        return f"Verification ({tests.trigger}): no usable evidence, {tests.void.cause}"
    return f"Verification ({tests.trigger}): {format_passed(tests.passed, tests.total, tests.excused)}"


def _describe_verdict(tests: ev.Tests) -> Mapping[str, Any]:
    return {
        "trigger": str(tests.trigger), "ok": tests.ok, "passed": tests.passed, "failed": tests.failed,
        "errors": tests.errors, "total": tests.total, "grade": tests.grade, "sandbox": tests.sandbox,
        "cached": tests.cached, "tree": tests.tree, "flaky": list(tests.flaky),
    }  # fmt: skip


def _sum_up(run: StoredRun, steps: int) -> Json:
    calls = run.calls
    return {
        "total_prompt_tokens": sum(call.input_tokens for call in calls),
        "total_completion_tokens": sum(call.output_tokens for call in calls),
        "total_cached_tokens": sum(call.cached_tokens for call in calls),
        "total_cost_usd": run.state.spend.usd,
        "total_steps": steps,
    }


def format_time(ts: float) -> str:
    """Return *ts*, seconds since 1970, as ISO 8601 in UTC."""
    return datetime.fromtimestamp(ts, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
