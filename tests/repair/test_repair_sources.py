"""Sources that cannot be searched are left alone; where that is why nothing was found, they are named."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from jumar.core.run.strategy import Request
from jumar.core.state.settings import Suite
from jumar.models.repair import RepairModel
from jumar.ports import Answer, Ask
from jumar.repair.readable_sources import MARK, split_sources
from jumar.repair.screening_client import ScreeningConfinement
from jumar.repair.search import Bounds
from jumar.runners.pytest import PytestRunner
from jumar.workspace.store.object_store import Store

GOOD = b"def less(a, b):\n    return a < b\n"
BROKEN = b"import os\n\ndef less(a, b:\n    return a\n"
LATIN = "# -*- coding: latin-1 -*-\nNAME = '\xe9'\n".encode("latin-1")
OLD = b"print 'two'\n"


def test_sources_are_read_as_they_are_and_the_others_are_named() -> None:
    files = {
        "app.py": GOOD,
        "coded.py": b"# -*- coding: latin-1 -*-\n" + GOOD,
        "marked.py": MARK.encode() + GOOD,
        "m.py": BROKEN,
        "old.py": OLD,
        "lat.py": LATIN,
        "data.txt": b"\xff",
    }
    found = split_sources(files)

    assert sorted(found.texts) == ["app.py", "coded.py", "marked.py"]
    assert found.texts["marked.py"] == GOOD.decode()
    assert found.get_written("marked.py", "x").encode() == MARK.encode() + b"x"
    assert found.get_written("app.py", "x") == "x"
    assert found.unparsable["m.py"] == "m.py does not parse: line 3 ('(' was never closed)"
    assert found.undecodable == {"lat.py": "lat.py is not UTF-8 (byte 34)"}
    assert found.unsearched.count(";") == 2


@pytest.mark.parametrize(
    ("output", "named"),
    [
        ('  File "m.py", line 3\nSyntaxError: invalid syntax', True),
        ('  File "./m.py", line 3\nIndentationError: unexpected indent', True),
        ("m.py:3: AssertionError", False),
        ('  File "test_m.py", line 3\nSyntaxError: invalid syntax', False),
        ('  File "lib/m.py", line 3\nSyntaxError: invalid syntax', False),
    ],
)
def test_a_file_that_does_not_parse_is_to_blame_where_the_output_says_so(output: str, named: bool) -> None:  # noqa: FBT001  a parameter of pytest's
    assert bool(split_sources({"m.py": BROKEN}).list_culprits(output)) is named


def answered(folder: Path, files: dict[str, bytes], output: str, attempts: int, suite: Suite | None = None) -> Answer:
    """The answer of the repair model where one test of *files* is red with *output*."""
    ask = Ask(
        request=Request("offline", "repair"),
        messages=(),
        tree=_tree(folder, files),
        files=files,
        red=("test_m.py::test_less",),
        green=(),
        localisation=None,
        position=0,
        refused=frozenset(),
        seed=0,
        seconds=20.0,
        tried=7,
        output=output,
    )
    model = RepairModel(
        Store(folder / "objects"),
        suite or Suite(),
        PytestRunner(),
        ScreeningConfinement(folder / "rooms"),
        Bounds(20.0, attempts),
    )

    async def complete() -> Answer:
        return await model.complete(ask)

    return anyio.run(complete)


def _tree(folder: Path, files: dict[str, bytes]) -> str:
    source = folder / "source"
    source.mkdir()
    for path, data in {**files, "test_m.py": b"import m\n\ndef test_less():\n    assert m.less(1, 1)\n"}.items():
        (source / path).write_bytes(data)
    return Store(folder / "objects").capture(source)


def test_a_source_that_does_not_parse_is_named_with_its_line(tmp_path: Path) -> None:
    answer = answered(tmp_path, {"m.py": BROKEN}, '  File "m.py", line 3\nSyntaxError: invalid syntax', 100)

    said = "m.py does not parse: line 3 ('(' was never closed). Repair changes only files that parse"
    assert answer.reply.tool_calls[0].name == "final"
    assert answer.reply.content == said
    assert not (tmp_path / "rooms").exists(), "no process was started for it"


def test_another_language_is_not_searched_and_that_is_said(tmp_path: Path) -> None:
    answer = answered(tmp_path, {"m.js": b"export const less = 1\n"}, "", 100, Suite(runner="vitest"))

    assert answer.reply.tool_calls[0].name == "final"
    assert "these tests are run by vitest" in answer.reply.content
    assert not (tmp_path / "rooms").exists(), "no process was started for it"


@pytest.mark.slow
def test_a_search_that_found_nothing_names_what_it_did_not_search(tmp_path: Path) -> None:
    files = {"m.py": b"def less(a, b):\n    return None\n", "old.py": OLD, "lat.py": LATIN}

    answer = answered(tmp_path, files, "AssertionError", 1)

    said = "Not searched: old.py does not parse: line 1 ("
    assert answer.reply.content.startswith(said)
    rest = "Of the rest, 8 small changes were tried, and none makes the red tests pass"
    assert answer.reply.content.endswith(f"; lat.py is not UTF-8 (byte 34). {rest}")
