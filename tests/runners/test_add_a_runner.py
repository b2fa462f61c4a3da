"""The page on adding a runner, done: its example becomes a package of its own, which is held to the contract."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "add-a-runner.md"
BLOCK = re.compile(r"^```(?:python|toml)\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CHECK = """
import os, pathlib, sys, anyio, jumar.testing
from jumar import plugins

assert "shell" in plugins.list_names("runners")
runner = plugins.load("runners", "shell")
anyio.run(lambda: jumar.testing.check_runner(runner, pathlib.Path(sys.argv[1]), environ=os.environ))
"""


@pytest.mark.proof
def test_the_example_keeps_the_contract_and_judges_a_task(tmp_path: Path) -> None:
    packages, work = tmp_path / "packages", tmp_path / "work"
    blocks = dict(BLOCK.findall(PAGE.read_text("utf-8")))
    assert set(blocks) == {"shell_runner/adapter.py", "shell_runner/program.py", "pyproject.toml"}
    for path, text in blocks.items():
        (packages / path).parent.mkdir(parents=True, exist_ok=True)
        (packages / path).write_text(text, "utf-8")
    # What `pip install` makes of the table of entry points, without asking a registry for a build tool.
    information = packages / "jumar_shell_runner-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: jumar-shell-runner\nVersion: 1.0\n")
    (entry,) = re.findall(r'^shell = "(.+)"$', blocks["pyproject.toml"], re.MULTILINE)
    (information / "entry_points.txt").write_text(f"[jumar.runners]\nshell = {entry}\n")
    work.mkdir()
    environ = {**os.environ, "PYTHONPATH": str(packages)}

    subprocess.run([sys.executable, "-c", CHECK, str(work)], check=True, env=environ, timeout=120)

    task = tmp_path / "task"
    task.mkdir()
    (task / "task.toml").write_text('[task]\nname = "calc"\n[tests]\nrunner = "shell"\n')
    (task / "calc.sh").write_text("add() { echo $(($1 + $2)); }\n")
    (task / "calc_test.sh").write_text('. ./calc.sh\ntest_add() {\n  [ "$(add 2 3)" = 5 ]\n}\n')
    argv = [str(Path(sys.executable).with_name("jumar")), "score", str(task), str(task), "--confirm", "1", "-q"]
    done = subprocess.run(argv, check=False, env=environ, timeout=120, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
