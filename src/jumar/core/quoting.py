"""Quotes data in a prompt: fenced so that nothing in it ends the fence, capped, without control sequences."""

from __future__ import annotations

import re
from collections.abc import Collection

_JOINED = r"[^\x00-\u02ff\u061c\u180e\u2000-\u206f\ud800-\udfff\ufeff\U000e0000-\U000e007f]"
"""Characters that a joiner may stand between: letters of scripts that need one, emoji."""

INVISIBLE = (
    r"[\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
    rf"|(?<!{_JOINED})[\u200c\u200d]|[\u200c\u200d](?!{_JOINED})"
)
"""Pattern of characters that are not seen, turn the order of text round, or end a line where no line ends."""

CONTROL = re.compile(
    rf"""(?: \x1b[\]PX^_][^\x07\x1b\n]*+(?:\x07|\x1b\\)?    # titles, links, other strings for a terminal
          | (?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]              # colours, cursor
          | \x1b[ -/]*+[0-~]                                # the rest of what begins with an escape
          | [\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]      # other controls, and what no UTF-8 can say
          | {INVISIBLE}                                     # what is not seen
        )""",
    re.VERBOSE,
)


def strip_control_sequences(text: str) -> str:
    """Return *text* without control sequences; every end of line is one line feed."""
    return CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def make_one_line(text: str, most: int = 0) -> str:
    """Return *text* in one line of at most *most* characters (0: of any number), without control sequences."""
    line = " ".join(strip_control_sequences(text).split())
    return line if not most or len(line) <= most else f"{line[: most - 3]}..."


def escape_line_ends(text: str) -> str:
    """Return *text* in one line that shows each end of a line in it: a test's id may have one, and is data."""
    return text.replace("\r", "\\r").replace("\n", "\\n")


def fence_text(text: str, path: str = "") -> str:
    """Return *text* in a fence longer than any run of backticks or tildes in it, below a line with its *path*."""
    mark = "`" * max(3, 1 + max(map(len, re.findall(r"`+|~+", text)), default=0))
    end = "" if not text or text.endswith("\n") else "\n"
    return f"{path}\n{mark}\n{text}{end}{mark}".lstrip("\n")


def cut_middle(text: str, limit: int) -> str:
    """Return *text* cut in the middle to at most *limit* characters."""
    if len(text) <= limit:
        return text
    mark = f"\n... {len(text) - limit} characters left out ...\n"
    room = limit - len(mark)
    return text[: room // 2] + mark + text[-(room - room // 2) :]


HEADER = re.compile(r"([ \t]*)(?:async[ \t]+)?(def|class)[ \t]+(\w+)")


def remove_functions(text: str, names: Collection[str]) -> str:
    """Remove the functions *names* from the Python source *text*, with their decorators and bodies.

    It goes by lines, not by syntax: the file may not parse. Each gap says how many lines are gone.
    """
    kept: list[str] = []
    waiting: list[str] = []
    gone, cut = 0, -1
    for line in text.splitlines(keepends=True):
        depth = len(line) - len(line.lstrip())
        if cut >= 0 and (depth > cut or not line.strip() or line.lstrip().startswith((")", "]"))):
            gone += 1
            continue
        cut = -1
        header = HEADER.match(line)
        if line.lstrip().startswith("@") or (waiting and not header):
            waiting.append(line)
            continue
        if header and header[2] == "def" and header[3] in names:
            gone, cut = gone + len(waiting) + 1, depth
        else:
            kept += [*_mark_gap(gone), *waiting, line]
            gone = 0
        waiting = []
    return "".join([*kept, *_mark_gap(gone), *waiting])


def _mark_gap(lines: int) -> tuple[str, ...]:
    return (f"# ... {lines} lines of tests that pass are left out ...\n",) if lines else ()
