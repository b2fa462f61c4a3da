"""Files that a test command names, however they are spelt, are read-only; a codemod renames no name of a language."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumar.core.renames import renames_between
from jumar.options import Options, with_options
from jumar.task import load_task, targets

COMMANDS = (
    "sh scripts/check.sh",
    "(sh scripts/check.sh)",
    "cd scripts && PYTHONPATH=.. ./check.sh",
    'sh -c "sh scripts/check.sh"',
    "sh ./scripts//check.sh",
)


def editable(root: Path, command: str) -> tuple[str, ...]:
    """The files that an agent may edit where *command* judges."""
    return targets(with_options(load_task(root), Options(model="script:x", test_command=command)))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_script_that_the_test_command_names_is_read_only(tmp_path: Path, command: str) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "check.sh").write_text("exit 1\n")
    (tmp_path / "calc.py").write_text("x = 1\n")

    assert editable(tmp_path, command) == ("calc.py",)


def test_a_module_that_the_test_command_runs_is_read_only(tmp_path: Path) -> None:
    (tmp_path / "check_all.py").write_text("import calc\n")
    (tmp_path / "calc.py").write_text("x = 1\n")

    assert editable(tmp_path, "python3 -m check_all") == ("calc.py",)


@pytest.mark.parametrize(("old", "new"), [("all", "any"), ("total", "all"), ("expect", "expected")])
def test_a_codemod_renames_no_name_of_a_language_or_of_its_tests(old: str, new: str) -> None:
    assert "is a name of the language" in str(renames_between(f"assert {old}(x)", f"assert {new}(x)"))
