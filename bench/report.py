"""Measures the page of a report on many runs: `make bench` prints how long it takes to write and to open.

A page of a tenth of the runs is measured beside it, so that the growth is seen too: ten times the runs should take at
most ten times as long.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from jumar.report.build_report import build_report
from jumar.report.render import render_page
from support.worlds.report_page import CHROMIUM, TOOLS, look_at, make_runs

RUNS = 1000
ROUNDS = 3
LIMIT_SECONDS = 2.0
"""Time in which a page of RUNS runs shall be open."""


def main() -> None:
    """Print a line for each size."""
    if not CHROMIUM or not (TOOLS / ".ready").is_file():
        raise SystemExit("no Chromium on PATH, or `make prove` has not installed what drives it")
    with tempfile.TemporaryDirectory() as name:
        for count in (RUNS // 10, RUNS):
            folder = Path(name) / str(count)
            make_runs(folder, count, count // 8)
            begun = time.perf_counter()
            text = render_page(build_report([folder]))
            written = time.perf_counter() - begun
            page = Path(name) / f"{count}.html"
            page.write_text(text)
            opened = median(look_at(page)["ms"] for _ in range(ROUNDS)) / 1000
            said = "" if count < RUNS else f" ({'below' if opened < LIMIT_SECONDS else 'ABOVE'} {LIMIT_SECONDS:g} s)"
            print(
                f"{count:>5} runs  written in {written:.2f} s  {len(text) / 1e6:.1f} MB  open in {opened:.2f} s{said}"
            )


if __name__ == "__main__":
    main()
