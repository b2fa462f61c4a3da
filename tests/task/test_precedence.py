"""[run]: the order of flag, environment, task, project file and default, and what a task may not loosen."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import jumar as library
from cli.test_cli import GOOD, Called, jumar, lay
from jumar.cli.doctor.settings import resolve_run_settings
from jumar.core.state.ratchet import Ratchet, Ties
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.errors import BadInput
from jumar.models.wire.providers import PROVIDERS
from jumar.task.resolve import Options, apply_options
from jumar.task.settings.precedence import Authority, FileSettings, SettingValue, settle
from jumar.task.settings.run_settings import SETTINGS, Stricter
from jumar.task.task import Task, load_task

__all__ = ["jumar"]

FREE: dict[str, Any] = {"model": "openai:x", "price": "free"}


def laid(folder: Path, task: str = "", inside: str = "", beside: str = "") -> Path:
    """A task whose `task.toml`, own `jumar.toml` and the `jumar.toml` beside it hold these tables."""
    root = lay(folder / "in" / "repo", {**GOOD, "task.toml": task, "jumar.toml": inside})
    (folder / "in" / "jumar.toml").write_text(beside)
    return root


def settled(root: Path, **chosen: Any) -> Task:
    return apply_options(load_task(root), Options(**{**FREE, **chosen}))


def row(task: Task, name: str) -> SettingValue:
    return next(each for each in task.in_force if each.name == name)


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """No provider's key and no setting of ours is in the environment."""
    for variable in {v for p in PROVIDERS for v in p.keys}:
        monkeypatch.delenv(variable, raising=False)
    for setting in SETTINGS.values():
        monkeypatch.delenv(setting.variable, raising=False)


EVERY = """
[run]
agent = "driver"
gate = "refactor"
test_policy = "on_write"
ratchet = "identity"
ties = "revert"
attempts = 7
turns = 9
test_runs = 11
usd = 1.5
tokens = 1000
seconds = 60
confirm = 4
sandbox = "S3"
min_grade = "C"
"""


@pytest.mark.parametrize("where", ["task", "inside", "beside"])
def test_each_key_of_run_is_taken_from_task_toml_and_jumar_toml(tmp_path: Path, where: str) -> None:
    task = settled(laid(tmp_path, **{where: EVERY}))

    assert (task.agent, task.gate, task.test_policy) == ("driver", Gate.REFACTOR, TestPolicy.ON_WRITE)
    assert (task.rule.ratchet, task.rule.ties) == (Ratchet.IDENTITY, Ties.REVERT)
    budget = task.budget
    assert (budget.attempts, budget.turns, budget.test_runs, budget.usd) == (7, 9, 11, 1.5)
    assert (budget.tokens, budget.seconds, task.suite.confirm, task.sandbox, task.min_grade) == (1000, 60, 4, "S3", "C")
    assert {each.name for each in task.in_force} == set(SETTINGS)
    assert all(each.source.endswith(".toml") for each in task.in_force if each.name != "model")
    assert task.notes == ()


def test_the_order_is_flag_task_project_file_default(tmp_path: Path) -> None:
    root = laid(tmp_path, task="run.attempts = 3\n", inside="run.attempts = 4\n", beside="run.attempts = 5\n")

    assert row(settled(root, attempts=9), "attempts").value == 9
    assert row(settled(root), "attempts").value == 3
    (root / "task.toml").write_text("")
    assert row(settled(root), "attempts").value == 4
    (root / "jumar.toml").write_text("")
    assert row(settled(root), "attempts").value == 5
    (root.parent / "jumar.toml").write_text("")
    assert (row(settled(root), "attempts").value, row(settled(root), "turns").value) == (None, 40)


@pytest.mark.parametrize("name", [s.name for s in SETTINGS.values() if s.stricter is not Stricter.NEITHER])
def test_a_task_may_tighten_and_never_loosen_what_the_person_set(name: str) -> None:
    setting = SETTINGS[name]
    values: tuple[Any, ...] = setting.values or (1, 2, 50)
    for own, wish in product(values, values):
        files = (FileSettings("task.toml", own=False, values={name: wish}),
                 FileSettings("jumar.toml", own=True, values={name: own}))  # fmt: skip
        found = settle(setting, None, files)

        stricter = {"lower": wish <= own, "higher": wish >= own}.get(setting.stricter) if not setting.values else None
        tight = values.index(wish) >= values.index(own) if stricter is None else stricter
        assert found.value == (wish if tight else own), (own, wish)
        assert bool(found.overridden) is not tight
        assert found.authority is (Authority.TASK if tight else Authority.OWN)


@pytest.mark.parametrize(
    ("task", "beside", "name", "value"),
    [
        ("run.agent = 'pipeline'", "run.agent = 'driver'", "agent", "driver"),
        ("run.test_policy = 'on_write'", "run.test_policy = 'never'", "test_policy", "never"),
        ("run.agent = 'external'", "", "agent", "driver"),
        ("run.sandbox = 'S0'", "", "sandbox", "auto"),
        ("run.sandbox = 'S3'", "", "sandbox", "S3"),
        ("run.gate = 'off'", "run.gate = 'strict'", "gate", "strict"),
        ("run.gate = 'off'", "", "gate", "off"),
        ("run.agent = 'pipeline'", "run.gate = 'strict'", "agent", "driver"),
        ("run.gate = 'strict'", "run.agent = 'pipeline'", "gate", "off"),
        ("run.gate = 'strict'", "run.test_policy = 'on_final'", "gate", "off"),
        ("budget.usd = 3", "budget.usd = 2", "usd", 2),
        ("tests.confirm = 0", "run.confirm = 2", "confirm", 2),
    ],
)
def test_whose_word_counts(tmp_path: Path, task: str, beside: str, name: str, value: object) -> None:
    found = settled(laid(tmp_path, task=task, beside=beside))

    assert row(found, name).value == value
    wished = task.partition("= ")[2].strip("'")
    assert (str(value) == wished) != any(f"not {wished} of " in note and note.count("\n") == 0 for note in found.notes)


def test_a_task_s_wish_that_a_flag_overrides_is_said_in_one_line(tmp_path: Path) -> None:
    root = laid(tmp_path, task="run.gate = 'strict'\nrun.attempts = 2\n")
    notes = settled(root, agent="pipeline", attempts=4).notes

    assert notes == (
        f"gate is off (with agent pipeline of --agent), not strict of {root}/task.toml",
        f"attempts is 4 (--attempts), not 2 of {root}/task.toml",
    )


@pytest.mark.parametrize(
    ("tables", "chosen", "said"),
    [
        ("[run]\nagent = 'pipeline'\ngate = 'strict'\n", {}, "gate strict is for agents that work edit by edit"),
        ("[run]\nagent = 'repair'\nmodel = 'openai:x'\n", {"model": None, "price": None}, "do not go together"),
        ("[run]\nusd = 1\n[budget]\nusd = 2\n", {}, "[run] usd = 1 and [budget] usd = 2 differ"),
        ("[run]\nconfirm = 1\n[tests]\nconfirm = 2\n", {}, "[run] confirm = 1 and [tests] confirm = 2 differ"),
        ("[run]\nattempts = 0\n", {}, "[run] attempts in"),
        ("[run]\nattempts = 'many'\n", {}, "[run] attempts must be a whole number"),
        ("[run]\nattempts = true\n", {}, "[run] attempts must be a whole number"),
        ("[run]\nusd = inf\n", {}, "run.usd must be zero or more and finite"),
        ("[run]\nconfirm = 101\n", {}, "at most 100"),
        ("[run]\nmodel = 'script:s.jsonl'\n", {}, "only --model names"),
        ("[run]\nagent = 'host'\n", {}, "unknown value 'host' of [run] agent"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(
    tmp_path: Path, tables: str, chosen: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInput) as caught:
        settled(laid(tmp_path, task=tables), **chosen)

    assert said in str(caught.value)


def test_a_foreign_jumar_toml_does_not_hide_the_person_s(tmp_path: Path) -> None:
    root = laid(tmp_path, inside="run.usd = 100\n", beside="run.usd = 1\n")

    assert settled(root).budget.usd == 1
    assert apply_options(load_task(root, root / "jumar.toml"), Options(**FREE)).budget.usd == 100, "it was named"


def test_run_may_choose_the_model_and_repair_is_its_own_agent(tmp_path: Path) -> None:
    assert settled(laid(tmp_path, beside="run.agent = 'repair'\n"), model=None, price=None).model == "repair"
    task = settled(laid(tmp_path, beside="run.model = 'openai:y'\nrun.usd = 1\n"), model=None, price=None)
    assert (task.model, task.agent, task.gate) == ("openai:y", "driver", Gate.STRICT)


@pytest.mark.proof
def test_doctor_shows_what_is_in_force_and_from_where(
    jumar: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = laid(tmp_path, task="run.attempts = 3\nrun.gate = 'off'\n", beside="run.gate = 'strict'\n")
    environ = {"JUMAR_RUN_RATCHET": "identity", "JUMAR_RUN_BUDGET_USD": "2", "OPENAI_API_KEY": "sk-none"}
    for variable, setting in environ.items():
        monkeypatch.setenv(variable, setting)

    code, out, _ = jumar("doctor", str(root))

    assert code == 0
    rows, notes = resolve_run_settings(root, environ)
    shown = {each.name: (each.value, each.source) for each in rows}
    assert set(shown) == set(SETTINGS)
    assert shown["ratchet"] == ("identity", "JUMAR_RUN_RATCHET")
    assert shown["usd"] == (2.0, "JUMAR_RUN_BUDGET_USD")
    assert shown["attempts"] == (3, f"{root}/task.toml")
    assert shown["gate"] == ("strict", str(root.parent / "jumar.toml"))
    assert shown["ties"] == ("keep", "default")
    assert shown["model"][1] == "OPENAI_API_KEY is set"
    assert notes == (f"gate is strict ({root.parent}/jumar.toml), not off of {root}/task.toml",)
    for key, (value, source) in shown.items():
        text = "not set" if value is None else f"{value:g}" if isinstance(value, float) else value
        assert f"set   {key:<14}{text}  ({source})\n" in out
    assert f"note  {notes[0]}\n" in out


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("GATE", "open", "unknown value 'open' of JUMAR_RUN_GATE"),
        ("ATTEMPTS", "x", "not a valid int"),
        ("GAT", "off", "unknown variable JUMAR_RUN_GAT; did you mean JUMAR_RUN_GATE?"),
        ("MODEL", "repair", ""),
        ("SEED", "1", "no model is chosen"),
    ],
)
def test_doctor_says_what_would_be_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv(f"JUMAR_RUN_{name}", value)

    rows, notes = resolve_run_settings(laid(tmp_path), {})

    assert said in "".join(notes)
    assert bool(said) is bool(notes)
    assert len(rows) == (0 if name in ("GATE", "GAT", "ATTEMPTS") else len(SETTINGS))


@pytest.mark.slow
def test_score_honours_what_applies_to_it(jumar: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = laid(tmp_path, task="[run]\nagent = 'pipeline'\nconfirm = 0\nsandbox = 'S0'\n", beside="run.confirm = 1\n")
    for name in ("CONFIRM", "SANDBOX"):
        monkeypatch.delenv(f"JUMAR_SCORE_{name}", raising=False)
    monkeypatch.setenv("JUMAR_RUN_SANDBOX", "S0")

    code, out, err = jumar("score", str(root), str(root), "--json")

    scored = json.loads(out.splitlines()[-1])
    assert (code, scored["ok"], scored["sandbox"]) == (1, False, "S0")
    assert f"note: confirm is 1 ({root.parent}/jumar.toml), not 0 of {root}/task.toml\n" in err


@pytest.mark.parametrize("where", ["task", "inside", "beside"])
def test_a_file_s_agent_gives_way_to_the_model_repair_that_was_typed(tmp_path: Path, where: str) -> None:
    root = laid(tmp_path, **{where: "run.agent = 'driver'\n"})
    file = {"task": root / "task.toml", "inside": root / "jumar.toml", "beside": root.parent / "jumar.toml"}[where]
    task = settled(root, model="repair", price=None)

    assert (task.agent, task.model, task.gate) == ("repair", "repair", Gate.OFF)
    assert task.notes == (f"agent is repair (model repair of --model), not driver of {file}",)


def test_a_file_s_gate_gives_way_to_the_model_repair_that_was_typed(tmp_path: Path) -> None:
    task = settled(laid(tmp_path, beside="run.agent = 'driver'\nrun.gate = 'strict'\n"), model="repair", price=None)

    assert (task.agent, task.model, task.gate) == ("repair", "repair", Gate.OFF)
    assert len(task.notes) == 2


def test_a_host_s_agent_is_its_own(tmp_path: Path) -> None:
    root = laid(
        tmp_path, task="[run]\nagent = 'pipeline'\nmodel = 'openai:x'\ngate = 'off'\nties = 'revert'\nturns = 3\n"
    )
    task = apply_options(load_task(root), Options(agent="host", model="host", gate="strict"))

    assert (task.agent, task.model, task.gate, task.rule.ties, task.budget.turns) == (
        "host", "host", Gate.STRICT, Ties.REVERT, 3,
    )  # fmt: skip
    assert task.notes == (f"gate is strict (--gate), not off of {root}/task.toml",)


FIELDS: list[dict[str, Any]] = [
    {"test_policy": "sometimes"},
    {"gate": "open"},
    {"ratchet": "sum"},
    {"ties": "flip"},
    {"agent": "robot"},
    {"model": "acme:best"},
    {"model": "openai:"},
    {"sandbox": "S9"},
    {"profile": "holiday"},
    {"base_url": "localhost"},
    {"price": "cheap"},
    {"attempts": 0},
    {"turns": 0},
    {"test_runs": 0},
    {"usd": -1},
    {"usd": float("nan")},
    {"tokens": -1},
    {"seconds": float("inf")},
    {"confirm": 101},
    {"timeout_seconds": 0},
    {"test_timeout_seconds": float("nan")},
    {"turn_seconds": -1, "agent": "external", "agent_command": "sh"},
    {"ledger_usd": 3},
    {"ledger_usd": 0, "ledger": "l.db"},
    {"seed": "x"},
    {"probe": "yes"},
    {"tests": "test_a.py"},
    {"agent": "repair", "model": "openai:x"},
    {"agent": "pipeline", "gate": "strict"},
    {"agent": "pipeline", "text_actions": True},
    {"agent": "driver", "agent_command": "sh"},
    {"agent": "external"},
    {"agent": "external", "agent_command": "sh 'x"},
    {"agent": "external", "agent_command": " "},
    {"agent": "external", "agent_command": "sh", "agent_env": ("HOME",)},
    {"agent": "external", "agent_command": "sh", "agent_env": ("OPENAI_API_KEY",)},
    {"agent": "external", "agent_command": "sh", "model": "script:s"},
    {"agent": "external", "agent_command": "sh", "record": "r"},
    {"model": "repair", "test_policy": "on_final"},
    {"model": "repair", "price": "free"},
    {"model": "replay:r", "record": "s"},
    {"gate": "strict", "test_policy": "never"},
    {"gate": "off", "allow_refactor": True},
    {"gate": "off", "verify": "make"},
    {"gate": "strict", "verify": "make"},
    {"test_policy": "never", "model_may_run_tests": True},
    {"test_policy": "never", "ratchet": "identity"},
]


@pytest.mark.parametrize("fields", FIELDS, ids=str)
def test_an_option_that_cannot_be_is_refused_where_it_is_made(fields: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as caught:
        library.Options(**fields)

    assert "\n" not in str(caught.value)


def test_options_take_lists_and_enumerations(tmp_path: Path) -> None:
    tests: Any = ["test_app.py"]
    options = library.Options(tests=tests, gate=library.Gate.STRICT, ratchet=library.Ratchet.IDENTITY, usd=2, **FREE)

    assert (options.tests, options.gate, options.usd) == (("test_app.py",), "strict", 2.0)
    assert apply_options(load_task(lay(tmp_path, GOOD)), options).rule.ratchet is Ratchet.IDENTITY


def test_a_file_beside_the_task_in_the_same_repository_is_not_the_persons_own(tmp_path: Path) -> None:
    task = tmp_path / "tasks" / "one"
    task.mkdir(parents=True)
    (task / "test_a.py").write_text("def test_a(): pass\n")
    (task.parent / "jumar.toml").write_text('[run]\nsandbox = "S0"\n')

    assert [file.own for file in load_task(task).files] == [True]
    (tmp_path / ".git").mkdir()
    assert [file.own for file in load_task(task).files] == [False]
