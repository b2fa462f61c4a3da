"""A probe changes what the candidate changed, and tells which of it the tests do not see."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.child.analysis import mutants_main
from jumar.child.analysis.mutation_operators import build_operators
from jumar.core.state.settings import Suite
from jumar.verify.mutation_probe import MutationFindings, make_mutants, probe
from support.judging.real_verifier import Court

BASE = "def clamp(n, low, high):\n    return n\n\n\ndef untouched(n):\n    return n + 1\n"
DONE = """def clamp(n, low, high):
    if n < low:
        return low
    if n > high:
        return high
    return n


def untouched(n):
    return n + 1
"""
TESTS = "from app import clamp\n\n\ndef test_high():\n    assert clamp(5, 1, 3) == 3\n"
STEPS = {
    "a < b": {"a <= b", "a >= b"},
    "a is not b": {"a is b"},
    "(a) + (b)": {"(a) - (b)"},
    "x += 1": {"x -= 1", "x += 2", "x += 0", "pass"},
    "a and b": {"a or b", "True and b", "a and True"},
    "not a": {"a"},
    "x = -y": {"x = y", "pass"},
    "x = True": {"x = False", "pass"},
    "x = 'é'": {"x = 'mutant' + 'é'", "pass"},
    "f(a)": {"a", "pass"},
    "f(a, b)": {"pass"},
    "x[a:]": {"x[:]", "pass"},
    "def f():\n    return a": {"def f():\n    return None"},
    "for a in b:\n    break": {"for a in b:\n    continue"},
    "if a:\n    b()": {"if not a:\n    b()", "if False:\n    b()", "if True:\n    b()", "if a:\n    pass"},
    "def f(a: int = 3) -> 4:\n    '''Says 5.'''": {
        "def f(a: int = 4) -> 4:\n    '''Says 5.'''",
        "def f(a: int = 2) -> 4:\n    '''Says 5.'''",
    },
    "f'{a}{1}'": set(),
}


def steps(source: str, lines: set[int]) -> set[str]:
    """What the mutants of *source* mean."""
    steps, data = build_operators(), source.encode()
    made = {data[:start] + text + data[end:] for start, end, text, *_ in mutants_main.apply_steps(data, lines, steps)}
    return {ast.unparse(ast.parse(text)) for text in made if mutants_main.dump_tree(text)}


@pytest.mark.parametrize("source", STEPS)
def test_each_step_is_a_small_one_at_its_place(source: str) -> None:
    same = ast.unparse(ast.parse(source))
    expected = {ast.unparse(ast.parse(text)) for text in STEPS[source]}

    made = steps(source, set(range(1, 9))) - {same}

    assert expected <= made
    assert not expected or len(made) <= len(expected) + 3  # of the operands inside: none was forgotten in the list


def test_only_changed_lines_are_mutated() -> None:
    lines, hunks = mutants_main.diff_lines(BASE.encode().split(b"\n"), DONE.encode().split(b"\n"))

    assert lines == {2, 3, 4, 5}
    assert len(hunks) == 1
    assert not any("n - 1" in text for text in steps(DONE, lines))


@pytest.mark.slow
@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=8), st.lists(st.sampled_from(["a", "b", "c"]), max_size=8))
def test_a_hunk_undone_is_what_stood_there_before(old: list[str], new: list[str]) -> None:
    before, now = ("".join(f"{line}\n" for line in lines).encode() for lines in (old, new))
    _, hunks = mutants_main.diff_lines(before.split(b"\n"), now.split(b"\n"))

    for hunk in reversed(hunks):
        start, end, text, *_ = mutants_main.undo_hunks(before, now, hunk)
        now = now[:start] + text + now[end:]

    assert now == before


class Case:
    """A candidate before a court."""

    def __init__(
        self, folder: Path, base: Mapping[str, str], done: Mapping[str, str], suite: Suite | None = None
    ) -> None:
        self.court = Court(folder, suite or Suite(timeout_seconds=20.0, test_timeout_seconds=1.0))
        self.court.verifier.sources = lambda path: path.endswith(".py") and not path.startswith("test_")
        self.base, self.done = self.court.tree(base), self.court.tree(done)
        self.court.collect(self.done)

    def probed(self, most: int, seed: int = 0) -> MutationFindings:
        """What the tests notice."""

        async def run() -> MutationFindings:
            return await probe(self.court.verifier, self.base, self.done, most=most, seed=seed)

        return anyio.run(run)

    def mutants(self, most: int = 20, seed: int = 0) -> list[str]:
        """What the mutants are."""

        async def run() -> list[str]:
            made = await make_mutants(self.court.verifier, self.base, self.done, most=most, seed=seed)
            assert len({tree for tree, _ in made} - {self.done}) == len(made)
            return [what for _, what in made]

        return anyio.run(run)


@pytest.mark.slow
def test_what_no_test_notices_is_named(tmp_path: Path) -> None:
    case = Case(tmp_path, {"app.py": BASE, "test_app.py": TESTS}, {"app.py": DONE, "test_app.py": TESTS})

    done = case.probed(4)

    assert done.total == 4
    assert 0 < done.noticed < 4
    assert done.noticed + len(done.unnoticed) == done.total
    assert "app.py:3: `None` returned" in done.unnoticed  # no test is below the range
    assert "app.py:5: `None` returned" not in done.unnoticed
    assert done.summary.startswith(f"noticed {done.noticed} of 4 mutants; unnoticed: app.py:")
    # The verifier is as it was: nothing of its terms was changed for the mutants.
    assert case.court.verifier.suite.timeout_seconds == 20.0


@pytest.mark.proof
def test_a_mutant_that_hangs_is_noticed_and_the_seed_chooses(tmp_path: Path) -> None:
    source = "def count(n):\n    while n > 0:\n        n -= 1\n    return n\n"
    tests = "from app import count\n\n\ndef test_count():\n    assert count(3) == 0\n"
    base = source.replace("n -= 1", "break")
    case = Case(tmp_path, {"app.py": base, "test_app.py": tests}, {"app.py": source, "test_app.py": tests})

    made, other = case.mutants(), case.mutants(seed=1)
    assert made == case.mutants()
    assert made != other
    assert sorted(made) == sorted(other)
    assert case.probed(20) == MutationFindings(4, 4, ())  # `n += 1` and `n -= 0` never end, `n -= 2` and nothing at all


@pytest.mark.slow
def test_what_cannot_be_parsed_or_is_nobodys_source_has_no_mutants(tmp_path: Path) -> None:
    files = {"app.py": BASE, "test_app.py": TESTS, "notes.txt": "1 + 1", "broken.py": "1 + 1"}
    case = Case(tmp_path, files, {**files, "notes.txt": "1 + 2", "broken.py": "1 + (", "test_own.py": "assert 1 < 2\n"})

    assert case.probed(20).summary == "nothing of the changed lines could be mutated"
