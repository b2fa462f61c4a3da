"""Accepted greens of libraries whose tests nobody here wrote, against one run of plain pytest.

Run as `make bench ONLY=greens`. The task is a library, from the package registry and pinned, in which one function
returns None that a few tests run; the green is that of the library as it was released. The first green of a task
verifies the untouched tree, too; the next ones do not. As in a run, the tests have run on the untouched tree before,
and what a green is forked from has become ready while an agent would have looked at its task.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
from msgspec.structs import replace

from frame import Figure, Skipped, ratio_of
from jumar.errors import BadInput
from jumar.process.warm.starts import WarmStarts, get_pool
from jumar.runners.pytest import PytestRunner
from jumar.runs.setup.choose_sandbox import SandboxSurroundings, choose_sandbox
from jumar.verify.rounds import begin_rounds
from jumar.verify.verifier import TrustedVerifier
from selection import LIBRARIES, Subject, is_source, prepare

CONFIRM = 3
"""As `jumar run` has it."""


async def take_greens(subject: Subject, broken: str, folder: Path) -> tuple[float, float, str]:
    """Return the seconds of the first green of a task and of the next, and how many tests have which grade."""
    sandbox = await choose_sandbox("S3", SandboxSurroundings(folder, dict(os.environ)), unattended=False)
    suite = replace(subject.cold.suite, confirm=CONFIRM)
    verifier = TrustedVerifier(
        subject.store, PytestRunner(), suite, folder / "run", base=broken, sandbox=sandbox, sources=is_source,
        warm=WarmStarts(), environ={"PATH": os.environ["PATH"]}, expected=subject.cold.expected,
    )  # fmt: skip
    for _ in range(2):  # as a run does, which looks for flaky tests before it starts
        await verifier.verify(broken, None, control="")
    begin_rounds(verifier, ahead=True)
    for family in get_pool().families:
        for zygote in family.zygotes.values():
            await zygote.settle()
    manifest = subject.store.manifest(subject.base)
    path = next(path for path in manifest if is_source(path))
    other = subject.store.put(subject.store.get(manifest[path].sha256) + b"\n# another tree\n")
    taken, told = [], ""
    for tree in (subject.base, subject.store.keep({**manifest, path: replace(manifest[path], sha256=other)})):
        began = time.perf_counter()
        done = await verifier.verify(tree, subject.accepted, control=broken)
        taken.append(time.perf_counter() - began)
        if not done.verdict.green:
            raise SystemExit(f"not green: {done.verdict.void or done.verdict.red_ids[:3]}")
        grades = sorted(done.grades.values())
        told = ", ".join(f"{grades.count(grade)} at {grade}" for grade in dict.fromkeys(grades))
    return taken[0], taken[1], told


def take_plain(folder: Path, subject: Subject) -> float:
    """Return the seconds of pytest as a person starts it."""
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **subject.cold.suite.env}
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *subject.cold.suite.select]
    began = time.perf_counter()
    subprocess.run(argv, cwd=folder, env=env, check=False, stdout=subprocess.DEVNULL)  # noqa: S603  it is alone
    return time.perf_counter() - began


def measure(rounds: int) -> Iterator[Figure]:
    """Yield how long a green takes, in runs of plain pytest, for each library."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        for name, version, select in LIBRARIES:
            subject = anyio.run(prepare, folder, name, version, select)
            if not (edits := anyio.run(subject.find_edits)):
                raise Skipped(f"no function of {name} is run by a few tests alone")
            plain, first, later, told = [], [], [], ""
            for number in range(max(1, rounds // 3)):
                broken = edits[number % len(edits)][0]
                (folder / f"{name}.{number}").mkdir()
                try:
                    both = anyio.run(take_greens, subject, broken, folder / f"{name}.{number}")
                except BadInput as missing:
                    raise Skipped(f"no S3 here: {missing}") from missing
                plain.append(take_plain(folder / name, subject))
                first.append(both[0])
                later.append(both[1])
                told = both[2]
            label = f"{name}, {len(subject.cold.expected)} tests"
            yield ratio_of(f"{label}: the first green of a task against plain pytest", first, plain, note=told)
            yield ratio_of(f"{label}: a later green against plain pytest", later, plain)
