"""Leaves out statements of a file that raise while it is loaded, so that the rest of it can be.

Standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

OPTIMIZED = 1
"""Flag of the code of functions, which that of modules and classes does not have (inspect.CO_OPTIMIZED)."""

MAKER = "__placeholder__"
"""Name under which a file finds what makes a placeholder of a name."""


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
    """Return the code of *source* without what raises at *lines*.

    What a statement would have bound is a placeholder. A function or class loses the decorator of that line, or what is
    evaluated before its body; of another block the body stays.

    Raises:
        SyntaxError, ValueError: if it is no Python.
    """
    tree = ast.parse(source, file)
    for line in lines:
        _replace(tree, line)
    ast.fix_missing_locations(tree)
    return compile(tree, file, "exec", dont_inherit=True)


def _replace(node: Any, line: int) -> bool:
    """Replace the innermost statement below *node* that is executed at *line*; return whether there is one."""
    for field in ("body", "orelse", "handlers", "finalbody"):
        statements = getattr(node, field, [])
        for place, one in enumerate(statements if isinstance(statements, list) else ()):
            first = min([one.lineno, *(d.lineno for d in getattr(one, "decorator_list", ()))])
            if first <= line <= (one.end_lineno or first):
                function = isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))
                if not function and _replace(one, line):
                    return True
                if isinstance(one, ast.ExceptHandler):
                    one.type = ast.copy_location(ast.Name("Exception", ast.Load()), one)
                else:
                    statements[place : place + 1] = _reduce(one, line)
                return True
    return False


def _reduce(one: Any, line: int) -> list[Any]:
    """Return what stays of a statement that raises at *line*."""
    if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        kept = [d for d in one.decorator_list if not d.lineno <= line <= (d.end_lineno or d.lineno)]
        if len(kept) == len(one.decorator_list):
            _strip(one)
        one.decorator_list = kept
        return [one]
    named = [n.id for n in ast.walk(one) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    imported = [(a.asname or a.name).partition(".")[0] for a in getattr(one, "names", ()) if isinstance(a, ast.alias)]
    bound = [_bind(name, one) for name in dict.fromkeys((*named, *imported)) if name != "*"]
    return [*bound, *getattr(one, "body", ()), *getattr(one, "orelse", ())] or [ast.copy_location(ast.Pass(), one)]


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


def _bind(name: str, one: ast.stmt) -> ast.stmt:
    call = ast.Call(ast.Name(MAKER, ast.Load()), [ast.Constant(value=name)], [])
    made = ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], call), one)
    made.end_lineno = made.lineno  # the lines below are those of what stays
    return made
