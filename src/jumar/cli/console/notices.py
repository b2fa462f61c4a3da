"""Notices to the person while a run works, when something did not go as it should."""

from __future__ import annotations

from collections.abc import Iterator

from jumar.core.quoting import make_one_line
from jumar.core.run import effects
from jumar.core.run.strategy import PIPELINE
from jumar.core.state import events as ev
from jumar.core.state.run_state import ConversationCell, RunState

LONGEST = 300
"""Characters of a reason that one line shows; `jumar log show` has all of it."""

MOST = 20
"""Refused actions of one run that are shown."""

BLIND = "localisation failed, so every line is searched alike"
"""Message for a localisation without any suspicious line."""


class NoticePrinter:
    """Finds notices in the state and the kernel's next effect; each is shown once."""

    def __init__(self) -> None:
        self._acting: tuple[str, str, int] | None = None
        """Of the action of a reply that is being performed: the stage of that reply, the fault of the action, and how
        many attempts were used up before it."""
        self._looked = False
        self._talk: ConversationCell | None = None
        """The conversation as it was searched for refusals. What is from before a resume is not repeated."""
        self._refused = 0
        self._located = ""
        """The tree whose localisation was spoken of."""

    def find_notices(self, state: RunState, effect: effects.Effect) -> Iterator[str]:
        """Yield the notices on *state*, in which *effect* comes next."""
        yield from self._explain_rejected(state)
        yield from self._list_refusals(state)
        self._acting = None
        if isinstance(effect, effects.Act) and state.run.agent == PIPELINE:
            self._acting = (state.stage, effect.action.fault, state.spend.attempts)
        found = state.localisation
        if found is not None and found.problem and found.tree != self._located:
            self._located = found.tree
            yield f"{'incomplete localisation' if found.suspects else BLIND}: {make_one_line(found.problem, LONGEST)}"

    def _explain_rejected(self, state: RunState) -> Iterator[str]:
        """Yield the reason why the newest reply is not verified.

        Its fault, or a refusal that cost an attempt.
        """
        if self._acting is None:
            return
        stage, fault, attempts = self._acting
        if why := fault or (state.last_rejection if state.spend.attempts > attempts else ""):
            yield f"jumar rejected the model's reply ({stage}): {make_one_line(why, LONGEST)}"

    def _list_refusals(self, state: RunState) -> Iterator[str]:
        """Yield the refused actions and reverts of an action-by-action agent since the last call."""
        if state.run.agent == PIPELINE:
            return
        known, self._talk = self._talk, state.conversation
        if not self._looked:
            self._looked = True
            return
        for event in state.list_since(known) or ():
            if isinstance(event, ev.ActionTaken) and not event.admitted:
                said = _format_refusal(event)
            elif isinstance(event, ev.Revert) and event.found:
                said = (
                    f"went back: {make_one_line(', '.join(event.paths), LONGEST)}: {make_one_line(event.why, LONGEST)}"
                )
            else:
                continue
            self._refused += 1
            if self._refused <= MOST + 1:
                yield said if self._refused <= MOST else "more was refused: see `jumar log show`"


def _format_refusal(taken: ev.ActionTaken) -> str:
    """Return the tool, the file and the first line of the reason."""
    files, args = taken.args.get("files"), taken.args
    named = ", ".join(files) if isinstance(files, dict) else args.get("path") or args.get("edit_target") or ""
    what = f"{taken.name} {named}".strip()
    why = taken.reason.strip().split("\n", 1)[0]
    return f"refused {make_one_line(what, LONGEST)}: {make_one_line(why, LONGEST)}"
