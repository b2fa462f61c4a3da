"""Line coverage per test: the invocation of a traced run, and the suspicious lines in its records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from jumar.child.pytest.line_tracer import IMPORTING
from jumar.core.quoting import make_one_line
from jumar.core.state.events import Localisation
from jumar.core.state.verdict import Ended, Outcome, get_function
from jumar.ports import Invocation, Record
from jumar.verify.localisation.localise import Line, rank

if TYPE_CHECKING:
    from jumar.core.state.settings import Suite
    from jumar.process.child_process import Child

GREEN_SAMPLE = 120
"""Number of green tests that are traced: more cost time and change the ranking little."""

NEAR_SAMPLE = 80
"""Most of them that come from the files of the red tests, as those run most of the lines that the red ones run."""

TEST_SECONDS = 5.0
"""A test that hangs has run its lines before that; a green one that takes longer under trace is left out."""

REASON = 300
"""Characters of what a process says in a reason."""

NOTHING_RAN = "no line of the editable files ran in the process of the tests"
"""Problem of a localisation: the tests do not import the code under test, or cannot."""


def build_traced_invocation(
    verification: Callable[[Suite, Path, Sequence[str]], Invocation],
    suite: Suite,
    room: Path,
    sides: tuple[Sequence[str], Sequence[str]],
    files: Iterable[str],
) -> Invocation:
    """Return the invocation that records the lines of *files* for all red tests and a sample of the green ones.

    *verification* is the runner's own; *sides* are the red tests, whose files come first, and the green ones.
    """
    red, green = sides
    short = msgspec.structs.replace(suite, test_timeout_seconds=min(suite.test_timeout_seconds, TEST_SECONDS))
    return build_coverage_invocation(verification(short, room, (*red, *_sample(red, green))), files)


def build_coverage_invocation(invocation: Invocation, files: Iterable[str]) -> Invocation:
    """Return *invocation* so that it records the lines of *files* that each of its tests runs."""
    return msgspec.structs.replace(invocation, config={**invocation.config, "quiet": True, "trace": list(files)})


def _sample(red: Sequence[str], green: Sequence[str]) -> Sequence[str]:
    """Return the green tests to trace, those from the files of the *red* ones first."""
    if len(green) <= GREEN_SAMPLE:
        return green
    files = {test_id.partition("::")[0] for test_id in red}
    near = _spread([i for i in green if i.partition("::")[0] in files], NEAR_SAMPLE)
    return (*near, *_spread([i for i in green if i.partition("::")[0] not in files], GREEN_SAMPLE - len(near)))


def _spread(ids: Sequence[str], most: int) -> Sequence[str]:
    """Return at most *most* of *ids*, evenly spread among them."""
    return ids[:: -(-len(ids) // most)] if ids else ids


def build_localisation(
    tree: str, red: Sequence[str], records: Sequence[Record], child: Child, duration_ms: int
) -> Localisation:
    """Return the localisation on *tree* that the records of a traced run of *red* and other tests amount to."""
    suspects = rank_lines(records, red)
    why = find_problem(records, child.ended, child.detail)
    return Localisation(tree=tree, suspects=suspects, problem=why, duration_ms=duration_ms)


def rank_lines(records: Iterable[Record], red: Sequence[str]) -> tuple[tuple[str, int, float], ...]:
    """Return the suspicious lines. A test without a result (the process was lost in it) is as red as it was before."""
    lines: dict[str, set[Line]] = {}
    outcomes: dict[str, object] = {}
    for record in records:
        match record:
            case ["lines", str(test_id), str(path), list(numbers)]:
                lines.setdefault(test_id, set()).update((path, int(n)) for n in numbers)
            case ["result", str(test_id), outcome, *_]:
                outcomes[test_id] = outcome
    imported = lines.pop(IMPORTING, set())
    asked = frozenset(red)
    passed = {i for i, outcome in outcomes.items() if outcome == Outcome.PASSED}
    failed = [i for i in {**lines, **outcomes} if i not in passed and (i in asked or get_function(i) in asked)]
    unheard = [i for i in red if not any(i in (f, get_function(f)) for f in failed)]
    return rank([lines.get(i, set()) for i in (*failed, *unheard)], [lines.get(i, set()) for i in passed], imported)


def find_problem(records: Sequence[Record], ended: Ended, detail: str) -> str:
    """Return the reason why a traced run says less than it should about where the fault is; empty: it is whole."""
    tests = sum(record[0] == "result" for record in records)
    for record in records:
        match record:
            case ["unusable" | "usage" | "stopped", str(why)]:
                return make_one_line(why, REASON)
    if ended is not Ended.NORMAL:
        return f"the run under trace ended after {tests} tests: {make_one_line(detail, REASON) or ended}"
    if not any(record[0] == "lines" for record in records):
        return NOTHING_RAN
    return ""
