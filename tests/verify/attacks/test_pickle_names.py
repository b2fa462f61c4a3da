"""A pickle of the product names classes of values, and nothing that leads to the tests."""

from __future__ import annotations

import pytest

from jumar.child.pytest import product_guard


@pytest.mark.parametrize(
    ("module", "name", "let"),
    [
        ("builtins", "set", True),
        ("builtins", "ValueError", True),
        ("collections", "OrderedDict", True),
        ("decimal", "Decimal", True),
        ("_codecs", "encode", True),
        ("copyreg", "_reconstructor", True),
        ("builtins", "globals", False),
        ("builtins", "vars", False),
        ("builtins", "type", False),
        ("builtins", "getattr", False),
        ("collections", "_itemgetter", False),
        ("collections", "_sys", False),
        ("fractions", "operator", False),
        ("uuid", "os", False),
        ("copyreg", "add_extension", False),
        ("operator", "itemgetter", False),
        ("collections", "OrderedDict.update", False),
    ],
)
def test_a_pickle_names_no_way_to_the_tests(module: str, name: str, let: bool) -> None:  # noqa: FBT001  a column
    __import__(module)

    assert product_guard._makes_a_value(module, name) is let  # noqa: SLF001  the rule itself
