"""The tests' own process once its files are loaded: it writes nowhere else, reads no test and starts no process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jumar.runners.pytest import plugin
from support.judging.two_process_verifier import green, ids_of, outcomes, reported

PRODUCT = """
def path():
    return __file__ and "planted.py"

def command():
    return ["/bin/true"]

def twice(n):
    return 2 * n

def apply(function, n):
    return function(n)
"""

KEPT_FROM = """
import ctypes
import os
import sys
import threading
from pathlib import Path

import pytest
import product

HERE = Path(__file__).parent

def test_writes_beside_itself():
    (HERE / product.path()).write_text("x = 1")

def test_writes_into_the_working_directory():
    with open(product.path(), "w"):
        pass

def test_overwrites_data():
    (HERE / "cases.json").write_text("[]")

def test_removes_data():
    (HERE / "cases.json").unlink()

def test_makes_a_folder():
    (HERE / "made").mkdir()

def test_writes_home():
    Path.home().joinpath("kept").write_text("word for the next run")

def test_reads_itself():
    assert Path(__file__).read_text()

def test_reads_its_bytecode():
    next(HERE.joinpath("__pycache__").iterdir()).read_bytes()

def test_reads_the_other_test_file():
    assert HERE.joinpath("test_plain.py").read_text()

def test_reads_the_conftest_file():
    assert HERE.joinpath("conftest.py").read_text()

def test_reads_the_package():
    assert HERE.joinpath("inner", "__init__.py").read_text()

def test_forks():
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)

def test_spawns():
    os.posix_spawn("/bin/true", product.command(), {})

def test_forks_without_python():
    pid = ctypes.CDLL(None).fork()
    if not pid:
        os._exit(0)
    assert pid > 0

def test_runs_a_program_without_python():
    ctypes.CDLL(None).execv(b"/bin/true", None)
    raise OSError("still here")
"""

PLAIN = """
import json
import os
import socket
import tempfile
import threading
from pathlib import Path

import pytest
import product

def test_twice():
    assert product.twice(2) == 4

def test_reads_its_data():
    assert json.loads(Path(__file__).with_name("cases.json").read_text()) == [1, 2]

def test_imports_late():
    import support_late
    assert support_late.ONE == 1

def test_writes_temporary_files(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.txt").write_text("x")
    (tmp_path / "a" / "b.txt").rename(tmp_path / "c.txt")
    assert os.listdir(tmp_path / "a") == []
    with tempfile.TemporaryFile() as file, open(os.devnull, "w") as null:
        assert file.write(b"x") == null.write("x")

def test_starts_a_thread():
    done = []
    thread = threading.Thread(target=done.append, args=(1,))
    thread.start()
    thread.join()
    assert done == [1]

def test_listens():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))

def test_prints(capfd):
    print(product.twice(1))
    assert capfd.readouterr().out == "2\\n"

@pytest.fixture(params=["a", "b"])
def letter(request):
    return request.param

def test_letters(letter):
    assert letter in "ab"
"""

ASKING = "import product\n\n\ndef test_apply():\n    assert product.apply(lambda n: n + 1, 2) == 3\n"

CONFTEST = """
import pytest

ran = []

def pytest_runtest_setup(item):
    ran.append(item.name)

@pytest.fixture
def setups():
    return ran
"""

INNER = """
import inspect

def test_hooks_of_the_conftest_file_run(setups):
    assert setups[-1] == "test_hooks_of_the_conftest_file_run"

def test_source_is_there_for_tracebacks():
    assert "tracebacks" in inspect.getsource(test_source_is_there_for_tracebacks)
"""

BESIDE = {
    "product.py": PRODUCT,
    "conftest.py": CONFTEST,
    "cases.json": "[1, 2]",
    "pytest.ini": "[pytest]\naddopts = --junitxml=report.xml\n",
    "support_late.py": "ONE = 1\n",
    "inner/__init__.py": "ONE = 1\n",
    "inner/test_inner.py": INNER,
}


@pytest.mark.slow
def test_a_suite_that_keeps_to_itself_is_not_affected_and_its_wire_was_one_way(tmp_path: Path) -> None:
    files = {**BESIDE, "test_plain.py": PLAIN}

    report = reported(tmp_path, files)

    assert {name: said for name, said in outcomes(report).items() if said != "passed"} == {}
    assert green(report, files)
    assert (report.asked_tests, report.unconfined) == (0, ())


@pytest.mark.slow
def test_whatever_a_test_is_talked_into_it_writes_reads_and_starts_nothing(tmp_path: Path) -> None:
    files = {**BESIDE, "test_plain.py": PLAIN, "test_kept_from.py": KEPT_FROM}

    report = reported(tmp_path, files)

    said = {r.id: str(r.outcome) for r in report.results}
    assert {name for name, outcome in said.items() if outcome == "passed"} == {
        name for name in said if not name.startswith("test_kept_from.py")
    }
    assert len(said) == len(ids_of(files)) + 1
    assert set(said.values()) == {"passed", "failed"}


@pytest.mark.slow
def test_requests_of_the_product_are_counted(tmp_path: Path) -> None:
    report = reported(tmp_path, {**BESIDE, "test_asking.py": ASKING})

    assert outcomes(report)["test_apply"] == "passed"
    assert report.asked_tests == 1


THREADED = """
import threading

import product

done = threading.Event()
thread = threading.Thread(target=done.wait, daemon=True)
thread.start()

def test_twice():
    assert product.twice(2) == 4
"""


@pytest.mark.slow
def test_a_thread_from_before_is_told(tmp_path: Path) -> None:
    report = reported(tmp_path, {**BESIDE, "test_threaded.py": THREADED})

    assert outcomes(report)["test_twice"] == "passed"
    assert report.unconfined == ("threads of the tests' files run unconfined",)


def test_in_one_process_there_is_no_wire() -> None:
    report = plugin.report([["hello", {}], ["end", 0]], "normal", "")  # type: ignore[arg-type]

    assert report.asked_tests is None
    assert report.unconfined == ()


def test_what_a_machine_lacks_is_said_and_ends_nothing(tmp_path: Path) -> None:
    file = tmp_path / "test_a.py"
    file.write_text("one = 1\n")
    # No kernel stacks more than sixteen rule sets of Landlock.
    program = f"""
from jumar.child.sandbox import lock_down
for _ in range(20):
    lacking = lock_down.confine_tests([{str(file)!r}], {str(tmp_path)!r}, "")
print(*lacking, sep=chr(10))
"""

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == [
        "the tests can write everywhere",
        "the tests can start processes",
    ]
    assert file.read_text() == ""
