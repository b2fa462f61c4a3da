"""Choosing a model: what cannot work is one sentence and exit code 2, before anything runs or is paid for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from cli.test_cli import GOOD, Called, Files, jumar, lay
from jumar.core.state.budget import Budget
from jumar.core.state.settings import Price
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.errors import BadInput
from jumar.models.wire.providers import PROVIDERS
from jumar.task.resolve import Options, apply_options
from jumar.task.task import Task, load_task

__all__ = ["jumar"]

LATE = ("--model-may-run-tests", "--test-policy")
LOCAL = ("--model", "openai:small", "--base-url", "http://127.0.0.1:9/v1")
SCRIPT: Files = {**GOOD, "s.jsonl": '{"content": "x = 1"}\n'}
MANY: Files = {**GOOD, **{f"m{n}.py": "x = 1\n" for n in range(30)}}

BAD: list[tuple[str, Files, tuple[str, ...], str]] = [
    ("no model", GOOD, (), "no model is chosen"),
    ("a provider that is none", GOOD, ("--model", "acme:best"), "unknown model 'acme:best'"),
    ("a model without a name", GOOD, ("--model", "openai:"), "unknown model"),
    ("no key", GOOD, ("--model", "anthropic:claude-haiku-5-5"), "ANTHROPIC_API_KEY"),
    ("an unknown price", GOOD, ("--model", "openai:nobody-knows-it"), "--price"),
    ("a price that is none", GOOD, (*LOCAL, "--price", "cheap"), "--price 'cheap'"),
    ("a price below zero", GOOD, (*LOCAL, "--price", "-1,2"), "--price"),
    ("a base URL that is none", GOOD, ("--model", "openai:x", "--base-url", "localhost"), "base URL"),
    ("a password in the base URL", GOOD, ("--model", "openai:x", "--base-url", "http://a:b@h/v1"), "password"),
    ("tests for a model that has none", GOOD, (*LOCAL, "--agent", "driver", *LATE, "never"), "use on_final"),
    ("tests for whole files", GOOD, (*LOCAL, "--agent", "pipeline", "--model-may-run-tests"), "--agent driver"),
    ("actions for whole files", GOOD, (*LOCAL, "--agent", "pipeline", "--text-actions"), "--agent driver"),
    ("an unknown policy for the driver", GOOD, (*LOCAL, "--agent", "driver", "--test-policy", "sometimes"), "on_final"),
    ("repair and a driver", GOOD, ("--model", "repair", "--agent", "driver"), "do not go together"),
    ("an unknown profile", GOOD, (*LOCAL, "--profile", "holiday"), "overnight"),
    ("a new ledger without a cap", GOOD, (*LOCAL, "--ledger", "l.db"), "cap"),
    ("a cap without a ledger", GOOD, (*LOCAL, "--ledger-usd", "3"), "--ledger"),
    ("a ledger of nothing", GOOD, (*LOCAL, "--ledger", "l.db", "--ledger-usd", "0"), "--ledger-usd"),
    ("a ledger that is none", {**GOOD, "l.db": "no database"}, (*LOCAL, "--ledger", "l.db"), "l.db"),
    ("no turn", GOOD, (*LOCAL, "--turns", "0"), "--turns"),
    ("no test run", GOOD, (*LOCAL, "--test-runs", "0"), "--test-runs"),
    ("money below zero", GOOD, (*LOCAL, "--budget-usd", "-1"), "--budget-usd"),
    ("a recording of a script", SCRIPT, ("--model", "script:s.jsonl", "--record", "r.jsonl"), "--record"),
    ("a recording that is there", SCRIPT, (*LOCAL, "--record", "s.jsonl"), "is there already"),
    ("no such recording", GOOD, ("--model", "replay:none.jsonl"), "none.jsonl"),
    ("a script as a recording", SCRIPT, ("--model", "replay:s.jsonl"), "s.jsonl"),
    ("too many whole files", MANY, (*LOCAL, "--agent", "pipeline"), "--agent driver"),
    ("context that is not there", {**GOOD, "task.toml": "context.reference = 'docs/a.md'\n"}, LOCAL, "docs/a.md"),
    ("an unknown key of a route", {**GOOD, "jumar.toml": "[routes.mid]\nmodle = 'x'\n"}, LOCAL, "model"),
    ("no temperature", GOOD, (*LOCAL, "--temperature", "3"), "between 0 and 2"),
    ("a route's", {**GOOD, "jumar.toml": "[routes.mid]\ntemperature = 3\n"}, LOCAL, "temperature of openai:"),
    ("a temperature for a search", GOOD, ("--model", "repair", "--temperature", "1"), "--temperature is for"),
    ("no output at all", {**GOOD, "jumar.toml": "[routes.mid]\nmax_output_tokens = 0\n"}, LOCAL, "max_output_tokens"),
]  # fmt: skip

LATE_ROWS = ("too many whole files", "a new ledger without a cap", "a ledger that is none")
"""Refused when the tests were collected, in a process of their own."""

ROWS = [pytest.param(*b[1:], id=b[0], marks=pytest.mark.slow if b[0] in LATE_ROWS else ()) for b in BAD]


@pytest.mark.parametrize(("files", "argv", "named"), ROWS)
def test_bad_choices(jumar: Called, tmp_path: Path, files: Files, argv: tuple[str, ...], named: str) -> None:
    lay(tmp_path, files)
    before = sorted(p.as_posix() for p in tmp_path.rglob("*"))

    code, out, err = jumar("run", ".", *argv)

    assert (code, out) == (2, "")
    *_, sentence = err.splitlines()
    assert sentence.startswith("jumar: ")
    assert named in sentence
    assert before == sorted(p.as_posix() for p in tmp_path.rglob("*"))


@pytest.fixture(autouse=True)
def _keyless(monkeypatch: pytest.MonkeyPatch) -> None:
    """No provider's key is set."""
    for variable in {v for p in PROVIDERS for v in p.keys}:
        monkeypatch.delenv(variable, raising=False)


def test_without_model_and_key_one_sentence_says_the_three_ways(jumar: Called, tmp_path: Path) -> None:
    lay(tmp_path, GOOD)

    code, _, err = jumar("run", ".")

    assert code == 2
    (sentence,) = err.splitlines()
    for way in ("key", "ANTHROPIC_API_KEY", "local server", "--base-url", "--model repair"):
        assert way in sentence


@pytest.fixture
def task(tmp_path: Path) -> Callable[[str], Task]:
    def made(tables: str = "") -> Task:
        return load_task(lay(tmp_path / "task", {**GOOD, "task.toml": tables}))

    return made


def test_a_key_chooses_its_provider_s_usual_models(task: Callable[[str], Task]) -> None:
    chosen = apply_options(task(""), Options(), {"ANTHROPIC_API_KEY": "sk-test"})

    assert chosen.model.startswith("anthropic:")
    assert (chosen.agent, chosen.gate) == ("driver", Gate.STRICT)
    assert chosen.chosen_routes["mid"].model == chosen.model
    assert chosen.chosen_routes["cheap"].model not in ("", chosen.model)


def test_default_limits_of_output_tokens_are_those_of_the_design(task: Callable[[str], Task]) -> None:
    tables = "[routes.frontier]\nmodel = 'anthropic:claude-opus-5-5'\n"
    routes = apply_options(task(tables), Options(model="anthropic:claude-haiku-5-5")).chosen_routes

    limits = {tier: route.max_output_tokens for tier, route in routes.items()}
    assert limits == {"cheap": 16_384, "mid": 8_192, "frontier": 16_384}


def test_a_model_by_flag_sets_the_tiers_that_no_route_names(task: Callable[[str], Task]) -> None:
    cheap = "[routes.cheap]\nmodel = 'openai:small'\nmax_output_tokens = 50\ntemperature = 0\n"
    tables = f"{cheap}[routes.frontier]\nmodel = 'openai:big'\n"
    routes = apply_options(task(tables), Options(model="openai:mine", price="1,2,0.5")).chosen_routes
    warm = apply_options(task(tables), Options(model="openai:mine", price="1,2", temperature=0.7)).chosen_routes

    assert {tier: route.model for tier, route in routes.items()} == {
        "cheap": "openai:small", "mid": "openai:mine", "frontier": "openai:big",
    }  # fmt: skip
    assert routes["cheap"].max_output_tokens == 50
    assert {tier: route.temperature for tier, route in routes.items()} == {"cheap": 0, "mid": None, "frontier": None}
    assert {route.temperature for route in warm.values()} == {0.7}
    assert routes["cheap"].price is None
    alone = apply_options(task(""), Options(model="openai:mine")).chosen_routes
    assert {tier: route.model for tier, route in alone.items()} == {"cheap": "openai:mine", "mid": "openai:mine"}
    assert routes["mid"].price == Price(input=1, output=2, cached=0.5)


def test_routes_of_the_configuration(task: Callable[[str], Task]) -> None:
    tables = (
        "[routes.mid]\nmodel = 'openai:a'\n[routes.cheap]\nmodel = 'google:b'\n"
        "[prices.'google:b']\ninput = 1.0\noutput = 2.0\n"
    )
    chosen = apply_options(task(tables), Options())

    assert (chosen.model, chosen.chosen_routes["cheap"].model) == ("openai:a", "google:b")
    assert chosen.chosen_routes["cheap"].price == Price(input=1, output=2)
    assert chosen.chosen_routes["mid"].price is None


PIPED = Options(model="openai:x", agent="pipeline")
FREE = Options(model="openai:x", agent="driver", price="free")


@pytest.mark.parametrize(
    ("tables", "options", "budget"),
    [
        ("", Options(model="repair"), Budget(attempts=20, seconds=120)),
        ("", Options(model="openai:x", agent="pipeline"), Budget(attempts=5, usd=10, seconds=8 * 3600)),
        ("", FREE, Budget(attempts=None, turns=40)),
        ("", replace(FREE, attempts=3, turns=9), Budget(attempts=3, turns=9)),
        ("", replace(PIPED, profile="workday"), Budget(attempts=5, usd=10, seconds=8 * 3600)),
        ("budget.usd = 0.5\n", replace(PIPED, profile="overnight"), Budget(usd=0.5, seconds=12 * 3600)),
        ("[budget]\nusd = 0.5\n", replace(PIPED, usd=2.0), Budget(attempts=5, usd=2.0)),
        ("", replace(PIPED, profile="workday", ledger="l.db"), Budget(attempts=5)),
        ("", Options(model="repair", profile="workday"), Budget(attempts=20, usd=10, seconds=8 * 3600)),
    ],
)  # fmt: skip
def test_budgets(task: Callable[[str], Task], tables: str, options: Options, budget: Budget) -> None:
    assert apply_options(task(tables), options).budget == budget


def test_under_never_the_model_may_not_run_tests_from_the_library_either(task: Callable[[str], Task]) -> None:
    with pytest.raises(BadInput, match="under test policy never the model sees no test result"):
        apply_options(
            task(""), Options(model="openai:x", agent="driver", test_policy="never", model_may_run_tests=True)
        )

    chosen = apply_options(task(""), Options(model="openai:x", agent="driver", test_policy="never"))
    assert chosen.test_policy is TestPolicy.NEVER


@pytest.mark.parametrize("policy", ["on_write", "on_final"])
def test_whether_the_model_may_run_tests_is_apart_from_when_they_run(task: Callable[[str], Task], policy: str) -> None:
    asked = Options(model="openai:x", agent="driver", gate="off", test_policy=policy, model_may_run_tests=True)

    assert apply_options(task(""), asked).switches.model_may_run_tests
