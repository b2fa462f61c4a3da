"""Line coverage per test: what is asked of a traced run, and what its records say about where a fault may be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from jumar.core.settings import Suite
from jumar.core.verdict import Outcome
from jumar.ports import Invocation, Record, Runner
from jumar.repair.localise import Line, rank
from jumar.verify.room import discard
from jumar.verify.tracer import IMPORTING

GREEN_SAMPLE = 200
"""As many green tests are traced: more cost time and change the ranking little."""


@contextmanager
def traced(
    runner: Runner, suite: Suite, room: Path, sides: tuple[Sequence[str], Sequence[str]]
) -> Iterator[Callable[[Sequence[str]], Invocation]]:
    """Make coverage, and nothing else of ours, importable in *room*'s process; gives what to run for which files."""
    import coverage  # noqa: PLC0415  40 ms, which only a localisation needs

    red, green = sides
    folder = room.with_name(room.name + ".coverage")
    folder.mkdir()
    (folder / "coverage").symlink_to(Path(coverage.__file__).parent)
    invocation = runner.verification(suite, room, (*red, *green[:: len(green) // GREEN_SAMPLE + 1]))

    def arranged(files: Sequence[str]) -> Invocation:
        trace = {"coverage": str(folder), "files": list(files)}
        return msgspec.structs.replace(invocation, config={**invocation.config, "trace": trace})

    try:
        yield arranged
    finally:
        discard(folder)


def spectrum(records: Iterable[Record], red: Sequence[str]) -> tuple[tuple[str, int, float], ...]:
    """The suspicious lines. A test without a result (the process was lost in it) is as red as it was before."""
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
    failed = [i for i in {**lines, **outcomes} if i not in passed and (i in asked or i.partition("[")[0] in asked)]
    unheard = [i for i in red if not any(i in (f, f.partition("[")[0]) for f in failed)]
    return rank([lines.get(i, set()) for i in (*failed, *unheard)], [lines.get(i, set()) for i in passed], imported)
