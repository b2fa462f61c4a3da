"""Candidates are seen for what they are: those that hang, crash, eat memory or must be imported anew, too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from jumar.core.run.strategy import Request
from jumar.core.state.events import Localisation
from jumar.core.state.settings import Suite
from jumar.models.repair import RepairModel, compute_fingerprint
from jumar.ports import Answer, Ask
from jumar.repair.candidates import Candidate, generate_candidates
from jumar.repair.screening_client import ScreeningConfinement, ScreeningTree, ScreeningTrial, Sighting, open_worker
from jumar.repair.search import Bounds
from jumar.repair.suspicion import SuspectTree
from jumar.runners.pytest import PytestRunner
from jumar.workspace.store.object_store import Store
from support.processes.interpreters import PLAIN_PYTHON

pytestmark = pytest.mark.slow

SOURCE = """\
import functools
import os

LIMIT = 3


class Box:
    def __init__(self, n):
        self.n = n

    @property
    def half(self):
        return self.n // 2


@functools.lru_cache(maxsize=None)
def clip(n, least=0):
    while n > LIMIT:
        n -= 1
    return n


def twice(n):
    return n + 3


def small(n):
    return n < LIMIT
"""

TESTS = """\
import pytest
from box import Box, clip, small, twice

@pytest.mark.parametrize("n", [2, 4])
def test_twice(n):
    assert twice(n) == 2 * n

def test_three():
    assert twice(3) == 6

def test_half():
    assert Box(5).half == 2

def test_clip():
    assert clip(9) == 3

def test_small():
    assert small(3)

def test_not_small():
    assert not small(4)
"""

RED = ("test_box.py::test_twice",)
GREEN = ("test_box.py::test_three", "test_box.py::test_half", "test_box.py::test_clip")


def ground(folder: Path, red: tuple[str, ...], green: tuple[str, ...], source: str = SOURCE) -> ScreeningTree:
    (folder / "task").mkdir()
    (folder / "task" / "box.py").write_text(source)
    (folder / "task" / "test_box.py").write_text(TESTS)
    store = Store(folder / "objects")
    tree = store.capture(folder / "task")
    return ScreeningTree(
        store,
        PytestRunner(),
        Suite(python=PLAIN_PYTHON),
        ScreeningConfinement(folder / "rooms"),
        tree,
        red,
        green,
        ("box.py",),
        60.0,
    )


def made(old: str, new: str, source: str = SOURCE) -> Candidate:
    """Some candidate for the place of *old*, changed to have *new* there."""
    line = source[: source.index(old)].count("\n") + 1
    some = next(generate_candidates(SuspectTree({"box.py": source}, {"box.py": {line: 1.0}})))
    unit, text = some.unit, source.replace(old, new, 1)
    swappable = unit.function and source.index(old) >= unit.body
    snippet = unit.shell + text[unit.start : unit.end + len(new) - len(old)]
    return Candidate("box.py", unit, some.edit, snippet, text, 1.0, swappable=swappable)


def sightings(
    place: ScreeningTree, changes: Mapping[str, Candidate | None], seconds: float = 0.5
) -> dict[str, Sighting]:
    async def screened() -> dict[str, Sighting]:
        async with open_worker(place) as one:
            trials = {name: ScreeningTrial(i, change, seconds) for i, (name, change) in enumerate(changes.items())}
            return {name: await one.screen(trial) for name, trial in trials.items()}

    return anyio.run(screened)


def test_each_candidate_is_seen_for_what_it_is(tmp_path: Path) -> None:
    place = ground(tmp_path, RED, GREEN)

    seen = sightings(
        place,
        {
            "untouched": None,
            "right": made("n + 3", "n + n"),
            "hangs": made("return n + 3", "while n: n = n"),
            "sleeps": made("return n + 3", "import time; time.sleep(99)"),
            "crashes": made("return n + 3", "os.abort()"),
            "leaves": made("return n + 3", "os._exit(0)"),
            "eats": made("return n + 3", "return len(bytearray(1 << 40))"),
            "loses": made("n + 3", "n + n + n // 3 * (n % 2)"),
            "forks": made("return n + 3", "return os.fork() and n + n"),
            "still right": made("n + 3", "n * 2"),
        },
    )

    full = Sighting(frozenset(RED), kept=True, seconds=seen["right"].seconds)
    assert seen["untouched"].signs == ("AssertionError: ",)
    assert seen["right"] == full
    assert seen["hangs"].hung
    assert seen["sleeps"].hung
    assert not any(seen[name].kept for name in ("hangs", "sleeps", "crashes", "leaves", "eats", "loses"))
    assert seen["eats"].signs[0].startswith("MemoryError")
    assert seen["loses"].turned == frozenset(RED)
    assert seen["still right"].turned == full.turned
    assert seen["still right"].kept


def test_methods_decorated_functions_and_what_is_run_at_import_are_changed_too(tmp_path: Path) -> None:
    place = ground(tmp_path, GREEN, RED)

    seen = sightings(
        place,
        {
            "property": made("self.n // 2", "self.n // 3"),
            "cached": made("n -= 1", "n -= 5"),
            "constant": made("LIMIT = 3", "LIMIT = 4"),
            "default": made("least=0", "least=1"),
        },
    )

    lost = {name: frozenset(GREEN) - sighting.turned for name, sighting in seen.items()}
    assert {name: {i.partition("::")[2] for i in ids} for name, ids in lost.items()} == {
        "property": {"test_half"},
        "cached": {"test_clip"},
        "constant": {"test_clip"},
        "default": set(),
    }


def test_a_candidate_that_is_imported_anew_loses_green_tests_too(tmp_path: Path) -> None:
    place = ground(tmp_path, ("test_box.py::test_small",), ("test_box.py::test_clip", "test_box.py::test_not_small"))
    changes = {
        "loses": made("LIMIT = 3", "LIMIT = 4"),
        "keeps": made("return n < LIMIT", "return n <= LIMIT"),
    }

    seen = sightings(place, changes, seconds=5.0)

    turned = frozenset({"test_box.py::test_small"})
    assert not changes["loses"].swappable
    assert (seen["loses"].turned, seen["loses"].kept) == (turned, False)
    assert (seen["keeps"].turned, seen["keeps"].kept) == (turned, True)


@pytest.mark.proof
def test_a_source_that_does_not_import_is_imported_anew_for_each(tmp_path: Path) -> None:
    broken = SOURCE.replace("LIMIT = 3", "LIMIT = int('three')")
    place = ground(tmp_path, GREEN, (), broken)

    seen = sightings(place, {"mended": made("int('three')", "3", broken), "still broken": None}, seconds=5.0)

    assert seen["mended"].turned == frozenset(GREEN)
    assert not seen["still broken"].turned


def asked(place: ScreeningTree, refused: frozenset[str] = frozenset(), line: int = 28) -> Ask:
    return Ask(
        request=Request("offline", "repair"),
        messages=(),
        tree=place.tree,
        files={"box.py": SOURCE.encode()},
        red=place.red,
        green=place.green,
        localisation=Localisation(tree=place.tree, suspects=(("box.py", line, 1.0),)),
        position=0,
        refused=refused,
        seed=0,
        seconds=None,
    )


def answers(place: ScreeningTree, *asks: Ask, attempts: int = 3000) -> list[Answer]:
    async def given() -> list[Answer]:
        model = RepairModel(place.store, place.suite, place.runner, place.fence, Bounds(30.0, attempts))
        return [await model.complete(ask) for ask in asks]

    return anyio.run(given)


@pytest.mark.proof
def test_the_model_proposes_a_file_that_passes_and_then_another(tmp_path: Path) -> None:
    place = ground(tmp_path, ("test_box.py::test_small",), (*GREEN, "test_box.py::test_not_small"))

    (first,) = answers(place, asked(place))
    files = first.reply.tool_calls[0].arguments["files"]
    assert isinstance(files, dict)
    refused = frozenset({compute_fingerprint("box.py", files["box.py"])})
    again, other = answers(place, asked(place), asked(place, refused))
    (resumed,) = answers(place, asked(place, refused))

    assert "return n <= LIMIT" in files["box.py"]
    assert "box.py:28" in first.reply.content
    assert again.reply == first.reply
    assert other.reply.tool_calls == resumed.reply.tool_calls
    assert other.reply.tool_calls[0].arguments != first.reply.tool_calls[0].arguments


@pytest.mark.proof
def test_the_model_says_when_it_finds_nothing(tmp_path: Path) -> None:
    place = ground(tmp_path, RED, GREEN)

    (answer,) = answers(place, asked(place, line=4), attempts=30)

    assert answer.reply.tool_calls[0].name == "final"
    assert not list(place.fence.rooms.iterdir())
