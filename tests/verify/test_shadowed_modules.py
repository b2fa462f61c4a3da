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


ASKING = "from app import f\n\n\ndef test_f():\n    assert f() == 1\n"
COLOURS = "import colorsys\n\n\ndef f():\n    return 1 if colorsys.ONE_THIRD else 2\n"


@pytest.mark.slow
@pytest.mark.parametrize("path", ["colorsys.py", "colorsys/__init__.py"])
def test_so_is_one_with_the_name_of_a_module_of_python(tmp_path: Path, path: str) -> None:
    tests = {"test_app.py": "", "tests/test_more.py": ASKING}
    done = judged(tmp_path, tests, {"app.py": COLOURS, path: "", "test/__init__.py": ""})

    assert done.verdict.void is not None
    assert done.verdict.void.cause is Cause.TAMPER
    assert f"{path} stands in the place of an installed module" in done.verdict.void.reason
    assert "test/" not in done.verdict.void.reason


@pytest.mark.slow
def test_where_pytest_puts_the_tree_first_such_a_module_is_the_one_that_is_tested(tmp_path: Path) -> None:
    done = judged(tmp_path, {"test_app.py": ASKING}, {"app.py": COLOURS, "colorsys.py": "ONE_THIRD = 1\n"})

    assert done.verdict.green


@pytest.mark.slow
@pytest.mark.parametrize(("folder", "outcome"), [(".", "passed"), ("lib", "passed"), ("src", "failed")])
def test_a_folder_that_the_project_puts_first_comes_before_python(tmp_path: Path, folder: str, outcome: str) -> None:
    place = "lib/" if folder == "lib" else ""
    base = {"pytest.ini": f"[pytest]\npythonpath = {folder}\n", f"{place}colorsys.py": "ONE_THIRD = 0\n"}
    court = Court(tmp_path)
    tree = court.tree({**base, "app.py": COLOURS, "tests/test_app.py": ASKING.replace("== 1", "== 2")})
    court.collect(tree)

    assert list(court.outcomes(court.judge(tree, {})).values()) == [outcome]
