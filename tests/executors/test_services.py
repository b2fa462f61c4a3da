"""Services of a campaign on a cluster: an attempt that was taken for lost costs money and decides nothing."""

from __future__ import annotations

from pathlib import Path

import anyio
import msgspec
import pytest

from jumar.campaigns.worker_process import WorkerSettings
from jumar.cli.main import call
from jumar.core.state.budget import Cost
from jumar.core.state.verdict import Ended, Outcome, TestResult, Verdict
from jumar.errors import BadInput, Infra
from jumar.executors.builds import NodeBuild, describe_build, explain_skew
from jumar.executors.choose import Executor, ExecutorChoice, write_off_lost_attempts
from jumar.executors.services import LedgerService, VerdictService
from jumar.journal.ledger import Caps, SqliteLedger
from jumar.ports import Verification
from jumar.runs.judging.verdict_store import StoredVerdict

DONE = Verification(
    verdict=Verdict({"t::a": TestResult("t::a", Outcome.PASSED)}, frozenset({"t::a"})),
    ended=Ended.NORMAL, executions=1, duration_ms=9, output="001.txt", grade="D", natives={"t::a": "n::a"},
)  # fmt: skip
FOUND = msgspec.json.encode(StoredVerdict(DONE, "runs/r"))


def read_changes(path: Path) -> int:
    """SQLite's counter of the transactions that changed the file."""
    return int.from_bytes(path.read_bytes()[24:28], "big")


@pytest.fixture
def anyio_backend() -> str:
    """The loop that actors have."""
    return "asyncio"


@pytest.mark.anyio
class TestTheLedger:
    """The ledger, for runs elsewhere."""

    async def test_money_of_a_lost_attempt_stays_spent_and_its_numbers_are_free(self, tmp_path: Path) -> None:
        path = tmp_path / "ledger.db"
        SqliteLedger.open(path, Caps(usd=1.0)).close()
        service = LedgerService(str(path))
        await service.begin("r", "first", ())
        assert await service.reserve("r", "first", 1, Cost(0.3, 5)) == ""
        await service.settle("r", "first", 1, Cost(0.2, 5))
        assert await service.reserve("r", "first", 4, Cost(0.3, 5)) == ""

        await service.begin("r", "second", ())

        with pytest.raises(Infra, match="begun again elsewhere"):
            await service.reserve("r", "first", 6, Cost(0.1, 1))
        with pytest.raises(Infra, match="begun again elsewhere"):
            await service.collect("r", "first", "runs/r", {})
        assert await service.reserve("r", "second", 1, Cost(0.6, 5)) == "usd", "0.2 paid and 0.3 in flight were lost"
        assert await service.reserve("r", "second", 1, Cost(0.5, 5)) == ""
        await service.settle("r", "second", 1, Cost(0.1, 1))
        await service.collect("r", "second", str(tmp_path / "runs" / "r"), {1: Cost(0.1, 1)})
        await service.close()
        with SqliteLedger.open(path) as ledger:
            assert (ledger.read_total().usd, ledger.read_total().held_micro_usd) == (0.6, 0)

    async def test_calls_that_the_journal_knows_stay_its_own(self, tmp_path: Path) -> None:
        path = tmp_path / "ledger.db"
        SqliteLedger.open(path, Caps(usd=1.0)).close()
        service = LedgerService(str(path))
        for attempt, seq in (("first", 1), ("first", 4)):
            await service.begin("r", attempt, (1,))
            assert await service.reserve("r", attempt, seq, Cost(0.3, 0)) == ""
            await service.settle("r", attempt, seq, Cost(0.2, 0))

        await service.begin("r", "second", (1,))

        with pytest.raises(Infra, match="has as paid"):
            await service.reserve("r", "second", 1, Cost(0.1, 0))
        assert await service.reserve("r", "second", 4, Cost(0.1, 0)) == ""
        await service.close()

    async def test_calls_that_come_together_are_one_transaction_and_each_has_its_own_answer(
        self, tmp_path: Path
    ) -> None:
        path = tmp_path / "ledger.db"
        SqliteLedger.open(path, Caps(usd=1.0)).close()
        service, told = LedgerService(str(path)), dict[int, str]()
        await service.begin("r", "one", ())
        await service.settle("r", "one", 3, Cost(0.1, 0))
        before = read_changes(path)

        async def reserve(seq: int) -> None:
            try:
                told[seq] = await service.reserve("r", "one", seq, Cost(0.2, 0))
            except Infra as error:
                told[seq] = str(error)

        async with anyio.create_task_group() as tasks:
            for seq in range(10):
                tasks.start_soon(reserve, seq)
        assert [told[seq] for seq in (0, 1, 2, 4, 5, 6, 7, 8, 9)] == ["", "", "", "", *["usd"] * 5]
        assert "has as paid" in told[3]
        assert read_changes(path) == before + 1
        await service.close()

    async def test_an_actor_that_is_started_again_knows_the_attempts(self, tmp_path: Path) -> None:
        path = tmp_path / "ledger.db"
        SqliteLedger.open(path, Caps()).close()
        first = LedgerService(str(path))
        await first.begin("r", "one", ())
        await first.close()

        again = LedgerService(str(path))

        assert (await again.reserve("r", "one", 1, Cost(1.0, 1)), await again.seconds_left()) == ("", None)
        with pytest.raises(Infra, match="taken for lost"):
            await again.settle("r", "two", 1, Cost(1.0, 1))
        await again.close()

    async def test_a_campaign_goes_on_here_when_its_cluster_is_gone(self, tmp_path: Path) -> None:
        path = tmp_path / "ledger.db"
        SqliteLedger.open(path, Caps(usd=1.0)).close()
        service = LedgerService(str(path))
        await service.begin("r", "one", ())
        await service.reserve("r", "one", 1, Cost(0.3, 5))
        await service.close()
        (tmp_path / "runs").mkdir()

        write_off_lost_attempts(WorkerSettings(tmp_path, {}, 1, 0))

        with SqliteLedger.open(path) as ledger:
            account = ledger.open_account("r", tmp_path / "runs" / "r")
            assert ledger.read_total().usd == 0.3
            assert (account.reserve(1, Cost(0.8, 0)), account.reserve(1, Cost(0.7, 0))) == ("usd", "")


class TestTheVerdicts:
    """The store of verdicts, for runs elsewhere."""

    def test_one_works_on_a_question_and_the_others_get_its_answer(self, tmp_path: Path) -> None:
        service, told = VerdictService(str(tmp_path / "v.db")), list[bytes | None]()

        async def ask(asker: str) -> None:
            told.append(await service.ask(b"question", asker))

        async def play() -> None:
            assert await service.ask(b"question", "one") is None
            assert await service.ask(b"question", "one") is None, "its first answer may have got lost"
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, "two")
                tasks.start_soon(ask, "three")
                await anyio.wait_all_tasks_blocked()
                await service.answer(b"question", "two", FOUND)
                assert told == [], "it is not the one that works on it"
                await service.answer(b"question", "one", FOUND)

        anyio.run(play)
        assert told == [FOUND, FOUND]

    def test_who_is_gone_holds_nobody_up(self, tmp_path: Path) -> None:
        service, told = VerdictService(str(tmp_path / "v.db")), list[bytes | None]()

        async def ask() -> None:
            told.append(await service.ask(b"question", "two"))

        async def play() -> None:
            await service.ask(b"question", "one")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await anyio.wait_all_tasks_blocked()
                await service.forget("one")

        anyio.run(play)
        assert told == [None], "the next one works on it"


class TestTheChoice:
    """What is refused before anything is made."""

    def test_other_code_on_a_node_is_named_in_one_sentence(self) -> None:
        ours = describe_build()

        assert explain_skew(ours, ours) == ""
        assert "runs Python 3.9 and this campaign" in explain_skew(ours, ours._replace(python="3.9"))
        assert "has no jumar" in explain_skew(ours, NodeBuild("n", ours.python, "", ""))
        assert "has jumar 9.9 and this campaign" in explain_skew(ours, ours._replace(version="9.9"))
        assert "another build of jumar" in explain_skew(ours, ours._replace(sources="0"))

    @pytest.mark.parametrize(
        ("choice", "said"),
        [
            (ExecutorChoice(collect="s3://x"), "--collect is an option of --executor ray"),
            (ExecutorChoice(ray_address="auto"), "--ray-address is an option"),
            (ExecutorChoice(Executor.RAY, processes=2), "--processes is an option of --executor local"),
        ],
    )
    def test_an_option_that_would_do_nothing_is_refused(self, choice: ExecutorChoice, said: str) -> None:
        with pytest.raises(BadInput, match=said):
            choice.check()

    def test_it_is_refused_before_a_campaign_is_made(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        assert call(["batch", "x", "--collect", "s3://x", "--campaign", str(tmp_path / "c")]) == 2
        assert "--collect is an option of --executor ray" in capfd.readouterr().err
        assert not (tmp_path / "c").exists()
