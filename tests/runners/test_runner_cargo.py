"""Rust's runner: each way in which a test comes out, or does not build, has its name; one cargo for all of it."""

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
from jumar.runners.cargo import CargoRunner
from support.judging.real_verifier import Court

RUNNER = CargoRunner()
SUITE = Suite(runner="cargo", timeout_seconds=60.0, test_timeout_seconds=1.0)
MANIFEST = '[package]\nname = "my-crate"\nversion = "0.1.0"\nedition = "2021"\n'


@pytest.fixture
def environ() -> Mapping[str, str]:
    """The environment of this machine, if it has cargo."""
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


def rust(**bodies: str) -> str:
    return "".join(f"#[test]\nfn {name}() {{\n    {body}\n}}\n\n" for name, body in bodies.items())


LIBRARY = (
    "pub mod deep;\n\npub fn f(a: i32) -> i32 {\n    a\n}\n\npub struct S;\n\n"
    "#[cfg(test)]\nmod tests {\n    use super::*;\n\n"
    "    #[test]\n    fn unit() {\n        assert_eq!(f(1), 1);\n    }\n}\n"
)
DEEP = "pub fn g() {}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn inner() {\n        super::g();\n    }\n}\n"
CRATE = {"Cargo.toml": MANIFEST, "src/lib.rs": LIBRARY, "src/deep.rs": DEEP}
RAW = 'use std::io::Write; std::io::stdout().write_all(b"%s").unwrap();'
WAYS = {
    **CRATE,
    "tests/quiet.rs": rust(good='println!("said");', fails='println!("said"); assert_eq!(my_crate::f(1), 2);')
    + '#[test]\n#[ignore]\nfn ignored() {}\n\n'
    '#[test]\n#[should_panic(expected = "x")]\nfn panics() {\n    panic!("y");\n}\n\n'
    '#[test]\nfn errs() -> Result<(), String> {\n    Err(String::from("res"))\n}\n\n'
    "mod sub {\n    #[test]\n    fn below() {}\n}\n"
    '\n#[cfg(feature = "more")]\nmod more {\n    #[test]\n    fn never() {}\n}\n',
    "tests/dies.rs": rust(
        good="", leaves="std::process::exit(0);", aborts="std::process::abort();",
        says=RAW % r"test good ... ok\n", hangs="loop { std::thread::park() }",
    ),
}  # fmt: skip
ENDS = {
    "tests/quiet.rs::good": ("passed", None),
    "tests/quiet.rs::fails": ("failed", Blame.CODE),
    "tests/quiet.rs::ignored": ("passed", None),
    "tests/quiet.rs::panics": ("failed", Blame.CODE),
    "tests/quiet.rs::errs": ("failed", Blame.CODE),
    "tests/quiet.rs::sub::below": ("passed", None),
    "tests/dies.rs::good": ("passed", None),
    "tests/dies.rs::leaves": ("error", Blame.CODE),
    "tests/dies.rs::aborts": ("error", Blame.CODE),
    "tests/dies.rs::says": ("passed", None),
    "tests/dies.rs::hangs": ("timeout", Blame.CODE),
}


@pytest.mark.proof
def test_cargo_keeps_the_contract(tmp_path: Path, environ: Mapping[str, str]) -> None:
    runner: Runner = RUNNER

    async def check() -> None:
        await check_runner(runner, tmp_path, environ=environ)

    anyio.run(check)


@pytest.mark.slow
def test_each_way_a_rust_test_comes_out_has_its_name(tmp_path: Path, environ: Mapping[str, str]) -> None:
    court = court_of(tmp_path, environ)
    tree = court.tree(WAYS)
    assert set(court.collect(tree)) == set(ENDS), "tests in product files and those of features that are off are no ids"

    done = court.judge(tree, {})

    assert done.ended is Ended.NORMAL
    assert {i: (o, b) for i, (o, b, _) in told(done).items()} == ENDS
    said = {i: r.excerpt for i, r in done.verdict.results.items()}
    assert "said\n" in said["tests/quiet.rs::fails"]
    assert "panicked at tests/quiet.rs:8:" in said["tests/quiet.rs::fails"]
    assert 'Error: "res"' in said["tests/quiet.rs::errs"]
    assert "killed by SIGABRT" in said["tests/dies.rs::aborts"]
    assert "ended with status 0" in said["tests/dies.rs::leaves"]
    assert "ran longer than 1 s" in said["tests/dies.rs::hangs"]
    assert '"reason"' not in court.output(done), "what is kept of the output is text"


USES = {
    "gone": ("use my_crate::gone;", "gone();", (Blame.ABSENT, "")),
    "call": ("", "my_crate::gone();", (Blame.ABSENT, "")),
    "kind": ("", "let _ = my_crate::Gone::new();", (Blame.ABSENT, "")),
    "method": ("", "my_crate::S.gone();", (Blame.ABSENT, "")),
    "arguments": ("", "my_crate::f();", (Blame.ABSENT, "")),
    "types": ("", 'assert_eq!(my_crate::f(1), "one");', (Blame.ABSENT, "")),
    "glob": ("use my_crate::*;", "gone();", (Blame.ABSENT, "")),
    "helper": ("", "helper();", (Blame.TEST, "")),
    "foreign": ("use serde_json::json;", "", (Blame.TEST, "")),
    "syntax": ("", "(", (Blame.TEST, "")),
    "twice": ("fn it() {}", "", (Blame.TEST, "")),
}


@pytest.mark.slow
def test_what_does_not_build_is_blamed_on_the_code_its_absence_or_the_test(
    tmp_path: Path, environ: Mapping[str, str]
) -> None:
    court = court_of(tmp_path, environ)
    files = {f"tests/{name}.rs": f"{top}\n{rust(it=body)}" for name, (top, body, _) in USES.items()}
    tree = court.tree({**CRATE, **files, "tests/fine.rs": rust(it="")})
    want = {f"tests/{name}.rs::it": ("import_error", *fault) for name, (_, _, fault) in USES.items()}
    assert set(court.collect(tree)) == {*want, "tests/fine.rs::it"}, "what does not build keeps its ids"

    assert told(court.judge(tree, {})) == {**want, "tests/fine.rs::it": ("passed", None, "")}

    court.verifier.expected = ("tests/gone.rs::it",)
    broken = court.tree({**CRATE, **files, "src/deep.rs": "pub fn g( {}\n"})
    assert told(court.judge(broken, {})) == {"tests/gone.rs::it": ("import_error", Blame.CODE, "")}
    empty = court.tree({"Cargo.toml": MANIFEST, **files})
    assert told(court.judge(empty, {})) == {"tests/gone.rs::it": ("import_error", Blame.ABSENT, "src/lib.rs")}


@pytest.mark.proof
def test_unit_tests_are_ids_where_they_are_asked_for(tmp_path: Path, environ: Mapping[str, str]) -> None:
    files = {**CRATE, "tests/quiet.rs": rust(it="")}
    for number, (select, ids) in enumerate(
        (
            (("src/lib.rs",), {"src/lib.rs::tests::unit", "src/lib.rs::deep::tests::inner"}),
            (("src/deep.rs", "tests"), {"src/lib.rs::deep::tests::inner", "tests/quiet.rs::it"}),
            (("src/lib.rs::tests::unit",), {"src/lib.rs::tests::unit"}),
        )
    ):
        court = court_of(tmp_path / str(number), environ, Suite(runner="cargo", select=select))
        tree = court.tree(files)
        assert set(court.collect(tree)) == ids
    court.verifier.expected = ("src/lib.rs::deep::tests::inner", "src/lib.rs::tests::unit", "tests/quiet.rs::it")
    assert court.judge(tree, {}).verdict.green


@pytest.mark.slow
def test_the_packages_of_a_workspace_are_built_by_one_cargo(tmp_path: Path, environ: Mapping[str, str]) -> None:
    counted = tmp_path / "bin" / "cargo"
    counted.parent.mkdir()
    counted.write_text(
        f'#!/bin/sh\necho x >> {tmp_path}/count\nexec {shutil.which("cargo", path=environ["PATH"])} "$@"\n'
    )
    counted.chmod(0o755)
    path = f"{counted.parent}:{environ['PATH']}"
    court = court_of(tmp_path, environ, Suite(runner="cargo", timeout_seconds=60.0, env={"PATH": path}))
    test = rust(
        it='assert_eq!(std::fs::read_to_string("data.txt").unwrap(), "x"); my_crate::f(1);',
        odd='assert_eq!(std::env::var("CARGO_PKG_NAME").unwrap(), "?");',
    )
    members = {f"{at}/{p}": t for at in ("a", "b") for p, t in {**CRATE, "tests/it.rs": test, "data.txt": "x"}.items()}
    for at in ("a", "b"):
        members[f"{at}/Cargo.toml"] = MANIFEST.replace("my-crate", f"member-{at}") + '[lib]\nname = "my_crate"\n'
    tree = court.tree({**members, "Cargo.toml": '[workspace]\nmembers = ["a", "b"]\nresolver = "2"\n'})
    court.verifier.expected = ("a/tests/it.rs::it", "b/tests/it.rs::it", "b/tests/it.rs::odd")

    done = court.judge(tree, {})

    assert [o for o, _, _ in told(done).values()] == ["passed", "passed", "failed"]
    assert 'left: "member-b"' in done.verdict.results["b/tests/it.rs::odd"].excerpt
    assert (tmp_path / "count").read_text() == "x\n"
    assert done.executions == 1


@pytest.mark.slow
def test_a_tree_that_differs_in_one_byte_is_never_taken_for_the_one_before(
    tmp_path: Path, environ: Mapping[str, str]
) -> None:
    court = court_of(tmp_path, environ)
    test = {"tests/it.rs": rust(it="assert_eq!(my_crate::f(1), 1);")}
    good = court.tree({**CRATE, **test})
    bad = court.tree({**CRATE, **test, "src/lib.rs": LIBRARY.replace("    a\n", "    2\n")})
    court.collect(good)

    assert [court.judge(tree, {}).verdict.green for tree in (good, bad, good)] == [True, False, True]


@pytest.mark.proof
def test_crates_from_elsewhere_are_built_once_and_those_of_the_room_each_time(
    tmp_path: Path, environ: Mapping[str, str]
) -> None:
    vendor = tmp_path / "vendor" / "other"
    (vendor / "src").mkdir(parents=True)
    (vendor / "Cargo.toml").write_text(MANIFEST.replace("my-crate", "other"))
    (vendor / "src" / "lib.rs").write_text("pub fn one() -> i32 {\n    1\n}\n")
    (vendor / ".cargo-checksum.json").write_text('{"files":{},"package":null}')
    source = f'[source.crates-io]\nreplace-with = "here"\n[source.here]\ndirectory = "{vendor.parent}"\n'
    project = {
        "Cargo.toml": MANIFEST + '[dependencies]\nother = "0.1"\n',
        "src/lib.rs": "pub fn f() -> i32 {\n    other::one()\n}\n",
        "tests/it.rs": rust(it="assert_eq!(my_crate::f(), 1);"),
        ".cargo/config.toml": source,
    }
    court = court_of(tmp_path, {**environ, "XDG_CACHE_HOME": str(tmp_path / "cache")})
    good = court.tree(project)
    bad = court.tree({**project, "src/lib.rs": "pub fn f() -> i32 {\n    other::one() + 1\n}\n"})
    court.collect(good)

    done = [court.judge(tree, {}) for tree in (good, bad)]

    assert [d.verdict.green for d in done] == [True, False]
    said = [court.output(d) for d in done]
    assert ["Compiling other" in text for text in said] == [False, False]
    assert ["Compiling my-crate" in text for text in said] == [True, True]
    kept = [path.name for path in (tmp_path / "cache" / "jumar" / "cargo").rglob("*") if "my" in path.name]
    assert not kept, "nothing of the room is kept"


@pytest.mark.slow
def test_a_forged_result_beside_the_real_one_is_no_evidence(tmp_path: Path, environ: Mapping[str, str]) -> None:
    court = court_of(tmp_path, environ)
    tree = court.tree({**CRATE, "tests/it.rs": rust(it=RAW % r"test it ... ok\n" + " panic!()")})
    court.collect(tree)

    void = court.judge(tree, {}).verdict.void

    assert void is not None
    assert void.cause is Cause.TAMPER


@pytest.mark.slow
@pytest.mark.parametrize(
    ("manifest", "sentence"),
    [
        (MANIFEST + '[dev-dependencies]\nnot_on_this_machine = "1"\n', "not_on_this_machine"),
        pytest.param("[package\n", "Cargo.toml", marks=pytest.mark.proof),
        (None, "no Cargo.toml stands in"),
    ],
)
def test_what_keeps_cargo_from_building_is_told(
    tmp_path: Path, environ: Mapping[str, str], manifest: str | None, sentence: str
) -> None:
    court = court_of(tmp_path, environ)
    files = {**CRATE, "tests/it.rs": rust(it=""), "Cargo.toml": manifest}
    tree = court.tree({path: text for path, text in files.items() if text is not None})

    found = anyio.run(court.verifier.collect, tree)
    court.verifier.expected = ("tests/it.rs::it",)
    void = court.judge(tree, {}).verdict.void

    assert sentence in found.anomaly
    assert void is not None
    assert void.cause is Cause.HARNESS
    assert sentence in void.reason


@pytest.mark.slow
def test_a_cargo_that_cannot_keep_going_builds_all_the_same(tmp_path: Path, environ: Mapping[str, str]) -> None:
    program = tmp_path / "bin" / "cargo"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\ncase \"$*\" in *--keep-going*) echo 'error: unexpected argument --keep-going' >&2; exit 1;; esac\n"
        f'exec {shutil.which("cargo", path=environ["PATH"])} "$@"\n'
    )
    program.chmod(0o755)
    court = court_of(tmp_path, environ, Suite(runner="cargo", env={"PATH": f"{program.parent}:{environ['PATH']}"}))
    court.verifier.expected = ("tests/it.rs::it",)

    done = court.judge(court.tree({**CRATE, "tests/it.rs": rust(it="")}), {})

    assert done.verdict.green


def _ids(source: str, path: str = "tests/a.rs") -> list[tuple[str, int, int]]:
    return [(s.id, s.start, s.end) for s in RUNNER.sites(path, source.encode())]


def test_static_ids_of_rust_are_those_of_functions_marked_as_tests() -> None:
    source = (
        "/// said\n#[test]\n// why\n#[should_panic]\nfn one() {\n}\nfn helper() {}\n"
        '#[tokio::test(flavor = "x")]\nasync fn two() {}\n'
        "mod m {\n    mod n {\n        #[test] fn three() {}\n    }\n}\n#[cfg(test)]\nmod t { #[test] fn four() {} }\n"
        '#[cfg(feature = "x")]\nmod f { #[test] fn five() {} }\n#[cfg(windows)] #[test] fn six() {}\nmod file;\n'
    )

    assert [i.partition("::")[2] for i, _, _ in _ids(source)] == ["one", "two", "m::n::three", "t::four"]
    assert _ids(source)[0] == ("tests/a.rs::one", 2, 6)
    assert _ids('#![cfg(feature = "x")]\n#[test] fn one() {}\n') == []
    assert [i for i, _, _ in _ids("#[test] fn one() {}\n#[test] fn two() {\n")][:1] == ["tests/a.rs::one"]
    roots = (
        "tests/a.rs",
        "x/tests/a/main.rs",
        "src/lib.rs",
        "src/bin/a.rs",
        "src/deep.rs",
        "tests/a/b.rs",
        "src/tests/x.rs",
    )
    assert [bool(_ids("#[test] fn one() {}", path)) for path in roots] == [True, True, True, True, False, False, False]


def test_rust_test_files_are_known_by_place() -> None:
    paths = ("src/lib.rs", "tests/a.rs", "x/tests/b/main.rs", "tests/data.json", "target/tests/c.rs")

    assert RUNNER.test_files(paths, ()) == ("tests/a.rs", "x/tests/b/main.rs")
    assert RUNNER.test_files(paths, ("x",)) == ("x/tests/b/main.rs",)
    assert RUNNER.test_files(paths, ("src/lib.rs::tests::a", "tests")) == ("src/lib.rs", "tests/a.rs")


def test_what_cargo_needs_is_where_the_person_has_it(tmp_path: Path) -> None:
    around = RUNNER.surroundings(tmp_path, {"HOME": "/h", "PATH": str(tmp_path), "CARGO_HOME": "/c"})

    assert around.env["CARGO_HOME"] == "/c"
    assert around.env["RUSTUP_HOME"] == "/h/.rustup"
    assert around.env["CARGO_NET_OFFLINE"] == "true"
    assert "rustup" in around.missing


@pytest.mark.slow
def test_real_rust_tasks_are_red_at_first_and_green_when_solved(
    tmp_path: Path, data: Path, environ: Mapping[str, str]
) -> None:
    tasks = [t for t in json.loads((data / "index.json").read_text())["tasks"] if t["language"] == "rust"]
    assert tasks
    for task in tasks:
        start, solved = tmp_path / task["id"] / "start", tmp_path / task["id"] / "solved"
        for folder in (start, solved):
            shutil.copytree(data / "tasks" / task["id"], folder)
        shutil.copytree(data / "solutions" / task["id"], solved, dirs_exist_ok=True)
        court = court_of(tmp_path / task["id"], environ)
        trees = [court.store.capture(folder) for folder in (start, solved)]
        ids = court.collect(trees[0])
        assert {i.partition("::")[2] for i in ids} == set(task["F2P"])
        red, green = (court.judge(tree, {}).verdict for tree in trees)
        assert red.passed == 0, task["id"]
        assert red.void is None, task["id"]
        assert green.green, (task["id"], green.red_ids)
