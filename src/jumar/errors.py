"""Exceptions that are not verdicts: the person asked for something impossible, or the machine is broken.

JumarError
 +-- BadInput   one sentence that names the thing and the fix; nothing was run (exit 2)
 +-- Infra      provider, sandbox, disk or runner: says nothing about the agent (exit 5)

Red tests, refused edits, spent budgets and void verdicts are values in the journal, never exceptions.
"""

from __future__ import annotations


class JumarError(Exception):
    """Base class of jumar's own exceptions; any other exception is a bug."""


class BadInput(JumarError):  # noqa: N818  it is an answer to a person, named for what it says
    """The request was wrong. The message is one sentence that names the thing and the fix."""


class Infra(JumarError):  # noqa: N818  named like the stop reason it leads to
    """The machine, the disk or the runner failed; nothing is known about the agent."""


class Stopped(BaseException):
    """Raised when a person wants the program to stop and the work cannot be asked in time."""


def is_stopped(group: BaseExceptionGroup[BaseException]) -> bool:
    """Return whether *group* holds only `Stopped`, at any depth."""
    return group.split(Stopped)[1] is None


def find_cause(error: BaseException) -> BaseException:
    """Return *error* itself, or the first exception in it that is no group: tasks raise in groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
