"""Files that a test command names, however they are spelt, are read-only; a codemod renames no name of a language."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jumar.cli.main import call
from jumar.core.gate.pure_renames import find_renames
from jumar.core.gate.write_rules import WriteRules
from jumar.core.state.settings import Settings, Suite
from jumar.runs.tree.shadowing import forbid_shadowing
from jumar.task.resolve import Options, apply_options
from jumar.task.task import list_targets, load_task

COMMANDS = (
    "sh scripts/check.sh",
    "(sh scripts/check.sh)",
    "cd scripts && PYTHONPATH=.. ./check.sh",
    'sh -c "sh scripts/check.sh"',
    "sh ./scripts//check.sh",
)


def editable(root: Path, command: str) -> tuple[str, ...]:
    """The files that an agent may edit where *command* judges."""
    return list_targets(apply_options(load_task(root), Options(model="script:x", test_command=command)))


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


def test_a_file_that_a_makefile_runs_is_open_only_to_a_person_who_names_it_by_its_path(tmp_path: Path) -> None:
    for path, text in {"Makefile": "check:\n\tpython3 app.py\n", "app.py": "", "b.py": ""}.items():
        (tmp_path / path).write_text(text)

    assert editable(tmp_path, "make check") == ("b.py",)
    (tmp_path / "task.toml").write_text('[files]\neditable = ["app.py", "*.py"]\n')
    assert editable(tmp_path, "make check") == ("app.py", "b.py")


def test_no_new_module_stands_before_those_that_judge() -> None:
    settings = Settings(instruction="", suite=Suite(runner="command", command="make"), judging=("ci/a.py",))
    guard = forbid_shadowing(
        WriteRules(editable=lambda _: True, protected=lambda _: False), settings, ("token.py", "ci/a.py")
    )

    closed = ("unittest.py", "pytest/__init__.py", "ci/subprocess.py", "sitecustomize.py", "json/x.py")
    opened = ("token.py", "app/json.py", "ci/app.py", "unittest.txt", "new.py", "src/types.py")
    assert [p for p in (*closed, *opened) if guard.editable(p)] == list(opened)


def test_what_steers_a_checker_is_read_only_where_a_command_judges(tmp_path: Path) -> None:
    for name in ("app.py", "ruff.toml", "mypy.ini", "dodo.py"):
        (tmp_path / name).write_text("")

    assert editable(tmp_path, "ruff check app.py") == ("app.py",)


@pytest.mark.slow
def test_emptying_the_script_that_the_makefile_runs_is_no_green(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, script = tmp_path / "r", "test -f fixed\n"
    (root / "scripts").mkdir(parents=True)
    (root / "Makefile").write_text("S = scripts\n.PHONY: check\ncheck:\n\t@sh $(S)/check.sh\n")
    (root / "scripts" / "check.sh").write_text(script)
    (root / "calc.py").write_text("x = 1\n")
    attack = {"name": "write_file", "arguments": {"path": "scripts/check.sh", "text": "exit 0\n"}}
    (tmp_path / "s").write_text(json.dumps({"tool_calls": [attack]}))
    how = (
        "--agent",
        "driver",
        "--model",
        f"script:{tmp_path / 's'}",
        "--turns",
        "1",
        "--gate",
        "off",
        "--sandbox",
        "S0",
    )
    runs = ("--runs", str(tmp_path / "runs"), "--confirm", "0", "--sandbox", "S0", "--json")

    assert call(("run", str(root), "--test-command", "make check", *how, *runs)) == 1
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (Path(result["events"]).parent / "workspace" / "scripts" / "check.sh").read_text() == script


@pytest.mark.parametrize(("old", "new"), [("all", "any"), ("total", "all"), ("expect", "expected")])
def test_a_codemod_renames_no_name_of_a_language_or_of_its_tests(old: str, new: str) -> None:
    assert "is a name of the language" in str(find_renames(f"assert {old}(x)", f"assert {new}(x)"))
