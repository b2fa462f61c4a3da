"""Starts a confined process: below a supervisor, in a sandbox, with jumar's descriptors and no others."""

from __future__ import annotations

import fcntl
import json
import marshal
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import IO, NamedTuple, Protocol, cast

import msgspec

from jumar.child import start
from jumar.child.supervisor import supervise
from jumar.ports import Invocation, Record, Sandbox
from jumar.process.limits import ResourceLimits, compute_default_ceiling
from jumar.sandbox.launch_order import MARSHAL
from jumar.sandbox.request import Reach, Wrapped
from jumar.sandbox.unconfined import Unconfined

OUTPUT_BYTES = 8 << 20
"""Bytes kept of the start of the output, and as many of its end."""

_SEALABLE = getattr(os, "MFD_CLOEXEC", 0) | getattr(os, "MFD_ALLOW_SEALING", 0)

PATH = "/usr/local/bin:/usr/bin:/bin"
"""PATH for finding programs if the caller lets none through."""


class Supervisor(Protocol):
    """Handle of a process that supervises another one; it was started or forked."""

    @property
    def pid(self) -> int:
        """Number of the process."""
        ...

    def wait(self) -> object:
        """Wait until the process is gone."""
        ...

    def kill(self) -> None:
        """Kill the process; a process that is gone already is no fault."""
        ...


class Launch(NamedTuple):
    """Everything that a supervisor is given."""

    order: int
    """Descriptor of the order (marshalled)."""
    status: int
    """Descriptor for how it went."""
    lifeline: int
    """Descriptor whose end means that jumar is gone."""
    passed: tuple[int, ...]
    """Descriptors that the order names."""


class Fork(Protocol):
    """A process that is ready to become a supervisor."""

    @property
    def nonce(self) -> str:
        """Mark of the processes that it starts."""
        ...

    def fork(self, launch: Launch) -> Supervisor | None:
        """Let it carry out *launch*; None: it cannot, and a new process is started."""
        ...


class Role(Enum):
    """Part of a process in a verification."""

    CANDIDATE = "candidate"
    CONFIRMING = "confirming"  # strings must not have the hashes that they had when the same tests ran before
    EXPECTED = "expected"  # first run of a tree that is expected to be green: what confirms that is ready already
    UNTOUCHED = "untouched"  # it alone says what later ones begin with: a candidate could leave a word by it


class WarmStart(Protocol):
    """Forks supervisors from a process that has imported what tests need; see `jumar.process.warm`."""

    async def prepare(self, invocation: Invocation, confinement: Confinement) -> None:
        """Wait for a process that *invocation* can be forked from, if one is about to be ready."""

    def find(self, invocation: Invocation, confinement: Confinement, wrapped: Wrapped) -> Fork | None:
        """Return a fork for *invocation*, in the sandbox that *wrapped* describes; None: start it anew."""

    def learn(self, invocation: Invocation, confinement: Confinement, modules: Sequence[str]) -> None:
        """Record which installed modules a process of *invocation* imported."""

    def give_up(self, reason: str) -> None:
        """Fork nothing any more, for *reason*."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """Settings that confine one process."""

    room: Path
    """The working directory, an absolute path."""
    seconds: float
    """For the whole process."""
    output: Path | None = None
    """The file for what the process prints, head and tail; None drops it."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """The environment to choose from; PATH, LANG, LC_* and TZ are let through."""
    sandbox: Sandbox = field(default_factory=Unconfined)
    """Sandbox that separates it from the rest of the machine."""
    reach: Reach = field(default_factory=Reach)
    """Parts of the rest of the machine that it may reach all the same."""
    fds: tuple[int, ...] = ()
    """Descriptors that it gets, under their own numbers."""
    ceiling: ResourceLimits = field(default_factory=compute_default_ceiling)
    """Resource limits of the process and all that it starts."""
    heard: Callable[[list[Record]], None] = lambda _records: None
    """Is told of its records as they come: for display, nothing is decided by it."""
    warm: WarmStart | None = None
    """Forks it if it can be forked; None: it is started."""
    role: Role = Role.CANDIDATE
    beside: Path | None = None
    """Room of a process that ends before this one, and has another private folder at the same place. None: its own."""

    @property
    def private(self) -> Path:
        """Folder of the process's home and temporary files. It is removed with the process."""
        return Path(f"{self.beside or self.room}.private")


class Pipes:
    """The descriptors of one confined process: jumar's until `close`, the supervisor's as inherited numbers."""

    def __init__(self, nonce: str = "") -> None:
        self.key, self.nonce = os.urandom(32), nonce or os.urandom(16).hex()
        self.records, self.records_w = os.pipe()
        self.status, self.status_w = os.pipe()
        self.requests_r, self.requests = os.pipe()
        self.lifeline_r, self._lifeline = os.pipe()
        os.set_blocking(self.records, False)
        os.set_blocking(self.requests, False)
        self.selector = selectors.DefaultSelector()
        for fd in (self.records, self.status):
            self.selector.register(fd, selectors.EVENT_READ)

    def close_handed_over(self) -> None:
        """Close the ends that belong to the supervisor now."""
        for fd in (self.records_w, self.status_w, self.requests_r, self.lifeline_r):
            os.close(fd)

    def cut(self) -> None:
        """Close the pipe whose end makes the supervisor kill everything."""
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    def close(self) -> None:
        """Close the pipes that are still open."""
        self.cut()
        self.selector.close()
        for fd in (self.records, self.status, self.requests):
            os.close(fd)


def scrub(invocation: Invocation, confinement: Confinement) -> dict[str, str]:
    """Return the environment of a confined process: of the person's only locale and time zone."""
    environ, private = confinement.environ, confinement.private
    kept = {k: v for k, v in environ.items() if k in ("LANG", "TZ") or k.startswith("LC_")}
    interpreter = Path(invocation.argv[0]).parent
    path = environ.get("PATH") or PATH
    own = {
        "PATH": f"{interpreter}:{path}" if interpreter.is_absolute() else path,
        "HOME": str(private / "home"),
        "TMPDIR": str(private / "tmp"),
    }
    # The task may set its PATH; where the home and the temporary files lie is ours, as they are removed afterwards.
    return {"LANG": "C.UTF-8", **kept, **own, **invocation.env, "HOME": own["HOME"], "TMPDIR": own["TMPDIR"]}


class StartedProcess(NamedTuple):
    """A confined process that was started."""

    pipes: Pipes
    """Our ends."""
    supervisor: Supervisor
    signalled: int
    """See `Wrapped`."""
    forked: bool
    """True if a zygote forked it; False: it was started."""


def start_confined(invocation: Invocation, confinement: Confinement) -> StartedProcess:
    """Start *invocation* below a supervisor, in its sandbox.

    Raises:
        OSError: if the machine cannot start a process.
        BadInput: if the sandbox cannot show what it is asked to.
    """
    wrapped = wrap_invocation(invocation, confinement)
    fork = confinement.warm.find(invocation, confinement, wrapped) if confinement.warm else None
    started = _launch(invocation, confinement, wrapped, fork) if fork else None
    # Not with the same pipes: what did not answer may still have got them.
    return started or cast("StartedProcess", _launch(invocation, confinement, wrapped, None))


def _launch(
    invocation: Invocation, confinement: Confinement, wrapped: Wrapped, fork: Fork | None
) -> StartedProcess | None:
    """Start a supervisor, or have it forked; None: that failed."""
    env, pipes = scrub(invocation, confinement), Pipes(fork.nonce if fork else "")
    for name in ("HOME", "TMPDIR"):
        Path(env[name]).mkdir(parents=True, exist_ok=True, mode=0o700)
    wire = {"key": pipes.key.hex(), "records": pipes.records_w, "requests": pipes.requests_r}
    learn = {"learn": True} if confinement.role is Role.UNTOUCHED else {}
    config = {**invocation.config, **learn, "channel": wire}
    with ExitStack() as stack:
        given = stack.enter_context(hold(json.dumps(config).encode()))
        # A path or the null device.
        sink = stack.enter_context(open(confinement.output or os.devnull, "wb"))  # noqa: PTH123
        files = [stack.enter_context(hold(content)).fileno() for content in wrapped.files]
        keep = [pipes.records_w, pipes.requests_r, *confinement.fds, *files]
        order = {
            "argv": [_replace_by_number(word, files) for word in wrapped.argv],
            "env": {**env, "JUMAR_ROOM": pipes.nonce},
            "cwd": str(wrapped.start or confinement.room),
            "keep": keep,
            "cap": OUTPUT_BYTES,
            "forgets": confinement.sandbox.tier != "S0",  # there, a file on the disk is a word to a later run anyway
            "seconds": confinement.seconds,
            "nonce": pipes.nonce,
            **asdict(confinement.ceiling),
            "config": given.fileno(),
            "output": sink.fileno(),
        }
        orders = stack.enter_context(hold(marshal.dumps(order, MARSHAL)))
        passed = (*keep, given.fileno(), sink.fileno())
        launch = Launch(orders.fileno(), pipes.status_w, pipes.lifeline_r, passed)
        process = fork.fork(launch) if fork else _start_supervisor(launch, sink)
    pipes.close_handed_over()
    if process is None:
        pipes.close()
        return None
    return StartedProcess(pipes, process, wrapped.signalled, fork is not None)


def wrap_invocation(invocation: Invocation, confinement: Confinement) -> Wrapped:
    """Return the argv in its sandbox, in which it sees the scripts that it may begin with."""
    reach = msgspec.structs.replace(confinement.reach, readable=(*confinement.reach.readable, Path(start.FOLDER)))
    argv = (_find_program(invocation.argv[0], scrub(invocation, confinement)["PATH"]), *invocation.argv[1:])
    if not os.access(argv[0], os.X_OK):  # so the system says what is wrong with it, and not a sandbox
        return Wrapped(argv=argv, start=Path("/"))
    return confinement.sandbox.wrap(argv, confinement.room, confinement.private, reach)


def _find_program(program: str, path: str) -> str:
    return shutil.which(program, path=path) or program


def _start_supervisor(launch: Launch, sink: IO[bytes]) -> Supervisor:
    return subprocess.Popen(  # noqa: S603  # our interpreter, our script, numbers
        [sys.executable, "-I", "-S", *start.build_command(supervise), str(launch.order), str(launch.status)],
        stdin=launch.lifeline,
        stdout=subprocess.DEVNULL,
        stderr=sink,
        env={},
        pass_fds=[launch.order, launch.status, *launch.passed],
        start_new_session=True,
    )


def _replace_by_number(word: str, files: list[int]) -> str:
    """Return *word*, or the number of the descriptor that it stands for."""
    kind, _, place = word.partition("=")
    return str(files[int(place)]) if kind == "@file" and place.isdigit() else word


def hold(content: bytes) -> IO[bytes]:
    """Return a file without a name that holds *content*, ready to be read from its start.

    Where it can be, it cannot grow.
    """
    sealed = hasattr(os, "memfd_create")
    # The caller's stack closes it.
    file: IO[bytes] = os.fdopen(os.memfd_create("jumar", _SEALABLE), "w+b") if sealed else tempfile.TemporaryFile()  # noqa: SIM115
    file.write(content)
    file.seek(0)
    if sealed:  # all of its sandbox may find this descriptor, and no disk may be filled through it
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return file
