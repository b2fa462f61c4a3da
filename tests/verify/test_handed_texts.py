"""The texts of the call that a test is making are found, whatever the code under test does to them later."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
from jumar.child.pytest.frames.handed_texts import build_lister

list_texts = build_lister()
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
        return ask(self.source, str(WANTED)[:0]), ask("b")


def of_a_call():
    source, wanted = DATA / "a.md", DATA / "a.html"
    return ask(source, 1), ask(str(source)), wanted


def of_an_object():
    wanted = DATA / "a.html"
    thing = Thing(DATA / "a.md", key)
    return thing.ask(), thing.text, wanted


def of_a_list():
    arguments = ["-x", str(DATA / "a.md")]
    return ask(arguments), ask(*arguments), ask(out=arguments)


def stepped():
    with Thing("a") as entered:
        wanted = DATA / "a.html"
    return entered, [found for found in Thing("b", f"{wanted}")][0], list(Thing("c"))[0]


def named(name="a"):
    return ask(DATA, f"{name}.md"), ask(DATA / name) if name else None


key = "k"
print(of_a_call()[:2], of_an_object()[:2], of_a_list(), stepped(), named(), Case().test(), sep="\\n")
"""

FOUND = [
    "(['/data/a.md'], ['/data/a.md'])",
    "(['/data', 'a.md', 'k'], ['/data', 'a.md', 'k'])",
    "(['-x', '/data', 'a.md'], ['-x', '/data', 'a.md'], ['-x', '/data', 'a.md'])",
]


@pytest.mark.slow
def test_texts_of_a_call_are_those_that_it_names(tmp_path: Path) -> None:
    source = Path(__file__).parents[2] / "src"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(source)], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines() == FOUND
