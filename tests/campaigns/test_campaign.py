"""One session of a campaign with a worker of ours: what it is given, and when."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from msgspec.structs import replace

from jumar.campaigns.campaign import Campaign, CampaignLimits
from jumar.campaigns.journals import add_result, list_open_rollouts
from jumar.campaigns.messages import Report, RolloutEnded
from jumar.campaigns.plan import RUNS, CampaignPlan, CampaignTask
from jumar.campaigns.schedule import OtherEnd, RolloutEnd
from jumar.campaigns.standing import read_standing
from jumar.campaigns.summary import summarise
from jumar.core.state.stop import StopReason
from jumar.models.script import ScriptLine
from jumar.task.option_values import OptionValues
from support.worlds.rollout_world import work, write_passing

PLAN = CampaignPlan(
    began="20261123-101500", tasks=(CampaignTask("a", "/a"), CampaignTask("b", "/b")), options=OptionValues()
)
LIMITED = ScriptLine(error="rate_limit")


class Worker:
    """Answers each order with the next of *answers*."""

    def __init__(self, answers: list[RolloutEnded]) -> None:
        self.active: set[str] = set()
        self.given: list[str] = []
        self._answers = answers
        self._send: MemoryObjectSendStream[Report]
        self._receive: MemoryObjectReceiveStream[Report]
        self._send, self._receive = anyio.create_memory_object_stream[Report](99)

    async def start(self, number: int) -> Worker:
        assert number == 1
        return self

    async def give(self, rollout: str) -> None:
        self.given.append(rollout)
        await self._send.send(self._answers.pop(0))

    async def stop(self, why: str) -> None:
        assert why

    async def dismiss(self) -> None:
        self._send.close()

    async def reports(self) -> AsyncIterator[Report]:
        async for report in self._receive:
            yield report
        self._receive.close()

    def kill(self) -> None:
        self._send.close()


def limited_end(folder: Path, name: str) -> RolloutEnded:
    standing = read_standing(work(folder / name, (write_passing(9), *[LIMITED] * 5)))
    assert standing.result is not None
    assert (standing.result.stop, standing.faults, standing.limit_seconds) == (StopReason.INFRA, 0, 0.0)
    return RolloutEnded(f"{name}-r001", standing.result, limit_seconds=standing.limit_seconds)


def test_at_a_limit_of_the_provider_nothing_is_begun_until_it_has_passed(tmp_path: Path) -> None:
    told: list[str] = []
    worker = Worker([limited_end(tmp_path, "a")])
    session = Campaign(PLAN, tmp_path, worker.start, CampaignLimits(1, 1), told.append)

    async def run() -> tuple[RolloutEnd, ...]:
        async with anyio.create_task_group() as tasks:

            async def stop_once_told() -> None:
                while not told:
                    await anyio.lowlevel.checkpoint()
                await session.stop("enough")

            tasks.start_soon(stop_once_told)
            return await session.run()
        raise AssertionError

    ends = anyio.run(run)

    assert told == ["a-r001: a limit of the provider; it goes on in 15 s"]
    assert worker.given == ["a-r001"], "b-r001 would meet the same limit"
    assert [(end.rollout, end.stop) for end in ends] == [("a-r001", "interrupted"), ("b-r001", "not_begun")]


def test_a_session_whose_last_rollouts_are_a_plateau_ends(tmp_path: Path) -> None:
    result = read_standing(work(tmp_path / "a", (write_passing(1),))).result
    assert result is not None
    plan = replace(PLAN, tasks=PLAN.tasks[:1], rollouts=3, patience=1)
    worker = Worker([RolloutEnded(f"a-r00{number}", result) for number in (1, 2)])
    session = Campaign(plan, tmp_path, worker.start, CampaignLimits(1, 1), lambda _: None)

    async def run() -> tuple[RolloutEnd, ...]:
        with anyio.fail_after(20):
            return await session.run()

    assert [end.stop for end in anyio.run(run)][2] == "plateau"


@pytest.mark.parametrize("last", [ScriptLine(error="server"), ScriptLine(error="timeout")])
def test_any_other_fault_is_counted(tmp_path: Path, last: ScriptLine) -> None:
    standing = read_standing(work(tmp_path / "a", (write_passing(9), *[LIMITED] * 4, last)))

    assert (standing.faults, standing.limit_seconds) == (1, None)


def test_what_a_broken_rollout_spent_is_in_its_end_and_what_cannot_go_on_is_not_open(tmp_path: Path) -> None:
    for name, lines in (("a", (write_passing(9),)), ("b", (write_passing(9), ScriptLine(error="server")))):
        (tmp_path / RUNS).mkdir(exist_ok=True)
        work(tmp_path / RUNS / f"{PLAN.began}-{name}-r001", lines)
    broken = RolloutEnd("b-r001", "b", OtherEnd.INFRA, None, "no space left")
    end = add_result(broken, tmp_path / RUNS / f"{PLAN.began}-b-r001")

    assert end.result is not None
    assert (end.result.stop, end.result.usd, end.result.why) == ("infra", 0.01, "no space left")
    assert summarise("c", (end,), "").usd == 0.01
    assert add_result(broken, tmp_path / "nowhere") == broken
    assert list_open_rollouts(tmp_path, PLAN) == ("b-r001",)
    assert list_open_rollouts(tmp_path, replace(PLAN, retries=0)) == (), "its retries are used up"
    assert list_open_rollouts(tmp_path, replace(PLAN, rollouts=2, retries=0)) == ("a-r002", "b-r002")
    left = replace(PLAN, rollouts=3, retries=0, tasks=PLAN.tasks[:1], patience=1)
    work(tmp_path / RUNS / f"{PLAN.began}-a-r002", (write_passing(9),))
    assert list_open_rollouts(tmp_path, left) == (), "the last one brought it no further"
