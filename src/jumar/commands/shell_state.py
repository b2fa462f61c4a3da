"""State of a shell while a line is read: variables, functions, aliases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tree_sitter import Node


class ShellState(msgspec.Struct):
    """State of a shell, as far as the line itself sets it."""

    values: dict[str, tuple[str, ...]] = msgspec.field(
        default_factory=lambda: {"IFS": (" ",), "HOME": ("~",), "PWD": (".",)}
    )
    functions: dict[str, Node] = msgspec.field(default_factory=dict)
    aliases: dict[str, str] = msgspec.field(default_factory=dict)

    def copy(self) -> ShellState:
        """Return another one that begins with the same: a subshell."""
        return ShellState(dict(self.values), dict(self.functions), dict(self.aliases))
