"""Warm verification: a process that is forked from a zygote does and sees what one does that is started."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from jumar.child.dict_versions import DictVersions
from jumar.child.sandbox import bubble
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Ended
from jumar.ports import Invocation, Verification
from jumar.process.launch import Confinement
from jumar.process.sandbox_probe import OURS, probe_sandbox
from jumar.process.warm import pool as pools
from jumar.process.warm.pool import WarmPool
from jumar.process.warm.starts import WARM, WarmStarts
from jumar.process.warm.zygote import START_SECONDS, Expected, Zygote, ZygoteStart
from jumar.runs.setup.choose_sandbox import find_weakening
from jumar.verify.two_process import find_product_start
from support.judging.real_verifier import QUICK, Court
from support.judging.samples import sampled
from support.processes.interpreters import PLAIN_PYTHON
from support.processes.sandboxes import ENVIRON, s3

SOURCE = Path(__file__).parents[2] / "src"

FIRST = "one of the first of its kind"

GOOD = {
    "app.py": "def double(n):\n    return 2 * n\n",
    "test_app.py": "from app import double\n\n\ndef test_two(): assert double(2) == 4\n",
}

EVERYTHING = {
    "app.py": "def double(n):\n    return 2 * n\n",
    "conftest.py": "import pytest\n\n\n@pytest.fixture\ndef broken():\n    raise RuntimeError('broken')\n",
    "pytest.ini": "[pytest]\nmarkers = quick\naddopts = -ra\n",
    "test_app.py": """import signal
import unittest

import pytest

from app import double


@pytest.mark.quick
@pytest.mark.parametrize("n", [1, 2, 3])
def test_double(n):
    assert double(n) == n + n


def test_fails():
    assert double(2) == 5


def test_breaks(broken):
    pass


@pytest.mark.skip(reason="not today")
def test_skipped():
    pass


@pytest.mark.xfail
def test_expected():
    assert double(1) == 3


def test_hangs():
    while True:
        signal.pause()


class TestOld(unittest.TestCase):
    def test_old(self):
        self.assertEqual(double(4), 8)

    def test_bad(self):
        self.assertEqual(double(4), 9)
""",
    "test_lost.py": "import nowhere\n\n\ndef test_lost():\n    pass\n",
}

FACTS = """import gc, json, os, random, resource, signal, sys, threading
from pathlib import Path

OURS = ("jumar", "app", "ctypes", "hmac")


def test_facts():
    room, place = os.getcwd(), os.environ["JUMAR_ROOM"]
    said = {
        "path": sys.path, "argv": sys.argv, "orig_argv": sys.orig_argv, "flags": list(sys.flags), "room": room,
        "environ": dict(os.environ), "fds": sorted(map(int, os.listdir("/proc/self/fd")))[:3],
        "links": [os.readlink(f"/proc/self/fd/{n}").partition("#")[0] for n in (0, 1, 2)],
        "inherited": [fd for fd in map(int, os.listdir("/proc/self/fd")) if _inheritable(fd)],
        "umask": os.umask(0o022),
        "signals": {n: str(signal.getsignal(n)) for n in range(1, 65) if n not in (14, 32, 33)},
        "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())), "threads": threading.active_count(),
        "limits": [resource.getrlimit(n) for n in range(16)], "gc": [gc.isenabled(), gc.get_threshold()],
        "streams": [[s.encoding, s.errors] for s in (sys.__stdin__, sys.__stdout__, sys.__stderr__)],
        "modules": [n for n in sys.modules if n.split(".")[0] in OURS], "bytecode": sys.dont_write_bytecode,
        "command": [w for w in Path("/proc/self/cmdline").read_bytes().decode().split("\\0") if w],
        "block": sorted(w for w in Path("/proc/self/environ").read_bytes().decode().split("\\0") if w),
        "leader": os.getsid(0) == os.getpgid(0) == os.getpid(), "nice": os.nice(0), "executable": sys.executable,
        "oom": Path("/proc/self/oom_score_adj").read_text(), "hooks": [str(h) for h in sys.path_hooks][:1],
        "trace": str(sys.gettrace()), "home": os.listdir(os.environ["HOME"]), "filters": len(sys.warnoptions),
        "status": [line.split()[1:] for line in Path("/proc/self/status").read_text().splitlines()
                   if line.startswith(("SigBlk", "SigIgn", "SigCgt", "CapEff", "NoNewPrivs", "Seccomp:"))],
    }
    text = json.dumps({**said, "random": 0}).replace(room, "ROOM").replace(place, "MARK")
    with open(os.environ["FACTS"], "w") as file:
        json.dump({**json.loads(text), "random": random.random(), "hash": hash("text")}, file)


def _inheritable(fd):
    try:
        return os.get_inheritable(fd)
    except OSError:
        return False
"""


REWRITTEN = """import os

from _pytest.assertion import rewrite


def test_left():
    kept = rewrite._rewrite_test.__globals__["_codes"]
    with open(os.environ["FACTS"], "a") as file:
        file.write(f"{len(kept)} ")
"""
"""Writes down how many test files were rewritten ahead that this process has not imported."""


@pytest.fixture
def pool() -> Iterator[WarmPool]:
    """Zygotes of one test."""
    made = WarmPool(unpaid=0)
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[WarmPool]:
    """Zygotes of all tests that ask only what a fork does, and not when one is started."""
    made = WarmPool(unpaid=0)
    yield made
    made.close()


def judge(court: Court, files: Mapping[str, str], starts: WarmStarts | None) -> Verification:
    """The verification of *files* by processes that are forked, if there are *starts*."""
    court.verifier.warm = starts
    return court.judge(court.tree(files), {})


def collected(tmp_path: Path, files: Mapping[str, str], suite: Suite = QUICK) -> Court:
    """A court that knows the ids of *files*."""
    court = Court(tmp_path, suite)
    court.collect(court.tree(files))
    court.verifier.warm = None
    return court


def said(done: Verification) -> dict[str, tuple[str, str, str]]:
    """Id -> outcome, whom it blames, and the last line of why, without what differs from room to room."""
    results = done.verdict.results.items()
    return {i: (str(r.outcome), str(r.blame), (r.excerpt.strip().splitlines() or [""])[-1]) for i, r in results}


@pytest.mark.slow
def test_each_outcome_is_the_same_in_a_fork(tmp_path: Path, shared: WarmPool) -> None:
    court = collected(tmp_path, EVERYTHING, msgspec.structs.replace(QUICK, test_timeout_seconds=0.5))
    starts = WarmStarts(shared)

    cold, warm, again = (judge(court, EVERYTHING, one) for one in (None, starts, starts))

    assert starts.counts == {WARM: 2}
    assert len(said(cold)) == 11
    assert said(cold) == said(warm) == said(again)
    assert cold.ended is warm.ended is again.ended
    assert (cold.starts, warm.starts) == ({}, {WARM: 1})
    assert "jumar_rehearsal" not in court.output(warm), "what the zygote printed when it got ready"


@pytest.mark.slow
def test_a_fork_sees_what_a_started_process_sees(tmp_path: Path, pool: WarmPool) -> None:
    place = tmp_path / "facts.json"
    files = {**GOOD, "test_facts.py": FACTS}
    court = collected(tmp_path, files, msgspec.structs.replace(QUICK, env={"FACTS": str(place), "LC_ALL": "C.UTF-8"}))
    court.verifier.environ = {**ENVIRON, "TZ": "Asia/Tokyo"}
    starts, facts = WarmStarts(pool), []

    for one in (None, starts, starts):
        assert judge(court, files, one).verdict.green
        facts.append(json.loads(place.read_text("utf-8")))
    cold, first, second = facts

    chance = [{name: one.pop(name) for name in ("random", "hash")} for one in facts]
    assert cold["modules"] == ["app"], "what only jumar uses is not there before the project's code asks for it"
    differing = {n: (cold[n], first[n]) for n in cold if cold[n] != first[n]}
    assert not differing, json.dumps(differing)
    assert first == second
    assert len({one["random"] for one in chance}) == 3
    assert chance[0]["hash"] != chance[1]["hash"] == chance[2]["hash"]


@pytest.mark.slow
def test_no_module_tells_a_fork_when_its_zygote_began(tmp_path: Path, shared: WarmPool) -> None:
    """By that it would know how long the runs before it took, and a run could leave a word by taking its time."""
    test = "import logging\n\n\ndef test_begins_now(): assert logging._startTime > {}\n"
    court, starts = collected(tmp_path, {**GOOD, "test_times.py": test.format(0)}), WarmStarts(shared)

    for _ in range(2):
        assert judge(court, {**GOOD, "test_times.py": test.format(time.time())}, starts).verdict.green

    assert starts.counts == {WARM: 2}


@pytest.mark.slow
def test_what_a_fork_does_is_not_seen_by_the_next(tmp_path: Path, shared: WarmPool) -> None:
    files = {
        "app.py": """import gc, json, os, random, signal, subprocess, sys, tempfile, threading, warnings
SEEN = [
    os.environ.get("LEFT"), signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL, hasattr(json, "left"),
    os.path.exists("/tmp/jumar-left"), os.path.exists(os.path.join(tempfile.gettempdir(), "left")), os.umask(0o022),
    "left" in sys.modules, len(os.listdir("/proc/self/fd")), threading.active_count(), os.path.exists("left"),
    os.path.exists(os.path.expanduser("~/left")), sys.getrecursionlimit(), len(warnings.filters), gc.isenabled(),
    sys.stdout is None, os.getcwd() == "/tmp",
    subprocess.run(["ps", "ax"], capture_output=True).stdout.count(b"1234."),
]


def spoil():
    os.environ["LEFT"], json.left = "1", 1
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    open("/tmp/jumar-left", "w"), open(os.path.join(tempfile.gettempdir(), "left"), "w"), open("left", "w")
    open(os.path.expanduser("~/left"), "w")
    os.umask(0o777)
    sys.modules["left"] = json
    os.set_inheritable(os.open("/tmp", os.O_RDONLY), True)
    subprocess.Popen(["sleep", "1234.5"], start_new_session=True)
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    sys.setrecursionlimit(500)
    warnings.simplefilter("error")
    gc.disable()
    os.chdir("/tmp")
    sys.setswitchinterval(1)
    return SEEN
""",
        "test_app.py": "import app\n\n\ndef test_it():\n    assert str(app.spoil()) == ''\n",
    }
    court = collected(tmp_path, files)
    court.verifier.sandbox, court.verifier.environ = s3(), ENVIRON
    starts = WarmStarts(shared)

    cold, first, second, third = (judge(court, files, one) for one in (None, starts, starts, starts))

    assert starts.counts == {WARM: 3}
    assert said(cold) == said(first), (cold, first)
    assert said(first) == said(second) == said(third)
    seen = first.verdict.results["test_app.py::test_it"].excerpt
    assert "[None, True, False, False, False, 18, False, " in seen, seen
    assert not court.survivors()


@pytest.mark.slow
def test_an_edit_of_the_same_size_within_a_second_is_judged_as_it_is(tmp_path: Path, shared: WarmPool) -> None:
    edits = same_size_edits(tmp_path, shared, 12)

    assert edits == [n % 2 == 0 for n in range(12)]


@pytest.mark.proof
@pytest.mark.timeout(3600)
def test_a_thousand_edits_of_the_same_size_are_judged_as_they_are(tmp_path: Path, pool: WarmPool) -> None:
    assert same_size_edits(tmp_path, pool, 1000) == [n % 2 == 0 for n in range(1000)]


def same_size_edits(tmp_path: Path, pool: WarmPool, count: int) -> list[bool]:
    """Whether each of *count* trees is green; every second one is wrong, and all have the same times and sizes."""
    court = collected(tmp_path, GOOD)
    court.verifier.warm = WarmStarts(pool)
    bad = {**GOOD, "app.py": GOOD["app.py"].replace("2 * n", "3 * n")}
    good, wrong = court.tree(GOOD), court.tree(bad)
    return [court.judge(wrong if n % 2 else good, {}).verdict.green for n in range(count)]


@pytest.mark.proof
def test_a_green_is_accepted_by_forks_of_other_zygotes(tmp_path: Path, pool: WarmPool) -> None:
    court = collected(tmp_path, GOOD, msgspec.structs.replace(QUICK, confirm=2))
    court.verifier.sandbox, court.verifier.environ, court.verifier.sources = s3(), ENVIRON, "app.py".__eq__
    starts = WarmStarts(pool)

    done = judge(court, GOOD, starts)

    assert (done.verdict.green, done.grade, done.executions) == (True, "A", 3)
    assert done.starts == {WARM: 4}  # the code under test is forked as well, and what starts the plain run
    (family,) = [family for family in pool.families if family.plugins]
    zygotes = [zygote for _, zygote in sorted(family.zygotes.items())]
    assert [zygote.forks for zygote in zygotes] == [1, 2]
    assert [len(zygote.rewritten) for zygote in zygotes] == [1, 0], "else a falsified test would come later"


@pytest.mark.slow
def test_test_files_are_rewritten_ahead_and_known_by_all_that_stands_in_them(tmp_path: Path, pool: WarmPool) -> None:
    place = tmp_path / "facts.txt"
    files = {**GOOD, "conftest.py": "", "test_left.py": REWRITTEN, "test_more.py": "def test_more(): assert 1 == 1\n"}
    edited, wrong = (
        {**files, "test_more.py": files["test_more.py"].replace("1 == 1", now)} for now in ("2 == 2", "1 == 2")
    )
    court = collected(tmp_path, files, msgspec.structs.replace(QUICK, env={"FACTS": str(place)}))
    starts = WarmStarts(pool)

    def left() -> str:
        return place.read_text("utf-8").split()[-1]

    green = [judge(court, files, starts).verdict.green]
    while left() != "1" and len(green) < 50:  # they are rewritten while one runs, and after it on a busy machine
        green.append(judge(court, edited, starts).verdict.green)
    red = judge(court, wrong, starts).verdict.red_ids

    assert all(green)
    assert red == ("test_more.py::test_more",)
    assert left() == "1", "what was edited is not taken from there, and all else is"
    assert starts.counts == {WARM: len(green) + 1}


@pytest.mark.slow
def test_an_interpreter_may_be_named_by_a_roundabout_path(tmp_path: Path, pool: WarmPool) -> None:
    """Links that it needs are then shown by two names."""
    python = f"{tmp_path}/{os.path.relpath(PLAIN_PYTHON, tmp_path)}"
    court = collected(tmp_path, GOOD, msgspec.structs.replace(QUICK, python=python))
    court.verifier.sandbox, court.verifier.environ = s3(), ENVIRON

    done = judge(court, GOOD, WarmStarts(pool))

    assert (done.verdict.green, done.starts) == (True, {WARM: 1})


@pytest.mark.slow
def test_a_request_that_differs_from_the_others_changes_nothing_for_them(tmp_path: Path, pool: WarmPool) -> None:
    """A probe among rounds costs them no process that is ready."""
    court = collected(tmp_path, GOOD)
    assert judge(court, GOOD, WarmStarts(pool)).starts == {WARM: 1}
    zygote = current(pool)
    usual = zygote.claim(Expected("", 1 << 30, 64))  # as a probe might
    assert zygote.claim(Expected("", 1 << 29, 64)).nonce != usual.nonce

    assert [judge(court, GOOD, WarmStarts(pool)).starts for _ in range(2)] == [{WARM: 1}, {WARM: 1}]
    assert current(pool).pid == zygote.pid


@pytest.mark.slow
def test_what_confirms_a_green_is_forked_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    """Its probe, too: it tries the sandbox as the rounds enter it."""
    pool = WarmPool()
    court = collected(tmp_path, GOOD, msgspec.structs.replace(QUICK, confirm=3))
    starts, box = WarmStarts(pool), s3()
    way = find_product_start(court.verifier.runner.verification(court.verifier.suite, tmp_path, ()), starts)
    court.verifier.sandbox, court.verifier.environ, court.verifier.sources = box, ENVIRON, "app.py".__eq__
    court.verifier.weakened = lambda: find_weakening(box, tmp_path, ENVIRON, way)
    changed = {**GOOD, "app.py": GOOD["app.py"] + "# changed\n"}

    first, second = (judge(court, changed, starts) for _ in range(2))

    assert (first.grade, second.grade) == ("A", "A")
    rounds = 2 * (first.executions - 2)
    # The first run, the rounds, what starts the plain run, the probe and the look for warnings.
    assert first.starts == {FIRST: 1 + rounds + 3}
    assert second.starts == {FIRST: 1, WARM: rounds + 3}
    pool.close()


@pytest.mark.slow
def test_signals_that_jumar_was_started_to_ignore_keep_nothing_from_being_forked(
    tmp_path: Path, shared: WarmPool
) -> None:
    """As by `nohup`, over night."""
    court, starts = collected(tmp_path, GOOD), WarmStarts(shared)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert judge(court, GOOD, starts).starts == {WARM: 1}
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.slow
def test_the_first_processes_of_a_kind_are_started(tmp_path: Path) -> None:
    pool = WarmPool()
    court, starts = collected(tmp_path, GOOD), WarmStarts(pool)

    assert [judge(court, GOOD, starts).starts for _ in range(3)] == [{FIRST: 1}, {FIRST: 1}, {WARM: 1}]

    pool.close()


@pytest.mark.slow
def test_folders_of_a_project_make_no_zygote_of_its_own(tmp_path: Path, pool: WarmPool) -> None:
    """The one that has got ready for another project serves one whose PYTHONPATH is its own."""
    seen = "import os\nfrom kept import NAME\ndef test_it(): assert NAME == os.environ['PYTHONPATH'] == 'FOLDER'\n"
    starts = WarmStarts(pool)

    for folder in ("lib", "other"):
        files = {f"{folder}/kept.py": f"NAME = {folder!r}\n", "test_it.py": seen.replace("FOLDER", folder)}
        court = collected(tmp_path / folder, files, msgspec.structs.replace(QUICK, env={"PYTHONPATH": folder}))
        assert judge(court, files, starts).verdict.green_ids == {"test_it.py::test_it"}

    assert (starts.counts, len(pool.families)) == ({WARM: 2}, 1)


@pytest.mark.parametrize("name", sampled(["extract_backend_and_options", "a_new_name"], "extract_backend_and_options"))
def test_a_fixture_that_a_tree_puts_into_a_plug_in_is_found(tmp_path: Path, shared: WarmPool, name: str) -> None:
    """The zygote has looked through the plug-in, which has as many names as before, or one more."""
    files = {
        "conftest.py": f"""
import pytest
from anyio import pytest_plugin as plugin

@pytest.fixture
def {name}():
    return 7

plugin.{name} = {name}
del {name}
""",
        "test_it.py": f"def test_it({name}): assert {name} == 7\n",
    }
    court = collected(tmp_path, files, msgspec.structs.replace(QUICK, python=sys.executable))
    starts = WarmStarts(shared)

    assert [judge(court, files, one).verdict.green_ids for one in (None, starts)] == 2 * [{"test_it.py::test_it"}]
    assert starts.counts == {WARM: 1}


@pytest.mark.proof
def test_runs_that_wait_for_the_same_zygote_are_all_served(tmp_path: Path, pool: WarmPool) -> None:
    court, starts, done = collected(tmp_path, GOOD), WarmStarts(pool), list[Verification]()
    court.verifier.warm = starts

    async def verify() -> None:
        done.append(await court.verifier.plain(court.verifier.base, {}))

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(6):
                group.start_soon(verify)

    anyio.run(main)

    assert [one.verdict.green for one in done] == [True] * 6
    assert starts.counts == {WARM: 6}


@pytest.mark.slow
def test_who_waits_for_a_zygote_is_not_left_waiting_where_another_reads_its_report() -> None:
    """A campaign stood still for half a minute, until the time limit of a start was over."""

    async def main() -> None:
        order = ZygoteStart((PLAIN_PYTHON,), dict(os.environ), (), plugins=False, expected=Expected("", 1 << 30, 64))
        with closing(Zygote(order)) as zygote:
            with anyio.fail_after(START_SECONDS / 2):
                async with anyio.create_task_group() as group:
                    group.start_soon(zygote.settle)
                    await anyio.wait_all_tasks_blocked()
                    while zygote.is_starting:
                        pass  # the one that waits does not get its turn before the report is read
            assert zygote.is_ready

    anyio.run(main)


@pytest.mark.proof
def test_a_zygote_that_is_killed_costs_nothing_but_time(tmp_path: Path, pool: WarmPool) -> None:
    court, starts = collected(tmp_path, GOOD), WarmStarts(pool)
    assert judge(court, GOOD, starts).verdict.green
    zygote = current(pool)

    os.kill(zygote.pid, signal.SIGKILL)
    done = [judge(court, GOOD, starts).verdict.green for _ in range(2)]

    assert done == [True, True], starts.counts
    assert starts.counts[WARM] >= 2
    assert not zygote.is_ready


@pytest.mark.proof
def test_a_zygote_is_replaced_after_some_forks_and_when_a_package_changes(tmp_path: Path, pool: WarmPool) -> None:
    court, starts = collected(tmp_path, GOOD), WarmStarts(pool)

    def pid() -> int:
        assert judge(court, GOOD, starts).verdict.green
        return current(pool).pid

    first = pid()
    assert pid() == first
    current(pool).forks = pools.FORKS
    second = pid()
    report = current(pool).report
    current(pool).report = msgspec.structs.replace(report, files=(*report.files, str(tmp_path)))
    assert judge(court, GOOD, starts).verdict.green
    third = pid()

    assert len({first, second, third}) == 3
    assert starts.counts == {WARM: 4, "an installed package has changed": 1}


@pytest.mark.slow
def test_where_a_task_has_rules_for_warnings_nothing_is_forked(tmp_path: Path, pool: WarmPool) -> None:
    """By `error` a warning could end a zygote, or the supervisor in a fork."""
    suite = msgspec.structs.replace(QUICK, env={"PYTHONWARNINGS": "error"})
    court, starts = collected(tmp_path, GOOD, suite), WarmStarts(pool)

    assert [judge(court, GOOD, starts).verdict.green for _ in range(2)] == [True, True]
    assert starts.counts == {"the task has rules for warnings": 2}


def current(pool: WarmPool) -> Zygote:
    (family,) = pool.families
    return family.zygotes[False]


@pytest.mark.slow
def test_installed_modules_are_learned_and_a_tree_that_hides_one_is_not_forked(tmp_path: Path, pool: WarmPool) -> None:
    files = {**GOOD, "app.py": "import packaging.licenses\n" + GOOD["app.py"]}
    court, starts = collected(tmp_path, files), WarmStarts(pool)
    assert judge(court, files, starts).verdict.green
    assert [family.modules for family in pool.families if "packaging.licenses" in family.modules]

    assert judge(court, files, starts).verdict.green
    assert starts.counts == {WARM: 2}
    judge(court, {**GOOD, "packaging/__init__.py": ""}, starts)

    assert starts.counts["the tree has a module of its own called packaging"] == 1


@pytest.mark.proof
def test_a_module_that_is_imported_after_the_environment_was_changed_is_imported_anew(
    tmp_path: Path, pool: WarmPool
) -> None:
    """It may read there how it is to work, as `setuptools` does whether to tell more."""
    told = "import os\nos.environ['DISTUTILS_DEBUG'] = 'yes'\nfrom setuptools._distutils.debug import DEBUG\n"
    test = "import app\n\n\ndef test_told():\n    assert app.DEBUG == 'yes'\n"
    files = {"app.py": "import packaging.licenses\n" + told, "test_app.py": test}
    court, starts = collected(tmp_path, files), WarmStarts(pool)

    assert [judge(court, files, starts).verdict.green for _ in range(3)] == [True, True, True]

    assert starts.counts == {WARM: 3}
    learned = {name for family in pool.families for name in family.modules}
    assert "packaging.licenses" in learned
    assert not [name for name in learned if name.startswith("setuptools")]


@pytest.mark.proof
def test_the_process_of_the_code_under_test_begins_with_what_its_untouched_files_import(
    tmp_path: Path, pool: WarmPool
) -> None:
    test = "import packaging.tags\n" + GOOD["test_app.py"]
    base = {"app.py": "import packaging.licenses, json\n" + GOOD["app.py"], "test_app.py": test}
    suite = msgspec.structs.replace(QUICK, confirm=3)
    court, starts = collected(tmp_path, base, suite), WarmStarts(pool)
    court.verifier.sandbox = s3()
    court.verifier.base, court.verifier.sources = court.tree(base), "app.py".__eq__

    assert judge(court, base, starts).grade == "A"
    told = {**base, "app.py": "import packaging.markers\n" + base["app.py"]}
    assert judge(court, told, starts).grade == "A"

    known = [family.modules for family in pool.families if not family.plugins]  # the others are probes
    assert [modules for modules in known if modules] == [("packaging.licenses",)]
    assert starts.counts.keys() == {WARM}


@pytest.mark.slow
def test_what_a_candidate_imports_is_no_word_to_a_later_run(tmp_path: Path, pool: WarmPool) -> None:
    court, starts = collected(tmp_path, GOOD), WarmStarts(pool)
    assert judge(court, GOOD, starts).verdict.green

    told = {**GOOD, "app.py": "import packaging.licenses\n" + GOOD["app.py"]}
    assert judge(court, told, starts).verdict.green

    assert not [family.modules for family in pool.families if "packaging.licenses" in family.modules]


@pytest.mark.proof
def test_a_fork_that_says_otherwise_switches_forks_off_for_the_run(tmp_path: Path, shared: WarmPool) -> None:
    test = """import os
from pathlib import Path


def test_parent():
    assert b"zygote_main" in Path(f"/proc/{os.getppid()}/cmdline").read_bytes()
"""
    court = collected(tmp_path, {"test_app.py": test})
    starts = WarmStarts(shared, compared=1)

    done = judge(court, {"test_app.py": test}, starts)

    assert not done.verdict.green, "what a started process says counts"
    assert done.warnings == ("a forked process said otherwise than a started one of test_app.py::test_parent",)
    assert judge(court, {"test_app.py": test}, starts).starts == {starts.off: 1}


@pytest.mark.slow
def test_what_cannot_be_forked_is_started_and_the_reason_is_kept(tmp_path: Path, shared: WarmPool) -> None:
    starts = WarmStarts(shared)
    other = Invocation(argv=(sys.executable, "-I", "-c", "pass"))
    room = Confinement(room=tmp_path, seconds=1.0)
    wrapped = room.sandbox.wrap(other.argv, tmp_path, tmp_path, room.reach)

    assert starts.find(other, room, wrapped) is None
    assert starts.counts == {"another program than pytest": 1}


@pytest.mark.proof
def test_an_installed_module_that_forks_cannot_share_is_left_to_each_of_them(tmp_path: Path, pool: WarmPool) -> None:
    venv.create(tmp_path / "venv", symlinks=True)
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (site / "ours.pth").write_text(str(Path(pytest.__file__).parents[1]))
    (site / "holds.py").write_text("import os\n\nheld = open(os.devnull)\n")
    files = {**GOOD, "app.py": f"import holds\n\n{GOOD['app.py']}"}
    suite = msgspec.structs.replace(QUICK, python=str(tmp_path / "venv" / "bin" / "python"))
    court, starts = collected(tmp_path, files, suite), WarmStarts(pool)

    for _ in range(3):
        assert judge(court, files, starts).verdict.green

    assert starts.counts == {WARM: 3}
    assert starts.installed == {"holds"}
    assert current(pool).modules == ()


@pytest.mark.slow
def test_a_module_that_starts_a_thread_keeps_its_zygote_from_being_used() -> None:
    found = subprocess.run(
        [PLAIN_PYTHON, "-c", LEFTOVERS], env={"PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, check=True
    )

    assert json.loads(found.stdout) == [
        "",
        "a module keeps /dev/null open",
        "a module handles SIGTERM",
        "a module traces the interpreter",
        "",
        "a module starts a thread when it is imported",
    ]


LEFTOVERS = """
import _thread, json, os, signal, sys, threading
sys.path.insert(0, os.path.join(os.environ["PYTHONPATH"], "jumar", "child"))
import start
preload = start.load("jumar.child.warm.preload")
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):  # whoever started these tests may ignore them
    signal.signal(number, signal.SIG_DFL)
found = [preload.find_leftovers(-1)]
fd = os.open("/dev/null", os.O_RDONLY)
found.append(preload.find_leftovers(-1))
os.close(fd)
signal.signal(signal.SIGTERM, lambda *_: None)
found.append(preload.find_leftovers(-1))
signal.signal(signal.SIGTERM, signal.SIG_DFL)
sys.settrace(lambda *_: None)
found.append(preload.find_leftovers(-1))
sys.settrace(None)
go_on, ended = threading.Lock(), threading.Event()
go_on.acquire()
_thread.start_new_thread(go_on.acquire, ())


def end_thread():
    if go_on.locked():
        go_on.release()
    while len(os.listdir("/proc/self/task")) > 1:
        os.sched_yield()


os.register_at_fork(before=end_thread)  # as a library in C does with pthread_atfork
found.append(preload.find_leftovers(-1))
os.register_at_fork(before=go_on.locked)
threading.Thread(target=threading.Event().wait, daemon=True).start()
found.append(preload.find_leftovers(-1))
print(json.dumps(found))
"""


@pytest.mark.slow
def test_a_zygote_dies_with_jumar(tmp_path: Path) -> None:
    script = f"""
import anyio, sys, time
sys.path[:0] = [{str(Path(__file__).parents[1])!r}]
from pathlib import Path
from jumar.process.warm.pool import WarmPool
from jumar.process.warm.starts import WarmStarts
from verify.test_warm import GOOD, collected, current, judge
pool = WarmPool(unpaid=0)
court = collected(Path({str(tmp_path)!r}), GOOD)
assert judge(court, GOOD, WarmStarts(pool)).verdict.green
print(current(pool).pid, flush=True)
sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as jumar:
        assert jumar.stdout is not None
        handle = os.pidfd_open(int(jumar.stdout.readline()))
        jumar.kill()

    assert select.select([handle], [], [], 10.0)[0], "the zygote is still there"
    os.close(handle)
    assert not Court(tmp_path, started=True).survivors()


@pytest.mark.slow
def test_the_probes_find_in_a_fork_what_they_find_in_a_started_process(tmp_path: Path, shared: WarmPool) -> None:
    starts, box = WarmStarts(shared), s3()

    async def probe() -> list[Any]:
        return [await probe_sandbox(box, tmp_path, ENVIRON, OURS._replace(warm=one)) for one in (None, starts)]

    cold, warm = anyio.run(probe)

    assert starts.counts == {WARM: 2}
    assert (warm.possible, warm.why, warm.tried) == (cold.possible, cold.why, cold.tried), (warm, cold)


def test_an_argument_of_bubblewrap_that_is_not_known_is_refused() -> None:
    assert bubble.read_steps(["bwrap", "--tmpfs", "/home", "--", "true"]) == ([("--tmpfs", ["/home"])], ["true"])
    with pytest.raises(OSError, match="--share-net is not known"):
        bubble.read_steps(["bwrap", "--share-net", "--", "true"])


def test_a_dictionary_that_is_written_to_has_another_version() -> None:
    class Sample:
        first = 1

    plain = {"a": 1}
    versions = DictVersions()
    versions.add([plain, vars(Sample), vars(json)])
    before = versions.read()
    if before is None:
        pytest.skip("this interpreter numbers no dictionaries")

    assert versions.read() == before
    Sample.first = 2
    assert versions.read() != before
    before = versions.read()
    plain["a"] = 2
    assert versions.read() != before


UNNUMBERED = """
import heapq, sys
from jumar.child import dict_versions
dict_versions.HAVE = False
from jumar.child.pytest.loaded_code import LoadedCode
code = LoadedCode(lambda _: False)
heapq.nlargest = print
print([f"{change.where}.{change.name}" for change in code.find_changes()])
"""


def test_where_dictionaries_have_no_versions_all_of_them_are_compared() -> None:
    done = subprocess.run([sys.executable, "-c", UNNUMBERED], capture_output=True, text=True, check=True)

    assert done.stdout == "['heapq.nlargest']\n"


@pytest.mark.slow
def test_a_run_in_which_something_went_wrong_is_no_less_so_in_a_fork(tmp_path: Path, shared: WarmPool) -> None:
    files = {**GOOD, "app.py": "import os\n\n\ndef double(n):\n    os._exit(0)\n"}
    court, starts = collected(tmp_path, GOOD), WarmStarts(shared)

    cold, warm = (judge(court, files, one) for one in (None, starts))

    assert cold.ended is warm.ended is Ended.EXIT
    assert said(cold) == said(warm)
