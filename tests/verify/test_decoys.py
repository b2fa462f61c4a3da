"""In a challenge no file of the room says what the tests expect; what is loaded does, and who needs files gets them."""

from __future__ import annotations

import ast
from pathlib import Path
from random import Random
from textwrap import dedent

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from jumar.core.state.verdict import Outcome
from jumar.process.room import LaidFiles
from jumar.verify.challenge.decoys import make_decoy
from jumar.verify.challenge.source_edits import ParsedSource
from support.judging.real_verifier import QUICK, Court

TESTS = dedent('''\
    """Of reversing."""
    import pytest

    from app import find_readable, reverse
    from shared.test_words import WORDS


    def test_right():
        assert reverse("stressed") == "desserts"


    @pytest.mark.parametrize("word", WORDS)
    def test_table(word):
        assert reverse(word) == word[::-1]


    def test_nothing_is_to_be_read():
        assert find_readable(b"dess" + b"erts") == []
    ''')
SHARED = 'WORDS = ["desserts", "stressed"]\n\n\ndef test_words():\n    assert WORDS[0] == "desserts"\n'
APP = dedent("""\
    import importlib.machinery
    import pathlib
    import sys
    from concurrent.futures import ThreadPoolExecutor

    from _pytest.assertion import rewrite


    def reverse(text):
        return text[::-1]


    def find_readable(secret):
        return [path for path in pathlib.Path(".").rglob("*") if path.is_file() and secret in path.read_bytes()]


    def ask_loader(path):
        load = importlib.machinery.SourceFileLoader("words", path).get_data
        with ThreadPoolExecutor(1) as threads:
            return load(path) + threads.submit(load, path).result()


    def list_holders():  # of all that is to be had without a look at a frame, a function or all objects
        yield getattr(rewrite._rewrite_test, "__self__", None)
        for finder in sys.meta_path:
            if hasattr(finder, "config"):
                yield from finder.config.pluginmanager.get_plugins()


    assert find_readable(b"dess" + b"erts") == []
    assert not [one for one in list_holders() if "dess" + "erts" in repr(getattr(one, "__dict__", None))]
    for test in pathlib.Path(".").rglob("test_*.py"):
        assert b"dess" + b"erts" not in ask_loader(str(test.resolve()))
    """)


@pytest.mark.slow
@pytest.mark.parametrize("options", ["", "--assert=plain", "--import-mode=importlib"])
def test_what_runs_is_the_right_text_and_what_lies_there_is_not(tmp_path: Path, options: str) -> None:
    court = Court(tmp_path)
    files = {"test_app.py": TESTS, "shared/test_words.py": SHARED, "shared/__init__.py": ""}
    config = f"[pytest]\naddopts = {options}\npythonpath = .\n"
    tree = court.tree({"app.py": APP, "pytest.ini": config, **files})
    names = ("test_right", "test_table", "test_nothing_is_to_be_read")
    ids = [*(f"test_app.py::{name}" for name in names), "shared/test_words.py::test_words"]
    right = {path: text.encode() for path, text in files.items() if text}
    decoys = {path: make_decoy(ParsedSource(data), (), Random(1)) or b"" for path, data in right.items()}

    report = anyio.run(lambda: court.verifier.run_fresh(tree, ids, LaidFiles(right, decoys), 1))

    assert report.broken == {}
    assert {r.id.partition("::")[2]: r.outcome for r in report.results} == dict.fromkeys(
        ["test_right", "test_table[desserts]", "test_table[stressed]", "test_words", "test_nothing_is_to_be_read"],
        Outcome.PASSED,
    )


READING = dedent("""\
    import inspect

    from app import double


    def test_double():
        assert double(4) == 8


    def test_says_what_it_does():
        assert "says what it does" in inspect.getsource(test_says_what_it_does)
    """)


@pytest.mark.slow
def test_tests_that_read_their_own_files_have_them_and_it_is_said(tmp_path: Path) -> None:
    court = Court(tmp_path, replace(QUICK, confirm=3))
    court.verifier.experience.apart = False
    red = court.tree({"app.py": "def double(x):\n    return x\n", "test_app.py": READING})
    court.collect(red)
    right = court.tree({"app.py": "def double(x):\n    return 2 * x\n", "test_app.py": READING})

    done = court.judge(right, control=red)

    assert done.verdict.green, done.verdict
    assert court.verifier.experience.reading
    assert any("read their own files" in warning for warning in done.warnings)
    assert done.grade >= "C"


CONSTANTS = st.one_of(
    st.text(min_size=5), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.binary(), st.booleans()
)


@given(st.lists(CONSTANTS, max_size=5), st.integers())
def test_a_decoy_is_a_file_of_the_same_lines(values: list[object], seed: int) -> None:
    source = "".join(f"def test_{n}():\n    assert f() == {value!r}\n" for n, value in enumerate(values))

    decoy = make_decoy(ParsedSource(source.encode()), (), Random(seed))

    assert decoy is not None
    ast.parse(decoy)
    assert decoy.count(b"\n") == source.encode().count(b"\n")


@pytest.mark.parametrize(
    "text",
    [
        "'stressed'",
        "b'stressed'",
        "0x7fffabcd",
        "0b1011011101",
        "123456.789e5",
        '"""two\nlines of words"""',
        "r'\\dword'",
    ],
)
def test_a_constant_is_drawn_without_regard_to_the_old_one(text: str) -> None:
    source = ParsedSource(f"WORD = {text}\n".encode())

    made = {make_decoy(source, (), Random(seed)) for seed in range(50)}

    assert len(made) == 50
    assert source.full_text.encode() not in made
    assert all(ast.parse(decoy or b"!") for decoy in made)
