"""Effects that the core asks the runtime for: imperatives, performed one at a time."""

from __future__ import annotations

import msgspec

from jumar.core.gate.admission import Action
from jumar.core.run.strategy import Request
from jumar.core.state.ratchet import Attempt
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Gate, Trigger


class Halt(msgspec.Struct, frozen=True):
    """Reason from outside the state to stop the run now: an interrupt, a cap hit in flight, a broken disk."""

    stop: StopReason
    why: str = ""
    unverifiable: bool = False
    """True if even a verification failed: then none is tried at the end."""
    patient: bool = False
    """True if there is time to judge the edits of the turn first."""


class Verify(msgspec.Struct, frozen=True):
    """Run the tests on the workspace's tree."""

    trigger: Trigger

    @property
    def asked(self) -> bool:
        """Return whether the model asked for it: if it fails, the last verification is still owed."""
        return self.trigger is Trigger.MODEL


class Localise(msgspec.Struct, frozen=True):
    """Find the lines that the red tests run."""


class Reserve(msgspec.Struct, frozen=True):
    """Set the worst case of *request* aside, on disk, before the call is made."""

    request: Request


class Call(msgspec.Struct, frozen=True):
    """Make the call that was reserved, after *pause* seconds."""

    request: Request
    pause: float = 0.0


class Cancel(msgspec.Struct, frozen=True):
    """Settle a reserved call that was never made."""


class Act(msgspec.Struct, frozen=True):
    """Rule on one action of the reply and perform it if admitted."""

    action: Action
    last: bool


class Execute(msgspec.Struct, frozen=True):
    """Run the command that one action of the reply asks for: an `Act` that takes time."""

    action: Action
    last: bool


class Forgo(msgspec.Struct, frozen=True):
    """Continue without *stage*, which improves an existing draft."""

    stage: str
    why: str


class Keep(msgspec.Struct, frozen=True):
    """Move the ratchet up to *attempt*."""

    attempt: Attempt


class GoBack(msgspec.Struct, frozen=True):
    """Put the workspace back to tree *to*."""

    to: str
    why: str


class Rebuild(msgspec.Struct, frozen=True):
    """Put the workspace back to the start of the turn, and redo the edits *left* (their places in the turn)."""

    left: tuple[int, ...]
    dropped: tuple[int, ...]
    """Edits that go back, as the verdict has it."""
    why: str


class Refuse(msgspec.Struct, frozen=True):
    """Keep the workspace as it is, although it is not green: refactor mode is not left."""

    why: str


class Switch(msgspec.Struct, frozen=True):
    """Change the mode of the gate."""

    to: Gate


class Await(msgspec.Struct, frozen=True):
    """Wait for the next request of a host; changes around the tools are ruled on before it is performed."""


class Finish(msgspec.Struct, frozen=True):
    """Write the `final` event; the workspace is what will be shipped."""

    halt: Halt


class Close(msgspec.Struct, frozen=True):
    """End the segment, for the reason that `final` gave."""


Effect = (
    Verify | Localise | Reserve | Call | Cancel | Act | Execute | Forgo | Keep | GoBack | Rebuild | Refuse | Switch
    | Await | Finish | Close
)  # fmt: skip
