"""The pure rules of a campaign: which tasks, in which order, what goes on and what ends."""

from __future__ import annotations

import time
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from jumar.campaigns.create import CampaignBudget, CampaignOrder, try_machine
from jumar.campaigns.find_tasks import find_tasks
from jumar.campaigns.messages import RolloutBroken, RolloutEnded, RolloutRefused, RolloutStopped
from jumar.campaigns.plan import CampaignPlan, CampaignTask, Rollout, build_task, list_rollouts, load_plan
from jumar.campaigns.schedule import LOSSES, Schedule
from jumar.campaigns.standing import Progress, Standing
from jumar.campaigns.summary import format_table, summarise
from jumar.cli.campaign_session import read_deadline
from jumar.core.state.stop import StopReason
from jumar.errors import BadInput
from jumar.runs.setup.marks import Trust
from jumar.runs.setup.result import BestTree, Result
from jumar.task.option_values import OptionValues
from support.worlds.rollout_world import begin_campaign

TASKS = (CampaignTask("a", "/a"), CampaignTask("b", "/b"))
PLAN = CampaignPlan(began="20261123-101500", tasks=TASKS, rollouts=3, options=OptionValues(model="repair"), retries=1)


def ended(name: str, stop: StopReason = StopReason.FINAL, passed: int = 1, why: str = "") -> RolloutEnded:
    return RolloutEnded(name, result(stop, passed, why))


def result(stop: StopReason, passed: int = 1, why: str = "") -> Result:
    return Result(
        run="r", task="t", stop=stop, exit=1, passed=passed, failed=0, errors=0, total=2, attempts=1, usd=0.25,
        tokens=5, test_runs=1, baseline_runs=0, executions=1, seconds=1.0, tree="", best=BestTree(passed, 2),
        events="", why=why,
    )  # fmt: skip


def taken(schedule: Schedule) -> list[str]:
    names = []
    while (name := schedule.take()) is not None:
        names.append(name)
    return names


def test_every_task_has_its_first_rollout_before_any_has_its_second() -> None:
    assert taken(Schedule(PLAN)) == ["a-r001", "b-r001", "a-r002", "b-r002", "a-r003", "b-r003"]


def test_what_was_begun_goes_on_first_and_what_has_ended_does_not() -> None:
    known = [
        (Rollout(TASKS[0], 1), Standing(Progress.ENDED, result(StopReason.GREEN))),
        (Rollout(TASKS[1], 2), Standing(Progress.OPEN, result(StopReason.INTERRUPTED))),
        (Rollout(TASKS[1], 1), Standing(Progress.FAULT, result(StopReason.INFRA), faults=2)),
        (Rollout(TASKS[0], 2), Standing(Progress.FAULT, result(StopReason.INFRA), faults=1)),
    ]
    schedule = Schedule(PLAN, known)

    assert {name: end.stop for name, end in schedule.ended.items()} == {"a-r001": "green", "b-r001": "infra"}
    assert taken(schedule) == ["a-r002", "b-r002", "a-r003", "b-r003"]


def test_a_fault_is_retried_with_a_bound_and_ends_as_one() -> None:
    schedule = Schedule(PLAN)
    schedule.take()

    assert schedule.handle(ended("a-r001", StopReason.INFRA)), "it is paused"
    assert "a-r001" not in taken(schedule)
    schedule.wake("a-r001")
    assert taken(schedule) == ["a-r001"]
    assert not schedule.handle(RolloutBroken("a-r001", "disk full"))
    assert (schedule.ended["a-r001"].stop, schedule.ended["a-r001"].why) == ("infra", "disk full")


def test_a_limit_of_the_provider_is_waited_for_however_often() -> None:
    schedule = Schedule(PLAN)
    for _ in range(PLAN.retries + 3):
        assert schedule.take() == "a-r001"
        assert schedule.handle(replace(ended("a-r001", StopReason.INFRA), limit_seconds=0.0))
        while schedule.take():
            pass
        schedule.wake("a-r001")

    assert schedule.count_faults("a-r001") == 0
    schedule.close()
    assert schedule.ended["a-r001"].stop == "interrupted", "it can go on"
    standing = Standing(Progress.FAULT, ended("a-r001", StopReason.INFRA).result, limit_seconds=0.0)
    assert "a-r001" in taken(Schedule(PLAN, [(Rollout(TASKS[0], 1), standing)]))


def test_a_process_that_dies_again_and_again_ends_its_rollout_as_a_fault() -> None:
    schedule = Schedule(PLAN)
    for _ in range(LOSSES):
        assert schedule.take() == "a-r001"
        schedule.lose("a-r001")

    assert schedule.ended["a-r001"].stop == "infra"


def test_a_spent_ledger_begins_nothing_more() -> None:
    schedule = Schedule(PLAN)
    schedule.take()
    schedule.handle(ended("a-r001", StopReason.BUDGET, why="the next call could pass the cap on usd of the ledger"))

    assert (schedule.take(), schedule.is_over) == (None, True)
    schedule.close()
    assert [end.stop for end in schedule.ended.values()] == ["budget", *["not_begun"] * 5]
    known = [(Rollout(TASKS[0], 1), Standing(Progress.ENDED, schedule.ended["a-r001"].result))]
    assert Schedule(PLAN, known).is_over, "nor does the next session"


def test_a_spent_ledger_is_the_exit_code_whatever_is_green_already() -> None:
    schedule = Schedule(PLAN)
    green = [schedule.take(), schedule.take()]
    for name in filter(None, green):
        schedule.handle(ended(name, StopReason.GREEN))
    schedule.take()
    schedule.handle(ended("a-r002", StopReason.BUDGET, why="the next call could pass the cap on usd of the ledger"))
    ends = tuple(schedule.ended.values())

    told = summarise("c", ends, "")
    assert (told.solved, told.tasks, told.spent, told.exit) == (2, 2, True, 3)
    assert summarise("c", ends[:2], "").exit == 0
    assert summarise("c", ends, "a signal").exit == 130


def test_a_cap_of_one_run_stops_no_other() -> None:
    schedule = Schedule(PLAN)
    schedule.take()
    schedule.handle(ended("a-r001", StopReason.BUDGET, why="the next call could pass the cap on usd"))

    assert schedule.take() == "b-r001"


@pytest.mark.parametrize(("scores", "begun"), [((1, 1), False), ((1, 2), True), ((2, 2), False)])
def test_a_task_that_gets_no_further_is_left(scores: tuple[int, int], begun: bool) -> None:  # noqa: FBT001  a table
    schedule = Schedule(replace(PLAN, tasks=TASKS[:1], patience=1))
    for number, passed in enumerate(scores, 1):
        assert schedule.take() == f"a-r00{number}"
        schedule.handle(ended(f"a-r00{number}", passed=passed))

    assert (schedule.take() is not None) is begun
    assert begun or schedule.ended["a-r003"].stop == "plateau"


def test_a_refused_rollout_and_a_stopped_one() -> None:
    schedule = Schedule(replace(PLAN, rollouts=1))
    taken(schedule)
    schedule.handle(RolloutRefused("a-r001", "no tests"))
    schedule.handle(RolloutStopped("b-r001"))
    schedule.close()

    ends = tuple(schedule.ended.values())
    assert [(end.stop, end.why) for end in ends] == [("refused", "no tests"), ("interrupted", "")]
    assert list(format_table(ends)) == [
        "a  0 of 1 green  best nothing was run  $0.0000  (1 refused)",
        "   a-r001: no tests",
        "b  0 of 1 green  best nothing was run  $0.0000  (1 interrupted)",
    ]


def test_the_summary_adds_up_and_its_exit_code_says_how_it_ended() -> None:
    schedule = Schedule(replace(PLAN, rollouts=1))
    taken(schedule)
    schedule.handle(ended("a-r001", StopReason.GREEN, 2))
    schedule.handle(replace(ended("b-r001"), cached=1))
    ends = tuple(schedule.ended.values())

    summary = summarise("c", ends, "")

    assert (summary.usd, summary.tokens, summary.test_runs, summary.verdicts_cached) == (0.5, 10, 2, 1)
    assert (summary.by_stop, summary.solved, summary.tasks) == ({"green": 1, "final": 1}, 1, 2)
    assert [run["rollout"] for run in summary.runs] == ["a-r001", "b-r001"]
    assert (summary.exit, summarise("c", ends[:1], "").exit, summarise("c", ends, "a signal").exit) == (1, 0, 130)


class TestFindingTasks:
    """Words on the command line become tasks with names of their own."""

    @pytest.fixture(autouse=True)
    def _here(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        for name in ("tasks/gcd", "tasks/sieve", "other/gcd"):
            Path(name).mkdir(parents=True)
        Path("tasks/readme.txt").touch()
        Path("tasks/gcd/task.toml").touch()

    def test_folders_globs_task_files_and_lists(self) -> None:
        Path("list.jsonl").write_text('{"path": "other/gcd"}\n\n{"path": "tasks/sieve", "name": "primes"}\n')

        found = find_tasks(["tasks/gcd/task.toml", "list.jsonl"])

        assert [(t.name, Path(t.path).relative_to(Path.cwd()).as_posix()) for t in found] == [
            ("gcd", "tasks/gcd/task.toml"), ("gcd-2", "other/gcd"), ("primes", "tasks/sieve"),
        ]  # fmt: skip
        assert [t.name for t in find_tasks(["tasks/*"])] == ["gcd", "sieve"]

    @pytest.mark.parametrize(
        ("words", "why"),
        [
            ((), "no task is named"),
            (("nowhere",), "no task nowhere"),
            (("nowhere/*",), "matches no folder"),
            (("tasks/gcd", "tasks/*"), "named 2 times"),
            (("bad.jsonl",), r"bad\.jsonl:1"),
            (("gone.jsonl",), r"gone\.jsonl:1: there is no task"),
            (("empty.jsonl",), r"empty\.jsonl is empty"),
        ],
    )
    def test_a_word_that_names_nothing_is_refused(self, words: tuple[str, ...], why: str) -> None:
        Path("bad.jsonl").write_text('{"paths": "x"}\n')
        Path("gone.jsonl").write_text('{"path": "x"}\n')
        Path("empty.jsonl").write_text("\n")

        with pytest.raises(BadInput, match=why):
            find_tasks(words)


@pytest.mark.parametrize(
    ("text", "seconds"), [("6s", 6), ("90m", 5400), ("8h", 28_800), ("1d", 86_400), ("0.5h", 1800)]
)
def test_a_deadline_is_a_duration(text: str, seconds: float) -> None:
    assert read_deadline(text, 1000.0) == 1000.0 + seconds


def test_or_the_next_time_of_day() -> None:
    now = time.mktime((2026, 11, 23, 9, 30, 0, 0, 0, -1))

    assert [read_deadline(text, now) - now for text in ("09:45", "9:15")] == [900, 86_400 - 900]
    with pytest.raises(BadInput, match="90m, 8h, 1d"):
        read_deadline("soon", now)


class TestPlan:
    """A plan is written once, and believed if this user wrote it."""

    @pytest.fixture
    def task(self, tmp_path: Path) -> CampaignTask:
        folder = tmp_path / "task"
        folder.mkdir()
        (folder / "app.py").write_text("ONE = 0\n")
        (folder / "test_app.py").write_text("from app import ONE\n\n\ndef test_one():\n    assert ONE == 1\n")
        return CampaignTask("task", str(folder))

    def test_comes_back_as_it_was_and_gives_each_rollout_its_seed_and_its_share(
        self, tmp_path: Path, task: CampaignTask
    ) -> None:
        environ = {"XDG_STATE_HOME": str(tmp_path / "state")}
        options = OptionValues(model=f"script:{tmp_path}/{{task}}-{{rollout}}.jsonl", seed=7, sandbox="S0")
        (tmp_path / "task-1.jsonl").touch()
        (tmp_path / "task-3.jsonl").touch()
        budget = CampaignBudget(usd=4.0, task_usd=3.0, run_tokens=90)
        order = CampaignOrder(tasks=(task,), options=options, budget=budget, rollouts=3)

        plan = begin_campaign(tmp_path / "c", order, environ)
        third = build_task(tmp_path / "c", plan, list_rollouts(plan)[2], environ)

        assert load_plan(tmp_path / "c", Trust(environ)) == plan
        assert (third.seed, third.budget.usd, third.budget.tokens, third.unattended) == (9, 1.0, 90, True)
        assert third.model == f"script:{tmp_path}/task-3.jsonl"
        assert (third.test_policy, third.gate, third.ledger) == ("on_final", "off", tmp_path / "c" / "ledger.db")

    def test_the_temperatures_take_turns(self, tmp_path: Path, task: CampaignTask) -> None:
        options = OptionValues(model="openai:tiny", base_url="http://127.0.0.1:9/v1", sandbox="S0")
        order = CampaignOrder(tasks=(task,), options=options, rollouts=3, temperatures=(0.0, 0.8))

        plan = begin_campaign(tmp_path / "c", order, {})
        built = [build_task(tmp_path / "c", plan, rollout, {}) for rollout in list_rollouts(plan)]

        assert [task.chosen_routes["mid"].temperature for task in built] == [0.0, 0.8, 0.0]
        repair = replace(order, options=OptionValues(model="repair"))
        with pytest.raises(BadInput, match="--temperature is for a provider's model"):
            begin_campaign(tmp_path / "d", repair, {})

    def test_a_campaign_within_its_task_is_no_part_of_the_task(self, task: CampaignTask) -> None:
        order = CampaignOrder(tasks=(task,), options=OptionValues(model="repair"))

        plan = begin_campaign(Path(task.path) / "night", order, {})
        built = build_task(Path(task.path) / "night", plan, list_rollouts(plan)[0], {})

        assert "night/" in [line.lstrip("/") for line in built.withheld]

    def test_of_somebody_else_or_changed_by_them_is_not_believed(self, tmp_path: Path, task: CampaignTask) -> None:
        environ = {"XDG_STATE_HOME": str(tmp_path / "state")}
        options = OptionValues(model="repair")
        begin_campaign(tmp_path / "c", CampaignOrder(tasks=(task,), options=options), environ)
        plan = tmp_path / "c" / "campaign.json"

        with pytest.raises(BadInput, match="you did not begin the campaign"):
            load_plan(tmp_path / "c", Trust({"XDG_STATE_HOME": str(tmp_path / "other")}))
        plan.write_text(plan.read_text().replace('"rollouts":1', '"rollouts":2'))
        with pytest.raises(BadInput, match="you did not begin the campaign"):
            load_plan(tmp_path / "c", Trust(environ))
        with pytest.raises(BadInput, match="is there already"):
            begin_campaign(tmp_path / "c", CampaignOrder(tasks=(task,), options=options), environ)

    @pytest.mark.parametrize(
        ("options", "why"),
        [
            (OptionValues(model="repair", test_policy="never"), "task: the repair agent lives on test results"),
            (OptionValues(model="nobody:x"), "task: unknown model"),
            (OptionValues(model="script:/no/such/file"), "task: .*/no/such/file"),
            (OptionValues(model="repair", python="/no/python"), "task: --python /no/python is not a program"),
            (OptionValues(model="repair", test_command="make"), "task: the repair agent needs tests"),
            (OptionValues(model="openai:no-such"), "task: nobody knows what openai:no-such costs"),
        ],
    )
    def test_that_cannot_work_is_refused_before_anything_is_made(
        self, tmp_path: Path, task: CampaignTask, options: OptionValues, why: str
    ) -> None:
        with pytest.raises(BadInput, match=why):
            begin_campaign(tmp_path / "c", CampaignOrder(tasks=(task,), options=options), {})
        assert not (tmp_path / "c").exists()

    @pytest.mark.parametrize(
        ("toml", "options", "why"),
        [
            ("hidden = 'hidden'", OptionValues(model="repair", confirm=0), "task: .*--confirm 0 has none"),
            ("runner = 'go'", OptionValues(model="host", probe=True), "task: --probe mutates Python .*, and go runs"),
        ],
    )
    def test_whose_task_does_not_fit_its_options_is_refused_before_the_others_are_paid(
        self, tmp_path: Path, task: CampaignTask, toml: str, options: OptionValues, why: str
    ) -> None:
        (Path(task.path) / "hidden").mkdir()
        (Path(task.path) / "task.toml").write_text(f"[tests]\n{toml}\n")

        with pytest.raises(BadInput, match=why):
            begin_campaign(tmp_path / "c", CampaignOrder(tasks=(task,), options=options), {})

    def test_whose_runner_is_not_here_is_refused_before_the_others_are_paid(
        self, tmp_path: Path, task: CampaignTask
    ) -> None:
        (Path(task.path) / "task.toml").write_text("[tests]\nrunner = 'cargo'\n")
        order = CampaignOrder(tasks=(task,), options=OptionValues(model="host"))
        environ = {"PATH": str(tmp_path)}

        with pytest.raises(BadInput, match="task: the runner cargo needs cargo"):
            anyio.run(try_machine, tmp_path / "c", begin_campaign(tmp_path / "c", order, {}), environ, print)

    @pytest.mark.parametrize("name", ["usd", "tokens", "task_usd", "run_usd", "run_tokens"])
    def test_a_cap_of_nothing_is_refused(self, name: str) -> None:
        with pytest.raises(BadInput, match="must be more than 0"):
            CampaignBudget(**{name: 0})
