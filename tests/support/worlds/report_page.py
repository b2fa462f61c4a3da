"""Pages with many runs, and what a real browser says of them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from jumar.core.state.budget import Budget
from jumar.core.state.test_policy import TestPolicy
from support.worlds.rollout_world import work, write_passing
from support.worlds.run_world import TOTAL, Terms

ROOT = Path(__file__).parents[3]
TOOLS = ROOT / ".venv" / "tools" / "browser"
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), ""
)


def look_at(page: Path) -> dict[str, Any]:
    """Return what Chromium saw of *page*, opened from its file."""
    done = subprocess.run(
        ["node", str(ROOT / "tests" / "report" / "check_page.mjs"), str(page), CHROMIUM],
        cwd=TOOLS, check=True, capture_output=True, text=True, timeout=180,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def make_runs(folder: Path, runs: int, tasks: int) -> None:
    """Make *runs* runs of *tasks* tasks; each has a curve, failing tests and a change of its own."""
    usual = Terms(policy=TestPolicy.ON_WRITE, budget=Budget(attempts=None))
    for number in range(runs):
        last = TOTAL if number % 3 == 0 else 9 + number % 7
        replies = tuple(write_passing(passing, str(number)) for passing in (8, 3, 9, 1, last))
        place = work(folder / f"r{number:04d}", replies, replace(usual, task=f"task-{number % tasks:03d}"))
        lines = "".join(f"{'+-'[n % 5 == 0]}    value_{n} = compute({number}, {n})\n" for n in range(60))
        (place / "best.patch").write_text(f"diff --git a/app.py b/app.py\n@@ -1,60 +1,60 @@\n{lines}")
