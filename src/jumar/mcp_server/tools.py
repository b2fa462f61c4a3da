"""Tools of `jumar mcp`: names, arguments, results and side effects. Nothing is performed here."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from jumar.core.state.events import PlanStep
from jumar.errors import BadInput
from jumar.mcp_server import responses as answers


class ToolArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments that every tool accepts."""

    run: Annotated[
        str, Meta(description="Name of the run, as open_task returned it; without it, the one opened in this session.")
    ] = ""


Path_ = Annotated[str, Meta(description="Path of the file, relative to the root, never absolute: src/app.py.")]
Below = Annotated[str, Meta(description="File or folder, relative to the root; without it, all.")]


class OpenTask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `open_task`."""

    path: Annotated[str, Meta(description="Folder of the repository, or a task.toml, below a folder the person gave.")]
    instruction: Annotated[str, Meta(description="What to do, beyond making the tests pass.")] = ""
    tests: Annotated[tuple[str, ...], Meta(description="Test files, folders or ids that judge; without it, all.")] = ()


class RunTests(ToolArguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `run_tests`."""

    test_ids: Annotated[tuple[str, ...], Meta(description="Ids or files to show; without it, all.")] = ()


class EditClaimArguments(ToolArguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `edit_claim`."""

    test_id: Annotated[str, Meta(description="A test that is red, by its id.")]
    edit_target: Annotated[
        str, Meta(description="The file whose edit shall turn it green, relative to the root, never absolute.")
    ]


class WriteFile(ToolArguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `write_file`."""

    path: Path_
    text: Annotated[str, Meta(description="The complete new text of the file.")]


class EditFile(ToolArguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `edit_file`."""

    path: Path_
    old: Annotated[str, Meta(description="The text to replace, with all its spaces; it must stand exactly once.")]
    new: Annotated[str, Meta(description="The text that comes in its place; empty deletes.")]


class DeleteFile(ToolArguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `delete_file`."""

    path: Path_


class SubmitPlan(ToolArguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `submit_plan`."""

    steps: Annotated[
        tuple[PlanStep, ...],
        Meta(description="In order. A step has the id of its test and, where that is not written yet, its file."),
    ]


class SetMode(ToolArguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `set_mode`."""

    mode: Annotated[str, Meta(description="strict or refactor.")]


class EscalateArguments(ToolArguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `escalate`."""

    test_id: Annotated[str, Meta(description="The test that cannot be right, by its id.")]
    reason: Annotated[str, Meta(description="What it contradicts (the instruction, or which other test), and how.")]


class StatusArguments(ToolArguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `status`."""


class FinishArguments(ToolArguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `finish`."""

    message: Annotated[str, Meta(description="What was done, or what is in the way.")] = ""
    apply: Annotated[bool, Meta(description="Write the best tree onto the folder that the task came from.")] = False


class ListFiles(ToolArguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `list_files`."""

    path: Below = ""


class ReadFile(ToolArguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `read_file`."""

    path: Path_
    start: Annotated[int, Meta(description="First line, counted from 1.")] = 1
    end: Annotated[int, Meta(description="Last line, included; 0 is the last one.")] = 0


class SearchArguments(ToolArguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `search`."""

    pattern: Annotated[str, Meta(description="A regular expression in Python's syntax, matched within one line.")]
    path: Below = ""


class McpTool(msgspec.Struct, frozen=True):
    """One tool. The last three fields are its side effects, as MCP's annotations name them."""

    title: str
    about: str
    takes: type[msgspec.Struct]
    gives: type[answers.ToolResponse]
    reads: bool = False
    destroys: bool = False
    repeats: bool = False
    """True if calling twice has the effect of calling once."""


OFFERS: dict[str, McpTool] = {
    "open_task": McpTool(
        "Open a task",
        "Begin to work on a repository under the gate: it is copied, its tests are run, the answer says which are red "
        "and where the copy lies. The original changes only by finish with apply.",
        OpenTask, answers.Stood,
    ),
    "run_tests": McpTool(
        "Run the tests",
        "End the turn: run the tests on the files as they are. Edits that turned their claimed tests green without "
        "costing another are kept, the others go back.",
        RunTests, answers.Tested, destroys=True,
    ),
    "edit_claim": McpTool(
        "Claim a red test for an edit",
        "Say which red test the next edit of a file shall turn green. A file that is no test cannot be edited without.",
        EditClaimArguments, answers.Acted, repeats=True,
    ),
    "write_file": McpTool(
        "Write a file",
        "Write a whole file of the workspace: a new one, or a new text for one that is there. Refused without a claim "
        "for it; new tests may be written first.",
        WriteFile, answers.Acted, destroys=True, repeats=True,
    ),
    "edit_file": McpTool(
        "Edit a file",
        "Replace one piece of a file of the workspace by another, exactly. Refused without a claim for that file.",
        EditFile, answers.Acted, destroys=True,
    ),
    "delete_file": McpTool(
        "Delete a file",
        "Delete a file of the workspace. Refused without a claim for it.",
        DeleteFile, answers.Acted, destroys=True,
    ),
    "submit_plan": McpTool(
        "Submit a plan",
        "Say in which steps the work is done, each with its test. A step without a test can run in refactor mode only.",
        SubmitPlan, answers.Acted, repeats=True,
    ),
    "set_mode": McpTool(
        "Change the mode of the gate",
        "refactor admits edits without a claim, of docs and configuration too, where the person allows it; leaving it "
        "needs all tests green, else it is refused; after the third refusal in a row all since goes back and the run "
        "ends. strict is the usual one.",
        SetMode, answers.Tested, destroys=True, repeats=True,
    ),
    "status": McpTool(
        "Where the run stands",
        "Mode, red tests, open claims, edits that are not judged yet, the plan. Runs nothing.",
        StatusArguments, answers.Stood, reads=True, repeats=True,
    ),
    "escalate": McpTool(
        "Escalate a test",
        "End the run because a test contradicts the instruction or another test: a person decides, and the test stays "
        "as it is. Edits are judged first, as by run_tests. It is neither a success nor a failure.",
        EscalateArguments, answers.Tested, destroys=True,
    ),
    "finish": McpTool(
        "End the run",
        "End the work; the answer says whether all tests are green. With apply, the best tree is merged into the "
        "folder that the task came from; where the same lines were changed there meanwhile, nothing is written.",
        FinishArguments, answers.Finished, destroys=True, repeats=True,
    ),
    "list_files": McpTool(
        "List files", "List the files of the workspace, or those below a folder.", ListFiles, answers.FileList,
        reads=True, repeats=True,
    ),
    "read_file": McpTool(
        "Read a file", "Read a text file of the workspace, or some of its lines.", ReadFile, answers.FileLines,
        reads=True, repeats=True,
    ),
    "search": McpTool(
        "Search", "Find the lines of the workspace that match a regular expression.",
        SearchArguments, answers.SearchHits,
        reads=True, repeats=True,
    ),
}  # fmt: skip
"""Every tool, in the order in which a session meets them."""


def build_schema(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schema of *struct*, in one piece: some hosts resolve no references."""
    (root,), parts = msgspec.json.schema_components((struct,), ref_template="{name}")
    whole: dict[str, Any] = _inline(root, parts)
    del whole["description"]  # a docstring of ours; the tool has its own words
    return whole


def check_arguments(name: str, given: object) -> Any:
    """Check the arguments of a tool call.

    Raises:
        BadInput: naming the argument that is missing, unknown or of the wrong type.
    """
    takes = OFFERS[name].takes
    try:
        return msgspec.convert(given, takes)
    except msgspec.ValidationError as error:
        known = ", ".join(takes.__struct_fields__)
        raise BadInput(f"{name} was called wrongly: {error}; its arguments are {known}") from None


def _inline(node: Any, parts: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inline(inner, parts) for inner in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _inline(parts[node["$ref"]], parts)
    return {key: _inline(inner, parts) for key, inner in node.items() if (key, type(inner)) != ("title", str)}
