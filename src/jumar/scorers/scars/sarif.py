"""Writes findings as SARIF 2.1.0, and reads those of other linters from it.

The format: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import msgspec

from jumar.errors import BadInput
from jumar.scorers.scars.rule import ScarRule
from jumar.scorers.scars.search import Finding

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def build_sarif(findings: Sequence[Finding], rules: Sequence[ScarRule]) -> Mapping[str, Any]:
    """Return *findings* as one SARIF log, with all *rules* that were searched for."""
    known = {rule.id: number for number, rule in enumerate(rules)}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "jumar scars",
                        "version": version("jumar"),
                        "rules": [
                            {
                                "id": rule.id,
                                "shortDescription": {"text": rule.message},
                                "properties": {"points": rule.points, "languages": list(rule.languages)},
                            }
                            for rule in rules
                        ],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_build_result(finding, known) for finding in findings],
            }
        ],
    }


def _build_result(finding: Finding, known: Mapping[str, int]) -> dict[str, Any]:
    index = {"ruleIndex": known[finding.rule]} if finding.rule in known else {}
    uri = quote(finding.path) if not finding.path.startswith("/") else f"file://{quote(finding.path)}"
    return {
        "ruleId": finding.rule,
        **index,
        "level": "warning",
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": finding.line}}}],
        # What does not change when lines move: who compares two logs finds the same finding again.
        "partialFingerprints": {
            "pathRuleText/v1": sha256(f"{finding.path}\0{finding.rule}\0{finding.text}".encode()).hexdigest()
        },
        "properties": {"points": finding.points},
    }


class _Text(msgspec.Struct, frozen=True):
    text: str = ""


class _Artifact(msgspec.Struct, frozen=True):
    uri: str = ""


class _Region(msgspec.Struct, frozen=True, rename="camel"):
    start_line: int = 1


class _Place(msgspec.Struct, frozen=True, rename="camel"):
    artifact_location: _Artifact = _Artifact()
    region: _Region = _Region()


class _Location(msgspec.Struct, frozen=True, rename="camel"):
    physical_location: _Place = _Place()


class _Result(msgspec.Struct, frozen=True, rename="camel"):
    rule_id: str = ""
    message: _Text = _Text()
    locations: tuple[_Location, ...] = ()


class _Run(msgspec.Struct, frozen=True):
    results: tuple[_Result, ...] | None = ()


class _Log(msgspec.Struct, frozen=True):
    runs: tuple[_Run, ...]


def parse_sarif(data: bytes, points: Mapping[str, float], where: str) -> Iterator[Finding]:
    """Yield the findings of another linter in its SARIF log *data*; *where* names the linter in errors.

    *points* says what a finding costs, by the rule's id or by its beginning (the longest counts); `*` stands for all
    others. What is not named costs nothing and is left out.

    Raises:
        BadInput: if it is no such log.
    """
    try:
        log = msgspec.json.decode(data, type=_Log)
    except msgspec.MsgspecError as error:
        raise BadInput(f"{where} wrote no SARIF: {error}") from None
    for result in (result for run in log.runs for result in run.results or ()):
        worth = _find_points(result.rule_id, points)
        if worth and result.locations:
            place = result.locations[0].physical_location
            path = unquote(urlsplit(place.artifact_location.uri).path)
            yield Finding(path, place.region.start_line, result.rule_id, worth, result.message.text)


def _find_points(rule: str, points: Mapping[str, float]) -> float:
    fitting = [name for name in points if name != "*" and rule.startswith(name)]
    return points[max(fitting, key=len)] if fitting else points.get("*", 0)
