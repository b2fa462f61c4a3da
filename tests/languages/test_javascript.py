"""Ids of JavaScript are read without running it and stand for what fills them; packages stay outside of trees."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.child.javascript import blame, results
from jumar.languages import javascript_tests
from jumar.runners._javascript import find_installed_packages
from jumar.runners.vitest import VitestRunner

RUNNER = VitestRunner()

SOURCE = rb"""
import { helper } from './helper'
describe('a', () => {
  describe.each([1, 2])('n %i', (n) => {
    it.each`
      a | b
      ${1} | ${2}
    `('adds $a', ({ a }) => {})
    test.only('q\'s "x" \u0041\n', () => { test('inner', () => {}) })
  })
  test.skipIf(true)('in a condition', () => {})
  test(`filled ${n}`, () => {})
  for (const c of cases) it(c.name + ' works', () => {})
  xit('is left out', function () {})
  test.todo('later')
  helper('no test', () => {})
})
test("top", { timeout: 3 }, async () => {
  await something()
})
if (1) { suite(Name, () => { it('in a suite', () => {}) }) }
page.describe('no suite', () => {})
/re/.test(name)
test.extend({})
test('top', () => {})
"""

IDS = (
    "a > n %i > adds $a", "a > n %i > q's \"x\" A\n", "a > in a condition", "a > filled ${n}", "a > ${c.name} works",
    "a > is left out", "a > later", "top", "${Name} > in a suite",
)  # fmt: skip


@pytest.mark.parametrize("path", ["t.test.js", "t.test.mjs", "t.spec.jsx", "t.test.ts", "t.test.tsx"])
def test_static_ids_are_those_of_suites_tests_and_their_variants(path: str) -> None:
    sites = javascript_tests.find_sites(path, SOURCE)

    assert tuple(s.id.partition("::")[2] for s in sites) == tuple(i for i in IDS if not i.startswith("${/"))
    assert {s.id: (s.start, s.end) for s in sites}[f"{path}::top"] == (18, 20)


def test_other_languages_and_broken_files_have_the_ids_that_can_be_read() -> None:
    assert javascript_tests.find_sites("t.py", SOURCE) == ()
    assert javascript_tests.find_sites("t.test.js", b"\xff\xfe\x00") == ()
    assert [s.id for s in javascript_tests.find_sites("t.js", b"test('one', () => {})\ntest('two', () => {")][:1] == [
        "t.js::one"
    ]


def test_types_of_typescript_do_not_hide_a_test() -> None:
    source = b"interface A<T> { x?: T }\ntest.each<[number, string]>([[1, 'a']])('adds %i', (n: number): void => {})\n"

    assert [s.id for s in javascript_tests.find_sites("t.ts", source)] == ["t.ts::adds %i"]


@pytest.mark.slow
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12), min_size=1, max_size=3))
def test_a_name_fits_itself_however_it_is_joined(names: list[str]) -> None:
    asked = " > ".join(names)
    pattern = re.compile(results.build_pattern([asked, "another"]))

    assert re.compile(results.build_pattern([asked])).fullmatch(asked)
    assert pattern.match(asked)
    assert pattern.match(" ".join(names))


@pytest.mark.parametrize(
    ("written", "filled", "fits"),
    [
        ("adds %i and %s", "adds 1 and x", True),
        ("adds $a.b to $c", "adds 1 to 2", True),
        ("${c.name} works", "it works", True),
        ("filled ${`a}`} here", "filled in here", False),
        ("no. %#: 100%%", "no. 3: 100%", True),
        ("case $#", "case 2", True),
        ("adds (1)", "adds 1", False),
        ("adds %i", "subtracts 1", False),
    ],
)
def test_placeholders_stand_for_what_is_filled_in(written: str, filled: str, *, fits: bool) -> None:
    assert bool(re.compile(results.build_pattern([written])).fullmatch(filled)) is fits


def test_an_id_that_is_reported_as_it_is_written_stands_for_nothing_else() -> None:
    findings = results.ResultFindings()
    findings.tests = {"t.js": {"t.js::costs $x": "run", "t.js::costs 5": "run", "t.js::n 1": "run", "t.js::n 2": "run"}}

    assert findings.list_members("t.js::costs $x") == ["t.js::costs $x"]
    assert findings.list_members("t.js::n %i") == ["t.js::n 1", "t.js::n 2"]
    assert findings.list_members("t.js::n") == []


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import a, { b as c, type D } from './m'", {"a", "b", "c", "D"}),
        ("import * as ns from './m'", {"ns"}),
        ("import {\n  x,\n  y,\n} from './m'", {"x", "y"}),
        ("const { p, q: r } = require('./m')", {"p", "q", "r"}),
        ("let m = await import('./m')", {"m"}),
        ("import './m'", set()),
    ],
)
def test_names_are_bound_to_their_modules(source: str, names: set[str]) -> None:
    assert blame.read_bindings(source) == dict.fromkeys(names, "./m")


def test_a_link_among_packages_shows_a_package_and_nothing_else(tmp_path: Path) -> None:
    private, task = tmp_path / "home" / "letters", tmp_path / "task"
    linked, stored = tmp_path / "linked", tmp_path / "store" / "node_modules" / "stored"
    for folder in (private, linked, stored, task / "node_modules" / "real", task / "packages" / "led"):
        folder.mkdir(parents=True)
    for file in (task / "package.json", linked / "package.json", private / "letter"):
        file.touch()
    for name, target in (
        ("linked", linked),
        ("stored", stored),
        ("led", private),
        (".bin", private),
        ("@led", private),
    ):
        (task / "node_modules" / name).symlink_to(target)
    (task / "packages" / "led" / "node_modules").symlink_to(private)

    links, seen = find_installed_packages(task)

    assert set(seen) == {task / "node_modules", linked, stored}
    assert "packages/led/node_modules/letter" not in links


def test_a_folder_of_packages_that_leads_elsewhere_is_none(tmp_path: Path) -> None:
    (tmp_path / "private" / "vitest").mkdir(parents=True)
    (tmp_path / "node").touch(0o755)
    (tmp_path / "node_modules").symlink_to("private")
    assert "there is no vitest" in RUNNER.surroundings(tmp_path, {"PATH": str(tmp_path)}).missing


def test_packages_are_linked_one_by_one_and_the_task_s_own_lead_back_into_the_room(tmp_path: Path) -> None:
    for folder in ("node_modules/vitest", "node_modules/@a", "node_modules/.cache", "packages/own/node_modules/other"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "node_modules/@a/own").symlink_to("../../packages/own")
    (tmp_path / "node_modules/own").symlink_to("../packages/own")
    (tmp_path / "node_modules/far").symlink_to("/usr")
    (tmp_path / "node").touch(0o755)

    around = RUNNER.surroundings(tmp_path, {"PATH": str(tmp_path)})

    assert not around.missing
    assert around.links == {
        "node_modules/vitest": tmp_path / "node_modules/vitest",
        "node_modules/@a/own": Path("../../packages/own"),
        "node_modules/own": Path("../packages/own"),
        "node_modules/far": tmp_path / "node_modules/far",
        "packages/own/node_modules/other": tmp_path / "packages/own/node_modules/other",
    }
    assert around.env["CI"] == "true"
