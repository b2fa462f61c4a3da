"""Asks a model outside a run: each call is reserved at its worst case, and transient faults are retried."""

from __future__ import annotations

import anyio

from jumar.core.run.retry import can_retry, compute_pause
from jumar.core.run.strategy import Message, Request
from jumar.ports import Answer, Ask, Model

CALL_SECONDS = 300.0


class BudgetedCalls:
    """Calls of *model* that cost at most *usd* together."""

    def __init__(self, model: Model, usd: float) -> None:
        self._model, self._usd = model, usd
        self._reserved, self._under_way = 0.0, 0
        self._settled = anyio.Event()
        self.spent = 0.0
        self.calls = self.prompt_tokens = self.cached_tokens = 0
        self.fault = ""
        """Reason for which the model is not asked any more; empty: it is."""
        self.exhausted = False
        """True if that is the budget."""

    async def ask(self, request: Request, messages: tuple[Message, ...], position: int) -> Answer | None:
        """Return the answer to *messages*; None: there is none, and `fault` holds the reason.

        *position* is the number of the call, counted from 0: a recording knows it by that.
        """
        ask = _build_ask(request, messages, position)
        tries = 0
        while await self._reserve(worst := self._model.worst(ask).usd):
            answer = await self._pay(ask, worst)
            tries += 1
            if not answer.error:
                return answer
            if not can_retry(answer.error, tries, answer.retry_after):
                self.fault = f"the model could not be asked: {answer.error} {answer.detail}".strip()
                break
            await anyio.sleep(compute_pause(tries, answer.retry_after, request.stage))
        return None

    async def _reserve(self, worst: float) -> bool:
        """Set *worst* aside if possible. Open calls are awaited: they may cost less than they reserved."""
        while not self.fault and self.spent + self._reserved + worst > self._usd:
            if not self._under_way:
                self.fault, self.exhausted = f"its budget of ${self._usd:g} does not suffice", True
                break
            await self._settled.wait()
        if self.fault:
            return False
        self._reserved += worst
        self._under_way += 1
        return True

    async def _pay(self, ask: Ask, worst: float) -> Answer:
        try:
            answer = await self._model.complete(ask)
            self.spent += worst if answer.assumed else answer.usd
        finally:
            self._reserved = max(0.0, self._reserved - worst) if self._under_way > 1 else 0.0
            self._under_way -= 1
            self._settled.set()
            self._settled = anyio.Event()
        self.calls += not answer.error  # as a recording has them, which is ranked again
        self.prompt_tokens += answer.input_tokens
        self.cached_tokens += answer.cached_tokens
        return answer


def _build_ask(request: Request, messages: tuple[Message, ...], position: int) -> Ask:
    return Ask(
        request=request,
        messages=messages,
        tree="",
        files={},
        red=(),
        green=(),
        localisation=None,
        position=position,
        refused=frozenset(),
        seed=position,
        seconds=CALL_SECONDS,
    )
