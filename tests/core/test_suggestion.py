"""An unknown word is refused with the nearest known one, and with none where none is near."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.test_cli import GOOD, Called, Files, jumar, lay
from jumar.core.prompts.suggestion import build_suggestion, find_nearest
from jumar.errors import BadInput
from jumar.task.settings.run_settings import SETTINGS
from jumar.task.settings.task_file import TaskFile, parse
from jumar.task.task import load_task

__all__ = ["jumar"]

TESTS = ("runner", "command", "report", "select", "timeout_seconds", "test_timeout_seconds", "verify_timeout_seconds",
         "hidden", "confirm", "expected", "command_for")  # fmt: skip

NEAR = [
    ("timout_seconds", TESTS, "timeout_seconds"),
    ("timeout", TESTS, "timeout_seconds"),
    ("Runner", TESTS, "runner"),
    ("test-timeout-seconds", TESTS, "test_timeout_seconds"),
    ("slect", TESTS, "select"),
    ("expect", TESTS, "expected"),
    ("max_attempts", SETTINGS, "attempts"),
    ("budget_usd", SETTINGS, "usd"),
    ("sandbx", SETTINGS, "sandbox"),
    ("middle", ("cheap", "mid", "frontier"), "mid"),
    ("strikt", ("off", "refactor", "strict"), "strict"),
    ("s3", ("S0", "S1", "S2", "auto", "S3"), "S3"),
    ("zzz", TESTS, ""),
    ("x", TESTS, ""),
    ("", TESTS, ""),
    ("nose", ("cargo", "go", "jest", "junit", "pytest", "vitest"), ""),
    ("holiday", ("workday", "overnight"), ""),
]  # fmt: skip


@pytest.mark.parametrize(("word", "known", "expected"), NEAR)
def test_did_you_mean_offers_the_nearest_known_key(word: str, known: tuple[str, ...], expected: str) -> None:
    assert find_nearest(word, known) == expected


@pytest.mark.slow
@settings(deadline=None)
@given(st.sampled_from(TESTS), st.data())
def test_one_typing_error_in_a_key_is_always_understood(key: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(key) - 1))
    wrong = data.draw(
        st.sampled_from((key[:at] + key[at + 1 :], key[:at] + "q" + key[at:], key[:at] + "q" + key[at + 1 :]))
    )

    assert find_nearest(wrong, TESTS) == key


@pytest.mark.slow
@settings(deadline=None)
@given(st.text(), st.lists(st.text(min_size=1), unique=True))
def test_what_is_offered_is_known(word: str, known: list[str]) -> None:
    assert find_nearest(word, known) in (*known, "")
    assert all(each in build_suggestion(word, known) for each in known)


TABLES: list[tuple[dict[str, object], str]] = [
    ({"task": {"select": ["a"]}}, "unknown key 'select' in [task]; did you mean 'select' in [tests]?"),
    ({"task": {"editable": ["a"]}}, "unknown key 'editable' in [task]; did you mean 'editable' in [files]?"),
    ({"tests": {"gate": "strict"}}, "unknown key 'gate' in [tests]; did you mean 'gate' in [run]?"),
    ({"task": {"timout": 3}}, "unknown key 'timout' in [task]; did you mean 'timeout_seconds' in [tests]?"),
    ({"select": ["a"]}, "unknown key 'select' in the file; did you mean 'select' in [tests]?"),
    ({"gate": "off"}, "'gate' stands in no table; did you mean 'gate' in [run]?"),
    ({"attempts": 3}, "'attempts' stands in no table; did you mean 'attempts' in [run]?"),
    ({"runs": {"gate": "off"}}, "unknown table [runs] in the file; did you mean 'run'?"),
    ({"run": {"gat": "off"}}, "unknown key 'gat' in [run]; did you mean 'gate'?"),
    ({"run": {"max_output_tokens": 1}}, "unknown key 'max_output_tokens' in [run]; did you mean 'tokens'?"),
    ({"budget": {"confirm": 1}}, "unknown key 'confirm' in [budget]; did you mean 'confirm' in [tests]?"),
    ({"routes": {"cheap": {"modell": "x"}}}, "unknown key 'modell' in [routes.cheap]; did you mean 'model'?"),
    ({"prices": {"a:b": {"inputs": 1}}}, "unknown key 'inputs' in [prices.\"a:b\"]; did you mean 'input'?"),
    ({"run": {"agent_command": "sh"}}, "[run] agent_command is no key of a file; pass --agent-command"),
    ({"run": {"allow_unmetered": True}}, "[run] allow_unmetered is no key of a file; pass --allow-unmetered"),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "said"), TABLES)
def test_an_unknown_key_is_found_in_whichever_table_it_belongs_to(raw: dict[str, object], said: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse(raw, "task.toml")

    assert str(caught.value).startswith(f"task.toml: {said}")


def test_every_key_of_every_table_is_known_where_it_stands() -> None:
    assert parse(
        {"run": {"gate": "off"}, "routes": {"mid": {"model": "a:b"}}, "task": {"env": {"A": "b"}}}, "t"
    ) == TaskFile(
        run={"gate": "off"},
        routes=parse({"routes": {"mid": {"model": "a:b"}}}, "t").routes,
        task=parse({"task": {"env": {"A": "b"}}}, "t").task,
    )


WORDS: list[tuple[str, Files, tuple[str, ...], str]] = [
    ("an agent", GOOD, ("run", ".", "--agent", "drver"), "did you mean 'driver'?"),
    ("a gate", GOOD, ("run", ".", "--gate", "stict"), "did you mean 'strict'?"),
    ("a policy", GOOD, ("run", ".", "--test-policy", "on-write"), "did you mean 'on_write'?"),
    ("a provider", GOOD, ("run", ".", "--model", "opnai:gpt"), "did you mean 'openai'?"),
    ("a model of ours", GOOD, ("run", ".", "--model", "repiar"), "did you mean 'repair'?"),
    ("a profile", GOOD, ("run", ".", "--model", "repair", "--profile", "overnigt"), "did you mean 'overnight'?"),
    ("a tier", GOOD, ("run", ".", "--model", "repair", "--sandbox", "s3"), "did you mean 'S3'?"),
    ("a command", GOOD, ("dotcor",), "did you mean 'doctor'?"),
    ("a runner", {**GOOD, "task.toml": "tests.runner = 'pytset'\n"}, ("run", ".", "--model", "repair"), "'pytest'?"),
    ("a gate of a file", {**GOOD, "task.toml": "run.gate = 'strickt'\n"}, ("run", "."), "did you mean 'strict'?"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "argv", "said"), [word[1:] for word in WORDS], ids=[word[0] for word in WORDS])
def test_an_unknown_value_is_answered_with_the_nearest(
    jumar: Called, tmp_path: Path, files: Files, argv: tuple[str, ...], said: str
) -> None:
    lay(tmp_path, files)

    code, _, err = jumar(*argv)

    assert (code, err.count("\n")) == (2, 1)
    assert said in err
    assert "known are" in err


def test_a_file_without_unknown_keys_loads(tmp_path: Path) -> None:
    assert load_task(lay(tmp_path, {**GOOD, "task.toml": "[run]\ngate = 'strict'\nusd = 1\n"})).files[0].own is False
