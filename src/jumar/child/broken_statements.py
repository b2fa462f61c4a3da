"""Leaves out statements of a file that raise while it is loaded, or a test runs, so that the rest of it can be.

Standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

OPTIMIZED = 1
"""Flag of the code of functions, which that of modules and classes does not have (inspect.CO_OPTIMIZED)."""

LEFT = "is_left_out"
"""Attribute of what stands for a statement: another one of its line may raise as well."""

MAKER = "__placeholder__"
"""Name under which a file finds what makes a placeholder of a name."""

PASSED_OVER = "__passed_over__"
"""Name under which it finds what says which exception a statement of a test may raise without ending it."""

CALLED = re.compile("test|(async)?setup(_?(class|module|method|function))?$|fixture$", re.IGNORECASE)
"""Name of a function that pytest calls, or of a decorator of one. Others may raise for somebody to see."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BARE = (*FUNCTIONS, ast.ClassDef, ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal)
"""Statements that raise nothing that a test would depend on."""


def find_line(error: BaseException, file: str) -> int:
    """Return the line of *file*, or of a class in it, at which loading it raised *error*; 0: in none."""
    found, entry = 0, error.__traceback__
    while entry is not None:
        if entry.tb_frame.f_code.co_filename == file:
            if entry.tb_frame.f_code.co_flags & OPTIMIZED:
                break
            found = _get_line(entry)
        entry = entry.tb_next
    return found


def _get_line(entry: TracebackType) -> int:
    return entry.tb_lineno or entry.tb_frame.f_code.co_firstlineno


def leave_out(source: bytes, file: str, lines: Iterable[int]) -> Any:
    """Return the code of *source* without what raises at *lines*, one for each time, and with tests that go on.

    What a statement would have bound is a placeholder. A function or class loses the decorator of that line, or what is
    evaluated before its body; of another block the body stays.

    Raises:
        SyntaxError, ValueError: if it is no Python.
    """
    tree = ast.parse(source, file)
    for line in lines:
        _replace(tree, line)
    for one in [*ast.walk(tree)]:
        if isinstance(one, FUNCTIONS) and _is_called(one):
            one.body = [_guard(statement) for statement in one.body]
    ast.fix_missing_locations(tree)
    return compile(tree, file, "exec", dont_inherit=True)


def _is_called(function: Any) -> bool:
    parts = [part for decorator in function.decorator_list for part in ast.walk(decorator)]
    return any(CALLED.match(getattr(p, "name", getattr(p, "attr", getattr(p, "id", "")))) for p in (function, *parts))


def _replace(node: Any, line: int) -> bool:
    """Replace the innermost statement below *node* that is executed at *line*; return whether there is one."""
    for field in ("body", "orelse", "handlers", "finalbody"):
        statements = getattr(node, field, [])
        for place, one in enumerate(statements if isinstance(statements, list) else ()):
            first = min([one.lineno, *(d.lineno for d in getattr(one, "decorator_list", ()))])
            if first <= line <= (one.end_lineno or first) and not hasattr(one, LEFT):
                if not isinstance(one, FUNCTIONS) and _replace(one, line):
                    return True
                if isinstance(one, ast.ExceptHandler):
                    one.type = ast.copy_location(ast.Name("Exception", ast.Load()), one)
                else:
                    statements[place : place + 1] = _reduce(one, line)
                return True
    return False


def _reduce(one: Any, line: int) -> list[Any]:
    """Return what stays of a statement that raises at *line*."""
    if isinstance(one, (*FUNCTIONS, ast.ClassDef)):
        kept = [d for d in one.decorator_list if not d.lineno <= line <= (d.end_lineno or d.lineno)]
        if len(kept) == len(one.decorator_list):
            _strip(one)
        one.decorator_list = kept
        return [one]
    return [*_bind_all(one), *getattr(one, "body", ()), *getattr(one, "orelse", ())]


def _guard(one: Any) -> Any:
    """Return *one*, a statement of a test, so that what is behind it runs if it raises.

    What is tried there, and followed by what to do if it raises, ends where it did.
    """
    if isinstance(one, BARE):
        return one
    handlers = getattr(one, "handlers", [])
    for block in (one, *handlers):
        for field in ("body", "orelse", "finalbody"):
            if isinstance(getattr(block, field, None), list) and not (handlers and block is one and field == "body"):
                setattr(block, field, [_guard(statement) for statement in getattr(block, field)])
    chosen = ast.Call(ast.Name(PASSED_OVER, ast.Load()), [], [])
    return ast.copy_location(ast.Try([one], [ast.ExceptHandler(chosen, None, _bind_all(one))], [], []), one)


def _strip(one: Any) -> None:
    """Take what is evaluated where a function or class is made out of *one*."""
    if isinstance(one, ast.ClassDef):
        one.bases, one.keywords = [], []
        return
    given = one.args
    given.defaults = [ast.Constant(value=None) for _ in given.defaults]
    given.kw_defaults = [ast.Constant(value=None) for _ in given.kw_defaults]
    one.returns = None
    for each in (*given.args, *given.kwonlyargs, *given.posonlyargs, given.vararg, given.kwarg):
        if each is not None:
            each.annotation = None


def _bind_all(one: ast.stmt) -> list[ast.stmt]:
    """Return statements that bind placeholders to the names that *one* binds, or one that does nothing."""
    named = [n.id for n in ast.walk(one) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    imported = [(a.asname or a.name).partition(".")[0] for a in getattr(one, "names", ()) if isinstance(a, ast.alias)]
    made: list[ast.stmt] = [ast.Pass()]
    for name in dict.fromkeys((*named, *imported)):
        if name != "*":
            call = ast.Call(ast.Name(MAKER, ast.Load()), [ast.Constant(value=name)], [])
            made.append(ast.Assign([ast.Name(name, ast.Store())], call))
    for each in made:
        ast.copy_location(each, one)
        each.end_lineno = each.lineno  # the lines below are those of what stays
        setattr(each, LEFT, True)
    return made
