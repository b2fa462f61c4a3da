"""A pytest that does not start is told in one sentence: what it lacks, in which interpreter, and how to mend it."""

from __future__ import annotations

import pytest

from jumar.child.pytest_refusals import explain_refusal

USAGE = "usage: pytest.main() [options] [file_or_dir]\npytest.main(): error: unrecognized arguments: {}\n  {}rootdir: ."

REFUSALS = [
    (
        USAGE.format("--cov=shop --cov-fail-under=90", "inifile: pyproject.toml\n  "),
        """pytest in /v/python does not know --cov=shop --cov-fail-under=90, so the plug-in with that option is missing
        there: `/v/python -m pip install pytest-cov`, or pass --python, or take the option out of addopts in
        pyproject.toml""",
    ),
    (
        USAGE.format("-n 4 --timeout=5", ""),
        """pytest in /v/python does not know -n 4 --timeout=5, so the plug-in with that option is missing there:
        `/v/python -m pip install pytest-timeout pytest-xdist`, or pass --python, or take the option out of addopts""",
    ),
    (
        USAGE.format("--ours", "inifile: None\n  "),
        """pytest in /v/python does not know --ours, so the plug-in with that option is missing there: install it there
        (`/v/python -m pip install ...`), or pass --python, or take the option out of addopts""",
    ),
    (
        "pyproject.toml: 'minversion' requires pytest-99.0, actual pytest-9.2.0'",
        """pytest in /v/python is 9.2.0, and minversion in pyproject.toml asks for 99.0:
        `/v/python -m pip install 'pytest>=99.0'`, or pass --python""",
    ),
    (
        "Missing required plugins: pytest-nosuch, other>=2",
        """pytest in /v/python lacks what required_plugins asks for:
        `/v/python -m pip install pytest-nosuch 'other>=2'`, or pass --python""",
    ),
    ("file or directory not found: x", "file or directory not found: x"),
]


@pytest.mark.parametrize(("said", "told"), REFUSALS)
def test_the_sentence_names_what_is_missing_and_how_to_get_it(said: str, told: str) -> None:
    assert explain_refusal(said, "/v/python") == " ".join(told.split())
