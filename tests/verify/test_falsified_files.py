"""Values that are asserted become others, on the lines where they stand; each test that is falsified fails."""

from __future__ import annotations

import ast
import re
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jumar.child.challenge.other_values import make_other
from jumar.child.challenge.rewritten_comparisons import list_comparisons, rewrite
from jumar.verify.challenge.falsified_files import FalsifiableFile, falsify_files
from support.judging.run_falsified_suite import learn, outcomes, tidy

STRONG = """
def test_number(): assert same(3) == 3
def test_left(): assert 1_000 == same(1000)
def test_hexadecimal(): assert same(255) == 0xff
def test_negative(): assert same(-1) == -1
def test_fraction(): assert same(0.5) == .5
def test_imaginary(): assert same(2j) == 2j
def test_text(): assert same("abc") == 'abc'
def test_escapes(): assert same("a\\n\\x41") == "a\\n\\x41"
def test_raw(): assert same("\\\\d") == r"\\d"
def test_pieces(): assert same("one two") == ("one "  # a remark
    "two")
def test_empty(): assert same("") == ""
def test_many(): assert same([0, 0]) == [0] * 2
def test_often(): assert 3 * "ab" == same("ababab")
def test_reason():
    with pytest.raises(Fault, match="failed for a reason"): fail(Fault)
def test_marks(): assert same("---") == "---"
def test_other_script(): assert same("дом") == "дом"
def test_bytes(): assert same(b"ab") == b"ab"
def test_truth(): assert same(True) is True
def test_none(): assert same(None) is None
def test_list(): assert same([1, [2, 3]]) == [1, [2, 3]]
def test_truths(): assert same([True, False]) == [True, False]
def test_dict(): assert same({"a": 1}) == {"a": 1}
def test_keys(): assert same({"a": same}) == {"a": same}
def test_set(): assert same({1, 2}) == {2, 1}
def test_deep(): assert same([[[[[1]]], {"a": {"b": {"c": 1}}}]]) == [[[[[1]]], {"a": {"b": {"c": 1}}}]]
def test_sorted(): assert sorted(same([2, 1])) == sorted([1, 2])
def test_call(): assert same({1}) == set([1])
def test_letters(): assert frozenset("ab") == same({"a", "b"})
def test_sorted_letters(): assert same(["a", "b"]) == sorted("ba")
def test_infinite(): assert same(float("inf")) == 1e999
def test_expected():
    def check(n): assert n == 3
    with pytest.raises(AssertionError): check(same(4))
    assert same(1) == 1
def test_joined(): assert same("a\\nb") == "\\n".join(["a", "b"])
def test_stripped(): assert same("a") == " a ".strip()
def test_sum(): assert same("a") + "b" == "a" + same("b")
def test_chain(): assert same(1) == same(1) == 1
def test_conjunction(): assert same(1) and same(2) == 2 and same(3)
def test_length():
    assert len(same("abc")) == 3
def test_message():
    expected = [1, 2]
    assert same([1, 2]) == expected, f"{expected}"
def test_local():
    expected = {"key": "value"}
    got = same({"key": "value"})
    print(expected)
    assert got == expected
TABLE = [(1, 1), (2, 2)]
@pytest.mark.parametrize("given, expected", TABLE)
def test_table(given, expected): assert same(given) == expected
@pytest.mark.parametrize("given, expected", [(1, 1), pytest.param("b", "b"), (None, None)])
def test_column(given, expected): assert same(given) == expected
@pytest.mark.parametrize("given, expected", [(1, True), (0, False)])
def test_truth_column(given, expected): assert bool(same(given)) == expected
@pytest.mark.parametrize("kind, expected", [(KeyError, KeyError), (OSError, OSError)])
def test_classes(kind, expected):
    with pytest.raises(expected):
        fail(kind)
def test_loop():
    for given, expected in [(1, 1), (2, 2)]:
        assert same(given) == expected
def test_inside_a_loop():
    for given in range(3):
        assert same("x") == "x"
EXPECTED = "only here"
def test_constant(): assert same("only here") == EXPECTED
def test_raises():
    with pytest.raises(ValueError, match="reason"):
        fail()
def test_raises_called(): pytest.raises((ValueError, KeyError), fail)
def test_warns():
    import warnings
    with pytest.warns(UserWarning):
        warnings.warn("beware")
def test_near(): assert same(0.3) == pytest.approx(0.3)
def test_near_in_full(): assert same([1.0, 2.0]) == pytest.approx([1.0, 2.0], abs=0.01)
def test_type(): assert isinstance(same(1), int)
def test_raises_of_a_standard_module():
    import subprocess
    with pytest.raises(subprocess.SubprocessError): fail(subprocess.SubprocessError)
def test_type_itself(): assert type(same(1)) is int
def test_word(): assert same("two") == "two"
def test_other_word(): assert "three" == same("three")
def test_part(): assert "failing words" in str(same("some failing words"))
def test_in_a_context(tmp_path=None):
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        assert len(same("abc")) == 3
def test_finally():
    try:
        assert same(1) == 1
    finally:
        same(2)
def test_in_the_end():
    if same(0):
        same(1)
    assert same(2) == 2
    return None
def check(given, expected):
    print(given)
    assert same(given) == expected
def test_by_a_function(): check("text", "text")
def test_mock():
    from unittest import mock
    m = mock.Mock()
    m(1, key="a")
    m.assert_called_once_with(1, key="a")
class TestPlain:
    def test_method(self): assert same(1) == 1
class TestUnit(unittest.TestCase):
    def agree(self, given, expected): self.assertEqual(same(given), expected)
    def test_equal(self): self.assertEqual(same("a"), "a")
    def test_first(self): self.assertEqual("a", same("a"), "a message")
    def test_count(self): self.assertCountEqual(same([1, 2]), [2, 1])
    def test_true(self): self.assertTrue(same(3) == 3)
    def test_word(self): self.assertEqual(same("seven"), "seven")
    def test_is(self): self.assertIs(same(True), True)
    def test_is_nothing(self): self.assertIs(same(None), None)
    def test_almost(self): self.assertAlmostEqual(same(1.23), 1.2345, places=2)
    def test_almost_delta(self): self.assertAlmostEqual(same(100), 101, delta=2)
    def test_type(self): self.assertIsInstance(same(""), str)
    def test_raises(self):
        with self.assertRaises(ValueError): fail()
    def test_raises_called(self): self.assertRaisesRegex(ValueError, "reason", fail)
    def test_by_a_method(self): self.agree(1, 1)
    def test_subtests(self):
        for given, expected in ((1, 1), (2, 2)):
            with self.subTest(given=given, expected=expected):
                self.assertEqual(same(given), expected)
"""

AFFIXES = """
def test_start(): assert same("some words").startswith("so")
def test_end(): assert same(b"some words").endswith(b"rds", 2)
def test_both_ends():
    got = same("some words")
    assert got.startswith("s") and got.endswith("words")
class TestUnit(unittest.TestCase):
    def test_start(self): self.assertTrue(same("some words").startswith("some"), "a message")
"""

BRANCHES = """
def test_fail():
    if same(3) != 3:
        pytest.fail("no")
def test_raise():
    if not same("a") == "a":
        raise AssertionError
def test_either():
    if same(1) != 1 or "failing words" not in same("failing words") or same(None) is not None:
        raise AssertionError("no")
def test_kind():
    if not isinstance(same(1), int): pytest.fail("no")
def test_else():
    if same(3) == 3 and same(4):
        same(5)
    else:
        pytest.fail("no")
def test_elif():
    if not same(1):
        same(2)
    elif same(3) != 3:
        pytest.fail("no")
    else:
        same(4)
def test_try():
    try:
        fail()
        pytest.fail("no")
    except ValueError:
        pass
def test_whatever_comes():
    try:
        fail()
    except:
        pass
    else:
        raise AssertionError
class TestUnit(unittest.TestCase):
    def test_fail(self):
        if same(3) != 3: self.fail("no")
    def test_without_an_exception(self):
        try:
            fail()
        except (KeyError, ValueError) as error:
            same(error)
        else:
            self.fail("no")
"""

EMPTY = """
def test_list(): assert same([]) == []
def test_tuple(): assert () == same(())
def test_dict(): assert same({}) == {}
def test_set(): assert same(set()) == set()
@pytest.mark.parametrize("got, wanted", [([], []), ([1], [1])])
def test_rows(got, wanted): assert same(got) == wanted
"""
"""Containers without an item get one, which is another operation of the interpreter."""


@pytest.mark.slow
@pytest.mark.parametrize("code", [STRONG, AFFIXES, BRANCHES, EMPTY])
def test_exactly_the_falsified_fail_and_they_go_on_to_their_end(code: str) -> None:
    assert all(outcomes(tidy(code)).values())
    for seed in range(12):
        falsified, plain = learn(tidy(code), seed), learn(tidy(code), seed, falsified=False)
        assert {name for name, one in falsified.items() if one.passed or one.lying} == set()
        assert {name for name, one in plain.items() if not one.passed} == set()


@pytest.mark.parametrize("code", [STRONG, AFFIXES, BRANCHES, EMPTY])
def test_a_changed_file_has_its_comparisons_where_they_were(code: str) -> None:
    source = tidy(code)
    names = [around + name for around in ("", "TestPlain::", "TestUnit::") for name in re.findall(r"def (\w+)", source)]
    changed, _ = FalsifiableFile(source.encode()).falsify(names, Random(1))

    before, after = (list(map(type, list_comparisons(ast.walk(ast.parse(text))))) for text in (source, changed))
    assert before == after, "else one that holds would be taken for a false one"


def test_what_is_done_after_a_false_assertion_is_done_all_the_same() -> None:
    code = "DONE = []\ndef test_a():\n    assert same(1) == 1\n    DONE.append(1)\ndef test_b(): assert DONE\n"

    found = learn(tidy(code), 1)

    assert not found["test_a"].passed
    assert learn(tidy(code + "def test_c(): test_a()\n"), 1, falsified=False)["test_b"].passed


EXPECTED = """
CASES = [pytest.raises(ValueError), pytest.raises(KeyError)]
@pytest.mark.parametrize("expectation", PLACE)
def test_a(expectation):
    with expectation:
        fail(*expectation.expected_exceptions)
        assert same(1)
"""


@pytest.mark.parametrize("place", ["CASES", "[pytest.raises(ValueError), pytest.raises(KeyError)]"])
def test_an_exception_that_is_expected_where_no_test_runs_is_an_assertion_of_each(place: str) -> None:
    found = learn(tidy(EXPECTED.replace("PLACE", place)), 1)

    assert found
    assert all(one.asserted and not one.passed for one in found.values())


CHANGED = {
    "a literal": "def test_a(): assert same(3) == 3",
    "a word": "def test_a(): assert 'words' in same('some words')",
    "a column": "@pytest.mark.parametrize('x, y', [(1, 1), (2, 2)])\ndef test_a(x, y): assert same(x) == y",
    "a table": "T = [(1, 1), (2, 2)]\n@pytest.mark.parametrize('x, y', T)\ndef test_a(x, y): assert same(x) == y",
    "a constant": "WANTED = [1, 2]\ndef test_a(): assert same([1, 2]) == WANTED",
    "a name": "def test_a():\n    wanted = {'a': 1}\n    assert same({'a': 1}) == wanted",
    "an identity": "def test_a(): assert same(None) is None",
    "in a loop": "def test_a():\n    for x in same([1]): assert x == 1",
    "under a condition": "def test_a():\n    if same(1): assert same(1) == 1",
    "in a context": "def test_a():\n    with Anything(): assert same(1) == 1",
    "a branch that fails": "def test_a():\n    if 'words' not in same('some words'): raise AssertionError",
    "a sum": "def test_a(): assert same(b'a b') == b'a ' + same(b'b')",
}


def test_what_is_looked_for_is_nothing_that_stands_beside_it() -> None:
    code = tidy("""
        def test_a():
            assert "message2" in same(["message1", "message2", "message3"])
            assert "test3_of_7" in same("test3_of_7, test4_of_7, test3_of_8")
    """)
    assert not any(learn(code, seed)["test_a"].lying for seed in range(60))


QUOTED = """
def test_a():
    assert same([1, "some words", (b"ab", 'cd')]) == [
        1,  # a remark
        "some words", (b"ab", 'cd'),
    ]
"""


def test_a_changed_literal_looks_as_it_did() -> None:
    new, _ = FalsifiableFile(tidy(QUOTED).encode()).falsify(["test_a"], Random(1))

    assert re.fullmatch(r'(?s).*\[\n {8}\d+,  # a remark\n {8}"\w+ \w+", \(b"\w+", \'\w+\'\),\n    \]\n', new.decode())


BORROWED = """
class TestOne(unittest.TestCase):
    def test_a(self, same=same):
        self.assertEqual(same(2), 2)
        assert same(3) == 3
class TestTwo(unittest.TestCase):
    def test_b(self): TestOne("test_a").test_a(lambda x: x)
"""


def test_a_test_that_calls_a_falsified_one_passes() -> None:
    code = tidy(BORROWED)
    tree = ast.parse(FalsifiableFile(code.encode()).falsify(["TestOne::test_a"], Random(1))[0])

    assert ast.unparse(tree) != ast.unparse(ast.parse(code))
    assert learn(code, 1, falsified=False, false=["TestOne::test_a"])["TestTwo::test_b"].passed


NEVER = """
def test_a():
    for x in same([]): assert x == 1
def test_b():
    for x in same([]): assert x == 1
    assert same(2) == 2
"""


def test_a_falsified_test_that_comes_to_no_assertion_passes_and_is_known() -> None:
    found = learn(tidy(NEVER), 1)

    assert {name: (one.passed, one.asserted) for name, one in found.items()} == {
        "test_a": (True, False), "test_b": (False, True),
    }  # fmt: skip


KEPT = {
    "a dictionary of which the keys are seen": "def test_a(): assert same(['a']) == sorted({'a': 1})",
    "a set of its keys": "def test_a(): assert same({'a'}) == set({'a': 1})",
    "what a fixture gets": "@pytest.mark.parametrize('x', [1])\ndef test_a(x): assert same(x) == x",
    "a contrary": "def test_a(): assert same(3) != 4",
    "a constant of two tests": "W = 1\ndef test_a(): assert same(1) == W\ndef test_b(): assert same(1) == W",
    "another's": "def check(x): assert x == 1\ndef test_a(): check(same(1))",
    "a negation": "def test_a(): assert not same(1) == 2",
    "no identity": "def test_a(): assert same(1) is not None",
    "one side of many": "def test_a(): assert same(0.5) == pytest.approx(0.5, abs=20)",
    "a parameter of a fixture": "@pytest.fixture\ndef user(x): return x\n"
    "@pytest.mark.parametrize('x', [1])\ndef test_a(user, x): assert user == x",
    "what a fixture may ask for": "@pytest.fixture\ndef user(request): return request.getfixturevalue('x')\n"
    "@pytest.mark.parametrize('x', [1])\ndef test_a(user, x): assert user == x",
    "a name that is read unseen": "def test_a():\n    due = 'one'\n    assert '{due}'.format(**locals()) == due",
    "a wide margin": "class TestA(unittest.TestCase):\n"
    "    def test_a(self): self.assertAlmostEqual(same(100), 120, delta=50)",
    "places before the point": "class TestA(unittest.TestCase):\n"
    "    def test_a(self): self.assertAlmostEqual(same(100), 120, -3)",
    "keys that are counted": "class TestA(unittest.TestCase):\n"
    "    def test_a(self): self.assertCountEqual(same(['a']), {'a': 1})",
}


@pytest.mark.parametrize("kind", [*CHANGED, *KEPT])
def test_only_what_is_asserted_and_used_for_nothing_else_is_changed(kind: str) -> None:
    source = tidy({**CHANGED, **KEPT}[kind]).encode()
    names = [f"test_it.py::{name}" for name in ("test_a", "test_b", "TestA::test_a")]
    changed, found = falsify_files({"test_it.py": source}, names, Random(1))
    new, places = changed["test_it.py"], found["test_it.py"]

    assert (new != source, bool(places)) == (kind in CHANGED, kind in CHANGED)
    assert new.count(b"\n") == source.count(b"\n")


def test_a_fixture_of_another_file_gets_a_parameter_too() -> None:
    code = "@pytest.mark.parametrize('x', [1])\ndef test_a(user, x): assert user == x\n"
    shared = b"import pytest\n\n@pytest.fixture\ndef user(x): return x\n"
    files = {"tests/test_it.py": tidy(code).encode(), "tests/conftest.py": shared}

    assert falsify_files(files, {"tests/test_it.py::test_a"}, Random(1))[1] == {"tests/test_it.py": []}
    assert falsify_files({**files, "tests/conftest.py": b""}, {"tests/test_it.py::test_a"}, Random(1))[1] != {
        "tests/test_it.py": []
    }


TOLERANT = """
def test_anagram():
    import itertools
    assert "abcd" in same(["".join(p) for p in itertools.permutations("dcba")])
def test_millions(): assert same(83_000_000) == pytest.approx(83_000_000)
class TestUnit(unittest.TestCase):
    def test_letters(self): self.assertCountEqual(same("dcba"), "abcd")
    def test_huge(self): self.assertAlmostEqual(same(1e20), 100000000000000000000)
"""


@pytest.mark.slow
def test_what_lets_more_pass_is_never_taken_for_a_lie() -> None:
    found = [learn(tidy(TOLERANT), seed) for seed in range(60)]

    assert not any(one.passed or one.lying for tests in found for one in tests.values())


@pytest.mark.parametrize("data", [b"def test_a(:", b"\x00", b"# coding: nonsense\n", b"\xff\xfe"])
def test_a_file_that_does_not_parse_is_left_alone(data: bytes) -> None:
    assert falsify_files({"test_a.py": data}, {"test_a.py::test_a"}, Random(1)) == ({}, {})


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_bytes_around_a_change_stay(encoding: str, newline: str) -> None:
    mark = "" if encoding == "utf-8-sig" else f"# coding: {encoding}"
    lines = [mark, "ä = 1", "def test_a(): assert 'ü', (same(3) == 3)  # ö", "def test_b(): assert same('é') == 3", ""]
    data = newline.join(lines).encode(encoding)

    new, _ = FalsifiableFile(data).falsify(["test_b"], Random(3))

    assert new.splitlines()[:3] == data.splitlines()[:3]
    assert new.decode(encoding).startswith(newline.join(lines)[:60].rpartition("'é'")[0][:50])


SCALARS = st.one_of(
    st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(), st.binary(), st.booleans(), st.none(),
    st.complex_numbers(allow_nan=False, allow_infinity=False),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.tuples(inner), st.dictionaries(st.text(), inner, max_size=3),
        st.sets(st.integers(), max_size=3),
    ),
)  # fmt: skip


@pytest.mark.slow
@settings(deadline=None)
@example(1.3e308 + 1.3e308j, 0)
@given(VALUES, st.integers())
def test_another_value_is_never_equal_and_can_be_written_down(value: Any, seed: int) -> None:
    other = make_other(value, Random(seed))

    assert other != value
    assert ast.literal_eval(ascii(other)) == other


VERSIONS = """
class Version:
    def __init__(self, major, minor, build):
        self.known, self.build = (major, minor), build

    def __eq__(self, other):
        if isinstance(other, str):
            other = parse(other)
        return self.known == ((other["major"], other["minor"]) if isinstance(other, dict) else other.known)


def parse(text):
    number, _, build = text.partition("+")
    return Version(*map(int, number.split(".")), build)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "assertion",
    [
        'parse("1.20+x") == {"major": 1, "minor": 20, "build": "x"}',
        '{"major": 1, "minor": 20, "build": "x"} == parse("1.20+x")',
        'parse("1.20+x") == "1.20+x"',
    ],
)
def test_who_heeds_a_part_of_what_is_expected_is_no_forger(assertion: str) -> None:
    code = tidy(f"from product import parse\ndef test_a(): assert {assertion}\n")
    for seed in range(60):
        assert not learn(code, seed, more=VERSIONS)["test_a"].passed


@pytest.mark.parametrize(("name", "count"), [("test_a", 6), ("convert", 0)])
def test_a_branch_that_fails_asserts_in_files_of_tests_alone(name: str, count: int) -> None:
    code = f"""
def {name}(self, value):
    if not value:
        self.fail("empty")
    try:
        value()
    except OSError:
        pass
    else:
        raise AssertionError
    match value:
        case []:
            pass
        case _:
            self.fail("full")
"""
    tree = ast.parse(code)

    rewrite(tree)

    text = ast.unparse(tree)
    assert sum(text.count(f"@asked.{method}(") for method in ("confirm", "caught", "affirm")) == count
