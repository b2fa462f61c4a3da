"""One run per repository for all hook processes: locked, begun by a person's prompt, published for the fast hook.

What lies in the folder when a person sends a prompt is the person's: it is what the next run begins from. What comes
after that, until the host stops, came from its agent.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from jumar.child.hook.published_state import CLOSED, FOLDER, LOCK, STATE, VERSION
from jumar.core.gate.admission import rule_on_write
from jumar.core.gate.write_rules import WriteRules, matches_nothing
from jumar.core.state.run_state import HOST, Phase, RunState
from jumar.core.state.test_policy import Gate
from jumar.errors import BadInput, Infra, JumarError, find_cause
from jumar.hooks.session_folder import acquire, prune, write_stamped
from jumar.hooks.standing import explain_end
from jumar.runs.archive.find import find_link, find_runs
from jumar.runs.session import Session, open_session, rejoin_session
from jumar.runs.setup.assembly import RunPlace, build_guard, build_workspace, load_runner
from jumar.runs.setup.marks import Trust, TrustedRun
from jumar.runs.setup.result import read_state
from jumar.task.resolve import Options, apply_options
from jumar.task.settings.task_files import DEFAULTS_FILE, TASK_FILE
from jumar.task.task import Task, load_task
from jumar.workspace.files import trees
from jumar.workspace.files.trees import EntryKind
from jumar.workspace.git_ignored import Ignored
from jumar.workspace.store.lease import SHARED
from jumar.workspace.store.object_store import Store
from jumar.workspace.store.shared import find_objects_folder
from jumar.workspace.store.sweep import sweep

KEPT = 10
"""Runs that stay on the disk: what was put back can be had from them."""

JOURNAL = "events.jsonl"
PUT_BACK = "put-back"
"""Folder for the earlier content of reverted files, by the time of day."""


class PublishedState(msgspec.Struct, frozen=True, kw_only=True):
    """State published for the fast hook (`jumar.child.hook.published_state`)."""

    version: int = VERSION
    root: str
    run: str = ""
    bytes: int = 0
    """Length of the journal at publication: a longer journal means that this is out of date."""
    mode: str = "strict"
    claims: dict[str, tuple[str, ...]] = {}
    """File -> the red tests that an edit of it was claimed for."""
    tests: tuple[str, ...] = ()
    """Files that are read-only."""
    authored: tuple[str, ...] = ()
    """Test files that were written in this run."""
    fault: str = ""
    """Reason why there is no session; empty: there is one."""
    ended: str = ""
    """Reason why no edit is admitted although there is one: its run has ended; empty: it is open."""
    session: str = ""
    """The host's own name for the conversation that sent the newest prompt."""
    turn: bool = False
    """True if the host's agent is at work."""


class RepositorySession:
    """Shared session of the hooks of one repository. All methods but `hold_lock` need the lock."""

    def __init__(self, root: Path, environ: Mapping[str, str], gate: Gate | None = None) -> None:
        self.root, self.environ, self.gate = root, environ, gate
        self.folder = root / FOLDER
        self.runs = self.folder / "runs"

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Hold the lock that all hook processes of this repository share.

        Raises:
            Infra: if another one holds it for too long, or the folder cannot be made.
        """
        try:
            self._make_folder()
            fd = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as fault:
            raise Infra(f"cannot use {self.folder}: {fault.strerror}") from fault
        try:
            acquire(fd)
            yield
        finally:
            os.close(fd)

    def read_state(self) -> PublishedState | None:
        """Return the state that was published last; None: it is missing or damaged."""
        try:
            state = msgspec.json.decode((self.folder / STATE).read_bytes(), type=PublishedState)
        except (OSError, ValueError):
            return None
        return state if state.root == str(self.root) and state.version == VERSION and "/" not in state.run else None

    def find_run(self) -> Path:
        """Return the directory of the newest run.

        Raises:
            BadInput: if there is none, or it came with the repository (see `harness.archive.marks`).
        """
        state = self.read_state()
        if state is None or not state.run or not (self.runs / state.run / JOURNAL).is_file():
            raise BadInput("there is no session here: the hooks begin one when a prompt is sent (jumar hook install)")
        anyone = self.environ.get("JUMAR_HOOK_TRUST") == "1"
        trust = Trust(self.environ, anyone, "JUMAR_HOOK_TRUST=1 to the environment of the hooks")
        return trust.run(self.runs / state.run).folder

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[Session]:
        """Yield a new run on the folder as it is."""
        task = _build_task(self.root, self.environ, self.gate)
        with _unwrap_groups():
            async with open_session(task, self.runs, environ=self.environ, in_place=True) as session:
                yield session
        if prune(self.runs, KEPT):
            sweep(self.runs / SHARED, find_runs(self.runs))

    @asynccontextmanager
    async def rejoin(self, seen: str = "") -> AsyncIterator[Session]:
        """Open the newest run of the repository again and yield it.

        Files of the tree *seen*, which lies in the folder (empty: it is read), that went back by the end are kept.
        """
        seen = seen or self.read_tree()[1]
        with _unwrap_groups():
            async with rejoin_session(TrustedRun(self.find_run()), environ=self.environ) as session:
                try:
                    yield session
                finally:
                    self._keep_reverted(seen, session.state.tree)

    def find_resting_state(self) -> RunState | None:
        """Return the state of the newest run if that is open, has nothing to judge, and the folder is unchanged.

        It must be under this gate, too. None: the next prompt begins a new run.

        Where nobody chose a gate and the run wrote the first tests, the next one begins under the strict gate.
        """
        try:
            state, seen = self.read_tree()
        except JumarError:
            return None
        tested = self.gate is None and bool(state.expected) and not state.run.expected
        gate = self.gate or (Gate.STRICT if tested or state.run.expected else Gate.REFACTOR)
        rests = state.phase is not Phase.ENDED and not state.gate_state.turn and state.gate_state.mode is gate
        return state if rests and seen == state.tree else None

    def read_tree(self) -> tuple[RunState, str]:
        """Return the state of the newest run, and the present tree of the folder, which is stored.

        Raises:
            BadInput: if there is no run, or what lies there cannot be read.
        """
        folder = self.find_run()
        state = read_state(folder)
        return state, build_workspace(RunPlace.at(folder, self.environ), state.run).capture()

    def revert_changes(self, state: RunState, seen: str) -> tuple[str, ...]:
        """Revert all changes since the newest run ended in *state*; return the paths."""
        changed = self._keep_reverted(seen, state.tree)
        if changed:
            build_workspace(RunPlace.at(self.find_run(), self.environ), state.run).reset(state.tree)
        return changed

    def _keep_reverted(self, seen: str, tree: str) -> tuple[str, ...]:
        """Keep the files of the tree *seen* that *tree*, which came in its place, has not: they may be a person's.

        Return the paths at which the two differ.
        """
        store = Store(find_objects_folder(self.find_run()))
        before = store.manifest(seen)
        changed = trees.find_differences(before, store.manifest(tree))
        files = {p: n for p in changed if (n := before.get(p)) is not None and n.kind is EntryKind.FILE}
        if files:
            write_stamped(self.folder / PUT_BACK, ((path, store.get(node.sha256)) for path, node in files.items()))
            prune(self.folder / PUT_BACK, KEPT * 10)
        return changed

    def is_fresh(self) -> bool:
        """Return whether the published state is as new as the journal."""
        state = self.read_state()
        return state is not None and not state.fault and state.bytes == (self.find_run() / JOURNAL).stat().st_size

    def explain_refusal(self, path: str) -> str:
        """Explain why the newest run refuses a change of *path*; empty: it is admitted."""
        folder = self.find_run()
        state = read_state(folder)
        return (
            explain_end(state)
            or explain_exclusion(path, state)
            or rule_on_write(path, state, _build_guard(state, Store(find_objects_folder(folder)))).reason
        )

    def publish(self, session: Session, name: str, *, turn: bool) -> None:
        """Publish what the run of *session* admits now; *name* is the host's for its conversation."""
        state, store = session.state, Store(find_objects_folder(session.folder))
        guard, files = _build_guard(state, store), store.manifest(state.tree)
        there = [path for path, node in files.items() if node.kind is not EntryKind.DIR]
        authored = tuple(path for path in there if guard.authorable(path))
        claimed = {c.path for c in state.gate_state.claims} | {e.path for e in state.gate_state.turn}
        open_now = guard.refactorable if state.gate_state.mode is Gate.REFACTOR else matches_nothing
        closed = (path for path in there if guard.protected(path) and not open_now(path))
        self._write_state(
            PublishedState(
                root=str(self.root),
                run=session.folder.name,
                bytes=(session.folder / JOURNAL).stat().st_size,
                mode=state.gate_state.mode,
                claims={path: ids for path in sorted(claimed) if (ids := state.gate_state.find_covering(path))},
                tests=tuple(path for path in closed if path not in authored),
                authored=authored,
                session=name,
                turn=turn,
                ended=explain_end(state),
            )
        )

    def publish_fault(self, why: str) -> None:
        """Publish that nothing can be judged, and *why*. The run stays: the fault may pass."""
        before = self.read_state()
        known = before or PublishedState(root=str(self.root))
        self._write_state(replace(known, fault=why, claims={}, authored=()))

    def publish_again(self, name: str, *, turn: bool) -> None:
        """Publish the same state again, of the conversation *name*."""
        state = self.read_state()
        if state is not None:
            self._write_state(replace(state, session=name, turn=turn))

    def _write_state(self, state: PublishedState) -> None:
        temporary = self.folder / f"{STATE}.{os.getpid()}"
        temporary.write_bytes(json.dumps(msgspec.to_builtins(state)).encode())
        temporary.replace(self.folder / STATE)

    def _make_folder(self) -> None:
        own = (self.folder.parent, self.folder, self.runs, self.runs / SHARED, self.folder / PUT_BACK)
        if link := find_link(*own):
            raise NotADirectoryError(0, f"{link} is a link; remove it", str(link))
        for folder in own[:2]:
            folder.mkdir(exist_ok=True)
        with suppress(FileExistsError), (self.folder / ".gitignore").open("x") as file:  # no link is followed
            file.write("*\n")


def explain_exclusion(path: str, state: RunState) -> str:
    """Explain why *path* cannot be edited in the run in *state*: no tree would hold it; empty: one would."""
    settings = state.run.settings
    skip = Ignored(settings.skip, settings.tracked, settings.include).build_skip()
    if trees.is_ignored(path) or skip(path) or any(skip(folder + "/") for folder in trees.list_parents(path)):
        return f"{path} is part of no tree: git ignores it, or it is a history or a cache; no test could judge an edit"
    return ""


@contextmanager
def _unwrap_groups() -> Iterator[None]:
    """Raise the one cause of a group of exceptions, as the tasks that serve a session raise in groups."""
    try:
        yield
    except BaseExceptionGroup as many:
        raise find_cause(many) from many


def _build_guard(state: RunState, store: Store) -> WriteRules:
    settings = state.run.settings
    return build_guard(settings, load_runner(settings.suite.runner), store.manifest(state.run.tree))


ANY_PYTHON = ("*.py",)


def _build_task(root: Path, environ: Mapping[str, str], gate: Gate | None) -> Task:
    """Return the repository as a task: if nobody chose, every file may be edited but the person's own."""
    confirm, sandbox = (environ.get(f"JUMAR_HOOK_{n}") or environ.get(f"JUMAR_RUN_{n}") for n in ("CONFIRM", "SANDBOX"))
    if confirm and not confirm.isdecimal():
        raise BadInput(f"JUMAR_HOOK_CONFIRM (or JUMAR_RUN_CONFIRM) is {confirm!r}, and must be a number of fresh runs")
    options = Options(agent=HOST, gate=gate, confirm=int(confirm) if confirm else None, sandbox=sandbox)
    task = apply_options(load_task(root, hosted=True), options, environ)
    editable = ("*",) if task.editable == ANY_PYTHON else task.editable
    # An agent that could write these would choose its own gate at the next prompt.
    steering = (f"/{TASK_FILE}", f"/{DEFAULTS_FILE}")
    return replace(task, editable=editable, protected=(*task.protected, *(f"/{name}/" for name in CLOSED), *steering))
