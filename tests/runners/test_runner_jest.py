"""jest keeps the contract of runners, knows how each test came out and whose doing that is; what hangs is ended."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from jumar.core.state.verdict import Cause, Ended
from jumar.runners.jest import JestRunner
from jumar.testing import check_runner
from support.processes.node import NodeCourt, environ, quick, told
from support.worlds import node_projects

RUNNER = JestRunner()


@pytest.mark.proof
def test_jest_keeps_the_contract_of_runners(tmp_path: Path) -> None:
    async def check() -> None:
        await check_runner(RUNNER, tmp_path, environ=environ())

    anyio.run(check)


@pytest.mark.slow
def test_each_way_a_test_comes_out_has_its_name_and_its_blame(tmp_path: Path) -> None:
    court = NodeCourt(tmp_path, RUNNER, quick(test_timeout_seconds=0.5))
    files = {"calc.js": node_projects.CALC, "sub/it.test.js": node_projects.TESTS}
    tree = court.tree({path: node_projects.as_jest(source) for path, source in files.items()})

    done = court.asked(tree, *(f"sub/it.test.js::{name}" for name in node_projects.OUTCOMES))

    results = {i.partition("::")[2]: result for i, result in done.verdict.results.items()}
    assert {name: told(result) for name, result in results.items()} == node_projects.OUTCOMES
    assert done.ended is Ended.NORMAL
    assert results["grp > fails"].excerpt.startswith("Error: expect(received).toBe(expected)")
    assert "--- Captured stdout of the whole file ---\n" in results["grp > fails"].excerpt
    assert "three" in results["grp > fails"].excerpt
    assert "at the end" in results["clean up > last"].excerpt
    assert "boom" not in results["clean up > last"].excerpt
    assert "noise" in court.output(done)


@pytest.mark.proof
def test_what_breaks_a_file_is_told_from_what_it_tests(tmp_path: Path) -> None:
    court = NodeCourt(tmp_path, RUNNER)
    tests = {path: node_projects.as_jest(source) for path, (source, _) in node_projects.BROKEN.items()}
    tree = court.tree({**tests, **{p: node_projects.as_jest(s) for p, s in node_projects.LIBRARY.items()}})

    done = court.asked(tree, *(f"{path}::one" for path in tests))

    results = {i.partition("::")[0]: result for i, result in done.verdict.results.items()}
    assert {path: told(result) for path, result in results.items()} == {
        path: expected for path, (_, expected) in node_projects.BROKEN.items()
    }
    assert "lib/bad.js: Unexpected token (2:0)" in results["syntax_of_code.test.js"].excerpt


@pytest.mark.proof
def test_the_project_s_configuration_holds_but_not_what_would_steer_the_verdict(tmp_path: Path) -> None:
    court = NodeCourt(tmp_path, RUNNER)
    section = {
        "testMatch": ["<rootDir>/checks/*.js"], "setupFiles": ["./setup.js"],
        "moduleNameMapper": {"^@/(.*)": "<rootDir>/$1"},
        "bail": 1, "testTimeout": 1, "verbose": True, "collectCoverage": True, "cacheDirectory": "/no/such/place",
    }  # fmt: skip
    tree = court.tree({
        "package.json": json.dumps({"name": "it", "jest": section}),
        "setup.js": "globalThis.ready = true\n",
        "calc.js": "exports.add = (a, b) => a + b\n",
        "checks/a.js": "test('is ready', async () => { await new Promise((done) => setTimeout(done, 20)); "
        "expect(globalThis.ready).toBe(true) })\ntest('fails', () => { expect(1).toBe(2) })\n",
        "checks/b.js": "const { add } = require('@/calc')\ntest('adds', () => { expect(add(1, 2)).toBe(3) })\n",
        "other.test.js": "test('is not included', () => {})\n",
    })  # fmt: skip

    assert court.find(tree).ids == ("checks/a.js::is ready", "checks/a.js::fails", "checks/b.js::adds")
    assert [told(r)[0] for r in court.judge(tree).verdict.results.values()] == ["passed", "failed", "passed"]


@pytest.mark.proof
def test_what_never_gives_control_back_or_dies_costs_its_own_ids_alone(tmp_path: Path) -> None:
    court = NodeCourt(tmp_path, RUNNER, quick(test_timeout_seconds=0.2))
    tree = court.tree({
        "loop.test.js": "test('before', () => {})\ntest('loops', () => { for (;;) {} })\ntest('after', () => {})\n",
        "load.test.js": "for (;;) {}\ntest('one', () => {})\n",
        "hook.test.js": "beforeAll(() => { for (;;) {} })\ntest('two', () => {})\n",
        "exit.test.js": "test('leaves', () => { process.exit(0) })\ntest('then', () => {})\n",
        "kill.test.js": "test('dies', () => { process.kill(process.pid, 'SIGKILL') })\n",
        "fine.test.js": "test('three', () => {})\n",
    })  # fmt: skip

    done = court.asked(
        tree, "loop.test.js::before", "loop.test.js::loops", "loop.test.js::after", "load.test.js::one",
        "hook.test.js::two", "exit.test.js::leaves", "exit.test.js::then", "kill.test.js::dies", "fine.test.js::three",
    )  # fmt: skip

    assert [told(r)[:2] for r in done.verdict.results.values()] == [
        ("passed", ""), ("timeout", "code"), ("passed", ""), ("import_error", "code"), ("import_error", "code"),
        ("error", "code"), ("error", "code"), ("error", "code"), ("passed", ""),
    ]  # fmt: skip
    assert not court.survivors()


@pytest.mark.slow
def test_what_keeps_jest_from_starting_is_told_in_one_sentence(tmp_path: Path) -> None:
    court = NodeCourt(tmp_path, RUNNER)
    tree = court.tree(
        {"jest.config.js": "throw new Error('no such plug-in')\n", "a.test.js": "test('one', () => {})\n"}
    )

    done = court.asked(tree, "a.test.js::one")

    assert done.verdict.void is not None
    assert done.verdict.void.cause is Cause.HARNESS
    assert "no such plug-in" in done.verdict.void.reason


def test_test_files_are_known_by_name_or_by_being_selected() -> None:
    paths = ("calc.ts", "calc.test.ts", "__tests__/one.js", "node_modules/x/x.test.js", "test.js", "checks/one.js")

    assert RUNNER.test_files(paths, ()) == ("calc.test.ts", "__tests__/one.js", "test.js")
    assert RUNNER.test_files(paths, ("__tests__",)) == ("__tests__/one.js",)
    assert RUNNER.test_files(paths, ("checks/one.js",)) == ("checks/one.js",)
