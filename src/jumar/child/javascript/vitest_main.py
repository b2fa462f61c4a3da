"""The bridge to vitest."""

from __future__ import annotations

from jumar.child.javascript.node_tool import serve
from jumar.child.javascript.project_batches import NodeRunner

CONFIGURATIONS = r"vite(st)?\.config\.[cm]?[jt]s|vitest\.workspace\.([cm]?[jt]s|json)"

VITEST = NodeRunner("vitest", "vitest_run.mjs", CONFIGURATIONS, "", 3)


def main() -> None:
    """Run the vitest tests that one order on standard input asks for."""
    serve(VITEST)
