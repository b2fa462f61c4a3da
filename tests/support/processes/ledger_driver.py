"""Sixteen runs in four processes on one ledger, some of them killed: by themselves at a chosen point, or from outside.

    python ledger_driver.py FOLDER FIRST COUNT

For each of the seeds one line of JSON: what the provider billed, what the ledger says, what the journals add up to.
A process is forked, so that a thousand seeds pay for one start; everything the seed decides, it decides again.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random

import anyio
import msgspec
from anyio.lowlevel import checkpoint

from jumar.core.gate.admission import Action
from jumar.core.gate.write_rules import WriteRules
from jumar.core.run.effects import Halt
from jumar.core.run.reducers.transitions import replay
from jumar.core.run.strategy import Message, Request, Tool
from jumar.core.state import events as ev
from jumar.core.state.budget import MICRO, Budget, Cost, to_micro_usd
from jumar.core.state.reply import Reply
from jumar.core.state.run_state import Phase, RunState
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.journal.ledger import Caps, LedgerAccount, SqliteLedger
from jumar.journal.ledger_rows import LedgerRows
from jumar.journal.writer import EVENTS, Journal, read_journal
from jumar.kernel import Kernel
from jumar.ports import Answer, Ask
from jumar.runtime.dependencies import RunDependencies
from jumar.runtime.effect_runner import EffectRunner
from jumar.testing import FakeClock, FakeVerifier
from jumar.workspace.store.object_store import Store
from jumar.workspace.workspace import Workspace

WORKERS, RUNS, LIVES = 4, 4, 3
"""Processes, runs in each, and how often a process is started at most."""

FAULTS = ("server", "timeout", "connection", "malformed", "rate_limit", "refusal", "rejected")


class Said(msgspec.Struct, frozen=True):
    """What came of one seed. Money in micro-dollars."""

    seed: int
    cap: int
    token_cap: int
    drawn: tuple[int, int]
    """In the ledger after the last process and before any recovery: settled and held, money and tokens."""
    spent: tuple[int, int]
    """In the ledger after recovery; nothing may be held then."""
    held: tuple[int, int]
    journals: tuple[int, int]
    """The sum over the journals' own folds."""
    billed: tuple[float, int]
    """What the provider billed, by its own log."""
    calls: int
    refused: int
    """Runs that the ledger stopped."""
    killed: dict[str, int]
    """Where processes died."""
    faults: list[str]
    """What should not be: a process that ended with an error."""


class Mortal:
    """Counts the points a process passes, and kills it at the chosen one."""

    def __init__(self, folder: Path, left: int) -> None:
        self._folder, self._left = folder, left

    def at(self, place: str) -> None:
        """One point; *place* names it for who asks afterwards where the process died."""
        self._left -= 1
        if self._left == 0:
            (self._folder / f"killed-{os.getpid()}").write_text(place)
            os.kill(os.getpid(), signal.SIGKILL)

    def within_sqlite(self) -> int:
        """Between two steps of SQLite's machine."""
        self.at("within a transaction")
        return 0

    def write(self, fd: int, data: bytes) -> int:
        """`os.write` for a journal: a kill may come before, within and after a line."""
        kind = next((k for k in ("request", "call") if b'"type":"model_%b"' % k.encode() in data), "other event")
        self.at(f"before the journal has the {kind}")
        half = len(data) // 2
        os.write(fd, data[:half])
        self.at(f"while the journal takes the {kind}")
        os.write(fd, data[half:])
        self.at(f"before the journal syncs the {kind}")
        return len(data)


class Watched:
    """A drawing that may die around its two steps, and that looks whether a cap is passed at any moment."""

    def __init__(self, drawing: LedgerAccount, ledger: SqliteLedger, mortal: Mortal) -> None:
        self._drawing, self._ledger, self._mortal = drawing, ledger, mortal

    def reserve(self, seq: int, worst: Cost) -> str:
        self._mortal.at("before reserving")
        refused = self._drawing.reserve(seq, worst)
        self._mortal.at("after reserving")
        self._look()
        return refused

    def settle(self, seq: int, cost: Cost) -> None:
        self._mortal.at("before settling")
        self._drawing.settle(seq, cost)
        self._mortal.at("after settling")
        self._look()

    def seconds_left(self) -> float | None:
        return self._drawing.seconds_left()

    def _look(self) -> None:
        spent, caps = self._ledger.read_total(), self._ledger.caps
        assert spent.micro_usd + spent.held_micro_usd <= to_micro_usd(caps.usd or 0.0), f"{spent} passes {caps}"
        assert spent.tokens + spent.held_tokens <= (caps.tokens or 0), f"{spent} passes {caps}"


class Stub:
    """A provider: bills something up to its maximum, fails now and then, is cut off now and then."""

    name = "stub"

    def __init__(self, folder: Path, chance: Random, mortal: Mortal) -> None:
        self._chance, self._mortal = chance, mortal
        self._bills = os.open(folder / "bills", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._worst = Cost(chance.uniform(0.001, 0.1), chance.randrange(100, 10_000))
        self.kernel: Kernel | None = None

    def worst(self, _ask: Ask) -> Cost:
        return self._worst

    async def complete(self, _ask: Ask) -> Answer:
        chance = self._chance
        self._mortal.at("before the call is billed")
        share = chance.choice((0.0, 1.0, chance.random(), chance.random()))
        usd, tokens = self._worst.usd * share, int(self._worst.tokens * share)
        os.write(self._bills, f"{usd!r} {tokens}\n".encode())
        for _ in range(chance.randrange(4)):
            await checkpoint()
            self._mortal.at("while the call is in flight")
        if chance.random() < 0.02 and self.kernel:
            self.kernel.halt(Halt(StopReason.INTERRUPTED, "cut off"))
            await checkpoint()
        error = chance.choice(FAULTS) if chance.random() < 0.2 else ""
        assumed = bool(error) and chance.random() < 0.5
        return Answer(
            reply=Reply(content=f"{chance.random()}"),
            input_tokens=0 if assumed else tokens // 3,
            output_tokens=0 if assumed else tokens - tokens // 3,
            usd=0.0 if assumed else usd,
            error=error,
            assumed=assumed,
        )


class Asker:
    """An agent that asks so many times and does nothing with the answers."""

    name, note = "asker", ""
    localises, loops = False, True
    tools: tuple[Tool, ...] = ()

    def __init__(self, times: int) -> None:
        self._times = times

    def request(self, state: RunState) -> Request | None:
        return Request("mid", "ask") if state.replies < self._times else None

    def messages(self, state: RunState, files: dict[str, str]) -> tuple[Message, ...]:  # noqa: ARG002  the port's
        return ()

    def actions(self, state: RunState) -> tuple[Action, ...]:
        return (Action("unparsable", message=state.reply.content if state.reply else ""),)


async def at_once(_seconds: float) -> None:
    """No pause between tries."""


def kernel_of(folder: Path, ledger: SqliteLedger, chance: Random, mortal: Mortal) -> Kernel | None:
    """The run in *folder*, begun or gone on with; None if it has ended."""
    store = Store(folder / "objects")
    workspace = Workspace(folder / "workspace", store)
    workspace.folder.mkdir(parents=True, exist_ok=True)
    (workspace.folder / "app.py").write_text("")
    tree = workspace.capture()
    journal = (Journal.open if (folder / EVENTS).exists() else Journal.create)(folder, mortal.write)
    drawing = ledger.open_account(folder.name, folder)
    drawing.recover_own(journal.entries)
    stub, agent = Stub(folder.parent, chance, mortal), Asker(chance.randrange(1, 13))
    parts = RunDependencies(
        workspace=workspace,
        verifier=FakeVerifier(store, (), lambda _: {}),
        route=lambda _: stub,
        agent=agent,
        guard=WriteRules(editable=lambda _: True, protected=lambda _: False),
        clock=FakeClock(),
        sleep=at_once,
        ledger=Watched(drawing, ledger, mortal),
    )
    state = replay(journal.entries)
    if state.phase is Phase.ENDED:
        journal.close()
        return None
    stub.kernel = kernel = Kernel(journal, EffectRunner(parts), agent, state)
    first = ev.RunStart(
        run=folder.name,
        task="none",
        agent=agent.name,
        model=stub.name,
        test_policy=TestPolicy.NEVER,
        gate=Gate.OFF,
        budget=Budget(attempts=None),
        expected=(),
        tree=tree,
    )
    kernel.record((ev.Resume(from_seq=journal.entries[-1].seq) if journal.entries else first,))
    return kernel


async def work(folder: Path, caps: Caps, worker: int, chance: Random) -> None:
    """One life of a process: its runs, all at once, to their ends or its own."""
    mortal = Mortal(folder, chance.randrange(1, 120) if chance.random() < 0.6 else -1)
    with SqliteLedger.open(folder / "ledger", caps) as ledger:
        if chance.random() < 0.3:
            ledger._purse._db.set_progress_handler(mortal.within_sqlite, 15)  # noqa: SLF001  no public way in there
        async with anyio.create_task_group() as group:
            for n in range(RUNS):
                kernel = kernel_of(folder / f"run-{worker}-{n}", ledger, chance, mortal)
                if kernel is not None:
                    group.start_soon(to_the_end, kernel)


async def to_the_end(kernel: Kernel) -> None:
    with kernel.journal:
        await kernel.run()


def born(folder: Path, caps: Caps, worker: int, chance: Random) -> int:
    """Fork a process that works; its id."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        anyio.run(work, folder, caps, worker, chance)
        status = 0
    except BaseException:  # noqa: BLE001  whatever it is, this is the end of the child
        traceback.print_exc()
    finally:
        os._exit(status)


def lives(folder: Path, caps: Caps, seed: int) -> tuple[Counter[str], list[str]]:
    """Start the processes, kill some, start some of those again; where they died, and what went wrong."""
    chance = Random(seed)
    killed, faults = Counter[str](), list[str]()
    alive = {born(folder, caps, w, Random(f"{seed}/{w}/0")): (w, 0) for w in range(WORKERS)}
    doomed = {pid: time.monotonic() + chance.uniform(0.005, 0.2) for pid in alive if chance.random() < 0.3}
    while alive:
        due = min(doomed.values(), default=time.monotonic() + 60.0)
        signal.sigtimedwait({signal.SIGCHLD}, max(0.0, due - time.monotonic()))
        for pid in [p for p, when in doomed.items() if when <= time.monotonic()]:
            os.kill(pid, signal.SIGKILL)
            del doomed[pid]
        for pid in list(alive):
            gone, status = os.waitpid(pid, os.WNOHANG)
            if not gone:
                continue
            worker, life = alive.pop(pid)
            doomed.pop(pid, None)
            if os.WIFSIGNALED(status):
                note = folder / f"killed-{pid}"
                killed[note.read_text() if note.exists() else "from outside"] += 1
                if life + 1 < LIVES and chance.random() < 0.7:
                    again = born(folder, caps, worker, Random(f"{seed}/{worker}/{life + 1}"))
                    alive[again] = (worker, life + 1)
            elif status:
                faults.append(f"worker {worker} of seed {seed} ended with {status}")
    return killed, faults


def tried(folder: Path, seed: int) -> Said:
    """One seed, from nothing to the sums."""
    chance = Random(-seed)
    caps = Caps(usd=round(chance.uniform(0.3, 3.0), chance.randrange(2, 7)), tokens=chance.randrange(30_000, 300_000))
    folder.mkdir()
    killed, faults = lives(folder, caps, seed)
    with closing(LedgerRows(folder / "ledger", caps)) as purse:  # `SqliteLedger.open` would recover
        before = purse.read_total()
    with SqliteLedger.open(folder / "ledger") as ledger:
        after = ledger.read_total()
    bills = (
        [line.split() for line in (folder / "bills").read_text().splitlines()] if (folder / "bills").exists() else []
    )
    states = [replay(read_journal(p.parent)) for p in sorted(folder.glob(f"*/{EVENTS}"))]
    pending = [s.request for s in states if s.request is not None]
    money = sum(s.spend.micro_usd for s in states) + sum(to_micro_usd(r.reserved_usd) for r in pending)
    tokens = sum(s.spend.tokens for s in states) + sum(r.reserved_tokens for r in pending)
    said = Said(
        seed=seed,
        cap=int(round((caps.usd or 0.0) * MICRO, 3)),
        token_cap=caps.tokens or 0,
        drawn=(before.micro_usd + before.held_micro_usd, before.tokens + before.held_tokens),
        spent=(after.micro_usd, after.tokens),
        held=(after.held_micro_usd, after.held_tokens),
        journals=(money, tokens),
        billed=(sum(float(b[0]) for b in bills) * MICRO, sum(int(b[1]) for b in bills)),
        calls=len(bills),
        refused=sum(s.end is not None and "of the ledger" in s.end.why for s in states),
        killed=dict(killed),
        faults=faults,
    )
    if not faults:
        shutil.rmtree(folder)
    return said


def main(folder: Path, first: int, count: int) -> None:
    """Seed after seed."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    for seed in range(first, first + count):
        sys.stdout.write(msgspec.json.encode(tried(folder / f"seed-{seed}", seed)).decode() + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
