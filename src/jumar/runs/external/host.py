"""Hosts an external agent: it runs only while the kernel waits for it, and is stopped while its work is inspected."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from jumar.agents.external import ExternalAgent
from jumar.core.gate.admission import Action
from jumar.core.state import events as ev
from jumar.core.state.external_agent import TURN_SECONDS, ExternalAgentSettings
from jumar.core.state.run_state import RunState
from jumar.core.state.stop import StopReason
from jumar.errors import BadInput, Infra, JumarError
from jumar.models.metered_forward import ForwardedModel, ForwardedReply
from jumar.models.router import check_route, collect_keys
from jumar.models.wire.providers import find_key, find_provider
from jumar.models.wire.request_formats import ForwardedRequest, ForwardRefusal
from jumar.ports import Push
from jumar.process.room import discard
from jumar.runs.external.agent_process import AgentTurn, AgentWorkplace, TurnEnd
from jumar.runs.external.agent_requests import EscalateRequest, Wish, build_action, build_answer, parse
from jumar.runs.external.model_proxy import ProxyEndpoints, ProxyRequest, build_error, open_listeners, serve
from jumar.runs.setup.assembly import RunPlace
from jumar.workspace.files.disk_faults import explain_disk_faults
from jumar.workspace.workspace import Workspace

GRACE_SECONDS = 2.0
"""For an agent that was told that the run is over, to say so and to leave."""

PAYMENT_REQUIRED = 402
"""Status sent to the agent when no further call is paid for: clients do not retry it."""


class PendingRequest:
    """A client's request at the proxy that waits for its answer."""

    def __init__(self, wish: ForwardedRequest | Wish, gone: Callable[[], bool]) -> None:
        self.wish, self.gone = wish, gone
        self.given = build_error(503, "unanswered", "the run went on without this request")
        self.done = anyio.Event()

    def answer(self, given: ForwardedReply) -> None:
        """Answer the request."""
        self.given = given
        self.done.set()


class ExternalHost:
    """Starts the agent turn by turn, and passes its calls, its claims and its end to the kernel, one by one.

    See `jumar.ports.Host`. It is of use within `at_work`.
    """

    def __init__(
        self, outside: ExternalAgentSettings, place: RunPlace, agent: ExternalAgent, model: ForwardedModel
    ) -> None:
        self._outside, self._place, self._agent, self.model = outside, place, agent, model
        self._send, self._heard = anyio.create_memory_object_stream[PendingRequest | TurnEnd | JumarError](float("inf"))
        self._tasks: TaskGroup | None = None
        self._doors = ProxyEndpoints(0, "")
        self._turn: AgentTurn | None = None
        self._visit: PendingRequest | None = None
        self._over: ForwardedReply | None = None
        self._folder = place.folder / "workspace"

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Open the proxy, and close it when the block ends; no process of the agent is left then.

        Raises:
            Infra: if there is no port for it.
        """
        failed: Exception | None = None
        async with AsyncExitStack() as stack:
            with explain_disk_faults("cannot open a port on loopback"):
                beside = self._place.sandbox.tier != "S0"
                listener, self._doors = await stack.enter_async_context(
                    open_listeners(secrets.token_hex(24), beside=beside)
                )
            self._tasks = await stack.enter_async_context(anyio.create_task_group())
            self._tasks.start_soon(serve, listener, self._doors, self.answer, self.model.name.partition(":")[2])
            try:
                yield
            except Exception as error:  # noqa: BLE001  raised again below: a task group would wrap it
                failed = error
            finally:
                await self._stop_processes()
                self._send.close()
                self._heard.close()
                self._tasks.cancel_scope.cancel()
        if failed is not None:
            raise failed

    async def next(self, state: RunState) -> Push:
        """Return the agent's next event. All that it waited for has been answered by then.

        Raises:
            Infra: if it cannot be started or stopped, did nothing at all, or worked without the proxy.
            BadInput: if its prompt does not fit its command.
        """
        try:
            if self._turn is not None:
                self._turn.check()
            self._answer_visit(state)
            if self._turn is None:
                self._turn = self._begin_turn(state)
            else:
                self._turn.thaw()
            while (push := await self._build_push(await self._heard.receive(), self._turn)) is None:
                pass
        except BaseException:  # cancelled, most of all: nobody waits for the agent any more
            await self._stop_processes()
            raise
        return push

    async def answer(self, knock: ProxyRequest) -> ForwardedReply:
        """Return the answer to *knock*: at once where it cannot be passed to the kernel."""
        if self._over is not None:
            return self._over
        if self._turn is None:
            return build_error(409, "no_turn", "no turn of the agent is under way")
        wish = (
            parse(knock.wish, knock.body)
            if knock.form is None
            else self.model.build_request(knock.form, knock.body, knock.headers)
        )
        if isinstance(wish, ForwardRefusal):
            return build_error(wish.status, "refused", wish.why)
        visit = PendingRequest(wish, knock.gone)
        self._send.send_nowait(visit)
        await visit.done.wait()
        return visit.given

    async def leave(self, state: RunState) -> None:
        """End the run in *state*: answer open requests, end all processes, and reset the workspace to its tree."""
        why = f"{state.end.stop}: {state.end.why}" if state.end else "it goes on later"
        self._over = build_error(PAYMENT_REQUIRED, "run_ended", f"the run has ended ({why.rstrip(': ')})")
        if self._visit is not None and self._turn is not None:
            wish, escalated = self._visit.wish, state.end is not None and state.end.stop is StopReason.ESCALATED
            self._visit.answer(
                build_answer(wish, state) if escalated and isinstance(wish, EscalateRequest) else self._over
            )
            self._turn.thaw()
            with anyio.move_on_after(GRACE_SECONDS):
                await self._turn.gone.wait()
        await self._stop_processes()
        self._forget_history()
        Workspace(self._folder, self._place.store).reset(state.tree)

    async def _stop_processes(self) -> None:
        """Stop all processes of the agent."""
        if self._turn is not None:
            with anyio.CancelScope(shield=True):
                await self._turn.stop()
        self._turn = self._visit = None

    def _answer_visit(self, state: RunState) -> None:
        visit, self._visit = self._visit, None
        if visit is None:
            return
        if isinstance(visit.wish, ForwardedRequest):
            visit.answer(self.model.given or visit.given)
        else:
            visit.answer(build_answer(visit.wish, state))
        self.model.pending = None

    def _begin_turn(self, state: RunState) -> AgentTurn:
        self._forget_history()
        discard(self._folder.with_name(f"{self._folder.name}.private"))  # of a turn that was killed with jumar itself
        shop = AgentWorkplace(
            outside=self._outside,
            place=self._place,
            doors=self._doors,
            model=self.model.name.partition(":")[2],
            python=state.run.settings.suite.python,
            origin=Path(state.run.settings.origin),
            reserved=state.run.settings.reserved,
        )
        cap, turn = state.run.budget.seconds, AgentTurn(shop, state.tree)
        usual = TURN_SECONDS if cap is None else max(1.0, cap - state.spend.seconds)
        seconds = self._outside.turn_seconds or usual
        if self._tasks is None:
            raise TypeError("an agent works within `at_work`")
        self._tasks.start_soon(turn.work, self._agent.prompt(state), seconds, self._send.send_nowait)
        return turn

    async def _build_push(self, heard: PendingRequest | TurnEnd | JumarError, turn: AgentTurn) -> Push | None:
        if isinstance(heard, JumarError):
            raise heard
        if isinstance(heard, TurnEnd):
            return self._end_turn(heard, turn)
        if turn.gone.is_set() or heard.gone():  # nobody would hear the answer: it is not asked for
            heard.done.set()
            return None
        await turn.freeze()
        self._visit = heard
        if isinstance(heard.wish, EscalateRequest):
            self._has_changed_files(turn)  # the run ends with it: what was done must have been paid for
        if not isinstance(heard.wish, ForwardedRequest):
            return Push(action=build_action(heard.wish), last=False)
        turn.calls += 1
        self.model.pending, self.model.given = heard.wish, None
        return Push(action=Action("ask_model", args={"form": heard.wish.form.name}), last=False)

    def _end_turn(self, ended: TurnEnd, turn: AgentTurn) -> Push:
        self._turn = None
        if not turn.calls and not self._has_changed_files(turn) and ended.exit != 0:
            raise Infra(f"the agent's command did nothing ({ended.said}); see {turn.output}")
        # Nothing in it may differ from turn to turn by itself: that is how a run is seen to stall.
        args: dict[str, object] = {"exit": ended.exit} | ({"why": ended.why} if ended.why else {})
        return Push(action=Action("turn_end", args=args))

    def _has_changed_files(self, turn: AgentTurn) -> bool:
        """Check whether a turn without a call changed files: its model calls were paid for elsewhere.

        Raises:
            Infra: if nobody allowed that.
        """
        if turn.calls or self._is_untouched(turn):
            return False
        if self._outside.metered:
            raise Infra(
                "the agent changed files without a call through the proxy, so nobody knows what it spent: let it "
                "use OPENAI_BASE_URL or ANTHROPIC_BASE_URL as it is given them, or pass --allow-unmetered"
            )
        return True

    def _is_untouched(self, turn: AgentTurn) -> bool:
        try:
            return self._place.store.capture(self._folder) == turn.tree
        except BadInput:  # no tree can hold what it left there, a pipe say: that is a change, and it is ruled on later
            return False

    def _forget_history(self) -> None:
        """Remove the agent's `.git`, whatever the agent made of it: a link there leads elsewhere."""
        history = self._folder / ".git"
        if self._folder.is_symlink():  # the agent's own doing, and what lies there is none of ours
            return
        with explain_disk_faults(f"cannot clear {history}"):
            if history.is_symlink() or history.is_file():
                history.unlink()
            else:
                discard(history)


def build_host(run: ev.RunStart, place: RunPlace, agent: ExternalAgent) -> ExternalHost:
    """Return the host of *run*, whose agent may ask the model of the tier `mid`.

    Raises:
        BadInput: if that cannot be asked: no key, no price, a wire that agents do not speak.
    """
    route, environ = run.settings.routes["mid"], place.environ
    price = check_route(route)
    key = find_key(find_provider(route.model), environ, route.base_url)
    model = ForwardedModel(route, key, price, collect_keys(run.settings, environ))
    return ExternalHost(run.settings.outside, place, agent, model)
