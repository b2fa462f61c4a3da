"""Serves each open run of a host by one task: calls are done one after the other, and to their end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from logging import getLogger
from pathlib import Path
from typing import Protocol
from weakref import WeakValueDictionary

import anyio
import msgspec
from anyio.abc import ObjectReceiveStream, ObjectSendStream, TaskGroup, TaskStatus

from jumar.core.state.reply import ToolCall
from jumar.core.state.run_state import Phase, RunState
from jumar.errors import BadInput, Infra, JumarError
from jumar.runs.session import ActionOutcome
from jumar.runs.setup.result import read_state
from jumar.task.task import Task

IDLE_SECONDS = 1800.0
"""A run of which nothing was asked for so long is left: it can be gone on with, here or with `jumar resume`."""

LONGEST_NAME = 255
"""Of a run, in bytes: no disk holds a longer one."""

MOST = 16
"""Runs that are open at once: each may verify at any time."""


class SessionPort(Protocol):
    """A run whose actions come from outside; `jumar.runs.session.Session` is one."""

    folder: Path

    @property
    def state(self) -> RunState:
        """Fold of the run's journal so far."""
        ...

    async def act(self, call: ToolCall) -> ActionOutcome:
        """Perform *call*, and return its outcome."""
        ...


Entered = AbstractAsyncContextManager[SessionPort]


class RunOpeners(msgspec.Struct, frozen=True):
    """Functions that open a run or rejoin one."""

    opened: Callable[[Task], Entered]
    rejoined: Callable[[Path], Entered]


class _Job:
    """One call that waits for its turn."""

    def __init__(self, call: ToolCall) -> None:
        self.call, self.done = call, anyio.Event()
        self.told: ActionOutcome | None = None
        self.fault = ""


class OpenSession:
    """One open run."""

    def __init__(self, session: SessionPort, jobs: ObjectSendStream[_Job]) -> None:
        self.session, self.left = session, anyio.Event()
        self._jobs = jobs

    async def act(self, call: ToolCall) -> ActionOutcome:
        """Perform *call* in its turn. If the caller gives up before, it is dropped; later it is done anyway.

        Raises:
            BadInput: if the run ended or was left before it was its turn.
            Infra: if the run broke.
        """
        job = _Job(call)
        try:
            await self._jobs.send(job)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            raise BadInput("the run ended or was left while this call waited; status tells where it stands") from None
        await job.done.wait()
        if job.told is None:
            raise Infra(job.fault or "the run was left before this call was done; status tells where it stands")
        return job.told

    async def leave(self) -> None:
        """Finish the current call, and release the run; it stays as it is."""
        await self._jobs.aclose()
        await self.left.wait()


class SessionPool:
    """Open runs of this process, by name, and the run that each client uses."""

    def __init__(self, group: TaskGroup, doors: RunOpeners, runs: Path, idle_seconds: float = IDLE_SECONDS) -> None:
        self._group, self._doors, self._runs, self._idle_seconds = group, doors, runs, idle_seconds
        self._seats: dict[str, OpenSession] = {}
        self._at: dict[str, str] = {}
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()
        self._opening = 0

    async def open(self, client: str, task: Task) -> SessionPort:
        """Begin a run of *task*. *client* names a session of the protocol; empty: there is none, calls name the run.

        Raises:
            BadInput: if it cannot be run as asked, or the client has another open run.
            Infra: if the machine failed.
        """
        async with self._get_lock(f"client {client}" if client else ""):
            if (name := self._at.get(client, "")) in self._seats:
                raise BadInput(f"run {name} is still open; call finish to end it before another task is opened")
            seat = await self._open_seat(lambda: self._doors.opened(task))
            if client:
                self._at[client] = seat.session.folder.name
            return seat.session

    async def act(self, client: str, run: str, call: ToolCall) -> tuple[SessionPort, ActionOutcome]:
        """Perform *call* in *run*, or in the client's own run if *run* is empty; a run that was left is rejoined.

        Raises:
            BadInput: if there is no such run, or it has ended.
            Infra: as `OpenSession.act`.
        """
        name = self.find_run_name(client, run)
        async with self._get_lock(name):
            if name not in self._seats:
                _refuse_ended(self.get_state(name), name)
                await self._open_seat(lambda: self._doors.rejoined(self._runs / name))
            seat = self._seats[name]
        if client and run:
            self._at[client] = name
        told = await seat.act(call)
        if told.stop is not None:
            await seat.left.wait()  # what lies beside the journal is written then
        return seat.session, told

    def find_run_name(self, client: str, run: str) -> str:
        """Return the name of the run that *client* means by *run*.

        Raises:
            BadInput: if none is, or what was given is no name of a run.
        """
        name = run or self._at.get(client, "")
        if not name:
            raise BadInput("no task is open here: call open_task first, or pass the name of its run as `run`")
        if name in (".", "..") or "/" in name or "\0" in name or len(name.encode()) > LONGEST_NAME:
            raise BadInput(f"{name[:60]!r} is no name of a run; pass `run` as open_task returned it")
        return name

    def get_run_of(self, client: str) -> str:
        """Return the name of the run that *client* uses; empty: it uses none."""
        return self._at.get(client, "")

    def get_state(self, name: str) -> RunState:
        """Return the state of the run called *name*.

        Raises:
            BadInput: if there is none, or its journal is damaged.
        """
        if name in self._seats:
            return self._seats[name].session.state
        if not (self._runs / name / "events.jsonl").is_file():
            raise BadInput(f"there is no run {name!r} here; call open_task to begin one")
        return read_state(self._runs / name)

    def get_folder(self, name: str) -> Path:
        """Return the directory of the run called *name*."""
        return self._seats[name].session.folder if name in self._seats else self._runs / name

    async def leave(self, client: str) -> None:
        """Release the run of a client that has gone; the run stays as it is."""
        seat = self._seats.get(self._at.pop(client, ""))
        if seat is not None:
            await seat.leave()

    def _get_lock(self, name: str) -> anyio.Lock:
        return self._locks.setdefault(name, anyio.Lock()) if name else anyio.Lock()

    async def _open_seat(self, enter: Callable[[], Entered]) -> OpenSession:
        if len(self._seats) + self._opening >= MOST:
            raise BadInput(f"{MOST} runs are open here already; call finish for one of them first")
        self._opening += 1
        try:
            seat: OpenSession = await self._group.start(self._serve, enter)
        except ExceptionGroup as broken:  # a task group of the session's own wraps what went wrong in it
            raise _unwrap_group(broken) from broken
        finally:
            self._opening -= 1
        return seat

    async def _serve(self, enter: Callable[[], Entered], *, task_status: TaskStatus[OpenSession]) -> None:
        """Hold one run until it ends, is left, or is idle for too long."""
        asked, jobs = anyio.create_memory_object_stream[_Job](0)
        seat: OpenSession | None = None
        try:
            async with asked, jobs, enter() as session:
                seat = OpenSession(session, asked)
                self._seats[session.folder.name] = seat
                task_status.started(seat)
                await self._attend(session, jobs)
        except Exception as broken:
            if seat is None:
                raise
            # Whoever asked was told already. A fault of one run, even a bug, must not end those of other clients.
            if not isinstance(_unwrap_group(broken), JumarError):
                getLogger(__name__).exception("run %s", seat.session.folder.name)
        finally:
            if seat is not None:
                self._seats.pop(seat.session.folder.name, None)
                seat.left.set()

    async def _attend(self, session: SessionPort, jobs: ObjectReceiveStream[_Job]) -> None:
        while True:
            job = None
            with anyio.move_on_after(self._idle_seconds):
                try:
                    job = await jobs.receive()
                except anyio.EndOfStream:
                    return
            if job is None:
                return
            try:
                job.told = await session.act(job.call)
            except Exception as broken:
                job.fault = str(broken) if isinstance(broken, JumarError) else f"a bug of jumar: {broken!r}"
                raise
            finally:
                job.done.set()
            if job.told.stop is not None:
                return


def _refuse_ended(state: RunState, name: str) -> None:
    if state.phase is Phase.ENDED and state.end is not None:
        raise BadInput(f"run {name} has ended ({state.end.stop}); call open_task to begin another")


def _unwrap_group(broken: Exception) -> Exception:
    """Return the one exception in a group of one; else the group."""
    while isinstance(broken, ExceptionGroup) and len(broken.exceptions) == 1:
        broken = broken.exceptions[0]
    return broken
