"""Names of the programs that jumar starts for each verdict: to import one takes jumar longer than to start it.

`start.py` runs them by these names. Standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

PYTEST = "jumar.child.pytest.pytest_main"
PLAIN = "jumar.child.plain.plain_main"
"""Starts `python -m pytest`."""
TESTS = "jumar.child.two_process.test_process.plugin"
"""The tests' process of two."""
PRODUCT = "jumar.child.two_process.product_process.main"
"""The process of the code under test, of two."""
PROBE = "jumar.child.sandbox.probe_main"
DECOY = "jumar.child.sandbox.decoy_main"
ENTER = "jumar.child.sandbox.enter_main"
WARNINGS = "jumar.child.analysis.warnings_main"
MUTANTS = "jumar.child.analysis.mutants_main"
ZYGOTE = "jumar.child.warm.zygote_main"
