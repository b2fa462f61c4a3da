"""One side of a remote procedure call protocol: the side that asks serves requests of the other until it answers.

A message is `["ask", id, updates, op, arguments]`, `["answer", id, updates, value]`, `["error", id, updates, value]`,
or `["said", stream, text]`. An answer repeats the random id of the request. *Updates* are applied first: changes of
shared containers, numbers that are not used any more, changes of the environment, and of shared files.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` takes a sixth of a message, to make enumerations
import contextlib
import os
import signal
import threading
import weakref
from collections.abc import Iterator
from typing import Any

from jumar.child.test_timeout import AGAIN_SECONDS
from jumar.child.two_process.wire.turns import Turns

NEST = 200
"""Most requests that may be open within one another."""

TRIES = 3
"""Times that a message is begun: what was asked while it was encoded is known the next time."""


class Misunderstood(Exception):  # noqa: N818  named for what happened
    """A message that cannot be decoded."""


ALONE = contextlib.nullcontext()

SOON_SECONDS = 0.25
"""A test has so long to end by itself once a thread of it was refused."""

ANSWER_SECONDS = 1.0
"""The product has so long to answer once the time limit of a test rang; a quarter is too short on a busy machine."""


class RpcPeer:
    """One side of the connection. *side* says what the other may do here, and handles errors."""

    def __init__(self, wire: Any, values: Any, tables: Any, side: Any) -> None:
        self.tables, self.wire, self.side = tables, wire, side
        self._home = (os.getpid(), threading.get_ident())
        self._turns = Turns() if side.may_thread else None
        self._set_mask: Any = _signal.pthread_sigmask if side.limits else lambda *_: ()
        self._strangers: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
        """Threads that asked and may not."""
        self._depth = 0
        self.lost = ""
        """Reason that nobody is there to ask any more; empty: somebody is."""
        self._dropped: list[int] = []
        """Numbers that are not used any more, and that the other side does not know of yet."""
        self.written = 0
        """Number of messages that were sent."""
        self._waiting = False
        """True while no message is read or written in part: the connection survives an interruption here."""
        self._interrupted: list[tuple[str, str]] = []
        """Requests that a time limit interrupted, the innermost first, by id: `receive`, if the answer has yet to be
        read, `send`, if it has yet to be given."""
        self.values, values.tables, tables.peer, side.peer = values, tables, self, self

    def begin_test(self) -> None:
        """Let time limits ring again: one that another thread heard at a bad moment may have left them blocked."""
        if self._set_mask(signal.SIG_BLOCK, ()) and self.side.limits:
            signal.sigtimedwait(self.side.limits, 0)  # nobody is there for one that comes this late
            self._set_mask(signal.SIG_UNBLOCK, self.side.limits)

    def end_test(self) -> None:
        """Give up another process that goes on with what a time limit interrupted: the next test would wait for it."""
        awaited = [how for how, _ in self._interrupted[:1]] == ["receive"] and not self.lost
        if awaited and not self.wire.wait(ANSWER_SECONDS):
            self.lost = "the other process does not come to an end"
            self.wire.close()

    def ask(self, op: str, *arguments: Any) -> Any:
        """Perform *op* on the other side, and return its answer; an exception that it raised is raised here."""
        if self.lost:
            self.side.raise_lost(self.lost)
        pid, thread = self._home
        if os.getpid() != pid or (self._turns is None and threading.get_ident() != thread):
            self._hurry(pid)
            self.side.tie(
                "only the thread and the process that began with it can talk to the other process", *arguments[:1]
            )
        with self._turns.ask() if self._turns else self.side.ties.ask(*arguments[:1]):
            return self._ask(op, arguments)

    def _hurry(self, home: int) -> None:
        """Let the time limit come soon: the test may wait for this thread, which cannot do what it is for.

        Once for each thread: it may go on in later tests, which do not wait for it.
        """
        thread = threading.current_thread()
        if self.side.limits and os.getpid() == home and thread not in self._strangers:
            self._strangers.add(thread)
            signal.setitimer(signal.ITIMER_REAL, SOON_SECONDS, AGAIN_SECONDS)

    def _ask(self, op: str, arguments: tuple[Any, ...]) -> Any:
        if self._depth > NEST:
            self.side.give_up("calls from process to process are nested too deeply")
        request, asked, unable = os.urandom(8).hex(), False, ""
        mask = self._set_mask(signal.SIG_BLOCK, ())
        self._depth += 1
        try:
            try:
                self._set_mask(signal.SIG_BLOCK, self.side.limits)  # no time limit in the middle of a message
                self._finish_interrupted(mask)
                self._write("ask", request, [op], arguments)
                asked = True
            except ValueError as error:
                unable = str(error)
            else:
                kind, value = self._serve_until_answer(request, mask)
        except BaseException as error:
            self._break_off(error, request if asked else "")
            raise
        finally:
            self._depth -= 1
            if not self._depth:
                self.values.changes.end_call()
            self._waiting = False
            self._set_mask(signal.SIG_SETMASK, mask)
        if unable:
            self.side.give_up(f"the tests hand over {unable}")
        self.side.check_answer(kind, value)
        if kind == "answer":
            return value
        if type(value) is str:
            self.side.give_up(f"the code cannot say: {value}")
        raise self.side.check_raised(op, arguments, value)

    def _break_off(self, error: BaseException, request: str) -> None:
        """Close the connection, or, where a time limit interrupted the wait for an answer, leave that for later."""
        if self._waiting and request and isinstance(error, self.side.interrupts):
            self._interrupted.append(("receive", request))
        else:  # a message may have been read or written in part
            self.lost = self.lost or str(error) or type(error).__name__
            self.wire.close()
        self.side.note_broken(error)

    def serve_all(self) -> None:
        """Serve requests until the connection is lost, which is raised."""
        while True:
            self.serve(self._receive_next(()))

    def serve(self, message: list[Any], mask: Any = ()) -> None:
        """Perform the request *message*, and answer; *mask* are the signals that stay blocked meanwhile."""
        if message[0] != "ask" or len(message) != 5:  # noqa: PLR2004  the parts of a request
            raise self.side.protocol_error("the other process does not keep to the protocol")
        _, request, updates, op, arguments = message
        try:
            values = self._decode(updates, arguments)
            with self._unblock_signals(mask), self._turns.perform() if self._turns else ALONE:
                answer = ("answer", self.side.perform(str(op), values, arguments))
        except self.side.interrupts:
            self._interrupted.append(("send", request))
            self._waiting = True
            raise
        except self.side.unanswered:
            raise
        except Misunderstood as error:
            answer = ("error", self.side.refuse_message(str(error)))
        except BaseException as error:  # noqa: BLE001  every exception is an answer
            error.__traceback__ = None
            answer = ("error", error)
        try:
            self._write(answer[0], request, [], (answer[1],))
        except ValueError as error:
            self._write("error", request, [], (self.side.refuse_value(str(error)),))

    def _write(self, kind: str, request: str, head: list[str], arguments: tuple[Any, ...]) -> None:
        """Send a message, or, where something in it may not leave, nothing at all.

        Raises:
            ValueError: if something may not leave.
        """
        try:
            updates, forms = self._encode(arguments)
            self.wire.send([kind, request, updates, *head, forms if kind == "ask" else forms[0]])
        except self.side.fatal:
            raise
        except Exception as error:  # noqa: BLE001  the product's classes may raise anything where they are looked at
            self.values.undo()
            raise ValueError(str(error) or "what cannot cross") from None
        self.values.settle()
        if len(updates) > 3:  # noqa: PLR2004  files have changed
            self.side.files.settle()
        self._dropped = []
        self.written += 1

    def _encode(self, arguments: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
        """Return the updates and forms of a message; it is begun anew if encoding asked the other side for something.

        Raises:
            ValueError: if something may not leave, or asks each time.
        """
        for _ in range(TRIES):
            written = self.written
            changes = self.values.list_changes()
            self._dropped += [*self.values.remove_abandoned(), *self.tables.remove_unused()]
            updates = [changes, self._dropped, self.side.report_state()]
            forms = [self.values.encode(argument) for argument in arguments]
            updates += [files] if (files := self.side.files.list_changes()) else []
            if written == self.written:
                return updates, forms
            self.values.undo()
        raise ValueError("what asks for something whenever it is handed over")

    @contextlib.contextmanager
    def _unblock_signals(self, mask: Any) -> Iterator[None]:
        """Let signals of time limits arrive in the body, but for those in *mask*."""
        self._set_mask(signal.SIG_SETMASK, mask)
        try:
            yield
        finally:
            self._set_mask(signal.SIG_BLOCK, self.side.limits)

    def _receive_next(self, mask: Any) -> list[Any]:
        """Wait for the next message; a time limit may ring until it is there."""
        self._waiting = True
        with self._unblock_signals(mask):
            message: list[Any] = self.wire.receive()
        self.wire.drop_message()
        self._waiting = False
        return message

    def _finish_interrupted(self, mask: Any) -> None:
        """Finish the requests that a time limit interrupted. What the other side asks until then is refused."""
        late = 0
        while self._interrupted and late < NEST:
            how, request = self._interrupted[0]
            if how == "send":
                self._write("error", request, [], (TypeError("the test is over"),))
                self._interrupted.pop(0)
                continue
            kind, *parts = self._receive_next(mask)
            if kind == "ask" and len(parts) == 4:  # noqa: PLR2004  the parts of a request
                late += 1
                self._decode_answer(parts[1], parts[3])
                self._write("error", parts[0], [], (TypeError("the test is over"),))
            elif kind in ("answer", "error") and len(parts) == 3 and parts[0] == request:  # noqa: PLR2004  as above
                self._decode_answer(parts[1], [parts[2]])
                self._interrupted.pop(0)
            elif kind != "said":
                raise self.side.protocol_error("the other process does not keep to the protocol")
        if self._interrupted:
            raise self.side.protocol_error("the other process does not come to an end")

    def _decode_answer(self, updates: Any, forms: Any) -> list[Any]:
        try:
            return self._decode(updates, forms)
        except Misunderstood as error:
            raise self.side.protocol_error(str(error)) from error

    def _serve_until_answer(self, request: str, mask: Any) -> tuple[str, Any]:
        while True:
            message = self._receive_next(mask)
            if message[0] == "ask" and len(message) == 5:  # noqa: PLR2004  the parts of a request
                with ALONE if self._turns else self.side.ties.serve():
                    self.serve(message, mask)
            elif message[0] == "said" and len(message) == 3:  # noqa: PLR2004  a stream and a text
                self.side.receive_output(message[1], message[2])
            elif message[0] in ("answer", "error") and len(message) == 4 and message[1] == request:  # noqa: PLR2004  as above
                value = self._decode_answer(message[2], [message[3]])[0]
                told = message[0] == "error" and type(value) is not str
                return message[0], self.side.accept_raised(value) if told else value
            else:
                raise self.side.protocol_error("the other process does not keep to the protocol")

    def _decode(self, updates: Any, forms: Any) -> list[Any]:
        try:
            changes, drops, state, *files = updates
            for told in files:
                self.side.files.apply(told)
            self.values.apply(changes)
            for number in drops:
                self.values.changes.note_dropped(number)
                self.tables.forget(number)
                self.values.forget(number)
            self.side.follow(state)
            return [self.values.decode(form) for form in forms]
        except self.side.fatal:
            raise
        except Exception as error:  # a class that is made anew may raise anything
            raise Misunderstood(f"the other process sends what cannot be understood ({error})") from error
