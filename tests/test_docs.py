"""What the documents show is what the code does: the kernel page is drawn from it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_the_kernel_page_is_current() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "draw_kernel.py")], check=False, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr


def test_the_loop_can_be_read_on_one_screen() -> None:
    lines = (ROOT / "src" / "jumar" / "kernel.py").read_text("utf-8").splitlines()

    assert len(lines) <= 90
