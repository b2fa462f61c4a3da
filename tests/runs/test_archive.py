"""`jumar diff`, `apply`, `runs` and `clean` on runs of the kernel that lie on the disk."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from jumar.cli.archive.rows import drop_repeats
from jumar.cli.console.coloured import colour_patch, shorten_patch
from jumar.cli.main import call
from jumar.core.state import events as ev
from jumar.core.state.settings import Settings
from jumar.core.state.verdict import Outcome
from jumar.journal.writer import Journal, read_journal
from jumar.runs.archive.find import find_run
from jumar.runs.archive.listing import list_runs
from jumar.runs.setup.marks import mark
from jumar.runs.setup.result import build_result
from jumar.workspace.store.lease import SHARED, Lease
from support.processes.ticks import wait_for_a_tick
from support.worlds.run_world import program, world

Called = Callable[..., tuple[int, str, str]]
REPLY = f"```python\n{program(12)}```"


@pytest.fixture
def jumar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Called:
    monkeypatch.chdir(tmp_path)

    def called(*argv: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = call(argv)
        said = capsys.readouterr()
        return code, said.out, said.err

    return called


def ran(tmp_path: Path, name: str, *, ends: bool = True) -> Path:
    """A run of the usual story in `.jumar/runs`, whose original is `origin`; its best tree passes 12 of 17."""
    run = tmp_path / ".jumar" / "runs" / name
    story = world(run, (REPLY,))
    if ends:
        state = anyio.run(story.kernel.run)
        result = build_result(state, run, story.journal.mark)
        (run / "result.json").write_text(json.dumps({**json.loads(_encoded(result))}))
    story.journal.close()
    origin = tmp_path / "origin"
    if not origin.exists():
        origin.mkdir()
        (origin / "app.py").write_text(program(8))
        (origin / "test_app.py").write_text("# the tests\n")
    _belongs_to(run, origin)
    return run


def _encoded(result: object) -> bytes:
    import msgspec  # noqa: PLC0415  one line

    return msgspec.json.encode(result)


def _belongs_to(run: Path, origin: Path) -> None:
    """Write the journal of *run* again, so that it names its original."""
    entries = read_journal(run)
    first = entries[0].event
    assert isinstance(first, ev.RunStart)
    settings = replace(first.settings, origin=str(origin), editable=("app.py",), protected=("test_app.py",))
    for path in ("events.jsonl", "head", "lock"):
        (run / path).unlink(missing_ok=True)
    with Journal.create(run) as journal:
        journal.append((replace(first, settings=settings),), entries[0].ts)
        for entry in entries[1:]:
            journal.append((entry.event,), entry.ts)
        head = journal.mark
    mark(run, (run / "events.jsonl").read_bytes().splitlines()[0], os.environ)
    if (run / "result.json").exists():
        result = json.loads((run / "result.json").read_text())
        result["head"] = {"seq": head.seq, "hash": head.hash}
        (run / "result.json").write_text(json.dumps(result))


@pytest.mark.slow
def test_diff_shows_the_best_tree_against_what_the_run_began_with(jumar: Called, tmp_path: Path) -> None:
    run = ran(tmp_path, "20260101-000000-app-aaaaaa")
    code, out, _ = jumar("diff", "last")
    assert code == 0
    assert "-PASSING = 8  # \n+PASSING = 12  # \n" in out
    assert "\x1b" not in out, "plain in a pipe"
    assert jumar("diff", str(run), "--stat")[1].splitlines() == [" app.py | +1 -1", " 1 file, +1 -1"]
    found = json.loads(jumar("diff", "2026", "--json")[1])
    assert found["files"] == [{"path": "app.py", "added": 1, "removed": 1}]
    assert found["patch"] == out


def test_apply_writes_back_and_says_so_when_it_is_done_already(jumar: Called, tmp_path: Path) -> None:
    ran(tmp_path, "20260101-000000-app-aaaaaa")
    assert jumar("apply", "last")[:2] == (0, f"to       {tmp_path / 'origin'}\nwrote    app.py\n")
    assert (tmp_path / "origin" / "app.py").read_text() == program(12)
    assert "nothing to write" in jumar("apply", "last")[1]
    assert json.loads(jumar("apply", "last", "--json")[1]) == {
        "run": "20260101-000000-app-aaaaaa", "written": [], "conflicts": [], "exit": 0,
    }  # fmt: skip


def test_apply_names_the_conflicts_and_ends_with_1(jumar: Called, tmp_path: Path) -> None:
    ran(tmp_path, "20260101-000000-app-aaaaaa")
    (tmp_path / "origin" / "app.py").write_text("PASSING = 3\n")
    code, out, err = jumar("apply", "last")
    assert code == 1
    assert "conflict 'app.py' was changed while the run worked, in the same lines" in out
    assert "nothing was applied: 1 conflict" in err
    assert (tmp_path / "origin" / "app.py").read_text() == "PASSING = 3\n"
    code, out, _ = jumar("apply", "last", "--json")
    assert (code, json.loads(out)["conflicts"][0]["path"]) == (1, "app.py")


def test_a_place_that_is_read_only_is_bad_input_and_the_way_out_is_named(jumar: Called, tmp_path: Path) -> None:
    run = ran(tmp_path, "20260101-000000-app-aaaaaa")
    origin = tmp_path / "origin"
    mounts = (("--bind", str(origin), str(origin)), ("-o", "remount,ro,bind", str(origin)))
    done = [subprocess.run(["mount", *words], check=False, capture_output=True).returncode for words in mounts]
    try:
        if any(done):
            pytest.skip("only root can mount a folder read-only")
        code, _, err = jumar("apply", "last")
        assert (code, "--to DIR" in err, f"jumar apply {run.name}" in err) == (2, True, True), err
        code, _, err = jumar("hook", "install", str(origin), "--yes", "-q")
        assert (code, f"cannot write {origin}/.claude/settings.json: Read-only file system; make it" in err) == (
            2,
            True,
        )
        code, _, err = jumar("batch", str(origin), "--model", "repair", "--campaign", str(origin / "c"))
        assert (code, "name another place with --campaign" in err) == (2, True), err
    finally:
        if not done[0]:
            subprocess.run(["umount", str(origin)], check=True)


def test_apply_names_its_folder_unless_that_is_here_or_above(
    jumar: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ran(tmp_path, "20260101-000000-app-aaaaaa")
    (tmp_path / "origin" / "src").mkdir()
    monkeypatch.chdir(tmp_path / "origin" / "src")
    assert jumar("apply", str(run))[1] == "wrote    app.py\n"


@pytest.mark.slow
def test_apply_refuses_a_run_that_came_with_a_repository(jumar: Called, tmp_path: Path) -> None:
    run = ran(tmp_path, "20260101-000000-app-aaaaaa")
    (run / "mark").unlink()

    code, out, err = jumar("apply", "last")

    assert (code, out, (tmp_path / "origin" / "app.py").read_text()) == (2, "", program(8))
    assert f"to write to {tmp_path / 'origin'} and to run" in err
    assert (jumar("diff", "last")[0], jumar("runs")[0], jumar("log", "verify", "last")[0]) == (0, 0, 0)
    assert jumar("apply", "last", "--to", "best")[0] == 0, "which believes nothing"
    assert jumar("apply", "last", "--trust")[0] == 0
    assert (tmp_path / "origin" / "app.py").read_text() == program(12)


def test_apply_to_a_folder_that_was_moved_away_says_what_applies_the_changes(jumar: Called, tmp_path: Path) -> None:
    run = ran(tmp_path, "20260101-000000-app-aaaaaa")
    (tmp_path / "origin").rename(tmp_path / "moved")

    code, _, err = jumar("apply", str(run))

    assert code == 2
    assert "is no folder any more; where it was moved to, `jumar diff" in err
    assert "| git apply` writes the changes" in err


def test_apply_to_lays_the_whole_best_tree_out(jumar: Called, tmp_path: Path) -> None:
    ran(tmp_path, "20260101-000000-app-aaaaaa")
    assert jumar("apply", "last", "--to", "best")[0] == 0
    assert sorted(path.name for path in (tmp_path / "best").iterdir()) == ["app.py", "test_app.py"]
    assert (tmp_path / "origin" / "app.py").read_text() == program(8)


@pytest.mark.parametrize("to", ["full", "full/file", "full/file/below"])
def test_apply_to_a_place_that_is_taken_is_bad_input(jumar: Called, tmp_path: Path, to: str) -> None:
    ran(tmp_path, "20260101-000000-app-aaaaaa")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")

    code, out, err = jumar("apply", "last", "--to", to)

    assert (code, out) == (2, "")
    assert to in err
    assert "--to" in err
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["file"]
    assert (tmp_path / "full" / "file").read_text() == "mine"


@pytest.mark.parametrize("command", [("apply",), ("apply", "--to", "best"), ("diff",)], ids=" ".join)
def test_a_run_without_an_event_is_one_sentence(jumar: Called, tmp_path: Path, command: tuple[str, ...]) -> None:
    run = tmp_path / ".jumar" / "runs" / "20260101-000000-app-aaaaaa"
    run.mkdir(parents=True)
    (run / "events.jsonl").touch()
    code, _, err = jumar(*command)
    assert (code, "was killed before its first event" in err) == (2, True)


@pytest.mark.slow
def test_a_run_is_named_by_its_path_its_name_a_unique_beginning_or_last(jumar: Called, tmp_path: Path) -> None:
    old, new = (ran(tmp_path, name) for name in ("20260101-000000-app-aaaaaa", "20260102-000000-app-bbbbbb"))
    runs = Path(".jumar/runs")
    for name, found in ((str(old), old), (old.name, old), ("20260102", new), ("last", new)):
        assert find_run(name, runs).samefile(found)
    code, _, err = jumar("diff", "2026")
    assert code == 2
    assert f"2 runs in .jumar/runs begin with '2026': {new.name}, {old.name}" in err
    assert "there is no run 'x'" in jumar("apply", "x")[2]
    assert "there is no run in nowhere" in jumar("diff", "last", "--runs", "nowhere")[2]
    assert jumar("log", "verify", "20260101")[0] == 0


def test_the_runs_of_a_campaign_are_named_where_its_folder_is(jumar: Called, tmp_path: Path) -> None:
    (tmp_path / "night" / "runs").mkdir(parents=True)
    assert jumar("runs", "night")[:2] == (0, "no run in night; name night/runs\n")
    assert jumar("runs", "night/runs")[:2] == (0, "no run in night/runs\n")


def test_runs_is_a_table_with_open_unfinished_and_damaged_ones(jumar: Called, tmp_path: Path) -> None:
    names = [f"2026010{n}-000000-app-{n}aaaaa" for n in range(1, 5)]
    ended, unfinished, is_open, damaged = (ran(tmp_path, name, ends=n == 0) for n, name in enumerate(names))
    (damaged / "events.jsonl").write_text("nonsense\n")
    holder = os.open(is_open / "lock", os.O_RDWR)
    fcntl.flock(holder, fcntl.LOCK_EX)

    rows = json.loads(jumar("runs", "--json")[1])["runs"]
    lines = jumar("runs")[1].splitlines()
    os.close(holder)

    assert [(row["run"], row["stop"]) for row in rows] == [
        (damaged.name, "damaged"), (is_open.name, "open"), (unfinished.name, "unfinished"), (ended.name, "final"),
    ]  # fmt: skip
    assert (rows[-1]["passed"], rows[-1]["total"], rows[0]["passed"]) == (12, 17, None)
    assert "line 1 of the journal is damaged" in rows[0]["why"]
    assert lines[0].split() == ["RUN", "TASK", "STOP", "PASSED", "COST", "TIME", "SIZE"]
    assert lines[4].split()[:4] == [ended.name, "app", "final", "12/17"]
    assert jumar("runs", "nowhere")[2] == "jumar: there is no folder nowhere; name one that holds runs\n"


def test_a_result_that_is_older_than_its_journal_is_not_believed(tmp_path: Path) -> None:
    run = ran(tmp_path, "20260101-000000-app-aaaaaa")
    with Journal.open(run) as journal:
        journal.append((ev.Resume(from_seq=journal.entries[-1].seq),), 1.0)
    (row,) = list_runs(run.parent)
    assert row.stop == "unfinished"


@pytest.mark.slow
def test_runs_is_fast_for_a_thousand(tmp_path: Path) -> None:
    run = ran(tmp_path, "20260101-000000-app-aaaaaa")
    for number in range(1000):
        copy = tmp_path / "many" / f"20260101-000000-app-{number:06}"
        copy.mkdir(parents=True)
        for name in ("events.jsonl", "result.json", "lock"):
            os.link(run / name, copy / name)
    before = time.process_time()
    assert len(list(list_runs(tmp_path / "many"))) == 1000
    assert time.process_time() - before < 3


def shared(tmp_path: Path, *names: str) -> list[Path]:
    """Runs that share their objects."""
    runs = []
    for name in names:
        run = tmp_path / ".jumar" / "runs" / name
        (run.parent / SHARED).mkdir(parents=True, exist_ok=True)
        run.mkdir()
        (run / "objects").symlink_to(Path("..", SHARED))
        runs.append(ran(tmp_path, name))
    return runs


@pytest.mark.slow
def test_clean_removes_by_age_and_reason_and_frees_the_objects(jumar: Called, tmp_path: Path) -> None:
    old, new = shared(tmp_path, "20200101-000000-app-aaaaaa", "20990101-000000-app-bbbbbb")
    extra = old.parent / SHARED / "00"
    extra.mkdir(exist_ok=True)
    (extra / ("0" * 62)).write_bytes(b"needed by nobody")
    wait_for_a_tick(tmp_path)

    planned = json.loads(jumar("clean", "--older-than", "7d", "--dry-run", "--json")[1])
    assert old.exists()
    done = json.loads(jumar("clean", "--older-than", "7d", "--json")[1])

    assert {**planned, "dry_run": False} == done
    assert (done["removed"], done["kept"], done["objects"]) == ([old.name], 1, 1)
    assert not old.exists()
    assert not (extra / ("0" * 62)).exists()
    assert jumar("diff", new.name)[0] == 0
    assert jumar("clean", "--stop", "green")[1].startswith("freed 0 B: 0 of 1 runs")
    assert jumar("clean", "--stop", "final")[1].splitlines()[0].startswith(f"removed  {new.name}  final")
    assert not [path for path in new.parent.glob(f"{SHARED}/??/*") if path.is_file()]


def test_clean_keeps_what_is_open_and_what_can_be_resumed_unless_asked(jumar: Called, tmp_path: Path) -> None:
    unfinished, is_open = (ran(tmp_path, f"2020010{n}-000000-app-{n}aaaaa", ends=False) for n in (1, 2))
    holder = os.open(is_open / "lock", os.O_RDWR)
    fcntl.flock(holder, fcntl.LOCK_EX)
    assert json.loads(jumar("clean", "--all", "--json")[1])["removed"] == []
    assert json.loads(jumar("clean", "--all", "--interrupted", "--json")[1])["removed"] == [unfinished.name]
    os.close(holder)
    assert not unfinished.exists()
    assert is_open.exists()


def test_clean_keeps_a_run_of_whose_journal_one_byte_was_changed_and_names_it(jumar: Called, tmp_path: Path) -> None:
    sound, changed = (ran(tmp_path, f"2020010{n}-000000-app-{n}aaaaa") for n in (1, 2))
    lines = (changed / "events.jsonl").read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"::test_1", b"::test_2")
    (changed / "events.jsonl").write_bytes(b"".join(lines))
    assert jumar("log", "verify", changed.name)[0] != 0
    assert json.loads(jumar("runs", "--json")[1])["runs"][0]["stop"] == "final"

    planned = json.loads(jumar("clean", "--all", "--dry-run", "--json")[1])
    done = jumar("clean", "--all")[1].splitlines()

    assert (planned["removed"], planned["damaged"], planned["kept"]) == ([sound.name], [changed.name], 1)
    assert done[0].startswith(f"removed  {sound.name}  final")
    assert done[1].startswith(f"kept     {changed.name}  damaged: line 3 of its journal was changed")
    assert changed.exists()
    assert json.loads(jumar("clean", "--stop", "final", "--json")[1])["removed"] == []
    assert json.loads(jumar("clean", "--stop", "damaged", "--json")[1])["removed"] == [changed.name]


@pytest.mark.parametrize("command", [("apply",), ("diff",), ("resume", "last", "--trust")])
def test_a_run_whose_journal_was_emptied_is_damaged(jumar: Called, tmp_path: Path, command: tuple[str, ...]) -> None:
    run = ran(tmp_path, "20200101-000000-app-aaaaaa")
    (run / "events.jsonl").write_bytes(b"")

    (row,) = json.loads(jumar("runs", "--json")[1])["runs"]
    code, _, err = jumar(*command)

    assert (row["stop"], "none is left" in row["why"]) == ("damaged", True)
    assert (code, "lines, and none is left" in err) == (2, True)
    assert json.loads(jumar("clean", "--all", "--json")[1])["removed"] == []
    assert jumar("log", "verify", "last")[0] != 0


@pytest.mark.slow
def test_clean_by_size_removes_the_oldest_and_no_more_than_needed(jumar: Called, tmp_path: Path) -> None:
    runs = shared(tmp_path, *(f"2020010{n}-000000-app-{n}aaaaa" for n in range(1, 5)))
    for run in runs:
        (run / "output.txt").write_bytes(b"x" * 1_000_000)
    done = json.loads(jumar("clean", "--max-size", "2.9MB", "--json")[1])
    assert done["removed"] == [runs[0].name, runs[1].name]
    assert json.loads(jumar("clean", "--max-size", "2.9MB", "--json")[1])["removed"] == []


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ((), "say which runs"),
        (("--older-than", "soon"), "is no time"),
        (("--max-size", "much"), "is no size"),
        (("--stop", "done"), "--stop done is unknown; known are green"),
    ],
)
def test_clean_refuses_what_it_does_not_understand(jumar: Called, argv: tuple[str, ...], said: str) -> None:
    code, _, err = jumar("clean", *argv)
    assert code == 2
    assert said in err


def test_log_show_hides_tests_that_did_not_change_and_filters_by_type(jumar: Called, tmp_path: Path) -> None:
    ran(tmp_path, "20260101-000000-app-aaaaaa")
    shown, everything = jumar("log", "show", "last")[1], jumar("log", "show", "last", "--all")[1]
    rows = [line for line in everything.splitlines() if "  test_run " in line]
    assert len(rows) == 34
    assert sum("test_id=" in line for line in shown.splitlines() if "  test_run " in line) == 17 + 4
    assert "13 test_run as before (--all shows them)" in shown
    best = jumar("log", "show", "last", "--type", "best", "--type", "revert")[1].splitlines()
    assert [line.split()[3] for line in best] == ["best", "best"]
    code, _, err = jumar("log", "show", "last", "--type", "tets")
    assert (code, "did you mean tests" in err) == (2, True)
    assert len(json.loads(jumar("log", "show", "last", "--json")[1])["events"]) > 34


def test_repeats_are_counted_where_they_stood() -> None:
    run = ev.TestRun(test_id="a", status="pass", outcome=Outcome.PASSED, command="", duration_ms=0)
    events: list[ev.Event] = [run, run, ev.Resume(from_seq=1), run]
    entries = [ev.Entry(n, 0.0, event) for n, event in enumerate(events)]
    assert list(drop_repeats(entries)) == [entries[0], 1, entries[2], 1]


def test_a_report_shows_a_bounded_diff() -> None:
    patch = "diff --git a/a b/a\nindex 1..2\n" + "".join(f"+{n}\n" for n in range(100)) + "+" + "x" * 999
    shown = shorten_patch(patch, "jumar diff last").splitlines()
    assert shown[0] == "+0"
    assert shown[-1] == "... 41 more lines: jumar diff last"
    assert colour_patch("+a\n-b\n c") == "\x1b[32m+a\x1b[0m\n\x1b[31m-b\x1b[0m\n c"


@pytest.mark.parametrize(
    ("age", "stays"), [((5, ""), True), ((700, ""), False), ((700, "stores"), True), ((90_000, "stores"), False)]
)
def test_what_was_killed_before_its_first_event_is_removed_once_nobody_can_be_making_it(
    jumar: Called, tmp_path: Path, age: tuple[int, str], *, stays: bool
) -> None:
    run = tmp_path / ".jumar" / "runs" / "20260101-000000-app-aaaaaa"
    (run / "rooms").mkdir(parents=True)
    (run / "objects.path").write_text(f"{run.parent / SHARED}\n")
    os.utime(run / "objects.path", (time.time() - age[0],) * 2)
    lease = Lease(run.parent / SHARED)
    if age[1]:
        lease.take()

    code, out, _ = jumar("clean", "--all")
    lease.end()

    assert (code, run.exists()) == (0, stays)
    assert (f"kept     {run.name}  it has no event yet" in out) is stays


@pytest.mark.slow
def test_a_run_that_was_moved_without_its_objects_is_one_sentence(jumar: Called, tmp_path: Path) -> None:
    (run,) = shared(tmp_path, "20260101-000000-app-aaaaaa")
    (run / "objects.path").write_text(f"{run.parent / SHARED}\n")
    shutil.move(run, tmp_path / "elsewhere")
    assert jumar("diff", "elsewhere")[0] == 0
    shutil.rmtree(run.parent)
    code, _, err = jumar("diff", "elsewhere")
    assert code == 2
    assert "the files of the run in elsewhere are not here" in err


def test_settings_of_older_journals_still_read() -> None:
    assert Settings().tree_bytes == 0
