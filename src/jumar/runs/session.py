"""A run whose actions come from a host: each is ruled on and journalled like an action of a model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import anyio
import msgspec
from anyio import to_thread
from msgspec.structs import replace

from jumar.agents.tools import tool_calls
from jumar.agents.tools.catalogue import list_offers
from jumar.core.gate.admission import Action
from jumar.core.prompts import conversation
from jumar.core.state import events as ev
from jumar.core.state.reply import ToolCall
from jumar.core.state.run_state import Phase, RunState
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Gate
from jumar.errors import BadInput, JumarError
from jumar.ports import Push
from jumar.runs import lifecycle as entering
from jumar.runs.finish import Running, write_result
from jumar.runs.lifecycle import RunEntry, create_run
from jumar.runs.setup.marks import TrustedRun, build_key_ignore_line
from jumar.runs.tree.task_tree import list_named_files
from jumar.task.task import Task
from jumar.workspace.git_ignored import read_ignored

ENDING = frozenset({"run_tests", "set_mode", "final"})
"""Actions that end a turn: edits that wait for their verdict are judged then, all in one invocation."""


class ActionOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one action."""

    admitted: bool
    reason: str = ""
    """Reason that it was not admitted, and what would be."""
    observations: tuple[tuple[str, dict[str, object]], ...] = ()
    """Observations, in order: the name and content of each `observation`."""
    reverted: tuple[str, ...] = ()
    """The files that went back."""
    why: str = ""
    """Reason that they were reverted."""
    text: str = ""
    """All of it as one text for a model."""
    stop: StopReason | None = None
    """Reason that the run has ended; None: it is open."""


class _ActionQueue:
    """Hands one action at a time to the kernel (see `ports.Host`)."""

    def __init__(self) -> None:
        self._send, self._receive = anyio.create_memory_object_stream[Push](0)
        self.idle = anyio.Event()
        """Set while the kernel has nothing left to do."""

    async def next(self, state: RunState) -> Push | None:  # noqa: ARG002  the port's signature
        """Return the next action; None when the session is over."""
        self.idle.set()
        try:
            return await self._receive.receive()
        except anyio.EndOfStream:
            return None

    async def push(self, push: Push) -> None:
        """Hand over *push*, and wait until everything that follows from it is done."""
        self.idle = anyio.Event()
        await self._send.send(push)
        await self.idle.wait()

    def leave(self) -> None:
        """End the session: the host leaves."""
        self._send.close()

    def close(self) -> None:
        """Close both ends of the stream: no caller waits any more."""
        self._send.close()
        self._receive.close()


class Session:
    """One open run. Calls are performed one after the other."""

    def __init__(self, running: Running, door: _ActionQueue) -> None:
        self.folder: Path = running.place.folder
        self.running = running
        self._door, self._lock = door, anyio.Lock()
        self.fault: JumarError | None = None
        """The error that broke the run."""
        self._events: list[ev.Event] = []
        running.kernel.heard = lambda entries: self._events.extend(entry.event for entry in entries)

    @property
    def state(self) -> RunState:
        """Fold of the run's journal so far."""
        return self.running.kernel.state

    async def act(self, call: ToolCall) -> ActionOutcome:
        """Perform *call*: a tool of the driver by its name and arguments, `look` or `stop`.

        Raises:
            BadInput: if the run has ended.
            Infra: if the run broke.
        """
        async with self._lock:
            if self.state.phase is Phase.ENDED or self.fault is not None:
                raise self.fault or BadInput("the run has ended: open a new one")
            self._events.clear()
            await self._door.push(Push(action=self._build_action(call), last=call.name in ENDING))
            if self.fault is not None:
                raise self.fault
            return self._build_outcome(tuple(self._events))

    def _build_action(self, call: ToolCall) -> Action:
        run = self.state.run
        if call.name in ("look", "stop"):  # a host's own, and no tool
            return Action(call.name, call_id=call.id, args=call.arguments)
        every = replace(run.settings.switches, allow_refactor=True)  # whether it may is the gate's to say
        # A claim is the gate's to refuse, too: it says why, and the mode may have changed since the run began.
        gate = Gate.OFF if run.gate is Gate.OFF else Gate.STRICT
        action = tool_calls.parse_action(call, list_offers(every, gate))
        asked = action.args.get("test_ids")
        if action.fault or not isinstance(asked, tuple):
            return action
        ids = tool_calls.select_ids(asked, self.state.expected)
        return replace(action, fault=ids) if isinstance(ids, str) else replace(action, args={"test_ids": ids})

    def _build_outcome(self, events: Sequence[ev.Event]) -> ActionOutcome:
        # What would leave refactor mode is ruled on last, when the tests have run.
        taken = next((e for e in reversed(events) if isinstance(e, ev.ActionTaken)), None)
        reverts = [e for e in events if isinstance(e, ev.Revert)]
        end = self.state.end
        return ActionOutcome(
            admitted=taken is not None and taken.admitted,
            reason=taken.reason if taken else "the run ended before it could be done",
            observations=tuple((e.name, e.content) for e in events if isinstance(e, ev.Observation)),
            reverted=tuple(dict.fromkeys(path for e in reverts for path in e.paths)),
            why="; ".join(dict.fromkeys(e.why for e in reverts)),
            text=conversation.describe_events(events, self.state.run),
            stop=end.stop if end else None,
        )


@asynccontextmanager
async def open_session(
    task: Task, runs: Path, *, environ: Mapping[str, str], python: str | None = None, in_place: bool = False
) -> AsyncIterator[Session]:
    """Yield a new run of *task* under *runs*, with the agent `host`; its baseline is verified by then.

    With *in_place* the workspace is the task's folder itself. Leaving keeps the run open; `rejoin_session` resumes it.

    Raises:
        BadInput: if it cannot be run as asked; nothing is left behind.
        Infra: if the machine failed.
    """
    door = _ActionQueue()
    if in_place:
        rule = await to_thread.run_sync(read_ignored, task.root, environ)
        own = replace(
            rule,
            lines=(*rule.lines, *task.exclude, *build_key_ignore_line(task.root, environ)),
            include=(*task.include, *list_named_files(task)),
        )
        task = replace(task, in_place=own)
    with ExitStack() as held:
        held.callback(door.close)
        running = await create_run(task, runs, RunEntry(environ, python, door), held)
        async with _serve_beside(Session(running, door), door) as session:
            yield session


@asynccontextmanager
async def rejoin_session(run: TrustedRun, *, environ: Mapping[str, str]) -> AsyncIterator[Session]:
    """Yield the open *run*, from another process or later.

    Raises:
        BadInput: if there is no run, another process writes it, or its journal is damaged.
        Infra: as `open_session`.
    """
    door = _ActionQueue()
    with ExitStack() as held:
        held.callback(door.close)
        running = await entering.rejoin_run(run, RunEntry(environ, None, door), held)
        async with _serve_beside(Session(running, door), door) as session:
            yield session


@asynccontextmanager
async def _serve_beside(session: Session, door: _ActionQueue) -> AsyncIterator[Session]:
    """Run the kernel of *session* beside its caller, until the run has ended or the caller leaves."""
    kernel = session.running.kernel

    async def serve() -> None:
        try:
            state = await kernel.run()
            if state.phase is Phase.ENDED:
                write_result(session.running, state)
        except JumarError as broken:
            session.fault = broken
        finally:
            door.idle.set()

    failed: Exception | None = None
    async with anyio.create_task_group() as group:  # which would wrap whatever the caller raises
        group.start_soon(serve)
        await door.idle.wait()
        try:
            if session.fault is None:
                yield session
        except Exception as error:  # noqa: BLE001  raised again below
            failed = error
        finally:
            door.leave()
    if failed := failed or session.fault:
        raise failed
