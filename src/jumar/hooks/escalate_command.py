"""`jumar escalate`: ends the run of an agent that works in a shell, because a test cannot be right."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import anyio
import click

from jumar.cli.console.output import Console
from jumar.cli.parameters.command_options import add_output_options
from jumar.cli.parameters.environment import read_environment
from jumar.core.state.reply import ToolCall
from jumar.hooks.claim_command import HOST, ClaimOutcome, find_repository_root, find_workspace, resolve_test_id, send
from jumar.hooks.repository_session import RepositorySession
from jumar.hooks.standing import explain_end
from jumar.runs.setup.result import read_state


@click.command(epilog="Example: jumar escalate test_calc.py::test_round 'it wants 2, test_calc.py::test_half wants 3'")
@click.argument("test_id", metavar="TEST")
@click.argument("words", metavar="REASON", nargs=-1, required=True)
@add_output_options
def escalate(test_id: str, words: tuple[str, ...], *, as_json: bool, quiet: bool) -> int:
    """End the run because TEST contradicts the instruction or another test; REASON says which, and how.

    A person decides then; the test stays as it is. Edits that wait are judged first. Exit 1 if TEST is unknown.
    Works where an agent is at work under jumar: in a run with --agent external, or behind `jumar hook install`.
    """
    voice, environ, here = Console(json=as_json, quiet=quiet), read_environment(), Path.cwd()
    reason = " ".join(words)
    if address := environ.get(HOST, ""):
        test_id = resolve_test_id(find_workspace(here, environ), here, test_id)
        done = send(address, "escalate", {"test_id": test_id, "reason": reason})
    else:
        done = anyio.run(escalate_in_session, here, test_id, reason, environ)
    voice.say(done.text)
    voice.print_result(done)
    return 0 if done.admitted else 1


async def escalate_in_session(here: Path, test_id: str, reason: str, environ: Mapping[str, str]) -> ClaimOutcome:
    """Escalate in the session that the hooks keep for the repository around *here*; its run ends.

    Raises:
        BadInput: if there is none, or the test's file lies outside.
        Infra: if the machine failed.
    """
    root = find_repository_root(here)
    test_id = resolve_test_id(root, here, test_id)
    desk = RepositorySession(root, environ)
    with desk.hold_lock():
        before = desk.read_state()
        if ended := explain_end(read_state(desk.find_run())):
            return ClaimOutcome(admitted=False, text=f"refused: {ended}")
        async with desk.rejoin() as session:
            call = ToolCall(name="escalate", arguments={"test_id": test_id, "reason": reason})
            told = await session.act(call)
            desk.publish(session, before.session if before else "", turn=bool(before and before.turn))
    if not told.admitted:
        return ClaimOutcome(admitted=False, text=" ".join(f"refused: {told.reason}".split()))
    back = f"; {', '.join(told.reverted)} went back: {told.why}" if told.reverted else ""
    text = f"escalated: {test_id}; the run ends with this, and a person decides{back}"
    return ClaimOutcome(admitted=True, text=" ".join(text.split()))
