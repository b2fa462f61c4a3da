"""What the driver's model may call, by name and argument. The descriptions are all that a model knows of a tool."""

from __future__ import annotations

import msgspec

from jumar.core.agent import Tool
from jumar.core.settings import Switches


class Argument(msgspec.Struct, frozen=True):
    """One argument of a tool."""

    name: str
    kind: str
    """The type in a JSON schema: `string`, `integer` or `array` (of strings)."""
    about: str
    required: bool = True
    default: object = None
    """What an optional argument is where it is absent."""

    @property
    def schema(self) -> dict[str, object]:
        """Its JSON schema."""
        items: dict[str, object] = {"items": {"type": "string"}} if self.kind == "array" else {}
        return {"type": self.kind, "description": self.about} | items


class Offer(msgspec.Struct, frozen=True):
    """A tool and its arguments."""

    name: str
    about: str
    arguments: tuple[Argument, ...]

    @property
    def tool(self) -> Tool:
        """As a model is told of it."""
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
    Offer("list_files", "List the files of the repository, or those below a folder.", (_BELOW,)),
    Offer(
        "read_file",
        "Read a text file, or some of its lines. A long file is shown in part; ask for the next lines then.",
        (
            _FILE,
            Argument("start", "integer", "First line, counted from 1.", required=False, default=1),
            Argument("end", "integer", "Last line, included; without it, the last one.", required=False, default=0),
        ),
    ),
    Offer(
        "search",
        "Find the lines that match a regular expression; the answer is path:line: text.",
        (Argument("pattern", "string", "A regular expression in Python's syntax, matched within one line."), _BELOW),
    ),
    Offer(
        "write_file",
        "Write a whole file: a new one, or a new text for one that is there.",
        (_FILE, Argument("text", "string", "The complete new text of the file.")),
    ),
    Offer(
        "edit_file",
        "Replace one piece of a file by another, exactly.",
        (
            _FILE,
            Argument("old", "string", "The text to replace, with all its spaces; it must stand exactly once."),
            Argument("new", "string", "The text that comes in its place; empty deletes."),
        ),
    ),
    Offer("delete_file", "Delete a file.", (_FILE,)),
    Offer(
        "run_tests",
        "Run the tests on the files as they are, and show the results.",
        (Argument("test_ids", "array", "Ids of tests, or files; without it, all.", required=False, default=()),),
    ),
    Offer(
        "run_command",
        "Run a shell command in a copy of the repository that is thrown away: it can try things, but changes nothing.",
        (Argument("command", "string", "The command line."),),
    ),
    Offer(
        "final",
        "End the work. Call it when the work is done, or when you cannot get any further.",
        (Argument("message", "string", "What was done, or what is in the way.", required=False, default=""),),
    ),
)  # fmt: skip
"""Every tool of the driver."""


def offers(switches: Switches) -> tuple[Offer, ...]:
    """The tools that *switches* leave on."""
    off = {"run_tests": not switches.model_may_run_tests, "run_command": not switches.model_may_run_commands}
    return tuple(offer for offer in ALL if not off.get(offer.name))
