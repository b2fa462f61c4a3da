"""Options of our own suite. Nothing here changes how a test is judged."""

from __future__ import annotations

import gc
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from support.processes.interpreters import PLAIN_PYTHON

FIGURES = Path(__file__).parent.parent / "docs" / "proofs.json"

STATE = tempfile.TemporaryDirectory(prefix="jumar-tests-state-")

PLAIN = {"CONFIRM": "0", "SANDBOX": "S0", "PYTHON": PLAIN_PYTHON}
"""What most tests are not about: how a green is accepted, what confines it, what is installed. Others choose."""


settings.register_profile("sample", max_examples=40)
settings.register_profile("whole", max_examples=300)  # `make prove`
settings.load_profile("sample")

gc.disable()  # until all is collected: no cycle is left by it, and to look for one takes as long as to collect


def pytest_configure() -> None:
    for command in ("RUN", "SCORE", "MCP", "HOOK", "BATCH", "CHECK", "EVOLVE"):
        for option, value in PLAIN.items():
            os.environ.setdefault(f"JUMAR_{command}_{option}", value)
    for option in ("SANDBOX", "PYTHON"):  # it runs each tree once at least
        os.environ.setdefault(f"JUMAR_CORPUS_REPLAY_{option}", PLAIN[option])
    os.environ["XDG_STATE_HOME"] = STATE.name  # the key of whoever runs the tests is theirs


def pytest_collection_finish() -> None:
    gc.freeze()  # tests, fixtures and modules stay until the end
    gc.enable()


def pytest_unconfigure() -> None:
    STATE.cleanup()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--data", type=Path, help="a folder of real tasks with an index.json; without it their tests skip")


@pytest.fixture(scope="session")
def data(request: pytest.FixtureRequest) -> Path:
    """The folder of real tasks."""
    folder: Path | None = request.config.getoption("--data")
    if folder is None:
        pytest.skip("no real tasks: give their folder with --data DIR")
    return folder


@pytest.fixture
def figure() -> Callable[[str, str], None]:
    """Writes what a proof measured to where README and docs quote it from: a name and a sentence."""

    def write(name: str, said: str) -> None:
        known = json.loads(FIGURES.read_text("utf-8")) if FIGURES.is_file() else {}
        FIGURES.write_text(json.dumps({**known, name: said}, indent=2, sort_keys=True) + "\n", "utf-8")

    return write
