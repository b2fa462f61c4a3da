"""A scar rule is right about its own examples, finds nothing in comments and strings, and takes its points once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from jumar.cli.main import call
from jumar.errors import BadInput
from jumar.scorers.scars.rule import (
    EXTENSIONS,
    RuleText,
    ScarRule,
    list_examples,
    load_rules,
    load_shipped_rules,
    parse_rules,
)
from jumar.scorers.scars.sarif import build_sarif, parse_sarif
from jumar.scorers.scars.search import Finding, ScarSearch, count_points
from jumar.scorers.scars.source_files import read_source_files

RULES = load_shipped_rules()
QUOTED = {
    "python": ('x = """\n{}\n"""\n', "'''"),
    "javascript": ("x = `\n{}\n`;\n", "`"),
    "go": ("x := `\n{}\n`\n", "`"),
}
"""How text of several lines is quoted, and what must not be in it."""


def by_id(name: str) -> ScarRule:
    return next(rule for rule in RULES if rule.id == name)


def find(rule: ScarRule, path: str, text: str) -> tuple[Finding, ...]:
    return ScarSearch([rule]).search({path: text.encode()}).findings


def test_there_are_rules_for_every_language() -> None:
    assert len(RULES) >= 30
    for language in EXTENSIONS:
        assert sum(language in rule.languages for rule in RULES) >= 8, language


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_finds_its_examples_and_nothing_else(rule: ScarRule) -> None:
    search = ScarSearch([rule])

    for path, text, wanted in list_examples(rule):
        assert bool(search.search({path: text.encode()}).findings) is wanted, (path, text)


def commented(path: str, text: str) -> str:
    sign = "#" if path.endswith(".py") else "//"
    return "".join(f"{sign} {line}\n" for line in text.splitlines())


def hidden_examples() -> Iterator[tuple[ScarRule, str, str]]:
    """Every example of a code rule that must match, as a comment, and in a string where the language has long ones."""
    for rule in RULES:
        if rule.regex and rule.within is not RuleText.CODE:
            continue
        for path, text, wanted in list_examples(rule):
            if wanted:
                yield rule, path, commented(path, text)
                language = next(name for name, extension in EXTENSIONS.items() if path.endswith("." + extension))
                if language in QUOTED and QUOTED[language][1] not in text and '"""' not in text:
                    yield rule, path, QUOTED[language][0].format(text)


@pytest.mark.slow
def test_comments_and_strings_match_no_code_rule() -> None:
    hidden = list(hidden_examples())

    assert len(hidden) > 100
    assert not [(rule.id, text) for rule, path, text in hidden if find(rule, path, text)]


def test_a_rule_takes_its_points_once() -> None:
    rule, text = by_id("py-eval"), "eval(a)\neval(b); eval(c)\n"

    found = find(rule, "a.py", text)

    assert [(each.line, each.text) for each in found] == [(1, "eval(a)"), (2, "eval(b); eval(c)")]
    assert count_points([*found, *find(by_id("py-bare-except"), "a.py", "try:\n    a\nexcept:\n    b\n")]) == 3 + 2


def test_a_broken_file_is_searched_as_far_as_it_can_be_read() -> None:
    assert find(by_id("py-eval"), "a.py", "def f(:\n    x = (\n\n\neval(text)\n")
    assert find(by_id("py-eval"), "a.py", "\0\xff\neval(x)\n")
    assert not find(by_id("py-eval"), "a.txt", "eval(x)\n")


MINE = {"id": "no-print", "message": "print", "languages": ["python"], "matches": ["print(1)\n"], "clean": ["f(1)\n"]}
QUERY = '(call function: (identifier) @f (#eq? @f "print")) @scar'


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "needs either a query or a regex"),
        ({"query": QUERY, "regex": "print"}, "needs either a query or a regex"),
        ({"query": QUERY, "clean": ["print(2)\n"]}, "finds something in its clean example"),
        ({"query": QUERY, "matches": ["f(2)\n"]}, "finds nothing in its example"),
        ({"query": "(no_such_node) @scar"}, "cannot be compiled for python"),
        ({"query": "(call) @call"}, "captures no @scar"),
        ({"regex": "("}, "cannot be compiled for python"),
        ({"query": QUERY, "languages": ["cobol"]}, "has no grammar here; known are python"),
        ({"query": QUERY, "joins": ["{unit}"]}, "captures no @target"),
    ],
)
def test_a_rule_that_does_not_keep_its_word_is_refused(change: dict[str, object], said: str) -> None:
    rule = msgspec.convert({**MINE, **change}, ScarRule)

    with pytest.raises(BadInput, match="no-print") as refused:
        ScarSearch([rule])
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[rule]]\nid = 'x'\n", "is no file of rules"),
        ("rule = [", "is no file of rules"),
        (
            "[[rule]]\nid = 'x'\nmessage = 'm'\nlanguages = ['python']\nregex = 'x'\nmatches = []\nclean = ['y']\n",
            "no file",
        ),
    ],
)
def test_a_file_that_holds_no_rules_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        parse_rules(text.encode(), "mine.toml")


def test_two_rules_of_one_name_are_refused(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_bytes(msgspec.toml.encode({"rule": [{**MINE, "id": "py-eval", "query": QUERY}]}))

    with pytest.raises(BadInput, match="two scar rules are called py-eval"):
        load_rules([mine])
    assert [rule.id for rule in load_rules([mine], shipped=False)] == ["py-eval"]


def test_what_others_wrote_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("a.py", "node_modules/b.js", ".venv/c.py", "sub/d.go", "e.txt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x")
    (tmp_path / "link.py").symlink_to(tmp_path / "a.py")
    monkeypatch.chdir(tmp_path)

    assert sorted(read_source_files([Path()])) == ["a.py", "sub/d.go"]
    with pytest.raises(BadInput, match="there is no gone"):
        read_source_files([Path("gone")])


HOSTILE = {
    "brackets.py": "x=" + "[" * 100_000,
    "depth.py": "x=" + "[" * 2_000 + "]" * 2_000,
    "blocks.js": "try{}catch(e){" * 20_000 + "}" * 20_000,
    "stars.go": "package a\nvar x = " + "*" * 500_000,
    "references.rs": "fn f() {" + "&" * 500_000,
}
"""Files of which each took minutes to hours."""


@pytest.mark.slow
def test_a_file_that_would_take_hours_is_named_and_not_searched() -> None:
    files = {path: text.encode() for path, text in HOSTILE.items()}

    searched = ScarSearch(RULES).search({**files, "b.py": b"eval(x)\n"})

    assert [finding.path for finding in searched.findings] == ["b.py"]
    assert searched.left_out == tuple(HOSTILE)


@pytest.mark.slow
def test_a_file_that_takes_gigabytes_is_parsed_elsewhere_and_left_out() -> None:
    files = {"a.py": b"x = 1\n" * 1_000, "memory.py": b"/*a" * 20_000, "z.py": b"eval(x)\n" * 1_000}

    searched = ScarSearch(RULES).search(files)

    assert {finding.path for finding in searched.findings} == {"z.py"}
    assert searched.left_out == ("memory.py",)


@pytest.mark.slow
def test_many_findings_stand_on_their_own_lines() -> None:
    text = b"from a import b\n" * 500 + b"def test_a():\n    # TODO\n    mock.patch('x.y')\n" * 1_000

    searched = ScarSearch(RULES).search({"test_a.py": text})

    assert len(searched.findings) == 2_000
    assert max(finding.line for finding in searched.findings) == 3_499
    assert not searched.left_out


@pytest.mark.slow
def test_a_long_list_and_a_broken_file_are_searched() -> None:
    long = "x = [\n" + "    (1, [2], {'a': -3}),\n" * 20_000 + "]\neval(y)\n"
    broken = "def f(:\n" + "    eval(x)\n" * 5_000

    assert find(by_id("py-eval"), "a.py", long)
    assert find(by_id("py-eval"), "a.py", broken)


@pytest.mark.slow
def test_the_program_names_a_file_that_it_did_not_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.py").write_text("x=" + "[" * 100_000)
    monkeypatch.chdir(tmp_path)

    assert call(("scars", "a.py")) == 1
    assert capsys.readouterr().out.splitlines()[0].startswith("a.py: not searched: ")
    assert call(("scars", "a.py", "--json")) == 1
    assert json.loads(capsys.readouterr().out)["not_searched"] == ["a.py"]


def test_sarif_names_rules_places_and_what_stays_when_lines_move() -> None:
    first = find(by_id("py-eval"), "a b.py", "eval(x)\n")
    moved = find(by_id("py-eval"), "a b.py", "\n\neval(x)\n")

    (run,) = build_sarif(first, RULES)["runs"]
    (result,) = run["results"]

    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "py-eval" == result["ruleId"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b.py"
    assert build_sarif(moved, RULES)["runs"][0]["results"][0]["partialFingerprints"] == result["partialFingerprints"]
    (back,) = parse_sarif(json.dumps(build_sarif(first, RULES)).encode(), {"*": 3}, "jumar")
    assert msgspec.structs.replace(back, text=first[0].text) == first[0]


@pytest.mark.slow
def test_findings_of_a_real_linter_cost_what_was_said(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import os\nassert (1, 'x')\n")
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F", "--output-format", "sarif", "."],
        cwd=tmp_path, capture_output=True, check=False,
    )  # fmt: skip

    every = list(parse_sarif(done.stdout, {"*": 1, "F": 2, "F401": 5}, "ruff"))
    some = list(parse_sarif(done.stdout, {"F4": 1}, "ruff"))

    assert sorted((each.rule, each.line, each.points) for each in every) == [("F401", 1, 5), ("F631", 2, 2)]
    assert [Path(each.path).name for each in some] == ["a.py"]
    with pytest.raises(BadInput, match="ruff wrote no SARIF"):
        list(parse_sarif(b"a.py:1: F401", {}, "ruff"))


@pytest.mark.slow
class TestCommand:
    """`jumar scars`."""

    def test_lines_an_object_and_sarif(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        Path("a.py").write_text("eval(x)\n\x1b[31m\n")

        assert call(["scars", "a.py", "--sarif", "out.sarif", "--json"]) == 1

        said = capsys.readouterr().out
        told = json.loads(said.splitlines()[-1])
        assert [(f["path"], f["line"], f["rule"], f["points"]) for f in told["findings"]] == [("a.py", 1, "py-eval", 3)]
        assert told["points"] == 3
        assert json.loads(Path("out.sarif").read_text())["version"] == "2.1.0"

    def test_nothing_found_is_success(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "a.py").write_text("x = 1\n")

        assert call(["scars", str(tmp_path)]) == 0
        assert "nothing was found in 1 file by " in capsys.readouterr().out

    def test_a_place_that_is_not_there_is_named(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert call(["scars", str(tmp_path / "gone")]) == 2
        assert "name a source file, or a folder" in capsys.readouterr().err
