"""No phase is silent: what a status line says, how it fits, and that nothing of it stands where nobody looks."""

from __future__ import annotations

import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import threading
from fcntl import ioctl
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.campaigns.campaign import CampaignProgress
from jumar.cli.console.campaign_status import CampaignStatus
from jumar.cli.console.output import Console
from jumar.cli.console.progress import ProgressDisplay
from jumar.cli.console.signals import SignalWatcher
from jumar.cli.console.status_line import StatusLine, count_columns, format_duration
from jumar.process.progress import Counter, ProgressPart, Work, ignore_progress
from jumar.workspace.files.safe_paths import replace_file
from support.worlds.run_world import program, world


def busy(*, round_of: tuple[int, int] | None = None) -> StatusLine:
    """A run of sixty tests, twelve of which are done after two seconds."""
    status = StatusLine(title="gcd", best=(9, 17))
    status.begin("running the tests (turn)", 100.0)
    if round_of:
        status.count(ProgressPart.ROUND, *round_of, 100.0)
    status.count(ProgressPart.TESTS, 0, 60, 100.0)
    status.count(ProgressPart.TESTS, 12, 60, 102.0)
    return status


def test_it_says_what_is_done_how_much_how_fast_and_how_long_it_may_take() -> None:
    assert busy(round_of=(2, 4)).text(102.0, 120) == (
        "gcd: running the tests (turn) [##........] round 2/4 12/60 tests 6.0/s ETA 0:08 0:02 best 9/17"
    )


@pytest.mark.parametrize(
    ("width", "said"),
    [
        (70, "gcd: running the tests (turn) 12/60 6.0/s ETA 0:08 0:02 best 9/17"),
        (46, "running the tests (turn) 12/60 ETA 0:08 0:02"),
        (39, "running the tests (turn) 12/60 0:02"),
        (20, "running the tests (t"),
    ],
)
def test_the_least_important_is_left_out_first(width: int, said: str) -> None:
    assert busy().text(102.0, width) == said


@pytest.mark.slow
@given(st.integers(0, 120), st.text(max_size=30), st.text(min_size=1, max_size=40))
def test_it_never_takes_more_columns_than_there_are(width: int, title: str, work: str) -> None:
    status = StatusLine(title=title)
    status.begin(work, 0.0)
    status.count(ProgressPart.CANDIDATES, 94, 0, 7.0)
    assert count_columns(status.text(7.5, width)) <= width


def test_there_is_no_guess_while_nothing_was_done_for_as_long_as_all_would_take() -> None:
    status = busy()

    assert "ETA" in status.text(110.0, 120)
    assert "ETA" not in status.text(111.0, 120)
    status.count(ProgressPart.TESTS, 13, 60, 112.0)
    assert "ETA" in status.text(112.0, 120)


def test_without_a_total_there_is_a_count_and_no_guess() -> None:
    status = StatusLine()
    status.begin("asking for a candidate (fix)", 0.0)
    status.count(ProgressPart.CANDIDATES, 0, 0, 0.0)
    status.count(ProgressPart.CANDIDATES, 40, 0, 4.0)
    assert status.text(4.0, 120) == "asking for a candidate (fix) 40 candidates 10/s 0:04"


def test_another_process_has_a_rate_of_its_own() -> None:
    status = busy()
    status.count(ProgressPart.TESTS, 1, 60, 110.0)
    status.count(ProgressPart.TESTS, 3, 60, 111.0)
    assert "3.0/s" in status.text(111.0, 120)


def test_tests_are_counted_as_their_records_come() -> None:
    told: list[tuple[object, int, int]] = []
    counter = Counter(lambda what, done, total: told.append((what, done, total)))

    counter.count([["hello", {}]])
    counter.count([["collected", ["a", "b"]]])
    counter.count([["start", "a"]])
    counter.count([["result", "a", "passed", 1, "", "", ""], ["start", "b"]])

    assert told == [(ProgressPart.TESTS, 0, 2), (ProgressPart.TESTS, 0, 2), (ProgressPart.TESTS, 1, 2)]
    ignore_progress(Work.COPYING)


def test_a_clock() -> None:
    assert [format_duration(s) for s in (0.4, 65, 3671)] == ["0:00", "1:05", "1:01:11"]


def test_where_there_is_no_terminal_quick_work_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressDisplay(Console()) as live:
        live.tell(Work.COPYING)
        live.tell(ProgressPart.FILES, 3, 0)
        live.print_line("a line")

    assert capsys.readouterr().err == "a line\n"


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressDisplay(Console(quiet=True)) as live:
        live.tell(Work.COPYING)
        live.print_line("a line")

    assert capsys.readouterr().err == ""


SLOW = """
import threading
from jumar.process.progress import ProgressPart, Work
from jumar.cli.console.signals import SignalWatcher
from jumar.campaigns.campaign import CampaignProgress
from jumar.cli.console.campaign_status import CampaignStatus
from jumar.cli.console.output import Console
from jumar.cli.console.progress import ProgressDisplay

voice = Console()
with ProgressDisplay(voice) as live:
    live.tell(Work.COLLECTING)
    for done in range(1, 13):
        live.tell(ProgressPart.TESTS, done, 60)
        threading.Event().wait(0.15)
    threading.Event().wait(1)
    voice.say("in between")
    threading.Event().wait(0.3)
voice.say("the end")
"""


def _shown_on_terminal(folder: Path, script: str, wide: int) -> str:
    """Return what *script* writes to a terminal of *wide* columns."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, wide, 0, 0))
    (folder / "slow.py").write_text(script)
    env = {**os.environ, "TERM": "xterm", "NO_COLOR": "1"}
    with subprocess.Popen(
        [sys.executable, str(folder / "slow.py")], stdin=theirs, stdout=theirs, stderr=theirs, env=env
    ) as child:
        os.close(theirs)
        data = b""
        while select.select([ours], [], [], 20)[0]:
            try:
                data += os.read(ours, 1 << 16)
            except OSError:  # the other end is closed
                break
        assert child.wait() == 0
    os.close(ours)
    return data.decode().replace("\r\n", "\n")


@pytest.mark.slow
@pytest.mark.parametrize("wide", [40, pytest.param(0, marks=pytest.mark.proof)])
def test_on_a_terminal_the_line_moves_each_second_and_leaves_nothing_behind(tmp_path: Path, wide: int) -> None:
    """One of 40 columns, and one that nobody has told its size."""
    said = _shown_on_terminal(tmp_path, SLOW, wide)
    frames = re.findall(r"\r([^\r\n\x1b]+)\x1b\[K", said)
    assert len(frames) >= 5
    assert all(len(frame) < (wide or 80) for frame in frames)
    assert frames[-1].startswith("collecting the tests ")
    assert "12/60" in frames[-1]
    assert "\x1b[3" not in said, "no colour"
    assert "\r\x1b[Kin between\n" in said, "what is written takes the place of the status line"
    assert said.endswith("\r\x1b[Kthe end\n")


def test_runs_at_once_have_lines_under_their_own_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two that do the same: neither keeps the other from saying so, nor takes its name."""
    with ProgressDisplay(Console()) as live, live.follow("one") as one, live.follow("two") as two:
        for number, run in enumerate((one, two)):
            made = world(tmp_path / str(number), (program(17),))
            made.kernel.watch = run.watch
            anyio.run(made.kernel.run)

    lines = capsys.readouterr().err.splitlines()
    assert [line.replace("one:", "two:") for line in lines if line.startswith("one: ")] == lines[len(lines) // 2 :]
    assert "two: 17 of 17 passed: kept" in lines


SEVERAL = """
import threading
from jumar.process.progress import Work
from jumar.cli.console.output import Console
from jumar.cli.console.progress import ProgressDisplay

with ProgressDisplay(Console()) as live, live.follow("one") as one, live.follow("two") as two:
    one.tell(Work.COLLECTING)
    two.tell(Work.JUDGING)
    threading.Event().wait(1)
"""


@pytest.mark.slow
def test_runs_at_once_share_the_status_line(tmp_path: Path) -> None:
    said = re.findall(r"\r([^\r\n\x1b]+)\x1b\[K", _shown_on_terminal(tmp_path, SEVERAL, 70))
    frames = [frame for frame in said if not frame.startswith("starting")]  # before them and after them

    assert frames[-1].startswith("one: collecting the tests 0:0")
    assert " | two: running the tests 0:0" in frames[-1]
    assert all(len(frame) < 70 for frame in frames)


@pytest.mark.slow
def test_the_status_line_is_not_drawn_while_another_line_is_written() -> None:
    """It was, once in some hundred lines of a busy machine: both stood in one line then."""
    voice = Console(quiet=True)
    with ProgressDisplay(voice) as live:
        drawing = threading.Thread(target=live.tell, args=(ProgressPart.TESTS, 1, 2))
        with voice.aside():
            drawing.start()
            drawing.join(0.1)
            assert drawing.is_alive()
        drawing.join()


def test_a_fault_of_the_disk_reaches_the_command_as_itself() -> None:
    """A task group would wrap it, and a person would see a traceback in the place of one sentence."""

    async def work() -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        SignalWatcher().run(work)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_bytes(b"old")
    replace_file(tmp_path / "result.json", b"new")
    assert (tmp_path / "result.json").read_bytes() == b"new"
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="directory"):
        replace_file(tmp_path / "folder", b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "result.json"]


def test_a_campaign_says_how_many_have_ended_what_they_cost_and_how_long_it_may_take() -> None:
    seen = CampaignProgress(
        ended=14, known=2, total=50, active=8, paused=1, green=5, usd=0.125, test_runs=40,
    )  # fmt: skip
    status = CampaignStatus(look=lambda: seen)
    status.begin("starting", 100.0)

    assert status.text(160.0, 120) == (
        "14/50 rollouts [##........] 8 at work, 1 wait 5 green $0.1250 40 test runs ETA 3:00 1:00"
    )
    assert status.text(160.0, 40) == "14/50 rollouts 8 at work, 1 wait 1:00"
