"""`jumar mcp`: the gate as an MCP server, for hosts whose own edit tools it cannot stop (hooks can)."""

from __future__ import annotations

import secrets
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import click
from click.core import ParameterSource
from msgspec.structs import replace

from jumar.child.hook.published_state import find_root
from jumar.cli.console.output import strip_controls
from jumar.cli.console.signals import SignalWatcher
from jumar.cli.parameters.command_options import TEST_COMMAND, add_verdict_options
from jumar.cli.parameters.environment import read_environment
from jumar.cli.parameters.run_argument import TRUST
from jumar.core.state.stop import EXIT_CODES, StopReason
from jumar.core.state.test_policy import Gate
from jumar.errors import BadInput
from jumar.mcp_server import http_server, stdio
from jumar.mcp_server import server as mcp_server
from jumar.mcp_server import tools as calls
from jumar.runs.archive.find import RUNS, refuse_links
from jumar.runs.setup.marks import Trust
from jumar.task.resolve import Options, apply_options
from jumar.task.task import Task, load_task

PATH = click.Path(path_type=Path)
GATES = click.Choice([Gate.STRICT.value, Gate.REFACTOR.value])


@click.command(
    epilog="Example: jumar mcp ~/src/project (a host starts that: claude mcp add jumar -- jumar mcp ~/src/project)"
)
@click.argument("roots", metavar="[ROOT]...", nargs=-1, type=PATH)
@click.option(
    "--http", "port", type=click.IntRange(0, 65535), help="Serve HTTP on 127.0.0.1 at this port; 0: a free one."
)
@click.option("--token", help="What HTTP clients must send; better in JUMAR_MCP_TOKEN. Without it, a new one is made.")
@click.option("--no-token", is_flag=True, help="Let in whoever reaches the port: every user of this machine.")
@click.option("--gate", type=GATES, help="strict (default, where there are tests), or refactor: edits need no claims.")
@click.option("--allow-refactor", is_flag=True, help="The host's model may enter refactor mode by itself.")
@TRUST
@click.option("--python", help="The interpreter that runs the tests; default: the task's .venv, else ours.")
@click.option("--runs", type=PATH, default=RUNS, show_default=True, help="Where runs are kept.")
@TEST_COMMAND
@add_verdict_options
def mcp(roots: tuple[Path, ...], port: int | None, runs: Path, **chosen: Any) -> int:
    """Serve the gate to MCP hosts, which may open tasks below each ROOT (default: the current folder).

    Standard input and output speak the protocol, unless --http is given.
    """
    refuse_links(runs)
    mcp_server.check_installed()
    without = chosen.pop("no_token")
    token, allowed = _choose_token(port, chosen.pop("token"), without=without), _resolve_roots(roots)
    if chosen["allow_refactor"] and chosen["gate"] not in (None, Gate.STRICT):
        raise BadInput("--allow-refactor lets a model leave the strict gate, and the gate is another; leave one out")
    at = None if port is None else http_server.open_socket(port)
    token = "" if at is None else _announce(at, token, without=without)
    attendant = SignalWatcher(quiet=True, patient=True)  # what a host asked for is written at once
    attendant.run(lambda: _serve(allowed, runs, chosen, at, token))
    return EXIT_CODES[StopReason.INTERRUPTED] if attendant.interrupted else 0


def _resolve_roots(roots: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the folders below which tasks may be opened, resolved."""
    if not roots and Path.cwd() == Path.cwd().parent:  # where some hosts start their servers
        raise BadInput("the current folder is the whole file system; name the folders in which tasks may be opened")
    for root in roots:
        if not root.is_dir():
            raise BadInput(f"{root} is no folder; name the folders in which tasks may be opened")
    return tuple(dict.fromkeys(root.resolve() for root in roots or (Path(),)))


def _choose_token(port: int | None, token: str | None, *, without: bool) -> str:
    """Return the token that the person chose; empty: none."""
    typed = click.get_current_context().get_parameter_source("token") is ParameterSource.COMMANDLINE
    if port is None and (typed or without):
        raise BadInput("--token and --no-token are for --http; leave them out")
    if token and without:
        raise BadInput("--token and --no-token contradict each other; leave one out")
    if token is not None and (not token.strip() or not token.isascii() or not token.isprintable()):
        raise BadInput("--token must be printable ASCII and not empty, as it is sent in a header")
    return "" if without else token or ""


async def _serve(
    roots: tuple[Path, ...], runs: Path, chosen: dict[str, Any], at: socket.socket | None, token: str
) -> None:
    from jumar.mcp_server.dispatch import ToolDispatcher  # noqa: PLC0415  as above
    from jumar.runs import session  # noqa: PLC0415  libcst is slow to import
    from jumar.runs.session_pool import RunOpeners, SessionPool  # noqa: PLC0415  as above

    environ, python = read_environment(), chosen["python"]
    trust = Trust(environ, chosen["trust"])
    doors = RunOpeners(
        lambda task: session.open_session(task, runs, environ=environ, python=python),
        lambda folder: session.rejoin_session(trust.run(folder), environ=environ),
    )
    async with anyio.create_task_group() as seats:
        desk = SessionPool(seats, doors, runs)
        gatehouse = ToolDispatcher(desk, roots, _build_settle(chosen, roots), trust)
        server = mcp_server.build_server(gatehouse, alone=at is None)
        if at is None:
            if sys.stdin.isatty():
                click.echo(
                    "jumar: MCP on standard input and output: a host starts this; for others, see --http", err=True
                )
            await stdio.serve(server)
        else:
            await http_server.serve(server, at, token, desk.leave)
        seats.cancel_scope.cancel()


def _announce(at: socket.socket, token: str, *, without: bool) -> str:
    """Announce where and for whom it serves, with the token if it is a new one; return the token."""
    click.echo(f"jumar: serving http://{http_server.HOST}:{at.getsockname()[1]}/mcp", err=True)
    if without or token:
        click.echo(f"jumar: {'no token is asked for' if without else 'the token is the one you gave'}", err=True)
        return token
    made = secrets.token_urlsafe(24)
    click.echo(f"jumar: Authorization: Bearer {made}", err=True)
    return made


def _build_settle(chosen: dict[str, Any], roots: tuple[Path, ...]) -> Callable[[Path, calls.OpenTask], Task]:
    """Return the function that resolves a task from the choices of the person and the host; the stricter one wins."""

    def settle(path: Path, asked: calls.OpenTask) -> Task:
        options = Options(
            instruction=asked.instruction or None,
            tests=asked.tests,
            test_command=chosen["test_command"],
            agent="host",
            model="host",
            gate=chosen["gate"],
            allow_refactor=chosen["allow_refactor"],
            confirm=chosen["confirm"],
            sandbox=chosen["sandbox"],
        )
        task = apply_options(load_task(path), options)
        for note in task.notes:
            click.echo(strip_controls(f"jumar: note: {note}"), err=True)
        # A model that picks a folder without tests would else be rid of the tests of the repository around it.
        return replace(task, gate_chosen=True) if _is_part(path, roots) else task

    return settle


def _is_part(path: Path, roots: tuple[Path, ...]) -> bool:
    """Return whether *path*, which the person did not name, lies in a repository that could be opened as a whole."""
    folder = path if path.is_dir() else path.parent
    whole = Path(find_root(str(folder)))
    return folder not in roots and whole != folder and any(whole.is_relative_to(root) for root in roots)
