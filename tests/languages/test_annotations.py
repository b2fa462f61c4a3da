"""A comment names a test: a real comment, right above it. A look-alike is none, two of a kind are an error."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Broken, Ended, Outcome, Report, TestResult
from jumar.errors import BadInput
from jumar.languages.test_annotations import (
    Aliases,
    collect_aliases,
    find_known_sites,
    find_test_files,
    is_slug,
    read_annotations,
)
from jumar.ports import Site
from jumar.runners.pytest import PytestRunner
from jumar.verify.naming.test_names import IdMapping, map_collected
from support.judging.real_verifier import Court

RUNNER = PytestRunner()

PYTHON = '''
"""
# jumar: test-id=in-a-docstring
"""
TEXT = """
# jumar: test-id=in-a-string"""

# jumar: test-id=first
def test_one(): pass

# jumar: test-id=behind-two-lines
# another comment

@decorated
@twice(
    """# jumar: test-id=in-a-decorator"""
)
def test_two(): pass

class TestIt:
    # jumar: test-id=in.a_class
    def test_three(self):
        # a comment that says jumar: test-id=only-in-passing
        "# jumar: test-id=in-the-body"

def test_plain(): pass
'''

SCRIPT = """
const text = `
// jumar: test-id=in-a-template`
// jumar: test-id=first
test('one', () => { '// jumar: test-id=in-a-string' })
/* jumar: test-id=block */
test('two', () => {})
/**
 * Says what it tests.
 * jumar: test-id=in-a-doc-block
 */
test('three', () => {})
"""

GO = """package it

var text = `
// jumar: test-id=in-a-raw-string`

// jumar: test-id=first
func TestOne(t *testing.T) {}

/* jumar: test-id=block */
func TestTwo(t *testing.T) {}
"""

RUST = """
const TEXT: &str = r#"
// jumar: test-id=in-a-raw-string"#;

// jumar: test-id=first
#[test]
fn one() {}

/// jumar: test-id=doc
#[test]
#[ignore]
fn two() {}

/* /* nested */ */
/* jumar: test-id=block */
#[test]
fn three() {}
"""


def _at(source: str, *starts: str) -> tuple[Site, ...]:
    """Sites called 1, 2, ... that begin at the lines with these texts."""
    lines = source.splitlines()
    found = [next(n for n, line in enumerate(lines, 1) if start in line) for start in starts]
    return tuple(Site(f"t::{n}", line, line) for n, line in enumerate(found, 1))


def test_annotations_of_python_are_comments_and_nothing_else() -> None:
    source = PYTHON.encode()

    assert read_annotations("t.py", source, RUNNER.sites("t.py", source)) == {
        "t.py::test_one": "first",
        "t.py::test_two": "behind-two-lines",
        "t.py::TestIt::test_three": "in.a_class",
    }


@pytest.mark.parametrize(
    ("path", "source", "starts", "slugs"),
    [
        ("t.js", SCRIPT, ("test('one'", "test('two'", "test('three'"), ["first", "block", "in-a-doc-block"]),
        ("t.tsx", SCRIPT + "const x = <p>// jumar: test-id=in-jsx</p>\n", ("test('one'", "test('two'", "test('three'"),
         ["first", "block", "in-a-doc-block"]),
        ("t.jsx", SCRIPT, ("test('one'", "test('two'", "test('three'"), ["first", "block", "in-a-doc-block"]),
        ("t.mjs", SCRIPT, ("test('one'", "test('two'", "test('three'"), ["first", "block", "in-a-doc-block"]),
        ("t.cjs", SCRIPT, ("test('one'", "test('two'", "test('three'"), ["first", "block", "in-a-doc-block"]),
        ("t.ts", SCRIPT, ("test('one'", "test('two'", "test('three'"), ["first", "block", "in-a-doc-block"]),
        ("t_test.go", GO, ("func TestOne", "func TestTwo"), ["first", "block"]),
        ("t.rs", RUST, ("#[test]", "fn two", "fn three"), ["first", "doc", "block"]),
        ("t.rb", "# jumar: test-id=first\nit 'is ruby' do\n", ("it 'is",), []),
    ],
)  # fmt: skip
def test_annotations_of_other_languages_are_comments_and_nothing_else(
    path: str, source: str, starts: tuple[str, ...], slugs: list[str]
) -> None:
    found = read_annotations(path, source.encode(), _at(source, *starts))

    assert found == {f"t::{n}": slug for n, slug in enumerate(slugs, 1)}
    assert read_annotations(path, source.replace("\n", "\r\n").encode(), _at(source, *starts)) == found


@pytest.mark.parametrize("gap", range(5))
def test_an_annotation_stands_at_most_three_lines_above_its_test(gap: int) -> None:
    source = b"# jumar: test-id=near\n" + b"\n" * gap + b"@decorated\ndef test_one(): pass\n"
    sites = RUNNER.sites("t.py", source)

    if gap < 3:
        assert read_annotations("t.py", source, sites) == {"t.py::test_one": "near"}
    else:
        with pytest.raises(BadInput, match=r"t\.py:1: test-id=near stands above no test; put it at most 3 lines"):
            read_annotations("t.py", source, sites)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("# jumar: test-id=", "no test id; write `jumar: test-id=<slug>`"),
        ("# jumar: test-id=Two Words", "no test id"),
        ("# jumar: test-id=Upper", "no test id"),
        ("# jumar: test-id=a--b", "no test id"),
        ("# jumar: test-id=-a", "no test id"),
        ("# jumar: test-id=a::b", "no test id"),
        ("# jumar: test-id = a", "no test id"),
        ("# jumar: test_id=a", "no test id"),
        ("# JUMAR: test-id=a", ""),
        ("# jumar: test-id=" + "a" * 81, "no test id"),
        ("# jumar: test-id=\u0430", "no test id"),
        ("x = 1  # jumar: test-id=a", "stands beside code; give it a line of its own"),
        (
            "# jumar: test-id=a\n# jumar: test-id=b",
            "t.py::test_one has two test-ids, at t.py:1 and at t.py:2; keep one",
        ),
    ],
)
def test_what_is_meant_as_an_annotation_and_is_none_is_told(line: str, sentence: str) -> None:
    source = f"{line}\ndef test_one(): pass\n".encode()
    sites = RUNNER.sites("t.py", source)

    if not sentence:
        assert read_annotations("t.py", source, sites) == {}
        return
    with pytest.raises(BadInput) as told:
        read_annotations("t.py", source, sites)

    assert sentence in str(told.value)
    assert str(told.value).startswith(("t.py:1: ", "t.py::test_one "))
    assert find_known_sites("t.py", source, RUNNER) == sites, "what is wrong leaves the native id"


def test_an_annotation_above_a_test_that_two_classes_run_names_none() -> None:
    source = b"import unittest\nclass A(unittest.TestCase):\n    # jumar: test-id=a\n    def test_it(self): pass\n"
    source += b"class B(A): pass\n"

    with pytest.raises(BadInput, match=r"is run as t\.py::A::test_it and t\.py::B::test_it"):
        read_annotations("t.py", source, RUNNER.sites("t.py", source))


def test_the_same_annotation_twice_is_an_error_that_names_both_places() -> None:
    source = b"# jumar: test-id=same\ndef test_one(): pass\n"

    with pytest.raises(BadInput) as told:
        collect_aliases({"a/test_a.py": source, "test_b.py": b"\n" + source}, RUNNER)

    assert str(told.value) == "test-id=same stands twice, at a/test_a.py:1 and at test_b.py:2; each test needs its own"


def test_the_files_of_tests_are_told_by_their_ids_or_found() -> None:
    files = {"b/test_b.py": b"# jumar: test-id=named\ndef test_one(): pass\n"}

    ids = ("t/test_a.py::test_x", "named", "named[1]", "nobody", "t/test_a.py::test_y[a::b]")
    assert find_test_files(ids, files, RUNNER) == ("t/test_a.py", "b/test_b.py")
    assert find_test_files(("t.py::a",), files, NoRunner()) == ("t.py",)


def test_a_file_that_does_not_parse_or_without_tests_annotates_nothing() -> None:
    files = {
        "test_a.py": b"# jumar: test-id=a\ndef test_one(:\n",
        "test_b.py": b"# jumar: test-id=b\nx = 1\n",
        "test_c.py": b"\xff\xfe# jumar: test-id=c\n",
    }

    assert collect_aliases(files, RUNNER) == Aliases()


class NoRunner:
    """Must not be asked."""

    def sites(self, path: str, source: bytes) -> tuple[Site, ...]:  # noqa: ARG002  a runner's signature
        raise AssertionError(path)


def test_files_without_the_word_are_not_even_parsed() -> None:
    assert collect_aliases({"test_a.py": b"def test_one(): pass\n"}, NoRunner()) == Aliases()


names = st.from_regex(r"[a-z_]{1,8}(\[[a-z0-9:-]{0,5}\])?", fullmatch=True)
natives = st.builds("{}.py::{}".format, st.from_regex(r"[a-z/]{1,6}", fullmatch=True), names)
outcomes = st.sampled_from(Outcome)
results = st.dictionaries(natives, outcomes, max_size=8)


def _report(outcomes_by_id: Mapping[str, Outcome], broken: Mapping[str, Broken] | None = None) -> Report:
    return Report(Ended.NORMAL, tuple(TestResult(i, o) for i, o in outcomes_by_id.items()), broken or {})


@pytest.mark.slow
@given(results, st.lists(natives, unique=True), st.dictionaries(st.sampled_from(["a", "b"]), natives, max_size=2))
def test_ids_without_annotations_are_untouched(
    said: dict[str, Outcome], asked: list[str], slugs: dict[str, str]
) -> None:
    plain = {slug: native.partition("[")[0] for slug, native in slugs.items()}
    known = Aliases(plain, {native: slug for slug, native in plain.items()})
    report = _report(said)

    for names_of_tree in (Aliases(), known):
        naming = IdMapping(asked, names_of_tree)
        assert naming.asked == tuple(asked)
        assert naming.map_report(report) is report
        assert naming.natives == {}
    for native in said:
        if native.partition("[")[0] not in known.slugs:
            assert known.get_known(native) == native
        assert known.get_native(known.get_known(native)) == native


def test_results_come_back_under_the_ids_that_were_asked_for() -> None:
    known = Aliases({"one": "t.py::a", "many": "t.py::b", "gone": "u.py::c"}, {"t.py::a": "one", "t.py::b": "many"})
    naming = IdMapping(("one", "t.py::a", "many[2]", "many", "gone", "nobody", "t.py::d"), known)
    said = {"t.py::a": Outcome.PASSED, "t.py::b[1]": Outcome.PASSED, "t.py::b[2]": Outcome.FAILED}

    report = naming.map_report(_report({**said, "t.py::d": Outcome.PASSED}, {"u.py": Broken("no such module")}))

    assert naming.asked == ("t.py::a", "t.py::b[2]", "t.py::b", "u.py::c", "t.py::d")
    assert naming.natives == {"one": "t.py::a", "many": "t.py::b", "many[2]": "t.py::b[2]", "gone": "u.py::c"}
    assert {r.id: r.outcome for r in report.results} == {
        "one": "passed", "t.py::a": "passed", "many[1]": "passed", "many[2]": "failed", "gone": "import_error",
        "nobody": "missing", "t.py::d": "passed",
    }  # fmt: skip
    assert len(report.results) == 7


@pytest.mark.parametrize(
    ("test_id", "slug"), [("a", True), ("a[x::y]", True), ("t.py::a", False), ("t.py::a[::]", False)]
)
def test_a_slug_is_told_from_a_native_id(test_id: str, *, slug: bool) -> None:
    assert is_slug(test_id) is slug


TESTS = """
import pytest
from app import double

# jumar: test-id=doubles
def test_two(): assert double(2) == 4

# jumar: test-id=many
@pytest.mark.parametrize("n", [1, 2])
def test_many(n): assert double(n) == 2 * n

def test_plain(): assert double(0) == 0
"""
APP = "def double(n):\n    return 2 * n\n"


@pytest.mark.slow
def test_an_annotated_test_keeps_its_id_whatever_it_is_called(tmp_path: Path) -> None:
    court = Court(tmp_path)
    found = court.collect(court.tree({"app.py": APP, "test_app.py": TESTS}))
    assert found == ("doubles", "many[1]", "many[2]", "test_app.py::test_plain")
    renamed = TESTS.replace("test_two", "test_renamed").replace("test_many", "test_all")

    done = court.judge(court.tree({"app.py": "def double(n):\n    return 4\n", "tests/test_new.py": renamed}))

    outcomes = [str(r.outcome) for r in done.verdict.results.values()]
    assert list(done.verdict.results) == list(found)
    assert outcomes == ["passed", "failed", "passed", "missing"]
    assert done.natives == {
        "doubles": "tests/test_new.py::test_renamed",
        "many[1]": "tests/test_new.py::test_all[1]",
        "many[2]": "tests/test_new.py::test_all[2]",
    }


@pytest.mark.slow
def test_annotated_ids_survive_broken_code_and_lead_suspicion_to_it(tmp_path: Path) -> None:
    court = Court(tmp_path)
    files = {"test_app.py": TESTS}
    base = court.tree(files)
    assert court.collect(base) == ("doubles", "many[1]", "many[2]", "test_app.py::test_plain")
    broken = court.judge(base, {})
    wrong = court.tree({**files, "app.py": "def double(n):\n    if n == 2:\n        return 5\n    return 2 * n\n"})

    async def suspects() -> tuple[tuple[str, int, float], ...]:
        return (await court.verifier.localise(wrong, ("doubles", "many[2]"), ("many[1]",))).suspects

    assert {r.outcome for r in broken.verdict.results.values()} == {Outcome.IMPORT_ERROR}
    assert [str(r.blame) for r in broken.verdict.results.values()] == ["absent"] * 4
    assert anyio.run(suspects)[0][:2] == ("app.py", 3)


@pytest.mark.slow
def test_a_tree_that_confuses_ids_is_red_and_says_why_and_a_task_that_does_is_refused(tmp_path: Path) -> None:
    court = Court(tmp_path)
    good = court.tree({"app.py": APP, "test_app.py": TESTS})
    twice = court.tree(
        {"app.py": APP, "test_app.py": TESTS, "test_more.py": "# jumar: test-id=many\ndef test_x(): pass\n"}
    )
    without = court.tree({"app.py": APP, "test_app.py": TESTS.replace("# jumar", "# nothing")})
    court.collect(good)

    confused, unnamed = court.judge(twice, {}, control=good), court.judge(without, {})

    sentence = "test-id=many stands twice, at test_app.py:8 and at test_more.py:1; each test needs its own"
    assert confused.verdict.void is None
    assert [r.outcome for r in confused.verdict.results.values()] == ["error", "error", "error", "passed"]
    assert {r.excerpt for r in list(confused.verdict.results.values())[:3]} == {sentence}
    assert unnamed.verdict.green_ids == {"test_app.py::test_plain"}
    assert "no test of this tree has the annotation test-id=many" in unnamed.verdict.results["many[1]"].excerpt
    for expected in ((), ("many",)):
        court.verifier.expected = expected
        with pytest.raises(BadInput, match="stands twice"):
            anyio.run(court.verifier.collect, twice)


@pytest.mark.slow
def test_a_tree_without_any_of_the_annotated_tests_is_red_and_runs_nothing(tmp_path: Path) -> None:
    court = Court(tmp_path, Suite())
    court.collect(court.tree({"test_it.py": "# jumar: test-id=it\ndef test_it(): pass\n"}))

    done = court.judge(court.tree({"test_it.py": "raise SystemExit\n"}), {})

    assert [r.outcome for r in done.verdict.results.values()] == ["missing"]
    assert court.output(done) == ""


def test_collected_ids_get_their_slugs_once() -> None:
    from jumar.ports import Collected  # noqa: PLC0415  only here

    known = Aliases({"a": "t.py::a"}, {"t.py::a": "a"})

    found = map_collected(Collected(ids=("t.py::a[1]", "t.py::a[2]", "t.py::b")), known)

    assert found.ids == ("a[1]", "a[2]", "t.py::b")
