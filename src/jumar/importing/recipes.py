"""Recipes of the demo's bugs: the release to fetch and what is broken in it. The sources are not shipped.

Each says what to fetch, and a planted bug says that it is planted.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import anyio
import msgspec
from msgspec.structs import replace

from jumar.errors import Infra, JumarError
from jumar.importing.from_pypi import Release, fetch_archive, fetch_pypi_sides, unpack_archive
from jumar.importing.make_task import Blob, TaskDescription, TaskSides, build_layout, write_task

AT_ONCE = 2
"""Fetches in flight: pip's own start is the slow part, and it takes a core."""


class Pin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A version and the sha256 of its source distribution."""

    version: str
    sha256: str


class RecipeEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields of every recipe."""

    name: str
    new: Pin
    """The sound release: its tests judge."""
    bug: str
    select: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    """Files left out: configuration that asks for plug-ins of pytest which nothing here needs."""
    beyond: bool = False
    """True if mutation search does not reach the fix: the demo passes it over unless asked for all."""
    seconds: float = 0.0
    """Time that the repair takes, about: the longest are begun first, so that the last one is not waited for."""


class FixedBug(RecipeEntry, frozen=True, kw_only=True):
    """A real bug: the release with it, and the release that fixed it."""

    old: Pin

    @property
    def task_name(self) -> str:
        """Name of the task's folder."""
        return f"{self.name}-{self.old.version}-{self.new.version}"


class PlantedBug(RecipeEntry, frozen=True, kw_only=True):
    """Planted bug: one line of a sound release replaced."""

    file: str
    line: int
    """Counted from 1."""
    original: str
    replacement: str

    @property
    def task_name(self) -> str:
        """The folder's name; it says that the bug is planted."""
        return f"{self.name}-{self.new.version}-planted"


Recipe = FixedBug | PlantedBug


class Recipes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Recipes that ship with jumar, the most telling first."""

    fixed: tuple[FixedBug, ...]
    planted: tuple[PlantedBug, ...]


class PreparedRecipe(msgspec.Struct, frozen=True):
    """Result of preparing a recipe."""

    recipe: Recipe
    folder: Path | None
    """The task, or None if it could not be prepared."""
    fault: str = ""
    """One sentence on why not."""


def load_shipped() -> Recipes:
    """Return the recipes that come with jumar."""
    text = (files("jumar.importing") / "recipes.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), Recipes)


async def prepare_recipe_tasks(
    cache: Path,
    out: Path,
    recipes: tuple[Recipe, ...] | None = None,
    told: Callable[[PreparedRecipe], None] = lambda _: None,
) -> tuple[PreparedRecipe, ...]:
    """Fetch and lay out *recipes* (default: the shipped ones, real bugs first) as task folders below *out*.

    One that cannot be had does not keep the others from being prepared; *told* hears of each as it is done.

    Args:
        cache: Where archives are kept; a second call needs no network.
        out: Gets one folder per recipe. A task of that name from an earlier call is replaced.
        recipes: What to prepare.
        told: Is called once per recipe, in the order they get done.
    """
    if recipes is None:
        listed = load_shipped()
        recipes = (*listed.fixed, *listed.planted)
    done: dict[int, PreparedRecipe] = {}
    turn = anyio.CapacityLimiter(AT_ONCE)

    async def prepare(number: int, recipe: Recipe) -> None:
        async with turn:
            done[number] = await _prepare(recipe, cache, out)
        told(done[number])

    async with anyio.create_task_group() as group:
        for number, recipe in enumerate(recipes):
            group.start_soon(prepare, number, recipe)
    return tuple(done[number] for number in sorted(done))


async def _prepare(recipe: Recipe, cache: Path, out: Path) -> PreparedRecipe:
    try:
        sides = await (_fetch_fixed(recipe, cache) if isinstance(recipe, FixedBug) else _fetch_planted(recipe, cache))
        about = replace(sides.about, select=recipe.select)
        old, new = ({p: b for p, b in side.items() if p not in recipe.drop} for side in (sides.old, sides.new))
        return PreparedRecipe(recipe, write_task(build_layout(old, new, about), about, out))
    except JumarError as fault:
        return PreparedRecipe(recipe, None, str(fault))


async def _fetch_fixed(recipe: FixedBug, cache: Path) -> TaskSides:
    old, new = (Release(recipe.name, pin.version, pin.sha256) for pin in (recipe.old, recipe.new))
    return await fetch_pypi_sides(old, new, cache)


async def _fetch_planted(recipe: PlantedBug, cache: Path) -> TaskSides:
    release = Release(recipe.name, recipe.new.version, recipe.new.sha256)
    sound = unpack_archive(await fetch_archive(release, cache))
    about = TaskDescription(
        name=recipe.task_name, old=f"{release.called} with one line replaced", new=release.called, planted=True
    )
    return TaskSides(about, {**sound, recipe.file: plant_bug(sound.get(recipe.file), recipe)}, sound)


def plant_bug(blob: Blob | None, recipe: PlantedBug) -> Blob:
    """Return the file of *recipe* with its bug.

    Raises:
        Infra: if the line is not what the recipe says; then the recipe is wrong.
    """
    lines = blob.data.split(b"\n") if blob else []
    if blob is None or not 0 < recipe.line <= len(lines) or lines[recipe.line - 1] != recipe.original.encode():
        raise Infra(f"line {recipe.line} of {recipe.file} is not what the recipe for {recipe.task_name} says")
    lines[recipe.line - 1] = recipe.replacement.encode()
    return replace(blob, data=b"\n".join(lines))
