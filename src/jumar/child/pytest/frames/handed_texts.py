"""Finds the texts and paths that a test names in the call that it is making: these are what it hands."""

from __future__ import annotations

import builtins
import dis
import os
import pathlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Of our own, whatever becomes of the others.
__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # a module or its names

DEPTH = 6
"""The most names, each made of others, from the first to the texts that it was made of."""

JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))

# What the hook needs it has in its closure: names of a module are anybody's to exchange.


def build_lister() -> Callable[[Any], list[str]]:
    """Build the function that lists the texts, in their order, of the call that a frame is making.

    They are constants and values of names, or those that an object of such a name was made of. What is in an object or
    a list is not asked: it is in the hands of the code under test.
    """
    kinds, decode, most, collect = (str, bytes, type(pathlib.Path())), os.fsdecode, DEPTH, _build_collect()
    known: dict[tuple[Any, int], list[Any]] = {}

    def list_texts(frame: Any) -> list[str]:
        key = frame.f_code, frame.f_lasti
        if key not in known:
            known[key] = list(collect(frame.f_code, frame.f_lasti))
        spaces = frame.f_locals, frame.f_globals
        return [decode(one) for one in expand(known[key], spaces, most) if type(one) in kinds]

    def expand(loads: list[Any], spaces: tuple[Any, Any], left: int) -> Iterator[Any]:
        for constant, path, made_of in loads:
            value = get_value(path, spaces) if path else constant
            if type(value) is tuple:
                yield from value
            elif type(value) in kinds or not left:
                yield value
            else:
                yield from expand(made_of(), spaces, left - 1)

    def get_value(path: tuple[str, ...], spaces: tuple[Any, Any]) -> Any:
        value = next((space[path[0]] for space in spaces if path[0] in space), None)
        for name in path[1:]:  # without a line of its class
            places = (getattr(value, "__dict__", {}), *(vars(one) for one in type(value).__mro__))
            value = next((place[name] for place in places if name in place), None)
        return value

    return list_texts


def _build_collect() -> Callable[[Any, int], Iterator[Any]]:
    """Build the generator of what is loaded for the instruction at an offset: a constant or a name with attributes."""
    read, change, list_loads = dis.get_instructions, _build_change(), _build_loads()

    def collect(code: Any, offset: int) -> Iterator[Any]:
        steps = list(read(code))
        at = max(n for n, one in enumerate(steps) if one.offset <= offset)
        while at > 0 and not steps[at].opname.startswith(("CALL", "LOAD_ATTR", "COMPARE", "BINARY", "CONTAINS")):
            at -= 1  # what was called is entered, stepped through or awaited
        return list_loads(steps, at, 1 - change(steps[at]))

    return collect


def _build_change() -> Callable[[Any], int]:
    effect, arguments = dis.stack_effect, dis.HAVE_ARGUMENT
    return lambda one: effect(one.opcode, one.arg if one.opcode >= arguments else None)


def _build_loads() -> Callable[[list[Any], int, int], Iterator[Any]]:
    """Build the generator of the loads, before an instruction, that make as many values as are needed there."""
    constants, names = ("LOAD_CONST", "LOAD_SMALL"), ("LOAD_FAST", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF")
    find_start, list_attributes = _build_start(), _list_attributes

    def list_loads(steps: list[Any], end: int, needed: int) -> Iterator[Any]:
        for n in range(find_start(steps, end, needed), end):
            one = steps[n]
            if one.opname.startswith(constants):
                yield one.argval, (), tuple
            elif one.opname.startswith(names):
                for name in one.argval if type(one.argval) is tuple else (one.argval,):
                    yield None, (name, *list_attributes(steps, n + 1)), follow(steps, name, n)

    def follow(steps: list[Any], name: str, before: int) -> Callable[[], list[Any]]:
        def list_made_of() -> list[Any]:
            stores = [n for n in range(before) if steps[n].opname.startswith("STORE") and steps[n].argval == name]
            return list(list_loads(steps, stores[-1], 1)) if stores else []

        return list_made_of

    return list_loads


def _build_start() -> Callable[[list[Any], int, int], int]:
    """Build the function that finds the first instruction of those that make as many values as are needed."""
    jumps, change, ends = JUMPS, _build_change(), ("STORE", "DELETE", "SWAP", "ROT", "UNPACK", "COPY")

    def find_start(steps: list[Any], end: int, needed: int) -> int:
        while end > 0 and needed > 0:
            one = steps[end - 1]
            if one.opcode in jumps or one.opname.startswith(ends):
                break
            end, needed = end - 1, needed - change(one)
        return end

    return find_start


def _list_attributes(steps: list[Any], n: int) -> Iterator[str]:
    while steps[n].opname in ("LOAD_ATTR", "LOAD_METHOD"):
        yield steps[n].argval
        n += 1
