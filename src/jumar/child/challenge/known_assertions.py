"""Names and types that assertions know: functions that compare, those that do not, exceptions, built-in types."""

from __future__ import annotations

import ast
import re
from typing import Any

from jumar.child.challenge.deciding import get_bases, is_class

OPERATORS = {
    ast.Eq: "==", ast.NotEq: "!=", ast.In: "in", ast.NotIn: "not in", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
    ast.GtE: ">=",
}  # fmt: skip
"""Operators that an object may answer; an identity it may not."""

COMPARING: dict[str, str] = {
    **dict.fromkeys(
        ("assertEqual", "assertEquals", "assertListEqual", "assertTupleEqual", "assertDictEqual", "assertSetEqual",
         "assertSequenceEqual", "assertMultiLineEqual", "assertCountEqual"), "=="),
    "assertNotEqual": "!=", "assertIn": "in", "assertNotIn": "not in", "assertGreater": ">",
    "assertGreaterEqual": ">=", "assertLess": "<", "assertLessEqual": "<=",
}  # fmt: skip
"""Functions that stand for an operator."""

ASSERTING = re.compile("assert(_|[A-Z])|(isclose|allclose)$")
RAISING = frozenset({"raises", "assertRaises", "assertRaisesRegex"})
AFFIXES = frozenset({"startswith", "endswith"})
LOOKING = frozenset({"index", "count", "remove"})
"""Methods of containers that compare what they hold with what they are given."""

HARMLESS = frozenset({
    "assertTrue", "assertFalse", "assert_", "assertIs", "assertIsNot", "assertIsNone", "assertIsNotNone",
    "assertIsInstance", "assertNotIsInstance", "assertWarns", "assertWarnsRegex", "assertLogs", "assertNoLogs",
    "assertHasAttr",
})  # fmt: skip
"""Assertions that compare nothing."""

EXCEPTIONS = (ZeroDivisionError, OverflowError, RecursionError, EOFError, StopIteration, PermissionError,
              FileNotFoundError)  # fmt: skip
"""Exceptions that next to no other exception is an instance of."""

SOLID = (int, str, list, dict, tuple, bytes, float, set, complex)
"""Built-in types of which an object can have only one."""


def is_kin(kind: Any, other: type) -> bool:
    """Return whether an exception of one type may be of the *other*, too."""
    return (
        not is_class(kind)
        or any(one is other for one in get_bases(kind))
        or any(one is kind for one in get_bases(other))
    )
