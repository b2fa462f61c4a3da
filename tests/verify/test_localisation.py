"""Localisation works with nothing but pytest in the project's interpreter, in every tier, and says when it fails."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import anyio
import pytest

from jumar.child.pytest import line_tracer
from jumar.child.pytest.line_tracer import Traced, build_recorder
from jumar.core.state.events import Localisation
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Ended
from jumar.ports import Record
from jumar.runners.pytest import PytestRunner
from jumar.verify.localisation.coverage_spectrum import GREEN_SAMPLE, NEAR_SAMPLE, build_traced_invocation, find_problem
from support.judging.real_verifier import Court
from support.judging.samples import sampled
from support.processes.other_users import sandbox

ONLY = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments")
"""Pytest, and what it imports."""

SOURCE = "def double(n):\n    if n < 0:\n        return 0\n    return n + 2\n\n\ndef unused():\n    return 1\n"
TESTS = "import app\n\n\ndef test_two():\n    assert app.double(3) == 6\n\n\n"
TESTS += "def test_less():\n    assert app.double(-1) == 0\n"
RED, GREEN = ["test_app.py::test_two"], ["test_app.py::test_less"]

PROGRAM = """\
import importlib.util, json, sys, threading
spec = importlib.util.spec_from_file_location("line_tracer", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
one = module.build_recorder({sys.argv[2]: "app.py"})
sys.path.insert(0, sys.argv[3])
one.start()
import app
imported = one.stop()
seen = []
for n in (3, -1):
    one.start()
    for _ in range(3):
        app.double(n)
    seen.append(one.stop())
one.start()
thread = threading.Thread(target=app.unused)
thread.start()
thread.join()
print(json.dumps([type(one).__name__, imported, *seen, one.stop()]))
"""


def interpreters() -> list[str]:
    """This one, and newer ones that are there and start."""
    found = [sys.executable]
    for name in ("python3.12", "python3.13", "python3.14"):
        if path := shutil.which(name):
            done = subprocess.run([path, "-c", ""], capture_output=True, check=False)
            found += [path] if done.returncode == 0 else []
    return found


@pytest.mark.slow
def test_lines_are_recorded_anew_in_each_recording_and_in_threads(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(SOURCE)
    for python in interpreters():
        argv = [python, "-B", "-c", PROGRAM, line_tracer.__file__, str(tmp_path / "app.py"), str(tmp_path)]
        said = json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)

        assert said[0] == ("Traced" if python == sys.executable and sys.version_info < (3, 12) else "Monitored")
        assert said[1:] == [{"app.py": [1, 7]}, {"app.py": [2, 4]}, {"app.py": [2, 3]}, {"app.py": [8]}]


def test_lines_of_other_files_are_not_recorded(tmp_path: Path) -> None:
    one = build_recorder({str(tmp_path / "app.py"): "app.py"})
    before = sys.gettrace()
    one.start()
    json.dumps({})
    found = one.stop()
    sys.settrace(before)

    assert found == {}
    assert Traced(lambda _: "").stop() == {}
    sys.settrace(before)


def bare(folder: Path) -> Path:
    """The interpreter of a virtual environment that has only pytest."""
    venv.create(folder, with_pip=False, symlinks=True)
    packages = next((folder / "lib").glob("python*/site-packages"))
    for name in ONLY:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        shutil.copytree(Path(spec.origin).parent, packages / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(Path(pytest.__file__).parent.parent / "py.py", packages)
    return folder / "bin" / "python"


@pytest.fixture(name="python", scope="module")
def _python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bare(tmp_path_factory.mktemp("bare") / "venv")


@pytest.mark.parametrize("tier", sampled(["S3", "S2", "S1", "S0"], "S3", "S0"))
def test_a_venv_with_only_pytest_is_localised_in_every_tier(tmp_path: Path, python: Path, tier: str) -> None:
    court = Court(tmp_path, Suite(timeout_seconds=60.0, python=str(python)))
    court.verifier.sources = lambda path: path == "app.py"
    court.verifier.sandbox = sandbox(tier)
    tree = court.tree({"app.py": SOURCE, "test_app.py": TESTS})

    async def localise() -> Localisation:
        return await court.verifier.localise(tree, RED, GREEN)

    found = anyio.run(localise)

    assert found.problem == ""
    assert found.suspects[0] == ("app.py", 4, 1.0)


@pytest.mark.proof
def test_a_localisation_that_is_cut_off_says_so_and_keeps_what_it_saw(tmp_path: Path) -> None:
    court = Court(tmp_path)
    court.verifier.sources = lambda path: path == "app.py"
    slow = TESTS.replace("def test_less():", "def test_less():\n    import time; time.sleep(60)")
    tree = court.tree({"app.py": SOURCE, "test_app.py": slow})
    court.collect(tree)

    async def localise() -> Localisation:
        return await court.verifier.localise(tree, RED, GREEN, seconds=4.0)

    found = anyio.run(localise)
    assert found.problem.startswith("the run under trace ended after 1 tests: killed after 4 s")
    assert {line for _, line, score in found.suspects if score == 1.0} == {2, 4}


WHOLE: list[Record] = [
    ["hello", {}],
    ["lines", "", "app.py", [1]],
    ["result", "t", "failed", 1, "", "", ""],
    ["end", 1],
]


@pytest.mark.parametrize(
    ("records", "ended", "detail", "said"),
    [
        (WHOLE, Ended.NORMAL, "", ""),
        ([["unusable", "python has no pytest"]], Ended.UNSTARTED, "", "python has no pytest"),
        (
            [["hello", {}], ["end", 0]],
            Ended.NORMAL,
            "",
            "no line of the editable files ran in the process of the tests",
        ),
        (WHOLE[:3], Ended.TIMEOUT, "killed after 9 s", "the run under trace ended after 1 tests: killed after 9 s"),
    ],
)
def test_the_reason_of_a_failed_localisation_is_named(
    records: list[Record], ended: Ended, detail: str, said: str
) -> None:
    assert find_problem(records, ended, detail) == said


def test_of_many_green_tests_those_beside_the_red_ones_are_traced_first(tmp_path: Path) -> None:
    near = [f"test_a.py::test_{n}" for n in range(300)]
    far = [f"test_{m}.py::test_{n}" for m in "bcdef" for n in range(100)]
    red = ["test_a.py::test_red"]

    invocation = build_traced_invocation(
        PytestRunner().verification, Suite(), tmp_path, (red, [*far, *near]), ["app.py"]
    )
    ids = invocation.config["ids"]
    few = build_traced_invocation(PytestRunner().verification, Suite(), tmp_path, (red, far[:9]), ["app.py"]).config[
        "ids"
    ]

    assert isinstance(ids, list)
    assert ids[0] == red[0]
    assert len(ids) <= 1 + GREEN_SAMPLE
    assert 0 < sum(i in near for i in ids) <= NEAR_SAMPLE
    assert max(ids.index(i) for i in ids if i in near) < min(ids.index(i) for i in ids if i in far)
    assert few == [*red, *far[:9]]
