"""Judges a shell line without running it: every simple command in its text, also inside commands that hide one.

A script, an interpreter or an encoded text is not read: the sandbox is the guarantee, this is for a clear early stop.
"""

from __future__ import annotations

import sys

from jumar.commands.downloads import FETCHED
from jumar.commands.git_and_files import HOLE, find_broken_rule, has_moved
from jumar.commands.reader import Unreadable, list_commands
from jumar.core.gate.admission import Ruling
from jumar.core.gate.write_rules import Hit

FOR_A_PERSON = "the person does that, not an agent"

_SHOWN = 200
"""Characters of a command that a hit quotes."""


def find_hit(line: str) -> Hit | None:
    """Return the hard rule that the shell command *line* breaks, or None.

    Raises:
        Unreadable: if it cannot be told, in one sentence.
    """
    moved = False
    for words in list_commands(line):
        if broken := find_broken_rule(words, moved=moved):
            said = " ".join(words).replace(HOLE, "...").replace(FETCHED, "(a download)")
            return Hit(broken.rule, f"{broken.why}: {said[:_SHOWN]}")
        moved = has_moved(words, moved=moved)
    return None


def check_command(line: str) -> Ruling:
    """Return whether the shell command *line* may be run; an unreadable line is refused without a hit."""
    try:
        found = find_hit(line)
    except Unreadable as why:
        return Ruling(admitted=False, reason=str(why))
    return Ruling(admitted=found is None, reason=found.what if found else "", hit=found)


def main() -> int:
    """Print why the command line on standard input must not be run, and nothing if it may; return 0."""
    ruling = check_command(sys.stdin.buffer.read().decode("utf-8", "replace"))
    sys.stdout.write(f"{ruling.reason}; {FOR_A_PERSON}" if ruling.hit else ruling.reason)
    return 0


if __name__ == "__main__":
    sys.exit(main())
