"""Performs the calls of `jumar mcp`. A refusal is an answer with a reason that a model can act on, never an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from anyio import to_thread
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from jumar.core.state.reply import ToolCall
from jumar.core.state.run_state import HOST, Phase
from jumar.core.state.stop import StopReason
from jumar.errors import BadInput, JumarError
from jumar.mcp_server import responses as answers
from jumar.mcp_server import tools as calls
from jumar.runs.archive.changes import apply_best
from jumar.runs.session import ActionOutcome
from jumar.runs.session_pool import SessionPool
from jumar.runs.setup.marks import Trust
from jumar.task.task import Task

Settle = Callable[[Path, calls.OpenTask], Task]
"""A folder that may be worked on, and what was asked -> the task, with every choice made."""


class ToolDispatcher:
    """The tools of one server, for all its clients."""

    def __init__(self, desk: SessionPool, roots: tuple[Path, ...], settle: Settle, trust: Trust) -> None:
        self._desk, self._roots, self._settle, self._trust = desk, roots, settle, trust

    async def call(self, client: str, name: str, given: object) -> answers.ToolResponse:
        """Perform the tool *name* for *client* (empty: it has no session) with the arguments *given*."""
        gives = calls.OFFERS[name].gives
        try:
            asked = calls.check_arguments(name, given)
            if isinstance(asked, calls.OpenTask):
                return await self._open(client, asked)
            if isinstance(asked, calls.StatusArguments):
                return self._report_status(client, asked)
            if isinstance(asked, calls.FinishArguments):
                return await self._finish(client, asked)
            return await self._act(client, name, asked)
        except JumarError as refused:
            run = given.get("run", "") if isinstance(given, dict) else ""
            return gives(ok=False, run=run if isinstance(run, str) else "", reason=str(refused))

    async def _open(self, client: str, asked: calls.OpenTask) -> answers.Stood:
        task = await to_thread.run_sync(self._settle, resolve_inside(self._roots, asked.path), asked)
        session = await self._desk.open(client, task)
        shown = str(session.state.best_results.get("output", ""))
        return replace(self._build_stood(session.folder.name), shown=shown)

    def _report_status(self, client: str, asked: calls.StatusArguments) -> answers.Stood:
        if not asked.run and not self._desk.get_run_of(client):
            return answers.Stood(ok=True, roots=tuple(map(str, self._roots)))
        return self._build_stood(self._find_run(client, asked.run))

    def _find_run(self, client: str, run: str) -> str:
        """Return the name of the run that is meant, if it may be worked on from here.

        Raises:
            BadInput: if it is none, or not a host's, or of a folder that was not given.
        """
        name = self._desk.find_run_name(client, run)
        begun = self._desk.get_state(name).run
        if begun.agent != HOST:
            raise BadInput(f"run {name} is one of agent {begun.agent}'s; a person goes on with it by `jumar resume`")
        if not _is_below(self._roots, Path(begun.settings.origin).resolve()):
            raise BadInput(f"run {name} is of {begun.settings.origin}, outside of what may be worked on here")
        return name

    def _build_stood(self, name: str) -> answers.Stood:
        state, folder = self._desk.get_state(name), self._desk.get_folder(name).absolute()
        return answers.Stood(
            ok=True,
            run=name,
            stop=str(state.end.stop) if state.phase is Phase.ENDED and state.end else "",
            workspace=str(folder / "workspace"),
            tests=answers.build_standing(state),
            claims=answers.list_claims(state),
            unjudged=tuple(dict.fromkeys(edit.path for edit in state.gate_state.turn)),
            plan=answers.list_steps(state),
            journal=str(folder / "events.jsonl"),
        )

    async def _finish(self, client: str, asked: calls.FinishArguments) -> answers.Finished:
        name = self._find_run(client, asked.run)
        if self._desk.get_state(name).phase is not Phase.ENDED:
            call = ToolCall("final", {"message": asked.message})
            _, told = await self._desk.act(client, name, call)
            if not told.admitted:
                return answers.Finished(ok=False, run=name, reason=told.reason, stop=told.stop or "")
        state, folder = self._desk.get_state(name), self._desk.get_folder(name).absolute()
        stop, refused = state.end.stop if state.end else "", ""
        applied: tuple[str, ...] | UnsetType = UNSET
        if asked.apply:
            try:
                applied = await self._apply(folder, stop)
            except BadInput as error:
                refused = str(error)
        patch = folder / "best.patch"
        return answers.Finished(
            ok=not refused,
            run=name,
            reason=refused,
            stop=str(stop),
            tests=answers.build_standing(state),
            applied=applied,
            patch=str(patch) if patch.is_file() and patch.stat().st_size else "",
        )

    async def _apply(self, folder: Path, stop: str) -> tuple[str, ...]:
        if stop == StopReason.GUARDRAIL:
            raise BadInput("a run that hit a guardrail is not applied by its own agent; a person may apply best.patch")
        return await to_thread.run_sync(apply_best, self._trust.run(folder))

    async def _act(self, client: str, name: str, asked: Any) -> answers.ToolResponse:
        arguments = msgspec.to_builtins(asked)
        run = self._find_run(client, arguments.pop("run"))
        session, told = await self._desk.act(client, run, ToolCall(name, arguments))
        gives = calls.OFFERS[name].gives
        common: dict[str, Any] = {"run": session.folder.name, "stop": told.stop or ""}
        if not told.admitted:
            return gives(ok=False, reason=told.reason, **common, **_build_fields(gives, told))
        if issubclass(gives, answers.Tested):
            common["tests"] = answers.build_standing(session.state)
        if issubclass(gives, answers.Acted):
            return gives(ok=True, **common, **_build_fields(gives, told))
        return _build_read(gives, told, common)


def resolve_inside(roots: tuple[Path, ...], path: str) -> Path:
    """Return *path*, resolved, which must lie in one of *roots*; relative ones are tried in each.

    Raises:
        BadInput: if it is not there, or leads out of all of them.
    """
    try:
        found = [there for root in roots if (there := (root / path).resolve()).exists()]
    except (OSError, ValueError, RuntimeError):  # too long, a NUL, links in a ring
        found = []
    allowed = [there for there in found if _is_below(roots, there)]
    if allowed:
        return allowed[0]
    where = ", ".join(map(str, roots))
    if found:
        raise BadInput(f"{path!r} lies outside of what may be worked on here: {where}")
    raise BadInput(f"there is no {path!r}; name a folder in {where}")


def _is_below(roots: tuple[Path, ...], path: Path) -> bool:
    return any(path.is_relative_to(root) for root in roots)


def _build_fields(gives: type[answers.ToolResponse], told: ActionOutcome) -> dict[str, Any]:
    """Return the fields of an action's response beside whether it was admitted."""
    if not issubclass(gives, answers.Acted):
        return {}
    return {"shown": told.text if told.admitted else "", "reverted": told.reverted, "why": told.why}


def _build_read(gives: type[answers.ToolResponse], told: ActionOutcome, common: dict[str, Any]) -> answers.ToolResponse:
    """Return the response of a reading tool."""
    content = dict(told.observations[-1][1]) if told.observations else {}
    ok, reason = bool(content.pop("ok", True)), str(content.pop("error", ""))
    known = {key: value for key, value in content.items() if key in gives.__struct_fields__}
    return msgspec.convert({"ok": ok, "reason": reason, **common, **known}, gives)
