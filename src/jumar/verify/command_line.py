"""Formats the command line of an invocation, for people and the journal."""

from __future__ import annotations

import shlex

from jumar.ports import Invocation


def format_command_line(invocation: Invocation) -> str:
    """Return the command line of *invocation*, as for a shell: the person's own command where its config holds one."""
    own = invocation.config.get("argv")
    return shlex.join(map(str, own) if isinstance(own, list) else invocation.argv)
