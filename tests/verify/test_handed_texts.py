"""The texts of the call that a test is making are found, whatever the code under test does to them later."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jumar.child.pytest.frames import handed_texts

PROGRAM = """
import importlib.util
import sys
from pathlib import Path

spec = importlib.util.spec_from_file_location("handed_texts", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
list_texts = module.build_lister()
DATA, WANTED = Path("/data"), "/data/a.html"


class Thing:
    def __init__(self, *given):
        self.given = given

    def ask(self):
        return list_texts(sys._getframe(1))

    def __enter__(self):
        return list_texts(sys._getframe(1))

    def __exit__(self, *_):
        pass

    def __iter__(self):
        yield list_texts(sys._getframe(1))

    text = property(ask)


def ask(*_, **__):
    return list_texts(sys._getframe(1))


class Case:
    source = Path("/data/a.md")

    def test(self):
        return ask(self.source, "b"), ask()


def of_a_call():
    source, wanted = DATA / "a.md", DATA / "a.html"
    return ask(source, 1), ask(str(source)), wanted


def of_an_object():
    wanted = DATA / "a.html"
    thing = Thing(DATA / "a.md", key)
    return thing.ask(), thing.text, wanted


def of_a_list():
    arguments = ["-x", str(DATA / "a.md")]
    return ask(arguments), ask(*arguments)


def stepped():
    with Thing("a") as entered:
        wanted = DATA / "a.html"
    for found in Thing("b"):
        return entered, found, list(Thing("c"))[0], wanted


def named(name="a"):
    return ask(DATA, f"{name}.md"), ask(DATA / name) if name else None


key = "k"
print(of_a_call()[:2], of_an_object()[:2], of_a_list(), stepped()[:3], named(), Case().test(), sep="\\n")
"""

FOUND = [
    "(['/data/a.md'], ['/data/a.md'])",
    "(['/data', 'a.md', 'k'], ['/data', 'a.md', 'k'])",
    "(['-x', '/data', 'a.md'], ['-x', '/data', 'a.md'])",
    "(['a'], ['b'], ['c'])",
    "(['/data', 'a', '.md'], ['/data', 'a'])",
    "(['/data/a.md', 'b'], [])",
]


@pytest.mark.slow
def test_texts_of_a_call_are_those_that_it_names(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, handed_texts.__file__], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines() == FOUND
