"""Scenarios of the gate: what a model asks for, how each action is ruled on, what goes back and what is left."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from jumar.core.state.budget import Budget
from jumar.core.state.ratchet import Ratchet, Rule, Ties
from jumar.core.state.settings import Switches
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Gate
from jumar.core.state.verdict import TestResult, Void
from jumar.models.script import ScriptLine
from support.worlds.driver_world import Turns, both, call
from support.worlds.gate_world import CALC, FILES, TEST_CALC, WORDS, Terms, claim, edit, gated, id_of, judged, write

ADD = edit("calc.py", "a - b", "a + b")
MUL = edit("calc.py", "a ** b", "a * b")
UPPER = edit("words.py", "return text\n", "return text.upper()\n")
WRONG_ADD = edit("calc.py", "a - b", "a")
WRONG_MUL = edit("calc.py", "a ** b", "a")
WRONG_UPPER = edit("words.py", "return text\n", "return text * 2\n")
BREAK_NEG = edit("calc.py", "return -a", "return a")
BREAK_LOWER = edit("words.py", "text.lower()", "text")
"""Edits that turn one test green, leave it red, and cost a green one."""

RUN, DONE = call("run_tests"), call("final", message="done")

CALC_ADD, CALC_MUL = CALC.replace("a - b", "a + b"), CALC.replace("a ** b", "a * b")
CALC_BOTH = CALC_ADD.replace("a ** b", "a * b")
WORDS_UPPER = WORDS.replace("return text\n", "return text.upper()\n")
ALL_GREEN = {"calc.py": CALC_BOTH, "words.py": WORDS_UPPER}

SHOP = {"test_shop.py": "from shop import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"}
TOTAL = "test_shop.py::test_total"
SUMS = "def total(rows):\n    return sum(rows)\n"
SUB = "from calc import sub\n\n\ndef test_sub():\n    assert sub(3, 1) == 2\n"
SUB_ID = "test_sub.py::test_sub"
MAKE_SUB = edit("calc.py", "def neg", "def sub(a, b):\n    return a - b\n\n\ndef neg")
REFACTORS = Switches(model_may_run_tests=True, allow_refactor=True)
PLANNED = "submit_plan"
CONFIGURED = {
    "docs/notes.md": "Sums and products.\n",
    "docs/more.md": "More.\n",
    "requirements.txt": "rate==2\n",
    "pyproject.toml": "[project]\nname = 'calc'\n",
    "tox.ini": "[tox]\n",
}
CODEMODS = Switches(model_may_run_tests=True, allow_codemod=True)
RENAMES = Switches(model_may_run_tests=True, allow_codemod=True, codemod_renames=("test_calc.py",))
LEFT_RED = "refactor mode is left green or not at all: "
GREEN_START = {"files": ALL_GREEN}
BORN_GREEN = {**GREEN_START, "instruction": "subtract"}
MAY_REFACTOR = {**BORN_GREEN, "switches": REFACTORS}
CALC_SUB = CALC_BOTH.replace("def neg", "def sub(a, b):\n    return a - b\n\n\ndef neg")
SUB_MORE = "\n\ndef test_less():\n    assert sub(1, 3) == 2\n"
NEW_NEG = "from calc import neg\n\n\ndef test_twice():\n    assert neg(neg(1)) == 2\n"


def plan(*steps: dict[str, object]) -> ScriptLine:
    return call(PLANNED, steps=list(steps))


def replacing(pattern: str, replacement: str) -> ScriptLine:
    return call("replace_in_files", pattern=pattern, replacement=replacement)


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """A script, and all that becomes of it."""

    turns: tuple[ScriptLine, ...]
    says: tuple[str, ...]
    """Of each action, in order: a part of the reason why it was refused; empty: it was admitted."""
    back: tuple[str, ...] = ()
    """A part of each reason for which something went back, in order."""
    repairs: tuple[tuple[str, ...], ...] = ()
    """The tests of each repair, in order."""
    tree: Mapping[str, str | None] = {}
    """What differs at the end from the files at first; None: it is not there."""
    runs: int = 1
    """How many trees the runner was asked about, the untouched one among them."""
    stop: StopReason = StopReason.FINAL
    terms: dict[str, Any] = {}

    @property
    def left(self) -> dict[str, str]:
        """The files at the end."""
        files = {**FILES, **self.terms.get("files", {}), **self.tree}
        return {path: text for path, text in files.items() if text is not None}


YES = ""
NOT_CLAIMED = "no red test was claimed for calc.py: call edit_claim(test_id, 'calc.py') first; red is "


def rated(files: Mapping[str, bytes]) -> dict[str, str | TestResult]:
    """As `judged`, with a test that wants another version of a dependency."""
    found, outcome = judged(files), "passed" if b"rate==2" in files["requirements.txt"] else "failed"
    assert not isinstance(found, Void)
    return {**found, "test_rate.py::test_rate": outcome}


def configured(files: Mapping[str, bytes]) -> Mapping[str, str | TestResult] | Void:
    """As `judged`, where pyproject.toml can break a test, or let all pass."""
    found, settings = judged(files), files["pyproject.toml"]
    assert not isinstance(found, Void)
    if b"rigged" in settings:
        return dict.fromkeys(found, "passed")
    broken = b"broken" in settings or (b"doubled" in settings and b"two" in files["calc.py"])
    return {**found, id_of("neg"): "failed"} if broken else found


STORIES: dict[str, Story] = {
    # What is admitted, and what is not
    "a red test is claimed, edited for and green": Story(
        turns=(both(claim("add"), ADD), both(claim("mul"), MUL, claim("upper"), UPPER)),
        says=(YES,) * 6,
        tree=ALL_GREEN,
        runs=3,
        stop=StopReason.GREEN,
    ),
    "a test is escalated after another one is green: the run ends, and what was kept stays": Story(
        turns=(
            both(claim("add"), ADD),
            both(claim("mul"), WRONG_MUL, call("escalate", test_id="test_calc.py::test_mul", reason="add wants more")),
        ),
        says=(YES,) * 5,
        back=("still red: test_calc.py::test_mul",),
        repairs=(("test_calc.py::test_mul",),),
        tree={"calc.py": FILES["calc.py"].replace("a - b", "a + b")},
        runs=3,
        stop=StopReason.ESCALATED,
    ),
    "an edit without a claim": Story(
        turns=(both(ADD, DONE),),
        says=(
            NOT_CLAIMED + "test_calc.py::test_add",
            YES,
        ),
    ),
    "an edit without a claim where nothing is red": Story(
        turns=(both(edit("calc.py", "a + b", "b + a"), DONE),),
        says=("none is red that an edit could answer; write a failing test first, in a new test file", YES),
        stop=StopReason.GREEN,
        terms={**GREEN_START, "instruction": "tidy up"},
    ),
    "a claim of a green test": Story(
        turns=(both(claim("neg"), BREAK_NEG, DONE),),
        says=("test_calc.py::test_neg is green; claim a test that is red", "no red test was claimed for calc.py", YES),
    ),
    "a claim before the red: the test is written in the same turn": Story(
        turns=(both(write("test_sub.py", SUB), claim(SUB_ID, "calc.py"), MAKE_SUB, DONE),),
        says=(
            YES,
            f"there is no test '{SUB_ID}'; there is test_calc.py::test_add, test_calc.py::test_mul",
            "no red test was claimed",
            YES,
        ),
        tree={"test_sub.py": SUB},
        runs=2,
    ),
    "a claim for another file": Story(
        turns=(both(claim("upper"), ADD, DONE),),
        says=(YES, "no claim covers calc.py: open is test_words.py::test_upper for words.py; claim it too", YES),
    ),
    "a stale red: another edit has turned the test green since": Story(
        turns=(
            both(claim("add"), edit("calc.py", CALC[: CALC.index("def neg")], CALC_BOTH[: CALC.index("def neg") - 1])),
            both(claim("mul"), edit("calc.py", "a * b", "b * a"), DONE),
        ),
        says=(YES, YES, "test_calc.py::test_mul is green", "no red test was claimed for calc.py", YES),
        tree={"calc.py": CALC_BOTH},
        runs=2,
    ),
    "a claim that was open when another edit turned its test green": Story(
        turns=(
            claim("mul"),
            both(
                claim("add", "words.py"), edit("words.py", "def lower", "def unused():\n    pass\n\n\ndef lower"), DONE
            ),
        ),
        says=(YES, YES, YES, YES),
        back=("words.py: still red: test_calc.py::test_add",),
        repairs=((id_of("add"),),),
        runs=2,
    ),
    "a red by a collection error: a package that is not there": Story(
        turns=(both(claim("test_np.py::test_array", "calc.py"), ADD, DONE),),
        says=(
            "test_np.py::test_array is red by itself (import_error: its file, a fixture or a package it wants is",
            "no red test was claimed",
            YES,
        ),
        terms={"files": {"test_np.py": "import numpy\n\n\ndef test_array():\n    assert numpy\n"}},
    ),
    "a red by a missing fixture": Story(
        turns=(both(claim("test_db.py::test_rows", "calc.py"), ADD, DONE),),
        says=("test_db.py::test_rows is red by itself (error: its file, a fixture", "no red test was claimed", YES),
        terms={"files": {"test_db.py": "def test_rows(database):\n    assert database\n"}},
    ),
    "a test that is missing": Story(
        turns=(both(claim("test_calc.py::test_pow", "calc.py"), DONE),),
        says=("the runner did not find test_calc.py::test_pow: a test that is not there is no red", YES),
        terms={"also_expected": ("test_calc.py::test_pow",)},
    ),
    "a test that nobody knows": Story(
        turns=(both(claim("test_calc.py::test_pow", "calc.py"), DONE),),
        says=("there is no test 'test_calc.py::test_pow'; there is test_calc.py::test_add", YES),
    ),
    "a test that was skipped from the start": Story(
        turns=(both(claim("test_skip.py::test_later", "calc.py"), DONE),),
        says=("test_skip.py::test_later is green", YES),
        terms={"files": {"test_skip.py": "def test_later():\n    skip()\n"}},
    ),
    "a timeout in the code is a red": Story(
        turns=(both(claim("test_slow.py::test_slow", "slow.py"), edit("slow.py", "hang()", "pass"), DONE),),
        says=(YES, YES, YES),
        tree={"slow.py": "def slow():\n    pass\n"},
        runs=2,
        terms={
            "files": {
                "slow.py": "def slow():\n    hang()\n",
                "test_slow.py": "from slow import slow\n\n\ndef test_slow():\n    slow()\n",
            }
        },
    ),
    # Files
    "a claim for a protected file": Story(
        turns=(both(claim("add", "pyproject.toml"), write("pyproject.toml", "[tool]\n"), DONE),),
        says=("pyproject.toml is read-only", "pyproject.toml is read-only", YES),
    ),
    "editing the test file itself": Story(
        turns=(
            both(
                claim("add", "test_calc.py"),
                edit("test_calc.py", "== 3", "== -1"),
                write("test_calc.py", ""),
                call("delete_file", path="test_calc.py"),
                DONE,
            ),
        ),
        says=("test_calc.py is read-only",) * 4 + (YES,),
    ),
    "a claim of the task's test for a test file of the agent's own": Story(
        turns=(both(claim("add", "test_new.py"), DONE),),
        says=("test_new.py is a test file, which needs no claim: claim the file of the code under test", YES),
    ),
    "a claim for a file that is not editable": Story(
        turns=(both(claim("add", "docs/notes.md"), write("docs/notes.md", "x"), DONE),),
        says=("docs/notes.md is not among the editable files", "docs/notes.md is not among the editable files", YES),
    ),
    "a claim for a file outside ends the run": Story(
        turns=(both(claim("add"), ADD, claim("add", "../calc.py"), MUL),),
        says=(YES, YES, "'../calc.py' leads outside the workspace"),
        back=("the best tree is what is shipped",),
        stop=StopReason.GUARDRAIL,
    ),
    "an edit of a file outside ends the run, whatever is claimed": Story(
        turns=(both(claim("add"), write("/calc.py", "")),),
        says=(YES, "'/calc.py' leads outside the workspace"),
        stop=StopReason.GUARDRAIL,
    ),
    "a new file is claimed like any other": Story(
        turns=(
            both(write("maths/sums.py", "x = 1\n"), DONE),
            both(
                claim("add"),
                claim("add", "maths/sums.py"),
                write("maths/sums.py", "def add(a, b):\n    return a + b\n"),
                edit("calc.py", "def add(a, b):\n    return a - b\n", "from maths.sums import add\n"),
                DONE,
            ),
        )[1:],
        says=(YES,) * 5,
        tree={
            "maths/sums.py": "def add(a, b):\n    return a + b\n",
            "calc.py": CALC.replace("def add(a, b):\n    return a - b\n", "from maths.sums import add\n"),
        },
        runs=2,
    ),
    "a new file that no test asks for": Story(
        turns=(both(write("maths/sums.py", "x = 1\n"), DONE),),
        says=("no red test was claimed for maths/sums.py", YES),
    ),
    "a file is deleted for a red test, and another one that no test asks for is not": Story(
        turns=(
            both(
                claim("test_old.py::test_gone", "old.py"),
                call("delete_file", path="old.py"),
                call("delete_file", path="words.py"),
                DONE,
            ),
        ),
        says=(YES, YES, "no claim covers words.py", YES),
        tree={"old.py": None},
        runs=2,
        terms={
            "files": {
                "old.py": "OLD = 1\n",
                "test_old.py": "def test_gone():\n    try:\n        import old\n    except ImportError:\n"
                "        return\n    assert not old\n",
            }
        },
    ),
    "a deleted file comes back, byte for byte, where its test stays red": Story(
        turns=(both(claim("add", "words.py"), call("delete_file", path="words.py"), DONE),),
        says=(YES, YES, YES),
        back=("words.py: still red: test_calc.py::test_add; it cost what was green: test_words.py::test_lower",),
        repairs=((id_of("add"),),),
        runs=2,
    ),
    "a new file goes where its test stays red": Story(
        turns=(both(claim("add", "sums.py"), write("sums.py", "x = 1\n"), DONE),),
        says=(YES, YES, YES),
        back=("sums.py: still red",),
        repairs=((id_of("add"),),),
        runs=2,
    ),
    "a write over a whole file that is claimed": Story(
        turns=(both(claim("add"), claim("mul"), write("calc.py", CALC_BOTH), DONE),),
        says=(YES,) * 4,
        tree={"calc.py": CALC_BOTH},
        runs=2,
    ),
    # What others complain of
    "adding an import that a red test needs, in a step of its own within the turn": Story(
        turns=(
            both(
                claim("upper"),
                edit("words.py", "def upper", "from calc import neg\n\n\ndef upper"),
                edit("words.py", "return text\n", "return text.upper() if neg(1) < 0 else text\n"),
                DONE,
            ),
        ),
        says=(YES,) * 4,
        tree={
            "words.py": "from calc import neg\n\n\n"
            + WORDS.replace("return text\n", "return text.upper() if neg(1) < 0 else text\n")
        },
        runs=2,
    ),
    "adding an import that a green test needs: nothing asks for it": Story(
        turns=(both(edit("words.py", "def upper", "import calc\n\n\ndef upper"), DONE),),
        says=("no red test was claimed for words.py", YES),
    ),
    "an import alone turns nothing green, and goes back": Story(
        turns=(both(claim("upper"), edit("words.py", "def upper", "import calc\n\n\ndef upper")), DONE),
        says=(YES, YES, YES),
        back=("words.py: still red: test_words.py::test_upper; the claim is open for one more try",),
        repairs=((id_of("upper"),),),
        runs=2,
    ),
    "a missing import that made a test red is an edit like any other": Story(
        turns=(both(claim("test_day.py::test_day", "day.py"), edit("day.py", "def", "import calc\n\n\ndef"), DONE),),
        says=(YES, YES, YES),
        tree={"day.py": "import calc\n\n\ndef day():\n    return calc.neg(1)\n"},
        runs=2,
        terms={
            "files": {
                "day.py": "def day():\n    return calc.neg(1)\n",
                "test_day.py": "from day import day\n\n\ndef test_day():\n    assert day() == -1\n",
            }
        },
    ),
    "a test written before its module exists": Story(
        turns=(both(claim(TOTAL, "shop.py"), write("shop.py", SUMS), DONE),),
        says=(YES, YES, YES),
        tree={"shop.py": SUMS},
        runs=2,
        terms={"files": SHOP},
    ),
    "an absent module that the claimed file does not provide": Story(
        turns=(both(claim(TOTAL, "calc.py"), claim(TOTAL, "src/shop.py"), claim(TOTAL, "shop/__init__.py"), DONE),),
        says=("misses 'shop', which calc.py does not provide: claim the file that will", YES, YES, YES),
        terms={"files": SHOP},
    ),
    "a stub so that the test can fail for the right reason: the absence was one, and a stub turns nothing green": Story(
        turns=(both(claim(TOTAL, "shop.py"), write("shop.py", "def total(rows):\n    return None\n")), DONE),
        says=(YES, YES, YES),
        back=("shop.py: still red: test_shop.py::test_total",),
        repairs=((TOTAL,),),
        runs=2,
        terms={"files": SHOP},
    ),
    "a stub and what fills it in one turn": Story(
        turns=(
            both(
                claim(TOTAL, "shop.py"),
                write("shop.py", "def total(rows):\n    return None\n"),
                edit("shop.py", "None", "sum(rows)"),
                DONE,
            ),
        ),
        says=(YES,) * 4,
        tree={"shop.py": SUMS},
        runs=2,
        terms={"files": SHOP},
    ),
    "a refactor after green": Story(
        turns=(both(claim("add"), ADD), both(edit("calc.py", "a + b", "b + a"), DONE)),
        says=(YES, YES, "no red test was claimed for calc.py", YES),
        tree={"calc.py": CALC_ADD},
        runs=2,
    ),
    "a dependency that no test asks for, and one that a red test asks for": Story(
        turns=(
            both(edit("requirements.txt", "1", "2"), claim("test_rate.py::test_rate", "requirements.txt")),
            both(edit("requirements.txt", "1", "2"), DONE),
        ),
        says=("no red test was claimed for requirements.txt", YES, YES, YES),
        tree={"requirements.txt": "rate==2\n"},
        runs=2,
        terms={
            "files": {"test_rate.py": "def test_rate():\n    assert True\n"},
            "judge": rated,
        },
    ),
    "configuration is the task's own": Story(
        turns=(
            both(
                write("conftest.py", "x = 1\n"),
                edit("pyproject.toml", "[project]", "[tool.pytest]"),
                claim("add", "conftest.py"),
                DONE,
            ),
        ),
        says=("conftest.py is read-only", "pyproject.toml is read-only", "conftest.py is read-only", YES),
    ),
    # Turns
    "two tests claimed in one turn of which one fails, in two files": Story(
        turns=(both(claim("add"), ADD, claim("upper"), WRONG_UPPER), DONE),
        says=(YES,) * 5,
        back=("words.py: still red: test_words.py::test_upper; the claim is open for one more try",),
        repairs=((id_of("upper"),),),
        tree={"calc.py": CALC_ADD},
        runs=3,
    ),
    "two tests claimed in one turn of which one fails, in one file": Story(
        turns=(both(claim("add"), WRONG_ADD, claim("mul"), MUL), DONE),
        says=(YES,) * 5,
        back=("calc.py: still red: test_calc.py::test_add",),
        repairs=((id_of("add"),),),
        tree={"calc.py": CALC_MUL},
        runs=3,
    ),
    "both claims first: each edit is tried by itself, and the green one's stays": Story(
        turns=(both(claim("add"), claim("mul"), ADD, WRONG_MUL), DONE),
        says=(YES,) * 5,
        back=(
            "taken apart, to be judged one by one: still red: test_calc.py::test_mul",
            "taken up again, on top of what was good: calc.py for test_calc.py::test_add, test_calc.py::test_mul",
            "still red: test_calc.py::test_mul; the claim is open for one more try",
        ),
        repairs=((id_of("mul"),),),
        tree={"calc.py": CALC_ADD},
        runs=3,
    ),
    "both claims first, the wrong edit first, and a third claim that is green": Story(
        turns=(both(claim("add"), claim("mul"), claim("upper"), WRONG_MUL, ADD, UPPER), DONE),
        says=(YES,) * 7,
        back=("taken apart", "taken up again", "calc.py for test_calc.py::test_add, test_calc.py::test_mul: still red"),
        repairs=((id_of("mul"),),),
        tree={"calc.py": CALC_ADD, "words.py": WORDS_UPPER},
        runs=5,
    ),
    "both claims first: two edits that turn one of them green only together both go back": Story(
        turns=(
            both(
                claim("add"),
                claim("mul"),
                edit("calc.py", "a - b", "a - MINUS * b"),
                edit("calc.py", "def mul", "MINUS = -1\n\n\ndef mul"),
            ),
            DONE,
        ),
        says=(YES,) * 5,
        back=("taken apart", "calc.py for", "calc.py for"),
        repairs=((id_of("add"), id_of("mul")),),
        runs=4,
    ),
    "one edit claimed for two tests": Story(
        turns=(both(claim("add"), claim("mul"), edit("calc.py", CALC, CALC_BOTH), DONE),),
        says=(YES,) * 4,
        tree={"calc.py": CALC_BOTH},
        runs=2,
    ),
    "one edit claimed for two tests of which one stays red": Story(
        turns=(both(claim("add"), claim("mul"), ADD), DONE),
        says=(YES,) * 4,
        back=("calc.py: still red: test_calc.py::test_mul",),
        repairs=((id_of("add"), id_of("mul")),),
        runs=2,
    ),
    "three claims, one invocation": Story(
        turns=(both(claim("add"), ADD, claim("mul"), MUL, claim("upper"), UPPER),),
        says=(YES,) * 6,
        tree=ALL_GREEN,
        runs=2,
        stop=StopReason.GREEN,
    ),
    "one wrong edit, one that another needs, and a good one": Story(
        turns=(
            both(
                claim("add"),
                edit("calc.py", "a - b", "a + b + 0 * ONE"),
                claim("upper"),
                edit("words.py", "return text\n", "from calc import ONE\n    return text.upper()[:ONE]\n"),
                claim("mul"),
                MUL,
                claim("test_one.py::test_never", "calc.py"),
                edit("calc.py", "def neg", "ONE = 1\n\n\ndef neg"),
            ),
            DONE,
        ),
        says=(YES,) * 9,
        back=(
            "calc.py: still red: test_one.py::test_never",
            "taken apart, to be judged one by one: still red: test_calc.py::test_add, test_words.py::test_upper",
            "calc.py for test_calc.py::test_add: still red",
            "words.py for test_words.py::test_upper: still red",
            "taken up again, on top of what was good: calc.py for test_one.py::test_never",
            "calc.py for test_one.py::test_never: still red",
        ),
        repairs=((id_of("add"),), (id_of("upper"),), ("test_one.py::test_never",)),
        tree={"calc.py": CALC_MUL},
        runs=7,
        terms={"files": {"test_one.py": "from calc import neg\n\n\ndef test_never():\n    assert neg(1) == 1\n"}},
    ),
    "a syntax error of one edit takes the good one beside it in the same file along, but not for good": Story(
        turns=(both(claim("add"), ADD, claim("mul"), edit("calc.py", "a ** b", "a * (b")), DONE),
        says=(YES,) * 5,
        back=(
            "taken apart, to be judged one by one: still red: ",
            "taken up again, on top of what was good: calc.py for test_calc.py::test_mul",
            "calc.py for test_calc.py::test_mul: still red",
        ),
        repairs=((id_of("mul"),),),
        tree={"calc.py": CALC_ADD},
        runs=3,
    ),
    "a green that costs a green is no green": Story(
        turns=(both(claim("add"), edit("calc.py", CALC, CALC_ADD.replace("return -a", "return a"))), DONE),
        says=(YES,) * 3,
        back=("calc.py: it cost what was green: test_calc.py::test_neg; the claim is open for one more try",),
        repairs=((id_of("add"),),),
        runs=2,
    ),
    "of several greens only the one that costs a green goes back": Story(
        turns=(both(claim("add"), ADD, claim("mul"), MUL, BREAK_NEG, claim("upper"), UPPER), DONE),
        says=(YES,) * 8,
        back=(
            "taken apart, to be judged one by one: it cost what was green",
            "taken up again",
            "calc.py for test_calc.py::test_mul: it cost",
        ),
        repairs=((id_of("mul"),),),
        tree={"calc.py": CALC_ADD, "words.py": WORDS_UPPER},
        runs=5,
    ),
    "a claim stays open over a turn without edits": Story(
        turns=(claim("add"), call("read_file", path="calc.py"), both(ADD, DONE)),
        says=(YES,) * 4,
        tree={"calc.py": CALC_ADD},
        runs=2,
    ),
    "a claim of an earlier turn does not bind an edit that has a newer one": Story(
        turns=(claim("add"), call("list_files"), both(claim("mul"), MUL), DONE),
        says=(YES,) * 5,
        tree={"calc.py": CALC_MUL},
        runs=2,
    ),
    "nor where that turn ended with something else": Story(
        turns=(both(claim("add"), call("list_files")), both(claim("mul"), MUL), DONE),
        says=(YES,) * 5,
        tree={"calc.py": CALC_MUL},
        runs=2,
    ),
    "of two that are red and one that is green only the one that breaks the other goes back": Story(
        turns=(both(claim("upper"), UPPER, claim("add"), ADD, claim("mul"), edit("calc.py", "a ** b", "a * (b")), DONE),
        says=(YES,) * 7,
        back=(
            "taken apart, to be judged one by one: still red: test_calc.py::test_add, test_calc.py::test_mul",
            "taken up again, on top of what was good: calc.py for test_calc.py::test_add",
            "taken up again, on top of what was good: calc.py for test_calc.py::test_mul",
            "calc.py for test_calc.py::test_mul: still red",
        ),
        repairs=((id_of("mul"),),),
        tree={"calc.py": CALC_ADD, "words.py": WORDS_UPPER},
        runs=4,
    ),
    "what was good stays where another edit would take away what it replaced": Story(
        turns=(
            both(
                claim("mul"),
                edit("calc.py", "a - b", "a - b + 0"),
                claim("upper", "calc.py"),
                edit("calc.py", "a - b + 0", "a - b"),
                claim("add"),
                ADD,
            ),
            DONE,
        ),
        says=(YES,) * 7,
        back=(
            "taken apart, to be judged one by one: still red: test_calc.py::test_mul, test_words.py::test_upper",
            "calc.py: the edit of calc.py does not apply without the others",
            "calc.py for test_words.py::test_upper: the edit of calc.py does not apply without the others",
        ),
        repairs=((id_of("mul"),), (id_of("upper"),)),
        tree={"calc.py": CALC_ADD},
        runs=2,
    ),
    "an edit that is undone within the turn": Story(
        turns=(both(claim("add"), ADD, edit("calc.py", "a + b", "a - b")), DONE),
        says=(YES,) * 4,
        back=("calc.py: still red: test_calc.py::test_add",),
        repairs=((id_of("add"),),),
        runs=1,
    ),
    "an edit that is wrong and mended within the turn": Story(
        turns=(
            both(claim("add"), WRONG_ADD, edit("calc.py", "return a\n\n\ndef mul", "return a + b\n\n\ndef mul"), DONE),
        ),
        says=(YES,) * 4,
        tree={"calc.py": CALC_ADD},
        runs=2,
    ),
    "the tests are run while edits wait for their verdict, and it is no second invocation": Story(
        turns=(both(claim("add"), ADD, RUN, claim("mul"), DONE),),
        says=(YES,) * 5,
        tree={"calc.py": CALC_ADD},
        runs=2,
    ),
    "final in the reply of the edits: they are judged first": Story(
        turns=(both(claim("add"), ADD, claim("upper"), WRONG_UPPER, DONE),),
        says=(YES,) * 5,
        back=("words.py: still red",),
        repairs=((id_of("upper"),),),
        tree={"calc.py": CALC_ADD},
        runs=3,
    ),
    "edits after final are not made": Story(
        turns=(both(claim("add"), DONE, ADD),),
        says=(YES, YES),
    ),
    "evidence that cannot be used is no green": Story(
        turns=(both(claim("add"), edit("calc.py", "a - b", "a + b  # FORGED")), DONE),
        says=(YES,) * 3,
        back=("calc.py: no usable evidence: forged",),
        repairs=((id_of("add"),),),
        runs=2,
    ),
    "a runner that breaks down is held against no claim": Story(
        turns=(both(claim("add"), edit("calc.py", "a - b", "a + b  # NO RUNNER")),),
        says=(YES,) * 2,
        back=("calc.py: no usable evidence: no runner",),
        runs=2,
        stop=StopReason.INFRA,
    ),
    # Claims that end
    "two failed greens end the claim; nothing else is red": Story(
        turns=(both(claim("add"), WRONG_ADD), edit("calc.py", "a - b", "b")),
        says=(YES,) * 3,
        back=(
            "calc.py: still red: test_calc.py::test_add; the claim is open for one more try",
            "that was the second time: the claim of test_calc.py::test_add has ended",
        ),
        repairs=((id_of("add"),), (id_of("add"),)),
        tree={},
        runs=3,
        stop=StopReason.STALLED,
        terms={"files": {"calc.py": CALC_MUL, "words.py": WORDS_UPPER}},
    ),
    "a claim that ended is open again once another claim's edit was kept, and not before": Story(
        turns=(
            both(claim("add"), WRONG_ADD),
            edit("calc.py", "a - b", "b"),
            both(claim("add"), ADD, claim("upper"), UPPER),
            both(claim("add"), ADD),
            DONE,
        ),
        says=(
            YES,
            YES,
            YES,
            "two edits for test_calc.py::test_add did not turn it green: claim another test first",
            NOT_CLAIMED + "test_calc.py::test_mul",
            YES,
            YES,
            YES,
            YES,
            YES,
        ),
        back=("one more try", "that was the second time"),
        repairs=((id_of("add"),), (id_of("add"),)),
        tree={"calc.py": CALC_ADD, "words.py": WORDS_UPPER},
        runs=5,
    ),
    "a failure counts for the tests that had it, not for those claimed beside them the second time": Story(
        turns=(
            both(claim("add"), WRONG_ADD),
            both(claim("add"), claim("mul"), edit("calc.py", "a - b", "b")),
            both(claim("add"), claim("mul"), MUL),
            DONE,
        ),
        says=(YES,) * 5 + ("two edits for test_calc.py::test_add", YES, YES, YES),
        back=("one more try", "the claim of test_calc.py::test_add has ended"),
        repairs=((id_of("add"),), (id_of("add"),), (id_of("mul"),)),
        tree={"calc.py": CALC_MUL},
        runs=4,
    ),
    # Tests of the agent's own
    "a test is written first, seen red, claimed and green; the run ends with the model's word": Story(
        turns=(write("test_sub.py", SUB), both(claim(SUB_ID, "calc.py"), MAKE_SUB), DONE),
        says=(YES,) * 4,
        tree={"test_sub.py": SUB, "calc.py": CALC_SUB},
        runs=3,
        stop=StopReason.GREEN,
        terms=BORN_GREEN,
    ),
    "a test that is written and stays red keeps the run from being green": Story(
        turns=(write("test_sub.py", SUB), DONE),
        says=(YES, YES),
        tree={"test_sub.py": SUB},
        runs=2,
        terms=BORN_GREEN,
    ),
    "a test that passes at once": Story(
        turns=(write("test_more.py", "def test_truth():\n    assert True\n"), DONE),
        says=(YES, YES),
        back=("test_more.py: test_more.py::test_truth passes at once: a new test must be seen red before",),
        runs=2,
    ),
    "a test that would pass at once hides behind an import that is not there: it was seen red": Story(
        turns=(write("test_sub.py", SUB + "\n\ndef test_truth():\n    assert True\n"), DONE),
        says=(YES, YES),
        tree={"test_sub.py": SUB + "\n\ndef test_truth():\n    assert True\n"},
        runs=2,
    ),
    "a new test of what is there, which fails by its assertion": Story(
        turns=(write("test_more.py", NEW_NEG), both(claim("test_more.py::test_twice", "calc.py"), DONE)),
        says=(YES,) * 3,
        tree={"test_more.py": NEW_NEG},
        runs=2,
    ),
    "a new test beside one that passes at once": Story(
        turns=(write("test_more.py", NEW_NEG + "\n\ndef test_once():\n    assert neg(1) == -1\n"), DONE),
        says=(YES, YES),
        back=("test_more.py: test_more.py::test_once passes at once",),
        runs=2,
    ),
    "a new test file that wants a package which is not there": Story(
        turns=(write("test_np.py", "import numpy\n\n\ndef test_array():\n    assert not numpy\n"), DONE),
        says=(YES, YES),
        back=("test_np.py: test_np.py::test_array is red by itself (import_error",),
        runs=2,
    ),
    "a new test with a fixture that is not there": Story(
        turns=(write("test_db.py", "def test_rows(database):\n    assert not database\n"), DONE),
        says=(YES, YES),
        back=("test_db.py: test_db.py::test_rows is red by itself (error",),
        runs=2,
    ),
    "a new test file without a test": Story(
        turns=(write("test_none.py", "LIMIT = 1\n"), DONE),
        says=(YES, YES),
        back=("test_none.py: test_none.py holds no test that the runner knows",),
        runs=2,
    ),
    "a new test file that does not parse": Story(
        turns=(write("test_none.py", "def test_one(:\n"), DONE),
        says=(YES, YES),
        back=("test_none.py: test_none.py holds no test that the runner knows",),
        runs=2,
    ),
    "a new test that skips itself": Story(
        turns=(write("test_later.py", "def test_later():\n    skip()\n"), DONE),
        says=(YES, YES),
        back=("test_later.py: test_later.py::test_later was skipped, which is no red",),
        runs=2,
    ),
    "a new test that runs out of time": Story(
        turns=(write("test_hang.py", "def test_hang():\n    hang()\n"), DONE),
        says=(YES, YES),
        back=(
            "test_hang.py: test_hang.py::test_hang ran out of time: a new test must fail by an assertion or an error",
        ),
        runs=2,
    ),
    "a test that is still red may be rewritten": Story(
        turns=(write("test_sub.py", SUB), edit("test_sub.py", "== 2", "== 3 - 1"), DONE),
        says=(YES,) * 3,
        tree={"test_sub.py": SUB.replace("== 2", "== 3 - 1")},
        runs=3,
    ),
    "a test that is still red may not be made to pass by rewriting it": Story(
        turns=(write("test_sub.py", SUB), write("test_sub.py", "def test_sub():\n    assert True\n"), DONE),
        says=(YES,) * 3,
        back=("test_sub.py::test_sub passes at once",),
        tree={"test_sub.py": SUB},
        runs=3,
    ),
    "a test that is green keeps its text, and new ones come beside it": Story(
        turns=(
            write("test_sub.py", SUB),
            both(claim(SUB_ID, "calc.py"), MAKE_SUB),
            both(
                edit("test_sub.py", "== 2", "== 3"),
                call("delete_file", path="test_sub.py"),
                write("test_sub.py", SUB + SUB_MORE),
            ),
            DONE,
        ),
        says=(YES, YES, YES, f"{SUB_ID} is green: the text of its test stays as it is", f"{SUB_ID} is green", YES, YES),
        tree={"test_sub.py": SUB + SUB_MORE, "calc.py": CALC_SUB},
        runs=4,
        terms=BORN_GREEN,
    ),
    "a test that was seen red may not be dropped, nor given another name": Story(
        turns=(
            write("test_sub.py", SUB),
            both(call("delete_file", path="test_sub.py"), edit("test_sub.py", "def test_sub", "def test_minus"), DONE),
        ),
        says=(YES, f"{SUB_ID} was seen red and is expected from then on", f"{SUB_ID} was seen red", YES),
        tree={"test_sub.py": SUB},
        runs=2,
    ),
    "a test that is green is not named anew, and its file changes only for another red one": Story(
        turns=(
            write("test_sub.py", SUB),
            both(claim(SUB_ID, "calc.py"), MAKE_SUB),
            both(
                write("test_sub.py", SUB + SUB_MORE + "\n\ndef test_sub():\n    pass\n"),
                write("test_sub.py", SUB + "\n\nLIMIT = 1\n"),
                DONE,
            ),
        ),
        says=(
            YES,
            YES,
            YES,
            f"{SUB_ID} is green",
            YES,
            YES,
        ),
        back=("test_sub.py: all tests of test_sub.py were green before",),
        tree={"test_sub.py": SUB, "calc.py": CALC_SUB},
        runs=4,
        stop=StopReason.GREEN,
        terms=BORN_GREEN,
    ),
    "a new test and a claimed edit in one turn": Story(
        turns=(both(write("test_sub.py", SUB), claim("add"), ADD), DONE),
        says=(YES,) * 4,
        tree={"test_sub.py": SUB, "calc.py": CALC_ADD},
        runs=2,
    ),
    "a new test beside a claimed edit that stays red": Story(
        turns=(both(write("test_sub.py", SUB), claim("add"), WRONG_ADD), DONE),
        says=(YES,) * 4,
        back=("calc.py: still red: test_calc.py::test_add",),
        repairs=((id_of("add"),),),
        tree={"test_sub.py": SUB},
        runs=3,
    ),
    "a test that passes at once beside a claimed edit that is good": Story(
        turns=(both(write("test_more.py", "def test_truth():\n    assert True\n"), claim("add"), ADD), DONE),
        says=(YES,) * 4,
        back=("test_more.py: test_more.py::test_truth passes at once",),
        tree={"calc.py": CALC_ADD},
        runs=3,
    ),
    "a new test that does not import because an edit of the same turn is broken": Story(
        turns=(both(write("test_more.py", NEW_NEG), claim("add"), edit("calc.py", "a - b", "a + (b")), DONE),
        says=(YES,) * 4,
        back=("calc.py: still red: test_calc.py::test_add; it cost what was green: test_calc.py::test_neg",),
        repairs=((id_of("add"),),),
        tree={"test_more.py": NEW_NEG},
        runs=3,
    ),
    # Refactor mode
    "refactor mode is the person's switch": Story(
        turns=(both(call("set_mode", mode="refactor"), edit("calc.py", "a + b", "b + a"), DONE),),
        says=("set_mode is switched off in this run", "no test asks for an edit of calc.py", YES),
        stop=StopReason.GREEN,
        terms=BORN_GREEN,
    ),
    "a refactoring over two files that is left green": Story(
        turns=(
            call("set_mode", mode="refactor"),
            both(edit("calc.py", "a + b", "b + a"), write("sums.py", "ONE = 1\n")),
            both(edit("words.py", "text.lower()", "str(text).lower()"), call("set_mode", mode="strict")),
            both(edit("calc.py", "b + a", "a + b"), DONE),
        ),
        says=(YES,) * 5 + ("no test asks for an edit of calc.py", YES),
        tree={
            "calc.py": CALC_BOTH.replace("a + b", "b + a"),
            "sums.py": "ONE = 1\n",
            "words.py": WORDS_UPPER.replace("text.lower()", "str(text).lower()"),
        },
        runs=2,
        stop=StopReason.GREEN,
        terms=MAY_REFACTOR,
    ),
    "leaving refactor mode with a red test is refused, the edits stay, and the agent mends them": Story(
        turns=(
            both(call("set_mode", mode="refactor"), edit("calc.py", "a + b", "b + a"), write("sums.py", "ONE = 1\n")),
            both(BREAK_NEG, call("delete_file", path="requirements.txt")),
            both(call("set_mode", mode="strict"), edit("words.py", "text.lower()", "str(text).lower()")),
            both(edit("calc.py", "return a\n", "return -a\n"), call("set_mode", mode="strict")),
            both(edit("calc.py", "b + a", "a + b"), DONE),
        ),
        says=(
            *(YES,) * 5,
            LEFT_RED + "4 of 5 passed; red is test_calc.py::test_neg. Refusal 1 of 3: mend it and try again",
            *(YES,) * 3,
            "no test asks for an edit of calc.py",
            YES,
        ),
        tree={
            "calc.py": CALC_BOTH.replace("a + b", "b + a"),
            "sums.py": "ONE = 1\n",
            "words.py": WORDS_UPPER.replace("text.lower()", "str(text).lower()"),
            "requirements.txt": None,
        },
        runs=3,
        stop=StopReason.GREEN,
        terms=MAY_REFACTOR,
    ),
    "final in refactor mode with a red test is refused, the agent mends it and ends green": Story(
        turns=(
            both(call("set_mode", mode="refactor"), BREAK_NEG, DONE),
            both(edit("calc.py", "return a\n", "return 0 - a\n"), DONE),
        ),
        says=(YES, YES, LEFT_RED + "4 of 5 passed", YES, YES),
        tree={"calc.py": CALC_BOTH.replace("return -a", "return 0 - a")},
        runs=3,
        stop=StopReason.GREEN,
        terms=MAY_REFACTOR,
    ),
    "after three refusals in a row all edits since refactor mode was entered go back, and the run is stalled": Story(
        turns=(
            both(call("set_mode", mode="refactor"), write("sums.py", "ONE = 1\n"), BREAK_NEG, DONE),
            both(edit("calc.py", "a + b", "b + a"), call("set_mode", mode="strict")),
            both(BREAK_LOWER, DONE, edit("calc.py", "b + a", "a + b")),
        ),
        says=(
            *(YES,) * 3,
            "Refusal 1 of 3",
            YES,
            "Refusal 2 of 3: mend it",
            YES,
            "test_neg, test_words.py::test_lower. Refusal 3 of 3: all edits since it was entered go back, and the run",
        ),
        back=(LEFT_RED + "3 of 5 passed",),
        runs=4,
        stop=StopReason.STALLED,
        terms=MAY_REFACTOR,
    ),
    "final again on the same files runs no test again, and counts as a refusal": Story(
        turns=(both(call("set_mode", mode="refactor"), BREAK_NEG, DONE), DONE, DONE),
        says=(YES, YES, "Refusal 1 of 3", "Refusal 2 of 3", "Refusal 3 of 3"),
        back=(LEFT_RED,),
        runs=2,
        stop=StopReason.STALLED,
        terms=MAY_REFACTOR,
    ),
    "refusals are counted anew once refactor mode was left and entered again": Story(
        turns=(
            both(call("set_mode", mode="refactor"), BREAK_NEG, DONE),
            DONE,
            both(edit("calc.py", "return a\n", "return -a\n"), call("set_mode", mode="strict")),
            both(call("set_mode", mode="refactor"), BREAK_LOWER, DONE),
            both(edit("words.py", "return text\n", "return text.lower()\n"), DONE),
        ),
        says=(
            *(YES, YES, "Refusal 1 of 3", "Refusal 2 of 3", YES, YES),
            *(YES, YES, "Refusal 1 of 3", YES, YES),
        ),
        runs=3,
        stop=StopReason.GREEN,
        terms=MAY_REFACTOR,
    ),
    "evidence that cannot be used is no green to leave refactor mode with": Story(
        turns=(both(call("set_mode", mode="refactor"), write("sums.py", "# FORGED\n"), DONE), DONE, DONE),
        says=(YES, YES, "no usable evidence: forged. Refusal 1 of 3", "Refusal 2 of 3", "Refusal 3 of 3"),
        back=(LEFT_RED + "no usable evidence: forged",),
        runs=2,
        stop=StopReason.STALLED,
        terms=MAY_REFACTOR,
    ),
    "refactor mode is left at once where nothing was edited, and final in it needs green all the same": Story(
        turns=(
            both(call("set_mode", mode="refactor"), call("set_mode", mode="strict"), claim("add"), ADD),
            both(call("set_mode", mode="refactor"), DONE),
            DONE,
            DONE,
        ),
        says=(
            *(YES,) * 5,
            LEFT_RED + "3 of 5 passed; red is test_calc.py::test_mul, test_words.py::test_upper. Refusal 1 of 3",
            "Refusal 2 of 3",
            "Refusal 3 of 3",
        ),
        tree={"calc.py": CALC_ADD},
        runs=2,
        stop=StopReason.STALLED,
        terms={"switches": REFACTORS},
    ),
    "tests that were red when refactor mode was entered must be green when it is left": Story(
        turns=(
            both(call("set_mode", mode="refactor"), ADD, MUL, call("set_mode", mode="strict")),
            both(UPPER, call("set_mode", mode="strict")),
        ),
        says=(YES, YES, YES, LEFT_RED + "4 of 5 passed; red is test_words.py::test_upper", YES),
        tree=ALL_GREEN,
        runs=3,
        stop=StopReason.GREEN,
        terms={"switches": REFACTORS},
    ),
    "final in refactor mode keeps what is green": Story(
        turns=(both(call("set_mode", mode="refactor"), edit("calc.py", "a + b", "b + a"), DONE),),
        says=(YES,) * 3,
        tree={"calc.py": CALC_BOTH.replace("a + b", "b + a")},
        runs=2,
        stop=StopReason.GREEN,
        terms=MAY_REFACTOR,
    ),
    "the turns are used up in refactor mode: what is green stays": Story(
        turns=(both(call("set_mode", mode="refactor"), edit("calc.py", "a + b", "b + a")),),
        says=(YES,) * 2,
        tree={"calc.py": CALC_BOTH.replace("a + b", "b + a")},
        runs=2,
        stop=StopReason.TURNS,
        terms={**MAY_REFACTOR, "budget": Budget(attempts=None, turns=1)},
    ),
    "the turns are used up in refactor mode: what is not green goes back": Story(
        turns=(both(call("set_mode", mode="refactor"), BREAK_NEG, DONE),),
        says=(YES, YES, "Refusal 1 of 3"),
        back=(LEFT_RED + "4 of 5 passed",),
        runs=2,
        stop=StopReason.TURNS,
        terms={**MAY_REFACTOR, "budget": Budget(attempts=None, turns=1)},
    ),
    "the last attempt is a green leave: the run ends green": Story(
        turns=(both(call("set_mode", mode="refactor"), edit("calc.py", "a + b", "b + a"), DONE),),
        says=(YES,) * 3,
        tree={"calc.py": CALC_BOTH.replace("a + b", "b + a")},
        runs=2,
        stop=StopReason.GREEN,
        terms={**MAY_REFACTOR, "budget": Budget(attempts=1)},
    ),
    "the last attempt is a red leave: everything goes back, and the cap is why": Story(
        turns=(both(call("set_mode", mode="refactor"), BREAK_NEG, DONE),),
        says=(YES, YES),
        back=(LEFT_RED + "4 of 5 passed",),
        runs=2,
        stop=StopReason.ATTEMPTS,
        terms={**MAY_REFACTOR, "budget": Budget(attempts=1)},
    ),
    "no test run is left in refactor mode: nothing of it stays": Story(
        turns=(both(RUN, call("set_mode", mode="refactor"), edit("calc.py", "a + b", "b + a")),),
        says=(YES,),
        stop=StopReason.BUDGET,
        terms={**MAY_REFACTOR, "budget": Budget(attempts=None, test_runs=1)},
    ),
    "claims in refactor mode, and what stays closed in it": Story(
        turns=(
            both(
                call("set_mode", mode="refactor"),
                claim("add"),
                call("set_mode", mode="refactor"),
                edit("test_calc.py", "== 3", "== 4"),
                write("conftest.py", "import calc\n"),
                call("set_mode", mode="strict"),
                edit("docs/notes.md", "Sums", "x"),
                edit("pyproject.toml", "[project]", "[tool]"),
                DONE,
            ),
        ),
        says=(
            YES,
            "the gate is refactor: edits need no claims now",
            "the mode is refactor already",
            "test_calc.py is read-only",
            "conftest.py is read-only",
            YES,
            "docs/notes.md is not among the editable files",
            "pyproject.toml is read-only",
            YES,
        ),
        stop=StopReason.GREEN,
        terms=MAY_REFACTOR,
    ),
    "docs, new files, dependencies and configuration are edited in refactor mode, and kept": Story(
        turns=(
            both(
                call("set_mode", mode="refactor"),
                edit("docs/notes.md", "Sums", "Sums and products"),
                write("docs/more.md", "More.\n"),
                edit("requirements.txt", "rate==1", "rate==2"),
                edit("pyproject.toml", "[project]", "[project]\nname = 'calc'"),
                write("tox.ini", "[tox]\n"),
                DONE,
            ),
        ),
        says=(YES,) * 7,
        tree=CONFIGURED,
        runs=2,
        stop=StopReason.GREEN,
        terms={**MAY_REFACTOR, "judge": configured},
    ),
    "configuration under which a test comes out differently is refused": Story(
        turns=(
            both(call("set_mode", mode="refactor"), edit("pyproject.toml", "[project]", "broken = 1"), DONE),
            both(edit("pyproject.toml", "broken", "mended"), DONE),
        ),
        says=(
            *(
                YES,
                YES,
                LEFT_RED + "with pyproject.toml as edited, test_calc.py::test_neg came out differently. Refusal 1",
            ),
            *(YES, YES),
        ),
        tree={"pyproject.toml": "mended = 1\n"},
        stop=StopReason.GREEN,
        terms={**MAY_REFACTOR, "judge": configured},
    ),
    "configuration that makes red tests pass counts for nothing in the verdict": Story(
        turns=(
            both(call("set_mode", mode="refactor"), edit("pyproject.toml", "[project]", "rigged = 1"), DONE),
            DONE,
            DONE,
        ),
        says=(YES, YES, LEFT_RED + "2 of 5 passed; red is test_calc.py::test_add", "Refusal 2", "Refusal 3"),
        back=(LEFT_RED + "2 of 5 passed",),
        runs=1,
        stop=StopReason.STALLED,
        terms={"switches": REFACTORS, "judge": configured},
    ),
    "an edit for a red test must also be green under the configuration that was kept before it": Story(
        turns=(
            both(call("set_mode", mode="refactor"), edit("pyproject.toml", "[project]", "doubled = 1")),
            both(call("set_mode", mode="strict"), write("test_sub.py", SUB)),
            both(
                claim(SUB_ID, "calc.py"),
                edit("calc.py", "def neg", "two = 2\n\n\ndef sub(a, b):\n    return a - b\n\n\ndef neg"),
            ),
            both(MAKE_SUB, DONE),
        ),
        says=(YES,) * 8,
        back=("it cost what was green: test_calc.py::test_neg",),
        repairs=((SUB_ID,),),
        tree={"calc.py": CALC_SUB, "pyproject.toml": "doubled = 1\n", "test_sub.py": SUB},
        runs=4,
        stop=StopReason.GREEN,
        terms={**MAY_REFACTOR, "judge": configured},
    ),
    "the mode is set in the middle of a turn": Story(
        turns=(both(claim("add"), ADD, call("set_mode", mode="refactor"), call("set_mode", mode="off"), DONE),),
        says=(YES, YES, "edits of this turn wait for their verdict", "there is no mode 'off'", YES),
        tree={"calc.py": CALC_ADD},
        runs=2,
        terms={"switches": REFACTORS},
    ),
    "a run that is in refactor mode from the start, with a command that must be green": Story(
        turns=(both(edit("calc.py", "a + b", "b + a"), DONE),),
        says=(YES, YES),
        tree={"calc.py": CALC_BOTH.replace("a + b", "b + a")},
        runs=2,
        stop=StopReason.GREEN,
        terms={**BORN_GREEN, "gate": Gate.REFACTOR, "verify": "true"},
    ),
    "the same where the command fails": Story(
        turns=(both(edit("calc.py", "a + b", "b + a"), DONE), DONE, DONE),
        says=(
            YES,
            LEFT_RED + "5 of 5 passed; the command of [gate] verify failed. Refusal 1 of 3",
            "Refusal 2 of 3",
            "Refusal 3 of 3",
        ),
        back=(LEFT_RED + "5 of 5 passed; the command of [gate] verify failed",),
        runs=2,
        stop=StopReason.STALLED,
        terms={**BORN_GREEN, "gate": Gate.REFACTOR, "verify": "false"},
    ),
    "all tests are green and the command is not: the run is not green before anything is done": Story(
        turns=(DONE, DONE, DONE),
        says=(LEFT_RED + "5 of 5 passed; the command of", "Refusal 2 of 3", "Refusal 3 of 3"),
        stop=StopReason.STALLED,
        terms={**GREEN_START, "gate": Gate.REFACTOR, "verify": "false"},
    ),
    # Codemod mode
    "codemod mode is the person's switch": Story(
        turns=(both(call("set_mode", mode="codemod"), replacing("a", "b"), DONE),),
        says=(
            "codemod mode is the person's switch, and it is off: pass --allow-codemod",
            "switched off in this run",
            YES,
        ),
        terms={"switches": REFACTORS},
    ),
    "one replacement over many files that keeps every outcome is kept, also where tests are red": Story(
        turns=(both(call("set_mode", mode="codemod"), replacing(r"\btext\b", "words"), claim("add"), ADD, DONE),),
        says=(YES,) * 5,
        tree={"words.py": WORDS.replace("text", "words"), "calc.py": CALC_ADD},
        runs=3,
        terms={"switches": CODEMODS},
    ),
    "a codemod that costs a green test goes back, all of it, and the mode is left": Story(
        turns=(
            both(call("set_mode", mode="codemod"), replacing("return", "return 1 +"), edit("calc.py", "a", "b")),
            DONE,
        ),
        says=(YES, YES, "no red test was claimed for calc.py", YES),
        back=("a codemod keeps every outcome, and test_calc.py::test_neg was passed and is failed",),
        runs=2,
        terms={"switches": CODEMODS},
    ),
    "a codemod that turns a red test green changes an outcome, and goes back": Story(
        turns=(both(call("set_mode", mode="codemod"), replacing("a - b", "a + b"), DONE),),
        says=(YES, YES, YES),
        back=("test_calc.py::test_add was failed and is passed",),
        runs=2,
        terms={"switches": CODEMODS},
    ),
    "a command is a codemod, and everything else waits until the mode is left": Story(
        turns=(
            both(
                call("run_command", command="s/text/words/"),
                replacing("text", "words"),
                call("set_mode", mode="codemod"),
                edit("calc.py", "a - b", "a + b"),
                write("test_new.py", SUB),
                claim("add"),
                call("run_command", command="ls"),
                call("run_command", command="s/text/words/"),
                DONE,
            ),
        ),
        says=(
            "run_command is for codemod mode",
            "replace_in_files is for codemod mode",
            YES,
            "calc.py was not changed: codemod mode takes one command",
            "test_new.py was not changed: codemod mode takes one command",
            "the gate is codemod",
            *(YES,) * 3,
        ),
        tree={"words.py": WORDS.replace("text", "words")},
        runs=2,
        terms={"switches": CODEMODS},
    ),
    "a command that is forbidden ends the run": Story(
        turns=(both(call("set_mode", mode="codemod"), call("run_command", command="git push --force"), DONE),),
        says=(YES, "git push of this kind rewrites"),
        stop=StopReason.GUARDRAIL,
        terms={"switches": CODEMODS},
    ),
    "a command that does not end is no edit": Story(
        turns=(both(call("set_mode", mode="codemod"), call("run_command", command="forever"), DONE),),
        says=(YES, "did not end within 300 s", YES),
        terms={"switches": CODEMODS},
    ),
    "a codemod touches no test": Story(
        turns=(
            both(
                call("set_mode", mode="codemod"),
                call("run_command", command="s/add/plus/"),
                call("run_command", command="rm test_words.py"),
                call("run_command", command="mv calc.py test_more.py"),
                replacing("sums", "all"),
                DONE,
            ),
        ),
        says=(YES, *("which is read-only for a codemod: nothing of it was kept (--codemod-renames",) * 3, YES, YES),
        terms={"switches": CODEMODS},
    ),
    "a pure rename in tests is kept where the person allowed it by a pattern": Story(
        turns=(both(call("set_mode", mode="codemod"), replacing(r"\bneg\b", "negative"), claim("add"), ADD, DONE),),
        says=(YES,) * 5,
        tree={
            "calc.py": CALC_ADD.replace("neg", "negative"),
            "test_calc.py": TEST_CALC.replace("import add, mul, neg", "import add, mul, negative").replace(
                "assert neg(", "assert negative("
            ),
        },
        runs=3,
        terms={"switches": RENAMES},
    ),
    "a rename in tests of what the pattern does not name is refused": Story(
        turns=(both(call("set_mode", mode="codemod"), call("run_command", command="s/lower/small/"), DONE),),
        says=(YES, "it changes test_words.py, which is read-only for a codemod", YES),
        terms={"switches": RENAMES},
    ),
    "more than a rename in tests is refused": Story(
        turns=(
            both(
                call("set_mode", mode="codemod"),
                replacing(r"== 6", "== 8"),
                replacing(r"\bassert\b", "checked"),
                replacing(r"\bneg\(", "negative("),
                replacing(r"\bneg\b", "add"),
                replacing(r"\bneg\b", "test_all"),
                replacing(r"assert mul", "mul"),
                DONE,
            ),
        ),
        says=(
            YES,
            "6 becomes 8, and they are no identifiers",
            "assert becomes checked, and one of them is a name of the language or of its tests",
            "neg is renamed in some places only",
            "add, which neg becomes, stands there already",
            "a name that runners take for their own",
            "more than names changes",
            YES,
        ),
        terms={"switches": RENAMES},
    ),
    # Plans
    "plans that are refused, and why": Story(
        turns=(
            both(
                plan(),
                plan({"title": " "}),
                plan({"title": "pow", "test_id": "test_calc.py::test_pow", "test_file_path": "test_calc.py"}),
                plan({"title": "pow", "test_id": "test_pow.py::test_pow", "test_file_path": "pow.py"}),
                plan({"title": "pow", "test_id": "test_pow.py::test_pow", "test_file_path": "../test_pow.py"}),
                plan({"title": "pow", "test_file_path": "test_calc.py"}),
                plan({"title": "add", "test_id": id_of("add"), "test_file_path": "test_words.py"}),
                plan({"title": "tidy up"}),
                plan({"title": 1}),
                plan({"title": "a", "tests": "b"}),
                DONE,
            ),
        ),
        says=(
            "a plan needs at least one step",
            "step 1 has no title",
            "step 1: test_calc.py has no test 'test_calc.py::test_pow'; a new test goes into a new test file",
            "step 1: 'pow.py' is no test file",
            "step 1: '../test_pow.py' is no test file",
            "step 1 names test_calc.py and no test_id: name the test",
            "step 1: test_words.py has no test 'test_calc.py::test_add'",
            "step 1 ('tidy up') has no test: give test_id and test_file_path",
            "`steps` of submit_plan must be of type array of steps: a title, and a test_id and a test_file_path",
            "`steps` of submit_plan must be of type array of steps",
            YES,
        ),
    ),
    "plans that are taken": Story(
        turns=(
            both(
                plan(
                    {"title": "add", "test_id": id_of("add"), "test_file_path": "./test_calc.py"},
                    {"title": "sub", "test_id": SUB_ID, "test_file_path": "test_sub.py"},
                    {"title": "pow", "test_id": "test_pow.py::test_pow"},
                ),
                DONE,
            ),
        ),
        says=(YES, YES),
    ),
    "a step without a test, where refactor mode is allowed": Story(
        turns=(both(plan({"title": "tidy up"}), DONE),),
        says=(YES, YES),
        stop=StopReason.GREEN,
        terms=MAY_REFACTOR,
    ),
    "green from the start, and a step of the plan is not: the last word is no green": Story(
        turns=(both(plan({"title": "sub", "test_id": SUB_ID, "test_file_path": "test_sub.py"}), DONE),),
        says=(YES, YES),
        terms=BORN_GREEN,
    ),
    "green from the start, and the plan is done": Story(
        turns=(
            both(plan({"title": "sub", "test_id": SUB_ID, "test_file_path": "test_sub.py"}), write("test_sub.py", SUB)),
            both(claim(SUB_ID, "calc.py"), MAKE_SUB),
            DONE,
        ),
        says=(YES,) * 5,
        tree={"test_sub.py": SUB, "calc.py": CALC_SUB},
        runs=3,
        stop=StopReason.GREEN,
        terms=BORN_GREEN,
    ),
    # Rules and caps
    "a green counts under every ratchet": Story(
        turns=(both(claim("add"), ADD), DONE),
        says=(YES,) * 3,
        tree={"calc.py": CALC_ADD},
        runs=2,
        terms={"rule": Rule(ratchet=Ratchet.IDENTITY, ties=Ties.REVERT)},
    ),
    "a new red test is no worse attempt, under any ratchet": Story(
        turns=(write("test_sub.py", SUB), DONE),
        says=(YES,) * 2,
        tree={"test_sub.py": SUB},
        runs=2,
        terms={"rule": Rule(ratchet=Ratchet.IDENTITY, ties=Ties.REVERT)},
    ),
    "the reply is cut off: its last edit is not made, and those before it are judged": Story(
        turns=(both(claim("add"), ADD, claim("upper"), UPPER), DONE),
        says=(YES, YES, YES, "the reply was cut off at its greatest length", YES),
        tree={"calc.py": CALC_ADD},
        runs=2,
        terms={"cut": frozenset({0})},
    ),
    "the last test run is for the edits that wait for their verdict": Story(
        turns=(both(claim("add"), ADD, RUN),),
        says=(YES, YES, "no test run is left in the budget"),
        tree={"calc.py": CALC_ADD},
        runs=2,
        stop=StopReason.BUDGET,
        terms={"budget": Budget(attempts=None, test_runs=1)},
    ),
    "the attempts are used up while edits are judged apart: nothing stays that was not judged": Story(
        turns=(both(claim("add"), ADD, claim("upper"), WRONG_UPPER),),
        says=(YES,) * 4,
        back=("words.py: still red: test_words.py::test_upper", "the best tree is what is shipped"),
        runs=2,
        stop=StopReason.ATTEMPTS,
        terms={"budget": Budget(attempts=1)},
    ),
}


def played(folder: Path, story: Story, **more: Any) -> Turns:
    """The run of *story*, ready to go, with *more* terms."""
    return gated(folder, story.turns, Terms(**story.terms, **more))
