"""Placeholders for what tests use of the code under test and that is not there: one kind is true, another one false.

Standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import dis
import re
import sys
import unittest
from importlib.machinery import ModuleSpec
from inspect import CO_OPTIMIZED
from itertools import chain
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

ANSWERS = ("bool", "contains", "eq", "ge", "gt", "instancecheck", "le", "lt", "ne", "subclasscheck")
"""Methods of a placeholder that say whether it is true."""

COUNTS = {"complex": complex, "float": float, "index": int, "int": int, "len": int}
"""Methods that say the same by a number."""

OPERATORS = ("add", "and", "divmod", "floordiv", "lshift", "matmul", "mod", "mul", "or", "pow", "rshift", "sub",
             "truediv", "xor")  # fmt: skip
UNARY = ("abs", "enter", "getitem", "invert", "neg", "pos", "round")
"""Methods that return the placeholder itself."""

RAISED = re.compile(r"(Error|Exception|Warning)$")
"""Ends the name of a class that tests raise, or hand to `pytest.raises`."""

ASKED_BY_PYTEST = ("pytestmark", "patchings")
"""Attributes that pytest looks for at everything it finds, beside those with underscores."""

REPLACING = ("mock.mock", "unittest.mock", "_pytest.monkeypatch")
"""Modules that ask for what they replace for a test."""


class Placeholder:
    """Stands for something of the code under test: has each attribute, may be called, and is true or false."""

    def __init__(self, name: str) -> None:
        self._placeholder_name = name
        if self:
            self.__name__ = name  # so that it has another name as a case than what is false

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Return another placeholder; what is decorated stays as it is."""
        decorates = len(args) == 1 and not options and isinstance(args[0], (FunctionType, type))
        if decorates and args[0].__module__ not in ("builtins", "typing"):
            return args[0]
        return make_placeholder(type(self), f"{self._placeholder_name}()")

    def __getattr__(self, name: str) -> Any:
        """Return a placeholder for an attribute."""
        if name.startswith("_") or name in ASKED_BY_PYTEST:
            raise AttributeError(name)
        found = make_placeholder(type(self), name)
        setattr(self, name, found)
        return found

    def __iter__(self) -> Iterator[Any]:
        """Yield a placeholder, or nothing."""
        return iter([make_placeholder(type(self), f"{self._placeholder_name}[]")] if self else [])

    def __mro_entries__(self, _: tuple[Any, ...]) -> tuple[type, ...]:
        """Return what it is as a base class."""
        return (unittest.TestCase,) if self._placeholder_name.endswith("TestCase") else ()

    def __str__(self) -> str:
        """Return another text than what is false."""
        return f"{self._placeholder_name} that is {bool(self)}"

    __repr__ = __fspath__ = __str__

    def __format__(self, _: str) -> str:
        """Return its text, whatever format is asked for."""
        return str(self)

    def __exit__(self, *_: object) -> None:
        """Let what was raised pass."""


def build_kind(truth: bool) -> type[Placeholder]:  # noqa: FBT001  the one thing that it is told
    """Build the class of placeholders that are true, or of those that are not."""

    def answer(*_: object) -> bool:
        return truth

    methods: dict[str, Any] = {f"__{name}__": answer for name in ANSWERS}
    for name, number in COUNTS.items():
        methods[f"__{name}__"] = lambda _, count=number: count(truth)
    for name in chain(UNARY, OPERATORS, (f"r{name}" for name in OPERATORS)):
        methods[f"__{name}__"] = lambda self, *_: self
    methods.update(__hash__=object.__hash__, __module__=f"placeholders.{truth}")  # so that what is made of it differs
    return type(f"Placeholder{truth}", (Placeholder,), methods)


def make_placeholder(kind: type[Placeholder], name: str) -> Any:
    """Make a placeholder of *kind*, or an exception class where *name* is that of one."""
    match = RAISED.search(name)
    if match is None:
        return kind(name)
    base = Warning if match[1] == "Warning" else Exception
    return type(f"{name}{kind.__name__}", (base,), {"__init__": _take_all})


def _take_all(self: BaseException, *args: Any, **_: Any) -> None:
    """Take what an exception of the code under test may be made of."""
    self.args = args


class PlaceholderModule(ModuleType):
    """Stands for a module that is not there, or does not load: it has each name that nobody does without.

    Who imports a name, or asks whether there is one, may do so, as may a file while it is loaded: it is loaded again
    with what it needs.
    """

    kind: type[Placeholder]
    needed: Collection[tuple[str, str]]
    __all__: list[str]

    def __getattr__(self, name: str) -> Any:
        """Return a placeholder for a name that is needed, or that a function just takes or replaces."""
        asking = sys._getframe(1)  # noqa: SLF001  there is no other way
        code, replaces = asking.f_code, asking.f_globals.get("__name__") in REPLACING
        taken = code.co_flags & CO_OPTIMIZED and dis.opname[code.co_code[asking.f_lasti]].startswith("LOAD")
        if name.startswith("__") or not (taken or replaces or (self.__name__, name) in self.needed):
            error: Any = AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
            error.obj, error.name = self, name  # Python 3.10 or newer would do it
            raise error
        found = make_placeholder(self.kind, name)
        setattr(self, name, found)
        return found


class PlaceholderFinder:
    """Finds modules for which there are placeholders, before all others."""

    def __init__(self, kind: type[Placeholder], needed: Collection[tuple[str, str]]) -> None:
        self.names: set[str] = set()
        self._kind, self._needed = kind, needed

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        """Return where the module *name* comes from, if there is a placeholder for it."""
        return ModuleSpec(name, self, is_package=True) if name in self.names else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> PlaceholderModule:
        """Make the module."""
        made = PlaceholderModule(spec.name)
        made.kind, made.needed, made.__all__ = self._kind, self._needed, []
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: there is no code."""
