"""The tests of a file that the tree cannot load, as pytest finds them with placeholders for what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from jumar.child.placeholders import build_kind, make_placeholder
from jumar.core.state.settings import Suite
from support.judging.real_verifier import Court
from support.judging.samples import sampled
from support.processes.interpreters import PLAIN_PYTHON

SUITE = Suite(timeout_seconds=60, test_timeout_seconds=20, confirm=2, python=PLAIN_PYTHON)

HEAD = """
import os
import unittest

import pytest

from words import MISSING, BrokenError, hi, stub
import words.deep.inner as inner


def test_hi():
    assert hi("ann") == "hi ann"


@pytest.mark.skip
def test_that_a_syntax_tree_would_show():
    assert hi("ann") == "hi ann"


"""

KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    # What pytest does not run here, whatever the code is.
    "skipped by a mark": ("@pytest.mark.skipif(os.sep == '/', reason='x')\ndef test_it():\n    assert hi()\n", ()),
    "skipped by unittest": (
        "class TestIt(unittest.TestCase):\n    @unittest.skip('x')\n    def test_it(self): 0\n",
        (),
    ),
    "skipped by its body": ("def test_it():\n    if os.sep == '/':\n        pytest.skip('x')\n    assert hi()\n", ()),
    "skipped by a fixture": (
        "@pytest.fixture\ndef tool():\n    pytest.skip('x')\n\n\ndef test_it(tool):\n    assert hi(tool)\n",
        (),
    ),
    "skipped behind what fails": (
        """@pytest.fixture
def tool():
    a, b = stub()
    with pytest.raises(BrokenError):
        a()
    if not hi():
        raise RuntimeError
    pytest.skip('x')


def test_it(tool):
    assert tool


class TestIt(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.a = stub(1).a

    async def test_it(self):
        for a, b in self.a or stub():
            assert a and not b
        if os.sep == '/':
            self.skipTest('x')


def look():
    raise OSError


def test_look():
    try:
        look()
    except OSError:
        pytest.skip('x')
""",
        (),
    ),
    "fails as it says itself": (
        "def test_it(request):\n    request.node.add_marker(pytest.mark.xfail)\n    hi()\n",
        (),
    ),
    "skipped without a name of the code": (
        """from unittest import mock

fast = getattr(inner, 'fast', None)
try:
    from words.deep import quick
except ImportError:
    quick = None
if hasattr(inner, 'loud'):
    def test_loud():
        0


@pytest.mark.skipif(not fast, reason='x')
def test_fast():
    hi()


@pytest.mark.skipif(quick is None, reason='x')
def test_quick():
    hi()


@pytest.fixture
def calm(monkeypatch):
    monkeypatch.delattr(inner, 'calm')
    with mock.patch('words.deep.inner.quiet') as found:
        yield found


def start():
    if inner.Loud() is not None and not hasattr(inner, 'loud'):
        pytest.skip('x')


def test_it(calm):
    start()
""",
        (),
    ),
    "called like a test": ("from words import test_client\n", ()),
    "fails as expected": ("@pytest.mark.xfail(strict=True)\ndef test_it():\n    assert hi() == 1\n", ()),
    "no test": ("def test_it():\n    return 1\n\n\ntest_it.__test__ = False\n", ()),
    "of another platform": ("if os.sep == '!':\n    def test_it():\n        assert hi()\n", ()),
    # What a syntax tree does not show.
    "made in a loop": ("for n in 'ab':\n    exec(f'def test_{n}(): hi()')\n", ("test_a", "test_b")),
    "cases that are written down": (
        "@pytest.mark.parametrize('n', [1, 2])\ndef test_it(n):\n    assert hi(n)\n",
        ("test_it[1]", "test_it[2]"),
    ),
    # What the code decides: all that it will make is asked for, by the name of the function.
    "cases of the code": ("@pytest.mark.parametrize('n', MISSING)\ndef test_it(n):\n    assert hi(n)\n", ("test_it",)),
    "cases named by the code": ("@pytest.mark.parametrize('n', [MISSING])\ndef test_it(n):\n    hi(n)\n", ("test_it",)),
    "skipped by the code": ("@pytest.mark.skipif(MISSING, reason='x')\ndef test_it():\n    hi()\n", ("test_it",)),
    "skipped by the lack of it": (
        "@pytest.mark.skipif(not hi(2), reason='x')\ndef test_it():\n    hi()\n",
        ("test_it",),
    ),
    "there if the code says so": ("if MISSING > 3:\n    def test_it():\n        assert hi()\n", ()),
    "made by the code": ("exec(f'def test_{hi.__name__}(): hi()')\n", ()),
    # What would keep a file from loading.
    "decorated by the code": ("@hi\ndef test_a():\n    0\n\n\n@hi(1)\ndef test_b():\n    0\n", ("test_a", "test_b")),
    "a class of the code": ("class TestIt(hi):\n    def test_it(self):\n        0\n", ("TestIt::test_it",)),
    "a case of the code": ("class It(inner.WordCase):\n    def test_it(self):\n        0\n", ()),
    "a test case of the code": ("class It(inner.WordTestCase):\n    def test_it(self):\n        0\n", ("It::test_it",)),
    "an exception of the code": (
        "@pytest.mark.parametrize('e', [BrokenError])\ndef test_it(e):\n    with pytest.raises(e):\n        hi()\n",
        ("test_it",),
    ),
    "sums, texts and files": (
        """SUM = int(MISSING + 1) * 2 + len(MISSING) + sum(MISSING)
TEXT = f"{MISSING:>4}" + str(hi.name) + os.fspath(hi)
with hi.open() as file:
    LINES = [*file]
assert hi in {hi: 1} and MISSING[0] or not hi[1]
""",
        (),
    ),
    "a key, a union and a base": (
        """from typing import Optional


def by_hi(words: Optional[hi] = None) -> {hi: 1, MISSING: 2}:
    return {hi, MISSING}


class Words(hi, MISSING):
    def test_it(self):
        0
""",
        (),
    ),
    # What placeholders do not bear is left out.
    "a stub that raises": ("APP = stub()\n\n\n@APP.route('/')\ndef test_it():\n    assert APP\n", ("test_it",)),
    "a loop over pairs": ("for n, f in MISSING.items():\n    pass\n\n\ndef test_it():\n    assert n\n", ("test_it",)),
    "cases in pairs": ("@pytest.mark.parametrize('a, b', MISSING)\ndef test_it(a, b):\n    assert a\n", ("test_it",)),
    "a class of a kind": (
        "class It(hi, name='x', metaclass=hi):\n    0\n\n\ndef test_it():\n    It()\n",
        ("test_it",),
    ),
    "statements of one line": (
        "class It(hi, x=1): stub()\nfor a, b in MISSING: 0\na = stub(); b = stub(1)\ndef test_it(): a, b\n",
        ("test_it",),
    ),
    "a default and a context": (
        """with stub() as It:
    def test_it(n=stub()):
        assert It
It.x, It["y"] = stub(), 1
while stub():
    0
""",
        ("test_it",),
    ),
    "what is said to fail": (
        """@pytest.mark.xfail(raises=KeyError, strict=True)
def test_it():
    hi()


class It(unittest.TestCase):
    @unittest.expectedFailure
    def test_it(self):
        self.fail(hi)
""",
        (),
    ),
    "what never ends": (
        "@pytest.mark.parametrize('n', range(30))\ndef test_it(n):\n    while hi() or not hi():\n        pass\n",
        tuple(f"test_it[{n}]" for n in range(30)),
    ),
}

PARTLY = "a package of which a part loads"

TREES: dict[str, Mapping[str, str]] = {
    "no module": {"words/other.py": ""},
    "a module without the names": {"words/__init__.py": "def stub():\n    raise NotImplementedError\n"},
    "a module that does not parse": {"words/__init__.py": "def hi() return 1\n"},
    "a module that does not load": {"words/__init__.py": "MISSING = 3\nraise RuntimeError(MISSING)\n"},
    "a module that lacks another one": {"words/__init__.py": "from .hello import hi\n"},
    "a module that is no package": {"words.py": ""},
    PARTLY: {
        "words/__init__.py": "from .loud import LOUD\nfrom .hello import hi\n",
        "words/loud.py": "LOUD = 1\n",
        "conftest.py": "import pytest, words\n\n\n@pytest.fixture(autouse=True)\ndef loud():\n    words.loud.LOUD\n",
    },
}


def collected(folder: Path, files: Mapping[str, str]) -> tuple[str, ...]:
    court = Court(folder, SUITE)
    return court.collect(court.tree(files))


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [sorted(KINDS)[::2], pytest.param(sorted(KINDS)[1::2], marks=pytest.mark.proof)])
def test_pytest_says_which_tests_a_file_has_that_does_not_load(tmp_path: Path, kinds: list[str]) -> None:
    files = {f"test_{number}.py": HEAD + KINDS[kind][0] for number, kind in enumerate(kinds)}

    strict = "[pytest]\nfilterwarnings = error::pytest.PytestCollectionWarning\n"

    found = collected(tmp_path, {**TREES["a module without the names"], **files, "pytest.ini": strict})

    assert {kind: {i.partition("::")[2] for i in found if i.startswith(f"test_{n}.py")} - {"test_hi"} for n, kind in
            enumerate(kinds)} == {kind: set(KINDS[kind][1]) for kind in kinds}  # fmt: skip
    assert {f"{file}::test_hi" for file in files} <= {*found}


@pytest.mark.parametrize("tree", sampled(TREES, "no module", "a module that does not parse", PARTLY))
def test_a_file_loads_whatever_it_lacks(tmp_path: Path, tree: str) -> None:
    found = collected(tmp_path, {**TREES[tree], "test_it.py": HEAD + KINDS["skipped by its body"][0]})

    assert found == ("test_it.py::test_hi",)


@pytest.mark.slow
def test_files_for_fixtures_and_names_that_a_star_imports_load_as_well(tmp_path: Path) -> None:
    fixtures = "import pytest\nfrom words import Hi\n\n\n@pytest.fixture\ndef hi():\n    return Hi()\n"
    tests = "from words import *\n\n\n@hello\ndef test_it(hi):\n    0\n\n\ndef test_not():\n    0\n\n\ndel test_not\n"

    assert collected(tmp_path, {"conftest.py": fixtures, "test_it.py": tests}) == ("test_it.py::test_it",)


@pytest.mark.slow
def test_plug_ins_load_as_well(tmp_path: Path) -> None:
    files = {
        "pytest.ini": "[pytest]\naddopts = -p loud\n",
        "conftest.py": "pytest_plugins = ['words.plug', 'quiet']\n",
        "words/plug.py": """import pytest
from words.new import stub, MISSING

a, b = MISSING


@pytest.fixture
def hi():
    assert stub(a) != stub(b)
    pytest.skip('x')
""",
        "test_it.py": "def test_it():\n    0\n\n\ndef test_not(hi):\n    0\n",
    }

    assert collected(tmp_path, files) == ("test_it.py::test_it",)


@pytest.mark.slow
def test_what_somebody_does_without_is_not_there(tmp_path: Path) -> None:
    fixtures = "import pytest\n\npytest.register_assert_rewrite('fast')\n"
    tests = "try:\n    import fast\nexcept ImportError:\n    fast = None\n\n\n"
    tests += "@pytest.mark.skipif(fast is None, reason='x')\ndef test_it():\n    hi()\n"
    files = {"fast.py": "import nothing_there\n", "conftest.py": fixtures, "test_it.py": HEAD + tests}

    assert collected(tmp_path, files) == ("test_it.py::test_hi",)


@pytest.mark.slow
def test_a_file_that_placeholders_do_not_help_has_the_tests_of_its_syntax_tree(tmp_path: Path) -> None:
    tests = "import words\n\n\ndef test_it():\n    0\n"
    fixtures = "import sys\n\nimport words\n\nif words:\n    sys.exit(1)\n"

    assert collected(tmp_path, {"test_it.py": tests, "conftest.py": fixtures}) == ("test_it.py::test_it",)


@pytest.mark.parametrize("truth", [True, False])
def test_a_placeholder_answers_each_question_alike(truth: bool) -> None:  # noqa: FBT001
    it = make_placeholder(build_kind(truth), "it")

    answers = {
        bool(it),
        it == 1,
        it != 1,
        it < 1,
        it >= 1,
        1 in it,
        isinstance(3, it),
        issubclass(int, it),
        it.has(3) > 2,
    }

    assert answers == {truth}
    assert (len(it), int(it), len([*it]), range(3)[it]) == (truth, truth, truth, truth)
    assert (str(it) == "it that is True", hasattr(it, "__name__"), hasattr(it, "__wrapped__")) == (truth, truth, False)
    assert it is it[3] is it + 1 is 1 - it
