"""Event loop of the product's process: what a test awaits runs there, one turn for each step of the tests' loop."""

from __future__ import annotations

import contextlib
import importlib
import types
import weakref
from collections.abc import Awaitable, Iterator
from typing import Any

TURNS = 100
"""Turns that a cancelled awaitable gets to end."""

PAUSE_S = 0.0005
"""The loop waits so long in a turn if it has nothing to do but to wait."""


class ProductLoop:
    """The loop in which the product's awaitables run: as long as one of the tests' loops, and no longer."""

    def __init__(self) -> None:
        self._told = 0
        self._inside = False
        self._loop: Any = None
        self._driven: weakref.WeakKeyDictionary[Any, AwaitedSteps] = weakref.WeakKeyDictionary()

    def follow(self, told: int) -> None:
        """Note which loop of the tests runs, counted from 1; 0: none does. A new one has nothing of the last."""
        self._inside = bool(told)
        if told and told != self._told:
            self._told = told
            if self._loop is not None:
                self._close()

    def enter(self) -> contextlib.AbstractContextManager[None]:
        """Let the product find a running loop in the body, if one of the tests runs."""
        return _show_running(self.get()) if self._inside else contextlib.nullcontext()

    def get(self) -> Any:
        """Return the loop; it is made when it is first asked for."""
        if self._loop is None:
            self._loop = importlib.import_module("asyncio").new_event_loop()
        return self._loop

    def drive(self, awaitable: Any) -> AwaitedSteps:
        """Return the steps of *awaitable*; a coroutine has the same ones each time."""
        if isinstance(awaitable, AwaitedSteps):
            return awaitable
        if type(awaitable) is not types.CoroutineType:
            return AwaitedSteps(self, awaitable)
        return self._driven.setdefault(awaitable, AwaitedSteps(self, awaitable))

    def turn(self) -> None:
        """Run what is ready now. Nothing, if the loop runs already: a test was asked by what it runs."""
        loop = self.get()
        if loop.is_running():
            return
        with _show_running(None):
            if getattr(loop, "_ready", True):
                loop.call_soon(loop.stop)
            else:
                loop.call_later(PAUSE_S, loop.stop)
            loop.run_forever()

    def _close(self) -> None:
        """End the loop, as `asyncio.run` does: what is left in it is cancelled."""
        left = importlib.import_module("asyncio").all_tasks(self._loop)
        for task in left:
            task.cancel()
        for _ in range(TURNS):
            if all(task.done() for task in left):
                break
            self.turn()
        loop, self._loop = self._loop, None
        if not loop.is_running():
            loop.close()


class AwaitedSteps:
    """Coroutine for the tests' process: each step is a turn of the loop in which the awaitable runs as a task."""

    def __init__(self, loop: ProductLoop, awaitable: Any) -> None:
        self._loop, self._awaitable = loop, awaitable
        self._task: Any = None

    def __await__(self) -> Any:
        return self

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> None:
        self.send(None)

    def __repr__(self) -> str:
        return repr(self._awaitable)

    def send(self, _: Any) -> None:
        """Run a turn; end with the result, or the exception, if the awaitable has one."""
        task = self._begin()
        if not task.done():
            self._loop.turn()
        if task.done():
            raise StopIteration(task.result())

    def throw(self, error: Any, *more: Any) -> None:
        """Cancel the awaitable, and raise what it makes of that, or *error*."""
        error = next((given for given in (error, *more) if isinstance(given, BaseException)), error)
        self._cancel(error.args)
        task = self._begin()
        if task.done() and not task.cancelled():
            raise StopIteration(task.result())
        raise error

    def close(self) -> None:
        """Cancel the awaitable, if it has begun."""
        if self._task is not None:
            self._cancel(())
        elif hasattr(self._awaitable, "close"):
            self._awaitable.close()

    def _begin(self) -> Any:
        if self._task is None:
            asyncio = importlib.import_module("asyncio")
            waiting: Any = self._awaitable if asyncio.isfuture(self._awaitable) else None
            known = type(self._awaitable) is types.CoroutineType
            self._task = waiting or self._loop.get().create_task(
                self._awaitable if known else _wait_for(self._awaitable)
            )
        return self._task

    def _cancel(self, arguments: tuple[Any, ...]) -> None:
        task = self._begin()
        task.cancel(*arguments[:1])
        for _ in range(TURNS):
            if task.done():
                break
            self._loop.turn()


AwaitedSteps.__name__ = AwaitedSteps.__qualname__ = "coroutine"
AwaitedSteps.__module__ = "builtins"


async def _wait_for(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


@contextlib.contextmanager
def _show_running(loop: Any) -> Iterator[None]:
    """Let *loop* be the one that is found running in the body; None: there is none."""
    events = importlib.import_module("asyncio.events")
    before = events._get_running_loop()  # noqa: SLF001  documented for those who write loops
    events._set_running_loop(loop)  # noqa: SLF001  as above
    try:
        yield
    finally:
        events._set_running_loop(before)  # noqa: SLF001  as above
