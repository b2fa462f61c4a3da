"""An isolated interpreter reads no PYTHON variables: those of a task become options of its command line."""

from __future__ import annotations

import pytest

from jumar.languages.python_options import list_python_options


@pytest.mark.parametrize(
    ("env", "options"),
    [
        ({}, ()),
        ({"PATH": "/bin", "PYTHONPATH": "lib", "PYTHONHASHSEED": "0"}, ()),
        ({"PYTHONWARNINGS": "error,ignore::DeprecationWarning"}, ("-Werror", "-Wignore::DeprecationWarning")),
        ({"PYTHONDEVMODE": "1", "PYTHONWARNDEFAULTENCODING": "1"}, ("-Xdev", "-Xwarn_default_encoding")),
        ({"PYTHONDEVMODE": "", "PYTHONWARNINGS": "", "PYTHONUTF8": ""}, ()),
        ({"PYTHONUTF8": "0"}, ("-Xutf8=0",)),
        ({"PYTHONUTF8": "yes"}, ()),
        ({"PYTHONINTMAXSTRDIGITS": "0"}, ("-Xint_max_str_digits=0",)),
        ({"PYTHONINTMAXSTRDIGITS": "640"}, ("-Xint_max_str_digits=640",)),
        ({"PYTHONINTMAXSTRDIGITS": "7"}, ()),
        ({"PYTHONOPTIMIZE": "0"}, ()),
        ({"PYTHONOPTIMIZE": "yes"}, ("-O",)),
        ({"PYTHONOPTIMIZE": "9"}, ("-O", "-O")),
    ],
)
def test_a_variable_is_the_option_that_means_the_same(env: dict[str, str], options: tuple[str, ...]) -> None:
    assert list_python_options(env) == options
