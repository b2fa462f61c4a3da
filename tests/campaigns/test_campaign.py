"""One session of a campaign with a worker of ours: what it is given, and when."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from jumar.campaigns.campaign import Campaign, CampaignLimits
from jumar.campaigns.messages import Report, RolloutEnded
from jumar.campaigns.plan import CampaignPlan, CampaignTask
from jumar.campaigns.schedule import RolloutEnd
from jumar.campaigns.standing import read_standing
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


@pytest.mark.parametrize("last", [ScriptLine(error="server"), ScriptLine(error="timeout")])
def test_any_other_fault_is_counted(tmp_path: Path, last: ScriptLine) -> None:
    standing = read_standing(work(tmp_path / "a", (write_passing(9), *[LIMITED] * 4, last)))

    assert (standing.faults, standing.limit_seconds) == (1, None)
