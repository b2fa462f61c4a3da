"""A stored run is judged again without its agent, and what changed is said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from jumar.cli.main import call
from jumar.runs.rescoring import describe_score
from jumar.runs.scoring import Scored
from support.processes.interpreters import PLAIN_PYTHON

HARD_CODED = "def gcd(a, b):\n    return {(4, 6): 2, (3, 0): 3}.get((a, b), 0)\n"
TESTS = (
    "from gcd import gcd\n\n\ndef test_a():\n    assert gcd(4, 6) == 2\n\n\ndef test_b():\n    assert gcd(3, 0) == 3\n"
)
HIDDEN = "from gcd import gcd\n\n\ndef test_c():\n    assert gcd(10, 4) == 2\n"
PLAIN = ("--sandbox", "S0", "--confirm", "0", "--python", PLAIN_PYTHON)


def told(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = call([*map(str, words), "--json"])
    return code, json.loads(capsys.readouterr().out.splitlines()[-1])


SCORED = Scored(
    ok=False, unproved="", void="", grade="D", grades={}, asked=None, sandbox="S0", passed=2, failed=1,
    errors=0, total=3, red=("t",), flaky=(), warnings=(), probed=None, tree="",
)  # fmt: skip


@pytest.mark.parametrize(
    ("scored", "said"),
    [
        (SCORED, "red 2/3"),
        (replace(SCORED, ok=True, passed=3), "green 3/3"),
        (replace(SCORED, passed=3, unproved="grade C, and --min-grade asks for B"), "unproved 3/3"),
        (replace(SCORED, held_out=("t", "u")), "red 1/1"),
        (replace(SCORED, ok=True, passed=3, red=(), held_out=("t",)), "green 2/2"),
        (replace(SCORED, void="held_out: t failed", passed=None), "red (held_out)"),
        (replace(SCORED, void="tamper: a line has a wrong MAC", passed=None), "red (tamper)"),
        (replace(SCORED, void="harness: no disk", passed=None), ""),
    ],
)
def test_a_void_that_the_tree_caused_is_red_and_one_of_the_machine_says_nothing(scored: Scored, said: str) -> None:
    assert describe_score(scored) == said


@pytest.mark.slow
def test_held_out_tests_turn_a_hard_coded_green_red(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, files in {
        "task": {"gcd.py": "gcd = None\n", "test_gcd.py": TESTS},
        "hidden": {"test_c.py": HIDDEN},
    }.items():
        for path, text in files.items():
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / path).write_text(text)
    reply = {"tool_calls": [{"name": "write_file", "arguments": {"path": "gcd.py", "text": HARD_CODED}}]}
    (tmp_path / "s.jsonl").write_text(json.dumps(reply) + "\n")
    runs = tmp_path / "runs"
    _, run = told(
        capsys,
        "run",
        tmp_path / "task",
        "--model",
        f"script:{tmp_path / 's.jsonl'}",
        "--gate",
        "off",
        "--runs",
        runs,
        *PLAIN,
    )
    assert run["stop"] == "green"
    journal = Path(run["events"]).read_bytes()

    code, same = told(capsys, "rescore", runs, *PLAIN)
    assert (code, same["changed"], same["void"]) == (0, 0, 0)
    assert (same["runs"][0]["before"], same["runs"][0]["after"]) == ("green 2/2", "green 2/2")

    code, other = told(capsys, "rescore", runs, "--hidden", tmp_path / "hidden", *PLAIN)
    assert (code, other["changed"], other["runs"][0]["after"]) == (0, 1, "red 2/2, 0 of 1 held out")
    assert Path(run["events"]).read_bytes() == journal
    assert (Path(run["events"]).parent / "score.json").is_file()

    assert call(["rescore", str(runs), "--task", str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err
    code, judged = told(capsys, "rescore", runs, "--task", tmp_path / "task", *PLAIN)
    assert (code, judged["runs"][0]["after"]) == (0, "green 2/2")
    assert call(["rescore", str(runs), "--hidden", str(tmp_path / "nowhere")]) == 2

    good = Path(run["events"]).parent
    bad = Path(shutil.copytree(good, good.with_name("bad")))
    (bad / "events.jsonl").write_bytes(journal.replace(b'"ts":', b'"at":', 2))
    code, both = told(capsys, "rescore", runs, *PLAIN)
    assert (code, both["void"], [each["after"] for each in both["runs"] if each["after"]]) == (5, 1, ["green 2/2"])
    (why,) = [each["why"] for each in both["runs"] if each["why"]]
    assert f"run `jumar log verify {bad}`" in why


@pytest.mark.slow
def test_a_run_with_held_out_tests_that_is_judged_as_before_has_not_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reply = {"tool_calls": [{"name": "write_file", "arguments": {"path": "gcd.py", "text": "from math import gcd\n"}}]}
    (tmp_path / "s.jsonl").write_text(json.dumps(reply) + "\n")
    (tmp_path / "task" / "hidden").mkdir(parents=True)
    for path, text in {
        "gcd.py": "gcd = None\n",
        "test_gcd.py": TESTS,
        "hidden/test_c.py": HIDDEN,
        "task.toml": "[tests]\nhidden = 'hidden'\n",
    }.items():
        (tmp_path / "task" / path).write_text(text)
    runs = tmp_path / "runs"
    words = ("--sandbox", "S0", "--confirm", "1", "--python", PLAIN_PYTHON, "--min-grade", "D")
    script = f"script:{tmp_path / 's.jsonl'}"
    _, run = told(capsys, "run", tmp_path / "task", "--model", script, "--gate", "off", "--runs", runs, *words)
    assert run["stop"] == "green"

    for _ in range(2):
        _, again = told(capsys, "rescore", runs, *words)
        assert (again["changed"], again["runs"][0]["after"]) == (0, "green 2/2, 1 of 1 held out")
