"""Small Harbor tasks, written for our tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

TASK_TOML = """\
schema_version = "1.4"

[task]
name = "example/adder"
description = "An adder that subtracts."

[metadata]
difficulty = "easy"

[verifier]
timeout_sec = 60.0

[agent]
timeout_sec = 300.0

[environment]
build_timeout_sec = 600.0
cpus = 1
memory_mb = 2048
"""

TEST_SH = """\
#!/bin/bash
cd /app
python -m pytest /tests/test_adder.py -rA
if [ $? -eq 0 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi
"""

ADDER: Mapping[str, str] = {
    "task.toml": TASK_TOML,
    "instruction.md": "`add` in adder.py must add.\n",
    "environment/Dockerfile": "FROM python:3.12-slim\nWORKDIR /app\nCOPY adder.py .\nRUN pip install pytest==8.4.1\n",
    "environment/adder.py": "def add(a, b):\n    return a - b\n",
    "tests/test.sh": TEST_SH,
    "tests/test_adder.py": "from adder import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
    "solution/solve.sh": "#!/bin/bash\nsed -i 's/a - b/a + b/' /app/adder.py\n",
}


def write_task(folder: Path, **changed: str | None) -> Path:
    """A Harbor task in *folder*: that of the adder, but for the *changed* files (`__` for a slash, None: not there)."""
    files = {**ADDER, **{name.replace("__", "/"): text for name, text in changed.items()}}
    for name, text in files.items():
        if text is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    return folder
