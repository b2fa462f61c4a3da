"""Count how many tests of third-party releases pass with the code under test in another process, and why others do not.

Each suite runs once as it is, and once in two processes. Run as
`python bench/two_processes.py [--cache=DIR] [--why] [NAME...]`: releases are fetched by pip, all or those named.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatch
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import anyio
import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Outcome, Report
from jumar.ports import Invocation
from jumar.runners.pytest import PytestRunner
from jumar.verify.two_process import PATTERNS, TESTING, run_two_processes
from jumar.verify.verifier import TrustedVerifier
from jumar.workspace.store.object_store import Store
from support.judging.downloaded_suites import UPSTREAM
from support.judging.third_party_suites import HELD_BACK, environment


class Share(NamedTuple):
    """Outcome of a suite."""

    together: frozenset[str]
    """Tests that pass in one process."""
    parted: Report
    """Outcomes of them in two."""

    @property
    def passed(self) -> int:
        """Number of them that pass in two processes as well."""
        return len(self.together & {r.id for r in self.parted.results if r.outcome is Outcome.PASSED})

    def count_reasons(self) -> Counter[str]:
        """Count what the tests said that do not."""
        said = (r.excerpt for r in self.parted.results if r.id in self.together and r.outcome != Outcome.PASSED)
        return Counter(text.strip().splitlines()[-1][:140] if text.strip() else "" for text in said)


async def measure(root: Path, suite: Suite) -> Share:
    """Run the suite in *root* in one process and in two."""
    store = Store(root.with_name("objects"))
    tree = store.capture(root)
    verifier = TrustedVerifier(store, PytestRunner(), suite, root.with_name("run"), base=tree)
    verifier.environ = {"PATH": os.defpath, "LANG": "C.UTF-8"}
    verifier.expected = (await verifier.collect(tree)).ids
    verdict = (await verifier.verify(tree, None)).verdict
    together = frozenset(i for i, r in verdict.results.items() if r.outcome is Outcome.PASSED)
    trial = verifier.build_two_process_trial(tree, tuple(together))
    told = partial(_tell_all, trial.invocation)
    records, child = await run_two_processes(trial._replace(product=_is_product, invocation=told))
    return Share(together, verifier.runner.report(records, child.ended, child.detail))


async def measure_all(given: argparse.Namespace, folder: Path) -> None:
    """Measure the suites one after the other, and print a line for each."""
    python = await environment(given.cache or folder / "cache")
    whole = Counter[str]()
    for release in (one for one in (*UPSTREAM, *HELD_BACK) if one.name in given.names or not given.names):
        suite = await release.laid_out(given.cache or folder / "cache", folder / release.name / "files")
        suite = msgspec.structs.replace(suite, python=str(python), test_timeout_seconds=20.0)
        began = time.monotonic()
        share = await measure(folder / release.name / "files", suite)
        whole.update(passed=share.passed, tests=len(share.together))
        print(_line(release.called, share.passed, len(share.together)), f"{time.monotonic() - began:.0f} s", flush=True)
        for why, count in share.count_reasons().most_common(12 if given.why else 0):
            print(f"    {count:5} {why}")
    print(_line("all", whole["passed"], whole["tests"]))


def _tell_all(invocation: Callable[[Path], Invocation], room: Path) -> Invocation:
    made = invocation(room)
    return msgspec.structs.replace(made, config={**made.config, "quiet": False})


def _is_product(path: str) -> bool:
    parts = PurePosixPath(path).parts
    tests = TESTING.intersection(parts) or any(fnmatch(parts[-1], pattern) for pattern in PATTERNS)
    return path.endswith(".py") and not tests and path != "setup.py"


def _line(name: str, passed: int, tests: int) -> str:
    return f"{name:24} {passed:6} of {tests:6}  {passed / max(1, tests):6.1%}"


def main() -> None:
    """Measure, and print a table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("names", nargs="*")
    arguments.add_argument("--cache", type=Path)
    arguments.add_argument("--why", action="store_true", help="say why the other tests do not pass there")
    with tempfile.TemporaryDirectory() as scratch:
        anyio.run(measure_all, arguments.parse_args(), Path(scratch))


if __name__ == "__main__":
    main()
