"""Does what the core asks for, and answers with the facts. Everything that touches the world goes through here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256

import msgspec

from jumar.core import events as ev
from jumar.core import step
from jumar.core.budget import reserve
from jumar.core.gate import WRITES, Action, admits
from jumar.core.guard import Guard
from jumar.core.policy import TestPolicy, Trigger
from jumar.core.prompts import feedback
from jumar.core.run import RunState
from jumar.core.stop import StopReason
from jumar.core.verdict import Verdict
from jumar.errors import Infra
from jumar.ports import Ask, Model, Verification, Verifier
from jumar.workspace import Workspace

Done = Sequence[ev.Event] | step.Halt


class Parts(msgspec.Struct, frozen=True):
    """What a run is put together from."""

    workspace: Workspace
    verifier: Verifier
    model: Model
    agent: step.Strategy
    guard: Guard
    clock: Callable[[], float]


class Shell:
    """Performs effects on the parts of one run."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.clock = parts.clock

    async def perform(self, effect: step.Verify | step.Localise | step.Call, state: RunState) -> Sequence[ev.Event]:
        """Do what takes time and can be cancelled."""
        match effect:
            case step.Verify(trigger):
                return await self._verify(trigger, state)
            case step.Localise():
                return await self._localise(state)
            case step.Call(request):
                return await self._call(request, state)

    def do(self, effect: step.Effect, state: RunState) -> Done:  # noqa: PLR0911  one line per effect reads best
        """Do what takes no time to speak of and must not be cut in half."""
        match effect:
            case step.Reserve(request):
                return self._reserve(request, state)
            case step.Cancel():
                return (self._settled(state, usd=0.0, tokens=0),)
            case step.Act(action, last):
                return self._act(action, state, last=last)
            case step.Keep(attempt):
                return (ev.BestFound(tree=attempt.tree, score=attempt.score),)
            case step.GoBack(to, why):
                return self._go_back(to, why)
            case step.Finish(halt):
                return self._finish(halt, state)
            case step.Close():
                return (_run_end(state),)
            case step.Verify() | step.Localise() | step.Call():
                raise TypeError(f"{effect} takes time: use perform")

    def seconds_left(self, effect: step.Effect, state: RunState) -> float | None:
        """How long *effect* may take before the cap on seconds is reached; None is for ever.

        The last verification is not cut short: its time was set aside before.
        """
        cap = state.run.budget.seconds
        if cap is None or (isinstance(effect, step.Verify) and effect.trigger is Trigger.FINAL):
            return None
        since = state.last_ts
        return max(0.0, cap - state.spend.seconds - max(0.0, self.clock() - since))

    def cancelled(self, effect: step.Effect, state: RunState) -> Sequence[ev.Event]:
        """The facts of an effect that was cut off: a call in flight costs what was reserved."""
        if isinstance(effect, step.Call) and state.request is not None:
            return (self._settled(state, state.request.reserved_usd, state.request.reserved_tokens),)
        return ()

    async def _verify(self, trigger: Trigger, state: RunState) -> Sequence[ev.Event]:
        control = state.best.tree if state.best is not None else state.run.tree
        done = await self._parts.verifier.verify(state.tree, state.accepted, control=control)
        command = state.run.settings.suite.runner
        runs = [
            ev.TestRun(
                test_id=test_id,
                status="pass" if test_id in done.verdict.green_ids else "fail",
                outcome=result.outcome,
                command=command,
                duration_ms=result.duration_ms,
            )
            for test_id, result in done.verdict.results.items()
        ]
        shown = ev.Observation(name="driver.run_tests", content=feedback(done.verdict))
        return (*runs, _tests(trigger, state, done), shown)

    async def _localise(self, state: RunState) -> Sequence[ev.Event]:
        red, green = _sides(state)
        return (await self._parts.verifier.localise(state.tree, red, green),)

    def _reserve(self, request: step.Request, state: RunState) -> Done:
        worst = self._parts.model.worst(self._ask(request, state))
        if cap := reserve(state.run.budget, state.spend, worst):
            return step.Halt(StopReason.BUDGET, f"the next call could pass the cap on {cap}")
        name = self._parts.model.name
        return (
            ev.ModelRequest(
                tier=request.tier,
                model=name,
                stage=request.stage,
                reserved_usd=worst.usd,
                reserved_tokens=worst.tokens,
            ),
        )

    async def _call(self, request: step.Request, state: RunState) -> Sequence[ev.Event]:
        started = self.clock()
        answer = await self._parts.model.complete(self._ask(request, state))
        return (
            ev.ModelCall(
                reply=answer.reply,
                tier=request.tier,
                model=self._parts.model.name,
                stage=request.stage,
                input_tokens=answer.input_tokens,
                cached_tokens=answer.cached_tokens,
                output_tokens=answer.output_tokens,
                usd=answer.usd,
                ms=round((self.clock() - started) * 1000),
                error=answer.error,
            ),
        )

    def _ask(self, request: step.Request, state: RunState) -> Ask:
        settings = state.run.settings
        guard = self._parts.guard
        files = self._parts.workspace.files(lambda path: guard.editable(path) and not guard.protected(path))
        texts = {path: data.decode() for path, data in files.items() if _is_text(data)}
        red, green = _sides(state)
        return Ask(
            request=request,
            messages=self._parts.agent.messages(state, texts),
            tree=state.tree,
            files=files,
            red=red,
            green=green,
            localisation=state.localisation,
            position=state.replies,
            refused=state.refused,
            seed=settings.seed,
            seconds=self.seconds_left(step.Call(request), state),
        )

    def _act(self, action: Action, state: RunState, *, last: bool) -> Done:
        ruling = admits(action, state.run.gate, self._parts.guard)
        reason = ruling.reason or (action.message if action.name == "unparsable" else "")
        args: dict[str, object] = {"message": action.message} if action.message else {}
        writes: list[ev.Event] = []
        if action.name in WRITES:
            args |= {"files": {p: _hash(text) for p, text in action.files.items()}, "digest": action.digest}
            writes, refused = self._write(action, state) if ruling.admitted else ([], "")
            reason = reason or refused or ("" if writes else "the reply changes nothing")
        taken = ev.ActionTaken(name=action.name, args=args, admitted=not reason, reason=reason, last=last)
        hit = ruling.hit
        return (taken, *writes, *((ev.Guardrail(rule=hit.rule, what=hit.what),) if hit else ()))

    def _write(self, action: Action, state: RunState) -> tuple[list[ev.Event], str]:
        """Write all the files of *action*, or none of them and the reason why."""
        workspace = self._parts.workspace
        events: list[ev.Event] = []
        for path, text in action.files.items():
            try:
                before, after = workspace.write(path, None if text is None else text.encode())
            except ValueError as refused:  # no path of a file: a folder, a link, below a file, in a cache
                workspace.reset(state.tree)
                return [], str(refused)
            if before != after:
                events.append(ev.Write(path=path, before=before, after=after, tree=workspace.tree))
        return events, ""

    def _go_back(self, to: str, why: str) -> Done:
        workspace = self._parts.workspace
        paths = workspace.changed(to)
        workspace.reset(to)
        return (ev.Revert(to=to, paths=tuple(sorted(paths)), why=why),)

    def _finish(self, halt: step.Halt, state: RunState) -> Done:
        # Whatever wrote there meanwhile: what lies in the workspace at the end is the tree that was judged.
        self._parts.workspace.reset(state.tree)
        scored = state.run.test_policy is not TestPolicy.NEVER
        shown = dict(state.shown or state.seen) if scored else None
        note = self._parts.agent.note if state.tree != state.run.tree else ""
        message = " ".join(f"{part.rstrip('.')}." for part in (halt.why, note) if part)
        return (ev.Final(message=message, stop=halt.stop, test_result=shown or None),)

    def _settled(self, state: RunState, usd: float, tokens: int) -> ev.ModelCall:
        """A call that has no answer, at what it costs."""
        request = state.request
        if request is None:
            raise Infra("there is no open request to settle")
        return ev.ModelCall(
            reply=ev.Reply(),
            tier=request.tier,
            model=request.model,
            stage=request.stage,
            input_tokens=tokens,
            usd=usd,
            error="cancelled",
        )


def _tests(trigger: Trigger, state: RunState, done: Verification) -> ev.Tests:
    verdict: Verdict = done.verdict
    return ev.Tests(
        trigger=trigger,
        ok=verdict.green,
        passed=verdict.passed,
        failed=verdict.failed,
        errors=verdict.errors,
        total=len(state.run.expected),
        void=verdict.void,
        executions=done.executions,
        output=f"output/{done.output}",
        duration_ms=done.duration_ms,
        tree=state.tree,
    )


def _run_end(state: RunState) -> ev.RunEnd:
    final = state.final
    if final is None:
        raise Infra("the end cannot be written before the last word")
    return ev.RunEnd(
        stop=final.stop,
        best=state.best.score if state.best else None,
        usd=state.spend.usd,
        tokens=state.spend.tokens,
        test_runs=state.spend.test_runs,
        executions=state.executions,
        why=final.message,
    )


def _sides(state: RunState) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The expected ids that are red and green on the best tree, in order."""
    green = state.best.green_ids if state.best else frozenset()
    expected = state.run.expected
    return tuple(i for i in expected if i not in green), tuple(i for i in expected if i in green)


def _hash(text: str | None) -> str:
    return "" if text is None else sha256(text.encode()).hexdigest()


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
