"""Go's runner: each way in which a Go test comes out, or does not build, has its name; one go command for all of it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Blame, Cause, Ended
from jumar.ports import Runner, Verification
from jumar.runner_contract import check_runner
from jumar.runners.go import GoRunner
from support.judging.real_verifier import Court

RUNNER = GoRunner()
SUITE = Suite(runner="go", timeout_seconds=60.0, test_timeout_seconds=2.0)
MODULE = "module example.com/m\n\ngo 1.18\n"
IMPORT = 'import "testing"\n'
EMPTY = "func TestIt(t *testing.T) {}\n"


@pytest.fixture
def environ() -> Mapping[str, str]:
    """The environment of this machine, if it has go."""
    found = dict(os.environ)
    if missing := RUNNER.surroundings(Path(), found).missing:
        pytest.skip(missing)
    return found


def court_of(folder: Path, environ: Mapping[str, str], suite: Suite = SUITE) -> Court:
    court = Court(folder, suite)
    court.verifier.runner, court.verifier.environ = RUNNER, environ
    court.verifier.around = RUNNER.surroundings(folder, environ)
    return court


def told(done: Verification) -> dict[str, tuple[str, Blame | None, str]]:
    return {i: (str(r.outcome), r.blame, r.absent) for i, r in done.verdict.results.items()}


WAYS = {
    "go.mod": MODULE,
    "ok/ok_test.go": f"package ok\n\n{IMPORT}\n"
    'func TestGood(t *testing.T) { t.Run("a b/c", func(t *testing.T) { t.Log("fine") }) }\n'
    'func TestSub(t *testing.T) {\n\tt.Run("one", func(t *testing.T) { t.Parallel(); t.Log("fine") })\n'
    '\tt.Run("two, (odd)|", func(t *testing.T) { t.Errorf("two is %d\\nand more", 3) })\n}\n'
    'func TestSkip(t *testing.T) { t.Skip("not now") }\n'
    "func FuzzIt(f *testing.F) { f.Add(1); f.Fuzz(func(t *testing.T, n int) {}) }\n"
    'func ExampleIt() {\n\tprintln("e")\n\t// Output:\n}\nfunc ExampleNever() {}\nfunc BenchmarkIt(b *testing.B) {}\n',
    "panics/p_test.go": f"package panics\n\n{IMPORT}\n{EMPTY.replace('It', 'A')}"
    'func TestB(t *testing.T) {\n\tgo func() { panic("elsewhere") }()\n\tselect {}\n}\n'
    f"{EMPTY.replace('It', 'C')}",
    "leaves/p_test.go": f'package leaves\n\nimport (\n\t"os"\n\t"testing"\n)\n\n{EMPTY}'
    "func TestLeaves(t *testing.T) { os.Exit(3) }\n",
    "hangs/p_test.go": f'package hangs\n\nimport (\n\t"testing"\n\t"time"\n)\n\n{EMPTY}'
    "func TestHangs(t *testing.T) { <-time.After(time.Hour) }\n"
    f"{EMPTY.replace('It', 'Later')}",
    "late/p_test.go": f'package late\n\nimport (\n\t"os"\n\t"testing"\n)\n\n{EMPTY}'
    "func TestMain(m *testing.M) {\n\tm.Run()\n\tos.Exit(5)\n}\n",
    "early/e.go": 'package early\n\nfunc init() { panic("early") }\n',
    "early/e_test.go": f"package early\n\n{IMPORT}\n{EMPTY}",
}

ENDS = {
    "ok/ok_test.go::TestGood": ("passed", None),
    "ok/ok_test.go::TestSub": ("failed", Blame.CODE),
    "ok/ok_test.go::TestSkip": ("skipped", None),
    "ok/ok_test.go::FuzzIt": ("passed", None),
    "ok/ok_test.go::ExampleIt": ("passed", None),
    "panics/p_test.go::TestA": ("passed", None),
    "panics/p_test.go::TestB": ("failed", Blame.CODE),
    "panics/p_test.go::TestC": ("error", Blame.CODE),
    "leaves/p_test.go::TestIt": ("passed", None),
    "leaves/p_test.go::TestLeaves": ("error", Blame.CODE),
    "hangs/p_test.go::TestIt": ("passed", None),
    "hangs/p_test.go::TestHangs": ("timeout", Blame.CODE),
    "hangs/p_test.go::TestLater": ("error", Blame.CODE),
    "late/p_test.go::TestIt": ("error", Blame.CODE),
}
EARLY = ("early/e_test.go::TestIt", "error", Blame.CODE)


@pytest.mark.proof
def test_go_keeps_the_contract(tmp_path: Path, environ: Mapping[str, str]) -> None:
    runner: Runner = RUNNER

    async def check() -> None:
        await check_runner(runner, tmp_path, environ=environ)

    anyio.run(check)


@pytest.mark.slow
def test_each_way_a_go_test_comes_out_has_its_name(tmp_path: Path, environ: Mapping[str, str]) -> None:
    court = court_of(tmp_path, environ)
    tree = court.tree(WAYS)
    assert set(court.collect(tree)) == {*ENDS, EARLY[0]}, "a benchmark and an example without output are no tests"

    done = court.judge(tree, {})

    assert done.ended is Ended.NORMAL
    assert {i: (o, b) for i, (o, b, _) in told(done).items()} == {**ENDS, EARLY[0]: EARLY[1:]}
    said = {i: r.excerpt for i, r in done.verdict.results.items()}
    assert "--- FAIL: TestSub/two,_(odd)|\n" in said["ok/ok_test.go::TestSub"]
    assert "two is 3" in said["ok/ok_test.go::TestSub"]
    assert "fine" not in said["ok/ok_test.go::TestSub"], "what passed says nothing"
    assert "panic: elsewhere" in said["panics/p_test.go::TestB"]
    assert "TestB ended the process" in said["panics/p_test.go::TestC"]
    assert "ran longer than 2 s" in said["hangs/p_test.go::TestHangs"]
    assert "hangs/p_test.go:" in said["hangs/p_test.go::TestHangs"], "where it hangs"
    assert "TestHangs ran longer" in said["hangs/p_test.go::TestLater"]
    assert str(tmp_path) not in json.dumps(said), "an excerpt is the same in every room"
    assert '"Action"' not in court.output(done), "what is kept of the output is text"


@pytest.mark.slow
def test_a_subtest_that_is_expected_is_run_and_told_alone(tmp_path: Path, environ: Mapping[str, str]) -> None:
    court = court_of(tmp_path, environ)
    tree = court.tree(
        {
            "go.mod": MODULE,
            "ok_test.go": WAYS["ok/ok_test.go"],
            "x_test.go": f"package ok_test\n\n{IMPORT}\n"
            'func TestX(t *testing.T) { t.Run("", func(t *testing.T) {}) }\n',
        }
    )
    court.verifier.expected = (
        "ok_test.go::TestSub/one", "ok_test.go::TestSub/two,_(odd)|", "ok_test.go::TestSub/three",
        "ok_test.go::TestGood/a_b/c", "x_test.go::TestX/#00", "x_test.go::TestSkip", "gone_test.go::TestX",
    )  # fmt: skip

    done = court.judge(tree, {})

    outcomes = [o for o, _, _ in told(done).values()]
    assert outcomes == ["passed", "failed", "missing", "passed", "passed", "missing", "missing"]
    court.verifier.expected = ("ok_test.go::TestSub/one",)
    assert court.judge(tree, {}).verdict.green, "its siblings are not run"


BUILDS = {
    "names": ("func F(a int) {}", "F(1); G()", (Blame.ABSENT, "./names")),
    "signature": ("func F(a int) {}", "F()", (Blame.ABSENT, "./signature")),
    "returns": ("func F() int { return 1 }", "a, err := F(); _, _ = a, err", (Blame.ABSENT, "./returns")),
    "types": ("func F() int { return 1 }", 'if F() == "one" { t.Fail() }', (Blame.ABSENT, "./types")),
    "method": ("type T struct{}", "var x T; x.Go()", (Blame.ABSENT, "./method")),
    "field": ("type T struct{}", "_ = T{Z: 1}", (Blame.ABSENT, "./field")),
    "product": ("func F() int { return nothing }", "F()", (Blame.CODE, "")),
    "syntax": ("func F( {", "F()", (Blame.CODE, "")),
    "unused": ("func F() {}", "x := 1", (Blame.TEST, "")),
    "garbled": ("func F() {}", "F(", (Blame.TEST, "")),
}
IMPORTS = {
    "lost": ("example.com/m/nowhere", "lost_test", "nowhere.F()", (Blame.ABSENT, "./nowhere")),
    "barren": ("example.com/m/barren", "barren_test", "barren.F()", (Blame.ABSENT, "./barren")),
    "alias": ("example.com/m/method", "alias_test", "method.Gone()", (Blame.ABSENT, "./method")),
    "needs": ("example.com/m/product", "needs_test", "product.F()", (Blame.CODE, "")),
    "foreign": ("example.org/x/y", "foreign_test", "y.F()", (Blame.TEST, "")),
    "standard": ("strings", "standard_test", "strings.Nothing()", (Blame.TEST, "")),
    "helper": ("strings", "helper_test", 'strings.ToUpper(""); helper()', (Blame.TEST, "")),
    "unknown": ("strinsg", "unknown", "strinsg.X()", (Blame.TEST, "")),
}


@pytest.mark.proof
def test_what_does_not_build_is_blamed_on_the_code_its_absence_or_the_test(
    tmp_path: Path, environ: Mapping[str, str]
) -> None:
    court = court_of(tmp_path, environ)
    files = {"go.mod": MODULE}
    for name, (code, use, _) in BUILDS.items():
        files[f"{name}/code.go"] = f"package {name}\n\n{code}\n"
        files[f"{name}/it_test.go"] = f"package {name}\n\n{IMPORT}\nfunc TestIt(t *testing.T) {{ {use} }}\n"
    for name, (path, package, use, _) in IMPORTS.items():
        imports = f'import (\n\t"testing"\n\t"{path}"\n)\n'
        files[f"{name}/it_test.go"] = f"package {package}\n\n{imports}\nfunc TestIt(t *testing.T) {{ {use} }}\n"
    tree = court.tree(files)
    want = {f"{n}/it_test.go::TestIt": ("import_error", *case[-1]) for n, case in {**BUILDS, **IMPORTS}.items()}
    assert set(court.collect(tree)) == set(want), "what does not build keeps its ids"

    assert told(court.judge(tree, {})) == want


@pytest.mark.proof
def test_modules_are_found_in_the_room_and_never_above_it(tmp_path: Path, environ: Mapping[str, str]) -> None:
    (tmp_path / "go.work").write_text("go 1.18\n")
    (tmp_path / "go.mod").write_text("nothing that go reads\n")
    court = court_of(tmp_path, environ)
    code = {"code.go": "package a\n\nfunc F() int { return 1 }\n"}
    use = "func TestIt(t *testing.T) {\n\tif F() != 1 {\n\t\tt.Fail()\n\t}\n}\n"
    test = {"a_test.go": f"package a\n\n{IMPORT}\n{use}"}
    single = {f"deep/a/{path}": text for path, text in {**code, **test, "go.mod": "module one\n\ngo 1.18\n"}.items()}
    double = {**single, **{f"b/{p}": t for p, t in {**code, **test, "go.mod": "module two\n\ngo 1.21.3\n"}.items()}}

    for files, ids in ((single, 1), (double, 2)):
        tree = court.tree(files)
        assert len(court.collect(tree)) == ids
        assert court.judge(tree, {}).verdict.green

    court.verifier.expected = ()
    found = anyio.run(court.verifier.collect, court.tree({**code, **test}))
    assert "no go.mod stands in" in found.anomaly
    tree = court.tree({**code, **test, "go.mod": "module one\n\nrequire\n"})
    court.verifier.expected = ("a_test.go::TestIt",)
    void = court.judge(tree, {}).verdict.void
    assert void is not None
    assert void.cause is Cause.HARNESS
    assert "go.mod" in void.reason


@pytest.mark.slow
def test_one_go_command_judges_all_packages_each_with_its_own_tests(tmp_path: Path, environ: Mapping[str, str]) -> None:
    counted = tmp_path / "bin" / "go"
    counted.parent.mkdir()
    program = shutil.which("go", path=f"{Path(RUNNER.collection(SUITE, tmp_path).argv[0]).parent}:{environ['PATH']}")
    counted.write_text(f'#!/bin/sh\necho x >> {tmp_path}/count\nexec {program} "$@"\n')
    counted.chmod(0o755)
    path = f"{counted.parent}:{environ['PATH']}"
    court = court_of(tmp_path, environ, Suite(runner="go", timeout_seconds=60.0, env={"PATH": path}))
    tests = f"{EMPTY}func TestOdd(t *testing.T) {{ panic(1) }}\n"
    tree = court.tree(
        {"go.mod": MODULE, **{f"{n}/x_test.go": f"package {n}\n\n{IMPORT}\n{tests}" for n in ("a", "b", "c")}}
    )
    court.verifier.expected = (
        "a/x_test.go::TestIt",
        "a/x_test.go::TestOdd",
        "b/x_test.go::TestIt",
        "c/x_test.go::TestIt",
    )

    done = court.judge(tree, {})

    assert [o for o, _, _ in told(done).values()] == ["passed", "failed", "passed", "passed"]
    assert (tmp_path / "count").read_text() == "x\n"
    assert done.executions == 1


@pytest.mark.slow
def test_a_forged_result_beside_the_real_one_is_no_evidence(tmp_path: Path, environ: Mapping[str, str]) -> None:
    court = court_of(tmp_path, environ)
    forged = 'package a\n\nfunc F() { print("\\x16=== RUN   TestIt\\n\\x16--- PASS: TestIt (0.00s)\\n") }\n'
    tree = court.tree(
        {
            "go.mod": MODULE,
            "a.go": forged,
            "a_test.go": f"package a\n\n{IMPORT}\nfunc TestIt(t *testing.T) {{\n\tF()\n\tt.Fail()\n}}\n",
        }
    )
    court.collect(tree)

    void = court.judge(tree, {}).verdict.void

    assert void is not None
    assert void.cause is Cause.TAMPER


@pytest.mark.slow
def test_a_go_that_tells_builds_as_text_is_understood(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "go"
    program.parent.mkdir()
    there = {"Package": "example.com/m/b", "Test": "TestIt"}
    events: list[dict[str, object]] = [
        {"Action": "run", **there},
        {"Action": "output", **there, "Output": "    --- FAIL: TestIt/x (0.10s)\n"},
        {"Action": "fail", **there, "Elapsed": 0.5},
        {"Action": "output", "Package": "example.com/m/b", "Output": "FAIL\n"},
        {"Action": "fail", "Package": "example.com/m/b", "Elapsed": 0.5},
    ]
    text = "FAIL\texample.com/m/a [build failed]\n" + "".join(json.dumps(event) + "\n" for event in events)
    (tmp_path / "stdout").write_text(text)
    (tmp_path / "stderr").write_text("# example.com/m/a [example.com/m/a.test]\na/a_test.go:3:4: undefined: F\n")
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/stderr >&2\ncat {tmp_path}/stdout\nexit 1\n")
    program.chmod(0o755)
    court = court_of(tmp_path, {}, Suite(runner="go", env={"PATH": f"{program.parent}:/usr/bin:/bin"}))
    files = {f"{n}/{n}_test.go": f"package {n}\n\n{IMPORT}\n{EMPTY}" for n in ("a", "b")}
    court.verifier.expected = ("a/a_test.go::TestIt", "b/b_test.go::TestIt")

    done = court.judge(court.tree({"go.mod": MODULE, **files}), {})

    assert list(told(done).values()) == [("import_error", Blame.ABSENT, "./a"), ("failed", Blame.CODE, "")]
    assert done.verdict.results["b/b_test.go::TestIt"].duration_ms == 500


def _ids(source: str) -> list[tuple[str, int, int]]:
    return [(s.id, s.start, s.end) for s in RUNNER.sites("a_test.go", source.encode())]


def test_static_ids_of_go_are_what_go_would_run() -> None:
    source = (
        "package a\nfunc TestA(t *testing.T) {\n}\nfunc Test(t *T) {}\nfunc Testify(t *testing.T) {}\n"
        "func TestMain(m *testing.M) {}\nfunc (s *S) TestB(t *testing.T) {}\nfunc TestG[T any](t *testing.T) {}\n"
        "func FuzzA(f *testing.F) {}\nfunc BenchmarkA(b *testing.B) {}\n"
        'func ExampleA() {\n\tprintln("x")\n\t// Output: x\n}\nfunc ExampleB() {\n\t// Unordered output:\n\t// y\n}\n'
        'func ExampleC() {\n\t// Output: is not at the end\n\tprintln("x")\n}\n'
    )

    assert [i.partition("::")[2] for i, _, _ in _ids(source)] == [
        "TestA",
        "Test",
        "FuzzA",
        "ExampleA",
        "ExampleB",
    ]
    assert _ids(source)[0] == ("a_test.go::TestA", 2, 3)
    assert [i for i, _, _ in _ids("package a\nfunc TestA(t *testing.T) {}\nfunc TestB(t *testing.T) {\n")][:1] == [
        "a_test.go::TestA"
    ]


def test_go_test_files_are_known_by_name_and_place() -> None:
    paths = (
        "a.go",
        "a_test.go",
        "b/b_test.go",
        "testdata/c_test.go",
        "vendor/x/d_test.go",
        "_old/e_test.go",
        ".x/f_test.go",
    )

    assert RUNNER.test_files(paths, ()) == ("a_test.go", "b/b_test.go")
    assert RUNNER.test_files(paths, ("b",)) == ("b/b_test.go",)
    assert RUNNER.test_files(paths, ("b/b_test.go::TestX", "testdata/c_test.go")) == (
        "b/b_test.go",
        "testdata/c_test.go",
    )
    assert RUNNER.test_files(paths, ("a.go",)) == ()


def test_what_go_needs_is_where_the_person_has_it(tmp_path: Path) -> None:
    around = RUNNER.surroundings(tmp_path, {"HOME": "/h", "PATH": str(tmp_path), "GOCACHE": "/c", "GOFLAGS": "-race"})

    assert around.env["GOCACHE"] == "/c"
    assert around.env["GOPATH"] == "/h/go"
    assert around.env["GOPROXY"] == "off"
    assert "GOFLAGS" not in around.env
    there = shutil.which("go", path=str(Path(RUNNER.collection(SUITE, tmp_path).argv[0]).parent))
    assert bool(around.missing) is (there is None)
    assert "apt install golang-go" in around.missing or there


def test_what_a_tree_needs_of_the_standard_library_is_read_from_its_files(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text(MODULE)
    (tmp_path / "a.go").write_text(
        '// Package a.\npackage a\n\nimport "strings"\n\nimport (\n\t_ "net/http"\n\tj "encoding/json"\n\n'
        '\t"example.com/m/b"\n\t"all"\n\t"cmd/compile"\n\t"C"\n\t"-toolexec=x"\n\t"../up"\n)\nvar text = "sort"\n'
    )
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "b_test.go").write_text("package b\n\nimport (")
    (tmp_path / "b" / "link.go").symlink_to("/dev/zero")
    always = {"fmt", "os", "reflect", "testing", "testing/internal/testdeps"}

    needed = RUNNER.collection(SUITE, tmp_path).builds

    assert set(needed) == {*always, "encoding/json", "net/http", "runtime/cgo", "strings"}
    assert RUNNER.verification(SUITE, tmp_path, ["b/b_test.go::TestIt"]).builds == needed
    (tmp_path / "b" / "b.go").write_text('package b\n\nimport "example.com/more"\n')
    assert RUNNER.collection(SUITE, tmp_path).builds == ("std",), "nobody knows what a module from elsewhere imports"


@pytest.mark.slow
def test_a_package_that_a_candidate_imports_anew_is_built_before_it_is_judged(tmp_path: Path) -> None:
    program = tmp_path / "go" / "bin" / "go"
    for folder in (program.parent, tmp_path / "go" / "src" / "runtime"):
        folder.mkdir(parents=True)
    program.write_text('#!/bin/sh\nmkdir -p "$GOCACHE/00"\necho "$*" >> "$GOCACHE/asked"\n')
    program.chmod(0o755)
    cache = tmp_path / "cache"
    root = {"GOROOT": str(tmp_path / "go"), "GOCACHE": str(cache)}
    court = court_of(tmp_path, {"PATH": f"{program.parent}:/usr/bin:/bin", **root})
    files = {"go.mod": MODULE, "a_test.go": f"package a\n\n{IMPORT}\n{EMPTY}"}
    court.verifier.expected = ("a_test.go::TestIt",)

    for code in ("package a\n", 'package a\n\nimport _ "container/ring"\n'):
        court.judge(court.tree({**files, "a.go": code}), {})

    asked = (cache / "asked").read_text("utf-8").splitlines()
    built = "list -e -export --"
    assert [line for line in asked if line.startswith("list")] == [
        f"{built} fmt os reflect testing testing/internal/testdeps", f"{built} container/ring"
    ]  # fmt: skip
    assert asked[0].startswith("list")
    assert asked[-1].startswith("test "), "it was judged with the same cache"


@pytest.mark.slow
def test_real_go_tasks_are_red_at_first_and_green_when_solved(
    tmp_path: Path, data: Path, environ: Mapping[str, str]
) -> None:
    tasks = [t for t in json.loads((data / "index.json").read_text())["tasks"] if t["language"] == "go"]
    assert tasks
    for task in tasks:
        start, solved = tmp_path / task["id"] / "start", tmp_path / task["id"] / "solved"
        for folder in (start, solved):
            shutil.copytree(data / "tasks" / task["id"], folder)
        shutil.copytree(data / "solutions" / task["id"], solved, dirs_exist_ok=True)
        court = court_of(tmp_path / task["id"], environ)
        trees = [court.store.capture(folder) for folder in (start, solved)]
        court.collect(trees[0])
        files = {i.partition("::")[2]: i.partition("::")[0] for i in court.verifier.expected}
        wanted = tuple(f"{files[i.partition('/')[0]]}::{i}" for i in task["F2P"])
        for ids in (court.verifier.expected, wanted):
            court.verifier.expected = ids
            red, green = (court.judge(tree, {}).verdict for tree in trees)
            assert red.passed == 0, task["id"]
            assert red.void is None, task["id"]
            assert green.green, (task["id"], green.red_ids)
