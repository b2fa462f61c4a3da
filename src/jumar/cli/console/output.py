"""Output of the program: results on standard output, progress on standard error, errors in one sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Any

import click
import msgspec

from jumar.core.quoting import INVISIBLE, escape_line_ends, make_one_line
from jumar.core.state.stop import EXIT_CODES, USAGE_EXIT, StopReason
from jumar.errors import BadInput, JumarError

OBEYED = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f]|{INVISIBLE}")
"""Characters that a terminal obeys, or does not show."""

LISTED = 10
"""Most tests that are named in a report."""

NO_REASONS: Mapping[str, str] = MappingProxyType({})


class Console(msgspec.Struct):
    """Output mode of this call of the program."""

    json: bool = False
    quiet: bool = False
    aside: Callable[[], AbstractContextManager[None]] = nullcontext
    """Returns a context in which a line is written: it takes a status line out of the way for as long."""

    def say(self, text: str) -> None:
        """Print a line for people; silent if a program reads."""
        if not self.json:
            with self.aside():
                click.echo(strip_controls(text))

    def say_line(self, text: str) -> None:
        """Print *text* as one line: what it quotes, such as the id of a test, may have ends of lines."""
        self.say(escape_line_ends(text))

    def note(self, text: str) -> None:
        """Print a line of progress to standard error; silent when asked to be quiet."""
        if not self.quiet:
            with self.aside():
                click.echo(strip_controls(text), err=True)

    def list_ids(self, word: str, ids: Sequence[str], reasons: Mapping[str, str] = NO_REASONS) -> None:
        """Print a line for each of the first few of *ids*, with its reason if there is one; *word* is their kind."""
        for test_id in ids[:LISTED]:
            why = f": {reasons[test_id]}" if reasons.get(test_id) else ""
            self.say(f"{word:<9}{make_one_line(test_id)}{why}")
        if len(ids) > LISTED:
            self.say(f"{word:<9}and {len(ids) - LISTED} more")

    def print_result(self, value: Any) -> None:
        """Print the one machine-readable object, as the last line of standard output."""
        if self.json:
            with self.aside():
                click.echo(json.dumps(msgspec.to_builtins(value)))

    def report_interrupt(self) -> int:
        """Print that a signal came before there was anything to keep; return the exit code."""
        return fail("interrupted before anything ran", EXIT_CODES[StopReason.INTERRUPTED], as_json=self.json)


def get_exit_code(error: JumarError) -> int:
    """Return the documented exit code of *error*."""
    return USAGE_EXIT if isinstance(error, BadInput) else EXIT_CODES[StopReason.INFRA]


def fail(sentence: str, code: int, *, as_json: bool) -> int:
    """Print *sentence* to standard error (and as an object if a program reads), and return *code*."""
    one_line = " ".join(sentence.split())
    click.echo(f"jumar: {strip_controls(one_line)}", err=True)
    if as_json:
        click.echo(json.dumps({"error": one_line, "exit": code}))
    return code


def strip_controls(text: str) -> str:
    """Return *text* without characters that a terminal obeys or does not show: each is a question mark.

    Controls but newline and tab, lone surrogates, turned directions, invisible ones.
    """
    return OBEYED.sub("?", text).encode("utf-8", "backslashreplace").decode()
