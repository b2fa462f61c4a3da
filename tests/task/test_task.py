"""A task is settled or refused before anything runs, and every refusal names the thing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jumar.core.gate.write_rules import CONFIGURATION, explain_refusal
from jumar.core.state.ratchet import Ratchet, Rule, Ties
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.errors import BadInput
from jumar.languages.gitignore_globs import compile_patterns, escape_path
from jumar.languages.python_encoding import decode_source
from jumar.task.resolve import Options, apply_options
from jumar.task.task import Task, build_write_rules, find_interpreter, freeze_settings, list_tree_files, load_task

EXAMPLE = """
[task]
name = "gcd"
instruction = "gcd recurses for ever. Make its tests pass."
[files]
editable = ["gcd.py"]
protected = ["test_gcd.py"]
[tests]
runner = "pytest"
select = ["test_gcd.py"]
timeout_seconds = 120
hidden = "hidden"
[budget]
usd = 0.50
attempts = 5
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with one program, its test and hidden ones."""
    root = tmp_path / "repo"
    (root / "hidden").mkdir(parents=True)
    (root / "gcd.py").write_text("def gcd(a, b): return a\n")
    (root / "test_gcd.py").write_text("def test_gcd(): pass\n")
    (root / "hidden" / "test_more.py").write_text("")
    return root


def loaded(folder: Path, toml: str) -> Task:
    (folder / "task.toml").write_text(toml)
    return load_task(folder)


class TestLoading:
    """What a path may be."""

    def test_a_green_may_be_believed_at_once(self, folder: Path) -> None:
        assert apply_options(loaded(folder, "[tests]\nconfirm = 0\n"), chosen()).suite.confirm == 0

    def test_tests_beside_held_out_ones_may_be_selected(self, folder: Path) -> None:
        assert loaded(folder, "[tests]\nselect = ['.']\nhidden = 'hidden'\n").hidden == folder / "hidden"

    def test_the_example_of_the_design_loads(self, folder: Path) -> None:
        task = loaded(folder, EXAMPLE)

        assert (task.name, task.root, task.budget.usd) == ("gcd", folder, 0.5)
        assert task.suite.select == ("test_gcd.py",)
        assert task.hidden == folder / "hidden"
        assert list(list_tree_files(task.root, task.withheld)) == ["gcd.py", "test_gcd.py"]

    def test_a_task_file_may_be_named_itself(self, folder: Path) -> None:
        assert loaded(folder, EXAMPLE) == load_task(folder / "task.toml")

    def test_any_repository_is_a_task(self, folder: Path) -> None:
        task = load_task(folder)
        guard = build_write_rules(freeze_settings(task, ("test_gcd.py",)))

        assert explain_refusal("gcd.py", guard) is None
        for path in ("test_gcd.py", "tests/data.txt", "conftest.py", "setup.py", "notes.md"):
            assert explain_refusal(path, guard), path

    @pytest.mark.parametrize(
        ("toml", "kept"),
        [
            ('[task]\nreference = "solution"\n', "[task] reference = 'solution'"),
            ('[tests]\nhidden = "more"\n', "[tests] hidden = 'more'"),
        ],
    )
    def test_a_folder_above_a_task_with_a_solution_is_refused(self, tmp_path: Path, toml: str, kept: str) -> None:
        out = tmp_path / "my tasks"
        for name in ("a", "b"):
            (out / name).mkdir(parents=True)
        (out / "a" / "task.toml").write_text('[task]\nname = "a"\n')
        assert load_task(out).root == out, "there is nothing to hide"
        (out / "b" / "task.toml").write_text(toml)

        with pytest.raises(BadInput) as refused:
            load_task(out)

        assert f"{out} has no task.toml, and b/ in it is a task with {kept}" in str(refused.value)
        assert str(refused.value).endswith(f"name the task itself: '{out}/b'")
        assert load_task(out, hosted=True).root == out, "an agent that works there sees it anyway"
        (out / "task.toml").write_text("")
        assert load_task(out).root == out

    def test_jumar_toml_gives_defaults_and_the_task_wins(self, folder: Path) -> None:
        (folder.parent / "jumar.toml").write_text(
            "[budget]\nusd = 9\ntokens = 7\n[prices.'a:b']\ninput = 1\noutput = 2\n"
        )
        task = loaded(folder, EXAMPLE)

        assert (task.budget.usd, task.budget.tokens) == (0.5, 7)
        assert task.prices["a:b"].output == 2

    def test_config_is_read_instead_of_jumar_toml(self, folder: Path) -> None:
        (folder.parent / "jumar.toml").write_text("[budget]\nusd = 9\n")
        other = folder.parent / "other.toml"
        other.write_text("[pipeline]\nreview = false\n")

        task = load_task(folder, other)

        assert (task.budget.usd, task.pipeline.review) == (None, False)


REFUSED = {
    "an unknown key": (
        "[tests]\ntimout_seconds = 1",
        "unknown key 'timout_seconds' in [tests]; did you mean 'timeout_seconds'?",
    ),
    "an unknown table": ("[test]\nrunner = 'pytest'", "unknown table [test] in the file; did you mean 'tests'?"),
    "a key far from all": ("[gate]\nzzz = 1", "unknown key 'zzz' in [gate]; known are verify"),
    "a key of a route": ("[routes.mid]\nmodels = 'x'", "unknown key 'models' in [routes.mid]; did you mean 'model'?"),
    "an unknown tier": ("[routes.middle]\nmodel = 'x'", "unknown table [routes.middle]"),
    "a key of a price": (
        "[prices.'a:b']\ninputs = 1",
        "unknown key 'inputs' in [prices.\"a:b\"]; did you mean 'input'?",
    ),
    "a price without output": ("[prices.'a:b']\ninput = 1", "prices.\"a:b\" lacks the key 'output'"),
    "a wrong type": ("[tests]\ntimeout_seconds = 'long'", "tests.timeout_seconds must be a number, not a string"),
    "a wrong entry": ("[files]\neditable = [1]", "files.editable (entry 1) must be a string, not a whole number"),
    "a wrong variable": ("[task]\nenv = {A = 'x', B = 1}", "task.env.B must be a string, not a whole number"),
    "a price that is none": (
        "[prices]\n'a:c' = {input = 1, output = 1}\n'a:b' = {input = 'x', output = 1}",
        'prices."a:b".input must be a number, not a string',
    ),
    "a list that is a text": ("[files]\neditable = 'a.py'", "files.editable must be a list, not a string"),
    "a table that is a text": ("tests = 'all'", "tests must be a table, not a string"),
    "a negative cap": ("[budget]\nusd = -1", "budget.usd must be zero or more, not -1"),
    "a cap that is no number": ("[budget]\nseconds = nan", "budget.seconds must be zero or more and finite, not nan"),
    "no time at all": ("[tests]\ntimeout_seconds = 0", "tests.timeout_seconds must be more than zero"),
    "broken TOML": ("[task]\nname = =", "is not valid TOML: Invalid value (at line 2, column 8)"),
    "a name that is a path": ("[task]\nname = '../up'", "the name '../up' cannot be part of a folder's name"),
    "a number beyond all": (
        f"[budget]\nattempts = {10**30}",
        "budget.attempts is out of range: at most 9007199254740992",
    ),
    "a number in [run] beyond all": (f"[run]\nturns = {10**30}", "run.turns is out of range: at most 9007199254740992"),
    "a number too long to be read": (f"[budget]\nattempts = {'9' * 5000}", "is not valid TOML"),
    "a number a float skips": (
        f"[budget]\nturns = {2**53 + 1}",
        "budget.turns is out of range: at most 90071992547409",
    ),
    "no attempts": ("[budget]\nattempts = 0", "budget.attempts must be more than zero, not 0"),
    "no turns": ("[budget]\nturns = 0", "budget.turns must be more than zero, not 0"),
    "no test runs": ("[budget]\ntest_runs = 0", "budget.test_runs must be more than zero, not 0"),
    "seconds beyond all": (
        f"[tests]\ntimeout_seconds = {10**400}",
        "tests.timeout_seconds is out of range: at most 1000000",
    ),
    "a date": ("[task]\nname = 2020-01-01", "task.name must be a string, not date"),
    "a missing reference": ("[task]\nreference = 'ref'", "task.reference = 'ref' is not in the task's folder"),
    "a reference outside": ("[task]\nreference = '..'", "task.reference = '..' is not in the task's folder"),
    "held-out tests that are seen": (
        "[tests]\nselect = ['test_gcd.py', 'hidden/test_more.py']\nhidden = 'hidden'",
        "tests.select names 'hidden/test_more.py', which lies in tests.hidden = 'hidden'",
    ),
    "a missing test file": ("[tests]\nselect = ['test_none.py::test_a']", "tests.select names 'test_none.py'"),
    "a broken glob": ("[files]\neditable = ['!']", "is not valid"),
    "a variable without a name": ("[task]\nenv = {'a=b' = 'c'}", "task.env has 'a=b'"),
}


class TestRefusals:
    """One sentence that names the thing."""

    @pytest.mark.parametrize(("toml", "said"), REFUSED.values(), ids=REFUSED)
    def test_a_task_file_is_refused_with_one_sentence(self, folder: Path, toml: str, said: str) -> None:
        with pytest.raises(BadInput) as caught:
            loaded(folder, toml)

        assert said in str(caught.value)
        assert "task.toml" in str(caught.value) or "globs" in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_a_missing_path_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match=r"there is no .*nowhere"):
            load_task(tmp_path / "nowhere")

    def test_a_file_that_is_no_task_is_named(self, folder: Path) -> None:
        with pytest.raises(BadInput, match=r"gcd\.py is no task"):
            load_task(folder / "gcd.py")

    def test_a_missing_config_is_named(self, folder: Path) -> None:
        with pytest.raises(BadInput, match=r"cannot read .*none\.toml"):
            load_task(folder, folder / "none.toml")

    def test_a_task_file_must_be_utf8(self, folder: Path) -> None:
        (folder / "task.toml").write_bytes(b'[task]\nname = "\xff"\n')

        with pytest.raises(BadInput, match=r"task\.toml is not UTF-8 \(byte 15\)"):
            load_task(folder)


class TestSources:
    """Editable Python that is named must decode."""

    @pytest.mark.parametrize(
        ("source", "said"),
        [
            (b"x = '\xe9'\n", "a.py is not UTF-8 (byte 5)"),
            (b"# coding: ascii\nx = '\xe9'\n", "a.py is not valid ascii (byte 21)"),
            (b"# coding: klingon\n", "a.py declares an encoding"),
            (b"# coding: rot13\n", "a.py declares an encoding"),
            (b"\xef\xbb\xbf# coding: latin-1\n", "a.py declares an encoding"),
        ],
    )
    def test_an_editable_source_that_does_not_decode_is_named(self, folder: Path, source: bytes, said: str) -> None:
        (folder / "a.py").write_bytes(source)
        assert load_task(folder), "what a pattern alone covers is left alone"
        (folder / "task.toml").write_text('[files]\neditable = ["a.py"]\n')

        with pytest.raises(BadInput) as caught:
            load_task(folder)
        assert said in str(caught.value)

    @pytest.mark.parametrize("source", [b"# coding: latin-1\nx = '\xe9'\n", b"\xef\xbb\xbfx = 1\n", b"", b"\0"])
    def test_what_python_can_decode_is_welcome(self, folder: Path, source: bytes) -> None:
        (folder / "a.py").write_bytes(source)

        assert load_task(folder)

    def test_only_what_may_be_edited_must_decode(self, folder: Path) -> None:
        for path in ("test_bytes.py", ".venv/lib.py", "tests/bad.py", "data.bin"):
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_bytes(b"\xff")

        assert load_task(folder)

    @given(st.text())
    def test_utf8_is_read_as_it_was_written(self, text: str) -> None:
        source = ("\n\n" + text).encode(errors="ignore")

        assert decode_source(source, "a.py") == source.decode()


PATHS = st.text(st.characters(codec="utf-8", exclude_characters="/\0\n\r"), min_size=1, max_size=12).filter(
    lambda p: p not in (".", "..")
)


class TestGuard:
    """Tests and configuration are never writable."""

    @pytest.mark.slow
    @given(PATHS, PATHS)
    @example("a b ", "a")
    @example("!a", "a")
    @example("#a", "#")
    @example("[a]*?", "aaa")
    @example("\\", "a")
    @example("a ", "a")
    @example("\x0c", "0")
    def test_a_literal_matches_its_file_alone(self, path: str, other: str) -> None:
        matches = compile_patterns([escape_path(path)])

        assert matches(path)
        assert matches(other) == (other == path)
        assert not matches(f"sub/{path}")

    @pytest.mark.slow
    @given(
        st.lists(st.sampled_from(["*", "!*", "!test_a.py", "!/test_a.py", "!conftest.py", "src/", "!pyproject.toml"]))
    )
    def test_no_glob_of_the_task_opens_its_tests(self, protected: list[str]) -> None:
        task = Task(root=Path(), name="t", editable=("*",), protected=tuple(protected))
        guard = build_write_rules(freeze_settings(task, ("test_a.py", "pkg/test_b.py")))

        for path in ("test_a.py", "pkg/test_b.py", "conftest.py", "sub/conftest.py", "pyproject.toml", "x.pth"):
            assert guard.protected(path), path

    def test_globs_have_gitignore_semantics(self) -> None:
        matches = compile_patterns(["**/*.py", "!secret.py"])

        assert matches("a.py")
        assert matches("b/c/a.py")
        assert not matches("b/secret.py")
        assert compile_patterns(CONFIGURATION)("a.egg-info/PKG-INFO")


class TestInterpreter:
    """Which Python runs the tests."""

    def test_the_flag_wins_then_the_tasks_own_then_ours(self, folder: Path) -> None:
        task = load_task(folder)
        assert find_interpreter(task) == Path(sys.executable)

        own = folder / ".venv" / "bin" / "python"
        own.parent.mkdir(parents=True)
        own.symlink_to(sys.executable)
        assert find_interpreter(task) == own
        assert find_interpreter(task, sys.executable) == Path(sys.executable)

    def test_a_flag_that_is_no_program_is_refused(self, folder: Path) -> None:
        with pytest.raises(BadInput, match=r"--python .*gcd\.py is not a program"):
            find_interpreter(load_task(folder), str(folder / "gcd.py"))


Chosen = dict[str, Any]


def offline(**more: Any) -> Chosen:
    """Fields of options of the offline model."""
    return {"model": "repair", **more}


def chosen(**more: Any) -> Options:
    """Options of the offline model."""
    return Options(**offline(**more))


CHOICES: dict[str, tuple[Chosen, str]] = {
    "model": ({"model": "gpt"}, "unknown model 'gpt'; known are repair, script:FILE"),
    "no model": ({}, "or pass --model repair"),
    "model of no provider": ({"model": "script"}, "unknown model 'script'"),
    "agent": (offline(agent="robot"), "unknown value 'robot' of --agent; known are"),
    "agent and model": (offline(agent="pipeline"), "do not go together"),
    "policy": (offline(test_policy="sometimes"), "of --test-policy; known are on_write, on_final, never"),
    "gate": (offline(gate="open"), "of --gate; known are off, refactor, strict"),
    "codemod": (offline(gate="codemod"), "of --gate; codemod mode is for one edit: pass --gate strict --allow-codemod"),
    "ratchet": (offline(ratchet="x"), "of --ratchet; known are count, identity"),
    "ties": (offline(ties="x"), "of --ties; known are keep, revert"),
    "contradiction": (offline(gate="strict", test_policy="never"), "gate strict needs test results"),
    "repair without tests": (offline(test_policy="on_final"), "the repair agent lives on test results"),
    "timeout": (offline(timeout_seconds=0), "--timeout must be more than zero seconds"),
    "test timeout": (offline(test_timeout_seconds=float("nan")), "--test-timeout must be more than zero seconds"),
    "attempts": (offline(attempts=0), "--attempts must be 1 or more"),
    "turns beyond all": (offline(turns=10**30), "--turns must be at most 9007199254740992"),
    "attempts beyond all": (offline(attempts=10**400), "--attempts must be at most 9007199254740992"),
    "usd beyond all": (offline(usd=1e300), "--budget-usd must be 0 or more and at most 9007199254740992, not 1e+300"),
    "confirm": (offline(confirm=101), "--confirm must be 0 or more and at most 100, not 101"),
    "usd": (offline(usd=-0.5), "--budget-usd must be 0 or more"),
    "seconds": (offline(seconds=float("inf")), "--seconds must be 0 or more and finite, not inf"),
    "missing test": (offline(tests=("test_no.py",)), "--test test_no.py: no such file"),
    "test outside": (offline(tests=("../x.py",)), "--test ../x.py"),
}


class TestOptions:
    """What the command line chose."""

    @pytest.mark.parametrize(("options", "said"), CHOICES.values(), ids=CHOICES)
    def test_what_cannot_work_is_refused(self, folder: Path, options: Chosen, said: str) -> None:
        with pytest.raises(BadInput) as caught:
            apply_options(load_task(folder), Options(**options))
        assert said in str(caught.value)

    def test_an_unknown_runner_is_refused(self, folder: Path) -> None:
        with pytest.raises(BadInput, match=r"unknown runner 'nose'; known are .*pytest"):
            apply_options(loaded(folder, "[tests]\nrunner = 'nose'"), chosen())

    def test_nothing_chosen_is_a_default(self, folder: Path) -> None:
        task = apply_options(load_task(folder), chosen())

        assert (task.agent, task.model, task.gate) == ("repair", "repair", Gate.OFF)
        assert (task.test_policy, task.rule) == (TestPolicy.ON_WRITE, Rule())
        assert task.budget.seconds is not None

    def test_flags_win_over_the_file(self, folder: Path) -> None:
        picked = chosen(
            attempts=2, usd=1.5, timeout_seconds=5, ratchet="identity", ties="revert", seed=7, instruction="do"
        )
        task = apply_options(loaded(folder, EXAMPLE), picked)

        assert (task.budget.attempts, task.budget.usd, task.seed, task.instruction) == (2, 1.5, 7, "do")
        assert (task.suite.timeout_seconds, task.suite.test_timeout_seconds) == (5, 5)
        assert task.rule == Rule(Ratchet.IDENTITY, Ties.REVERT)

    def test_test_narrows_the_expected_ids(self, folder: Path) -> None:
        task = loaded(folder, "[tests]\nexpected = ['test_gcd.py::test_gcd', 'test_gcd.py::test_gcdx', 'gcd.py::a']")

        assert apply_options(task, chosen(tests=("test_gcd.py",))).expected == task.expected[:2]
        assert apply_options(task, chosen(tests=("test_gcd.py::test_gcd",))).expected == task.expected[:1]
