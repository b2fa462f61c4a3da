"""Finds the shell commands the rules must be asked about: those that could name a program they speak of.

The rest pass. The rules themselves are `jumar.commands.parser`, the same as in every run; a process of their own reads
the line, since a grammar is slower to load than a hook may be. What a script hides is found by comparing the tree
afterwards.
"""

from __future__ import annotations

import re

from jumar.child.hook.deploy_table import TABLE

_PROGRAMS = frozenset(TABLE) | frozenset({
    "rm", "mv", "cp", "ln", "dd", "tee", "sed", "find", "shred", "truncate", "unlink", "rmdir", "chmod", "chown",
    "install", "ssh", "scp", "sftp", "rsync", "mosh", "ftp", "lftp", "rclone", "make", "gmake", "just", "task",
    "inv", "invoke", "composer", "nox", "jumar", "hook_fast.py", "hook_fast", "alias", "curl", "wget",
})  # fmt: skip
"""Programs that the rules speak of."""

_EXPANDS = frozenset("$`{")
"""Characters that may make a name out of others."""


def needs_parser(line: str) -> bool:
    """Return whether the rules have anything to say of a *line* for a shell."""
    plain = re.sub(r"\\\n|['\"\\]", "", line)
    if _EXPANDS & set(plain) or "git" in plain or "mkfs" in plain:
        return True
    return not _PROGRAMS.isdisjoint(re.split(r"[^\w.+-]+", plain))
