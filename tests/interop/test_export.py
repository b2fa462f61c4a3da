"""Exports say what the journals say, in the form that other tools read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace

from jumar.cli.main import call
from jumar.core.run.effects import Halt
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import TestPolicy
from jumar.interop.gen_ai_names import get_provider
from jumar.interop.junit_report import classify_end
from jumar.journal.writer import Journal
from support.worlds.run_world import TOTAL
from support.worlds.stored_runs import CRASH, USUAL, work, write


def told(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    assert call(["export", *map(str, words), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return found


STEP = {
    "step_id", "timestamp", "source", "model_name", "message", "tool_calls", "observation", "metrics", "extra",
    "llm_call_count",
}  # fmt: skip
AGENT_ONLY = {"model_name", "tool_calls", "metrics", "llm_call_count"}


def test_a_trajectory_has_the_prompt_the_calls_their_answers_and_their_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = work(tmp_path / "r", write(9), write(TOTAL), terms=replace(USUAL, policy=TestPolicy.ON_WRITE))
    out = tmp_path / "t.json"

    told(capsys, run, "-o", out, "--format", "atif")

    made = json.loads(out.read_text())
    assert set(made) == {
        "schema_version", "session_id", "trajectory_id", "agent", "steps", "final_metrics", "extra",
    }  # fmt: skip
    assert (made["schema_version"], made["agent"]["name"]) == ("ATIF-v1.8", "jumar-driver")
    assert {tool["function"]["name"] for tool in made["agent"]["tool_definitions"]} >= {"write_file", "final"}
    steps = made["steps"]
    assert [step["step_id"] for step in steps] == list(range(1, len(steps) + 1))
    assert [step["source"] for step in steps[:2]] == ["system", "user"]
    for step in steps:
        assert set(step) <= STEP
        assert step["source"] == "agent" or not AGENT_ONLY & set(step)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", step["timestamp"])
        ids = {c["tool_call_id"] for c in step.get("tool_calls", ())}
        shown = step.get("observation", {"results": []})["results"]
        assert all(result.get("source_call_id", "call-a") in ids | {"call-a"} for result in shown)
    spoken = [step for step in steps if step["source"] == "agent"]
    assert spoken[0]["metrics"] == {
        "prompt_tokens": 100, "completion_tokens": 20, "cached_tokens": 60, "cost_usd": 0.01,
    }  # fmt: skip
    assert "PASSING = 9" in spoken[0]["tool_calls"][0]["arguments"]["text"]
    assert any("9 of 17" in result["content"] for result in spoken[0]["observation"]["results"])
    total = made["final_metrics"]
    assert (total["total_prompt_tokens"], total["total_cached_tokens"], total["total_cost_usd"]) == (200, 120, 0.02)
    assert made["extra"]["jumar"]["stop"] == "green"


def test_several_trajectories_are_lines_and_a_json_file_holds_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work(tmp_path / "runs" / "a", write(TOTAL))
    work(tmp_path / "runs" / "b", write(9))
    runs = tmp_path / "runs"

    assert told(capsys, runs, runs / "a", "-o", tmp_path / "t.jsonl", "--format", "atif")["trajectories"] == 2

    ids = [json.loads(line)["trajectory_id"] for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert len(set(ids)) == 2
    assert call(["export", str(runs), "-o", str(tmp_path / "t.json"), "--format", "atif"]) == 2
    assert "name a .jsonl" in capsys.readouterr().err


def test_a_prediction_is_the_patch_of_the_first_rollout_whatever_its_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work(tmp_path / "runs" / "a", write(9))
    work(tmp_path / "runs" / "b", write(TOTAL))
    out = tmp_path / "p.jsonl"

    said = told(capsys, tmp_path / "runs", "-o", out, "--format", "predictions")

    (row,) = map(json.loads, out.read_text().splitlines())
    assert (said["predictions"], said["left_out"]) == (1, ["story"])
    assert set(row) == {"instance_id", "model_name_or_path", "model_patch"}
    assert (row["instance_id"], row["model_name_or_path"]) == ("app", "jumar-driver/script")
    assert row["model_patch"].startswith("diff --git a/app.py b/app.py\n")


def test_what_is_left_out_is_not_counted_as_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "ab":
        work(tmp_path / "runs" / name, write(TOTAL))

    assert call(["export", str(tmp_path / "runs"), "-o", str(tmp_path / "p.jsonl"), "--format", "predictions"]) == 0

    assert "1 of 2 runs as predictions in" in capsys.readouterr().out


def test_a_run_that_changed_nothing_predicts_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work(tmp_path / "r", write(8))  # what is there already

    told(capsys, tmp_path / "r", "-o", tmp_path / "p.jsonl", "--format", "predictions")

    assert json.loads((tmp_path / "p.jsonl").read_text())["model_patch"] == ""


def attributes(span: dict[str, Any]) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}


def test_spans_are_a_tree_with_the_names_of_the_conventions_and_the_same_bytes_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work(tmp_path / "runs" / "a", write(9), write(TOTAL))
    work(tmp_path / "runs" / "b", CRASH, CRASH, CRASH, CRASH, CRASH, CRASH)
    one, two = tmp_path / "one.json", tmp_path / "two.json"

    said = told(capsys, tmp_path / "runs", "-o", one, "--format", "otel")
    told(capsys, tmp_path / "runs", "-o", two, "--format", "otel")

    assert one.read_bytes() == two.read_bytes()
    spans = json.loads(one.read_text())["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert len({span["spanId"] for span in spans}) == len(spans) == said["spans"]
    assert len({span["traceId"] for span in spans}) == 2
    roots = {span["spanId"]: span for span in spans if "parentSpanId" not in span}
    assert {span["name"] for span in roots.values()} == {"invoke_agent driver"}
    assert all(span["parentSpanId"] in roots for span in spans if span["spanId"] not in roots)
    for span in spans:
        assert re.fullmatch("[0-9a-f]{16}", span["spanId"])
        assert re.fullmatch("[0-9a-f]{32}", span["traceId"])
        assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
    first = next(span for span in spans if span["name"] == "chat script" and span["status"]["code"] == 1)
    facts = attributes(first)
    assert (facts["gen_ai.operation.name"], facts["gen_ai.request.model"], first["kind"]) == ("chat", "script", 3)
    assert (facts["gen_ai.usage.input_tokens"], facts["gen_ai.usage.cache_read.input_tokens"]) == ("100", "60")
    assert {"execute_tool write_file", "execute_tool run_tests"} <= {span["name"] for span in spans}
    failed = [span for span in spans if span["status"]["code"] == 2]
    assert {attributes(span)["error.type"] for span in failed} == {"server", "infra"}


def test_providers_have_the_words_of_the_conventions() -> None:
    models = ("anthropic:x", "google:x", "openai:x", "repair", "")
    assert [*map(get_provider, models)] == ["anthropic", "gcp.gemini", "openai", "repair", "unknown"]


def test_a_report_has_a_case_for_each_rollout_and_a_fault_of_the_machine_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = tmp_path / "runs"
    work(runs / "pass", write(TOTAL))
    work(runs / "fail", write(9, "\x0b]]>&<"))
    work(runs / "crash", CRASH, CRASH, CRASH, CRASH, CRASH, CRASH)
    work(runs / "stopped", write(9), halt=Halt(StopReason.INTERRUPTED))
    out = tmp_path / "report.xml"

    assert told(capsys, runs, "-o", out, "--format", "junit")["testcases"] == 4

    root = ET.fromstring(out.read_bytes())  # noqa: S314  our own
    counted = {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counted == {"tests": "4", "failures": "1", "errors": "1", "skipped": "1"}
    (suite,) = root.iter("testsuite")
    assert (suite.get("name"), suite.get("tests")) == ("app", "4")
    (failure,), (error,) = root.iter("failure"), root.iter("error")
    assert failure.get("message") == "final: 9 of 17 tests passed"
    assert error.get("type") == "infra"


def test_every_end_has_a_kind() -> None:
    kinds = {stop: classify_end(stop) for stop in StopReason}
    passed = [stop for stop, kind in kinds.items() if not kind]
    assert passed == [StopReason.GREEN]
    assert [stop for stop, kind in kinds.items() if kind == "error"] == [StopReason.INFRA]
    assert {stop for stop, kind in kinds.items() if kind == "skipped"} == {
        StopReason.UNTESTED, StopReason.INTERRUPTED,
    }  # fmt: skip


def test_what_cannot_be_exported_is_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = work(tmp_path / "r", write(TOTAL))
    with Journal.create(tmp_path / "empty" / "r"):
        pass
    out = tmp_path / "x.json"

    def refused(*words: object) -> str:
        assert call(["export", *map(str, words)]) == 2
        assert not out.exists()
        return capsys.readouterr().err

    assert "name one" in refused(run, "-o", tmp_path / "x.txt", "--format", "otel")
    assert "lies in the run" in refused(run, "-o", run / "x.json", "--format", "otel")
    assert "none of these runs has begun" in refused(tmp_path / "empty", "-o", out, "--format", "otel")
    assert "there is no" in refused(tmp_path / "nothing", "-o", out, "--format", "otel")
    journal = run / "events.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"story"', b'"other"', 1))
    assert "leave this run out" in refused(run, "-o", out, "--format", "otel")
