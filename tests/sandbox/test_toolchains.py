"""Toolchains behind shims and links, and in other environments; what they cannot do is never a test's fault."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Cause, Ended
from jumar.errors import BadInput
from jumar.ports import Runner, Surroundings
from jumar.process import toolchain
from jumar.runners.cargo import CargoRunner
from jumar.runners.go import GoRunner
from jumar.runners.vitest import VitestRunner
from jumar.runs.setup.toolchain_check import check_toolchain
from support.judging.real_verifier import Court
from support.processes.sandboxes import s3

GO = {
    "go.mod": "module sample\n\ngo 1.18\n",
    "a_test.go": 'package sample\n\nimport "testing"\n\nfunc TestIt(t *testing.T) {\n\tt.Log("fine")\n}\n',
}


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n", "utf-8")
    path.chmod(0o755)
    return path


def fake_go(root: Path) -> Path:
    """A folder with the shape of a Go toolchain."""
    (root / "src" / "runtime").mkdir(parents=True)
    script(root / "bin" / "go", f'test "$1 $2" = "env GOROOT" && echo {root}')
    return root


def around(runner: Runner, origin: Path, path: Path, **environ: str) -> Surroundings:
    return runner.surroundings(origin, {"PATH": f"{path}:/usr/bin:/bin", **environ})


def test_a_shim_is_asked_which_toolchain_it_starts(tmp_path: Path) -> None:
    root = fake_go(tmp_path / "sdk" / "go")
    script(tmp_path / "shims" / "go", f'exec {root}/bin/go "$@"')

    found = around(GoRunner(), tmp_path, tmp_path / "shims")

    assert not found.missing
    assert root in found.readable
    assert found.env["PATH"].startswith(f"{root}/bin:")
    assert found.env["GOROOT"] == str(root)


def test_a_shim_is_told_the_versions_of_the_project_and_none_of_its_programs(tmp_path: Path) -> None:
    (tmp_path / "project" / "inner").mkdir(parents=True)
    (tmp_path / "project" / ".tool-versions").write_text("golang 1.27.3\nnodejs 20.1.0\n", "utf-8")
    (tmp_path / "project" / "rust-toolchain").write_text("[toolchain]\npath = '/evil'\n", "utf-8")
    shim = script(tmp_path / "shim", "cat .tool-versions; ls -A")

    lines = [toolchain.ask((str(shim),), tmp_path / "project" / "inner", dict(os.environ)).said]

    assert lines == [".tool-versions"], "the file of versions is there, and the one with a path in it is not"


@pytest.mark.parametrize(
    ("runner", "program", "question"),
    [
        (GoRunner(), "go", "go env GOROOT"),
        (CargoRunner(), "cargo", "rustc --print sysroot"),
        (VitestRunner(), "node", "node -p process.execPath"),
    ],
    ids=["go", "cargo", "node"],
)
def test_a_shim_that_finds_no_toolchain_is_named_with_what_it_says(
    tmp_path: Path, runner: Runner, program: str, question: str
) -> None:
    for name in {program, "rustc"}:
        script(tmp_path / name, "echo 'shim: no version set' >&2; exit 127")

    missing = around(runner, tmp_path, tmp_path).missing

    assert str(tmp_path / program) in missing
    assert "shim - no version set" in missing
    assert question in missing


def test_the_person_s_go_comes_before_one_that_lies_beside_jumar(tmp_path: Path) -> None:
    root = fake_go(tmp_path / "go")

    assert around(GoRunner(), tmp_path, root / "bin").env["GOROOT"] == str(root)


def test_a_python_that_is_a_shim_is_asked_which_interpreter_it_starts(tmp_path: Path) -> None:
    shim = script(tmp_path / "python", f'exec {sys.executable} "$@"')
    broken = script(tmp_path / "broken", "echo 'no version set' >&2; exit 1")

    assert toolchain.resolve_python(shim, tmp_path) == Path(sys.executable)
    with pytest.raises(BadInput, match="no version set"):
        toolchain.resolve_python(broken, tmp_path)


def test_toolchains_that_were_linked_into_rustup_are_shown(tmp_path: Path) -> None:
    home, own = tmp_path / "rustup", tmp_path / "built"
    own.mkdir()
    (home / "toolchains").mkdir(parents=True)
    (home / "toolchains" / "local").symlink_to(own)
    (tmp_path / "bin" / "rustup").parent.mkdir()
    (tmp_path / "bin" / "rustup").write_bytes(b"\x7fELF")
    (tmp_path / "bin" / "rustup").chmod(0o755)
    (tmp_path / "bin" / "cargo").symlink_to("rustup")

    found = around(CargoRunner(), tmp_path, tmp_path / "bin", RUSTUP_HOME=str(home))

    assert not found.missing
    assert {home, own} <= set(found.readable)


def confined_court(folder: Path, runner: Runner, environ: Mapping[str, str], test: str) -> Court:
    """A court in S3 that judges *test*."""
    court = Court(folder, Suite(runner=runner.name, timeout_seconds=120.0, confirm=0), started=True)
    court.verifier.runner, court.verifier.environ, court.verifier.sandbox = runner, environ, s3()
    court.verifier.around = runner.surroundings(folder, environ)
    court.verifier.expected = (test,)
    return court


@pytest.mark.slow
@pytest.mark.parametrize("works", [True, False], ids=["go works", "go lacks fmt"])
def test_a_red_that_is_the_toolchain_s_fault_is_infra_and_not_the_test_s(tmp_path: Path, works: bool) -> None:  # noqa: FBT001  a table
    said = "echo '# sample'; echo 'package fmt is not in std'; printf 'FAIL\\tsample [setup failed]\\n'; exit 1"
    root = fake_go(tmp_path / "go")
    script(root / "bin" / "go", f'case "$1 $2" in "test -c") {"exit 0" if works else said} ;; esac; {said}')
    court = Court(tmp_path, Suite(runner="go", timeout_seconds=30.0, confirm=0), started=True)
    environ = {"PATH": f"{root}/bin:/usr/bin:/bin", "GOROOT": str(root)}
    court.verifier.runner, court.verifier.around = GoRunner(), GoRunner().surroundings(tmp_path, environ)
    court.verifier.expected = ("a_test.go::TestIt",)

    done = court.judge(court.tree(GO), {})

    if works:
        assert court.outcomes(done) == {"TestIt": "import_error"}
    else:
        assert done.ended is Ended.UNSTARTED
        assert done.verdict.void is not None
        assert done.verdict.void.cause is Cause.HARNESS
        assert "the toolchain does not work in the sandbox" in done.verdict.void.reason


@pytest.mark.proof
def test_go_behind_a_shim_in_a_home_folder_works_in_s3(tmp_path: Path) -> None:
    go = shutil.which("go", path=f"{os.environ['PATH']}:{Path(sys.executable).parent}")
    if go is None:
        pytest.skip("no go on PATH")
    shims = script(tmp_path / "home" / ".goenv" / "shims" / "go", f'exec {go} "$@"').parent
    environ = {**os.environ, "PATH": f"{shims}:/usr/bin:/bin"}
    court = confined_court(tmp_path, GoRunner(), environ, "a_test.go::TestIt")

    done = court.judge(court.tree(GO), {})

    assert done.verdict.green, done.verdict
    assert check_toolchain(court.verifier.around, environ) == ""


def test_packages_of_a_toolchain_are_built_once_a_day_and_only_where_they_can_be(tmp_path: Path) -> None:
    root, cache = fake_go(tmp_path / "go"), tmp_path / "cache"
    script(root / "bin" / "go", 'mkdir -p "$GOCACHE/00" && echo "$*" >> "$GOCACHE/built"')
    known = around(GoRunner(), tmp_path, root / "bin", GOROOT=str(root), GOCACHE=str(cache), GOFLAGS="-race")
    command = "list -e -export -- "

    for packages in (("fmt", "os"), ("fmt", "os"), ("os",), ("fmt", "net", "os")):
        toolchain.prepare_cache(known, packages)
        assert toolchain.is_prepared(known, packages)
    assert (cache / "built").read_text("utf-8") == f"{command}fmt os\n{command}net\n"
    assert not toolchain.is_prepared(known, ("fmt", "time"))

    os.utime(cache / toolchain.PREPARED, (1.0, 1.0))
    toolchain.prepare_cache(known, ("os",))
    assert (cache / "built").read_text("utf-8").endswith(f"{command}os\n"), "a day later it is looked over again"
    assert not toolchain.is_prepared(known, ("fmt",))

    precious = tmp_path / "precious"
    (cache / toolchain.PREPARED).unlink()
    (cache / toolchain.PREPARED).symlink_to(precious)
    toolchain.prepare_cache(known, ("os",))
    assert not precious.exists(), "a link in its place is not followed"
    assert not toolchain.is_prepared(known, ("os",))


def test_a_package_that_is_added_does_not_make_the_others_younger(tmp_path: Path) -> None:
    root, cache = fake_go(tmp_path / "go"), tmp_path / "cache"
    script(root / "bin" / "go", 'mkdir -p "$GOCACHE/00"')
    known = around(GoRunner(), tmp_path, root / "bin", GOROOT=str(root), GOCACHE=str(cache))
    toolchain.prepare_cache(known, ("fmt",))
    hours_ago = time.time() - toolchain.PREPARED_SECONDS / 2
    os.utime(cache / toolchain.PREPARED, (hours_ago, hours_ago))

    toolchain.prepare_cache(known, ("fmt", "os"))

    assert abs((cache / toolchain.PREPARED).stat().st_mtime - hours_ago) < 1
    assert toolchain.is_prepared(known, ("fmt", "os"))


def test_an_emptied_cache_is_filled_again(tmp_path: Path) -> None:
    root, cache = fake_go(tmp_path / "go"), tmp_path / "cache"
    script(root / "bin" / "go", 'mkdir -p "$GOCACHE/00"')
    known = around(GoRunner(), tmp_path, root / "bin", GOROOT=str(root), GOCACHE=str(cache))
    toolchain.prepare_cache(known, ("fmt",))

    shutil.rmtree(cache / "00")

    assert not toolchain.is_prepared(known, ("fmt",))
    toolchain.prepare_cache(known, ("fmt",))
    assert toolchain.is_prepared(known, ("fmt",))
