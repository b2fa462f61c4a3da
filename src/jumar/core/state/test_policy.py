"""Policy of when tests run. It is chosen once, when the configuration is built; contradictions are refused there."""

from __future__ import annotations

from enum import StrEnum


class TestPolicy(StrEnum):
    """Policy of when the tests of a task run."""

    __test__ = False

    ON_WRITE = "on_write"
    ON_FINAL = "on_final"
    NEVER = "never"


class Gate(StrEnum):
    """Gate mode: selects the edits that are admitted."""

    OFF = "off"
    STRICT = "strict"
    REFACTOR = "refactor"
    CODEMOD = "codemod"
    """Never of a whole run: it is entered for one edit."""


class Trigger(StrEnum):
    """Reason for which a verification was run."""

    BASELINE = "baseline"
    WRITE = "write"
    TURN = "turn"
    FINAL = "final"
    MODEL = "model"
    SCORE = "score"


COUNTED = frozenset({Trigger.WRITE, Trigger.TURN, Trigger.FINAL, Trigger.MODEL})
"""The triggers that count as test runs; baseline and score are counted apart."""


def find_contradiction(policy: TestPolicy, gate: Gate, agent: str, *, model_runs_tests: bool = False) -> str | None:
    """Return one sentence on why these settings cannot work together, or None."""
    if gate is not Gate.OFF and policy is not TestPolicy.ON_WRITE:
        return f"gate {gate} needs test results during the run, and '{policy}' gives none; use on_write or gate off"
    if gate is not Gate.OFF and agent in ("pipeline", "repair"):
        return (
            f"gate {gate} is for agents that work edit by edit, which {agent} does not; use --agent driver or gate off"
        )
    if agent == "repair" and policy is not TestPolicy.ON_WRITE:
        return (
            f"the repair agent lives on test results during the run, and under '{policy}' there are none; use on_write"
        )
    if model_runs_tests and policy is TestPolicy.NEVER:
        return (
            "under test policy never the model sees no test result, and one that may run tests would; "
            "use on_final or on_write, or leave --model-may-run-tests out"
        )
    if model_runs_tests and agent not in ("driver", "host"):
        return f"agent {agent} calls no tools: a model that may run tests needs --agent driver"
    return None
