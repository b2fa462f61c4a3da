"""Performs the effects that the core asks for, and returns the facts. All I/O of a run goes through here."""

from __future__ import annotations

from collections.abc import Sequence

from jumar.core.gate.turn_outcome import find_deciding_ids
from jumar.core.prompts.feedback import build_feedback
from jumar.core.run import effects
from jumar.core.run.raise_caps import explain_refusal
from jumar.core.run.search_reserve import compute_search_seconds
from jumar.core.run.strategy import Request
from jumar.core.state import events as ev
from jumar.core.state.budget import Cost, reserve
from jumar.core.state.run_state import RunState
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Gate, TestPolicy, Trigger
from jumar.core.state.verdict import Outcome
from jumar.errors import Infra
from jumar.ports import Ask, Push, Verification
from jumar.runtime.actions import act, build_cut_off_event, execute, redact_event
from jumar.runtime.dependencies import RunDependencies
from jumar.runtime.frozen_configuration import Plain, add_plain_results, check_command, join_results, run_plain
from jumar.runtime.model_calls import build_call_event, forgo_call, settle_unanswered
from jumar.runtime.outside_changes import wait_for_push
from jumar.runtime.verification import (
    build_repair_events,
    build_test_runs,
    build_tests_event,
    rebuild_workspace,
    verify_tree,
)

Slow = effects.Verify | effects.Localise | effects.Call | effects.Execute | effects.Await
"""Effects that take time."""

LOCALISING = 0.25
"""The share of a run's remaining time that finding the suspicious lines may take."""

Done = Sequence[ev.Event] | effects.Halt


class EffectRunner:
    """Performs effects on the parts of one run."""

    def __init__(self, parts: RunDependencies) -> None:
        self._parts = parts
        self._memory: dict[tuple[str, tuple[str, ...]], Verification] = {}
        """The newest verdicts by tree and ids: a tree is not run again for the same question."""
        self._plain: Plain = {}
        """The plain runs that were made, likewise."""
        self._sent = False
        """True once the call in flight was sent: before that it costs nothing."""
        self._held: Push | None = None
        """Action of a host that waits for a verdict."""
        self.clock = parts.clock

    async def perform(self, effect: Slow, state: RunState) -> Sequence[ev.Event]:
        """Perform an effect that takes time and can be cancelled."""
        return [redact_event(event, self._parts.secrets) for event in await self._dispatch(effect, state)]

    async def _dispatch(self, effect: Slow, state: RunState) -> Sequence[ev.Event]:
        match effect:
            case effects.Execute(action, last):
                return await execute(self._parts, action, state, last=last)
            case effects.Verify(trigger):
                return await self._verify(trigger, state)
            case effects.Localise():
                return await self._localise(state)
            case effects.Call():
                return await self._call(effect, state)
            case effects.Await():
                events, self._held = await wait_for_push(self._parts, state, self._held)
                return events

    def do(self, effect: effects.Effect, state: RunState) -> Done:  # noqa: C901, PLR0911  one line per effect
        """Perform an effect that takes little time and must not be interrupted."""
        match effect:
            case effects.Reserve(request):
                return self._reserve(request, state)
            case effects.Cancel():
                return (settle_unanswered(state, sent=self._sent),)
            case effects.Act(action, last):
                return [redact_event(e, self._parts.secrets) for e in act(self._parts, action, state, last=last)]
            case effects.Forgo(stage, why):
                return (forgo_call(stage, why),)
            case effects.Keep(attempt):
                return (*build_repair_events(state), ev.BestFound(tree=attempt.tree, score=attempt.score))
            case effects.GoBack(to, why):
                return self._go_back(to, why)
            case effects.Refuse(why):
                return (ev.Refusal(why=why, tree=state.tree),)
            case effects.Rebuild():
                return rebuild_workspace(self._parts.workspace, effect, state)
            case effects.Switch(to):
                return (ev.Mode(from_=state.gate_state.mode, to=to),)
            case effects.Finish(halt):
                return self._finish(halt, state)
            case effects.Close():
                return (_build_run_end(state),)
            case effects.Verify() | effects.Localise() | effects.Call() | effects.Execute() | effects.Await():
                raise TypeError(f"{effect} takes time: use perform")

    def seconds_left(self, effect: effects.Effect, state: RunState) -> float | None:
        """Return the seconds that *effect* may take under the cap on time; None: there is no cap.

        The last verification is not cut short, nor is that of what a search found: its time was set aside before. A
        ledger's time is for calls.
        """
        if isinstance(effect, effects.Verify) and (
            effect.trigger is Trigger.FINAL or (self._parts.agent.localises and effect.trigger is Trigger.WRITE)
        ):
            return None
        cap, since = state.run.budget.seconds, state.last_ts
        held = state.run.settings.suite.timeout_seconds if state.run.test_policy is TestPolicy.ON_FINAL else 0.0
        own = None if cap is None else max(0.0, cap - held - state.spend.seconds - max(0.0, self.clock() - since))
        shared = self._parts.ledger.seconds_left() if isinstance(effect, effects.Call) else None
        return own if shared is None else shared if own is None else min(own, shared)

    def cancel(self, effect: Slow, state: RunState) -> Sequence[ev.Event]:
        """Return the events of a cancelled effect: a call in flight costs its reservation."""
        if isinstance(effect, effects.Call) and state.request is not None:
            return (settle_unanswered(state, sent=self._sent),)
        if isinstance(effect, effects.Await):
            return ()
        if isinstance(effect, effects.Execute):
            return (build_cut_off_event(effect.action, "the command was cut off", last=effect.last),)
        return ()

    def settle_recorded(self, entries: Sequence[ev.Entry], state: RunState) -> None:
        """Settle in the ledger the calls that the journal now records; *state* includes *entries*."""
        for entry in entries:
            if isinstance(entry.event, ev.ModelCall):
                call = entry.event
                self._parts.ledger.settle(
                    state.request_seq, Cost(usd=call.usd, tokens=call.input_tokens + call.output_tokens)
                )

    async def _verify(self, trigger: Trigger, state: RunState) -> Sequence[ev.Event]:
        only = state.asked_tests if trigger is Trigger.MODEL else None
        first = find_deciding_ids(state) if trigger is Trigger.TURN else ()
        done = await verify_tree(self._parts, self._memory, state, first)
        events: list[ev.Event] = list(build_test_runs(done, state))
        shown = build_feedback(done.verdict, only or ())
        if plain := await run_plain(self._parts, self._plain, state, done):
            events.append(plain[0])
            shown = add_plain_results(shown, plain)
        guards = state.gate_state.mode in (Gate.REFACTOR, Gate.CODEMOD) and trigger in (Trigger.TURN, Trigger.BASELINE)
        if guards and (checked := await check_command(self._parts, state)):
            status, outcome = ("pass", Outcome.PASSED) if checked.ok else ("fail", Outcome.FAILED)
            events.append(ev.TestRun(test_id=ev.CHECK, status=status, outcome=outcome, duration_ms=checked.duration_ms))
            shown = join_results(shown, state.run.settings.verify, checked)
        return (
            *events,
            build_tests_event(trigger, state, done),
            ev.Observation(name="driver.run_tests", content=shown),
        )

    async def _localise(self, state: RunState) -> Sequence[ev.Event]:
        red, green = _list_red_and_green(state)
        left = self.seconds_left(effects.Localise(), state)
        seconds = None if left is None else left * LOCALISING
        return (await self._parts.verifier.localise(state.tree, red, green, seconds),)

    def _reserve(self, request: Request, state: RunState) -> Done:
        model, ask = self._parts.route(request.tier), self._ask(request, state)
        worst = model.worst(ask)
        cap = reserve(state.run.budget, state.spend, worst)
        if not cap and (shared := self._parts.ledger.reserve(state.seq + 1, worst)):
            cap = f"{shared} of the ledger"
        self._sent = False
        if cap:
            if request.optional:
                return (forgo_call(request.stage, f"the next call could pass the cap on {cap}"),)
            return effects.Halt(StopReason.BUDGET, explain_refusal(cap, worst), patient=True)
        return (
            ev.ModelRequest(
                tier=request.tier,
                model=model.name,
                stage=request.stage,
                reserved_usd=worst.usd,
                reserved_tokens=worst.tokens,
                messages=len(ask.messages),
            ),
        )

    async def _call(self, call: effects.Call, state: RunState) -> Sequence[ev.Event]:
        request, reserved = call.request, state.request
        if reserved is None:
            raise Infra("there is no open request to answer")
        if call.pause:
            await self._parts.sleep(call.pause)
        self._sent = True
        started = self.clock()
        answer = await self._parts.route(request.tier).complete(self._ask(request, state))
        return (build_call_event(answer, request, reserved, round((self.clock() - started) * 1000)),)

    def _ask(self, request: Request, state: RunState) -> Ask:
        settings, agent, guard = state.run.settings, self._parts.agent, self._parts.guard
        # An agent that reads for itself is shown no files; its conversation only grows.
        files = (
            {} if agent.loops else self._parts.workspace.files(lambda p: guard.editable(p) and not guard.protected(p))
        )
        texts = {path: data.decode() for path, data in files.items() if _is_text(data)}
        red, green = _list_red_and_green(state)
        left = self.seconds_left(effects.Call(request), state)
        return Ask(
            request=request,
            messages=agent.messages(state, texts),
            tools=agent.tools,
            measured=state.measured if agent.loops else (0, 0),
            tree=state.tree,
            files=files,
            red=red,
            green=green,
            localisation=state.localisation,
            position=state.replies,
            refused=state.refused,
            seed=settings.seed,
            seconds=left if left is None or not agent.localises else compute_search_seconds(left, state),
            tried=state.tried,
            output=str(state.best_results.get("output", "")) if agent.localises else "",
        )

    def _go_back(self, to: str, why: str) -> Done:
        workspace = self._parts.workspace
        paths = workspace.changed(to)
        workspace.take_back(to)
        return (ev.Revert(to=to, paths=tuple(sorted(paths)), why=why),)

    def _finish(self, halt: effects.Halt, state: RunState) -> Done:
        # Whatever wrote there meanwhile: what lies in the workspace at the end is the tree that was judged.
        self._parts.workspace.reset(state.tree)
        scored = state.run.test_policy is not TestPolicy.NEVER
        shown = dict(state.best_results or state.latest_results) if scored else None
        note = self._parts.agent.note if state.tree != state.run.tree else ""
        message = " ".join(f"{part.rstrip('.')}." for part in (halt.why, note) if part)
        return (ev.Final(message=message, stop=halt.stop, test_result=shown or None),)


def _build_run_end(state: RunState) -> ev.RunEnd:
    final = state.final
    if final is None:
        raise Infra("the end cannot be written before the last word")
    return ev.RunEnd(
        stop=final.stop,
        best=state.best.score if state.best and state.expected else None,
        usd=state.spend.usd,
        tokens=state.spend.tokens,
        test_runs=state.spend.test_runs,
        executions=state.executions,
        why=final.message,
    )


def _list_red_and_green(state: RunState) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the expected ids that are red and green on the best tree, in order."""
    green = state.best.green_ids if state.best else frozenset()
    expected = state.expected
    return tuple(i for i in expected if i not in green), tuple(i for i in expected if i in green)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
