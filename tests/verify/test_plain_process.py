"""Beside held-out tests the plain run is `python -m pytest` itself: code finds there what it finds anywhere."""

from __future__ import annotations

import json
import marshal
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jumar.child.plain.plain_main import read_notes
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Verdict
from jumar.ports import Sandbox
from jumar.sandbox.unconfined import Unconfined
from jumar.verify.execution import HeldOut
from support.judging.real_verifier import Court
from support.judging.samples import sampled
from support.processes.interpreters import PLAIN_PYTHON
from support.processes.sandboxes import ENVIRON, s3

pytestmark = pytest.mark.slow

HIDDEN = {"test_z.py": "import code_\n\n\ndef test_z():\n    assert code_.one()\n"}


def build_court(folder: Path, base: Mapping[str, str], env: dict[str, str], sandbox: Sandbox | None = None) -> Court:
    """Return a court for the task *base*, with a held-out test."""
    court = Court(folder, Suite(timeout_seconds=60, test_timeout_seconds=2, confirm=2, python=PLAIN_PYTHON, env=env))
    court.verifier.sandbox, court.verifier.environ = sandbox or Unconfined(), ENVIRON
    court.collect(court.tree(base))
    court.verifier.held_out = HeldOut(court.tree(HIDDEN), ("test_z.py::test_z",))
    return court


def judge(court: Court, files: Mapping[str, str]) -> Verdict:
    return court.judge(court.tree(files), {}, control=court.verifier.base).verdict


FOUND = """
import gc, json, os, signal, sys, threading, traceback


def find():
    main = sys.modules["__main__"]
    facts = {
        "modules": sorted(sys.modules),
        "variables": sorted(os.environ),
        "current test": os.environ.get("PYTEST_CURRENT_TEST"),
        "path": [place.replace(os.getcwd(), ".") for place in sys.path],
        "meta path": [type(one).__name__ for one in sys.meta_path],
        "importers": sorted(place.replace(os.getcwd(), ".") for place in sys.path_importer_cache),
        "command": [sys.argv[0], getattr(main.__spec__, "name", None), *getattr(sys, "orig_argv", ())[:3]],
        "flags": list(sys.flags),
        "frames": sum(1 for _ in traceback.walk_stack(None)),
        "frozen": gc.get_freeze_count(),
        "descriptors": sorted(os.listdir("/proc/self/fd")),
        "threads": [one.name for one in threading.enumerate()],
        "signals": [str(signal.getsignal(number)) for number in (13, 14, 15)],
        "bytecode": sys.dont_write_bytecode,
    }
    with open(f"{os.environ['FOUND']}/{os.path.basename(sys.argv[0])}", "a") as file:
        print(json.dumps(facts), file=file)


def one():
    return 1
"""


def test_nothing_is_there_that_a_persons_process_does_not_have(tmp_path: Path) -> None:
    """Modules, variables, the path, flags, descriptors, signals. Below S3, which shares folders, are two variables."""
    folders = [tmp_path / name for name in ("ours", "persons", "project")]
    for folder in folders:
        folder.mkdir()
    test = "import code_\n\ncode_.find()\n\n\ndef test_one():\n    assert code_.find() is None and code_.one()\n"
    tests = {"test_code.py": test}
    court = build_court(tmp_path, {"code_.py": FOUND.replace("1\n", "0\n"), **tests}, {"FOUND": str(folders[0])})

    assert judge(court, {"code_.py": FOUND, **tests}).green

    for name, text in {"code_.py": FOUND, **tests, **HIDDEN}.items():
        (folders[2] / name).write_text(text)
    env = {"FOUND": str(folders[1]), "HOME": "", "LANG": "C.UTF-8", **ENVIRON}
    subprocess.run([PLAIN_PYTHON, "-m", "pytest"], cwd=folders[2], env=env, check=True, capture_output=True)
    pairs = zip(*((folder / "__main__.py").read_text("utf-8").splitlines() for folder in folders[:2]), strict=True)
    for ours, persons in (map(json.loads, pair) for pair in pairs):
        assert {*ours.pop("variables")} == {*persons.pop("variables"), "TMPDIR", "JUMAR_ROOM"}
        assert ours == persons


@pytest.mark.parametrize(
    ("code", "more"),
    [
        ("import os\n\n\ndef one():\n    return 'TMPDIR' in os.environ\n", {}),
        pytest.param("def one():\n    return 1\n", {"random.py": ""}, marks=pytest.mark.proof),
    ],
)
def test_what_only_jumars_runs_have_is_not_there(tmp_path: Path, code: str, more: Mapping[str, str]) -> None:
    """A variable of ours, and a root that is behind Python's modules: `python -m pytest` does not even start then."""
    tests = {"conftest.py": "", "test_code.py": HIDDEN["test_z.py"]}
    court = build_court(tmp_path, {"code_.py": "def one():\n    return 0\n", **tests}, {}, s3())

    assert not judge(court, {"code_.py": code, **tests, **more}).green


FINISH = "pytest_sessionfinish(session)"


@pytest.mark.parametrize("hook", sampled([FINISH, "pytest_terminal_summary(exitstatus)"], FINISH))
def test_hooks_may_look_at_how_the_session_comes_out(tmp_path: Path, hook: str) -> None:
    """A falsified test fails, and so do they."""
    status = hook.partition("(")[2].removesuffix(")").replace("session", "session.exitstatus")
    tests = {"conftest.py": f"def {hook}:\n    assert {status} == 0\n", "test_code.py": HIDDEN["test_z.py"]}
    court = build_court(tmp_path, {"code_.py": "def one():\n    return 0\n", **tests}, {})

    done = judge(court, {"code_.py": "def one():\n    return 1\n", **tests})

    assert done.green, done.void


def test_a_root_with_a_module_like_one_of_pythons_is_not_first_on_the_path(tmp_path: Path) -> None:
    """A person calls `pytest` there: `python -m pytest` would not start."""
    tests = {"random.py": "", "tests/test_code.py": HIDDEN["test_z.py"]}
    court = build_court(tmp_path, {"code_.py": "def one():\n    return 0\n", **tests}, {})

    assert judge(court, {"code_.py": "def one():\n    return 1\n", **tests}).green


def test_a_new_module_like_one_of_pythons_is_looked_at_without_held_out_tests(tmp_path: Path) -> None:
    """Other runs have the root behind Python's modules, or find those that are loaded already."""
    test = "import queue\n\nimport code_\n\n\ndef test_one():\n    assert code_.one() and queue.Queue()\n"
    tests = {"conftest.py": "", "tests/test_code.py": test}
    tests["pytest.ini"] = "[pytest]\naddopts = --import-mode=importlib\n"
    court = build_court(tmp_path, {"code_.py": "def one():\n    return 0\n", **tests}, {})
    court.verifier.held_out = HeldOut()

    assert not judge(court, {"code_.py": "def one():\n    return 1\n", **tests, "queue.py": ""}).green


RECORDS: list[list[Any]] = [["result", "test_a.py::test_a", "passed", 0, "said", "x" * 9_000], ["usual", [0, 1]]]


@pytest.mark.parametrize("piece", [1, 7, 4096])
def test_a_record_may_come_in_pieces(tmp_path: Path, piece: int) -> None:
    data = b"".join(map(marshal.dumps, RECORDS))

    with read_notes(tmp_path / "notes") as records, (tmp_path / "notes").open("wb", 0) as pipe:
        for start in range(0, len(data), piece):
            pipe.write(data[start : start + piece])

    assert records == RECORDS


def test_nothing_is_waited_for_where_a_record_was_cut_short(tmp_path: Path) -> None:
    with read_notes(tmp_path / "notes") as records, (tmp_path / "notes").open("wb", 0) as pipe:
        pipe.write(marshal.dumps(RECORDS[1]) + marshal.dumps(RECORDS[0])[:9])

    assert records == RECORDS[1:]


def test_what_is_no_record_ends_them_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    with read_notes(tmp_path / "notes") as records, (tmp_path / "notes").open("wb", 0) as pipe:
        pipe.write(b"?")
        os.set_blocking(pipe.fileno(), False)
        while pipe.write(b"." * 4096):
            pass

    assert records == []
