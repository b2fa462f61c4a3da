"""Tools that the driver's model may call. A model knows a tool by its description alone."""

from __future__ import annotations

import msgspec

from jumar.core.run.strategy import Tool
from jumar.core.state.settings import Switches
from jumar.core.state.test_policy import Gate

STEP: dict[str, object] = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "description": "What the step does, in a few words."},
        "test_id": {
            "type": "string",
            "description": "Id of the test that will show it, such as test_app.py::test_sum.",
        },
        "test_file_path": {"type": "string", "description": "The file that test stands in, or will."},
    },
    "required": ["title"],
    "additionalProperties": False,
}
"""The JSON schema of one step of a plan."""


class Argument(msgspec.Struct, frozen=True):
    """One argument of a tool."""

    name: str
    kind: str
    """The type in a JSON schema: `string`, `integer` or `array` (of strings); `steps` is an array of `STEP`."""
    about: str
    required: bool = True
    default: object = None
    """Value of an optional argument that is absent."""

    @property
    def schema(self) -> dict[str, object]:
        """JSON schema of the argument."""
        items: dict[str, dict[str, object]] = {"array": {"type": "string"}, "steps": STEP}
        kind = "array" if self.kind in items else self.kind
        return {"type": kind, "description": self.about} | ({"items": items[self.kind]} if self.kind in items else {})


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool and its arguments."""

    name: str
    about: str
    arguments: tuple[Argument, ...]

    @property
    def tool(self) -> Tool:
        """The tool as it is described to a model."""
        schema: dict[str, object] = {
            "type": "object",
            "properties": {a.name: a.schema for a in self.arguments},
            "required": [a.name for a in self.arguments if a.required],
            "additionalProperties": False,
        }
        return Tool(self.name, self.about, schema)


_FILE = Argument("path", "string", "Path of the file, relative to the root of the repository, such as src/app.py.")
_BELOW = Argument(
    "path",
    "string",
    "File or folder, relative to the root; without it, the whole repository.",
    required=False,
    default="",
)

ALL = (
    ToolSpec("list_files", "List the files of the repository, or those below a folder.", (_BELOW,)),
    ToolSpec(
        "read_file",
        "Read a text file, or some of its lines. A long file is shown in part; ask for the next lines then.",
        (
            _FILE,
            Argument("start", "integer", "First line, counted from 1.", required=False, default=1),
            Argument("end", "integer", "Last line, included; without it, the last one.", required=False, default=0),
        ),
    ),
    ToolSpec(
        "search",
        "Find the lines that match a regular expression; the answer is path:line: text.",
        (Argument("pattern", "string", "A regular expression in Python's syntax, matched within one line."), _BELOW),
    ),
    ToolSpec(
        "write_file",
        "Write a whole file: a new one, or a new text for one that is there.",
        (_FILE, Argument("text", "string", "The complete new text of the file.")),
    ),
    ToolSpec(
        "edit_file",
        "Replace one piece of a file by another, exactly.",
        (
            _FILE,
            Argument("old", "string", "The text to replace, with all its spaces; it must stand exactly once."),
            Argument("new", "string", "The text that comes in its place; empty deletes."),
        ),
    ),
    ToolSpec("delete_file", "Delete a file.", (_FILE,)),
    ToolSpec(
        "run_tests",
        "Run the tests on the files as they are, and show the results.",
        (Argument("test_ids", "array", "Ids of tests, or files; without it, all.", required=False, default=()),),
    ),
    ToolSpec(
        "edit_claim",
        "Say which red test your next edit of a file will turn green. Without it the edit is refused.",
        (
            Argument("test_id", "string", "Id of a test that is red, as the results show it."),
            Argument("edit_target", "string", "Path of the file that will be edited for it."),
        ),
    ),
    ToolSpec(
        "submit_plan",
        "Say in which steps you will work, with the test of each.",
        (Argument("steps", "steps", "The steps, in their order."),),
    ),
    ToolSpec(
        "set_mode",
        "Where the person allows it, enter refactor mode (edits without claims, of docs and configuration too; all "
        "must be green when you leave) or codemod mode (one command or replacement over many files, kept if every test "
        "comes out as before); or leave it.",
        (Argument("mode", "string", "refactor, codemod or strict."),),
    ),
    ToolSpec(
        "run_command",
        "Run a shell command in a copy of the repository. The copy is thrown away: it can try things, but changes "
        "nothing. In codemod mode what it changed is kept if every test comes out as before.",
        (Argument("command", "string", "The command line."),),
    ),
    ToolSpec(
        "replace_in_files",
        "In codemod mode: replace all that matches a regular expression, in all files. Kept if every test comes out as "
        "before.",
        (
            Argument("pattern", "string", "A regular expression in Python's syntax, matched in a file's whole text."),
            Argument("replacement", "string", "What comes in its place; \\1 stands for the first group."),
            Argument("paths", "array", "Globs of the files to change; without it, all.", required=False, default=()),
        ),
    ),
    ToolSpec(
        "escalate",
        "End the work because a test contradicts the task or another test. A person decides; the test stays as it is.",
        (
            Argument("test_id", "string", "Id of the test that cannot be right."),
            Argument("reason", "string", "What it contradicts, and how."),
        ),
    ),
    ToolSpec(
        "final",
        "End the work. Call it when the work is done, or when you cannot get any further.",
        (Argument("message", "string", "What was done, or what is in the way.", required=False, default=""),),
    ),
)  # fmt: skip
"""Every tool of the driver."""


def list_offers(switches: Switches, gate: Gate = Gate.OFF) -> tuple[ToolSpec, ...]:
    """Return the tools that *switches* and the *gate* permit."""
    modes = gate is Gate.REFACTOR or switches.allow_refactor or switches.allow_codemod
    off = {
        "run_tests": not switches.model_may_run_tests,
        "run_command": not (switches.model_may_run_commands or switches.allow_codemod),
        "replace_in_files": not switches.allow_codemod,
        "edit_claim": gate is not Gate.STRICT,
        "submit_plan": gate is Gate.OFF,
        "set_mode": gate is Gate.OFF or not modes,
    }
    return tuple(offer for offer in ALL if not off.get(offer.name))
