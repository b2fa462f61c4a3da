"""What a red pytest test fell over: the code, its absence or the test itself, as exceptions tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Blame, TestResult
from support.judging.real_verifier import Court

CODE, TEST = (Blame.CODE, ""), (Blame.TEST, "")

PROJECT = {
    "app.py": "def double(n):\n    return 3 * n\n\n\ndef broken():\n    raise RuntimeError('no')\n\n\n"
    "def late():\n    import not_there_either\n\n\nclass Box:\n    pass\n",
    "syntax.py": "def double(n:\n",
    "nulls.py": "x = 1\0\n",
    "needs.py": "import a_package_that_is_not_installed\n",
    "crashes.py": "LIMIT = int('many')\n",
    "pkg/__init__.py": "",
    "pkg/part.py": "VALUE = 1\n",
    "pkg/here.py": "from pkg.part import OTHER\n",
    "tests/support.py": "def arrange():\n    raise LookupError('in a file that supports tests')\n",
    "tests/conftest.py": "import pytest\nimport app\n\n\n@pytest.fixture\ndef of_code():\n    return app.broken()\n\n\n"
    "@pytest.fixture\ndef of_its_own():\n    raise KeyError('fixture')\n\n\n@pytest.fixture\ndef wants_more():\n"
    "    return app.triple\n\n\n@pytest.fixture\ndef lazy():\n    from app import triple\n    return triple\n",
}

CALLS = """
import json
import os
import signal
import unittest
import pytest
import app
import pkg.part
from app import *


@pytest.fixture
def bad_setup():
    raise RuntimeError("set-up")


@pytest.fixture
def bad_teardown():
    yield
    raise RuntimeError("clean-up")


@pytest.fixture
def code_in_teardown():
    yield
    app.broken()


@pytest.fixture
def wants_a_method():
    app.Box().open()


@pytest.fixture
def asserting():
    assert app.double(1) == 2


def test_passes(): pass
def test_asserts(): assert app.double(2) == 4
def test_code_raises(): app.broken()
def test_code_imports_what_is_not_there(): app.late()
def test_wrong_arguments(): app.double(1, 2)
def test_did_not_raise():
    with pytest.raises(ValueError): app.double(1)
def test_says_fail(): pytest.fail("no")
def test_attribute_of_a_value(): app.double(1).bit_count_of()
def test_attribute_of_the_module(): app.triple(1)
def test_attribute_of_a_package_module(): pkg.part.OTHER
def test_attribute_of_an_installed_module(): json.no_such_thing
def test_name_from_a_star(): triple(1)
def test_imports_a_name():
    from app import triple
def test_imports_a_name_of_a_package():
    from pkg.part import OTHER
def test_imports_a_module():
    import pkg.new
def test_imports_by_function():
    __import__("importlib").import_module("pkg.newer")
def test_imports_what_is_nowhere():
    import not_there_at_all.sub
def test_imports_what_the_library_lacks():
    import json.no_such_part
def test_imports_a_name_the_library_lacks():
    from os import no_such_name
def test_imports_broken_code():
    import syntax
def test_imports_code_with_a_null():
    import nulls
def test_imports_code_that_needs_a_package():
    import needs
def test_imports_code_that_misses_a_name():
    import pkg.here
def test_no_fixture(there_is_no_such_fixture): pass
def test_bad_setup(bad_setup): pass
def test_bad_teardown(bad_teardown): pass
def test_code_in_teardown(code_in_teardown): pass
def test_asserts_in_setup(asserting): pass
def test_setup_of_code(of_code): pass
def test_setup_of_its_own(of_its_own): pass
def test_setup_wants_more(wants_more): pass
def test_setup_imports(lazy): pass
def test_setup_wants_a_method(wants_a_method): pass
def test_fixture_by_name(request): request.getfixturevalue("bad_setup")
def test_no_fixture_by_name(request): request.getfixturevalue("nope")
def test_support(): __import__("support").arrange()
def test_skips(): pytest.skip("why")
def test_import_or_skip(): pytest.importorskip("not_written")
@pytest.mark.xfail
def test_xfails(): assert False
@pytest.mark.xfail
def test_xpasses(): pass
@pytest.mark.xfail(strict=True)
def test_strictly_xpasses(): pass
async def test_nobody_awaits(): pass
def test_hangs(): signal.pause()
def test_exec(): exec("nothing_of_that_name")


class Case(unittest.TestCase):
    def test_passing(self): pass
    def test_equal(self): self.assertEqual(app.double(2), 4)
    def test_code(self): app.broken()
    def test_absent(self): app.triple(2)
    def test_import(self):
        from pkg.later import thing
    def test_subtests(self):
        for n in range(2):
            with self.subTest(n=n): self.assertEqual(app.double(n), n + 9)
    def test_skipped(self): self.skipTest("why")
    @unittest.expectedFailure
    def test_unexpected(self): pass


class CaseSetUp(unittest.TestCase):
    def setUp(self): raise RuntimeError("mine")
    def test_it(self): pass


class CaseSetUpOfCode(unittest.TestCase):
    def setUp(self): app.broken()
    def test_it(self): pass


class CaseTearDown(unittest.TestCase):
    def tearDown(self): raise RuntimeError("mine")
    def test_it(self): pass


class CaseClassSetUp(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise RuntimeError("mine")
    def test_it(self): pass


class CaseAsync(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self): raise RuntimeError("mine")
    async def test_it(self): pass


class CaseAsyncOfCode(unittest.IsolatedAsyncioTestCase):
    async def test_it(self): app.broken()
"""

IN_CALLS = {
    "passes": (None, ""), "asserts": CODE, "code_raises": CODE, "code_imports_what_is_not_there": CODE,
    "wrong_arguments": CODE, "did_not_raise": CODE, "says_fail": CODE, "attribute_of_a_value": CODE,
    "attribute_of_the_module": (Blame.ABSENT, "app"), "attribute_of_a_package_module": (Blame.ABSENT, "pkg.part"),
    "attribute_of_an_installed_module": CODE, "name_from_a_star": (Blame.ABSENT, "app"),
    "imports_a_name": (Blame.ABSENT, "app"), "imports_a_name_of_a_package": (Blame.ABSENT, "pkg.part"),
    "imports_a_module": (Blame.ABSENT, "pkg.new"), "imports_by_function": (Blame.ABSENT, "pkg.newer"),
    "imports_what_is_nowhere": (Blame.ABSENT, "not_there_at_all"), "imports_what_the_library_lacks": TEST,
    "imports_a_name_the_library_lacks": TEST, "imports_broken_code": CODE, "imports_code_with_a_null": CODE,
    "imports_code_that_needs_a_package": CODE, "imports_code_that_misses_a_name": CODE, "no_fixture": TEST,
    "bad_setup": TEST, "bad_teardown": TEST, "code_in_teardown": CODE, "asserts_in_setup": TEST, "setup_of_code": CODE,
    "setup_wants_a_method": CODE,
    "setup_of_its_own": TEST, "setup_wants_more": (Blame.ABSENT, "app"), "setup_imports": (Blame.ABSENT, "app"),
    "fixture_by_name": TEST, "no_fixture_by_name": TEST, "support": CODE, "skips": TEST, "import_or_skip": TEST,
    "xfails": TEST, "xpasses": TEST, "strictly_xpasses": TEST, "nobody_awaits": TEST, "hangs": CODE,
    "exec": (Blame.ABSENT, "app"),
}  # fmt: skip

IN_CASES = {
    "Case::test_passing": (None, ""), "Case::test_equal": CODE, "Case::test_code": CODE,
    "Case::test_absent": (Blame.ABSENT, "app"), "Case::test_import": (Blame.ABSENT, "pkg.later"),
    "Case::test_subtests": CODE, "Case::test_skipped": TEST, "Case::test_unexpected": TEST,
    "CaseSetUp::test_it": TEST, "CaseSetUpOfCode::test_it": CODE, "CaseTearDown::test_it": TEST,
    "CaseClassSetUp::test_it": TEST, "CaseAsync::test_it": TEST, "CaseAsyncOfCode::test_it": CODE,
}  # fmt: skip

IMPORTS = {
    "no_module": ("import not_written_yet", (Blame.ABSENT, "not_written_yet")),
    "no_part": ("import pkg.not_written", (Blame.ABSENT, "pkg.not_written")),
    "no_part_of_a_module": ("import app.sub", (Blame.ABSENT, "app.sub")),
    "no_name": ("from app import triple", (Blame.ABSENT, "app")),
    "no_name_of_a_part": ("from pkg.part import OTHER", (Blame.ABSENT, "pkg.part")),
    "no_attribute": ("import app\nTRIPLE = app.triple", (Blame.ABSENT, "app")),
    "no_part_of_the_library": ("import json.not_written", TEST),
    "no_name_of_the_library": ("from os import not_written", TEST),
    "code_syntax": ("import syntax", CODE),
    "code_null": ("import nulls", CODE),
    "code_raises": ("import crashes", CODE),
    "code_needs_a_package": ("import needs", CODE),
    "code_misses_a_name": ("import pkg.here", CODE),
    "own_syntax": ("def broken(:", TEST),
    "own_name": ("UNDEFINED", TEST),
    "own_star": ("from app import *\ntriple", (Blame.ABSENT, "app")),
    "own_assertion": ("assert False", TEST),
    "raised_by_hand": ("raise ImportError('by hand')", TEST),
    "calls_code": ("import app\napp.broken()", CODE),
    "support": ("import support\nsupport.arrange()", TEST),
    "skip_outside": ("import pytest\npytest.skip('no')", TEST),
    "parameters": ("import pytest\n@pytest.mark.parametrize('nope', [1])\ndef test_more(): pass", TEST),
    "hangs": ("import signal\nsignal.pause()", CODE),
}  # fmt: skip


def _blamed(result: TestResult) -> tuple[Blame | None, str]:
    return result.blame, result.absent


@pytest.mark.slow
def test_each_result_and_each_broken_file_blames_the_right_one(tmp_path: Path) -> None:
    court = Court(tmp_path, Suite(timeout_seconds=60.0, test_timeout_seconds=1.0, env={"PYTHONPATH": "tests"}))
    imports = {f"tests/test_import_{name}.py": f"{line}\ndef test_it(): pass\n" for name, (line, _) in IMPORTS.items()}
    tree = court.tree({**PROJECT, **imports, "tests/test_calls.py": CALLS})
    calls = {f"tests/test_calls.py::test_{name}": blamed for name, blamed in IN_CALLS.items()}
    cases = {f"tests/test_calls.py::{name}": blamed for name, blamed in IN_CASES.items()}
    want = {**calls, **cases, **{f"{path}::test_it": IMPORTS[path[18:-3]][1] for path in imports}}
    court.verifier.expected = tuple(want)

    done = court.judge(tree, {})

    said = {test_id: _blamed(result) for test_id, result in done.verdict.results.items()}
    assert {i: (said[i], done.verdict.results[i].excerpt) for i in want if said[i] != want[i]} == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("conftest", "blamed"),
    [
        ("import not_written_yet\n", (Blame.ABSENT, "not_written_yet")),
        ("import needs\n", CODE),
        ("raise RuntimeError('mine')\n", TEST),
        ("def broken(:\n", TEST),
    ],
)
@pytest.mark.parametrize("folder", ["", "tests/"])
def test_a_conftest_that_does_not_import_is_blamed_like_a_test_file(
    tmp_path: Path, conftest: str, folder: str, blamed: tuple[Blame, str]
) -> None:
    court = Court(tmp_path)
    tree = court.tree({
        "needs.py": PROJECT["needs.py"],
        f"{folder}conftest.py": conftest,
        "tests/test_it.py": "def test_it(): pass\n",
    })  # fmt: skip
    court.verifier.expected = ("tests/test_it.py::test_it",)

    done = court.judge(tree, {})

    assert _blamed(done.verdict.results["tests/test_it.py::test_it"]) == blamed
