"""vitest keeps the contract of runners, knows how each test came out and whose doing that is; what hangs is ended."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest

from jumar.core.state.verdict import Cause, Ended
from jumar.runners.vitest import VitestRunner
from jumar.testing import check_runner
from support.processes.node import NodeCourt, environ, quick, told
from support.worlds import node_projects

RUNNER = VitestRunner()
IMPORTED = "import { expect, test } from 'vitest'\n"


@pytest.mark.proof
def test_vitest_keeps_the_contract_of_runners(tmp_path: Path) -> None:
    async def check() -> None:
        await check_runner(RUNNER, tmp_path, environ=environ())

    anyio.run(check)


@pytest.mark.slow
def test_each_way_a_test_comes_out_has_its_name_and_its_blame(tmp_path: Path) -> None:
    court = NodeCourt(tmp_path, RUNNER, quick(test_timeout_seconds=0.5))
    tree = court.tree({"calc.js": node_projects.CALC, "sub/it.test.js": node_projects.TESTS})

    done = court.asked(tree, *(f"sub/it.test.js::{name}" for name in node_projects.OUTCOMES))

    results = {i.partition("::")[2]: result for i, result in done.verdict.results.items()}
    assert {name: told(result) for name, result in results.items()} == node_projects.OUTCOMES
    assert done.ended is Ended.NORMAL
    assert results["grp > throws"].excerpt.splitlines() == [
        "Error: boom",
        "    at calc.js:3: export function boom() { throw new Error('boom') }",
        "    at sub/it.test.js:7: test('throws', () => { boom() })",
    ]
    error, printed = results["grp > fails"].excerpt.split("--- Captured stdout ---\n")
    assert error.startswith("AssertionError: expected 3 to be 4")
    assert printed.startswith("three\n--- Captured stderr ---\nnot four")
    assert (len(printed), printed.count("[...]")) == (len("three\n--- Captured stderr ---\n") + 1000 + 6, 1)
    assert "Error: at the end" in results["clean up > last"].excerpt
    assert court.output(done).startswith("noise")


@pytest.mark.proof
def test_what_breaks_a_file_is_told_from_what_it_tests(tmp_path: Path) -> None:
    court = NodeCourt(tmp_path, RUNNER)
    tests = {path: source for path, (source, _) in node_projects.BROKEN.items()}
    tree = court.tree({**tests, **node_projects.LIBRARY})

    done = court.asked(tree, *(f"{path}::one" for path in tests))

    results = {i.partition("::")[0]: result for i, result in done.verdict.results.items()}
    assert {path: told(result) for path, result in results.items()} == {
        path: expected for path, (_, expected) in node_projects.BROKEN.items()
    }
    assert "in lib/bad.js" in results["syntax_of_code.test.js"].excerpt


@pytest.mark.proof
def test_a_test_that_never_gives_control_back_costs_its_own_id_alone(tmp_path: Path) -> None:
    court = NodeCourt(tmp_path, RUNNER, quick(test_timeout_seconds=0.2))
    tree = court.tree({
        "loop.test.js": "test('before', () => {})\ntest('loops', () => { for (;;) {} })\ntest('after', () => {})\n",
        "kill.test.js": "test('dies', () => { process.kill(process.pid, 'SIGKILL') })\n",
        "loose.test.js": "test('lets go', () => { Promise.resolve().then(() => expect(1).toBe(2)) })\n"
        "test('waits', async () => { await new Promise((done) => setTimeout(done, 20)) })\n",
    })  # fmt: skip
    ids = ("loop.test.js::before", "loop.test.js::loops", "loop.test.js::after", "kill.test.js::dies")

    done = court.asked(tree, *ids)
    loose = court.asked(tree, "loose.test.js::lets go", "loose.test.js::waits")

    assert [told(r)[:2] for r in done.verdict.results.values()] == [
        ("passed", ""), ("timeout", "code"), ("passed", ""), ("error", "code")
    ]  # fmt: skip
    assert done.ended is Ended.NORMAL
    assert not court.survivors()
    assert [told(r)[0] for r in loose.verdict.results.values()] == ["passed", "error"]
    assert "thrown outside of all tests" in loose.verdict.results["loose.test.js::waits"].excerpt


@pytest.mark.proof
def test_projects_of_a_configuration_are_judged_as_one_without_them(tmp_path: Path) -> None:
    """They take nothing over from the configuration in which they stand."""
    court = NodeCourt(tmp_path, RUNNER, quick(test_timeout_seconds=0.2))
    tree = court.tree({
        "vitest.config.mjs": "export default { test: { projects: [\n"
        "  { test: { name: 'a', include: ['a/*.js'], globals: true, retry: 3, bail: 1 } }] } }\n",
        "a/loop.js": "test('before', () => {})\ntest('loops', () => { for (;;) {} })\ntest('after', () => {})\n",
        "a/tries.js": "let tries = 0\ntest('repeats', () => { tries += 1; expect(tries).toBe(2) })\n",
    })  # fmt: skip

    outcomes = {
        "a/loop.js::before": "passed", "a/loop.js::loops": "timeout", "a/loop.js::after": "passed",
        "a/tries.js::repeats": "failed",
    }  # fmt: skip

    done = court.asked(tree, *outcomes)

    assert {i: told(r)[0] for i, r in done.verdict.results.items()} == outcomes


@pytest.mark.proof
def test_loading_and_hooks_that_never_end_are_the_code_s_doing(tmp_path: Path) -> None:
    court = NodeCourt(tmp_path, RUNNER, quick(test_timeout_seconds=0.2))
    tree = court.tree({
        "load.test.js": "for (;;) {}\ntest('one', () => {})\n",
        "hook.test.js": "beforeAll(() => { for (;;) {} })\ntest('two', () => {})\n",
        "fine.test.js": "test('three', () => {})\n",
        "vitest.config.mjs": "export default { test: { fileParallelism: false } }\n",
    })  # fmt: skip

    done = court.asked(tree, "load.test.js::one", "hook.test.js::two", "fine.test.js::three")

    said = [told(r)[:2] for r in done.verdict.results.values()]
    assert said == [("import_error", "code"), ("error", "code"), ("passed", "")]


@pytest.mark.proof
def test_the_project_s_configuration_holds_but_not_what_would_steer_the_verdict(tmp_path: Path) -> None:
    court = NodeCourt(tmp_path, RUNNER)
    steering = "globals: false, retry: 3, bail: 1, passWithNoTests: true, silent: true, sequence: { shuffle: true }"
    tree = court.tree({
        "vitest.config.mjs": "import { resolve } from 'node:path'\nexport default {\n"
        "  resolve: { alias: { '@': resolve(import.meta.dirname, 'src') } },\n"
        f"  test: {{ include: ['checks/**/*.ts'], setupFiles: ['./setup.ts'], {steering} }},\n}}\n",
        "setup.ts": "globalThis.ready = true\n",
        "src/calc.ts": "export const add = (a: number, b: number): number => a + b\n",
        "checks/a.ts": "let tries = 0\ntest('repeats', () => { tries += 1; expect(tries).toBe(2) })\n"
        "test('is ready', () => { expect((globalThis as any).ready).toBe(true) })\n",
        "checks/b.ts": IMPORTED + "import { add } from '@/calc'\ntest('adds', () => { expect(add(1, 2)).toBe(3) })\n",
        "other.test.ts": "test('is not included', () => {})\n",
    })  # fmt: skip

    assert court.find(tree).ids == ("checks/a.ts::repeats", "checks/a.ts::is ready", "checks/b.ts::adds")
    assert [told(r)[0] for r in court.judge(tree).verdict.results.values()] == ["failed", "passed", "passed"]


@pytest.mark.proof
def test_a_workspace_is_judged_by_the_room_s_own_packages_and_nothing_is_kept(tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    files = {
        "package.json": json.dumps({"name": "all", "private": True, "workspaces": ["packages/*"]}),
        "packages/calc/package.json": json.dumps({"name": "@all/calc", "type": "module", "main": "index.js"}),
        "packages/calc/index.js": "export const one = 1\n",
        "packages/app/package.json": json.dumps({"name": "app", "type": "module"}),
        "packages/app/vitest.config.js": "export default { test: { name: 'app' } }\n",
        "packages/app/app.test.js": IMPORTED
        + "import { one } from '@all/calc'\ntest('is one', () => { expect(one).toBe(1) })\n",
    }
    for path, text in files.items():
        (origin / path).parent.mkdir(parents=True, exist_ok=True)
        (origin / path).write_text(text, "utf-8")
    installed = Path(environ()["JUMAR_NODE_MODULES"])
    (origin / "node_modules" / "@all").mkdir(parents=True)
    (origin / "node_modules" / "@all" / "calc").symlink_to("../../packages/calc")
    for package in installed.glob("[!.]*"):
        (origin / "node_modules" / package.name).symlink_to(package)
    court = NodeCourt(tmp_path, RUNNER, origin=origin)
    good = court.tree(files)
    bad = court.tree({**files, "packages/calc/index.js": "export const one = 2\n"})

    ids = court.find(good).ids
    greens = [court.judge(tree).verdict.green for tree in (good, bad)]

    assert ids == ("packages/app/app.test.js::is one",)
    assert greens == [True, False]
    assert not list((origin / "node_modules").glob(".v*"))


@pytest.mark.proof
def test_what_keeps_vitest_from_starting_is_told_in_one_sentence(tmp_path: Path) -> None:
    court = NodeCourt(tmp_path, RUNNER)
    tree = court.tree(
        {"vitest.config.mjs": "throw new Error('no such plug-in')\n", "a.test.js": "test('one', () => {})\n"}
    )

    found = court.find(tree)
    done = court.asked(tree, "a.test.js::one")

    assert "no such plug-in" in found.anomaly
    assert done.verdict.void is not None
    assert done.verdict.void.cause is Cause.HARNESS


def test_without_node_or_vitest_the_runner_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "node").touch(0o755)

    nothing = RUNNER.surroundings(tmp_path, {"PATH": ""})
    no_vitest = RUNNER.surroundings(tmp_path, {"PATH": str(tmp_path)})
    wrong = RUNNER.surroundings(tmp_path, {"PATH": str(tmp_path), "JUMAR_NODE_MODULES": "/no/such/folder"})

    assert nothing.missing == "there is no node on PATH, which runs vitest: install Node.js 20 or newer"
    assert "run `npm install` there" in no_vitest.missing
    assert "/no/such/folder (JUMAR_NODE_MODULES)" in wrong.missing


def test_test_files_are_known_by_name_or_by_being_selected() -> None:
    paths = ("calc.ts", "calc.test.ts", "src/deep/a.spec.mjs", "node_modules/x/x.test.js", "test.js", "checks/one.js")

    assert RUNNER.test_files(paths, ()) == ("calc.test.ts", "src/deep/a.spec.mjs")
    assert RUNNER.test_files(paths, ("src/",)) == ("src/deep/a.spec.mjs",)
    assert RUNNER.test_files(paths, ("checks/one.js",)) == ("checks/one.js",)


@pytest.mark.slow
def test_real_tasks_are_red_where_they_should_be_and_green_with_their_solutions(tmp_path: Path, data: Path) -> None:
    index = json.loads((data / "index.json").read_text("utf-8"))
    tasks: list[dict[str, Any]] = [t for t in index["tasks"] if t["language"] == "javascript"]
    for task in tasks:
        folder = tmp_path / task["id"]
        shutil.copytree(data / "tasks" / task["id"], folder / "start")
        shutil.copytree(folder / "start", folder / "solved")
        shutil.copytree(data / "solutions" / task["id"], folder / "solved", dirs_exist_ok=True)
        court = NodeCourt(folder, RUNNER, origin=folder / "start")
        start, solved = (court.store.capture(folder / name) for name in ("start", "solved"))
        found = court.find(start)

        before, after = court.judge(start), court.judge(solved, {}, control=start)

        red = {i.partition("::")[2].replace(" > ", " ") for i in before.verdict.red_ids}
        assert red == set(task["F2P"]), task["id"]
        assert {i.partition("::")[2].replace(" > ", " ") for i in found.ids} == {*task["F2P"], *task["P2P"]}, task["id"]
        assert after.verdict.green, task["id"]
    assert len(tasks) > 0
