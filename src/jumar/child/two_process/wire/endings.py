"""Exceptions of the product that end an iteration, a coroutine or a task of the tests, and fail nothing."""

from __future__ import annotations

import ast
import builtins
import inspect
import opcode
import sys
import textwrap
from collections.abc import Callable, Collection
from typing import Any

from jumar.child.two_process.wire.containers.shared_container import get_fact

AWAITED = "_jumar_awaited"
"""Mark of an awaitable whose end counts for more than its result: the name of the method that gave it."""

STEP = "_jumar_step"
"""Mark of a method that the tests took from an iterator or a coroutine: one of `STEPS`."""

STEPS = frozenset(("__next__", "send", "throw"))
"""Methods of iterators and generators, which end by such an exception."""

ENDS = (StopIteration, StopAsyncIteration, GeneratorExit)

STEPPED = ("async_generator", "coroutine", "generator")
"""Types of Python whose objects have such methods: `send` of anything else is a method like any other."""

OPERATIONS = (ast.Compare, ast.BinOp, ast.BoolOp, ast.UnaryOp, ast.AugAssign)

LEAVING = ("__exit__", "__aexit__")
"""Methods that end a context."""

GIVING = frozenset(("__aexit__", "__anext__", "__await__"))
"""Methods that give an awaitable."""

MOST_FAILURES = 10
"""Exceptions of the tests' functions that the product may catch in one test: by more it could guess what is right."""


def list_ends() -> tuple[type[BaseException], ...]:
    """Return the exceptions that end an iteration, a coroutine or, the last one, a task."""
    # Not imported: a zygote that has `logging` before its clocks are read would tell when it began.
    return (*ENDS, getattr(sys.modules.get("asyncio"), "CancelledError", GeneratorExit))


class HeardEnds:
    """Exceptions that came from the product and would end a loop or task of the tests, until one of them is raised."""

    def __init__(self) -> None:
        self._kinds: list[type] = []

    def note(self, kind: type) -> None:
        """Note that an exception of *kind* came, if that is one of these."""
        self._kinds += [kind] if issubclass(kind, list_ends()) else []

    def drops(self, reason: Any) -> bool:
        """Return whether *reason*, which came as the one behind another exception, is one of these: it is left out."""
        left_out = isinstance(reason, list_ends())
        if left_out:
            del self._kinds[-1:]
        return left_out

    def take_value(self, error: Any) -> str:
        """Return the class of one that came as a value, if one did, beside *error*, which was raised; forget all."""
        kinds, self._kinds = self._kinds, []
        return kinds[0].__name__ if len(kinds) > isinstance(error, list_ends()) else ""


def comes_of(error: BaseException, kind: type) -> bool:
    """Return whether *error* is of *kind*, or comes of one: in a group, as its cause, or while that was handled."""
    todo: list[Any] = [error]
    seen: dict[int, Any] = {}
    while todo:
        one = todo.pop()
        if isinstance(one, kind):
            return True
        if isinstance(one, BaseException) and id(one) not in seen:
            seen[id(one)] = one
            parts = getattr(one, "exceptions", None)  # of a group
            todo += [one.__cause__, one.__context__, *(parts if type(parts) is tuple else ())]
    return False


def is_stepped(kind: Any) -> bool:
    """Return whether *kind* is a type of generators or coroutines."""
    return kind.__module__ == "builtins" and kind.__name__ in STEPPED


def mark_step(found: Any, name: str, thing: Any, kind: type) -> None:
    """Mark *found*, the attribute *name* of *thing*, if it is such a method; *kind* is the class of proxies."""
    if name in STEPS and isinstance(found, kind) and is_stepped(type(thing)):
        object.__setattr__(found, STEP, True)


def is_leaving(frame: Any) -> bool:
    """Return whether *frame*, or one below it, ends a context because of an exception: what it comes to may excuse it.

    By an `ExitStack`, a context manager of the tests, or one that `contextlib` makes of a generator.
    """
    if sys.exc_info()[1] is None or is_unused(frame):
        return False
    while frame is not None and frame.f_code.co_name not in LEAVING:
        frame = frame.f_back
    return frame is not None


def swallows(answer: Any, error: tuple[Any, ...], failing: tuple[type, ...], is_file: Callable[[Any], bool]) -> bool:
    """Return whether *answer*, of a context, makes *error* disappear (empty: none is there), and may not.

    It may if a statement of the very `with` of the tests raises it, and it is none of *failing*: then that is what the
    test is about. By a `raise` that depends on nothing, or by a statement of nothing but literals (`1 / 0`).
    """
    if answer is None or answer is False or not error or error[0] is None:  # its truth may change
        return False
    return not _is_raised_by_body(error[1], error[2], failing, is_file)


def _is_raised_by_body(value: Any, traceback: Any, failing: tuple[type, ...], is_file: Callable[[Any], bool]) -> bool:
    """Return whether *value* comes of the outermost frame of *traceback* alone, one of the tests' files."""
    if traceback is None or traceback.tb_next is not None or isinstance(value, failing):
        return False
    code, frame = traceback.tb_frame.f_code.co_code, traceback.tb_frame
    own = not any(name.startswith("_jumar") for name in vars(value)) and is_file(frame.f_globals.get("__file__"))
    by_raise = opcode.opname[code[traceback.tb_lasti]] == "RAISE_VARARGS"
    return bool(own and _stands_alone(frame, traceback.tb_lineno, ast.Raise if by_raise else ast.Expr))


def _list_statements(frame: Any, kind: Any, line: int = 0) -> list[Any]:
    """Return the nodes of *kind* at *line* (0: its own) in the text of the function that runs in *frame*."""
    try:
        nodes: list[Any] = [*ast.walk(ast.parse(textwrap.dedent(inspect.getsource(frame.f_code))))]
    except (OSError, ValueError, SyntaxError):
        return []
    line = (line or frame.f_lineno) - frame.f_code.co_firstlineno + 1
    return [n for n in nodes if isinstance(n, kind) and n.lineno <= line <= (n.end_lineno or 0)]


def _stands_alone(frame: Any, line: int, kind: Any) -> bool:
    """Return whether at *line* of *frame* a statement of *kind* is right in a `with`, where no answer leads to it.

    A `raise`, or an expression of nothing but literals and Python's own functions.
    """
    bodies = [node.body for node in _list_statements(frame, (ast.With, ast.AsyncWith), line)]
    line -= frame.f_code.co_firstlineno - 1
    found = [one for body in bodies for one in body if isinstance(one, kind) and one.lineno <= line <= one.end_lineno]
    names = {part.id for node in found for part in ast.walk(node) if isinstance(part, ast.Name)}
    own = frame.f_globals.keys() | frame.f_locals.keys()
    return len(found) == 1 and (kind is ast.Raise or names <= vars(builtins).keys() - own)


def _find_asking() -> Any:
    """Return the innermost frame that is none of this package."""
    frame: Any = sys._getframe()  # noqa: SLF001  there is no other way to see who asks
    while str(frame.f_globals.get("__name__")).startswith("jumar."):
        frame = frame.f_back
    return frame


def is_expected(error: BaseException) -> bool:
    """Return whether *error* is the `StopIteration` that has to end the one call below a `with` that awaits it.

    Nothing else is there that it could end: if a loop in C swallowed it, what awaits it would fail.
    """
    awaiting = _list_statements(_find_asking(), ast.With) if type(error) is StopIteration else []
    return any(_awaits_end(node.items[0].context_expr, node.body[0]) for node in awaiting if len(node.body) == 1)


def _awaits_end(context: Any, statement: Any) -> bool:
    """Return whether *context* awaits a `StopIteration`, and *statement* is no more than one call."""
    calls = [part for part in ast.walk(statement) if isinstance(part, ast.Call)]
    given = [getattr(argument, "id", "") for argument in getattr(context, "args", ())]
    whole = isinstance(statement, ast.Expr) and len(calls) == 1
    return _awaits_error(context) and given == ["StopIteration"] and whole


def _awaits_error(context: Any) -> bool:
    """Return whether *context*, an expression, is a call that awaits an exception."""
    called = getattr(context, "func", None)
    return getattr(called, "attr", getattr(called, "id", "")) in ("raises", "assertRaises", "assertRaisesRegex")


def is_operation_awaited() -> bool:
    """Return whether what asks is one operation, the only statement below a `with raises(...)`: it has to fail."""
    return any(
        len(node.body) == 1 and _awaits_error(node.items[0].context_expr) and _is_operation(node.body[0])
        for node in _list_statements(_find_asking(), ast.With)
    )


def _is_operation(statement: ast.stmt) -> bool:
    made = [part for part in ast.walk(statement) if isinstance(part, OPERATIONS) and not _is_sign(part)]
    whole = statement.value if isinstance(statement, (ast.Assign, ast.Expr)) else statement
    return len(made) == 1 and made[0] is whole


def _is_sign(part: Any) -> bool:
    return isinstance(part, ast.UnaryOp) and isinstance(part.operand, ast.Constant)


def is_unused(frame: Any) -> bool:
    """Return whether *frame*, which is just calling something, does nothing with what that comes to."""
    code, place = frame.f_code.co_code, frame.f_lasti + 2
    while place < len(code) and opcode.opname[code[place]] == "CACHE":
        place += 2
    return place < len(code) and bool(opcode.opname[code[place]] == "POP_TOP")


def mark_awaited(answer: Any, name: str, thing: Any, given: tuple[Any, ...]) -> None:
    """Mark *answer*, an awaitable that the method *name* of *thing* gave, called with what is *given*."""
    mark = get_fact(thing, AWAITED) if name == "__await__" else name
    counts = name != "__aexit__" or (given and given[0] is not None)
    if get_fact(answer, AWAITED) != "__aexit__":  # one awaitable may be given by several
        object.__setattr__(answer, AWAITED, mark if counts else None)


def find_fault(op: str, arguments: tuple[Any, ...], error: BaseException) -> str:
    """Return what is wrong with *error*, which the request *op* came to; empty: nothing.

    By a `StopIteration` a function ends the loop of `map(decode, given)`, by a cancellation the task that asserts.
    """
    *_, cancelled = list_ends()
    if not isinstance(error, list_ends()):
        return ""
    step = op == "method" and arguments[2] in STEPS
    step = step or (op in ("call", "method") and get_fact(arguments[0], STEP))
    awaited = get_fact(arguments[0], AWAITED) if step else None
    thrown = step and any(isinstance(one, cancelled) for one in arguments[3 if op == "method" else 1])
    due = cancelled if thrown else StopAsyncIteration if awaited == "__anext__" else StopIteration
    if not step or type(error) not in (StopIteration, due):
        return f"a {type(error).__name__} of the product would end what the tests do"
    given = arguments[3 if op == "method" else 1]
    if type(error) is StopIteration and any(isinstance(one, Exception) for one in given):
        return "a generator of the product makes an exception disappear that was thrown into it"
    if awaited == "__aexit__" and error.args and error.args[0] is not None and error.args[0] is not False:
        return "a context manager of the product makes an exception disappear"
    return ""


class AskedWithin:
    """Failed assertions, while which were handled the product was asked: it may say that they have not failed.

    It did not if the phase of the test ends with that very one, as where `@patch` takes something back.
    """

    def __init__(self, fault: Callable[[str], None]) -> None:
        self._fault = fault
        self._failed: BaseException | None = None

    def note(self, error: BaseException) -> None:
        """Note that the product is asked while *error* is handled; what was noted before has been excused."""
        before, self._failed = self._failed, error
        if before is not error:
            self._doubt(before)

    def settle(self, raised: Collection[BaseException]) -> None:
        """Note what a phase of a test *raised* in the end."""
        failed, self._failed = self._failed, None
        if not any(failed is error for error in raised):
            self._doubt(failed)

    def _doubt(self, failed: BaseException | None) -> None:
        if failed is not None:
            self._fault("the product is asked while an assertion of the tests has failed, and may say that it has not")
