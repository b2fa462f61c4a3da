"""The ledger: no cap is passed at any moment, and after any crash it says what the journals say."""

from __future__ import annotations

import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import anyio
import msgspec
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from jumar.core.run.effects import Halt
from jumar.core.run.reducers.transitions import replay
from jumar.core.state import events as ev
from jumar.core.state.budget import MICRO, Budget, Cost, to_micro_usd
from jumar.core.state.reply import Reply
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.errors import BadInput, Infra
from jumar.journal.ledger import Caps, LedgerAccount, SqliteLedger
from jumar.journal.lock import hold_still
from jumar.journal.writer import EVENTS, Journal, read_journal
from jumar.kernel import Kernel
from jumar.ports import Answer, Ask
from jumar.runtime.effect_runner import EffectRunner
from support.processes.ledger_driver import Said
from support.worlds.run_world import Terms, world

TESTS = Path(__file__).parents[1]
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108  examples come and go; no sync is slow there
WORST = Cost(0.25, 100)
PAID = Cost(0.1, 40)
START = ev.RunStart(
    run="r",
    task="t",
    agent="pipeline",
    model="m",
    test_policy=TestPolicy.NEVER,
    gate=Gate.OFF,
    budget=Budget(),
    expected=(),
    tree="",
)


@contextmanager
def fresh() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


def request(worst: Cost = WORST) -> ev.ModelRequest:
    return ev.ModelRequest(tier="mid", model="m", stage="write", reserved_usd=worst.usd, reserved_tokens=worst.tokens)


def call(paid: Cost = PAID) -> ev.ModelCall:
    return ev.ModelCall(
        reply=Reply(), tier="mid", model="m", stage="write", usd=paid.usd, input_tokens=paid.tokens - 1, output_tokens=1
    )


def drawn(ledger: SqliteLedger) -> tuple[int, int, int, int]:
    """Settled and held, money and tokens."""
    spent = ledger.read_total()
    return spent.micro_usd, spent.tokens, spent.held_micro_usd, spent.held_tokens


class One:
    """A run that takes the five steps of its calls one at a time, and may stop between any two."""

    def __init__(self, ledger: SqliteLedger, folder: Path, worst: Cost = WORST, paid: Cost = PAID) -> None:
        self.folder, self.worst, self.paid = folder, worst, paid
        self._ledger = ledger
        self.journal = Journal.create(folder)
        self.journal.append((START,), 0.0)
        self.drawing: LedgerAccount = ledger.open_account(folder.name, folder)
        self.steps = 0
        """Taken of the call at hand."""
        self.refused = ""

    def step(self) -> None:
        if self.steps == 0:
            self._seq = self.journal.mark.seq + 1
            self.refused = self.drawing.reserve(self._seq, self.worst)
            if self.refused:
                return
        elif self.steps == 1:
            self.journal.append((request(self.worst),), 1.0)
        elif self.steps == 3:
            self.journal.append((call(self.paid),), 2.0)
        elif self.steps == 4:
            self.drawing.settle(self._seq, self.paid)
        self.steps = (self.steps + 1) % 5

    def die(self) -> None:
        self.journal.close()
        self.steps = -1

    def go_on(self) -> None:
        self.journal = Journal.open(self.folder)
        self.drawing = self._ledger.open_account(self.folder.name, self.folder)
        self.drawing.recover_own(self.journal.entries)
        self.journal.append((ev.Resume(from_seq=self.journal.mark.seq),), 3.0)
        self.steps = 0


def by_the_journal(folder: Path) -> tuple[int, int]:
    """What the run in *folder* has spent by its own fold, an open request at what it reserved."""
    state = replay(read_journal(folder))
    asked = state.request
    extra = (to_micro_usd(asked.reserved_usd), asked.reserved_tokens) if asked else (0, 0)
    return state.spend.micro_usd + extra[0], state.spend.tokens + extra[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("caps", "calls", "cap"),
    [
        (Caps(usd=1.0), 4, "usd"),
        (Caps(usd=1.24), 4, "usd"),
        (Caps(usd=1.25), 5, "usd"),
        (Caps(usd=0.0), 0, "usd"),
        (Caps(tokens=299), 2, "tokens"),
        (Caps(tokens=300), 3, "tokens"),
        (Caps(usd=1.0, tokens=300), 3, "tokens"),
        (Caps(seconds=0.0), 0, "seconds"),
        (Caps(), 50, ""),
    ],
)
def test_what_is_set_aside_counts_until_a_cap_refuses(tmp_path: Path, caps: Caps, calls: int, cap: str) -> None:
    with SqliteLedger.open(tmp_path / "ledger", caps) as ledger:
        drawing = ledger.open_account("r", tmp_path)
        said = [drawing.reserve(seq, WORST) for seq in range(50)]

    assert said == [""] * calls + [cap] * (50 - calls)


def test_settling_gives_back_what_was_not_spent(tmp_path: Path) -> None:
    with SqliteLedger.open(tmp_path / "ledger", Caps(usd=0.3)) as ledger:
        a, b = ledger.open_account("a", tmp_path / "a"), ledger.open_account("b", tmp_path / "b")
        assert a.reserve(1, WORST) == ""
        assert b.reserve(1, WORST) == "usd"
        a.settle(1, Cost(0.05, 7))
        assert b.reserve(1, WORST) == ""

        assert drawn(ledger) == (50_000, 7, 250_000, 100)
        assert ledger.read_total().usd == 0.05
        assert ledger.read_total().runs == 2


def test_settling_twice_changes_nothing_and_money_is_never_lost(tmp_path: Path) -> None:
    with SqliteLedger.open(tmp_path / "ledger", Caps(usd=0.3)) as ledger:
        drawing = ledger.open_account("r", tmp_path)
        drawing.reserve(3, WORST)
        drawing.settle(3, PAID)
        drawing.settle(3, Cost(0.0, 0))
        assert drawn(ledger) == (100_000, 40, 0, 0)
        drawing.settle(9, Cost(5.0, 1))
        assert drawn(ledger) == (5_100_000, 41, 0, 0)
        assert drawing.reserve(10, Cost(0.0000001)) == "usd"


def test_a_call_is_set_aside_once_and_paid_once(tmp_path: Path) -> None:
    with SqliteLedger.open(tmp_path / "ledger", Caps(usd=0.3)) as ledger:
        drawing = ledger.open_account("r", tmp_path)
        assert [drawing.reserve(3, WORST), drawing.reserve(3, Cost(0.3, 1))] == ["", ""]
        assert drawn(ledger) == (0, 0, 300_000, 1)
        assert drawing.reserve(3, Cost(0.4)) == "usd"
        assert drawn(ledger) == (0, 0, 0, 0), "the request it was for is not in the journal: it is made anew"
        drawing.settle(3, PAID)
        with pytest.raises(Infra, match="the journal of r has lost its call 3"):
            drawing.reserve(3, WORST)
        assert drawing.reserve(4, Cost(0.1)) == ""
        assert drawn(ledger) == (100_000, 40, 100_000, 0)


def test_a_provider_that_claims_too_much_does_not_close_the_ledger(tmp_path: Path) -> None:
    with SqliteLedger.open(tmp_path / "ledger", Caps(tokens=1000)) as ledger:
        a, b = ledger.open_account("a", tmp_path / "a"), ledger.open_account("b", tmp_path / "b")
        assert a.reserve(1, WORST) == b.reserve(1, WORST) == ""
        for n in range(10):
            a.settle(n, Cost(1e30, 2**64))
        b.settle(1, PAID)
        assert b.reserve(2, WORST) == "tokens"
        assert ledger.read_total().tokens > 2**50


def test_time_counts_while_a_run_is_at_work_and_never_between_a_stop_and_a_resume(tmp_path: Path) -> None:
    now = 1000.0
    with SqliteLedger.open(tmp_path / "ledger", Caps(seconds=60.0), lambda: now) as ledger:
        assert ledger.open_account("r", tmp_path).reserve(1, WORST) == ""
        now += 20.0
    now += 86_400.0
    with SqliteLedger.open(tmp_path / "ledger", None, lambda: now) as ledger:
        assert ledger.read_total().seconds == 20.0, "nobody was at work for a day, and who only looks is not either"
        drawing = ledger.open_account("r", tmp_path)
        now += 39.0
        assert drawing.seconds_left() == 1.0
        assert drawing.reserve(2, WORST) == ""
        now += 1.0
        assert drawing.reserve(3, WORST) == "seconds"
        assert ledger.read_total().seconds == 60.0


def test_time_in_which_two_runs_work_counts_once_and_that_of_a_killed_one_as_far_as_it_was_seen(tmp_path: Path) -> None:
    now = 0.0
    one, two = (SqliteLedger.open(tmp_path / "ledger", Caps(seconds=60.0), lambda: now) for _ in range(2))
    first = one.open_account("a", tmp_path)
    now = 10.0
    second = two.open_account("b", tmp_path / "b")
    assert first.reserve(1, WORST) == ""
    now = 30.0
    assert second.reserve(1, WORST) == ""
    one._purse._db.close()  # noqa: SLF001  it was killed at 10

    assert two.read_total().seconds == 30.0
    now = 40.0
    two.close()
    now = 1000.0
    with SqliteLedger.open(tmp_path / "ledger", None, lambda: now) as later:
        assert later.read_total().seconds == 40.0


def text(path: Path) -> None:
    path.write_text("no ledger at all, but long enough to be one " * 30)


def other(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE theirs (x)")
    db.close()


def newer(path: Path) -> None:
    SqliteLedger.open(path, Caps(usd=1.0)).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 2")
    db.close()


@pytest.mark.parametrize("make", [text, other, newer])
def test_a_file_that_is_no_ledger_is_refused_and_left_alone(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "ledger"
    make(path)
    before = path.read_bytes()

    for caps in (Caps(usd=1.0), None):
        with pytest.raises(BadInput, match="is no ledger that this jumar knows; name another file"):
            SqliteLedger.open(path, caps)

    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("caps", "said"),
    [
        (None, "there is no ledger .*; give its caps"),
        (Caps(usd=float("nan")), "cap on usd must be a number from 0, not nan"),
        (Caps(seconds=float("inf")), "cap on seconds must be a number from 0, not inf"),
        (Caps(tokens=-1), "cap on tokens must be a number from 0, not -1"),
    ],
)
def test_what_cannot_be_a_ledger_is_not_made(tmp_path: Path, caps: Caps | None, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        SqliteLedger.open(tmp_path / "ledger", caps)
    with pytest.raises(BadInput, match="is a folder; name a file"):
        SqliteLedger.open(tmp_path, Caps())
    assert not list(tmp_path.iterdir())


def test_an_empty_file_is_not_yet_a_ledger(tmp_path: Path) -> None:
    (tmp_path / "ledger").touch()
    with pytest.raises(BadInput, match="is empty and no ledger yet"):
        SqliteLedger.open(tmp_path / "ledger")
    with SqliteLedger.open(tmp_path / "ledger", Caps(tokens=5)) as ledger:
        assert ledger.caps == Caps(tokens=5)


def test_a_ledger_keeps_the_caps_it_was_made_with(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "ledger"
    SqliteLedger.open(path, Caps(usd=10, tokens=2_000_000)).close()
    for same in (None, Caps(usd=10.0, tokens=2_000_000)):
        with SqliteLedger.open(path, same) as ledger:
            assert ledger.caps == Caps(usd=10.0, tokens=2_000_000)
    with pytest.raises(BadInput, match=r"has the caps usd 10\.0, tokens 2,000,000, not usd 12\.0, seconds 9\.0; ask"):
        SqliteLedger.open(path, Caps(usd=12.0, seconds=9.0))
    with pytest.raises(BadInput, match="not none; ask"):
        SqliteLedger.open(path, Caps())


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Infra, match="cannot make"):
        SqliteLedger.open(tmp_path / "file" / "ledger", Caps())


def test_a_full_disk_leaves_the_ledger_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with SqliteLedger.open(path, Caps(usd=9.0)) as ledger:
        drawing = ledger.open_account("r", tmp_path / "gone")
        drawing.reserve(1, WORST)
        before = drawn(ledger)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
        try:
            with pytest.raises(Infra, match=r"the ledger .* cannot be used: (disk I/O error|database or disk is full)"):
                drawing.settle(1, PAID)
            with pytest.raises(Infra, match="cannot be used"):
                drawing.reserve(2, WORST)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert drawn(ledger) == before == (0, 0, 250_000, 100)
        drawing.settle(1, PAID)
        assert drawn(ledger) == (100_000, 40, 0, 0)


def test_one_who_will_not_let_go_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    with SqliteLedger.open(tmp_path / "ledger", Caps()) as ledger:
        drawing = ledger.open_account("r", tmp_path)
        ledger._purse._db.execute("PRAGMA busy_timeout = 20")  # noqa: SLF001  else the test takes its ten seconds
        rude = sqlite3.connect(tmp_path / "ledger", isolation_level=None)
        rude.execute("BEGIN IMMEDIATE")
        with pytest.raises(Infra, match="cannot be used: database is locked"):
            drawing.reserve(1, WORST)
        rude.close()
        assert drawing.reserve(1, WORST) == ""


LEFT = {
    1: (0, 0),  # reserved, never written down
    2: (250_000, 100),  # written down: the call may be under way
    3: (250_000, 100),
    4: (100_000, 40),  # answered
}


@pytest.mark.parametrize("by", ["open", "refusal", "own"])
@pytest.mark.parametrize("steps", LEFT)
def test_what_a_dead_run_leaves_is_told_by_its_journal(tmp_path: Path, steps: int, by: str) -> None:
    with SqliteLedger.open(tmp_path / "ledger", Caps(usd=0.25)) as ledger:
        run = One(ledger, tmp_path / "r")
        for _ in range(steps):
            run.step()
        assert drawn(ledger) == (0, 0, 250_000, 100)
        ledger.recover()
        assert drawn(ledger) == (0, 0, 250_000, 100), "a run that is alive is left alone"
        run.die()
        if by == "open":
            SqliteLedger.open(tmp_path / "ledger").close()
        elif by == "refusal":
            assert ledger.open_account("another", tmp_path).reserve(1, replace(WORST, usd=1.0)) == "usd"
        else:
            run.go_on()

        assert drawn(ledger) == (*LEFT[steps], 0, 0)
        assert by_the_journal(tmp_path / "r") == LEFT[steps]
        if by != "own":
            run.go_on()
            assert drawn(ledger) == (*LEFT[steps], 0, 0), "doing it again changes nothing"


def test_what_a_dead_run_holds_is_given_to_who_would_be_refused(tmp_path: Path) -> None:
    with SqliteLedger.open(tmp_path / "ledger", Caps(usd=0.25)) as ledger:
        dead, alive = One(ledger, tmp_path / "dead"), One(ledger, tmp_path / "alive")
        dead.step()
        alive.step()
        assert alive.refused == "usd"
        dead.die()
        alive.step()
        assert alive.refused == ""


def lose(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


def damage(folder: Path) -> None:
    lines = (folder / EVENTS).read_bytes()
    (folder / EVENTS).write_bytes(lines.replace(b'"agent":"pipeline"', b'"agent":"nothing"'))


@pytest.mark.parametrize("harm", [lose, damage])
def test_without_a_journal_to_tell_nothing_is_given_back(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    with SqliteLedger.open(tmp_path / "ledger", Caps(usd=0.4)) as ledger:
        run = One(ledger, tmp_path / "r")
        for _ in range(6):
            run.step()
        run.die()
        harm(tmp_path / "r")
        ledger.recover()

        assert drawn(ledger) == (100_000, 40, 250_000, 100)
        assert ledger.open_account("another", tmp_path).reserve(1, Cost(0.06, 1)) == "usd"


def test_a_run_may_move_but_not_be_doubled(tmp_path: Path) -> None:
    with SqliteLedger.open(tmp_path / "ledger", Caps(usd=1.0)) as ledger:
        run = One(ledger, tmp_path / "r")
        run.step()
        run.die()
        lose(tmp_path / "r")
        ledger.recover()
        assert drawn(ledger) == (0, 0, 250_000, 100)
        moved = tmp_path / "elsewhere"
        ledger.open_account("r", moved)
        ledger.recover()
        assert drawn(ledger) == (0, 0, 0, 0)
        copy = tmp_path / "copy"
        copy.mkdir()
        (copy / EVENTS).write_bytes((moved / EVENTS).read_bytes())
        with pytest.raises(BadInput, match=f"the run r draws on the ledger .* from {moved} already, and {copy} is a"):
            ledger.open_account("r", copy)
        (tmp_path / "link").symlink_to(moved)
        ledger.open_account("r", tmp_path / "link")


def test_who_looks_at_a_journal_is_waited_for_and_who_writes_it_is_not(tmp_path: Path) -> None:
    Journal.create(tmp_path).close()
    opened = threading.Event()

    def go_on() -> None:
        with Journal.open(tmp_path), hold_still(tmp_path) as quiet:
            assert not quiet
            opened.set()

    with ThreadPoolExecutor(1) as pool:
        with hold_still(tmp_path) as quiet, hold_still(tmp_path) as too:
            assert quiet
            assert too
            going = pool.submit(go_on)
            assert not opened.wait(0.05)
        going.result(5)
    with Journal.open(tmp_path):
        began = time.monotonic()
        with pytest.raises(BadInput, match="is writing to"):
            Journal.open(tmp_path)
        assert time.monotonic() - began < 0.5
    with hold_still(tmp_path / "nothing") as quiet:
        assert not quiet


@pytest.mark.slow
def test_who_looks_for_ever_is_waited_for_for_a_moment(tmp_path: Path) -> None:
    Journal.create(tmp_path).close()
    with hold_still(tmp_path), pytest.raises(BadInput, match="is writing to"):
        Journal.open(tmp_path)


COSTS = st.builds(Cost, st.floats(0, 0.5), st.integers(1, 300))
OPS = st.lists(st.tuples(st.sampled_from(["step"] * 8 + ["die", "recover"]), st.integers(0, 2)), max_size=60)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(ops=OPS, worst=st.lists(COSTS, min_size=3, max_size=3), share=st.floats(0, 1), cap=st.floats(0, 3))
def test_any_order_of_steps_and_deaths(ops: list[tuple[str, int]], worst: list[Cost], share: float, cap: float) -> None:
    with fresh() as folder, SqliteLedger.open(folder / "ledger", Caps(usd=cap, tokens=1500)) as ledger:
        paid = [Cost(w.usd * share, max(1, int(w.tokens * share))) for w in worst]
        runs = [One(ledger, folder / f"r{n}", worst[n], paid[n]) for n in range(3)]
        for op, n in ops:
            if op == "recover":
                ledger.recover()
            elif runs[n].steps == -1:
                runs[n].go_on()
            elif op == "die":
                runs[n].die()
            else:
                runs[n].step()
            usd, tokens, held, held_tokens = drawn(ledger)
            assert usd + held <= round(cap * MICRO, 3)
            assert tokens + held_tokens <= 1500
        for run in runs:
            run.die()
        ledger.recover()
        sums = [by_the_journal(run.folder) for run in runs]
        assert drawn(ledger) == (sum(s[0] for s in sums), sum(s[1] for s in sums), 0, 0)


class CutOff:
    """A model whose call is cut off while it is in flight."""

    name = "m"

    def __init__(self) -> None:
        self.kernel: Kernel | None = None

    def worst(self, _ask: Ask) -> Cost:
        return WORST

    async def complete(self, _ask: Ask) -> Answer:
        assert self.kernel
        self.kernel.halt(Halt(StopReason.INTERRUPTED, "Ctrl-C"))
        await checkpoint()
        raise AssertionError("a call in flight is cancelled")


class Endless(CutOff):
    """Never answers."""

    async def complete(self, _ask: Ask) -> Answer:
        await anyio.sleep_forever()
        raise AssertionError("a call in flight is cancelled")


def test_a_call_cut_off_in_flight_is_settled_at_what_was_reserved(tmp_path: Path) -> None:
    model = CutOff()
    story = world(tmp_path / "r", (), Terms(model=model))
    with SqliteLedger.open(tmp_path / "ledger", Caps(usd=1.0)) as ledger:
        model.kernel = kernel = story.kernel
        drawing = ledger.open_account("story", tmp_path / "r")
        kernel.shell = EffectRunner(replace(kernel.shell._parts, ledger=drawing))  # noqa: SLF001  no other way to hand it in
        state = anyio.run(kernel.run)

        assert state.end
        assert state.end.stop is StopReason.INTERRUPTED
        assert (state.spend.micro_usd, state.spend.tokens) == (250_000, 100)
        assert drawn(ledger) == (250_000, 100, 0, 0)


@pytest.mark.slow
def test_a_call_in_flight_is_cut_off_when_the_time_of_the_ledger_is_up(tmp_path: Path) -> None:
    story = world(tmp_path / "r", (), Terms(model=Endless()))
    with SqliteLedger.open(tmp_path / "ledger", Caps(usd=1.0, seconds=0.2)) as ledger:
        kernel = story.kernel
        drawing = ledger.open_account("story", tmp_path / "r")
        kernel.shell = EffectRunner(replace(kernel.shell._parts, ledger=drawing))  # noqa: SLF001  as above
        state = anyio.run(kernel.run)

        assert state.end
        assert state.end.stop is StopReason.BUDGET
        assert drawn(ledger) == (250_000, 100, 0, 0)


def test_a_run_that_the_ledger_refuses_stops_for_budget(tmp_path: Path) -> None:
    story = world(tmp_path / "r", ("PASSING = 9", "PASSING = 10"))
    with SqliteLedger.open(tmp_path / "ledger", Caps(usd=0.015)) as ledger:
        drawing = ledger.open_account("story", tmp_path / "r")
        shell = story.kernel.shell
        story.kernel.shell = EffectRunner(replace(shell._parts, ledger=drawing))  # noqa: SLF001  as above
        state = anyio.run(story.kernel.run)

        assert state.end
        assert state.end.stop is StopReason.BUDGET
        assert "usd of the ledger" in state.end.why
        assert drawn(ledger)[0] == state.spend.micro_usd == 10_000


def proven(folder: Path, first: int, count: int) -> list[Said]:
    """What a driver says of its seeds."""
    argv = [sys.executable, "-m", "support.processes.ledger_driver", str(folder), str(first), str(count)]
    done = subprocess.run(
        argv, check=False, capture_output=True, text=True, timeout=1800, env={**os.environ, "PYTHONPATH": str(TESTS)}
    )
    assert done.returncode == 0, done.stderr
    said = [msgspec.json.decode(line, type=Said) for line in done.stdout.splitlines()]
    assert len(said) == count
    for one in said:
        holds(one, done.stderr)
    return said


def holds(said: Said, errors: str) -> None:
    """The two invariants of the ledger, and who says so."""
    what = msgspec.json.encode(said).decode()
    assert not said.faults, f"{what}\n{errors}"
    assert said.drawn[0] <= said.cap, what
    assert said.drawn[1] <= said.token_cap, what
    assert said.spent == said.journals, what
    assert said.held == (0, 0), what
    assert said.spent[0] <= said.drawn[0], what
    assert said.spent[1] <= said.drawn[1], what
    assert said.billed[0] <= said.spent[0] + 1e-6, what
    assert said.billed[1] <= said.spent[1], what


def side_by_side(count: int, first: int = 1) -> list[Said]:
    """*count* seeds in two drivers."""
    with fresh() as folder, ThreadPoolExecutor(2) as pool:
        half = count // 2
        parts = [pool.submit(proven, folder, first, half), pool.submit(proven, folder, first + half, count - half)]
        return [said for part in parts for said in part.result()]


@pytest.mark.slow
def test_a_sample_of_the_seeds() -> None:
    said = side_by_side(8, 7000)

    assert sum(sum(one.killed.values()) for one in said) > 8
    assert sum(one.refused > 0 for one in said) > 2


@pytest.mark.proof
def test_a_thousand_seeds(figure: Callable[[str, str], None]) -> None:
    said = side_by_side(1000)

    killed = sum((Counter(one.killed) for one in said), Counter[str]())
    assert len(killed) >= 17, "a process died at every kind of place"
    stopped = sum(one.refused > 0 for one in said)
    assert stopped > 500, "a cap that is never reached proves nothing"
    figure(
        "ledger",
        f"{len(said)} of {len(said)} seeds: no cap passed, ledger and journals equal to the micro-dollar; "
        f"{sum(one.calls for one in said):,} calls, {killed.total():,} processes killed, a cap reached in {stopped:,}",
    )
