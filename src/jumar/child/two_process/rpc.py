"""One side of a remote procedure call protocol: the side that asks serves requests of the other until it answers.

A message is `["ask", word, news, op, arguments]`, `["answer", word, news, value]`, `["error", word, news, exception]`
or `["said", stream, text]`. An answer repeats the word of what was asked, which nobody can know before. *News* is what
the other side has to know first: what changed of what is shared, what is not used any more, and the state of the world.

Loaded by path on both sides; standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import os
import threading
from typing import Any

NEST = 200
"""Questions within questions."""


class RpcPeer:
    """One side of the connection. *side* says what the other may do here, and handles errors."""

    def __init__(self, wire: Any, values: Any, mirrors: Any, side: Any) -> None:
        self.mirrors, self.wire, self.side = mirrors, wire, side
        self._values = values
        self._home = (os.getpid(), threading.get_ident())
        self._depth = 0
        self._lost = ""
        self.values, values.things, mirrors.peer, side.peer = values, mirrors, self, self

    def ask(self, op: str, *arguments: Any) -> Any:
        """Perform *op* on the other side, and return its answer; an exception that it raised is raised here."""
        if self._lost:
            self.side.lost(self._lost)
        if (os.getpid(), threading.get_ident()) != self._home:
            self.side.unable("only the thread and the process that began with it can talk to the other process")
        if self._depth > NEST:
            self.side.unable("calls from process to process are nested too deeply")
        word = os.urandom(8).hex()
        self._depth += 1
        unable = ""
        try:
            try:
                self._write("ask", word, [op], arguments)
            except ValueError as error:
                unable = str(error)
            else:
                kind, value = self._heard(word)
        except BaseException as error:
            # Whatever cut the conversation short, a time limit mostly, nobody knows any more what was said.
            self._lost = self._lost or str(error) or type(error).__name__
            self.wire.close()
            self.side.broken(error)
            raise
        finally:
            self._depth -= 1
        if unable:
            self.side.unable(f"the tests hand over {unable}")
        if kind == "error":
            raise value
        return value

    def serve(self, message: list[Any]) -> None:
        """Do what *message* asks for, and answer."""
        _, word, news, op, arguments = message
        try:
            values = self._decoded(news, arguments)
            answer = ("answer", self.side.perform(str(op), values, arguments))
        except self.side.fatal:
            raise
        except BaseException as error:  # noqa: BLE001  every exception is an answer
            error.__traceback__ = None
            answer = ("error", error)
        try:
            self._write(answer[0], word, [], (answer[1],))
        except ValueError as error:
            self._write("error", word, [], (self.side.withheld(str(error)),))

    def _write(self, kind: str, word: str, head: list[str], arguments: tuple[Any, ...]) -> None:
        """Send a message, or, where something in it may not leave, nothing at all.

        Raises:
            ValueError: if something may not leave.
        """
        values = self._values
        try:
            changes = values.changes()
            news = [changes, [*values.abandoned(), *self.mirrors.unused()], self.side.state()]
            forms = [values.encode(argument) for argument in arguments]
            self.wire.send([kind, word, news, *head, forms if kind == "ask" else forms[0]])
        except self.side.fatal:
            raise
        except Exception as error:  # noqa: BLE001  the product's classes may raise anything where they are looked at
            values.undo()
            raise ValueError(str(error) or "what cannot cross") from None
        values.settle()

    def _heard(self, word: str) -> tuple[str, Any]:
        while True:
            message = self.wire.receive()
            if message[0] == "ask" and len(message) == 5:  # noqa: PLR2004  the parts of a question
                self.serve(message)
            elif message[0] == "said" and len(message) == 3:  # noqa: PLR2004  a stream and a text
                self.side.said(message[1], message[2])
            elif message[0] in ("answer", "error") and len(message) == 4 and message[1] == word:  # noqa: PLR2004  as above
                value = self._decoded(message[2], [message[3]])[0]
                return message[0], self.side.admitted(value) if message[0] == "error" else value
            else:
                raise self.side.gone("the other process does not keep to the protocol")

    def _decoded(self, news: Any, forms: Any) -> list[Any]:
        try:
            changes, drops, state = news
            self._values.apply(changes)
            for number in drops:
                self.mirrors.forget(number)
                self._values.forget(number)
            self.side.follow(state)
            return [self._values.decode(form) for form in forms]
        except self.side.fatal:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, OSError) as error:
            raise self.side.gone(f"the other process sends what cannot be understood ({error})") from error
