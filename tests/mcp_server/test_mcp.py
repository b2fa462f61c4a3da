"""The gate as an MCP server, driven by the official client: red, claim, edit, green, and refused where it should be."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from jumar.cli.main import call
from jumar.mcp_server import tools as calls
from jumar.mcp_server.dispatch import ToolDispatcher, resolve_inside
from jumar.mcp_server.server import build_server
from jumar.runs.setup.marks import Trust
from jumar.task.task import Task
from support.processes.fake_sessions import ADD, HALF, SOURCE, TRUTH, House, repository, told

mcp = pytest.importorskip("mcp", reason="the MCP SDK is not installed: pip install 'jumar[mcp]'")

JUMAR = [sys.executable, "-m", "jumar.cli.main"]


class Guest:
    """A client and what it was answered."""

    def __init__(self, client: Any) -> None:
        self.client, self.run = client, ""

    async def done(self, name: str, **arguments: object) -> dict[str, Any]:
        """Call a tool, which must do it; its structured answer."""
        answer = await self.call(name, **arguments)
        assert not answer.is_error, answer.content[0].text
        assert answer.structured_content["ok"] is True
        said: dict[str, Any] = answer.structured_content
        return said

    async def refused(self, name: str, **arguments: object) -> str:
        """Call a tool, which must refuse; why."""
        answer = await self.call(name, **arguments)
        assert answer.is_error, answer.content[0].text
        assert answer.structured_content["ok"] is False
        why = str(answer.structured_content["reason"])
        assert answer.content[0].text.startswith(f"refused: {why}")
        return why

    async def call(self, name: str, **arguments: object) -> Any:
        """Call a tool. The client checks the answer against the tool's schema."""
        run = {"run": self.run} if self.run and name != "open_task" else {}
        return await self.client.call_tool(name, {**run, **arguments})


def visiting(folder: Path, story: Callable[[Guest, House], Awaitable[None]]) -> list[str]:
    """Play *story* with a client in this process and runs that are none."""
    root = folder.resolve()

    async def play(house: House) -> None:
        gatehouse = ToolDispatcher(house.desk, (root,), lambda path, _: Task(root=path, name=path.name), Trust({}))
        async with mcp.Client(build_server(gatehouse, alone=True)) as client:
            await story(Guest(client), house)

    return told(folder, play)


def test_every_tool_has_schemas_annotations_and_words_that_a_host_can_show(tmp_path: Path) -> None:
    async def story(guest: Guest, _: House) -> None:
        listed = (await guest.client.list_tools()).tools
        assert [tool.name for tool in listed] == list(calls.OFFERS)
        for tool in listed:
            offer, hints = calls.OFFERS[tool.name], tool.annotations
            assert tool.title
            assert tool.description
            assert (hints.read_only_hint, hints.destructive_hint) == (offer.reads, offer.destroys)
            assert (hints.idempotent_hint, hints.open_world_hint) == (offer.repeats, False)
            assert not (offer.reads and offer.destroys)
            assert tool.input_schema["type"] == tool.output_schema["type"] == "object"
            assert tool.input_schema["additionalProperties"] is False
            assert "$ref" not in str(tool.input_schema) + str(tool.output_schema)
            for schema in tool.input_schema["properties"].values():
                assert schema["description"], f"{tool.name} leaves an argument unexplained"
        named = {tool.name: tool.input_schema for tool in listed}
        assert named["open_task"]["required"] == ["path"]
        assert named["edit_claim"]["required"] == ["test_id", "edit_target"]
        assert named["submit_plan"]["properties"]["steps"]["items"]["required"] == ["title"]

    visiting(tmp_path, story)


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("read_file", {}, "missing required field `path`"),
    ("read_file", {"path": 3}, r"Expected `str`, got `int` - at `\$.path`"),
    ("read_file", {"path": "a", "lines": 3}, "unknown field `lines`; its arguments are run, path, start, end"),
    ("read_file", {"path": "a", "start": "1"}, "Expected `int`, got `str`"),
    ("write_file", {"path": "a", "text": None}, "Expected `str`, got `null`"),
    ("run_tests", {"test_ids": "all"}, "Expected `array`, got `str`"),
    ("submit_plan", {"steps": [{"test_id": "a"}]}, "missing required field `title`"),
    ("finish", {"apply": "yes"}, "Expected `bool`, got `str`"),
    ("open_task", {"path": ["."]}, "Expected `str`, got `array`"),
    ("leave", {}, "there is no tool 'leave'; there are open_task, run_tests"),
    ("run_tests", {}, "no task is open here: call open_task first"),
    ("edit_file", {"path": "a", "old": "b", "new": "c", "run": "../.."}, "'../..' is no name of a run"),
    ("status", {"run": "ü" * 128}, "is no name of a run"),
    ("status", {"run": "20260101-000000-x-000000"}, "there is no run '20260101-000000-x-000000' here"),
]


def test_a_wrong_call_is_answered_with_a_reason_and_is_no_error_of_the_protocol(tmp_path: Path) -> None:
    async def story(guest: Guest, _: House) -> None:
        for name, arguments, why in WRONG:
            with pytest.raises(AssertionError, match=why):
                raise AssertionError(await guest.refused(name, **arguments))

    assert visiting(tmp_path, story) == []


def test_what_a_session_says_reaches_the_client_and_a_long_text_arrives_whole(tmp_path: Path) -> None:
    root, text = str(tmp_path.resolve()), "x = '" + "ü\u2028\x85😀" * 300_000 + "'\n"

    async def story(guest: Guest, house: House) -> None:
        assert (await guest.done("status"))["roots"] == [root]
        opened = await guest.done("open_task", path=".")
        assert opened["tests"] == {"mode": "strict", "passed": 0, "total": 1, "red": ["t.py::a"]}
        assert (await guest.done("write_file", path="a.py", text=text))["shown"] == "done"
        assert house.runs[0].calls[-1].arguments == {"path": "a.py", "text": text}

    visiting(tmp_path, story)


class TestWhereTasksMayBeOpened:
    """A path of a host's is followed to where it leads before it is believed."""

    def test_below_a_root_and_nowhere_else(self, tmp_path: Path) -> None:
        root, other = tmp_path / "root", tmp_path / "root-2"
        (root / "a").mkdir(parents=True)
        other.mkdir()
        (root / "in").symlink_to(root / "a")
        (root / "out").symlink_to(other)
        (root / "ring").symlink_to(root / "ring")
        roots = (root.resolve(),)
        assert resolve_inside(roots, ".") == root.resolve()
        assert resolve_inside(roots, "in") == resolve_inside(roots, str(root / "a")) == (root / "a").resolve()
        for path in ("..", "out", "a/../../root-2", str(other), "/", "/etc/passwd"):
            with pytest.raises(Exception, match="lies outside of what may be worked on here"):
                resolve_inside(roots, path)
        for path in ("missing", "ring", "a\0b", "a" * 5000, "~"):
            with pytest.raises(Exception, match="there is no"):
                resolve_inside(roots, path)
        assert resolve_inside((root.resolve(), other.resolve()), "out") == other.resolve()


class TestTheCommand:
    """`jumar mcp` before it serves anybody."""

    @pytest.mark.parametrize(
        ("argv", "why"),
        [
            (["missing"], "missing is no folder"),
            (["--token", "t"], "--token and --no-token are for --http"),
            (["--http", "0", "--token", "t", "--no-token"], "contradict each other"),
            (["--http", "0", "--token", "ü"], "printable ASCII"),
            (["--http", "0", "--token", ""], "printable ASCII"),
            (["--gate", "refactor", "--allow-refactor"], "leave the strict gate"),
            (["--gate", "off"], "'off' is not one of 'strict', 'refactor'"),
        ],
    )
    def test_what_cannot_work_is_refused_in_one_sentence(
        self, argv: list[str], why: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert call(["mcp", *argv]) == 2
        said = capsys.readouterr()
        assert why in said.err
        assert not said.out

    def test_a_host_that_starts_it_at_the_top_of_the_file_system_opens_nothing_by_that(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir("/")
        assert call(["mcp"]) == 2
        assert "name the folders in which tasks may be opened" in capsys.readouterr().err


@asynccontextmanager
async def over_stdio(root: Path, mode: str) -> AsyncIterator[Guest]:
    """A client of a server process of its own."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    runs = ["--runs", str(root.parent / "runs")]
    process = mcp.StdioServerParameters(command=JUMAR[0], args=[*JUMAR[1:], "mcp", str(root), *runs], env=env)
    async with mcp.Client(process, mode=mode) as client:
        yield Guest(client)


async def red_claim_edit_green(guest: Guest, root: Path) -> None:
    """The whole way, with every refusal there is on it."""
    opened = await guest.done("open_task", path=str(root))
    guest.run = guest.run and opened["run"]
    assert opened["tests"] == {"mode": "strict", "passed": 1, "total": 3, "red": [ADD, HALF]}
    assert "assert -1 == 5" in opened["shown"]
    assert (Path(opened["workspace"]) / "calc.py").read_text() == SOURCE

    fix = {"path": "calc.py", "old": "a - b", "new": "a + b"}
    assert "no red test was claimed for calc.py" in await guest.refused("edit_file", **fix)
    green = {"test_id": TRUTH, "edit_target": "calc.py"}
    assert "is green; claim a test that is red" in await guest.refused("edit_claim", **green)
    await guest.done("edit_claim", test_id=ADD, edit_target="other.py")
    assert "no claim covers calc.py" in await guest.refused("edit_file", **fix)
    assert "read-only" in await guest.refused("write_file", path="test_calc.py", text="")
    assert "still open" in await guest.refused("open_task", path=str(root)) or guest.run

    await guest.done("edit_claim", test_id=ADD, edit_target="calc.py")
    await guest.done("edit_file", **{**fix, "new": "a * b"})
    assert (await guest.done("status"))["unjudged"] == ["calc.py"]
    judged = await guest.done("run_tests")
    assert judged["reverted"] == ["calc.py"]
    assert "still red" in judged["why"]
    assert (Path(opened["workspace"]) / "calc.py").read_text() == SOURCE

    await guest.done("edit_file", **fix)
    await guest.done("edit_claim", test_id=HALF, edit_target="calc.py")
    await guest.done("edit_file", path="calc.py", old="n * 2", new="n // 2")
    assert (await guest.done("run_tests"))["tests"] == {"mode": "strict", "passed": 3, "total": 3}
    assert (root / "calc.py").read_text() == SOURCE, "the original changes only by finish with apply"


@pytest.mark.slow
def test_a_whole_session_over_standard_input(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")

    async def story() -> None:
        async with over_stdio(root, "auto") as guest:
            await red_claim_edit_green(guest, root)
            finished = await guest.done("finish", message="done", apply=True)
            assert (finished["stop"], finished["applied"]) == ("green", ["calc.py"])
            assert "has ended (green)" in await guest.refused("run_tests")
            again = await guest.done("finish", apply=True)
            assert again["stop"] == "green"
            assert again["applied"] == [], "what is so already is left alone"
            assert "applied" not in await guest.done("finish"), "nobody asked for it"

    anyio.run(story)
    assert (root / "calc.py").read_text() == SOURCE.replace("a - b", "a + b").replace("n * 2", "n // 2")


@pytest.mark.slow
def test_a_folder_of_a_repository_that_holds_no_test_is_no_way_around_the_gate(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")
    for folder in ("part", "own"):
        (root / folder).mkdir()
        (root / folder / "code.py").write_text("LIMIT = 1\n")
    for repo in (root, root / "own"):
        subprocess.run(["git", "init", "-q", str(repo)], check=True)

    async def story() -> None:
        async with over_stdio(root, "auto") as guest:
            for folder, mode in (("own", "refactor"), ("part", "strict")):
                assert (await guest.done("open_task", path=folder))["tests"] == {"mode": mode, "total": 0}
                if mode == "refactor":
                    await guest.done("finish")
            why = await guest.refused("write_file", path="code.py", text="LIMIT = 2\n")
            assert "write a failing test first" in why

    anyio.run(story)
