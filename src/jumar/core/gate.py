"""Which edits are admitted. It does not know whose edit it judges: same state, same action, same answer."""

from __future__ import annotations

from hashlib import sha256

import msgspec

from jumar.core.guard import Guard, Hit, escape, refusal
from jumar.core.policy import Gate

WRITES = frozenset({"write_file", "write_files", "edit_file", "delete_file"})
"""Actions that change files."""


class Edit(msgspec.Struct, frozen=True):
    """An exact replacement: *old* stands exactly once in the file."""

    path: str
    old: str
    new: str


class Action(msgspec.Struct, frozen=True):
    """What the model asks for in a turn. A file body of None deletes the file."""

    name: str
    files: dict[str, str | None] = {}
    """Path -> whole new text, for actions that write."""
    message: str = ""
    """For `final`, for a review and for an unparsable reply: what it says."""
    call_id: str = ""
    edit: Edit | None = None
    args: dict[str, object] = {}
    """What else was asked: of reads, test runs and commands."""
    fault: str = ""
    """Why it cannot be performed whatever the state, told to the model; empty: it can."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The files it would change."""
        return (*self.files, *((self.edit.path,) if self.edit else ()))

    @property
    def digest(self) -> str:
        """Names the proposal by what it would write: sha256 over the paths and the texts, in order of the paths."""
        asked: object = (self.files, self.edit) if self.edit else self.files
        return sha256(msgspec.json.encode(asked, order="deterministic")).hexdigest()


class Ruling(msgspec.Struct, frozen=True):
    """Whether an action may be performed, and if not, why."""

    admitted: bool
    reason: str = ""
    hit: Hit | None = None


def admits(action: Action, gate: Gate, guard: Guard) -> Ruling:
    """Rule on *action* before it touches the disk. Under `off` only the guard speaks."""
    if action.fault:
        return Ruling(admitted=False, reason=action.fault)
    if action.name not in WRITES:
        return Ruling(admitted=True)
    for path in action.paths:
        if hit := escape(path):
            return Ruling(admitted=False, reason=f"{path!r} leads outside the workspace", hit=hit)
        if why := refusal(path, guard):
            return Ruling(admitted=False, reason=why)
    if gate is Gate.STRICT:
        return Ruling(admitted=False, reason="no red test was claimed for this edit; claim one with edit_claim first")
    return Ruling(admitted=True)
