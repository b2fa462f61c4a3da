"""A report adds up what journals tell, mixes no pass rates, and shows hostile text as text."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from jumar.campaigns.plan import CampaignPlan, CampaignTask, Rollout, get_run_folder, save_plan
from jumar.cli.main import call
from jumar.core.run.effects import Halt
from jumar.core.state.budget import Budget
from jumar.core.state.reply import ToolCall
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import TestPolicy
from jumar.core.state.verdict import Void
from jumar.journal.writer import EVENTS
from jumar.models.script import ScriptLine
from jumar.report.build_report import Report, build_report
from jumar.report.curve import POINTS, draw_curve
from jumar.report.fingerprints import compute_fingerprint
from jumar.report.read_change import LINES, read_change
from jumar.report.read_run import RunReport, Verification
from jumar.report.render import render_page
from jumar.report.statistics import Tally, average_pass_at_k, choose_ks, compute_wilson_interval, estimate_pass_at_k
from jumar.report.summary import format_summary
from jumar.task.option_values import OptionValues
from jumar.workspace.store.shared import find_objects_folder
from support.worlds.rollout_world import CRASH, work, write_passing
from support.worlds.run_world import IDS, TOTAL, Terms, judge

ON_WRITE = Terms(policy=TestPolicy.ON_WRITE, budget=Budget(attempts=None))


class TestPassAtK:
    """pass@k and its interval."""

    @given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
    def test_it_is_the_share_of_all_choices_of_k_rollouts_with_a_green_one(self, drawn: tuple[int, int, int]) -> None:
        rollouts, green, k = drawn
        choices = list(combinations([True] * green + [False] * (rollouts - green), k))

        expected = sum(any(choice) for choice in choices) / len(choices)

        assert estimate_pass_at_k(Tally(rollouts, green), k) == pytest.approx(expected)

    @given(st.lists(st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), min_size=1))
    def test_the_interval_holds_the_value_and_is_never_surer_than_single_draws_would_be(
        self, drawn: list[tuple[int, int]]
    ) -> None:
        tallies = [Tally(*pair) for pair in drawn]

        found = average_pass_at_k(tallies, 1)

        assert found is not None
        assert 0 <= found.low <= found.value + 1e-9
        assert found.value - 1e-9 <= found.high <= 1
        low, high = compute_wilson_interval(found.value, sum(t.rollouts for t in tallies))
        assert found.high - found.low >= high - low - 1e-9

    def test_wilson_as_in_the_tables(self) -> None:
        assert compute_wilson_interval(0.5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
        assert compute_wilson_interval(0, 10) == pytest.approx((0, 0.2775), abs=1e-4)

    def test_rollouts_of_one_task_that_all_agree_are_no_independent_draws(self) -> None:
        alike = average_pass_at_k([Tally(8, 8), Tally(8, 0), Tally(8, 8), Tally(8, 0)], 1)
        mixed = average_pass_at_k([Tally(8, 4)] * 4, 1)

        assert alike is not None
        assert mixed is not None
        assert alike.high - alike.low > 1.5 * (mixed.high - mixed.low)

    def test_a_task_with_fewer_rollouts_is_left_out_and_counted(self) -> None:
        found = average_pass_at_k([Tally(4, 1), Tally(2, 2)], 4)

        assert found is not None
        assert (found.value, found.tasks) == (1.0, 1)
        assert average_pass_at_k([Tally(2, 1)], 4) is None
        assert choose_ks([Tally(6, 1), Tally(7, 1), Tally(0, 0)]) == (1, 2, 4, 6)
        assert choose_ks([Tally(6, 1), Tally(3, 1)]) == (1, 2, 3), "each is a mean over the same tasks"
        assert choose_ks([]) == ()
        with pytest.raises(ValueError, match="needs 3 rollouts"):
            estimate_pass_at_k(Tally(2, 1), 3)


class TestFingerprints:
    """The same fault has one fingerprint."""

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("ValueError: at 139703574915240", "ValueError: at 7"),
            ("<Foo object at 0x7f10aa> is None", "<Foo object at 0x11>  is None"),
            ("No such file: '/tmp/room-1/a.txt'", "No such file: '/home/x/b/a.txt'"),
            ("took 1.5 s in src/app.py:12", "took 22 s in lib/app.py:7"),
        ],
    )
    def test_what_varies_is_no_part_of_it(self, one: str, other: str) -> None:
        assert compute_fingerprint("t", one) == compute_fingerprint("t", other)

    def test_another_message_or_test_has_another(self) -> None:
        assert compute_fingerprint("t", "TypeError: x") != compute_fingerprint("t", "KeyError: x")
        assert compute_fingerprint("t", "TypeError: x") != compute_fingerprint("u", "TypeError: x")


class TestCurve:
    """The attempt curve and the ratchet's line."""

    def test_the_line_never_falls_and_what_is_below_it_was_reverted(self) -> None:
        points = [Verification(1, 1, 3, "baseline"), Verification(2, 2, 3, "write"), Verification(0, 2, 3, "write")]

        curve = draw_curve([*points, Verification(None, 2, 3, "write")])

        assert curve is not None
        assert [dot.kind for dot in curve.dots] == ["kept", "kept", "reverted", "void"]
        heights = [float(place.split(",")[1]) for place in curve.ratchet.split()]
        assert heights == sorted(heights, reverse=True), "up is less"
        assert curve.said.endswith("1, 2, 0, void; of 3")

    def test_none_for_no_verification_and_the_ends_of_very_many(self) -> None:
        assert draw_curve([]) is None
        curve = draw_curve([Verification(n, n, 999, "write") for n in range(999)])
        assert curve is not None
        assert len(curve.dots) == POINTS
        assert "of 999 verifications" in curve.said


def make_report(folder: Path) -> tuple[Report, Mapping[str, RunReport]]:
    found = build_report([folder])
    return found, {run.rollout: run for task in found.tasks for run in task.runs}


def test_runs_add_up_and_faults_say_nothing_about_the_agent(tmp_path: Path) -> None:
    work(tmp_path / "green", (write_passing(TOTAL),))
    work(tmp_path / "better", (write_passing(9), write_passing(3), write_passing(12)), ON_WRITE)
    work(tmp_path / "worse", (write_passing(4),), ON_WRITE)
    work(tmp_path / "crash", (write_passing(9), *[CRASH] * 6))
    work(tmp_path / "halted", (write_passing(9),), halt=Halt(StopReason.INTERRUPTED))

    found, runs = make_report(tmp_path)

    assert {name for name, run in runs.items() if run.counted} == {"green", "better", "worse"}
    assert (found.totals.runs, found.totals.counted, found.totals.green, found.solved) == (5, 3, 1, 1)
    assert found.totals.usd == pytest.approx(sum(run.result.usd for run in runs.values()))
    assert found.tasks[0].best.rollout == "green"
    assert [point.best for point in runs["better"].curve] == [8, 9, 9, 12]
    assert len(runs["better"].failing) == TOTAL - 12
    assert {test.before for test in runs["better"].failing} == {"failed"}
    assert len({test.fingerprint for test in runs["better"].failing}) == TOTAL - 12
    assert {part.configuration.test_policy for part in found.configurations} == {"on_final", "on_write"}, "never mixed"
    lines = "\n".join(format_summary(found))
    assert "1 of 1 tasks solved  1 of 3 runs green" in lines
    assert "nothing about the agent: 2 of 5 runs" in lines
    assert "look at  crash: a fault of the machine or the provider" in lines


def pass_the_last(files: Mapping[str, bytes]) -> Mapping[str, str]:
    """Of a program for 12 tests or more the last ones pass, else the first ones."""
    found = judge(files)
    assert not isinstance(found, Void)
    passing = list(found.values()).count("passed")
    return {i: "passed" if n >= TOTAL - passing else "failed" for n, i in enumerate(IDS)} if passing > 11 else found


def test_a_best_tree_that_breaks_what_passed_is_for_a_person_to_look_at(tmp_path: Path) -> None:
    work(tmp_path / "r", (write_passing(12),), replace(ON_WRITE, judge=pass_the_last))

    found, runs = make_report(tmp_path)

    assert [test.id for test in runs["r"].failing if test.is_new] == list(IDS[:5])
    assert [item.what for item in found.attention] == [f"its best tree breaks what passed before: {', '.join(IDS[:3])}"]


def test_a_guardrail_and_tasks_of_one_name_that_differ(tmp_path: Path) -> None:
    outside = ScriptLine(tool_calls=(ToolCall("write_file", {"path": "../x", "text": "x"}),))
    work(tmp_path / "a", (outside,))
    work(tmp_path / "b", (write_passing(TOTAL),), replace(ON_WRITE, start=3))

    found, _ = make_report(tmp_path)

    assert [item.run for item in found.attention if item.what.startswith("guardrail")] == ["a"]
    assert len(found.tasks) == 2
    assert all(task.name.startswith("app (tree ") for task in found.tasks)


def test_a_damaged_journal_is_named_and_the_others_are_shown(tmp_path: Path) -> None:
    work(tmp_path / "good", (write_passing(TOTAL),))
    work(tmp_path / "bad", (write_passing(9),))
    lines = (tmp_path / "bad" / EVENTS).read_bytes().splitlines(keepends=True)
    (tmp_path / "bad" / EVENTS).write_bytes(b"".join([lines[0], b"{}\n", *lines[2:]]))

    found, runs = make_report(tmp_path)

    assert list(runs) == ["good"]
    assert [str(tmp_path / "bad") in sentence for sentence in found.damaged] == [True]
    assert "damaged " in "\n".join(format_summary(found))


class Tags(HTMLParser):
    """Names of the elements of a page, the texts in it, and attributes that would load or run something."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.ids: list[str] = []
        self.active: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name.startswith("on") or (name in ("src", "href") and not (value or "").startswith(("#", "data:,"))):
                self.active.append(f"{name}={value}")


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202ereversed\x1b[31m"


def test_hostile_text_is_text_and_shows_its_control_characters(tmp_path: Path) -> None:
    work(tmp_path / "r", (write_passing(9, HOSTILE),), replace(ON_WRITE, task=HOSTILE))
    (tmp_path / "page").mkdir()

    page = render_page(build_report([tmp_path]))

    tags = Tags(page)
    assert tags.names.count("script") == 1
    assert "img" not in tags.names
    assert tags.active == []
    assert len(tags.ids) == len(set(tags.ids))
    assert "\u202e" not in page
    assert "\\u202ereversed\\x1b" in page
    assert "&lt;script&gt;alert(1)" in page


def test_the_same_change_is_shown_once_and_a_long_one_is_cut(tmp_path: Path) -> None:
    long = "\n" + "".join(f"# line {n}\n" for n in range(LINES + 5))
    for name, passing in (("one", (9,)), ("two", (8, 9))):
        work(tmp_path / name, tuple(write_passing(each, long) for each in passing), ON_WRITE)

    page = render_page(build_report([tmp_path]))

    assert page.count("+# line 7\n") == 1
    assert "The same as that of" in page
    assert f"+# line {LINES}" not in page
    assert "the command shows all of it" in page


def test_a_change_is_made_of_the_objects_that_the_journal_names(tmp_path: Path) -> None:
    folder = work(tmp_path / "one", (write_passing(9),), ON_WRITE)
    (folder / "best.patch").write_text("diff --git a/x b/x\n+somebody else's line\n")

    page = render_page(build_report([tmp_path]))

    assert "somebody else" not in page
    assert "+PASSING = 9" in page


def test_a_change_whose_objects_are_gone_says_so(tmp_path: Path) -> None:
    folder = work(tmp_path / "one", (write_passing(9),), ON_WRITE)
    shutil.rmtree(find_objects_folder(folder))

    page = render_page(build_report([tmp_path]))

    assert "It cannot be read: " in page
    assert "+PASSING" not in page


def test_a_run_that_changed_nothing_has_no_change(tmp_path: Path) -> None:
    assert read_change(work(tmp_path / "one", (CRASH,), ON_WRITE)) is None


def test_a_copy_of_a_run_is_no_second_run_and_an_empty_journal_is_named(tmp_path: Path) -> None:
    folder = work(tmp_path / "one", (write_passing(9),))
    shutil.copytree(folder, tmp_path / "copy")
    (work(tmp_path / "empty", (write_passing(8),)) / "events.jsonl").write_bytes(b"")

    report = build_report([tmp_path])

    assert report.totals.runs == 1
    assert [sentence.partition(": ")[2] for sentence in report.damaged] == [
        "its journal has no first event; nothing was done, or it was emptied"
    ]


def test_agents_of_a_challenge_are_added_up_apart(tmp_path: Path) -> None:
    """They may differ in their prompts alone."""
    tasks = [CampaignTask(name=f"{agent}.app", path=str(tmp_path), agent=agent) for agent in ("a", "b")]
    plan = CampaignPlan(began="20261130-101500", tasks=tuple(tasks), options=OptionValues(model="repair"))
    (tmp_path / "c").mkdir()
    save_plan(tmp_path / "c", plan, {"HOME": str(tmp_path)})
    for task, passing in zip(tasks, (TOTAL, 9), strict=True):
        work(get_run_folder(tmp_path / "c", plan, Rollout(task, 1)), (write_passing(passing),))

    report = build_report([tmp_path / "c"])

    assert [(part.configuration.contestant, part.solved) for part in report.configurations] == [("a", 1), ("b", 0)]
    assert [task.name for task in report.tasks] == ["app"]


def test_what_cannot_go_on_is_not_said_to(tmp_path: Path) -> None:
    task = CampaignTask(name="app", path=str(tmp_path))
    plan = CampaignPlan(
        began="20261130-101500", tasks=(task,), options=OptionValues(model="repair"), rollouts=4, patience=1
    )
    (tmp_path / "c").mkdir()
    save_plan(tmp_path / "c", plan, {"HOME": str(tmp_path)})
    for number in (1, 2):
        work(get_run_folder(tmp_path / "c", plan, Rollout(task, number)), (write_passing(9, str(number)),))

    lines = list(format_summary(build_report([tmp_path / "c"])))

    assert "no run   2 of 4 rollouts (not begun, refused, or left out): app-r003, app-r004" in lines
    assert not [line for line in lines if line.startswith("go on")]


def test_a_planned_task_without_a_run_is_named_and_counts(tmp_path: Path) -> None:
    tasks = tuple(CampaignTask(name=name, path=str(tmp_path)) for name in ("app", "refused"))
    plan = CampaignPlan(began="20261130-101500", tasks=tasks, options=OptionValues(model="repair"))
    (tmp_path / "c").mkdir()
    save_plan(tmp_path / "c", plan, {"HOME": str(tmp_path)})
    work(get_run_folder(tmp_path / "c", plan, Rollout(tasks[0], 1)), (write_passing(TOTAL),))

    report = build_report([tmp_path / "c"])

    assert report.not_run == ("refused",)
    assert list(format_summary(report))[:2] == [
        "1 of 2 tasks solved  1 of 1 runs green",
        "no run   1 of these tasks: refused",
    ]
    assert "1 of 2 tasks solved</h1>\n<p>No run of refused" in render_page(report)


class TestCommand:
    """`jumar report`."""

    def test_lines_a_page_and_one_object(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        work(tmp_path / "runs" / "r", (write_passing(TOTAL),))
        page = tmp_path / "out.html"

        assert call(["report", str(tmp_path / "runs"), "-o", str(page)]) == 0
        assert "1 of 1 tasks solved" in capsys.readouterr().out
        assert page.read_text().startswith("<!doctype html>")
        assert call(["report", str(tmp_path / "runs"), "--json"]) == 0
        found = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert (found["solved"], found["file"], found["tasks"][0]["runs"][0]["stop"]) == (1, None, "green")

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["no-such"], "there is no no-such; name a campaign, a run, or a folder of runs"),
            (["."], "holds none"),
            (["runs", "-o", "x.txt"], "-o x.txt has no suffix .html"),
            (["runs", "-o", "runs/r/x.html"], "lies in the run"),
        ],
    )
    def test_bad_input_is_one_sentence(
        self, tmp_path: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        work(tmp_path / "runs" / "r", (write_passing(TOTAL),))
        (tmp_path / "empty").mkdir()
        named = {
            "runs": tmp_path / "runs",
            ".": tmp_path / "empty",
            "runs/r/x.html": tmp_path / "runs" / "r" / "x.html",
        }

        assert call(["report", *[str(named.get(word, word)) for word in words]]) == 2
        error = capsys.readouterr().err
        assert said in error
        assert len(error.strip().splitlines()) == 1
        assert not (tmp_path / "runs" / "r" / "x.html").exists()
