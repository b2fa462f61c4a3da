"""What becomes of every attack of the corpus under each layer, and of every honest look-alike; writes docs/cheats.md.

    python bench/cheats.py [--only ID ...] [--write]

An attack is read three ways from plain pytest (exit status; a report in which nothing failed; a JUnit report in which
every expected id passed) and is then judged by jumar with one layer more at a time. The first layer under which it is
not green has stopped it. At last each layer is switched off alone.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as but
from pathlib import Path
from typing import NamedTuple

import anyio

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from jumar.runs.setup.choose_sandbox import SandboxSurroundings, choose_sandbox
from support.judging.attack_corpus import Project, attacks, laid, lookalikes, named, plain
from support.judging.layers import NAMES, Ladder, Layers, Ruling, outcomes_of, up_to, without

DOCUMENT = Path(__file__).parent.parent / "docs" / "cheats.md"

ONE_RUN = NAMES[: NAMES.index("challenge")]
"""The layers of every verification; those after them come when a green is accepted."""

AT_ONCE = 2

UNTOLD = ("blind", "elsewhere")
"""Classes of attacks that no run of the tests tells from honest code; see `HEAD`."""

SAID = {
    "start": "the trusted start",
    "reconciliation": "reconciliation",
    "configuration": "the clean room: configuration",
    "freeze": "the clean room: frozen tests",
    "tripwire": "the tripwire",
    "challenge": "challenges and fresh runs",
    "apart": "two processes",
    "held_out": "held-out tests",
    "": "nothing",
}

STATUS = {"passed": "passed", "failed": "failure", "error": "error", "skipped": "skipped", "xfailed": "skipped",
          "xpassed": "passed"}  # fmt: skip
"""Our outcomes in the words of a JUnit report."""

HEAD = """# Attacks on a verdict, and what stops them

Written by `python bench/cheats.py --write`; the corpus is `tests/cheats/`. F: that reading takes the attack for green.

Readings of plain pytest: its exit status; a report in which nothing failed; a JUnit report in which every expected id
passed. jumar, in S3: one run (D), a green accepted under challenge, in two processes where tests run that way, with
held-out tests. The last three columns have the grade of an accepted green: `C` and `D` say that it is not proved. With
held-out tests, as by default, a green that the change made harder to judge is not accepted (`--min-grade reachable`).
`=` behind the last grade: right code has no better one there, as its tests are about what only one process has, or
cannot be proved; `jumar check` says so of a task.

Attacks of the class `blind` do what an honest library may do, and the tests cannot tell, or are told what is expected,
as a test asks the code for that ([ADR 061](adr/061-code-does-not-hear-which-name-is-read.md)): their files say why.
Those of the class `elsewhere` are right wherever pytest is loaded, with the held-out tests too, and do something wrong
elsewhere that two processes do not show ([ADR 042](adr/042-held-out-tests-are-judged-in-both-ways.md)).

s37c_by_order, s40_lucky, x214_stop_of_the_tests and x504 to x507 (right in some orders of their tests) depend on the
draw of the order of tests and on chance: their rows differ from run to run. So does the last column of x580, y140 and
y141.
"""


@dataclass
class Row:
    """One attack."""

    project: Project
    plain: tuple[bool, bool, bool] = (False, False, False)
    one_run: bool = False
    challenged: bool = False
    apart: bool = False
    held_out: bool = False
    grades: tuple[str, str, str] = ("", "", "")
    """Of the green that was accepted under challenge, in two processes, with held-out tests; empty: none was."""
    right: str = ""
    """Grade of right code with held-out tests, where the attack is accepted; empty: that is not accepted."""
    stopped: str = ""
    why: str = ""
    misses: list[str] = field(default_factory=list)
    """Layers without which it would be green."""


async def climbed(ladder: Ladder, project: Project) -> Row:
    """Judge *project* by more and more layers."""
    row = Row(project)
    case = await ladder.case(project)
    row.plain = await anyio.to_thread.run_sync(ladder.readings, project, case)
    ruling = await ladder.feedback(project, Layers())
    row.one_run = ruling.green
    if ruling.green:
        await _accepted(ladder, row)
    else:
        row.stopped, row.why = await _first(ladder, project), ruling.why
        if row.stopped in ONE_RUN and (await ladder.feedback(project, without(row.stopped))).green:
            row.misses.append(row.stopped)
    return row


async def _first(ladder: Ladder, project: Project) -> str:
    """The weakest layer of one run that stops *project*."""
    nothing = Layers(**dict.fromkeys(NAMES, False))
    if not (await ladder.feedback(project, nothing)).green:
        return "start"
    for name in ONE_RUN[:-1]:
        if not (await ladder.feedback(project, up_to(name))).green:
            return name
    return ONE_RUN[-1]


async def _accepted(ladder: Ladder, row: Row) -> None:
    """Judge a green as before it is kept: under challenge, in two processes, and with held-out tests."""
    challenged = await ladder.accepted(row.project, up_to("challenge"))
    apart = await ladder.accepted(row.project, up_to("apart"))
    full = await ladder.accepted(row.project, Layers())
    row.challenged, row.apart, row.held_out = challenged.green, apart.green, full.green
    row.grades = tuple(r.grade if r.green else "" for r in (challenged, apart, full))  # type: ignore[assignment]  # three
    rulings = {"challenge": challenged, "apart": apart, "held_out": full}
    if full.green:
        ruling = await ladder.accepted(row.project._replace(attack=row.project.honest, pyc={}), Layers())
        row.right = ruling.grade if ruling.green else ""
    row.stopped = next((name for name, ruling in rulings.items() if not ruling.green), "")
    row.why = rulings[row.stopped].why if row.stopped else ""
    if row.stopped and (await ladder.accepted(row.project, _ablated(row.stopped))).green:
        row.misses.append(row.stopped)


def _ablated(name: str) -> Layers:
    """All but *name*; where tests cannot run apart there are challenges alone, so without them there is neither."""
    return but(without(name), apart=False, held_out=False) if name == "challenge" else without(name)


async def honest(ladder: Ladder, project: Project, folder: Path) -> tuple[Ruling, dict[str, tuple[str, str]]]:
    """The ruling on a look-alike, and every id that came out in another way than under plain pytest."""
    ruling = await ladder.accepted(project, Layers())
    case = await ladder.case(project)
    place = laid(folder / project.id, project.base)
    _, report = await anyio.to_thread.run_sync(plain, place, project)
    there, ours = outcomes_of(report, case.expected), await ladder.outcomes(project)
    return ruling, {i: (there[i], ours[i]) for i in there if STATUS.get(ours[i]) != there[i]}


class Measured(NamedTuple):
    """What was found."""

    rows: list[Row]
    honest: int
    """How many look-alikes were judged."""
    wrong: list[str]
    """A line for each look-alike that was not accepted as it is."""


async def measured(folder: Path, only: Sequence[str]) -> Measured:
    """Judge the whole corpus, or those of it whose names are in *only*."""
    # Two processes are tried where one cannot reach the other, so it is judged as users judge: in S3.
    box = await choose_sandbox("S3", SandboxSurroundings(folder, dict(os.environ)), unattended=False)
    ladder, rows, wrong = Ladder(folder, box), list[Row](), list[str]()
    known = [*attacks(), *lookalikes()]
    limit = anyio.CapacityLimiter(AT_ONCE)

    async def judge(project: Project) -> None:
        async with limit:
            if project.layer:
                rows.append(await climbed(ladder, project))
                last = rows[-1]
                print(f"{project.id}: {SAID[last.stopped]}: {last.why}"[:150], file=sys.stderr)
                return
            ruling, differs = await honest(ladder, project, folder / "plain")
            print(f"{project.id}: {'accepted' if ruling.green else 'REJECTED'} {ruling.grade}", file=sys.stderr)
            if not ruling.green or differs:
                wrong.append(f"{project.id}: {ruling.why or differs}")

    chosen = named(known, *only) if only else known
    async with anyio.create_task_group() as group:
        for project in chosen:
            group.start_soon(judge, project)
    rows.sort(key=lambda row: row.project.id)
    return Measured(rows, len(chosen) - len(rows), sorted(wrong))


def is_unprovable(row: Row) -> bool:
    """Tell an attack that is accepted with held-out tests for which right code has no better grade."""
    better = row.right and row.right[0] < row.grades[2][0]
    return bool(row.grades[2]) and not better and row.project.kind not in UNTOLD


def find_bought(rows: Iterable[Row]) -> list[str]:
    """The attacks that were accepted at A or B with held-out tests, and not because no run could tell."""
    return [row.project.id for row in rows if row.grades[2][:1] in ("A", "B") and row.project.kind not in UNTOLD]


def document(found: Measured) -> str:
    """The page."""
    rows = found.rows
    parts = [HEAD, _counts(rows), _table(rows), _ablation(rows), "## Honest look-alikes\n"]
    said = f"{found.honest - len(found.wrong)} of {found.honest} accepted, each id as under plain pytest."
    return "\n".join([*parts, said, *(f"- {line}" for line in found.wrong)]) + "\n"


def _counts(rows: Sequence[Row]) -> str:
    def many(of: Iterable[bool]) -> str:
        return str(sum(of))

    told = [row for row in rows if row.project.kind not in UNTOLD]
    counts = [
        ("exit status", many(row.plain[0] for row in rows)),
        ("nothing failed", many(row.plain[1] for row in rows)),
        ("every id passed", many(row.plain[2] for row in rows)),
        ("one run (D)", many(row.one_run for row in rows)),
        *((name, _graded(rows, place)) for place, name in enumerate(("challenge", "two processes", "held-out tests"))),
        ("of these, right code has a better grade", _graded([row for row in told if not is_unprovable(row)], 2)),
    ]
    lines = ["| read by | taken for green |", "|---|---|"]
    return "\n".join([f"Of {len(rows)} attacks:\n", *lines, *(f"| {what} | {n} |" for what, n in counts)]) + "\n"


def _graded(rows: Sequence[Row], place: int) -> str:
    """Count the greens that were accepted at each grade; those that no run can tell apart, by class."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("", *UNTOLD)}
    for row in rows:
        counts[row.project.kind if row.project.kind in UNTOLD else ""][row.grades[place].partition("+")[0]] += 1
    said = {name: ", ".join(f"{count[g]} at {g}" for g in "ABCD" if count[g]) for name, count in counts.items()}
    return "; ".join([said[""] or "0", *(f"{name}: {said[name]}" for name in UNTOLD if said[name])])


def _table(rows: Sequence[Row]) -> str:
    lines = [
        "| attack | class | what it does | exit | none failed | ids | one run | challenge | two | +H | stopped by |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        marks = [*("F" if m else "·" for m in (*row.plain, row.one_run)), *(g or "·" for g in row.grades)]
        marks[-1] += " =" if is_unprovable(row) else ""
        cells = [row.project.id, row.project.kind, row.project.title, *marks]
        lines.append("| " + " | ".join([*cells, SAID[row.stopped]]) + " |")
    return "\n".join(lines) + "\n"


def _ablation(rows: Sequence[Row]) -> str:
    lines = [
        "## Each layer switched off\n",
        "Of a single run where that is where it stands, else of the acceptance of a green; challenges are switched off",
        "where tests do not run apart. What is green then:\n",
    ]
    for name in NAMES:
        missed = [row.project.id.partition("_")[0] for row in rows if name in row.misses]
        nothing = "nothing: what they are for is the grade" if name == "apart" else "nothing in this corpus"
        lines.append(f"- **{SAID[name]}**: {', '.join(missed) or nothing}")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="names of attacks or look-alikes")
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jumar-cheats-") as temporary:
        found = anyio.run(measured, Path(temporary), given.only)
    page = document(found)
    print(page)
    if given.write and not given.only:
        DOCUMENT.write_text(page, "utf-8")
    green = find_bought(found.rows)
    if green or found.wrong:
        raise SystemExit(f"green: {green}; look-alikes: {found.wrong}")


if __name__ == "__main__":
    main()
