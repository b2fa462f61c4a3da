"""The page in a real browser: read from a file, by keyboard, without faults of accessibility, with a thousand runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumar.report.build_report import build_report
from jumar.report.render import render_page
from support.worlds.report_page import CHROMIUM, TOOLS, look_at, make_runs

RUNS, TASKS = 1000, 125

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium on PATH (Debian: apt-get install chromium)"),
    pytest.mark.skipif(not (TOOLS / ".ready").is_file(), reason="`make prove` installs what drives the browser"),
]


def test_a_thousand_runs_open_without_a_fault(tmp_path: Path) -> None:
    make_runs(tmp_path / "runs", RUNS, TASKS)
    page = tmp_path / "page.html"
    page.write_text(render_page(build_report([tmp_path / "runs"])))

    found = look_at(page)

    assert found["runs"] == RUNS
    assert found["seen"] == {"errors": [], "requests": []}
    assert found["axe"] == {"light": [], "dark": []}
    assert (found["first_focus"], found["opened_by_key"]) == ("Skip to the runs", True)
    assert found["green_shown"] == RUNS // 3 + 1
    assert found["said"] == f"{RUNS // 3 + 1} runs"
    assert found["without_script"] == f"{TASKS} of {TASKS} tasks solved"
