"""Responses of `jumar mcp`: an object whose schema the host knows, and the same as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from jumar.core.state.claims import get_step_status
from jumar.core.state.run_state import RunState


class ToolResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Fields that every response has."""

    ok: Annotated[bool, Meta(description="Whether it was done; false: refused, and `reason` says what would help.")]
    run: Annotated[str, Meta(description="Name of the run; pass it as `run` where a client has no session.")] = ""
    reason: Annotated[str, Meta(description="Why it was refused, and what would satisfy.")] = ""
    stop: Annotated[
        str, Meta(description="Why the run has ended (green, final, untested, guardrail, ...); absent: it goes on.")
    ] = ""


class Acted(ToolResponse, frozen=True, kw_only=True, omit_defaults=True):
    """Response to an action that the gate decided on."""

    shown: Annotated[str, Meta(description="What there is to see: test results, what was kept.")] = ""
    reverted: Annotated[tuple[str, ...], Meta(description="Files that went back to what they were.")] = ()
    why: Annotated[str, Meta(description="Why they went back.")] = ""


class Standing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Test results on the tree that edits begin from."""

    mode: Annotated[str, Meta(description="strict or refactor.")]
    passed: Annotated[int | None, Meta(description="Absent where there is no test.")] = None
    total: int
    red: Annotated[tuple[str, ...], Meta(description="Ids of expected tests that do not pass, the first 100.")] = ()


class Tested(Acted, frozen=True, kw_only=True, omit_defaults=True):
    """Response to a test run, or to an action that ends a turn."""

    tests: Standing | UnsetType = UNSET


class ClaimOpen(msgspec.Struct, frozen=True, omit_defaults=True):
    """A red test that an edit of a file is claimed to turn green."""

    test_id: str
    edit_target: str
    failures: Annotated[int, Meta(description="Edits for it that did not turn it green; the second ends it.")] = 0


class StepStands(msgspec.Struct, frozen=True, omit_defaults=True):
    """A step of the plan and its status."""

    title: str
    state: Annotated[str, Meta(description="green, red, unwritten (no such test yet) or untested (it names none).")]
    test_id: str = ""


class Stood(ToolResponse, frozen=True, kw_only=True, omit_defaults=True):
    """Response with the state of a run."""

    workspace: Annotated[str, Meta(description="The copy that is worked on: read there, edit with the tools.")] = ""
    tests: Standing | UnsetType = UNSET
    shown: Annotated[str, Meta(description="What the tests said of the files as they came.")] = ""
    claims: tuple[ClaimOpen, ...] = ()
    unjudged: Annotated[tuple[str, ...], Meta(description="Edited files that no test run has judged yet.")] = ()
    plan: tuple[StepStands, ...] = ()
    journal: Annotated[str, Meta(description="Every event of the run.")] = ""
    roots: Annotated[tuple[str, ...], Meta(description="Where tasks may be opened, while none is open.")] = ()


class Finished(ToolResponse, frozen=True, kw_only=True, omit_defaults=True):
    """Response to `finish`: how the run ended."""

    tests: Standing | UnsetType = UNSET
    applied: Annotated[
        tuple[str, ...] | UnsetType,
        Meta(description="Files of the original folder that were written; absent: it was not asked for, or refused."),
    ] = UNSET
    patch: Annotated[str, Meta(description="The best tree as a patch, in the directory of the run.")] = ""


class FileList(ToolResponse, frozen=True, kw_only=True, omit_defaults=True):
    """Response to `list_files`: names of files."""

    files: tuple[str, ...] = ()
    more: Annotated[int, Meta(description="How many there was no room for.")] = 0


class FileLines(ToolResponse, frozen=True, kw_only=True, omit_defaults=True):
    """Response to `read_file`: lines of a file."""

    lines: Annotated[str, Meta(description="Which lines these are, of how many.")] = ""
    text: str = ""


class SearchHits(ToolResponse, frozen=True, kw_only=True, omit_defaults=True):
    """Response to `search`: lines that match."""

    matches: Annotated[tuple[str, ...], Meta(description="`path:line: text`.")] = ()
    more: Annotated[bool, Meta(description="Whether there was no room for all.")] = False


NAMED = 100
"""Red tests that an answer names."""


def build_standing(state: RunState) -> Standing:
    """Return the test results of the run."""
    newest, green = state.gate_state.newest, state.best.green_ids if state.best is not None else frozenset[str]()
    red = tuple(i for i in state.expected if not (newest[i].status == "pass" if i in newest else i in green))
    total = len(state.expected)
    return Standing(
        mode=str(state.gate_state.mode), passed=total - len(red) if total else None, total=total, red=red[:NAMED]
    )


def list_claims(state: RunState) -> tuple[ClaimOpen, ...]:
    """Return the open claims of the run."""
    return tuple(ClaimOpen(c.test_id, c.path, c.failures) for c in state.gate_state.claims)


def list_steps(state: RunState) -> tuple[StepStands, ...]:
    """Return the plan of the run, and the status of each step."""
    return tuple(
        StepStands(s.title, get_step_status(s, state.gate_state.newest), s.test_id) for s in state.gate_state.plan
    )


def encode_fields(answer: ToolResponse) -> dict[str, Any]:
    """Return *answer* as plain JSON values."""
    fields: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(answer))
    return fields


UNSAID = {Acted: ("run", "reverted", "why", "tests"), FileLines: ("run",), FileList: ("run",), SearchHits: ("run",)}
"""Fields that the text leaves out because the rest says the same, or the model was told when the task was opened."""

BARE = ("shown", "text")
"""Texts that need no name before them."""


def format_text(answer: ToolResponse) -> str:
    """Return *answer* as text, for a model that is shown texts only."""
    fields = encode_fields(answer)
    left_out = {"ok", "reason", *(name for kind, names in UNSAID.items() if isinstance(answer, kind) for name in names)}
    if not answer.ok:
        left_out -= {"reverted", "why"}
    said = [] if answer.ok else [f"refused: {answer.reason}"]
    said += [
        _format_line("" if name in BARE else name, value) for name, value in fields.items() if name not in left_out
    ]
    return "\n".join(said) or "done"


def _format_line(name: str, value: object) -> str:
    """Return one field in a line, or in a block if it is long; without a *name* only its value."""
    if isinstance(value, Mapping):
        return f"{name}: " + "  ".join(_format_line(n, v) for n, v in value.items())
    if isinstance(value, list):
        rows = [v if isinstance(v, str) else "  ".join(_format_line(n, w) for n, w in v.items()) for v in value]
        return f"{name}: {rows[0]}" if len(rows) == 1 else f"{name}:\n" + "\n".join(f"  {row}" for row in rows)
    return f"{name}: {value}" if name else str(value)
