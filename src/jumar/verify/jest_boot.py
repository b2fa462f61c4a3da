"""The envoy of jest. Run by path as `python -I -S -B jest_boot.py`; standard library only."""

from __future__ import annotations

import runpy
from pathlib import Path

CONFIGURATIONS = r"jest\.config\.([cm]?[jt]s|json)"

if __name__ == "__main__":
    tool = runpy.run_path(str(Path(__file__).with_name("javascript_batches.py")))["Tool"]
    serve = runpy.run_path(str(Path(__file__).with_name("javascript.py")))["serve"]
    serve(tool("jest", "jest_run.cjs", CONFIGURATIONS, "jest", 28))
