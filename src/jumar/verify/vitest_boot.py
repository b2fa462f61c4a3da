"""The envoy of vitest. Run by path as `python -I -S -B vitest_boot.py`; standard library only."""

from __future__ import annotations

import runpy
from pathlib import Path

CONFIGURATIONS = r"vite(st)?\.config\.[cm]?[jt]s|vitest\.workspace\.([cm]?[jt]s|json)"

if __name__ == "__main__":
    tool = runpy.run_path(str(Path(__file__).with_name("javascript_batches.py")))["Tool"]
    serve = runpy.run_path(str(Path(__file__).with_name("javascript.py")))["serve"]
    serve(tool("vitest", "vitest_run.mjs", CONFIGURATIONS, "", 3))
