"""Random turns under the gate: what stays is exactly what was green and cost nothing, byte for byte, wherever it stops.

The judgement is modelled here a second time, from what the gate promises and by trying every choice of edits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations, product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agents.test_prompt_prefix import check as check_prefixes
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget
from jumar.core.state.reply import Reply
from jumar.models.script import ScriptLine
from jumar.ports import Answer, Ask, Site
from support.worlds.driver_world import Heard, Turns, both, call, ended, swift
from support.worlds.gate_world import Terms, claim, edit, gated, lying, write

Files = dict[str, str]
PLACES = {"a": "a.py", "b": "b.py", "c": "c.py"}
VARIABLES = ("a0", "a1", "a2", "b0", "b1", "b2", "c0")
START = {"a.py": "a0 = 0\na1 = 0\na2 = 0\n", "b.py": "b0 = 0\nb1 = 0\nb2 = 0\n", "test_p.py": "# the tests\n"}
"""`c.py` is not there at first."""


def value(files: Mapping[str, str], variable: str) -> int | None:
    """What *variable* is in *files*."""
    found = re.search(rf"^{variable} = (\d)", files.get(PLACES[variable[0]], ""), re.MULTILINE)
    return int(found[1]) if found else None


Needs = Mapping[str, int]
Pick = Callable[[int], int]
"""Picks a number that is less than another."""


@dataclass(frozen=True)
class Tests:
    """Which values each test wants; those of the agent's own say so in their files."""

    __test__ = False
    given: Mapping[str, Needs]

    def green(self, files: Mapping[str, str]) -> dict[str, bool]:
        """Test id -> whether it is green in *files*."""
        own = {f"{p}::t": dict([_need(text)]) for p, text in sorted(files.items()) if p.startswith("test_new")}
        return {i: all(value(files, v) == n for v, n in needs.items()) for i, needs in {**self.given, **own}.items()}

    def judge(self, files: Mapping[str, bytes]) -> dict[str, str]:
        """The same as the verifier's outcomes."""
        texts = {path: data.decode() for path, data in files.items()}
        return {i: "passed" if green else "failed" for i, green in self.green(texts).items()}


def _need(text: str) -> tuple[str, int]:
    variable, number = re.findall(r"(\w\d) (\d)", text)[0]
    return variable, int(number)


@dataclass
class Change:
    """One edit: a file before and after it, as they were when it was made."""

    path: str
    before: str | None
    after: str | None

    def on(self, files: Files) -> Files | None:
        """*files* with it; None: it does not apply, because lines that it replaces are not as they were."""
        now = files.get(self.path)
        if now == self.before:
            made = self.after
        elif None in (now, self.before, self.after):
            return None
        else:
            old, new, lines = (str(t).splitlines() for t in (self.before, self.after, now))
            differing = [n for n, (x, y) in enumerate(zip(old, new, strict=True)) if x != y]
            span = slice(differing[0], differing[-1] + 1)
            if lines[span] != old[span]:
                return None
            lines[span] = new[span]
            made = "".join(f"{line}\n" for line in lines)
        left = {path: text for path, text in files.items() if path != self.path}
        return left if made is None else {**left, self.path: made}


@dataclass
class Job:
    """Edits that were claimed for the same tests, or that write one new test file."""

    tests: tuple[str, ...]
    changes: list[Change] = field(default_factory=list)

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(change.path for change in self.changes))


class Turn:
    """The jobs of one turn, and what may become of them."""

    def __init__(self, base: Files, tests: Tests) -> None:
        self.base, self.now, self.tests = base, dict(base), tests
        self.jobs: list[Job] = []
        self.order: list[tuple[Job, Change]] = []

    def make(self, job: Job, path: str, after: str | None) -> None:
        """Edit *path*, on top of what was edited before."""
        change = Change(path, self.now.get(path), after)
        self.now = change.on(self.now) or {}
        job.changes.append(change)
        self.order.append((job, change))

    def tree(self, kept: Sequence[Job]) -> Files | None:
        """The base with exactly the edits of *kept*, in their order; None: they do not apply without the others."""
        return self.made([change for job in kept for change in job.changes])

    def red(self, files: Files, kept: Sequence[Job]) -> list[Job]:
        """Those of *kept* whose own tests are not what they must be in *files*: green, or red if they are new."""
        green = self.tests.green(files)
        return [j for j in kept if not (all(green[i] for i in j.tests) if j.tests else not green[f"{j.paths[0]}::t"])]

    def lost(self, files: Files) -> bool:
        """Whether something green is red in *files*."""
        green = self.tests.green(files)
        return any(was and not green[i] for i, was in self.tests.green(self.base).items())

    def sound(self, kept: Sequence[Job]) -> bool:
        """Whether *kept* may stay."""
        files = self.tree(kept)
        return files is not None and not self.red(files, kept) and not self.lost(files)

    def check(self, after: Files) -> dict[int, Job]:
        """What went back, by the place of its job, given the files *after* the turn; asserts that it is what may."""
        choices = [list(c) for n in range(len(self.jobs), -1, -1) for c in combinations(self.jobs, n)]
        kept = next((k for k in choices if self.tree(k) == after and self.sound(k)), None)
        red = self.red(self.now, self.jobs)
        if kept is None:
            assert any(self.mixed(job) for job in self.jobs), "what stays is whole, green and costs nothing"
            return self.check_edits(after)
        if self.sound(self.jobs):
            assert kept == self.jobs, "all are green: all stay"
        rest = [job for job in self.jobs if job not in red]
        if red and rest and self.sound(rest):
            assert all(job in kept for job in rest), "without those that stayed red the others are good: they stay"
            assert len(red) > 1 or kept == rest, "the one that stayed red goes back"
        alone = [job for job in self.jobs if self.sound([job])]
        apart = all(self.tree(c) is not None for c in choices)
        if apart and all(self.sound(c) is all(job in alone for job in c) for c in choices if c):
            assert kept == alone, "where no edit has to do with another, each stands for itself"
        return {n: job for n, job in enumerate(self.jobs) if job not in kept}

    def mixed(self, job: Job) -> bool:
        """Whether several edits were claimed for several tests."""
        return len(job.tests) > 1 and len(job.changes) > 1

    def check_edits(self, after: Files) -> dict[int, Job]:
        """The same where edits that were claimed together are judged by themselves."""
        ways: list[list[Sequence[Change]]] = []
        for job in self.jobs:
            all_of_it = job.changes
            some = [c for n in range(len(all_of_it)) for c in combinations(all_of_it, n)] if self.mixed(job) else [()]
            ways.append([all_of_it, *some])
        green = self.tests.green(after)
        assert not self.lost(after), "nothing is lost"
        # Several choices of edits may come to one tree: one of them must be as the rule says.
        same = (w for w in product(*ways) if self.made(list(chain.from_iterable(w))) == after)
        found = next((w for w in same if self.borne_out(w, after)), None)
        assert found is not None, "what stays whole is green, and what stays in part turned something green"
        parts = [Job(job.tests, list(changes)) for job, changes in zip(self.jobs, found, strict=True)]
        gone = {}
        for n, (job, part) in enumerate(zip(self.jobs, parts, strict=True)):
            if len(part.changes) < len(job.changes):
                left = tuple(i for i in job.tests if not (part.changes and green[i]))
                gone[n] = Job(left, [c for c in job.changes if c not in part.changes])
        return gone

    def borne_out(self, way: Sequence[Sequence[Change]], after: Files) -> bool:
        """Whether each job is whole and green, or gone, or turned something green with the part that stays."""
        green = self.tests.green(after)
        for job, changes in zip(self.jobs, way, strict=True):
            whole = len(changes) == len(job.changes)
            if changes and (self.red(after, [job]) if whole else not any(green[i] for i in job.tests)):
                return False
        return True

    def made(self, changes: Sequence[Change]) -> Files | None:
        """The base with *changes*, in the order of the turn."""
        files: Files | None = self.base
        for _, change in self.order:
            if files is not None and any(change is one for one in changes):
                files = change.on(files)
        return files


class Drawing(Heard):
    """A model that draws what it asks for, and checks what became of it when it is asked again."""

    def __init__(self, pick: Pick, tests: Tests) -> None:
        super().__init__(())
        self.pick, self.tests = pick, tests
        self.made: Turns
        self.turn: Turn | None = None
        self.lines: list[ScriptLine] = []
        self.failures: dict[str, int] = {}
        self.ended: set[str] = set()
        self.seen = 0
        self.ran = 1
        self.number = 0
        self.deletes = 2
        """The same action three times in six ends a run, in the middle of a reply too."""

    async def complete(self, ask: Ask) -> Answer:
        """The next turn."""
        self.prompts.append(ask.messages)
        self.judge()
        line = self.next()
        self.lines.append(line)
        calls = tuple(replace(c, id=f"c{len(self.lines)}_{n}") for n, c in enumerate(line.tool_calls))
        return Answer(reply=Reply("", calls), usd=0.01)

    def judge(self) -> None:
        """What became of the last turn."""
        files, events = self.files(), [entry.event for entry in self.made.world.entries()]
        news, self.seen = events[self.seen :], len(events)
        assert all(e.admitted for e in news if isinstance(e, ev.ActionTaken)), "what a red test asks for is admitted"
        if self.turn is None:
            return
        asked = len(self.made.world.verifier.asked)
        gone = self.turn.check(files)
        if self.turn.jobs and not gone:
            assert asked - self.ran <= 1, "one invocation for all claims of a turn"
        self.ran = asked
        told = [e for e in news if isinstance(e, ev.Repair)]
        assert sorted({(i, p) for e in told for i in e.test_ids for p in e.edits}) == sorted(
            {(i, p) for job in gone.values() for i in job.tests for p in job.paths}
        ), "a repair names what went back"
        for test_id in {i for job in gone.values() for i in job.tests}:
            self.failures[test_id] = self.failures.get(test_id, 0) + 1
            assert {e.failures for e in told if test_id in e.test_ids} == {self.failures[test_id]}
            if self.failures[test_id] == 2:
                self.ended.add(test_id)
                del self.failures[test_id]
        kept = [j for n, j in enumerate(self.turn.jobs) if n not in gone or len(gone[n].changes) < len(j.changes)]
        green = self.tests.green(files)
        if any(job.tests for job in kept):
            self.ended.clear()
        self.failures = {i: n for i, n in self.failures.items() if not green[i]}
        self.turn = None

    def files(self) -> Files:
        """What lies in the workspace."""
        return lying(self.made)

    def next(self) -> ScriptLine:
        """A turn of some jobs."""
        files = self.files()
        green = self.tests.green(files)
        open_to_claims = [i for i, passes in green.items() if not passes and i not in self.ended]
        if len(self.lines) >= TURNS or not open_to_claims:
            return call("final", message="done")
        turn = self.turn = Turn(files, self.tests)
        calls: list[ScriptLine] = []
        for _ in range(1 + self.pick(4)):
            if self.pick(6) == 0:
                calls += self.authored(turn)
            elif open_to_claims:
                many = 2 if self.pick(5) == 0 and len(open_to_claims) > 1 else 1
                calls += self.edited(turn, [open_to_claims.pop(self.pick(len(open_to_claims))) for _ in range(many)])
        return both(*calls) if calls else call("list_files", path=f"x{len(self.lines)}")

    def authored(self, turn: Turn) -> list[ScriptLine]:
        """A new test file."""
        self.number += 1
        path, job = f"test_new{self.number}.py", Job(())
        variable = VARIABLES[self.pick(len(VARIABLES))]
        turn.jobs.append(job)
        turn.make(job, path, f"# {variable} {self.pick(3)}\n")
        return [write(path, turn.now[path])]

    def edited(self, turn: Turn, ids: list[str]) -> list[ScriptLine]:
        """Claims of *ids* and edits: such as make them green, and such as do not."""
        job = Job(tuple(ids))
        needs = dict(chain.from_iterable(self.wanted(turn, i).items() for i in ids))
        right = self.pick(4) > 0
        wanted = [v for v in needs if right or self.pick(2)]
        if self.pick(3) == 0 or not wanted:
            wanted.append(VARIABLES[self.pick(len(VARIABLES))])
        edits: list[ScriptLine] = []
        for variable in dict.fromkeys(wanted):
            number = needs[variable] if right and variable in needs else self.pick(3)
            edits.append(self.assigned(turn, job, variable, number))
        turn.jobs.append(job)
        return [*(claim(i, path) for path in job.paths for i in ids), *edits]

    def wanted(self, turn: Turn, test_id: str) -> Needs:
        """What a test needs."""
        given = self.tests.given.get(test_id)
        return given if given is not None else dict([_need(turn.base[test_id.partition("::")[0]])])

    def assigned(self, turn: Turn, job: Job, variable: str, number: int) -> ScriptLine:
        """An edit that gives *variable* the value *number*, in a line like no other."""
        self.number += 1
        path = PLACES[variable[0]]
        text, line = turn.now.get(path), f"{variable} = {number}  # {self.number}"
        if text is None or not re.search(rf"^{variable} = ", text, re.MULTILINE):
            lines = [line if v == variable else f"{v} = 0" for v in VARIABLES if PLACES[v[0]] == path]
            turn.make(job, path, "".join(f"{x}\n" for x in lines))
            return write(path, turn.now[path])
        if text is not None and self.deletes and self.pick(10) == 0:
            self.deletes -= 1
            turn.make(job, path, None)
            return call("delete_file", path=path)
        (old,) = re.findall(rf"^{variable} = .*$", text, re.MULTILINE)
        turn.make(job, path, text.replace(old, line))
        return edit(path, old, line) if self.pick(2) else write(path, turn.now[path])


TURNS = 5


def sites(path: str, _source: bytes) -> tuple[Site, ...]:
    """The one test of each file that the agent wrote."""
    return (Site(f"{path}::t", 1, 1),) if path.startswith("test_new") else ()


NEEDS = st.lists(
    st.dictionaries(st.sampled_from(VARIABLES), st.integers(0, 2), min_size=1, max_size=2), min_size=3, max_size=7
)


def lived(folder: Path, needs: list[dict[str, int]], pick: Pick) -> Drawing:
    """A run of random turns, each of which was checked."""
    tests = Tests({f"test_p.py::t{n}": need for n, need in enumerate(needs)})
    model = Drawing(pick, tests)
    terms = Terms(
        files=START, only=True, also_expected=tuple(tests.given), judge=tests.judge, sites=sites, model=model,
        instruction="go on", budget=Budget(attempts=None),
    )  # fmt: skip
    model.made = gated(folder, (), terms)
    ended(model.made)
    model.judge()
    assert model.made.world.replayed() == model.made.world.kernel.state
    check_prefixes(model.prompts)
    return model


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(NEEDS, st.data())
def test_what_stays_of_a_turn_is_what_was_green_and_cost_nothing(
    needs: list[dict[str, int]], data: st.DataObject
) -> None:
    with swift() as folder:
        lived(folder, needs, lambda most: data.draw(st.integers(0, most - 1)))


@pytest.mark.proof
@settings(max_examples=100, deadline=None)
@given(NEEDS, st.data())
def test_what_stays_of_more_turns(needs: list[dict[str, int]], data: st.DataObject) -> None:
    with swift() as folder:
        lived(folder, needs, lambda most: data.draw(st.integers(0, most - 1)))


@pytest.mark.proof
@settings(max_examples=3000, deadline=None)
@given(NEEDS, st.data())
def test_what_stays_of_a_turn_over_many_runs(needs: list[dict[str, int]], data: st.DataObject) -> None:
    with swift() as folder:
        lived(folder, needs, lambda most: data.draw(st.integers(0, most - 1)))
