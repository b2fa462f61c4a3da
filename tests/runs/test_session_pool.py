"""Runs that hosts have open: one call at a time, none lost, none mixed, and left as they are when nobody is there."""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from jumar.errors import BadInput, Infra
from jumar.runs.session_pool import MOST
from support.processes.fake_sessions import House, call, task, told, until


def test_calls_of_one_run_are_done_one_after_the_other(tmp_path: Path) -> None:
    async def story(house: House) -> None:
        await house.desk.open("c", task("a"))
        async with anyio.create_task_group() as group:
            group.start_soon(house.desk.act, "c", "", call("slow"))
            await until(lambda: "a slow begins" in house.log)
            for name in ("one", "two", "three"):
                group.start_soon(house.desk.act, "c", "", call(name))
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            assert house.log[-1] == "a slow begins"
            house.runs[0].go_on.set()

    log = told(tmp_path, story)
    assert log[:3] == ["a in", "a slow begins", "a slow ends"]
    assert log[-1] == "a out"
    assert all(f"{a.removesuffix(' begins')} ends" == b for a, b in zip(log[1:-1:2], log[2:-1:2], strict=True))


def test_runs_of_two_clients_do_not_wait_for_each_other(tmp_path: Path) -> None:
    async def story(house: House) -> None:
        await house.desk.open("c", task("a"))
        await house.desk.open("d", task("b"))
        async with anyio.create_task_group() as group:
            group.start_soon(house.desk.act, "c", "", call("slow"))
            await until(lambda: "a slow begins" in house.log)
            session, _ = await house.desk.act("d", "", call("one"))
            assert session.folder.name == "b"
            house.runs[0].go_on.set()

    log = told(tmp_path, story)
    assert log.index("b one ends") < log.index("a slow ends")


def test_a_call_that_is_given_up_while_it_is_done_is_done_and_one_that_waits_is_not(tmp_path: Path) -> None:
    async def story(house: House) -> None:
        await house.desk.open("c", task("a"))
        async with anyio.create_task_group() as group:
            group.start_soon(house.desk.act, "c", "", call("slow"))
            await until(lambda: "a slow begins" in house.log)
            group.start_soon(house.desk.act, "c", "", call("waiting"))
            await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        house.runs[0].go_on.set()
        await house.desk.act("c", "", call("next"))

    log = told(tmp_path, story)
    assert log == ["a in", "a slow begins", "a slow ends", "a next begins", "a next ends", "a out"]


def test_a_second_task_of_a_session_is_refused_while_the_first_is_open(tmp_path: Path) -> None:
    async def story(house: House) -> None:
        await house.desk.open("c", task("a"))
        with pytest.raises(BadInput, match="run a is still open; call finish"):
            await house.desk.open("c", task("b"))
        await house.desk.act("c", "", call("final"))
        await house.desk.open("c", task("b"))

    assert told(tmp_path, story) == ["a in", "a final begins", "a final ends", "a out", "b in", "b out"]


def test_a_client_without_a_session_names_its_run(tmp_path: Path) -> None:
    async def story(house: House) -> None:
        await house.desk.open("", task("a"))
        await house.desk.open("", task("b"))
        with pytest.raises(BadInput, match="no task is open here"):
            await house.desk.act("", "", call("one"))
        session, _ = await house.desk.act("", "b", call("one"))
        assert session.folder.name == "b"

    told(tmp_path, story)


@pytest.mark.parametrize("name", ["..", ".", "a/b", "/etc", "a\0b", "missing"])
def test_a_name_that_is_none_of_a_run_is_refused(tmp_path: Path, name: str) -> None:
    async def story(house: House) -> None:
        with pytest.raises(BadInput, match=r"no name of a run|there is no run"):
            await house.desk.act("c", name, call("one"))

    assert told(tmp_path, story) == []


def test_what_cannot_be_opened_is_said_and_takes_no_place(tmp_path: Path) -> None:
    async def story(house: House) -> None:
        for _ in range(MOST + 1):
            with pytest.raises(BadInput, match="bad cannot be opened"):
                await house.desk.open("c", task("bad"))
        await house.desk.open("c", task("a"))

    told(tmp_path, story)


def test_so_many_runs_are_open_at_once_and_no_more(tmp_path: Path) -> None:
    async def story(house: House) -> None:
        for number in range(MOST):
            await house.desk.open("", task(f"run{number}"))
        with pytest.raises(BadInput, match="16 runs are open here already"):
            await house.desk.open("", task("more"))
        await house.desk.act("", "run3", call("final"))
        await house.desk.open("", task("more"))

    told(tmp_path, story)


def test_a_run_of_which_nothing_is_asked_is_left(tmp_path: Path) -> None:
    async def story(house: House) -> None:
        await house.desk.open("c", task("a"))
        await until(lambda: "a out" in house.log)

    assert told(tmp_path, story, idle_seconds=0.01) == ["a in", "a out"]


def test_a_client_that_leaves_lets_go_of_its_run_when_what_it_asked_is_done(tmp_path: Path) -> None:
    async def story(house: House) -> None:
        await house.desk.open("c", task("a"))
        await house.desk.open("d", task("b"))
        async with anyio.create_task_group() as group:
            group.start_soon(house.desk.act, "c", "", call("slow"))
            await until(lambda: "a slow begins" in house.log)
            group.start_soon(house.desk.leave, "c")
            await anyio.lowlevel.checkpoint()
            house.runs[0].go_on.set()
        assert house.log[-1] == "a out"

    assert told(tmp_path, story) == ["a in", "b in", "a slow begins", "a slow ends", "a out", "b out"]


@pytest.mark.parametrize(("name", "why"), [("break", "the disk is gone"), ("bug", "a bug of jumar: LookupError")])
def test_a_run_that_breaks_tells_its_client_and_leaves_the_others_alone(tmp_path: Path, name: str, why: str) -> None:
    async def story(house: House) -> None:
        await house.desk.open("c", task("a"))
        await house.desk.open("d", task("b"))
        with pytest.raises(Infra, match=why):
            await house.desk.act("c", "", call(name))
        await house.desk.act("d", "", call("one"))

    log = told(tmp_path, story)
    assert log.index("a out") < log.index("b one begins")


def test_what_waits_when_the_run_ends_is_told_so(tmp_path: Path) -> None:
    async def story(house: House) -> None:
        await house.desk.open("c", task("a"))

        async def too_late() -> None:
            with pytest.raises(BadInput, match="ended or was left while this call waited"):
                await house.desk.act("c", "", call("one"))

        async with anyio.create_task_group() as group:
            group.start_soon(house.desk.act, "c", "", call("slow"))
            await until(lambda: "a slow begins" in house.log)
            group.start_soon(house.desk.act, "c", "", call("final"))
            await anyio.lowlevel.checkpoint()
            group.start_soon(too_late)
            await anyio.lowlevel.checkpoint()
            house.runs[0].go_on.set()

    told(tmp_path, story)
