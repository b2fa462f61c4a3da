"""A kept process gives feedback on red trees alone; a fresh one judges the rest, and takes over after any doubt."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import anyio
import pytest

from jumar.child import start
from jumar.core.state.settings import Suite
from jumar.ports import Invocation, Verification
from jumar.runners.command import CommandRunner
from jumar.verify import kept_process
from jumar.verify.kept_process import KeptRuns
from support.judging.real_verifier import Court
from support.processes import fake_resident

IDS = ("t::a", "t::b")
QUICK = Suite(timeout_seconds=20.0)


class AnswersRunner(CommandRunner):
    """The adapter of `fake_resident`."""

    name = "answers"
    sources = re.compile(r".*\.src")

    def verification(self, suite: Suite, room: Path, ids: Sequence[str]) -> Invocation:  # noqa: ARG002
        return self._program({"ids": list(ids)})

    def resident(self, suite: Suite) -> Invocation:  # noqa: ARG002
        return self._program({})

    def _program(self, config: Mapping[str, object]) -> Invocation:
        argv = (sys.executable, "-I", "-S", "-B", *start.build_command(str(fake_resident.__file__)))
        return Invocation(argv=argv, config=config)


class WarmCourt(Court):
    """Judges answers; the untouched tree has none that pass."""

    def __init__(self, folder: Path, suite: Suite = QUICK) -> None:
        super().__init__(folder, suite)
        self.verifier.runner, self.verifier.expected = AnswersRunner(), IDS
        self.verifier.base = self.answers("failed", "failed")
        self.warm = self.verifier.kept = KeptRuns()
        self.judge(self.answers("error", "error"), {})  # the first one is never warm

    def answers(self, *outcomes: str, quirk: str = "none", **more: str) -> str:
        text = "\n".join(f"{i} {outcome}" for i, outcome in zip(IDS, outcomes, strict=True))
        return self.tree({"answers.src": text, "quirk.txt": quirk, **{f"{k}.src": v for k, v in more.items()}})

    def rule(self, *outcomes: str, quirk: str = "none", **more: str) -> tuple[str, ...]:
        """How the two tests of such a tree come out."""
        done = self.judge(self.answers(*outcomes, quirk=quirk, **more), {})
        return tuple(self.outcomes(done).values())

    def pid(self, done: Verification) -> str:
        """The process that judged."""
        return self.output(done).strip()


@pytest.fixture
def court(tmp_path: Path) -> Iterator[WarmCourt]:
    court = WarmCourt(tmp_path)
    yield court
    court.warm.release()
    assert not court.survivors()


RED = ("failed", "passed"), ("passed", "failed"), ("timeout", "passed"), ("failed", "error")


@pytest.mark.slow
def test_one_process_judges_many_red_trees_and_leaves_nothing(court: WarmCourt) -> None:
    assert [court.rule(*red) for red in RED * 2] == [*RED * 2]

    done = [court.judge(court.answers(*red), {}) for red in RED]

    assert court.warm.counts == {"the first verification": 1, "compared": 2, "warm": 10}
    assert court.pid(done[0]) == court.pid(done[1]) == court.pid(done[3]) != court.pid(done[2])
    assert len(set(court.survivors())) == 1
    court.warm.release()
    assert not court.survivors()
    assert not list((court.folder / "run" / "rooms").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("outcomes", [("passed", "passed"), ("passed", "skipped"), ("xfailed", "xpassed")])
def test_no_green_comes_from_a_kept_process(court: WarmCourt, outcomes: tuple[str, str]) -> None:
    court.rule("failed", "passed")
    kept = court.judge(court.answers("failed", "skipped"), {})

    done = court.judge(court.answers(*outcomes), {})

    assert court.warm.counts["green"] == 1
    assert court.pid(done) != court.pid(kept)


@pytest.mark.slow
def test_the_untouched_tree_and_a_second_one_at_a_time_are_judged_afresh(court: WarmCourt) -> None:
    court.rule("failed", "passed")
    court.judge(court.verifier.base, {})
    trees, done = [court.answers(*red) for red in RED[:2]], dict[str, Verification]()

    async def verify(tree: str) -> None:
        done[tree] = await court.verifier.verify(tree, {})

    async def both() -> None:
        async with anyio.create_task_group() as group:
            for tree in trees:
                group.start_soon(verify, tree)

    anyio.run(both)

    assert [tuple(court.outcomes(done[tree]).values()) for tree in trees] == [*RED[:2]]
    assert court.warm.counts["the untouched tree"] == 1
    assert court.warm.counts["another verification runs"] == 1


@pytest.mark.slow
def test_files_that_it_does_not_read_anew_take_another_process(court: WarmCourt) -> None:
    def judge(**more: str) -> str:
        return court.pid(court.judge(court.answers("failed", "passed", **more), {}))

    court.rule("failed", "passed")
    first, second = judge(code="a = 1"), judge(code="a = 2")

    assert first == second
    assert judge(code="a = 2", more="b = 1") != second
    third = judge(code="a = 2", held="1")
    assert third == judge(code="a = 3", held="1")
    assert third != judge(code="a = 3", held="2")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("quirk", "why"),
    [
        ("declines", "it will not"),
        ("dies", "it ended: "),
        pytest.param("hangs", "no answer", marks=pytest.mark.proof),
    ],
)
def test_a_process_that_does_not_answer_is_replaced_and_given_up_after_the_third(
    tmp_path: Path, quirk: str, why: str
) -> None:
    court = WarmCourt(tmp_path, Suite(timeout_seconds=1.5))

    for _ in range(kept_process.REFUSALS + 1):
        assert court.rule("failed", "passed", quirk=quirk) == ("failed", "passed")

    assert court.warm.off.startswith(why)


@pytest.mark.slow
def test_a_project_that_cannot_be_kept_is_tried_once(court: WarmCourt) -> None:
    assert court.rule("failed", "passed", quirk="declines for good") == ("failed", "passed")

    assert court.warm.off == "it will not"
    assert court.rule("failed", "passed") == ("failed", "passed")
    assert court.warm.counts["it will not"] == 2


@pytest.mark.slow
def test_a_process_that_leaves_something_takes_no_other_order(court: WarmCourt) -> None:
    court.rule("failed", "passed", quirk="leaves")

    assert court.rule("error", "passed", quirk="leaves") == ("error", "passed")

    assert court.warm.counts["a file was left"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("later", [("passed", "passed"), ("error", "failed")])
def test_a_difference_from_a_fresh_process_ends_it_with_a_warning(court: WarmCourt, later: tuple[str, str]) -> None:
    court.rule("failed", "passed", quirk="is stale")
    for _ in range(kept_process.COMPARED - 1):
        court.rule("failed", "passed", quirk="is stale")

    done = court.judge(court.answers(*later, quirk="is stale"), {})

    assert tuple(court.outcomes(done).values()) == later
    assert "judged otherwise than a fresh one (t::a)" in done.warnings[-1]
    assert court.warm.off
    assert not court.survivors()


@pytest.mark.slow
def test_a_process_is_replaced_after_so_many_orders(court: WarmCourt) -> None:
    court.warm.most = 2

    pids = [court.pid(court.judge(court.answers("failed", "passed", code=str(n)), {})) for n in range(5)]

    assert pids[1] != pids[2] == pids[3] != pids[4]
