"""Suites of other people as plain pytest judges them, and as jumar does: the same id by id, and a green is accepted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import msgspec

from jumar.core.state.settings import Suite
from jumar.importing.from_pypi import make_venv
from jumar.ports import Verification
from jumar.process.sandbox_check import find_bubblewrap
from jumar.process.warm.starts import WarmStarts
from jumar.runners.pytest import PytestRunner
from jumar.sandbox.bwrap import find_programs
from jumar.verify.two_process import PATTERNS, TESTING
from jumar.verify.verifier import TrustedVerifier
from jumar.workspace.store.object_store import Store
from support.judging.downloaded_suites import UPSTREAM, Upstream
from support.processes.sandboxes import ENVIRON

HELD_BACK = (
    Upstream(name="jsonschema", version="4.26.0", select=("jsonschema/tests",), seconds=60.0),
    Upstream(name="babel", version="2.18.0", seconds=60.0),
    Upstream(name="humanize", version="4.17.0", seconds=60.0),
    Upstream(name="natsort", version="8.4.0", seconds=60.0),
    Upstream(name="python-dateutil", version="4.0.0", drop=("tox.ini", "setup.cfg"), seconds=60.0),
)
"""Nobody looked at their tests while the rules of `verify/` were made; they are here only to try them."""

KNOWN = (
    "boltons", "more-itertools", "cachetools", "semver", "sqlparse", "marshmallow", "tabulate", "xmltodict", "parso",
    "tinydb", "itsdangerous", "idna",
)  # fmt: skip
"""Of those that the rules were made on: what runs as it is shipped, without a build, and within minutes."""

PACKAGES = (
    "pytest==9.2.0", "hypothesis==6.170.15", "freezegun==1.5.5", "pytz==2026.6", "tzdata==2026.6", "attrs==26.1.0",
    "pytest-mock==3.17.0", "pytest-cov==7.1.0", "pytest-codspeed==5.0.4", "simplejson==4.3.0", "jsonpath-ng==1.16.0",
    "humanize==4.17.0", "jsonschema==4.26.0", "python-dateutil==4.0.0",
)  # fmt: skip
"""What these suites want to be installed. Where a suite's own package is among them, the one in the room is judged."""

CONFIRM = 3
"""As `jumar run` has it."""

LONG_SECONDS = 15.0

PLUGIN = '''
import json
import os

class Outcomes:
    """An outcome per collected id, told by pytest's own reports."""

    def __init__(self):
        self.found = {}

    def pytest_collection_finish(self, session):
        self.found = {item.nodeid: None for item in session.items}

    def pytest_runtest_logreport(self, report):
        if type(report).__name__ != "TestReport":
            return
        if hasattr(report, "wasxfail"):
            said = "xfailed" if report.skipped else "xpassed" if report.passed else "failed"
        elif report.skipped:
            said = "skipped"
        else:
            said = "passed" if report.passed else "failed" if report.when == "call" else "error"
        before = self.found.get(report.nodeid)
        if before in (None, "passed") or (said in ("failed", "error") and before not in ("failed", "error")):
            self.found[report.nodeid] = said

    def pytest_sessionfinish(self):
        with open(os.environ["OUTCOMES"], "w", encoding="utf-8") as stream:
            json.dump(self.found, stream)

def pytest_configure(config):
    config.pluginmanager.register(Outcomes(), "outcomes")
'''


@dataclass
class Honest:
    """What became of one suite."""

    name: str
    plain: Mapping[str, str] = field(default_factory=dict)
    """Id -> outcome, as plain pytest has it."""
    differing: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Ids that came out otherwise: plain, ours."""
    wavering: set[str] = field(default_factory=set)
    """Ids whose outcome under plain pytest is not always the same."""
    accepted: Verification | None = None
    seconds: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Of plain pytest, of our feedback, of our acceptance."""

    @property
    def grades(self) -> Counter[str]:
        """Grade -> how many of its tests have it."""
        return Counter(self.accepted.grades.values() if self.accepted else ())

    @property
    def wrong(self) -> list[str]:
        """What must not be."""
        done = self.accepted
        if done is None:
            return [f"{self.name}: nothing to accept"]
        said = [f"{i}: {ours} and not {plain}" for i, (plain, ours) in self.differing.items()]
        if done.verdict.void is not None:
            said.append(f"{self.name}: rejected: {done.verdict.void.reason}")
        return (
            said
            + [f"{i}: {done.verdict.results[i].outcome} when accepted" for i in done.verdict.red_ids[:5]]
            + [f"{i}: flaky" for i in done.verdict.flaky_ids[:5]]
        )

    def __str__(self) -> str:
        """One line of a table."""
        done = self.accepted
        outcome = "none" if done is None else "rejected" if done.verdict.void or not done.verdict.green else done.grade
        plain, feedback, acceptance = self.seconds
        return (
            f"{self.name:24} {len(self.plain):6} ids  {len(self.differing):3} differ  {len(self.wavering):3} waver  "
            f"accepted: {outcome} ({', '.join(f'{n} {grade}' for grade, n in sorted(self.grades.items()))})  "
            f"plain {plain:.1f} s, feedback {feedback:.1f} s, acceptance {acceptance:.1f} s"
        )


def is_product(path: str) -> bool:
    """Whether *path* of a release is code under test."""
    parts = PurePosixPath(path).parts
    tests = TESTING.intersection(parts) or any(fnmatch(parts[-1], pattern) for pattern in PATTERNS)
    return path.endswith(".py") and not tests and path != "setup.py"


async def environment(cache: Path) -> Path:
    """An interpreter with all that the suites want, made once."""
    python, made = cache / ".venv" / "bin" / "python", cache / "packages.txt"
    if not (python.exists() and made.exists() and made.read_text("utf-8").split() == list(PACKAGES)):
        python = await make_venv(cache, PACKAGES)
        made.write_text("\n".join(PACKAGES), "utf-8")
    return python


def chosen() -> tuple[Upstream, ...]:
    """All suites of the proof."""
    return (*(one for one in UPSTREAM if one.name in KNOWN), *HELD_BACK)


def plainly(root: Path, suite: Suite) -> dict[str, str]:
    """Run plain pytest in *root* as by hand, with the same environment; its outcome of each id.

    Root starts it without the rights that nobody else has: some tests skip themselves where every file can be read.
    """
    paths = [path for path in suite.env.get("PYTHONPATH", "").split(":") if path]
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, "outcomes_plugin.py").write_text(PLUGIN, "utf-8")
        outcomes = Path(scratch, "outcomes.json")
        env = {
            "PATH": os.defpath, "LANG": "C.UTF-8", "HOME": scratch, "OUTCOMES": str(outcomes),
            "PYTHONPATH": ":".join([*paths, scratch]), "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        options = ["-p", "outcomes_plugin", "-p", "no:cacheprovider", "-q", "--continue-on-collection-errors"]
        as_a_user = [str(find_programs(ENVIRON)[0]), "--dev-bind", "/", "/", "--cap-drop", "ALL", "--"]
        argv = [*as_a_user, suite.python or sys.executable, "-m", "pytest", *options, *suite.select]
        subprocess.run(argv, cwd=root, env=env, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        found: dict[str, str] = json.loads(outcomes.read_text("utf-8"))
    return found


async def honest(name: str, root: Path, suite: Suite, confirm: int = CONFIRM) -> Honest:
    """Judge the suite in *root* plainly and by jumar, id by id; then let what is green be accepted.

    By *confirm* fresh runs; in a suite that takes long by one pair of a challenge.
    """
    done, store = Honest(name), Store(root.with_name("objects"))
    tree = store.capture(root)
    started = time.monotonic()
    done.plain = plainly(root, suite)
    after_plain = time.monotonic()
    sandbox = await find_bubblewrap(root.parent, ENVIRON)  # as users judge: two processes are tried
    verifier = TrustedVerifier(store, PytestRunner(), suite, root.with_name("run"), base=tree, sandbox=sandbox)
    verifier.warm = WarmStarts()
    verifier.environ, verifier.sources = {"PATH": os.defpath, "LANG": "C.UTF-8"}, is_product
    verifier.expected = (await verifier.collect(tree)).ids
    collected = time.monotonic()
    ours = {i: str(r.outcome) for i, r in (await verifier.verify(tree, None)).verdict.results.items()}
    after_ours = time.monotonic()
    _compare(done, ours, root, suite)
    good = ("passed", "skipped", "xfailed", "xpassed")
    verifier.expected = tuple(i for i, o in ours.items() if o in good and i not in done.wavering)
    verifier.suite = msgspec.structs.replace(suite, confirm=1 if after_ours - collected > LONG_SECONDS else confirm)
    before = time.monotonic()
    done.accepted = await verifier.verify(tree, None)
    done.seconds = (after_plain - started, after_ours - collected, time.monotonic() - before)
    return done


def _compare(done: Honest, ours: Mapping[str, str], root: Path, suite: Suite) -> None:
    """Note where *ours* differs. What differs is asked again plainly: some suites do not agree with themselves."""
    done.differing = _differing(done.plain, ours)
    if done.differing:
        # Some have the time of day in their ids: what wavers is the function.
        functions = {i.partition("[")[0] for i in _differing(plainly(root, suite), done.plain)}
        done.wavering = {i for i in ours if i.partition("[")[0] in functions}
        done.differing = {i: both for i, both in done.differing.items() if i.partition("[")[0] not in functions}


def _differing(plain: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    ids = dict.fromkeys((*plain, *ours))
    both = {i: (plain.get(i) or "absent", ours.get(i) or "absent") for i in ids}
    return {i: (one, other) for i, (one, other) in both.items() if one != other}
