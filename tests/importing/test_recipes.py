"""The shipped recipes are pinned, labelled and sound; what they fetch is fetched by nobody but pip."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import anyio
import pytest

from jumar.errors import Infra
from jumar.importing.make_task import Blob
from jumar.importing.recipes import (
    FixedBug,
    Pin,
    PlantedBug,
    PreparedRecipe,
    load_shipped,
    plant_bug,
    prepare_recipe_tasks,
)
from jumar.task.task import load_task
from support.worlds.fake_releases import NEW, OLD, sdist

RECIPE = PlantedBug(
    name="thing",
    new=Pin("1", "0" * 64),
    file="a.py",
    line=2,
    original="    return 1",
    replacement="    return 2",
    bug="b",
)


def test_every_shipped_recipe_is_pinned() -> None:
    listed = load_shipped()
    pins = [pin for fixed in listed.fixed for pin in (fixed.old, fixed.new)] + [p.new for p in listed.planted]

    assert len(listed.fixed) >= 8
    assert len(listed.planted) >= 4
    assert all(re.fullmatch("[0-9a-f]{64}", pin.sha256) for pin in pins)
    names = [f.task_name for f in listed.fixed] + [p.task_name for p in listed.planted]
    assert len(set(names)) == len(names)
    assert all("planted" in p.task_name and p.original != p.replacement for p in listed.planted)


def test_a_bug_is_planted_in_its_line_alone() -> None:
    sound = Blob(b"def f():\n    return 1\r\n    return 1\n", executable=True)

    with pytest.raises(Infra, match=r"line 2 of a\.py is not what the recipe for thing-1-planted says"):
        plant_bug(sound, RECIPE)
    with pytest.raises(Infra):
        plant_bug(None, RECIPE)
    assert plant_bug(Blob(b"\n    return 1\n    return 1"), RECIPE) == Blob(b"\n    return 2\n    return 1")


def shelved(cache: Path, version: str, texts: dict[str, str]) -> Pin:
    (shelf := cache / f"thing-{version}").mkdir(parents=True)
    return Pin(version, sha256(sdist(shelf, version, texts).read_bytes()).hexdigest())


def test_a_recipe_becomes_a_task_and_a_bad_one_keeps_no_other_from_it(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    fixed = FixedBug(name="thing", old=shelved(cache, "1", OLD), new=shelved(cache, "2", NEW), bug="halves were thirds")
    sown = PlantedBug(
        name="thing", new=fixed.new, file="thing.py", line=2, original="    return n // 2",
        replacement="    return n * 2", bug="an operator", drop=("setup.py",),
    )  # fmt: skip
    wrong = PlantedBug(name="thing", new=fixed.new, file="thing.py", line=9, original="", replacement="x", bug="none")
    heard: list[PreparedRecipe] = []

    done = anyio.run(prepare_recipe_tasks, cache, tmp_path / "out", (fixed, wrong, sown), heard.append)

    assert [p.fault for p in done] == ["", "line 9 of thing.py is not what the recipe for thing-2-planted says", ""]
    assert len(heard) == len(done)
    assert done[0].folder == tmp_path / "out" / "thing-1-2"
    assert done[2].folder is not None
    task = load_task(done[2].folder)
    assert "planted" in task.instruction
    assert (task.root / "thing.py").read_text() == "def half(n):\n    return n * 2\n"
    assert task.reference is not None
    assert (task.reference / "thing.py").read_text() == NEW["thing.py"]
    assert not (task.root / "setup.py").exists()
