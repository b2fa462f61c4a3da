"""A module that a candidate brings in the place of an installed one is no evidence: tests may ask the installed one."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumar.core.state.verdict import Cause
from jumar.ports import Verification
from support.judging.real_verifier import Court

TESTS = "import pluggy\n\nfrom app import f\n\n\ndef test_f():\n    assert f() == pluggy.__name__\n"
APP = "def f():\n    return 'pluggy'\n"


def judged(tmp_path: Path, base: dict[str, str], more: dict[str, str]) -> Verification:
    court = Court(tmp_path)
    first = {"app.py": "def f():\n    return 0\n", "test_app.py": TESTS, **base}
    court.collect(court.tree(first))
    return court.judge(court.tree({**first, "app.py": APP, **more}))


@pytest.mark.slow
@pytest.mark.parametrize("path", ["pluggy.py", "pluggy/__init__.py"])
def test_a_new_module_with_the_name_of_an_installed_one_is_void(tmp_path: Path, path: str) -> None:
    done = judged(tmp_path, {}, {path: ""})

    assert done.verdict.void is not None
    assert done.verdict.void.cause is Cause.TAMPER
    assert f"{path} stands in the place of an installed module" in done.verdict.void.reason


@pytest.mark.slow
def test_what_the_task_has_itself_may_be_installed_as_well(tmp_path: Path) -> None:
    done = judged(tmp_path, {"iniconfig.py": ""}, {"iniconfig.py": "X = 1\n", "fresh.py": ""})

    assert done.verdict.green
