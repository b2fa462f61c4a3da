"""Checks a folder of our exports with the packages whose formats they are. Run in `.venv/interop`."""

# mypy: ignore-errors

from __future__ import annotations

import base64
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from atif import Trajectory
from google.protobuf.json_format import ParseDict
from harbor.models.task.config import TaskConfig
from harbor.utils.trajectory_validator import TrajectoryValidator
from junitparser import JUnitXml
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from swebench.harness.utils import get_predictions_from_file


def check_trajectory(path: Path) -> dict[str, Any]:
    validator = TrajectoryValidator()
    valid = validator.validate(path)
    steps = Trajectory.model_validate_json(path.read_bytes()).steps
    broken = json.loads(path.read_bytes())
    broken["steps"][0]["step_id"] = 7
    return {
        "valid": valid, "errors": validator.get_errors(), "steps": len(steps),
        "refuses_a_wrong_one": not TrajectoryValidator().validate(broken),
    }  # fmt: skip


def check_spans(path: Path) -> dict[str, Any]:
    told = json.loads(path.read_bytes())
    for span in told["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for name in ("traceId", "spanId", "parentSpanId"):
            if name in span:  # OTLP writes ids in hex, where protobuf's JSON has base64
                span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    data = ParseDict(told, TracesData())  # an unknown field is an error
    spans = data.resource_spans[0].scope_spans[0].spans
    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
    used = {each.key for span in spans for each in span.attributes if each.key.startswith("gen_ai.")}
    operations = {each.value for each in gen_ai_attributes.GenAiOperationNameValues}
    ours = {e.value.string_value for s in spans for e in s.attributes if e.key == "gen_ai.operation.name"}
    return {
        "spans": len(spans), "unknown": sorted(used - known) + sorted(ours - operations),
        "ids": sorted({(len(span.trace_id), len(span.span_id)) for span in spans}),
    }  # fmt: skip


def check_junit(path: Path) -> dict[str, Any]:
    suites = list(JUnitXml.fromfile(str(path)))
    kinds = [type(each).__name__ for suite in suites for case in suite for each in case.result]
    return {"tests": sum(suite.tests for suite in suites), "results": sorted(kinds)}


def check_all(folder: Path) -> dict[str, Any]:
    predictions = get_predictions_from_file(str(folder / "predictions.jsonl"), "", "test")
    return {
        "atif": check_trajectory(folder / "trajectory.json"),
        "predictions": predictions,
        "spans": check_spans(folder / "spans.json"),
        "junit": check_junit(folder / "report.xml"),
        "harbor_task": TaskConfig.model_validate_toml((folder / "task.toml").read_text("utf-8")).task.name,
        "versions": {
            name: version(name) for name in ("harbor", "atif", "swebench", "opentelemetry-proto", "junitparser")
        },
    }


if __name__ == "__main__":
    print(json.dumps(check_all(Path(sys.argv[1]))))  # noqa: T201  its output
