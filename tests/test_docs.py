"""What the documents show is what the code does: the kernel page is drawn from it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
DRAWN = ("cheats.md", "kernel.md", "repair-results.md")
"""Written by programs."""


@pytest.mark.slow
def test_the_kernel_page_is_current() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "draw_kernel.py")], check=False, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr


def test_the_loop_can_be_read_on_one_screen() -> None:
    lines = (ROOT / "src" / "jumar" / "kernel.py").read_text("utf-8").splitlines()

    assert len(lines) <= 90


def prose(page: Path) -> Iterator[str]:
    """The lines of a page that can be broken: no code, no table, no lone link."""
    code = False
    for line in page.read_text("utf-8").splitlines():
        code ^= line.lstrip().startswith("```")
        if not code and not line.startswith(("|", "#")) and " " in line.strip():
            yield line


def tables(page: Path) -> Iterator[str]:
    return (line for line in page.read_text("utf-8").splitlines() if line.startswith("|"))


@pytest.mark.parametrize("page", [p for p in PAGES if p.name not in DRAWN], ids=lambda page: page.name)
def test_pages_are_at_most_120_columns_wide(page: Path) -> None:
    assert not [line for line in prose(page) if len(line) > 120]


def test_the_readme_is_for_a_reader_in_a_hurry() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 150


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([\w./-]+)(?:#[^)]*)?\)", "\n".join((*prose(page), *tables(page))))

    assert not [link for link in links if not (page.parent / link).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_of_ours_that_a_page_names_are_there(page: Path) -> None:
    named = set(re.findall(r"(?<![\w/.])(?:src/jumar|tests|bench)/[\w/]+\.(?:py|cjs|mjs)", page.read_text("utf-8")))

    assert not [path for path in named if "NAME" not in path and not (ROOT / path).exists()]
