"""A person's command for an agent: words, split as a shell splits them, and no shell."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from jumar.errors import BadInput

PLACES = re.compile(r"\{(prompt|prompt_file|model)\}")

WORD_BYTES = 120_000
"""A longer word is no argument of a program on Linux."""


def words(command: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The words of *command*; a program given by its path is named by its absolute one.

    Raises:
        BadInput: if there are none, a quote is open, or there is no such program on the PATH of *environ*.
    """
    try:
        found = shlex.split(command)
    except ValueError as error:
        raise BadInput(f"--agent-command {command!r} cannot be read: {str(error).lower()}") from None
    if not found:
        raise BadInput("--agent-command is empty; give one such as 'mini -t {prompt} -y'")
    program = shutil.which(found[0], path=environ.get("PATH"))
    if program is None:
        raise BadInput(f"--agent-command: there is no program {found[0]!r}; install it, or give its path")
    return (str(Path(program).absolute()) if os.sep in found[0] else found[0], *found[1:])


def takes(argv: tuple[str, ...], place: str) -> bool:
    """Whether *place* is to be filled in somewhere."""
    return any(match[1] == place for word in argv for match in PLACES.finditer(word))


def filled(argv: tuple[str, ...], texts: Mapping[str, str]) -> tuple[str, ...]:
    """*argv* with its places filled in from *texts*; what is filled in is not read again.

    Raises:
        BadInput: if a word gets longer than a program can be given.
    """
    done = tuple(PLACES.sub(lambda match: texts[match[1]].replace("\0", ""), word) for word in argv)
    if any(len(word.encode("utf-8", "replace")) > WORD_BYTES for word in done):
        raise BadInput(
            f"the prompt has more than {WORD_BYTES:,} bytes, which no program can be given as a word; "
            "put {prompt_file} into --agent-command, or neither, for its standard input"
        )
    return done
