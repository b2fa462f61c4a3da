"""The bridge to jest."""

from __future__ import annotations

from jumar.child.javascript.node_tool import serve
from jumar.child.javascript.project_batches import NodeRunner

CONFIGURATIONS = r"jest\.config\.([cm]?[jt]s|json)"


def main() -> None:
    """Run the jest tests that one order on standard input asks for."""
    serve(NodeRunner("jest", "jest_run.cjs", CONFIGURATIONS, "jest", 28))
