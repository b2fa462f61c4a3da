"""Classes stand where they say by their code: what the code under test makes may say anything of itself."""

from __future__ import annotations

import dataclasses
import importlib.util
import operator
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jumar.child.challenge.genuine_classes import GenuineClasses
from jumar.child.pytest.code_identity import get_address
from jumar.child.pytest.loaded_code import list_classes

LAX = "class Lax:\n    def __eq__(self, other):\n        return True\n    __hash__ = None\n"
OWN = """
import dataclasses, functools

@dataclasses.dataclass
class Point:
    x: int
    y: int = dataclasses.field(default=0, compare=False)

@functools.total_ordering
class Size:
    def __eq__(self, other):
        return self is other
    def __lt__(self, other):
        return False

class Text(str):
    __hash__ = str.__hash__
    __eq__ = str.__eq__

class Closed:
    def make(compare):
        def forward(self, other):
            return compare(1, 1)
        return forward
    __lt__ = make(lambda one, other: one < other)
    def keep(self, other):
        return True
    def __eq__(self, other, most=1):
        return super().__eq__(other)

def read(self, other):
    return True
"""


def remember(*folders: Path) -> GenuineClasses:
    """All classes that there are now, and the code of these folders."""
    before = list_classes()
    return GenuineClasses(lambda kind: get_address(kind) in before, [str(folder.resolve()) for folder in folders])


@pytest.fixture
def known(tmp_path: Path) -> GenuineClasses:
    return remember(tmp_path, Path(sys.base_prefix))


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Any]:
    """A module of a file that nothing imported before."""
    (tmp_path / "shelf.py").write_text(OWN)
    spec = importlib.util.spec_from_file_location("shelf", tmp_path / "shelf.py")
    assert spec is not None
    assert spec.loader is not None
    sys.modules["shelf"] = loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    yield loaded
    del sys.modules["shelf"]


def made(text: str, name: str, names: dict[str, Any], file: str = "<string>") -> Any:
    """The class *name* of *text*, run in *names* as if it were of *file*."""
    exec(compile(text, file, "exec"), names)  # noqa: S102  as an attacker does
    return names[name]


@pytest.mark.parametrize("name", ["Point", "Size", "Text", "Closed"])
def test_what_stands_in_its_file_is_genuine(known: GenuineClasses, library: Any, name: str) -> None:
    assert known.is_genuine(vars(library)[name])


@pytest.mark.parametrize("file", ["<string>", "shelf.py", None])
@pytest.mark.parametrize("inside", [False, True])
def test_what_was_run_as_of_a_file_is_not(
    known: GenuineClasses, library: Any, file: str | None, *, inside: bool
) -> None:
    names = vars(library) if inside else {"__name__": "shelf", "__file__": library.__file__}
    kind = made(LAX, "Lax", names, file or library.__file__)
    library.Lax = kind
    assert not known.is_genuine(kind)


@pytest.mark.parametrize(
    "deciding",
    [
        {"__eq__": object.__ne__},
        {"__eq__": operator.truth},
        {"__contains__": operator.methodcaller("title")},
    ],
)
def test_methods_that_stand_nowhere_are_not(known: GenuineClasses, library: Any, deciding: dict[str, Any]) -> None:
    kind = types.new_class("Lax", (), {}, lambda body: body.update(deciding, __module__="shelf"))
    library.Lax = kind
    assert not known.is_genuine(kind)


SHELF = """
import functools, operator
import shelf
def lax(self, other): return True
class Thing: pass
class Answers:
    def __new__(cls, *args): return True
"""


@pytest.mark.parametrize(
    "value",
    ["shelf.Closed.keep", "shelf.read", "Answers", "Thing.__dict__['__weakref__']", "shelf.Closed.make(lax)"],
)
def test_a_method_of_another_name_or_with_something_else_in_it_is_not(
    known: GenuineClasses, library: Any, value: str
) -> None:
    names: dict[str, Any] = {"__name__": "elsewhere"}
    exec(SHELF, names)  # noqa: S102  as an attacker does
    deciding = {"__eq__": eval(value, names), "__module__": "shelf"}  # noqa: S307  as above
    library.Closed = types.new_class("Closed", (), {}, lambda body: body.update(deciding))
    assert not known.is_genuine(library.Closed)


def test_a_slot_is_no_method(known: GenuineClasses, library: Any) -> None:
    library.Lax = type("Lax", (), {"__slots__": ("__eq__",), "__module__": "shelf"})
    assert not known.is_genuine(library.Lax)


def test_an_equality_that_dataclasses_did_not_write_is_not(known: GenuineClasses, library: Any) -> None:
    kind = made("import dataclasses\n@dataclasses.dataclass\nclass Lax:\n    x: int = 0\n", "Lax", vars(library))
    assert known.is_genuine(kind)
    kind.__eq__ = made("def __eq__(self, other):\n    return True\n", "__eq__", vars(library))
    assert not known.is_genuine(kind)
    assert dataclasses.is_dataclass(kind)


def test_who_was_there_before_is(known: GenuineClasses) -> None:
    assert known.is_genuine(made(LAX, "Lax", {"__name__": "shelf"})) is False
    kind = made(LAX, "Lax", {"__name__": "shelf"})
    assert remember().is_genuine(kind)


def test_a_function_is_of_the_tests_by_its_code(known: GenuineClasses) -> None:
    text = "def helper():\n    return 1\n"
    code = compile(text, "test_it.py", "exec")
    known.add_file("test_it.py", code)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102  as pytest does
    assert known.is_written(names["helper"], "test_it.py")
    assert not known.is_written(made(text, "helper", {}, "test_it.py"), "test_it.py")
    assert not known.is_written(len, "test_it.py")


def test_a_file_that_the_code_may_write_proves_nothing(library: Any, tmp_path: Path) -> None:
    elsewhere = GenuineClasses(lambda _: False, [str(tmp_path / "site-packages")])
    assert not elsewhere.is_genuine(library.Size)
    assert elsewhere.is_genuine(library.Text), "all of it is written in C"


@pytest.mark.parametrize("text", [b"\0", b"def (", b"\xff"])
def test_a_file_that_is_no_python_proves_nothing(
    known: GenuineClasses, library: Any, tmp_path: Path, text: bytes
) -> None:
    (tmp_path / "other.py").write_bytes(text)
    library.__file__ = str(tmp_path / "other.py")
    assert not known.is_genuine(library.Size)
