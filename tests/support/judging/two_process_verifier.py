"""A court that judges in two processes: what lies in `product.py` is the product, all else is the tests'."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import anyio
import msgspec

from jumar.core.gate.challenge_rounds import Round
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Report, reconcile
from jumar.ports import Sandbox
from jumar.runners.pytest import plugin
from jumar.verify.rounds import GreenCandidate, Seeds, begin_rounds, run_fresh_apart
from jumar.verify.two_process import run_two_processes
from support.judging.real_verifier import Court
from support.processes.sandboxes import ENVIRON

SHADOWING = ("click.py",)
"""A product of that name is judged, and not the package that is installed."""

SHORT = Suite(timeout_seconds=60.0, test_timeout_seconds=10.0)
"""Long enough for a busy machine, on which a second becomes several; a test in which something hangs has its own."""


def is_product(path: str) -> bool:
    return Path(path).name.startswith("product") or path in SHADOWING


def ids_of(files: Mapping[str, str]) -> tuple[str, ...]:
    """The ids that syntax trees give."""
    tests = plugin.test_files(files, ())
    return tuple(site.id for path in tests for site in plugin.sites(path, files[path].encode()))


def reported(
    folder: Path,
    files: Mapping[str, str],
    product: Callable[[str], bool] = is_product,
    suite: Suite = SHORT,
    sandbox: Sandbox | None = None,
) -> Report:
    """What the tests' process reports of the project *files*."""
    court = Court(folder, suite)
    if sandbox:
        court.verifier.sandbox, court.verifier.environ = sandbox, ENVIRON
    begin_rounds(court.verifier)
    question = court.verifier.build_two_process_trial(court.tree(files), ids_of(files))._replace(product=product)
    records, child = anyio.run(run_two_processes, question)
    report = plugin.report(records, child.ended, child.detail)
    return msgspec.structs.replace(report, anomalies=(*report.anomalies, *child.anomalies))


def run_bodies(folder: Path, product: str, head: str, bodies: Iterable[str]) -> Report:
    """Run tests with these *bodies* in two processes, with *head* above them, beside the module *product*."""
    tests = "".join(f"def test_{n}(caplog):\n    {body}\n" for n, body in enumerate(bodies))
    return reported(folder, {"product.py": product, "test_product.py": f"{head}\n\n{tests}"})


def confirm(folder: Path, files: Mapping[str, str]) -> Report:
    """The report of a round of a confirmation, which sees what is compared; nothing is falsified."""
    court = Court(folder, SHORT)
    court.verifier.sources = is_product
    own = (path for path in files if path.endswith(".py") and not is_product(path))
    court.verifier.experience.challenge = {path: files[path].encode() for path in own}
    tree = court.tree(files)
    green = GreenCandidate(court.verifier, tree, tree, ids_of(files), {})
    report = anyio.run(run_fresh_apart, green, Round(frozenset()), Seeds(1, 1))
    assert report
    return report


def confirmed(folder: Path, files: Mapping[str, str]) -> dict[str, str]:
    """Test name -> outcome in a round of a confirmation."""
    return outcomes(confirm(folder, files))


def confirm_bodies(folder: Path, product: str, head: str, bodies: Iterable[str]) -> dict[str, str]:
    """Body -> outcome, of tests with these *bodies*, *head* above them, in a round of a confirmation."""
    tests = "".join(f"def test_{n}():\n    {body}\n" for n, body in enumerate(bodies))
    files = {"product.py": product, "test_product.py": f"from product import *\n{head}\n\n{tests}"}
    said = confirmed(folder, {**files, "pytest.ini": "[pytest]\nfilterwarnings = error\n"})
    return {body: said[f"test_{n}"] for n, body in enumerate(bodies)}


def outcomes(report: Report) -> dict[str, str]:
    """Test name -> outcome."""
    return {r.id.rpartition("::")[2]: str(r.outcome) for r in report.results}


def green(report: Report, files: Mapping[str, str]) -> bool:
    """Whether the project is believed to be green."""
    return reconcile(ids_of(files), report, {}).green
