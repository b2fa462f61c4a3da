"""How often a challenge is wrong about code that is right, and how strong it is, on suites of third-party releases.

Every suite runs once as it is, and then in rounds in which a random half of its tests is falsified: exactly those must
fail. Run as `python bench/challenge.py [--cache=DIR] [--data=DIR] [--python=FILE] [NAME...]`: releases are fetched by
pip, all or those that are named (`none` for none); `--data` adds the Python tasks of a folder of real ones, solved.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.judging.challenge_stats import Figures, Subject, challenged, of_task, of_upstream, tasks
from support.judging.downloaded_suites import upstream

ROUNDS = 3


def subjects(given: argparse.Namespace, folder: Path) -> Iterator[Subject]:
    """What is challenged, laid out one after the other."""
    for release in upstream(*given.names):
        yield anyio.run(of_upstream, release, given.cache or folder / "cache", folder / release.name, given.python)
    for task in tasks(given.data) if given.data else ():
        yield of_task(given.data, task, folder / task["id"])


def main() -> None:
    """Measure, and print a table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("names", nargs="*")
    arguments.add_argument("--cache", type=Path)
    arguments.add_argument("--data", type=Path)
    arguments.add_argument("--python", default="", help="an interpreter with what the suites want to be installed")
    arguments.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    given = arguments.parse_args()
    print(f"seed {given.seed}\n{Figures.TITLES}")
    total = Counter[str]()
    with tempfile.TemporaryDirectory() as scratch:
        for subject in subjects(given, Path(scratch)):
            started = time.monotonic()
            figures = anyio.run(challenged, subject, ROUNDS, random.Random(given.seed))  # noqa: S311  to run it again
            total.update(figures.counts)
            print(f"{figures}  {time.monotonic() - started:.0f} s", *figures.wrong, sep="\n    ", flush=True)
            shutil.rmtree(subject.folder)
    print(f"{Figures('all', total)}")


if __name__ == "__main__":
    main()
