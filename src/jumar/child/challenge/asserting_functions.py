"""Finds functions of the tests that assert, and those that a test hands out and nobody runs."""

from __future__ import annotations

import dis
import functools
import gc
import linecache
import re
import types
import weakref
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from jumar.child.challenge.syntax import NAME

FAILING = ("AssertionError", "fail", "raises")
"""Names by which a function fails a test, beside those that begin with `assert`."""

RAISING = {(dis.opmap.get("LOAD_ASSERTION_ERROR"), 0), (dis.opmap.get("LOAD_COMMON_CONSTANT"), 0)}
"""Instructions of `assert` that is not rewritten."""

COMPARING = ("COMPARE_OP", "CONTAINS_OP", "IS_OP")
"""Instructions that compare."""

COMPARED = frozenset(("see", "call", "call_false", "look", "see_kind"))
"""Methods of `Questions` that a file which is rewritten calls where it compares."""

LATER = 0x20 | 0x80 | 0x200
"""Flags of the code of generators and coroutines: to call such a function runs nothing of it."""

CALL = re.compile(r"(?<!super\(\))\.(\w+)\s*\(")
"""Call of a method by its name, but for that of a class above."""

UNCALLED = frozenset(("__init__", "__set_name__", "__set__", "__delete__", "__post_init__"))
"""Special methods that the product cannot call."""

DEEPEST = 4
"""Layers of methods, partial functions and mocks around a function."""

STEPPED = {types.GeneratorType: "gi", types.CoroutineType: "cr", types.AsyncGeneratorType: "ag"}
"""Types of what runs step by step -> beginning of the names of its code and its frame."""


class HandedFunctions:
    """Functions of the tests with a comparison in them that the product has, to call: each has to come to one.

    Those that a file hands out while it is loaded, or a fixture of several tests, count in each test that may rely on
    them: *relies_on* tells if those of one file do on another one. What they name is looked up once all is loaded.
    """

    def __init__(self, relies_on: Callable[[str, str], bool]) -> None:
        self._relies_on = relies_on
        self._called: set[str] = set()
        """Names of methods that the files of the tests call: those are not the product's alone."""
        self._idle: list[tuple[Any, Any]] = []
        self._ran: list[tuple[Any, Any]] = []
        """The same of those that ran: they may be handed out again, to be removed from where they stand."""
        self._kinds: weakref.WeakKeyDictionary[type, list[types.FunctionType]] = weakref.WeakKeyDictionary()
        """Class -> its methods: it is asked for with each of its objects that crosses."""
        self._methods: dict[types.FunctionType, None] = {}
        """Methods of objects and classes that this test hands out."""
        self._standing: dict[str, dict[types.FunctionType, None]] = {}
        """File -> functions that it hands out for several tests."""
        self._counted: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
        """Functions -> whether they assert, and stand in rewritten files: else nobody knows what compared."""

    def read(self, file: str) -> str:
        """Return the text of a *file* of the tests; note which methods it calls by their names."""
        text = "".join(linecache.getlines(file))
        self._called.update(CALL.findall(text))
        return text

    def begin_test(self) -> None:
        """Forget what only one test has."""
        self._idle, self._ran = [], []
        self._methods.clear()

    def note_handed(self, thing: Any, *, lasting: bool) -> None:
        """Note that *thing* is handed out, which may be a function, or call one."""
        function = find_function(thing)
        if function is None or function in self._methods:
            return
        known = any(one is function and _is_same(thing, other) for other, one in (*self._idle, *self._ran))
        if lasting:
            self._stand(function)
        elif not known and counts(function):
            held = self._idle if type(function) in (types.FunctionType, types.CoroutineType) else self._ran
            held.append((thing, function))

    def note_class(self, kind: type, list_bodies: Callable[[type], Iterable[Any]], *, lasting: bool) -> None:
        """Note *kind*, of which the product has an instance, or itself. Its bodies are listed once."""
        if kind not in self._kinds:
            self._kinds[kind] = [one for body in list_bodies(kind) for one in _list_methods(body)]
        self._add(self._kinds[kind], lasting=lasting)

    def note_body(self, body: Any, *, lasting: bool) -> None:
        """Note the *body* of a class of the tests that extends one of the product."""
        self._add(_list_methods(body), lasting=lasting)

    def _add(self, functions: Iterable[types.FunctionType], *, lasting: bool) -> None:
        for function in functions:
            self._stand(function) if lasting else self._methods.setdefault(function)

    def _stand(self, function: Any) -> None:
        self._standing.setdefault(str(_open(function)[1].get("__file__")), {})[function] = None

    def note_run(self, thing: Any) -> None:
        """Note that the product called *thing*, which came to its end."""
        function = find_function(thing) if self._idle else None
        later = type(function) is not types.FunctionType or function.__code__.co_flags & LATER
        self._end(lambda other, one: one is function and not later and _is_same(thing, other))

    def note_stepped(self, thing: Any) -> None:
        """Note that *thing*, a coroutine or generator, which tells its code alone, came to its end."""
        code = _open(thing)[0] if type(thing) in STEPPED else None
        self._end(lambda _, one: one is thing or getattr(one, "__code__", None) is code)

    def _end(self, ended: Callable[[Any, Any], bool]) -> None:
        self._ran += [pair for pair in self._idle if ended(*pair)]
        self._idle = [pair for pair in self._idle if not ended(*pair)]

    def find_idle(self, file: str, compared: Collection[types.CodeType]) -> str:
        """Return which function that asserts came to nothing in the test of *file*; or "".

        *compared* is the code that compared something in that test, or called what did.
        """
        if self._idle:
            return f"{self._idle[0][1].__name__}, which asserts, was handed to the product, which did not run it"
        standing = (held for name, held in self._standing.items() if self._relies_on(file, name))
        alone = (one for one in chain(self._methods, *standing) if not self._is_called(one))
        silent = (one for one in (*(one for _, one in self._ran), *alone) if not _came(one, compared))
        name = next((one.__name__ for one in silent if self._counts(one)), "")
        return f"{name}, which asserts, is the product's to call, and compared nothing" if name else ""

    def _is_called(self, one: Any) -> bool:
        """Return whether *one* is a method of a name by which the files of the tests, or pytest, call one."""
        called = one.__name__ in self._called or one.__name__[:4] == "test"
        return called and "." in one.__qualname__.rpartition("<locals>.")[2]

    def _counts(self, one: Any) -> bool:
        if one not in self._counted:
            self._counted[one] = any(NAME in code.co_names for code in list_codes(one)) and counts(one)
        return self._counted[one]


def _came(function: Any, compared: Collection[types.CodeType]) -> bool:
    """Return whether *function* is among what *compared*."""
    return any(code in compared for code in list_all(_open(function)[0]))


def _is_same(thing: Any, other: Any) -> bool:
    """Return whether two things that call the same function are told apart by nothing that they hold."""
    if type(thing) is types.MethodType and type(other) is types.MethodType:
        return thing.__self__ is other.__self__
    return thing is other


def find_function(thing: Any) -> Any:
    """Return the function that is run where *thing* is called: of a method, a partial function, an object, a mock.

    A generator or coroutine runs by itself.
    """
    for _ in range(DEEPEST):
        kind = type(thing)
        if kind is types.FunctionType or kind in STEPPED:
            return thing
        if kind is types.MethodType:
            thing = thing.__func__
        elif kind is functools.partial:
            thing = thing.func
        else:
            effect = getattr(thing, "__dict__", {}).get("_mock_side_effect")
            called = (vars(base)["__call__"] for base in kind.__mro__ if "__call__" in vars(base))
            thing = next(called, None) if effect is None else effect
    return None


def list_functions(value: Any) -> list[Any]:
    """Return the functions of *value*, which a class has in its body."""
    if issubclass(type(value), property):
        return [part for part in (value.fget, value.fset, value.fdel) if part]
    return [value.__func__ if issubclass(type(value), (staticmethod, classmethod)) else value]


def _list_methods(body: Mapping[str, Any]) -> list[types.FunctionType]:
    """Return the methods in *body*, of a class, that the product can call."""
    members = (value for name, value in body.items() if name not in UNCALLED)
    return [one for value in members for one in list_functions(value) if type(one) is types.FunctionType]


def counts(function: Any) -> bool:
    """Return whether *function* compares and asserts, itself or by functions of the tests that it names."""
    codes = list(list_codes(function))
    return any(map(_compares, codes)) and any(map(_asserts, codes))


def list_all(code: types.CodeType) -> list[types.CodeType]:
    """Return *code*, and that of the functions in it."""
    return [code, *(each for const in code.co_consts if isinstance(const, types.CodeType) for each in list_all(const))]


def asserts(function: types.FunctionType) -> bool:
    """Return whether *function* raises an assertion, or a function of the tests does that it names."""
    return any(map(_asserts, list_codes(function)))


def has_assertion(functions: Iterable[types.FunctionType]) -> bool:
    """Return whether an assertion stands in *functions*, or in functions of the tests that they name."""
    codes = [code for function in functions if NAME in function.__globals__ for code in list_codes(function)]
    named = {name for code in codes for name in code.co_names}
    return any(name.lower().startswith("assert") for name in named) or any(map(_raises, codes))


def list_codes(function: Any) -> Iterator[types.CodeType]:
    """Yield the code of *function*, and of the functions of files of tests that it names, or that those do."""
    return (each for code, _ in _walk(function) for each in list_all(code))


def list_classes(thing: Any) -> list[Any]:
    """Return the classes that the function *thing* names, or one of files of tests that it names."""
    function = find_function(thing)
    walked = () if function is None else _walk(function)
    return [kind for _, kinds in walked for kind in kinds]


def _walk(function: Any) -> Iterator[tuple[types.CodeType, list[Any]]]:
    """Yield the code of *function*, and of the functions of `list_codes`, each with the classes that it names."""
    todo, seen, inner = [function], set(), _unwrap(function)
    file = _open(inner if type(inner) is types.FunctionType else function)[1].get("__file__")
    while todo:
        code, names = _open(one := todo.pop())
        if code not in seen:
            seen.add(code)
            named = [*_list_named(one, code, names)]
            yield code, [each for each in named if issubclass(type(each), type)]
            functions = (each for each in named if type(each) in (types.FunctionType, *STEPPED))
            todo += [each for each in functions if NAME in (held := _open(each)[1]) or held.get("__file__") == file]


def _open(function: Any) -> tuple[types.CodeType, Mapping[str, Any]]:
    """Return the code of *function*, or of a generator or coroutine, and what its names stand for."""
    if start := STEPPED.get(type(function)):
        frame = getattr(function, f"{start}_frame")
        return getattr(function, f"{start}_code"), {**frame.f_globals, **frame.f_locals} if frame else {}
    cells = zip(function.__code__.co_freevars, function.__closure__ or ())  # noqa: B905  Python 3.8 has no `strict`
    known = {name: held for name, cell in cells for held in gc.get_referents(cell)}  # one may be empty
    return function.__code__, ChainMap(known, function.__globals__)


def _list_named(function: Any, code: types.CodeType, held: Mapping[str, Any]) -> Iterator[Any]:
    """Yield what *function* names: by a variable, or as what a module, class or object there has."""
    inner = list_all(code)
    names = {"__init__", "__call__", *(name for each in inner for name in (*each.co_names, *each.co_freevars))}
    values = [*(held.get(name) for name in names), getattr(function, "__dict__", {}).get("__wrapped__")]
    places = _list_places([*values, held.get(function.__qualname__.partition(".")[0])])
    for each in (*values, *(place[name] for place in places for name in names & place.keys())):
        yield from map(_unwrap, list_functions(each))


def _unwrap(found: Any) -> Any:
    """Return the function in *found*, a method, partial function or function that wraps another one."""
    while type(found) in (types.MethodType, functools.partial):
        found = found.__func__ if type(found) is types.MethodType else found.func
    return vars(found).get("__wrapped__", found) if type(found) is types.FunctionType else found


def _list_places(values: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield what modules and classes among *values* have, and the classes of objects."""
    for value in values:
        if type(value) is types.ModuleType:
            yield vars(value)
            continue
        kind = value if issubclass(type(value), type) else type(value)
        yield from (vars(base) for base in type.__getattribute__(kind, "__mro__"))


@functools.lru_cache(maxsize=1000)
def _asserts(code: types.CodeType) -> bool:
    """Return whether *code* raises an assertion, or calls what does so by its name."""
    return any(name.lower().startswith("assert") or name in FAILING for name in code.co_names) or _raises(code)


def _raises(code: types.CodeType) -> bool:
    """Return whether an `assert` stands in *code*, as Python compiles it."""
    steps = zip(code.co_code[::2], code.co_code[1::2])  # noqa: B905  Python 3.8 has no `strict`
    return not RAISING.isdisjoint(steps)


@functools.lru_cache(maxsize=1000)
def _compares(code: types.CodeType) -> bool:
    """Return whether *code* compares, or calls an assertion of `unittest`. Where pytest rewrote it, `in` is its own."""
    if NAME in code.co_names:
        return not COMPARED.isdisjoint(code.co_names)
    known = COMPARING[:1] if "@pytest_ar" in code.co_names else COMPARING
    compared = any(dis.opname[step] in known for step in code.co_code[::2])
    return compared or any(name.startswith("assert") for name in code.co_names)
