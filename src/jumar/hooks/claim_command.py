"""`jumar claim`: claims a red test for the next edit of a file, for agents that work in a shell."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from os.path import normpath
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import click
import msgspec

from jumar.child.hook.published_state import HookRefusal, find_session_root, resolve_inside
from jumar.cli.console.output import Console
from jumar.cli.parameters.command_options import add_output_options
from jumar.cli.parameters.environment import read_environment
from jumar.core.gate.admission import adapt_to_shell
from jumar.core.state.claims import explain_not_red
from jumar.core.state.reply import ToolCall
from jumar.core.state.test_policy import Gate
from jumar.errors import BadInput, Infra
from jumar.hooks.repository_session import RepositorySession, explain_exclusion
from jumar.hooks.standing import explain_end
from jumar.runs.session import ActionOutcome, Session
from jumar.runs.setup.result import read_state

HOST = "JUMAR_HOST"
"""Variable with the address that takes claims in a run with an external agent: local, with a token in its path."""

WORKSPACE = "JUMAR_WORKSPACE"
"""Variable with the root of what such an agent works in: files are named relative to the folder that it stands in."""

SECONDS = 900.0
"""For an answer of such a run: it may have to run tests first."""


class ClaimOutcome(msgspec.Struct, frozen=True):
    """Outcome of a claim."""

    admitted: bool
    text: str
    """In one line, for whoever claimed."""


@click.command(epilog="Example: jumar claim tests/test_calc.py::test_sum src/calc.py")
@click.argument("test_id", metavar="TEST")
@click.argument("target", metavar="FILE")
@add_output_options
def claim(test_id: str, target: str, *, as_json: bool, quiet: bool) -> int:
    """Claim that the next edit of FILE shall turn TEST green. It must be red because of the code; exit 1 if it is not.

    Works where an agent is at work under jumar: in a run with --agent external, or behind `jumar hook install`.
    """
    voice, environ, here = Console(json=as_json, quiet=quiet), read_environment(), Path.cwd()
    address = environ.get(HOST, "")
    if address:
        root = find_workspace(here, environ)
        done = request_claim(address, resolve_test_id(root, here, test_id), _make_relative(root, here, target))
    else:
        done = anyio.run(claim_in_session, here, test_id, target, environ)
    voice.say(done.text)
    voice.print_result(done)
    return 0 if done.admitted else 1


def request_claim(address: str, test_id: str, target: str) -> ClaimOutcome:
    """Send the claim to the run that listens at *address* and return its answer.

    Raises:
        BadInput: as `send`.
        Infra: as `send`.
    """
    return send(address, "claim", {"test_id": test_id, "edit_target": target})


def send(address: str, kind: str, given: Mapping[str, str]) -> ClaimOutcome:
    """Send a request of a *kind* (`claim`, `escalate`) to the run that listens at *address* and return its answer.

    Raises:
        BadInput: if *address* is none on this machine.
        Infra: if nothing answers there, or not as a run does.
    """
    parts = urlsplit(address)
    if parts.scheme != "http" or parts.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise BadInput(f"{HOST} is {address!r}, no http address on this machine; unset it, or start the agent anew")
    body = json.dumps(given).encode()
    request = urllib.request.Request(  # noqa: S310  http, on loopback, as was seen to
        f"{address.rstrip('/')}/{kind}", body, {"Content-Type": "application/json"}, method="POST"
    )
    # A proxy of the person's knows nothing of this machine's loopback.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=SECONDS) as answer:
            return msgspec.json.decode(answer.read(), type=ClaimOutcome)
    except urllib.error.HTTPError as fault:
        if why := _read_reason(fault):
            return ClaimOutcome(admitted=False, text=f"refused: {why}")
        raise Infra(f"the run at {parts.hostname}:{parts.port} did not take the {kind}: {fault}") from fault
    except (urllib.error.URLError, OSError, ValueError) as fault:
        raise Infra(f"the run at {parts.hostname}:{parts.port} did not take the {kind}: {fault}") from fault


def _read_reason(fault: urllib.error.HTTPError) -> str:
    """Return why the run refused, as it says in its answer: it has ended, say; empty: it does not say so."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return str(json.loads(fault.read())["error"]["message"]).removeprefix("jumar: ")
    return ""


async def claim_in_session(here: Path, test_id: str, target: str, environ: Mapping[str, str]) -> ClaimOutcome:
    """Claim in the session that the hooks keep for the repository around *here*.

    Raises:
        BadInput: if there is none, or a path leads out of it.
        Infra: if the machine failed.
    """
    root = find_repository_root(here)
    path, test_id = _make_relative(root, here, target), resolve_test_id(root, here, test_id)
    desk = RepositorySession(root, environ)
    with desk.hold_lock():
        before = desk.read_state()
        if ended := explain_end(read_state(desk.find_run())):
            return ClaimOutcome(admitted=False, text=f"refused: {ended}")
        async with desk.rejoin() as session:
            if outside := explain_exclusion(path, session.state) or explain_no_edit(root, path):
                return ClaimOutcome(admitted=False, text=f"refused: {outside}")
            told = await _try_claim(session, test_id, path)
            desk.publish(session, before.session if before else "", turn=bool(before and before.turn))
    if told.admitted:
        return ClaimOutcome(admitted=True, text=f"claimed: {path} may be edited to turn {test_id} green")
    return ClaimOutcome(admitted=False, text=" ".join(f"refused: {adapt_to_shell(told.reason)}".split()))


def find_repository_root(here: Path) -> Path:
    """Return the root of the repository around the folder *here*; in a submodule, of the one that has the session.

    Raises:
        BadInput: if it is no folder.
    """
    try:
        return Path(find_session_root(str(here)))
    except HookRefusal as why:
        raise BadInput(str(why)) from None


def find_workspace(here: Path, environ: Mapping[str, str]) -> Path:
    """Return the root of the workspace of an external agent that stands in *here*: where nobody says, *here*."""
    return Path(environ.get(WORKSPACE) or here).resolve()


def resolve_test_id(root: Path, here: Path, test_id: str) -> str:
    """Return *test_id*, which is relative to the folder *here*, with its file relative to *root*.

    Raises:
        BadInput: if that file is not in there.
    """
    file, mark, rest = test_id.partition("::")
    return f"{_make_relative(root, here, file)}{mark}{rest}" if mark else test_id


def explain_no_edit(root: Path, path: str) -> str:
    """Explain why no edit tool may change *path* in *root*, whatever was claimed: a link, say; empty: it may."""
    try:
        resolve_inside(str(root / path), str(root))
    except HookRefusal as why:
        return str(why)
    return ""


async def _try_claim(session: Session, test_id: str, path: str) -> ActionOutcome:
    """Claim; first run the test if its newest result is of other files than these."""
    call = ToolCall(name="edit_claim", arguments={"test_id": test_id, "edit_target": path})
    told = await session.act(call)
    if session.state.gate_state.mode is not Gate.STRICT:  # no result would change the answer
        return told
    known = session.state.gate_state.newest.get(test_id)
    if told.admitted or not (session.state.gate_state.turn or known is None) or not explain_not_red(known, test_id):
        return told
    wanted = [test_id] if test_id in session.state.expected else []
    await session.act(ToolCall(name="run_tests", arguments={"test_ids": wanted}))
    return await session.act(call)


def _make_relative(root: Path, here: Path, given: str) -> str:
    """Return the file *given*, which is relative to the folder *here*, relative to *root*.

    From *here*, or else from *root*.

    Raises:
        BadInput: if it is not in there.
    """
    folders = (here.resolve(), root)
    paths = [Path(normpath(folder / given)) for folder in folders]
    path = next((p for p in paths if p.exists()), paths[0])
    if not path.is_relative_to(root):
        raise BadInput(f"{given!r} is not in {root}; name a file of this repository")
    return path.relative_to(root).as_posix()
