"""Finds statements that always run and whose failure skips no side effect that later tests need."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jumar.verify.challenge.constants import NameBindings, walk_own
from jumar.verify.challenge.source_edits import get_dotted_name

CATCHING = frozenset({"suppress", "raises", "assertRaises", "assertRaisesRegex", "ExitStack", "AsyncExitStack"})
"""Contexts that end an exception, or may."""

PASSING = frozenset({
    "subTest", "assertLogs", "assertNoLogs", "assertWarns", "assertWarnsRegex", "warns", "deprecated_call",
    "catch_warnings", "at_level", "disabled", "patch", "freeze_time", "open",
})  # fmt: skip
"""Contexts of tests that let every exception through, by the last part of their name."""

STANDARD = frozenset(sys.stdlib_module_names) - {"test", "this", "antigravity"}

ENDING = ("skip", "xfail", "exit", "abort", "fork", "importorskip")
"""In the name of what ends a test early, or a process."""

CLEANING = (
    "clear", "close", "remove", "unlink", "rmtree", "join", "stop", "shutdown", "terminate", "kill", "restore", "reset",
    "clean", "teardown", "undo", "cancel", "wait", "disconnect", "unregister", "delete", "release", "disable", "enable",
    "pop", "set_", "uninstall", "deactivate", "unset", "quit", "exit", "chdir", "setlocale", "unpatch", "dispose",
)  # fmt: skip
"""In the name of what must not be missed, as later tests may count on it."""


ReachableStatement = ast.Assert | ast.Expr | ast.With | ast.AsyncWith
"""A statement that runs in every case of a test that passes, and after which a failure does no harm."""


def find_reachable(names: NameBindings, modules: Mapping[str, str]) -> Iterator[ReachableStatement]:
    """Yield the statements of a test function at which it can be made to fail.

    Args:
        names: of the function.
        modules: name -> the module it was imported from.
    """
    yield from _Walk(names, modules).walk_body(names.function.body, calm=True)


HARMLESS = (ast.Assert, ast.Return, ast.Pass, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class _Walk:
    names: NameBindings
    modules: Mapping[str, str]

    def walk_body(self, body: Sequence[ast.stmt], *, calm: bool) -> Iterator[ReachableStatement]:
        """Yield the reachable statements of *body*; *calm* if the statements after it may be skipped."""
        after = [calm]
        for statement in reversed(body[1:]):
            after.append(after[-1] and self._is_harmless(statement))
        for statement, missed in zip(body, reversed(after), strict=True):
            yield from self._walk_statement(statement, calm=missed)
            if _can_leave(statement):
                return

    def _walk_statement(self, statement: ast.stmt, *, calm: bool) -> Iterator[ReachableStatement]:
        match statement:
            case ast.Assert() | ast.Expr():
                if calm:
                    yield statement
            case ast.With() | ast.AsyncWith():
                if calm:
                    yield statement
                if all(map(self._lets_through, statement.items)):
                    yield from self.walk_body(statement.body, calm=calm)
            case ast.Try(handlers=[]):
                yield from self.walk_body(statement.body, calm=calm)
                if not any(map(_can_leave, statement.body)):
                    yield from self.walk_body(statement.finalbody, calm=calm)
            case ast.For(orelse=[]) if self.names.list_rows(statement.iter):
                # The first round of the loop runs for certain; those after it are missed.
                yield from self.walk_body(statement.body, calm=calm and all(map(self._is_harmless, statement.body)))
            case _:
                pass

    def _lets_through(self, item: ast.withitem) -> bool:
        name = get_dotted_name(item.context_expr)
        root, _, last = name.partition(".")[0], *name.rpartition(".")[1:]
        if not name or last in CATCHING or not isinstance(item.context_expr, ast.Call):
            return False
        return last in PASSING or name == "subtests.test" or self.modules.get(root, "").partition(".")[0] in STANDARD

    def _is_harmless(self, statement: ast.stmt) -> bool:
        """Return whether no later test can miss it."""
        match statement:
            case _ if isinstance(statement, HARMLESS):
                return True
            case ast.Assign(targets=targets):
                plain = ast.Name | ast.Tuple | ast.List | ast.Load | ast.Store
                return all(isinstance(n, plain) for t in targets for n in ast.walk(t))
            case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
                return isinstance(target, ast.Name)
            case ast.Expr(value=value):
                return self._is_harmless_value(value)
            case ast.With() | ast.If() | ast.For() | ast.While():
                return all(map(self._is_harmless, (*statement.body, *getattr(statement, "orelse", ()))))
            case _:
                return False

    def _is_harmless_value(self, value: ast.expr) -> bool:
        if isinstance(value, ast.Constant):
            return True
        if not isinstance(value, ast.Call):
            return isinstance(value, ast.Name | ast.Attribute | ast.Subscript | ast.Compare | ast.BinOp)
        name = get_dotted_name(value.func)
        last, module = name.rpartition(".")[2].lower(), self.modules.get(name.partition(".")[0], "")
        if last.startswith("assert") or name == "print":
            return True
        return bool(name) and module.partition(".")[0] not in STANDARD and not any(word in last for word in CLEANING)


def _can_leave(statement: ast.stmt) -> bool:
    """Return whether *statement* may keep the rest from running although the test passes."""
    for node in walk_own([statement]):
        if isinstance(node, ast.Return | ast.Yield | ast.YieldFrom | ast.Match):
            return True
        if isinstance(node, ast.Break | ast.Continue) and not isinstance(statement, ast.For | ast.While):
            return True
        if isinstance(node, ast.Call | ast.Raise):
            what = node.func if isinstance(node, ast.Call) else node.exc
            name = get_dotted_name(what).lower() if what else ""
            if any(word in name.rpartition(".")[2] for word in ENDING):
                return True
    return False
