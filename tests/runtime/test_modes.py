"""Refactor and codemod mode: which files they open, what a verdict is of, and what a journal shows of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from core.test_guardrails import checked
from jumar.cli.main import jumar as commands
from jumar.core.gate.pure_renames import WORD, explain_impure, find_renames
from jumar.core.state import events as ev
from jumar.core.state.settings import Settings, Suite
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Gate
from jumar.corpus.export import build_corpus
from jumar.corpus.schema import encode_record
from jumar.languages.project_kinds import find_project
from jumar.runs.setup.assembly import build_guard, load_runner
from jumar.task.task import Task, list_protected
from support.processes.sandboxes import s3
from support.worlds.driver_world import both, call, ended
from support.worlds.gate_scenarios import CODEMODS, DONE, STORIES, Story, played
from support.worlds.gate_world import FILES, lying

PROJECTS = {
    "pytest": (
        ("pyproject.toml", "setup.cfg", "tox.ini"),
        ("tests/test_a.py", "tests/data.json", "conftest.py", "src/conftest.py"),
    ),
    "vitest": (
        ("package.json", "vitest.config.ts", "tsconfig.json", "yarn.lock"),
        ("src/a.test.ts", "src/__snapshots__/a.snap", "tests/help.ts"),
    ),
    "go": (("go.mod", "go.sum"), ("a_test.go", "testdata/a.txt")),
    "cargo": (("Cargo.toml", "Cargo.lock", "build.rs"), ("tests/a.rs", "benches/b.rs")),
}
"""Runner -> files that steer it, and files that are tests."""


@pytest.mark.parametrize("named", [False, True], ids=["without a task file", "where the task names its files"])
@pytest.mark.parametrize("runner", PROJECTS)
def test_refactor_mode_opens_every_file_but_tests_and_guardrails_own(runner: str, named: bool) -> None:  # noqa: FBT001
    steering, tests = PROJECTS[runner]
    kind = find_project(runner)
    editable, own = (("src/app.*",), ()) if named else (kind.sources, kind.tests)
    task = Task(root=Path("/x"), name="x", suite=Suite(runner=runner), editable=editable, protected=own)
    settings = Settings(editable=task.editable, protected=list_protected(task, tests[:1]), suite=task.suite)

    guard = build_guard(settings, load_runner(runner), (*steering, *tests))

    for path in (*steering, "README.md", "docs/new/x.md", ".github/workflows/ci.yml", "Makefile", "requirements.txt"):
        assert guard.refactorable(path), path
    for path in (*tests, ".git/config", ".jumar/x", "task.toml", "jumar.toml", "node_modules/a/index.js", "a.pyc"):
        assert not guard.refactorable(path), path
    assert all(map(guard.steering, (*steering, "Makefile")))
    assert not any(map(guard.steering, ("README.md", "docs/new/x.md", "src/app.py", "requirements.txt")))


def test_what_the_person_protects_stays_closed_and_what_commands_name_steers() -> None:
    suite = Suite(command="sh ./check.sh {ids}")
    task = Task(root=Path("/x"), name="x", protected=("pyproject.toml", "docs/"), verify="python tools/verify.py -q")
    settings = Settings(
        editable=task.editable, protected=list_protected(task, ()), suite=suite, verify="python scripts/verify.txt",
        judging=("ci/all.sh",),
    )  # fmt: skip

    guard = build_guard(settings, load_runner("pytest"), ())

    assert not guard.refactorable("pyproject.toml")
    assert not guard.refactorable("docs/a.md")
    assert guard.refactorable("setup.cfg")
    assert guard.steering("check.sh")
    assert guard.steering("scripts/verify.txt")
    assert guard.steering("ci/all.sh")


@pytest.mark.slow
def test_the_plain_run_under_the_edited_configuration_is_in_the_journal_with_its_grade(tmp_path: Path) -> None:
    made = played(
        tmp_path, STORIES["docs, new files, dependencies and configuration are edited in refactor mode, and kept"]
    )

    ended(made)

    (plain,) = made.events(ev.PlainRun)
    assert isinstance(plain, ev.PlainRun)
    assert (plain.ok, plain.paths, plain.grade, plain.passed, plain.total) == (
        True, ("pyproject.toml", "tox.ini"), "D", 5, 5,
    )  # fmt: skip
    tests = [e for e in made.events(ev.Tests) if isinstance(e, ev.Tests)][-1]
    assert tests.tree == plain.tree == made.world.replayed().tree
    assert made.world.verifier.plainly == [plain.tree]
    assert plain.tree not in made.world.verifier.asked, "a verdict is never of a candidate's own configuration"


def test_a_secret_that_a_command_writes_ends_the_run_and_nothing_of_it_stays(tmp_path: Path) -> None:
    command = call("run_command", command=f"s/return text/return '{checked('ghp_')}'/")
    turns = (both(call("set_mode", mode="codemod"), command, DONE),)
    made = played(tmp_path, Story(turns=turns, says=(), terms={"switches": CODEMODS}))

    assert ended(made) is StopReason.GUARDRAIL
    assert lying(made) == FILES


def test_a_codemod_is_an_edit_of_its_own_kind_in_the_journal(tmp_path: Path) -> None:
    made = played(tmp_path, STORIES["a pure rename in tests is kept where the person allowed it by a pattern"])

    ended(made)

    (codemod,) = made.events(ev.Codemod)
    assert isinstance(codemod, ev.Codemod)
    assert (codemod.tool, codemod.pattern, codemod.replacement) == ("replace_in_files", r"\bneg\b", "negative")
    assert codemod.paths == ("calc.py", "test_calc.py")
    assert codemod.renames == (("neg", "negative"),)
    assert made.world.verifier.tests == codemod.after, "renamed tests are the task's own from then on"
    modes = [(e.from_, e.to) for e in made.events(ev.Mode) if isinstance(e, ev.Mode)]
    assert modes == [(Gate.STRICT, Gate.CODEMOD), (Gate.CODEMOD, Gate.STRICT)]


PURE = {
    "a function": ("f.py", "def old():\n    pass\n", "from f import old\nassert old()\n"),
    "a class": ("f.ts", "export class old {}\n", "new old(); // the old one"),
    "a method": ("f.ts", "class A {\n  old(x: number) {\n  }\n}\n", "a.old(1)"),
    "a method of Go": ("f.go", "func (a *A) old(x int) int {\n", "a.old(1)"),
    "a constant": ("f.py", "old: int = 1\n", "assert f.old == 1"),
    "a module": ("pkg/old.py", "x = 1\n", "from pkg.old import x\n"),
    "a function of Rust": ("src/f.rs", "pub fn old() {}\n", "assert!(old())"),
}


@pytest.mark.parametrize("what", PURE)
def test_a_pure_rename_is_of_a_name_that_the_code_defined_and_defines_anew(what: str) -> None:
    path, code, test = PURE[what]
    renamed = find_renames(test, test.replace("old", "fresh"))
    assert renamed == {"old": "fresh"}
    suffix = path.rpartition(".")[2]
    first, after = {path: code}, {path.replace("old", "fresh"): code.replace("old", "fresh")}
    assert explain_impure(f"t.{suffix}", renamed, first, (first, after)) == ""
    assert "still defines old" in explain_impure(f"t.{suffix}", renamed, first, (first, {**after, path: code}))
    assert "does not define fresh" in explain_impure(f"t.{suffix}", renamed, first, (first, {}))
    assert "does not define old" in explain_impure(f"t.{suffix}", renamed, {}, (first, after))
    assert "has the name fresh already" in explain_impure(f"t.{suffix}", renamed, first, (first | after, after))


@pytest.mark.slow
@given(st.text("ab_1 .(=\n", max_size=40), st.sampled_from(["a", "b", "ab", "a1"]))
def test_a_rename_of_every_whole_word_is_found_and_anything_more_is_not(text: str, name: str) -> None:
    words = WORD.split(text)
    new = "".join("fresh" if word == name else word for word in words)
    assert find_renames(text, new) == ({name: "fresh"} if name in words[1::2] else {})
    assert isinstance(find_renames(text, f"{new}\n# more"), str)


REPOSITORY = {
    "calc.py": "def add(a, b):\n    return a + b\n",
    "tests/test_calc.py": "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
    "README.md": "Sums.\n",
}


def run(folder: Path, script: list[dict[str, object]], *words: str) -> tuple[dict[str, object], Path]:
    """`jumar run` on a small repository, whose model answers *script*; its result and the repository."""
    for path, text in REPOSITORY.items():
        (folder / "repo" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "repo" / path).write_text(text)
    lines = [{"tool_calls": [{"name": n, "arguments": a} for n, a in turn.items()]} for turn in script]
    (folder / "script.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    model = f"script:{folder / 'script.jsonl'}"
    usual = () if "--confirm" in words else ("--confirm", "0")
    runs = ("--runs", str(folder / "runs"), "--sandbox", "S0", *usual, "--json", "-q", "--apply")
    said = jumar("run", str(folder / "repo"), "--agent", "driver", "--model", model, *runs, *words)
    return said, folder / "repo"


def jumar(*words: str) -> dict[str, object]:
    """The object that the command line with *words* prints."""
    done = CliRunner().invoke(commands, words, standalone_mode=False)
    assert done.stdout, (done.stderr, done.exception)
    said: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return said


@pytest.mark.slow
def test_docs_and_configuration_of_a_plain_repository_are_edited_in_refactor_mode_and_applied(tmp_path: Path) -> None:
    edited = '[project]\nname = "calc"\nversion = "2"\n\n[tool.pytest.ini_options]\npythonpath = ["."]\n'
    said, repo = run(
        tmp_path,
        [
            {"write_file": {"path": "pyproject.toml", "text": "[tool.pytest.ini_options]\naddopts = '-k nothing'\n"}},
            {"final": {"message": "done"}},
            {"write_file": {"path": "pyproject.toml", "text": edited}},
            {"write_file": {"path": "docs/calc.md", "text": "add(a, b)\n"}},
            {"final": {"message": "done"}},
        ],
        *("--gate", "refactor", "-i", "describe it"),
    )
    assert (said["stop"], said["exit"]) == ("green", 0)
    assert (repo / "pyproject.toml").read_text() == edited
    assert (repo / "docs/calc.md").is_file()
    shown = Path(str(said["events"])).read_text()
    assert '"type":"plain_run"' in shown
    assert "with pyproject.toml as edited, tests/test_calc.py::test_add came out differently" in shown


@pytest.mark.proof
def test_a_real_command_renames_over_many_files_and_only_as_a_whole(tmp_path: Path) -> None:
    s3()  # which skips where no bubblewrap can confine commands
    script: list[dict[str, object]] = [
        {"set_mode": {"mode": "codemod"}, "run_command": {"command": "sed -i 's/add/plus/g' calc.py README.md"}},
        {"set_mode": {"mode": "codemod"}},
        {"run_command": {"command": r"sed -i 's/\badd\b/plus/g' calc.py tests/*.py && echo done > NOTES.md"}},
        {"final": {"message": "done"}},
    ]
    words = ("--allow-codemod", "--codemod-renames", "tests/**", "-i", "call it plus", "--confirm", "1")
    said, repo = run(tmp_path, script, *words)
    assert (said["stop"], said["passed"]) == ("green", 1)
    assert (repo / "calc.py").read_text() == REPOSITORY["calc.py"].replace("add", "plus")
    assert "assert plus(1, 2)" in (repo / "tests/test_calc.py").read_text()
    assert (repo / "README.md").read_text() == REPOSITORY["README.md"]
    journal = Path(str(said["events"])).read_text()
    assert journal.count('"type":"codemod"') == 2
    assert "a codemod keeps every outcome" in journal

    (record,) = build_corpus([tmp_path / "runs"]).records
    assert (record.kind, record.tests, record.codemod.tool) == ("codemod", (), "run_command")
    assert record.codemod.command.startswith("sed -i")
    assert record.codemod.renames == '{"add": "plus"}'
    assert [file.path for file in record.edit.files] == ["NOTES.md", "calc.py", "tests/test_calc.py"]
    assert (record.red[0].passed, record.green.passed) == (1, 1)
    (tmp_path / "corpus.jsonl").write_bytes(encode_record(record))
    replay = ("corpus", "replay", str(tmp_path / "corpus.jsonl"), "--runs", str(tmp_path / "runs"))
    assert jumar(*replay, "--sandbox", "S0", "--json", "-q")["reproduced"] == 1
