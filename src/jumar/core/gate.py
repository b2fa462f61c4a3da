"""Which edits are admitted. It does not know whose edit it judges: same state, same action, same answer."""

from __future__ import annotations

from hashlib import sha256

import msgspec

from jumar.core.guard import Guard, Hit, escape, refusal
from jumar.core.policy import Gate

WRITES = frozenset({"write_file", "write_files", "edit_file", "delete_file"})
"""Actions that change files."""


class Action(msgspec.Struct, frozen=True):
    """What the model asks for in a turn. A file body of None deletes the file."""

    name: str
    files: dict[str, str | None] = {}
    """Path -> whole new text, for actions that write."""
    message: str = ""
    """For `final` and for an unparsable reply: what it says."""
    call_id: str = ""

    @property
    def digest(self) -> str:
        """Names the proposal by what it would write: sha256 over the paths and the texts, in order of the paths."""
        return sha256(msgspec.json.encode(self.files, order="deterministic")).hexdigest()


class Ruling(msgspec.Struct, frozen=True):
    """Whether an action may be performed, and if not, why."""

    admitted: bool
    reason: str = ""
    hit: Hit | None = None


def admits(action: Action, gate: Gate, guard: Guard) -> Ruling:
    """Rule on *action* before it touches the disk. Under `off` only the guard speaks."""
    if action.name not in WRITES:
        return Ruling(admitted=True)
    for path in action.files:
        if hit := escape(path):
            return Ruling(admitted=False, reason=f"{path!r} leads outside the workspace", hit=hit)
        if why := refusal(path, guard):
            return Ruling(admitted=False, reason=why)
    if gate is Gate.STRICT:
        return Ruling(admitted=False, reason="no red test was claimed for this edit; claim one with edit_claim first")
    return Ruling(admitted=True)
