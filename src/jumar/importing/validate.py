"""Checks an imported task. It is kept only if it was seen red without the fix and green with it."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import tomli_w
from msgspec.structs import replace

from jumar.core.state.verdict import Verdict
from jumar.errors import BadInput, Infra
from jumar.importing.from_pypi import make_venv
from jumar.importing.make_task import CHECKS, TaskSides, build_layout, write_task
from jumar.ports import Collected
from jumar.runs.setup.assembly import RunPlace, build_settings, build_verifier, store_tree
from jumar.task.settings.task_files import TASK_FILE
from jumar.task.task import Task, load_task
from jumar.verify.verifier import TrustedVerifier

ROUNDS = 2
"""Times that each side is judged; an id that does not answer the same each time cannot judge."""


class TaskChecks(msgspec.Struct, frozen=True, kw_only=True):
    """Results of an imported task's tests on its two sides."""

    fail_to_pass: tuple[str, ...]
    """Red at the start, green with the reference."""
    pass_to_pass: tuple[str, ...]
    """Green on both sides."""
    dropped: Mapping[str, str]
    """Id -> why it is none of the expected ids."""

    @property
    def expected(self) -> tuple[str, ...]:
        """Test ids that will judge the task."""
        return (*self.fail_to_pass, *self.pass_to_pass)


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """A task that was made and checked."""

    folder: Path
    checks: TaskChecks


class ImportResources(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of the person's machine that an import may use."""

    python: str | None = None
    """The interpreter of the tests; None is the task's own, else ours."""
    packages: tuple[str, ...] = ()
    """`PKG==VER` for a virtual environment of the task's own; none is no environment."""
    environ: Mapping[str, str] = {}


async def import_task(sides: TaskSides, out: Path, means: ImportResources) -> Imported:
    """Write the task between *sides* below *out*, and check it. An invalid task is removed again.

    Raises:
        BadInput: if nothing turns from red to green, or the tests do not run here.
        Infra: if the machine failed, or the tests gave no usable evidence.
    """
    if (there := out / sides.about.name).exists():
        raise BadInput(f"{there} is there already; remove it, or name another place with --out")
    folder = write_task(build_layout(sides.old, sides.new, sides.about), sides.about, out)
    try:
        if means.packages:
            await make_venv(folder, means.packages)
        return Imported(folder=folder, checks=await check_task(folder, means))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


async def check_task(folder: Path, means: ImportResources) -> TaskChecks:
    """Judge the task in *folder* on both sides, and write the findings into its task file and `checks.json`.

    Raises:
        BadInput: if nothing turns from red to green, or the tests do not run here.
        Infra: if the machine failed.
    """
    task = load_task(folder)
    with TemporaryDirectory(prefix="jumar-import-") as scratch:
        place = RunPlace.passing(Path(scratch), means.environ)
        start = store_tree(place.store, task)
        fixed = _apply_reference(place, task, start)
        settings = build_settings(task, place.store, start, means.python)
        once = replace(settings, suite=replace(settings.suite, confirm=0))  # the rounds below say what is steady
        verifier = build_verifier(place, once, start, ())
        found = await verifier.collect(fixed)
        if found.anomaly or not found.ids:
            raise BadInput(
                f"the tests of {task.name} do not run here: {_explain_none(found)} (--with PKG installs what they need)"
            )
        verifier.expected = found.ids
        with_fix = [await _find_green(verifier, fixed) for _ in range(ROUNDS)]
        without = [await _find_green(verifier, start) for _ in range(ROUNDS)]
    checks = sort_ids(found.ids, with_fix, without)
    if not checks.fail_to_pass:
        red = ", ".join(list(checks.dropped)[:3])
        hint = f"; red with the fix too: {red} (a package that the tests need may be missing: --with)" if red else ""
        raise BadInput(f"nothing in {task.name} turns from red to green: the tests pass without the fix as well{hint}")
    _write(folder, checks)
    return checks


def sort_ids(ids: Iterable[str], with_fix: list[frozenset[str]], without: list[frozenset[str]]) -> TaskChecks:
    """Select the *ids* that judge, given the green ones of each round with and without the fix."""
    always = frozenset.intersection(*with_fix)
    red_to_green: list[str] = []
    green: list[str] = []
    dropped: dict[str, str] = {}
    for i in ids:
        rounds = sum(i in greens for greens in without)
        if i not in always:
            flaky = any(i in greens for greens in with_fix)
            dropped[i] = "flaky with the reference" if flaky else "red with the reference"
        elif rounds in (0, len(without)):
            (green if rounds else red_to_green).append(i)
        else:
            dropped[i] = "flaky at the start"
    return TaskChecks(fail_to_pass=tuple(red_to_green), pass_to_pass=tuple(green), dropped=dropped)


def _explain_none(found: Collected) -> str:
    """Return one line on why there is nothing to judge by."""
    said = found.anomaly or next((b.why for b in found.broken.values() if b.why.strip()), "") or "there are none"
    lines = said.strip().splitlines()
    return next((line for line in lines if "error:" in line.lower()), lines[-1]).strip()


def _apply_reference(place: RunPlace, task: Task, start: str) -> str:
    """Return the start tree with the fix laid over."""
    if task.reference is None:
        raise BadInput(f"{task.name} has no reference to be checked with; set [task] reference")
    fix = place.store.manifest(place.store.capture(task.reference))
    return place.store.keep({**place.store.manifest(start), **fix})


async def _find_green(verifier: TrustedVerifier, tree: str) -> frozenset[str]:
    verdict: Verdict = (await verifier.verify(tree, None)).verdict
    if verdict.void is not None:
        raise Infra(f"the tests gave no usable evidence: {verdict.void.reason}")
    return verdict.green_ids


def _write(folder: Path, checks: TaskChecks) -> None:
    tables = tomllib.loads((folder / TASK_FILE).read_text("utf-8"))
    tables["tests"]["expected"] = list(checks.expected)
    (folder / TASK_FILE).write_bytes(tomli_w.dumps(tables).encode())
    (folder / CHECKS).write_bytes(msgspec.json.format(msgspec.json.encode(checks)) + b"\n")
